"""A transfer's output against its planned command, over Cassini NICs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge import asked_transfer
from perch.model.plan import Expect, Flow
from perch.model.record import Part

COMMAND = (
    "perch transfer b --backend cxi --op write --size 8 --devices cxi0,cxi1 "
    "--server-devices cxi0,cxi1 --svc-id 1 --server-svc-id 2 --vni 10 --cross-rail 1"
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


def why(**stated: Any) -> str | None:
    owed = [Expect(8, 1, pair, "transfer") for pair in range(2)]
    planned = Flow(id="t/a/b/0/1", test="t", tool="perch", kind="transfer", client="a", server="b",
                   scope="hardware", client_argv=COMMAND.split(), backend="cxi", op="write",
                   expect=[*owed, Expect(8, 1, kind="sum")])  # fmt: skip
    part = msgspec.convert(STATED | stated, Part)
    asked_transfer.as_planned(planned, part, ("a", "b"))
    return None if part.error is None else part.error.message


def test_nics_services_and_vni_are_those_of_the_command() -> None:
    assert why() is None
    # of a simulation, whose scope is never hardware
    assert why(client=STATED["client"] | {"device": "sim_cxi0"}) is None


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"server": {"device": "cxi0"}}, "device cxi1 on the server, the output says cxi0"),
        ({"client": {"device": "cxi0", "svc_id": 5}}, "client.svc_id 1, the output says 5"),
        ({"server": {"device": "cxi1", "vni": 11}}, "server.vni 10, the output says 11"),
        ({"params": STATED["params"] | {"svc_id": None}}, "svc_id 1, the output says nothing"),
        ({"params": STATED["params"] | {"keys": "provider"}},
         "keys client, the output says provider"),
    ],
)  # fmt: skip
def test_what_differs_from_the_command_is_named(stated: dict[str, Any], message: str) -> None:
    assert why(**stated) == f"the plan asks for {message}"
