"""perch.judge.host_lines: what an agent leaves in flows.jsonl and samples.jsonl."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perch.judge import host_lines, planned, worker
from perch.judge.agents import agent_of
from perch.judge.hosts import HostFacts
from perch.judge.outputs import Outputs
from perch.judge.raw import RawFiles, TooLargeError
from perch.judge.readings import series
from perch.model.plan import Flow
from perch.model.raw import Agent, FlowFiles, Layout, Reading, Readings
from perch.model.raw_lines import SampleLine
from perch.run import judging

RUN, PLAN, HOSTS = "r", "0" * 64, ("a", "b")


def flow(repeat: int) -> Flow:
    return Flow(
        id=f"t/a/b/0/{repeat}", test="t", tool="perch", kind="latency", client="a", server="b",
        scope="software", repeat=repeat,
    )  # fmt: skip


FLOWS = [flow(1), flow(2), flow(3)]

HEAD = {"kind": "head", "schema": "perch.raw/2", "run": RUN, "plan_sha256": PLAN, "host": "a"}
LAYOUT = {
    "kind": "layout",
    "host": ["TcpRetransSegs"],
    "netdev": {"eth1": ["rx_bytes", "tx_bytes"]},
    "rdma": {"rxe0/1": {"netdev": "eth1", "counters": ["sent_pkts"]}},
}


def line(repeat: int, first: int, **more: Any) -> dict[str, Any]:
    known = {
        "kind": "flow", "id": f"t/a/b/0/{repeat}", "role": "client", "state": "done", "exit": 0,
        "started": "2026-01-01T00:00:00Z", "started_monotonic_ns": 1000,
        "ended": "2026-01-01T00:00:01Z", "ended_monotonic_ns": 2000001000,
        "samples": [first, first + 1], "route_interface": "eth1", "stdout": f"out {repeat}\n",
    }  # fmt: skip
    return known | more


def sample(number: int, values: str | None = None, **more: Any) -> dict[str, Any]:
    known = {"kind": "sample", "number": number, "time_s": f"{100 + number}.5", "settled": True}
    return known | {"monotonic_ns": number, "values": values or f"0 {number} 7 {number}"} | more


class Walk:
    """raw/a of a run, whose lines a test may change before they are read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.flows: list[Any] = [HEAD | {"flows": 3, "started": "2026-01-01T00:00:00Z"}]
        self.flows += [line(1, 1), line(2, 3), line(3, 5)]
        self.flows += [{"kind": "end", "state": "done", "flows_done": 3, "ended": "x"}]
        self.samples: list[Any] = [HEAD, LAYOUT, *map(sample, range(1, 7))]
        self.tail = "\n"

    def write(self) -> RawFiles:
        folder = self.root / "raw/a"
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in (("flows", self.flows), ("samples", self.samples)):
            texts = (
                one if isinstance(one, str) else json.dumps(one, separators=(",", ":"))
                for one in lines
            )
            (folder / f"{name}.jsonl").write_text("\n".join(texts) + self.tail)
        return RawFiles(self.root)

    def index(self, *pieces: list[Flow]) -> host_lines.Index:
        return host_lines.index(self.write(), RUN, HOSTS, pieces or [FLOWS])

    def files(self, piece: int = 0, pieces: tuple[list[Flow], ...] = (FLOWS,)) -> list[FlowFiles]:
        facts = {name: HostFacts(address_interface="eth1") for name in HOSTS}
        facts["a"].agent = Agent(run=RUN, host="a")
        outputs = Outputs(self.write(), facts, self.index(*pieces).parts[piece])
        return [outputs.of(one) for one in pieces[piece]]


@pytest.fixture
def walk(tmp_path: Path) -> Walk:
    return Walk(tmp_path)


def test_a_line_is_an_end_of_a_flow_with_its_readings(walk: Walk) -> None:
    (found, *_) = walk.files()
    end = found.client
    assert end is not None
    assert (end.run, end.host, end.flow, end.role) == (RUN, "a", "t/a/b/0/1", "client")
    assert (end.state, end.exit, end.elapsed_s) == ("done", 0, 2)
    assert found.stdout == b"out 1\n" and found.server is None
    counters = end.counters
    assert counters and counters.before and counters.after
    assert (counters.address_interface, counters.route_interface) == ("eth1", "eth1")
    assert (counters.before.time_s, counters.after.time_s) == ("101.5", "102.5")
    eth1 = counters.after.layout.netdev["eth1"]
    assert counters.after.table(eth1) == {"rx_bytes": "2", "tx_bytes": "7"}


def test_pieces_have_their_own_stretches(walk: Walk) -> None:
    pieces = FLOWS[:1], FLOWS[1:]
    first, second = walk.files(0, pieces), walk.files(1, pieces)
    assert [one.stdout for one in (*first, *second)] == [b"out 1\n", b"out 2\n", b"out 3\n"]
    ends = [one.client for one in second]
    assert all(end and not isinstance(end, str) and end.counters for end in ends)


def test_a_layout_counts_from_its_line_on(walk: Walk) -> None:
    walk.samples[5:5] = [LAYOUT | {"netdev": {}}]
    walk.samples[6:] = [sample(number, f"0 {number}") for number in (4, 5, 6)]
    pieces = FLOWS[:1], FLOWS[1:]
    devices = []
    for found in (*walk.files(0, pieces), *walk.files(1, pieces)):
        assert found.client and not isinstance(found.client, str) and found.client.counters
        before, after = found.client.counters.before, found.client.counters.after
        assert before and after
        devices.append([list(one.layout.devices) for one in (before, after)])
    both, one = ["eth1", "rxe0/1"], ["rxe0/1"]
    assert devices == [[both, both], [both, one], [one, one]]


@pytest.mark.parametrize(
    "change",
    [
        {"values": "0 1 7"},  # one value less than names
        {"values": "0 1 7 8 9"},
        {"number": 9},
        {"time_s": 5},
    ],
)
def test_a_sample_that_does_not_fit_tells_nothing(walk: Walk, change: dict[str, Any]) -> None:
    walk.samples[2] |= change
    end = walk.files()[0].client
    assert end and not isinstance(end, str) and end.counters
    assert end.counters.before is None and end.counters.after is not None


@pytest.mark.parametrize(
    "other", [{"host": "b"}, {"run": "another"}, {"kind": "sample"}, {"schema": "perch.raw/3"}]
)
def test_samples_of_another_host_or_run_tell_nothing(walk: Walk, other: dict[str, str]) -> None:
    walk.samples[0] = HEAD | other
    end = walk.files()[0].client
    assert end and not isinstance(end, str)
    assert end.counters == Readings(None, None, "eth1", "eth1")
    assert walk.index().odd == ["raw/a/samples.jsonl:1 is no head of this run and host"]


@pytest.mark.parametrize("samples", [[0, 1], [5, 700], [2**60, 2**60]])
def test_numbers_without_a_sample_tell_nothing(walk: Walk, samples: list[int]) -> None:
    walk.flows[1]["samples"] = samples
    end = walk.files()[0].client
    read = None if end is None or isinstance(end, str) else end.counters
    assert read is None or read.before is None or read.after is None


def test_a_torn_last_line_does_not_count(walk: Walk) -> None:
    walk.flows, walk.tail = walk.flows[:3], ""
    assert [one.client is None for one in walk.files()] == [False, True, True]
    assert walk.index().odd == []
    agent = agent_of(walk.write(), "raw/a")
    assert agent and (agent.state, agent.flows_total, agent.flows_done) == ("running", 3, 1)


def test_the_agent_says_how_it_ended(walk: Walk) -> None:
    walk.flows[-1] |= {"state": "stopped", "message": "by the controller"}
    agent = agent_of(walk.write(), "raw/a")
    assert agent and (agent.run, agent.host, agent.plan_sha256) == (RUN, "a", PLAN)
    assert (agent.state, agent.flows_done, agent.message) == ("stopped", 3, "by the controller")
    walk.flows[0] |= {"schema": "perch.raw/3"}
    other = agent_of(walk.write(), "raw/a")
    assert other and (other.state, other.run) == ("foreign", None)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("{", "raw/a/flows.jsonl:3 cannot be read"),
        ("[" * 100_000, "raw/a/flows.jsonl:3 cannot be read"),
        ({"kind": "news"}, "raw/a/flows.jsonl:3 is of the kind 'news', which is not expected"),
        (line(1, 1), "raw/a/flows.jsonl:3 repeats flow t/a/b/0/1"),
        (line(7, 1), "raw/a/flows.jsonl:3 is of flow 't/a/b/0/7', whose client is not planned"),
        (line(2, 1, role="server"), "raw/a/flows.jsonl:3 is of flow 't/a/b/0/2', whose server is"),
        (
            line(2, 1, role="x"),
            "raw/a/flows.jsonl:3 is of flow 't/a/b/0/2', whose x is not planned",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named(walk: Walk, bad: Any, why: str) -> None:
    walk.flows.insert(2, bad)
    assert [one.startswith(why) for one in walk.index().odd] == [True]
    assert walk.files()[0].stdout == b"out 1\n"


def test_nothing_follows_the_end(walk: Walk) -> None:
    walk.flows.append(walk.flows.pop(2))
    assert walk.index().odd == ["raw/a/flows.jsonl:5 follows the end"]
    assert [one.client is None for one in walk.files()] == [False, True, False]
    walk.flows[-1] = walk.flows[-2]
    assert walk.index().odd == ["raw/a/flows.jsonl:5 follows the end"]


def test_a_line_that_is_no_sample_is_named(walk: Walk) -> None:
    walk.samples.insert(4, {"kind": "news"})
    assert walk.index().odd == ["raw/a/samples.jsonl:5 is neither a layout nor a sample"]


def test_a_line_with_a_key_twice_is_no_end(walk: Walk) -> None:
    text = json.dumps(walk.flows[1], separators=(",", ":"))
    walk.flows[1] = text.replace('"exit":0', '"exit":1,"exit":0')
    assert walk.files()[0].client is None


def test_an_output_that_was_cut_is_no_result(walk: Walk) -> None:
    walk.flows[1]["stdout_bytes"] = 2_000_000
    with pytest.raises(TooLargeError, match="2000000 bytes"):
        walk.files()


# ---- whole runs ----------------------------------------------------------------------------------


def test_a_line_of_no_planned_flow_keeps_no_pass(run_copy: Callable[[str], Path]) -> None:
    root = run_copy("rxe")
    (root / "raw/manifest.sha256").unlink(missing_ok=True)
    assert judging.judge(root)[0].verdict == "PASS"
    file = root / "raw/alpha/flows.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1], *lines[1:]]) + "\n")
    verdict, _ = judging.judge(root)
    found = {check.id: check for check in verdict.checks}
    assert verdict.verdict == "INCONCLUSIVE"
    assert "raw/alpha/flows.jsonl:3 repeats flow" in str(found["manifest/odd"].measured)


def test_a_remedy_names_the_hosts_and_files_of_a_cut_run(run_copy: Callable[[str], Path]) -> None:
    root = run_copy("loopback")
    file = root / "raw/alpha/flows.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    file = root / "raw/beta/flows.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:1]))
    remedies = {check.id: check.remedy for check in judging.judge(root)[0].checks}
    assert remedies["host/alpha"] == (
        "fetch raw/alpha/flows.jsonl from its host again, or measure again"
    )
    assert remedies["host/beta"] == (
        "look at raw/beta/agent.log; where it is missing run playbooks/fetch.yml, or measure again"
    )
    flows = {str(one) for name, one in remedies.items() if name.startswith("flow/")}
    assert flows and not any("<" in one for one in flows)
    assert any("raw/alpha" in one and "raw/beta" in one for one in flows)


def test_rubbish_in_samples_is_named_with_its_file(run_copy: Callable[[str], Path]) -> None:
    root = run_copy("loopback")
    (root / "raw/alpha/samples.jsonl").write_text("rubbish\n")
    found = {check.id: check for check in judging.judge(root)[0].checks}["manifest/odd"]
    assert found.fault == "Lines of raw files cannot be used"
    assert "raw/alpha/samples.jsonl:1 is no head" in str(found.measured)


@pytest.mark.parametrize("instead", [None, Path.mkdir, os.mkfifo, "link"])
def test_samples_that_are_missing_or_no_file_keep_no_pass(
    run_copy: Callable[[str], Path], instead: Callable[[Path], object] | str | None
) -> None:
    root = run_copy("loopback")
    (root / "raw/manifest.sha256").unlink(missing_ok=True)
    assert judging.judge(root)[0].verdict == "PASS"
    file = root / "raw/alpha/samples.jsonl"
    whole = file.rename(root.parent / "outside")
    if instead == "link":
        file.symlink_to(whole)
    elif callable(instead):
        instead(file)
    verdict, _ = judging.judge(root)
    found = {check.id: check for check in verdict.checks}["host/alpha"]
    assert verdict.verdict == "INCONCLUSIVE"
    assert found.measured == "raw/alpha/samples.jsonl is missing or no regular file"
    assert found.remedy == ("fetch raw/alpha/samples.jsonl from its host again, or measure again")


def test_an_environment_of_another_run_keeps_no_pass(run_copy: Callable[[str], Path]) -> None:
    root = run_copy("rxe")
    file = root / "raw/alpha/environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"run": "another"}))
    verdict, _ = judging.judge(root)
    assert verdict.verdict == "INCONCLUSIVE"


@pytest.mark.parametrize("samples", [[1, 3000], [2, 1]])
def test_idle_samples_that_are_not_there_keep_no_pass(
    run_copy: Callable[[str], Path], samples: list[int]
) -> None:
    root = run_copy("rxe")
    file = root / "raw/alpha/environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"idle_samples": samples}))
    verdict, _ = judging.judge(root)
    found = {check.id: check for check in verdict.checks}
    assert verdict.verdict == "INCONCLUSIVE"
    assert "idle time that samples.jsonl does not have" in str(found["host/alpha"].measured)


def test_pieces_of_a_plan_have_every_flow_once(run_copy: Callable[[str], Path]) -> None:
    plan = planned.plan_to_judge(run_copy("loopback") / "plan.json")
    found = [turn for piece in worker.pieces(plan.rounds) for turn in piece]
    assert found == plan.rounds


def test_of_a_day_only_the_samples_that_flows_name_are_read(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soak's flow names its first sample and its last one."""
    last = 1000
    walk.flows[1:-1] = [line(1, 1, samples=[1, last]), line(2, 1, samples=[2, last])]
    walk.samples[1:] = [LAYOUT, *map(sample, range(1, last + 1))]
    walk.samples.insert(500, LAYOUT | {"host": ["TcpRetransSegs"]})
    read: list[int] = []

    def counted(of: Layout, lines: Sequence[SampleLine]) -> list[Reading | None]:
        read.append(len(lines))
        return series(of, lines)

    monkeypatch.setattr(host_lines, "series", counted)
    first, second, _ = walk.files()
    assert read == [2, 1]
    for end in (first.client, second.client):
        assert end and not isinstance(end, str) and end.counters and end.counters.after
        assert end.counters.after.number == last
        assert end.counters.before and not end.counters.after.steps_on(end.counters.before)
