"""Two runs side by side: intervals, what may be said of a change, and what is refused."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.history import side_by_side
from perch.history.intervals import of_course, of_samples
from perch.model.comparison import Range
from perch.model.record import (
    Bandwidth,
    Histogram,
    Interval,
    Record,
    Side,
    ToolName,
)
from perch.run import judging
from tests.py.conftest import Ended
from tests.stamped import stamp

Perchctl = Callable[..., Ended]
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def runs(run_copy: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder with the judged runs `one` and `two`, which are alike."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.move(run_copy("loopback"), folder / "one")
    judging.judge(folder / "one")
    shutil.copytree(folder / "one", folder / "two")
    return folder


def edit(run: Path, change: Change) -> None:
    """Changes each record, and stamps the verdict."""
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    for record in records:
        change(record)
    (run / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    stamp(run)


def compared(runs: Path, name: str = "compare-one-two") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((runs / name / "comparison.json").read_text())
    return document


def row(document: dict[str, Any], key: str) -> dict[str, Any]:
    return next(one for one in document["rows"] if one["figure"] == key)


def compare(perchctl: Perchctl, runs: Path, a: str = "one", b: str = "two") -> Ended:
    return perchctl("compare", runs / a, runs / b)


def test_what_was_measured_otherwise_is_named_and_not_compared(
    runs: Path, perchctl: Perchctl
) -> None:
    def otherwise(record: dict[str, Any]) -> None:
        if record["test"] == "shm-read-latency":
            record["definition"] = "half_round_trip"

    edit(runs / "two", otherwise)
    assert compare(perchctl, runs).code == 0
    refused = compared(runs)["refused"]
    assert refused
    assert all(one["figure"].startswith("shm-read-latency/") for one in refused)
    assert refused[0]["reason"] == "definition: completion and half_round_trip"


def test_a_change_stands_beside_both_values(runs: Path, perchctl: Perchctl) -> None:
    def half(record: dict[str, Any]) -> None:
        if record["test"] == "ofi-bandwidth":
            record["bandwidth"]["gbit_s"] *= 0.5

    edit(runs / "two", half)
    ended = compare(perchctl, runs)
    key = "ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s"
    assert f"| {key} | Gb/s |" in ended.stdout
    assert row(compared(runs), key)["change_percent"] == pytest.approx(-50)


def test_repeats_give_students_interval(runs: Path, perchctl: Perchctl) -> None:
    compare(perchctl, runs)
    found = row(compared(runs), "tcp-latency/alpha/beta/8/latency_us.p50")
    # by hand: two repeats with t = 12.706 and sd / sqrt(2)
    assert found["a_interval"]["of"] == "repeats"
    high = 97.5215 * (1 + 12.706 * 1.35894088 / math.sqrt(2))
    assert found["a_interval"]["high"] == pytest.approx(high, abs=0.01)


def test_a_quantile_lies_within_the_interval_of_its_samples(runs: Path, perchctl: Perchctl) -> None:
    compare(perchctl, runs)
    rows = compared(runs)["rows"]
    of_samples = [one for one in rows if one["a_interval"] and one["a_interval"]["of"] == "samples"]
    assert of_samples
    for one in of_samples:
        assert one["a_interval"]["low"] <= one["a"] * 1.001
        assert one["a"] <= one["a_interval"]["high"] * 1.001


def test_nothing_is_written_over(runs: Path, perchctl: Perchctl) -> None:
    compare(perchctl, runs)
    before = (runs / "compare-one-two/comparison.md").read_text()
    assert compare(perchctl, runs).code == 0
    assert (runs / "compare-one-two-2/comparison.md").read_text() == before


def test_records_that_cannot_be_read_are_named(runs: Path, perchctl: Perchctl) -> None:
    path = runs / "two/records.jsonl"
    path.write_bytes(path.read_bytes()[:3000])
    ended = compare(perchctl, runs)
    assert ended.code == 3
    assert "two/records.jsonl" in ended.stderr


def test_a_verdict_of_an_older_perch_is_named(runs: Path, perchctl: Perchctl) -> None:
    verdict = runs / "two/verdict.json"
    verdict.write_text(verdict.read_text().replace('"files"', '"others"', 1))
    ended = compare(perchctl, runs)
    assert ended.code == 3
    assert "two/verdict.json: it has no digest of records.jsonl" in ended.stderr
    assert "perchctl judge" in ended.stderr


def test_runs_without_a_common_figure_are_not_compared(runs: Path, perchctl: Perchctl) -> None:
    edit(runs / "two", lambda record: record.update(test="other"))
    ended = compare(perchctl, runs)
    assert ended.code == 1
    assert "The two runs have no figure that can be compared." in ended.stdout


# ---- intervals -----------------------------------------------------------------------------------


def record(**fields: Any) -> Record:
    return Record(
        schema="perch.record/2", run="r", flow="t/a/b/0/1", test="t", repeat=1, rail=0,
        scope="software", tool=ToolName("perch"), client=Side("a"), server=Side("b"),
        status="ok", **fields,
    )  # fmt: skip


def course(rates: list[float]) -> list[Interval]:
    return [Interval(float(i), i + 1.0, gbit_s=rate) for i, rate in enumerate(rates)]


def test_a_course_gives_the_interval_of_its_batches() -> None:
    # ten batches of two, with means 9, 11, 9, 11, ...: sd / sqrt(10) = 1.05409 / 3.16228
    rates = [9.0, 9.0, 11.0, 11.0] * 5
    ragged = [*course(rates), Interval(20, 20.1, gbit_s=1)]
    found = of_course(record(kind="bandwidth", bandwidth=Bandwidth(10), intervals=ragged))
    assert found is not None
    assert found.low == pytest.approx(10 - 2.262 * 0.333333, abs=1e-4)
    assert found.high == pytest.approx(10 + 2.262 * 0.333333, abs=1e-4)
    assert found.of == "intervals"


def test_a_short_course_gives_none() -> None:
    short = record(kind="bandwidth", bandwidth=Bandwidth(10), intervals=course([1.0] * 9))
    assert of_course(short) is None


def test_a_bound_that_too_few_samples_support_gives_no_interval(runs: Path) -> None:
    lines = (runs / "one/records.jsonl").read_text().splitlines()
    texts = [json.loads(line) for line in lines]
    one = next(text for text in texts if text["test"] == "shm-read-latency")
    histogram = Histogram(**one["histogram"])
    few = of_samples([record(kind="latency", histogram=histogram)])
    many = of_samples([record(kind="latency", histogram=histogram)] * 100)
    assert "latency_us.p50" in few
    assert few.keys() <= many.keys() == {"latency_us.p50", "latency_us.p99"}
    assert many["latency_us.p50"].high <= few["latency_us.p50"].high


def test_a_damaged_histogram_gives_no_interval() -> None:
    damaged = Histogram("hdr-v2-zlib-base64", "ns_round_trip", "HISTF")
    assert of_samples([record(kind="latency", histogram=damaged)]) == {}


@pytest.mark.parametrize(
    ("a", "b", "better", "said"),
    [
        (Range(1, 2, "repeats"), Range(3, 4, "repeats"), "higher", "better"),
        (Range(1, 2, "repeats"), Range(3, 4, "repeats"), "lower", "worse"),
        (Range(3, 4, "repeats"), Range(1, 2, "repeats"), "lower", "better"),
        (Range(1, 2, "repeats"), Range(2, 4, "repeats"), "higher", "no difference seen"),
        (Range(1, 2, "samples"), Range(3, 4, "repeats"), "higher", "better, within these two runs"),
        (None, Range(3, 4, "repeats"), "higher", "no interval: one value"),
    ],
)
def test_only_intervals_apart_are_a_difference(
    a: Range | None, b: Range | None, better: str, said: str
) -> None:
    assert side_by_side.words(a, b, better, "latency_us.p50") == said


def test_an_extreme_has_no_interval() -> None:
    assert side_by_side.words(None, None, "lower", "latency_us.max") == "no interval: an extreme"
