"""Two hosts that are one machine, or one of whose environments is the other's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.judging import Document, Run, put, status

MakeRun = Callable[[str], Path]


def hardware(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["scope"] = "hardware"


@pytest.mark.parametrize(
    ("scope", "of_beta", "expected"),
    [
        ("hardware", "a", "inconclusive"),
        ("hardware", None, "inconclusive"),
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


def test_an_environment_of_another_host_counts_as_missing(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    shutil.copy(run.root / "raw/alpha/environment.json", run.root / "raw/beta/environment.json")
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "host/beta")) == ("INCONCLUSIVE", "inconclusive")
    assert json.loads((run.root / "verdict.json").read_text())["verdict"] == "INCONCLUSIVE"
