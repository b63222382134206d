"""What the tools print of a composed flow: figures that agree with the bytes and the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from numpy.random import Generator

from perch.model.figures import rounded
from selftest.files import compact
from selftest.runs import noise
from selftest.runs.fabric_plan import HOSTS, Fabric, Test, address, device, netdev, stamp

Document = dict[str, Any]

#: Site policy: the rates of a sound 100 Gb/s pair in writes (of 98.0 possible at MTU 4096), and of
#: one TCP stream on it.
RDMA_GBIT_S, TCP_GBIT_S = 94, 45
#: Messages before those that are measured.
WARMUP = 100
RULE = "-" * 87


@dataclass(frozen=True)
class Size:
    """One size of a flow, as it was measured: bytes and messages of each way, and what is printed.

    Latency: a message each way a round trip.
    """

    size: int
    sent: int
    received: int
    messages: int
    elapsed_s: float
    lines: list[str]


#: Seconds between two sizes: as long as one that a fault makes slower may take beyond its own time.
PAUSE_S = 0.2


def measured(fabric: Fabric, test: Test, flow: Document, begun: float) -> Iterator[Size]:
    """A flow's sizes, one after the other. `begun`: when its process began."""
    at = begun + 0.1
    for size in test.sizes:
        random = noise.generator(fabric.seed, f"{flow['id']} {size}")
        rate = RDMA_GBIT_S if test.is_hardware else TCP_GBIT_S
        one = _Drawn(test, flow, size, at, random, rate * fabric.factor(flow["id"])).measured()
        at += one.elapsed_s + PAUSE_S
        yield one


@dataclass(frozen=True)
class _Drawn:
    """One size of a flow. `gbit_s`: the middle of its rates."""

    test: Test
    flow: Document
    size: int
    at: float
    random: Generator
    gbit_s: float

    def measured(self) -> Size:
        if self.test.tool == "perftest":
            return self.perftest()
        if self.test.tool == "iperf3":
            return self.iperf3()
        if self.test.kind == "latency":
            return self.latency()
        return self.steady() if self.test.seconds else self.bandwidth()

    def mark(self, role: str) -> int:
        """What tells this flow's connection from others: of its queue pair, or its port."""
        return crc32(f"{self.flow['id']} {role}".encode())

    def rate(self) -> float:
        return self.gbit_s * noise.ratio(self.random)

    # ---- the engine ----

    def heading(self, **params: object) -> Document:
        """What the engine's line says before its figures."""
        rdma = self.test.backend == "verbs"
        is_latency = self.test.kind == "latency"
        bandwidth = "initiator_completion" if rdma else "receiver_acknowledged"

        def side(role: str) -> Document:
            host, rail = self.flow[role], self.flow["rail"]
            return {
                "host": host, "device": device(rail) if rdma else netdev(rail),
                "address": address(HOSTS.index(host), rail),
            }  # fmt: skip

        asked = self.test.params
        return {
            "schema": "perch.record/1", "tool": {"name": "perch", "version": "0.1.0"},
            "backend": self.test.backend, "provider": None, "op": self.test.op,
            "kind": self.test.kind,
            "definition": "half_round_trip" if is_latency else bandwidth,
            "completion_level": "transmit" if rdma else "inject",
            "connection": "RC" if rdma else "stream",
            "client": side("client"), "server": side("server"),
            "link": {"rate_gbit_s": 100, "mtu_bytes": 4096 if rdma else 9000,
                     "layer": "ethernet", "hop_class": None},
            "params": {
                "size_bytes": self.size, "iterations": None, "duration_s": None, "warmup": WARMUP,
                "gap_us": 0, "queue_pairs": 1, "batch": 1,
                "outstanding": asked.get("outstanding", 1 if is_latency else 64),
                "threads": 1, "devices": 1, "inline_bytes": None, "bidirectional": False,
                "completion": "busy", "memory": "host", "verify": False, "clock": "monotonic",
                "rate": None, **(VERBS if rdma else {}), **params,
            },
            "started": stamp(self.at), "latency_us": None, "bandwidth": None, "intervals": [],
            "histogram": None, "integrity": None, "tcp": None, "status": "ok", "error": None,
        }  # fmt: skip

    def latency(self) -> Size:
        samples = noise.round_trips(self.random, self.test.messages)
        messages = self.test.messages + WARMUP
        found = noise.latency(samples)
        line = {
            **self.heading(iterations=self.test.messages),
            **found,
            "cpu": _cpu(found["elapsed_s"]),
            "path": _claim(messages * self.size, messages * self.size),
        }
        moved = (messages * self.size, messages * self.size, 2 * messages)
        return Size(self.size, *moved, found["elapsed_s"], [compact(line)])

    def bandwidth(self) -> Size:
        messages = self.test.messages
        elapsed = rounded(messages * self.size * 8 / self.rate() / 1e9)
        line = {
            **self.heading(iterations=messages),
            "elapsed_s": elapsed,
            "cpu": _cpu(elapsed),
            "path": _claim((messages + WARMUP) * self.size, 0),
            "bandwidth": {
                **_bandwidth(messages, self.size, elapsed),
                **_windows(messages, self.size, elapsed),
            },
        }  # fmt: skip
        return self.sent(messages + WARMUP, elapsed, [compact(line)])

    def steady(self) -> Size:
        """Of ten minutes, sixty intervals, each with noise of its own."""
        starts = range(0, self.test.seconds, 10)
        counts = [int(self.rate() * 10e9 / 8 / self.size) for _ in starts]
        intervals = [
            {"start_s": start, "end_s": start + 10, "count": count,
             "gbit_s": _bandwidth(count, self.size, 10)["gbit_s"]}
            for start, count in zip(starts, counts, strict=True)
        ]  # fmt: skip
        rates = [one["gbit_s"] for one in intervals]
        line = {
            **self.heading(duration_s=self.test.seconds),
            "elapsed_s": self.test.seconds,
            "intervals": intervals,
            "cpu": _cpu(self.test.seconds),
            "path": _claim((sum(counts) + WARMUP) * self.size, 0),
            "bandwidth": {
                **_bandwidth(sum(counts), self.size, self.test.seconds), "peak_gbit_s": max(rates),
                "peak_definition": "best_interval_0.1s", "min_interval_gbit_s": min(rates),
            },
        }  # fmt: skip
        lines = [compact({"kind": "interval", **one}) for one in intervals]
        return self.sent(sum(counts) + WARMUP, self.test.seconds, [*lines, compact(line)])

    def sent(self, messages: int, elapsed: float, lines: list[str]) -> Size:
        return Size(self.size, messages * self.size, 0, messages, elapsed, lines)

    # ---- other tools ----

    def perftest(self) -> Size:
        """It prints MiB/s with two digits."""
        messages = self.test.messages
        mib = round(self.rate() * 1e9 / 8 / 2**20, 2)
        row = f" 65536      {messages}           {mib:.2f}               {mib:.2f}   \t\t     "
        head = "                    RDMA_Write BW Test"
        columns = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]"
        ends = [
            f" {side} address: LID 0000 QPN 0x{mark >> 24 & 0xFF:04x} PSN 0x{mark & 0xFFFFFF:06x}"
            for side, mark in (("local", self.mark("client")), ("remote", self.mark("server")))
        ]
        printed = [RULE, head, *PERFTEST, RULE, *ends, RULE, f"{columns}   MsgRate[Mpps]"]
        lines = [*printed, f"{row}{mib * 16 / 1e6:.6f}", RULE]
        return self.sent(messages, messages * self.size / (mib * 2**20), lines)

    def iperf3(self) -> Size:
        seconds = self.test.seconds
        messages = int(self.rate() * 1e9 / 8 * seconds / self.size)
        total = {
            "start": 0, "end": seconds, "seconds": seconds, "bytes": messages * self.size,
            "bits_per_second": messages * self.size * 8 / seconds, "retransmits": 0, "sender": True,
        }  # fmt: skip
        received = {key: value for key, value in total.items() if key != "retransmits"}
        ends = [address(HOSTS.index(self.flow[role])) for role in ("client", "server")]
        document = {
            "start": {
                "connected": [{"socket": 5, "local_host": ends[0],
                               "local_port": 32768 + self.mark("client") % 28232,
                               "remote_host": ends[1], "remote_port": 5201}],
                "version": "iperf 3.12", "tcp_mss_default": 8948,
                "timestamp": {"time": stamp(self.at)[:-5] + "Z", "timesecs": int(self.at)},
                "test_start": {"protocol": "TCP", "num_streams": 1, "blksize": self.size,
                               "omit": 0, "duration": seconds, "bytes": 0, "blocks": 0,
                               "reverse": 0, "tos": 0, "target_bitrate": 0},
            },
            "intervals": [{
                "streams": [{**total, "socket": 5, "rtt": 50, "omitted": False}],
                "sum": {**total, "omitted": False},
            }],
            "end": {
                "streams": [{"sender": {**total, "socket": 5}, "receiver": {**total, "socket": 5}}],
                "sum_sent": total, "sum_received": received,
                "cpu_utilization_percent": {
                    "host_total": 50, "host_user": 1, "host_system": 49,
                    "remote_total": 50, "remote_user": 1, "remote_system": 49,
                },
            },
        }  # fmt: skip
        return self.sent(messages, seconds, [compact(document)])


VERBS = {
    "cq_moderation": 1, "traffic_class": 0, "sl": 0, "gid_index": 3, "mtu_bytes": 4096, "retry": 7,
    "rnr_retry": 7, "timeout_exponent": 14, "huge": 0, "srq": False, "rdma_cm": False,
    "relaxed_ordering": False, "inline_bytes": 0,
}  # fmt: skip
PERFTEST = (
    " Dual-port       : OFF\t\tDevice         : mlx5_0",
    " Number of qps   : 1\t\tTransport type : IB",
    " Connection type : RC\t\tUsing SRQ      : OFF",
    " PCIe relax order: OFF\t\tLock-free      : OFF",
    " ibv_wr* API     : OFF\t\tUsing DDP      : OFF",
    " TX depth        : 16",
    " CQ Moderation   : 1",
    " Mtu             : 4096[B]",
    " Link type       : Ethernet",
    " GID index       : 3",
    " Max inline data : 0[B]",
    " rdma_cm QPs\t : OFF",
    " Data ex. method : Ethernet",
)


def _bandwidth(messages: int, size: int, elapsed: float) -> Document:
    return {
        "gbit_s": rounded(messages * size * 8 / elapsed / 1e9),
        "messages_per_s": rounded(messages / elapsed),
        "bytes": messages * size,
    }


def _windows(messages: int, size: int, elapsed: float) -> Document:
    """The best and the worst window, 1 % around the mean."""
    rate = messages * size * 8 / elapsed / 1e9
    return {
        "peak_gbit_s": rounded(1.01 * rate),
        "peak_definition": "best_interval_0.1s",
        "min_interval_gbit_s": rounded(0.99 * rate),
    }


def _claim(sent: int, received: int) -> Document:
    return {
        "claimed_bytes": sent + received,
        "client_sent_bytes": sent,
        "client_received_bytes": received,
    }


def _cpu(seconds: float) -> Document:
    """Both ends poll."""
    busy = ("client_s", "server_s", "client_system_s", "server_system_s")
    return {**dict.fromkeys(busy, seconds), "client_s_per_gb": None, "server_s_per_gb": None}
