"""perftest's tests (https://github.com/linux-rdma/perftest).

Options and rules are those of its versions 4.5 and 25.01, src/perftest_parameters.c.
"""

from __future__ import annotations

from collections.abc import Iterator

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import Host, SuiteTest
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
    layer_want,
    named_first,
    whole,
)

OPS = ("send", "write", "read", "fetch-add", "compare-swap")
ATOMICS = {"fetch-add": "FETCH_AND_ADD", "compare-swap": "CMP_AND_SWAP"}
CONNECTION_OPS = {"uc": ("send", "write"), "ud": ("send",)}

#: -a: from 2 bytes to 8 MiB, doubling.
ALL_SIZES = units.doubled(2, 8 * units.MEBI)

#: Bounds of its parser, src/perftest_parameters.h.
ITERATIONS_MIN, ITERATIONS_MAX = 5, 100_000_000

#: Its depth of sends and writes where a test names none (force_dependecies in its
#: src/perftest_parameters.c).
DEPTH = 128

OF_BANDWIDTH = (
    *("queue_pairs", "tx_depth", "batch", "cq_moderation"),
    *("bidirectional", "report_gbits"),
)


def _sizes(test: SuiteTest) -> list[int]:
    """One run of perftest measures one size, or all of its own."""
    size = test.params["size"]
    return ALL_SIZES if size == "all" else units.sizes(size)


def _margin(test: SuiteTest) -> float:
    """Seconds that are left out at each end of a duration.

    -D N -f M measures for N - 2 M seconds, and N must be above 2 M. One second keeps the ends out
    where there is room: without -f, 4.5 takes two, and newer versions a quarter of N.
    """
    given = test.get("margin")
    if given is not None:
        return units.seconds(given)
    return 1 if units.seconds(test.params["duration"]) > 2 else 0


# ---- what it would refuse ------------------------------------------------------------------------


def _size_refusals(test: SuiteTest, connection: str) -> Iterator[str]:
    takes_all = test.params["size"] == "all"
    if len(_sizes(test)) != 1 and not takes_all:
        yield "perftest measures one size a test, or size all (2 bytes to 8 MiB)"
    if test.op in ATOMICS and _sizes(test) != [8]:
        yield "perftest's atomics work on 8 bytes"
    if takes_all and connection == "ud":
        yield "with connection ud a message is one packet: give one size"
    if takes_all and test.get("duration") is not None:
        yield "perftest measures size all by iterations only"


def _duration_refusals(test: SuiteTest) -> Iterator[str]:
    duration, margin = test.get("duration"), test.get("margin")
    if duration is None:
        if margin is not None:
            yield "margin belongs to duration"
        return
    seconds, kept_out = units.seconds(duration), _margin(test)
    if not whole(seconds) or not whole(kept_out):
        yield "perftest takes whole seconds"
    if seconds <= 2 * kept_out:
        yield "duration must be above twice the margin, which is left out at both ends"
    if test.get("completion") == "event":
        yield "perftest waits by events with iterations only"


def _count_refusals(test: SuiteTest) -> Iterator[str]:
    iterations, batch = test.get("iterations"), test.get("batch", 1)
    if (iterations is None) == (test.get("duration") is None):
        yield "perftest needs either iterations or duration"
    if iterations is not None and not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        yield f"perftest takes {ITERATIONS_MIN} to {ITERATIONS_MAX} iterations"
    if batch > 1 and iterations is not None and iterations % batch != 0:
        yield "iterations must be a multiple of batch"
    moderation = test.get("cq_moderation")
    if batch > 1 and moderation is not None and batch % moderation != 0:
        yield "batch must be a multiple of cq_moderation"


def _op_refusals(test: SuiteTest) -> Iterator[str]:
    op = test.op
    if test.get("completion") == "event" and op == "write":
        yield "perftest has no events with op write"
    if test.get("inline") is not None and (op == "read" or op in ATOMICS):
        yield f"op {op} has no inline data"
    if test.get("relaxed_ordering") is True and op == "write" and test.kind == "latency":
        yield "perftest's write latency polls memory, and so has no relaxed_ordering"
    if test.get("srq") is True and op != "send":
        yield "perftest has srq with op send only"


def _refusals(test: SuiteTest) -> Iterator[str]:
    connection = test.get("connection", "rc")
    managed = test.get("rdma_cm") is True
    if test.backend is not None or test.provider is not None:
        yield "perftest has no backend or provider"
    if test.op not in OPS:
        yield f"perftest has no op {test.op}; it has {', '.join(OPS)}"
    if test.op not in CONNECTION_OPS.get(connection, OPS):
        yield f"connection {connection} has no op {test.op}"
    yield from _size_refusals(test, connection)
    yield from _count_refusals(test)
    yield from _duration_refusals(test)
    bandwidth = test.first_of(OF_BANDWIDTH)
    if test.kind == "latency" and bandwidth is not None:
        yield f"{bandwidth} belongs to bandwidth"
    yield from _op_refusals(test)
    if managed and connection == "uc":
        yield "perftest's rdma_cm does not connect uc"
    if test.get("tos") is not None and not managed:
        yield "perftest takes tos with rdma_cm only; use traffic_class"


def _lacks(test: SuiteTest, host: Host) -> str | None:
    if host.devices:
        return None
    return "names no RDMA device (perch_devices), and perftest would take any"


# ---- its commands --------------------------------------------------------------------------------


def _program(test: SuiteTest) -> str:
    verb = "atomic" if test.op in ATOMICS else test.op
    return f"ib_{verb}_{'lat' if test.kind == 'latency' else 'bw'}"


def _length(test: SuiteTest) -> list[str]:
    duration, size = test.get("duration"), test.params["size"]
    words = ["-a"] if size == "all" else ["-s", str(units.size_bytes(size))]
    if duration is None:
        return [*words, "-n", units.shown(test.params["iterations"])]
    seconds, margin = units.seconds(duration), _margin(test)
    return [*words, "-D", units.shown(seconds), "-f", units.shown(margin)]


def _options(test: SuiteTest) -> list[str]:
    """What both ends share. -F: go on where the CPU's frequency is not at its top."""
    relaxed = test.params.get("relaxed_ordering")
    return [
        *("-F", "-c", test.get("connection", "rc").upper()),
        *_length(test),
        *flag("-q", test.get("queue_pairs")),
        *flag("-t", test.get("tx_depth")),
        *flag("-l", test.get("batch")),
        *flag("-Q", test.get("cq_moderation")),
        *flag("-I", test.get("inline")),
        *flag("-m", test.get("mtu")),
        *flag("-S", test.get("sl")),
        *flag("--tclass", test.get("traffic_class")),
        *flag("-T", test.get("tos")),
        *flag("-u", test.get("timeout_exponent")),
        *flag("-e", test.get("completion") == "event"),
        *flag("--use-srq", test.get("srq")),
        # its default is on, the engine's off
        *flag("--disable_pcie_relaxed", relaxed is False),
        *flag("-R", test.get("rdma_cm")),
        *flag("-b", test.get("bidirectional")),
        *flag("--report_gbits", test.get("report_gbits")),
    ]


def _template(test: SuiteTest, devices: int) -> Template:
    """--ipv6-addr: the server's address is one of IPv6, which versions before 23.07 cannot use."""

    def end(role: str) -> list[Word]:
        device = f"{role}.device"
        return [
            _program(test),
            *("-d", f"{{{device}.name}}"),
            *("-i", f"{{{device}.ib_port=1}}"),
            ["-x", f"{{{device}.gid_index}}"],
        ]

    shared: list[Word] = [
        *("-p", "{server.ports.perftest}"),
        *flag("-A", ATOMICS.get(test.op)),
        *_options(test),
        ["--ipv6-addr{server.is_ipv6}"],
    ]
    return Template([*end("client"), *shared, "{server.address}"], [*end("server"), *shared])


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    """Iterations are of each queue pair."""
    duration = test.get("duration")
    if duration is not None:
        return units.seconds(duration)
    both = 2 if test.get("bidirectional") is True else 1
    total = sum(cost(size) for size in _sizes(test))
    messages: int = test.params["iterations"] * test.get("queue_pairs", 1) * both
    return total * messages


def _expect(test: SuiteTest, devices: int) -> list[Expect]:
    return [Expect(size_bytes=size) for size in _sizes(test)]


# ---- what its output must state ------------------------------------------------------------------


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _queue_wants(test: SuiteTest) -> Iterator[Want]:
    """perftest lowers depth and moderation to the messages, and moderation to the depth."""
    messages, batch = count(test, "iterations"), count(test, "batch")
    depth, moderation = count(test, "tx_depth"), count(test, "cq_moderation")
    if depth is not None and (batch or 1) <= depth:
        yield Want("outstanding", _least(depth, messages), True)
    yield Want("batch", batch, True)
    by_default = DEPTH if test.kind == "bandwidth" and test.op in ("send", "write") else None
    deep = depth or by_default
    if moderation is not None and deep is not None:
        yield Want("cq_moderation", _least(moderation, deep, messages), True)


def _wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    """Beside its queue pairs and devices an output may leave all of it out."""
    managed = test.get("rdma_cm") is True
    yield Want("op", test.op)
    yield Want("kind", test.kind)
    yield Want("bidirectional", test.get("bidirectional") is True)
    yield Want("completion", test.get("completion", "busy"))
    yield Want("queue_pairs", count(test, "queue_pairs", 1))
    yield Want("connection", test.get("connection", "rc").upper(), True)
    yield from _queue_wants(test)
    yield Want("inline_bytes", count(test, "inline"), True)
    yield Want("gid_index", ends.first("client", "gid_index"), True)
    yield layer_want(ends)
    if not managed:
        yield Want("mtu_bytes", count(test, "mtu"), True)
    yield Want("srq", test.get("srq") is True, True)
    yield Want("rdma_cm", managed, True)
    if test.params.get("relaxed_ordering") is False:
        yield Want("relaxed_ordering", False, True)
    yield from named_first(ends)
    yield Want("client.port", ends.first("client", "ib_port") or 1, True)
    yield Want("server.port", ends.first("server", "ib_port") or 1, True)


def _lasts(test: SuiteTest) -> float | None:
    """Its duration without what is left out at both ends."""
    duration = duration_s(test)
    return None if duration is None else duration - 2 * _margin(test)


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    expect=_expect,
    wants=_wants,
    lasts=_lasts,
    carrier=lambda test: "rdma",
    lacks=_lacks,
    by_rail=lambda test: True,
)
