"""Lays out a large run, as the agents of so many hosts would have left it: report_run.py DIR.

DIR/plan.json is there. Every flow is the recorded one of tests/fixtures/rxe (verbs, with what both
hosts' devices counted) with latencies, a histogram and times of its own, and one in a thousand has
a fault. Rounds follow each other, and a host's counters go on from flow to flow. Every host is the
recorded one, with a host check. Seeded: the same plan gives the same run.
"""

import base64
import collections
import itertools
import json
import pathlib
import random
import re
import struct
import sys
import uuid
import zlib

import msgspec
import numpy as np

from perch.judge import planned
from perch.model import histogram
from perch.model.moments import moment
from perch.soak.moments import dated
from perch.plan import flows as plan_flows
from tests.raw_lines import End, HostFiles, Walk

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
RECORDED = FIXTURES / "rxe" / "run"
FLOW = "verbs-send-latency/alpha/beta/0/1"

# Of round trips: the median in ns, the spread of flows (under the 5 % from which a figure counts as
# unstable) and of samples.
MEDIAN_NS, FLOWS, SAMPLES = 4_800_000, 0.02, 0.1
# One flow of so many has a fault.
FAULTY = 1000
# Seconds from one round to the next: the recorded flow takes 18.4 s of both hosts.
ROUND_S = 20

# TCP segments that each recorded host sent again during the flow.
SEGMENTS = {"client": 1, "server": 2}

encode = msgspec.json.encode


def load(path):
    return json.loads(path.read_text())


def line_of(document):
    return encode(document) + b"\n"


# ---- a histogram ---------------------------------------------------------------------------------


def place_of(value):
    """Where HdrHistogram counts so many ns: perch.model.histogram describes the layout."""
    bucket = max(value.bit_length() - histogram.HALF_BITS - 1, 0)
    return (bucket << histogram.HALF_BITS) + (value >> bucket)


def leb128(value):
    """ZigZag LEB128."""
    left, out = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def encoded(places):
    """The text of a histogram of samples at these places, in order."""
    counts, end = bytearray(), 0
    for place in sorted(set(places)):
        if place > end:
            counts += leb128(end - place)
        counts += leb128(places.count(place))
        end = place + 1
    layout = histogram.DIGITS, 1, histogram.HIGHEST_NS, 1.0
    header = struct.pack(">IIIIQQd", 0x1C849313, len(counts), 0, *layout)
    packed = zlib.compress(header + counts)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


# ---- a flow --------------------------------------------------------------------------------------


def later(document, seconds):
    """The recorded times, so much later."""
    wall = {
        key: dated(moment(document[key]) + seconds)
        for key in ("started", "ended")
        if document.get(key)
    }
    clocks = ("started_monotonic_ns", "ended_monotonic_ns")
    return wall | {key: document[key] + round(seconds * 1e9) for key in clocks if key in document}


def read_at(reading, seconds, counts):
    """A reading of a host at a moment: what does not count stands at 0."""
    if "monotonic_ns" in reading:
        reading["monotonic_ns"] += round((seconds - float(reading["time_s"])) * 1e9)
    reading["time_s"] = f"{seconds:.6f}"
    reading["host"]["TcpRetransSegs"] = str(counts["TcpRetransSegs"])
    for table in (reading["netdev"]["eth1"], reading["rdma"]["rxe0/1"]["counters"]):
        for name in table:
            table[name] = str(counts.get(name, 0))


def moved(packets, size, segments):
    """What one flow moves at either end."""
    octets = packets * (size + 100) + 20000
    return (
        dict.fromkeys(("rx_bytes", "tx_bytes"), octets)
        | dict.fromkeys(("rx_packets", "tx_packets"), packets + 90)
        | dict.fromkeys(("sent_pkts", "rcvd_pkts"), packets)
        | dict.fromkeys(("rdma_sends", "rdma_recvs"), packets // 2)
        | {"TcpRetransSegs": segments}
    )


def counts_of(rng):
    """What a host has counted before its first flow."""
    return dict.fromkeys(moved(0, 0, 0), rng.randrange(10**6, 10**12)) | {"TcpRetransSegs": 0}


class Flows:
    """Writes flows; what does not change from flow to flow is read once."""

    def __init__(self, plan, counts, files):
        self.plan, self.counts, self.files, self.rng = plan, counts, files, random.Random(1)
        self.recorded = {
            role: End(RECORDED, FLOW, role).document() for role in ("client", "server")
        }
        self.line = End(RECORDED, FLOW).lines()[0]
        self.started = self.line["started"]
        self.read_at = {
            (role, name): float(end["counters"][name]["time_s"])
            for role, end in self.recorded.items()
            for name in ("before", "after")
        }
        self.ends = {role: dict(end) for role, end in self.recorded.items()}
        params = self.line["params"]
        self.measured, self.messages = params["iterations"], params["iterations"] + params["warmup"]

    def end(self, flow, role, size, since):
        document, recorded = dict(self.ends[role]), self.recorded[role]
        document["id"] = flow.id
        document.update(later(recorded, since))
        if role == "client":
            document["argv"] = [*flow.client_argv, "--port", "18600"]
        counters, counts = document["counters"], self.counts[flow.host(role)]
        read_at(counters["before"], self.read_at[role, "before"] + since, counts)
        # a message and its acknowledgement each way
        for name, n in moved(2 * self.messages, size, SEGMENTS[role]).items():
            counts[name] += n
        read_at(counters["after"], self.read_at[role, "after"] + since, counts)
        return document

    def printed(self, flow, size, since):
        """The engine's line, whose figures are those of its histogram."""
        rng, line, n = self.rng, self.line, self.measured
        middle = MEDIAN_NS * rng.gauss(1, FLOWS)
        samples = sorted(int(middle * max(rng.gauss(1, SAMPLES), 0.1)) for _ in range(n))
        mean = sum(samples) / n
        figures = {
            "min": samples[0],
            "max": samples[-1],
            "mean": mean,
            "stddev": (sum((one - mean) ** 2 for one in samples) / (n - 1)) ** 0.5,
            "p50": int(histogram.highest(np.int64(place_of(samples[n // 2 - 1])))),
        }
        line["latency_us"].update({name: round(value / 2000, 6) for name, value in figures.items()})
        line["histogram"]["data"] = encoded([place_of(one) for one in samples])
        line["elapsed_s"] = sum(samples) / 1e9
        line["started"] = dated(moment(self.started) + since)
        line["params"]["size_bytes"] = size
        octets = self.messages * size
        line["path"] = dict.fromkeys(("client_sent_bytes", "client_received_bytes"), octets)
        line["path"]["claimed_bytes"] = 2 * octets
        payload_gb = line["latency_us"]["count"] * size / 1e9  # without the warm-up's
        for role in ("client", "server"):
            line["cpu"][f"{role}_s_per_gb"] = line["cpu"][f"{role}_s"] / payload_gb
        for role in ("client", "server"):
            host = flow.host(role)
            line[role].update(host=host, address=self.plan.hosts[host].address)
        return line_of(line)

    def write(self, number, flow, since):
        """`since`: seconds from the first round to this one."""
        (size,) = (one.size_bytes for one in flow.expect)
        client = self.end(flow, "client", size, since)
        client["stdout"] = self.printed(flow, size, since).decode()
        server = self.end(flow, "server", size, since)
        if number % FAULTY == FAULTY - 1:
            FAULTS[number // FAULTY % len(FAULTS)](client, server)
        self.files[flow.client].end(client)
        if server:
            self.files[flow.server].end(server)


# ---- one of its faults ---------------------------------------------------------------------------


def truncated(client, _server):
    client["stdout"] = client["stdout"][:200]


def ended(client, _server):
    client.update(exit=4, stdout="", stderr="perch: timeout\n")


def unserved(_client, server):
    server.clear()


def standing_still(client, _server):
    counters = client["counters"]
    clocks = {key: counters["after"][key] for key in ("time_s", "monotonic_ns")}
    after = counters["before"] | clocks
    client["counters"] = counters | {"after": after}


FAULTS = truncated, ended, unserved, standing_still


# ---- a host --------------------------------------------------------------------------------------


# The addresses of the recorded host, and where address and number of another one stand in its own.
ADDRESSES = {
    r"\b192\.0\.2\.2\b": "{0}",
    r"\bfd00::2\b": "fd00::{1:x}",
    r"\bc000:0202\b": "c612:{1:04x}",
    r"\b00fc:00ff:fe00:0001\b": "00fc:00ff:fe00:{1:04x}",
    r"\bfc:ff:fe00:1\b": "fc:ff:fe00:{1:x}",
    r"\b02:fc:00:00:00:01\b": "02:fc:00:00:{2:02x}:{3:02x}",
}


def checked(address):
    """What host-check printed, with the two things that it reads of every host."""
    text = (FIXTURES / "hosts/nic-rxe.json").read_text()
    high, low = map(int, address.split(".")[2:])
    for recorded, own in ADDRESSES.items():
        text = re.sub(recorded, own.format(address, high * 256 + low, high, low), text)
    document = json.loads(text)
    document["files"]["/proc/uptime"] = "864000.00 1728000.00"
    kernel = {"argv": ["uname", "-sr"], "exit": 0, "stdout": "Linux 6.1.0", "stderr": ""}
    document["commands"]["kernel"] = kernel
    return document


def write_host(root, name, plan, flows, counts):
    place = root / "raw" / name
    place.mkdir(parents=True)
    recorded = Walk(RECORDED / "raw/alpha")
    agent = recorded.agent | {"run": plan.run, "host": name}
    agent |= {"flows_total": flows, "flows_done": flows}
    agent["ended"] = later(agent, ROUND_S * len(plan.rounds))["ended"]
    agent["plan_sha256"] = plan.sha256
    files = HostFiles(place, agent)
    environment = load(RECORDED / "raw/alpha/environment.json") | {"host": name, "hostname": name}
    environment["run"] = plan.run
    environment["boot_id"] = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
    idle = recorded.idle()
    environment["idle_samples"] = []
    for one in ("before", "after"):
        read_at(idle[one], float(idle[one]["time_s"]), counts)
        environment["idle_samples"].append(files.sample(idle[one]))
    check = checked(plan.hosts[name].address) | {"hostname": name, "collected": plan.created}
    for file, document in (("environment", environment), ("host_check", check)):
        (place / f"{file}.json").write_bytes(line_of(document))
    wanted = root / "inputs/hosts"
    wanted.mkdir(parents=True, exist_ok=True)
    document = {"schema": "perch.wanted/1", "host": name, "wanted": {}}
    (wanted / f"{name}.json").write_bytes(line_of(document))
    return files


def main():
    root = pathlib.Path(sys.argv[1])
    plan = planned.read_plan(root / "plan.json")
    plan_flows.Flows(plan).fill(plan.flows())
    of_host = collections.Counter(
        name for flow in plan.flows() for name in {flow.client, flow.server}
    )
    rng = random.Random(2)
    counts = {name: counts_of(rng) for name in plan.hosts}
    files = {
        name: write_host(root, name, plan, of_host[name], counts[name]) for name in plan.hosts
    }
    flows = Flows(plan, counts, files)
    number = itertools.count()
    for turn, of_turn in enumerate(plan.rounds):
        for flow in of_turn.flows:
            flows.write(next(number), flow, ROUND_S * turn)
    for one in files.values():
        one.close()


main()
