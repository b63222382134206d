"""Fabrics of each vendor's cards: healthy ones pass, and sick ones name the part.

A row is the composed run of test_sick.py, in which each card counts by its driver's names. What a
plan leaves out for a card that cannot do it is in test_plan_capable.py.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from selftest import work
from selftest.edits import Edit, edit, from_then_on, more, readings, sealed_again
from selftest.files import Document
from selftest.runs import BASES, fabric_plan
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import RAILED, Fabric

from perch.model.verdict import Verdict
from tests.py.test_sick import LATENCIES, against
from tests.py.vendors import BY_PORT, CARDS, Card, said

FIRST, DEVICE = "write-rails/alpha/beta/0/1", "mlx5_0"
COUNTERS = f"rdma.{DEVICE}/1.counters"

#: Names under which cards count packets.
PACKETS = (
    ("port_xmit_packets", "port_rcv_packets"), ("tx_pkts", "rx_pkts"), ("ip4OutPkts", "ip4InPkts"),
    ("tx_rdma_ucast_pkts", "rx_rdma_ucast_pkts"),
)  # fmt: skip
#: What goes up and down, or lasts: the agent does not read it.
NO_COUNTERS = ("lifespan", "active_", "watermark_", "db_fifo_register")


def counting(card: Card) -> Edit:
    """All cards count by other names what they did count."""
    quiet = {
        name: "0"
        for name, value in said(card.port).items()
        if value.isdecimal() and not name.startswith(NO_COUNTERS)
    }

    def change(reading: Document) -> None:
        for rail in range(2):
            port = reading["rdma"][f"{fabric_plan.device(rail)}/1"]
            was, now = port["counters"], dict(quiet)
            interface = reading["netdev"][fabric_plan.netdev(rail)]
            shows = interface if card.ethtool and card.bytes[0] in said(card.ethtool) else now
            for way, name in zip(("xmit", "rcv"), card.bytes, strict=True):
                shows[name] = str(4 * int(was[f"port_{way}_data"]) // card.each)
            for names in PACKETS:
                for way, name in zip(("xmit", "rcv"), names, strict=True):
                    if name in now:
                        now[name] = was[f"port_{way}_packets"]
            interface["carrier_down_count"] = "0"
            port["counters"] = now

    return readings("*", change)


def driven(card: Card) -> list[Edit]:
    """The composed hosts have ConnectX cards."""

    def change(environment: Document) -> None:
        for one in (*environment["interfaces"], *environment["rdma"]):
            one["driver"] = card.driver

    return [edit("raw/*/environment.json", change)] if card.driver != "mlx5_core" else []


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vendors") / "run"
    compose(root, Fabric(5, (*RAILED, LATENCIES)))
    return root


def judged(fabric: Path, root: Path, card: Card, *edits: Edit) -> Verdict:
    shutil.copytree(fabric, root)
    for one in (counting(card), *driven(card), *edits):
        one(root)
    sealed_again(root)
    return work.judged(root)


@pytest.mark.parametrize("card", CARDS)
def test_a_healthy_card_of_each_vendor_passes(card: str, fabric: Path, tmp_path: Path) -> None:
    verdict = judged(fabric, tmp_path / "run", CARDS[card])
    assert (verdict.verdict, against(verdict)) == ("PASS", [])


#: The devices with fabrics of their own: Cassini NICs, composed, and Soft-RoCE, recorded.
OWN_FABRIC = {"cxi": "slingshot", "rxe": "rxe"}


@pytest.mark.parametrize("driver", OWN_FABRIC)
def test_a_healthy_device_of_another_fabric_passes(driver: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    BASES[OWN_FABRIC[driver]](root)
    verdict = work.judged(root)
    assert (verdict.verdict, against(verdict)) == ("PASS", [])
    counted = list((root / "raw").rglob("samples.jsonl"))
    assert counted and all(f'"{driver}0' in file.read_text() for file in counted)


#: Case, the check that fails, and which of a card's counters moves by how much.
SICK = {
    "packets sent again": ("counters/retransmissions", "repeats", 5000),
    "packets dropped": ("counters/drops", "drops", 3),
    "packets damaged": ("counters/errors", "errors", 3),
}


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("case", SICK)
def test_a_sick_card_fails_by_its_own_counter(
    case: str, card: str, fabric: Path, tmp_path: Path
) -> None:
    check, member, n = SICK[case]
    counter = getattr(CARDS[card], member)
    sick = from_then_on(FIRST, more(f"{COUNTERS}.{counter}", n))
    verdict = judged(fabric, tmp_path / "run", CARDS[card], sick)
    told = {one.id: str(one.measured) for one in verdict.checks if one.status == "fail"}
    assert verdict.verdict == "FAIL"
    assert f"alpha: {DEVICE}/1 {counter}" in told[check]


@pytest.mark.parametrize("card", CARDS)
def test_bytes_that_went_around_a_card_fail_with_its_name(
    card: str, fabric: Path, tmp_path: Path
) -> None:
    """From the first flow on the card's counter stands still."""
    out = CARDS[card].bytes[0]

    def stand_still(reading: Document) -> None:
        reading["rdma"][f"{DEVICE}/1"]["counters"][out] = "0"

    verdict = judged(fabric, tmp_path / "run", CARDS[card], readings("alpha", stand_still))
    told = {one.id: str(one.measured) for one in verdict.checks if one.status == "fail"}
    assert verdict.verdict == "FAIL"
    assert told[f"path/{FIRST}"].startswith(f"client: {DEVICE} sent 0 bytes, but at least")


@pytest.mark.parametrize("card", BY_PORT)
def test_a_card_that_counts_no_repeats_is_never_accepted(
    card: str, fabric: Path, tmp_path: Path
) -> None:
    """The bytes of its port prove the path."""
    verdict = judged(fabric, tmp_path / "run", BY_PORT[card])
    assert (verdict.verdict, against(verdict)) == ("INCONCLUSIVE", ["counters/missing"])
    proven = [one.id for one in verdict.checks if one.id.startswith("path/")]
    assert proven == ["path/proven/hardware"]


def test_a_card_without_any_counter_is_never_accepted(fabric: Path, tmp_path: Path) -> None:
    card = BY_PORT["tx_bytes.nic"]

    def forget(reading: Document) -> None:
        for rail in range(2):
            for name in card.bytes:
                del reading["netdev"][fabric_plan.netdev(rail)][name]

    verdict = judged(fabric, tmp_path / "run", card, readings("*", forget))
    told = {one.id: one for one in verdict.checks}[f"path/{FIRST}"]
    assert (verdict.verdict, told.status) == ("INCONCLUSIVE", "inconclusive")
    assert told.measured == f"client: no counter of {DEVICE} could be read"
