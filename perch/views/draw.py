"""Draws charts: a Vega-Lite spec of reports/charts and values -> SVG.

Offline and deterministic: vl-convert carries its own Vega, and nothing of the drawing depends on
time or place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from types import TracebackType
from typing import Any

from perch.errors import ExitCode, PerchError
from perch.home import HOME
from perch.model.record import Number
from perch.model.text import clean
from perch.views.charts import Chart

ROOM = HOME / "reports/charts"

#: The Vega-Lite that the specs are written for; vl-convert carries several.
VEGA_LITE = "5.20"


#: Words are read on both grounds: at least 4.5:1 on white and on the dark one of page.css. The page
#: has colours of its own and leaves this out (page.lua).
WORDS_STYLE = (
    "<style>text{fill:#59636e}@media(prefers-color-scheme:dark){text{fill:#a3adb8}}</style>"
)

#: Sizes that an axis names.
SIZES_MAX = 12

#: A mark and what it says; vl-convert writes its words as a label for screen readers only.
_point = re.compile(
    r'<(path|line) aria-label="([^"]*)"([^>]*aria-roledescription="'
    r'(?:point|rule mark|rect mark|bar|line mark)"[^>]*)/>'
)


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


def svg(chart: Chart) -> str:
    """The chart as SVG. Raises PerchError where it cannot be drawn."""
    import vl_convert

    try:
        drawn = vl_convert.vegalite_to_svg(spec_of(chart), vl_version=VEGA_LITE)
        titled = _point.sub(r'<\1 aria-label="\2"\3><title>\2</title></\1>', drawn)
        return titled.replace(">", f">{WORDS_STYLE}", 1)
    except ValueError as error:
        said = str(error).strip().splitlines()
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"chart {chart.name} cannot be drawn: {said[0] if said else 'no reason given'}",
            remedy="report this fault of Perch with the run's records.jsonl",
        ) from None


def _warm_up() -> None:
    """Vega starts in a third of a second, while the run is judged."""
    import vl_convert

    mark: dict[str, Number | str] = {"mark": "point"}
    vl_convert.vegalite_to_svg({**mark, "data": {"values": []}}, vl_version=VEGA_LITE)


class Drawer:
    """Draws beside the rest of the report: vl-convert has one engine, in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._pool.submit(_warm_up)

    def __enter__(self) -> Drawer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def draw(self, charts: Iterable[Chart]) -> list[tuple[Chart, Future[str]]]:
        return [(chart, self._pool.submit(svg, chart)) for chart in charts]
