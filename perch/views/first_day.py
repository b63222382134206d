"""The page of a first hardware day: its questions, what is missing, and how late counters were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from perch.model.text import clean, plural

if TYPE_CHECKING:
    from perch.judge.lag import Lag
    from perch.model.plan import Plan
    from perch.model.record import Record
    from perch.views.table import Table

#: The letter with which names of a question's tests begin, and the question.
QUESTIONS = {
    "a": "placement, relaxed ordering and queue pairs, beside perftest",
    "b": "how late counters are after a flow",
    "c": "memory of a GPU, every byte checked",
    "d": "a bond",
    "e": "rails, alone and together",
}


class Answer(NamedTuple):
    """`planned`, `measured`: flows. `missing`: what is not there, and why."""

    letter: str
    planned: int
    measured: int
    missing: list[str]

    @property
    def state(self) -> str:
        if not self.measured:
            return "not run"
        return "measured" if not self.missing else "in part"


# ---- the questions -------------------------------------------------------------------------------


def _is_of(test: str, letter: str) -> bool:
    """Of an excluded one, too, which may be `NIC in TEST`."""
    return test.split(" in ")[-1].startswith(f"{letter}-")


def _of_tests(letter: str, plan: Plan, records: Sequence[Record]) -> Answer:
    from perch.model.plan import by_reason
    from perch.plan.excluded import EVERY_TEST

    flows = {flow.id for turn in plan.rounds for flow in turn.flows if _is_of(flow.test, letter)}
    of_flows = [one for one in records if one.flow in flows]
    good = {one.flow for one in of_flows if one.status == "ok"}
    excluded = [one for one in plan.excluded if one.test == EVERY_TEST or _is_of(one.test, letter)]
    missing = [f"{why}: {', '.join(tests)}" for why, tests in by_reason(excluded).items()]
    errors = {one.flow: one.error.message for one in of_flows if one.error and one.flow not in good}
    missing += [f"{flow}: {errors.get(flow, 'no result')}" for flow in sorted(flows - good)]
    return Answer(letter, len(flows), len(good), missing)


def _of_bonds(plan: Plan, records: Sequence[Record]) -> Answer:
    bonded = {one.flow for one in records if one.link and (one.link.links or 1) > 1}
    devices = [f"{name}: {_devices(host.devices)}" for name, host in plan.hosts.items()]
    missing = [] if bonded else [f"no device is a bond ({'; '.join(devices)})"]
    return Answer("d", len(bonded), len(bonded), missing)


def _devices(devices: Iterable[dict[str, object]]) -> str:
    return ", ".join(str(one["name"]) for one in devices) or "perch_devices names none"


def _of_counters(late: dict[str, list[Lag]]) -> Answer:
    missing = [
        f"{host}: no counter of a device moved in a flow that was followed"
        for host, found in late.items()
        if not found
    ]
    return Answer("b", len(late), len(late) - len(missing), missing)


def answers(plan: Plan, records: Sequence[Record], late: dict[str, list[Lag]]) -> Iterator[Answer]:
    """One for each question, in their order."""
    for letter in QUESTIONS:
        if letter == "b":
            yield _of_counters(late)
        elif letter == "d":
            yield _of_bonds(plan, records)
        else:
            yield _of_tests(letter, plan, records)


# ---- the page ------------------------------------------------------------------------------------


def _lag_table(late: dict[str, list[Lag]]) -> Table:
    from perch.views.table import Table, left, right
    from perch.views.words import figure

    found: dict[tuple[str, str, str], list[float]] = {}
    for host, of_host in late.items():
        for one in of_host:
            found.setdefault((host, one.device, one.counter), []).append(one.ms)
    rows = [
        [*map(clean, key), str(len(values)), figure(median(values)), figure(max(values))]
        for key, values in found.items()
    ]
    columns = [*left("host", "device", "counter"), *right("flows", "median ms", "largest ms")]
    return Table(columns, rows)


def page(plan: Plan, records: Sequence[Record], late: dict[str, list[Lag]], mark: str) -> str:
    """Markdown. late: of each host's counters. mark: perch.model.derived."""
    from perch.views.markdown import filled
    from perch.views.table import Table, left

    found = list(answers(plan, records, late))
    rows = [[one.letter, QUESTIONS[one.letter], one.state, _measured(one)] for one in found]
    return filled(
        "first_day.md.j2",
        run=plan.run,
        hosts=", ".join(plan.hosts),
        questions=Table(left("", "question", "state", "measured"), rows),
        missing=[(one.letter, [clean(why) for why in one.missing]) for one in found],
        lags=_lag_table(late),
        mark=mark,
    )


def _measured(one: Answer) -> str:
    what = "host" if one.letter == "b" else "flow"
    return f"{one.measured} of {plural(one.planned, what)}"
