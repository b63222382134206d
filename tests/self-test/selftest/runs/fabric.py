"""The composed fabric as its agents left it: their reports, and counters of cards that go on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perch.history.seal import seal
from selftest.files import limit_set, write
from selftest.runs.answers import check_hosts
from selftest.runs.fabric_figures import Size, measured
from selftest.runs.fabric_plan import HOSTS, Fabric, Test, device, netdev, plan, retry_plan, stamp
from tests import spelled
from tests.raw_lines import HostFiles

Document = dict[str, Any]

#: With every host's address.
INTERFACE = "enp1s0"
#: Seconds from one round to the next, beyond those that a test is planned to take.
ROUND_S = 10
#: Of an Ethernet frame with RoCE's headers around a payload, and of an acknowledgement.
HEADERS, ACKNOWLEDGEMENT = 60, 64
#: What a session of ssh moves between two readings.
OTHER_BYTES, OTHER_PACKETS = 3000, 12

#: What goes wrong, and did not.
ERRORS = (
    "link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "port_xmit_discards",
    "port_xmit_wait", "out_of_sequence", "packet_seq_err", "local_ack_timeout_err",
    "implied_nak_seq_err", "rnr_nak_retry_err", "duplicate_request", "rx_icrc_encapsulated",
    "roce_adp_retrans", "np_cnp_sent", "np_ecn_marked_roce_packets", "rp_cnp_handled",
    "req_cqe_error", "req_cqe_flush_error",
)  # fmt: skip
DROPS = (
    "tx_dropped", "tx_errors", "rx_dropped", "rx_errors", "rx_crc_errors", "rx_missed_errors",
    "rx_corrected_bits_phy", "rx_pcs_symbol_err_phy",
)  # fmt: skip
MOVED = ("tx_bytes", "tx_packets", "rx_bytes", "rx_packets")


class _Card:
    """A host's card of a rail and its interface: what they have counted so far."""

    def __init__(self, number: int, rail: int) -> None:
        self.device, self.netdev_name = f"{device(rail)}/1", netdev(rail)
        self.rdma = Counter(dict.fromkeys(MOVED, 4_000_000 * (number + 1)))
        self.netdev = Counter(dict.fromkeys(MOVED, 70_000 * (number + 1)))

    def rest(self) -> None:
        """What no flow sends."""
        self.netdev.update(
            tx_bytes=OTHER_BYTES,
            rx_bytes=OTHER_BYTES,
            tx_packets=OTHER_PACKETS,
            rx_packets=OTHER_PACKETS,
        )

    def rdma_reading(self) -> Document:
        """The card's bytes are counted in words of four."""
        words = {
            "port_xmit_data": self.rdma["tx_bytes"] // 4,
            "port_rcv_data": self.rdma["rx_bytes"] // 4,
            "port_xmit_packets": self.rdma["tx_packets"],
            "port_rcv_packets": self.rdma["rx_packets"],
        }
        card = {**dict.fromkeys(ERRORS, 0), **words}
        return {"netdev": self.netdev_name, "counters": _texts(card)}

    def netdev_reading(self) -> Document:
        return _texts({**self.netdev, **dict.fromkeys(DROPS, 0)})


def _reading(cards: list[_Card], at: float) -> Document:
    """All counters of a host."""
    return {
        "time_s": f"{at:.6f}",
        "host": {"TcpRetransSegs": "0"},
        "netdev": {card.netdev_name: card.netdev_reading() for card in cards},
        "rdma": {card.device: card.rdma_reading() for card in cards},
    }


def _rest(cards: list[_Card]) -> None:
    for card in cards:
        card.rest()


def _texts(counters: dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in counters.items()}


def _wire(sizes: list[Size], mtu: int) -> tuple[Counter[str], Counter[str]]:
    """What the client's and the server's end count: payload, headers, acknowledgements."""
    forth: Counter[str] = Counter()
    back: Counter[str] = Counter()
    for one in sizes:
        packets = math.ceil(one.size / mtu) * one.messages
        if one.received:
            forth.update(bytes=one.sent + HEADERS * packets // 2, packets=packets // 2)
            back.update(bytes=one.received + HEADERS * packets // 2, packets=packets // 2)
        else:
            forth.update(bytes=one.sent + HEADERS * packets, packets=packets)
            back.update(bytes=ACKNOWLEDGEMENT * one.messages, packets=one.messages)
    return forth, back


def _moved(sent: Counter[str], received: Counter[str]) -> dict[str, int]:
    return {
        "tx_bytes": sent["bytes"],
        "tx_packets": sent["packets"],
        "rx_bytes": received["bytes"],
        "rx_packets": received["packets"],
    }


class _Run:
    """Composes one run in a folder."""

    def __init__(self, root: Path, fabric: Fabric) -> None:
        self.root, self.fabric = root, fabric
        self.cards = {
            host: [_Card(number, rail) for rail in range(fabric.rails)]
            for number, host in enumerate(HOSTS)
        }
        self.tests = {test.name: test for test in fabric.tests}
        self.files: dict[str, HostFiles] = {}
        self.at = float(fabric.begun)

    def compose(self) -> None:
        write(self.root / "plan.json", plan(self.fabric))
        planned = spelled.read(self.root)
        write(self.root / "inputs/limits.json", limits())
        self.at += 2
        check_hosts(self.root)
        self.rounds(planned, "")
        if self.fabric.again:
            again = retry_plan(self.fabric, planned)
            spelled.write_retry(self.root, [turn["flows"] for turn in again["rounds"]])
            self.rounds(again, "retry")
        spelled.walked(self.root)
        seal(self.root)

    def rounds(self, planned: Document, folder: str) -> None:
        """Plays the rounds of a plan, and writes what the agents then report."""
        self.files = self.agents(planned, folder)
        if not folder:
            for host in HOSTS:
                write(self.root / f"raw/{host}/environment.json", self.environment(host))
        for round_ in planned["rounds"]:
            self.at += ROUND_S
            for flow in round_["flows"]:
                self.flow(flow)
            self.at += max(self.tests[flow["test"]].seconds for flow in round_["flows"])
        for files in self.files.values():
            files.close()
        self.at += ROUND_S

    def agents(self, planned: Document, folder: str) -> dict[str, HostFiles]:
        """The files of each host that has flows."""
        turns = [turn["flows"] for turn in planned["rounds"]]
        lasts = [max(self.tests[flow["test"]].seconds for flow in turn) for turn in turns]
        over = self.at + sum(lasts, ROUND_S * (len(turns) + 1))
        files = {}
        for host in HOSTS:
            mine = [
                flow for turn in turns for flow in turn if host in (flow["client"], flow["server"])
            ]
            report = {
                "run": self.fabric.run, "host": host, "plan_sha256": "",
                "started": stamp(self.at), "ended": stamp(over), "state": "done",
                "flows_total": len(mine),
            }  # fmt: skip
            if mine:
                files[host] = HostFiles(self.root / "raw" / host / folder, report)
        return files

    def flow(self, flow: Document) -> None:
        test = self.tests[flow["test"]]
        sizes = list(measured(self.fabric, test, flow, self.at))
        forth, back = _wire(sizes, 4096 if test.is_hardware else 8948)
        moved = {"client": _moved(forth, back), "server": _moved(back, forth)}
        seconds = sum(one.elapsed_s for one in sizes) + 1
        for role in ("client", "server"):
            end = self.end(test, flow, role, seconds, moved[role])
            printed = [line for one in sizes for line in one.lines]
            if role == "client":
                end["stdout"] = _text(printed)
            elif test.tool != "perch":
                end["stdout"] = _text(map(_served, printed))
            self.files[flow[role]].end(end)

    def end(
        self, test: Test, flow: Document, role: str, seconds: float, moved: dict[str, int]
    ) -> Document:
        """One end's report: its command, and the readings before and after it."""
        cards = self.cards[flow[role]]
        card = cards[flow["rail"]]
        before = _reading(cards, self.at)
        (card.rdma if test.is_hardware else card.netdev).update(moved)
        _rest(cards)
        after = _reading(cards, self.at + seconds)
        _rest(cards)
        is_service = role == "server" and test.tool == "perch"
        return {
            "id": flow["id"], "role": role, "argv": flow[f"{role}_argv"],
            "started": stamp(self.at), "ended": stamp(self.at + seconds),
            "elapsed_s": round(seconds, 3), "exit": None if is_service else 0, "state": "done",
            "counters": {"before": before, "after": after, "route_interface": INTERFACE},
        }  # fmt: skip

    def environment(self, host: str) -> Document:
        cards = self.cards[host]
        before = _reading(cards, self.at)
        _rest(cards)
        idle = [before, _reading(cards, self.at + 1)]
        return {
            "schema": "perch.environment/2", "run": self.fabric.run, "host": host, "hostname": host,
            "boot_id": f"composed-{host}",
            "kernel": "6.8.0-60-generic", "os": "Composed",
            "cpu": {"model": "composed", "cores": 64}, "memory_bytes": 540000000000,
            "versions": {"perch": "0.1.0", "libfabric": "2.1.0", "iperf3": "3.12",
                         "perftest": "6.24", "jq": "1.7"},
            "tuning": {},
            "interfaces": [
                {"name": netdev(rail), "mtu_bytes": 9000, "state": "up", "rate_gbit_s": 100,
                 "driver": "mlx5_core"}
                for rail in range(self.fabric.rails)
            ],
            "rdma": [
                {"name": device(rail), "driver": "mlx5_core", "firmware": "22.39.1002"}
                for rail in range(self.fabric.rails)
            ],
            "collected": stamp(self.at - 1), "address_interface": INTERFACE,
            "idle_samples": [self.files[host].sample(one) for one in idle],
        }  # fmt: skip


def _served(printed: str) -> str:
    """What the server prints in the place of its client: the ends the other way round."""
    side = r"\b(local|remote)(?=[ _](?:address|host|port)\b)"
    return re.sub(side, lambda end: {"local": "remote", "remote": "local"}[end[0]], printed)


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def limits() -> Document:
    """The set roce, and what a site would ask beside it."""
    policy = "site policy: of the self-test's fabric, which is composed"
    found = limit_set("roce")
    found["limits"] += [
        {
            "id": "site-peers", "title": "RDMA bandwidth of comparable pairs",
            "scope": {"kind": "bandwidth", "tool": "perch", "scope": "hardware",
                      "size_bytes": {"min": 65536}, "op": "write"},
            "metric": "bandwidth.gbit_s", "bound": {"min": 0.9, "of": "peers"},
            "unit": "of the median of comparable pairs", "source": policy, "severity": "required",
            "remedy": "Compare this pair with the others",
        },
        {
            "id": "site-tail", "title": "RDMA send latency, one message of ten thousand",
            "scope": {"kind": "latency", "tool": "perch", "scope": "hardware", "op": "send",
                      "size_bytes": {"max": 64}, "test": "send-tail"},
            "metric": "latency_us.p99_99", "bound": {"max": 200},
            "unit": "us", "source": policy, "severity": "required",
            "remedy": "Look for what stops both hosts for so long",
        },
    ]  # fmt: skip
    return found


def compose(root: Path, fabric: Fabric) -> None:
    """Writes the run's files below `root`."""
    _Run(root, fabric).compose()
