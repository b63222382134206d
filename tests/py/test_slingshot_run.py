"""A run of two Slingshot nodes with published figures, and what spoils it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selftest.runs.slingshot import slingshot

from perch.history.seal import seal
from perch.judge.manifest import MANIFEST
from tests.py.conftest import Ended
from tests.py.judging import Document, Run, put

Perchctl = Callable[..., Ended]
ANSWER = "raw/{}/host_check.json"
LINK = "/sys/class/cxi/cxi0/device/port/link"
LINK_STATE = "host_check/slingshot-link-state/beta/cxi0"


class Nodes:
    """The run of two nodes; `judged` reads the verdict that the command wrote."""

    def __init__(self, root: Path, perchctl: Perchctl) -> None:
        root.mkdir()
        slingshot(root)
        self.run, self._perchctl = Run(root), perchctl

    def judged(self, code: int) -> str:
        """What the command prints; it ends with this code."""
        ended = self._perchctl("judge", self.run.root)
        assert ended.code == code, ended
        return ended.stdout

    def check(self, name: str) -> Document:
        verdict: Document = json.loads((self.run.root / "verdict.json").read_text())
        return next(one for one in verdict["checks"] if one["id"] == name)

    def status(self, name: str) -> Any:
        return self.check(name)["status"]

    def answers(self, host: str, change: Callable[[Document], object]) -> None:
        """Changes what a host says of itself."""
        self.run.edit(ANSWER.format(host), change)

    def link_is_down(self) -> None:
        self.answers("beta", lambda answer: answer["files"].update({LINK: "down"}))


@pytest.fixture
def nodes(tmp_path: Path, perchctl: Perchctl) -> Nodes:
    return Nodes(tmp_path / "run", perchctl)


# ---- addresses ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tests", "client", "server", "words"),
    [
        (["lat"], "0x12", "0x13", "alpha: cxi0 has NIC 0x12, NIC 0x13"),
        (["bw", "engine"], "0x13", "0x99", "beta: cxi0 has NIC 0x12, NIC 0x99"),
        (["lat", "bw", "engine"], "0x13", "0x13", "both ends of lat/alpha/beta/0/1 have NIC 0x13"),
    ],
)
def test_flows_whose_nics_have_other_addresses_are_no_evidence(
    nodes: Nodes, tests: list[str], client: str, server: str, words: str
) -> None:
    for test in tests:
        end = nodes.run.flow(test)
        said = end.read().replace("NIC 0x13", f"NIC_{client}").replace("NIC 0x12", f"NIC {server}")
        end.write(said.replace("NIC_", "NIC "))
    nodes.judged(3)
    found = nodes.check("machines/addresses")
    assert (found["status"], found["measured"]) == ("inconclusive", words)


def test_a_program_has_a_pid_of_its_own_on_its_nic(nodes: Nodes) -> None:
    end = nodes.run.flow("lat")
    end.write(end.read().replace("NIC 0x13 PID 0", "NIC 0x13 PID 7"))
    (nodes.run.root / MANIFEST).unlink()
    seal(nodes.run.root)
    nodes.judged(0)


# ---- simulations ---------------------------------------------------------------------------------


def test_a_tool_that_says_that_its_device_is_simulated(nodes: Nodes) -> None:
    said = "cxi_send_lat: sim_cxi0 is a simulated device: these figures are no proof of hardware\n"
    nodes.run.flow("lat").edit(put("stderr", said))
    assert "scope simulated" in nodes.judged(3)
    assert nodes.status("simulated") == "inconclusive"


def test_a_host_without_the_device_shows_a_simulation(nodes: Nodes) -> None:
    nodes.run.edit("raw/beta/environment.json", put("cxi", []))
    nodes.judged(3)
    assert nodes.status("simulated") == "inconclusive"


def test_a_simulation_that_was_planned_is_named_and_spoils_nothing(
    nodes: Nodes, perchctl: Perchctl
) -> None:
    def simulated(plan: Document) -> None:
        flows = [flow for turn in plan["rounds"] for flow in turn["flows"]]
        for one in [*flows, *plan["hosts"].values()]:
            one["scope"] = "simulated"

    nodes.run.edit("plan.json", simulated)
    assert "scope simulated" in perchctl("judge", nodes.run.root).stdout
    assert nodes.status("simulated") == "not_judged"
    assert perchctl("report", nodes.run.root).code == 0
    report = (nodes.run.root / "report.md").read_text()
    assert (
        "**Scope: simulated. The network cards were simulated, so this run is no proof of"
        " hardware.**" in report
    )


# ---- counters ------------------------------------------------------------------------------------


def test_bytes_that_the_nic_did_not_count_contradict_the_figures(nodes: Nodes) -> None:
    def hardly(end: Document) -> None:
        before, after = (
            end["counters"][when]["cxi"]["cxi0"]["counters"] for when in ("before", "after")
        )
        name = "hni_sts_rx_ok_octets"
        after[name] = str(int(before[name]) + 600_000_000)

    nodes.run.flow("bw", "server").edit(hardly)
    nodes.judged(1)
    assert nodes.status("path/bw/alpha/beta/0/1") == "fail"


# ---- hosts ---------------------------------------------------------------------------------------


def test_a_link_that_is_down_fails(nodes: Nodes) -> None:
    nodes.link_is_down()
    nodes.judged(1)
    found = nodes.check(LINK_STATE)
    assert (found["status"], found["evidence"]) == ("fail", ["beta"])
    assert found["measured"] == "cxi0: down; wanted: up"
    assert found["remedy"] is not None


def test_a_host_check_that_did_not_run_proves_nothing(nodes: Nodes) -> None:
    (nodes.run.root / ANSWER.format("beta")).unlink()
    nodes.judged(3)
    assert nodes.status("host_check/skipped") == "inconclusive"


def test_a_command_that_did_not_run_proves_nothing(nodes: Nodes) -> None:
    nodes.answers("beta", lambda answer: answer["commands"].pop("services cxi0"))
    nodes.judged(3)
    assert nodes.status("host_check/slingshot-service/beta/cxi0") == "inconclusive"


def test_an_answer_of_another_host_or_of_before_the_plan_is_as_none(nodes: Nodes) -> None:
    nodes.answers("alpha", put("collected", "2025-12-31T23:54:59Z"))
    nodes.answers("beta", put("hostname", "alpha"))
    nodes.judged(3)
    found = nodes.check("host_check/skipped")
    assert (found["status"], found["evidence"]) == ("inconclusive", ["alpha", "beta"])
    assert found["measured"].endswith(
        "of 2 hosts: alpha: its time, 2025-12-31T23:54:59Z, is before that of the plan,"
        " 2026-01-01T00:00:00Z"
    )


def test_a_cxi_flow_needs_its_checks_on_any_fabric(nodes: Nodes) -> None:
    """Two words for one node agree."""

    def renamed(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["fabric"] = "ss11"

    nodes.run.edit("plan.json", renamed)
    (nodes.run.root / ANSWER.format("alpha")).unlink()
    nodes.run.edit("raw/beta/environment.json", put("hostname", "nid9"))
    nodes.answers("beta", put("hostname", "nid9"))
    nodes.link_is_down()
    nodes.judged(1)
    assert nodes.status(LINK_STATE) == "fail"
    skipped = nodes.check("host_check/skipped")
    assert (skipped["status"], skipped["evidence"]) == ("inconclusive", ["alpha"])
