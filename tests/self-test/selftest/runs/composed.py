"""Runs that are composed of the fabric: checked hosts, a repeated pair, an accepted run."""

from __future__ import annotations

import importlib
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from perch.history import baseline
from perch.run import folder, judging
from selftest.edits import sealed_again
from selftest.files import document, write
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import EPOCH, RAILED, SWEPT, WITH_PERFTEST, Fabric

#: The pair that is measured again, and the day before a run in seconds.
AGAIN, DAY_S = "write-bandwidth/gamma/delta", 86400


def fabric(root: Path) -> None:
    """Five hosts with cards of 100 Gb/s, and all tests."""
    compose(root, Fabric(0, WITH_PERFTEST))


def swept(root: Path) -> None:
    """The same hosts: three sizes both ways of each pair, and a hundred thousand round trips."""
    compose(root, Fabric(2, SWEPT))


def railed(root: Path) -> None:
    """The same hosts with two cards each, which measure each other rail by rail."""
    compose(root, Fabric(3, RAILED))


def retried(root: Path) -> None:
    """One pair's writes fell outside in one of two repeats, and were good when measured again."""
    compose(root, Fabric(1, weak=(f"^{AGAIN}/0/1$", 0.8), again=AGAIN))
    # only like flows show it, and these are known when all were measured
    limits = document(root / "inputs/limits.json")
    for one in limits["limits"]:
        if one["id"] == "large-message-share":
            was = {key: one[key] for key in ("severity", "bound", "source")}
            one |= {
                "from": "site.yml", "replaces": {"from": "roce.yml", **was},
                "bound": {"min": 0.5, "of": "ceiling"},
                "source": "site policy: a test of repeats",
            }  # fmt: skip
    write(root / "inputs/limits.json", limits)
    sealed_again(root)


def aged(root: Path) -> None:
    """The fabric, with an accepted run of it, of ten days earlier, as its baseline."""
    compose(root, Fabric(0, WITH_PERFTEST))
    with TemporaryDirectory() as work:
        then = Path(work) / "then"
        compose(then, Fabric(13, WITH_PERFTEST, begun=EPOCH - 10 * DAY_S))
        verdict, fault = judging.judge(then)
        if fault is not None:
            raise fault
        plan = folder.plan_head(then / "plan.json")
        found = baseline.document(
            plan, folder.frame(then), verdict.verdict, verdict.scope, id=folder.fabric_id(plan),
            accepted="2025-12-23T00:00:00Z",
        )  # fmt: skip
    write(root / "inputs/baseline.json", msgspec.to_builtins(found))
    sealed_again(root)


def checked(root: Path) -> None:
    """The fabric, by a plan that asks for the checks of its hosts."""
    compose(root, Fabric(1))
    plan = document(root / "plan.json")
    plan["host_checks"] = True
    write(root / "plan.json", plan)
    sealed_again(root)


# ---- a soak --------------------------------------------------------------------------------------


def soak(root: Path, *words: str) -> None:
    """A soak by tests/soak_compose.py, with these options."""
    importlib.import_module("tests.soak_compose").main([str(root), *words])


def soaked(root: Path) -> None:
    """Two hosts that soak for two hours, of lines that the engine wrote."""
    soak(root, "--duration", "7200")


def watched(root: Path) -> None:
    """Twelve hours with intervals of five minutes: long enough to tell growth from a warm-up."""
    soak(root, "--duration", "43200", "--interval", "300")
