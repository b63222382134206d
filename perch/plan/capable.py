"""What a test asks of an RDMA device, and whether the device said that it can do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from perch.model.devices import Capabilities
from perch.model.suite import Host, SuiteTest
from perch.model.text import names
from perch.tools.command import MAKERS, count, gpu_kinds, in_gpu_memory

#: Devices that a reason names.
NAMED = 3

#: What a test needs, in words, and whether a device has it.
Need = tuple[str, Callable[[Capabilities], bool]]

_CONNECTIONS: dict[str, Need] = {
    "rc": ("RC queue pairs", lambda can: can.rc),
    "uc": ("UC queue pairs", lambda can: can.uc),
    "ud": ("UD queue pairs", lambda can: can.ud),
}
_ATOMICS = ("fetch-add", "compare-swap")


def _needs(test: SuiteTest) -> Iterator[Need]:
    connection = str(test.get("connection", "rc")).lower()
    if connection in _CONNECTIONS:
        yield _CONNECTIONS[connection]
    if test.op in _ATOMICS:
        yield "atomics", lambda can: can.atomics
    if test.get("srq"):
        yield "shared receive queues", lambda can: can.srq
    inline = count(test, "inline")
    if inline:
        yield f"inline sends of {inline} B", lambda can: can.inline_bytes >= inline
    if in_gpu_memory(test.get):
        yield "dmabufs of GPU memory", lambda can: can.dmabuf or can.peer_memory


def no_gpu(test: SuiteTest, host: Host) -> str | None:
    """What a host lacks that was asked: a GPU for the test's memory, --bounce or not."""
    has = host.gpus
    lacks = [kind for kind in gpu_kinds(test.get) if has is not None and kind not in has]
    return f"has no {MAKERS[lacks[0]]} GPU with a loaded driver" if lacks else None


def without(test: SuiteTest, host: Host, devices: Sequence[dict[str, Any]]) -> dict[str, str]:
    """What each of these devices of a host cannot do, by its name, for those that were asked."""
    needs = list(_needs(test))
    found: dict[str, str] = {}
    for name in (str(one["name"]) for one in devices if one["name"] in host.can):
        lacks = next((what for what, has in needs if not has(host.can[name])), None)
        if lacks is not None:
            found[name] = lacks
    return found


def lacking(test: SuiteTest, host: Host, devices: Sequence[dict[str, Any]]) -> str | None:
    """What devices of a host cannot do, of the first need; None where all can do it."""
    found = without(test, host, devices)
    first = next(iter(found.values()), None)
    if first is None:
        return None
    alike = [name for name, what in found.items() if what == first]
    return f"has {names(alike, NAMED)} without {first}"
