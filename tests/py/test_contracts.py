"""What users' scripts parse and call: lines, exit codes and programs that keep their names."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from tests.py.judging import Run, put

TOP = Path(__file__).parents[2]
JUDGE, IMPORT = TOP / "reports/judge", TOP / "reports/import"


def ended(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=TOP, text=True, capture_output=True, check=False)


# ---- reports/judge and reports/import ------------------------------------------------------------


def whole(run: Run) -> None:
    """PASS."""


def slow(run: Run) -> None:
    run.edit("inputs/limits.json", lambda limits: floor(limits["limits"]))


def floor(limits: list[dict[str, Any]]) -> None:
    for limit in limits:
        if limit["id"] == "iperf-bandwidth":
            limit["bound"]["min"] = 1e6


def gone(run: Run) -> None:
    run.root.rename(run.root.with_name("elsewhere"))


def unfinished(run: Run) -> None:
    run.agent("alpha", put("state", "running"))


def taken(run: Run) -> None:
    (run.root / "records.jsonl").mkdir()


@pytest.mark.parametrize(
    ("change", "code", "begin"),
    [(whole, 0, "PASS: "), (slow, 1, "FAIL: "), (gone, 2, ""), (unfinished, 3, "INCONCLUSIVE: "),
     (taken, 6, "")],
)  # fmt: skip
def test_exit_codes_of_the_judge(
    run_copy: Callable[[str], Path], change: Callable[[Run], None], code: int, begin: str
) -> None:
    run = Run(run_copy("loopback"))
    change(run)
    done = ended(JUDGE, run.root)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(begin)
    assert bool(done.stdout) is bool(begin)


def test_a_link_to_the_judge_is_the_judge(run_copy: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "judge").symlink_to(JUDGE)
    assert ended(tmp_path / "judge", run_copy("loopback")).returncode == 0


def test_import_prints_a_record_a_line() -> None:
    done = ended(IMPORT, TOP / "tests/fixtures/perftest/4.5/send_lat.txt", "/nonexistent")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["kind"] == "latency"


# ---- lines of the tests and of the benchmark -----------------------------------------------------


def test_the_last_line_of_the_tests_counts_them() -> None:
    done = ended("tests/run", "jq")
    assert done.returncode == 0, done.stdout
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch("[1-9][0-9]* passed, 0 failed, 0 skipped", last)


def test_the_self_test_prints_tap_and_keeps_its_good_runs(tmp_path: Path) -> None:
    good = tmp_path / "good"
    words = ("--healthy", 0, "--faults", "^exit-4-after$", "--good", good)
    done = ended("tests/self-test/run", *words)
    assert done.returncode == 0, done.stdout
    plan, *_, base, fault = done.stdout.splitlines()
    assert plan == "1..2"
    assert base == "ok 1 - the good run loopback passes"
    assert re.fullmatch(r"ok 2 - .+: flips to FAIL \(flow/[^ ]+\)", fault)
    assert json.loads((good / "loopback/verdict.json").read_text())["verdict"] == "PASS"


def test_make_keeps_the_good_runs_where_it_is_told() -> None:
    said = ended("make", "--dry-run", "self-test", "KEEP=there").stdout
    assert "tests/self-test/run --good 'there'" in said


def test_the_demo_takes_a_port() -> None:
    said = ended("make", "--dry-run", "demo", "PORT=19000").stdout
    assert "-e perch_port=19000" in said
    assert "perch_port" not in ended("make", "--dry-run", "demo").stdout


def test_the_benchmark_prints_a_line_of_each_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loader = SourceFileLoader("bench_report", str(TOP / "tests/bench/report"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    bench = module_from_spec(spec)
    loader.exec_module(bench)
    measured = {"wall_s": 12.34, "mib": 567.8}
    found = {"judge": measured, "report": measured}
    monkeypatch.setattr(bench, "two_hosts", lambda _work: found)
    monkeypatch.setattr(bench, "all_to_all", lambda _work, _hosts: found)
    monkeypatch.setattr(bench, "RESULT", tmp_path / "report.json")
    monkeypatch.setattr("sys.argv", ["report", "100000"])
    bench.main()
    assert capsys.readouterr().out == "100000 records: 12.3 s, 568 MiB\n"
    assert "100000" in json.loads((tmp_path / "report.json").read_text())["runs"]
