"""Input that cannot be used: a message with file, place, what and what to do; never a PASS."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from perch.model.verdict import Check
from tests.py.bundle_built import closed, opened, sealed_again
from tests.py.conftest import Ended
from tests.py.judging import Run, check_of, put
from tests.stamped import stamp

Perchctl = Callable[..., Ended]
TOP = Path(__file__).parents[2]
OUTPUT, END = "stdout", "line"


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    return Run(run_copy("loopback"))


def refused(ended: Ended, code: int, *says: str) -> None:
    """One line that says it, its exit code, and neither a traceback nor a PASS."""
    assert ended.code == code
    for words in says:
        assert words in ended.stderr
    assert "Traceback" not in ended.stderr and "internal error" not in ended.stderr
    assert "PASS" not in ended.stdout


def of_flow(run: Run, test: str) -> Check:
    """The finding on the test's flow, which has a remedy."""
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    flow = next(one.flow for one in verdict.coverage.missing if one.flow.startswith(f"{test}/"))
    found = check_of(verdict, f"flow/{flow}")
    assert found.remedy
    return found


# ---- a run's files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (OUTPUT, "of its output is not JSON: truncated?"),
        (END, "the agent on alpha left no line of this flow"),
    ],
)
def test_a_truncated_raw_file(run: Run, perchctl: Perchctl, name: str, says: str) -> None:
    if name == OUTPUT:
        run.flow("tcp-latency").write(run.flow("tcp-latency").read()[:-100])
    else:
        path = run.root / "raw/alpha/flows.jsonl"
        path.write_text(path.read_text().replace('"stdout":"', '"stdout":', 1))
    refused(perchctl("judge", run.root), 3)
    assert says in str(of_flow(run, "tcp-latency").measured)


def test_a_plan_of_another_version(run: Run, perchctl: Perchctl) -> None:
    plan = run.root / "plan.json"
    document = json.loads(plan.read_text())
    plan.write_text(json.dumps(document | {"schema": "perch.plan/9"}))
    for command, code in (("judge", 3), ("report", 0)):
        refused(
            perchctl(command, run.root), code, f"perchctl {command}: {run.root}: plan.json: ",
            "its schema is 'perch.plan/9'", "plan and measure again",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("file", "schema", "check", "says"),
    [
        (
            "inputs/limits.json", "perch.limits/9", "limits",
            'inputs/limits.json:1: schema: "perch.limits/9" is not perch.limits/1',
        ),
        (
            "raw/alpha/flows.jsonl", "perch.raw/9", "host/alpha",
            "raw/alpha/flows.jsonl, line 1: its schema is 'perch.raw/9', not perch.raw/2",
        ),
        (
            "raw/alpha/environment.json", "perch.environment/9", "host/alpha",
            "its environment.json has the schema 'perch.environment/9', not perch.environment/2",
        ),
    ],
)  # fmt: skip
def test_a_document_whose_schema_does_not_fit(
    run: Run, perchctl: Perchctl, file: str, schema: str, check: str, says: str
) -> None:
    if file.endswith(".jsonl"):
        run.agent("alpha", put("schema", schema))
    else:
        run.edit(file, put("schema", schema))
    for command, code in (("judge", 3), ("report", 0)):
        where = f"perchctl {command}: {run.root}: {says}; "
        refused(perchctl(command, run.root), code, where)
    verdict = run.judge()
    found = check_of(verdict, check)
    assert (found.status, found.measured) == ("inconclusive", says)
    assert file in str(found.remedy)
    if file.endswith(".jsonl"):  # its flows have the same cause
        assert check_of(verdict, "flow/tcp-latency/alpha/beta/0/1").measured == f"code 6: {says}"


@pytest.mark.parametrize(
    ("cut", "says"),
    [
        (0, "has no end"),
        (40, "raw/alpha/flows.jsonl, line 15: the file ends in the middle of it"),
        (None, "its agent left no flows.jsonl"),
    ],
)
def test_flows_that_end_early_are_told_apart(run: Run, cut: int | None, says: str) -> None:
    path = run.root / "raw/alpha/flows.jsonl"
    *lines, last, end = path.read_text().splitlines(keepends=True)
    assert len(lines) == 14 and '"kind":"end"' in end
    if cut is None:
        path.unlink()
    else:
        path.write_text("".join([*lines, last[: len(last) - cut]]))
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    found = check_of(verdict, "host/alpha")
    assert says in str(found.measured) and found.remedy
    if cut:
        of_flows = [str(one.measured) for one in verdict.checks if one.id.startswith("flow/")]
        assert of_flows and all(said.endswith(says) for said in of_flows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{"schema":"perch.environment/2","host":"al',
            "is damaged: input data was truncated (byte",
        ),
        ('{"schema":"perch.environment/2",]', "is damaged: JSON is malformed: "),
        ("", "is damaged: input data was truncated (byte 0)"),
        ('{"schema":"perch.environment/2","host":"beta"}', "belongs to host 'beta'"),
        ('{"schema":"perch.environment/2","host":"alpha","run":"x"}', "belongs to run 'x'"),
        ('{"schema":"perch.environment/2","host":1}', "cannot be used: host: expected string"),
        (None, "it left no environment.json"),
    ],
)
def test_an_environment_that_cannot_be_used_says_why(run: Run, text: str | None, says: str) -> None:
    path = run.root / "raw/alpha/environment.json"
    path.unlink() if text is None else path.write_text(text)
    found = check_of(run.judge(), "host/alpha")
    assert found.status == "inconclusive" and found.remedy
    said = str(found.measured)
    assert said.startswith(says if text is None else f"its environment.json {says}")


def test_a_line_whose_schema_does_not_fit(run: Run, perchctl: Perchctl) -> None:
    run.flow("tcp-latency").prints(put("schema", "perch.record/9"))
    refused(perchctl("judge", run.root), 3)
    said = "line 1 of its output has schema perch.record/9"
    assert said in str(of_flow(run, "tcp-latency").measured).replace('"', "")


def test_a_type_that_does_not_fit(run: Run, perchctl: Perchctl) -> None:
    run.flow("tcp-latency").prints(put("latency_us.p50", "fast"))
    refused(perchctl("judge", run.root), 3)
    said = "latency_us.p50: expected number, got string"
    assert said in str(of_flow(run, "tcp-latency").measured)


def test_a_run_that_cannot_be_written(
    run: Run, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(**_: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", no)  # root may write whatever the mode is
    for command in ("judge", "report"):
        refused(
            perchctl(command, run.root), 6, str(run.root), "Read-only file system",
            "judge a copy of it",
        )  # fmt: skip
    assert not (run.root / "verdict.json").exists()


def test_a_verdict_that_cannot_be_replaced(run: Run, perchctl: Perchctl) -> None:
    (run.root / "verdict.json").mkdir()
    refused(
        perchctl("judge", run.root),
        6,
        "its verdict.json stays as it was: verdict.json: Is a directory",
        "can be",
    )
    (run.root / "verdict.json").rmdir()
    assert run.judge().verdict == "PASS"
    (run.root / "records.parquet").unlink()
    (run.root / "records.parquet").mkdir()
    refused(perchctl("judge", run.root), 6, "it has no verdict: ", "Is a directory")
    assert not (run.root / "verdict.json").exists()


def test_a_page_that_cannot_be_written_is_no_missing_pandoc(
    run: Run, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("perch.views.page.lines", SimpleNamespace(replace=full))
    refused(perchctl("report", run.root), 6, f"{run.root}/report.html: No space left", "has room")
    assert "report.html" not in run.names()


def test_a_report_that_cannot_be_written_is_named(
    run: Run, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")  # as write(2): without a file

    monkeypatch.setattr("pathlib.Path.chmod", full)
    refused(perchctl("report", run.root), 6, f"{run.root}/junit.xml: No space left", "has room")


@pytest.mark.parametrize("key", ["size_bytes", "batch"])
def test_a_plan_with_a_number_that_no_record_holds(run: Run, perchctl: Perchctl, key: str) -> None:
    plan = run.root / "plan.json"
    document = json.loads(plan.read_text())
    put(f"tests.iperf.forms.1.expect.0.{key}", 10**19)(document)
    plan.write_text(json.dumps(document))
    refused(perchctl("judge", run.root), 3, "plan.json", key, "plan and measure again")


def test_a_line_with_a_number_that_no_record_holds(run: Run, perchctl: Perchctl) -> None:
    run.flow("tcp-latency").prints(put("params.gap_us", 10**400))
    refused(perchctl("judge", run.root), 3)
    assert "params.gap_us: " in str(of_flow(run, "tcp-latency").measured)


@pytest.mark.parametrize("digits", [20, 400])
def test_a_number_beyond_every_float(run: Run, perchctl: Perchctl, digits: int) -> None:
    run.edit("raw/alpha/environment.json", put("cpu.cores", 10**digits))
    refused(perchctl("judge", run.root), 3)
    found = check_of(run.judge(), "host/alpha")
    said = str(found.measured)
    assert said.startswith("its environment.json ") and "number" in said.lower(), said
    assert found.remedy


def test_a_damaged_record_is_named_where_it_lies(run: Run, perchctl: Perchctl) -> None:
    assert perchctl("report", run.root).code == 0
    records = run.root / "records.jsonl"
    first, second, *rest = records.read_text().splitlines(keepends=True)
    place = f"{records}, line 2: it cannot be used"
    for said in ("{", second.replace('"latency_us":{', '"latency_us":{"p50":"fast",', 1)):
        records.write_text("".join([first, said.rstrip("\n") + "\n", *rest]))
        stamp(run.root)
        refused(perchctl("compare", run.root, run.root), 3, place, f"perchctl judge {run.root}")


# ---- limits --------------------------------------------------------------------------------------


def test_a_limit_with_an_unknown_metric(run: Run, perchctl: Perchctl, tmp_path: Path) -> None:
    known = "metric: latency_us.mean\n"
    text = (TOP / "reports/limits/local.yml").read_text()
    line = text[: text.index(known)].count("\n") + 1
    site = tmp_path / "own.yml"
    site.write_text(text.replace(known, "metric: latency_us.meen\n", 1))
    output = TOP / "tests/fixtures/tools/iperf_plain.txt"
    refused(
        perchctl("import", "--run", tmp_path / "imported", "--limits", site, output), 2,
        f"own.yml:{line}:", "metric", "did you mean 'latency_us.mean'?", "correct the limits",
    )  # fmt: skip
    assert not (tmp_path / "imported").exists()
    run.edit("inputs/limits.json", put("limits.0.metric", "latency_us.meen"))
    refused(perchctl("judge", run.root), 3)
    found = check_of(run.judge(), "limits")
    assert str(found.measured).startswith("inputs/limits.json:")
    assert "did you mean 'latency_us.mean'?" in str(found.measured)


def test_each_fault_of_a_limits_file_has_a_line(perchctl: Perchctl, tmp_path: Path) -> None:
    text = (TOP / "reports/limits/local.yml").read_text()
    site = tmp_path / "own.yml"
    site.write_text(text.replace("unit: Gb/s", "unit: GB/s"))
    output = TOP / "tests/fixtures/tools/iperf_plain.txt"
    ended = perchctl("import", "--run", tmp_path / "imported", "--limits", site, output)
    *faults, remedy = ended.stderr.splitlines()
    assert len(faults) >= 2, ended.stderr
    assert all(line.startswith(f"perchctl import: {site}:") for line in faults), ended.stderr
    assert remedy == "perchctl import: correct the limits"


# ---- bundles -------------------------------------------------------------------------------------


def test_a_bundle_of_an_earlier_perch(run: Run, perchctl: Perchctl, tmp_path: Path) -> None:
    run.judge()
    bundle = tmp_path / "run.tar.gz"
    assert perchctl("bundle", run.root, bundle).code == 0
    root = opened(bundle, tmp_path / "opened")
    records = root / "records.jsonl"
    records.write_text(records.read_text().replace("perch.record/2", "perch.record/1"))
    description = root / "bundle.json"
    made = json.loads(description.read_text())
    made["versions"] |= {"perch_commit": None, "tools": [{"name": "perch", "version": "0.1.0"}]}
    description.write_text(json.dumps(made))
    sealed_again(root)
    closed(root, bundle)
    refused(
        perchctl("verify", bundle), 3, str(bundle), "records.jsonl, line 1",
        "its schema is 'perch.record/1'",
        "verify it with the Perch that made it: version 0.1.0, commit unknown",
    )  # fmt: skip
    bundle.write_bytes(bundle.read_bytes()[:1000])
    refused(perchctl("verify", bundle), 1, str(bundle), "it is damaged: it ends early")


# ---- Perch's own files ---------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["judge", "report"])
@pytest.mark.parametrize(
    ("room", "name", "kind"), [("tools", "iperf", "tool"), ("checks", "ceiling", "check")]
)
def test_a_duplicate_tool_or_check_leaves_no_earlier_pass(
    run: Run, tmp_path: Path, room: str, name: str, kind: str, verb: str
) -> None:
    assert run.judge().verdict == "PASS"
    verdict = run.root / "verdict.json"
    for drawn in ("report.md", "perch.prom"):
        (run.root / drawn).write_bytes(hashlib.sha256(verdict.read_bytes()).hexdigest().encode())
    shutil.copytree(TOP / "perch", tmp_path / "perch", ignore=shutil.ignore_patterns("__pyc*"))
    (tmp_path / "reports").symlink_to(TOP / "reports")
    source = tmp_path / f"perch/{room}/{name}.py"
    shutil.copy(source, source.with_name(f"z{name}.py"))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "perch", verb, run.root],
        env=os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    other = source.with_name(f"z{name}.py")
    refused(
        Ended(done.returncode, done.stdout, done.stderr), 3,
        f"{other}: {kind} '{name}' is defined twice; the other is in {source}; rename one of them",
    )  # fmt: skip
    assert not (run.root / "perch.prom").exists()
    assert not verdict.exists() or json.loads(verdict.read_text())["verdict"] != "PASS"
