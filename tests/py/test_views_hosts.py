"""`perchctl hosts`: findings on hosts without a run."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from selftest.runs.answers import answer

from perch.plan.hosts import variables_of_a_host
from tests.py.conftest import FIXTURES, Ended

TOP = Path(__file__).parents[2]

Asked = Callable[[Any], Ended]

#: The fixture has nothing of a node but its NIC.
NIC = {"perch_fabric": "slingshot", "perch_devices": ["cxi0"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two nodes' answers."""
    for node in ("nid1", "nid2"):
        place = tmp_path / "raw" / node
        place.mkdir(parents=True)
        shutil.copy(FIXTURES / "slingshot/host_check.json", place)
    return tmp_path


@pytest.fixture
def hosts(folder: Path, perchctl: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Judges the folder: `hosts(VARIABLES)`, or a text that is given as it is."""

    def ask(given: Any) -> Ended:
        text = given if isinstance(given, str) else json.dumps(given)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return perchctl("hosts", folder)

    return ask


def change(folder: Path, host: str, command: str, said: str) -> None:
    file = folder / "raw" / host / "host_check.json"
    answer = json.loads(file.read_text())
    answer["commands"][command]["stdout"] = said
    file.write_text(json.dumps(answer))


def good(ended: Ended, host: str) -> int:
    return sum(line.startswith(f"ok: {host}: slingshot-") for line in ended.stdout.splitlines())


def test_whole_hosts_have_nothing_bad(hosts: Asked) -> None:
    ended = hosts({"nid1": NIC, "nid2": NIC})
    assert [good(ended, "nid1"), good(ended, "nid2")] == [11, 11]
    assert "BAD" not in ended.stdout


def test_a_bad_finding_fails_and_says_what_to_do(folder: Path, hosts: Asked) -> None:
    change(folder, "nid2", "retry-handler cxi0", "failed")
    ended = hosts({"nid1": NIC, "nid2": NIC})
    assert ended.code == 1
    assert "BAD: nid2: slingshot-retry-handler: cxi0: failed; wanted: active; " in ended.stdout
    assert ended.stdout.endswith("FAIL: 1 bad finding\n")


def test_what_a_host_says_stays_on_its_line(folder: Path, hosts: Asked) -> None:
    change(folder, "nid1", "retry-handler cxi0", "\nPASS: 99 findings\x1b[2J")
    ended = hosts({"nid1": NIC})
    assert not any(line.startswith("PASS: 99") for line in ended.stdout.splitlines())
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize("damage", ['{"schema": "perch.host_check/1"', "{}", ""])
def test_a_damaged_answer_proves_nothing(folder: Path, hosts: Asked, damage: str) -> None:
    (folder / "raw/nid2/host_check.json").write_text(damage)
    ended = hosts({"nid1": NIC, "nid2": NIC})
    assert ended.code == 3
    assert "NOT KNOWN: nid2: the host's checks did not run, or left nothing" in ended.stdout


def test_a_host_that_is_only_simulated_is_not_judged(hosts: Asked) -> None:
    ended = hosts({"nid3": {"perch_fabric": "slingshot", "perch_scope": "simulated"}})
    assert (ended.code, ended.stdout.splitlines()[-1]) == (
        3, "INCONCLUSIVE: there was nothing to check",
    )  # fmt: skip


@pytest.mark.parametrize("means", [{"perch_backends": ["tcp", "cxi"]}, {"perch_tools": ["cxi"]}])
def test_a_cassini_nic_is_checked_on_any_fabric(hosts: Asked, means: dict[str, Any]) -> None:
    assert good(hosts({"nid1": {"perch_fabric": "ethernet"} | means}), "nid1") == 11


@pytest.mark.parametrize("chosen", [["cxi*"], ["active"], [{"name": "0000:21:00.0"}, "cxi7"]])
def test_what_was_read_for_a_choice_of_devices_is_judged(hosts: Asked, chosen: list[Any]) -> None:
    wanted = hosts({"nid1": NIC | {"perch_devices": []}})
    assert hosts({"nid1": NIC | {"perch_devices": chosen}}) == wanted
    assert hosts({"nid1": NIC | {"perch_devices": ["cxi7"]}}) != wanted


def test_a_name_that_no_folder_has_reads_no_file(folder: Path, hosts: Asked) -> None:
    (folder / "raw/nid1/host_check.json").rename(folder / "raw/host_check.json")
    assert hosts({"..": NIC, "": NIC, "nid1/../nid2": NIC}).code == 3


@pytest.mark.parametrize("given", ['{"nid1":', "", "[]", '{"nid1": 1}', "{} {}"])
def test_variables_that_are_no_object_are_refused(hosts: Asked, given: str) -> None:
    ended = hosts(given)
    assert (ended.code, ended.stdout) == (2, "")
    assert "standard input is not the JSON object {HOST: {perch_fabric, ...}}" in ended.stderr


def test_a_variable_of_another_type_is_refused_by_host(hosts: Asked) -> None:
    ended = hosts({"nid1": NIC | {"perch_port": "high"}})
    assert ended.code == 2
    assert "perchctl hosts: host nid1: " in ended.stderr


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ({"perch_fabric": 5}, "perch_fabric: expected string, got whole number"),
        ({"perch_address": 5}, "perch_address: expected string, got whole number"),
        ({"perch_devices": [5]}, "perch_devices[0]: expected object, got whole number"),
        ({"perch_devices": 5}, "perch_devices: expected list, got whole number"),
        ({"perch_tools": "perch"}, "perch_tools: expected list, got string"),
        ({"perch_link_gbit_s": "fast"}, "perch_link_gbit_s: expected"),
        ({"perch_fabric_traits": {"losless": True}}, "perch_fabric_traits: unknown key 'losless'"),
    ],
)
def test_a_type_that_does_not_fit_is_explained(
    hosts: Asked, variable: dict[str, Any], words: str
) -> None:
    ended = hosts({"nid1": NIC | variable})
    assert (ended.code, ended.stdout) == (2, "")
    assert f"host nid1: {words}" in ended.stderr
    assert "; correct it in the inventory" in ended.stderr


@pytest.mark.parametrize("name", ["perch_port", "perch_iperf3_port"])
@pytest.mark.parametrize("port", [0, -1, 70000, 1.5, True, "", "18600x", "0x10"])
def test_a_port_that_is_none_is_refused_by_name(hosts: Asked, name: str, port: object) -> None:
    ended = hosts({"nid1": NIC | {name: port}})
    assert (ended.code, ended.stdout) == (2, "")
    assert f"host nid1: {name} is '{port}', not a port from 1 to 65535" in ended.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("perch_devcies", "there is no variable 'perch_devcies', did you mean 'perch_devices'?"),
        ("perch_cxi_prot", "did you mean 'perch_cxi_port'?"),
        ("perch_zzz", "there is no variable 'perch_zzz'"),
    ],
)
def test_an_unknown_variable_is_refused_with_the_nearest_word(
    hosts: Asked, name: str, words: str
) -> None:
    ended = hosts({"nid1": NIC, "nid2": NIC | {name: 1}})
    assert (ended.code, ended.stdout) == (2, "")
    assert "host nid2: " in ended.stderr
    assert words in ended.stderr


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ("rocee", "there is no perch_fabric 'rocee'; give loopback or ethernet or roce or "),
        ("", "there is no perch_fabric ''; give "),
        (None, "perch_fabric is not set; it says what is checked; give "),
    ],
)
def test_a_fabric_that_is_none_is_refused(hosts: Asked, fabric: str | None, words: str) -> None:
    ended = hosts({"nid1": NIC, "nid2": NIC | {"perch_fabric": fabric}})
    assert (ended.code, ended.stdout) == (2, "")
    assert f"host nid2: {words}" in ended.stderr


def test_all_variables_of_an_inventory_are_known(hosts: Asked) -> None:
    """Those of the role's argument_specs.yml, and what is no variable of Perch."""
    specs = (TOP / "roles/inventory_check/meta/argument_specs.yml").read_text()
    of_hosts = yaml.safe_load(specs)["argument_specs"]["host"]["options"]
    known = variables_of_a_host()
    assert {name for name in of_hosts if name.startswith("perch_")} == set(known)
    assert hosts({"nid1": NIC | {"ansible_host": "x", "perch_port": None}}).code != 2


def test_ports_may_be_text(hosts: Asked) -> None:
    # as from Ansible's command line
    assert "18700/tcp" in hosts({"nid1": NIC | {"perch_port": "18700"}}).stdout


@pytest.mark.parametrize(
    ("said", "pfc", "words"),
    [
        ({"perch_link_gbit_s": 200}, [3], "nic-link-speed: mlx5_0: 100 Gb/s of 100 that"),
        ({"perch_fabric_traits": {"lossless": True}}, [],
         "qos-lossless: enp1s0: flow control is off; perch_fabric_traits says lossless"),
        ({"perch_fabric_traits": {"lossless": False}}, [3],
         "qos-lossless: enp1s0: flow control is on for 3; perch_fabric_traits says not lossless"),
    ],
)  # fmt: skip
def test_what_the_inventory_says_of_the_fabric_is_compared(
    folder: Path, hosts: Asked, said: dict[str, Any], pfc: list[int], words: str
) -> None:
    """Before anything is measured."""
    place = folder / "raw/nid1/host_check.json"
    place.write_text(json.dumps(answer("nid1", 1, "2026-01-01T00:00:10Z")))
    on = [number in pfc for number in range(8)]
    change(folder, "nid1", "dcb-pfc enp1s0", json.dumps({"pfc_cap": 8, "prio_pfc": on}))
    nic = {"name": "mlx5_0", "netdev": "enp1s0"}
    ended = hosts({"nid1": {"perch_fabric": "roce", "perch_devices": [nic]} | said})
    assert ended.code == 1
    assert f"BAD: nid1: {words}" in ended.stdout


TRAITS = {"perch_fabric": "roce", "perch_devices": [{"name": "mlx5_0", "netdev": "enp1s0"}]}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"perch_fabric_traits": {"lossless": True}},
         "host nid1: qos-lossless: enp1s0: flow control is off; perch_fabric_traits says lossless; "
         "wanted: on for a priority; limits of drops and retransmissions rest on it. "
         "correct perch_fabric_traits, or the hosts' flow control (host_tune_pfc_priorities)"),
        ({"perch_fabric_traits": {"lossless": False}}, ""),
        ({}, ""),
        ({"perch_fabric_traits": {"lossless": True}, "perch_scope": "software"}, ""),
    ],
)  # fmt: skip
def test_a_contradicted_trait_alone_is_told_before_a_run_measures(
    folder: Path, perchctl: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch,
    said: dict[str, Any], words: str,
) -> None:  # fmt: skip
    place = folder / "raw/nid1/host_check.json"
    place.write_text(json.dumps(answer("nid1", 1, "2026-01-01T00:00:10Z")))
    off = json.dumps({"pfc_cap": 8, "prio_pfc": [False] * 8})
    change(folder, "nid1", "dcb-pfc enp1s0", off)
    given = json.dumps({"nid1": TRAITS | said}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    ended = perchctl("hosts", "--traits", folder)
    assert (ended.code, ended.stdout.strip()) == (1 if words else 0, words)
