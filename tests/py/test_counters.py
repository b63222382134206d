"""perch.judge.counters: readings before and after a flow -> differences."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge.counters import Difference, as_recorded, counted, differences, is_trouble
from perch.judge.readings import around
from perch.model.raw import Readings, Tables, TablesAround, Values
from tests.py.path_built import table


def moved(before: Values, after: Values) -> dict[str, Difference]:
    """The differences of two tables, and of readings that have them: they are the same."""
    first, second = (Tables(time_s=at, host=one) for at, one in (("1", before), ("2", after)))
    found = counted(around(TablesAround(first, second)))
    assert found is not None
    assert table(found.host) == differences(before, after)
    return table(found.host)


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        ("5", "12", 7),
        ("7", "7", 0),
        ("0", "0", 0),
        ("9007199254740993", "9007199254740994", 1),  # above 2^53
        ("999999999", "1000000001", 2),
        ("18446744073709551000", "18446744073709551610", 610),
        ("12", "5", None),  # reset
        ("4294967290", "5", None),  # wrapped
        ("4294967295", "4294967295", None),  # full, although it stood still
        ("7", "18446744073709551615", None),
        ("-1", "2", None),
        ("none", "none", None),
        ("", "2", None),
        ("1", "123456789012345678901", None),  # more digits than 64 bits have
        ("1", "\u0662", None),  # a digit, but not of a counter
    ],
)
def test_difference_is_exact_and_none_where_a_counter_does_not_tell(
    before: str, after: str, by: int | None
) -> None:
    assert moved({"n": before}, {"n": after}) == {"n": by}
    assert moved({"a": "1", "n": before}, {"a": "4", "n": after}) == {"a": 3, "n": by}


@pytest.mark.parametrize(
    ("name", "before", "after", "by"),
    [
        ("link_downed", "255", "255", None),
        ("symbol_error", "3", "65535", None),
        ("link_downed", "2", "3", 1),
        ("tx_bytes", "1", "255", 254),
    ],
)
def test_narrow_counter_stops_at_its_width(
    name: str, before: str, after: str, by: int | None
) -> None:
    assert moved({name: before}, {name: after}) == {name: by}


def test_a_counter_that_one_reading_lacks_does_not_tell() -> None:
    found = moved({"a": "1", "gone": "1"}, {"new": "1", "a": "3", "first": "0"})
    assert found == {"a": 2, "gone": None, "new": None, "first": 0}
    assert moved({"b": "4", "a": "1"}, {"a": "1", "b": "5"}) == {"a": 0, "b": 1}
    assert moved({"a": "1"}, {}) == {"a": None}


def reading(**more: Any) -> dict[str, Any]:
    return {"time_s": "100.5", "host": {"TcpRetransSegs": "7"}} | more


BEFORE = reading(
    netdev={"eth1.5": {"rx_bytes": "10", "tx_bytes": "1"}, "gone": {"rx_bytes": "1"}},
    rdma={"rxe0/1": {"netdev": "eth1.5", "counters": {"sent_pkts": "3", "symbol_error": "1"}}},
    cxi={"cxi0": {"netdev": "hsn0", "counters": {"hni_sts_tx_ok_octets": "5"}}},
)
AFTER = reading(
    time_s="102.5",
    netdev={"eth1.5": {"rx_bytes": "15", "tx_bytes": "1"}},
    rdma={"rxe0/1": {"netdev": "eth1.5", "counters": {"sent_pkts": "5", "symbol_error": "0"}}},
    cxi={"cxi0": {"netdev": "hsn0", "counters": {"hni_sts_tx_ok_octets": "5"}}},
)


def read(before: object, after: object) -> Readings:
    names = {"address_interface": "eth1.5", "route_interface": "eth2"}
    readings = around(msgspec.convert({"before": before, "after": after} | names, TablesAround))
    assert readings is not None
    return readings


def test_counted_has_every_table_and_the_seconds_between() -> None:
    found = counted(read(BEFORE, AFTER))
    assert found is not None
    assert (found.seconds, found.address, found.route) == (2, "eth1.5", "eth2")
    assert table(found.host) == {"TcpRetransSegs": 0}
    assert list(found.netdev) == ["eth1.5", "gone"]
    assert table(found.netdev["eth1.5"]) == {"rx_bytes": 5, "tx_bytes": 0}
    assert table(found.netdev["gone"]) == {"rx_bytes": None}
    assert found.rdma["rxe0/1"].block.netdev == "eth1.5"
    assert table(found.rdma["rxe0/1"]) == {"sent_pkts": 2, "symbol_error": None}
    assert table(found.cxi["cxi0"]) == {"hni_sts_tx_ok_octets": 0}


@pytest.mark.parametrize("end", ["100.5", "99", "soon", "", "inf", "nan"])
def test_seconds_are_unknown_where_the_clock_does_not_tell(end: str) -> None:
    found = counted(read(reading(), reading(time_s=end)))
    assert found is not None
    assert found.seconds is None


@pytest.mark.parametrize(
    "readings", [None, Readings(), read(reading(), None), read(None, reading())]
)
def test_without_both_readings_nothing_is_counted(readings: Readings | None) -> None:
    assert counted(readings) is None
    assert as_recorded(None, volumes=True) == {}


def test_record_leaves_out_what_did_not_move_and_renames_dots() -> None:
    assert as_recorded(counted(read(BEFORE, AFTER)), volumes=True) == {
        "TcpRetransSegs": 0,
        "eth1_5": {"rx_bytes": 5},
        "gone": {"rx_bytes": None},
        "rxe0/1": {"sent_pkts": 2, "symbol_error": None},
        "cxi0": {},
    }


@pytest.mark.parametrize(
    "name",
    [
        "rx_dropped", "duplicate_request", "out_of_seq_request", "rcvd_rnr_err", "symbol_error",
        "completer_retry_err", "packet_seq_err", "out_of_buffer", "local_ack_timeout_err",
        "port_xmit_discards", "TcpRetransSegs", "np_cnp_sent", "hni_pcs_uncorrected_cw",
        "hni_rx_paused_3", "nacks",
    ],
)  # fmt: skip
def test_counters_of_trouble(name: str) -> None:
    assert is_trouble(name)


@pytest.mark.parametrize(
    "name",
    ["rx_bytes", "tx_packets", "sent_pkts", "rdma_sends", "port_xmit_data", "multicast",
     "ack_deferred", "unicast_rcv_packets", "rx_read_requests"],
)  # fmt: skip
def test_counters_of_work_are_no_trouble(name: str) -> None:
    assert not is_trouble(name)
