"""Errors of a soak, judged by their rate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.py.soak_built import Document, composed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def eth1(sample: Document) -> Document:
    table: Document = sample["counters"]["netdev"]["eth1"]
    return table


@pytest.mark.parametrize(("gbit_s", "anomalies"), [(None, 1), (400, 0)])
def test_one_symbol_error_a_day_is_what_a_healthy_link_of_that_rate_has(
    root: Path, gbit_s: int | None, anomalies: int
) -> None:
    soak = composed(root, "--duration 86400 --interval 300")

    def damaged(sample: Document, place: int) -> None:
        if place >= 100:
            eth1(sample)["rx_crc_errors"] = str(int(eth1(sample)["rx_crc_errors"]) + 1)

    soak.samples(damaged, "node1")

    def bought(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["link_gbit_s"] = gbit_s

    soak.edit("plan.json", bought)
    soak.judge()
    assert len(soak.texts("counter")) == anomalies


@pytest.mark.parametrize(
    ("gbit_s", "bits", "texts"),
    [
        (100, 3 * 10**10, ["advisory node1: FEC corrected 1.0e-03 of the bits of eth1"]),
        (100, 3 * 10**8, []),
        (None, 3 * 10**10, []),
    ],
)
def test_a_link_that_needs_much_error_correction_in_one_sample_is_named(
    root: Path, gbit_s: int | None, bits: int, texts: list[str]
) -> None:
    """In 300 s of 100 Gb/s; FEC of a healthy link corrects one of 100,000 bits at most."""
    soak = composed(root, "--duration 86400 --interval 300")

    def corrected(sample: Document, place: int) -> None:
        eth1(sample)["rx_corrected_bits_phy"] = str(bits if place >= 100 else 0)

    soak.samples(corrected, "node1")

    def bought(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["link_gbit_s"] = gbit_s

    soak.edit("plan.json", bought)
    soak.judge()
    assert soak.texts("counter") == texts


@pytest.mark.parametrize(
    ("then", "texts"),
    [
        ("5", ["inconclusive node1: the count of bits that FEC corrected on eth1 was reset or is "
               "full"]),
        (str(2**64 - 1), ["inconclusive node1: the count of bits that FEC corrected on eth1 was "
                          "reset or is full"]),
        (None, ["inconclusive node1: netdev/eth1/rx_corrected_bits_phy not read any more: what "
                "they counted since is not known"]),
        ("90", []),
    ],
    ids=["reset", "full", "vanished", "sound"],
)  # fmt: skip
def test_corrected_bits_that_are_not_counted_to_the_end_prove_nothing(
    root: Path, then: str | None, texts: list[str]
) -> None:
    soak = composed(root, "--duration 86400 --interval 300")

    def counted(sample: Document, place: int) -> None:
        if place < 100:
            eth1(sample)["rx_corrected_bits_phy"] = "90"
        elif then is not None:
            eth1(sample)["rx_corrected_bits_phy"] = then

    def bought(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["link_gbit_s"] = 100

    soak.samples(counted, "node1")
    soak.edit("plan.json", bought)
    soak.judge()
    assert soak.texts("counter") + soak.texts("host") == texts
