"""switch/moved: what the ports of a host counted, against what its flows moved."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.checks.switch_bytes import moved
from perch.judge import seen
from perch.judge.seen import Seen
from perch.judge.switches import SwitchFacts
from perch.model.verdict import Check
from tests.py.checks_built import record, run_of

GB = 10**9
#: When the switch was read after the run.
READ_S = 1000.0


def port(host: str, gigabytes: float | None, name: str = "e1") -> dict[str, Any]:
    """It moved so much in the 100 s between its readings, half of it each way."""
    rate = None if gigabytes is None else gigabytes * 8000 / 100 / 2
    return {"host": host, "port": name, "rx_mbit_s": rate, "tx_mbit_s": rate}


def checked(
    *ports: dict[str, Any],
    devices: int = 1,
    flow: str = "t/a/b/0/1",
    ended: float = READ_S - 100,
    scope: str = "hardware",
    of_switch: str = "hardware",
    faults: tuple[str, ...] = (),
    **path: Any,
) -> Check | None:
    """The check of a flow that moved 3 GB."""
    path = {"state": "proven", "claimed_bytes": 3 * GB, "counted": "mlx5_0 bytes"} | path
    row = {"name": "leaf1", "scope": of_switch, "faults": list(faults), "seconds": 100.0}
    facts = SwitchFacts([row | {"rows": list(ports)}], [], {"leaf1": READ_S})
    run = run_of(
        [record(flow, scope=scope, path=path), record(flow, scope=scope, path=path)],
        switches=facts,
        seen=seen.frame([Seen(flow, ended - 9, ended, ended - 9, ended, None)]),
    )
    for name, host in run.plan.hosts.items():
        own = [{"name": f"mlx5_{n}", "netdev": f"eth{n}"} for n in range(devices)]
        run.plan.hosts[name] = msgspec.structs.replace(host, devices=own)
    return next(moved(run), None)


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        (3.1, 3.1, "pass"),
        (3, 900, "pass"),
        (0, 3, "inconclusive"),
        (3, 0.003, "inconclusive"),  # kilobytes in the place of bytes
    ],
)
def test_ports_count_at_least_what_flows_moved(a: float, b: float, status: str) -> None:
    check = checked(port("a", a), port("b", b))
    assert check is not None and check.status == status
    if status == "inconclusive":
        assert "leaf1 e1: " in str(check.measured) and "moved 3,000,000,000" in str(check.measured)


def test_a_host_may_move_its_bytes_through_several_ports() -> None:
    check = checked(port("a", 1, "e1"), port("a", 2.1, "e2"), port("b", 4), devices=1)
    assert check is not None and check.status == "pass"


@pytest.mark.parametrize(
    "more",
    [
        {"devices": 2},  # the other one may have another switch
        {"devices": 0},
        {"counted": "eth9 bytes"},  # such as TCP on the way of management
        {"counted": None},
        {"state": "unknown"},
        {"ended": READ_S - 59},  # a switch may show older counters
        {"scope": "software"},
        {"of_switch": "simulated"},
        {"faults": ("after",)},
    ],
    ids=str,
)
def test_nothing_is_said_of_flows_that_may_have_gone_another_way(more: dict[str, Any]) -> None:
    assert checked(port("a", 0), port("b", 0), **more) is None


def test_a_flow_of_a_host_with_itself_passes_no_switch() -> None:
    assert checked(port("a", 0), flow="t/a/a/0/1") is None


def test_a_port_that_does_not_tell_its_bytes_is_left_out() -> None:
    check = checked(port("a", None), port("b", 3.1))
    assert check is not None and (check.status, check.measured) == ("pass", 1)
