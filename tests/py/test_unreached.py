"""Hosts that did not answer: nothing ran on them, so nothing says what they are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from selftest.runs.slingshot import slingshot

from tests import raw_lines
from tests.py.conftest import Ended
from tests.py.judging import Run, check_of, put, status

Perchctl = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two nodes with Cassini NICs, planned as hardware."""
    root = tmp_path / "run"
    root.mkdir()
    slingshot(root)
    return Run(root)


def test_hosts_that_did_not_answer_are_no_simulated_devices(run: Run) -> None:
    shutil.rmtree(run.root / "raw")
    verdict = run.judge()
    assert (verdict.verdict, verdict.scope) == ("INCONCLUSIVE", "hardware")
    assert status(verdict, "simulated") is None
    assert status(verdict, "host/alpha") == status(verdict, "host/beta") == "inconclusive"
    # nor do their devices count nothing, nor was any of them measured
    assert status(verdict, "counters/missing") is None
    nics = check_of(verdict, "nics")
    told = "0 of 1 NIC measured on alpha, beta, not cxi0"
    assert (nics.status, nics.measured) == ("inconclusive", told)


def test_a_host_that_answered_without_its_nic_is_no_simulation_where_nothing_ran(run: Run) -> None:
    run.edit("raw/beta/environment.json", put("cxi", []))
    for end in raw_lines.ends(run.root):
        end.edit(put("state", "failed"), put("exit", 3), put("stdout", ""))
    verdict = run.judge()
    assert (verdict.verdict, verdict.scope) == ("INCONCLUSIVE", "hardware")
    assert status(verdict, "simulated") is None


def test_what_was_measured_without_a_nic_is_a_simulation(run: Run) -> None:
    run.edit("raw/beta/environment.json", put("cxi", []))
    verdict = run.judge()
    assert (verdict.scope, status(verdict, "simulated")) == ("simulated", "inconclusive")


def test_the_report_and_the_summary_say_that_nothing_was_measured(
    run: Run, perchctl: Perchctl
) -> None:
    shutil.rmtree(run.root / "raw")
    assert perchctl("report", run.root).code == 0
    report = (run.root / "report.md").read_text()
    summary = perchctl("summary", run.root).stdout
    for text in (report, summary, (run.root / "junit.xml").read_text()):
        assert "simulat" not in text.lower()
    for text in (report, summary):
        assert "Nothing was measured" in text
        assert "Measured on cxi0" not in text
        assert "one pair was measured" not in text
    prom = (run.root / "perch.prom").read_text()
    assert 'perch_scope{scope="hardware"} 1' in prom
    assert json.loads((run.root / "verdict.json").read_text())["coverage"]["measured"] == 0


def test_a_summary_without_a_plan_has_no_empty_table(run: Run, perchctl: Perchctl) -> None:
    (run.root / "plan.json").write_bytes(b"")
    perchctl("report", run.root)
    lines = perchctl("summary", run.root).stdout.splitlines()
    assert lines[0] == "Verdict: INCONCLUSIVE"
    assert "Test" not in lines
