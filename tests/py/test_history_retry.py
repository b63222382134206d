"""Plans of repeats: what is repeated, as it was planned, and what never is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.history.retry import placed, repeats
from perch.model.plan import Flow, Plan, RoundLine
from perch.model.sections import OutsidePair
from perch.plan.flows import Flows
from perch.plan.rounds import lines as planned_lines
from perch.plan.rounds import plan_document, text
from tests.py.conftest import Ended
from tests.py.judging import Run, measured_again, missing, put, status, times
from tests.py.planned import hosts, planned, suite_test

Perchctl = Callable[..., Ended]
FLOW = "iperf3/alpha/beta"


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    return Run(run_copy("loopback"))


@pytest.fixture
def outlier(run: Run) -> Run:
    """The one stream of iperf3 misses a limit of its own by a tenth."""

    def stray(document: dict[str, Any]) -> None:
        (like,) = (one for one in document["limits"] if one["id"] == "iperf-bandwidth")
        scope = {"id": "stray", "scope": {"test": "iperf3"}}
        document["limits"].append({**like, **scope, "bound": {**like["bound"], "min": 25}})

    run.edit("inputs/limits.json", stray)
    return run


def repeated(run: Run, repeat: int, factor: float) -> None:
    """The outlier was measured again, with its rate times `factor`."""
    measured_again(run, f"{FLOW}/0", repeat, lambda document: _faster(document, factor))


def _faster(part: Any, factor: float) -> None:
    if isinstance(part, dict) and "bits_per_second" in part:
        times(factor, "bits_per_second")(part)
        part["bytes"] = int(part["bytes"] * factor)
    children = part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
    for child in children:
        _faster(child, factor)


def test_what_fell_outside_is_repeated_twice_as_it_was_planned(
    outlier: Run, perchctl: Perchctl
) -> None:
    ended = perchctl("retry", outlier.root)
    assert (ended.code, ended.stderr) == (0, "")
    assert f"1 of 12 fell outside: {FLOW} (limit/stray/iperf3)" in ended.stdout
    again = json.loads((outlier.root / "plan.retry.json").read_text())
    assert [turn["flows"] for turn in again["rounds"]] == [
        [["iperf3", "alpha", "beta", 0, repeat]] for repeat in (2, 3)
    ]
    plan = (outlier.root / "plan.json").read_bytes()
    assert again["plan_sha256"] == hashlib.sha256(plan).hexdigest()
    share = json.loads((outlier.root / "shares.retry/beta.json").read_text())
    assert [turn["flows"][0][1:6] for turn in share["rounds"]] == [
        turn["flows"][0] for turn in again["rounds"]
    ]
    assert missing(outlier.judge()) == {f"{FLOW}/0/2", f"{FLOW}/0/3"}


def test_a_run_with_repeats_is_accepted_packed_and_verified(
    outlier: Run, perchctl: Perchctl, tmp_path: Path
) -> None:
    assert perchctl("seal", outlier.root).code == 0
    assert perchctl("retry", outlier.root).code == 0
    repeated(outlier, 2, 2)
    repeated(outlier, 3, 2.2)
    assert perchctl("seal", outlier.root).code == 0
    verdict = outlier.judge()
    assert (verdict.verdict, verdict.coverage.measured) == ("PASS", 31)
    assert status(verdict, f"retry/{FLOW}") == "advisory"
    assert perchctl("accept", outlier.root).code == 0
    assert perchctl("bundle", outlier.root, tmp_path / "packed").code == 0
    assert "31 of 31 records" in perchctl("verify", tmp_path / "packed").stdout


def test_two_of_three_outside_fail(outlier: Run, perchctl: Perchctl) -> None:
    perchctl("retry", outlier.root)
    repeated(outlier, 2, 1)
    repeated(outlier, 3, 2)
    assert status(outlier.judge(), "limit/stray/iperf3") == "fail"


def test_a_flow_that_was_lost_before_traffic_is_repeated(run: Run, perchctl: Perchctl) -> None:
    run.flow("tcp-verify").edit(
        put("exit", 4),
        put("stderr", "perch: 127.0.0.2: connection refused\n"),
        put("stdout", ""),
    )
    ended = perchctl("retry", run.root)
    assert ended.code == 0
    assert "tcp-verify/alpha/beta (flow/tcp-verify/alpha/beta/0/1)" in ended.stdout


def test_a_pass_is_not_repeated(run: Run, perchctl: Perchctl) -> None:
    ended = perchctl("retry", run.root)
    assert ended.code == 1
    assert "the verdict is PASS" in ended.stderr


def test_more_than_a_quarter_are_not_outliers(run: Run, perchctl: Perchctl) -> None:
    def all_fail(document: dict[str, Any]) -> None:
        for limit in document["limits"]:
            if limit["id"] == "iperf-bandwidth":
                limit["bound"]["min"] = 1e6

    run.edit("inputs/limits.json", all_fail)
    ended = perchctl("retry", run.root)
    assert ended.code == 3
    assert "4 of 12 fell outside, more than a quarter" in ended.stderr


def test_a_corrupted_payload_is_not_repeated(run: Run, perchctl: Perchctl) -> None:
    run.flow("tcp-verify").prints(put("integrity.bad_bytes", 7))
    ended = perchctl("retry", run.root)
    assert ended.code == 1
    assert "no failed flow can be repeated" in ended.stderr
    assert not (run.root / "plan.retry.json").exists()


def test_a_run_is_repeated_once(outlier: Run, perchctl: Perchctl) -> None:
    assert perchctl("retry", outlier.root).code == 0
    assert perchctl("retry", outlier.root).code == 3


def test_a_run_without_a_plan_has_nothing_to_repeat(run: Run, perchctl: Perchctl) -> None:
    (run.root / "plan.json").unlink()
    for command in ("retry", "runs", "accept"):
        ended = perchctl(command, run.root)
        assert ended.code == 3
        assert "it is not the folder of a run: plan.json is missing" in ended.stderr
        assert "perchctl judge" not in ended.stderr


def test_flows_of_a_round_share_no_host() -> None:
    like = Flow("", "t", "perch", "latency", "", "", "software", deadline_s=9, estimate_s=2)
    flows = [
        msgspec.structs.replace(like, client=a, server=b) for a, b in ("ab", "cd", "bc", "ef", "da")
    ]
    keys = [flow.key for flow in flows]
    assert placed([[flow] for flow in flows]) == [
        RoundLine(0, 2, 9, [keys[0], keys[1], keys[3]]),
        RoundLine(1, 2, 9, [keys[2], keys[4]]),
    ]


@pytest.mark.parametrize(
    ("rails", "rounds"), [("together", [[0, 1]] * 2), ("alone", [[0], [1]] * 2)]
)
def test_rails_that_worked_together_are_repeated_together(
    rails: str, rounds: list[list[int]]
) -> None:
    devices = [{"name": f"m{i}"} for i in range(2)]
    test = suite_test(backend="verbs", params={"size": 8, "devices": "all"}, rails=rails)
    of = planned([test], hosts(2, perch_backends=["verbs"], perch_devices=devices))
    lines = list(planned_lines(of))
    head = plan_document(of, b"".join(map(text, lines)))
    maker = Flows(head)
    plan = Plan(**msgspec.structs.asdict(head) | {"rounds": list(map(maker.round, lines))})
    pair: OutsidePair = {"test": "t", "client": "h0", "server": "h1", "why": ["slow"]}
    again = placed(repeats(plan, [pair]))
    assert [[flow.rail for flow in line.flows] for line in again] == rounds
    assert [line.flows[0].repeat for line in again][:: len(again) // 2] == [2, 3]
