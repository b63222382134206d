"""Prints what jq finds on every host and switch of tests/fixtures: one JSON document."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP))

from perch.judge import findings, switches  # noqa: E402

FIXTURES = TOP / "tests/fixtures"
WANTED = {
    "hugepages_2m": 4096, "governor": "performance", "memlock": "unlimited", "mtu": 9000,
    "sysctls": {"net.core.rmem_max": 268435456}, "relaxed_ordering": True, "irq_local": True,
    "pfc_priorities": [3], "roce_tos": 106, "dscp_trust": "dscp", "dscp_priority": {"26": 3},
    "ecn_priorities": [3], "clock_skew_s": 1,
}  # fmt: skip


def question(file: Path, fabric: str) -> findings.Question:
    host = {
        "name": f"{file.stem}-{fabric}", "fabric": fabric, "scope": "hardware", "wanted": WANTED,
        "ports": [18600, 5201], "devices": [],
    }  # fmt: skip
    areas = findings.areas(machine=True, slingshot=fabric == "slingshot")
    return findings.Question(areas, host, json.loads(file.read_text()))


def reading(folder: Path, phase: str) -> dict[str, Any]:
    """What a switch said, as tests/fixtures/switches/reading makes it."""
    answers = {
        file.name: {"exit": 0, "stdout": file.read_text(), "stderr": ""}
        for file in sorted((folder / phase).iterdir())
    }
    return {
        "schema": "perch.switch/1", "run": "r", "switch": folder.name, "phase": phase,
        "provider": folder.name.partition("-")[0], "commands": answers,
        "collected": f"2026-01-01T00:0{1 if phase == 'after' else 0}:30.000000Z",
    }  # fmt: skip


def switch(folder: Path) -> dict[str, Any]:
    planned = {
        "provider": folder.name.partition("-")[0], "scope": "hardware", "ports": {},
        "priorities": [3],
    }  # fmt: skip
    return {
        "name": folder.name, "planned": planned, "before": reading(folder, "before"),
        "after": reading(folder, "after"),
    }  # fmt: skip


def document() -> dict[str, Any]:
    hosts_of_makers = sorted((FIXTURES / "hosts").glob("*.json"))
    files = [file for file in hosts_of_makers if file.stem != "nic-cases"]
    asked = [
        question(file, fabric)
        for file in [*files, FIXTURES / "slingshot/host_check.json"]
        for fabric in ("roce", "infiniband", "slingshot")
    ]
    hosts = {
        name: {"name": name, "hostname": host, "scope": "hardware", "netdevs": [], "rates": []}
        for name, host in (("node1", "node1"), ("node2", "n2.example"))
    }
    folders = [one for one in sorted((FIXTURES / "switches").iterdir()) if one.is_dir()]
    found = switches.judged({"run": "r", "switches": [*map(switch, folders)], "hosts": hosts})
    return {"hosts": findings.judged(asked), "switches": msgspec.to_builtins(found)}


if __name__ == "__main__":
    json.dump(document(), sys.stdout, indent=1)
