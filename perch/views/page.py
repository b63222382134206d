"""report.md and charts/ -> report.html by pandoc: one file that needs nothing else.

It adds no word and no number to the Markdown; reports/page holds how it looks.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from perch import programs
from perch.errors import ExitCode, PerchError
from perch.home import HOME
from perch.run import lines

ROOM = HOME / "reports/page"

#: Seconds for a page: eight times what a whole report of 100,000 records may take
#: (tests/bench/report).
PAGE_S = 120.0


def command(markdown: str) -> list[str]:
    # without raw_html whatever a host or a tool has said stays text
    return [
        "pandoc", "--from", "gfm-raw_html", "--to", "html5", "--wrap", "none",
        "--lua-filter", str(ROOM / "page.lua"), "--template", str(ROOM / "page.html"),
        "--variable", f"style={(ROOM / 'page.css').read_text(encoding='utf-8')}",
        markdown,
    ]  # fmt: skip


def make(root: Path, name: str = "report") -> None:
    """Writes DIR/NAME.html from DIR/NAME.md.

    Raises:
        PerchError: pandoc is missing, cannot make it, or does not end.
        OSError: the file cannot be written.
    """
    page = root / f"{name}.html"
    page.unlink(missing_ok=True)  # a page of an earlier report must not stay beside a newer one
    if shutil.which("pandoc") is None:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"pandoc is not installed, so there is no {name}.html; {name}.md has the same content",
            file=root,
            remedy="install the package pandoc",
        )
    # the filter reads charts/ from the folder where it runs
    done = programs.finished(
        command(f"{name}.md"), PAGE_S, f"read {name}.md, which is complete",
        package="pandoc", file=root, cwd=root,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"pandoc cannot make {name}.html: {said[0] if said else f'exit {done.returncode}'}",
            file=root,
            remedy=f"read {name}.md, which is complete",
        )
    lines.replace(page, done.stdout)
