"""Suites in GPU memory: hosts without a GPU are named, and outputs are judged as the plan asks."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from selftest import work
from selftest.edits import Edit, edit, prints, put
from selftest.edits import sealed_again as sealed
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import RAILED, Fabric

from perch.model.verdict import Verdict
from perch.plan.planner import Planned
from tests.py.discovered import nic, recorded
from tests.py.planned import excluded, flows, hosts, planned, suite_test
from tests.py.test_sick_gpu import ALL, with_gpu

SUITES = Path(__file__).parents[2] / "playbooks/suites"
GDR = ("gdr-write", "gdr-read", "gdr-bidir")
NVIDIA = ["cuda:0000:1b:00.0", "cuda:0000:a1:00.0"]


def suite_of(suite: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((SUITES / f"{suite}.yml").read_text())["tests"]
    return found


def plan(tests: list[dict[str, Any]], *gpus: list[str] | None) -> Planned:
    """Hosts h0, h1, ... with two NICs; `gpus`: of each, None where its engine does not say."""
    inventory = hosts(len(gpus), perch_backends=["verbs", "tcp"], perch_devices=["active"])
    devices = {
        name: [nic(f"d{i}", 10 * at + i + 1, gpus=of) for i in range(2)]
        for at, (name, of) in enumerate(zip(inventory, gpus, strict=True))
    }
    return planned(tests, inventory, devices=recorded(devices))


def in_gpus(suite: str) -> set[str]:
    return {test["name"] for test in suite_of(suite) if "memory" in test["params"]}


@pytest.mark.parametrize("suite", GDR)
def test_every_test_is_planned_on_every_nic_with_its_nearest_gpu(suite: str) -> None:
    found = plan(suite_of(suite), NVIDIA, NVIDIA)
    made = flows(found)
    assert not excluded(found)
    assert {flow["test"] for flow in made} == {test["name"] for test in suite_of(suite)}
    for flow in made:
        words = " ".join(flow["client_argv"])
        assert ("--memory cuda:near" in words) is (flow["test"] in in_gpus(suite))
        if flow["test"].endswith("-together"):
            assert {"--rails", "--server-rails"} <= set(flow["client_argv"])
    assert {flow["rail"] for flow in made if flow["kind"] != "transfer"} == {0, 1}


@pytest.mark.parametrize("suite", GDR)
def test_a_host_without_a_gpu_is_excluded_by_name(suite: str) -> None:
    amd = ["rocm:0000:1b:00.0"]
    found = plan(suite_of(suite), NVIDIA, NVIDIA, [], amd)
    gone = [f"{host} has no NVIDIA GPU with a loaded driver" for host in ("h2", "h3")]
    names = in_gpus(suite)
    assert set(excluded(found)) == {(test, why) for test in names for why in gone}
    for flow in flows(found):
        assert flow["test"] not in in_gpus(suite) or {flow["client"], flow["server"]} == {
            "h0",
            "h1",
        }


def test_gpus_that_nobody_asked_for_are_planned() -> None:
    assert not excluded(plan(suite_of("gdr-read"), None, None))


@pytest.mark.parametrize(
    ("params", "lacks"),
    [
        ({"rx_memory": "rocm:near"}, "AMD"),
        ({"memory": "ze", "bounce": True}, "Intel"),
        ({"memory": "host"}, None),
    ],
)
def test_the_gpu_of_each_buffer_counts_and_bounce_needs_one_too(
    params: dict[str, Any], lacks: str | None
) -> None:
    test = suite_test(backend="verbs", params={"size": 8, **params})
    found = [why for _, why in excluded(plan([test], NVIDIA, NVIDIA)) if why.startswith("h0 ")]
    assert found == ([f"h0 has no {lacks} GPU with a loaded driver"] if lacks else [])


# ---- judged ------------------------------------------------------------------------------------

#: Writes between GPUs on each NIC: the composed fabric's, in the memory of the suite's test.
WRITES = replace(RAILED[0], params=RAILED[0].params | {"memory": "cuda:near"})
PRINTED = prints(
    f"{WRITES.name}/*",
    put("params.tx_memory", "cuda:near"),
    put("params.rx_memory", "cuda:near"),
    put("params.memory", "cuda:near"),
    put("params.gpu_path", "dmabuf_pcie"),
    put("params.relaxed_ordering", True),
    *(
        put(f"{role}.placement", {"cpu": "4", "node": 0, "memory_node": None, "unplaced": None,
                                  "gpu": "0000:c4:00.0"})
        for role in ("client", "server")
    ),
)  # fmt: skip


def judged(root: Path, healthy: Path, *edits: Edit) -> Verdict:
    shutil.copytree(healthy, root)
    for one in edits:
        one(root)
    sealed(root)
    return work.judged(root)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("healthy") / "run"
    compose(root, Fabric(7, (WRITES,)))
    for one in (PRINTED, edit(ALL, with_gpu)):
        one(root)
    return root


def test_writes_between_gpus_are_judged(healthy: Path, tmp_path: Path) -> None:
    verdict = judged(tmp_path / "run", healthy)
    against = [one.id for one in verdict.checks if one.status in ("fail", "inconclusive")]
    assert (verdict.verdict, against) == ("PASS", [])
    records = (tmp_path / "run/records.jsonl").read_text()
    assert records.count('"gpu":"0000:c4:00.0"') == 2 * len(records.splitlines())


def test_an_output_in_other_memory_than_planned_does_not_pass(
    healthy: Path, tmp_path: Path
) -> None:
    in_host = prints(f"{WRITES.name}/alpha/beta/0/1", put("params.tx_memory", "host"))
    verdict = judged(tmp_path / "run", healthy, in_host)
    assert verdict.verdict != "PASS"
    records = (tmp_path / "run/records.jsonl").read_text()
    assert "tx_memory cuda:near, the output says host" in records
