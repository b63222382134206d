"""Lines of runs/index.jsonl -> one page of trends: each test's median over the runs of a fabric.

It reads nothing but the index: a run's folder may be gone long before its line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from perch.checks.figures import unlike
from perch.model.index import IndexLine, OfLimit, OfTest
from perch.model.record import Number
from perch.model.text import plural
from perch.model.verdict import Bound
from perch.views import evolution, words
from perch.views.table import Table, capped, left, right

#: Runs in a chart: more have no room for a mark each.
RUNS_MAX = 60
ROWS_MAX = 200
NOTES_MAX = 12

HARDWARE = "hardware"
NOT_STATED = "not stated"

_VERSIONS = ("firmware", "kernel", "engine")


class Mark(msgspec.Struct):
    """A test's median in one run. `order`: the run's place. `part`: marks that a line may join."""

    order: int
    value: Number
    terms: list[str]
    origin: str
    limit: OfLimit | None
    ceiling: Number | None
    part: int = 0

    def is_like(self, other: Mark) -> bool:
        """Whether the two figures may be compared."""
        return (self.terms, self.origin) == (other.terms, other.origin)


class Track(msgspec.Struct):
    """A test at one size, by one definition, over the runs."""

    test: str
    place: str
    metric: str
    unit: str
    definition: str
    marks: list[Mark]

    @property
    def title(self) -> str:
        return f"{self.test}, {place_words(self.place)}"


class Change(msgspec.Struct):
    """New versions of hosts, first seen in the run at `order`."""

    number: int
    order: int
    what: list[str]


class Trend(msgspec.Struct):
    """What is drawn of a fabric. `tracks`: of every size; `shown`: one of each test.

    `notes`: what the reader must know beside the figures, as plain text.
    """

    runs: list[IndexLine]
    left_out: int
    tracks: list[Track]
    shown: list[Track]
    changes: list[Change]
    notes: list[str]


def size_order(place: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in place.split("x"))


def place_words(place: str) -> str:
    size, _, batch = place.partition("x")
    said = words.size(int(size)) if size.isdecimal() else "no size"
    return f"{said}, batch {batch}" if batch else said


# ---- marks of a test -----------------------------------------------------------------------------


def _words_of(terms: Iterable[str], name: str) -> list[str]:
    """The values of one of the words in texts of terms."""
    found = {
        word.partition("=")[2]
        for text in terms
        for word in text.split(" ")
        if word.startswith(f"{name}=")
    }
    return sorted(found)


def definition(of_test: OfTest) -> str:
    """From where to where a figure is measured."""
    said = [words.definition_words(one) for one in _words_of(of_test.terms, "definition")]
    levels = _words_of(of_test.terms, "completion_level")
    level = f" (completion level: {' and '.join(levels)})" if levels else ""
    return f"{' and '.join(said)}{level}" if said else NOT_STATED


def _origin(line: IndexLine, of_test: OfTest) -> str:
    """Hardware, or what stands in its place; a run's scope is the weakest of its tests."""
    scopes = _words_of(of_test.terms, "scope") or [line.scope]
    return " and ".join(one for one in scopes if one != HARDWARE) or HARDWARE


def tracks(runs: Sequence[IndexLine]) -> list[Track]:
    """In order of metric, test and size."""
    found: dict[tuple[str, ...], Track] = {}
    for order, line in enumerate(runs, 1):
        for test, of_test in line.medians.items():
            by = definition(of_test)
            for place, value in of_test.by_size.items():
                track = found.setdefault(
                    (test, place, of_test.metric, by),
                    Track(test, place, of_test.metric, of_test.unit, by, []),
                )
                limit, top = of_test.limits.get(place), of_test.ceilings.get(place)
                origin = _origin(line, of_test)
                track.marks.append(Mark(order, value, of_test.terms, origin, limit, top))
    for track in found.values():
        for before, mark in pairwise(track.marks):
            joins = mark.is_like(before) and mark.order == before.order + 1
            mark.part = before.part + (not joins)
    ordered = sorted(found.values(), key=lambda one: (one.test, size_order(one.place)))
    return sorted(ordered, key=lambda one: one.metric, reverse=True)


def headline(found: Iterable[Track]) -> list[Track]:
    """Of each test and definition one size: of those that most runs have, the telling one.

    That is the smallest size of a latency and the largest one of a bandwidth.
    """
    groups: dict[tuple[str, ...], list[Track]] = {}
    for track in found:
        groups.setdefault((track.test, track.metric, track.definition), []).append(track)
    shown = []
    for of_test in groups.values():
        most = max(len(track.marks) for track in of_test)
        full = [track for track in of_test if len(track.marks) == most]
        shown.append(full[0] if full[0].metric.startswith("latency") else full[-1])
    return shown


# ---- what changed, and what must be said ---------------------------------------------------------


def changes(runs: Sequence[IndexLine]) -> list[Change]:
    """Of each version that both runs tell, what went and what came."""
    found: list[Change] = []
    known: dict[str, list[str]] = {}
    for order, line in enumerate(runs, 1):
        what = []
        for name in _VERSIONS:
            now: list[str] = getattr(line.versions, name)
            was = known.get(name)
            if now and was and now != was:
                gone = [one for one in was if one not in now]
                come = [one for one in now if one not in was]
                what.append(
                    f"{name}: {words.some(gone, 4) or 'none'} to {words.some(come, 4) or 'none'}"
                )
            if now:
                known[name] = now
        if what:
            found.append(Change(len(found) + 1, order, what))
    return found


def _definition_notes(shown: Sequence[Track]) -> Iterator[str]:
    """A test whose definition changed has several tracks, which no chart joins."""
    by_test: dict[str, list[str]] = {}
    for track in shown:
        by_test.setdefault(track.test, []).append(track.definition)
    for test, by in by_test.items():
        if len(by) > 1:
            yield (
                f"{test}: definitions differ between runs ({'; '.join(by)}), so they are drawn "
                "apart and not compared"
            )


def _unscoped(terms: Iterable[str]) -> str:
    """Terms without the scope, which the marks show."""
    both = " ".join(terms).split(" ")
    return " ".join(word for word in both if not word.startswith("scope="))


def _terms_notes(shown: Sequence[Track], runs: Sequence[IndexLine]) -> Iterator[str]:
    """Tests that a run measured otherwise than the run before, by what differs."""
    tests: dict[tuple[int, str], list[str]] = {}
    for track in shown:
        for before, mark in pairwise(track.marks):
            why = unlike(_unscoped(before.terms), _unscoped(mark.terms))
            if why is not None:
                tests.setdefault((mark.order, why), []).append(track.test)
    for (order, why), names in sorted(tests.items()):
        yield (
            f"run {runs[order - 1].run}: measured otherwise than before ({why}), so lines break: "
            f"{words.some(names, 4)}"
        )


def _notes(runs: Sequence[IndexLine], shown: Sequence[Track]) -> list[str]:
    found = []
    if len(runs) == 1:
        found.append("only one run of this fabric has medians, so there is no trend yet")
    found += _definition_notes(shown)
    found += _terms_notes(shown, runs)
    more = len(found) - NOTES_MAX
    return [*found[:NOTES_MAX], *([f"{more} more notes of this kind"] if more > 0 else [])]


def build(lines: Sequence[IndexLine]) -> Trend:
    """`lines`: the runs of one fabric, oldest first."""
    runs = list(lines[-RUNS_MAX:])
    found = tracks(runs)
    shown = headline(found)
    notes = _notes(runs, shown)
    return Trend(runs, len(lines) - len(runs), found, shown, changes(runs), notes)


# ---- tables --------------------------------------------------------------------------------------


def limit_words(limit: OfLimit | None, unit: str) -> str:
    if limit is None:
        return words.NOTHING
    said = words.bound(Bound(limit.min, limit.max), unit)
    return said if limit.severity == "required" else f"{said} (advisory)"


def _figure_row(track: Track, runs: Sequence[IndexLine]) -> list[str]:
    """The latest figure beside those that may be compared with it."""
    last = track.marks[-1]
    like = [mark for mark in track.marks if mark.is_like(last)]
    accepted = [mark for mark in like if runs[mark.order - 1].accepted is not None]
    was = accepted[-1] if accepted else like[0]
    figures = [
        None if one is last else one for one in (like[0], accepted[-1] if accepted else None)
    ]
    since = None if was is last else evolution.change(last.value, was.value)
    return [
        words.cell(track.test),
        place_words(track.place),
        words.cell(track.definition),
        last.origin,
        str(len(track.marks)),
        *(
            words.NOTHING if one is None else words.quantity(one.value, track.unit)
            for one in figures
        ),
        words.quantity(last.value, track.unit),
        evolution.signed(since),
        limit_words(last.limit, track.unit),
    ]


def figures_table(trend: Trend) -> Table:
    columns = left("Test") + right("Size") + left("Measured", "Scope")
    columns += right("Runs", "First", "Last accepted", "Latest", "Change") + left("Limit")
    return capped(columns, [_figure_row(one, trend.runs) for one in trend.tracks], ROWS_MAX)


def changes_table(trend: Trend) -> Table:
    rows = [
        [
            str(one.number),
            words.code(trend.runs[one.order - 1].run),
            words.cell("; ".join(one.what)),
        ]
        for one in trend.changes
    ]
    return Table(right("No.") + left("First run", "What changed"), rows)


def _accepted_words(line: IndexLine) -> str:
    if line.accepted is None:
        return words.NOTHING
    said = words.cell(line.label) if line.label else "yes"
    return f"{said}, although {line.verdict}" if line.forced else said


def runs_table(trend: Trend) -> Table:
    """The newest first."""
    rows = [
        [
            words.code(line.run),
            words.cell((line.created or words.NOTHING)[:16].replace("T", " ")),
            line.verdict,
            line.scope,
            f"{words.whole(line.measured)} of {words.whole(line.planned)}",
            _accepted_words(line),
        ]
        for line in reversed(trend.runs)
    ]
    columns = left("Run", "Time (UTC)", "Verdict", "Scope") + right("Measured") + left("Accepted")
    return Table(columns, rows)


# ---- the page ------------------------------------------------------------------------------------


def title(line: IndexLine) -> str:
    return f"Trend: suite {words.cell(line.suite)}, limits {words.cell(line.limits)}"


def _what_line(trend: Trend) -> str:
    first, last = trend.runs[0], trend.runs[-1]
    said = f"{plural(len(trend.runs), 'run')} of fabric {words.code(first.fabric)}"
    said += (
        f", {words.cell((first.created or '')[:10])} to {words.cell((last.created or '')[:10])}."
    )
    said += f" The latest is {words.code(last.run)}: {last.verdict}, scope {last.scope}."
    if trend.left_out:
        said += f" {plural(trend.left_out, 'earlier run')} left out."
    return said


def others(lines: Iterable[IndexLine], fabric: str | None) -> list[str]:
    """The other fabrics of the index, the one with the newest run first."""
    newest: dict[str, IndexLine] = {}
    count: Counter[str] = Counter()
    for line in lines:
        if line.fabric is not None and line.fabric != fabric:
            newest[line.fabric] = line
            count[line.fabric] += 1
    ordered = sorted(newest.items(), key=lambda one: one[1].created or "", reverse=True)
    return [
        f"{words.code(f'perchctl trend --fabric {name}')}: suite {words.cell(line.suite)}, limits "
        f"{words.cell(line.limits)}, {plural(count[name], 'run')}"
        for name, line in ordered
    ]


def document(trend: Trend, faults: Sequence[str], other: list[str]) -> dict[str, Any]:
    """What the template shows. `faults`: lines of the index that are not shown, and why."""
    return {
        "title": title(trend.runs[0]),
        "what_line": _what_line(trend),
        "notes": [words.cell(f"{one}.") for one in (*faults, *trend.notes)],
        "changes": changes_table(trend),
        "figures": figures_table(trend),
        "runs": runs_table(trend),
        "others": other,
    }
