"""`perchctl judge` on a recorded run: whole, it passes; with a fault in its folder, it does not."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.errors import PerchError
from perch.judge import planned, worker
from perch.model import derived
from tests.py.conftest import Ended
from tests.py.judging import Change, Document, Run, check_of, missing, put, status
from tests.raw_lines import Walk

TCP = "tcp-latency/alpha/beta/0/1"
Judge = Callable[..., Ended]


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    return Run(run_copy("loopback"))


# ---- the command ---------------------------------------------------------------------------------


def test_a_whole_run_passes_in_one_line(run: Run, perchctl: Judge) -> None:
    code, said, errors = perchctl("judge", run.root)
    assert (code, errors) == (0, "")
    assert said == "PASS: 29 of 29 records measured, scope software\n"


def test_every_expected_record_is_there_in_the_plans_order(run: Run) -> None:
    run.judge()
    plan = run.plan()
    assert [(one["flow"], one["params"]["size_bytes"]) for one in run.records()] == [
        (flow["id"], expect["size_bytes"])
        for turn in plan["rounds"]
        for flow in turn["flows"]
        for expect in flow["expect"]
    ]


GIVEN = ["inputs", "plan.json", "raw", "rounds.jsonl"]
JUDGED = sorted([*GIVEN, "records.jsonl", "records.parquet", "verdict.json"])


def test_judging_again_gives_the_same_bytes_and_leaves_nothing_else(run: Run) -> None:
    run.judge()
    outputs = ("records.jsonl", "verdict.json")
    first = [(run.root / name).read_bytes() for name in outputs]
    run.judge()
    assert [(run.root / name).read_bytes() for name in outputs] == first
    assert run.names() == JUDGED


def test_workers_give_the_same_bytes_as_one_process(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.judge()
    outputs = ("records.jsonl", "verdict.json")
    first = [(run.root / name).read_bytes() for name in outputs]
    monkeypatch.setattr(worker, "MANY_FLOWS", 1)
    monkeypatch.setattr(worker, "PIECE_FLOWS", 3)
    run.judge()
    assert [(run.root / name).read_bytes() for name in outputs] == first
    assert run.names() == JUDGED


def test_workers_take_no_module_of_the_callers_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(worker, "MANY_FLOWS", 1)
    assert run.judge().verdict == "PASS"


def test_a_worker_that_fails_is_named_and_no_verdict_is_left(
    run: Run, perchctl: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.judge()
    monkeypatch.setattr(worker, "MANY_FLOWS", 1)
    monkeypatch.setattr(worker, "SOURCE", "elsewhere")
    code, _, errors = perchctl("judge", run.root)
    assert code == 6
    assert "a process that reads raw outputs failed: FileNotFoundError" in errors
    assert run.names() == GIVEN


@pytest.mark.parametrize("words", [[], ["nowhere"], ["-x", "nowhere"]])
def test_usage_and_a_folder_that_is_not_there_are_exit_code_2(
    perchctl: Judge, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = perchctl("judge", *words)
    assert code == 2
    assert "no such run: 'nowhere'" in errors or len(words) != 1


@pytest.mark.parametrize("name", ["-run", "runs[1]", "day=1", "a*b?", "{x}"])
def test_a_folder_may_have_any_name(
    run: Run, perchctl: Judge, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run.root.rename(run.root.with_name(name))
    monkeypatch.chdir(run.root.parent)
    assert perchctl("judge", "--", name).code == 0


def test_a_verdict_that_could_not_be_written_is_exit_code_6_and_none_is_left(
    run: Run, perchctl: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.judge()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    code, _, errors = perchctl("judge", run.root)
    assert code == 6
    assert "it has no verdict: No space left on device" in errors
    assert not (run.root / "verdict.json").exists()


def test_a_folder_in_place_of_an_output_is_exit_code_6(run: Run, perchctl: Judge) -> None:
    run.judge()
    (run.root / "records.jsonl").unlink()
    (run.root / "records.jsonl").mkdir()
    code, _, errors = perchctl("judge", run.root)
    assert code == 6
    assert "it has no verdict" in errors
    assert "verdict.json" not in run.names()


DRAWN = (*derived.MARKED, derived.CHARTS)


def drawn(run: Run) -> str:
    """Writes what a report has into the run; returns the mark of its verdict."""
    mark = derived.mark(run.root)
    for name in derived.MARKED:
        (run.root / name).write_text(f"PASS {mark}")
    (run.root / derived.CHARTS).mkdir()
    (run.root / derived.CHARTS / "one.svg").write_text("PASS")
    return mark


def test_a_judge_that_is_killed_in_the_middle_leaves_no_earlier_verdict_and_no_report(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.judge()
    drawn(run)
    seen: list[str] = []

    def killed(_: object) -> None:
        seen.extend(name for name in ("verdict.json", *DRAWN) if (run.root / name).exists())
        raise SystemExit(137)

    monkeypatch.setattr(planned, "read_plan", killed)
    with pytest.raises(SystemExit):
        run.judge()
    assert seen == []
    assert [name for name in ("verdict.json", *DRAWN) if (run.root / name).exists()] == []


def test_a_report_stays_beside_the_same_verdict_only(run: Run) -> None:
    run.judge()
    mark = drawn(run)
    run.judge()
    assert derived.mark(run.root) == mark
    assert all((run.root / name).exists() for name in DRAWN)
    cut(run.root / "raw/alpha/flows.jsonl")
    run.judge()
    assert derived.mark(run.root) != mark
    assert [name for name in DRAWN if (run.root / name).exists()] == []


def test_a_folder_of_a_judge_that_was_killed_goes_and_that_of_one_at_work_stays(run: Run) -> None:
    killed, at_work = run.root / ".judge.killed", run.root / ".judge.at-work"
    for folder in (killed, at_work):
        folder.mkdir()
    opened = os.open(at_work, os.O_RDONLY)
    fcntl.flock(opened, fcntl.LOCK_EX)
    run.judge()
    os.close(opened)
    assert (killed.exists(), at_work.exists()) == (False, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inputs/limits.json", "inputs/limits.json is damaged: "),
        ("raw/alpha/flows.jsonl", "raw/alpha/flows.jsonl, line "),
    ],
)
def test_a_damaged_file_is_named_beside_the_verdict_with_what_to_do(
    run: Run, perchctl: Judge, name: str, words: str
) -> None:
    assert perchctl("judge", run.root)[2] == ""
    cut(run.root / name)
    code, said, errors = perchctl("judge", run.root)
    assert (code, said.count("\n"), errors.count("\n")) == (3, 1, 1)
    assert errors.startswith(f"perchctl judge: {run.root}: {words}")
    verdict = json.loads((run.root / "verdict.json").read_text())
    assert any(
        errors.endswith(f"{one['measured']}; {one['remedy']}\n") for one in verdict["checks"]
    )


def test_a_folder_that_cannot_be_written_is_exit_code_6(
    run: Run, perchctl: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    code, _, errors = perchctl("judge", run.root)
    assert code == 6
    assert "it is not writable (Permission denied)" in errors
    assert "an earlier one" not in errors
    (run.root / "verdict.json").touch()
    code, _, errors = perchctl("judge", run.root)
    assert code == 6
    assert "; its verdict.json is an earlier one; judge a copy of it" in errors


# ---- the plan ------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "plan.json: it is damaged"),
        (lambda path: path.write_bytes(b""), "plan.json: it is damaged"),
        (Path.unlink, "plan.json: it is missing"),
    ],
)
def test_a_damaged_plan_replaces_an_earlier_pass(
    run: Run, perchctl: Judge, damage: Callable[[Path], object], words: str
) -> None:
    assert perchctl("judge", run.root).code == 0
    damage(run.root / "plan.json")
    code, said, errors = perchctl("judge", run.root)
    assert code == 3
    assert words in errors
    assert said.startswith("INCONCLUSIVE: 0 of 0 records measured")
    verdict = json.loads((run.root / "verdict.json").read_text())
    assert verdict["verdict"] == "INCONCLUSIVE"
    assert words in verdict["checks"][0]["measured"]
    assert (run.root / "records.jsonl").read_bytes() == b""


def hardware(of_flow: Callable[[Document], bool]) -> Change:
    """A plan whose hosts are hardware, and so are some of its flows."""

    def change(plan: Document) -> None:
        for host in plan["hosts"].values():
            host |= {"scope": "hardware", "fabric": "roce"}
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow["scope"] = "hardware" if of_flow(flow) else "software"

    return change


def test_software_does_not_become_hardware_by_the_plans_word(run: Run) -> None:
    run.edit("plan.json", hardware(lambda flow: True))
    verdict = run.judge()
    assert (verdict.verdict, verdict.scope) == ("INCONCLUSIVE", "software")
    open_checks = [one.id for one in verdict.checks if one.status == "inconclusive"]
    # one machine for two hosts that were not checked, which the manifest would have to show
    assert sorted(open_checks) == ["host_check/skipped", "machines", "manifest", "software"]
    of_all = "29 records planned as hardware came over sockets or a device of software"
    assert check_of(verdict, "software").measured == of_all


def test_one_test_that_the_plan_calls_hardware_is_enough_and_named(run: Run) -> None:
    run.edit("plan.json", hardware(lambda flow: flow["test"] == "iperf3"))
    found = check_of(run.judge(), "software")
    of_one = "1 record planned as hardware came over sockets or a device of software"
    assert found.measured == of_one
    assert [one.partition("/")[0] for one in found.evidence] == ["iperf3"]


def test_what_the_plan_leaves_out_is_shown(run: Run) -> None:
    excluded = [{"test": "verbs-latency", "reason": "alpha has no backend verbs"}]
    run.edit("plan.json", put("excluded", excluded))
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "excluded")) == ("PASS", "not_judged")


def test_an_output_of_a_flow_that_the_plan_does_not_have_is_inconclusive(run: Run) -> None:
    def cut_flow(plan: dict[str, list[dict[str, list[dict[str, str]]]]]) -> None:
        for turn in plan["rounds"]:
            turn["flows"] = [one for one in turn["flows"] if one["test"] != "tcp-verify"]

    run.edit("plan.json", cut_flow)
    verdict = run.judge()
    evidence = check_of(verdict, "manifest/odd").evidence
    for host, role in (("alpha", "client"), ("beta", "server")):
        (line,) = (one for one in evidence if host in one.partition(" ")[0])
        assert f"is of flow 'tcp-verify/alpha/beta/0/1', whose {role} is not planned" in line


@pytest.mark.parametrize(
    "flow",
    ["other/alpha/beta/0/1", "tcp-latency/gamma/beta/0/1", "tcp-latency/beta/alpha/0/1",
     "tcp-latency/alpha/beta/0/9", "tcp-latency/alpha/beta/1/1"],
)  # fmt: skip
def test_a_line_of_a_flow_that_the_plan_does_not_have_is_named(run: Run, flow: str) -> None:
    walk = Walk(run.root / "raw/alpha")
    walk.ends.append({"id": flow, "role": "client", "state": "done"})
    walk.save()
    (found,) = check_of(run.judge(), "manifest/odd").evidence
    assert f"is of flow '{flow}', whose client is not planned on this host" in found


def test_a_host_without_any_flow_is_inconclusive(run: Run) -> None:
    run.edit("plan.json", lambda plan: plan["hosts"].update(gamma=plan["hosts"]["beta"]))
    assert status(run.judge(), "coverage") == "inconclusive"


def test_a_plan_of_the_null_backend_only_is_inconclusive(run: Run) -> None:
    def null(plan: Document) -> None:
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow["backend"] = "null"

    run.edit("plan.json", null)
    assert status(run.judge(), "excluded") == "inconclusive"


# ---- what hosts left -----------------------------------------------------------------------------


def test_a_missing_flow_is_inconclusive_and_listed(run: Run) -> None:
    for role in ("client", "server"):
        run.flow("tcp-latency", role).remove()
    verdict = run.judge()
    assert missing(verdict) == {TCP}
    assert status(verdict, f"flow/{TCP}") == "inconclusive"


def test_a_host_without_raw_outputs_is_inconclusive(run: Run) -> None:
    shutil.rmtree(run.root / "raw/beta")
    assert status(run.judge(), "host/beta") == "inconclusive"


@pytest.mark.parametrize(("key", "value"), [("state", "running"), ("run", "another")])
def test_an_agent_that_had_not_finished_or_is_anothers_is_inconclusive(
    run: Run, key: str, value: str
) -> None:
    run.agent("alpha", put(key, value))
    assert status(run.judge(), "host/alpha") == "inconclusive"


def test_pipes_links_and_devices_are_not_read(run: Run) -> None:
    alpha, beta = run.root / "raw/alpha", run.root / "raw/beta"
    (beta / "flows.jsonl").rename(run.root.parent / "outside")
    for name in ("flows.jsonl", "samples.jsonl", "environment.json"):
        (alpha / name).unlink()
    os.mkfifo(alpha / "flows.jsonl")
    os.mkfifo(alpha / "environment.json")
    (alpha / "samples.jsonl").symlink_to("/dev/zero")
    (beta / "flows.jsonl").symlink_to(run.root.parent / "outside")
    verdict = run.judge()
    assert (verdict.verdict, verdict.coverage.measured) == ("INCONCLUSIVE", 0)


# ---- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [cut, Path.unlink])
def test_missing_and_damaged_limits_are_inconclusive(
    run: Run, damage: Callable[[Path], object]
) -> None:
    damage(run.root / "inputs/limits.json")
    assert status(run.judge(), "limits") == "inconclusive"


def only(limit: str, change: Change) -> Change:
    """The limits with this one alone, changed."""

    def select(document: dict[str, object]) -> None:
        limits = document["limits"]
        assert isinstance(limits, list)
        kept = [one for one in limits if one["id"] == limit]
        change(kept[0])
        document["limits"] = kept

    return select


def test_a_required_limit_that_is_missed_fails_an_advisory_one_warns(run: Run) -> None:
    run.edit("plan.json", put("limits", "own"))
    run.edit(
        "inputs/limits.json", put("name", "own"), only("iperf-bandwidth", put("bound.min", 1e6))
    )
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "limit/iperf-bandwidth/iperf3")) == ("FAIL", "fail")
    run.edit(
        "inputs/limits.json",
        lambda document: document["limits"].append(
            document["limits"][0] | {"id": "floor", "bound": {"min": 1e-3}}
        ),
        put("limits.0.severity", "advisory"),
    )
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "limit/iperf-bandwidth/iperf3")) == (
        "PASS",
        "advisory",
    )


def test_a_required_limit_whose_figure_was_not_reported_is_inconclusive(run: Run) -> None:
    run.edit("inputs/limits.json", only("small-message-mean", put("metric", "latency_us.p99_99")))
    assert status(run.judge(), "limit/small-message-mean/tcp-latency") == "inconclusive"


# ---- the line ------------------------------------------------------------------------------------


def test_the_line_names_three_checks_of_a_kind(run: Run, perchctl: Judge) -> None:
    shutil.rmtree(run.root / "raw/beta")
    code, said, _ = perchctl("judge", run.root)
    assert code == 3
    assert "; inconclusive: " in said
    assert " more" in said


def test_a_title_cannot_print_a_verdict_of_its_own(run: Run, perchctl: Judge) -> None:
    run.edit(
        "inputs/limits.json",
        only("small-message-mean", put("metric", "latency_us.p99_99")),
        put("limits.0.title", "x\nPASS: all is well\x1b[2J"),
    )
    code, said, _ = perchctl("judge", run.root)
    assert code == 3
    assert said.splitlines() == [said.strip()]
    assert r"x PASS: all is well\x1b[2J" in said


def test_a_judgement_that_fails_leaves_no_report_of_an_earlier_verdict(run: Run) -> None:
    run.judge()
    for name in derived.MARKED:
        (run.root / name).write_text(derived.mark(run.root))
    (run.root / "records.parquet").unlink()
    (run.root / "records.parquet").mkdir()
    with pytest.raises(PerchError, match=r"records\.parquet: Is a directory"):
        run.judge()
    assert [name for name in derived.MARKED if (run.root / name).exists()] == []
