"""What fails on a host or a switch is named as a fault, and what passes as a claim."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perch.checks.hosts import titled
from perch.judge import findings
from perch.judge.findings import Question

HOSTS = Path(__file__).parents[1] / "fixtures/hosts"
RECORDED = sorted(set(HOSTS.glob("*.json")) - {HOSTS / "nic-cases.json"})

#: A value for each setting that can be wanted, so that each is judged.
WANTED: dict[str, Any] = {
    "governor": "performance", "energy_preference": "performance", "turbo": True, "smt": False,
    "idle_latency_us": 1, "isolated_cpus": "1", "irqbalance": False, "iommu": "passthrough",
    "hugepages_2m": 1024, "hugepages_1g": 1, "transparent_hugepages": "never",
    "numa_balancing": 0, "memlock": "unlimited", "sysctls": {"net.core.rmem_max": 1},
    "pfc_priorities": [3], "ecn_priorities": [3], "roce_tos": 104, "dscp_trust": "dscp",
    "dscp_priority": {"26": 3}, "ets": {"prio_tc": {"3": 1}}, "pause": "off", "dcbx": "host",
    "pfc_watchdog": True, "firmware": "1", "mtu": 9000, "path_mtu": 4096,
    "ring_rx": 1024, "ring_tx": 1024, "coalescing": {"rx-usecs": 8}, "max_read_request": 4096,
    "relaxed_ordering": True,
}  # fmt: skip


def _found(fabric: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    questions = [
        Question(
            list(findings.AREAS),
            {"name": file.stem, "fabric": fabric, "scope": "hardware", "wanted": wanted,
             "ports": [18600], "devices": []},
            json.loads(file.read_bytes()),
        )
        for file in RECORDED
    ]  # fmt: skip
    return [one for of_host in findings.judged(questions).values() for one in of_host]


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return [*_found("roce", WANTED), *_found("infiniband", {})]


def test_each_judged_finding_has_a_claim_and_each_bad_one_a_fault(
    found: list[dict[str, Any]],
) -> None:
    judged = [one for one in found if one["status"] in ("ok", "bad")]
    assert len({one["id"] for one in judged}) > 80
    assert not {one["id"] for one in judged if "title" not in one}
    assert not {one["id"] for one in judged if ("fault" in one) != (one["status"] == "bad")}
    assert not [one for one in judged if one.get("fault") == one["title"]]


def test_a_finding_that_is_only_shown_is_named_by_its_id(found: list[dict[str, Any]]) -> None:
    shown = [one for one in found if one["status"] not in ("ok", "bad")]
    assert shown
    assert not [one for one in shown if "title" in one or "fault" in one]


def test_a_bad_finding_fails_with_its_fault_and_passes_with_its_claim() -> None:
    one = {"id": "machine-link-flaps", "title": "the link is stable", "fault": "the link flaps"}
    assert titled(one, "Hosts", "fail") == ("Hosts: the link is stable", "Hosts: the link flaps")
    assert titled(one, "Hosts", "pass")[0] == "Hosts: the link is stable"
    assert titled({"id": "nic-mtu"}, "Hosts", "not_judged")[0] == "Hosts: nic mtu"
