"""Which series of a soak are drawn by name.

Of each test the ways (two hosts and a rail) that did worst, of processes those that grew most, of
sensors the hottest. `soak` is the verdict's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from perch.views.words import Figure

Soak = Mapping[str, Any]

#: A chart has at most six lines: two figures of each pair, and two for all other pairs.
PAIRS_MAX = 2
PROCESSES_MAX = 6
#: One more line has the hottest of all others.
SENSORS_MAX = 5

#: test, and the way of its flow
Pair = tuple[str, str]
#: host, role, and flow; of a server its process, since its flow is not known
Process = tuple[str, str, str]


@cache
def way(flow: str, arrow: str = " → ") -> str:
    """The ends of a flow by its id, a → b; another rail than the first is named."""
    _, client, server, rail, _ = flow.split("/")
    return f"{client}{arrow}{server}" + (f", rail {rail}" if rail != "0" else "")


def _fallen(part: Figure, whole: Figure) -> float:
    """As a share: 0 is even, 1 where nothing was measured."""
    if part is None or whole is None or whole <= 0 or part < 0:
        return 1
    return 1 - part / whole


def fall(flow: Soak) -> float:
    """How far a flow fell below its middle."""
    figures = flow.get("figures") or {}
    bandwidth, latency = figures.get("bandwidth"), figures.get("latency")
    if bandwidth is not None:
        middle = bandwidth.get("median")
        middle = bandwidth.get("mean") if middle is None else middle
        return _fallen(bandwidth.get("lowest_interval"), middle)
    if latency is not None:
        return _fallen(latency.get("p99_median"), latency.get("p99_highest"))
    return 1


def pairs(soak: Soak) -> set[Pair]:
    """Of each test the worst ones; turns of a pair are one."""
    anomalies: dict[Pair, int] = {}
    falls: dict[Pair, float] = {}
    for flow in soak.get("flows") or []:
        pair = flow["test"], way(flow["flow"])
        anomalies[pair] = anomalies.get(pair, 0) + (flow.get("anomalies") or 0)
        falls[pair] = max(falls.get(pair, -1), fall(flow))
    ordered = sorted(anomalies, key=lambda pair: (-anomalies[pair], -falls[pair], pair))
    by_test: dict[str, list[Pair]] = {}
    for pair in ordered:
        by_test.setdefault(pair[0], []).append(pair)
    return {pair for of_test in by_test.values() for pair in of_test[:PAIRS_MAX]}


def process(host: str, one: Soak) -> Process:
    """By what it is, not by its number: one that was restarted has another."""
    flow = one.get("flow")
    if flow is None and one.get("role") == "job":
        flow = str(one.get("pid"))
    return host, str(one.get("role")), flow or ""


def processes(soak: Soak) -> set[Process]:
    grown: dict[Process, tuple[float, float]] = {}
    for host in soak.get("hosts") or []:
        for one in host.get("processes") or []:
            key = process(host["host"], one)
            growth = one.get("mb_per_hour") or 0, one.get("resident_bytes_last") or 0
            if key not in grown or growth[0] >= grown[key][0]:
                grown[key] = growth
    ordered = sorted(grown, key=lambda key: (-grown[key][0], -grown[key][1], key))
    return set(ordered[:PROCESSES_MAX])


def sensors(soak: Soak) -> set[tuple[str, str]]:
    """Host and name of the sensor."""
    found = []
    for host in soak.get("hosts") or []:
        hottest = host.get("temperature_highest") or {}
        if hottest.get("celsius") is not None and hottest.get("name") is not None:
            found.append((-hottest["celsius"], host["host"], hottest["name"]))
    return {(host, name) for _, host, name in sorted(found)[:SENSORS_MAX]}
