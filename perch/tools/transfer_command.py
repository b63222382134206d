"""The engine's transfers (perch transfer). What it would refuse, `perch check` says."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from perch.model import units
from perch.model.plan import Expect
from perch.model.record import ROLES, Role
from perch.model.suite import Host, SuiteTest
from perch.tools import perch_command
from perch.tools.command import Command, Cost, Ends, Template, Want, Word, count, duration_s
from perch.tools.perch_command import options
from perch.tools.perch_params import (
    default,
    inline_want,
    lane_wants,
    memory_wants,
    named_by,
    place_wants,
    port_wants,
    warmup_s,
    warmup_wants,
)

BACKENDS = ("verbs", "ofi", "cxi", "tcp")
OPS = ("write", "read")

#: Settings of a device that a command names once for all devices of an end, by backend.
SETTINGS = {"cxi": ("svc_id", "vni")}

#: Backends whose devices have names of their own.
_NAMED = ("verbs", "cxi")

#: A bound of engine/src/job/job.h: JOB_BATCH_MAX.
BATCH_MAX = 32768

#: The engine's defaults, in batches; and work requests outstanding on each queue pair.
ITERATIONS = 100
OUTSTANDING = 512

#: No transfer is cut into more pieces, unless asked for (perch transfer --help).
MAX_CHUNKS = 1024

#: What a transfer in a batch costs of what a lone message waits. MORI-IO's page: 11 us alone, 0.14
#: us in a batch of 32768, an eightieth; software gains less. Posted one by one they wait in part
#: for each other.
IN_A_BATCH, ONE_BY_ONE = 0.05, 0.2

#: Bytes a second that are read to be checked; every byte is read twice.
CHECKED_BYTES_S = 1e9

_batch = re.compile("([0-9]{1,6})(?::([0-9]{1,6}))?")


def batches(test: SuiteTest) -> list[int]:
    """1:32768 -> 1, 2, 4, ..., 32768; the engine's --batch has the same grammar."""
    given = test.get("batch", 1)
    found = _batch.fullmatch(units.shown(given))
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most <= BATCH_MAX:
        form = f"N or MIN:MAX (doubling), each from 1 to {BATCH_MAX}"
        raise ValueError(f'batch "{given}": write {form}')
    return units.doubled(least, most)


def _refusals(test: SuiteTest) -> Iterator[str]:
    """What plans do not know of."""
    if test.backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        yield f"plans know no transfers over backend {test.backend}; they know those over {known}"
    if test.op not in OPS:
        yield f"a transfer is a write or a read, not op {test.op}"
    if test.get("devices") is not None and test.provider == "shm":
        yield "provider shm has no devices"


# ---- devices -------------------------------------------------------------------------------------


def _settings(host: Host, key: str, devices: int) -> list[Any]:
    """What the devices in use have for a setting: one, where all of them share it."""
    found = {device.get(key) for device in host.devices[:devices]}
    return sorted(found, key=lambda value: (value is not None, value))


def _unfit(test: SuiteTest, client: Host, server: Host, devices: int) -> str | None:
    threads, crossed = test.get("threads"), test.get("cross_rail", 0)
    if threads is not None and threads % devices and devices % threads:
        return f"{threads} threads are neither a multiple nor a divisor of {devices} device pairs"
    if 0 < crossed >= devices:
        return f"cross_rail {crossed} needs more than {crossed} devices, and there are {devices}"
    return _settings_unfit(test, client, server, devices)


def _settings_unfit(test: SuiteTest, client: Host, server: Host, devices: int) -> str | None:
    for key in SETTINGS.get(test.backend or "", ()):
        of_server = key if key == "vni" else f"server_{key}"
        for host, given in ((client, key), (server, of_server)):
            found = _settings(host, key, devices)
            if len(found) > 1 and test.get(given) is None:
                named = ", ".join("null" if value is None else str(value) for value in found)
                return f"devices of a host differ in {key}: {named}; a transfer takes one for all"
    return None


# ---- the command ---------------------------------------------------------------------------------


def _device_words(test: SuiteTest, devices: int) -> list[Word]:
    if devices == 1:
        return perch_command.device_words(test)
    if test.get("devices") is None:
        return []
    key = "rail" if test.backend == "verbs" else named_by(test)
    named: list[Word] = [
        ["--devices", f"{{client.devices.{key}}}"],
        ["--server-devices", f"{{server.devices.{key}}}"],
    ]
    return [*named, *perch_command.services(test)] if test.backend == "cxi" else named


def _template(test: SuiteTest, devices: int) -> Template:
    """A session is the default."""
    params = {k: v for k, v in test.params.items() if k not in ("devices", "session")}
    no_session = ["--no-session"] if test.params.get("session") is False else []
    return perch_command.command(
        test, [*options(params), *no_session], _device_words(test, devices)
    )


def _expect(test: SuiteTest, devices: int) -> list[Expect]:
    """Of each size and batch one a pair of devices, and their sum."""
    owed = []
    for size in units.sizes(test.params["size"]):
        for batch in batches(test):
            owed += [Expect(size, batch, pair, "transfer") for pair in range(devices)]
            owed.append(Expect(size, batch, kind="sum"))
    return owed


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    """`shared`: pairs that work at the same time on the same cores."""
    duration = test.get("duration")
    iterations, verifies = test.get("iterations", ITERATIONS), test.get("verify") is True
    part = ONE_BY_ONE if test.get("consecutive") is True else IN_A_BATCH
    lone, total = cost(1), 0.0
    for size in units.sizes(test.params["size"]):
        for batch in batches(test):
            each = (lone + batch * (part * lone + cost(size) - lone)) * shared
            each += 2 * batch * size / CHECKED_BYTES_S if verifies else 0
            measured = each * iterations if duration is None else units.seconds(duration) + each
            total += warmup_s(test, each) + measured
    return total


# ---- what the output must state ------------------------------------------------------------------


def _chunk(test: SuiteTest, size: int) -> int:
    """Bytes of a transfer's pieces: larger than asked for where there would be too many."""
    chunk = count(test, "chunk")
    if chunk is None:
        return size
    most = count(test, "max_chunks", MAX_CHUNKS) or MAX_CHUNKS
    return min(max(chunk, math.ceil(size / most)), size)


def _batch_wants(test: SuiteTest, expect: Expect, pairs: int) -> Iterator[Want]:
    """A duration has no number of batches. One pair has its share of the lanes, the sum all."""
    size, duration = expect.size_bytes or 0, duration_s(test)
    chunk, number = _chunk(test, size), count(test, "iterations", ITERATIONS)
    number = None if duration is not None else number
    lanes = max(count(test, "threads") or pairs, pairs)
    share = lanes if expect.kind == "sum" else lanes / pairs
    yield Want("duration_s", duration)
    yield Want("iterations", number)
    yield from warmup_wants(test)
    yield Want("buffer_bytes", count(test, "buffer"))
    yield Want("stride_bytes", count(test, "stride") or size)
    yield Want("chunk_bytes", chunk)
    yield Want("chunks", math.ceil(size / chunk) if chunk else None)
    yield Want("transfers", (number or 0) * (expect.batch or 0) * share)


def _pair_wants(test: SuiteTest, pairs: int) -> Iterator[Want]:
    yield Want("pairs", pairs)
    yield Want("devices", pairs)
    yield Want("threads", count(test, "threads", pairs))
    yield Want("queue_pairs", count(test, "queue_pairs", 1))
    yield Want("cross_rail", count(test, "cross_rail", 0))
    yield Want("consecutive", test.get("consecutive") is True)
    yield Want("session", test.params.get("session") is not False)
    yield default(test, "outstanding", OUTSTANDING)
    yield Want("clock", test.get("clock", "monotonic"), test.get("clock") is None)


def _backend_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    yield from lane_wants(test, ends)
    if test.backend == "verbs":
        yield from port_wants(ends)
        yield inline_want(test)


def _named(test: SuiteTest, ends: Ends, role: Role, pairs: int) -> list[str] | None:
    """The devices that the command names for an end, by pair; None leaves them to the engine."""
    first = test.backend in _NAMED and pairs == 1
    if test.get("devices") is None and not first:
        return None
    devices = ends.client if role == "client" else ends.server
    names = [device.get("name" if first else named_by(test)) for device in devices[:pairs]]
    return [str(name) for name in names] if names and None not in names else None


def _device_wants(test: SuiteTest, ends: Ends, expect: Expect, pairs: int) -> Iterator[Want]:
    """The devices of one pair; of the sum all of them, sorted."""
    crossed = count(test, "cross_rail", 0) or 0
    for role in ROLES:
        names = _named(test, ends, role, pairs)
        if names is None:
            continue
        if expect.kind == "sum":
            yield Want(f"{role}.device", ",".join(sorted(names)))
            continue
        at = (expect.pair or 0) + (crossed if role == "server" else 0)
        yield Want(f"{role}.device", names[at % len(names)])


def _ends_of(test: SuiteTest, ends: Ends, pair: int) -> Ends:
    """The devices of one pair; the sum states the settings of the first."""
    crossed = count(test, "cross_rail", 0) or 0
    places = (pair, (pair + crossed) % ends.pairs)
    client, server = (
        devices[at : at + 1] for devices, at in zip((ends.client, ends.server), places, strict=True)
    )
    return ends._replace(client=client, server=server, pairs=1)


def _wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    pairs = ends.pairs
    for name in ("backend", "provider", "op"):
        yield Want(name, getattr(test, name))
    yield Want("completion", test.get("completion", "busy"))
    yield Want("verify", test.get("verify") is True)
    yield Want("bidirectional", False, True)
    yield from _batch_wants(test, expect, pairs)
    yield from _pair_wants(test, pairs)
    yield from memory_wants(test)
    yield from place_wants(test)
    yield from _backend_wants(test, _ends_of(test, ends, expect.pair or 0))
    yield Want("definition", "batch_completion")
    yield from _device_wants(test, ends, expect, pairs)


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    expect=_expect,
    wants=_wants,
    lasts=lambda test: None,  # each pair of devices has a window of its own
    carrier=perch_command.carrier,
    lacks=perch_command.lacks,
    unfit=_unfit,
    is_engine=True,
)
