"""A run of the engine and of perftest between two hosts: records, agreement, scope, and faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import spelled
from tests.raw_lines import End

Judge = Callable[[int], str]

FIXTURES = Path(__file__).parents[1] / "fixtures/perftest"
FLOW = "perftest-send-latency/alpha/beta/0/1"


@pytest.fixture(name="run")
def _run(run_copy: Callable[[str], Path]) -> Path:
    return run_copy("perftest")


@pytest.fixture(name="judge")
def _judge(run: Path, perchctl: Callable[..., Any]) -> Judge:
    """Judges the run, which ends with the code, and gives its line."""

    def judge(code: int) -> str:
        ended = perchctl("judge", run)
        assert ended.code == code, ended
        return str(ended.stdout)

    return judge


def document(path: Path) -> Any:
    return json.loads(path.read_text())


def edit(path: Path, change: Callable[[Any], object]) -> None:
    if path.name == "plan.json":
        spelled.edit(path.parent, change)
        return
    changed = document(path)
    change(changed)
    path.write_text(json.dumps(changed))


def replace(folder: Path, old: str, new: str) -> None:
    for path in [folder] if folder.is_file() else folder.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace(old, new))


def records(run: Path) -> list[Any]:
    return [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]


def agreement(run: Path, op: str, metric: str) -> Any:
    rows = document(run / "verdict.json")["agreement"]
    (row,) = (row for row in rows if (row["op"], row["metric"]) == (op, metric))
    return row


def check(run: Path, identity: str) -> Any:
    checks = document(run / "verdict.json")["checks"]
    (found,) = (check for check in checks if check["id"] == identity)
    return found


def require(run: Path, limit: str) -> None:
    def change(limits: Any) -> None:
        (found,) = (entry for entry in limits["limits"] if entry["id"] == limit)
        found["severity"] = "required"

    edit(run / "inputs/limits.json", change)


def test_every_flow_has_its_record_and_inf_keeps_the_run_from_passing(
    run: Path, judge: Judge
) -> None:
    assert "11 of 12 records measured" in judge(3)
    found = records(run)
    assert {record["scope"] for record in found} == {"software"}
    measured = [r for r in found if r["tool"]["name"] == "perftest" and r["status"] == "ok"]
    assert len(measured) == 6
    assert all(r["tool"]["version"] == "6.06" and "backend" not in r for r in measured)
    (failed,) = (record for record in found if record["status"] != "ok")
    assert "inf" in failed["error"]["message"]


# ---- agreement with the engine -------------------------------------------------------------------


def same_order(run: Path) -> None:
    """perftest lets PCIe reorder unless told otherwise, the engine does not."""
    end = End(run, "perftest-write-bandwidth/alpha/beta/0/1")
    assert "PCIe relax order: ON" in end.read()
    end.write(end.read().replace("PCIe relax order: ON", "PCIe relax order: OFF"))


def test_figures_of_other_settings_do_not_agree_and_a_required_limit_cannot_pass(
    run: Path, judge: Judge
) -> None:
    judge(3)
    row = agreement(run, "write", "gbit_s")
    assert row["state"] == "not_judged"
    assert "relaxed_ordering: engine false, perftest true" in row["reason"]
    require(run, "agreement-bandwidth")
    judge(3)
    found = check(run, "agreement/bandwidth-write-RC")
    assert found["status"] == "inconclusive" and "relaxed_ordering" in found["measured"]


def test_figures_of_one_definition_and_the_same_settings_are_judged(
    run: Path, judge: Judge
) -> None:
    require(run, "agreement-bandwidth")
    same_order(run)
    judge(3)
    row = agreement(run, "write", "gbit_s")
    assert row["state"] == "agree" and row["ratio"] == 0.880297879
    row = agreement(run, "send", "gbit_s")
    assert row["state"] == "not_judged" and row.get("ratio") is None
    assert "receiver_acknowledged" in row["reason"] and "initiator_completion" in row["reason"]
    found = check(run, "agreement/latency-write-RC")
    assert found["status"] == "advisory" and found["measured"] > 3 and found["limit"]["max"] == 3


def test_a_required_limit_of_agreement_fails_and_none_judges_nothing(
    run: Path, judge: Judge
) -> None:
    require(run, "agreement-latency")
    judge(1)

    def forget(limits: Any) -> None:
        limits["limits"] = [
            entry for entry in limits["limits"] if not entry["metric"].startswith("agreement")
        ]

    edit(run / "inputs/limits.json", forget)
    judge(3)
    checks = document(run / "verdict.json")["checks"]
    states = [one["status"] for one in checks if one["id"].startswith("agreement/")]
    assert states == ["not_judged"] * 4


# ---- scope ---------------------------------------------------------------------------------------


def test_a_device_is_software_by_its_driver_and_by_its_counters(run: Path, judge: Judge) -> None:
    for path in (run / "raw", run / "plan.json"):
        replace(path, "rxe0", "roce0")

    def hardware(plan: Any) -> None:
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow["scope"] = "hardware"
        for host in plan["hosts"].values():
            host["scope"] = "hardware"

    edit(run / "plan.json", hardware)
    judge(3)
    assert document(run / "verdict.json")["scope"] == "software"

    def real_driver(environment: Any) -> None:
        for device in environment["rdma"]:
            device["driver"] = "mlx5_core"

    for host in ("alpha", "beta"):
        edit(run / f"raw/{host}/environment.json", real_driver)
    # rxe's own counters are a second witness
    judge(3)
    assert document(run / "verdict.json")["scope"] == "software"
    for name, other in (("sent_pkts", "tx_pkts"), ("rcvd_pkts", "rx_pkts")):
        replace(run / "raw", f'"{name}"', f'"{other}"')
    judge(1)
    assert document(run / "verdict.json")["scope"] == "hardware"


# ---- what perftest could not do ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((FIXTURES / "4.5/wrong_device.err").read_text(), 3),
        ("Couldn't connect to 10.0.0.2:18515\n", 4),
    ],
)
def test_the_host_or_the_peer_that_is_at_fault_is_named_with_its_code(
    run: Path, judge: Judge, words: str, code: int
) -> None:
    End(run, FLOW).edit(lambda end: end.update(exit=1, stdout="", stderr=words))
    judge(3)
    missing = document(run / "verdict.json")["coverage"]["missing"]
    (found,) = (one for one in missing if one["flow"] == FLOW)
    assert found["code"] == code and words.splitlines()[-1] in found["message"]
