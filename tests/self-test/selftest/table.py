"""docs/self-test.md: head.md, then the lists of good runs, of weakened ones and of faults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from selftest.fault import Fault
from selftest.healthy import GROUPS, STRENGTHS, kept_power
from selftest.paths import HERE


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(words: Iterable[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _power() -> Iterator[str]:
    """How many of the weakened runs fail, as --power --keep left it."""
    found = kept_power()
    yield _row("what is slower", *(f"at {100 * strength:.0f} %" for strength in STRENGTHS))
    yield _row("---", *["---:"] * len(STRENGTHS))
    for name, group in GROUPS.items():
        counts = [found[name, strength] for strength in STRENGTHS]
        yield _row(group.title, *(f"{failed} of {of}" for failed, of in counts))


def page(faults: Iterable[Fault]) -> Iterator[str]:
    """The lines of the page."""
    for line in (HERE / "head.md").read_text().splitlines():
        if line == "POWER":
            yield from _power()
        else:
            yield line
    yield _row("fault", "good run", "verdict", "named check", "flips beside it")
    yield _row(*["---"] * 5)
    for fault in faults:
        named, *others = fault.checks
        yield _row(fault.title, fault.base, fault.word, _code([named]), _code(others))
