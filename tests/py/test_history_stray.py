"""Files in raw/ that no check reads: bundles have none, and what a run rightly holds is packed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.history import packed
from tests.py.bundle_built import closed, opened, sealed_again
from tests.py.conftest import FIXTURES, Ended
from tests.py.judging import Run

Perchctl = Callable[..., Ended]


def put(root: Path, name: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("{}")


@pytest.mark.parametrize(
    "name",
    [
        "raw/notes.txt",
        "raw/alpha/notes.txt",
        "raw/alpha/retry/host_check.json",
        "raw/alpha/switch-before.json",
        "raw/alpha/flows/t/alpha/beta/0/1/client.soak",
        "raw/gamma/agent.log",
        "raw/gamma/host_check.json",
        "raw/import/output.txt",
    ],
)
def test_what_no_check_reads_is_not_packed(
    judged: Path, perchctl: Perchctl, tmp_path: Path, name: str
) -> None:
    put(judged, name)
    Run(judged).judge()
    ended = perchctl("bundle", judged, tmp_path / "out")
    assert ended.code == 1
    assert f"{name}: no plan, check or agent put it there" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "names",
    [
        ("raw/alpha/agent.log",),
        ("raw/alpha/retry/agent.log", "raw/alpha/retry/flows.jsonl"),
        ("raw/beta/host_check.json",),
        ("inputs/hosts/gamma.json", "raw/gamma/host_check.json"),
    ],
)
def test_what_a_run_may_hold_is_packed(
    judged: Path, perchctl: Perchctl, tmp_path: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        put(judged, name)
    Run(judged).judge()
    ended = perchctl("bundle", judged, tmp_path / "out")
    assert ended.code == 0, ended.stderr


def test_a_bundle_that_holds_such_a_file_is_refused(
    judged: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    bundle = tmp_path / "run.tar.gz"
    assert perchctl("bundle", judged, bundle).code == 0
    root = opened(bundle, tmp_path / "opened")
    put(root, "raw/alpha/notes.txt")
    sealed_again(root)
    closed(root, bundle)
    ended = perchctl("verify", bundle)
    assert ended.code == 1
    assert "perchctl bundle does not pack raw/alpha/notes.txt" in ended.stderr


def test_switches_and_soaks_have_files_of_their_own(judged: Path) -> None:
    names = [
        "raw/leaf1/switch-before.json",
        "raw/leaf1/switch-after.json",
        "raw/leaf1/samples.jsonl.gz",
        "raw/alpha/flows/t/alpha/beta/0/1/client.soak",
    ]
    assert packed.stray(judged, names) == names
    path = judged / "plan.json"
    plan = json.loads(path.read_text())
    plan["switches"] = {"leaf1": {"provider": "nxos", "scope": "hardware"}}
    seconds = {"duration_s": 60, "interval_s": 1, "stall_s": 1, "reconnect_s": 1}
    plan["soak"] = seconds | {"mode": "mixed"}
    path.write_text(json.dumps(plan))
    assert packed.stray(judged, names) == []


def test_an_imported_run_holds_the_outputs_that_were_given(
    perchctl: Perchctl, tmp_path: Path
) -> None:
    output = FIXTURES / "tools/iperf_plain.txt"
    root = tmp_path / "imported"
    assert perchctl("import", "--run", root, output).code == 0
    perchctl("judge", root)
    ended = perchctl("bundle", root, tmp_path / "out")
    assert ended.code == 0, ended.stderr
