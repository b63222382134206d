"""Runs made by hand for tests of the views, and what a report shows of them.

`fabric` is four hosts, all to all, on hardware that is not here, as its name says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from perch.judge import columns, planned
from perch.model.limits import Limit, LimitBound, Limits
from perch.model.record import Record
from perch.model.verdict import Verdict
from perch.views import details, document, inputs, markdown
from perch.views.charts import Chart
from perch.views.table import Table
from tests import spelled
from tests.stamped import stamp

Document = dict[str, Any]

HOSTS = ("n1", "n2", "n3", "n4")
MIB = 1024**2


@dataclass
class Shown:
    """A report: its Markdown, the document behind it, and its charts."""

    text: str
    document: Document
    charts: list[Chart]

    def section(self, title: str) -> str:
        """The text below a heading, the last of its name, up to the next one that ends it."""
        level = title.index(" ")
        before, _, rest = self.text.rpartition(f"\n{title}\n")
        assert before, f"no section {title}"
        return re.split(rf"\n#{{1,{level}}} ", rest, maxsplit=1)[0]

    def chart(self, name: str) -> Chart:
        return next(chart for chart in self.charts if chart.name == name)

    @property
    def names(self) -> list[str]:
        return [chart.name for chart in self.charts]


def shown(run: inputs.Run) -> Shown:
    read = details.read(run.root, run.plan.latency_size)
    found, charts = document.build(run, document.measure(run), read)
    return Shown(markdown.filled("run.md.j2", report=found), found, charts)


@dataclass
class Made:
    """A run that a test may change before it is shown."""

    plan: Document
    records: list[Document]
    verdict: Document
    limits: list[Limit] = field(default_factory=list)

    def write(self, root: Path) -> inputs.Run:
        """The run in a folder, as it was judged."""
        spelled.write(root, self.plan)
        plan = planned.read_plan(root / "plan.json")
        records = [msgspec.convert(record, Record) for record in self.records]
        verdict = msgspec.convert(self.verdict, Verdict)
        encoder = msgspec.json.Encoder()
        (root / "records.jsonl").write_bytes(encoder.encode_lines(records))
        (root / "verdict.json").write_bytes(encoder.encode(verdict))
        stamp(root)
        limits = Limits(tuple(self.limits), files=("roce.yml", "site.yml"))
        return inputs.of_judged(root, plan, verdict, columns.frame(records), limits)

    def shown(self, root: Path) -> Shown:
        return shown(self.write(root))

    def change(self, test: Callable[[Document], bool], change: Callable[[Document], None]) -> None:
        """Changes the records that a test picks."""
        picked = [record for record in self.records if test(record)]
        assert picked
        for record in picked:
            change(record)

    def even(self) -> None:
        """The slow pair carries what the others do."""
        self.change(
            lambda record: record["kind"] == "bandwidth",
            lambda record: record["bandwidth"].update(gbit_s=97),
        )


def check(name: str, status: str, measured: Any, **more: Any) -> Document:
    return {
        "id": name,
        "title": name,
        "status": status,
        "measured": measured,
        "source": "s",
        **more,
    }


def verdict(word: str = "PASS", scope: str = "hardware", **more: Any) -> Document:
    comparison: Document = {"statistic": None, "rows": [], "refused": [], "others": []}
    return {
        "schema": "perch.verdict/1", "run": "made-by-hand", "verdict": word, "scope": scope,
        "coverage": {"planned": 72, "measured": 72, "missing": []}, "checks": [],
        "comparison": comparison, **more,
    }  # fmt: skip


def host(**more: Any) -> Document:
    return {
        "fabric": "roce", "scope": "hardware", "address": "192.0.2.1", "port": 18515, **more,
    }  # fmt: skip


def plan(hosts: Document, rounds: list[list[Document]], title: str = "All to all") -> Document:
    return {
        "run": "made-by-hand", "created": "2026-01-01T00:00:00Z",
        "limits": "roce", "suite": {"name": "s", "title": title}, "excluded": [], "hosts": hosts,
        "rounds": [{"flows": flows} for flows in rounds],
    }  # fmt: skip


# ---- four hosts, all to all ----------------------------------------------------------------------


def flow(test: str, client: str, server: str, repeat: int = 1) -> Document:
    return {
        "id": f"{test}/{client}/{server}/0/{repeat}", "test": test, "title": f"RDMA {test}",
        "repeat": repeat, "tool": "perch", "backend": "verbs", "scope": "hardware",
        "kind": "bandwidth" if test == "bandwidth" else "latency", "client": client,
        "op": "read" if test == "read" else "send", "hop_class": "same_switch", "server": server,
        "client_argv": ["perch", "lat"], "server_argv": [], "expect": [{"size_bytes": 64}],
    }  # fmt: skip


_LATENCY = {
    "count": 200000, "min": 1.5, "max": 9, "mean": 2.05, "stddev": 0.11, "p50": 2, "p90": 2.1,
    "p95": 2.2, "p99": 2.5, "p99_9": 3, "p99_99": 4,
}  # fmt: skip


def _bandwidth(gbit_s: float, *, slow: bool) -> Document:
    intervals = [
        {"start_s": s, "end_s": s + 1, "gbit_s": 10 if slow and s == 3 else gbit_s}
        for s in range(10)
    ]
    found: Document = {
        "bandwidth": {
            "gbit_s": gbit_s, "peak_gbit_s": 97.5, "peak_definition": "best_interval_0.1s",
            "min_interval_gbit_s": 60, "messages_per_s": 11563, "bytes": 104857600000,
        },
        "intervals": intervals,
    }  # fmt: skip
    if slow:
        began = "2026-01-01T00:00:13.500Z"
        found["stall"] = {"longest_s": 1.25, "start_s": 3, "began": began}
    return found


def record(of: Document) -> Document:
    """n1 to n4 carries half of what the others do, and stalls once."""
    slow = (of["client"], of["server"]) == ("n1", "n4")
    is_rate, is_read = of["kind"] == "bandwidth", of["test"] == "read"
    definition = (
        "completion" if is_read else "receiver_acknowledged" if is_rate else "half_round_trip"
    )
    size = MIB if is_rate else 4096 if is_read else 64
    figures = (
        _bandwidth(48.5 if slow else 97, slow=slow) if is_rate else {"latency_us": dict(_LATENCY)}
    )
    return {
        "schema": "perch.record/2", "run": "made-by-hand", "flow": of["id"], "rail": 0,
        "tool": {"name": "perch", "version": "0"}, "definition": definition, "connection": "RC",
        **{key: of[key] for key in ("test", "repeat", "scope", "backend", "op", "kind")},
        "client": {"host": of["client"], "device": "mlx5_0"},
        "server": {"host": of["server"], "device": "mlx5_0"},
        "link": {
            "rate_gbit_s": 100, "mtu_bytes": 4096, "layer": "roce", "hop_class": "same_switch",
        },
        "params": {
            "size_bytes": size, "queue_pairs": 1, "completion": "busy", "verify": False,
        },
        "started": "2026-01-01T00:00:10.500Z",
        "packets": {"sent": 1000, "lost": 0, "retries": 0},
        "path": {
            "claimed_bytes": 1e6, "client_device_bytes": 1.1e6, "server_device_bytes": 1.1e6,
            "state": "proven",
        },
        "status": "ok", **figures,
    }  # fmt: skip


_CHECKS = (
    ("coverage", 72), ("path/proven/hardware", 72), ("limit/bw/bandwidth", 97),
    ("limit/lat/latency", 2), ("tail/latency", 1.2), ("counters/drops", 0),
    ("limit/loss/bandwidth", 0), ("interval/bandwidth", 0.9), ("repeatability/latency", 1),
    ("host_check/nic-device", "there"), ("switch/drops", "1 port"), ("switch/link-up", "1 port"),
    ("drift/latency", 1), ("cross-check", 1), ("ceiling", 98),
)  # fmt: skip

_FACTS = (
    ("nic-firmware", "mlx5_0", "info", "22.39.1002", None),
    ("nic-board", "mlx5_0", "info", "MT4125, MT_0000000359", None),
    ("nic-pcie-speed", "mlx5_0", "ok", "16 GT/s, the card has 16 GT/s", None),
    ("nic-pcie-width", "mlx5_0", "bad", "8x, the card has 16x", ["n3"]),
    ("nic-pcie-width", "mlx5_0", "ok", "16x, the card has 16x", ["n1", "n2", "n4"]),
    ("nic-link-speed", "mlx5_0", "ok", "100 Gb/s", None),
    ("qos-pfc", "eth1", "ok", "on for 3, by dcb", None),
    ("qos-buffers", "eth1", "ok", "priority 3 in buffer 1 of 130944 bytes", None),
)


def _facts() -> Iterator[Document]:
    for name, device, status, found, hosts in _FACTS:
        yield {"id": name, "device": device, "status": status, "found": found, "hosts": hosts}


def limit(name: str, metric: str) -> Limit:
    return Limit(name, name, {}, metric, LimitBound(max=1), "u", "s", "required", "r")


def fabric() -> Made:
    rounds = [
        [
            flow(test, client, server, repeat)
            for server in HOSTS
            if server != client
            for test in ("latency", "read", "bandwidth")
        ]
        for repeat in (1, 2)
        for client in HOSTS
    ]
    nic = {"name": "mlx5_0", "netdev": "eth1"}
    hosts = {name: host(group="g1", switch="leaf1", devices=[nic]) for name in HOSTS}
    checks = [check(name, "pass", measured) for name, measured in _CHECKS]
    checks.append(check("integrity", "pass", 0, unit="corrupted bytes of 1000000 checked"))
    return Made(
        plan=plan(hosts, rounds),
        records=[record(one) for flows in rounds for one in flows],
        verdict=verdict(checks=checks, facts=list(_facts())),
        limits=[
            limit("bw", "bandwidth.gbit_s"),
            limit("lat", "latency_us.p50"),
            limit("loss", "derived.packets_lost_ppm"),
        ],
    )


# ---- what holds of any report --------------------------------------------------------------------


def cells(line: str) -> list[str]:
    """The cells of a table's row; an escaped bar ends none."""
    return line.replace("\\|", "").strip().strip("|").split("|")


def tables(text: str) -> Iterator[list[list[str]]]:
    """The tables of a Markdown text, as rows of cells."""
    rows: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("| "):
            rows.append(cells(line))
        elif rows:
            yield rows
            rows = []


def table_faults(text: str) -> Iterator[str]:
    """Tables without rows, rows of another width, columns that say nothing."""
    for head, _, *rows in tables(text):
        if not rows:
            yield f"no row below {head}"
        for row in rows:
            if len(row) != len(head):
                yield f"{len(row)} cells below {len(head)} columns: {row}"
        for column, said in zip(head[1:], list(zip(*rows, strict=False))[1:], strict=False):
            if all(cell.strip() == "-" for cell in said):
                yield f"column {column} says nothing"


def rows_of(table: Table) -> list[str]:
    return [" | ".join(row) for row in table.rows]
