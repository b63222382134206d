"""The limits of every soak: built-in limits, and those of the run in their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from perch.model.limits import Limit, LimitBound, fits
from perch.model.limits import Severity as Binding
from perch.model.plan import Flow
from perch.model.soak import Severity

#: Half: an interval that carried less was for more than half of its time without traffic, or on a
#: link at half its speed; no repair of single packets takes so long. Site policy.
LEAST_SHARE = 0.5
#: An order of magnitude: where a thousandth of the messages take longer than ten others. Site
#: policy.
MOST_TAIL = 10

_HARDWARE = {"scope": "hardware"}
_SOFTWARE = {"scope": ["software", "simulated"]}


def _limit(
    metric: str, scope: dict[str, Any], bound: LimitBound, severity: Binding, source: str
) -> Limit:
    metric = f"soak.{metric}"
    return Limit(metric, "", scope, metric, bound, "", source, severity, "")


#: In force where the run has no limit of the same metric that speaks of the flow. `paced`, only
#: here: the flow was asked for a pace, so that what it carries is the fabric's doing and no other
#: load's.
BUILT_IN = (
    _limit("gaps", {}, LimitBound(max=0), "required",
           "site policy: a connection that is lost in a soak will be lost in production"),
    _limit("stall_s", _HARDWARE, LimitBound(max=0.02), "required",
           "site policy: RDMA that stands still for 20 ms repeats what was lost (its shortest "
           "retransmission timeouts are shorter)"),
    _limit("stall_s", _SOFTWARE, LimitBound(max=0.04), "advisory",
           "arithmetic: ten ticks of the scheduler of 4 ms (CONFIG_HZ=250), and Linux's shortest "
           "delayed acknowledgement (TCP_DELACK_MIN)"),
    _limit("stall_s", _SOFTWARE, LimitBound(max=1), "required",
           "site policy: no machine's other work stops a process for a second"),
    _limit("interval_share", _HARDWARE, LimitBound(min=0.9), "required",
           "site policy: within 10 % of the flow's median interval"),
    _limit("interval_share", _SOFTWARE, LimitBound(min=LEAST_SHARE), "advisory",
           "site policy: as of the intervals of every run"),
    _limit("window_share", _HARDWARE, LimitBound(min=LEAST_SHARE), "required",
           "site policy: a link that stands still for half of an interval is a fault, no noise"),
    _limit("window_share", _SOFTWARE, LimitBound(min=0.1), "advisory",
           "site policy: a tenth of a second of which a tenth was used"),
    _limit("p99_times", _HARDWARE, LimitBound(max=MOST_TAIL), "required",
           "site policy: within an order of magnitude of the flow's median p99"),
    _limit("p99_us", _SOFTWARE, LimitBound(max=20000), "advisory",
           "arithmetic: half of Linux's shortest delayed acknowledgement, 40 ms (TCP_DELACK_MIN)"),
    _limit("bandwidth_percent", _HARDWARE, LimitBound(max=5), "required",
           "site policy: as against an accepted run (drift), within one soak"),
    _limit("bandwidth_percent", _SOFTWARE | {"paced": True}, LimitBound(max=25), "required",
           "site policy: what is paced carries its pace, also beside other work"),
    _limit("bandwidth_percent", _SOFTWARE, LimitBound(max=25), "advisory",
           "site policy: sockets share their hosts' cores"),
    _limit("p50_percent", _HARDWARE, LimitBound(max=10), "required",
           "site policy: as against an accepted run (drift), within one soak"),
    _limit("p50_percent", _SOFTWARE, LimitBound(max=100), "advisory",
           "site policy: sockets share their hosts' cores"),
    _limit("p99_percent", _HARDWARE, LimitBound(max=25), "advisory",
           "site policy: as against an accepted run (drift), within one soak"),
    _limit("leak_mb_per_hour", {}, LimitBound(max=1), "required",
           "design, a process that grows by more does not last"),
    _limit("handles_per_hour", {}, LimitBound(max=0), "required",
           "design, handles that only grow run out"),
    _limit("rate_percent", {}, LimitBound(max=1), "required",
           "design, a bandwidth cap is kept within 1 %"),
    _limit("clock_s", {}, LimitBound(max=0.128), "advisory",
           "RFC 5905, STEPT: a clock that is off by 128 ms is stepped, below that it is slewed"),
)  # fmt: skip


def is_broken(limit: Limit, value: float) -> bool:
    least, most = limit.bound.min, limit.bound.max
    return (most is not None and value > most) or (least is not None and value < least)


def severity(limit: Limit) -> Severity:
    return "fail" if limit.is_required else "advisory"


def _facets(flow: Flow) -> dict[str, Any]:
    """What limits may ask of a flow before any record."""
    return {
        "tool": flow.tool, "backend": flow.backend, "provider": flow.provider, "op": flow.op,
        "kind": flow.kind, "test": flow.test, "scope": flow.scope, "client": flow.client,
        "server": flow.server, "size_bytes": flow.expect[0].size_bytes if flow.expect else None,
        "paced": flow.params.get("rate") is not None,
    }  # fmt: skip


def _chosen(limits: Iterable[Limit], facets: Mapping[str, Any]) -> dict[str, list[Limit]]:
    chosen: dict[str, list[Limit]] = {}
    for limit in limits:
        speaks = all(fits(wanted, facets.get(key)) for key, wanted in limit.scope.items())
        if limit.is_soak and limit.removed is None and speaks:
            chosen.setdefault(limit.metric.removeprefix("soak."), []).append(limit)
    return chosen


class Bounds:
    """The limits that speak of one flow, or of one host."""

    def __init__(self, facets: Mapping[str, Any], limits: Iterable[Limit]) -> None:
        self.by_metric = _chosen(BUILT_IN, facets)
        for metric, of_metric in self.by_metric.items():
            # of two that speak of a flow, the one that asks for its pace
            paced = [limit for limit in of_metric if "paced" in limit.scope]
            self.by_metric[metric] = paced or of_metric
        self.by_metric |= _chosen(limits, facets)

    def of(self, metric: str) -> list[Limit]:
        return self.by_metric.get(metric, [])

    def most(self, metric: str) -> float | None:
        """The tightest maximum."""
        return min((most for one in self.of(metric) if (most := one.bound.max) is not None),
                   default=None)  # fmt: skip

    def broken(self, metric: str, value: float) -> Severity | None:
        """The gravest severity of the limits that a value breaks; None where it keeps all."""
        found = [severity(one) for one in self.by_metric.get(metric, ()) if is_broken(one, value)]
        if not found:
            return None
        return "fail" if "fail" in found else "advisory"

    def fails(self, metric: str, value: float) -> bool:
        return self.broken(metric, value) == "fail"


def of_flow(flow: Flow, limits: Iterable[Limit]) -> Bounds:
    return Bounds(_facets(flow), limits)


def of_host(host: str, scope: str, limits: Iterable[Limit]) -> Bounds:
    return Bounds({"client": host, "server": host, "scope": scope}, limits)
