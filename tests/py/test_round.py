"""perch.judge.round: flows that share a host lie within its counters together."""

from __future__ import annotations

import msgspec
import pytest

from perch.judge.counters import counted
from perch.judge.readings import of_tables
from perch.judge.round import Member, judged, shared_hosts, shared_rails
from perch.model.part import Part
from perch.model.raw import Port, Reading, Readings, Tables
from tests.py.path_built import flow, part, plan, proof

WRITES = part(
    client={"device": "rxe0"},
    server={"device": "rxe0"},
    link={"mtu_bytes": 1024, "layer": "roce"},
    params={"size_bytes": 1024, "outstanding": 64},
    claims={"sent": 1024000, "received": 0},
)


def reading(time: float, sent: int, received: int) -> Reading:
    counters = {"sent_pkts": str(sent), "rcvd_pkts": str(received)}
    return of_tables(Tables(time_s=str(time), rdma={"rxe0/1": Port("", counters)}))


def readings(before: Reading, after: Reading) -> Readings:
    return Readings(before, after, "eth1", "eth1")


def member(
    client: str, of_client: Readings | None, of_server: Readings | None, measured: Part = WRITES
) -> Member:
    of_flow = flow(id=f"t/{client}/s/0/1", client=client, server="s", op="write", kind="bandwidth")
    both = counted(of_client), counted(of_server)
    found = proof(of_flow, measured, *both, of_plan=plan(hosts="abcs"), shared=True)
    return Member(of_flow, of_client, of_server, found)


def incast(received: int) -> list[Member]:
    """Two clients write 1,000 packets each to s, which received so many from first to last."""
    client = readings(reading(1, 0, 0), reading(2, 1000, 50))
    return [
        member("a", client, readings(reading(1, 0, 0), reading(2, 50, 1500))),
        member("b", client, readings(reading(1.5, 20, 400), reading(3, 100, received))),
    ]


@pytest.mark.parametrize(
    ("received", "state", "reason"),
    [
        (2000, "proven", None),
        (
            1999,
            "contradicted",
            "s, 2 flows at once: rxe0 received 1,999 packets, but at least 2,000 were claimed",
        ),
        (
            9000,
            "exceeded",
            "s, 2 flows at once: rxe0 received 9,000 packets, of which these flows explain 4,240 "
            "at most",
        ),
    ],
)
def test_flows_that_share_a_host_are_held_against_its_counters_together(
    received: int, state: str, reason: str | None
) -> None:
    members = incast(received)
    assert [one.proof.path.state for one in members] == ["proven", "proven"]
    assert [(path.state, path.reason) for path in judged(members)] == [(state, reason)] * 2


def test_nothing_is_too_much_where_one_flow_does_not_tell_what_it_moved() -> None:
    members = incast(9000)
    silent = msgspec.structs.replace(WRITES, claims=None)
    members.append(member("c", members[0].client, members[0].server, silent))
    assert [path.state for path in judged(members)] == ["proven", "proven", "unknown"]


@pytest.mark.parametrize(
    "left",
    [
        None,
        Readings(before=reading(1, 0, 0)),
        Readings(after=reading(1, 0, 0)),
        readings(of_tables(Tables(time_s="soon")), reading(3, 0, 0)),
    ],
)
def test_without_both_readings_of_each_flow_the_host_tells_nothing(left: Readings | None) -> None:
    members = incast(1999)
    members[0].server = left
    assert [path.state for path in judged(members)] == ["proven", "proven"]


def test_hosts_of_a_round_that_several_flows_use() -> None:
    pairs = [("a", "s"), ("b", "s"), ("c", "d")]
    flows = [flow(client=client, server=server) for client, server in pairs]
    assert shared_hosts(flows) == {"s"}
    assert shared_rails(flows) == {("s", 0)}


def test_rails_of_a_pair_share_hosts_and_no_device() -> None:
    flows = [flow(client="a", server="b", rail=rail) for rail in range(2)]
    assert shared_hosts(flows) == {"a", "b"} and shared_rails(flows) == set()
    both = flow(client="c", server="a", devices=2, kind="transfer")
    assert shared_rails([*flows, both]) == {("a", 0), ("a", 1)}


def test_flows_that_share_no_host_keep_their_word() -> None:
    alone = incast(1999)[:1]
    assert judged(alone) == [alone[0].proof.path]
