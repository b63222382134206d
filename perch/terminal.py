"""What people see on a terminal: tables and progress by rich. Elsewhere text stays plain."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

#: Seconds between two looks at how much is done.
LOOK_S = 0.5

#: Colours of a check's words, as in the report.
STYLES = {"pass": "green", "FAIL": "bold red", "INCONCLUSIVE": "bold yellow", "warning": "yellow"}


def show(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Prints a table as wide as the terminal; False if standard output is not a terminal."""
    if not sys.stdout.isatty():
        return False
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*titles, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(cell, STYLES.get(cell, "")) for cell in row))
    Console(file=sys.stdout, highlight=False).print(table)
    return True


@contextmanager
def progress(what: str, total: int, done: Callable[[], int]) -> Iterator[None]:
    """Shows on a terminal how much of `total` is done, and the time left, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task, over = bar.add_task(what, total=total), Event()

        def follow() -> None:
            while not over.wait(LOOK_S):
                bar.update(task, completed=done())

        thread = Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
