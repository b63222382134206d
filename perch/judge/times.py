"""When a flow was measured, compared with its plan, its hosts' agents and its tool's own times.

All times of one host are of one clock, which may have been set by CLOSE_S meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perch.model.figures import rounded
from perch.model.moments import CLOSE_S, LOST_S, SLEW, moment
from perch.model.part import Part
from perch.model.plan import Flow, Plan
from perch.model.raw import Agent, End, Reading
from perch.model.record import Role

#: Seconds from the end of a process to the last reading of counters: the agent waits until the
#: counters are younger than the process. The slowest emulated host took 1.1 s (tests/fixtures/rxe).
READING_S = 2

#: Seconds by which sizes may last longer than their process lived: the tools take their times from
#: another clock than the agent. No more than the process lived itself.
GRANTED_S = 1
#: The same, as a part of the process's life.
GRANTED = 1.05

#: The engine cuts the moment at which a size begins to milliseconds; one more is for rounding.
CUT_S = 0.002


#: A number, or a column of numbers; nan where a time is not known.
Column = Any


class Times(NamedTuple):
    """Seconds since the epoch of an end, or of many: its start and end, and its two readings.

    `lasted`: by the monotonic clock. Readings in a wrong order have no times.
    """

    begun: Column
    over: Column
    lasted: Column
    before: Column
    after: Column


def times_of(end: End) -> Times:
    """Of one end."""
    before, after = (end.counters.before, end.counters.after) if end.counters else (None, None)
    if before and after and not _in_order(before, after):
        before, after = None, None
    told = (
        end.begun, end.over, end.elapsed_s, before and before.time, after and after.time
    )  # fmt: skip
    return Times(*(math.nan if one is None else one for one in told))


def walked(agent: Agent | None) -> tuple[float, float]:
    """When an agent began and ended; nan where that is not known."""
    told = (moment(agent.started), moment(agent.ended)) if agent else (None, None)
    begin, stop = (math.nan if one is None else one for one in told)
    return begin, stop


def _apart(later: float, earlier: float) -> float:
    """Seconds, to the millisecond that agents write."""
    return round(later - earlier, 3)


def _not_in_agent(end: End, agent: Agent | None, begun: float, over: float) -> str | None:
    """Why the agent that is said to have run this end did not. Of a soak it may be a later one."""
    if agent is None:
        return None
    begin, stop = moment(agent.started), moment(agent.ended)
    late = stop is not None and over > stop + CLOSE_S
    if begin is None or not (begun < begin - CLOSE_S or late):
        return None
    return (
        f"the {end.role}'s line is of {end.started} to {end.ended}, "
        f"but the agent on {end.host} ran from {agent.started} to {agent.ended or 'now'}"
    )


def _in_order(before: Reading, after: Reading) -> bool:
    """By their numbers, and by the monotonic clock: the wall may date the later earlier."""
    early, late = before.number, after.number
    if early is None or late is None or early >= late:
        return False
    begun, over = before.clock_ns, after.clock_ns
    return begun is None or over is None or begun < over


def _same_devices(before: Reading, after: Reading) -> bool:
    return before.layout.devices.keys() == after.layout.devices.keys()


def _lasted(end: End, begun: float, over: float) -> Iterator[str]:
    """Whether an end's duration and its readings of counters are those of its start and end."""
    name, until, what = f"the {end.role}'s line", over, "end"
    readings = end.counters
    if readings and (readings.before is None) != (readings.after is None):
        yield f"{name} lacks one of its two readings of counters"
    if readings and readings.before and readings.after:
        if not _same_devices(readings.before, readings.after):
            yield f"{name} read other devices before its flow than after it"
        before, after = readings.before.time, readings.after.time
        if before is None or after is None:
            yield f"{name} does not say when it read its counters"
            return
        if before < begun - CLOSE_S or after > over + READING_S:
            yield (
                f"{name} read its counters at {readings.before.time_s} and "
                f"{readings.after.time_s}, but is of {end.started} to {end.ended}"
            )
        if not _in_order(readings.before, readings.after) or after < before - CLOSE_S:
            yield (
                f"{name} read its counters at {readings.before.time_s} before its flow, and at "
                f"{readings.after.time_s} after it"
            )
        until, what = after, "last reading"
    elapsed = end.elapsed_s or 0
    granted = CLOSE_S if what == "end" else READING_S
    if not -CLOSE_S <= until - begun - elapsed <= granted:
        yield (
            f"{name} says that it took {rounded(elapsed)} s, but {_apart(until, begun)} s lie "
            f"between its start and its {what}"
        )


def _untimely(plan: Plan, end: End, agent: Agent | None) -> Iterator[str]:
    """Why an end's times are not those of its flow."""
    begun, over = end.begun, end.over
    name = f"the {end.role}'s line"
    if begun is None or over is None:
        yield f"{name} does not say when it ran"
        return
    if not end.elapsed_s:
        yield f"{name} does not say how long it ran"
        return
    if over < begun - CLOSE_S:
        yield f"{name} says that it ended at {end.ended}, before it started at {end.started}"
    if plan.soak is None:  # whose ends may have had several processes
        yield from _lasted(end, begun, over)
    created = moment(plan.created)
    if created is not None and begun < created - LOST_S:
        yield f"{name} is of {end.started}, before the plan of {plan.created}"
    why = _not_in_agent(end, agent, begun, over)
    if why:
        yield why


def surely_timely(created: Column, begin: Column, stop: Column, of: Times) -> Column:
    """Whether `_untimely` has nothing to say of an end of no soak, as of nearly all.

    Its readings are of one layout. False decides nothing. `created`: of the plan; `begin`, `stop`:
    of the agent.
    """
    beyond = of.after - of.begun - of.lasted
    return (
        (begin - CLOSE_S <= of.begun)
        & (of.begun - CLOSE_S <= of.over)
        & (of.over <= stop + CLOSE_S)
        & (created - LOST_S <= of.begun)
        & (of.begun - CLOSE_S <= of.before)
        & (of.before - CLOSE_S <= of.after)
        & (of.after <= of.over + READING_S)
        & (of.lasted > 0)
        & (beyond >= -CLOSE_S)
        & (beyond <= READING_S)
    )


def _is_timely(plan: Plan, end: End, agent: Agent | None) -> bool:
    read = end.counters
    if plan.soak is not None or read is None or not (read.before and read.after):
        return False
    created = moment(plan.created)
    if created is None or read.before.layout is not read.after.layout:
        return False
    return bool(surely_timely(created, *walked(agent), times_of(end)))


def foreign(
    plan: Plan, agents: Mapping[Role, Agent | None], ends: Mapping[Role, End | None]
) -> str | None:
    """Why a flow is of another time than its plan and its hosts' agents; None where it is not."""
    for role, end in ends.items():
        if end and end.state == "done":
            if _is_timely(plan, end, agents[role]):
                continue
            why = next(_untimely(plan, end, agents[role]), None)
            if why:
                return why
    return None


def not_in_process(flow: Flow, part: Part, client: End | None) -> str | None:
    """Why a result is not of the process that printed it; both times are of the client's clock.

    Only the engine's lines always say when they began.
    """
    if client is None or part.soak is not None:
        return None
    begun = moment(part.started)
    if begun is None:
        is_owed = flow.tool == "perch" or part.started is not None
        return "the output does not say when it began" if is_owed else None
    start, stop = client.begun, client.over
    if start is None or stop is None:
        return None
    if in_process(begun, part.elapsed_s or 0, start, stop):
        return None
    return (
        f"the output is of {part.started} and {rounded(part.elapsed_s or 0)} s, but its process "
        f"ran from {client.started} to {client.ended}"
    )


def in_process(begun: Column, lasted: Column, start: Column, stop: Column) -> Column:
    """Whether what began then and lasted so long lies within the life of its process."""
    return (start - CLOSE_S <= begun) & (begun + lasted <= stop + CLOSE_S)


def _between_readings(end: End | None) -> float | None:
    """Seconds from an end's first reading of counters to the last one."""
    readings = end.counters if end else None
    if readings is None or readings.before is None or readings.after is None:
        return None
    before, after = readings.before.time, readings.after.time
    return after - before if before is not None and after is not None else None


def overlapping(flow: Flow, parts: Sequence[Part]) -> str | None:
    """Why the engine's sizes did not follow each other, as its process measures them.

    It reads the wall as a size begins, and a clock that only counts for how long that took.
    """
    if flow.tool != "perch" or flow.kind == "transfer":
        return None
    over, slewed, before = float("-inf"), 0.0, None
    for part in parts:
        begun = moment(part.started)
        if part.status != "ok" or begun is None:
            continue
        if begun < over - CUT_S - slewed:
            return (
                f"the output says that a size began at {part.started}, {_apart(over, begun)} s "
                f"before the one of {before} was over"
            )
        lasted = part.elapsed_s or 0
        over, slewed, before = begun + lasted, SLEW * lasted, part.started
    return None


def too_long(parts: Sequence[Part], client: End | None, server: End | None) -> str | None:
    """Why the sizes of a flow cannot all be of its process, or between its readings of counters.

    Together they took longer. Devices of a transfer work at the same time, and a soak that goes on
    after a reboot has had several processes.
    """
    if client is None or client.elapsed_s is None:
        return None
    lasted = sum(
        part.elapsed_s or 0
        for part in parts
        if part.status == "ok" and part.kind != "transfer" and not (part.soak and part.soak.resumed)
    )
    lived = client.elapsed_s
    if not fits(lasted, lived):
        return f"its sizes took {rounded(lasted)} s, but its process lived {lived} s"
    for end in (client, server):
        seconds = _between_readings(end)
        if end and seconds is not None and not fits(lasted, seconds):
            return (
                f"its sizes took {rounded(lasted)} s, but the {end.role}'s line has counters of "
                f"{rounded(seconds)} s"
            )
    return None


def fits(lasted: Column, lived: Column) -> Column:
    """Whether sizes may have taken so long in a process, or between readings, of this length."""
    granted = GRANTED * lived
    return (lasted <= granted + GRANTED_S) & (lasted <= granted + lived)
