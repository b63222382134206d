"""perch.checks.fec: what forward error correction had to correct."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perch.judge.hosts import HostFacts
from perch.judge.links import LinkFacts
from perch.judge.readings import of_tables
from perch.judge.trail import Mark, Trail
from perch.model.raw import Tables
from perch.model.verdict import Check
from tests.py.checks_built import found, run_of

NIC = "enp1s0"


def mark(at: float, **counters: str) -> Mark:
    return Mark("t/a/b/0/1", at, of_tables(Tables(time_s=str(at), netdev={NIC: counters})))


def checked(
    before: Mark, after: Mark, *, rate: float | None = 100, hardware: bool = True
) -> dict[str, Check]:
    """Of a host whose first and last readings these are."""
    trail = Trail({"a": [before]}, {"a": [after]}, hardware={"a": {NIC: hardware, "m0/1": True}})
    facts = HostFacts(links={NIC: LinkFacts(rate, 9000)})
    return found(replace(run_of([]), trail=trail, hosts={"a": facts}), "fec")


@pytest.mark.parametrize("name", ["rx_corrected_bits_phy", "rx_corrected_bits"])
@pytest.mark.parametrize(
    ("bits", "check", "status", "said"),
    [
        (10**7, "fec", "pass", "1.0e-05 of all bits were corrected, at most, on a, enp1s0"),
        (15 * 10**6, f"fec/a/{NIC}", "fail", "1.5e-05 of all bits were corrected"),
        (10**9, f"fec/a/{NIC}", "fail", "1.0e-03 of all bits were corrected"),
    ],
)
def test_share_of_the_bits_that_the_link_carried(
    bits: int, check: str, status: str, said: str, name: str
) -> None:
    """In ten seconds of 100 Gb/s."""
    checks = checked(mark(5, **{name: "77"}), mark(15, **{name: str(bits + 77)}))
    assert list(checks) == [check]
    assert (checks[check].status, checks[check].measured) == (status, said)


@pytest.mark.parametrize(
    ("late", "rate"),
    [({"rx_corrected_bits_phy": "3"}, 100), ({"rx_corrected_bits_phy": "90"}, None), ({}, 100)],
    ids=["reset", "rate unknown", "not counted"],
)
def test_what_is_not_known_is_not_judged(late: dict[str, str], rate: float | None) -> None:
    checks = checked(mark(5, rx_corrected_bits_phy="77"), mark(15, **late), rate=rate)
    assert {name: one.status for name, one in checks.items()} == {"fec/not_counted": "not_judged"}


def test_only_links_of_hardware_count() -> None:
    many = mark(15, rx_corrected_bits_phy="9" * 12)
    assert not checked(mark(5, rx_corrected_bits_phy="7"), many, hardware=False)
