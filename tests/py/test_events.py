"""perch.judge.events: counters of the devices that carried a flow, by class."""

from __future__ import annotations

import pytest

from perch.judge.counter_table import class_of
from perch.judge.counters import Counts
from perch.judge.events import of_flow
from perch.judge.path import Proof
from perch.model.record import Events, Path, Role
from tests.py.path_built import Table, counts, flow


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rx_prio3_pause", "pause"),
        ("rx_prio3_pause_duration", "-"),
        ("tx_pfc_ena_frames_pri4", "pause"),
        ("hni_rx_paused_0", "pause"),
        ("np_cnp_sent", "congestion"),
        ("rx_vport_ECN_marked", "congestion"),
        ("rx_prio0_discards", "drops"),
        ("rx_dropped", "host-drops"),
        ("rx_bytes", "-"),
        ("foo", "-"),
    ],
)
def test_class_by_name_and_by_what_cards_call_it(name: str, kind: str) -> None:
    assert class_of(name) == kind


def carried(
    client: dict[str, Table],
    server: dict[str, Table],
    state: str = "unknown",
    *,
    loopback: bool = False,
) -> Proof:
    path = Path(state=state)  # type: ignore[arg-type]
    tables: dict[Role, dict[str, Counts]] = {
        "client": {name: counts(table) for name, table in client.items()},
        "server": {name: counts(table) for name, table in server.items()},
    }
    return Proof(path, [], {"client": [], "server": []}, tables, loopback)


def events(proof: Proof, *, measured: bool = True) -> Events:
    found = of_flow(flow(), proof, measured=measured)
    assert found is not None
    return found


def test_class_is_counted_where_both_ends_count_it() -> None:
    quiet: dict[str, Table] = {"eth1": {"rx_errors": 0, "rx_dropped": 0}}
    assert events(carried(quiet, quiet)).counts == {"errors": 0, "host-drops": 0}
    assert events(carried(quiet, {"eth1": {"rx_dropped": 0}})).counts == {"host-drops": 0}


def test_class_that_one_end_saw_is_counted_and_names_the_first_counter() -> None:
    found = events(
        carried(
            {"eth1": {"rx_errors": 0}, "m0/1": {"packet_seq_err": 2, "rnr_nak_retry_err": 1}},
            {"eth1": {"rx_errors": 3, "multicast": 9}},
        )
    )
    assert found.counts == {"errors": 3, "retransmissions": 3}
    assert found.moved == {
        "retransmissions": "a: m0/1 packet_seq_err",
        "errors": "b: eth1 rx_errors",
    }
    assert found.reset == []


def test_class_with_a_counter_that_was_reset_has_no_count() -> None:
    found = events(
        carried(
            {"m0/1": {"packet_seq_err": None, "rnr_nak_retry_err": 4}},
            {"m0/1": {"packet_seq_err": 5}},
        )
    )
    assert (found.counts, found.reset) == ({}, ["retransmissions"])
    assert found.moved == {"retransmissions": "a: m0/1 packet_seq_err"}


@pytest.mark.parametrize(
    ("errors", "flushed", "expected"),
    [(9, 9, {}), (9, 12, {}), (20, 9, {"errors": 11}), (0, 5, {})],
)
def test_completions_that_a_queue_pair_flushed_as_it_ended_are_no_errors(
    errors: int, flushed: int, expected: dict[str, int]
) -> None:
    """`resp_cqe_error` counts the flushed ones, too."""
    table: dict[str, Table] = {"m0/1": {"resp_cqe_error": errors, "resp_cqe_flush_error": flushed}}
    found = events(carried(table, {}))
    assert found.counts == expected
    assert found.moved == dict.fromkeys(expected, "a: m0/1 resp_cqe_error")


def test_failed_requests_are_unknown_where_the_flushed_ones_are() -> None:
    table: dict[str, Table] = {"m0/1": {"resp_cqe_error": 9, "resp_cqe_flush_error": None}}
    assert events(carried(table, {})).reset == ["errors"]


def test_nothing_is_known_without_counters() -> None:
    assert of_flow(flow(), carried({}, {}), measured=True) is None


def table(count: tuple[int | None, int | None]) -> Table:
    return {"tx_bytes": count[0], "rx_bytes": 0, "tx_packets": count[1], "rx_packets": 0}


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"eth1": table((10, 1))}, None),
        ({"eth1": table((0, 4))}, "b: eth1 counted 4 packets without a byte"),
        ({"eth1": table((4, 0))}, "b: eth1 counted 4 bytes in no packet"),
        ({"eth1": table((None, 0))}, None),
        ({"eth1": table((0, 0))}, None),  # beside an RDMA device it need not move
        (
            {"m0/1": {"port_xmit_data": 4, "port_rcv_data": 0, "port_xmit_packets": 0,
                      "port_rcv_packets": 0}},
            "b: m0/1 counted 4 bytes in no packet",
        ),
        ({"rxe0/1": {"sent_pkts": 0, "rcvd_pkts": 0}}, None),
    ],
)  # fmt: skip
def test_stale_device_is_named_where_the_path_is_proven(
    tables: dict[str, Table], why: str | None
) -> None:
    assert events(carried({}, tables, "proven")).stale == why
    assert events(carried({}, tables, "unknown")).stale is None


def test_loopback_must_move_if_a_part_was_measured() -> None:
    still = carried({"lo": table((0, 0))}, {}, "not_judged", loopback=True)
    assert events(still).stale == "a: lo counted neither bytes nor packets"
    assert events(still, measured=False).stale is None
