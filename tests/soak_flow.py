"""A flow of a composed soak (soak_compose.py): its lines, and the faults planted in them."""

import datetime
import json
import pathlib
import random
import re
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "self-test"), str(HERE.parent)]
from selftest.runs import noise  # noqa: E402

FIXTURES = HERE / "fixtures"
EPOCH = 1767225600.0  # 2026-01-01
UPTIME = 5000  # of each host then, in seconds
BETWEEN = 0.0006  # seconds between two intervals, as measured on a loopback
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}


LINES = {
    kind: [json.loads(text) for text in (FIXTURES / f"soak/{kind}.soak").read_text().splitlines()]
    for kind in ("bw", "lat")
}


def wall(seconds):
    moment = datetime.datetime.fromtimestamp(round(seconds, 3), datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def digits(value):
    return float(f"{value:.9g}")


def borne(count, figures):
    """Percentiles that the engine writes of so many samples: those that ten lie above."""
    return {
        key: digits(figures[key]) if count * (1 - share) >= 10 - 1e-6 else None
        for key, share in SHARES.items()
    }


def round_trips(figures):
    """Samples in ns with the least, the most and, as near as these allow,
    the percentiles of an interval.
    """
    shares = {"min": 0, **SHARES, "max": 1}
    knots = [(share, figures[key]) for key, share in shares.items() if figures[key] is not None]
    values = np.interp(np.linspace(0, 1, figures["count"]), *zip(*knots, strict=True))
    return np.rint(values * 2000).astype(np.int64)


class Plant:
    """FAULT[=VALUE]@FROM[-TO][:PLACE]"""

    def __init__(self, text):
        match = re.fullmatch(r"(\w+)(?:=([\w./-]+))?(?:@([\d.]+)(?:-([\d.]+))?)?(?::(\d+))?", text)
        if not match:
            sys.exit(f"soak_compose: {text}: no fault; see --help")
        self.kind, value, begin, end, place = match.groups()
        self.value = value
        self.begin = float(begin or 0)
        self.end = float(end) if end else None
        self.place = int(place or 0)

    def number(self, default):
        return float(self.value) if self.value else default

    def until(self, default):
        return self.end if self.end is not None else self.begin + default


TESTS = (
    {
        "name": "load",
        "word": "bw",
        "size": "64K",
        "bytes": 65536,
        "kind": "bandwidth",
        "rate": "500Mb/s",
        "more": {},
    },
    {
        "name": "verify",
        "word": "bw",
        "size": "64K",
        "bytes": 65536,
        "kind": "bandwidth",
        "rate": "100Mb/s",
        "more": {"verify": True},
    },
    {
        "name": "latency",
        "word": "lat",
        "size": "64",
        "bytes": 64,
        "kind": "latency",
        "rate": "200msg/s",
        "more": {},
    },
)


class Flow:
    """One flow's file."""

    def __init__(self, flow, turn, o, plants):
        self.flow, self.o, self.plants = flow, o, plants
        self.rng = random.Random(f"{o.seed} {flow['id']}")
        self.test = next(t for t in TESTS if t["name"] == flow["test"])
        self.begin = turn * o.turn if o.mode == "alternating" else 0
        self.seconds = float(flow["estimate_s"])
        self.lines = [dict(line) for line in LINES[self.test["word"]]]
        self.rate = {"load": 5e8, "verify": 1e8, "latency": 200}[flow["test"]]
        self.noise = 0.0
        names = "messages bytes elapsed gaps gap_s stalls stall_s intervals bad"
        self.total = dict.fromkeys(names.split(), 0)
        self.seen = []
        self.out = []

    def of(self, *kinds):
        return [plant for plant in self.plants if plant.kind in kinds]

    def stepped(self, at):
        """What the wall clock is off by then."""
        return sum(p.number(5) for p in self.of("clock") if self.begin + at >= p.begin)

    def dated(self, line, start, end=None):
        line["start_s"], line["started"] = (
            digits(start),
            wall(EPOCH + self.begin + start + self.stepped(start)),
        )
        if end is not None:
            line["end_s"], line["ended"] = (
                digits(end),
                wall(EPOCH + self.begin + end + self.stepped(end)),
            )
        return line

    def head(self):
        head = dict(
            self.lines[0],
            started=wall(EPOCH + self.begin),
            started_ms=int((EPOCH + self.begin) * 1000),
            duration_s=self.seconds,
            interval_s=self.o.interval,
            server=self.flow["client_argv"][2],
        )
        head["job"] = dict(
            head["job"],
            backend=self.o.backend,
            rate=int(self.rate),
            duration_ns=int(self.seconds * 1e9),
            interval_ns=int(self.o.interval * 1e9),
            verify=self.test["name"] == "verify",
            sizes=[self.test["bytes"]],
        )
        return head

    def described(self, line):
        """The parts of a line that say what was measured."""
        hosts = {"client": self.flow["client_argv"][-2], "server": self.flow["client_argv"][2]}
        for end, address in hosts.items():
            line[end] = {"host": self.flow[end], "device": "eth1", "address": address}
        line["link"] = {
            "rate_gbit_s": None,
            "mtu_bytes": 1500,
            "layer": "ethernet",
            "hop_class": None,
        }
        line["backend"] = self.o.backend
        asked = self.rate if self.test["kind"] == "latency" else self.rate / 1e9
        line["params"] = dict(
            line["params"],
            duration_s=self.seconds,
            size_bytes=self.test["bytes"],
            verify=self.test["name"] == "verify",
            rate=dict(line["params"]["rate"], asked=asked),
        )
        return line

    def factor(self, start, end, *kinds):
        """What planted faults make of this time's figure: 1 is nothing."""
        value = 1.0
        middle = self.begin + (start + end) / 2
        for plant in self.of(*kinds):
            last = plant.until(self.o.duration - plant.begin)
            if plant.kind == "drift" and middle > plant.begin:
                value *= 1 + plant.number(-0.3) * (middle - plant.begin) / (last - plant.begin)
            elif plant.kind in ("step", "slow", "tenfold") and plant.begin <= middle < last:
                value *= plant.number(10) if plant.kind != "step" else 1 + plant.number(-0.5)
        return value

    def bandwidth(self, start, end, elapsed):
        """Messages of an interval, and its figures."""
        share = self.factor(start, end, "drift", "step") * (1 - min(0.3, abs(self.noise) * 0.02))
        messages = max(1, round(self.rate / 8 * elapsed * share / self.test["bytes"]))
        figure = messages * self.test["bytes"] * 8 / elapsed / 1e9
        lowest = figure * self.rng.uniform(0.85, 0.99)
        return messages, {
            "gbit_s": digits(figure),
            "peak_gbit_s": digits(figure * self.rng.uniform(1.01, 1.2)),
            "peak_definition": "best_interval_0.1s",
            "min_interval_gbit_s": digits(lowest),
            "messages_per_s": digits(messages / elapsed),
            "bytes": messages * self.test["bytes"],
        }

    def latency(self, start, end, elapsed):
        """Messages of an interval, and its figures."""
        messages = round(self.rate * elapsed)
        base = (
            7.5
            * self.factor(start, end, "drift", "step", "slow")
            * (1 + max(-0.3, self.noise))
            * self.rng.gauss(1, 0.01)
        )
        p99 = base * 8 * self.rng.lognormvariate(0, 0.3)
        return messages, {
            "count": messages,
            "min": digits(base * 0.6),
            "max": digits(p99 * self.rng.uniform(2, 20)),
            "mean": digits(base * 1.6),
            "stddev": digits(base * 9),
        } | borne(
            messages,
            {
                "p50": base,
                "p90": base * 1.5,
                "p95": base * 2,
                "p99": p99,
                "p99_9": p99 * 1.5,
                "p99_99": p99 * 1.8,
            },
        )

    def moved(self, line, size, bad):
        """The bytes of a line: on their path, and as they arrived."""
        sent = size if self.test["kind"] == "bandwidth" else 2 * size
        line["path"] = {
            "claimed_bytes": sent,
            "client_sent_bytes": size,
            "client_received_bytes": sent - size,
            "lost_bytes": 0,
        }
        line["integrity"] = (
            {"checked_bytes": size, "bad_bytes": bad} if self.test["name"] == "verify" else None
        )

    def interval(self, start, end, number):
        line = json.loads(json.dumps(self.lines[2]))
        self.dated(line, start, end)
        elapsed = end - start - BETWEEN / 2
        level = self.o.level
        self.noise = 0.7 * self.noise + self.rng.gauss(0, level)  # neighbours are alike
        line["elapsed_s"] = digits(elapsed)
        if self.test["kind"] == "bandwidth":
            messages, line["bandwidth"] = self.bandwidth(start, end, elapsed)
        else:
            messages, line["latency_us"] = self.latency(start, end, elapsed)
            line["histogram"] = None  # the figures are drawn, and of no samples
        size = messages * self.test["bytes"]
        line.update(messages=messages, bytes=size, connection_number=number)
        self.moved(line, size, bad=0)
        line["rate"]["asked"] = self.rate if self.test["kind"] == "latency" else self.rate / 1e9
        line["stalls"] = {"count": 0, "total_s": 0}
        for plant in self.of("stall"):
            self.stalled(plant, line, start, end, number)
        for plant in self.of("flip"):
            if start <= plant.begin - self.begin < end:
                line["integrity"] = dict(line["integrity"] or {"checked_bytes": size}, bad_bytes=1)
                self.total["bad"] += 1
        self.count(line)
        return self.altered(line, start, end)

    def stalled(self, plant, line, start, end, number):
        """Once, or every so many seconds where an end is given: VALUE seconds each."""
        long = plant.number(0.05)
        times = [plant.begin]
        if plant.end is not None:
            times = [plant.begin + k * 60 for k in range(int((plant.end - plant.begin) / 60) + 1)]
        for at in times:
            at -= self.begin
            if start <= at and at + long < end:
                stall = {"schema": "perch.record/1", "kind": "stall", "connection_number": number}
                self.out.append(self.dated(stall, at, at + long) | {"messages": 3})
                line["stalls"] = {
                    "count": line["stalls"]["count"] + 1,
                    "total_s": digits(line["stalls"]["total_s"] + long),
                }

    def altered(self, line, start, end):
        """Edited afterwards: the whole does not know."""
        for plant in self.of("edited", "tenfold"):
            if start <= plant.begin - self.begin < end:
                line = json.loads(json.dumps(line))
                line["messages"] *= 10
                line["bytes"] *= 10
                for key in (
                    "gbit_s",
                    "peak_gbit_s",
                    "min_interval_gbit_s",
                    "messages_per_s",
                    "bytes",
                ):
                    if line["bandwidth"]:
                        line["bandwidth"][key] *= 10
        return line

    def count(self, line):
        t = self.total
        t["intervals"] += 1
        t["messages"] += line["messages"]
        t["bytes"] += line["bytes"]
        t["elapsed"] += line["elapsed_s"]
        t["stalls"] += line["stalls"]["count"]
        t["stall_s"] += line["stalls"]["total_s"]
        self.seen.append(line)

    def whole_bandwidth(self):
        t, seen = self.total, [line["bandwidth"] for line in self.seen]
        return {
            "gbit_s": digits(t["bytes"] * 8 / t["elapsed"] / 1e9),
            "peak_gbit_s": max(one["peak_gbit_s"] for one in seen),
            "peak_definition": "best_interval_0.1s",
            "min_interval_gbit_s": min(one["min_interval_gbit_s"] for one in seen),
            "messages_per_s": digits(t["messages"] / t["elapsed"]),
            "bytes": t["bytes"],
        }

    def summary(self, passed, stopped, connections):
        """What the engine's last line says of the soak."""
        t = self.total
        return {
            "planned_s": self.seconds,
            "passed_s": digits(passed),
            "interval_s": self.o.interval,
            "intervals": t["intervals"],
            "connections": connections,
            "gaps": t["gaps"],
            "gap_s": digits(t["gap_s"]),
            "stalls": t["stalls"],
            "stall_s": digits(t["stall_s"]),
            "stopped": stopped,
            "resumed": False,
            "dropped_lines": sum(int(p.number(3)) for p in self.of("dropped")),
        }

    def whole(self, passed, stopped, connections):
        line = self.described(json.loads(json.dumps(self.lines[-1])))
        t = self.total
        line["started"], line["elapsed_s"] = wall(EPOCH + self.begin), digits(t["elapsed"])
        if self.test["kind"] == "bandwidth":
            line["bandwidth"] = self.whole_bandwidth()
        else:
            found = noise.latency(np.concatenate([round_trips(s["latency_us"]) for s in self.seen]))
            line |= {key: found[key] for key in ("latency_us", "histogram")}
        size = t["bytes"]
        costs = {
            f"{side}_s_per_gb": digits(line["cpu"][f"{side}_s"] / size * 1e9)
            for side in ("client", "server")
        }
        line["cpu"] = dict(line["cpu"], **costs)
        self.moved(line, size, t["bad"])
        line["soak"] = self.summary(passed, stopped, connections)
        if t["bad"]:
            line.update(
                status="error",
                error={
                    "code": 5,
                    "message": f"{t['bad']} bytes arrived corrupted",
                    "traffic": True,
                },
            )
        return line

    def gaps(self, ends):
        """[from, to] of what cut the connection, in this flow's time."""
        cuts = [
            (p.begin - self.begin, p.until(p.number(5)) - self.begin)
            for p in self.of("gap", "reboot")
        ]
        return sorted((a, min(b, ends)) for a, b in cuts if 0 <= a < ends)

    def rebooted(self, at):
        """The client's boot at a time, where it is not the first."""
        client = self.flow["client"]
        own = (p for p in self.of("reboot") if f"node{p.place + 1}" == client)
        ends = [end for p in own if (end := p.until(60) - self.begin) <= at]
        if not ends:
            return {}
        return {"boot_id": f"boot-{len(ends)}-of-{client}", "uptime_s": digits(at - max(ends))}

    def made(self):
        o = self.o
        stop = o.stopped if o.stopped is not None else o.running
        ends = min(self.seconds, stop - self.begin if stop is not None else self.seconds)
        if ends <= 0:
            return [], False
        self.out.append(self.head())
        number = 1
        connection = self.described(dict(self.lines[1])) | {
            "boot_id": f"boot-0-of-{self.flow['client']}",
            "epoch_ns": int((UPTIME + self.begin) * 1e9),
            "uptime_s": UPTIME + self.begin,
        }
        self.out.append(self.dated(connection, 0) | {"connection_number": 1})
        at, cuts = 0.0004, self.gaps(ends)
        while at < ends - o.interval / 10:
            grid = (int(at / o.interval + 0.1) + 1) * o.interval
            end = min(grid if ends - grid > o.interval / 10 else ends, ends) + self.rng.uniform(
                0.0001, 0.0006
            )
            if cuts and cuts[0][0] < end:
                begun, over = cuts.pop(0)
                if begun > at + 0.001:
                    broken = self.interval(at, begun, number)
                    broken.update(
                        status="error",
                        error={"code": 4, "message": "the connection was lost", "traffic": True},
                    )
                    self.out.append(broken)
                gap = self.dated({"schema": "perch.record/1", "kind": "gap"}, begun, over)
                self.out.append(gap | {"attempts": 3, "reason": "the connection was lost"})
                self.total["gaps"] += 1
                self.total["gap_s"] += over - begun
                at = over + BETWEEN
                if over >= ends:
                    break  # it did not come back
                number += 1
                again = dict(connection, connection_number=number) | self.rebooted(over)
                self.out.append(self.dated(again, over))
                continue
            self.out.append(self.interval(at, end, number))
            at = end + BETWEEN
        if o.running is None:
            self.out.append(self.whole(at, o.stopped is not None, number))
        return self.spoilt(), o.running is None

    def spoilt(self):
        """What was done to the file."""
        lines = list(self.out)
        places = {i: line for i, line in enumerate(lines) if line["kind"] == "interval"}

        def at(plant):
            return next(
                (i for i, line in places.items() if line["end_s"] > plant.begin - self.begin),
                max(places),
            )

        texts = [json.dumps(line, separators=(",", ":")) for line in lines]
        for plant in self.of("missing", "double", "long", "foreign", "junk", "half", "nofile"):
            i = at(plant)
            if plant.kind == "missing":
                texts[i] = None
            elif plant.kind == "double":
                texts[i] += "\n" + texts[i]
            elif plant.kind == "long":  # two in one
                other = lines[i + 1]
                sums = {
                    key: lines[i][key] + other[key] for key in ("elapsed_s", "messages", "bytes")
                }
                figures = dict(
                    lines[i]["bandwidth"],
                    bytes=sums["bytes"],
                    gbit_s=digits(sums["bytes"] * 8e-9 / sums["elapsed_s"]),
                )
                line = dict(
                    lines[i], end_s=other["end_s"], ended=other["ended"], bandwidth=figures, **sums
                )
                texts[i], texts[i + 1] = json.dumps(line, separators=(",", ":")), None
            elif plant.kind == "foreign":
                texts[0] = json.dumps(
                    dict(lines[0], job=dict(lines[0]["job"], sizes=[4096])), separators=(",", ":")
                )
            elif plant.kind == "junk":
                texts[i] = texts[i][: len(texts[i]) // 2]
            elif plant.kind == "half":
                texts.append(texts[-1][:40])
        return "\n".join(text for text in texts if text is not None) + (
            "" if self.of("half") else "\n"
        )
