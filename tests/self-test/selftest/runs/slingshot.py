"""Two nodes with a Cassini NIC each: what HPE printed of its tools, and a flow of the engine.

The nodes are those of tests/fixtures/slingshot; the engine's line is made by hand. The NICs go on
counting from flow to flow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from perch.history.seal import seal
from selftest.edits import says, substitute
from selftest.files import compact, document, limit_set, write
from selftest.paths import FIXTURES
from selftest.runs.answers import answer, want
from selftest.runs.fabric_plan import EPOCH, stamp
from tests import spelled
from tests.raw_lines import HostFiles

Document = dict[str, Any]

RUN, NODES = "20260101T000000Z-x", ("alpha", "beta")
ADDRESSES = {"alpha": "192.0.2.1", "beta": "192.0.2.2"}
#: Seconds from one flow to the next.
TURN_S = 10
SIZE, MESSAGES, ELAPSED_S = 65536, 100000, 0.3


def _flow(test: str, title: str, op: str, kind: str, size: int, **params: Any) -> Document:
    is_engine = test == "engine"
    return {
        "id": f"{test}/alpha/beta/0/1", "test": test, "title": title, "repeat": 1,
        "tool": "perch" if is_engine else "cxi", "backend": "cxi" if is_engine else None,
        "provider": None, "op": op, "kind": kind, "client": "alpha", "server": "beta",
        "scope": "hardware", "params": {"size": size, **params},
        "ready": None if is_engine else {"port": 49194, "proto": "tcp"},
        "deadline_s": 60, "estimate_s": 1, "expect": [{"size_bytes": size}],
        "hop_class": "same_switch",
    }  # fmt: skip


def _plan() -> Document:
    """A plan that asks for the checks of Slingshot alone: the fixture has only these."""
    flows = (
        _flow("lat", "cxi_send_lat", "send", "latency", 8, iterations=5, report_all=True),
        _flow(
            "bw", "cxi_write_bw", "write", "bandwidth", 2**20,
            iterations=10, batch=64, no_hrp=True,
        ),
        _flow(
            "engine", "RDMA write bandwidth", "write", "bandwidth", SIZE, iterations=MESSAGES,
            warmup=0,
        ),
    )  # fmt: skip
    hosts = {
        node: {
            "address": address, "group": None, "switch": "x1", "fabric": "slingshot",
            "scope": "hardware", "backends": ["cxi"], "tools": ["perch", "cxi"],
            "devices": [{"name": "cxi0", "svc_id": 1, "vni": 10}], "port": 18600,
            "ports": [5001, 5201, 18515, 18600, 49194],
        }
        for node, address in ADDRESSES.items()
    }  # fmt: skip
    return {
        "run": RUN, "created": stamp(EPOCH)[:-5] + "Z",
        "suite": {"name": "s", "title": "S"}, "limits": "slingshot-200", "hosts": hosts,
        "excluded": [], "rounds": [{"flows": [flow]} for flow in flows],
    }  # fmt: skip


def _reading(octets: Counter[str], at: float) -> Document:
    """Counters of a node's NIC and of its interface, as the agent writes them."""
    none = (
        "hni_pcs_uncorrected_cw", "hni_llr_tx_replay_event", "hni_llr_rx_replay_event", "nacks",
        "pkts_cancelled_o", "pkts_cancelled_u",
    )  # fmt: skip
    moved = {
        "hni_sts_tx_ok_octets": str(octets["tx"]),
        "hni_sts_rx_ok_octets": str(octets["rx"]),
    }
    interface = {"tx_bytes": "0", "rx_bytes": "0", "rx_missed_errors": "0"}
    return {
        "time_s": f"{at:.6f}",
        "host": {"TcpRetransSegs": "0"},
        "netdev": {"hsn0": {**interface, "carrier_down_count": "1"}},
        "rdma": {},
        "cxi": {"cxi0": {"netdev": "hsn0", "counters": {**moved, **dict.fromkeys(none, "0")}}},
    }


def _line() -> Document:
    """The engine's line of a flow over cxi."""
    size = SIZE * MESSAGES
    rate = size * 8 / ELAPSED_S / 1e9

    def side(host: str, nic: str) -> Document:
        return {"host": host, "device": "cxi0", "address": f"NIC {nic} PID 0", "svc_id": 1,
                "vni": 10, "idc": True, "ll": True}  # fmt: skip

    return {
        "schema": "perch.record/1", "tool": {"name": "perch", "version": "0.1.0"},
        "backend": "cxi", "provider": "cxi", "op": "write", "kind": "bandwidth",
        "definition": "initiator_completion", "completion_level": "transmit", "connection": "rdm",
        "client": side("alpha", "0x13"), "server": side("beta", "0x12"),
        "link": {"rate_gbit_s": 200, "mtu_bytes": None, "layer": "slingshot", "hop_class": None},
        "params": {
            "size_bytes": SIZE, "iterations": MESSAGES, "duration_s": None, "warmup": 0,
            "gap_us": 0, "queue_pairs": 1, "outstanding": 64, "batch": 1, "threads": 1,
            "devices": 1, "inline_bytes": None, "bidirectional": False, "completion": "busy",
            "memory": "host", "verify": False, "clock": "monotonic", "rate": None, "svc_id": 1,
            "server_svc_id": 1, "vni": 10, "idc": True, "ll": True, "rdzv": False,
            "unrestricted": False, "hrp": False, "keys": "client", "atomic_op": None,
            "atomic_type": None, "tx_memory": "host", "rx_memory": "host",
        },
        "started": stamp(EPOCH + 3 * TURN_S + 0.1), "elapsed_s": ELAPSED_S, "latency_us": None,
        "bandwidth": {
            "gbit_s": rate, "peak_gbit_s": 1.01 * rate, "peak_definition": "best_interval_0.1s",
            "min_interval_gbit_s": 0.99 * rate, "messages_per_s": MESSAGES / ELAPSED_S,
            "bytes": size,
        },
        "intervals": [], "histogram": None, "integrity": None, "tcp": None,
        "cpu": dict.fromkeys(
            ("client_s", "server_s", "client_system_s", "server_system_s"), ELAPSED_S
        ),
        "path": {"claimed_bytes": size, "client_sent_bytes": size, "client_received_bytes": 0},
        "status": "ok", "error": None,
    }  # fmt: skip


def _node(root: Path, number: int, node: str, nic: Counter[str]) -> HostFiles:
    times = {"started": stamp(EPOCH + 1), "ended": stamp(EPOCH + 4 * TURN_S)}
    agent = {"run": RUN, "host": node, "plan_sha256": "", **times, "state": "done",
             "flows_total": 3}  # fmt: skip
    files = HostFiles(root / "raw" / node, agent)
    environment = {
        "schema": "perch.environment/2", "run": RUN, "host": node, "hostname": node,
        "kernel": "k", "os": None, "boot_id": f"composed-{node}",
        "cpu": {"model": None, "cores": 64}, "memory_bytes": None,
        "versions": {"perch": "0.1.0", "libfabric": "2.1.0", "cxi": "2.1.0"},
        "tuning": {}, "interfaces": [{"name": "hsn0"}], "rdma": [], "collected": stamp(EPOCH + 2),
        "cxi": [{"name": "cxi0", "driver": "cxi_ss1", "firmware": "1.6.0.326"}],
        "address_interface": "hsn0",
        "idle_samples": [files.sample(_reading(nic, EPOCH + TURN_S - s)) for s in (1.5, 0.5)],
    }  # fmt: skip
    collected = stamp(EPOCH + 3)[:-5] + "Z"
    answered = answer(node, number, collected, parts=("hosts/machine-amd", "slingshot/host_check"))
    # its firewall lets the port of the cxi tools through, too
    says("nft", substitute(r"\[18000, 19000\]", "[18000, 50000]"))(answered)
    want(root, node)
    write(root / f"raw/{node}/environment.json", environment)
    write(root / f"raw/{node}/host_check.json", answered)
    return files


#: Octets that a flow moves from client to server and back, with headers.
OCTETS = {"lat": (90000, 90000), "bw": (690000000, 2000000), "engine": (6800000000, 30000000)}
PRINTED = {"lat": "send_lat_all.txt", "bw": "write_bw_bytes.txt"}


def _printed(flow: Document) -> str:
    """What the client wrote."""
    if flow["tool"] == "perch":
        return f"{compact(_line())}\n"
    return (FIXTURES / "cxi" / PRINTED[flow["test"]]).read_text()


def slingshot(root: Path) -> None:
    """Composes the run."""
    write(root / "plan.json", _plan())
    plan = document(root / "plan.json")
    write(root / "inputs/limits.json", limit_set("slingshot-200"))
    nics = {node: Counter(tx=1000, rx=1000) for node in NODES}
    files = {node: _node(root, number, node, nics[node]) for number, node in enumerate(NODES, 1)}
    for turn, round_ in enumerate(plan["rounds"], 1):
        flow, at = round_["flows"][0], EPOCH + turn * TURN_S
        forth, back = OCTETS[flow["test"]]
        for role, sent, received in (("client", forth, back), ("server", back, forth)):
            nic = nics[flow[role]]
            before = _reading(nic, at)
            nic.update(tx=sent, rx=received)
            is_service = role == "server" and flow["tool"] == "perch"
            end = {
                "id": flow["id"], "role": role, "argv": flow[f"{role}_argv"],
                "started": stamp(at), "ended": stamp(at + 1), "elapsed_s": 1,
                "exit": None if is_service else 0, "state": "done",
                "counters": {"before": before, "after": _reading(nic, at + 1),
                             "route_interface": "hsn0"},
            }  # fmt: skip
            if role == "client":
                end["stdout"] = _printed(flow)
            files[flow[role]].end(end)
    for one in files.values():
        one.close()
    spelled.walked(root)
    seal(root)
