#!/usr/bin/env python3
"""Composes a soak without running it.

    tests/soak_compose.py DIR [--hosts 2] [--duration 3600] [--interval 60] [--seed 1]
        [--mode mixed] [--turn 600] [--backend tcp] [--plant FAULT[=VALUE]@FROM[-TO][:FLOW]]...
        [--running S] [--stopped S] [--level NOISE]

DIR gets plan.json, inputs/ and raw/, as the agents of so many hosts leave them. Lines are those
that the engine wrote (tests/fixtures/soak) with times and figures of their own; the run's name
says that it is composed. Each host sends to the next: bandwidth, verified bandwidth, and latency.
Seeded: the same arguments give the same run. Times of --plant are seconds since the soak began,
FLOW is the place of a flow in the plan, from 0 (default 0), or of a host for what hosts have:

  of a flow: gap stall drift=SHARE step=SHARE slow=FACTOR flip tenfold missing double long foreign
             junk dropped half edited
  of a host: leak=MB_PER_HOUR handles=PER_HOUR counter=NAME flap clock=SECONDS reboot nosample
             hot=CELSIUS
"""

import argparse
import hashlib
import json
import pathlib
import random
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "self-test"), str(HERE.parent)]
from tests import spelled  # noqa: E402
from tests.soak_flow import EPOCH, FIXTURES, TESTS, UPTIME, Flow, Plant, wall  # noqa: E402

RECORDED = FIXTURES / "loopback/run/raw/alpha"
MB = 2**20


def load(path):
    return json.loads(path.read_text())


def params(test, o):
    """As the planner has them of a soak."""
    return {
        "size": test["size"],
        "rate": test["rate"],
        **test["more"],
        "completion": "event",
        "duration": "{round.seconds}s",
        "interval": f"{o.interval}s",
        "stall": "20ms",
        "reconnect": "10m",
        "soak": "client.soak",
    }


def planned_flow(test, client, server, repeat, seconds, o):
    return {
        "id": f"{test['name']}/{client}/{server}/0/{repeat}",
        "test": test["name"],
        "title": test["name"],
        "repeat": repeat,
        "tool": "perch",
        "backend": o.backend,
        "provider": None,
        "op": "send",
        "kind": test["kind"],
        "client": client,
        "server": server,
        "scope": "software",
        "params": params(test, o),
        "ready": None,
        "deadline_s": seconds + 630,
        "estimate_s": seconds,
        "expect": [{"size_bytes": test["bytes"]}],
    }


def planned(o):
    """plan.json as the planner makes it."""
    names = [f"node{i + 1}" for i in range(o.hosts)]
    hosts = {
        name: {
            "address": f"192.0.2.{i + 1}",
            "group": None,
            "fabric": "ethernet",
            "scope": "software",
            "backends": [o.backend],
            "tools": ["perch"],
            "devices": [],
            "port": 18600,
            "ports": [18600],
        }
        for i, name in enumerate(names)
    }
    turns = 1 if o.mode == "mixed" else -(-o.duration // o.turn)
    rounds = []
    for turn in range(turns):
        seconds = o.duration if o.mode == "mixed" else min(o.turn, o.duration - turn * o.turn)
        flows = []
        for test in TESTS if o.mode == "mixed" else TESTS[turn % len(TESTS) :][:1]:
            for i, client in enumerate(names):
                server = names[(i + 1) % len(names)]
                flows.append(planned_flow(test, client, server, turn + 1, seconds, o))
        rounds.append({"flows": flows})
    return {
        "run": o.run,
        "created": wall(EPOCH - 60),
        "limits": "fixture",
        "suite": {"name": "soak-composed", "title": "Composed, and never measured"},
        "hosts": hosts,
        "host_checks": False,
        "excluded": [],
        "soak": {
            "duration_s": o.duration,
            "interval_s": o.interval,
            "stall_s": 0.02,
            "reconnect_s": 600,
            "mode": o.mode,
            "turn_s": None if o.mode == "mixed" else o.turn,
        },
        "rounds": rounds,
    }


def counters(elapsed, host, plants, o):
    """Since boot, as text; some that stand still as on real hosts."""
    packets = int(elapsed * 90000) + 10**7
    table = {
        "rx_bytes": 10**9 + int(elapsed * 75e6),
        "tx_bytes": 10**9 + int(elapsed * 75e6),
        "rx_packets": packets,
        "tx_packets": packets,
        "carrier_down_count": 1,
    }
    table |= dict.fromkeys(
        (
            "rx_errors",
            "tx_errors",
            "rx_dropped",
            "tx_dropped",
            "rx_missed_errors",
            "rx_fifo_errors",
            "rx_over_errors",
            "rx_crc_errors",
            "rx_frame_errors",
            "rx_length_errors",
            "tx_aborted_errors",
            "tx_carrier_errors",
            "tx_fifo_errors",
            "collisions",
            "multicast",
            "rx_nohandler",
            "aer_correctable",
            "aer_nonfatal",
            "aer_fatal",
        ),
        0,
    )
    table |= (
        {f"rx_prio{i}_{what}": 0 for i in range(8) for what in ("pause", "discards")}
        if o.cards
        else {}
    )
    for plant in plants:
        if plant.kind == "counter" and elapsed > plant.begin:
            table[plant.value or "rx_crc_errors"] += 7
        if plant.kind == "flap" and elapsed > plant.begin:
            table["carrier_down_count"] += 1
    return {name: str(value) for name, value in table.items()}


def processes(flows, host, at, plants, rng):
    boot = sum(1 for p in plants if p.kind == "reboot" and at > p.begin)
    born = max([0.0] + [p.until(60) for p in plants if p.kind == "reboot" and at > p.begin])
    roles = [("serve", None, 5), ("agent", None, 7)]
    for flow in flows:
        if flow["client"] == host:
            roles += [("keeper", flow["id"], 5), ("measurer", flow["id"], 7)]
        if flow["server"] == host:
            roles.append(("job", None, 8))
    for i, (role, flow, mb) in enumerate(roles):
        memory = mb * MB + 4096 * rng.randrange(0, 3) + int(min(at - born, 120) * 1000)
        handles = 8 + (rng.random() < 0.1)
        if role == "serve":
            memory += int(
                sum(
                    p.number(10) * max(0, at - max(p.begin, born)) / 3600
                    for p in plants
                    if p.kind == "leak"
                )
                * MB
            )
            handles += int(
                sum(
                    p.number(60) * max(0, at - p.begin) / 3600
                    for p in plants
                    if p.kind == "handles"
                )
            )
        yield {
            "role": role,
            **({"flow": flow} if flow else {}),
            "pid": 1000 + 100 * boot + i,
            "start": str(100000 + i),
            "resident_bytes": memory,
            "handles": handles,
        }


def samples(host, flows, o, plants):
    """A layout, and samples after it."""
    rng = random.Random(f"{o.seed} {host}")
    ends = min(x for x in (o.duration, o.running, o.stopped) if x is not None)
    at, number, boots = 0.0, 0, 0
    while at <= ends + 1:
        down = next((p for p in plants if p.kind == "reboot" and p.begin <= at < p.until(60)), None)
        if down:
            at = down.until(60) + 2
            boots += 1
            continue
        missing = any(p.kind == "nosample" and p.begin <= at < p.until(o.duration) for p in plants)
        late = at + rng.uniform(0, 0.004)
        flaps = sum(2 for p in plants if p.kind == "flap" and at > p.begin)
        stepped = sum(p.number(5) for p in plants if p.kind == "clock" and at >= p.begin)
        hot = max([45.0] + [p.number(95) for p in plants if p.kind == "hot" and at > p.begin])
        begun = (
            max([0.0] + [p.until(60) for p in plants if p.kind == "reboot" and at > p.begin])
            if boots
            else -UPTIME
        )
        table = counters(late - (begun if boots else 0), host, plants, o)
        if not missing:
            number += 1
            if number == 1:
                yield {
                    "kind": "layout",
                    "host": ["TcpRetransSegs"],
                    "netdev": {"eth1": list(table)},
                    "rdma": {},
                    "cxi": {},
                }
            yield {
                "kind": "sample",
                "number": number,
                "time_s": f"{EPOCH + late + stepped:.6f}",
                "monotonic_ns": round((late - begun) * 1e9),
                "settled": False,
                "values": " ".join(("12", *table.values())),
                "boot_id": f"boot-{boots}-of-{host}",
                "uptime_s": round(late - begun, 3),
                "links": {
                    "eth1": {"operstate": "up", "carrier_changes": str(2 + flaps)},
                    "rxe0/1": {"state": "4: ACTIVE", "phys_state": "5: LinkUp"},
                },
                "temperatures": [
                    {"name": "coretemp/temp1", "celsius": round(hot + rng.uniform(-1, 1), 1)}
                ],
                "processes": list(processes(flows, host, late, plants, rng)),
            }
        at += o.interval if at + o.interval <= ends or at >= ends else ends - at
        if at > ends:
            break


MADE = {}


def made(flow, turn, o, plants):
    """What a flow wrote; the same for all runs that differ in what their hosts have."""
    own = {name: value for name, value in vars(o).items() if name not in ("dir", "plant")}
    key = repr((flow, turn, own, [vars(plant) for plant in plants]))
    if key not in MADE:
        MADE[key] = Flow(flow, turn, o, plants).made()
    return MADE[key]


def write_flow(root, flow, turn, o, plants):
    """client.soak; returns the lines of both ends in flows.jsonl, by host."""
    text, whole = made(flow, turn, o, plants)
    if not text:
        return {}
    if not any(p.kind == "nofile" for p in plants):
        place = root / "raw" / flow["client"] / "flows" / flow["id"]
        place.mkdir(parents=True)
        (place / "client.soak").write_text(text)
    printed = [
        line
        for line in text.splitlines(keepends=True)
        if line.startswith('{"schema":"perch.record/1","kind":"bandwidth"')
        or '"kind":"latency","started"' in line[:80]
    ]
    end = dict.fromkeys(("client", "server")) if whole else {}
    return {flow[role]: flow_line(flow, role, o, printed[-1:]) for role in end}


def flow_line(flow, role, o, printed):
    """An end of a flow, without readings of counters."""
    line = {"kind": "flow", "id": flow["id"], "role": role, "state": "done"}
    if role == "client":
        line |= {"argv": flow["client_argv"] + ["--port", "18600"], "exit": 0}
    line |= moments("started", -0.5) | moments("ended", o.duration + 2)
    return line | ({"stdout": printed[0]} if role == "client" and printed else {})


def moments(name, at):
    """By both clocks, so many seconds after the soak began."""
    return {name: wall(EPOCH + at), f"{name}_monotonic_ns": round((UPTIME + at) * 1e9)}


def host_lines(host, digest, flows, o, reboots):
    """flows.jsonl as the agent leaves it, with these lines of flows."""
    head = head_of(host, digest, o)
    boot = {"boot_id": f"boot-0-of-{host}", "uptime_s": UPTIME, "passed_s": 0}
    boot |= {"begun": wall(EPOCH)}
    unit = {"supervisor": "systemd"}
    yield head | {"flows": len(flows)} | moments("started", -1)
    yield {"kind": "start"} | boot | unit | moments("started", 0)
    for n, plant in enumerate(reboots, 1):
        over = plant.until(60)
        again = boot | {"boot_id": f"boot-{n}-of-{host}", "uptime_s": 1, "passed_s": over + 1}
        yield {"kind": "start"} | again | unit | moments("started", over + 1)
    yield from flows
    if o.running is None:
        over = {"kind": "end", "state": "done" if o.stopped is None else "stopped"}
        passed = (o.duration if o.stopped is None else o.stopped) + 3
        over |= {"flows_done": len(flows), "passed_s": passed}
        yield over | moments("ended", o.duration + 3)


def head_of(host, digest, o):
    """The first line of both files."""
    return {
        "kind": "head",
        "schema": "perch.raw/2",
        "run": o.run,
        "plan_sha256": digest,
        "host": host,
    }


def options(words):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("dir", type=pathlib.Path)
    for name, kind, default in (
        ("hosts", int, 2),
        ("duration", int, 3600),
        ("interval", int, 60),
        ("seed", int, 1),
        ("turn", int, 600),
        ("running", float, None),
        ("stopped", float, None),
        ("level", float, 0.05),
    ):
        parser.add_argument("--" + name, type=kind, default=default)
    parser.add_argument("--mode", default="mixed")
    parser.add_argument("--backend", default="tcp")
    parser.add_argument("--cards", action="store_true", help="with as many counters as a card has")
    parser.add_argument("--plant", action="append", default=[], type=Plant)
    return parser.parse_args(words)


def environment(host, o):
    """environment.json, with a NIC."""
    own = {"schema": "perch.environment/2", "run": o.run, "host": host, "hostname": host}
    own |= {"collected": wall(EPOCH - 0.9), "address_interface": "eth1"}
    own["boot_id"] = f"boot-0-of-{host}"
    document = load(RECORDED / "environment.json") | own
    for name in ("idle", "idle_samples"):
        document.pop(name, None)
    document["interfaces"] = [
        {
            "name": "eth1",
            "mtu_bytes": 1500,
            "state": "up",
            "rate_gbit_s": 25,
            "driver": "mlx5_core",
        }
    ]
    return document


def main(words=None):
    o = options(words)
    o.run = "20260101T000000Z-composed"
    (o.dir / "inputs").mkdir(parents=True)
    spelled.write(o.dir, planned(o))
    plan = spelled.read(o.dir)
    (o.dir / "inputs/limits.json").write_text((FIXTURES / "rxe/run/inputs/limits.json").read_text())
    flows = [(turn, flow) for turn, round_ in enumerate(plan["rounds"]) for flow in round_["flows"]]
    host_kinds = ("leak", "handles", "counter", "flap", "nosample", "hot")
    names = list(plan["hosts"])
    lines = {name: [] for name in names}
    for i, (turn, flow) in enumerate(flows):
        own = [p for p in o.plant if p.kind not in (*host_kinds, "reboot") and p.place == i]
        own += [
            p
            for p in o.plant
            if p.kind == "reboot" and names[p.place] in (flow["client"], flow["server"])
        ]
        for host, line in write_flow(o.dir, flow, turn, o, own).items():
            lines[host].append(line)
    digest = hashlib.sha256((o.dir / "plan.json").read_bytes()).hexdigest()
    for i, host in enumerate(names):
        place = o.dir / "raw" / host
        place.mkdir(parents=True, exist_ok=True)
        own = [p for p in o.plant if p.kind in (*host_kinds, "reboot", "clock") and p.place == i]
        (place / "environment.json").write_text(json.dumps(environment(host, o)) + "\n")
        reboots = [p for p in own if p.kind == "reboot"]
        write_lines(place / "flows.jsonl", host_lines(host, digest, lines[host], o, reboots))
        of_host = samples(host, [f for _, f in flows], o, own)
        write_lines(place / "samples.jsonl", [head_of(host, digest, o), *of_host])


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
