"""What a report says, section by section, of a run on hardware that is made by hand."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from perch.home import HOME
from perch.views import details, flows, plan
from tests.py.shown import (
    Document,
    Made,
    check,
    fabric,
    flow,
    record,
    rows_of,
    table_faults,
)


@pytest.fixture
def made() -> Made:
    return fabric()


def _put(made: Made, name: str, **change: object) -> None:
    """Changes a check of the verdict."""
    next(one for one in made.verdict["checks"] if one["id"] == name).update(change)


# ---- readiness and uses --------------------------------------------------------------------------


def test_hardware_that_meets_every_criterion_is_ready_and_recommended(
    made: Made, tmp_path: Path
) -> None:
    made.even()
    said = made.shown(tmp_path).section("## Readiness")
    assert "**Ready**: all 15 criteria are met." in said
    assert "the best flow reached 98.9 % of its link's ceiling" in said
    assert (
        "**Recommended uses**: NVMe over Fabrics, iSER (iSCSI over RDMA), Distributed databases, "
        "MPI and other tightly coupled work, Real-time data processing, Low-latency financial "
        "systems." in said
    )
    assert "at most 10 µs; worst measured: 2.00 µs (goal of NVM Express, Inc" in said
    # nobody measured transfers
    assert "weights) | not judged | not judged: transfers of 1 MiB and more" in said


def test_a_use_is_recommended_by_the_worst_pair(made: Made, tmp_path: Path) -> None:
    said = made.shown(tmp_path).section("## Readiness")
    assert (
        "**Recommended uses**: Distributed databases, Real-time data processing, Low-latency "
        "financial systems." in said
    )
    assert (
        "| NVMe over Fabrics | not recommended | failed: bandwidth of messages of 128 KiB and "
        "more: at least 90 % of the ceiling; worst measured: 49.5 % of the ceiling" in said
    )


@pytest.mark.parametrize(
    ("test", "figures", "use", "why"),
    [
        ("read", {"p50": 10.5}, "iSER (iSCSI over RDMA)", "4 KiB to its completion, median"),
        ("latency", {"max": 101}, "Real-time data processing",
         "half round trip of up to 4 KiB, maximum: at most 100 µs; worst measured: 101"),
        ("latency", {"p99": 10.5}, "Low-latency financial systems",
         "half round trip of up to 256 B, p99: at most 10 µs; worst measured: 10.5 µs"),
    ],
)  # fmt: skip
def test_one_flow_beyond_a_bound_makes_a_use_not_recommended(
    made: Made, tmp_path: Path, test: str, figures: dict[str, float], use: str, why: str
) -> None:
    made.even()
    made.change(
        lambda one: one["flow"] == f"{test}/n2/n3/0/2",
        lambda one: one["latency_us"].update(figures),
    )
    said = made.shown(tmp_path).section("## Readiness")
    (row,) = (line for line in said.splitlines() if line.startswith(f"| {use} |"))
    assert row.startswith(f"| {use} | not recommended | failed: ") and why in row


def test_a_use_is_not_judged_where_a_repeat_lacks_the_figure(made: Made, tmp_path: Path) -> None:
    made.even()
    made.change(
        lambda one: one["flow"] == "latency/n2/n3/0/2",
        lambda one: one["latency_us"].update(p99=21),
    )
    made.change(
        lambda one: one["flow"] == "latency/n3/n2/0/1", lambda one: one["latency_us"].pop("p50")
    )
    said = made.shown(tmp_path).section("## Readiness")
    assert (
        "**Recommended uses**: NVMe over Fabrics, iSER (iSCSI over RDMA), Real-time data "
        "processing." in said
    )
    assert "up to 256 B, p99: at most 20 µs; worst measured: 21.0 µs" in said
    assert "not judged: half round trip of up to 64 B, median: at most 5 µs; not" in said


def test_a_criterion_that_tcp_alone_met_is_not_met_by_rdma(made: Made, tmp_path: Path) -> None:
    near = {"limit": {"min": None, "max": 9}, "unit": "us"}
    made.verdict["checks"] += [
        check("limit/lat/far", "pass", 1, **near) | {"title": "Far"},
        check("limit/lat/near", "pass", 8, **near) | {"title": "Near"},
    ]
    _put(made, "limit/bw/bandwidth", id="limit/bw/tcp")
    tcp = flow("bandwidth", "n1", "n2") | {
        "id": "tcp/n1/n2/0/1", "test": "tcp", "title": "TCP", "backend": "tcp", "scope": "software",
    }  # fmt: skip
    made.plan["rounds"][0]["flows"].append(tcp)
    made.records.append(record(tcp))
    report = made.shown(tmp_path)
    assert "The kernel's TCP was measured for comparison (1 test)." in report.text
    said = report.section("## Readiness")
    (row,) = (line for line in said.splitlines() if line.startswith("| Throughput | not judged | "))
    assert "; 1 of 1 checks passed; they cover TCP only, not RDMA; the best flow " in row
    # the evidence is what came closest to its bound
    assert "| Latency | met | Near: 8 µs (limit: at most 9 µs); 3 of 3 checks passed |" in said


def test_one_criterion_that_is_not_met_makes_no_use_recommended(made: Made, tmp_path: Path) -> None:
    made.even()
    _put(made, "limit/loss/bandwidth", status="advisory", measured=7)
    said = made.shown(tmp_path).section("## Readiness")
    assert "**Not ready**: 14 of 15 criteria are met; with a warning: loss." in said
    assert "**Recommended uses**: none." in said


def test_what_was_not_judged_is_not_recommended(made: Made, tmp_path: Path) -> None:
    made.even()
    made.verdict["checks"] = [
        one for one in made.verdict["checks"] if one["id"] != "interval/bandwidth"
    ]
    said = made.shown(tmp_path).section("## Readiness")
    assert "not judged: stable over time" in said
    assert (
        "**Recommended uses**: MPI and other tightly coupled work, Low-latency financial systems."
        in said
    )
    made.verdict["verdict"] = "FAIL"
    said = made.shown(tmp_path).section("## Readiness")
    assert "uses**: not judged: the verdict is FAIL" in said


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("soak/gaps", "Stable over time"),
        ("soak/memory", "No memory or file descriptor leaks"),
        ("soak/integrity", "No corruption"),
        ("soak/counters/drops", "Counters clean"),
        ("switch/errors/leaf1", "No corruption"),
        ("switch/link-up", "Switch configuration"),
        ("manifest", "Evidence complete"),
    ],
)
def test_a_check_belongs_to_the_first_criterion_that_names_it(
    made: Made, tmp_path: Path, name: str, title: str
) -> None:
    made.verdict["checks"] = [check(name, "fail", 1)]
    said = made.shown(tmp_path).section("## Readiness")
    assert f"| {title} | **failed** | {name}: 1; 0 of 1 checks passed |" in said


# ---- sentences -----------------------------------------------------------------------------------


def test_key_findings_are_sentences_of_what_was_measured(made: Made, tmp_path: Path) -> None:
    said = made.shown(tmp_path).section("## Key findings")
    for sentence in (
        "**97.0 Gb/s is 98.9 % of what a 100 Gb/s link can carry at MTU 4096 (98.0 Gb/s)**: RDMA "
        "bandwidth, send, busy polling, 1 MiB, median of 24 records.",
        "RDMA bandwidth at 1 MiB: the slowest pair is n1 to n4, 48.5 Gb/s, median of its "
        "repeats: 50.0 % of the median of the test's pairs.",
        "**One-way latency (half round trip) at 64 B: median 2.00 µs**, mean 2.05 µs",
        "standard deviation 0.110 µs, p99 2.50 µs; the longest of 4,800,000 messages took 9.00 µs.",
        "The RDMA devices counted 72,000 packets: none lost, none retransmitted.",
        "No corruption in 1,000,000 checked bytes.",
    ):
        assert sentence in said


def test_a_figure_above_its_ceiling_is_called_impossible(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["kind"] == "bandwidth", lambda one: one["bandwidth"].update(gbit_s=190)
    )
    said = made.shown(tmp_path).section("## Key findings")
    assert "which is impossible** (RDMA bandwidth, send, busy polling, 1 MiB, median" in said


# ---- findings ------------------------------------------------------------------------------------


def test_findings_of_one_kind_are_one_line(made: Made, tmp_path: Path) -> None:
    bound = {"limit": {"min": 90, "max": None}, "unit": "Gb/s", "remedy": "r"}
    made.verdict["verdict"] = "FAIL"
    made.verdict["checks"] += [
        *(
            check(f"flow/bandwidth/n{i}/n1/0/1", "fail", f"exit 5 after {i} s", remedy="r")
            for i in range(40)
        ),
        check("limit/bw/a", "fail", 50, **bound) | {"title": "Bandwidth, test a"},
        check("limit/bw/b", "fail", 20, **bound) | {"title": "Bandwidth, test b"},
    ]
    report = made.shown(tmp_path)
    first, second = report.document["findings"]
    assert report.document["findings_more"] == ""
    named = "`bandwidth/n1/n1/0/1`, `bandwidth/n2/n1/0/1`, `bandwidth/n3/n1/0/1`"
    assert first["more"] == f"also {named} and 36 more"
    # of the two tests the one that is farther from its bound
    assert second["cells"]["title"] == "Bandwidth, test b"
    assert second["more"] == "also `a`"


@pytest.mark.parametrize(
    ("limit", "measured"),
    [({"min": 90, "max": None}, (50, 20)), ({"min": None, "max": 9}, (10, 30))],
)
def test_of_several_findings_the_farthest_from_its_bound_is_told(
    made: Made, tmp_path: Path, limit: Document, measured: tuple[float, float]
) -> None:
    near, far = measured
    made.verdict["checks"] = [
        check(f"limit/bw/{name}", "fail", value, limit=limit)
        for name, value in (("a", near), ("b", far), ("c", near))
    ]
    (finding,) = made.shown(tmp_path).document["findings"]
    assert finding["cells"]["title"] == "limit/bw/b"


def test_a_finding_names_the_fault_and_not_the_claim_that_was_missed(
    made: Made, tmp_path: Path
) -> None:
    least = {"limit": {"min": 2, "max": None}, "unit": "Gb/s", "remedy": "r"}
    made.verdict["checks"] += [
        check("limit/bw/bandwidth2", "advisory", 1, **least)
        | {"title": "B", "fault": "Too little B"},
        check("clock/ends", "inconclusive", "no word", remedy="r") | {"title": "C"},
        check("limit/x/bandwidth", "not_judged", "no"),
    ]
    report = made.shown(tmp_path)
    assert "1. **INCONCLUSIVE**, not judged: C: no word. *R.*" in report.text
    assert "2. **warning**: Too little B: 1 Gb/s (limit: at least 2 Gb/s)." in report.text
    # a test's word is of what judged it
    assert "RDMA bandwidth (bandwidth) | 97.0 Gb/s at 1 MiB | pass" in rows_of(
        report.document["summary"]
    )
    titles = [line for line in report.text.splitlines() if line.startswith("## ")]
    order = (
        "RDMA against TCP", "Key findings", "Charts", "Readiness", "Every check",
        "The hosts' checks", "Evolution", "Results", "Anomalies", "Repeatability", "Path",
        "Device under test", "Topology", "Configuration", "The hosts", "The commands",
        "Terms", "Judge it again",
    )  # fmt: skip
    assert titles == [f"## {title}" for title in order]
    # its words are those of the definitions, and the first screen links to them
    terms = [line for line in report.section("## Terms").splitlines() if line.startswith("| ")]
    definitions = (HOME / "docs/definitions.md").read_text()
    assert len(terms) > 8
    assert all(line in definitions for line in terms if line != "| --- | --- |")
    assert report.text.partition("## ")[0].count("](#terms)") == 3


@pytest.mark.parametrize(
    ("more", "said"),
    [(1, "1 more FAIL. All are in the tables of [checks]"), (2, "2 more FAIL.")],
)
def test_what_has_no_room_is_counted(made: Made, tmp_path: Path, more: int, said: str) -> None:
    made.verdict["checks"] = [check(f"{i}/1", "fail", 1) for i in range(3 + more)]
    assert said in made.shown(tmp_path).text


# ---- results -------------------------------------------------------------------------------------


def test_extremes_are_those_of_all_pairs_and_repeats(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["flow"] == "bandwidth/n2/n3/0/2",
        lambda one: one["bandwidth"].update(min_interval_gbit_s=3, peak_gbit_s=98),
    )
    said = made.shown(tmp_path).section("## Results")
    assert "medians of 24 records a size, extremes and counts of all of them." in said
    assert "| 1048576 | 2400000 | 98.00 | 97.00 | 0.011563 | 98.9 % | 3.00 |" in said


def test_a_figure_that_one_repeat_lacks_all_lack(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["flow"] == "latency/n2/n3/0/2", lambda one: one["latency_us"].pop("p99")
    )
    report = made.shown(tmp_path)
    assert "median 2.00 µs (no p99: too few samples in a repeat) at 64 B" in report.text


def test_repeats_have_their_coefficient_of_variation(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: (one["test"], one["repeat"], one["client"]["host"]) == ("latency", 2, "n2"),
        lambda one: one["latency_us"].update(p50=3),
    )
    said = made.shown(tmp_path).section("## Repeatability")
    # by hand: 2 and 3 have a mean of 2.5 and a standard deviation of 0.7071
    assert (
        "| RDMA latency | latency, median | 2 | 12 | 0.00 % | 28.3 % | n2 to n4, 64 B | **no**, 3 "
        "of 12 above |" in said
    )
    assert "| RDMA bandwidth | bandwidth | 2 | 12 | 0.00 % | 0.00 % |" in said


def test_anomalies_have_their_time_flow_and_evidence(made: Made, tmp_path: Path) -> None:
    pause = check(
        "counters/pause", "advisory", 12, limit={"min": None, "max": 0}, unit="frames",
        evidence=["n1 mlx5_0/1 at 2026-01-01T00:00:14Z"],
    )  # fmt: skip
    made.verdict["checks"].append(pause | {"title": "Pause frames"})
    said = made.shown(tmp_path).section("## Anomalies")
    for row in (
        "| 2026-01-01T00:00:13.500Z | `bandwidth/n1/n4/0/1#1048576` | nothing was completed for "
        "1.25 s | record `bandwidth/n1/n4/0/1#1048576`, `raw/n1/flows/bandwidth/n1/n4/0/1/` |",
        "| 2026-01-01T00:00:13Z | `bandwidth/n1/n4/0/2#1048576` | 1 interval below 80 % of the "
        "flow's average, the lowest 10.0 of 48.5 Gb/s, 3.00 s after its start |",
        "| 2026-01-01T00:00:14Z | `n1 mlx5_0/1 at 2026-01-01T00:00:14Z` | Pause frames: 12 frames "
        "(limit: at most 0 frames) | check `counters/pause` |",
    ):
        assert row in said


def test_a_single_late_message_and_a_lost_peer_are_anomalies(made: Made, tmp_path: Path) -> None:
    made.change(
        lambda one: one["flow"] in ("latency/n1/n2/0/1", "latency/n2/n1/0/1"),
        lambda one: one["latency_us"].update(max=900 if one["flow"][8:10] == "n1" else 300),
    )
    made.change(
        lambda one: one["flow"] == "read/n1/n2/0/1",
        lambda one: one.update(
            status="error", error={"code": 4, "message": "peer lost", "traffic": True}
        ),
    )
    made.change(
        lambda one: one["flow"] == "read/n2/n1/0/1",
        lambda one: one.update(status="error", error={"code": 4, "message": "never met"}),
    )
    said = made.shown(tmp_path).section("## Anomalies")
    assert (
        "`latency/n1/n2/0/1#64` | one of 200,000 messages took 900 µs, 450 times the median" in said
    )
    assert "latency/n2/n1/0/1" not in said
    assert "`read/n1/n2/0/1#4096` | peer lost |" in said
    assert "never met" not in said


# ---- fabric --------------------------------------------------------------------------------------


def test_what_differs_between_hosts_has_a_row_of_its_own(made: Made, tmp_path: Path) -> None:
    report = made.shown(tmp_path)
    said = report.section("## Device under test")
    card = "| mlx5_0 (eth1) | MT4125, MT_0000000359 | 22.39.1002 | 16 GT/s, "
    assert f"{card}8x, the card has 16x | 100 Gb/s | n3 |" in said
    assert f"{card}16x | 100 Gb/s | n1, n2, n4 |" in said
    said = report.section("## Topology")
    assert (
        "4 hosts, 12 pairs of client and server measured of 12 possible, in 8 rounds of at most 9 "
        "flows at the same time." in said
    )
    assert "| one switch | 12 | 72 |" in said
    said = report.section("## Configuration")
    assert "| Priority flow control (PFC) | eth1 | on for 3, by dcb | all hosts |" in said
    assert (
        "| Receive buffers, headroom of PFC | eth1 | priority 3 in buffer 1 of 130944 bytes | all "
        "hosts |" in said
    )


def _leaf() -> Document:
    pauses = {"rx": [0, 0, 0, 1], "tx": [0, 0, 0, 1]}
    queue = {"queue": "UC3", "priority": 3, "mbit_s": 1, "drops": 1}
    queue |= {"packets_per_s": None, "ecn_marked": None}
    port = {
        "port": "Ethernet0", "host": "n1", "up": None, "speed_gbit_s": None, "priorities": None,
        "lost": ["cleared"], "rx_mbit_s": None, "tx_mbit_s": 1, "pause": {"rx": 0, "tx": 0},
        "pause_by_priority": pauses, "utilisation_percent": 1, "storms": None, "errors": {},
        "queues": [queue],
    }  # fmt: skip
    return {
        "name": "leaf1", "provider": "sonic", "scope": "simulated", "priorities": [3],
        "seconds": 9, "faults": [], "gaps": [{"command": "show pfc", "why": "refused"}],
        "not_found": [], "rows": [port],
    }  # fmt: skip


def test_a_switch_shows_its_queues_and_what_it_does_not_tell(made: Made, tmp_path: Path) -> None:
    made.verdict["switches"] = [_leaf()]
    said = made.shown(tmp_path).section("## Switches")
    assert "| leaf1 Ethernet0 | n1 | UC3 | 1.00 | 1 | 1 | 1 | 1.00 % |" in said
    assert (
        "- leaf1 (sonic, **simulated: no proof of a switch**): read 9.00 s apart, 1 port; not "
        "known: show pfc (refused); counters were reset in between, so nothing is known of "
        "Ethernet0 (cleared)" in said
    )


# ---- flows ---------------------------------------------------------------------------------------


def test_each_pair_is_ranked_on_a_map_and_the_slowest_by_name(made: Made, tmp_path: Path) -> None:
    report = made.shown(tmp_path)
    ranks = report.chart("flows_bandwidth").values
    assert len(ranks) == 12
    assert [ranks[0][key] for key in ("from", "to", "value")] == ["n1", "n4", 48.5]
    cells = {(one["client"], one["server"]): one["percent"] for one in report.chart("map").values}
    assert len(cells) == 12
    assert round(cells["n1", "n4"]) == 49
    assert all(len(chart.alternative) > 10 for chart in report.charts)
    row = "| RDMA bandwidth, 1 MiB | n1 | n4 | 48.5 Gb/s | 49.5 % | **50.0 %** |"
    assert row in report.text


def test_what_is_drawn_stays_small_however_many_flows_there_are() -> None:
    ranks = flows.drawn_ranks(100_000)
    assert (len(ranks), ranks[0], ranks[-1]) == (200, 0, 99_999)
    points = [(s, 1.0) for s in range(1001)]
    points[500] = (500, 0.25)
    thinned = details.thinned([*points])
    assert len(thinned) <= 200
    assert (500, 0.25) in thinned


# ---- the plan's commands -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["perch", "lat", "--size=1K:4K", "a b"], "perch lat --size=1K:4K 'a b'"),
        (["x\ny"], "$'x\\ny'"),
        (["it's\x1b[0m"], "$'it\\'s\\x1b[0m'"),
        (["```"], "'```'"),
    ],
)
def test_a_command_is_one_line_that_bash_reads_alike(argv: list[str], text: str) -> None:
    assert plan.command(argv) == text


# ---- words from outside --------------------------------------------------------------------------

HOSTILE = " |x| <b>b</b> `c` *e* [l](javascript:alert) \\| {{ 7 * 7 }} \x1b[31m \u202e\n# H\n- li"
#: Keys of texts that hosts, tools and people write.
FREE = {
    "title", "message", "found", "remedy", "source", "reason", "device", "group", "switch",
    "netdev", "address", "version", "why", "queue", "command",
}  # fmt: skip


def _hostile(part: object) -> object:
    if isinstance(part, dict):
        return {
            key: value + HOSTILE if key in FREE and isinstance(value, str) else _hostile(value)
            for key, value in part.items()
        }
    return [_hostile(one) for one in part] if isinstance(part, list) else part


def test_words_of_hosts_tools_and_people_stay_words(made: Made, tmp_path: Path) -> None:
    made.verdict["switches"] = [_leaf()]
    made.verdict["coverage"]["missing"] = [
        {"flow": "latency/n1/n2/0/1", "expect": {"size_bytes": 64}, "status": "error", "code": 6,
         "message": "gone"},
    ]  # fmt: skip
    made.verdict["checks"] += [
        check(f"flow/{status}", status, "M", evidence=["E"], remedy="R")
        for status in ("pass", "fail", "inconclusive", "advisory", "not_judged")
    ]
    made.plan["excluded"] = [{"test": "t", "reason": "no device"}]
    tame = made.shown(tmp_path).text
    hostile = copy.deepcopy(made)
    for part in (hostile.plan, hostile.verdict):
        part.update(json.loads(json.dumps(_hostile(part))))
    report = hostile.shown(tmp_path)
    assert report.text.count("javascript") > 40
    assert list(table_faults(report.text)) == []
    assert "<b>" not in report.text
    assert "](javascript" not in report.text.replace("\\](javascript", "")
    assert all(sign.isprintable() or sign == "\n" for sign in report.text)
    # no heading, list or rule more than those of tame words
    for mark in ("#", "- ", "1. "):
        begin = [line for line in report.text.splitlines() if line.startswith(mark)]
        assert len(begin) == sum(line.startswith(mark) for line in tame.splitlines())


def test_no_table_is_empty_and_no_column_has_dashes_alone(made: Made, tmp_path: Path) -> None:
    assert list(table_faults(made.shown(tmp_path).text)) == []
