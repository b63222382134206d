"""Untuned against tuned: what is found, and what keeps a comparison from being whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from perch.model import schemas
from perch.run import judging
from tests.py.conftest import FIXTURES, Ended
from tests.stamped import stamp

Perchctl = Callable[..., Ended]
Change_ = Callable[[dict[str, Any]], object]
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
        stamp(self.root / name)

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
    flow = next(one for one in found["flows"] if one["test"] == "tcp-bandwidth")
    (rate,) = flow["figures"]
    assert (rate["metric"], rate["better"]) == ("gbit_s", "higher")
    assert 24 < rate["change_percent"] < 26
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
        "02-tuned: it is damaged: records.jsonl: it changed after verdict.json was made",
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
        "04-tuned: it is damaged: verdict.json: it is of run 20260101T000000Z-01-untuned,",
    ),
    "records of another run": (
        lambda c: shutil.copy(c / "01-untuned/records.jsonl", c / "02-tuned"),
        "02-tuned: it is damaged: records.jsonl: it changed after verdict.json was made",
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
    ended = perchctl("compare-tuning", tmp_path / "nowhere")
    assert ended.code == 2
    assert "nowhere" in ended.stderr


def test_a_folder_that_is_not_writable_is_exit_code_6(
    folder: Callable[..., Folder], perchctl: Perchctl
) -> None:
    given = folder(*FASTER)
    (given.root / "tuning.json").mkdir()
    ended = perchctl("compare-tuning", given.root)
    assert ended.code == 6
    assert "tuning.json is written there" in ended.stderr
