"""perch.judge.trail: readings of a host's counters, one after another."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.checks import RunView
from perch.judge.readings import around
from perch.judge.trail import IDLE, End, Step, Trail, of_idle
from perch.model.raw import Block, Layout, Reading, Readings, TablesAround
from perch.model.verdict import Check
from tests.py.checks_built import found, record, run_of

PORT = "mlx5_0/1"


def reading(at: float, **counters: int) -> dict[str, Any]:
    texts = {name: str(value) for name, value in ({"tx_packets": 9} | counters).items()}
    return {"time_s": f"{at:.6f}", "rdma": {PORT: {"netdev": "", "counters": texts}}}


def read(before: dict[str, Any], after: dict[str, Any]) -> Readings:
    readings = around(msgspec.convert({"before": before, "after": after}, TablesAround))
    assert readings is not None
    return readings


def flow(
    name: str, begin: float, end: float, before: int = 0, after: int = 0, host: str = "a"
) -> End:
    """A flow over which packet_seq_err went from one value to another."""
    readings = read(reading(begin, packet_seq_err=before), reading(end, packet_seq_err=after))
    return End(host, name, readings)


def followed(*rounds: list[End]) -> Trail:
    trail = Trail()
    for ends in rounds:
        trail.read(ends)
    return trail


def test_what_moved_within_a_flow_is_the_flows() -> None:
    trail = followed([flow("f", 1, 2, 0, 7)], [flow("g", 3, 4, 7, 8)])
    assert (trail.intervals, trail.steps) == (1, [])


def test_what_moved_between_two_flows_is_a_step() -> None:
    trail = followed([flow("f", 1, 2)], [flow("g", 3.5, 4, 5, 5)])
    assert trail.steps == [
        Step("a", PORT, "f", "g", 1.5, "retransmissions", "packet_seq_err", 5, None, "")
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_flows_of_one_round_that_share_a_host_are_one_time(order: tuple[int, int]) -> None:
    """Whatever moved from the first reading to the last one was counted within a flow."""
    flows = flow("f", 1, 5, 0, 8), flow("g", 2, 6, 3, 9)
    together = [flows[place] for place in order]
    trail = followed([flow("e", 0, 0.5)], together, [flow("h", 7, 8, 10, 10)])
    assert [(step.earlier, step.later, step.moved) for step in trail.steps] == [("g", "h", 1)]


def test_a_device_that_some_flows_do_not_read_goes_on() -> None:
    other = End("a", "g", read({"time_s": "3.0"}, {"time_s": "4.0"}))
    trail = followed([flow("f", 1, 2)], [other], [flow("h", 5, 6, 2, 2)])
    assert [(step.earlier, step.later, step.moved) for step in trail.steps] == [("f", "h", 2)]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [({}, {"nacks": 0}, []), ({}, {"nacks": 2}, ["is missing before"]),
     ({"nacks": 2}, {}, ["is missing later"]), ({"nacks": 2}, {"nacks": 0}, ["went back"]),
     ({"nacks": 1}, {"link_downed": 3}, ["is missing before", "is missing later"])],
)  # fmt: skip
def test_a_counter_goes_on_or_does_not_tell(
    before: dict[str, int], after: dict[str, int], why: list[str]
) -> None:
    earlier = End("a", "f", read(reading(1, **before), reading(2, **before)))
    later = End("a", "g", read(reading(3, **after), reading(4, **after)))
    said = [step.why.partition(",")[0] for step in followed([earlier], [later]).steps]
    assert said == why


def test_pieces_join_as_if_they_were_one() -> None:
    rounds = [[flow(f"f{n}", 2 * n, 2 * n + 1, n, n)] for n in range(6)]
    whole, joined = followed(*rounds), Trail()
    for piece in (rounds[:1], rounds[1:4], rounds[4:]):
        joined.follow(followed(*piece))
    assert (joined.steps, joined.intervals) == (whole.steps, whole.intervals)
    assert len(whole.steps) == 5


def read_as(number: int, at: float, *devices: str) -> Reading:
    """A reading of one walk."""
    blocks = {name: Block(name, n, ("tx_packets",)) for n, name in enumerate(devices)}
    layout = Layout(Block("", 0, ()), blocks, {}, {})
    return Reading(layout, str(at), at, " ".join("9" for _ in devices), number)


def walked(*read_devices: tuple[str, ...], numbers: list[int] | None = None) -> list[list[End]]:
    """Flows that follow each other: one reading of these devices is before it, one after it."""
    rounds = []
    for n, devices in enumerate(read_devices):
        first = numbers[n] if numbers else 2 * n + 1
        around_it = read_as(first, 2 * n, *devices), read_as(first + 1, 2 * n + 1, *devices)
        rounds.append([End("a", f"f{n}", Readings(*around_it, "", ""))])
    return rounds


BOTH_DEVICES = ("eth1", "veth7")


@pytest.mark.parametrize(
    ("later", "gone"),
    [
        ([("eth1",), ("eth1",)], [("veth7", "f0", "f1")]),
        ([("veth7",), BOTH_DEVICES], [("eth1", "f0", "f1")]),
        ([BOTH_DEVICES, ()], [("eth1", "f1", "f2"), ("veth7", "f1", "f2")]),
        ([(), ()], [("eth1", "f0", "f1"), ("veth7", "f0", "f1")]),
    ],
)
def test_a_device_that_the_next_reading_lacks_is_a_step_of_any_pieces(
    later: list[tuple[str, ...]], gone: list[tuple[str, str, str]]
) -> None:
    rounds = walked(BOTH_DEVICES, *later)
    joined = Trail()
    for one in rounds:
        joined.follow(followed(one))
    for trail in (followed(*rounds), joined):
        steps = sorted((step.device, step.earlier, step.later) for step in trail.steps)
        assert steps == gone
        assert {step.why for step in trail.steps} == {"are missing later"}


def test_an_agent_that_repeats_flows_may_read_fewer_devices() -> None:
    assert followed(*walked(BOTH_DEVICES, ("eth1",), numbers=[3, 3])).steps == []


def test_idle_time_comes_before_the_first_flow() -> None:
    idle = read(reading(1, packet_seq_err=0), reading(2, packet_seq_err=3))
    trail = of_idle({"a": idle, "b": None})
    trail.follow(followed([flow("f", 3, 4, 5, 5)]))
    assert [(step.earlier, step.later, step.moved) for step in trail.steps] == [
        (IDLE, IDLE, 3), (IDLE, "f", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "why"),
    [(2, "were read at the same time"), (0.5, "were read before"), (1.5, "")],
)
def test_a_reading_is_later_than_the_one_before_it(begin: float, why: str) -> None:
    """The host's clock may have been set by a second meanwhile."""
    trail = followed([flow("f", 1, 2)], [flow("g", begin, 3)])
    assert [step.why for step in trail.steps] == ([why] if why else [])


def clocked(number: int, at: float, passed: float) -> Reading:
    one = read_as(number, at, "eth1")
    one.clock_ns = int(passed * 1e9)
    return one


@pytest.mark.parametrize(
    ("number", "passed", "why"),
    [
        (3, 110, ""),
        (3, 111, ""),
        (3, 111.1, "were read 11.1 s later by the monotonic clock"),
        (3, 108.9, "were read 8.9 s later by the monotonic clock"),
        (3, 100, "were read before by the monotonic clock"),
        (1, 7, ""),  # of an agent that repeats flows after a boot
    ],
)
def test_both_clocks_say_how_much_later_a_reading_is(number: int, passed: float, why: str) -> None:
    """The wall clock may be set by a second in the ten seconds between two flows."""
    rounds = [
        End("a", "f", Readings(clocked(1, 9, 99), clocked(2, 10, 100), "", "")),
        End("a", "g", Readings(clocked(number, 20, passed), clocked(number + 1, 21, 200), "", "")),
    ]
    assert [step.why for step in followed(*([one] for one in rounds)).steps] == [why][: bool(why)]


# ---- the check -----------------------------------------------------------------------------------


def checked(*hardware: bool, packets: int | None = None, moved: int = 2) -> dict[str, Check]:
    """Of a port that carried such flows, and sent so many packets between two of them."""
    trail = Trail()
    for one in hardware:
        trail.carried("a", [PORT], hardware=one)
    trail.intervals = 3
    trail.steps = [
        Step("a", PORT, "f", "g", 1.5, "retransmissions", "packet_seq_err", moved, packets, "")
    ]
    run: RunView = run_of([record("t/a/b/0/1")], trail=trail)
    return found(run, "between")


def test_a_port_that_carried_hardware_and_tcp_is_hardware() -> None:
    assert checked(True, False)["between/retransmissions"].status == "fail"
    assert checked(False)["between/retransmissions"].status == "advisory"


def test_a_device_that_carried_no_flow_is_not_judged() -> None:
    checks = checked()
    assert {name: check.status for name, check in checks.items()} == {
        "between": "pass", "between/readings": "pass",
    }  # fmt: skip


@pytest.mark.parametrize(("moved", "expected"), [(2, "pass"), (3, "fail")])
def test_what_was_sent_again_is_compared_with_the_packets_meanwhile(
    moved: int, expected: str
) -> None:
    checks = checked(True, packets=2_000_000, moved=moved)
    name = "between" if expected == "pass" else "between/retransmissions"
    assert checks[name].status == expected
