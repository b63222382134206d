"""Untuned against tuned: what is found, what is noise, and what keeps it from being whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from msgspec.structs import replace

from perch.history import tuning_figures as figures
from perch.history.tuning_figures import Figure, Metric, Ratios, not_compared
from perch.history.tuning_runs import About, Key
from perch.history.tuning_words import verdict
from perch.judge import run as judging
from perch.model import schemas
from perch.model.tuning import Change, ChangeVerdict, Kind
from tests.py.conftest import FIXTURES, Ended

Perchctl = Callable[..., Ended]
Change_ = Callable[[dict[str, Any]], object]
POOL = Path(__file__).parent / "tuning_pool.json"
#: A change of 20 % in three repeats.
FASTER = (1, 0.8, 1.01, 0.81, 0.99, 0.795)


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded run, judged."""
    root = tmp_path_factory.mktemp("tuning") / "run"
    shutil.copytree(FIXTURES / "loopback/run", root)
    judging.judge(root)
    return root


class Folder:
    """A folder of sub-runs."""

    def __init__(self, root: Path, base: Path) -> None:
        self.root = root
        self.base = base
        (root / "inputs").mkdir(parents=True)

    def sub_run(self, number: int, factor: float) -> None:
        """The recorded run: its latencies times `factor`, its rates divided by it."""
        name = f"{number:02d}-{'untuned' if number % 2 else 'tuned'}"
        (self.root / name).mkdir()
        run = {"run": f"20260101T000000Z-{name}"}
        for file in ("plan.json", "verdict.json"):
            document = json.loads((self.base / file).read_text())
            (self.root / name / file).write_text(json.dumps(document | run))
        for file in ("rounds.jsonl", "records.jsonl"):
            shutil.copy(self.base / file, self.root / name)
        self.edit(name, lambda record: record.update(run))
        self.edit(name, lambda record: scale(record, factor))

    def edit(self, name: str, change: Change_) -> None:
        """Changes each record of a sub-run."""
        path = self.root / name / "records.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            change(record)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))

    def write(self, name: str, document: object) -> None:
        (self.root / "inputs" / name).write_text(json.dumps(document))

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "tuning.json").read_text())
        return found


def scale(record: dict[str, Any], factor: float) -> None:
    latency = record.get("latency_us", {})
    latency.update({key: value * factor for key, value in latency.items() if key != "count"})
    if "bandwidth" in record:
        record["bandwidth"]["gbit_s"] /= factor


@pytest.fixture
def folder(tmp_path: Path, base: Path) -> Callable[..., Folder]:
    """`folder(FACTOR...)`: a sub-run for each factor, untuned and tuned in turn."""

    def make(*factors: float) -> Folder:
        found = Folder(tmp_path / "c", base)
        for number, factor in enumerate(factors, 1):
            found.sub_run(number, factor)
        settings = {host: {"host_tune_governor": "performance"} for host in ("alpha", "beta")}
        tuned = {"role": "host_tune", "settings": settings}
        found.write("tuning.json", {"repeats": len(factors) // 2, "tuning": tuned})
        return found

    return make


# ---- whole comparisons ---------------------------------------------------------------------------


def test_a_change_is_found_in_latency_and_bandwidth(
    folder: Callable[..., Folder], perchctl: Perchctl, tmp_path: Path
) -> None:
    given = folder(*FASTER)
    ended = perchctl("compare-tuning", given.root, tmp_path / "view.json")
    assert (ended.code, ended.stderr) == (0, "")
    assert "Better over all flows" in ended.stdout.splitlines()[0]
    found = given.document
    assert (found["result"], found["gaps"], found["counts"]["worse"]) == ("better", [], 0)
    assert found["counts"]["better"] == found["counts"]["compared"] > 0
    assert all(one["verdict"] == "better" and one["p_holm"] < 0.05 for one in found["overall"])
    flow = next(one for one in found["flows"] if one["test"] == "tcp-latency")
    p50 = next(one for one in flow["figures"] if one["metric"] == "p50")
    # by hand: logarithms of 0.8, 0.80198, 0.80303: mean -0.22106, error 0.00111, times 4.303
    assert p50["change_percent"] == pytest.approx(-19.8, abs=0.05)
    assert p50["low_percent"] == pytest.approx(-20.2, abs=0.05)
    assert p50["high_percent"] == pytest.approx(-19.4, abs=0.05)
    assert p50["tuned"] < p50["untuned"]
    view = json.loads((tmp_path / "view.json").read_text())
    assert '`host_tune_governor: "performance"` on alpha, beta' in view["settings"]
    table = next(one for one in view["flows"] if one["title"].startswith("TCP latency"))
    titles = ["minimum", "typical (p50)", "average", "deviation", "maximum", "p99", "p99.9"]
    assert [row[1] for row in table["rows"][:7]] == titles


@pytest.mark.parametrize("outcome", [None, {"stopped": "x", "changes": None, "not_reverted": []}])
def test_a_comparison_is_as_its_schema_says(
    folder: Callable[..., Folder], perchctl: Perchctl, outcome: dict[str, Any] | None
) -> None:
    given = folder(*FASTER)
    if outcome is not None:
        given.write("outcome.json", outcome)
        given.edit("01-untuned", lambda record: record.update(status="error"))
    perchctl("compare-tuning", given.root)
    jsonschema.Draft202012Validator(schemas.schema("tuning")).validate(given.document)


@pytest.mark.parametrize(
    ("factors", "result"),
    [
        ((1, 1.2, 1.01, 1.21, 0.99, 1.19), "worse"),
        ((1, 1.01, 1.02, 1, 0.99, 1), "no_effect"),
        # machines that only get faster with time gain nothing by the tuning
        ((1, 0.9, 0.81, 0.73, 0.656, 0.59), "no_effect"),
    ],
)
def test_what_is_not_faster_is_never_a_gain(
    folder: Callable[..., Folder], perchctl: Perchctl, factors: tuple[float, ...], result: str
) -> None:
    given = folder(*factors)
    assert perchctl("compare-tuning", given.root).code == 0
    assert given.document["result"] == result
    assert given.document["counts"]["better"] == 0


def _put(path: Path, text: str) -> None:
    path.write_text(text)


def _linked(records: Path) -> None:
    records.rename(records.parents[2] / "elsewhere")
    records.symlink_to(records.parents[2] / "elsewhere")


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "not made": (lambda c: shutil.rmtree(c / "06-tuned"), "06-tuned: it was not made"),
    "no records": (
        lambda c: (c / "02-tuned/records.jsonl").unlink(),
        "02-tuned: records.jsonl is missing",
    ),
    "records cut off": (
        lambda c: os.truncate(c / "02-tuned/records.jsonl", 20000),
        "02-tuned: it is damaged",
    ),
    "records empty": (
        lambda c: _put(c / "02-tuned/records.jsonl", ""),
        "02-tuned: records.jsonl has 0 of 29",
    ),
    "no objects": (
        lambda c: _put(c / "02-tuned/records.jsonl", "[1]\n"),
        "02-tuned: it is damaged",
    ),
    "plan half written": (
        lambda c: os.truncate(c / "04-tuned/plan.json", 300),
        "04-tuned: it is damaged",
    ),
    "verdict of another run": (
        lambda c: shutil.copy(c / "01-untuned/verdict.json", c / "04-tuned"),
        "04-tuned: verdict.json is not of this run",
    ),
    "records of another run": (
        lambda c: shutil.copy(c / "01-untuned/records.jsonl", c / "02-tuned"),
        "02-tuned: records.jsonl has records of another run",
    ),
    "a copy": (
        lambda c: shutil.copytree(c / "01-untuned", c / "03-untuned", dirs_exist_ok=True),
        "03-untuned: it is the same run as 01-untuned",
    ),
    "a link": (
        lambda c: _linked(c / "02-tuned/records.jsonl"),
        "02-tuned: records.jsonl is missing",
    ),
    "left tuned": (
        lambda c: _put(c / "inputs/outcome.json", '{"not_reverted": ["beta"]}'),
        "not reverted: beta",
    ),
    "stopped": (
        lambda c: _put(c / "inputs/outcome.json", '{"stopped": "beta: no"}'),
        "stopped: beta: no",
    ),
    "more was asked": (
        lambda c: _put(c / "inputs/tuning.json", '{"repeats": 4, "tuning": "x"}'),
        "07-untuned, 08-tuned: it was not made",
    ),
    "nothing was tuned": (
        lambda c: _put(c / "inputs/outcome.json", '{"changes": {"alpha": [], "beta": []}}'),
        "changed nothing on any host",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_is_missing_is_named_and_never_a_gain(
    folder: Callable[..., Folder], perchctl: Perchctl, name: str
) -> None:
    change, gap = FAULTS[name]
    given = folder(*FASTER)
    change(given.root)
    ended = perchctl("compare-tuning", given.root)
    assert ended.code == 3
    assert given.document["result"] == "incomplete"
    assert gap in ended.stdout
    assert "Better" not in ended.stdout


def _of_size_8(change: dict[str, Any]) -> Change_:
    def apply(record: dict[str, Any]) -> None:
        if record["test"] == "tcp-latency" and record["params"]["size_bytes"] == 8:
            for key, value in change.items():
                record[key] = {**record.get(key, {}), **value} if isinstance(value, dict) else value

    return apply


@pytest.mark.parametrize(
    ("change", "gap"),
    [
        (
            {"status": "error", "error": {"code": 4, "message": "the peer was lost"}},
            "tcp-latency, alpha to beta, 8: not measured in 02-tuned: the peer was lost",
        ),
        ({"definition": "completion"}, "not alike (definition: half_round_trip and completion)"),
        ({"tool": {"version": "9"}}, "not alike (tool: perch"),
        ({"scope": "simulated"}, "not alike (scope: software and simulated)"),
        ({"params": {"completion": "event"}}, "not alike (settings: "),
    ],
)
def test_a_flow_that_was_measured_otherwise_is_not_compared(
    folder: Callable[..., Folder], perchctl: Perchctl, change: dict[str, Any], gap: str
) -> None:
    given = folder(*FASTER)
    given.edit("02-tuned", _of_size_8(change))
    ended = perchctl("compare-tuning", given.root)
    assert ended.code == 3
    assert gap in ended.stdout
    refused = [flow for flow in given.document["flows"] if flow["why"] is not None]
    assert [(flow["test"], flow["place"]) for flow in refused] == [("tcp-latency", "8")]


def test_a_figure_of_zero_or_of_few_samples_is_not_compared(
    folder: Callable[..., Folder], perchctl: Perchctl
) -> None:
    def change(record: dict[str, Any]) -> None:
        if record["test"] == "shm-read-latency":
            record["latency_us"] |= {"stddev": 0, "count": 200}

    given = folder(*FASTER)
    given.edit("03-untuned", change)
    assert perchctl("compare-tuning", given.root).code == 0
    flow = next(one for one in given.document["flows"] if one["test"] == "shm-read-latency")
    odd = [(one["metric"], one["why"]) for one in flow["figures"] if one["why"] is not None]
    assert odd == [
        ("stddev", "0 in 03-untuned"),
        ("p99", "too few samples in 03-untuned"),
        ("p99_9", "too few samples in 03-untuned"),
    ]


def test_a_folder_without_sub_runs_is_not_compared(perchctl: Perchctl, tmp_path: Path) -> None:
    ended = perchctl("compare-tuning", tmp_path)
    assert ended.code == 3
    assert "no sub-run" in ended.stderr
    assert perchctl("compare-tuning", tmp_path / "nowhere").code == 2


# ---- noise is never sold as gain -----------------------------------------------------------------
# 200 comparisons drawn by lot from real runs of one thing: between them there is no difference but
# noise, unless one is made.


def numbers(seed: int, n: int) -> list[int]:
    """Park and Miller's minimal standard generator (Communications of the ACM 31, 1988)."""
    found = []
    for _ in range(n):
        seed = seed * 16807 % 2147483647
        found.append(seed)
    return found


@cache
def drawn(repeats: int, factor: float) -> list[list[Change]]:
    """200 comparisons of all figures; tuned ones times `factor`."""
    runs = json.loads(POOL.read_text())["runs"]
    comparisons = []
    for seed in range(1, 201):
        lots = numbers(seed * 7919, 2 * repeats + 10)[10:]
        lot = [runs[number % len(runs)] for number in lots]
        comparisons.append(
            [
                figures.compared(
                    figures.log_ratios(column[::2], [factor * one for one in column[1::2]]),
                    "lower",
                    0.002,
                )
                for column in zip(*lot, strict=True)
            ]
        )
    return comparisons


def part(comparisons: list[list[Change]], word: str, column: int | None = None) -> float:
    changes = [
        change
        for one in comparisons
        for change in (one if column is None else one[column : column + 1])
    ]
    return sum(change.verdict == word for change in changes) / len(changes)


def test_the_draws_are_those_of_every_day() -> None:
    assert numbers(1, 3) == [16807, 282475249, 1622650073]
    assert numbers(1, 10000)[-1] == 1043618065


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_one_interval_in_twenty_misses(repeats: int) -> None:
    # the figures of one comparison go together, so that the share itself varies a little
    assert 1 - part(drawn(repeats, 1), "no_effect") <= 0.055


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_one_statement_in_twenty_is_wrong_at_most(repeats: int) -> None:
    wrong = 0
    for changes in drawn(repeats, 1):
        figures.correct(changes)
        wrong += any(one.is_sure and one.verdict != "no_effect" for one in changes)
    assert wrong / 200 <= 0.05


@pytest.mark.parametrize(
    ("repeats", "factor", "found", "never"),
    [(3, 0.8, "better", "worse"), (5, 0.8, "better", "worse"), (5, 1.25, "worse", "better")],
)
def test_a_real_change_of_the_median_is_found(
    repeats: int, factor: float, found: str, never: str
) -> None:
    median = 1  # its column
    assert part(drawn(repeats, factor), found, median) >= 0.9
    assert part(drawn(repeats, factor), never, median) == 0


# ---- one figure ----------------------------------------------------------------------------------


def test_ratios_are_of_neighbours_in_time() -> None:
    found = figures.log_ratios([10, 20, 40], [5, 10, 10])
    assert found.forth == pytest.approx([-0.693147, -0.693147, -1.386294], abs=1e-6)
    assert found.back == pytest.approx([-1.386294, -1.386294], abs=1e-6)


A, B = [10, 10, 10], [8, 8.1, 7.9]


def test_a_change_by_hand() -> None:
    # ratios 0.8, 0.81, 0.79: mean of logarithms -0.223196, error 0.007218, t 4.303
    found = figures.compared(figures.log_ratios(A, B), "lower", 0)
    assert found.change_percent == pytest.approx(-20, abs=0.01)
    assert found.low_percent == pytest.approx(-22.45, abs=0.01)
    assert found.high_percent == pytest.approx(-17.48, abs=0.01)
    assert found.smallest_percent == pytest.approx(3.06, abs=0.01)


@pytest.mark.parametrize(
    ("untuned", "tuned", "better", "word"),
    [
        (A, B, "lower", "better"),
        (A, B, "higher", "worse"),
        (B, A, "higher", "better"),
        # an interval that holds "no change"
        (A, [5, 11, 9], "lower", "no_effect"),
        # a tuning that works on drifting machines
        ([10, 9.9, 9.8, 9.7], [7, 6.92, 6.87, 6.78], "lower", "better"),
    ],
)
def test_words_of_a_change(
    untuned: list[float], tuned: list[float], better: str, word: str
) -> None:
    assert figures.compared(figures.log_ratios(untuned, tuned), better, 0).verdict == word


def test_drift_is_no_gain() -> None:
    ratios = figures.log_ratios([10, 8.1, 6.561, 5.31441], [9, 7.29, 5.9049, 4.782969])
    found = figures.compared(ratios, "lower", 0)
    assert (found.verdict, found.p) == ("no_effect", 1)
    assert found.why is not None


def test_no_figure_is_known_better_than_its_digits() -> None:
    assert figures.resolution("perch 0.1", 5) == 0.002
    assert figures.resolution("perftest 4.5", 1) == 0.01
    assert figures.resolution("perftest 4.5", 100) == 0.002
    ratios = figures.log_ratios([1.02, 1.02], [1.01, 1.01])
    assert figures.compared(ratios, "lower", 0.02).verdict == "no_effect"


@pytest.mark.parametrize(
    ("word", "p_holm", "said"),
    [
        ("better", 0.049, "better"),
        ("worse", 0.049, "**worse**"),
        ("better", 0.05, "better (may be chance)"),
        ("worse", None, "worse (may be chance)"),
        ("no_effect", 1, "no effect seen"),
        ("not_compared", None, "not compared"),
    ],
)
def test_what_does_not_remain_after_the_correction_is_marked(
    word: ChangeVerdict, p_holm: float | None, said: str
) -> None:
    assert verdict(replace(not_compared(None), verdict=word, p_holm=p_holm)) == said


@pytest.mark.parametrize(
    ("values", "metric", "why"),
    [
        ([None, 1], "p99", "too few samples in 01-untuned"),
        ([1, None], "gbit_s", "not reported in 02-tuned"),
        ([0, 1], "stddev", "0 in 01-untuned"),
        ([1, 2], "min", None),
    ],
)
def test_what_keeps_a_figure_from_being_compared(
    values: list[float | None], metric: str, why: str | None
) -> None:
    assert figures.obstacle(values, metric, ["01-untuned", "02-tuned"]) == why


def test_a_percentile_that_one_repeat_lacks_is_not_the_runs() -> None:
    assert figures.of_run([5, None], "p99") is None
    assert figures.of_run([1, 2], "min") == 1
    assert figures.of_run([9, 12], "max") == 12
    assert figures.of_run([3, 4], "mean") == 3.5


# ---- over all flows ------------------------------------------------------------------------------


def _flow(kind: Kind, metric: str, better: str, *ratio: float) -> figures.FlowChange:
    ratios = Ratios(list(ratio), list(ratio[:1]))
    known = next(one for one in figures.METRICS[kind] if one.name == metric)
    assert known.better == better
    figure = Figure(Metric(*known), 1, 1, not_compared(None), ratios)
    return figures.FlowChange(Key("t", "a", "b", "8"), "t", About(kind), None, [figure])


def test_over_all_flows_the_repeat_stays_the_unit() -> None:
    flows = [
        _flow("bandwidth", "gbit_s", "higher", 0.1, 0.1),
        _flow("latency", "p50", "lower", -0.2, -0.2),
        _flow("latency", "p50", "lower", 0, 0),
    ]
    found = [
        (one.metric.name, one.flows, round(one.change.change_percent or 0))
        for one in figures.overall(flows)
    ]
    assert found == [("p50", 2, -10), ("gbit_s", 1, 11)]


def test_the_correction_is_over_all_figures_that_were_compared() -> None:
    changes = [replace(not_compared(None), p=p) for p in (0.03, None, None, 0.01, 0.2)]
    figures.correct(changes)
    assert [change.p_holm for change in changes] == [0.06, None, None, 0.03, 0.2]
