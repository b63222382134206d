"""Runs that are composed of the fabric: checked hosts, a repeated pair, an accepted run."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from perch.history import baseline, folder
from perch.judge import run as judging
from selftest.files import compact, document, write
from selftest.paths import FIXTURES
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import EPOCH, HOSTS, SWEPT, WITH_PERFTEST, Fabric

Document = dict[str, Any]

#: The pair that is measured again, and the day before a run in seconds.
AGAIN, DAY_S = "write-bandwidth/gamma/delta", 86400


def fabric(root: Path) -> None:
    """Five hosts with cards of 100 Gb/s, and all tests."""
    compose(root, Fabric(0, WITH_PERFTEST))


def swept(root: Path) -> None:
    """The same hosts: three sizes both ways of each pair, and a hundred thousand round trips."""
    compose(root, Fabric(2, SWEPT))


def retried(root: Path) -> None:
    """One pair's writes fell outside in one of two repeats, and were good when measured again."""
    compose(root, Fabric(1, weak=(f"^{AGAIN}/1$", 0.8), again=AGAIN))
    # only like flows show it, and these are known when all were measured
    limits = document(root / "inputs/limits.json")
    limits["limits"] = [one for one in limits["limits"] if one["id"] != "large-message-share"]
    write(root / "inputs/limits.json", limits)


def aged(root: Path) -> None:
    """The fabric, with an accepted run of it, of ten days earlier, as its baseline."""
    compose(root, Fabric(0, WITH_PERFTEST))
    with TemporaryDirectory() as work:
        then = Path(work) / "then"
        compose(then, Fabric(16, WITH_PERFTEST, begun=EPOCH - 10 * DAY_S))
        verdict, fault = judging.judge(then)
        if fault is not None:
            raise fault
        plan = folder.plan_head(then / "plan.json")
        found = baseline.document(
            plan, folder.frame(then), verdict.verdict, verdict.scope, id=folder.fabric_id(plan),
            accepted="2025-12-23T00:00:00Z",
        )  # fmt: skip
    write(root / "inputs/baseline.json", msgspec.to_builtins(found))


# ---- hosts that were checked ---------------------------------------------------------------------

PARTS = ("files", "later", "links", "commands")


def _answer(host: str, number: int) -> Document:
    """What a host answered: a server of three fixtures, with addresses of its own."""
    names = ("machine-amd", "qos-mlx5-dcb", "nic-mlx5")
    found = [document(FIXTURES / f"hosts/{name}.json") for name in names]
    merged: Document = {
        "schema": found[0]["schema"],
        "hostname": host,
        "collected": "2026-01-01T00:00:10Z",
        **{part: {} for part in PARTS},
    }
    for one in found:
        for part in PARTS:
            merged[part] |= one.get(part) or {}
    text = compact(merged)
    for pattern, replacement in (
        (r"ens1np0|enp129s0f0np0", "enp1s0"),
        (r"c1:00\.0", "81:00.0"),
        (r"c000:0201", f"c000:020{number}"),
        (r"192\.0\.2\.1\b", f"192.0.2.{number}"),
        (r"f0:28:b2", f"f0:28:b{number}"),
        (r"ef0:28b2", f"ef0:28b{number}"),
    ):
        text = re.sub(pattern, replacement, text)
    answer: Document = json.loads(text)
    return answer


def checked(root: Path) -> None:
    """The fabric, whose hosts had to be checked, and answered."""
    compose(root, Fabric(1))
    plan = document(root / "plan.json")
    plan["host_checks"] = True
    write(root / "plan.json", plan)
    for number, host in enumerate(HOSTS, 1):
        wanted = {"schema": "perch.wanted/1", "host": host, "wanted": {"pfc_priorities": [3]}}
        write(root / f"inputs/hosts/{host}.json", wanted)
        write(root / f"raw/{host}/host_check.json", _answer(host, number))


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
