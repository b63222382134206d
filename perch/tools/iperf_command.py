"""iperf's and iperf3's tests: one size, one way, for a time."""

from __future__ import annotations

from collections.abc import Iterator

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import SuiteTest
from perch.tools.command import Command, Cost, Ends, Template, Want, Word, count, duration_s, flag

#: iperf3's own MAX_STREAMS (iperf_api.h).
MAX_STREAMS = 128


def _refusals(test: SuiteTest) -> Iterator[str]:
    if test.backend is not None or test.provider is not None or test.op != "send":
        yield f"{test.tool} has no backend, provider or op"
    if test.tool != "iperf3" and test.get("omit") is not None:
        yield "omit is iperf3's"
    if len(units.sizes(test.params["size"])) != 1:
        yield f"{test.tool} measures one size a test"
    if test.get("duration") is None:
        yield f"{test.tool} needs a duration"
    streams = test.params.get("streams", 1)
    if type(streams) is not int or not 1 <= streams <= MAX_STREAMS:
        yield f"streams is {streams!r}; give a whole number from 1 to {MAX_STREAMS}"


def _client(test: SuiteTest) -> list[Word]:
    return [test.tool, "-c", "{server.address}", "-B", "{client.address}"]


def _load(test: SuiteTest) -> list[Word]:
    """A stream's blocks, seconds and number."""
    seconds = units.seconds(test.params["duration"])
    size = units.size_bytes(test.params["size"])
    return [
        *("-l", str(size)),
        *("-t", units.shown(seconds)),
        *("-P", units.shown(test.get("streams", 1))),
    ]


def _iperf3(test: SuiteTest, devices: int) -> Template:
    omit = test.get("omit")
    port: list[Word] = ["-p", "{server.ports.iperf3}"]
    return Template(
        client=[
            *_client(test),
            *port,
            "-J",
            *_load(test),
            *flag("-O", None if omit is None else units.seconds(omit)),
        ],
        server=["iperf3", "-s", "-1", "-B", "{server.address}", *port, "-J"],
    )


def _iperf(test: SuiteTest, devices: int) -> Template:
    """-e: initial round trip and window; -i 1: a line a second; -V: an address of IPv6."""
    shared: list[Word] = ["-p", "{server.ports.iperf}", "-e", "-i", "1"]
    family: list[Word] = [["-V{server.is_ipv6}"]]
    return Template(
        client=[*_client(test), *shared, *_load(test), *family],
        server=["iperf", "-s", "-B", "{server.address}", *shared, *family],
    )


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    return units.seconds(test.params["duration"]) + units.seconds(test.get("omit", 0))


def _wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    yield Want("kind", test.kind)
    yield Want("duration_s", duration_s(test))
    yield Want("queue_pairs", count(test, "streams", 1))
    yield Want("paced", False)  # no test has a rate of its own
    if test.tool == "iperf3":
        yield Want("bidirectional", False)
        yield Want("reverse", False)


IPERF3 = Command(template=_iperf3, measuring=_measuring, refusals=_refusals, wants=_wants)
IPERF = Command(template=_iperf, measuring=_measuring, refusals=_refusals, wants=_wants)
