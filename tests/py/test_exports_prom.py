"""perch.prom: labels, families, and figures that all repeats have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perch.exports import prom, samples
from perch.views import details, flow_facts, measured
from tests.py.shown import Made, check, fabric


def text_of(made: Made, root: Path) -> str:
    run = made.write(root)
    results = measured.results(run.records)
    read = details.read(root, run.plan.latency_size)
    return prom.document(run, results, read, flow_facts.times(run.records))


def values(text: str, name: str) -> dict[str, float]:
    found = re.findall(rf"^{name}(?:{{(.*)}})? (.*)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


@pytest.fixture
def made() -> Made:
    return fabric()


def test_a_label_holds_any_text() -> None:
    assert samples.escaped('a\\b"c\nd\x1b\u202e') == r"a\\b\"c\\nd\\x1b\\u202e"


@pytest.mark.parametrize(
    ("labels", "value", "line"),
    [
        ({"a": 1, "b": None}, 5, 'n{a="1"} 5\n'),
        ({"b": None}, 0.5, "n 0.5\n"),
        ({}, 2.0, "n 2\n"),
        ({}, 1.863e-06, "n 1.863e-06\n"),
    ],
)
def test_a_sample_is_a_line(labels: dict[str, object], value: float, line: str) -> None:
    assert samples.sample("n", labels, value) == line


def test_a_family_without_samples_is_not_there() -> None:
    assert samples.gauge("n", "h", []) == ""


def test_figures_are_medians_over_repeats(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["flow"] == "bandwidth/n1/n2/0/2",
        lambda one: one["bandwidth"].update(gbit_s=95),
    )
    text = text_of(made, tmp_path)
    rate = values(text, "perch_bandwidth_bytes_per_second")
    assert len(rate) == 12
    (n1_n2,) = (value for labels, value in rate.items() if 'client="n1",server="n2"' in labels)
    assert n1_n2 == 96 * 125_000_000
    by_size = values(text, "perch_test_bandwidth_bytes_per_second")
    least = next(value for labels, value in by_size.items() if 'statistic="min"' in labels)
    assert least == 48.5 * 125_000_000
    assert len(values(text, "perch_latency_seconds_count")) == 24
    assert set(values(text, "perch_latency_seconds_count").values()) == {400000}


def test_a_figure_that_one_repeat_lacks_the_group_lacks(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["flow"] == "latency/n1/n2/0/2", lambda one: one["latency_us"].pop("p99")
    )
    text = text_of(made, tmp_path)
    tails = [
        labels
        for labels in values(text, "perch_latency_seconds")
        if 'quantile="0.99"' in labels and 'test="latency"' in labels
    ]
    assert len(tails) == 11
    # and of the test, all pairs
    assert not any(
        'test="latency"' in labels for labels in values(text, "perch_test_latency_p99_seconds")
    )


def test_above_a_thousand_groups_only_extremes_are_written(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prom, "GROUPS_MAX", 35)
    text = text_of(made, tmp_path)
    assert values(text, "perch_pairs_left_out") == {"": 1}
    assert values(text, "perch_latency_seconds") == {}
    assert len(values(text, "perch_test_latency_median_seconds")) == 6


def test_counters_that_moved_are_counted_once_a_flow(made: Made, tmp_path: Path) -> None:
    counters = {"client": {"TcpRetransSegs": 3, "mlx5_0/1": {"out_of_sequence": 2}}, "server": {}}
    made.change(
        lambda one: one["flow"] in ("latency/n1/n2/0/1", "latency/n1/n3/0/1"),
        lambda one: one.update(counters=counters),
    )
    # a second record of the same flow has the same counters
    first = next(one for one in made.records if one["flow"] == "latency/n1/n2/0/1")
    size = {"params": first["params"] | {"size_bytes": 128}}
    made.records.insert(made.records.index(first) + 1, first | size)
    trouble = values(text_of(made, tmp_path), "perch_trouble_counter")
    assert trouble == {
        'host="n1",counter="TcpRetransSegs"': 6,
        'host="n1",device="mlx5_0/1",counter="out_of_sequence"': 4,
    }


def test_without_a_plan_no_name_is_told(made: Made, tmp_path: Path) -> None:
    from perch.views import inputs

    made.verdict["coverage"] = {"planned": 0, "measured": 0, "missing": []}
    made.verdict["checks"] += [check("coverage", "pass", 0), check("manifest", "pass", 12)]
    made.write(tmp_path)
    (tmp_path / "plan.json").write_text("{", encoding="utf-8")
    run = inputs.read_run(tmp_path)
    text = prom.document(run, measured.results(run.records), details.Details(), {})
    assert f'perch_run_info{{run="made-by-hand",verdict_sha256="{run.mark}"}} 1' in text
