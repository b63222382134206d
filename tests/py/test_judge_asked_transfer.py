"""A transfer's output against what its test asks for, over Cassini NICs and over verbs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge.asked import asked
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.model.suite import SuiteTest
from perch.tools.command import Ends
from perch.tools.transfer_command import COMMAND

PARAMS = {"size": 8, "devices": 2, "cross_rail": 1}
ENDS = Ends(
    [{"name": "cxi0", "svc_id": 1, "vni": 10}, {"name": "cxi1", "svc_id": 1, "vni": 10}],
    [{"name": "cxi0", "svc_id": 2, "vni": 10}, {"name": "cxi1", "svc_id": 2, "vni": 10}],
    pairs=2,
)

#: Of the first pair: its device here works with the other end's second one.
STATED: dict[str, Any] = {
    "backend": "cxi", "op": "write", "kind": "transfer", "definition": "batch_completion",
    "client": {"device": "cxi0", "svc_id": 1, "vni": 10},
    "server": {"device": "cxi1", "svc_id": 2, "vni": 10},
    "params": {
        "size_bytes": 8, "batch": 1, "completion": "busy", "verify": False,
        "bidirectional": False, "iterations": 100, "warmup": 10, "queue_pairs": 1, "threads": 2,
        "devices": 2, "consecutive": False, "session": True, "cross_rail": 1, "chunks": 1,
        "tx_memory": "host", "rx_memory": "host", "svc_id": 1, "server_svc_id": 2, "vni": 10,
        "rdzv": False, "keys": "client", "fabric_class": "default",
    },
    "transfer": {"pair": 0, "pairs": 2, "asked": 100},
}  # fmt: skip


def why(at: int = 0, more: dict[str, Any] | None = None, **stated: Any) -> str | None:
    """`at`: the place of the record; 2 is the sum's. `more`: params of the test."""
    owed = [Expect(8, 1, pair, "transfer") for pair in range(2)]
    planned = Flow(id="t/a/b/0/1", test="t", tool="perch", kind="transfer", client="a", server="b",
                   scope="hardware", params=PARAMS | (more or {}), backend="cxi", op="write",
                   devices=2, expect=[*owed, Expect(8, 1, kind="sum")])  # fmt: skip
    part = msgspec.convert(STATED | stated, Part)
    asked(planned, ENDS).judge(at, part)
    return None if part.error is None else part.error.message


def test_nics_services_and_vni_are_those_of_the_plan() -> None:
    assert why() is None
    # of a simulation, whose scope is never hardware
    assert why(client=STATED["client"] | {"device": "sim_cxi0"}) is None


def test_the_other_pair_and_the_sum_have_devices_and_transfers_of_their_own() -> None:
    second = {"client": {"device": "cxi1"}, "server": {"device": "cxi0"}}
    assert why(1, **second, transfer={"pair": 1, "pairs": 2, "asked": 100}) is None
    both = {"client": {"device": "cxi1,cxi0"}, "server": {"device": "cxi0,cxi1"}}
    assert why(2, **both, kind="sum", transfer={"pairs": 2, "asked": 200}) is None
    assert why(2, **both, kind="sum", transfer={"pairs": 2, "asked": 100}) == (
        "the plan asks for transfers 200, the output says 100"
    )


@pytest.mark.parametrize(
    ("place", "gid", "ports"), [(0, 3, (1, 4)), (1, 5, (2, 3)), (2, 3, (1, 4))]
)
def test_each_pair_has_the_ports_and_the_gid_of_its_devices(
    place: int, gid: int, ports: tuple[int, int]
) -> None:
    """The sum states those of the first pair."""
    ends = Ends(
        [
            {"name": "m0", "ib_port": 1, "gid_index": 3},
            {"name": "m1", "ib_port": 2, "gid_index": 5},
        ],
        [{"name": "n0", "ib_port": 3}, {"name": "n1", "ib_port": 4}],
        pairs=2,
    )
    test = SuiteTest("t", "T", "perch", "transfer", "verbs", op="write", params=PARAMS)
    expect = [Expect(8, 1, 0), Expect(8, 1, 1), Expect(8, 1, kind="sum")][place]
    wants = {want.name: want.value for want in COMMAND.wants(test, ends, expect)}
    assert wants["gid_index"] == gid
    assert (wants["client.port"], wants["server.port"]) == ports


def test_a_duration_has_no_number_of_transfers() -> None:
    timed = {"iterations": None, "duration_s": 2}
    params = STATED["params"] | timed
    transfer = {"pair": 0, "pairs": 2}
    assert why(0, {"duration": "2s"}, params=None) is not None
    assert why(0, {"duration": "2s"}, params=params, transfer=transfer) is None


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"server": {"device": "cxi0"}}, "device cxi1 on the server, the output says cxi0"),
        ({"client": {"device": "cxi0", "svc_id": 5}}, "svc_id 1 on the client, the output says 5"),
        ({"server": {"device": "cxi1", "vni": 11}}, "vni 10 on the server, the output says 11"),
        ({"params": STATED["params"] | {"svc_id": None}}, "svc_id 1, the output says nothing"),
        ({"params": STATED["params"] | {"keys": "provider"}},
         "keys client, the output says provider"),
        ({"params": STATED["params"] | {"stride_bytes": 64}},
         "stride_bytes 8, the output says 64"),
        ({"params": STATED["params"] | {"chunk_bytes": 4}}, "chunk_bytes 8, the output says 4"),
        ({"transfer": {"pair": 0, "pairs": 1, "asked": 100}}, "pairs 2, the output says 1"),
        ({"definition": "completion"},
         "definition batch_completion, the output says completion"),
    ],
)  # fmt: skip
def test_what_differs_from_the_plan_is_named(stated: dict[str, Any], message: str) -> None:
    assert why(**stated) == f"the plan asks for {message}"
