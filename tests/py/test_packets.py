"""perch.judge.packets: what became of a flow's packets."""

from __future__ import annotations

import pytest

from perch.judge.counters import Counts
from perch.judge.packets import of_flow
from perch.model.record import Packets
from tests.py.path_built import counts


def rxe(sent: int | None, received: int | None, **more: int) -> Counts:
    return counts({"sent_pkts": sent, "rcvd_pkts": received, **more})


def test_each_packet_sent_must_arrive_and_events_of_both_ends_add_up() -> None:
    client = rxe(1000, 990, completer_retry_err=5, out_of_seq_request=1)
    server = rxe(1000, 980, completer_retry_err=2, out_of_seq_request=3)
    assert of_flow([client], [server], shared=False) == Packets(
        sent=2000, lost=30, retries=7, gaps=4, corrupted=None
    )


def test_connectx_has_three_ways_of_going_back_and_counts_damaged_packets() -> None:
    port: dict[str, int | None] = {
        "port_xmit_packets": 500, "port_rcv_packets": 500, "packet_seq_err": 1,
        "local_ack_timeout_err": 2, "out_of_sequence": 0,
    }  # fmt: skip
    client, server = (counts(port | {"rx_icrc_encapsulated": n}) for n in (0, 3))
    assert of_flow([client], [server], shared=False) == Packets(
        sent=1000, lost=0, retries=6, gaps=0, corrupted=3
    )


def test_packets_of_several_ports_add_up() -> None:
    ports = [rxe(10, 20), rxe(5, 7)]
    found = of_flow(ports, [rxe(30, 12)], shared=False)
    assert found is not None
    assert (found.sent, found.lost) == (45, 6)
    assert of_flow([rxe(10, 20), counts({})], [rxe(30, 12)], shared=False) is None


@pytest.mark.parametrize(
    ("client", "server", "lost"),
    [
        (rxe(10, 20), rxe(10, 20), 0),  # more arrived than was sent: another's
        (rxe(10, None), rxe(10, 10), None),
        (counts({"sent_pkts": 10}), rxe(10, 10), None),
    ],
)
def test_lost_packets_are_unknown_where_one_end_does_not_tell(
    client: Counts, server: Counts, lost: int | None
) -> None:
    found = of_flow([client], [server], shared=False)
    assert found is not None
    assert found.lost == lost


@pytest.mark.parametrize(
    ("client", "server", "shared"),
    [
        ([rxe(None, 10)], [rxe(10, 10)], False),
        ([], [rxe(10, 10)], False),
        ([rxe(10, 10)], [], False),
        ([rxe(0, 0)], [rxe(0, 0)], False),
        ([rxe(10, 10)], [rxe(10, 10)], True),
    ],
)
def test_nothing_is_known_without_a_count_of_this_flow_alone(
    client: list[Counts], server: list[Counts], shared: bool
) -> None:
    assert of_flow(client, server, shared=shared) is None
