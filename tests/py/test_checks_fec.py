"""perch.checks.fec: what forward error correction had to correct."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from perch.checks.counters_alike import PATH, alike
from perch.judge.corrected import LATE_S
from perch.judge.hosts import HostFacts
from perch.judge.links import LinkFacts
from perch.judge.readings import of_tables
from perch.judge.trail import End, Mark, Trail
from perch.model.raw import Reading, Readings, Tables
from perch.model.verdict import Check
from tests.py.checks_built import found, record, run_of

NIC = "enp1s0"
PHY, BNXT = "rx_corrected_bits_phy", "rx_corrected_bits"
FULL = str(2**64 - 1)
#: What 100 Gb/s carries in a second.
SECOND = 10**11


def reading(at: float, counters: dict[str, str]) -> Reading:
    return of_tables(Tables(time_s=f"{at:.3f}", netdev={NIC: counters}))


def flow(name: str, begin: float, end: float, before: Any, after: Any, counter: str = PHY) -> End:
    """A flow of host a around which a counter had these values; None: it was not there."""
    texts = [{} if one is None else {counter: str(one)} for one in (before, after)]
    return End("a", name, Readings(reading(begin, texts[0]), reading(end, texts[1])))


def checked(*flows: End, rate: float | None = 100, hardware: bool = True) -> dict[str, Check]:
    """Of a host that read these. Each way to cut its flows in pieces tells the same."""
    facts = {"a": HostFacts(links={NIC: LinkFacts(rate, 9000)})}
    told = []
    for size in (1, 2, len(flows)):
        whole = Trail()
        for at in range(0, len(flows), size):
            piece = Trail(hardware={"a": {NIC: hardware, "m0/1": True}})
            for end in flows[at : at + size]:
                piece.read([end])
            whole.follow(piece)
        told.append(found(replace(run_of([]), trail=whole, hosts=facts), "fec"))
    assert told[0] == told[1] == told[2]
    return told[0]


@pytest.mark.parametrize("name", [PHY, BNXT])
@pytest.mark.parametrize(
    ("bits", "check", "status", "said"),
    [
        (10**7, "fec", "pass", "1.0e-05 of all bits were corrected, at most, on a, enp1s0"),
        (15 * 10**6, f"fec/a/{NIC}", "fail", "1.5e-05 of all bits were corrected in the run"),
        (10**9, f"fec/a/{NIC}", "fail", "1.0e-03 of all bits were corrected in the run"),
    ],
)
def test_share_of_the_bits_that_the_link_carried(
    bits: int, check: str, status: str, said: str, name: str
) -> None:
    """In ten seconds of 100 Gb/s, those among them that a driver may be late."""
    checks = checked(flow("f", 5, 15 - LATE_S, 77, bits + 77, name))
    assert list(checks) == [check]
    assert (checks[check].status, checks[check].measured) == (status, said)


@pytest.mark.parametrize(
    ("at", "when", "evidence"),
    [(1, "in f1", ["a", "f1"]), (2, "between f1 and f2", ["a", "f1", "f2"])],
)
def test_one_bad_flow_is_not_hidden_by_hours_that_are_well(
    at: int, when: str, evidence: list[str]
) -> None:
    """A corrected bit of 10,000 in ten seconds, and none in the hours beside them."""
    bits = SECOND * 10 // 10**4
    within = bits if at == 1 else 0
    checks = checked(
        flow("f0", 0, 10000, 0, 0),
        flow("f1", 10000, 10010, 0, within),
        flow("f2", 10020, 20000, bits, bits),
    )
    assert list(checks) == [f"fec/a/{NIC}"]
    assert checks[f"fec/a/{NIC}"].measured == f"9.0e-05 of all bits were corrected {when}"
    assert checks[f"fec/a/{NIC}"].evidence == evidence


def test_a_counter_that_moves_once_a_second_is_no_burst() -> None:
    """Three seconds of a healthy link show in the 50 ms of a flow, as bnxt_en has it."""
    late = 9 * SECOND // 10**6
    checks = checked(
        flow("f0", 0, 3, 0, late), flow("f1", 3.01, 3.06, late, late + SECOND // 10**5)
    )
    assert {name: one.status for name, one in checks.items()} == {"fec": "pass"}


@pytest.mark.parametrize(
    ("flows", "said"),
    [
        ([flow("f", 1, 9, 10**15, 5)], "in f"),
        ([flow("f", 1, 9, 7, None)], "in f"),
        ([flow("f", 1, 9, None, 7)], "in f"),
        ([flow("f", 1, 9, FULL, FULL)], "in f"),
        ([flow("f", 1, 9, "many", "many")], "in f"),
        ([flow("f", 1, 9, 7, 7), flow("g", 11, 19, 3, 3)], "between f and g"),
        ([flow("f", 1, 9, 7, 7), flow("g", 11, 19, None, None)], "between f and g"),
        ([flow("f", 1, 9, None, None), flow("g", 11, 19, 7, 7)], "between f and g"),
    ],
    ids=["reset", "vanished", "came", "full", "no number", "reset between", "vanished between",
         "came between"],
)  # fmt: skip
def test_a_count_that_does_not_go_on_is_inconclusive(flows: list[End], said: str) -> None:
    one = checked(*flows)["fec/readings"]
    assert (one.status, one.evidence) == ("inconclusive", ["a"])
    assert one.measured == f"a: {NIC} {PHY} went back, is full or was not read, {said}"


def test_a_gap_does_not_hide_a_bad_link() -> None:
    bad = flow("f", 0, 10, 0, SECOND), flow("g", 20, 30, 0, 0)
    checks = checked(*bad)
    assert {name: one.status for name, one in checks.items()} == {
        f"fec/a/{NIC}": "fail", "fec/readings": "inconclusive",
    }  # fmt: skip


def test_a_count_that_begins_at_zero_has_not_moved() -> None:
    assert list(checked(flow("f", 1, 9, None, 0))) == ["fec"]


@pytest.mark.parametrize(
    ("before", "after", "rate"), [(None, None, 100), (77, 90, None)], ids=["no counter", "no rate"]
)
def test_what_is_not_known_is_not_judged(
    before: int | None, after: int | None, rate: float | None
) -> None:
    checks = checked(flow("f", 1, 9, before, after), rate=rate)
    assert {name: one.status for name, one in checks.items()} == {"fec/not_counted": "not_judged"}


def test_only_links_of_hardware_count() -> None:
    assert not checked(flow("f", 1, 9, 7, 9 * 10**12), hardware=False)
    assert not checked(flow("f", 1, 9, 7, 3), hardware=False)


@pytest.mark.parametrize(
    ("lacking", "status"),
    [
        ((), "pass"),
        ((PHY,), "inconclusive"),
        ((PHY, "rx_pcs_symbol_err_phy"), "advisory"),
        ((PHY, "rx_pcs_symbol_err_phy", "rx_discards_phy"), "advisory"),
    ],
    ids=["none", "its bits alone", "as an older card", "as a virtual function"],
)
def test_a_card_that_lacks_nothing_but_its_corrected_bits(
    lacking: tuple[str, ...], status: str
) -> None:
    """One of five hosts; all have the same driver."""
    counted = ["rx_errors", "rx_bytes", "rx_discards_phy", "rx_pcs_symbol_err_phy", PHY]
    hosts = "abcde"
    run = run_of([record(f"t/{one}/{hosts[0]}/0/1") for one in hosts[1:]])
    trail = Trail(
        last={
            host: [
                Mark("f", 1, reading(1, {
                    name: "0" for name in counted if host != "c" or name not in lacking
                }))
            ]
            for host in hosts
        },
        hardware={host: {NIC: True} for host in hosts},
    )  # fmt: skip
    facts = {host: HostFacts(drivers={NIC: "mlx5_core"}) for host in hosts}
    one = next(alike(replace(run, trail=trail, hosts=facts), frozenset((PATH, "errors"))))
    assert (one.id, one.status) == ("counters/alike", status)
    assert not lacking or str(one.measured).startswith(f"c: {NIC} has no ")
