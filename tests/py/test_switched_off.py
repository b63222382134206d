"""Checks that a plan or an inventory switches off: hardware does not pass without them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.checks import RunView
from perch.judge.hosts import WANTED, HostFacts
from perch.judge.switches import SwitchFacts
from perch.model.plan import PlanHost, PlanSwitch
from perch.model.verdict import Check
from tests.py.checks_built import found, record, run_of
from tests.py.judging import Document, Run, check_of, status

ROLE = Path(__file__).parents[2] / "roles/host_check"
#: Variables of the role that say nothing about a host.
PLACES = {"run_dir", "runs_dir", "verdict", "home", "python"}

# ---- hosts ---------------------------------------------------------------------------------------


def on_hardware(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["scope"] = "hardware"


@pytest.mark.parametrize("scope", ["hardware", "software"])
def test_hardware_owes_its_host_checks_whatever_the_plan_says(
    run_copy: Callable[[str], Path], scope: str
) -> None:
    run = Run(run_copy("rxe"))
    assert not json.loads((run.root / "plan.json").read_text()).get("host_checks")
    if scope == "hardware":
        run.edit("plan.json", on_hardware)
    verdict = run.judge()
    if scope == "software":
        assert status(verdict, "host_check/skipped") is None
        return
    check = check_of(verdict, "host_check/skipped")
    assert (verdict.verdict, check.status) == ("INCONCLUSIVE", "inconclusive")
    assert check.evidence == ["alpha", "beta"]


ANSWER: Document = {
    "schema": "perch.host_check/1",
    "collected": "2026-11-21T14:10:00Z",
    "files": {"/proc/uptime": "1 1"},
    "later": {},
    "links": {},
    "commands": {"kernel": {"exit": 0}},
}
FILE = "inputs/hosts/alpha.json"


def unchecked(run: Run, given: Document, scope: str) -> str:
    """Why alpha's answer is not judged, where its inputs say this."""
    run.edit("plan.json", lambda plan: plan.update(host_checks=True))
    if scope == "hardware":
        run.edit("plan.json", on_hardware)
    (run.root / "inputs/hosts").mkdir()
    for host in ("alpha", "beta"):
        wanted = {"schema": "perch.wanted/1", "host": host, "wanted": {"mtu": 9000}}
        wanted |= given if host == "alpha" else {}
        (run.root / f"inputs/hosts/{host}.json").write_text(json.dumps(wanted))
        said = json.loads((run.root / f"raw/{host}/environment.json").read_text())
        answer = json.dumps(ANSWER | {"hostname": said["hostname"]})
        (run.root / f"raw/{host}/host_check.json").write_text(answer)
    verdict = run.judge()
    place = "" if scope == "hardware" else "/simulated"
    if status(verdict, f"host_check/skipped{place}") is None:
        return ""
    check = check_of(verdict, f"host_check/skipped{place}")
    assert (check.status == "inconclusive") == (scope == "hardware")
    return str(check.measured).partition("of 1 host: alpha: ")[2]


@pytest.mark.parametrize(
    ("given", "scope", "why"),
    [
        ({}, "hardware", ""),
        (
            {"wanted": {"pfc_prioritys": [3], "mtu": 9000}},
            "hardware",
            f"{FILE} has the unknown setting 'pfc_prioritys', did you mean 'pfc_priorities'?",
        ),
        (
            {"wanted": {"pfc_prioritys": [3]}},
            "software",
            f"{FILE} has the unknown setting 'pfc_prioritys', did you mean 'pfc_priorities'?",
        ),
        ({"wanted": {}}, "hardware", f"all wanted settings in {FILE} are empty"),
        (
            {"wanted": {"mtu": None, "sysctls": {}}},
            "hardware",
            f"all wanted settings in {FILE} are empty",
        ),
        ({"wanted": {}}, "software", ""),
        ({"host": "beta"}, "hardware", f"{FILE} has no wanted settings"),
    ],
)
def test_wanted_settings_are_the_hosts_own_known_and_some(
    run_copy: Callable[[str], Path], given: Document, scope: str, why: str
) -> None:
    assert unchecked(Run(run_copy("rxe")), given, scope) == why


def test_the_judge_knows_every_setting_of_the_role() -> None:
    defined = (ROLE / "meta/argument_specs.yml").read_text()
    settings = set(re.findall(r"^      host_check_([a-z0-9_]+):", defined, re.MULTILINE))
    assert settings - PLACES == WANTED


# ---- switches ------------------------------------------------------------------------------------

LEAF = PlanSwitch(provider="sonic", scope="hardware", priorities=[3])


def switched(
    planned: dict[str, PlanSwitch] | None, wanted: Any = None, **of_host: Any
) -> dict[str, Check]:
    """What is found where both hosts hang on leaf1; `wanted`: their lossless priorities."""
    run: RunView = run_of([record("t/a/b/0/1", scope="hardware")])
    host = PlanHost(address="", fabric="roce", scope="hardware", port=1, switch="leaf1")
    for name in run.plan.hosts:
        run.plan.hosts[name] = msgspec.structs.replace(host, **of_host)
        run.hosts[name] = HostFacts(wanted={"pfc_priorities": wanted})  # type: ignore[index]
    run.plan.switches = planned
    if planned:
        ports = [{"host": host, "port": f"port of {host}"} for host in run.plan.hosts]
        rows = [{"name": name, "scope": "hardware", "rows": ports} for name in planned]
        object.__setattr__(run, "switches", SwitchFacts(rows=rows))
    return found(run, "switch")


@pytest.mark.parametrize(
    ("planned", "of_host", "expected"),
    [
        (None, {}, "inconclusive"),
        ({"leaf2": LEAF}, {}, "inconclusive"),
        ({"leaf1": LEAF}, {}, None),
        # one that stands for all switches of its fabric
        ({"fabric": PlanSwitch("infiniband", "hardware")}, {"fabric": "infiniband"}, None),
        (None, {"fabric": "slingshot"}, "not_judged"),
        (None, {"scope": "software"}, None),
        (None, {"switch": None}, None),
    ],
)
def test_the_switch_that_a_host_of_hardware_hangs_on_is_read(
    planned: dict[str, PlanSwitch] | None, of_host: Document, expected: str | None
) -> None:
    place = "/slingshot" if of_host.get("fabric") == "slingshot" else ""
    check = switched(planned, **of_host).get(f"switch/unread{place}")
    assert (check and check.status) == expected
    if check and expected == "inconclusive":
        assert check.measured == "leaf1, of 2 hosts"


@pytest.mark.parametrize(
    ("of_switch", "of_hosts", "expected"),
    [
        ([3], [3], "pass"),
        ([3], None, "pass"),
        ([3, 4], [3], "pass"),
        ([], [], "pass"),
        ([], [3], "inconclusive"),
        ([4], [3], "inconclusive"),
        ([], None, "inconclusive"),
    ],
)
def test_switches_are_judged_by_the_lossless_priorities_that_hosts_want(
    of_switch: list[int], of_hosts: list[int] | None, expected: str
) -> None:
    leaf = msgspec.structs.replace(LEAF, priorities=of_switch)
    checks = switched({"leaf1": leaf}, of_hosts)
    assert checks["switch/priorities"].status == expected
    soft = msgspec.structs.replace(leaf, scope="software")
    assert "switch/priorities" not in switched({"leaf1": soft}, of_hosts)
    infiniband = msgspec.structs.replace(leaf, provider="infiniband")
    assert "switch/priorities" not in switched({"leaf1": infiniband}, of_hosts)


@pytest.mark.parametrize(
    ("hostnames", "named", "expected"),
    [
        (("node1", "node2"), {}, "inconclusive"),
        ((None, None), {}, "inconclusive"),
        # a card of several hosts, as the inventory says
        (("node1", "node2"), {"a": ["Ethernet1"], "b": ["Ethernet1"]}, None),
        (("node1", "node2"), {"a": ["Ethernet1"]}, "inconclusive"),
        # one machine under two names
        (("node1", "node1"), {}, None),
    ],
)
def test_a_port_leads_to_one_machine_unless_the_inventory_says_more(
    hostnames: tuple[str | None, str | None], named: dict[str, list[str]], expected: str | None
) -> None:
    run: RunView = run_of([record("t/a/b/0/1", scope="hardware")])
    for name, hostname in zip(("a", "b"), hostnames, strict=True):
        run.hosts[name] = HostFacts(hostname=hostname)  # type: ignore[index]
    run.plan.switches = {"leaf1": msgspec.structs.replace(LEAF, ports=named)}
    ports = [{"host": name, "port": "Ethernet1"} for name in ("a", "b")]
    rows = [{"name": "leaf1", "scope": "hardware", "rows": ports}]
    object.__setattr__(run, "switches", SwitchFacts(rows=rows))
    check = found(run, "switch").get("switch/shared")
    assert (check and check.status) == expected
    if check:
        assert check.measured == "leaf1 Ethernet1 leads to a, b"
