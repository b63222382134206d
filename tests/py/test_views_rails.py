"""What a report says of tests of several rails: ranks, tables by rail, and the matrix of NICs."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from perch.judge import columns
from perch.views import draw, rails
from perch.views.plan import PlannedTest
from tests.py.checks_built import record as built
from tests.py.judging import put
from tests.py.shown import Made, Shown, fabric, flow, host, plan, record, rows_of, table_faults

EIGHT = [f"n{number}" for number in range(1, 9)]


def railed(
    hosts: list[str],
    number: int,
    slow: set[tuple[str, int]],
    *,
    ends: tuple[str, ...] = ("client", "server"),
    op: str = "write",
) -> Made:
    """Both ways of all pairs, each rail; links of 100 Gb/s.

    slow: NICs at a tenth, as these ends. op: of the bandwidth.
    """
    made = fabric()
    flows, records = [], []
    for client, server in permutations(hosts, 2):
        for rail in range(number):
            for test in ("bandwidth", "latency"):
                one = flow(test, client, server)
                one |= {"id": f"{test}/{client}/{server}/{rail}/1", "rail": rail}
                found = record(one)
                found["rail"] = rail
                for side in ("client", "server"):
                    found[side]["device"] = f"mlx5_{rail}"
                is_slow = {(one[end], rail) for end in ends} & slow
                if test == "bandwidth":
                    one["op"] = found["op"] = op
                    put("bandwidth.gbit_s", 9.7 if is_slow else 97)(found)
                elif is_slow:
                    put("latency_us.p50", 20)(found)
                flows.append(one)
                records.append(found)
    nics = [{"name": f"mlx5_{rail}", "netdev": f"eth{rail}"} for rail in range(number)]
    made.plan = plan({name: host(switch="leaf1", devices=nics) for name in hosts}, [flows])
    made.records = records
    return made


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """Eight hosts with eight rails; rail 3 of n6 is slow."""
    return railed(EIGHT, 8, {("n6", 3)}).shown(tmp_path_factory.mktemp("run"))


def matrix(report: Shown, title: str) -> list[str]:
    tables = report.document["rails"]["tables"]
    return rows_of(next(table for table in tables if table.title.startswith(title)))


def test_the_matrix_has_a_row_a_host_and_marks_the_slow_nic_only(eight: Shown) -> None:
    rates, times = matrix(eight, "RDMA bandwidth, 1 MiB, Gb/s"), matrix(eight, "RDMA latency, 64 B")
    sound, slow = ["97.0"] * 8, ["97.0"] * 3 + ["**9.70**"] + ["97.0"] * 4
    assert rates == [" | ".join([one, *(slow if one == "n6" else sound)]) for one in EIGHT]
    assert times[5] == "n6 | 2.00 | 2.00 | 2.00 | **20.0** | 2.00 | 2.00 | 2.00 | 2.00"
    said = eight.section("### Rails")
    assert "| Host | 0 (mlx5_0) | 1 (mlx5_1) |" in said
    assert len(max(said.splitlines(), key=len)) < 150
    assert list(table_faults(eight.text)) == []


def test_the_chart_of_rails_has_a_cell_a_nic(eight: Shown) -> None:
    cells = {(one["host"], one["rail"]): one["percent"] for one in eight.chart("rails").values}
    assert len(cells) == 64
    assert min(cells, key=lambda nic: cells[nic]) == ("n6", 3)
    assert sorted(set(cells.values()))[1] == pytest.approx(98.9, abs=0.1)
    svg = draw.svg(eight.chart("rails"))
    assert "<title>n6, rail 3 (mlx5_3): 9.70 Gb/s, 9.9 %</title>" in svg
    assert svg.count("<title>n") == 64


def test_ranks_and_first_lines_name_the_rail(eight: Shown) -> None:
    [first, *_] = rows_of(eight.document["slowest"])
    assert first.startswith("RDMA bandwidth, 1 MiB | n1 | n6 | 3 | 9.70 Gb/s | ")
    assert any(
        "Worst pair: n1 to n6, rail 3, 9.70 Gb/s" in line for line in eight.document["glance"]
    )
    assert "the slowest pair is n1 to n6, rail 3, 9.70 Gb/s" in eight.section("## Key findings")
    points = eight.chart("flows_bandwidth").values
    assert points[0]["said"].startswith("RDMA bandwidth at 1 MiB, n1 to n6, rail 3: 9.70 Gb/s")
    pairs = {(one["client"], one["server"]): one["said"] for one in eight.chart("map").values}
    assert len(pairs) == 56
    assert pairs["n1", "n6"].startswith("n1 to n6, rail 3: 9.70 Gb/s")


def test_each_test_has_a_table_by_rail(eight: Shown) -> None:
    said = eight.section("### RDMA bandwidth")
    assert "Each rail, as the median over its pairs" in said
    assert said.count("**") == 2
    assert "| 1 MiB | 3 | 97.0 | 98.9 % | **9.70** | n1 to n6 |" in said


def test_two_hosts_have_their_slow_rail_in_bold(tmp_path: Path) -> None:
    report = railed(["n1", "n2"], 2, {("n1", 1)}).shown(tmp_path)
    assert "| 1 MiB | 1 | **9.70** | 9.9 % | **9.70** | n1 to n2 |" in report.section(
        "### RDMA bandwidth"
    )
    # half of four NICs is slow: the median of all lies between
    assert matrix(report, "RDMA bandwidth")[0] == "n1 | 97.0 | **9.70**"
    assert list(table_faults(report.text)) == []


@pytest.mark.parametrize(
    ("end", "op", "way"),
    [
        ("server", "write", "receiving"),
        ("client", "write", "sending"),
        ("server", "read", "sending"),
    ],
)
@pytest.mark.parametrize("number", [3, 5])
def test_a_nic_that_is_slow_one_way_is_marked_with_it(
    end: str, op: str, way: str, number: int, tmp_path: Path
) -> None:
    names = [f"n{at}" for at in range(number, 0, -1)]
    report = railed(names, 2, {("n2", 1)}, ends=(end,), op=op).shown(tmp_path)
    rows = [f"{one} | 97.0 | 97.0" for one in names]
    rows[-2] = f"n2 | 97.0 | **9.70** ({way})"
    assert matrix(report, "RDMA bandwidth") == rows
    # of a round trip both ends send
    assert not any(way in row for row in matrix(report, "RDMA latency"))
    said = [one["said"] for one in report.chart("rails").values]
    assert f"n2, rail 1 (mlx5_1), {way}: 9.70 Gb/s, 9.9 %" in said
    assert list(dict.fromkeys(one["host"] for one in report.chart("rails").values)) == names


def test_a_bad_peer_does_not_show_where_each_pair_is_measured_one_way(tmp_path: Path) -> None:
    """Each sends to two others and receives from two, as five hosts do in five rounds."""
    names = ["n1", "n2", "n3", "n4", "n5"]
    made = railed(names, 2, {("n2", 1)})
    ahead = {(a, names[(at + by) % 5]) for at, a in enumerate(names) for by in (1, 2)}
    made.records = [
        one for one in made.records if (one["client"]["host"], one["server"]["host"]) in ahead
    ]
    for turn in made.plan["rounds"]:
        turn["flows"] = [
            one for one in turn["flows"] if (one["client"], one["server"]) in ahead
        ]  # fmt: skip
    rows = [f"{one} | 97.0 | {'**9.70**' if one == 'n2' else '97.0'}" for one in names]
    assert matrix(made.shown(tmp_path), "RDMA bandwidth") == rows


def test_one_rail_has_neither_matrix_nor_table(tmp_path: Path) -> None:
    report = fabric().shown(tmp_path)
    assert "### Rails" not in report.text
    assert "Each rail" not in report.text
    assert "rails" not in report.names
    assert "Rail" not in report.section("### The slowest pairs")


def test_many_hosts_show_those_with_the_slowest_nics(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1, 43)]
    made = railed(names, 2, {("n42", 0), ("n41", 1)})
    ring = {(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True)}
    made.records = [
        one for one in made.records if (one["client"]["host"], one["server"]["host"]) in ring
    ]
    for turn in made.plan["rounds"]:
        turn["flows"] = [
            one for one in turn["flows"] if (one["client"], one["server"]) in ring
        ]  # fmt: skip
    report = made.shown(tmp_path)
    rows = matrix(report, "RDMA bandwidth")
    assert len(rows) == rails.HOSTS_MAX
    assert {row.split(" | ")[0] for row in rows} >= {"n41", "n42"}
    assert "`records.jsonl` has 2 more hosts" in report.section("### Rails")
    assert "rails" not in report.names


def test_the_pairs_of_a_transfer_are_rails_and_each_end_has_its_own() -> None:
    records = [
        built(
            f"t/{client}/{server}/0/1", kind="transfer", transfer={"pair": pair},
            params={"size_bytes": 1024, "batch": batch, "devices": 2, "cross_rail": 1},
            bandwidth={"gbit_s": rate if batch == 64 else 1},
        )
        for client, server, rates in (("a", "b", (390, 39)), ("b", "a", (39, 390)))
        for pair, rate in enumerate(rates)
        for batch in (1, 64)
    ]  # fmt: skip
    found = rails.results(columns.frame(records))
    [one] = rails.matrices(found, [PlannedTest("t", "T", "transfer")], ["b", "a"])
    assert one.hosts == ["b", "a"]
    assert (one.place, one.middle) == ("1 KiB, batch 64", 214.5)
    # rail 1 of a, and rail 0 of b, which work with each other
    assert one.values == {("a", 0): 390, ("a", 1): 39, ("b", 0): 39, ("b", 1): 390}
    assert rails.tables(found) == {}
