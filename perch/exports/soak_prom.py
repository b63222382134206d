"""A soak's figures for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from perch.exports.samples import from_gbit_s, from_us, gauge, nearest, sample
from perch.model.moments import moment
from perch.views.soak_words import KINDS

Soak = Mapping[str, Any]

#: 10^6 bytes an hour, in bytes a second.
_MB_PER_HOUR = 1e6 / 3600


def _one(name: str, text: str, value: float | None) -> str:
    return gauge(name, text, [] if value is None else [sample(name, {}, value)])


def _microseconds(seconds: float) -> float:
    """Sums end alike, in whatever order they were added."""
    return nearest(seconds * 1e6) / 1e6


def _flows(soak: Soak, kind: str | None = None) -> list[Soak]:
    flows = soak.get("flows") or []
    return [flow for flow in flows if kind is None or flow.get("kind") == kind]


def _of_tests(
    name: str,
    text: str,
    flows: Iterable[Soak],
    figure: Callable[[Soak], float | None],
    worst: Callable[[list[float]], float],
) -> str:
    """Of each test one figure of all its flows; none where one of them has none."""
    values: dict[str, list[float | None]] = {}
    for flow in flows:
        values.setdefault(flow["test"], []).append(figure(flow))

    def samples() -> Iterator[str]:
        for test in sorted(values):
            known = [value for value in values[test] if value is not None]
            if len(known) == len(values[test]):
                yield sample(name, {"test": test}, worst(known))

    return gauge(name, text, samples())


def _figure(kind: str, name: str) -> Callable[[Soak], float | None]:
    def of(flow: Soak) -> float | None:
        value: float | None = ((flow.get("figures") or {}).get(kind) or {}).get(name)
        return value

    return of


def _state(soak: Soak) -> str:
    prefix = "perch_soak"
    return (
        _one(
            f"{prefix}_running",
            "1 while the soak runs, 0 when it is over.",
            int(bool(soak.get("running"))),
        )
        + _one(
            f"{prefix}_start_timestamp_seconds",
            "When the soak began, since 1970.",
            moment(soak.get("started")),
        )
        + _one(
            f"{prefix}_end_timestamp_seconds",
            "End of the known part of the soak, in seconds since 1970.",
            moment(soak.get("ended")),
        )
        + _one(f"{prefix}_planned_seconds", "Planned duration of the soak.", soak.get("duration_s"))
        + _one(
            f"{prefix}_passed_seconds",
            "Elapsed time with gaps, of the flow with the least.",
            soak.get("passed_s"),
        )
        + _one(
            f"{prefix}_measured_seconds",
            "Measured time, of the flow with the least.",
            soak.get("measured_s"),
        )
        + _one(f"{prefix}_interval_seconds", "The interval of its figures.", soak.get("interval_s"))
    )


def _anomalies(soak: Soak) -> str:
    name = "perch_soak_anomalies"
    counts = soak.get("anomaly_counts") or {}
    kinds = [*KINDS, *sorted(kind for kind in counts if kind not in KINDS)]
    return gauge(
        name,
        "Anomalies by their kind, those that no report shows among them.",
        (sample(name, {"kind": kind}, counts.get(kind) or 0) for kind in kinds),
    )


def _figures(soak: Soak) -> str:
    prefix = "perch_soak"
    return (
        _of_tests(
            f"{prefix}_gap_seconds",
            "Time without a connection, of all flows of a test together.",
            _flows(soak),
            lambda flow: flow.get("gap_s"),
            lambda values: _microseconds(sum(values)),
        )
        + _of_tests(
            f"{prefix}_stall_seconds",
            "Time in which a connection completed nothing, of all flows of a test together.",
            _flows(soak),
            lambda flow: flow.get("stall_s"),
            lambda values: _microseconds(sum(values)),
        )
        + _of_tests(
            f"{prefix}_lowest_interval_bytes_per_second",
            "Payload in the worst interval of all flows of a test.",
            _flows(soak, "bandwidth"),
            _figure("bandwidth", "lowest_interval"),
            lambda values: from_gbit_s(min(values)),
        )
        + _of_tests(
            f"{prefix}_lowest_window_bytes_per_second",
            "Payload in the worst tenth of a second of all flows of a test.",
            _flows(soak, "bandwidth"),
            _figure("bandwidth", "lowest_window"),
            lambda values: from_gbit_s(min(values)),
        )
        + _of_tests(
            f"{prefix}_highest_p99_seconds",
            "The highest 99th percentile of an interval, of all flows of a test.",
            _flows(soak, "latency"),
            _figure("latency", "p99_highest"),
            lambda values: from_us(max(values)),
        )
    )


def _corrupted(soak: Soak) -> str:
    counts = [
        count
        for flow in _flows(soak)
        if (count := (flow.get("figures") or {}).get("corrupt_bytes")) is not None
    ]
    return _one(
        "perch_soak_corrupted_bytes",
        "Bytes that arrived other than they were sent, where that was checked.",
        sum(counts) if counts else None,
    )


def _growth(soak: Soak) -> str:
    name = "perch_soak_memory_growth_bytes_per_second"
    fastest: dict[str, float] = {}
    for host in soak.get("hosts") or []:
        for one in host.get("processes") or []:
            growth, role = one.get("mb_per_hour"), str(one.get("role"))
            if growth is not None:
                fastest[role] = max(fastest.get(role, growth), growth)
    return gauge(
        name,
        "How fast the fastest growing process of a role grows; over a short time that may be its "
        "warm-up.",
        (
            sample(name, {"role": role}, nearest(fastest[role] * _MB_PER_HOUR * 1000) / 1000)
            for role in sorted(fastest)
        ),
    )


def families(soak: Soak | None) -> str:
    """soak: the verdict's, None where the run is no soak."""
    if soak is None:
        return ""
    return _state(soak) + _anomalies(soak) + _figures(soak) + _corrupted(soak) + _growth(soak)
