"""What a soak could not have seen, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perch.model.figures import supports
from perch.model.plan import SoakPlan
from perch.model.record import Latency
from perch.model.soak import FlowTold
from perch.model.text import names
from perch.soak.lines import PERCENTILES
from perch.soak.told import Group, Watch

Blind = tuple[str, str]


def blind(
    soak: SoakPlan, flows: Sequence[FlowTold], hosts: Sequence[Watch], groups: Sequence[Group]
) -> Iterator[Blind]:
    """Ids and texts."""
    yield (
        "interval",
        (
            f"Events shorter than {_number(soak.interval_s)} s have no finer date than their "
            "interval. They show in its lowest window of 0.1 s, in its percentiles and as a stall."
        ),
    )
    yield "stalls", f"A pause of less than {_number(soak.stall_s * 1000)} ms is no stall."
    yield from _of_flows(flows)
    yield from _of_hosts(hosts)
    whys = {f"{one.metric}: {one.why}" for of in groups for one in of.courses if not one.judged}
    if whys:
        yield "drift", f"Not every course bears a drift: {names(sorted(whys), 3)}."
    if soak.mode == "alternating":
        yield (
            "turns",
            (
                f"Tests take turns of {_number(soak.turn_s or 0)} s: what happens in another "
                "test's turn is not seen by this one."
            ),
        )
    yield (
        "hosts",
        (
            "Counters are read once an interval; one that was cleared and moved again between two "
            "readings shows too little."
        ),
    )


def _number(value: float) -> str:
    return f"{value:.{0 if value == int(value) else 3}f}"


def _of_flows(flows: Sequence[FlowTold]) -> Iterator[Blind]:
    bandwidth = [flow for flow in flows if flow.kind == "bandwidth"]
    if bandwidth:
        yield (
            "buffers",
            (
                "A pause that is shorter than a stream's buffers take to fill does not stop its "
                "completions; latency beside it shows it."
            ),
        )
    latency = [flow.figures.latency for flow in flows if flow.figures.latency is not None]
    if latency:
        counts = [one.samples_least for one in latency if one.samples_least is not None]
        least = min(counts, default=0)
        none = [
            name.replace("_", ".")
            for name in PERCENTILES
            if (share := Latency.PERCENTILES[name]) >= 0.99 and not supports(least, share)
        ]
        are = "is no figure" if len(none) == 1 else "are no figures"
        tail = f"{', '.join(none)} of such an interval {are}; those of the whole are"
        yield (
            "percentiles",
            (
                f"An interval has at least {least:,} samples: "
                f"{tail if none else 'ten of them lie above its p99.99'}."
            ),
        )
    if any(flow.figures.checked_bytes is None for flow in bandwidth):
        yield (
            "payload",
            ("Only flows with --verify look at what arrives; others would not see a flipped bit."),
        )
    if any(flow.stalls > 64 for flow in flows):
        yield (
            "stall_lines",
            (
                "Of more than 64 stalls of one interval the longest 64 have lines. The others "
                "together are one more anomaly of that interval."
            ),
        )


def _of_hosts(hosts: Sequence[Watch]) -> Iterator[Blind]:
    unseen: dict[str, tuple[str, Callable[[Watch], bool]]] = {
        "temperatures": ("No temperature was read on {}.", lambda one: not one.told.temperatures),
        "counters": (
            "Nothing is known of counters, links and memory of {}: no samples.",
            lambda one: one.told.samples == 0,
        ),
        "counters_unread": (
            "No counter of trouble was read of {}.",
            lambda one: one.told.samples > 0 and one.watched == 0,
        ),
        "links_unread": (
            "No link was read of {}.",
            lambda one: one.told.samples > 0 and one.links_read == 0,
        ),
    }
    for name, (text, is_unseen) in unseen.items():
        without = [one.told.host for one in hosts if is_unseen(one)]
        if without:
            yield name, text.format(names(without, 4))
    processes = [process for one in hosts for process in one.told.processes]
    unread = [one for one in processes if one.handles_last is None]
    if unread:
        yield "handles_unread", f"Handles of {_processes(len(unread))} were not read."
    brief = [one for one in processes if not one.judged]
    if brief:
        yield (
            "memory",
            (
                f"{_processes(len(brief))} lived too briefly for a slope of 1 MB/h; "
                f"{brief[0].why or ''}."
            ),
        )


def _processes(n: int) -> str:
    return "1 process" if n == 1 else f"{n} processes"
