"""What an output of the engine must state, from the params of its test."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import SuiteTest
from perch.tools import atomics
from perch.tools.command import Ends, Want, count, duration_s, in_gpu_memory, layer_want, numeral

#: Providers that drive a card themselves (fi_provider(7)), also below a utility such as ofi_rxm.
_of_hardware = re.compile(r"(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)")

_gpu = re.compile(r"(cuda|rocm|ze)(?::([0-9]+))?")

#: The engine's defaults (perch --help): time to warm up, messages of a measurement by messages;
#: messages outstanding; what a reliable queue pair does without an answer.
WARMUP = "200ms"
ITERATIONS = {"latency": 1000, "bandwidth": 5000}
OUTSTANDING = {"latency": 1, "bandwidth": 64}
RETRIES = {"retry": 7, "rnr_retry": 7, "timeout_exponent": 14}

#: The largest message that the engine sends within its work request in tests of latency, where the
#: device takes that many bytes (engine/src/backends/verbs/verbs_queue.c).
INLINE_SEND, INLINE_WRITE, INLINE_DATAGRAM = 236, 220, 188


#: Of a partition key, the bit of a port that reaches all members (InfiniBand Architecture
#: Specification, volume 1, section 10.9.1).
FULL_MEMBER = 0x8000


def default(test: SuiteTest, name: str, value: int | None) -> Want:
    """What was not asked for may go unstated, but must not be another than the engine's default."""
    asked = count(test, name)
    return Want(name, value if asked is None else asked, asked is None)


def warmup_s(test: SuiteTest, each: float) -> float:
    """Seconds of the warm-up of one size, whose message (or batch) takes `each`."""
    asked = test.get("warmup", WARMUP)
    return asked * each if isinstance(asked, int) else units.seconds(asked) + each


def warmup_wants(test: SuiteTest) -> Iterator[Want]:
    """A number counts messages. An earlier engine's warm-up by default was none of time."""
    asked = test.get("warmup")
    if isinstance(asked, int):
        yield Want("warmup", asked)
    else:
        yield Want("warmup_s", units.seconds(asked or WARMUP), asked is None)


def drives_card(test: SuiteTest) -> bool:
    """Whether the test names a provider of libfabric that drives a card."""
    return test.backend == "ofi" and _of_hardware.search(test.provider or "") is not None


def named_by(test: SuiteTest) -> str:
    """libfabric knows a card by its RDMA device where the provider drives it, else by netdev."""
    return "netdev" if test.backend == "ofi" and not drives_card(test) else "name"


def _is_on(test: SuiteTest, name: str) -> bool:
    return test.get(name) is True


# ---- every backend -------------------------------------------------------------------------------


def cpus(words: str) -> list[int]:
    """The CPUs of a list: 4-6,8 -> 4, 5, 6 and 8. Nodes of NUMA are written so, too."""
    ends = [word.partition("-")[::2] for word in words.split(",") if word]
    return [cpu for first, last in ends for cpu in range(int(first), int(last or first) + 1)]


def place_wants(test: SuiteTest) -> Iterator[Want]:
    """CPUs and node that the plan names. One thread has one of the CPUs; more are not compared."""
    for role, prefix in (("client", ""), ("server", "server_")):
        cpu, node = test.get(f"{prefix}cpu", "auto"), test.get(f"{prefix}numa")
        if cpu == "off":
            yield Want(f"{role}.unplaced", cpu)
        elif cpu != "auto" and test.kind not in ("transfer", "rate"):
            yield Want(f"{role}.cpu", tuple(map(str, cpus(str(cpu)))))
        if isinstance(node, int):
            yield Want(f"{role}.memory_node", node, optional=True)


def _memory(test: SuiteTest, way: str) -> str | None:
    """Where payload lies (`way`: tx or rx): of several params the engine takes the last one.

    The engine numbers GPUs: cuda is cuda:0.
    """
    word = None
    for name, value in test.params.items():
        if name == "huge" and value is not None:
            word = f"huge:{value}"
        elif name in ("memory", f"{way}_memory") and value is not None:
            word = str(value)
    gpu = _gpu.fullmatch(word) if word is not None else None
    return f"{gpu[1]}:{int(gpu[2] or 0)}" if gpu else word


def memory_wants(test: SuiteTest) -> Iterator[Want]:
    """Memory that was not asked for may go unstated, but must not be another."""
    found = [_memory(test, way) for way in ("tx", "rx")]
    for way, where in zip(("tx", "rx"), found, strict=True):
        yield Want(f"{way}_memory", where or "host", where is None)
    tx, rx = (where or "host" for where in found)
    yield Want("memory", tx if tx == rx else "mixed", optional=True)
    if not any(where and where.startswith("huge:") for where in found):
        yield Want("huge", 0, optional=True)
    yield Want("footprint_bytes", count(test, "footprint") or 0)


def _rate_wants(test: SuiteTest) -> Iterator[Want]:
    """A rate that was not asked for would excuse a figure from its limit."""
    rate = test.get("rate")
    yield Want("paced", rate is not None)
    if rate is not None:
        value, unit = units.rate(rate)
        yield Want("rate", value / 1e9 if unit == "b/s" else value)
        yield Want("rate_unit", "Gb/s" if unit == "b/s" else "messages/s")


def _shared_wants(test: SuiteTest) -> Iterator[Want]:
    yield Want("completion", test.get("completion", "busy"))
    yield Want("verify", _is_on(test, "verify"))
    yield Want("bidirectional", _is_on(test, "bidirectional"))
    lasts = duration_s(test)
    yield default(test, "iterations", None if lasts else ITERATIONS[test.kind])
    yield default(test, "outstanding", OUTSTANDING[test.kind])
    yield Want("duration_s", lasts)
    yield from warmup_wants(test)
    yield Want("threads", 1, optional=True)
    yield Want("devices", 1, optional=True)
    yield Want("clock", test.get("clock", "monotonic"), test.get("clock") is None)
    gap = test.get("gap")
    yield Want("gap_us", 0 if gap is None else units.seconds(gap) * 1e6, gap is None)
    yield from _rate_wants(test)
    yield from memory_wants(test)
    yield from place_wants(test)
    yield Want("bounce", _is_on(test, "bounce"), not _is_on(test, "bounce"))


def _definition(test: SuiteTest) -> str | tuple[str, ...]:
    """What the operation may be timed by."""
    if test.kind == "bandwidth":
        return "receiver_acknowledged" if test.op == "send" else "initiator_completion"
    if test.op == "write":
        asked: str | None = test.get("definition")
        return asked or ("half_round_trip", "completion")
    return "half_round_trip" if test.op == "send" else "completion"


# ---- verbs ---------------------------------------------------------------------------------------


def path_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """A queue pair's path. A connection manager settles the MTU, and the rest if not asked for."""
    managed = _is_on(test, "rdma_cm")
    if not managed:
        yield Want("mtu_bytes", count(test, "mtu"))
    yield Want("gid_index", ends.first("client", "gid_index"))
    yield layer_want(ends)
    pkey = count(test, "pkey")
    if pkey is not None:  # the record's has the bit that says whether the port is a full member
        yield Want("pkey", (pkey | FULL_MEMBER, pkey & ~FULL_MEMBER))
    unset = None if managed else 0
    yield Want("sl", count(test, "sl", unset))
    classes = [
        value
        for name, value in test.params.items()
        if name in ("traffic_class", "tos") and value is not None
    ]
    yield Want("traffic_class", numeral(classes[-1]) if classes else unset)
    if test.get("connection", "rc") == "rc":  # others acknowledge nothing
        for name, value in RETRIES.items():
            yield default(test, name, value)


def inline_want(test: SuiteTest) -> Want:
    """Where the plan leaves it open, a device that does not take the engine's choice has none."""
    asked = count(test, "inline")
    if asked is not None:
        return Want("inline_bytes", asked)
    name = test.op.partition("-")[0] if test.op else "send"
    if test.kind != "latency" or name not in ("send", "write"):
        return Want("inline_bytes", 0, optional=True)
    chosen = INLINE_SEND if name == "send" else INLINE_WRITE
    if test.get("connection") == "ud":
        chosen = INLINE_DATAGRAM
    return Want("inline_bytes", (0, chosen, None))


def relaxed_want(test: SuiteTest) -> Iterator[Want]:
    """Where the plan leaves it open, it is off for latency in host memory (job_relaxed_ordering).

    For others the engine chooses: on, older versions off.
    """
    asked = test.params.get("relaxed_ordering")
    if asked is None and test.kind == "latency" and not in_gpu_memory(test.get):
        asked = False
    yield Want("relaxed_ordering", asked, optional=asked is False)


def _verbs_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """The engine's queue pairs, with its defaults. What it chooses by itself is not compared."""
    yield Want("connection", test.get("connection", "rc").upper())
    yield Want("queue_pairs", count(test, "queue_pairs", 1))
    yield Want("batch", count(test, "batch", 1))
    yield Want("cq_moderation", count(test, "cq_moderation", 1))
    yield inline_want(test)
    yield from path_wants(test, ends)
    yield Want("huge", count(test, "huge"))
    for switch in ("srq", "rdma_cm"):
        yield Want(switch, _is_on(test, switch))
    yield from relaxed_want(test)


# ---- libfabric -----------------------------------------------------------------------------------


def fabric_class(test: SuiteTest) -> str | None:
    """The traffic class, by name or number."""
    given = test.get("fabric_class", test.get("traffic_class"))
    return None if given is None else units.shown(given)


def _libfabric_wants(test: SuiteTest) -> Iterator[Want]:
    """Lists, traffic class and atomics; the engine's defaults may go unstated."""
    batch, named = count(test, "batch"), fabric_class(test)
    yield Want("batch", batch or 1, batch is None)
    yield Want("fabric_class", named or "default", named is None)
    if test.op in atomics.OPS:
        yield Want("atomic_op", atomics.operation(test))
        yield Want("atomic_type", atomics.type_of(test))


def _service_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """Service and VNI as the test or else the inventory has them; in use where that is stated."""
    service = numeral(test.get("svc_id", ends.first("client", "svc_id")))
    other = numeral(test.get("server_svc_id", ends.first("server", "svc_id")))
    vni = numeral(test.get("vni", ends.first("client", "vni")))
    yield Want("svc_id", service)
    yield Want("client.svc_id", service, True)
    yield Want("server_svc_id", other)
    yield Want("server.svc_id", other, True)
    yield Want("vni", vni)
    yield Want("client.vni", vni, True)
    yield Want("server.vni", vni, True)


def cassini_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """What may be off without having been asked for is compared where it was asked for.

    A read has no immediate data, GPUs have none, large writes are no high-rate puts.
    """
    yield from _service_wants(test, ends)
    for switch in ("idc", "ll", "hrp"):
        if _is_on(test, f"no_{switch}"):
            yield Want(switch, False)
    yield Want("rdzv", _is_on(test, "rdzv"))
    unrestricted = _is_on(test, "unrestricted")
    if unrestricted:
        yield Want("unrestricted", True)
    # unrestricted reads go through a match list (keys_of in the engine)
    keys = test.get("keys", "client")
    matched = keys == "client" and unrestricted and test.op == "read"
    yield Want("keys", "matching" if matched else keys)


# ---- latency and bandwidth -----------------------------------------------------------------------


def lane_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """What transfers and message rates state of their backend.

    Of verbs, a service level or class that the plan leaves open may be absent.
    """
    if test.backend == "verbs":
        for want in path_wants(test, ends):
            free = want.name in ("sl", "traffic_class")
            yield want._replace(optional=True) if free else want
    yield from relaxed_want(test)
    if test.backend in ("ofi", "cxi"):
        yield Want("fabric_class", fabric_class(test))
    if test.backend == "cxi":
        yield from cassini_wants(test, ends)


def device_wants(test: SuiteTest, ends: Ends) -> Iterator[Want]:
    """Each end's device as its inventory names it. Verbs always name theirs, and its port."""
    if test.backend not in ("verbs", "cxi") and test.get("devices") is None:
        return
    verbs, key = test.backend == "verbs", named_by(test)
    yield Want("client.device", ends.first("client", key), test.backend == "cxi")
    yield Want("server.device", ends.first("server", key), test.backend == "cxi")
    if verbs:
        yield from port_wants(ends)


def port_wants(ends: Ends) -> Iterator[Want]:
    """Port 0 leaves the choice to the engine."""
    yield Want("client.port", ends.first("client", "ib_port") or None, True)
    yield Want("server.port", ends.first("server", "ib_port") or None, True)


def wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    """Of the engine's tests of latency and bandwidth."""
    for name in ("backend", "provider", "op", "kind"):
        yield Want(name, getattr(test, name))
    yield from _shared_wants(test)
    if test.backend == "verbs":
        yield from _verbs_wants(test, ends)
    else:
        # several connections are another question than one, sockets' too
        pairs = count(test, "queue_pairs")
        yield Want("queue_pairs", pairs or 1, pairs is None)
    if test.backend in ("tcp", "null"):  # which have neither lists nor inline data
        yield Want("batch", 1, optional=True)
        yield Want("inline_bytes", 0, optional=True)
    if test.backend in ("ofi", "cxi"):
        yield from _libfabric_wants(test)
    if test.backend == "cxi":
        yield from cassini_wants(test, ends)
    yield Want("definition", _definition(test))
    yield from device_wants(test, ends)
