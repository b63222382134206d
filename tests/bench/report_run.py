#!/usr/bin/env python3
"""Lays a large run into a folder, as the agents of so many hosts would have left it: report_run.py DIR <plan.json

DIR gets plan.json as it came, inputs/ and raw/. Every flow is the recorded one of tests/fixtures/rxe (64 bytes, verbs, with
its histogram and what both hosts' devices counted) with figures, counters and times of its own; every host is the recorded
one, with a host check. Seeded: the same plan gives the same run.
"""

import json
import pathlib
import random
import sys

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"
RECORDED = FIXTURES / "rxe" / "run"
FLOW = "flows/verbs-send-latency/alpha/beta/1"
SPREAD = 0.02  # of latencies, from flow to flow: under the 5 % from which a figure counts as unstable


def load(path):
    return json.loads(path.read_text())


def moved(counters, start, packets):
    """Both readings of one end: counts that begin anywhere, and what this one flow of 64 bytes moves."""
    flow = {"rx_bytes": 40000, "tx_bytes": 40000, "rx_packets": packets + 90, "tx_packets": packets + 90}
    rdma = {"sent_pkts": packets, "rcvd_pkts": packets, "rdma_sends": packets // 2, "rdma_recvs": packets // 2}
    before, after = counters["before"], counters["after"]
    for reading, times in ((before, 0), (after, 1)):
        for table, deltas in ((reading["netdev"]["eth1"], flow), (reading["rdma"]["rxe0/1"]["counters"], rdma)):
            for name in deltas:
                table[name] = str(start + times * deltas[name])
            for name in table:
                if name not in deltas:
                    table[name] = before["netdev"]["eth1"].get(name, "0") if table is reading["netdev"]["eth1"] else "0"
    after["time_s"] = f"{float(before['time_s']) + 2.5:.6f}"


class Host:
    """Writes one host's folder; what does not change from flow to flow is read once."""

    recorded = {
        "client": load(RECORDED / "raw/alpha" / FLOW / "client.json"),
        "server": load(RECORDED / "raw/beta" / FLOW / "server.json"),
    }
    line = json.loads((RECORDED / "raw/alpha" / FLOW / "client.stdout").read_text().splitlines()[0])
    words = (RECORDED / "raw/alpha" / FLOW / "client.stderr").read_text()
    packets = 2 * (line["params"]["iterations"] + line["params"]["warmup"])  # a message and its acknowledgement each

    @classmethod
    def side(cls, flow, role, run, rng):
        document = cls.recorded[role]
        document.update(run=run, flow=flow["id"], host=flow[role])
        if role == "client":
            document["argv"] = flow["client_argv"] + ["--port", "18600"]
        moved(document["counters"], rng.randrange(10**6, 10**12), cls.packets)
        return json.dumps(document, **layout)

    @classmethod
    def printed(cls, flow, hosts, rng):
        line, factor = cls.line, rng.gauss(1, SPREAD)
        for end in ("client", "server"):
            line[end].update(host=flow[end], address=hosts[flow[end]]["address"])
        latency = {"min": 633.646, "max": 13095.123, "mean": 2454.77889, "stddev": 2789.22264, "p50": 1184.7675}
        line["latency_us"].update({key: round(value * factor, 6) for key, value in latency.items()})
        line["elapsed_s"] = round(0.245534099 * factor, 9)
        return json.dumps(line, separators=(",", ":")) + "\n"


# As the agent writes them (jq): one line a file.
layout = {"separators": (",", ":")}


def write_flow(root, flow, plan, rng):
    for role in ("client", "server"):
        place = root / "raw" / flow[role] / "flows" / flow["id"]
        place.mkdir(parents=True)
        (place / f"{role}.json").write_text(Host.side(flow, role, plan["run"], rng) + "\n")
    place = root / "raw" / flow["client"] / "flows" / flow["id"]
    (place / "client.stdout").write_text(Host.printed(flow, plan["hosts"], rng))
    (place / "client.stderr").write_text(Host.words)


def checked():
    """What host-check printed, with the two things that it reads of every host."""
    document = load(FIXTURES / "hosts/nic-rxe.json")
    document["files"]["/proc/uptime"] = "864000.00 1728000.00"
    document["commands"]["kernel"] = {"argv": ["uname", "-sr"], "exit": 0, "stdout": "Linux 6.1.0", "stderr": ""}
    return document


def write_host(root, name, plan):
    place = root / "raw" / name
    place.mkdir(parents=True)
    agent = load(RECORDED / "raw/alpha/agent.json") | {"run": plan["run"], "host": name}
    environment = load(RECORDED / "raw/alpha/environment.json") | {"host": name, "hostname": name}
    check = checked() | {"hostname": name, "collected": plan["created"]}
    for file, document in (("agent", agent), ("environment", environment), ("host_check", check)):
        (place / f"{file}.json").write_text(json.dumps(document) + "\n")
    wanted = root / "inputs/hosts"
    wanted.mkdir(parents=True, exist_ok=True)
    (wanted / f"{name}.json").write_text(json.dumps({"schema": "perch.wanted/1", "host": name, "wanted": {}}) + "\n")


def main():
    root = pathlib.Path(sys.argv[1])
    text = sys.stdin.read()
    (root / "plan.json").write_text(text)
    plan, rng = json.loads(text), random.Random(1)
    (root / "inputs").mkdir()
    (root / "inputs/limits.json").write_text((RECORDED / "inputs/limits.json").read_text())
    for name in plan["hosts"]:
        write_host(root, name, plan)
    for turn in plan["rounds"]:
        for flow in turn["flows"]:
            write_flow(root, flow, plan, rng)


main()
