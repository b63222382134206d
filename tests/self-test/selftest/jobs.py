"""Work side by side on as many processes as there are processors, reported in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from selftest import work as working

Item = TypeVar("Item")
Result = TypeVar("Result")


class Jobs:
    """Worker processes, and the folder that they share."""

    def __init__(self, work: Path, pool: ProcessPoolExecutor) -> None:
        self.work, self._pool = work, pool

    def each(
        self, do: Callable[[Path, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """do(work, item) of each item; each result as soon as it and all before it are there."""
        items = list(items)
        results = self._pool.map(do, [self.work] * len(items), items)
        yield from zip(items, results, strict=True)


@contextmanager
def workers(work: Path, count: int) -> Iterator[Jobs]:
    """Processes that end with the block; what they have not begun is dropped."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # the processes share the processors, not each one all
    pool = ProcessPoolExecutor(
        count, get_context("spawn"), initializer=working.begin, initargs=(str(work),)
    )
    try:
        yield Jobs(work, pool)
    finally:
        pool.shutdown(cancel_futures=True)
