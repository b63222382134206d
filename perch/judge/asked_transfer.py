"""What a transfer's planned command asks for, compared with what the output says was done."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from perch.judge.argv import option_value, planned_devices
from perch.judge.asked import Requests, other_words, real_name, spoken, without
from perch.judge.commands import Asked, amount_of, has, memory, of_cassini, of_verbs, seconds
from perch.model.plan import Flow
from perch.model.record import ROLES, Error, Number, Params, Part, Role, Transfer

#: The engine's defaults (perch transfer --help).
ITERATIONS = 100
WARMUP = 10
MOST_CHUNKS = 1024

#: What queue pairs have beside a transfer's own batch and memory; the last two may go unstated.
_VERBS = {"mtu_bytes", "gid_index", "retry", "rnr_retry", "timeout_exponent"}
_OPTIONAL_VERBS = {"sl", "traffic_class"}


class _Command(NamedTuple):
    """What a command asks for of parts of one size.

    `batches` and `lanes` are None by duration and unless named.
    """

    requests: Requests
    batches: int | None
    threads: int | None
    stride: int | None
    chunk: Number
    cross_rail: int


def _chunk(argv: Sequence[str], size: int) -> int:
    """Bytes of a transfer's pieces: larger than asked for where there would be too many."""
    chunk = amount_of(argv, "--chunk")
    if chunk is None:
        return size
    most = amount_of(argv, "--max-chunks") or MOST_CHUNKS
    return min(max(chunk, math.ceil(size / most)), size)


def _batches(argv: Sequence[str]) -> int | None:
    """A duration has no number of batches."""
    given = amount_of(argv, "--iterations")
    return ITERATIONS if given is None and not has(argv, "--duration") else given


def _asked(argv: Sequence[str], size: int, pairs: int) -> Iterator[Asked]:
    yield Asked("completion", option_value(argv, "--completion") or "busy")
    yield Asked("verify", has(argv, "--verify"))
    yield Asked("bidirectional", False, True)
    yield Asked("duration_s", seconds(option_value(argv, "--duration")))
    yield Asked("iterations", _batches(argv))
    yield Asked("warmup", amount_of(argv, "--warmup", default=str(WARMUP)))
    yield Asked("queue_pairs", amount_of(argv, "--queue-pairs", default="1"))
    yield Asked("threads", amount_of(argv, "--threads", default=str(pairs)))
    yield Asked("devices", pairs)
    yield Asked("consecutive", has(argv, "--consecutive"))
    yield Asked("session", not has(argv, "--no-session"))
    yield Asked("cross_rail", amount_of(argv, "--cross-rail", default="0"))
    yield Asked("outstanding", amount_of(argv, "--outstanding"))
    yield Asked("buffer_bytes", amount_of(argv, "--buffer"))
    yield Asked("chunks", math.ceil(size / _chunk(argv, size)))
    for way in ("tx", "rx"):
        where = memory(argv, way)
        yield Asked(f"{way}_memory", where or "host", where is None)
    backend = option_value(argv, "--backend")
    if backend == "verbs":
        yield from (one for one in of_verbs(argv) if one.name in _VERBS)
        yield from (
            one._replace(optional=True) for one in of_verbs(argv) if one.name in _OPTIONAL_VERBS
        )
    if has(argv, "--relaxed-ordering"):
        yield Asked("relaxed_ordering", True)
    if backend in ("ofi", "cxi"):
        yield Asked("fabric_class", option_value(argv, "--traffic-class"))
    if backend == "cxi":
        yield from of_cassini(argv)


@lru_cache(maxsize=4096)
def _command(argv: tuple[str, ...], size: int, pairs: int) -> _Command:
    return _Command(
        Requests(_asked(argv, size, pairs)),
        _batches(argv),
        amount_of(argv, "--threads"),
        amount_of(argv, "--stride"),
        _chunk(argv, size),
        amount_of(argv, "--cross-rail") or 0,
    )


def pairs_of(flow: Flow) -> int:
    """How many pairs of devices a transfer's flow must report."""
    return 1 + max((expect.pair for expect in flow.expect if expect.pair is not None), default=0)


def _transfers(command: _Command, part: Part, pairs: int) -> Number | None:
    """Transfers that the plan asks of a part; None of a time.

    Of one pair its share of the lanes, of the sum all.
    """
    if command.batches is None or part.params is None or part.params.batch is None:
        return None
    lanes = max(command.threads or pairs, pairs)
    return command.batches * part.params.batch * (lanes if part.kind == "sum" else lanes / pairs)


def _unasked(command: _Command, part: Part, size: int) -> str | None:
    """Distances that were not asked for.

    A stride of the transfer's own size is the same as none.
    """
    params = part.params or Params()
    if (command.stride or size) != (params.stride_bytes or size):
        stated = spoken(params.stride_bytes)
        return f"the plan asks for stride {spoken(command.stride)}, the output says {stated}"
    # what is not cut has no size of its own
    if (params.chunk_bytes or size) != command.chunk:
        stated = spoken(params.chunk_bytes)
        return f"the plan asks for chunks of {command.chunk} bytes, the output says {stated}"
    return None


def _devices(flow: Flow, part: Part, role: Role, cross_rail: int) -> list[str] | None:
    """The devices of this part's pair, as planned; of the sum all of them, sorted."""
    names = planned_devices(flow, role)
    if names is None or part.kind == "sum":
        return names and sorted(names)
    pair = (part.transfer and part.transfer.pair) or 0
    if role == "client":
        return names[pair : pair + 1]
    return [names[(pair + cross_rail) % len(names)]]


def _other_device(flow: Flow, part: Part, cross_rail: int) -> str | None:
    for role in ROLES:
        side = part.client if role == "client" else part.server
        said = (side and side.device) or ""
        asked = _devices(flow, part, role, cross_rail)
        names = sorted(real_name(one) for one in said.split(","))
        if asked is not None and names != asked:
            named, stated = ",".join(asked), said or "nothing"
            return f"the plan asks for device {named} on the {role}, the output says {stated}"
    return None


def _unlike(flow: Flow, part: Part, addresses: Sequence[str]) -> str | None:
    size = (part.params and part.params.size_bytes) or 0
    pairs = pairs_of(flow)
    command = _command(without(addresses, flow.client_argv), size, pairs)
    done = part.transfer or Transfer()
    why = (
        other_words(flow, part, ("backend", "provider", "op"))
        or command.requests.unlike(part)
        or _unasked(command, part, size)
    )
    if why:
        return why
    if done.pairs != pairs:
        return f"the plan asks for {pairs} pairs of devices, the output says {spoken(done.pairs)}"
    if part.definition != "batch_completion":
        return f"{part.kind} has no definition {spoken(part.definition)}"
    asked = _transfers(command, part, pairs)
    if done.asked != asked:
        return f"the plan asks for {spoken(asked)} transfers, the output says {spoken(done.asked)}"
    return _other_device(flow, part, command.cross_rail)


def as_planned(flow: Flow, part: Part, addresses: Sequence[str]) -> None:
    """Turns a part into an error if it is not what its flow planned.

    `addresses`: of the flow's two ends.
    """
    why = _unlike(flow, part, addresses) if part.status == "ok" else None
    if why:
        part.status, part.error = "error", Error(6, why, traffic=True)
