"""Are the figures as in the accepted run of this fabric?"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import polars as pl

from perch.checks import RunView, check, first, plural
from perch.checks import fabric as fabrics
from perch.checks import figures as figure
from perch.checks import scope as scopes
from perch.model.baseline import AcceptedFigure, BaselineDocument
from perch.model.figures import rounded
from perch.model.student import p_value
from perch.model.verdict import Bound, Check, CheckStatus


class Policy(NamedTuple):
    """How far a figure may move, in percent. Beyond a binding one, hardware gets no PASS."""

    percent: int
    binding: bool


#: The medians of RDMA are what a site promises; tails and the worst interval move by themselves
#: from run to run. Other bounds are a site's to set, as limits with a bound `of: baseline`.
POLICY = {
    "bandwidth.gbit_s": Policy(5, binding=True),
    "latency_us.p50": Policy(10, binding=True),
    "latency_us.mean": Policy(20, binding=False),
    "latency_us.p99": Policy(25, binding=False),
    "latency_us.p99_9": Policy(50, binding=False),
    "bandwidth.min_interval_gbit_s": Policy(20, binding=False),
}
SOURCE = (
    "site policy: bandwidth within 5 % of the accepted run "
    "(draft-calabria-bmwg-ai-fabric-training-bench-02 wants repeats within 5 %). Median latency "
    "10 %, mean and worst interval 20 %, p99 25 %, p99.9 50 %. The change exceeds the noise of "
    "both runs' repeats (Student's t, 95 %, Bonferroni)"
)

#: Sockets move with the hosts' cores, and a verified payload is timed with its check: only shown.
_not_binding = re.compile(r"(^| )(tool=iperf3?|backend=tcp|verify=true)( |$)")

#: More degrees of freedom change no bound that anybody reads.
_MOST_DF = 200

_METRICS = {
    "bandwidth.gbit_s": "Bandwidth",
    "latency_us.p50": "Median latency",
    "latency_us.mean": "Mean latency",
    "latency_us.p99": "p99 latency",
    "latency_us.p99_9": "p99.9 latency",
    "bandwidth.min_interval_gbit_s": "Bandwidth of the worst interval",
}

_RANK = {"fail": 4, "inconclusive": 3, "advisory": 2, "better": 1, "pass": 0}


@dataclass
class Pair:
    """One figure in the accepted run and in this one. `change`: percent; `worse`: above 0."""

    key: str
    test: str
    metric: str
    terms: str
    at: str
    better: str
    was: AcceptedFigure
    now: figure.Repeats
    unlike: str | None
    state: str = "pass"
    change: int | float = 0
    worse: float = 0
    doubt: str | None = None


@dataclass
class Now:
    """A figure of this run, over its repeats."""

    test: str
    metric: str
    better: str
    terms: str
    at: str
    values: list[float]
    unlike: str | None = None


def _now(records: pl.DataFrame) -> dict[str, Now]:
    """Figures by key; one that a repeat lacks is left out."""
    found: dict[str, Now] = {}
    lacking: set[str] = set()
    flows = records.select("row", "flow")
    rows = figure.figures(records).join(flows, on="row", how="left", maintain_order="left")
    for row in rows.iter_rows(named=True):
        key, value = row["key"], row["value"]
        if value is None:
            lacking.add(key)
        elif key not in found:
            at = f"{row['flow']}#{key.split('/')[3]}"
            found[key] = Now(row["test"], row["metric"], row["better"], row["terms"], at, [value])
        elif found[key].terms != row["terms"]:
            differ = figure.unlike(found[key].terms, row["terms"])
            found[key].unlike = f"the repeats of this run are not alike ({differ})"
        else:
            found[key].values.append(value)
    return {key: now for key, now in found.items() if key not in lacking}


class _Pool(NamedTuple):
    """The noise of figures of one test and metric: `cv` is a part, not percent."""

    df: int
    cv: float | None


def _pooled(figures: list[tuple[float | None, int]]) -> _Pool:
    """Squared coefficients of variation, weighted by n - 1: many flows' repeats say more."""
    repeated = [(cv, n) for cv, n in figures if cv is not None]
    df = sum(n - 1 for _, n in repeated)
    if df == 0:
        return _Pool(0, None)
    return _Pool(df, math.sqrt(math.fsum((n - 1) * cv * cv for cv, n in repeated) / df) / 100)


def _of_median(n: int) -> float:
    """The variance of the median of n normal values over their mean's (asymptotically)."""
    return math.pi / 2 if n > 2 else 1


def _error(was: AcceptedFigure, now: figure.Repeats, before: _Pool, after: _Pool) -> float | None:
    """The error of ln(now / was); None where neither run repeated anything."""
    noise = (before.cv, after.cv)
    if noise == (None, None):
        return None
    a, b = (noise[i] if noise[i] is not None else noise[1 - i] for i in (0, 1))
    x = max((was.cv_percent or 0) / 100, a or 0)  # no figure is less noisy than a comparable one
    y = max((now.cv_percent or 0) / 100, b or 0)
    return math.sqrt(x * x / was.n * _of_median(was.n) + y * y / now.n * _of_median(now.n))


def _significant(ratio: float, error: float | None, df: int, m: int) -> bool | None:
    """Is such a change, one of m, more than chance? None: nothing was repeated.

    Bonferroni: O. J. Dunn, "Multiple Comparisons Among Means", Journal of the American Statistical
    Association 56 (1961).
    """
    if error is None:
        return None
    if error == 0:
        return True
    return m * p_value(math.log(ratio) / error, min(df, _MOST_DF)) < 0.05


def _state(pair: Pair, policy: Policy, *, binds: bool, real: bool | None) -> str:
    if pair.worse > policy.percent:
        if policy.binding and binds and not _not_binding.search(pair.terms):
            return "fail" if real else "inconclusive"
        return "advisory"
    return "better" if pair.worse < -policy.percent and real is not False else "pass"


def _judge(pairs: list[Pair], *, binds: bool) -> None:
    """Sets change and state of all figures of one test and metric."""
    before = _pooled([(pair.was.cv_percent, pair.was.n) for pair in pairs])
    after = _pooled([(pair.now.cv_percent, pair.now.n) for pair in pairs])
    policy = POLICY[pairs[0].metric]
    for pair in pairs:
        ratio = (pair.now.value or 0) / pair.was.value
        error = _error(pair.was, pair.now, before, after)
        real = _significant(ratio, error, before.df + after.df, len(pairs))
        pair.change = rounded(100 * (ratio - 1))
        pair.worse = -pair.change if pair.better == "higher" else pair.change
        pair.state = _state(pair, policy, binds=binds, real=real)
        if real is None:
            pair.doubt = "nothing was repeated, so its noise is unknown"
        elif not real:
            pair.doubt = "the noise of the repeats can make such a change"


def _remedy(one: Pair, n: int) -> str:
    if one.state == "better":
        return (
            "find out what has changed since then before you trust it, and accept a newer run if "
            "it is meant (make accept)"
        )
    doubt = f"; and measure again with more repeats: {one.doubt}" if one.doubt else ""
    return (
        f"{plural(n, 'figure')} worse than accepted: see what has changed since then (cables, "
        f"routes, firmware, tuning, other load){doubt}"
    )


def _group(pairs: list[Pair], run: str) -> Iterator[Check]:
    """What is not within its bound of one test and metric."""
    off = sorted(
        (pair for pair in pairs if pair.state != "pass"),
        key=lambda pair: (-_RANK[pair.state], -abs(pair.worse)),
    )
    if not off:
        return
    worst = off[0]
    alike = [pair for pair in off if pair.state == worst.state]
    is_better = worst.state == "better"
    status: CheckStatus = "advisory" if worst.state in ("better", "advisory") else "inconclusive"
    if worst.state == "fail":
        status = "fail"
    percent = POLICY[worst.metric].percent
    direction = "better" if is_better else "worse"
    yield Check(
        id=f"drift/{worst.test}/{worst.metric}",
        title=f"Drift of test {worst.test}, {worst.metric}: {direction} than the accepted run",
        fault=f"{_METRICS[worst.metric]} {direction} than in the accepted run, test {worst.test}",
        status=status,
        measured=worst.change,
        limit=Bound(-percent, percent),
        unit=f"% of change against run {run}",
        evidence=first(pair.at for pair in alike),
        remedy=_remedy(worst, len(alike)),
    )


def _within(pairs: list[Pair], accepted: BaselineDocument) -> Iterator[Check]:
    kept = sum(pair.state == "pass" for pair in pairs)
    if not kept:
        return
    label = f" as '{accepted.label}'" if accepted.label is not None else ""
    forced = f", by force: {accepted.forced}" if accepted.forced is not None else ""
    yield Check(
        id="drift",
        title="No regression against the accepted baseline",
        status="pass",
        measured=f"{plural(kept, 'figure')} within their bounds of run {accepted.run}, "
        f"accepted {accepted.accepted}{label}{forced}",
    )


#: A baseline that has fewer of this run's figures cannot tell that the fabric is as it was.
LEAST_COMMON = 0.5


def _alone(now: dict[str, Now], accepted: BaselineDocument, common: set[str]) -> Iterator[Check]:
    """What only one of the two runs has is shown; with little in common, little was compared."""
    gone = [key for key in accepted.figures if key.split("/")[4:] and key.split("/")[4] in POLICY]
    gone = [key for key in gone if key not in now]
    new = [key for key in now if key not in common]
    if len(common) < LEAST_COMMON * len(now):
        yield Check(
            id="drift/missing",
            title="The accepted run has this run's figures",
            fault="The accepted run lacks figures of this run",
            status="inconclusive",
            measured=f"run {accepted.run} has {len(common)} of {plural(len(now), 'figure')} of "
            "this run",
            evidence=first(new),
            remedy="plan again with the accepted run's suite, or with plan_baseline=none, and "
            "accept that run",
        )
    elif gone or new:
        yield Check(
            id="drift/missing",
            title="Figures that only one of the two runs has",
            status="not_judged",
            measured=f"{len(gone)} of run {accepted.run} only, {len(new)} of this one only",
            evidence=first([*gone, *new]),
        )


def _unlike(pairs: list[Pair], run: str) -> Iterator[Check]:
    if pairs:
        yield Check(
            id="drift/unlike",
            title="Only comparable figures are compared with the accepted run",
            fault="Figures were measured differently from the accepted run",
            status="inconclusive",
            measured=f"{plural(len(pairs), 'figure')} of run {run} were measured otherwise, the "
            f"first: {pairs[0].unlike}",
            source="design, records with different definitions or levels are never compared",
            evidence=first(pair.at for pair in pairs),
            remedy="measure with the accepted run's settings; or plan with plan_baseline=none, and "
            "accept that run as the new baseline",
        )


def _pairs(now: dict[str, Now], accepted: BaselineDocument) -> list[Pair]:
    pairs = []
    for key, one in now.items():
        was = accepted.figures.get(key)
        if was is None:
            continue
        unlike = one.unlike or figure.unlike(accepted.terms[was.of], one.terms)
        pairs.append(
            Pair(
                key,
                one.test,
                one.metric,
                one.terms,
                one.at,
                one.better,
                was,
                figure.of_repeats(one.values),
                unlike,
            )
        )
    return pairs


def _compared(run: RunView, accepted: BaselineDocument, scope: str) -> Iterator[Check]:
    now = _now(run.records)
    pairs = _pairs(now, accepted)
    like = [pair for pair in pairs if pair.unlike is None]

    def kind(pair: Pair) -> tuple[str, str]:
        return pair.test, pair.metric

    groups = [list(of) for _, of in groupby(sorted(like, key=kind), key=kind)]
    for of in groups:
        _judge(of, binds=scope not in ("software", "simulated"))
    yield from _within(like, accepted)
    for of in groups:
        yield from _group(of, accepted.run)
    yield from _unlike([pair for pair in pairs if pair.unlike is not None], accepted.run)
    yield from _alone(now, accepted, {pair.key for pair in pairs})


def _untimely(run: RunView, accepted: BaselineDocument) -> str | None:
    """Why this run cannot have been planned with this accepted run."""
    if accepted.run == run.plan.run:
        return f"run {accepted.run} is this run itself"
    if accepted.accepted > run.plan.created:
        return (
            f"run {accepted.run} was accepted at {accepted.accepted}, after this run was planned "
            f"at {run.plan.created}"
        )
    return None


def _cannot_vouch(measured: str, remedy: str) -> Check:
    return Check(
        id="drift/baseline",
        title="The accepted run is an earlier PASS",
        fault="The accepted run cannot serve as baseline",
        status="inconclusive",
        measured=measured,
        source="design, a baseline that cannot be used is never a PASS",
        evidence=["inputs/baseline.json"],
        remedy=remedy,
    )


def _forced(accepted: BaselineDocument) -> Iterator[Check]:
    """To be as good as a run that failed says nothing good."""
    if accepted.forced is None and accepted.verdict == "PASS":
        return
    forced = "not by force"
    if accepted.forced is not None:
        forced = f"by force: {accepted.forced}"
    yield _cannot_vouch(
        f"run {accepted.run} was {accepted.verdict}, and accepted {forced}",
        "accept a run that passes, or plan with plan_baseline=none",
    )


@check(
    family="drift",
    order=920,
    columns=tuple(
        dict.fromkeys(("row", "flow", *figure.COLUMNS, *fabrics.COLUMNS, *scopes.COLUMNS))
    ),
    source=SOURCE,
)
def drift(run: RunView) -> Iterator[Check]:
    accepted = run.baseline.document
    if accepted is None:
        given = run.baseline.given
        yield Check(
            id="drift/baseline" if given else "drift",
            title="The accepted run can be read"
            if given
            else "No regression against the accepted baseline",
            fault="The accepted run cannot be read",
            status="inconclusive" if given else "not_judged",
            measured=run.baseline.fault,
            source="design, a baseline that cannot be used is never a PASS"
            if given
            else "design, relative limits against an accepted run",
            evidence=["inputs/baseline.json"] if given else [],
            remedy="put the file of the accepted run there again (runs/baseline), or take it "
            "away, and judge again"
            if given
            else None,
        )
        return
    untimely = _untimely(run, accepted)
    if untimely is not None:
        yield _cannot_vouch(untimely, "plan again; perchctl plan finds what was accepted before")
        return
    yield from _forced(accepted)
    scope = scopes.weakest_scope(run.plan, run.records)
    shown = fabrics.ends(run.records.filter(pl.col("status") == "ok"))
    now = fabrics.identity(run.plan, shown, scope)
    differ = list(fabrics.differences(accepted.fabric, now))
    if not differ:
        yield from _compared(run, accepted, scope)
        return
    yield Check(
        id="drift/fabric",
        title="The accepted run is of this fabric",
        fault="The accepted run was measured on another fabric",
        status="inconclusive",
        measured=f"run {accepted.run} was measured on another fabric: {'; '.join(differ)}",
        source="design, relative limits against an accepted run of the same devices, rates, MTU, "
        "limits and scope",
        remedy="plan with plan_baseline=none, and accept that run if the fabric is meant to be so",
    )
