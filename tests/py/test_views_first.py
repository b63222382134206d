"""The first screen, and the charts against the size: what they say, and how much they draw."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from perch.judge import planned
from perch.model.verdict import Check, Verdict
from perch.run import judging
from perch.views import first_screen, glance, size_charts
from perch.views.comparisons import advantage
from perch.views.draw import svg
from perch.views.plan import digest
from perch.views.table import Table
from tests.py.checks_built import limit
from tests.py.shown import MIB, Made, check, fabric, flow, record, verdict


@pytest.fixture
def made() -> Made:
    return fabric()


# ---- the first screen ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("hardware", "✅ **PASS**: "),
        ("software", "⚠️ **PASS, software only**: "),
        ("simulated", "⚠️ **PASS, simulated only**: "),
        ("imported", "⚠️ **PASS, imported only**: "),
    ],
)
def test_only_a_pass_of_hardware_is_one_without_more(
    made: Made, tmp_path: Path, scope: str, said: str
) -> None:
    made.verdict["scope"] = scope
    assert made.shown(tmp_path).document["verdict_line"].startswith(said)


@pytest.mark.parametrize(("name", "measured"), [("flow/t/a/b/0/1", "not run"), ("coverage", 0)])
def test_records_that_are_missing_have_no_place_of_one(name: str, measured: str | int) -> None:
    found = check(name, "inconclusive", measured, evidence=["t/alpha/beta/0/1#8"])
    assert first_screen.place(msgspec.convert(found, Check)) == ""


def test_of_checks_that_are_equally_bad_the_first_is_named() -> None:
    named = [f"flow/t/alpha/beta/0/{repeat}" for repeat in (1, 2)]
    made = verdict("FAIL", checks=[check(name, "fail", "not run") for name in named])
    (found,) = first_screen.findings(msgspec.convert(made, Verdict))
    assert (found.cells.title, found.more) == (named[0], "also `t/alpha/beta/0/2`")


@pytest.mark.parametrize(
    ("evidence", "place"),
    [
        ("t/alpha/beta/0/3#256", "256 B, repeat 3, alpha to beta"),
        ("t/alpha/beta/2/1#65536", "64 KiB, repeat 1, rail 2, alpha to beta"),
        ("t/alpha/beta#64", "64 B, alpha to beta"),
        ("t/alpha/beta/0/1#1024x128/0", "1 KiB, batch 128, repeat 1, alpha to beta"),
        ("t/alpha/beta/0/1", "repeat 1, alpha to beta"),
        ("plan.json", ""),
        ("raw/alpha", ""),
    ],
)
def test_a_finding_names_size_repeat_and_pair(evidence: str, place: str) -> None:
    found = check("tail/t", "fail", 1, evidence=[evidence])
    assert first_screen.place(msgspec.convert(found, Check)) == place


def test_the_link_its_share_and_the_worst_pair_are_said(made: Made, tmp_path: Path) -> None:
    link, worst, _ = made.shown(tmp_path).document["glance"]
    assert link.startswith("Link: 100 Gb/s; best RDMA bandwidth 97.0 Gb/s, ")
    how = "RDMA bandwidth, send, busy polling, 1 MiB, median of 24 records"
    assert link.endswith(f" of its [ceiling](#terms) of 98.0 Gb/s ({how}).")
    assert worst.startswith("Worst pair: n")
    assert " less than the median of the test's pairs, 97.0 Gb/s (RDMA bandwidth)." in worst


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("pass", "Since the accepted run: no regression."),
        ("not_judged", "Since the accepted run: not known, no run was accepted "
         "(`make accept` accepts this one)."),
        ("fail", "Since the accepted run: drift/bandwidth: 12 % less; drift/latency: 1 %; "
         "and 1 more."),
    ],
)  # fmt: skip
def test_what_changed_since_the_accepted_run_is_said(
    made: Made, tmp_path: Path, status: str, said: str
) -> None:
    names = ["drift/bandwidth", "drift/latency", "drift/read"] if status == "fail" else ["drift"]
    measured = ["12 % less", "1 %", "2 %"]
    made.verdict["checks"] = [
        check(name, status, value) for name, value in zip(names, measured, strict=False)
    ]
    assert made.shown(tmp_path).document["glance"][-1] == said


@pytest.mark.parametrize(
    ("verdict", "statuses", "missing", "said"),
    [
        ("PASS", [], 0, "every planned record was measured, and no required limit was missed."),
        ("FAIL", ["fail", "fail", "inconclusive"], 1, "2 checks failed."),
        ("INCONCLUSIVE", ["inconclusive"], 0, "1 check could not be judged."),
        ("INCONCLUSIVE", ["inconclusive"] * 2, 1,
         "1 of 72 planned records was not measured; 2 checks could not be judged."),
    ],
)  # fmt: skip
def test_the_verdict_says_what_it_counts(
    made: Made, tmp_path: Path, verdict: str, statuses: list[str], missing: int, said: str
) -> None:
    made.verdict["verdict"] = verdict
    made.verdict["checks"] = [check(f"{i}/1", one, 1) for i, one in enumerate(statuses)]
    made.verdict["coverage"]["missing"] = [
        {
            "flow": "t/a/b/0/1",
            "expect": {"size_bytes": 64},
            "status": "error",
            "code": 6,
            "message": "gone",
        }
    ] * missing
    line = made.shown(tmp_path).document["verdict_line"]
    assert line.endswith(f": {said}")


@pytest.mark.parametrize(("pairs", "said"), [(1, True), (2, False)])
def test_one_pair_has_no_worst(made: Made, pairs: int, said: bool) -> None:
    lines = glance.lines(msgspec.convert(made.verdict, Verdict), pairs, [], [])
    assert ("Worst pair: not known, only one pair was measured." in lines) == said


def test_checks_of_one_figure_are_one_finding(made: Made, tmp_path: Path) -> None:
    where = {"evidence": ["bandwidth/n1/n2/0/1#1048576"], "unit": "Gb/s"}
    slow = {"title": "Bandwidth", "fault": "Bandwidth too low"}
    made.verdict["checks"] = [
        check("limit/a/bandwidth", "fail", 50, **where) | slow,
        check("peers/bandwidth", "advisory", 50, **where) | slow,
        check("tail/latency", "advisory", 50) | {"title": "Tail"},
    ]
    slowest, tail = made.shown(tmp_path).document["findings"]
    assert slowest["cells"]["status"] == "FAIL"
    assert slowest["more"] == "also 1 warning for this figure"
    assert tail["cells"]["title"] == "Tail"


def test_edited_raw_files_are_the_first_finding(made: Made, tmp_path: Path) -> None:
    made.verdict["checks"] = [
        check("limit/a/bandwidth", "fail", 50), check("manifest", "inconclusive", "1 file"),
    ]  # fmt: skip
    first, second = made.shown(tmp_path).document["findings"]
    assert (first["cells"]["title"], second["cells"]["title"]) == ("manifest", "limit/a/bandwidth")


def test_warnings_are_counted_apart_and_change_no_verdict(made: Made, tmp_path: Path) -> None:
    made.verdict["checks"] = [check(f"{i}/1", "fail", 1) for i in range(4)]
    made.verdict["checks"] += [check(f"{i}/1", "advisory", 1) for i in range(4, 6)]
    said = made.shown(tmp_path).document["findings_more"]
    assert said == "1 more FAIL, 2 more warnings. Warnings do not change the verdict."


# ---- charts against the size ---------------------------------------------------------------------


def test_names_at_the_ends_of_lines_are_apart_and_at_the_last_size() -> None:
    values = [
        {"series": name, "size_bytes": size, "gbit_s": rate}
        for name, rate in (("a", 10.0), ("b", 10.1), ("c", 90.0))
        for size in (64, 128)
    ]
    labels = size_charts.ends(values, "gbit_s", ("series",), log=False)
    assert [(one["name"], one["size_bytes"]) for one in labels] == [
        ("a", 128), ("b", 128), ("c", 128),
    ]  # fmt: skip
    heights = [one["gbit_s"] / 90 * size_charts.HEIGHT for one in labels]
    assert heights[1] - heights[0] == pytest.approx(size_charts.APART)
    assert heights[2] == pytest.approx(size_charts.HEIGHT)


def test_a_chart_draws_at_most_six_lines_its_limits_and_its_ceiling(
    made: Made, tmp_path: Path
) -> None:
    made.limits = [limit(id="floor", bound={"min": 90})]
    made.verdict["checks"] = [
        check("limit/floor/bandwidth", "pass", 97, limit={"min": 90, "max": None}, unit="Gb/s"),
        check("limit/floor/elsewhere", "pass", 97, limit={"min": 70, "max": None}, unit="Gb/s"),
    ]
    drawn = made.shown(tmp_path)
    chart = drawn.chart("bandwidth")
    assert chart.beside["limits"] == [{"bound": 90, "name": "limit: at least 90 Gb/s (floor)"}]
    assert {one["size_bytes"] for one in chart.beside["ceiling"]} == {MIB}
    said = svg(chart)
    assert "<title>RDMA bandwidth at 1 MiB: 97.0 Gb/s</title>" in said
    assert "limit: at least 90 Gb/s (floor)" in said
    assert "ceiling of the link" in said
    for one in drawn.charts:
        if one.spec in ("latency", "bandwidth"):
            lines = {(value["series"], value.get("percentile")) for value in one.values}
            assert len(lines) <= size_charts.LINES_MAX


def test_a_limit_that_is_a_share_is_drawn_only_where_the_whole_is_known(
    made: Made, tmp_path: Path
) -> None:
    bounds = {"share": {"min": 0.9, "of": "ceiling"}, "like": {"min": 0.93, "of": "peers"}}
    made.limits = [limit(id=name, bound=bound) for name, bound in bounds.items()]
    made.verdict["checks"] = [
        check(f"limit/{name}/bandwidth", "pass", 0.97, limit={"min": bound["min"]}, unit="of it")
        for name, bound in bounds.items()
    ]
    drawn = made.shown(tmp_path)
    assert drawn.chart("bandwidth").beside["limits"] == []
    (bound,) = drawn.chart("flows_bandwidth").beside["limits"]
    assert bound["name"] == "limit: at least 0.900 of it (share)"
    assert bound["bound"] == pytest.approx(0.9 * 98, rel=0.01)


def _light(colour: str) -> float:
    """Relative luminance (WCAG 2.1)."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
    return sum(part * x for part, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_words_of_a_chart_stand_out_from_light_and_dark_grounds(made: Made, tmp_path: Path) -> None:
    drawn = svg(made.shown(tmp_path).chart("bandwidth"))
    on_white, on_dark = re.findall("text{fill:(#[0-9a-f]{6})}", drawn)
    assert (1 + 0.05) / (_light(on_white) + 0.05) >= 4.5
    assert (_light(on_dark) + 0.05) / (_light("#0d1117") + 0.05) >= 4.5


def test_marks_say_their_flow_and_lines_have_names_at_their_ends(
    made: Made, tmp_path: Path
) -> None:
    drawn = made.shown(tmp_path)
    said = svg(drawn.chart("flows_bandwidth"))
    assert "<title>RDMA bandwidth at 1 MiB, n1 to n4: 48.5 Gb/s</title>" in said
    assert "<title>n1 to n4: 48.5 Gb/s, 49.5 %</title>" in svg(drawn.chart("map"))
    for name in ("course", "distribution"):
        chart = drawn.chart(name)
        assert [one["name"] for one in chart.beside["labels"]] == chart.series
        assert f"<title>{chart.series[0]}</title>" in svg(chart)


@pytest.mark.parametrize(("file", "said"), [("roce.yml", False), ("site.yml", True)])
def test_limits_are_the_sites_own_by_their_file(
    made: Made, tmp_path: Path, file: str, said: bool
) -> None:
    first, *others = made.limits
    changed = msgspec.structs.replace(first, file=file, source="site policy: enough for us")
    made.limits = [changed, *others]
    report = made.shown(tmp_path).section("## Configuration")
    assert ("1 of these limits is your site's own." in report) == said


# ---- each fact once ------------------------------------------------------------------------------


def _with_tcp(made: Made) -> None:
    """TCP measured a latency like RDMA's, and a bandwidth by another definition."""
    beside = [
        flow(test, "n1", "n2") | {"test": f"tcp-{test}", "backend": "tcp", "scope": "software"}
        for test in ("latency", "bandwidth")
    ]
    made.plan["rounds"].append({"flows": beside})
    made.records += [record(one) | {"definition": "other"} for one in beside]
    sides = {
        name: {"name": name, "scope": scope, "value": 2.0, "records": 2}
        for name, scope in (("verbs", "hardware"), ("tcp", "software"))
    }
    row = {
        "kind": "latency", "metric": "p50_us", "title": "Latency, median", "unit": "us",
        "better": "lower", "definition": "half_round_trip", "completion": "busy",
        "size_bytes": 64, "rdma": sides["verbs"], "tcp": sides["tcp"], "ratio": 1.0,
    }  # fmt: skip
    made.verdict["comparison"]["rows"] = [row]


def test_a_metric_of_rdma_and_tcp_is_in_one_table(made: Made, tmp_path: Path) -> None:
    _with_tcp(made)
    against = made.shown(tmp_path).document["against_tcp"]
    (short,) = against["short"]
    compared, unlike = map(_metrics, (short, against["unlike"]))
    assert "Latency" in compared
    assert "Bandwidth" in unlike
    assert not compared & unlike


def test_figures_of_polling_and_of_events_are_told_apart(made: Made, tmp_path: Path) -> None:
    _with_tcp(made)
    (latency,) = made.verdict["comparison"]["rows"]
    bandwidth = latency | {
        "kind": "bandwidth", "metric": "gbit_s", "title": "Bandwidth", "unit": "Gb/s",
        "better": "higher", "size_bytes": MIB, "ratio": 1.5,
    }  # fmt: skip
    by_events = bandwidth | {"completion": "event", "ratio": 0.73}
    other = {**latency, "rdma": latency["rdma"] | {"name": "ofi"}, "ratio": 3}
    made.verdict["comparison"]["rows"] += [bandwidth, by_events, other]
    shown = made.shown(tmp_path)
    _, table = shown.document["against_tcp"]["short"]
    assert [row[0] for row in table.rows[:2]] == [
        "Bandwidth, busy polling", "Bandwidth, waiting by events",
    ]  # fmt: skip
    said = shown.section("## Key findings")
    assert (
        "RDMA send (verbs) compared with TCP, medians: "
        "bandwidth (1 MiB, busy polling) 50 % higher, "
        "bandwidth (1 MiB, waiting by events) 27 % lower, "
        "median latency (64 B, busy polling) the same."
    ) in said
    assert (
        "RDMA send (ofi) compared with TCP, medians: median latency (64 B, busy polling) 3" in said
    )


def _metrics(table: Table) -> set[str]:
    return {row[0].partition(",")[0] for row in table.rows}


def test_a_faster_test_without_a_known_payload_rate_is_named_beside_the_link(
    made: Made, tmp_path: Path
) -> None:
    beside = flow("peer", "n1", "n2") | {"title": "RDMA peer", "kind": "bandwidth"}
    made.plan["rounds"].append({"flows": [beside]})
    fast = record(beside)
    fast["bandwidth"]["gbit_s"] = 97.9
    fast["link"]["mtu_bytes"] = None
    made.records.append(fast)
    said = made.shown(tmp_path).document["glance"][0]
    assert said.startswith("Link: 100 Gb/s; best RDMA bandwidth 97.0 Gb/s, 9"), said
    assert said.endswith("); fastest: 97.9 Gb/s (RDMA peer, send, busy polling, 1 MiB).")


@pytest.mark.parametrize(
    ("ratio", "said"), [
        (0.999, "none"), (1.004, "none"), (1.5, "+50 % (1.50 times as much)"),
        (0.73, "**-27 % (0.730 times as much)**"),
    ],
)  # fmt: skip
def test_a_change_that_rounds_to_nothing_is_none(ratio: float, said: str) -> None:
    assert advantage(ratio, "lower") == said


def test_key_findings_name_test_size_and_pair(made: Made, tmp_path: Path) -> None:
    varied = check(
        "repeatability/latency", "advisory", 12.7, evidence=["latency/n1/n2#64"], limit={"max": 5}
    )
    made.verdict["checks"] = [varied]
    said = made.shown(tmp_path).section("## Key findings")
    slowest = "RDMA bandwidth at 1 MiB: the slowest pair is n1 to n4, 48.5 Gb/s, median of its "
    assert f"{slowest}repeats: 50.0 % of the median of the test's pairs." in said
    assert "Repeats vary by at most 12.7 % (repeatability/latency, 64 B, n1 to n2)" in said


def test_the_senders_retransmissions_are_told_from_the_sum_of_all_counters(
    made: Made, tmp_path: Path
) -> None:
    assert "none lost, none retransmitted." in made.shown(tmp_path).section("## Key findings")
    made.records[0]["packets"]["retries"] = 44
    said = made.shown(tmp_path).section("## Key findings")
    assert "none lost, 44 retransmissions after a timeout or NAK." in said


def test_the_repeats_of_outliers_are_named_beside_the_flows(made: Made, tmp_path: Path) -> None:
    plan = planned.read_plan(made.write(tmp_path).root / "plan.json")
    flows = len(list(plan.flows()))
    assert f"{flows} [flows](#terms)), " in first_screen.what_line(digest(plan), "")
    [*again] = [msgspec.structs.replace(one, retry=True) for one in plan.rounds[0].flows[:2]]
    plan.rounds.append(msgspec.structs.replace(plan.rounds[0], flows=again))
    said = first_screen.what_line(digest(plan), "")
    assert f"{flows} [flows](#terms) and {len(again)} repeat" in said


@pytest.mark.parametrize(("measured", "last"), [(0, "limits"), (1, "path/t/a/b/0/1")])
def test_missing_measurements_come_before_the_limits_that_lack_them(
    measured: int, last: str
) -> None:
    faults = ["limits", "flow/t/a/b/0/1", "path/t/a/b/0/1"]
    checks = [check(name, "inconclusive", 0, fault=f"Fault {name}") for name in faults]
    coverage = {"planned": 72, "measured": measured, "missing": []}
    made = verdict("INCONCLUSIVE", checks=checks, coverage=coverage)
    found = first_screen.findings(msgspec.convert(made, Verdict))
    assert found[-1].cells.title == f"Fault {last}"


def test_readiness_tells_failures_from_warnings(made: Made, tmp_path: Path) -> None:
    states = {"limit/loss/bandwidth": "advisory", "limit/lat/latency": "fail"}
    for one in made.verdict["checks"]:
        one["status"] = states.get(one["id"], one["status"])
    made.verdict["verdict"] = "FAIL"
    said = made.shown(tmp_path).section("## Readiness")
    assert "; failed: latency; with a warning: loss." in said


@pytest.mark.parametrize(
    ("name", "criterion"),
    [("fec/n1/eth0", "counters clean"), ("copies", "evidence complete"), ("clock", "evidence")],
)
def test_readiness_has_the_criterion_that_a_check_names(
    made: Made, tmp_path: Path, name: str, criterion: str
) -> None:
    made.verdict["checks"].append(check(name, "fail", 1))
    made.verdict["verdict"] = "FAIL"
    said = made.shown(tmp_path).section("## Readiness")
    assert f"; failed: {criterion}" in said


def test_readiness_and_the_first_screen_name_the_same_worst_figure(
    made: Made, tmp_path: Path
) -> None:
    most = {"limit": {"min": None, "max": 10}, "unit": "times the median"}
    made.verdict["checks"] += [
        check("tail/near", "advisory", 30, **most, evidence=["near/n1/n2/0/1#8"]),
        check("tail/far", "advisory", 90, **most, evidence=["far/n1/n2/0/3#256"]),
    ]
    report = made.shown(tmp_path)
    said = "tail/far: 90 times the median, 256 B, repeat 3, n1 to n2 (limit: at most 10 times"
    assert said in report.section("## Readiness")
    assert said.replace("tail/far", "tail/far (also `near`)") in report.text


def test_the_line_of_a_verdict_says_each_fault_once() -> None:
    faults = {"limit/a/t": "Too low", "limit/b/t": "Too low", "tail/t": "Too late"}
    found = verdict(
        "FAIL", checks=[check(name, "fail", 1, fault=said) for name, said in faults.items()]
    )
    assert judging.line(msgspec.convert(found, Verdict)).endswith("; failed: Too low, Too late")
