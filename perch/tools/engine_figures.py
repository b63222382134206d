"""What each figure of the engine's lines must be, and how far they may contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from perch.model.part import Part
from perch.model.record import ROLES, Cpu, Latency, Number, Params
from perch.tools.results import (
    UnusableError,
    natural,
    natural_or_none,
    positive,
    positive_or_none,
    shown,
)

#: A mean is that of a histogram's buckets: a tenth of a hundredth is granted.
BUCKETS = 0.001

#: Times of messages may sum up to this much more than passed (parts, seconds): clocks differ.
CLOCKS, CLOCKS_S = 1.05, 1e-5

#: Figures of one line are rounded each by itself.
TOLERANCE = 0.01

#: Seconds of processors are counted in microseconds (getrusage).
GRAIN_S = 1e-6

_CPU_SECONDS = ("cpu", ("client_s", "server_s", "client_system_s", "server_system_s"))
#: What the engine writes with every result of a kind, and over a backend
#: (engine/src/output/write_json.c): a line without it is damaged, and what is judged by it would be
#: skipped.
ALWAYS: dict[str | None, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "latency": (_CPU_SECONDS, ("latency_us", ("count",))),
    "bandwidth": (_CPU_SECONDS, ("bandwidth", ("messages_per_s",))),
    "sum": (_CPU_SECONDS,),
    "rate": (_CPU_SECONDS, ("bandwidth", ("messages_per_s",))),
    "verbs": (("link", ("mtu_bytes",)),),
}


class Check(NamedTuple):
    """A field: what it must be, whether it may be absent, and its name within the line."""

    name: str
    must_be: Callable[[Any, str], Number | None]
    may_be_absent: bool
    place: str


def _checks(group: str, **fields: Callable[[Any, str], Number | None]) -> list[Check]:
    return [
        Check(name, must_be, must_be in (positive_or_none, natural_or_none), f"{group}.{name}")
        for name, must_be in fields.items()
    ]


LATENCY = _checks(
    "latency_us",
    count=positive,
    min=positive,
    max=positive,
    mean=positive,
    stddev=natural,
    **dict.fromkeys(Latency.PERCENTILES, positive_or_none),
)
BANDWIDTH = _checks(
    "bandwidth",
    gbit_s=positive,
    peak_gbit_s=positive_or_none,
    min_interval_gbit_s=natural_or_none,
    messages_per_s=positive_or_none,
    bytes=positive,
)
# a second in which nothing arrived is a finding: its rate may be 0 and its latency absent
INTERVAL = _checks(
    "intervals",
    start_s=natural,
    end_s=positive,
    count=natural_or_none,
    gbit_s=natural_or_none,
)
CPU = _checks("cpu", **dict.fromkeys(Cpu.__struct_fields__, natural_or_none))
INTEGRITY = _checks("integrity", checked_bytes=natural, bad_bytes=natural)
TCP = _checks(
    "tcp",
    retransmissions=natural_or_none,
    initial_rtt_us=positive_or_none,
    window_bytes=positive_or_none,
)
LOSS = _checks("loss", sent_messages=natural, lost_messages=natural_or_none)


def check_cost(part: Part, params: Params) -> None:
    """What a gigabyte of a latency test cost: its messages go one way as payload.

    A record leaves it out; of a bandwidth perch.judge.laws compares it.
    """
    times, cpu = part.latency_us, part.cpu
    if times is None or cpu is None or part.loss is not None or part.soak is not None:
        return
    payload_gb = (times.count or 0) * (params.size_bytes or 0) / 1e9
    for role in ROLES:
        seconds, cost = getattr(cpu, f"{role}_s"), getattr(cpu, f"{role}_s_per_gb")
        if cost is not None and abs(cost * payload_gb - seconds) > TOLERANCE * seconds + GRAIN_S:
            said = f"the {role}'s {shown(cost)} s a gigabyte"
            raise UnusableError(f"{said} are not its {shown(seconds)} s")
