"""What hosts say of themselves, and host-check's answers: whose they are, and what jq finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.errors import PerchError
from perch.judge import findings, planned
from perch.judge.findings import Question
from perch.judge.hosts import HostFacts, cxi_hosts, gpu_hosts, read_hosts
from perch.judge.raw import RawFiles
from perch.model.plan import Flow
from tests import spelled
from tests.py.judging import Run, check_of, put

Document = dict[str, Any]

ANSWER: Document = {
    "schema": "perch.host_check/1",
    "hostname": "alpha",
    "collected": "2026-11-21T08:05:00Z",
    "files": {"/proc/uptime": "1 1"},
    "later": {},
    "links": {},
    "commands": {"kernel": {"exit": 0}},
}


@pytest.fixture
def root(run_copy: Callable[[str], Path]) -> Path:
    """The recorded run, planned with checks of hosts that alpha answered."""
    folder = run_copy("loopback")
    Run(folder).edit("plan.json", lambda plan: plan.update(host_checks=True))
    (folder / "inputs/hosts").mkdir()
    wanted = {"schema": "perch.wanted/1", "host": "alpha", "wanted": {"mtu": 9000}}
    (folder / "inputs/hosts/alpha.json").write_text(json.dumps(wanted))
    (folder / "raw/alpha/host_check.json").write_text(json.dumps(ANSWER))
    environment = folder / "raw/alpha/environment.json"
    said = json.loads(environment.read_text())
    environment.write_text(json.dumps(said | {"hostname": "alpha"}))
    return folder


def read(root: Path, asked: list[Question] | None = None) -> dict[str, HostFacts]:
    """The hosts of a run, with what jq is asked left in `asked`, and one finding on each host."""

    def judged(questions: list[Question]) -> dict[str, list[Document]]:
        if asked is not None:
            asked.extend(questions)
        return {question.host["name"]: [{"id": "x"}] for question in questions}

    return read_hosts(RawFiles(root), planned.read_plan(root / "plan.json"), judged)


def test_an_answer_is_judged_with_what_is_wanted(root: Path) -> None:
    asked: list[Question] = []
    hosts = read(root, asked)
    (question,) = asked
    assert question.areas == ["machine", "nic", "qos"]
    assert question.host == {
        "name": "alpha", "fabric": "loopback", "scope": "software", "wanted": {"mtu": 9000},
        "link_gbit_s": None, "traits": {}, "ports": [18600], "devices": [], "gpu": False,
    }  # fmt: skip
    assert question.raw == ANSWER
    assert (hosts["alpha"].unchecked, hosts["alpha"].checks) == (None, [{"id": "x"}])
    assert hosts["beta"].unchecked == "host_check.json is missing or cannot be read"
    assert hosts["beta"].checks is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": "perch.host_check/0"}, "host_check.json is missing or cannot be read"),
        ({"files": {}}, "host_check.json has no readings of the host"),
        ({"links": []}, "host_check.json has no readings of the host"),
        ({"commands": {}}, "host_check.json has no readings of the host"),
        ({"commands": {"kernel": {"exit": 1}}}, "host_check.json has no readings of the host"),
        ({"hostname": "beta"}, "its host name is 'beta', but in environment.json 'alpha'"),
        ({"collected": "yesterday"}, "its time, or the time of the plan, is missing"),
        ({"collected": "2026-11-21T07:59:05Z"},
         "its time, 2026-11-21T07:59:05Z, is before that of the plan, 2026-11-21T08:04:06Z"),
        ({"collected": "2026-11-21T07:59:07Z"}, None),
        ({"collected": "2027-11-21T08:05:00Z"},
         "its time, 2027-11-21T08:05:00Z, is after its agent ended, 2026-11-21T08:04:54.593Z"),
        ({"commands": ANSWER["commands"] | {"clock": {"exit": 0, "stdout": "1826784300.5"}}},
         "its time is 2026-11-21T08:05:00Z, but its clock read 1826784300 s since 1970"),
        ({"commands": ANSWER["commands"] | {"clock": {"exit": 0, "stdout": "1795248301.5"}}}, None),
    ],
)  # fmt: skip
def test_an_answer_of_another_host_or_run_is_not_judged(
    root: Path, change: Document, why: str | None
) -> None:
    (root / "raw/alpha/host_check.json").write_text(json.dumps(ANSWER | change))
    assert read(root)["alpha"].unchecked == why


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("inputs/hosts/alpha.json", "inputs/hosts/alpha.json has no wanted settings"),
        ("raw/alpha/environment.json", "its host is unproven: environment.json has no host name"),
    ],
)
def test_an_answer_needs_what_it_is_compared_with(root: Path, path: str, why: str) -> None:
    (root / path).write_text("{")
    assert read(root)["alpha"].unchecked == why


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            '{"kind":"head","schema":"perch.raw/2","run":"another","plan_sha256":"","host":"a"}\n',
            " belongs to run 'another'",
        ),
        (
            '{"kind":"head","schema":"perch.raw/3","run":"another","plan_sha256":"","host":"a"}\n',
            ", line 1: its schema is 'perch.raw/3', not perch.raw/2",
        ),
        (
            '{"kind":"head","schema":"perch.raw/2"}\n',
            ", line 1: it cannot be read: 'run' is missing",
        ),
        ('{"kind":"flow","id":"a"}\n', ", line 1: it is not the head of perch.raw/2"),
        ("", ", line 1: it cannot be read: input data was truncated"),
    ],
)
def test_an_agents_report_is_of_this_run(root: Path, text: str, fault: str) -> None:
    (root / "raw/alpha/flows.jsonl").write_text(text)
    agent = read(root)["alpha"].agent
    assert agent is not None
    assert (agent.state, agent.fault) == ("foreign", f"raw/alpha/flows.jsonl{fault}")


def test_an_agent_that_walked_another_plan_leaves_no_verdict(
    run_copy: Callable[[str], Path],
) -> None:
    run = Run(run_copy("loopback"))
    spelled.walked(run.root)
    assert run.judge().verdict == "PASS"
    walked = planned.read_plan(run.root / "plan.json").sha256[:12]
    plan = json.loads((run.root / "plan.json").read_bytes())
    (run.root / "plan.json").write_text(json.dumps(plan))  # the same, but for its blanks
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    said = check_of(verdict, "host/alpha").measured
    there = planned.read_plan(run.root / "plan.json").sha256[:12]
    assert said == (f"its agent ran a plan with SHA-256 {walked}, but plan.json has {there}")


def test_flows_over_a_cassini_make_their_hosts_slingshot() -> None:
    def flow(**said: Any) -> Flow:
        made = {"id": "t/a/b/0/1", "test": "t", "tool": "perch", "kind": "latency", "client": "a",
                "server": "b", "scope": "hardware"}  # fmt: skip
        return msgspec.convert(made | said, Flow)

    assert cxi_hosts([flow(), flow(tool="cxi", client="c")]) == {"c", "b"}
    assert (
        cxi_hosts([flow(backend="cxi", imported={"file": "x", "line": 1, "expect": []})]) == set()
    )
    assert findings.areas(machine=False, slingshot=True) == ["slingshot"]


@pytest.mark.parametrize(
    ("params", "hosts"),
    [
        ({}, set()),
        ({"memory": "host"}, set()),
        ({"memory": "huge:2M"}, set()),
        ({"memory": "cuda:1"}, {"a", "b"}),
        ({"rx_memory": "rocm"}, {"a", "b"}),
        ({"tx_memory": "ze", "bounce": True}, set()),
    ],
)
def test_flows_in_gpu_memory_name_the_hosts_whose_gpus_count(
    params: Document, hosts: set[str]
) -> None:
    flows = [
        msgspec.convert(
            {"id": f"{test}/a/b/0/1", "test": test, "tool": "perch", "kind": "latency",
             "client": "a" if test == "t" else "c", "server": "b" if test == "t" else "d",
             "scope": "hardware", "params": params if test == "t" else {}},
            Flow,
        )
        for test in ("t", "other")
    ]  # fmt: skip
    assert gpu_hosts(flows) == hosts


# ---- jq ------------------------------------------------------------------------------------------


@pytest.fixture
def hosts_once() -> None:
    """jq is asked again each time."""


def question(name: str) -> Question:
    host = {"name": name, "fabric": "roce", "scope": "hardware", "wanted": {}, "ports": [1],
            "devices": []}  # fmt: skip
    return Question(["machine"], host, ANSWER)


def test_jq_finds_something_on_each_host() -> None:
    found = findings.judged([question("alpha"), question("beta")])
    assert list(found) == ["alpha", "beta"]
    ids = {finding["id"] for finding in found["alpha"]}
    assert len(ids) > 5
    assert all("host" not in finding for finding in found["alpha"])


def test_nothing_is_run_where_no_host_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert findings.judged([]) == {}


def test_a_machine_without_jq_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PerchError, match="jq is not installed; install the package jq"):
        findings.judged([question("alpha")])


def test_an_answer_on_which_an_area_fails_is_a_finding_on_its_host() -> None:
    damaged = question("alpha")
    damaged.raw = {"files": 5}
    (found,) = findings.judged([damaged])["alpha"]
    assert (found["id"], found["status"]) == ("answer", "unknown")
    assert found["found"].startswith("its answer cannot be judged: jq: error")


def test_an_area_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "DEADLINE_S", 0)
    with pytest.raises(PerchError, match="took longer than 0 s"):
        findings.judged([question("alpha")])


def test_two_findings_of_one_id_are_one_check(cards: Run) -> None:
    cards.edit("inputs/hosts/alpha.json", put("wanted.roce_tos", 999), put("wanted.ets", 7))
    found = check_of(cards.judge(), "host_check/qos-wanted/alpha")
    assert found.status == "fail"
    assert "host_check_roce_tos is 999" in str(found.measured)
    assert "host_check_ets is 7" in str(found.measured)
    assert found.evidence == ["alpha"]
