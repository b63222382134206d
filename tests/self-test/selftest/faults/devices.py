"""What devices counted: on a recorded run over Soft-RoCE, and on the same composed as hardware."""

from selftest.edits import (
    counting,
    drop,
    edit,
    ends,
    from_then_on,
    limits_of,
    more,
    prints,
    put,
    remove,
    slower,
)
from selftest.fault import FAIL, INCONCLUSIVE, fault
from selftest.files import Document

LATENCY = "write-latency/alpha/beta/0/1"
VERBS = "verbs-write-bandwidth/alpha/beta/0/1"
COUNTERS = "rdma.mlx5_0/1.counters"
SENDS = "send-bandwidth/alpha/beta/0/1"
OF_PATH = "path/write-latency/alpha/beta/0/1"
OF_VERBS = "flow/verbs-write-bandwidth/alpha/beta/0/1 coverage"


def stood_still(line: Document) -> None:
    """For three seconds, by which it began earlier; nothing else differs."""
    elapsed = line["elapsed_s"] + 3
    slower(line["elapsed_s"] / elapsed)(line)
    line["elapsed_s"], line["bandwidth"]["min_interval_gbit_s"] = elapsed, 0
    line["started"] = "2026-11-21T14:17:36.945Z"
    line["stall"] = {"longest_s": 3, "start_s": 0.5, "began": "2026-11-21T14:17:37.445Z"}


def counted(end: Document, moment: str, device: str = "rxe0/1") -> Document:
    """A device's counters then."""
    found: Document = end["counters"][moment]["rdma"][device]["counters"]
    return found


def still(end: Document) -> None:
    counters = end["counters"]
    clocks = {key: counters["after"][key] for key in ("time_s", "monotonic_ns")}
    counters["after"] = counters["before"] | clocks


def few_received(end: Document) -> None:
    before, after = counted(end, "before"), counted(end, "after")
    after["rcvd_pkts"] = str(int(before["rcvd_pkts"]) + 100)


def went_back(end: Document) -> None:
    counted(end, "before")["sent_pkts"] = "4294967290"
    counted(end, "after")["sent_pkts"] = "5"


def other_port(end: Document) -> None:
    readings = end["counters"]
    for moment in ("before", "after"):
        readings[moment]["rdma"]["rxe0/2"] = readings[moment]["rdma"]["rxe0/1"]
    readings["after"]["rdma"]["rxe0/1"] = readings["before"]["rdma"]["rxe0/1"]


def soft_driver(environment: Document) -> None:
    for device in environment["rdma"]:
        device["driver"] = "rdma_rxe"


FAULTS = (
    fault(
        "still-counters", "rxe", FAIL, OF_PATH, "counters that did not move", ends(LATENCY, still)
    ),
    fault(
        "lost-packet",
        "rxe",
        FAIL,
        OF_PATH,
        "a device that counted fewer packets than were sent to it",
        ends(LATENCY, few_received, role="server"),
    ),
    fault(
        "no-counters",
        "rxe",
        INCONCLUSIVE,
        OF_PATH,
        "a flow of RDMA whose agent left no counters",
        ends(LATENCY, put("counters", None)),
    ),
    fault(
        "wrapped",
        "rxe",
        INCONCLUSIVE,
        OF_PATH,
        "a counter that decreased",
        ends(LATENCY, went_back),
    ),
    fault(
        "other-device",
        "rxe",
        INCONCLUSIVE,
        OF_VERBS,
        "an output of another device than planned",
        prints(VERBS, put("client.device", "rxe1")),
    ),
    fault(
        "other-port",
        "rxe",
        FAIL,
        OF_PATH,
        "traffic over another port than planned",
        ends(LATENCY, other_port),
    ),
    fault(
        "small-claim",
        "rxe",
        INCONCLUSIVE,
        OF_VERBS,
        "a claim of fewer bytes than the figures need",
        prints(VERBS, put("path.client_sent_bytes", 6553599)),
    ),
    fault(
        "lossy",
        "rxe",
        FAIL,
        "limit/packets-lost/send-bandwidth",
        "packets that one device sent and the other did not receive",
        limits_of("rxe"),
        from_then_on(SENDS, more("rdma.rxe0/1.counters.sent_pkts", 30)),
    ),
    fault(
        "stalled",
        "rxe",
        FAIL,
        "limit/stall/verbs-write-bandwidth",
        "traffic that stopped for longer than a queue pair's retries",
        limits_of("rxe"),
        prints(VERBS, stood_still),
    ),
    fault(
        "posing",
        "cards",
        INCONCLUSIVE,
        f"{OF_PATH} path/* machines/devices",
        "a software device posing as hardware: nothing names its driver",
        edit("raw/*/environment.json", drop("rdma")),
    ),
    fault(
        "posing-one-end",
        "cards",
        INCONCLUSIVE,
        f"{OF_PATH} path/* machines/devices",
        "a driver that only one end names",
        edit("raw/beta/environment.json", drop("rdma")),
    ),
    fault(
        "absent-interface",
        "cards",
        INCONCLUSIVE,
        "machines/devices host_check/*",
        "a host without the interface of the inventory, which its checks do not tell",
        edit("plan.json", put("hosts.beta.devices.0.netdev", "eth7")),
        remove("raw/beta/host_check.json"),
    ),
    fault(
        "posing-rxe",
        "cards",
        INCONCLUSIVE,
        "software",
        "a software device posing as hardware under a card's name",
        edit("raw/*/environment.json", soft_driver),
    ),
    fault(
        "posing-counters",
        "cards",
        INCONCLUSIVE,
        "software",
        "a software device posing as hardware under a card's name and driver: its counters are a "
        "soft device's",
        *(
            counting(VERBS, f"{COUNTERS}.{name}", 0, 900, role)
            for role in ("client", "server")
            for name in ("sent_pkts", "rcvd_pkts")
        ),
    ),
    fault(
        "simulated",
        "cards",
        INCONCLUSIVE,
        "simulated",
        "a simulation posing as hardware",
        prints(VERBS, put("simulated", True)),
    ),
    fault(
        "foreign-traffic",
        "cards",
        INCONCLUSIVE,
        OF_PATH,
        "other traffic on the device",
        from_then_on(LATENCY, more(f"{COUNTERS}.port_xmit_data", 9_000_000_000)),
    ),
)
