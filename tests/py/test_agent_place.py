"""Cores for commands that do not choose their own: near the device, one each, or none for all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from perch.agent.children import Children
from perch.agent.place import Places, Seat, Wish
from tests.py.agent_fakes import CAME, Script, World, share_of
from tests.py.agent_hosts import with_children
from tests.py.test_agent_walk import MEETS, Walked


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Eight CPUs on four cores, i and i + 4; two nodes of two cores; mlx5_0 on node 0, e1 on 1."""
    system = tmp_path / "sys/devices/system"
    for cpu in range(8):
        siblings = system / f"cpu/cpu{cpu}/topology/thread_siblings_list"
        siblings.parent.mkdir(parents=True)
        siblings.write_text(f"{cpu % 4},{cpu % 4 + 4}\n")
    for node, cpus in enumerate(("0-1,4-5", "2-3,6-7")):
        (system / f"node/node{node}").mkdir(parents=True)
        (system / f"node/node{node}/cpulist").write_text(cpus + "\n")
    for name, near in (("infiniband/mlx5_0", "0"), ("net/e1", "1"), ("net/virtual", "-1")):
        (tmp_path / f"sys/class/{name}/device").mkdir(parents=True)
        (tmp_path / f"sys/class/{name}/device/numa_node").write_text(near + "\n")
    return tmp_path


def lines(seats: list[Seat]) -> list[dict[str, object]]:
    found = [seat.line() for seat in seats]
    for seat in seats:
        seat.leave()
    return found


@pytest.mark.parametrize(
    ("wishes", "found"),
    [
        ([("mlx5_0", 1)], [{"cpu": "1", "node": 0}]),  # the core of CPU 0 is the kernel's
        ([("e1", 2)], [{"cpu": "2,3", "node": 1}]),
        ([("virtual", 3)], [{"cpu": "1,2,3"}]),
        ([("e1", 1), ("e1", 1)], [{"cpu": "2", "node": 1}, {"cpu": "3", "node": 1}]),
        ([("e1", 1), ("mlx5_0", 2)], [{"unplaced": "few-cores"}] * 2),
    ],
)
def test_each_command_has_cores_of_its_own_near_its_device_or_none_has(
    machine: Path, wishes: list[tuple[str, int]], found: list[dict[str, object]]
) -> None:
    places = Places(machine, range(8))
    for _ in range(2):  # all are left again
        assert lines(places.seats([Wish(*one) for one in wishes])) == found


def test_only_what_the_agent_may_use_is_used(machine: Path) -> None:
    wish = [Wish("e1", 1)]
    assert lines(Places(machine, [0, 1, 3]).seats(wish)) == [{"cpu": "3", "node": 1}]
    assert lines(Places(machine, [0, 1]).seats(wish)) == [{"unplaced": "no-core"}]
    (machine / "sys/devices/system/cpu/isolated").write_text("2,6\n")
    assert lines(Places(machine, range(8)).seats(wish)) == [{"cpu": "3", "node": 1}]
    assert lines(Places(machine, [2, 6]).seats(wish)) == [{"cpu": "2", "node": 1}]


def test_a_core_that_another_process_has_is_not_taken(machine: Path) -> None:
    """The engine locks the folder of a core's first CPU, too."""
    held = os.open(machine / "sys/devices/system/cpu/cpu2", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    places = Places(machine, range(8))
    assert lines(places.seats([Wish("e1", 1)])) == [{"cpu": "3", "node": 1}]
    assert lines(places.seats([Wish("e1", 2)])) == [{"unplaced": "few-cores"}]
    os.close(held)
    assert lines(places.seats([Wish("e1", 2)])) == [{"cpu": "2,3", "node": 1}]


def test_a_command_runs_where_it_was_put() -> None:
    cpu = max(os.sched_getaffinity(0))

    async def work(children: Children) -> str:
        process = children.start(["grep", "Cpus_allowed_list", "/proc/self/status"], cpus=[cpu])
        await process.ended
        return process.stdout.text()

    assert with_children(work).split() == ["Cpus_allowed_list:", str(cpu)]


# ---- in a walk -----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["alpha", "beta"])
def test_both_ends_of_a_tool_say_where_they_were(tmp_path: Path, machine: Path, host: str) -> None:
    world = World(MEETS, scripts=[Script(), Script()])
    world.meetings |= {"refused": (100.0, CAME)}
    world.places = Places(machine, range(8))
    walked = Walked(tmp_path, world, share_of(host, server=["cat"], rails=2))
    assert sorted(world.cpus) == [[1], [2]]
    assert {line["id"]: line["placement"] for line in walked.lines} == {
        "t/alpha/beta/0/1": {"cpu": "1", "node": 0},
        "t/alpha/beta/1/1": {"cpu": "2", "node": 1},
    }
    assert lines(world.places.seats([Wish("", 3)])) == [{"cpu": "1,2,3"}]  # left with the round


@pytest.mark.parametrize("host", ["alpha", "beta"])
def test_two_ends_of_one_machine_are_not_pinned(tmp_path: Path, machine: Path, host: str) -> None:
    world = World(MEETS, probe=CAME._replace(same_machine=True), scripts=[Script()])
    world.meetings |= {"refused": (100.0, CAME)}
    world.places = Places(machine, range(8))
    walked = Walked(tmp_path, world, share_of(host, server=["cat"]))
    assert world.cpus == [[]]
    assert walked.lines[0]["placement"] == {"unplaced": "same-machine"}


def test_the_engine_places_itself(tmp_path: Path, machine: Path) -> None:
    world = World(MEETS, scripts=[Script()])
    world.places = Places(machine, range(8))
    walked = Walked(tmp_path, world, share_of("alpha"))
    assert world.cpus == [[]] and "placement" not in walked.lines[0]
