"""The tests of HPE's cxi tools (cxi_send_lat and its seven sisters).

Options and rules: HewlettPackard/shs-libcxi, man/cxi_*.1.md and parse_common_opt in
utils/utils_common.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import Host, SuiteTest
from perch.tools import atomics
from perch.tools.command import (
    Command,
    Cost,
    Ends,
    Template,
    Want,
    Word,
    count,
    duration_s,
    flag,
    named_first,
    whole,
)

OPS = ("send", "write", "read", *atomics.OPS)

OF_LATENCY = ("warmup", "gap", "no_ll", "clock")
OF_BANDWIDTH = ("batch", "bidirectional", "no_hrp")
OF_ATOMICS = ("atomic_op", "atomic_type", "matching")
NOT_OF_ATOMICS = ("tx_memory", "rx_memory", "rdzv")

#: Its own defaults: a gap and messages to warm up, and the messages of a list.
GAP, WARMUP = "1ms", 10
BATCH, ATOMIC_BATCH = 256, 4096

_memory = re.compile("host|huge:(2M|1G)|(cuda|rocm|ze):[0-9]+")
_gpu = re.compile("(cuda|rocm|ze):([0-9]+)")
_GPU_TYPES = {"cuda": "NVIDIA", "rocm": "AMD", "ze": "INTEL"}
_CLOCKS = {"cycles": "cycles", "monotonic": "clock_gettime"}


def _is_atomic(test: SuiteTest) -> bool:
    return test.op in atomics.OPS


def _sizes(test: SuiteTest) -> list[int]:
    """-s takes one size, or a range of powers of two; an atomic has its type's."""
    if _is_atomic(test):
        return [atomics.TYPE_BYTES[atomics.type_of(test)]]
    return units.sizes(test.params["size"])


def _memories(test: SuiteTest) -> list[str]:
    given = (test.get("tx_memory"), test.get("rx_memory"))
    return [memory for memory in given if memory is not None]


# ---- what they would refuse ----------------------------------------------------------------------


def _size_refusals(test: SuiteTest) -> Iterator[str]:
    size = test.get("size")
    if _is_atomic(test):
        if size is not None:
            yield "an atomic has the size of its atomic_type"
        return
    if size is None:
        yield "cxi needs a size"
        return
    sizes = _sizes(test)
    if len(sizes) > 1:
        doubles = str(size).count(":") == 1 and sizes[0].bit_count() == 1
        if not doubles:
            yield "a range of cxi's is MIN:MAX, both powers of two"


def _atomic_refusals(test: SuiteTest) -> Iterator[str]:
    atomic = _is_atomic(test)
    odd = test.first_of(NOT_OF_ATOMICS if atomic else OF_ATOMICS)
    if odd is not None:
        yield f"cxi's atomics have no {odd}" if atomic else f"{odd} belongs to atomics"
    operation = atomics.operation(test)
    if (test.op == "compare-atomic") != operation.startswith("cswap"):
        yield f"op {test.op} has no atomic_op {operation}"


def _time_refusals(test: SuiteTest) -> Iterator[str]:
    duration, gap = test.get("duration"), test.get("gap")
    if (test.get("iterations") is None) == (duration is None):
        yield "cxi needs either iterations or duration"
    if duration is not None and not whole(units.seconds(duration)):
        yield "cxi takes whole seconds"
    if gap is not None:
        microseconds = units.seconds(gap) * 1e6
        if abs(microseconds - round(microseconds)) > 1e-6:
            yield "cxi takes whole microseconds for gap"


def _op_refusals(test: SuiteTest) -> Iterator[str]:
    op = test.op
    given = {name for name, value in test.params.items() if value is not None}
    if "rdzv" in given and op != "send":
        yield "cxi has rdzv with op send only"
    if "no_idc" in given and op == "read":
        yield "op read sends no data, and so has no no_idc"
    if "no_hrp" in given and op in ("send", "read"):
        yield f"op {op} has no high-rate puts"
    if "unrestricted" in given and op == "send":
        yield "op send is always unrestricted"


def _memory_refusals(test: SuiteTest) -> Iterator[str]:
    memories = _memories(test)
    for memory in memories:
        if not _memory.fullmatch(memory):
            yield f'memory "{memory}": write host, huge:2M, huge:1G, or cuda:N, rocm:N or ze:N'
    if len({memory for memory in memories if memory.startswith("huge")}) > 1:
        yield "cxi has one kind of huge pages"


def _refusals(test: SuiteTest) -> Iterator[str]:
    if test.backend is not None or test.provider is not None:
        yield "cxi has no backend or provider"
    if test.op not in OPS:
        yield f"cxi has no op {test.op}; it has {', '.join(OPS)}"
    yield from _size_refusals(test)
    yield from _atomic_refusals(test)
    yield from _time_refusals(test)
    others = OF_LATENCY if test.kind == "bandwidth" else OF_BANDWIDTH
    odd = test.first_of(others)
    if odd is not None:
        yield f"{odd} belongs to {'latency' if test.kind == 'bandwidth' else 'bandwidth'}"
    yield from _op_refusals(test)
    yield from _memory_refusals(test)


def _lacks(test: SuiteTest, host: Host) -> str | None:
    if host.devices:
        return None
    return "names no Cassini device (perch_devices), and the tool would take cxi0"


def _gap_us(test: SuiteTest) -> int | None:
    gap = test.get("gap")
    return None if gap is None else round(units.seconds(gap) * 1e6)


def _huge(test: SuiteTest) -> str | None:
    """The kind of huge pages, of which a command has one for all memory: 2M or 1G."""
    pages = [m.removeprefix("huge:") for m in _memories(test) if m.startswith("huge:")]
    return pages[0] if pages else None


# ---- their commands ------------------------------------------------------------------------------


def _gpu_words(option: str, memory: str | None) -> list[str]:
    """cuda:0 -> -t 0 -g NVIDIA."""
    found = _gpu.fullmatch(memory or "")
    return [option, found[2], "-g", _GPU_TYPES[found[1]]] if found else []


def _atomic_words(test: SuiteTest) -> list[str]:
    """The engine's words for an operation -> the tool's: cswap-ne is -A cswap -C ne."""
    operation = atomics.operation(test)
    compares = operation.startswith("cswap")
    compare = "eq" if operation == "cswap" else operation.removeprefix("cswap-")
    return [
        *("-A", "cswap" if compares else "swap" if operation == "write" else operation),
        *flag("-C", compare if test.op == "compare-atomic" else None),
        *("-T", atomics.type_of(test).replace("-", "_")),
        *flag("--fetching", test.op != "atomic-op"),
        *flag("--matching", test.get("matching")),
    ]


def _length(test: SuiteTest) -> list[str]:
    duration = test.get("duration")
    if duration is not None:
        return ["-D", units.shown(units.seconds(duration))]
    return ["-n", units.shown(test.params["iterations"])]


def _load_words(test: SuiteTest) -> list[str]:
    if _is_atomic(test):
        return _atomic_words(test)
    sizes = _sizes(test)
    return ["-s", str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]}:{sizes[-1]}"]


def _options(test: SuiteTest) -> list[str]:
    """What the client is given; it informs the server."""
    by_time = test.get("duration") is not None
    return [
        *_load_words(test),
        *_length(test),
        *flag("--warmup", test.get("warmup")),
        *flag("--latency-gap", _gap_us(test)),
        *flag("-l", test.get("batch")),
        *flag("-b", test.get("bidirectional")),
        *flag("-R", test.get("rdzv")),
        *flag("--unrestricted", test.get("unrestricted")),
        *flag("--no-hrp", test.get("no_hrp")),
        *flag("--no-idc", test.get("no_idc")),
        *flag("--no-ll", test.get("no_ll")),
        *flag("--report-all", test.kind == "latency" and not by_time and test.get("report_all")),
        *flag("-c", _CLOCKS.get(test.get("clock", ""))),
        *flag("--use-hp", _huge(test)),
    ]


def _template(test: SuiteTest, devices: int) -> Template:
    """Each end is given its own device, its service, and the GPU that holds its payload."""
    verb = "atomic" if _is_atomic(test) else test.op
    program = f"cxi_{verb}_{'lat' if test.kind == 'latency' else 'bw'}"

    def end(role: str) -> list[Word]:
        return [
            *(program, "-d", f"{{{role}.device.name}}"),
            ["-v", f"{{{role}.device.svc_id}}"],
            *("-p", "{server.ports.cxi}"),
        ]

    sent = _gpu_words("-t", test.get("tx_memory"))
    received = _gpu_words("-r", test.get("rx_memory"))
    return Template(
        [*end("client"), *sent, *_options(test), "{server.address}"], [*end("server"), *received]
    )


def _size_time(test: SuiteTest, each: float) -> float:
    """Seconds of one size. Warm-up comes before the clock of -D starts."""
    duration, iterations = test.get("duration"), test.get("iterations")
    if test.kind == "latency":
        each += units.seconds(test.get("gap", GAP))
        warmup: float = test.get("warmup", WARMUP) * each
        return warmup + (units.seconds(duration) if duration else each * iterations)
    if duration:
        return units.seconds(duration)
    batch = test.get("batch", ATOMIC_BATCH if _is_atomic(test) else BATCH)
    both = 2 if test.get("bidirectional") is True else 1
    messages: int = iterations * batch * both
    return each * messages


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    return sum(_size_time(test, cost(size)) for size in _sizes(test))


def _expect(test: SuiteTest, devices: int) -> list[Expect]:
    return [Expect(size_bytes=size) for size in _sizes(test)]


# ---- what their output must state ----------------------------------------------------------------


def _memory_wants(test: SuiteTest) -> Iterator[Want]:
    """Where payload lies; only some versions print a kind of memory that is the host's."""
    pages = _huge(test)
    other = "host" if pages is None else f"huge:{pages}"
    for name in ("tx_memory", "rx_memory"):
        given = test.get(name, "host")
        where = given if _gpu.fullmatch(given) else other
        yield Want(name, where, where == "host")


def _atomic_wants(test: SuiteTest) -> Iterator[Want]:
    yield Want("atomic_op", atomics.operation(test))
    yield Want("fetching", test.op != "atomic-op")
    yield Want("atomic_type", atomics.type_of(test))
    yield Want("keys", "matching" if test.get("matching") is True else "client")


def _wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    """They state what they were asked for; by duration they count no iterations.

    What only some versions print (rendezvous where it is off, restricted operations) is compared
    where it is stated. An atomic's packets are never restricted, whatever its line says.
    """
    duration = duration_s(test)
    yield Want("op", test.op)
    yield Want("kind", test.kind)
    yield Want("duration_s", duration)
    if duration is None:
        yield Want("iterations", count(test, "iterations"))
    yield Want("bidirectional", test.get("bidirectional") is True)
    yield Want("batch", count(test, "batch"))
    yield Want("warmup", count(test, "warmup"))
    yield Want("gap_us", _gap_us(test))
    yield Want("svc_id", ends.first("client", "svc_id"))
    for switch in ("idc", "ll", "hrp"):
        if test.get(f"no_{switch}") is True:
            yield Want(switch, False)
    rendezvous, unrestricted = test.get("rdzv") is True, test.get("unrestricted") is True
    yield Want("rdzv", rendezvous, not rendezvous)
    if unrestricted or not _is_atomic(test):
        yield Want("unrestricted", unrestricted, True)
    yield from _memory_wants(test)
    if _is_atomic(test):
        yield from _atomic_wants(test)
    yield from named_first(ends)


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    expect=_expect,
    wants=_wants,
    carrier=lambda test: "card",
    lacks=_lacks,
    by_rail=lambda test: True,
)
