"""What could hide a fault from the judge of soaks.

A fault that begins late, what nobody read, readings that no program expects, files that were mixed
up, and limits beside each other. Runs are composed, and then altered.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.py.soak_built import Document, Soak, composed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def only(texts: list[str]) -> str:
    (text,) = texts
    return text


def eth1(sample: Document) -> Document:
    table: Document = sample["counters"]["netdev"]["eth1"]
    return table


# ---- growth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [40000, 64800])
def test_a_leak_that_begins_after_hours_is_one(root: Path, at: int) -> None:
    """In the last half, and in the last quarter."""
    growth = f"--plant leak=100@{at}:0 --plant handles=60@{at}:1"
    soak = composed(root, f"--duration 86400 --interval 300 {growth}")
    assert soak.judge() == "FAIL"
    wanted = r"fail node1: serve grows by 104\.9 MB/h .*, [0-9]+\.[0-9] MB in [0-9.]+ h"
    assert re.fullmatch(wanted, only(soak.texts("leak")))
    wanted = r"fail node2: serve has \d+ handles more than [0-9.]+ h before, and more and more"
    assert re.fullmatch(wanted, only(soak.texts("handles")))


def test_a_leak_that_just_begins_is_not_known(root: Path) -> None:
    growth = "--plant leak=100@85000:0 --plant handles=60@85000:1"
    soak = composed(root, f"--duration 86400 --interval 300 {growth}")
    assert soak.judge() == "INCONCLUSIVE"
    wanted = r"inconclusive node1: serve has grown by .* MB in 5\.9 h, .* not clear whether it .*"
    assert re.fullmatch(wanted, only(soak.texts("leak")))
    wanted = r"inconclusive node2: serve has .* not clear whether it takes more and more"
    assert re.fullmatch(wanted, only(soak.texts("handles")))


def test_a_few_pages_more_in_a_short_soak_are_no_leak_that_could_be_told(root: Path) -> None:
    soak = composed(root, "--duration 1200")

    def grow(sample: Document, place: int) -> None:
        for one in sample["processes"]:
            if place >= 16 and one["role"] == "agent":
                one["resident_bytes"] += 1100000

    soak.samples(grow)
    assert soak.judge() == "PASS"
    assert (soak.status("memory"), soak.texts("leak")) == ("not_judged", [])


def test_a_leak_that_restarts_hide_is_one(root: Path) -> None:
    soak = composed(root, "--duration 86400 --interval 300")

    def restart(sample: Document, place: int) -> None:
        for one in sample["processes"]:
            if one["role"] == "serve":
                one["resident_bytes"] += 10**6 * place
                one["start"] = str(place // 8)

    soak.samples(restart, "node1")
    assert soak.judge() == "FAIL"
    text = only(soak.texts("leak"))
    assert text.startswith("fail node1: serve grows by 12.0 MB/h") and text.endswith("restarts")


# ---- counters ------------------------------------------------------------------------------------


def test_a_counter_of_bytes_that_was_reset_or_is_full_costs_no_verdict(root: Path) -> None:
    soak = composed(root, "--duration 1800 --plant flip@700:2")

    def reset(sample: Document, place: int) -> None:
        if place >= 10:
            eth1(sample)["rx_bytes"] = "5"

    soak.samples(reset, "node1")
    assert (soak.judge(), soak.status("integrity")) == ("FAIL", "fail")

    def fill(sample: Document, place: int) -> None:
        if place >= 20:
            full = {"rx_bytes": "18446744073709551615", "port_xmit_data": "4294967295"}
            eth1(sample).update(full)

    soak.samples(fill)
    assert (soak.judge(), soak.status("integrity")) == ("FAIL", "fail")


def test_a_counter_that_a_device_shows_only_later_counts_from_then_on(root: Path) -> None:
    soak = composed(root, "--duration 1800")

    def show(sample: Document, place: int) -> None:
        if place >= 5:
            eth1(sample)["rx_discards_phy"] = "0" if place < 9 else "7"

    soak.samples(show)
    assert soak.judge() == "PASS"
    wanted = r"advisory: node[12]: 7 drops \(netdev/eth1/rx_discards_phy\) at 2026-01-01T00:08:.*"
    assert re.match(wanted, soak.said("counters/drops"))


def test_counts_from_before_the_first_reading_are_not_judged(root: Path) -> None:
    soak = composed(root, "--duration 1800")

    def show(sample: Document, place: int) -> None:
        if place > 0:
            eth1(sample)["rx_discards_phy"] = "7000"

    soak.samples(show)
    assert soak.judge() == "INCONCLUSIVE"
    wanted = "inconclusive: node1: a counter of drops was reset, has wrapped, is full or was not "
    assert soak.said("counters/drops").startswith(wanted)


def test_a_counter_that_stays_away_is_not_known_and_named_alone(root: Path) -> None:
    soak = composed(root, "--duration 1800")

    def hide(sample: Document, place: int) -> None:
        if place > 20:
            del eth1(sample)["rx_crc_errors"]

    soak.samples(hide, "node2")
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.texts("host") == [
        "inconclusive node2: netdev/eth1/rx_crc_errors not read any more: what they counted since "
        "is not known"
    ]


def test_a_sample_whose_uptime_goes_back_is_damage_and_costs_no_verdict(root: Path) -> None:
    soak = composed(root, "--duration 1200 --plant leak=3000:0")

    def back(sample: Document, place: int) -> None:
        if place == 20:
            sample["uptime_s"] = 5000.001

    soak.samples(back)
    assert soak.judge() == "FAIL"
    why = "its uptime is lower than that of the sample before it"
    wanted = f"line 23 of its samples cannot be used: {why}"
    assert f"inconclusive node1: {wanted}" in soak.texts("damaged")


def test_a_half_sample_at_the_end_is_no_fault(root: Path) -> None:
    soak = composed(root, "--duration 600")
    with (root / "raw/node1/samples.jsonl").open("a") as file:
        file.write('{"schema":"perch.sam')
    assert soak.judge() == "PASS"


@pytest.mark.parametrize(("segments", "status"), [(50, "pass"), (10**4, "pass"), (10**6, None)])
def test_tcp_may_send_one_segment_in_a_hundred_again(
    root: Path, segments: int, status: str | None
) -> None:
    soak = composed(root, "--duration 600")

    def retransmit(sample: Document, place: int) -> None:
        sample["counters"]["host"]["TcpRetransSegs"] = str(segments * (place > 5))

    soak.samples(retransmit)
    assert soak.judge() == "PASS"
    found = {one["severity"] for one in soak.anomalies("counter")}
    assert found == (set() if status else {"advisory"})
    if status:  # the counter moved, so that the title must not say that none did
        check = soak.check("counters")
        assert check["title"] == "No error counter moved beyond its limit in any interval"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("time_s", "soon"), ("time_s", "1e999"), ("values", None), ("values", "1 2"),
        ("links", {"eth1": 1}), ("links", None), ("temperatures", [{"celsius": 1}]),
        ("processes", [{"role": "serve"}]), ("uptime_s", 1e300), ("dropped", "x"),
    ],
)  # fmt: skip
def test_a_sample_of_another_form_is_damage(root: Path, part: str, value: object) -> None:
    soak = composed(root, "--duration 600")

    def break_(sample: Document, place: int) -> None:
        if place == 5:
            sample[part] = value

    soak.samples(break_, "node1")
    assert soak.judge() == "INCONCLUSIVE"
    assert only(soak.texts("damaged")).startswith("inconclusive node1: line 8 of its samples")


def unread(soak: Soak) -> None:
    def forget(sample: Document, _: int) -> None:
        sample["counters"] = {"host": {}, "netdev": {}}
        sample["links"] = {}
        for one in sample["processes"]:
            del one["handles"]

    soak.samples(forget)


def test_a_missing_reading_is_shown_on_software(root: Path) -> None:
    soak = composed(root, "--duration 1800")
    unread(soak)
    assert soak.judge() == "PASS"
    for name, what in (("counters", "counter"), ("links", "link")):
        assert soak.said(name) == f"not_judged: no {what} was read on node1, node2"
    wanted = r"not_judged: 0 of 22 processes .*: its file descriptors were not counted"
    assert re.fullmatch(wanted, soak.said("handles"))
    ids = [one["id"] for one in soak.soak["blind"] if one["id"].endswith("_unread")]
    assert ids == ["counters_unread", "links_unread", "handles_unread"]


def test_a_missing_reading_is_inconclusive_on_hardware(root: Path) -> None:
    soak = composed(root, "--duration 1800")
    unread(soak)

    def hard(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["scope"] = "hardware"
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow["scope"] = "hardware"

    soak.edit("plan.json", hard)
    assert soak.judge() == "INCONCLUSIVE"
    for name, what in (("counters", "counter"), ("links", "link")):
        assert soak.said(name) == f"inconclusive: no {what} was read on node1, node2"


# ---- lines ---------------------------------------------------------------------------------------


def test_a_tail_that_no_interval_has_samples_for_is_not_judged(root: Path) -> None:
    soak = composed(root, "--duration 600 --interval 1")
    assert soak.judge() == "PASS"
    flows = "latency/node1/node2/0/1, latency/node2/node1/0/1"
    wanted = f"not_judged: no interval of {flows} has samples enough for a p99"
    assert soak.said("latency/latency") == wanted


def test_a_tail_that_is_missing_where_it_must_be_is_damage(root: Path) -> None:
    soak = composed(root, "--duration 1800")

    def cut(line: Document, place: int) -> None:
        if line["kind"] == "interval" and place == 4:
            line["latency_us"]["p99"] = None

    soak.lines("latency", cut)
    assert soak.judge() == "INCONCLUSIVE"
    wanted = "line 5 cannot be used: its percentiles are not those that 12000 samples bear"
    assert wanted in soak.said("lines")


def test_the_tail_of_the_whole_lies_within_those_of_its_intervals(root: Path) -> None:
    soak = composed(root, "--duration 1800")

    def flatten(line: Document, _: int) -> None:
        if line["kind"] == "latency":
            low = line["latency_us"]["p50"] * 1.01
            names = ("p90", "p95", "p99", "p99_9", "p99_99")
            line["latency_us"].update(dict.fromkeys(names, low))

    soak.lines("latency", flatten)
    assert soak.judge() == "INCONCLUSIVE"
    texts = "\n".join(soak.texts("sum"))
    for tail in ("p90", "p95", "p99", "p99.9"):
        assert f"latency/node1/node2/0/1: a {tail} of " in texts


def test_what_was_printed_is_the_last_line_of_the_file(root: Path) -> None:
    soak = composed(root, "--duration 600")
    path = root / "raw/node1/flows/load/node1/node2/0/1/client.soak"
    whole = path.read_text().splitlines(keepends=True)[-1]
    soak.printed("load/node1/node2/0/1", whole.replace('"status":"ok"', '"status":"OK"'))
    assert soak.judge() == "INCONCLUSIVE"
    wanted = "load/node1/node2/0/1: the last lines of client.soak and of its output differ"
    assert soak.said("sum") == f"inconclusive: {wanted}"


def test_an_interval_with_figures_of_two_kinds_costs_no_verdict(root: Path) -> None:
    soak = composed(root, "--duration 1200 --plant flip@700:2")

    def mix(line: Document, place: int) -> None:
        if line["kind"] == "interval" and place == 4:
            line["bandwidth"] = {"gbit_s": line["bytes"] * 8e-9 / line["elapsed_s"]}
        if line["kind"] == "interval" and place == 5:
            line["latency_us"]["p95"] = {}

    soak.lines("latency", mix)
    assert soak.judge() == "FAIL"
    assert "line 5 cannot be used: it has figures of two kinds" in soak.said("lines")


def test_an_interval_of_no_length_costs_no_verdict(root: Path) -> None:
    soak = composed(root, "--duration 600")

    def shrink(line: Document, place: int) -> None:
        if line["kind"] == "interval" and place == 3:
            line["start_s"], line["elapsed_s"] = line["end_s"], 0.005
            line["bandwidth"]["gbit_s"] = line["bytes"] * 8e-9 / 0.005

    soak.lines("load", shrink)
    assert soak.judge() == "FAIL"
    assert soak.said("rate").startswith("fail: load/node1/node2/0/1: ")


@pytest.mark.parametrize("text", [b"\xff\xfe\n", b"[]\n", b"\0\n", b'{"kind":'])
def test_bytes_that_are_no_line_are_damage_unless_they_end_the_file(
    root: Path, text: bytes
) -> None:
    soak = composed(root, "--duration 600")
    path = root / "raw/node1/flows/load/node1/node2/0/1/client.soak"
    whole = path.read_bytes()
    path.write_bytes(whole + text)
    assert soak.judge() == "PASS"
    first, rest = whole.split(b"\n", 1)
    path.write_bytes(first + b"\n" + text.rstrip(b"\n") + b"\n" + rest)
    assert soak.judge() == "INCONCLUSIVE"
    assert "line 2 cannot be used" in only(soak.texts("damaged"))


def test_many_intervals_in_the_place_of_few_have_their_reason_beside_them(root: Path) -> None:
    """Else somebody measured otherwise than planned, and a short fault weighs more."""
    soak = composed(root, "--duration 1200 --interval 60")

    def claim(line: Document, _: int) -> None:
        if line["kind"] == "soak":
            line["interval_s"] = 120

    def plan(document: Document) -> None:
        document["soak"]["interval_s"] = 120
        for flow in document["rounds"][0]["flows"]:
            flow["params"]["interval"] = "120s"

    soak.edit("plan.json", plan)
    soak.lines("*", claim)
    assert soak.judge() == "INCONCLUSIVE"
    wanted = "intervals are shorter than the planned 120 s, without a gap or stall next to them"
    assert wanted in soak.texts("length")[0]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (
            {"connection_number": 2},
            "line 5 belongs to connection 2, but the last connection before it is 1",
        ),
        (
            {"status": "error", "error": {"code": 4, "message": "lost"}},
            "line 5 is a failed interval, and no gap follows it",
        ),
    ],
)
def test_what_no_engine_writes_is_damage(root: Path, change: Document, wanted: str) -> None:
    soak = composed(root, "--duration 1200")

    def alter(line: Document, place: int) -> None:
        if place == 4:
            line.update(change)

    soak.lines("load", alter)
    assert soak.judge() == "INCONCLUSIVE"
    assert f"inconclusive load/node1/node2/0/1: {wanted}" in soak.texts("damaged")


def test_another_connection_without_a_gap_before_it_is_damage(root: Path) -> None:
    soak = composed(root, "--duration 600 --plant gap=3@300:0")
    path = root / "raw/node1/flows/load/node1/node2/0/1/client.soak"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"kind":"gap"' not in line))
    assert soak.judge() == "INCONCLUSIVE"
    wanted = "is a new connection, and no gap precedes it"
    assert wanted in "\n".join(soak.texts("damaged"))


# ---- limits --------------------------------------------------------------------------------------

KEPT = "load/node1/node2/0/1: the flow kept 89.9 % of its pace only"


@pytest.mark.parametrize(
    ("limits", "verdict", "status"),
    [
        ([(30, "advisory"), (1, "required")], "INCONCLUSIVE", "inconclusive"),
        ([(1, "required"), (30, "advisory")], "INCONCLUSIVE", "inconclusive"),
        ([(30, "advisory")], "PASS", "pass"),
        # one that is only shown keeps nobody from a PASS
        ([(1, "advisory"), (30, "required")], "PASS", "advisory"),
    ],
)
def test_of_several_limits_of_the_pace_each_is_held(
    root: Path, limits: list[tuple[int, str]], verdict: str, status: str
) -> None:
    soak = composed(root, "--duration 1800 --plant step=-0.1@0:0")
    for most, severity in limits:
        soak.limit({"metric": "soak.rate_percent", "bound": {"max": most}, "severity": severity})
    assert (soak.judge(), soak.status("rate")) == (verdict, status)
    if status != "pass":
        assert soak.said("rate").startswith(f"{status}: {KEPT}")


def test_what_a_limit_allows_is_counted_and_titles_say_the_limit_in_force(root: Path) -> None:
    soak = composed(root, "--duration 1800 --plant gap=3@700:0 --plant stall=0.039@605-1500:4")
    soak.limit(
        {"metric": "soak.gaps", "bound": {"max": 1}, "severity": "required"},
        {"metric": "soak.leak_mb_per_hour", "bound": {"max": 50}, "severity": "required"},
    )
    assert soak.judge() == "PASS"
    gaps, stalls = soak.check("gaps"), soak.check("stalls")
    assert gaps["title"] == "Lost connections are within the limit"
    assert soak.said("gaps") == "pass: 1 lost, 3.0 s without one"
    assert gaps["source"] == "at most 1: site policy: a test"
    assert stalls["title"] == "Stalls are shorter than the limit"
    assert stalls["measured"] == "15 stalls, 0.585 s in total, each shorter than the limit"
    assert soak.check("memory")["title"] == "No process of Perch grows by more than 50 MB/h"


# ---- what samples and agents say of processes ----------------------------------------------------


@pytest.mark.parametrize("role", ["agent", "serve", "keeper", "measurer", "job"])
def test_processes_that_samples_lack_are_told(root: Path, role: str) -> None:
    soak = composed(root, "--duration 1800")

    def hide(sample: Document, _: int) -> None:
        sample["processes"] = [one for one in sample["processes"] if one["role"] != role]

    soak.samples(hide, "node1")
    assert soak.judge() == "INCONCLUSIVE"
    text = only(soak.texts("host"))
    assert text.startswith(f"inconclusive node1: its samples have no {role}")
    assert soak.status("memory") == "inconclusive"


@pytest.mark.parametrize("what", ["client_restarted", "serve_restarted"])
def test_restarts_that_no_gap_explains_are_told(root: Path, what: str) -> None:
    soak = composed(root, "--duration 600")
    soak.happened("node1", what, 2)
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.status("samples") == "inconclusive"
    evidence = ["raw/node1/flows.jsonl:3", "raw/node1/flows.jsonl:4"]
    assert soak.check("samples")["evidence"] == evidence


def test_files_that_were_late_are_told(root: Path) -> None:
    soak = composed(root, "--duration 600")
    soak.agent("node1", "end", unwritten="samples.jsonl")
    assert soak.judge() == "PASS"
    assert soak.said("samples").startswith("advisory: node1: samples.jsonl could not be written")


def test_an_episode_that_no_judge_knows_costs_no_verdict(root: Path) -> None:
    soak = composed(root, "--duration 600")
    soak.happened("node1", "moonrise", 1)
    assert soak.judge() == "PASS"


def test_restarts_that_a_gap_explains_are_none_of_note(root: Path) -> None:
    soak = composed(root, "--duration 600 --plant gap=3@300:0")
    soak.happened("node1", "client_restarted", 1)
    soak.judge()
    assert soak.status("samples") == "pass"


@pytest.mark.parametrize("key", ["started_ms", "duration_s", "stall_s", "interval_s"])
@pytest.mark.parametrize("value", [10**400, 1e300, -1, 1e14])
def test_a_head_beyond_all_bounds_costs_no_verdict(root: Path, key: str, value: float) -> None:
    soak = composed(root, "--duration 600")

    def enlarge(line: Document, _: int) -> None:
        if line["kind"] == "soak":
            line[key] = value

    soak.lines("load", enlarge)
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.texts("foreign") != []
