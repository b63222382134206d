"""A reading that is missing has a remedy that brings the reading, and no remedy of a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from perch.checks.hosts import finding_status
from perch.home import HOME
from perch.judge import findings
from perch.judge.findings import Question
from tests.py.test_checks_host_words import RECORDED, WANTED

Document = dict[str, Any]

FIXTURES = Path(__file__).parents[1] / "fixtures"
SLINGSHOT = FIXTURES / "slingshot/host_check.json"
#: How a command may give no answer.
ANSWERS: dict[str, Document] = {
    "missing": {"exit": None, "stdout": "", "stderr": ""},
    "fails": {"exit": 1, "stdout": "", "stderr": "permission denied"},
    "hangs": {"exit": 124, "stdout": "", "stderr": ""},
    "says nothing": {"exit": 0, "stdout": "", "stderr": ""},
}
#: Systems by their name in tests/fixtures/platforms, and the role's list of packages.
SYSTEMS = {"ubuntu_2404": "Debian", "rocky_9": "RedHat_9", "redhat_9": "RedHat_9"}
SYSTEMS["sles_15"] = "Suse_15"
#: Of which the role installs no package: parts of each system, and what only some sites use.
OTHERS = {"chronyc", "nft", "iptables-save", "systemctl", "dcb", "devlink", "ip"}
#: Packages of no distribution.
OF_VENDORS = {"nvidia-smi of the driver's release", "mlxlink", "cxi_service", "cxi_stat"}
#: What says how a reading is had, or what the site knows and has not told.
READING = re.compile(
    r"Install \S|As root \(ansible_become: true\), run \S|Run the check as root|Start lldpd"
    r"|Set perch_link_gbit_s|correct perch_fabric_traits|name it in perch_devices"
)


def _whole(file: Path) -> Document:
    answer: Document = json.loads(file.read_bytes())
    return {"files": {}, "later": {}, "links": {}, "commands": {}} | answer


def _silent(raw: Document, how: Document, os_release: str | None = None) -> Document:
    """The answer of a host whose commands all answer so."""
    commands = {name: said | how for name, said in raw["commands"].items()}
    files = raw["files"] | ({"/etc/os-release": os_release} if os_release else {})
    return raw | {"commands": commands, "files": files}


def _changed(raw: Document) -> Iterator[tuple[str, Document]]:
    yield "as recorded", raw
    for name, how in ANSWERS.items():
        yield name, _silent(raw, how)
    yield "no file", raw | {"files": {}, "later": {}}
    yield "damaged", raw | {"files": dict.fromkeys(raw["files"], "?"), "later": {}}


def _judged(fabric: str, wanted: Document, hosts: dict[str, Document]) -> list[Document]:
    about = {"fabric": fabric, "scope": "hardware", "wanted": wanted, "ports": [18600],
             "devices": [], "traits": {}, "gpu": True}  # fmt: skip
    questions = [
        Question(list(findings.AREAS), {"name": name, **about}, raw) for name, raw in hosts.items()
    ]
    return [one for of_host in findings.judged(questions).values() for one in of_host]


@pytest.fixture(scope="module")
def unknown() -> list[Document]:
    hosts = {
        f"{file.stem}: {name}": raw
        for file in [*RECORDED, SLINGSHOT]
        for name, raw in _changed(_whole(file))
    }
    roce, infiniband = _judged("roce", WANTED, hosts), _judged("infiniband", {}, hosts)
    return [one for one in (*roce, *infiniband) if one["status"] == "unknown"]


def test_no_unknown_has_the_remedy_of_a_fault(unknown: list[Document]) -> None:
    assert len({one["id"] for one in unknown}) > 110
    wrong = {f"{one['id']}: {one['remedy']}" for one in unknown}
    assert not {one for one in wrong if not READING.match(one.partition(": ")[2])}


def test_a_missing_tool_leaves_its_check_inconclusive_on_hardware_alone(
    unknown: list[Document],
) -> None:
    lacking = [one for one in unknown if one["remedy"].startswith("Install ")]
    needed = [one for one in lacking if one["id"] != "machine-firewall"]
    assert {"nic-bit-errors", "nic-adaptive-routing", "machine-memory-modules", "nic-offloads",
            "qos-pfc", "qos-pause", "nic-firmware-stored", "slingshot-service",
            "nic-link-speed"} <= {one["id"] for one in needed}  # fmt: skip
    assert {finding_status(one, "hardware") for one in needed} == {"inconclusive"}
    assert {finding_status(one, "software") for one in needed} == {"not_judged"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_package_has_the_name_of_the_hosts_own_system(system: str) -> None:
    os_release = (FIXTURES / f"platforms/{system}/os-release").read_text()
    hosts = {
        file.stem: _silent(_whole(file), ANSWERS["missing"], os_release)
        for file in [*RECORDED, SLINGSHOT]
    }
    found = [one for fabric in ("roce", "infiniband") for one in _judged(fabric, {}, hosts)]
    text = {one["remedy"] for one in found if one["status"] == "unknown"}
    pattern = re.compile(r"Install (?P<tool>.+?)( \(package (?P<name>[^ )]+)\))?, and check again")
    said = [match.groupdict() for one in text if (match := pattern.fullmatch(one))]
    names = {str(one["tool"]): one["name"] for one in said}
    named = {tool for tool, name in names.items() if name}
    assert names.keys() - named <= OF_VENDORS | {"bash", "head"}
    assert {"ethtool", "mstlink", "mstreg", "dmidecode", "ibv_devinfo", "smpquery", "lldpctl",
            "fi_info"} <= named  # fmt: skip
    file = HOME / f"roles/engine/vars/{SYSTEMS[system]}.yml"
    lists = yaml.safe_load(file.read_text())
    ours = {*lists["__engine_packages_run"], *lists["__engine_packages_neighbours"]}
    assert {str(names[tool]) for tool in named - OTHERS} <= ours
