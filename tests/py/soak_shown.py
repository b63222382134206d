"""A soak made by hand, which tests change before it is shown."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perch.model.limits import Limit
from tests.py.shown import Document, Made, Shown, host, plan, verdict

MADE = Path(__file__).parents[1] / "fixtures/soak_report/made.jq"


def _part(name: str, hosts: int, intervals: int, seconds: float) -> list[Any]:
    words = ["jq", "-nc", "--arg", "part", name]
    for key, value in (("hosts", hosts), ("n", intervals), ("each", seconds)):
        words += ["--argjson", key, str(value)]
    done = subprocess.run([*words, "-f", str(MADE)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass
class SoakRun:
    """A soak that a test may change before it is shown."""

    root: Path
    plan: Document
    soak: Document
    lines: list[Document]
    checks: list[Document]
    limits: list[Limit] = field(default_factory=list)
    is_soak: bool = True

    @property
    def made(self) -> Made:
        hosts = {name: host(**of) for name, of in self.plan["hosts"].items()}
        coverage = {"planned": 6, "measured": 0, "missing": []}
        flows = [turn["flows"] for turn in self.plan["rounds"]]
        of_soak = {"soak": self.soak} if self.is_soak else {}
        return Made(
            plan(hosts, flows, "Soak"),
            [],
            verdict("FAIL", "software", coverage=coverage, checks=self.checks, facts=[], **of_soak),
            self.limits,
        )

    def shown(self) -> Shown:
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (self.root / "intervals.jsonl").write_text(text, encoding="utf-8")
        return self.made.shown(self.root)


Maker = Callable[..., SoakRun]


def soak_in(root: Path) -> Maker:
    """`soak_in(ROOT)(HOSTS, INTERVALS, SECONDS)`."""

    def make(hosts: int, intervals: int, seconds: float) -> SoakRun:
        parts = {
            name: _part(name, hosts, intervals, seconds) for name in ("plan", "soak", "intervals")
        }
        return SoakRun(root, parts["plan"][0], parts["soak"][0], parts["intervals"], [])

    return make
