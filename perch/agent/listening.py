"""Whether an external server listens: the kernel's tables say so, the tools say nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from pathlib import Path

from perch.agent.children import Children, Process

#: Seconds between two looks: there is no event to wait for.
LOOK_EVERY = 0.05


def _inodes(port: int) -> set[str]:
    """Of the listening TCP sockets on the port, as links in /proc/N/fd name them."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    found.add(f"socket:[{words[9]}]")
    return found


def members() -> dict[int, list[int]]:
    """The processes of each group."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208, no objects of names
        with contextlib.suppress(OSError, ValueError):
            found.setdefault(os.getpgid(int(name)), []).append(int(name))
    return found


def _has_socket(pid: int, inodes: set[str]) -> bool:
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()) in inodes:
                    return True
    return False


async def _listens(children: Children, group: int, port: int) -> bool:
    """The process behind the port is of this group: a stranger must not be measured."""
    inodes = _inodes(port)
    if inodes:
        return any(_has_socket(pid, inodes) for pid in members().get(group, []))
    if not Path("/sys/class/infiniband").is_dir():
        return False
    # a server of the RDMA connection manager (perftest -R) has no socket
    text = await children.answer(["rdma", "-j", "resource", "show", "cm_id"])
    own = members().get(group, [])
    with contextlib.suppress(ValueError):
        return any(
            one.get("state") == "LISTEN"
            and one.get("pid") in own
            and str(one.get("src-addr", "")).endswith(f":{port}")
            for one in json.loads(text)
        )
    return False


async def until_listening(children: Children, process: Process, port: int, limit_s: float) -> bool:
    """False: it has ended, or does not listen within the limit."""
    loop = asyncio.get_running_loop()
    until = loop.time() + limit_s
    while not process.ended.done() and loop.time() <= until:
        if await _listens(children, process.pid, port):
            return True
        await asyncio.wait({process.ended}, timeout=LOOK_EVERY)
    return False
