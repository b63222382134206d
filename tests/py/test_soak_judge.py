"""Composed soaks, clean ones and ones with planted faults.

What is planted in one flow of a run says nothing of the others, so that one run shows many.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.py.soak_built import Document, Soak, composed, judged

#: Flows 0-5 are load, 6-11 verify, 12-17 latency, of node1 to node6 each.
PLANTED = (
    "--hosts 6 --duration 1800 --plant gap=12@700:0 --plant stall=0.05@605-1500:12 "
    "--plant stall=2@910:13 --plant drift=-0.6:1 --plant step=-0.5@900:2 "
    "--plant slow=1000@900-960:14 --plant flip@700:6 --plant tenfold@900:3 --plant missing@900:4 "
    "--plant double@900:5 --plant long@900:7 --plant foreign:8 --plant junk@900:9 "
    "--plant dropped=3:10 --plant half:11 --plant nofile:15 --plant clock=5@900:16 "
    "--plant leak=40:0 --plant handles=60:1 --plant counter@900:2 --plant flap@900:3 "
    "--plant nosample@900-1400:4"
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Soak:
    return judged(tmp_path_factory.mktemp("planted") / "run", PLANTED)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("kind", "at", "severity"),
    [
        ("gap", "load/node1/node2/0/1", "fail"),
        ("stall", "latency/node1/node2/0/1", "advisory"),
        ("stall", "latency/node2/node3/0/1", "fail"),
        ("drift", "load/node2/node3/0/1", "fail"),
        ("change", "load/node3/node4/0/1", "fail"),
        ("slow", "latency/node3/node4/0/1", "advisory"),
        ("corrupt", "verify/node1/node2/0/1", "fail"),
        ("rate", "load/node4/node5/0/1", "fail"),
        ("sum", "load/node4/node5/0/1", "inconclusive"),
        ("hole", "load/node5/node6/0/1", "inconclusive"),
        ("overlap", "load/node6/node1/0/1", "inconclusive"),
        ("length", "verify/node2/node3/0/1", "inconclusive"),
        ("foreign", "verify/node3/node4/0/1", "inconclusive"),
        ("damaged", "verify/node4/node5/0/1", "inconclusive"),
        ("dropped", "verify/node5/node6/0/1", "inconclusive"),
        ("hole", "latency/node4/node5/0/1", "inconclusive"),
        ("clock", "latency/node5/node6/0/1", "advisory"),
        ("leak", "node1", "fail"),
        ("handles", "node2", "fail"),
        ("counter", "node3", "advisory"),
        ("link", "node4", "fail"),
        ("host", "node5", "inconclusive"),
    ],
)
def test_each_planted_fault_is_found_where_it_is_with_its_severity(
    planted: Soak, kind: str, at: str, severity: str
) -> None:
    assert planted.verdict["verdict"] == "FAIL"
    assert planted.found(kind, at) == severity


def test_what_was_not_planted_is_not_found_and_a_half_line_at_the_end_is_no_fault(
    planted: Soak,
) -> None:
    clean = ("verify/node6/node1/0/1", "latency/node6/node1/0/1")
    assert [one for one in planted.soak["anomalies"] if one["flow"] in clean] == []


def test_a_drift_is_no_step(planted: Soak) -> None:
    assert planted.found("change", "load/node2/node3/0/1") is None


def test_anomalies_stand_with_the_gravest_first_and_then_in_time(planted: Soak) -> None:
    ranks = {"fail": 0, "inconclusive": 1, "advisory": 2}
    found = planted.soak["anomalies"]
    order = [(ranks[one["severity"]], one["start_s"] or -1) for one in found]
    assert order == sorted(order)
    assert [one["id"] for one in found] == [f"a{n}" for n in range(1, len(found) + 1)]


def test_an_anomaly_has_its_time_its_messages_and_the_line_that_shows_it(planted: Soak) -> None:
    (gap,) = planted.anomalies("gap")
    path = "raw/node1/flows/load/node1/node2/0/1/client.soak"
    assert gap == gap | {
        "start": "2026-01-01T00:11:40.000Z", "start_s": 700, "end_s": 712, "duration_s": 12,
        "value": 12, "unit": "s", "evidence": [f"{path}:15"],
    }  # fmt: skip
    line = (planted.root / path).read_text().splitlines()[14]
    assert json.loads(line)["kind"] == "gap"
    stalls = [one for one in planted.anomalies("stall") if one["severity"] == "fail"]
    assert [(one["messages"], one["start_s"], one["duration_s"]) for one in stalls] == [(3, 910, 2)]


def test_a_step_is_dated_to_its_interval(planted: Soak) -> None:
    steps = planted.anomalies("change")
    (at,) = [one["start_s"] for one in steps if one["flow"] == "load/node3/node4/0/1"]
    assert 870 < at <= 960


def test_intervals_have_every_line_but_wholes_and_what_cannot_be_used(planted: Soak) -> None:
    lines = list(planted.intervals())
    of_flow = [one for one in lines if one.get("flow") == "latency/node6/node1/0/1"]
    assert [one["kind"] for one in of_flow] == ["soak", "connection", *["interval"] * 30]
    samples = [one for one in lines if one["kind"] == "sample" and one["host"] == "node1"]
    assert [one["line"] for one in samples] == list(range(3, 34))
    gaps = [one for one in lines if one["kind"] == "gap"]
    assert [(one["line"], one["turn"], one["client"], one["soak_s"]) for one in gaps] == [
        (15, 1, "node1", 0)
    ]
    junk = [one["line"] for one in lines if one.get("flow") == "verify/node4/node5/0/1"]
    assert 17 not in junk and 18 in junk


def test_lines_keep_every_digit(planted: Soak) -> None:
    path = planted.root / "raw/node6/flows/latency/node6/node1/0/1/client.soak"
    raw = json.loads(path.read_text().splitlines()[2])
    (line,) = [
        one
        for one in planted.intervals()
        if one.get("flow") == "latency/node6/node1/0/1" and one["line"] == 3
    ]
    assert line == line | raw


def test_the_same_run_gives_the_same_bytes(planted: Soak, root: Path) -> None:
    shutil.copytree(planted.root, root)
    again = Soak(root)
    again.judge()
    lines = [one.root / "intervals.jsonl" for one in (again, planted)]
    assert lines[0].read_bytes() == lines[1].read_bytes()
    assert again.verdict == planted.verdict


def test_a_clean_soak_passes_without_any_anomaly(root: Path) -> None:
    soak = composed(root, "--duration 1800")
    assert soak.judge() == "PASS"
    section = soak.soak
    assert (section["state"], section["running"]) == ("done", False)
    assert (section["anomalies"], section["anomaly_counts"]) == ([], {})


def test_memory_passes_only_where_a_process_lived_long_enough_to_tell_a_leak(root: Path) -> None:
    soak = judged(root, "--duration 28800 --interval 300")
    assert (soak.status("memory"), soak.status("handles")) == ("not_judged", "pass")
    wanted = r"10 of 22 .*; (measurer|job): in 7\.8. h only growth above 1\.2 MB/h"
    assert re.match(wanted, soak.check("memory")["measured"])
    longer = judged(root.parent / "longer", "--duration 43200 --interval 300")
    assert (longer.status("memory"), longer.status("handles")) == ("pass", "pass")


# ---- turns ---------------------------------------------------------------------------------------


def test_turns_that_alternate_are_one_course(root: Path) -> None:
    drifts = " ".join(f"--plant drift=-0.6:{flow}" for flow in (0, 6, 12, 18))
    soak = judged(root, f"--duration 7200 --mode alternating --turn 600 {drifts}")
    assert soak.verdict["verdict"] == "FAIL"
    assert [one["flow"] for one in soak.anomalies("drift")] == ["load/node1/node2/0/10"]
    assert [flow["state"] for flow in soak.soak["flows"]] == ["done"] * 24


def test_turns_that_were_taken_out_of_a_plan_are_no_time_that_was_measured(root: Path) -> None:
    soak = composed(root, "--duration 1800 --mode alternating --turn 600")
    assert (soak.judge(), soak.status("state")) == ("PASS", "pass")
    soak.edit("plan.json", lambda plan: plan["rounds"].pop())
    assert soak.judge() == "INCONCLUSIVE"
    (fault,) = soak.verdict["checks"]
    assert fault["id"] == "plan"
    assert "its turns together last 1200 s, but the soak lasts 1800 s" in fault["measured"]
    assert not (root / "intervals.jsonl").exists()


def test_a_clock_that_is_set_back_between_turns_moves_no_time_but_its_own_flows(
    root: Path,
) -> None:
    soak = composed(root, "--mode alternating --turn 600 --duration 3600 --plant flap@1000:0")

    def set_back(line: Document, place: int) -> None:
        if place == 0:
            line["started_ms"] = 1767218400000

    for turn in (2, 3):
        soak.edit_lines(f"node2/flows/*/*/*/0/{turn}/client.soak", set_back)
    soak.judge()
    assert soak.soak["started"] == "2026-01-01T00:00:00.000Z"
    assert soak.status("samples") == "pass"
    assert int(soak.anomalies("link")[0]["start_s"]) == 960


def test_a_flow_that_says_it_began_before_its_agent_does_not_date_the_soak(root: Path) -> None:
    soak = composed(root, "--duration 600")

    def set_back(line: Document, place: int) -> None:
        if place == 0:
            line["started_ms"] = 1767218400000

    soak.lines("load", set_back)
    soak.judge()
    assert soak.soak["started"] == "2026-01-01T00:00:00.000Z"


def test_the_file_of_one_turn_is_not_another_s(root: Path) -> None:
    soak = composed(root, "--mode alternating --turn 600 --duration 3600")
    assert soak.judge() == "PASS"
    flows = root / "raw/node1/flows/load/node1/node2/0"
    shutil.copy(flows / "1/client.soak", flows / "4/client.soak")
    printed = (flows / "1/client.soak").read_text().splitlines(keepends=True)[-1]
    soak.printed("load/node1/node2/0/4", printed)
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.texts("foreign") == [
        "inconclusive load/node1/node2/0/4: its file belongs to another measurement: it began "
        "0.000 s after its agent, but the turn before it lasted 600.0 s longer"
    ]


# ---- soaks that are not over ---------------------------------------------------------------------


def test_a_soak_that_runs_is_no_pass(root: Path) -> None:
    soak = composed(root, "--duration 3600 --running 1200")
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.soak["running"]
    assert soak.said("state") == "inconclusive: still running: 1200 s of 3600 s"


def test_a_soak_that_was_stopped_is_no_pass(root: Path) -> None:
    soak = composed(root, "--duration 3600 --stopped 1200")
    assert soak.judge() == "INCONCLUSIVE"
    assert (soak.status("state"), soak.soak["state"]) == ("inconclusive", "stopped")
    remedies = {one["remedy"] for one in soak.verdict["checks"] if one["status"] == "inconclusive"}
    assert len(remedies) == 1 and "soak_stop.yml" in remedies.pop()
    assert soak.soak["stall_limits_s"] == [0.04]


def test_a_host_without_samples_is_no_pass(root: Path) -> None:
    soak = composed(root, "--duration 1200")
    (root / "raw/node2/samples.jsonl").unlink()
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.said("samples") == "inconclusive: node2 left no sample"


def test_a_soak_of_the_old_format_is_refused_by_name(root: Path) -> None:
    soak = composed(root, "--duration 600")
    for host in ("node1", "node2"):
        for name in ("flows.jsonl", "samples.jsonl"):
            (root / f"raw/{host}/{name}").unlink()
        (root / f"raw/{host}/agent.json").write_text('{"schema":"perch.agent/1"}\n')
    assert soak.judge() == "INCONCLUSIVE"
    (one,) = [one for one in soak.verdict["checks"] if one["id"] == "host/node1"]
    assert one["measured"] == "raw/node1 is in the format perch.raw/1, which is not read any more"
    assert one["remedy"] == "judge it with the Perch that measured it, or soak again"


def test_a_link_in_the_place_of_a_file_is_no_file(root: Path) -> None:
    soak = composed(root, "--duration 1200")
    path = root / "raw/node2/samples.jsonl"
    path.rename(root / "elsewhere")
    path.symlink_to(root / "elsewhere")
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.said("samples") == "inconclusive: node2 left no sample"


# ---- the stop ------------------------------------------------------------------------------------

GAP = "load/node1/node2/0/1"


@pytest.mark.parametrize(
    ("words", "asked_s", "severity"),
    [
        ("--stopped 1200 --plant gap=3@1197:0", 1196, "advisory"),
        ("--stopped 1200 --plant gap=3@1197:0", 1198, "fail"),
        # it came back
        ("--stopped 1200 --plant gap=3@300:0", 200, "fail"),
        # nobody stopped it
        ("--plant gap=3@300:0", 200, "fail"),
    ],
)
def test_a_connection_that_was_lost_for_good_after_the_stop_was_asked_for_is_the_stop_s(
    root: Path, words: str, asked_s: float, severity: str
) -> None:
    soak = composed(root, f"--duration 3600 {words}")
    soak.agent("node2", "end", stop_asked_s=asked_s)
    soak.judge()
    assert (soak.found("gap", GAP), soak.status("gaps")) == (severity, severity)
    after = ", after the request to stop" if severity == "advisory" else ""
    assert [one["text"] for one in soak.anomalies("gap")] == [
        f"no connection for 3.0 s{after}: the connection was lost"
    ]


@pytest.mark.parametrize("late_s", [0, 75])
def test_which_was_first_is_told_by_the_uptime_of_the_host(root: Path, late_s: int) -> None:
    """No wall and no turn that is late moves it."""
    soak = composed(
        root, "--mode alternating --turn 600 --duration 3600 --plant gap=3@3597-3600:11"
    )
    (path,) = [
        one
        for one in root.glob("raw/*/flows/*/*/*/*/*/client.soak")
        if '"kind":"gap"' in one.read_text()
    ]
    last = str(path.relative_to(root / "raw"))
    flow = "/".join(path.parts[-6:-1])
    client, server = path.parts[-5], path.parts[-4]
    for host in (client, server):
        soak.agent(host, "end", state="stopped", passed_s=3700)

    def turn(line: Document, _: int) -> None:
        if line["kind"] == "connection":
            line["uptime_s"] += late_s

    soak.edit_lines(last, turn)
    for started_ms in (1767220000000, 1767232800000):

        def began(line: Document, place: int, started_ms: int = started_ms) -> None:
            if place == 0:
                line["started_ms"] = started_ms

        soak.edit_lines(last, began)
        for asked_s, severity in ((3596, "advisory"), (3598, "fail")):
            soak.agent(server, "end", stop_asked_s=asked_s + late_s)
            soak.judge()
            assert soak.found("gap", flow) == severity

    def rebooted(line: Document, _: int) -> None:
        if line["kind"] == "connection":
            line["boot_id"] = "another"

    soak.edit_lines(last, rebooted)
    soak.agent(server, "end", stop_asked_s=1)
    soak.judge()
    assert soak.found("gap", flow) == "fail"


BEGUN = "2026-01-01T00:00:10.000Z"


@pytest.mark.parametrize(
    ("host", "kind", "said", "severity"),
    [
        # both were asked 1198 s after the client's soak began
        ("node1", "end", {"stop_asked_s": 1198}, "fail"),
        ("node2", "end", {"stop_asked_s": 1188}, "fail"),
        ("node2", "end", {"stop_asked_s": 1175}, "advisory"),
        # walls a minute apart and more
        ("node2", "start", {"begun": "2025-12-31T23:58:59.000Z"}, "fail"),
        # what no agent can have said excuses nothing
        ("node2", "end", {"stop_asked_s": -1}, "fail"),
        ("node2", "end", {"stop_asked_s": "0"}, "fail"),
        ("node2", "end", {"stop_asked_s": 1175, "passed_s": None}, "fail"),
        ("node2", "start", {"begun": 5}, "fail"),
        ("node2", "start", {"begun": None}, "fail"),
        ("node1", "start", {"boot_id": [1]}, "fail"),
        ("node1", "start", {"boot_id": "another"}, "fail"),
        ("node1", "start", {"uptime_s": "0"}, "fail"),
        ("node1", "start", {"uptime_s": 6000}, "fail"),
        ("node1", "start", {"uptime_s": 0}, "fail"),
    ],
)
def test_a_stop_is_told_by_the_client_s_time(
    lost_at_its_end: Soak, root: Path, host: str, kind: str, said: dict[str, Any], severity: str
) -> None:
    soak = Soak(shutil.copytree(lost_at_its_end.root, root))
    if kind == "start":
        soak.agent("node2", "end", stop_asked_s=1175)
    soak.agent(host, kind, **said)
    soak.judge()
    assert soak.found("gap", GAP) == severity


@pytest.fixture(scope="module")
def lost_at_its_end(tmp_path_factory: pytest.TempPathFactory) -> Soak:
    soak = composed(
        tmp_path_factory.mktemp("lost") / "run",
        "--duration 3600 --stopped 1200 --plant gap=10@1190:0",
    )
    soak.agent("node2", "start", begun=BEGUN)
    return soak


# ---- limits --------------------------------------------------------------------------------------


def told_from(soak: Soak, seconds: float) -> None:
    """The soak tells stalls from so many seconds on."""

    def of_plan(plan: Document) -> None:
        plan["soak"]["stall_s"] = seconds
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow["params"]["stall"] = f"{seconds}s"

    def of_line(line: Document, _: int) -> None:
        if line["kind"] == "soak":
            line["stall_s"] = seconds

    def of_end(end: Document, _: int) -> None:
        if "argv" in end:
            end["argv"] = [f"{seconds}s" if word == "20ms" else word for word in end["argv"]]

    soak.edit("plan.json", of_plan)
    soak.lines("*", of_line)
    soak.edit_lines("*/flows.jsonl", of_end)


def test_no_stall_is_no_pass_where_one_beyond_its_limit_would_not_have_been_told(
    root: Path,
) -> None:
    soak = composed(root, "--duration 1200")
    told_from(soak, 30)
    assert soak.judge() == "INCONCLUSIVE"
    text = "the limit is 1 s, but stalls shorter than 30 s were not recorded"
    assert soak.said("stalls") == f"inconclusive: {text}"


def test_no_stall_is_a_pass_where_one_beyond_its_limit_would_have_been_told(root: Path) -> None:
    soak = composed(root, "--duration 1200")
    told_from(soak, 1)
    assert (soak.judge(), soak.status("stalls")) == ("PASS", "pass")


def test_a_host_that_was_booted_anew_is_found_by_its_samples_with_the_gaps_of_its_flows(
    root: Path,
) -> None:
    soak = judged(root, "--duration 1500 --plant reboot@700-800")
    assert soak.verdict["verdict"] == "FAIL"
    assert soak.found("reboot", "node1") == "fail"
    assert soak.found("gap", GAP) == "fail"
    assert soak.found("host", "node1") is None


def test_limits_of_the_run_stand_in_the_place_of_the_built_in_ones(root: Path) -> None:
    soak = composed(root, "--duration 1200 --plant gap=3@700")
    required = {"severity": "required"}
    soak.limit(
        {"metric": "soak.gaps", "scope": {"kind": "bandwidth"}, "bound": {"max": 1}} | required,
        {
            "metric": "soak.interval_gbit_s", "scope": {"test": "verify"}, "bound": {"min": 0.2},
            "unit": "Gb/s",
        } | required,
    )  # fmt: skip
    assert soak.judge() == "FAIL"
    assert (soak.status("gaps"), soak.status("interval/verify")) == ("pass", "fail")
    assert not [one for one in soak.verdict["checks"] if one["id"] == "limits"]


@pytest.mark.parametrize(
    ("kind", "key"), [("end", "passed_s"), ("end", "stop_asked_s"), ("start", "uptime_s")]
)
@pytest.mark.parametrize("value", [10**400, 1e300, [1], {}, "x"])
def test_what_an_agent_says_beyond_all_bounds_is_odd_and_costs_no_verdict(
    root: Path, kind: str, key: str, value: object
) -> None:
    soak = composed(root, "--duration 600 --stopped 300 --plant gap=3@297:0")
    soak.agent("node1", kind, **{key: value})
    assert soak.judge() == "FAIL"
    (odd,) = [one for one in soak.verdict["checks"] if one["id"] == "manifest/odd"]
    assert "raw/node1/flows.jsonl:" in odd["measured"] and "cannot be read" in odd["measured"]
