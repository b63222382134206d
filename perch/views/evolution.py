"""Evolution: the figures of the accepted runs, oldest first, then this run's, each with its change.

The accepted ones are those of inputs/history.jsonl. Imported documents have theirs within one run:
the stages of a measurement. Figures of different terms are never compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from perch.checks.figures import unlike
from perch.model.figures import median
from perch.model.imported import Documents
from perch.views import words
from perch.views.inputs import PastRun
from perch.views.measured import Point, Results
from perch.views.table import Column, Table, left, right
from perch.views.words import Figure, quantity

#: The first run and the latest ones; a wider table is not read.
RUNS_MAX = 4
ROWS_MAX = 60
#: Figures in the chart.
LINES_MAX = 6

JITTER = "jitter"
P50, P99 = "latency_us.p50", "latency_us.p99"

#: What is shown of a test: latency at its smallest size, bandwidth at its largest.
_SHOWN = {
    "latency": (
        (P50, "Latency, median", "us"),
        ("latency_us.mean", "Latency, mean", "us"),
        (P99, "Tail, p99", "us"),
        (JITTER, "Jitter, p99 - p50", "us"),
        ("latency_us.stddev", "Jitter, standard deviation", "us"),
        ("latency_us.max", "Maximum", "us"),
    ),
    "bandwidth": (("bandwidth.gbit_s", "Bandwidth", "Gb/s"),),
    "transfer": (("bandwidth.gbit_s", "Bandwidth of all pairs", "Gb/s"),),
    "rate": (("bandwidth.messages_per_s", "Message rate", "messages/s"),),
}
#: Single extremes would set the chart's scale.
_NOT_DRAWN = ("latency_us.stddev", "latency_us.max")

#: What a sentence says of stages: the notes of a site speak of these three.
_OF_STAGES = {
    "latency_us.mean": "latency (mean)", "latency_us.stddev": "jitter (standard deviation)",
    "latency_us.max": "the longest message", "bandwidth.gbit_s": "bandwidth",
}  # fmt: skip

#: Figure and terms, by metric.
Past = dict[str, tuple[float, str]]


class Row(msgspec.Struct):
    """A figure along the runs, this one's last. None: not measured, or not under these terms."""

    test: Results
    place: str
    metric: str
    title: str
    unit: str
    values: list[Figure]

    @property
    def first(self) -> Figure:
        return next((value for value in self.values[:-1] if value is not None), None)

    @property
    def last(self) -> Figure:
        return self.values[-1]


class Head(msgspec.Struct):
    """What a sentence says of a row: from the first accepted run to this one, in percent."""

    rdma: bool
    figure: str
    metric: str
    test: str
    before: str
    now: str
    change: float | None
    first: str


class Evolution(msgspec.Struct):
    """`left_out`: accepted runs that are not shown. `refused`: tests whose terms changed.

    `stages`: a table for each measurement in stages; `changes`: a sentence of each.
    """

    runs: list[str]
    table: Table
    left_out: int
    refused: list[str]
    heads: list[Head]
    chart: list[dict[str, Any]]
    stages: list[Table] = []
    changes: list[str] = []


def _point(test: Results) -> Point:
    return test.sizes[0] if test.kind == "latency" else test.sizes[-1]


def _place(test: Results) -> str:
    """The size whose figures are shown, as in the keys of figures."""
    point = _point(test)
    return f"{point.size_bytes}x{point.batch}" if test.kind == "transfer" else str(point.size_bytes)


def _place_words(place: str) -> str:
    size, _, batch = place.partition("x")
    said = words.size(int(size)) if size.isdecimal() else "-"
    return f"{said}, batch {batch}" if batch else said


def _own(test: Results, metric: str) -> Figure:
    """This run's figure: medians over repeats and pairs."""
    point = _point(test)
    if metric == JITTER:
        p50, p99 = point.get("p50"), point.get("p99")
        return None if p50 is None or p99 is None else p99 - p50
    if test.kind == "transfer":
        rate = point.get("gbyte_s")
        return None if rate is None else 8 * rate
    return point.get(metric.split(".")[1])


def _past(run: PastRun, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Past]:
    """An accepted run's figures by test and place: medians over its pairs, the longest of all."""
    values: dict[tuple[str, str], dict[str, list[tuple[float, str]]]] = {}
    for key, figure in run.figures.items():
        test, _, _, place, metric = (key.split("/") + [""] * 5)[:5]
        if (test, place) in wanted and 0 <= figure.of < len(run.terms):
            of = values.setdefault((test, place), {})
            of.setdefault(metric, []).append((figure.value, run.terms[figure.of]))
    found: dict[tuple[str, str], Past] = {}
    for of_test, metrics in values.items():
        of_place = found[of_test] = {}
        for metric, figures in metrics.items():
            numbers = [value for value, _ in figures]
            one = max(numbers) if metric.endswith(".max") else median(numbers)
            of_place[metric] = (one or 0, figures[0][1])
    return found


def _was(past: Past, metric: str, terms: str) -> Figure:
    """An accepted figure, where it was measured under the same terms."""
    if metric == JITTER:
        if P50 not in past or P99 not in past:
            return None
        value, under = past[P99][0] - past[P50][0], past[P50][1]
    elif metric in past:
        value, under = past[metric]
    else:
        return None
    return value if unlike(under, terms) is None else None


def _rows(history: list[PastRun], tests: list[Results]) -> list[Row]:
    # what is checked byte by byte is no figure to be proud of
    shown = [test for test in tests if not test.is_verified and test.sizes]
    wanted = {(test.name, _place(test)) for test in shown}
    past = [_past(run, wanted) for run in history]
    found = []
    for test in shown:
        place = _place(test)
        for metric, title, unit in _SHOWN.get(test.test.kind, ()):
            was = [_was(run.get((test.name, place), {}), metric, test.terms) for run in past]
            if any(value is not None for value in was):
                values = [*was, _own(test, metric)]
                found.append(Row(test, place, metric, title, unit, values))
    return found


def _refused(history: list[PastRun], tests: list[Results]) -> list[str]:
    """Tests without an evolution, because they were measured under other terms."""
    found = []
    for test in tests:
        under = {
            run.terms[figure.of]
            for run in history
            for key, figure in run.figures.items()
            if key.startswith(f"{test.name}/") and 0 <= figure.of < len(run.terms)
        }
        differences = [unlike(terms, test.terms) for terms in sorted(under)]
        if differences and None not in differences:
            found.append(words.cell(f"{test.title}: {differences[0]} differ"))
    return found


# ---- words ---------------------------------------------------------------------------------------


def change(value: Figure, before: Figure) -> float | None:
    """Percent."""
    return None if value is None or not before else 100 * (value / before - 1)


def signed(change: float | None) -> str:
    if change is None:
        return "-"
    if change > 1000:
        return "> +1000 %"
    return ("+" if change > 0 else "") + words.percent(change, 1 if abs(change) < 9.95 else 0)


def _cells(row: Row) -> Iterable[str]:
    """Each with its change against the one before."""
    before: Figure = None
    for value in row.values:
        if value is None:
            yield "not measured"
            continue
        said = quantity(value, row.unit)
        yield said if before is None else f"{said} ({signed(change(value, before))})"
        before = value


def _label(run: PastRun, place: int) -> str:
    return run.label if run.label is not None else "initial" if place == 0 else run.run


def _run_line(run: PastRun, label: str) -> str:
    said = f"*{words.cell(label)}*: run {words.code(run.run)}, accepted {words.cell(run.accepted)}"
    return said if run.verdict == "PASS" else f"{said}, **although {words.cell(run.verdict)}**"


def _table_row(row: Row) -> list[str]:
    place = [row.title, words.cell(row.test.title), _place_words(row.place)]
    return [*place, *_cells(row), signed(change(row.last, row.first))]


def _head(row: Row, first: str) -> Head:
    return Head(
        rdma=row.test.is_rdma and row.test.is_network,
        figure=row.title,
        metric=row.metric,
        test=row.test.title,
        before=quantity(row.first, row.unit),
        now=quantity(row.last, row.unit),
        change=change(row.last, row.first),
        first=first,
    )


def _chart(rows: list[Row], labels: list[str], title: str = "") -> list[dict[str, Any]]:
    """`title`: of all rows; else each has its test's."""
    drawn = [row for row in rows if row.metric not in _NOT_DRAWN][:LINES_MAX]
    return [
        {
            "series": f"{title or row.test.title}: {row.title}", "order": order, "run": run,
            "percent": 100 * value / row.first,
            "said": f"{title or row.test.title}: {row.title}, {run}: "
            f"{words.percent(100 * value / row.first)} of the first",
        }
        for row in drawn
        if row.first is not None and row.first > 0
        for order, (run, value) in enumerate(zip(labels, row.values, strict=True))
        if value is not None
    ]  # fmt: skip


# ---- stages of an imported document --------------------------------------------------------------


class _Course(msgspec.Struct):
    """A measurement in stages. `labels` and the values of each row are in the document's order."""

    title: str
    labels: list[str]
    rows: list[Row]


def _of_metrics(tests: list[Results]) -> Iterable[Row]:
    last = tests[-1]
    for metric, title, unit in _SHOWN.get(last.test.kind, ()):
        values = [_own(test, metric) for test in tests]
        if any(value is not None for value in values):
            yield Row(last, _place(last), metric, title, unit, values)


def _courses(documents: Documents, tests: list[Results]) -> tuple[list[_Course], list[str]]:
    """What can be compared, and in words what cannot."""
    of = {test.name: test for test in tests if test.sizes}
    courses, refused = [], []
    for stages in documents.stages:
        measured = [(one.title, of[one.test]) for one in stages.stages if one.test in of]
        results = [test for _, test in measured]
        differences = [unlike(one.terms, results[-1].terms) for one in results]
        if any(differences):
            why = next(one for one in differences if one)
            refused.append(words.cell(f"{stages.title}: {why} differ"))
        elif len(results) > 1:
            labels = [title for title, _ in measured]
            courses.append(_Course(stages.title, labels, list(_of_metrics(results))))
    return courses, refused


def _stage_table(course: _Course) -> Table:
    columns = left("Figure") + right("Size", *map(words.cell, course.labels), "first to last")
    rows = [
        [row.title, _place_words(row.place), *_cells(row), signed(change(row.last, row.first))]
        for row in course.rows
    ]
    return Table(columns, rows, title=words.cell(course.title))


def _course_chart(courses: list[_Course]) -> list[dict[str, Any]]:
    """Of the first one alone: stages of others have other names."""
    return [
        one for course in courses[:1] for one in _chart(course.rows, course.labels, course.title)
    ]


def _stage_sentence(course: _Course) -> Iterable[str]:
    said = [
        f"{_OF_STAGES[row.metric]} {quantity(row.first, row.unit)} to "
        f"{quantity(row.last, row.unit)} ({signed(change(row.last, row.first))})"
        for row in course.rows
        if row.metric in _OF_STAGES and row.first is not None and row.last is not None
    ]
    if said:
        first, last = words.cell(course.labels[0]), words.cell(course.labels[-1])
        yield f"From *{first}* to *{last}*: {', '.join(said)}."


# ---- all -----------------------------------------------------------------------------------------


def evolution(
    history: list[PastRun], tests: list[Results], documents: Documents | None = None
) -> Evolution:
    picked = history
    if len(history) > RUNS_MAX:
        picked = [history[0], *history[-(RUNS_MAX - 1) :]]
    rows = _rows(picked, tests)
    labels = [_label(run, place) for place, run in enumerate(picked)]
    columns: list[Column] = left("Figure", "Test") + right("Size", *map(words.cell, labels))
    shown = rows[:ROWS_MAX]
    courses, unlike_stages = _courses(documents or Documents(), tests)
    return Evolution(
        runs=[_run_line(run, label) for run, label in zip(picked, labels, strict=True)],
        table=Table(
            columns + right("this run", "since the first"), [_table_row(row) for row in shown]
        ),
        left_out=len(history) - len(picked),
        refused=[*_refused(picked, tests), *unlike_stages],
        heads=[_head(row, labels[0]) for row in shown],
        chart=_chart(rows, [*labels, "this run"]) or _course_chart(courses),
        stages=[_stage_table(course) for course in courses],
        changes=[said for course in courses for said in _stage_sentence(course)],
    )
