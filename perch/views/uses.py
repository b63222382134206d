"""Recommended uses: the needs of each use, each number with its source.

A use is recommended only where all its needs were measured and met, on hardware; otherwise the
report names the missing ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from perch.model.verdict import Verdict
from perch.views import words
from perch.views.measured import Point, Results, rdma_points
from perch.views.readiness import MET, NOT_JUDGED, NOT_MET, Judged
from perch.views.table import Table, left

KIB, MIB = 1024, 1024**2
OF_CEILING = "of_ceiling"


@dataclass(frozen=True)
class Need:
    """A figure of RDMA. Of all tests that have it, the worst pair and repeat counts.

    kind, op, definition: of the test (None: any). size: least and most bytes. least, most: bounds.
    """

    title: str
    kind: str
    metric: str
    unit: str
    source: str
    size: tuple[int, int | None] = (0, None)
    op: str | None = None
    definition: str | None = None
    least: float | None = None
    most: float | None = None

    def asks(self, test: Results, point: Point) -> bool:
        size = point.size_bytes or 0
        return (
            test.is_one_way
            and self.op in (None, test.about["op"])
            and self.definition in (None, test.about["definition"])
            and self.size[0] <= size
            and (self.size[1] is None or size <= self.size[1])
        )

    def is_met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (
            self.most is None or value <= self.most
        )


@dataclass(frozen=True)
class Use:
    """criteria: ids of the readiness criteria that must be met."""

    title: str
    criteria: tuple[str, ...]
    needs: tuple[Need, ...]


def _of_ceiling(title: str, kind: str, least_size: int, source: str) -> Need:
    return Need(
        title, kind, OF_CEILING, "% of the ceiling", source, size=(least_size, None), least=90
    )


def _read_of_4_kib(source: str) -> Need:
    return Need(
        "a read of 4 KiB to its completion, median", "latency", "p50", "us", source,
        size=(4 * KIB, 4 * KIB), op="read", definition="completion", most=10,
    )  # fmt: skip


def _half_round_trip(
    title: str, figure: str, largest: int, most: float, source: str, op: str | None = None
) -> Need:
    return Need(
        title, "latency", figure, "us", source, size=(0, largest), op=op,
        definition="half_round_trip", most=most,
    )  # fmt: skip


USES = (
    Use(
        "NVMe over Fabrics",
        ("coverage", "path", "loss", "integrity", "stability", "throughput"),
        (
            _read_of_4_kib(
                "goal of NVM Express, Inc.: at most 10 µs more than a local device (TechTarget, "
                "Everything you need to know about NVMe storage)"
            ),
            _of_ceiling(
                "bandwidth of messages of 128 KiB and more",
                "bandwidth",
                128 * KIB,
                "site policy: storage shares the link and must not be slowed first",
            ),
        ),
    ),
    Use(
        "iSER (iSCSI over RDMA)",
        ("coverage", "path", "loss", "integrity", "stability", "throughput"),
        (
            _read_of_4_kib(
                "site policy: as for NVMe over Fabrics; an iSER target uses RDMA Read for the data "
                "of writes (RFC 7145)"
            ),
            _of_ceiling(
                "bandwidth of messages of 256 KiB and more",
                "bandwidth",
                256 * KIB,
                "site policy: storage shares the link and must not be slowed first. iSCSI bursts "
                "have up to 256 KiB by default (RFC 7143, MaxBurstLength)",
            ),
        ),
    ),
    Use(
        "Distributed databases",
        ("coverage", "path", "loss", "integrity", "stability", "tail", "repeatability"),
        (
            _half_round_trip(
                "half round trip of up to 256 B, p99",
                "p99",
                256,
                20,
                "site policy: a commit waits for two half round trips and a flash write of some "
                "tens of µs",
                op="send",
            ),
        ),
    ),
    Use(
        "MPI and other tightly coupled work",
        ("coverage", "path", "loss", "latency", "tail", "repeatability", "throughput"),
        (
            _half_round_trip(
                "half round trip of up to 64 B, median",
                "p50",
                64,
                5,
                "site policy: twice the published half round trip of 100 Gb/s cards with one "
                "switch (limits/roce.yml)",
            ),
            _of_ceiling(
                "bandwidth of messages of 1 MiB and more",
                "bandwidth",
                MIB,
                "site policy: the slowest link determines the speed of collective operations",
            ),
        ),
    ),
    Use(
        "Real-time data processing",
        ("coverage", "path", "loss", "stability", "tail", "repeatability"),
        (
            _half_round_trip(
                "half round trip of up to 4 KiB, maximum",
                "max",
                4 * KIB,
                100,
                "site policy: the network may use a fifth of the shortest motion control cycle, "
                "500 µs (3GPP TS 22.104, table 5.2-1). The slowest message counts",
            ),
        ),
    ),
    Use(
        "Low-latency financial systems",
        ("coverage", "path", "loss", "latency", "tail", "repeatability"),
        (
            _half_round_trip(
                "half round trip of up to 256 B, p99",
                "p99",
                256,
                10,
                "site policy: a whole round trip may use half of the 40 µs in which an exchange "
                "answers an order (nasdaqtrader.com, INET)",
                op="send",
            ),
        ),
    ),
    Use(
        "Transfers for inference (key-value caches, model weights)",
        ("coverage", "path", "loss", "integrity", "throughput"),
        (
            _of_ceiling(
                "transfers of 1 MiB and more, all pairs of devices",
                "transfer",
                MIB,
                "site policy: MORI-IO's published Thor2 write of 1 MiB reaches 48.3 of 50 GB/s "
                "(limits/reference/thor2-write-size.yml)",
            ),
        ),
    ),
)


class _Answer(msgspec.Struct):
    state: str
    text: str
    is_figure: bool


def _value(need: Need, point: Point) -> float | None:
    if need.kind != "transfer":
        return point.worst.get(need.metric)
    rate, top = point.get("gbyte_s"), point.get("ceiling_gbyte_s")
    return None if rate is None or not top else 100 * rate / top


def _worst(need: Need, tests: list[Results]) -> float | None:
    """The worst of all tests that measure it; None where one of them lacks it."""
    values = [
        _value(need, point)
        for test, point in rdma_points(tests, need.kind)
        if need.asks(test, point)
    ]
    known = [value for value in values if value is not None]
    if not values or len(known) < len(values):
        return None
    return max(known) if need.most is not None else min(known)


def _figure(need: Need, tests: list[Results]) -> _Answer:
    worst = _worst(need, tests)
    unit = words.unit_sign(need.unit)
    word, limit = ("at most", need.most) if need.most is not None else ("at least", need.least)
    if worst is None:
        state, found = NOT_JUDGED, "not measured"
    else:
        state = MET if need.is_met(worst) else NOT_MET
        found = f"worst measured: {words.figure(worst)} {unit}"
    wanted = f"{need.title}: {word} {words.plain(limit)} {unit}"
    return _Answer(state, f"{wanted}; {found} ({need.source})", is_figure=True)


def _criteria(use: Use, criteria: list[Judged]) -> Iterator[_Answer]:
    of = {one.id: one for one in criteria}
    for name in use.criteria:
        if name in of:
            yield _Answer(of[name].state, of[name].words.lower(), is_figure=False)


def _together(answers: list[_Answer]) -> str:
    states = {one.state for one in answers}
    return next((state for state in (NOT_MET, NOT_JUDGED) if state in states), MET)


def _why(answers: list[_Answer], state: str) -> str:
    said = [f"{one.state}: {one.text}" for one in answers if one.state != MET]
    if state == MET:
        said += [one.text for one in answers if one.is_figure]
    return words.cell("; ".join(said))


_WORDS = {MET: "**recommended**", NOT_MET: "not recommended", NOT_JUDGED: "not judged"}


def section(criteria: list[Judged], tests: list[Results], verdict: Verdict) -> tuple[str, Table]:
    """One line, and a row for each use; without any recommendation the line gives the reason."""
    columns = left("Use", "Recommended", "Why")
    if verdict.scope != "hardware":
        return "not judged: this run is no proof of hardware.", Table(columns, [])
    if verdict.verdict != "PASS":
        return f"not judged: the verdict is {verdict.verdict}.", Table(columns, [])
    rows, good = [], []
    for use in USES:
        answers = [_figure(need, tests) for need in use.needs] + list(_criteria(use, criteria))
        state = _together(answers)
        rows.append([use.title, _WORDS[state], _why(answers, state)])
        good += [use.title] if state == MET else []
    return (", ".join(good) or "none") + ".", Table(columns, rows)
