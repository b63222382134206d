"""The limits of a soak's intervals, as lines of its charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from perch.model.limits import Limit
from perch.soak.bounds import Bounds
from perch.views import words
from perch.views.size_charts import LIMITS_MAX
from perch.views.soak_chosen import way

Values = list[dict[str, Any]]

#: Medians that differ by more have lines of their own: names of closer ones would overlap.
ALIKE = 1.05


class _Metric(NamedTuple):
    """A metric of limits, the figure that it bounds, and what of the flow it is a share of."""

    name: str
    figure: str
    share_of: str | None = None


_METRICS = {
    "bandwidth": (
        _Metric("interval_gbit_s", "the mean"),
        _Metric("interval_share", "the mean", "median"),
        _Metric("window_share", "the lowest 0.1 s", "median"),
    ),
    "latency": (
        _Metric("p99_us", "p99"),
        _Metric("p99_times", "p99", "p99_median"),
    ),
}
_SIGNS = {"bandwidth": "Gb/s", "latency": "µs"}


class _Bound(NamedTuple):
    """A metric's bound, and the limit's id."""

    metric: _Metric
    word: str
    bound: float
    id: str

    def line(self, whole: float, kind: str, pair: str) -> dict[str, Any]:
        at = self.bound * whole
        said = f"limit of {self.metric.figure}: {self.word} {words.plain(at)} {_SIGNS[kind]}"
        if self.metric.share_of is not None:
            share = (
                f"{words.plain(self.bound)} times"
                if self.metric.name == "p99_times"
                else f"{words.plain(round(100 * self.bound, 6))} % of"
            )
            said += f" ({share} the median{pair})"
        # a built-in limit has no other id than its metric
        named = said if self.id == f"soak.{self.metric.name}" else f"{said} ({self.id})"
        return {"bound": at, "name": named}


def _whole(flow: Mapping[str, Any], kind: str, metric: _Metric) -> float | None:
    if metric.share_of is None:
        return 1
    figures = (flow.get("figures") or {}).get(kind) or {}
    whole: float | None = figures.get(metric.share_of)
    return whole


def limit_lines(flows: Sequence[Mapping[str, Any]], kind: str, limits: Sequence[Limit]) -> Values:
    """flows: of the verdict's `soak`, those that the chart draws by name."""
    found: dict[_Bound, list[tuple[float, str]]] = {}
    for flow in flows:
        # the engine's own: no other tool soaks
        bounds = Bounds({**flow, "tool": "perch"}, limits)
        for metric in _METRICS[kind]:
            whole = _whole(flow, kind, metric)
            for limit in bounds.of(metric.name):
                for word, bound in (("at least", limit.bound.min), ("at most", limit.bound.max)):
                    if bound and whole:
                        of = found.setdefault(_Bound(metric, word, bound, limit.id), [])
                        of.append((whole, f" of {way(flow['flow'])}"))
    lines: Values = []
    for limited, wholes in found.items():
        least, most = min(wholes)[0], max(wholes)[0]
        drawn = [(least, "")] if most <= ALIKE * least else list(dict.fromkeys(wholes))
        lines += [limited.line(whole, kind, pair) for whole, pair in drawn]
    return lines[:LIMITS_MAX]
