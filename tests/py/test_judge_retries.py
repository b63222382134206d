"""A recorded run with repeats of what fell outside: judged on the median of all repeats."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from perch.model.verdict import Verdict
from tests import spelled
from tests.py.judging import (
    Change,
    Document,
    Run,
    check_of,
    measured_again,
    missing,
    put,
    status,
    times,
)

PAIR = "iperf3/alpha/beta"
FLOW = f"{PAIR}/0"
RETRY = "plan.retry.json"


def stray(document: Document) -> None:
    """iperf3's one stream has a limit of its own, which it misses by a tenth."""
    [one] = [limit for limit in document["limits"] if limit["id"] == "iperf-bandwidth"]
    bound = {**one["bound"], "min": 25}
    document["limits"].append({**one, "id": "stray", "scope": {"test": "iperf3"}, "bound": bound})


def planned(run: Run, *pairs: str) -> list[list[Document]]:
    """The rounds of two more repeats of these pairs."""
    flows = {one["id"]: one for turn in run.plan()["rounds"] for one in turn["flows"]}
    return [[{**flows[f"{pair}/1"], "repeat": n}] for pair in pairs or (FLOW,) for n in (2, 3)]


def put_retry(run: Run, rounds: list[list[Document]]) -> None:
    spelled.write_retry(run.root, rounds)


def faster(factor: float) -> Change:
    """Multiplies every rate of an iperf3 output, and the bytes with it."""

    def change(value: Any) -> None:
        for one in value.values() if isinstance(value, dict) else value:
            if isinstance(one, dict | list):
                change(one)
        if isinstance(value, dict) and "bits_per_second" in value:
            value["bits_per_second"] *= factor
            value["bytes"] = int(value["bytes"] * factor)

    return change


def judged(run: Run, *factors: float) -> Verdict:
    """The verdict with repeats 2, 3 ... at these factors of the first one's rate."""
    for n, factor in enumerate(factors, 2):
        measured_again(run, FLOW, n, faster(factor))
    return run.judge()


@pytest.fixture
def outlier(loopback: Run) -> Run:
    """With a plan of repeats, none of which was measured yet."""
    loopback.edit("inputs/limits.json", stray)
    put_retry(loopback, planned(loopback))
    return loopback


def test_what_fell_outside_and_a_repeat_may_cure_stands_in_the_verdict(outlier: Run) -> None:
    (outlier.root / RETRY).unlink()
    verdict = outlier.judge()
    assert verdict.verdict == "FAIL"
    assert verdict.outside == {
        "pairs": 1,
        "of": 12,
        "first": [
            {"test": "iperf3", "client": "alpha", "server": "beta", "why": ["limit/stray/iperf3"]}
        ],
    }


def test_repeats_that_were_planned_and_not_measured_are_missing(outlier: Run) -> None:
    verdict = outlier.judge()
    assert (verdict.verdict, status(verdict, "coverage")) == ("FAIL", "inconclusive")
    assert verdict.coverage.planned == 31
    assert missing(verdict) == {f"{FLOW}/2", f"{FLOW}/3"}


@pytest.mark.parametrize(
    "change",
    [
        put("state", "failed"),
        put("message", "the disk is full"),
        put("flows_done", 1),
        put("host", "beta"),
        put("started", None),
    ],
)
def test_a_walk_over_the_repeats_that_was_not_whole_is_no_pass(
    outlier: Run, change: Change
) -> None:
    judged(outlier, 2, 2.2)
    outlier.agent("alpha", change, retry=True)
    verdict = outlier.judge()
    assert verdict.verdict != "PASS"
    assert status(verdict, "host/alpha") == "inconclusive"


def test_one_stray_of_three_no_longer_decides_and_stays_visible_with_all_values(
    outlier: Run,
) -> None:
    verdict = judged(outlier, 2, 2.2)
    assert (verdict.verdict, status(verdict, "limit/stray/iperf3")) == ("PASS", "pass")
    assert verdict.coverage.measured == 31
    finding = check_of(verdict, f"retry/{PAIR}")
    assert finding.status == "advisory"
    told = str(finding.measured).removeprefix("limit/stray/iperf3 at 131072: ").split(", ")
    assert [round(float(value) / float(told[0]), 3) for value in told] == [1, 2, 2.2]
    assert finding.evidence == [f"{FLOW}/2", f"{FLOW}/3"]
    assert [one["repeat"] for one in outlier.records() if one["test"] == "iperf3"] == [1, 2, 3]


@pytest.mark.parametrize("factors", [(1, 2), (2, 1)])
def test_two_of_three_outside_fail_whichever_they_are(
    outlier: Run, factors: tuple[float, float]
) -> None:
    verdict = judged(outlier, *factors)
    assert (verdict.verdict, status(verdict, "limit/stray/iperf3")) == ("FAIL", "fail")
    assert status(verdict, f"retry/{PAIR}") == "advisory"


def one_repeat(plan: Document) -> None:
    del plan["rounds"][1]


def many_repeats(plan: Document) -> None:
    plan["rounds"] += [plan["rounds"][1]] * 2


@pytest.mark.parametrize(
    "fault",
    [
        put("plan_sha256", "0" * 64),
        put("run", "another"),
        one_repeat,
        many_repeats,
        put("rounds.0.flows.0.4", 5),
        put("rounds.0.flows.0.4", 1.5),
        put("rounds.0.flows.0.3", 1),
    ],
)
def test_repeats_that_are_not_this_verdicts_are_refused(outlier: Run, fault: Change) -> None:
    put_retry(outlier, planned(outlier))
    outlier.edit(RETRY, fault)
    verdict = judged(outlier, 2, 2)
    assert (verdict.verdict, status(verdict, "retry/plan")) == ("FAIL", "inconclusive")
    assert status(verdict, "limit/stray/iperf3") == "fail"


def test_more_than_a_quarter_of_the_pairs_is_no_outlier(outlier: Run) -> None:
    flows = [one for turn in outlier.plan()["rounds"] for one in turn["flows"]]
    tests = sorted({one["test"] for one in flows} - {"iperf3"})
    put_retry(outlier, planned(outlier, FLOW, *(f"{test}/alpha/beta/0" for test in tests[:3])))
    finding = check_of(judged(outlier, 2, 2), "retry/plan")
    assert finding.status == "inconclusive"
    assert "4 of 12 pairs of hosts, more than a quarter" in str(finding.measured)


@pytest.mark.parametrize("text", ["", '{"schema', "[]"])
def test_a_plan_of_repeats_that_is_damaged_is_refused(outlier: Run, text: str) -> None:
    (outlier.root / RETRY).write_text(text)
    verdict = outlier.judge()
    assert (verdict.verdict, status(verdict, "retry/plan")) == ("FAIL", "inconclusive")


def test_a_pair_that_had_not_fallen_outside_is_inconclusive(loopback: Run) -> None:
    put_retry(loopback, planned(loopback))
    verdict = judged(loopback, 2, 2)
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"retry/{PAIR}") == "inconclusive"


@pytest.fixture
def lost(loopback: Run, tmp_path: Path) -> tuple[Run, Path, str]:
    """The run with a flow that was lost before traffic; the raw files from before; its pair."""
    pair = "tcp-verify/alpha/beta/0"
    good = shutil.copytree(loopback.root / "raw", tmp_path / "good/raw").parent
    loopback.flow("tcp-verify").edit(
        put("exit", 4),
        put("stderr", "perch: 127.0.0.2: connection refused\n"),
        put("stdout", ""),
    )
    return loopback, good, pair


def test_a_flow_that_was_lost_before_traffic_is_cured_by_whole_repeats_and_stays_listed(
    lost: tuple[Run, Path, str],
) -> None:
    run, good, pair = lost
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert isinstance(verdict.outside, dict)
    assert [one["why"] for one in verdict.outside["first"]] == [[f"flow/{pair}/1"]]
    put_retry(run, planned(run, pair))
    for n in (2, 3):
        measured_again(run, pair, n, times(1 + n / 1000, "cpu.client_s"), root=good)
    verdict = run.judge()
    assert verdict.verdict == "PASS"
    assert status(verdict, f"flow/{pair}/1") == "advisory"
    assert status(verdict, f"retry/{pair.removesuffix('/0')}") == "advisory"
    assert missing(verdict) == {f"{pair}/1"}


def test_a_corrupted_payload_is_not_outside(loopback: Run) -> None:
    loopback.flow("tcp-verify").prints(put("integrity.bad_bytes", 7))
    verdict = loopback.judge()
    assert verdict.verdict == "FAIL"
    assert verdict.outside is UNSET
