"""The same run gives the same bytes, whatever the machine's settings and number of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.model import derived

TOP = Path(__file__).parents[2]

#: Rows from which polars groups by several threads at once.
MANY_ROWS = 1000

#: Judges and reports with so many workers, and a piece of a run of so many flows for each.
PROGRAM = f"""
import sys
from perch.judge import worker
from perch.cli import main
worker.PROCESSES = int(sys.argv[1])
worker.MANY_FLOWS, worker.PIECE_FLOWS = {MANY_ROWS}, {MANY_ROWS} // 3
sys.exit(main(["report", sys.argv[2]]))
"""

SETTINGS = [
    ("2", {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"}),
    ("1", {"PYTHONHASHSEED": "1", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}),
    ("3", {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "POSIX",
           "POLARS_MAX_THREADS": "1"}),
]  # fmt: skip

#: What is judged: read, never written.
GIVEN = ("plan.json", "raw", "inputs")


def outputs(root: Path) -> dict[str, bytes]:
    """Every file that judging and reporting wrote, but records.parquet, which may differ."""
    files = [path for path in root.rglob("*") if path.is_file()]
    names = {str(path.relative_to(root)): path for path in files}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if name.split("/")[0] not in GIVEN and name != derived.PARQUET
    }


def reported(root: Path, processes: str, settings: dict[str, str]) -> dict[str, bytes]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, processes, root],
        env=kept | settings, check=True, capture_output=True,
    )  # fmt: skip
    return outputs(root)


def planned(root: Path, hosts: int) -> int:
    """Plans and lays out a run of all hosts to all; the number of its flows."""
    test = {"tool": "perch", "backend": "verbs", "op": "send", "kind": "latency", "repeat": 2,
            "title": "verbs send latency"}  # fmt: skip
    params = {"iterations": 50, "warmup": 10, "completion": "event"}
    host: dict[str, Any] = {
        "perch_fabric": "roce", "perch_scope": "software", "perch_backends": ["verbs"],
        "perch_devices": [{"name": "rxe0", "netdev": "eth1"}],
    }  # fmt: skip
    suite = {
        "name": "many", "title": "All to all",
        "tests": [
            {"name": f"send-{size}", "params": params | {"size": str(size)}, **test}
            for size in (64, 128, 256, 512)
        ],
    }  # fmt: skip
    given = {
        "run": "20260101T000000Z-many", "created": "2026-01-01T00:00:00Z", "limits": "rxe",
        "suite": suite,
        "hosts": {
            f"node{n}": host | {"perch_address": f"192.0.2.{n}"} for n in range(1, hosts + 1)
        },
    }  # fmt: skip
    root.mkdir()
    plan = [sys.executable, "-m", "perch", "plan", str(root), "--stdin", "--baseline", "none"]
    limits = ["--limits", str(TOP / "reports/limits/rxe.yml")]
    subprocess.run([*plan, *limits], input=json.dumps(given), text=True, check=True, cwd=TOP)
    lay_out = [sys.executable, "-m", "tests.bench.report_run", str(root)]
    subprocess.run(lay_out, check=True, cwd=TOP)
    files = root.glob("raw/*/flows.jsonl")
    return sum(one.read_text().count('"role":"client"') for one in files)


def assert_same(root: Path) -> None:
    first, *others = (reported(root, *setting) for setting in SETTINGS)
    assert {"records.jsonl", "verdict.json", *derived.DERIVED} <= first.keys()
    for again in others:
        assert again.keys() == first.keys()
        assert [name for name in first if again[name] != first[name]] == []


@pytest.mark.parametrize("name", ["loopback", "rxe"])
def test_a_recorded_run(name: str, run_copy: Callable[[str], Path]) -> None:
    assert_same(run_copy(name))


def test_a_run_that_workers_share(tmp_path: Path) -> None:
    root = tmp_path / "many"
    assert planned(root, hosts=17) > MANY_ROWS
    assert_same(root)
