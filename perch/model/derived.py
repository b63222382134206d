"""What is drawn from a verdict, and how it says from which one: its SHA-256.

A report must not stay beside a newer verdict: it would say PASS after FAIL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERDICT, RECORDS, INTERVALS = "verdict.json", "records.jsonl", "intervals.jsonl"
MARKDOWN, PAGE = "report.md", "report.html"
JUNIT, PROM = "junit.xml", "perch.prom"
CHARTS = "charts"

#: A copy of records.jsonl. It holds no mark, as it is made and removed with the records themselves;
#: its bytes may differ with the version of polars, so no bundle has it and nothing is compared.
PARQUET = "records.parquet"

#: What the judge writes.
JUDGED = (VERDICT, RECORDS, PARQUET, INTERVALS)

#: What a report is. Each of them holds the mark of its verdict.
DERIVED = (MARKDOWN, PAGE, JUNIT, PROM)
#: So does the page of a first hardware day, which has a command of its own.
FIRST_DAY = "first-day.md"
MARKED = (*DERIVED, FIRST_DAY)


def mark(root: Path) -> str:
    """Of DIR/verdict.json: the SHA-256 of its bytes, hexadecimal."""
    return hashlib.sha256((root / VERDICT).read_bytes()).hexdigest()


def stale(root: Path) -> list[str]:
    """Files of an earlier verdict, or without any mark."""
    current = mark(root).encode()
    return [
        name
        for name in MARKED
        if (root / name).is_file() and current not in (root / name).read_bytes()
    ]


def remove(root: Path, *names: str) -> None:
    """Removes these; with the Markdown its charts, which hold no mark."""
    charts = (root / CHARTS).glob("*.svg") if MARKDOWN in names else ()
    for path in [*(root / name for name in names), *charts]:
        path.unlink(missing_ok=True)


@contextmanager
def loading(root: Path) -> Iterator[None]:
    """While the judge is imported: where it refuses Perch's own files, no earlier verdict stays.

    Where a package is missing it does: `setup/setup verify` installs no judge, and the runs that it
    is used on are whole.
    """
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception:
        remove(root, *JUDGED, *MARKED)
        raise
