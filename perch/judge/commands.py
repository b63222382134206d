"""What a planned command asks of a tool, as a record's params state it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from perch.judge.argv import option_value
from perch.model.record import Number
from perch.model.units import RATES, SIZES, TIMES_S

#: perftest's depth of sends and writes where the command names none (force_dependecies in its
#: src/perftest_parameters.c).
PERFTEST_DEPTH = 128

_GPU_TYPES = {"AMD": "rocm", "NVIDIA": "cuda", "INTEL": "ze"}

_time = re.compile(r"([0-9.]+)(ms|us|ns|s|m|h)?")
_amount = re.compile(r"([0-9]+)([KMG])?")
_rate = re.compile(r"([0-9.]+)([KMG]?)(msg/s|messages/s|b/s)")
_gpu = re.compile(r"(cuda|rocm|ze)(?::([0-9]+))?")


class Asked(NamedTuple):
    """A value that the output must state under `name`.

    `optional`: an output that does not state it is none the worse.
    """

    name: str
    value: Any
    optional: bool = False


# ---- words of a command --------------------------------------------------------------------------


def number(text: str | None) -> Number | str | None:
    """A number; what is none stays text, which no output states."""
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return _float(text) if text[:1].isdigit() else text


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def seconds(text: str | None) -> float | None:
    """A time as the engine reads it: "300ms" is 0.3, a bare number seconds, other text nan."""
    if text is None:
        return None
    found = _time.fullmatch(text)
    return _float(found[1]) * TIMES_S[found[2] or "s"] if found else math.nan


def amount(text: str | None) -> int | None:
    """A number as the engine reads it: "64K" is 65536; None where it is no such number."""
    found = _amount.fullmatch(text) if text is not None else None
    if found is None:
        return None
    return int(found[1]) * SIZES[found[2] or ""]


def amount_of(argv: Sequence[str], *names: str, default: str | None = None) -> int | None:
    value = option_value(argv, *names)
    return amount(default if value is None else value)


def has(argv: Sequence[str], *names: str) -> bool:
    return any(name in argv for name in names)


def memory(argv: Sequence[str], way: str) -> str | None:
    """Where payload lies (`way`: tx or rx), by the last word that speaks of it.

    The engine numbers GPUs: cuda is cuda:0.
    """
    word = None
    for option, value in pairwise(argv):
        if option == "--huge":
            word = "huge:" + value
        elif option in ("--memory", f"--{way}-memory"):
            word = value
    gpu = _gpu.fullmatch(word) if word is not None else None
    return f"{gpu[1]}:{int(gpu[2] or 0)}" if gpu else word


def _gap_us(text: str | None) -> float | None:
    """A gap's bare number is microseconds, and only that of --gap."""
    if text is None:
        return None
    if re.fullmatch("[0-9.]+", text):
        return _float(text)
    time = seconds(text)
    return None if time is None else time * 1e6


def _pace(text: str) -> tuple[float | None, str | None]:
    """A rate as the engine states it: "500Mb/s" is 0.5 and "Gb/s"."""
    found = _rate.fullmatch(text)
    if found is None:
        return None, None
    value = _float(found[1]) * RATES[found[2]]
    return (value / 1e9, "Gb/s") if found[3] == "b/s" else (value, "messages/s")


# ---- the engine ----------------------------------------------------------------------------------


def of_verbs(argv: Sequence[str]) -> Iterator[Asked]:
    """The engine's queue pairs, with its defaults. What it chooses by itself is not compared."""
    connection = option_value(argv, "--connection") or "rc"
    yield Asked("connection", connection.upper())
    yield Asked("queue_pairs", amount_of(argv, "--queue-pairs", default="1"))
    yield Asked("batch", amount_of(argv, "--batch", default="1"))
    yield Asked("cq_moderation", amount_of(argv, "--cq-moderation", default="1"))
    yield Asked("inline_bytes", amount_of(argv, "--inline"))
    # a connection manager settles the path MTU by itself, and the rest where no option says it
    managed = has(argv, "--rdma-cm")
    if not managed:
        yield Asked("mtu_bytes", amount_of(argv, "--mtu"))
    yield Asked("gid_index", amount_of(argv, "--gid-index"))
    unset = None if managed else "0"
    yield Asked("sl", amount_of(argv, "--sl", default=unset))
    yield Asked("traffic_class", amount_of(argv, "--traffic-class", "--tos", default=unset))
    yield Asked("retry", amount_of(argv, "--retry"))
    yield Asked("rnr_retry", amount_of(argv, "--rnr-retry"))
    yield Asked("timeout_exponent", amount_of(argv, "--timeout-exponent"))
    yield Asked("huge", amount_of(argv, "--huge"))
    yield Asked("srq", has(argv, "--srq"))
    yield Asked("rdma_cm", has(argv, "--rdma-cm"))
    yield Asked("relaxed_ordering", has(argv, "--relaxed-ordering"))


def _of_every_backend(argv: Sequence[str]) -> Iterator[Asked]:
    """A pause or memory that was not asked for may go unstated, but must not be another."""
    yield Asked("completion", option_value(argv, "--completion") or "busy")
    yield Asked("verify", has(argv, "--verify"))
    yield Asked("bidirectional", has(argv, "--bidirectional"))
    yield Asked("iterations", number(option_value(argv, "--iterations")))
    yield Asked("outstanding", number(option_value(argv, "--outstanding")))
    yield Asked("duration_s", seconds(option_value(argv, "--duration")))
    yield Asked("warmup", amount_of(argv, "--warmup"))
    gap = _gap_us(option_value(argv, "--gap"))
    yield Asked("gap_us", gap or 0, gap is None)
    # a rate that was not asked for would excuse a figure from its limit
    pace = option_value(argv, "--rate")
    yield Asked("paced", pace is not None)
    if pace is not None:
        rate, unit = _pace(pace)
        yield Asked("rate", rate)
        yield Asked("rate_unit", unit)
    for way in ("tx", "rx"):
        where = memory(argv, way)
        yield Asked(f"{way}_memory", where or "host", where is None)
    bounce = has(argv, "--bounce")
    yield Asked("bounce", bounce, not bounce)


def _of_libfabric(argv: Sequence[str]) -> Iterator[Asked]:
    """The engine's lists, traffic class and atomics; its defaults may go unstated."""
    yield Asked("batch", amount_of(argv, "--batch", default="1"), not has(argv, "--batch"))
    named = option_value(argv, "--traffic-class")
    yield Asked("fabric_class", named or "default", not has(argv, "--traffic-class"))
    op = option_value(argv, "--op")
    if op in ("atomic-op", "fetch-atomic", "compare-atomic"):
        default = "cswap" if op == "compare-atomic" else "sum"
        yield Asked("atomic_op", option_value(argv, "--atomic-op") or default)
        yield Asked("atomic_type", option_value(argv, "--atomic-type") or "uint64")


def of_cassini(argv: Sequence[str]) -> Iterator[Asked]:
    """Service and VNI as asked for, and as in use where that is stated.

    What may be off without having been asked for (a read has no immediate data, GPUs have none,
    large writes are no high-rate puts) is compared where it was asked for.
    """
    service, other, vni = (
        amount_of(argv, name) for name in ("--svc-id", "--server-svc-id", "--vni")
    )
    yield Asked("svc_id", service)
    yield Asked("client.svc_id", service, True)
    yield Asked("server_svc_id", other)
    yield Asked("server.svc_id", other, True)
    yield Asked("vni", vni)
    yield Asked("client.vni", vni, True)
    yield Asked("server.vni", vni, True)
    for switch in ("idc", "ll", "hrp"):
        if has(argv, f"--no-{switch}"):
            yield Asked(switch, False)
    yield Asked("rdzv", has(argv, "--rdzv"))
    unrestricted = has(argv, "--unrestricted")
    if unrestricted:
        yield Asked("unrestricted", True)
    # unrestricted reads go through a match list (keys_of in the engine)
    keys = option_value(argv, "--keys") or "client"
    matched = keys == "client" and unrestricted and option_value(argv, "--op") == "read"
    yield Asked("keys", "matching" if matched else keys)


def _of_perch(argv: Sequence[str]) -> Iterator[Asked]:
    yield from _of_every_backend(argv)
    backend = option_value(argv, "--backend")
    if backend == "verbs":
        yield from of_verbs(argv)
    else:
        # several connections are another question than one, sockets' too
        pairs = amount_of(argv, "--queue-pairs", default="1")
        yield Asked("queue_pairs", pairs, not has(argv, "--queue-pairs"))
    if backend in ("ofi", "cxi"):
        yield from _of_libfabric(argv)
    if backend == "cxi":
        yield from of_cassini(argv)


# ---- other tools ---------------------------------------------------------------------------------


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _of_perftest(argv: Sequence[str]) -> Iterator[Asked]:
    """What perftest's output states beside the command; it may leave any of it out.

    It lowers depth and moderation to the number of messages, and moderation to the depth.
    """
    yield Asked("bidirectional", has(argv, "-b"))
    yield Asked("completion", "event" if has(argv, "-e") else "busy")
    yield Asked("queue_pairs", number(option_value(argv, "-q", "--qp") or "1"))
    connection = option_value(argv, "-c", "--connection") or "RC"
    yield Asked("connection", connection.upper(), True)
    messages, pairs = amount_of(argv, "-n", "--iters"), amount_of(argv, "-q", "--qp")
    depth, batch = amount_of(argv, "-t", "--tx-depth"), amount_of(argv, "-l", "--post_list")
    if depth is not None and (batch or 1) <= depth:
        yield Asked("outstanding", (_least(depth, messages) or 0) * (pairs or 1), True)
    yield Asked("batch", batch, True)
    moderation = amount_of(argv, "-Q", "--cq-mod")
    deep = depth or (PERFTEST_DEPTH if re.search("_(send|write)_bw$", argv[0]) else None)
    if moderation is not None and deep is not None:
        yield Asked("cq_moderation", _least(moderation, deep, messages), True)
    yield Asked("inline_bytes", amount_of(argv, "-I", "--inline_size"), True)
    yield Asked("gid_index", amount_of(argv, "-x", "--gid-index"), True)
    managed = has(argv, "-R", "--rdma_cm")
    if not managed:
        yield Asked("mtu_bytes", amount_of(argv, "-m", "--mtu"), True)
    yield Asked("srq", has(argv, "--use-srq"), True)
    yield Asked("rdma_cm", managed, True)
    if has(argv, "--disable_pcie_relaxed"):
        yield Asked("relaxed_ordering", False, True)


def _cxi_atomic(argv: Sequence[str]) -> str | None:
    """-A CSWAP -C NE, as the engine names it."""
    op = option_value(argv, "-A", "--atomic-op")
    compare = (option_value(argv, "-C", "--cswap-op") or "eq").lower()
    if op is None or op.lower() == "swap":
        return op and "write"
    return f"cswap-{compare}" if op.lower() == "cswap" and compare != "eq" else op.lower()


def _cxi_gpu(argv: Sequence[str], *options: str) -> str | None:
    """-t 0 -g NVIDIA: cuda:0. Of a GPU whose type is not named nothing is compared: empty."""
    index = option_value(argv, *options)
    kind = _GPU_TYPES.get((option_value(argv, "-g", "--gpu-type") or "").upper())
    if index is None:
        return None
    return f"{kind}:{index}" if kind else ""


def _of_cxi(argv: Sequence[str], server_argv: Sequence[str]) -> Iterator[Asked]:
    """The cxi tools state what they were asked for; by duration they count no iterations.

    What only some versions print (rendezvous where it is off, restricted operations, a kind of
    memory) is compared where it is stated.
    """
    by_time = has(argv, "-D")
    yield Asked("duration_s", amount_of(argv, "-D"))
    if not by_time:
        yield Asked("iterations", amount_of(argv, "-n"))
    yield Asked("bidirectional", has(argv, "-b"))
    yield Asked("batch", amount_of(argv, "-l"))
    yield Asked("warmup", amount_of(argv, "--warmup"))
    yield Asked("gap_us", amount_of(argv, "--latency-gap"))
    yield Asked("svc_id", amount_of(argv, "-v"))
    for switch in ("idc", "ll", "hrp"):
        if has(argv, f"--no-{switch}"):
            yield Asked(switch, False)
    rendezvous = has(argv, "-R", "--rdzv")
    yield Asked("rdzv", rendezvous, not rendezvous)
    atomic = "cxi_atomic_" in argv[0]
    # an atomic's packets are never restricted, whatever its line says
    unrestricted = has(argv, "--unrestricted")
    if unrestricted or not atomic:
        yield Asked("unrestricted", unrestricted, True)
    pages = option_value(argv, "--use-hp")
    default = "host" if pages is None else "huge:" + pages.upper()
    sent, received = _cxi_gpu(argv, "-t", "--tx-gpu"), _cxi_gpu(server_argv, "-r", "--rx-gpu")
    for name, gpu in (("tx_memory", sent), ("rx_memory", received)):
        where = default if gpu is None else gpu
        if where:
            yield Asked(name, where, where == "host")
    if atomic:
        kind = option_value(argv, "-T", "--atomic-type")
        yield Asked("atomic_op", _cxi_atomic(argv))
        yield Asked("fetching", has(argv, "--fetching"))
        yield Asked("atomic_type", kind and kind.lower().replace("_", "-"))
        yield Asked("keys", "matching" if has(argv, "--matching") else "client")


def _of_iperf(tool: str, argv: Sequence[str]) -> Iterator[Asked]:
    yield Asked("duration_s", seconds(option_value(argv, "-t", "--time")))
    yield Asked("queue_pairs", number(option_value(argv, "-P", "--parallel") or "1"))
    if tool == "iperf3":
        yield Asked("bidirectional", has(argv, "--bidir"))
        yield Asked("reverse", has(argv, "-R", "--reverse"))


def of_flow(tool: str, argv: Sequence[str], server_argv: Sequence[str]) -> Iterator[Asked]:
    """What a command of one of these tools asks for, transfers apart (asked_transfer.py)."""
    if tool == "perch":
        return _of_perch(argv)
    if tool == "perftest":
        return _of_perftest(argv)
    if tool == "cxi":
        return _of_cxi(argv, server_argv)
    if tool in ("iperf", "iperf3"):
        return _of_iperf(tool, argv)
    return iter(())
