"""Orders in which a value may be missing: what is missing comes first, and groups of equal keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

Key = tuple[Any, ...]


def rank(*values: Any) -> Key:
    """A key to sort by: None before all others, False before True, numbers before texts."""
    return tuple(
        (value is not None, isinstance(value, str), 0 if value is None else value)
        for value in values
    )


def grouped(rows: Iterable[T], key: Callable[[T], Key]) -> list[list[T]]:
    """Rows of equal keys together, in the keys' order."""
    groups: dict[Key, list[T]] = {}
    for row in rows:
        groups.setdefault(rank(*key(row)), []).append(row)
    return [groups[one] for one in sorted(groups)]
