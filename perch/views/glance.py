"""Facts of the first screen: the link, the slowest pair, what changed since the accepted run."""

from __future__ import annotations

from collections.abc import Iterator

from perch.model.verdict import Check, Verdict
from perch.views import words
from perch.views.flows import Ranked
from perch.views.measured import Point, Results, best_bandwidth, fastest, named

#: Findings against the accepted run that are named.
NAMED = 2


def _link(tests: list[Results]) -> Iterator[str]:
    """The rate of the link, and the RDMA bandwidth that is nearest to it."""
    best = best_bandwidth(tests)
    if best is None:
        return
    test, point = best
    rate = test.about["link.rate_gbit_s"]
    reached = f"best RDMA bandwidth {words.figure(point.get('gbit_s'))} Gb/s"
    what = named(test, point)
    if rate is None:
        yield f"Link: rate not known; {reached} ({what})."
    elif point.of_ceiling is None:
        yield f"Link: {words.plain(rate)} Gb/s; {reached} ({what})."
    else:
        share = words.percent(point.of_ceiling)
        ceiling = words.figure(100 * (point.get("gbit_s") or 0) / point.of_ceiling)
        of = f"{share} of its {words.term('ceiling')} of {ceiling} Gb/s"
        said = f"Link: {words.plain(rate)} Gb/s; {reached}, {of}"
        yield f"{said} ({what}){_faster(tests, point)}."


def _faster(tests: list[Results], than: Point) -> str:
    """A faster test whose ceiling is not known, such as another tool's."""
    test, point = fastest(tests) or (None, than)
    if test is None or (point.get("gbit_s") or 0) <= (than.get("gbit_s") or 0):
        return ""
    return f"; fastest: {words.figure(point.get('gbit_s'))} Gb/s ({named(test, point)})"


def _slowest(pairs: int, ranked: list[Ranked]) -> Iterator[str]:
    """The slowest pair of the first test with several pairs: bandwidth before latency."""
    if pairs == 1 and not ranked:
        yield "Worst pair: not known, only one pair was measured."
    for test in ranked[:1]:
        flow = test.slowest[0]
        unit = "µs" if test.kind == "latency" else "Gb/s"
        yield (
            f"Worst pair: {words.cell(flow.ends)}, "
            f"{words.figure(flow.value)} {unit} at {words.size(test.size)}"
            f"{', median of its repeats' if test.repeats > 1 else ''}, "
            f"{words.percent(abs(100 * (flow.value / test.middle - 1)))} "
            f"{'slower' if test.kind == 'latency' else 'less'} than the median of the test's "
            f"{test.among}, {words.figure(test.middle)} {unit} ({words.cell(test.title)})."
        )


def _since(verdict: Verdict) -> Iterator[str]:
    """What the checks against the accepted run say; nothing where the run has none of them."""
    checks = [one for one in verdict.checks if one.id.split("/")[0] in ("drift", "baseline")]
    worse = [one for one in checks if one.status in ("fail", "advisory", "inconclusive")]
    if worse:
        said = "; ".join(f"{words.cell(one.headline)}: {_measured(one)}" for one in worse[:NAMED])
        more = f"; and {len(worse) - NAMED} more" if len(worse) > NAMED else ""
        yield f"Since the accepted run: {said}{more}."
    elif any(one.status == "pass" for one in checks):
        yield "Since the accepted run: no regression."
    elif checks:
        accept = " (`make accept` accepts this one)" if verdict.verdict == "PASS" else ""
        yield f"Since the accepted run: not known, no run was accepted{accept}."


def _measured(check: Check) -> str:
    return words.cell(words.value(check.measured, check.unit))


def lines(verdict: Verdict, pairs: int, tests: list[Results], ranked: list[Ranked]) -> list[str]:
    """Each on a line of its own. `pairs`: of hosts in the plan."""
    worst = _slowest(pairs, ranked) if verdict.coverage.measured else ()
    return [*_link(tests), *worst, *_since(verdict)]
