"""A check that fails is read as what is wrong, never as a claim with "not" behind it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.checks import shown
from perch.checks.limit_words import missed
from perch.model.limits import METRICS, Limit, LimitBound
from perch.model.verdict import Check, CheckStatus
from tests.py.conftest import Ended

Command = Callable[..., Ended]
Copy = Callable[[str], Path]

CHECKS = Path(__file__).parents[2] / "perch/checks"

#: Functions that set the fault where they find one.
NAMED = {"agreement._pair_check", "soak._check"}


def _constructed(file: Path) -> list[tuple[str, dict[str, str]]]:
    """Each Check(...) of a module: the function that makes it, and its keywords as source."""
    found = []
    for function in ast.walk(ast.parse(file.read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Check":
                    keys = {str(one.arg): ast.unparse(one.value) for one in node.keywords}
                    found.append((f"{file.stem}.{function.name}", keys))
    return found


def _is_harmless(status: str) -> bool:
    """Whether an expression can be no other status than these two."""
    named = set(re.findall("'([a-z_]+)'", status))
    return bool(named) and named <= {"pass", "not_judged"}


@pytest.mark.parametrize("file", sorted(CHECKS.glob("*.py")), ids=lambda file: str(file.stem))
def test_every_check_that_can_fail_names_its_fault(file: Path) -> None:
    silent = [
        f"{function}: {keys['title']}"
        for function, keys in _constructed(file)
        if "fault" not in keys and function not in NAMED and not _is_harmless(keys["status"])
    ]
    assert not silent


@pytest.mark.parametrize(
    "metric", [one for one in METRICS if not one.startswith(("agreement.", "soak."))]
)
def test_a_missed_limit_is_named_by_its_metric_and_the_end_that_was_missed(metric: str) -> None:
    limit = Limit("l", "L", {}, metric, LimitBound(2, 3), "", "s", "required", "r")
    below, above = missed(limit, 1), missed(limit, 4)
    assert below != above
    assert all(" too " in said for said in (below, above))


def test_a_missed_limit_says_which_figure_is_too_high_or_too_low() -> None:
    def said(metric: str, measured: float) -> str:
        return missed(
            Limit("l", "L", {}, metric, LimitBound(2, 3), "", "s", "required", "r"), measured
        )

    assert said("latency_us.p50", 4) == "Median latency too high"
    assert said("latency_us.p99_9", 4) == "p99.9 latency too high"
    assert said("bandwidth.gbit_s", 1) == "Bandwidth too low"
    assert said("derived.retransmissions_per_gb", 4) == "TCP retransmissions too many"
    assert said("derived.stall_s", 4) == "Stall too long"


@pytest.mark.parametrize(
    ("status", "headline"),
    [("fail", "Repeats differ"), ("advisory", "Repeats differ"), ("pass", "Repeats agree")],
)
def test_only_a_check_that_does_not_hold_has_a_fault(status: CheckStatus, headline: str) -> None:
    one = Check(id="x", title="Repeats agree", fault="Repeats differ", status=status)
    assert shown(one).headline == headline


def test_a_missed_limit_reads_the_same_in_line_verdict_and_report(
    perchctl: Command, run_copy: Copy
) -> None:
    run = run_copy("loopback")
    path = run / "inputs/limits.json"
    limits = json.loads(path.read_text())
    (one,) = (one for one in limits["limits"] if one["id"] == "iperf-bandwidth")
    one["bound"]["min"] = 1e6
    path.write_text(json.dumps(limits))
    done = perchctl("judge", run)
    assert "; failed: Bandwidth too low, test iperf" in done.stdout
    checks = json.loads((run / "verdict.json").read_text())["checks"]
    missed_ones = [one for one in checks if one["status"] == "fail"]
    assert {one["fault"].partition(",")[0] for one in missed_ones} == {"Bandwidth too low"}
    assert not [one for one in checks if one["status"] == "pass" and "fault" in one]
    assert perchctl("report", run).code == 0
    text = (run / "report.md").read_text()
    assert "**FAIL**: Bandwidth too low, test iperf" in text
    assert "not met" not in text
