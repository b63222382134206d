"""Fabrics that are sick and must not pass, and healthy ones that must.

A row is a composed run of five hosts with two cards each, in which one thing is as the row says:
the cases of a review by people with such hardware. Rows that pass although they are sick say what
they wait for.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from selftest import work
from selftest.edits import (
    Change,
    Edit,
    edit,
    ends,
    file_says,
    from_then_on,
    more,
    prints,
    put,
    readings,
    says,
    says_json,
    sealed_again,
    substitute,
)
from selftest.faults.hosts import BRIDGE, CARD, HALF_RATE, LOWER, UPPER, half_uplink, no_pfc
from selftest.faults.links import DARK, EXCHANGED, FEC_OFF
from selftest.files import Document, document
from selftest.paths import FIXTURES
from selftest.runs import fabric_plan, noise
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import RAILED, Fabric

from perch.judge import findings
from perch.model.limit_files import shipped
from perch.model.suite import Host
from perch.model.verdict import Verdict
from perch.plan import bought
from tests.py.checks_built import found, record, run_of

LATENCIES = fabric_plan.Test(
    "send-rails", "RDMA send latency of each rail", "perch", "send", "latency", 4000, (64,),
    "verbs", one_pair=True, rails=2, params={"devices": "all"},
)  # fmt: skip

BETA, ALL = "raw/beta/host_check.json", "raw/*/host_check.json"
FIRST, WRITTEN = "write-rails/alpha/beta/0/1", "write-rails/*/1"
COUNTERS, INTERFACE = "rdma.mlx5_0/1.counters", "netdev.enp1s0"
SMALL_MTU = substitute(r"active_mtu:(\s+)4096 \(5\)", r"active_mtu:\g<1>1024 (3)")


# ---- what is edited ------------------------------------------------------------------------------


def mtu_1500(document: Document) -> None:
    """Of both cards; without ibv_devinfo only the interfaces say so."""
    for rail in range(2):
        file_says((f"/sys/class/net/{fabric_plan.netdev(rail)}/mtu", "1500"))(document)
        says(f"verbs {fabric_plan.device(rail)}", SMALL_MTU)(document)


def corrected(reading: Document) -> None:
    """Nine of a million bits of each link of 100 Gb/s, all the time."""
    for counters in reading["netdev"].values():
        counters["rx_corrected_bits_phy"] = str(int(float(reading["time_s"]) * 9e5))


def without(*names: str) -> Change:
    """A host without these tools."""

    def change(document: Document) -> None:
        for name, said in document["commands"].items():
            if name.split()[0] in names:
                said |= {"exit": None, "stdout": ""}

    return change


def flow_control(change: Change) -> Change:
    """Of both cards' interfaces."""

    def both(document: Document) -> None:
        for rail in range(2):
            says_json(f"dcb-pfc {fabric_plan.netdev(rail)}", change)(document)

    return both


def on_priority_5(answer: Document) -> None:
    answer["prio_pfc"] = [number == 5 for number in range(8)]


def not_bought(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["link_gbit_s"] = None


def hung(asked: str) -> Change:
    """A command of the first card's interface."""

    def change(document: Document) -> None:
        said = document["commands"][f"{asked} {fabric_plan.netdev(0)}"]
        said |= {"exit": 124, "stdout": ""}

    return change


def unread_widths(document: Document) -> None:
    """Of the bridges; the card's own is there."""
    for bridge in (UPPER, LOWER):
        del document["files"][f"/sys/bus/pci/devices/{bridge}/current_link_width"]


def slow_slot(document: Document) -> None:
    """A slot of PCIe 3.0 with eight lanes."""
    for end, of in ((CARD, "current"), (BRIDGE, "current"), (BRIDGE, "max")):
        file_says((f"{end}/{of}_link_speed", "8.0 GT/s PCIe"), (f"{end}/{of}_link_width", "8"))(
            document
        )


def half_bond(document: Document) -> None:
    """A bond of two links of which one is down: each alone has the rate that was bought."""
    net = f"/sys/class/net/{fabric_plan.netdev(0)}"
    file_says((f"{net}/bonding/mode", "802.3ad 4"))(document)
    for link, state in (("eth0", "up"), ("eth1", "down")):
        document["links"][f"{net}/lower_{link}"] = f"../{link}"
        file_says((f"{net}/lower_{link}/operstate", state))(document)
        file_says((f"{net}/lower_{link}/speed", "100000" if state == "up" else "-1"))(document)


def stood(line: Document) -> None:
    line["stall"] = {"longest_s": 0.2, "start_s": 0.5, "began": line["started"]}


def refused(line: Document) -> None:
    """What the engine says where a queue pair's packets never arrive."""
    message = "the peer did not answer: transport retry counter exceeded"
    line |= {"status": "error", "error": {"code": 4, "message": message, "traffic": True}}


def little_headroom(answer: Document) -> None:
    answer["buffer_size"][1] = 8192


def of_lossy(limits: Document) -> None:
    """As a plan has them where the fabric may drop."""
    for one in limits["limits"]:
        one.setdefault("from", "roce.yml")
    host = SimpleNamespace(fabric="roce", traits={"lossless": False})
    limits |= bought.with_traits(limits, [cast(Host, host)])


#: The site asks for no flow control; else its hosts have not what it wants.
ASKS_NOTHING = edit("inputs/hosts/*.json", put("wanted", {"mtu": 4200}))
NO_PFC = edit(ALL, flow_control(no_pfc))


def with_traits(traits: dict[str, bool]) -> Edit:
    def change(plan: Document) -> None:
        for host in plan["hosts"].values():
            host["traits"] = traits

    return edit("plan.json", change)


LOSSLESS, LOSSY = with_traits({"lossless": True}), with_traits({"lossless": False})
ADAPTIVE = with_traits({"adaptive_routing": True})
DISORDER = from_then_on(FIRST, more(f"{COUNTERS}.out_of_sequence", 5000))
REPEATS = from_then_on(FIRST, more(f"{COUNTERS}.packet_seq_err", 5000))
STORM = says(
    "ethtool-qos-stats enp1s0",
    substitute("tx_pause_storm_error_events: 0", "tx_pause_storm_error_events: 3"),
)


# ---- runs ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("healthy") / "run"
    compose(root, Fabric(5, (*RAILED, LATENCIES)))
    return root


def judged(healthy: Path, root: Path, *edits: Edit) -> Verdict:
    shutil.copytree(healthy, root)
    for one in edits:
        one(root)
    sealed_again(root)
    return work.judged(root)


def against(verdict: Verdict) -> list[str]:
    return [one.id for one in verdict.checks if one.status in ("fail", "inconclusive")]


#: Case, verdict, the check that says so, and what makes it so.
SICK: dict[str, tuple[str, str, tuple[Edit, ...]]] = {
    "a card whose own PCIe link has half its lanes": (
        "FAIL", "host_check/nic-pcie-width/beta/mlx5_0",
        (edit(BETA, file_says((f"{CARD}/current_link_width", "8"))),),
    ),
    "an uplink of a PCIe switch with half its lanes": (
        "FAIL", "host_check/nic-pcie-uplinks/beta/mlx5_0", (edit(BETA, half_uplink),),
    ),
    "an uplink of a PCIe switch whose width cannot be read": (
        "INCONCLUSIVE", "host_check/nic-pcie-uplinks/beta/mlx5_0",
        (edit(BETA, half_uplink, unread_widths),),
    ),
    "a card that no longer answers: all bits are one": (
        "INCONCLUSIVE", "host_check/nic-pcie-width/beta/mlx5_0",
        (edit(BETA, file_says((f"{CARD}/current_link_speed", "Unknown"),
                              (f"{CARD}/current_link_width", "63"))),),
    ),
    "a card in a slot that is too slow for its port": (
        "FAIL", "host_check/nic-pcie-bandwidth/beta/mlx5_0", (edit(BETA, slow_slot),),
    ),
    "a link at half its rate": (
        "FAIL", "host_check/nic-link-speed/beta/mlx5_0", (edit(BETA, HALF_RATE),),
    ),
    "a link at half its rate, without ethtool": (
        "FAIL", "host_check/nic-link-speed/beta/mlx5_0",
        (edit(BETA, HALF_RATE, without("settings")),),
    ),
    "a link at half its rate, and an ethtool that hangs": (
        "INCONCLUSIVE", "host_check/nic-link-speed/beta/mlx5_0",
        (edit("plan.json", not_bought), edit(BETA, HALF_RATE, hung("settings"))),
    ),
    "blocks that FEC lost, and an ethtool that hangs at the end": (
        "INCONCLUSIVE", "host_check/nic-fec-blocks/beta/mlx5_0",
        (edit(BETA, hung("fec-later")),),
    ),
    "a link at half its rate, by what the flows saw": (
        "FAIL", "expected/rate", (prints(WRITTEN, put("link.rate_gbit_s", 50)),),
    ),
    "a bond with a link that is down": (
        "FAIL", "host_check/nic-bond-links/beta/mlx5_0", (edit(BETA, half_bond),),
    ),
    "FEC off on one host": (
        "FAIL", "host_check/nic-fec-ends/beta/mlx5_0", (edit(BETA, FEC_OFF),),
    ),
    "hosts on which nobody can read FEC": (
        "INCONCLUSIVE", "host_check/nic-fec/alpha/mlx5_0", (edit(ALL, without("fec")),),
    ),
    "two cables of a host in each other's leaf": (
        "FAIL", "host_check/nic-cabling/beta/mlx5_1", (edit(BETA, EXCHANGED),),
    ),
    "hosts on which nobody can read neighbours": (
        "INCONCLUSIVE", "host_check/nic-neighbour/alpha/mlx5_0", (edit(ALL, without("lldp")),),
    ),
    "a card whose settings nobody can read": (
        "INCONCLUSIVE", "host_check/nic-config/alpha/mlx5_0", (edit(ALL, without("config")),),
    ),
    "a module that receives too little light": (
        "FAIL", "host_check/nic-module-levels/beta/enp1s0", (edit(BETA, DARK),),
    ),
    "an MTU of 1500 on one host": (
        "FAIL", "host_check/nic-path-mtu-ends/beta/mlx5_0", (edit(BETA, mtu_1500),),
    ),
    "an MTU of 1500 on all hosts": (
        "FAIL", "host_check/nic-path-mtu/alpha/mlx5_0", (edit(ALL, mtu_1500),),
    ),
    "an MTU of 1500 on all hosts, without ibv_devinfo": (
        "INCONCLUSIVE", "host_check/nic-path-mtu/alpha/mlx5_0",
        (edit(ALL, mtu_1500, without("verbs")),),
    ),
    "a switch whose MTU is below 4200": (
        "FAIL", "flow/write-rails/alpha/beta/0/1",
        (ends(FIRST, put("exit", 4)), prints(FIRST, refused)),
    ),
    "flow control off on one host": (
        "FAIL", "host_check/differs-qos-pfc/beta/enp1s0",
        (ASKS_NOTHING, edit(BETA, flow_control(no_pfc))),
    ),
    "flow control off on all hosts of a lossless fabric": (
        "FAIL", "host_check/qos-lossless/alpha/enp1s0", (ASKS_NOTHING, NO_PFC, LOSSLESS),
    ),
    "flow control off on all hosts, and nobody says whether it is lossless": (
        "INCONCLUSIVE", "host_check/qos-lossless/alpha/enp1s0", (ASKS_NOTHING, NO_PFC),
    ),
    "a pause storm that stops traffic": (
        "FAIL", "limit/stall/write-rails", (edit(BETA, STORM), prints(FIRST, stood)),
    ),
    "a bad cable whose errors nothing corrects": (
        "FAIL", "counters/errors",
        (from_then_on(FIRST, more(f"{COUNTERS}.port_rcv_errors", 50)),),
    ),
    "a bad cable whose errors FEC corrects": (
        "FAIL", "fec/alpha/enp1s0",
        (from_then_on(FIRST, more(f"{INTERFACE}.rx_corrected_bits_phy", 10**10)),),
    ),
    "a bad cable with errors that FEC cannot correct": (
        "FAIL", "counters/errors",
        (from_then_on(FIRST, more(f"{INTERFACE}.rx_pcs_symbol_err_phy", 50)),),
    ),
    "flow control for a priority that carries nothing": (
        "FAIL", "host_check/qos-path/alpha/mlx5_0",
        (ASKS_NOTHING, edit(ALL, flow_control(on_priority_5))),
    ),
    "power saving that takes a small message beyond 9 us": (
        "FAIL", "limit/small-message-median/send-rails",
        (prints("send-rails/*", noise.longer(6)),),
    ),
}  # fmt: skip

#: Case, what it waits for, and what makes it so.
WAITING: dict[str, tuple[str, tuple[Edit, ...]]] = {
    "flow control whose buffer has too little headroom": (
        "a later round: PFC that only congestion shows",
        (edit(ALL, *(says_json(f"dcb-buffer {fabric_plan.netdev(rail)}", little_headroom)
                     for rail in range(2))),),
    ),
    "a spine link at half its rate, that no flow took": (
        "a later round: paths through the fabric", (),
    ),
}  # fmt: skip

HEALTHY: dict[str, tuple[Edit, ...]] = {
    "hosts and links as they should be": (),
    "links that need FEC as PAM4 does": (readings("*", corrected),),
    "adaptive routing, which reorders packets": (ADAPTIVE, DISORDER),
    "a fabric that may drop, and sends again": (
        ASKS_NOTHING, NO_PFC, LOSSY, edit("inputs/limits.json", of_lossy), DISORDER, REPEATS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SICK)
def test_a_sick_fabric_does_not_pass(case: str, healthy: Path, tmp_path: Path) -> None:
    word, check, edits = SICK[case]
    verdict = judged(healthy, tmp_path / "run", *edits)
    assert verdict.verdict == word
    assert check in against(verdict)


@pytest.mark.parametrize("case", WAITING)
def test_a_sick_fabric_that_still_passes_says_what_it_waits_for(
    case: str, healthy: Path, tmp_path: Path
) -> None:
    waits_for, edits = WAITING[case]
    assert waits_for
    verdict = judged(healthy, tmp_path / "run", *edits)
    assert (verdict.verdict, against(verdict)) == ("PASS", [])


@pytest.mark.parametrize("case", HEALTHY)
def test_a_healthy_fabric_passes(case: str, healthy: Path, tmp_path: Path) -> None:
    verdict = judged(healthy, tmp_path / "run", *HEALTHY[case])
    assert (verdict.verdict, against(verdict)) == ("PASS", [])


# ---- what needs a run, a host or records of its own ----------------------------------------------


def test_a_site_without_lldp_passes_and_the_report_names_what_was_not_checked(
    healthy: Path, tmp_path: Path
) -> None:
    no_lldp = edit("inputs/hosts/*.json", put("wanted.neighbours", False))
    verdict = judged(healthy, tmp_path / "run", no_lldp, edit(ALL, without("lldp")))
    assert (verdict.verdict, against(verdict)) == ("PASS", [])
    named = {one.id for one in verdict.checks if "host_check_neighbours" in str(one.measured)}
    assert named == {
        "host_check/nic-cabling/alpha",
        "host_check/nic-neighbour/alpha/mlx5_0",
        "host_check/nic-neighbour/alpha/mlx5_1",
    }


def test_one_nic_of_ten_at_a_tenth_is_named_and_nothing_else(tmp_path: Path) -> None:
    slow = "^write-rails/(gamma/[a-z]+|[a-z]+/gamma)/1/"
    root = tmp_path / "run"
    compose(root, Fabric(5, RAILED, weak=(slow, 0.1)))
    verdict = work.judged(root)
    faults = {one.id: one.fault for one in verdict.checks if one.status == "fail"}
    assert verdict.verdict == "FAIL"
    assert faults.keys() == {
        f"{check}/write-rails"
        for check in ("rails/siblings", "rails/elsewhere", "limit/site-peers",
                      "limit/large-message-share")
    }  # fmt: skip
    assert faults["rails/siblings/write-rails"] == (
        "Slower than its siblings: rail 1 of gamma (mlx5_1), test write-rails"
    )
    assert faults["rails/elsewhere/write-rails"] == (
        "Slower than the same rail of other hosts: rail 1 of gamma (mlx5_1), test write-rails"
    )


@pytest.mark.parametrize(
    ("slow", "way"), [("[a-z]+/gamma", "receiving"), ("gamma/[a-z]+", "sending")]
)
def test_a_nic_at_a_tenth_one_way_is_named_with_it(slow: str, way: str, tmp_path: Path) -> None:
    root = tmp_path / "run"
    tests = (replace(RAILED[0], both_ways=True),)
    compose(root, Fabric(5, tests, weak=(f"^write-rails/{slow}/1/", 0.1)))
    faults = {one.id: one.fault for one in work.judged(root).checks if one.status == "fail"}
    told = f"rail 1 of gamma (mlx5_1), {way}, test write-rails"
    assert faults["rails/siblings/write-rails"] == f"Slower than its siblings: {told}"
    assert faults["rails/elsewhere/write-rails"] == (
        f"Slower than the same rail of other hosts: {told}"
    )


@pytest.mark.parametrize("tools", [("portinfo",), ()])
def test_an_infiniband_port_below_what_was_bought_fails(tools: tuple[str, ...]) -> None:
    """With smpquery and without it."""
    raw = document(FIXTURES / "hosts/nic-mlx5-infiniband.json")
    without(*tools)(raw)
    nic = {"name": "mlx5_0", "gid_index": 0}
    host = {
        "name": "alpha", "fabric": "infiniband", "scope": "hardware", "devices": [nic],
        "wanted": {}, "ports": [18600],
    }  # fmt: skip
    statuses = {
        gbit_s: [
            one["status"]
            for one in findings.judged(
                [findings.Question(["nic"], host | {"link_gbit_s": gbit_s}, raw)]
            )["alpha"]
            if one["id"] == "nic-link-speed"
        ]
        for gbit_s in (100, 400)
    }
    assert statuses == {100: ["ok"], 400: ["bad"]}


@pytest.mark.parametrize(("queue_pairs", "status"), [(16, "pass"), (15, "fail")])
def test_one_bad_queue_pair_of_sixteen_fails(queue_pairs: int, status: str) -> None:
    """On a link that large writes fill to 97.9 % of its ceiling, as healthy ones do."""
    rate = 0.979 * 392.2 * queue_pairs / 16
    one = record(
        "t/a/b/0/1", scope="hardware", op="write", backend="verbs", bandwidth={"gbit_s": rate},
        params={"size_bytes": 1 << 20, "queue_pairs": 16, "bidirectional": False},
        link={"rate_gbit_s": 400, "mtu_bytes": 4096, "layer": "ethernet",
              "hop_class": "same_switch"},
    )  # fmt: skip
    limits = [one for one in shipped("roce-400") or () if one.metric == "bandwidth.gbit_s"]
    checks = found(run_of([one], *limits), "limit")
    assert checks["limit/large-write-share-same-switch/t"].status == status
