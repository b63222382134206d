"""Sentences that a reader may quote. What was not measured has no sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from perch.model.figures import is_finite
from perch.model.imported import Documents
from perch.model.sections import ComparisonRow, ComparisonSection
from perch.model.verdict import Check, Verdict
from perch.views import words
from perch.views.evolution import Evolution, Head
from perch.views.first_screen import place
from perch.views.flow_facts import Packets
from perch.views.flows import Ranked
from perch.views.measured import Point, Results, best_bandwidth, best_latency, named
from perch.views.ranks import grouped
from perch.views.words import cell, figure, percent, size, whole

#: docs/definitions.md: half a percent over the ceiling is granted for the clocks of two hosts.
IMPOSSIBLE_PERCENT = 100.5

#: Checks sum all counters of retransmissions, so a bare "44 retransmitted" would contradict them.
_NONE = "none retransmitted"

#: From this ratio on a factor reads better than a difference in percent.
TIMES = 2
#: Nearer to 1 a ratio rounds to a change of 0 %.
SAME = 0.005


def _why_no_ceiling(about: dict[str, Any]) -> str:
    layer = about["link.layer"]
    if layer in ("loopback", "shm"):
        return f"{cell(layer)} has no ceiling."
    facts = {"rate": about["link.rate_gbit_s"], "MTU": about["link.mtu_bytes"]}
    unknown = [name for name, value in facts.items() if value is None]
    return f"{' and '.join(unknown) or 'the layer'} not known."


def _host(point: Point) -> str:
    """The ceiling of the hosts, beside that of the network."""
    lets = point.get("host_ceiling_gbit_s")
    return "" if lets is None else f" PCIe of its hosts lets {figure(lets)} Gb/s through."


def _throughput(tests: list[Results]) -> Iterator[str]:
    best = best_bandwidth(tests)
    if best is None:
        return
    test, point = best
    rate, share, what = figure(point.get("gbit_s")), point.of_ceiling, named(test, point)
    if share is None:
        yield (
            f"**RDMA's interface carried {rate} Gb/s** ({what}). "
            f"The capacity of its link is not known: {_why_no_ceiling(test.about)}"
        )
        return
    mtu = test.about["link.mtu_bytes"]
    bought = test.about["link.expected_gbit_s"] or test.about["link.rate_gbit_s"]
    link = f"a {words.plain(bought)} Gb/s link can carry"
    link += "" if mtu is None else f" at MTU {words.fixed(mtu, 0)}"
    top = figure(point.get("ceiling_gbit_s"))
    if share > IMPOSSIBLE_PERCENT:
        yield (
            f"**{rate} Gb/s is {percent(share)} of what {link} ({top} Gb/s), which is "
            f"impossible** ({what})."
        )
    else:
        said = f"**{rate} Gb/s is {percent(share)} of what {link} ({top} Gb/s)**: {what}."
        yield said + _host(point)


def _slowest(ranked: list[Ranked]) -> Iterator[str]:
    for test in ranked:
        if test.kind == "bandwidth":
            flow = test.slowest[0]
            share = percent(100 * flow.value / test.middle)
            repeats = ", median of its repeats" if test.repeats > 1 else ""
            yield (
                f"{cell(test.title)} at {size(test.size)}: the slowest pair is "
                f"{cell(flow.ends)}, {figure(flow.value)} Gb/s"
                f"{repeats}: {share} of the median of the test's {test.among}."
            )


def _latency(tests: list[Results]) -> Iterator[str]:
    best = best_latency(tests)
    if best is None:
        return
    test, point = best
    p50, mean, p99, most = (point.get(name) for name in ("p50", "mean", "p99", "max"))
    at = f"**One-way latency (half round trip) at {size(point.size_bytes)}: "
    if p50 is None:
        at += f"mean {figure(mean)} µs**"
    else:
        at += f"median {figure(p50)} µs**" + ("" if mean is None else f", mean {figure(mean)} µs")
    yield f"{at} ({named(test, point)})."
    deviation = point.get("stddev")
    if deviation is not None:
        said = f"Jitter of this test and size: standard deviation {figure(deviation)} µs"
        if p99 is not None:
            said += f", p99 {figure(p99)} µs"
        if most is not None:
            count = whole(point.get("count"))
            said += f"; the longest of {count} messages took {figure(most)} µs"
        yield f"{said}."


def _compared(ratio: float) -> str:
    if abs(ratio - 1) < SAME:
        return "the same"
    if ratio >= TIMES:
        return f"{figure(ratio)} x as high"
    return f"{percent(abs(100 * (ratio - 1)), 0)} {'lower' if ratio < 1 else 'higher'}"


def _against_tcp(comparison: ComparisonSection) -> Iterator[str]:
    """Ratios as the verdict has them, a line for each provider; shared memory is no network."""
    rows = [
        row
        for row in comparison["rows"]
        if row["rdma"]["name"] != "shm" and row.get("ratio") is not None
    ]
    for mine in grouped(rows, lambda row: (row["rdma"]["name"],)):
        parts = list(_ratios(mine))
        if parts:
            name = cell(mine[0]["rdma"]["name"])
            yield f"RDMA send ({name}) compared with TCP, medians: {', '.join(parts)}."


def _ratios(rows: list[ComparisonRow]) -> Iterator[str]:
    """Each with its size and waiting mode."""

    def of(metric: str, completion: str) -> list[ComparisonRow]:
        wanted = [row for row in rows if row["metric"] == metric]
        return [row for row in wanted if row["completion"] == completion and row["size_bytes"]]

    def said(what: str, row: ComparisonRow) -> str:
        how = f"{size(row['size_bytes'])}, {words.waiting_words(row['completion'])}"
        return f"{what} ({how}) {_compared(row['ratio'] or 0)}"

    largest = [
        ("bandwidth", of("gbit_s", "busy")),
        ("bandwidth", of("gbit_s", "event")),
        ("client CPU time per byte", of("client_s_per_gb", "event")),
    ]
    for what, found in largest:
        if found:
            yield said(what, max(reversed(found), key=lambda row: row["size_bytes"] or 0))
    latency = of("p50_us", "busy") or of("p50_us", "event")
    if latency:
        yield said("median latency", min(latency, key=lambda row: row["size_bytes"] or 0))


def _packets(counted: dict[str, Packets]) -> Iterator[str]:
    if not counted:
        return
    of = list(counted.values())
    lost, retries = sum(one.lost for one in of), sum(one.retries for one in of)
    said = (
        f"The RDMA devices counted {whole(sum(one.sent for one in of))} packets: "
        f"{whole(lost) if lost else 'none'} lost, "
        + (f"{whole(retries)} retransmissions after a timeout or NAK" if retries else _NONE)
    )
    yield f"{said}." if all(one.whole for one in of) else f"{said}, as far as they count that."


# ---- what checks say -----------------------------------------------------------------------------


def _check(checks: list[Check], name: str) -> Check | None:
    return next((check for check in checks if check.id == name), None)


def _switches(checks: list[Check]) -> Iterator[str]:
    drops, pauses = _check(checks, "switch/drops"), _check(checks, "switch/pause-frames")
    if drops and drops.status == "pass":
        yield f"No switch dropped a packet in a lossless queue: {cell(drops.measured)}."
    if pauses and str(pauses.measured).startswith("at most"):
        yield f"Pause frames: {cell(pauses.measured)}."


def _path(checks: list[Check]) -> Iterator[str]:
    proven = [
        check.measured
        for check in checks
        if check.id.startswith("path/proven/") and is_finite(check.measured)
    ]
    if proven:
        flows = words.plural(sum(proven), "flow")
        yield f"Traffic of {flows} used the intended NICs: both ends' devices counted its bytes."


def _integrity(checks: list[Check]) -> Iterator[str]:
    check = _check(checks, "integrity")
    checked = re.search("of ([0-9]+)", check.unit or "") if check else None
    if check and check.status == "pass" and checked:
        yield f"No corruption in {whole(int(checked[1]))} checked bytes."


def _repeats(checks: list[Check]) -> Iterator[str]:
    varied = [
        (check.measured, check)
        for check in checks
        if check.id.startswith("repeatability/") and is_finite(check.measured)
    ]
    if not varied:
        return
    most, worst = max(reversed(varied), key=lambda one: one[0])
    title = worst.title.removeprefix("Repeats of test ").removesuffix(" agree")
    where = ", ".join(one for one in (cell(title), place(worst)) if one)
    said = f"Repeats vary by at most {figure(most)} % ({where})"
    if worst.status == "pass":
        yield f"{said}, which is steady."
    else:
        limit = worst.limit.max if worst.limit else None
        yield f"{said}, which is **not steady**: above {words.plain(limit)} %."


def _evolution(heads: list[Head]) -> Iterator[str]:
    """The first latency and the first bandwidth; RDMA's interface before TCP."""
    changed = sorted((one for one in heads if one.change is not None), key=lambda one: not one.rdma)
    told = [
        next((one for one in changed if one.metric == metric), None)
        for metric in ("latency_us.p50", "bandwidth.gbit_s")
    ]
    said = [
        f"{one.figure.lower()} of {cell(one.test)} {one.before} to {one.now}"
        for one in told
        if one is not None
    ]
    if said:
        yield f"Since the first accepted run ({cell(changed[0].first)}): {'; '.join(said)}."


def _stated(verdict: Verdict) -> Iterator[str]:
    """What documents say of switches, in short."""
    documents = verdict.documents
    switches = documents.switches if isinstance(documents, Documents) else []
    said = dict.fromkeys(
        f"{one.name.lower()} {one.figure}"
        for one in switches
        if one.measure in ("utilisation", "drops", "errors")
    )
    if said:
        yield f"In the document's words, read from no switch: {cell(', '.join(said))}."


def sentences(
    verdict: Verdict,
    tests: list[Results],
    ranked: list[Ranked],
    counted: dict[str, Packets],
    past: Evolution,
) -> list[str]:
    checks = verdict.checks
    return [
        *_throughput(tests),
        *_slowest(ranked),
        *_latency(tests),
        *_against_tcp(verdict.comparison),
        *_packets(counted),
        *_switches(checks),
        *_path(checks),
        *_integrity(checks),
        *_repeats(checks),
        *_evolution(past.heads),
        *past.changes,
        *_stated(verdict),
    ]
