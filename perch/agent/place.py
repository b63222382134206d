"""Cores for commands that do not choose their own, by the engine's rules.

docs/definitions.md, "Placement", has the rules; engine/src/host/placement.c follows them, too.
Memory needs no policy: the kernel takes it from the node of the core that touches it first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.devices import first_line


class Wish(NamedTuple):
    """So many threads near a device; "": near any."""

    device: str
    threads: int


class Seat(NamedTuple):
    """The CPUs of a command, one a core; none: it is not pinned, and `unplaced` says why.

    `locks`: descriptors that keep other processes from these cores.
    """

    cpus: list[int]
    node: int | None = None
    unplaced: str = ""
    locks: list[int] = []

    def leave(self) -> None:
        for lock in self.locks:
            os.close(lock)

    def line(self) -> dict[str, Any]:
        if self.unplaced:
            return {"unplaced": self.unplaced}
        node = {} if self.node is None else {"node": self.node}
        return {"cpu": _list_of(self.cpus), **node}


class Places:
    """Takes cores for the commands of one round; other processes may take some meanwhile."""

    def __init__(self, root: Path = Path("/"), allowed: Iterable[int] | None = None) -> None:
        self._classes = root / "sys/class"
        self._system = root / "sys/devices/system"
        may = set(os.sched_getaffinity(0) if allowed is None else allowed)
        isolated = _cpus(first_line(self._system / "cpu/isolated"))
        self._usable = may - isolated or may
        self._node = {
            cpu: int(folder.name[4:])
            for folder in self._system.glob("node/node[0-9]*")
            for cpu in _cpus(first_line(folder / "cpulist"))
        }

    def seats(self, wishes: Sequence[Wish]) -> list[Seat]:
        """All of them are pinned, or none is: two of a round must not differ in that."""
        seats: list[Seat] = []
        taken = {self._core(0)}
        for device, threads in wishes:
            node = self._node_of(device)
            seat = self._seat(node, threads, taken)
            seats.append(seat)
            if seat.unplaced:
                for one in seats:
                    one.leave()
                return [Seat([], unplaced=seat.unplaced)] * len(wishes)
        return seats

    def _seat(self, node: int | None, threads: int, taken: set[int]) -> Seat:
        near = [cpu for cpu in sorted(self._usable) if node in (None, self._node.get(cpu))]
        if not near:
            return Seat([], unplaced="no-core")
        cpus: list[int] = []
        locks: list[int] = []
        for cpu in near:
            core = self._core(cpu)
            if len(cpus) < threads and core not in taken and self._lock(core, locks):
                taken.add(core)
                cpus.append(cpu)
        if len(cpus) < threads:
            return Seat([], unplaced="few-cores", locks=locks)
        nodes = {self._node.get(cpu) for cpu in cpus}
        return Seat(cpus, nodes.pop() if len(nodes) == 1 else None, locks=locks)

    def _core(self, cpu: int) -> int:
        """By its first CPU."""
        siblings = self._system / f"cpu/cpu{cpu}/topology/thread_siblings_list"
        return min(_cpus(first_line(siblings)), default=cpu)

    def _lock(self, core: int, locks: list[int]) -> bool:
        """The engine's own lock: it ends with who holds it."""
        try:
            lock = os.open(self._system / f"cpu/cpu{core}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return True
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locks.append(lock)
            return True
        os.close(lock)
        return False

    def _node_of(self, device: str) -> int | None:
        for kind in ("infiniband", "net", "cxi"):
            text = first_line(self._classes / kind / device / "device/numa_node") if device else ""
            if text.isdecimal():
                return int(text)
        return None


def _cpus(text: str) -> set[int]:
    """Of the kernel's list, such as 0-3,8; of one that is none: none."""
    found: set[int] = set()
    with contextlib.suppress(ValueError):
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


def _list_of(cpus: Sequence[int]) -> str:
    return ",".join(map(str, sorted(cpus)))
