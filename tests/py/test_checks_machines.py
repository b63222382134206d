"""Two hosts that are one machine, or one of whose environments is the other's."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.judging import Change, Document, Run, check_of, put, status

MakeRun = Callable[[str], Path]


def hardware(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["scope"] = "hardware"


@pytest.mark.parametrize(
    ("scope", "of_beta", "expected"),
    [
        ("hardware", "a", "inconclusive"),
        ("hardware", None, "inconclusive"),
        ("hardware", "A", "inconclusive"),
        ("hardware", " a\n", "inconclusive"),
        ("hardware", "b", "pass"),
        ("software", "a", None),
    ],
)
def test_two_hosts_of_hardware_with_one_boot_id_are_one_machine(
    run_copy: MakeRun, scope: str, of_beta: str | None, expected: str | None
) -> None:
    run = Run(run_copy("rxe"))
    if scope == "hardware":
        run.edit("plan.json", hardware)
    run.edit("raw/alpha/environment.json", put("boot_id", "a"))
    run.edit("raw/beta/environment.json", put("boot_id", of_beta))
    assert status(run.judge(), "machines") == expected


def one_device(**device: str) -> Change:
    def change(plan: Document) -> None:
        hardware(plan)
        for host in plan["hosts"].values():
            host["devices"] = [device]

    return change


@pytest.mark.parametrize(
    ("planned", "changes", "words"),
    [
        (one_device(name="rxe0", netdev="eth1"), (), None),
        (one_device(name="rxe7"), (), "beta: environment.json names no device rxe7"),
        (one_device(name="rxe0", netdev="eth7"), (), "beta: environment.json names no device eth7"),
        (hardware, (put("rdma", []),), "beta: environment.json names no device rxe0"),
    ],
)
def test_a_host_has_the_devices_that_the_plan_gives_it(
    run_copy: MakeRun, planned: Change, changes: tuple[Change, ...], words: str | None
) -> None:
    run = Run(run_copy("rxe"))
    run.edit("plan.json", planned)
    run.edit("raw/beta/environment.json", *changes)
    found = check_of(run.judge(), "machines/devices")
    assert found.status == ("inconclusive" if words else "pass")
    assert (words or "2") in str(found.measured)


@pytest.mark.parametrize(
    ("interface", "is_known"), [("eth1", True), ("", False), ("eth7", False), ("lo", False)]
)
def test_an_interface_of_a_host_of_hardware_has_its_address(
    run_copy: MakeRun, interface: str, is_known: bool
) -> None:
    run = Run(run_copy("rxe"))
    run.edit("plan.json", hardware)
    run.edit("raw/beta/environment.json", put("address_interface", interface))
    words = "no interface of host beta has the address 192.0.2.2"
    found = [one for one in run.judge().checks if words in str(one.measured)]
    assert bool(found) is not is_known


def test_an_environment_of_another_host_counts_as_missing(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    shutil.copy(run.root / "raw/alpha/environment.json", run.root / "raw/beta/environment.json")
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "host/beta")) == ("INCONCLUSIVE", "inconclusive")
    assert json.loads((run.root / "verdict.json").read_text())["verdict"] == "INCONCLUSIVE"


def test_a_device_that_has_another_address_in_one_result_is_no_evidence(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    run.flow("verbs-send-latency").prints(put("server.address", "192.0.2.77"))
    found = check_of(run.judge(), "machines/addresses")
    assert found.status == "inconclusive"
    assert found.measured == "beta: rxe0 has 192.0.2.2, 192.0.2.77"


def _says(run: Run, test: str, pattern: str, words: str) -> None:
    """In the output of the client, where it stands at least once."""
    end = run.flow(test)
    said, count = re.subn(pattern, words, end.read(), flags=re.MULTILINE)
    assert count
    end.write(said)


def test_a_device_that_has_another_gid_in_one_output_of_perftest_is_no_evidence(
    run_copy: MakeRun,
) -> None:
    run = Run(run_copy("rxe"))
    _says(run, "write-latency", "192:00:02:01", "192:00:02:09")
    found = check_of(run.judge(), "machines/addresses")
    assert found.status == "inconclusive"
    assert found.measured == "alpha: rxe0 has ::ffff:192.0.2.1, ::ffff:192.0.2.9"


@pytest.mark.parametrize(("lid", "status_of_lids"), [("0x2a", None), ("0x07", "inconclusive")])
def test_perftest_names_a_lid_where_it_has_no_gid(
    run_copy: MakeRun, lid: str, status_of_lids: str | None
) -> None:
    run = Run(run_copy("rxe"))
    for test, of_alpha in (("write-latency", lid), ("read-latency", "0x2a")):
        _says(run, test, "^ GID: .*\n", "")
        _says(run, test, "^ GID index .*\n", "")
        _says(run, test, "local address: LID 0000", f"local address: LID {of_alpha}")
    assert status(run.judge(), "machines/addresses") == status_of_lids


def test_an_output_without_a_gid_contradicts_none(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    _says(run, "write-latency", "^ GID: .*\n", "")
    assert status(run.judge(), "machines/addresses") is None


def test_a_gid_of_another_index_is_another_address(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    _says(run, "write-latency", "192:00:02:01", "192:00:02:09")
    _says(run, "write-latency", "^ GID index +: 1", " GID index       : 3")
    assert status(run.judge(), "machines/addresses") is None
