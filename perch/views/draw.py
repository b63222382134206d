"""Draws charts: a Vega-Lite spec of reports/charts and values -> SVG."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import cache
from typing import Any

from perch.errors import ExitCode, PerchError
from perch.home import HOME
from perch.model.text import clean
from perch.views import vega
from perch.views.charts import Chart

ROOM = HOME / "reports/charts"

#: Sizes that an axis names.
SIZES_MAX = 12


def _read(name: str) -> Any:
    return json.loads((ROOM / name).read_text(encoding="utf-8"))


@cache
def _style() -> Any:
    return _read("style.json")


@cache
def _spec(name: str) -> str:
    """A spec's JSON, with the shared layers that it names."""
    spec, shared = _read(f"{name}.vl.json"), _read("layers.json")
    if "layer" in spec:
        spec["layer"] = [shared[one] if isinstance(one, str) else one for one in spec["layer"]]
    return json.dumps(spec)


def spec_of(chart: Chart) -> dict[str, Any]:
    """The whole spec, values included."""
    text = _spec(chart.spec)
    # colours and shapes share a legend only where both know their names beforehand
    series = json.dumps([clean(name) for name in chart.series])
    text = text.replace('"domain": "series"', f'"domain": {series}')
    spec: dict[str, Any] = json.loads(
        text.replace('"values": "sizes"', f'"values": {_sizes(chart)}')
    )
    # colours are of middle lightness and the ground is transparent, for light and dark pages
    data = {"values": chart.values, **chart.beside}
    fitting = {name: [*map(_fit, values)] for name, values in data.items()}
    return spec | {"config": _style(), "datasets": fitting}


def _sizes(chart: Chart) -> str:
    """The sizes that were measured, for an axis; of many, enough of them."""
    sizes = sorted({one["size_bytes"] for one in chart.values if one.get("size_bytes")})
    return json.dumps(sizes[:: 1 + len(sizes) // SIZES_MAX])


def _fit(value: dict[str, Any]) -> dict[str, Any]:
    """Without signs that XML does not have: vl-convert ends the process at one."""
    return {key: clean(one) if isinstance(one, str) else one for key, one in value.items()}


def svg(chart: Chart, draw: Callable[[str], str] = vega.svg) -> str:
    """The chart as SVG. Raises PerchError where it cannot be drawn."""
    try:
        return draw(json.dumps(spec_of(chart)))
    except TimeoutError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"chart {chart.name} cannot be drawn: {error}",
            remedy="draw again while this machine is idle: perchctl report",
        ) from None
    except ValueError as error:
        said = str(error).strip().splitlines()
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"chart {chart.name} cannot be drawn: {said[0] if said else 'no reason given'}",
            remedy="report this fault of Perch with the run's records.jsonl",
        ) from None


def drawn(charts: Iterable[Chart], process: vega.Process) -> list[tuple[Chart, Future[str]]]:
    """Each chart and its SVG, which is drawn beside the rest of a report."""
    return [(chart, process.waits.submit(svg, chart, process.svg)) for chart in charts]
