"""The composed runs of the self-test agree with themselves in every figure."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selftest.runs import noise
from selftest.runs.composed import AGAIN, retried
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import WITH_PERFTEST, Fabric

from perch.model import histogram
from tests import raw_lines

Document = dict[str, Any]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first healthy run."""
    root = tmp_path_factory.mktemp("fabric") / "run"
    compose(root, Fabric(0, WITH_PERFTEST))
    return root


def lines(root: Path, test: str) -> list[Document]:
    """The last line of each output of a test."""
    return [end.lines()[-1] for end in raw_lines.ends(root, f"{test}/*", "client")]


def test_histogram_is_what_perch_decodes() -> None:
    counts = np.zeros(histogram.PLACES, np.int64)
    counts[[0, 1, 700, 2048, 9000, histogram.PLACES - 1]] = [1, 127, 128, 40000, 3, 2**40]
    decoded = histogram.decode([noise.encoded(counts)])
    assert decoded.damaged == []
    assert (decoded.merged() == counts).all()


def test_latency_agrees_with_its_histogram_and_its_time(fabric: Path) -> None:
    for line in [*lines(fabric, "send-latency"), *lines(fabric, "tcp-latency")]:
        figures = line["latency_us"]
        samples = noise.samples_of(line)
        p50, p99 = histogram.decode([line["histogram"]["data"]]).quantiles(0.5, 0.99)[0] / 2000
        assert len(samples) == figures["count"] == 4000
        assert (figures["p50"], figures["p99"]) == (p50, p99)
        assert figures["mean"] == pytest.approx(samples.mean() / 2000, rel=1e-3)
        assert figures["stddev"] == pytest.approx(samples.std() / 2000, rel=1e-2)
        passed = line["elapsed_s"] * 1e6 / (2 * figures["mean"] * figures["count"])
        assert 1 <= passed <= 1.0002


@pytest.mark.parametrize("test", ["write-bandwidth", "steady-bandwidth", "tcp-bandwidth"])
def test_bandwidth_agrees_with_bytes_and_time(fabric: Path, test: str) -> None:
    for line in lines(fabric, test):
        figures = line["bandwidth"]
        assert figures["gbit_s"] * line["elapsed_s"] * 1e9 / 8 == pytest.approx(figures["bytes"])
        size = line["params"]["size_bytes"]
        assert figures["messages_per_s"] * line["elapsed_s"] * size == pytest.approx(
            figures["bytes"]
        )


def test_no_figure_is_there_twice(fabric: Path) -> None:
    for test in ("send-latency", "tcp-latency"):
        found = [line["histogram"]["data"] for line in lines(fabric, test)]
        assert len(set(found)) == len(found) > 1
    rates = [line["bandwidth"]["gbit_s"] for line in lines(fabric, "write-bandwidth")]
    assert len(set(rates)) == len(rates) == 20


def ends(root: Path) -> dict[str, list[Document]]:
    """The ends of each host's flows in the order of their times."""
    found: dict[str, list[Document]] = defaultdict(list)
    for walk in raw_lines.walks(root):
        found[walk.agent["host"]] += walk.ends
    return {host: sorted(some, key=lambda end: end["started"]) for host, some in found.items()}


def test_counters_go_on_from_flow_to_flow(tmp_path: Path) -> None:
    retried(tmp_path / "run")
    for some in ends(tmp_path / "run").values():
        readings = [end["counters"][moment] for end in some for moment in ("before", "after")]
        for before, after in pairwise(readings):
            assert float(before["time_s"]) < float(after["time_s"])
            card, later = (one["rdma"]["mlx5_0/1"]["counters"] for one in (before, after))
            assert all(int(card[name]) <= int(later[name]) for name in card)


def test_a_pair_measured_again_has_figures_of_its_own(tmp_path: Path) -> None:
    retried(tmp_path / "run")
    root, again = tmp_path / "run", f"{AGAIN}/0"
    repeats = [raw_lines.End(root, f"{again}/{n}").lines()[-1] for n in (1, 2, 3, 4)]
    rates = [line["bandwidth"]["gbit_s"] for line in repeats]
    assert len(set(rates)) == 4
    assert rates[0] < 80 < min(rates[1:])


def test_agents_report_the_flows_that_they_played(fabric: Path) -> None:
    for host, some in ends(fabric).items():
        (walk,) = raw_lines.walks(fabric, host)
        agent = walk.agent
        assert agent["flows_done"] == agent["flows_total"] == len(some)
        assert agent["started"] < some[0]["started"] < some[-1]["ended"] < agent["ended"]


def test_the_same_seed_gives_the_same_run(fabric: Path, tmp_path: Path) -> None:
    compose(tmp_path / "again", Fabric(0, WITH_PERFTEST))
    for path in fabric.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / "again" / path.relative_to(fabric)).read_bytes()
