"""The time, device and port that the plan asks of an output, compared with what it says."""

from __future__ import annotations

from typing import Any

import pytest

from perch.tools.command import Ends
from tests.py.asking import SEND, flow, judged, why


@pytest.mark.parametrize(
    ("tool", "margin", "elapsed", "message"),
    [
        ("perftest", None, 1.9, None),
        ("perftest", None, 1.7, "it lasted 1.7 s of 2 s"),
        ("perftest", "0s", 3.5, "it lasted 3.5 s of 4 s"),
        ("iperf3", None, 3.5, "it lasted 3.5 s of 4 s"),
    ],
)
def test_a_duration_is_kept_perftests_without_its_margins(
    tool: str, margin: str | None, elapsed: float, message: str | None
) -> None:
    params = {
        "duration_s": 4, "bidirectional": False, "completion": "busy", "queue_pairs": 1,
        "srq": False, "rdma_cm": False,
    }  # fmt: skip
    part = {"kind": "bandwidth", "op": "write", "params": params, "elapsed_s": elapsed}
    planned = flow(tool, {"duration": "4s", "margin": margin}, kind="bandwidth", op="write")
    assert why(planned, part) == message


@pytest.mark.parametrize(
    ("stopped", "passed", "code", "message"),
    [
        (True, 32.4912, 0, "it was stopped after 32.5 s of 120 s"),
        (False, 30.4, 6, "it lasted 30.385008 s of 120 s"),
    ],
)
def test_a_soak_that_was_stopped_did_as_it_was_told(
    stopped: bool, passed: float, code: int, message: str
) -> None:
    soak = {
        "planned_s": 120, "passed_s": passed, "interval_s": 1, "intervals": 30, "connections": 1,
        "gaps": 0, "gap_s": 0, "stalls": 0, "stall_s": 0, "stopped": stopped, "resumed": False,
        "dropped_lines": 0,
    }  # fmt: skip
    params = {"duration_s": 120, "verify": False, "bidirectional": False, "completion": "busy"}
    planned = flow("perch", {"duration": "{round.seconds}s"}, backend="tcp", estimate_s=120)
    said = {**SEND, "params": params, "elapsed_s": 30.385008, "soak": soak}
    part = judged(planned, said)
    assert part.error is not None
    assert (part.status, part.error.code, part.error.message) == ("error", code, message)
    assert part.error.traffic


def test_a_round_of_any_length_can_be_compared() -> None:
    planned = flow("perch", {"duration": "{round.seconds}s"}, backend="tcp", estimate_s=1e-7)
    params = {"duration_s": 1e-7, "verify": False, "bidirectional": False, "completion": "busy"}
    assert why(planned, {**SEND, "params": params}) is None


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe1"}, "params": {"ib_port": 1}},
         None),
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe0"}},
         "the plan asks for device rxe1 on the server, the output says rxe0"),
        ({"server": {"device": "rxe1"}},
         "the plan asks for device rxe0 on the client, the output says nothing"),
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe1"}, "params": {"ib_port": 2}},
         "the plan asks for port 1 on the client, the output says 2"),
        ({"client": {"device": "sim_rxe0"}, "server": {"device": "rxe1"}}, None),
    ],
)  # fmt: skip
def test_an_output_of_another_device_or_port_is_an_error(
    part: dict[str, Any], message: str | None
) -> None:
    ends = Ends([{"name": "rxe0", "ib_port": "1"}], [{"name": "rxe1"}])
    plain = {"completion": "busy", "verify": False, "bidirectional": False}
    whole = {**SEND, "backend": "verbs", "connection": "RC"} | part
    queue_pair = {
        "queue_pairs": 1, "batch": 1, "cq_moderation": 1, "sl": 0, "traffic_class": 0, "srq": False,
        "rdma_cm": False, "relaxed_ordering": False,
    }  # fmt: skip
    whole["params"] = plain | queue_pair | part.get("params", {})
    assert why(flow("perch", backend="verbs"), whole, ends) == message
