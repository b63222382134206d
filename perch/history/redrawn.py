"""A bundle's report is drawn again, from the run judged again, and compared with what was packed.

Charts are the same bytes wherever they are drawn: vl-convert is pinned and brings its fonts. Pages
of pandoc 2.17, 2.19 and 3.9 differ in the classes of a table's rows alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perch.errors import PerchError
from perch.model import derived

if TYPE_CHECKING:
    from perch.exports.report import Drawing
    from perch.views.inputs import Run

_row_class = re.compile(rb'<tr class="(?:header|odd|even)">')
_tag = re.compile(rb"<[^>]*>")


class Compared(NamedTuple):
    """Names of files: the same, other ones, and not compared; `why` they were not."""

    same: list[str]
    changed: list[str]
    unknown: list[str]
    why: list[str]


def shown(root: Path) -> list[str]:
    """What a bundle shows of its verdict."""
    from perch.history import packed

    names = [name for name in derived.MARKED if (root / name).is_file()]
    return [*names, *(f"{derived.CHARTS}/{name}" for name in packed.files(root / derived.CHARTS))]


def compared(root: Path, again: Path) -> Compared:
    """Each file that the bundle shows, and the one made in `again`. Raises PerchError."""
    names = shown(root)
    why = _drawn(again, names) if names else []
    found = Compared([], [], [], why)
    stale = derived.stale(root)
    for name in names:
        given, made = root / name, again / name
        if name in stale:
            found.changed.append(name)
        elif made.is_file():
            _compare(name, given.read_bytes(), made.read_bytes(), found)
        else:
            (found.unknown if why else found.changed).append(name)
    return found


def _compare(name: str, given: bytes, made: bytes, found: Compared) -> None:
    if name == derived.PAGE:
        given, made = (_row_class.sub(b"<tr>", page) for page in (given, made))
    if given == made:
        found.same.append(name)
    elif name == derived.PAGE and _words(given) == _words(made):
        found.unknown.append(name)
        found.why.append("the page has the same words in other markup: pandoc may be another one")
    else:
        found.changed.append(name)


def _words(page: bytes) -> list[bytes]:
    return _tag.sub(b" ", page).split()


def _drawn(again: Path, names: list[str]) -> list[str]:
    """Draws what the bundle shows; returns why something could not be drawn."""
    from perch.exports import report
    from perch.history import first_day
    from perch.views import inputs, page

    run = inputs.read_run(again)
    drawing = report.draw(run)
    why: list[str] = []
    _try(why, lambda: _write_texts(run, drawing))
    if derived.FIRST_DAY in names:
        _try(why, lambda: report.write(again / derived.FIRST_DAY, first_day.text(again)))
    if derived.PAGE in names or any("/" in name for name in names):
        _try(why, lambda: why.extend(_draw_charts(again, drawing)))
    if derived.PAGE in names and not why:
        _try(why, lambda: page.make(again))
    return why


def _try(why: list[str], draw: Callable[[], None]) -> None:
    try:
        draw()
    except ModuleNotFoundError as error:  # setup/setup verify leaves it out
        why.append(f"the Python package '{error.name}' is missing")
    except PerchError as error:
        why.append(error.what)


def _write_texts(run: Run, drawing: Drawing) -> None:
    from perch.exports import report

    for name, text in report.texts(run, drawing):
        report.write(run.root / name, text)


def _draw_charts(again: Path, drawing: Drawing) -> list[str]:
    from perch.exports import report
    from perch.views import vega
    from perch.views.draw import drawn

    with vega.Process() as process:
        return report.write_charts(again, drawn(drawing.charts, process))
