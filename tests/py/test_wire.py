"""perch.judge.wire: what a flow says that it moved, and in how many packets."""

from __future__ import annotations

from typing import Any

import pytest

from perch.judge.wire import of_flow
from perch.model.record import Number
from tests.py.path_built import flow, part


def test_sizes_add_up_and_one_that_does_not_tell_spoils_the_claim() -> None:
    def size(n: int, moved: int, **more: Any) -> dict[str, Any]:
        return {
            "params": {"size_bytes": n, "outstanding": 16},
            "link": {"mtu_bytes": 1024},
            "claims": {"sent": moved, "received": 0},
        } | more

    bandwidth = flow(kind="bandwidth")
    both = [part(**size(8, 80)), part(**size(4000, 40000))]
    claim = of_flow(bandwidth, both, rdma=True)
    assert claim is not None
    assert (claim.sent.bytes, claim.sent.least_packets) == (40080, 50)
    assert (claim.sizes, claim.window) == (2, 64)
    stream = of_flow(bandwidth, both, rdma=False)
    assert stream is not None
    assert stream.sent.least_packets == 0
    assert of_flow(bandwidth, [*both, part(**size(8, 80, claims=None))], rdma=True) is None
    infinite = {"sent": float("inf"), "received": 0}
    assert of_flow(bandwidth, [part(**size(8, 80, claims=infinite))], rdma=True) is None


@pytest.mark.parametrize(("chunks", "packets", "messages"), [(None, 30, 10), (4, 60, 40)])
def test_pieces_of_a_transfer_have_packets_of_their_own(
    chunks: int | None, packets: int, messages: int
) -> None:
    params = {"size_bytes": 10000, "outstanding": 4, "queue_pairs": 2, "chunks": chunks}
    whole = part(params=params, link={"mtu_bytes": 4096}, claims={"sent": 100000, "received": 0})
    claim = of_flow(flow(kind="transfer"), [whole], rdma=True)
    assert claim is not None
    assert (claim.sent.least_packets, claim.sent.packets) == (30, packets)
    assert (claim.messages, claim.window) == (messages, 24)


def test_losses_of_the_warm_up_are_no_claim_on_the_receiver() -> None:
    def lost(loss: dict[str, int] | None, **claims: int) -> Number:
        one = part(params={"size_bytes": 8}, loss=loss, claims={"sent": 80, "received": 0} | claims)
        claim = of_flow(flow(), [one], rdma=True)
        assert claim is not None
        return claim.lost

    one_of_ten = {"sent_messages": 10, "lost_messages": 1}
    assert lost(one_of_ten) == 8
    assert lost(one_of_ten, lost=24) == 24
    assert lost(None) == 0


@pytest.mark.parametrize(
    ("link", "rdma", "size", "least", "most"),
    [
        ({"layer": "slingshot", "mtu_bytes": 9000}, True, 4096, 2, 2),
        ({"mtu_bytes": 4096}, True, 4097, 2, 2),
        ({}, True, 512, 2, 2),  # InfiniBand's smallest MTU, where no word is of it
        ({}, False, 1428, 1, 2),
        ({}, False, 1429, 1, 3),
        ({"mtu_bytes": 9000}, False, 8928, 1, 2),
    ],
)
def test_packets_of_a_message_by_mtu(
    link: dict[str, Any], rdma: bool, size: int, least: int, most: int
) -> None:
    one = part(link=link, params={"size_bytes": size}, claims={"sent": size, "received": 0})
    claim = of_flow(flow(), [one], rdma=rdma)
    assert claim is not None
    assert (claim.sent.least_packets, claim.sent.packets) == (least, most)
