"""The soak in the report: how much was measured, anomalies, flows, and what it cannot have seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from perch.model.figures import is_finite
from perch.views import soak_chosen, words
from perch.views import soak_words as said
from perch.views.first_screen import STATUS_WORDS
from perch.views.plan import PlannedTest
from perch.views.table import Table, left, right
from perch.views.words import figure

Soak = Mapping[str, Any]
Anomaly = Mapping[str, Any]

ANOMALIES_MAX = 50
#: So many of one kind at one place, so that a hundred stalls hide no leak.
ALIKE_MAX = 8
FLOWS_MAX = 20
PROCESSES_MAX = 12
FINDINGS_MAX = 6
COUNTERS_MAX = 12
#: Evidence: lines of a file, and files.
LINES_MAX, FILES_MAX = 3, 2

# ---- the first lines -----------------------------------------------------------------------------


def _state(soak: Soak) -> str:
    # the time left is not known: an interval is here once it has ended
    if soak.get("running"):
        passed = soak.get("passed_s") or 0
        here = (
            f"the first {said.span(passed)} are here, all intervals that had ended"
            if passed > 0
            else "no interval had ended"
        )
        return f"**It still runs**: {here} when it was fetched."
    return {
        "done": "It ran to its end.",
        "stopped": "**It was stopped** before its time was over.",
        "short": "**It ended before its time was over.**",
    }.get(str(soak.get("state")), "**Nothing of it was measured.**")


def _flows(soak: Soak) -> list[dict[str, Any]]:
    return soak.get("flows") or []


def _gaps(soak: Soak) -> str:
    """Connections that were lost, and the time of the flow that had none for longest."""
    flows = [flow for flow in _flows(soak) if (flow.get("gaps") or 0) > 0]
    if not flows:
        return "no gap"
    count = words.plural(sum(flow["gaps"] for flow in flows), "gap")
    longest = said.span(max(flow.get("gap_s") or 0 for flow in flows))
    return f"{count}, {longest} without a connection in the worst flow"


def headline(soak: Soak) -> str:
    measured, duration = soak.get("measured_s") or 0, soak.get("duration_s") or 0
    mode = "tests in turn" if soak.get("mode") == "alternating" else "all tests at once"
    share = said.share(measured / duration) if duration > 0 else "-"
    return (
        f"**Soak of {said.asked(soak.get('duration_s'))}**, {mode}, an interval each "
        f"{said.asked(soak.get('interval_s'))}: {said.span(measured)} measured ({share}) by the "
        f"flow that has least, {_gaps(soak)}. {_state(soak)}"
    )


def _beyond(soak: Soak, kind: str) -> str:
    """A flow's own count has all stalls, anomalies those beyond their limit."""
    limits = soak.get("stall_limits_s") or []
    if kind != "stall" or not limits:
        return ""
    return f" longer than {' or '.join(map(said.length, limits))}"


def anomaly_line(soak: Soak) -> str:
    counts = soak.get("anomaly_counts") or {}
    kinds = [*said.KINDS, *sorted(kind for kind in counts if kind not in said.KINDS)]
    present = [kind for kind in kinds if (counts.get(kind) or 0) > 0]
    if not present:
        if (soak.get("measured_s") or 0) <= 0:
            return "Nothing was measured in which an anomaly could have shown."
        if soak.get("state") == "done":
            return "No anomaly was found."
        return "No anomaly was found in what was measured so far."
    told = [words.cell(said.counted(kind, counts[kind]) + _beyond(soak, kind)) for kind in present]
    return f"**Anomalies**: {', '.join(told)}."


# ---- sentences -----------------------------------------------------------------------------------


def _at(flow: Soak, seconds: Any) -> str:
    """A flow's times count from its own beginning, which is that of its turn."""
    begun = flow.get("soak_s")
    known = is_finite(seconds) and is_finite(begun)
    return said.since(begun + seconds if known else None)


def _pair(flow: Soak) -> str:
    return words.cell(soak_chosen.way(flow["flow"], " to "))


def _figures(flow: Soak, kind: str) -> dict[str, Any]:
    return (flow.get("figures") or {}).get(kind) or {}


def _worst_interval(title: str, flows: Sequence[Soak]) -> Iterator[str]:
    """Nothing where one of the flows has no figure."""
    is_rate = flows[0].get("kind") == "bandwidth"
    kind, name = ("bandwidth", "lowest_interval") if is_rate else ("latency", "p99_highest")
    ranked = [(value, flow) for flow in flows if is_finite(value := _figures(flow, kind).get(name))]
    if len(ranked) < len(flows):
        return
    if is_rate:
        value, flow = min(ranked, key=lambda one: one[0])
        of, at = _figures(flow, kind), "lowest_at_s"
        text = f"**No interval of {title} carried less than {figure(value)} Gb/s**"
        low = of.get("lowest_window")
        more = f"; in the worst 0.1 s of that flow {figure(low)} Gb/s" if is_finite(low) else ""
    else:
        value, flow = max(reversed(ranked), key=lambda one: one[0])
        of, at = _figures(flow, kind), "p99_highest_at_s"
        text = f"**No interval of {title} had a p99 above {figure(value)} µs**"
        most = of.get("max")
        more = (
            f"; the longest message of that flow took {figure(most)} µs" if is_finite(most) else ""
        )
    yield f"{text} ({_pair(flow)}, {_at(flow, of.get(at))} after the start){more}."


def findings(soak: Soak, tests: Sequence[PlannedTest]) -> list[str]:
    """The worst interval of each test."""
    of: dict[str, list[Soak]] = {}
    for flow in _flows(soak):
        of.setdefault(flow["test"], []).append(flow)
    found = [
        sentence
        for test in tests
        if test.name in of
        for sentence in _worst_interval(words.cell(test.title), of[test.name])
    ]
    return found[:FINDINGS_MAX]


# ---- anomalies -----------------------------------------------------------------------------------

_JOINED = ("gap", "stall", "low", "slow", "change", "link", "reboot", "clock")


class _Group(msgspec.Struct):
    """What happened to several flows at once; `all`: the one that lasted longest first."""

    first: Anomaly
    all: list[Anomaly]


def _near(one: Anomaly, interval: float) -> float:
    """Of whole intervals half of one, else a second."""
    return interval / 2 if one["kind"] in ("low", "slow") else 1


def _joins(group: _Group, one: Anomaly, interval: float) -> bool:
    first = group.first
    return (
        (first["kind"], first.get("severity")) == (one["kind"], one.get("severity"))
        and first.get("start_s") is not None
        and abs(one["start_s"] - first["start_s"]) <= _near(one, interval)
    )


def together(anomalies: Sequence[Anomaly], interval: float) -> list[_Group]:
    """Those of one kind that begin within a second of the first are one."""
    groups: list[_Group] = []
    for one in anomalies:
        into = None
        if one.get("start_s") is not None and one["kind"] in _JOINED:
            joined = (group for group in reversed(groups) if _joins(group, one, interval))
            into = next(joined, None)
        if into is None:
            groups.append(_Group(one, [one]))
        else:
            into.all.append(one)
    for group in groups:
        group.all.sort(key=lambda one: -(one.get("duration_s") or 0))
    return groups


def _shown(anomalies: Sequence[Anomaly], interval: float) -> list[_Group]:
    """Each keeps its place in the verdict, which has the worst first."""
    alike: dict[tuple[Any, ...], int] = {}
    shown = []
    for group in together(anomalies, interval):
        one = group.all[0]
        key = one["kind"], one.get("flow"), one.get("host")
        alike[key] = alike.get(key, 0) + 1
        if alike[key] <= ALIKE_MAX:
            shown.append(group)
    return shown[:ANOMALIES_MAX]


def _where(one: Anomaly) -> str:
    flow, host = one.get("flow"), one.get("host")
    if flow is None:
        return words.cell(host)
    # a flow's client is in its name
    elsewhere = host is not None and host != flow.partition("/")[2].partition("/")[0]
    return words.cell(f"{flow} at {host}" if elsewhere else flow)


def _and_more(count: int, most: int) -> str:
    return f" and {count - most} more" if count > most else ""


def _evidence(one: Anomaly) -> str:
    """`FILE:LINE` of one file stand together; the verdict has all."""
    lines: dict[str, list[str]] = {}
    for text in one.get("evidence") or []:
        found = re.fullmatch("(.*):([0-9]+)", str(text), re.DOTALL)
        of_file = lines.setdefault(found[1] if found else str(text), [])
        if found:
            of_file.append(found[2])
    if not lines:
        return words.NOTHING
    told = []
    for file, numbers in list(lines.items())[:FILES_MAX]:
        at = f":{', '.join(numbers[:LINES_MAX])}" if numbers else ""
        told.append(words.code(file) + at + _and_more(len(numbers), LINES_MAX))
    more = _and_more(len(lines), FILES_MAX)
    return "; ".join(told) + (f"{more} files" if more else "")


def _until(end: Any, start: Any) -> str:
    """The second of two times has its day only where that is another one."""
    text = said.clock(end)
    same_day = isinstance(end, str) and isinstance(start, str) and end[:10] == start[:10]
    return text[11:] if same_day else text


def _lasted(one: Anomaly) -> str:
    seconds, start, end = one.get("duration_s"), one.get("start_s"), one.get("end_s")
    if seconds is None and start is not None and end is not None:
        seconds = end - start
    return words.NOTHING if seconds == 0 else said.span(seconds)


def _anomaly_row(group: _Group) -> list[str]:
    first, longest = group.first, group.all[0]
    ended = [one for one in group.all if one.get("end_s") is not None]
    last = max(reversed(ended), key=lambda one: one["end_s"], default=first)
    messages = [one["messages"] for one in group.all if is_finite(one.get("messages"))]
    places = {one.get("flow") or one.get("host") for one in group.all}
    severity = longest.get("severity") or ""
    return [
        words.cell(first["id"]) + _and_more(len(group.all), 1),
        words.cell(STATUS_WORDS.get(severity, severity)),
        words.cell(longest.get("text")),
        _where(longest) + _and_more(len(places), 1),
        words.cell(said.clock(first.get("start"))),
        words.cell(_until(last.get("end"), first.get("start"))),
        said.since(first.get("start_s")),
        _lasted(longest),
        words.whole(sum(messages)) if messages else words.NOTHING,
        _evidence(longest),
    ]


class Shown(msgspec.Struct):
    """`more`: how many are not shown, in words. `joined`: some rows are of several."""

    table: Table
    more: str
    joined: bool = False


def _more(count: int) -> str:
    return words.whole(count) if count > 0 else ""


def anomalies(soak: Soak) -> Shown:
    found = soak.get("anomalies") or []
    shown = _shown(found, soak.get("interval_s") or 1)
    columns = (
        left("No.", "Weight", "What", "Where", "Start, UTC", "End, UTC")
        + right("Since the start", "Lasted", "Messages")
        + left("Evidence")
    )
    hidden = len(found) - sum(len(group.all) for group in shown)
    return Shown(
        Table(columns, [_anomaly_row(group) for group in shown]),
        _more(hidden + (soak.get("anomalies_left_out") or 0)),
        any(len(group.all) > 1 for group in shown),
    )


# ---- flows ---------------------------------------------------------------------------------------


def _amount(count: int | None, seconds: Any) -> str:
    if not count:
        return words.NOTHING if count is None else "0"
    return f"{words.whole(count)}, {said.span(seconds)}"


def _unit(value: Any, unit: str) -> str:
    return f"{figure(value)} {unit}" if is_finite(value) else words.NOTHING


def _drift(flow: Soak) -> str:
    of = (one for one in flow.get("drift") or [] if one.get("metric") in ("bandwidth", "p50"))
    one = next(of, None)
    if one is None:
        return words.NOTHING
    over = one.get("over_soak")
    if one.get("judged") is False or over is None:
        return "not judged"
    return f"{'+' if over >= 0 else '-'}{figure(abs(100 * over))} %"


def _course(flow: Soak) -> list[str]:
    """Typical, worst interval, and when that was."""
    rate, latency = _figures(flow, "bandwidth"), _figures(flow, "latency")
    if rate:
        low = rate.get("lowest_window")
        worst = _unit(rate.get("lowest_interval"), "Gb/s")
        worst += "" if low is None else f", in 0.1 s {figure(low)}"
        return [_unit(rate.get("mean"), "Gb/s"), worst, _at(flow, rate.get("lowest_at_s"))]
    if latency:
        most = latency.get("max")
        typical = f"{_unit(latency.get('p50_median'), 'µs')}, p99 "
        typical += _unit(latency.get("p99_median"), "µs")
        worst = f"p99 {_unit(latency.get('p99_highest'), 'µs')}"
        worst += "" if most is None else f", at most {figure(most)}"
        return [typical, worst, _at(flow, latency.get("p99_highest_at_s"))]
    return [words.NOTHING] * 3


def _flow_row(flow: Soak) -> list[str]:
    return [
        words.code(flow["flow"]),
        words.cell(flow.get("state")),
        said.span(flow.get("measured_s")),
        _amount(flow.get("gaps"), flow.get("gap_s")),
        _amount(flow.get("stalls"), flow.get("stall_s")),
        *_course(flow),
        _drift(flow),
    ]


def flows(soak: Soak) -> Shown:
    """Those with the most anomalies and the deepest fall."""
    least = soak.get("stall_s")
    stalls = "Stalls" if least is None else f"Stalls of {said.length(least)} and more"
    ordered = sorted(
        _flows(soak),
        key=lambda flow: (-(flow.get("anomalies") or 0), -soak_chosen.fall(flow), flow["flow"]),
    )
    columns = left("Flow", "State") + right(
        "Measured", "Gaps", stalls, "Typical", "Worst interval", "At", "Drift over the soak"
    )
    table = Table(columns, [_flow_row(flow) for flow in ordered[:FLOWS_MAX]])
    return Shown(table, _more(len(ordered) - FLOWS_MAX))


# ---- hosts ---------------------------------------------------------------------------------------


def _slope(value: Any, low: Any, high: Any) -> str:
    if not is_finite(value):
        return words.NOTHING
    return f"{figure(value)} ({figure(low)} to {figure(high)})"


def _process_row(host: str, one: Soak) -> list[str]:
    flow, hours, last = one.get("flow"), one.get("hours"), one.get("resident_bytes_last")
    role = f"{one.get('role')} of {flow}" if flow is not None else one.get("role")
    pid = one.get("pid")
    return [
        words.cell(role),
        words.cell(host),
        words.NOTHING if pid is None else str(pid),
        said.span(hours * 3600) if is_finite(hours) else words.NOTHING,
        figure(last / 1e6) if is_finite(last) else words.NOTHING,
        _slope(one.get("mb_per_hour"), one.get("low"), one.get("high")),
        words.whole(one.get("handles_last")),
        _slope(one.get("handles_per_hour"), one.get("handles_low"), one.get("handles_high")),
        words.cell(one.get("why")),
    ]


def processes(soak: Soak) -> Shown:
    """Those that grew fastest."""
    found = [
        (host["host"], one)
        for host in soak.get("hosts") or []
        for one in host.get("processes") or []
    ]

    def order(of: tuple[str, Soak]) -> tuple[Any, ...]:
        host, one = of
        growth = one.get("mb_per_hour")
        last = one.get("resident_bytes_last") or 0
        role, flow = str(one.get("role")), one.get("flow") or ""
        return -(-1e9 if growth is None else growth), -last, host, role, flow

    found.sort(key=order)
    columns = (
        left("Process", "Host")
        + right("Number", "Watched", "Resident, MB", "MB/h (95 %)", "Handles", "Handles/h (95 %)")
        + left("Note")
    )
    table = Table(columns, [_process_row(host, one) for host, one in found[:PROCESSES_MAX]])
    return Shown(table, _more(len(found) - PROCESSES_MAX))


def counters(soak: Soak) -> str:
    found = [
        f"{name} {words.whole(count)} at {host['host']}"
        for host in soak.get("hosts") or []
        for name, count in (host.get("counters") or {}).items()
        if count > 0
    ]
    if not found:
        return ""
    return f"Counted over the soak: {words.cell(words.some(found, COUNTERS_MAX))}."


# ---- all -----------------------------------------------------------------------------------------


def section(soak: Soak, tests: Sequence[PlannedTest], fault: str) -> dict[str, Any]:
    """fault: why the lines over time could not be shown, or ""."""
    started = soak.get("started")
    begun = words.cell(said.clock(started))
    return {
        "findings": findings(soak, tests),
        "headline": headline(soak),
        "anomaly_line": anomaly_line(soak),
        "zero_line": "" if started is None else f"Times since the start count from {begun} UTC.",
        "anomalies": anomalies(soak),
        "flows": flows(soak),
        "processes": processes(soak),
        "counters": counters(soak),
        "unread": fault,
        "blind": [words.cell(one.get("text")) for one in soak.get("blind") or []],
    }
