"""Where and when flows were measured: other ends, another time, copies."""

from selftest.edits import content, edit, later, line, put, replaced, rewrite, where
from selftest.fault import INCONCLUSIVE, PASS, fault
from selftest.faults.flows import END, IPERF3, LATENCY, OF_IPERF3, OF_LATENCY, SERVED, SERVERS
from selftest.files import Document


def first_twice(lines: list[Document]) -> list[Document]:
    own = {name: lines[1][name] for name in ("params", "started")}
    return [lines[0], lines[0] | own, *lines[2:]]


FAULTS = (
    fault(
        "swapped-ends",
        "rxe",
        INCONCLUSIVE,
        "flow/verbs-send-latency/alpha/beta/0/1 coverage",
        "an output whose ends are swapped",
        edit(
            "raw/alpha/flows/verbs-send-latency/alpha/beta/0/1/client.stdout",
            put("client.host", "beta"),
            put("server.host", "alpha"),
        ),
    ),
    fault(
        "other-interface",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a socket of another interface than the one with its host's address",
        edit(f"{LATENCY}/client.stdout", put("client.device", "eth1")),
    ),
    fault(
        "other-address",
        "loopback",
        INCONCLUSIVE,
        "flow/ofi-bandwidth/alpha/beta/0/1 coverage",
        "a socket below libfabric with another address than its host has",
        edit(
            "raw/alpha/flows/ofi-bandwidth/alpha/beta/0/1/client.stdout",
            put("server.address", "127.0.0.3"),
        ),
    ),
    fault(
        "overlapping-sizes",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a size that began a tenth of a second before the one before it was over",
        edit(
            f"{LATENCY}/client.stdout",
            where(lambda line: line["params"]["size_bytes"] == 64, later(-0.1)),
        ),
    ),
    fault(
        "processors",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "more CPU time than the host's two processors have",
        edit(f"{LATENCY}/client.stdout", put("cpu.client_s", 20)),
    ),
    fault(
        "simulated-line",
        "loopback",
        INCONCLUSIVE,
        "simulated",
        "a simulated result of a flow that was planned as software",
        edit(f"{LATENCY}/client.stdout", put("simulated", True)),
    ),
    fault(
        "said-nonetheless",
        "loopback",
        PASS,
        "said",
        "a client that exited 0 and wrote to standard error",
        line(f"{LATENCY}/client.stderr", "WARNING: something is wrong"),
    ),
    fault(
        "other-server",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "an output of another server",
        edit(f"{LATENCY}/client.stdout", put("server.address", "127.0.0.3")),
    ),
    fault(
        "elsewhere",
        "loopback",
        INCONCLUSIVE,
        OF_IPERF3,
        "iperf3 that connected to another host",
        edit(f"{IPERF3}/client.stdout", put("start.connected.0.remote_host", "127.0.0.3")),
    ),
    fault(
        "reversed",
        "loopback",
        INCONCLUSIVE,
        OF_IPERF3,
        "iperf3 whose server sent the payload",
        edit(f"{IPERF3}/client.stdout", put("start.test_start.reverse", 1)),
    ),
    fault(
        "before-plan",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a flow that was measured a month before its plan",
        edit(
            END,
            put("started", "2026-10-21T08:04:11.928Z"),
            put("ended", "2026-10-21T08:04:13.183Z"),
        ),
        edit(
            SERVED,
            put("started", "2026-10-21T08:04:11.488Z"),
            put("ended", "2026-10-21T08:04:13.626Z"),
        ),
        replaced(f"{LATENCY}/client.stdout", '"2026-11-21', '"2026-10-21'),
    ),
    fault(
        "outside-agent",
        "loopback",
        INCONCLUSIVE,
        f"{OF_LATENCY} turns",
        "an agent that ended before its flow did",
        edit(
            END,
            put("started", "2026-11-21T08:05:11.928Z"),
            put("ended", "2026-11-21T08:05:13.183Z"),
        ),
    ),
    fault(
        "no-start",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a flow that does not say when it started",
        edit(END, put("started", None)),
    ),
    fault(
        "lasted-longer",
        "loopback",
        INCONCLUSIVE,
        f"{OF_LATENCY} turns",
        "a flow that ended long after its measured time",
        edit(SERVED, put("ended", "2026-11-21T08:04:41.000Z")),
    ),
    fault(
        "environment-foreign",
        "rxe",
        INCONCLUSIVE,
        "host/beta",
        "an environment of another host",
        edit("raw/beta/environment.json", put("host", "alpha")),
    ),
    fault(
        "other-version",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "an output of another version than the host has",
        edit(f"{LATENCY}/client.stdout", put("tool.version", "0.0.9")),
    ),
    fault(
        "versions-differ",
        "loopback",
        PASS,
        "versions",
        "a server with another version of libfabric",
        edit("raw/beta/environment.json", put("versions.libfabric", "2.1.0")),
    ),
    fault(
        "copied",
        "loopback",
        INCONCLUSIVE,
        "copies",
        "one output that is counted as two repeats",
        content(
            f"{LATENCY}/client.stdout", "raw/alpha/flows/tcp-latency/alpha/beta/0/2/client.stdout"
        ),
        edit(f"{LATENCY}/client.stdout", later(-36.026)),
    ),
    fault(
        "other-stream",
        "loopback",
        INCONCLUSIVE,
        "flow/iperf-streams/alpha/beta/0/1 coverage",
        "iperf with one stream to another host",
        replaced(
            "raw/alpha/flows/iperf-streams/alpha/beta/0/1/client.stdout",
            r"^(\[  2\] local .* with) 127.0.0.2",
            r"\1 127.0.0.3",
        ),
    ),
    fault(
        "other-client",
        "loopback",
        INCONCLUSIVE,
        OF_IPERF3,
        "a server of iperf3 that another client measured",
        replaced(f"{SERVERS}/iperf3/alpha/beta/0/1/server.stdout", "54775", "54776"),
    ),
    fault(
        "other-server-command",
        "loopback",
        INCONCLUSIVE,
        OF_IPERF3,
        "a server with another command than planned",
        edit(f"{SERVERS}/iperf3/alpha/beta/0/1/server.json", put("argv", ["iperf3", "-s"])),
    ),
    fault(
        "received-less",
        "loopback",
        INCONCLUSIVE,
        OF_IPERF3,
        "a server that received a thousandth of what its client reports",
        replaced(f"{SERVERS}/iperf3/alpha/beta/0/1/server.stdout", "5295308800", "5295308"),
    ),
    fault(
        "environment-of-last-month",
        "loopback",
        INCONCLUSIVE,
        "host/beta",
        "an environment that was collected a month before the plan",
        edit("raw/beta/environment.json", put("collected", "2026-10-21T08:04:11.131Z")),
    ),
    fault(
        "copied-size",
        "loopback",
        INCONCLUSIVE,
        "copies",
        "a line that is counted as two sizes",
        rewrite(f"{LATENCY}/client.stdout", first_twice),
    ),
    fault(
        "two-at-once",
        "loopback",
        INCONCLUSIVE,
        "turns",
        "two rounds of a host that ran at the same time",
        edit(END, later(2.5)),
        edit(f"{LATENCY}/client.stdout", later(2.5)),
        edit(SERVED, later(2.5)),
    ),
)
