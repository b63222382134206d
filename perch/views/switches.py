"""What switches carried and lost: over a run, while flows ran, and as documents state it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from perch.model.imported import Stated
from perch.views import words
from perch.views.table import Column, Table, capped, left, right

Switch = Mapping[str, Any]

#: The busiest and the losing queues come first; the rest is in verdict.json.
QUEUES_MAX = 200
ABOUT_MAX = 50
#: Of an interval while flows ran, what is counted.
PER_INTERVAL = ("drops", "ecn_marked", "pause_in", "pause_out")
#: A queue that carried less is not worth a row.
QUIET_MBIT_S = 0.01


class SwitchesSection(msgspec.Struct):
    """`during`: ranges of the intervals in which flows ran."""

    about: list[str]
    table: Table
    during: Table


def _own_pause(row: Switch, way: str, priority: int | None) -> Any:
    """Pause frames of a queue's priority."""
    counts = (row.get("pause_by_priority") or {}).get(way) or []
    return counts[priority] if priority is not None and 0 <= priority < len(counts) else None


def _pause(row: Switch, way: str, priority: int | None, *, first: bool) -> Any:
    """Of a switch that counts them for the whole port alone, on the port's first row."""
    own = _own_pause(row, way, priority)
    if own is not None:
        return own
    counts = (row.get("pause_by_priority") or {}).get(way) or []
    if first and all(count is None for count in counts):
        return (row.get("pause") or {}).get(way)
    return None


def _is_worth_showing(queue: Switch, wanted: list[int]) -> bool:
    return (
        (queue.get("mbit_s") or 0) >= QUIET_MBIT_S
        or (queue.get("drops") or 0) > 0
        or (queue.get("ecn_marked") or 0) > 0
        or queue.get("priority") in wanted
    )


class _QueueRow(msgspec.Struct):
    drops: float
    mbit_s: float
    cells: list[str]


def _queue_rows(switch: Switch, row: Switch) -> Iterator[_QueueRow]:
    """A port whose queues are not known still shows what it carried as a whole."""
    wanted = switch.get("priorities") or []
    queues = [one for one in row["queues"] if _is_worth_showing(one, wanted)]
    whole_port = {"queue": "port", "mbit_s": row.get("tx_mbit_s")}
    used = row.get("utilisation_percent")
    for place, queue in enumerate(queues or [whole_port]):
        priority = queue.get("priority")
        pauses = (_pause(row, way, priority, first=place == 0) for way in ("rx", "tx"))
        drops, rate = queue.get("drops"), queue.get("mbit_s")
        cells = [
            words.cell(f"{switch['name']} {row['port']}"),
            words.cell(row.get("host")),
            words.cell(queue.get("queue")),
            words.figure(rate),
            *map(words.whole, (queue.get("packets_per_s"), drops, queue.get("ecn_marked"))),
            *map(words.whole, pauses),
            "-" if used is None else f"{words.figure(used)} %",
        ]
        yield _QueueRow(drops or 0, rate or 0, cells)


def _about(switch: Switch) -> str:
    said = f"{words.cell(switch['name'])} ({words.cell(switch['provider'])}"
    if switch["scope"] != "hardware":
        said += f", **{words.cell(switch['scope'])}: no proof of a switch**"
    faults, gaps = switch.get("faults") or [], switch.get("gaps") or []
    if faults:
        told = "; ".join(f"{one['command']}: {one['why']}" for one in faults[:3])
        said += f"): not judged: {words.cell(told)}"
    else:
        ports = len({row["port"] for row in switch["rows"]})
        seconds = words.figure(switch.get("seconds"))
        said += f"): read {seconds} s apart, {words.plural(ports, 'port')}"
    if gaps:
        told = ", ".join(f"{one['command']} ({one['why']})" for one in gaps)
        said += f"; not known: {words.cell(told)}"
    lost = [f"{row['port']} ({row['lost'][0]})" for row in switch["rows"] if row.get("lost")]
    if lost:
        named = ", ".join(map(words.cell, lost[:3])) + (", ..." if len(lost) > 3 else "")
        said += f"; counters were reset in between, so nothing is known of {named}"
    return said + (_sampled(switch["during"]) if switch.get("during") else "")


def _sampled(during: Switch) -> str:
    """In words, how often a switch was read while flows ran, and what gave no rate."""
    said = f"; {words.plural(during['intervals'], 'interval')} between readings"
    if during["covered_percent"] is not None:
        said += f" in {words.figure(during['covered_percent'])} % of the flows' time"
    if during["intervals"]:
        said += f", rates within {words.figure(during['within_percent'])} %"
    if during["marked"]:
        one = during["marks"][0]
        place = f"{one['port']} " if one["port"] else ""
        why = words.cell(f"{place}at {one['at'] or 'an unknown time'}: {one['why']}")
        said += f"; no rate in {words.plural(during['marked'], 'place')}, first {why}"
    return said


def _span(span: Switch | None, shown: Callable[[Any], str]) -> str:
    """A range such as '7,854 to 9,979, median 9,253'."""
    if span is None:
        return words.NOTHING
    low, middle, high = (shown(span[name]) for name in ("min", "median", "max"))
    return low if low == high else f"{low} to {high}, median {middle}"


def _while_flows_ran(switch: Switch) -> Iterator[_QueueRow]:
    during = switch.get("during")
    wanted = switch.get("priorities") or []
    for row in during["rows"] if during else ():
        of, most = (
            row["figures"],
            {key: (one or {}).get("max") for key, one in row["figures"].items()},
        )
        if row["queue"] is not None and not _is_worth_showing(most | row, wanted):
            continue
        flows, count = row["peak"]["flows"], row["peak"]["of"]
        more = f" and {count - 1} more" if count > 1 else ""
        cells = [
            words.cell(f"{switch['name']} {row['port']}"),
            words.cell(row["host"]),
            words.cell(row["queue"] or "port"),
            words.whole(row["intervals"]),
            _span(of["mbit_s"], words.figure),
            _span(of["utilisation_percent"], words.figure),
            *(_span(of[name], words.whole) for name in PER_INTERVAL),
            words.cell(f"{row['peak']['begin']}: {flows[0]}{more}"),
        ]
        yield _QueueRow(most["drops"] or 0, most["mbit_s"] or 0, cells)


def _capped(columns: list[Column], rows: list[_QueueRow]) -> Table:
    if len(rows) > QUEUES_MAX:
        rows.sort(key=lambda row: (-row.drops, -row.mbit_s))
    return capped(columns, [row.cells for row in rows], QUEUES_MAX)


def switches(found: Sequence[Switch]) -> SwitchesSection | None:
    """None without switches."""
    if not found:
        return None
    rows = [one for switch in found for row in switch["rows"] for one in _queue_rows(switch, row)]
    columns = left("Switch and port", "Host", "Queue") + right(
        "Mb/s", "packets/s", "drops", "ECN marks", "pause in", "pause out", "port's use"
    )
    ranges = left("Switch and port", "Host", "Queue") + right(
        "intervals", "Mb/s", "port's use in %", "drops", "ECN marks", "pause in", "pause out"
    )
    return SwitchesSection(
        [_about(switch) for switch in found][:ABOUT_MAX],
        _capped(columns, rows),
        _capped(
            [*ranges, *left("Worst or busiest interval")],
            [row for switch in found for row in _while_flows_ran(switch)],
        ),
    )


def stated(found: list[Stated]) -> Table:
    """What documents say of switches; Perch read none of them."""
    rows = [
        [
            *map(words.cell, (one.switch, one.part or None, one.name, one.figure)),
            words.code(one.place),
        ]
        for one in found
    ]
    columns = left("Switch", "Of", "Figure") + right("In words") + left("Where")
    return capped(columns, rows, QUEUES_MAX)
