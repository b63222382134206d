"""What perftest's server prints against its client's results."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.model.part import Part
from perch.tools.perftest_served import contradiction

LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
    " 64      1000          16.90          46580.04      {typical}    	       {average}\n"
)
BANDWIDTH = (
    " #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]\n"
    " {size}      400              177.00             {average}  		   {messages}\n"
)


def part(**more: Any) -> Part:
    return msgspec.convert({"params": {"size_bytes": 64}} | more, Part)


def said(of: Part, typical: float, average: float) -> str | None:
    return contradiction(of, LATENCY.format(typical=typical, average=average).encode())


@pytest.mark.parametrize(
    ("typical", "average", "words"),
    [
        (17.91, 146.58, None),
        (17.91, 1409.4, None),  # a few long times are of one end only
        (179.1, 146.58, None),
        (179.1, 1409.4, "the server's stdout has t_avg of 1409.4 us, the client's 140.94 us"),
        (1.79, 14.09, "the server's stdout has t_avg of 14.09 us, the client's 140.94 us"),
    ],
)
def test_both_ends_of_a_latency_agree(typical: float, average: float, words: str | None) -> None:
    times = {"count": 1000, "mean": 140.94, "p50": 17.91}
    assert said(part(kind="latency", op="send", latency_us=times), typical, average) == words


def test_few_times_are_compared_with_nothing() -> None:
    times = {"count": 99, "mean": 140.94, "p50": 17.91}
    assert said(part(kind="latency", op="send", latency_us=times), 1.79, 14.09) is None


def bandwidth(op: str, gbit_s: float = 0.51, **more: Any) -> Part:
    """400 messages of 64 KiB, which took four tenths of a second."""
    params = {"size_bytes": 65536, "bidirectional": False} | more.pop("params", {})
    figures = {"gbit_s": gbit_s, "bytes": 400 * 65536}
    made = {"kind": "bandwidth", "op": op, "connection": "RC", "bandwidth": figures} | more
    return part(**made, params=params)


def served(average: float, unit: str = "MiB", size: int = 65536) -> bytes:
    text = BANDWIDTH.format(
        size=size, unit=unit, average=average, messages=average * 2**20 / 65536e6
    )
    return text.encode()


#: 0.51 Gb/s in MiB/s
MINE = 60.8
BOTH = {"params": {"bidirectional": True}}
BOTH_BY_TIME = {"params": {"bidirectional": True, "duration_s": 2}}


@pytest.mark.parametrize(
    ("op", "more", "share", "differs"),
    [
        ("write", {}, 1.0, False),
        ("write", {}, 1.05, True),
        ("read", {}, 0.95, True),
        ("fetch-add", {}, 0.95, True),
        ("send", {}, 1.05, False),
        ("send", {}, 1.9, False),
        ("send", {}, 5, True),
        ("send", {}, 0.2, True),
        ("write-imm", {}, 1.9, False),
        # messages were lost
        ("send", {"connection": "UD"}, 0.2, False),
        ("send", BOTH, 1.05, True),
        ("send", BOTH_BY_TIME, 1.05, False),
        ("write", BOTH_BY_TIME, 1.05, True),
    ],
)
def test_both_ends_of_a_bandwidth_agree(
    op: str, more: dict[str, Any], share: float, differs: bool
) -> None:
    found = contradiction(bandwidth(op, **more), served(MINE * share))
    assert (found is not None) == differs


def test_a_short_send_may_wait_for_a_busy_server() -> None:
    """400 messages of 64 KiB in 2 ms, whose server ran 50 ms later."""
    assert contradiction(bandwidth("send", 100.0), served(500.0)) is None


def test_rates_are_compared_in_one_unit() -> None:
    text = served(MINE).replace(b"MiB", b"Gb")
    assert contradiction(bandwidth("write"), text) is not None
    assert contradiction(bandwidth("write", 97.5), served(97.5, "Gb")) is None


@pytest.mark.parametrize("text", [b"", b"{", b"the table is elsewhere", served(1.0, size=2)])
def test_a_server_without_a_row_of_the_size_says_nothing(text: bytes) -> None:
    """The server of reads prints none, and with -a the server of writes the last size only."""
    assert contradiction(bandwidth("write"), text) is None


SETTINGS = (
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF\t\tDevice         : rxe0\n"
    " Mtu             : 4096[B]\n"
    " rdma_cm QPs\t : OFF\n"
)


@pytest.mark.parametrize(
    ("mtu", "managed", "differs"),
    [(4096, False, False), (1024, False, True), (1024, True, False), (None, False, False)],
)
def test_both_ends_have_one_mtu(mtu: int | None, managed: bool, differs: bool) -> None:
    """Also where the server prints no row, as that of reads."""
    of = bandwidth("read", params={"rdma_cm": managed}, link={"mtu_bytes": mtu})
    found = contradiction(of, SETTINGS.encode())
    words = "the server's stdout has an MTU of 4096 B, the client's of 1024 B"
    assert found == (words if differs else None)
