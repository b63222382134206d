"""RDMA in a judged run: what the devices counted proves the path, or fails it.

A name alone makes nothing hardware.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from perch.model.moments import moment
from perch.model.verdict import Verdict
from tests import spelled
from tests.py.judging import Change, Document, Run, check_of, later, more, status
from tests.raw_lines import BOTH, End, go_on, put, walks

TOP = Path(__file__).parents[2]
LATENCY = "write-latency/alpha/beta/0/1"
WRITE = "verbs-write-bandwidth/alpha/beta/0/1"
DATAGRAMS = "verbs-ud-send-bandwidth/alpha/beta/0/1"
TCP = "tcp-bandwidth-event/alpha/beta/0/1"

Recorded = Callable[[str], Path]


def of_flows(test: str, **members: object) -> Change:
    """Changes the flows of a test in a plan."""

    def change(plan: Document) -> None:
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                if flow["test"] == test:
                    flow.update(members)

    return change


def of_all(**members: object) -> Change:
    """Changes all hosts and flows of a plan."""

    def change(plan: Document) -> None:
        for host in plan["hosts"].values():
            host.update(members)
        for turn in plan["rounds"]:
            for flow in turn["flows"]:
                flow.update(members)

    return change


def counter(name: str, value: str) -> str:
    """Where a counter of the recorded device stands in an end."""
    return f"counters.{name}.rdma.rxe0/1.counters.{value}"


def result(run: Run, test: str) -> Document:
    (one,) = (one for one in run.records() if one["test"] == test)
    return one


def test_hardware_without_device_counters_is_never_a_pass(loopback: Run) -> None:
    def hosts(plan: Document) -> None:
        for host in plan["hosts"].values():
            host |= {"scope": "hardware", "fabric": "roce"}

    test = "ofi-bandwidth-event"
    loopback.edit("plan.json", hosts, of_flows(test, scope="hardware", provider="verbs"))
    loopback.flow(test).prints(put("provider", "verbs"), put("link.layer", "infiniband"))
    verdict = loopback.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"path/{test}/alpha/beta/0/1") == "inconclusive"


def test_what_soft_roce_carried_is_proven_on_both_ends(rxe: Run) -> None:
    verdict = rxe.judge()
    assert verdict.verdict == "PASS"
    paths = [(one.id, one.status, one.measured) for one in verdict.checks if "path" in one.id]
    assert paths == [("path/proven/software", "pass", 9)]
    counted = {(one["path"]["state"], one["path"]["counted"]) for one in rxe.records()}
    assert counted == {("proven", "rxe0 packets, eth1 bytes")}


def test_what_soft_roce_sent_again_is_in_record_and_report(
    rxe: Run, perchctl: Callable[..., object]
) -> None:
    rxe.judge()
    again = result(rxe, "write-latency")["counters"]["server"]["rxe0/1"]["duplicate_request"]
    assert again == 12
    perchctl("report", str(rxe.root))
    lines = (rxe.root / "report.md").read_text().splitlines()
    assert sum(line.endswith("| 1 proven |") for line in lines) == 9
    said = "RDMA write latency, server: rxe0/1 duplicate_request 12"
    assert sum(line.endswith(said) for line in lines) == 1


# ---- what the devices counted --------------------------------------------------------------------


def packets_stood(end: Document) -> None:
    end["counters"]["after"]["rdma"] = end["counters"]["before"]["rdma"]


def interface_stood(end: Document) -> None:
    end["counters"]["after"]["netdev"] = end["counters"]["before"]["netdev"]


def another_port(end: Document) -> None:
    """All went over port 2, while port 1, which the plan names, stood still."""
    before, after = (end["counters"][when]["rdma"] for when in BOTH)
    before["rxe0/2"], after["rxe0/2"] = before["rxe0/1"], after["rxe0/1"]
    after["rxe0/1"] = before["rxe0/1"]


@pytest.mark.parametrize(
    ("role", "change"),
    [
        ("client", packets_stood),
        ("client", interface_stood),
        ("client", another_port),
        # one packet of 200 is missing at the other end
        ("server", put(counter("after", "rcvd_pkts"), "199")),
    ],
    ids=["no packets", "no bytes", "another port", "a packet less"],
)
def test_a_device_that_counted_less_than_was_claimed_fails(
    rxe: Run, role: str, change: Change
) -> None:
    rxe.flow("write-latency", role).edit(change)
    verdict = rxe.judge()
    assert (verdict.verdict, status(verdict, f"path/{LATENCY}")) == ("FAIL", "fail")


def test_a_device_that_counted_more_than_was_claimed_is_a_finding(rxe: Run) -> None:
    go_on(rxe.flow("write-latency"), more("rdma.rxe0/1.counters.sent_pkts", 9_000_000_000))
    verdict = rxe.judge()
    assert (verdict.verdict, status(verdict, f"path/{LATENCY}")) == ("PASS", "advisory")


def not_read(end: Document) -> None:
    for when in BOTH:
        end["counters"][when]["rdma"] = {}


def without_a_counter(end: Document) -> None:
    del end["counters"]["after"]["rdma"]["rxe0/1"]["counters"]["sent_pkts"]


def wrapped(end: Document) -> None:
    put(counter("before", "sent_pkts"), "4294967290")(end)
    put(counter("after", "sent_pkts"), "5")(end)


@pytest.mark.parametrize(
    "change",
    [put("counters", None), not_read, without_a_counter, wrapped],
    ids=["no readings", "no device", "no counter", "wrapped"],
)
def test_a_counter_that_cannot_be_read_proves_nothing(rxe: Run, change: Change) -> None:
    rxe.flow("write-latency").edit(change)
    verdict = rxe.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"path/{LATENCY}") == "inconclusive"
    assert result(rxe, "write-latency")["path"]["state"] == "unknown"


def test_nobody_knows_which_of_two_ports_was_used(rxe: Run) -> None:
    def both(end: Document) -> None:
        for when in BOTH:
            ports = end["counters"][when]["rdma"]
            ports["rxe0/2"] = ports["rxe0/1"]

    rxe.flow("verbs-write-bandwidth").edit(both)
    verdict = rxe.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"path/{WRITE}") == "inconclusive"


# ---- hardware or software ------------------------------------------------------------------------


def without_driver(environment: Document) -> None:
    for device in environment["rdma"]:
        device["driver"] = None


def test_hosts_that_name_a_cards_driver_are_hardware(cards: Run) -> None:
    verdict = cards.judge()
    assert (verdict.verdict, verdict.scope) == ("PASS", "hardware")


def test_without_a_cards_driver_nothing_shows_hardware(cards: Run) -> None:
    cards.edit("raw/beta/environment.json", lambda known: known.pop("rdma"))
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    check = check_of(verdict, f"path/{LATENCY}")
    assert (check.status, check.measured) == (
        "inconclusive",
        "nothing shows that mlx5_0 of beta (server) is hardware: its driver is not in "
        "environment.json",
    )
    assert "driver" in str(check.remedy)


def test_a_driver_that_is_not_named_shows_nothing(cards: Run) -> None:
    for host in ("alpha", "beta"):
        cards.edit(f"raw/{host}/environment.json", without_driver)
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, "path/verbs-read-bandwidth/alpha/beta/0/1") == "inconclusive"


def test_a_cards_name_without_its_driver_is_software_by_its_counters(rxe: Run) -> None:
    for file in rxe.root.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"rxe0", b"mlx5_0"))
    rxe.edit("plan.json", of_all(scope="hardware"))
    for host in ("alpha", "beta"):
        rxe.edit(f"raw/{host}/environment.json", lambda known: known.pop("rdma"))
    verdict = rxe.judge()
    assert (verdict.verdict, verdict.scope) == ("INCONCLUSIVE", "software")
    assert status(verdict, "software") == "inconclusive"


def tcp_beside(run: Run, of: Path, scope: str, layer: str) -> Verdict:
    """Judges a run that has a recorded flow of TCP, too, between hosts of this scope."""
    hosts, recorded = (spelled.read(one)["hosts"] for one in (run.root, of))
    first = run.flow("verbs-send-latency").document()["started"]
    began = moment(End(of, TCP).document()["started"])
    shift = later((moment(first) or 0) - (began or 0))

    def as_here(text: str) -> Document:
        for name in hosts:
            text = text.replace(recorded[name]["address"], hosts[name]["address"])
        document: Document = json.loads(text)
        shift(document)
        return document

    for host, role in (("alpha", "client"), ("beta", "server")):
        (walk,) = walks(run.root, host)
        walk.ends.append(as_here(json.dumps(End(of, TCP, role).document())))
        walk.agent["flows_total"] += 1
        walk.agent["flows_done"] += 1
        walk.save()

    def line(document: Document) -> None:
        shift(document)
        document["link"]["layer"] = layer
        document["client"]["host"], document["server"]["host"] = "alpha", "beta"

    End(run.root, TCP).prints(line)

    def with_tcp(plan: Document) -> None:
        of_all(scope=scope)(plan)
        turns = (turn["flows"] for turn in spelled.read(of)["rounds"])
        flows = [flow for turn in turns for flow in turn if flow["test"] == TCP.split("/")[0]]
        plan["rounds"].append({"flows": flows})

    run.edit("plan.json", with_tcp)
    verdict = run.judge()
    assert result(run, TCP.split("/")[0])["status"] == "ok"
    return verdict


@pytest.mark.parametrize(
    ("scope", "layer", "expected"),
    [
        ("hardware", "ethernet", "hardware"),
        ("software", "ethernet", "software"),  # beside hosts that the plan calls no hardware
        ("hardware", "loopback", "software"),  # over a layer that leaves no machine
    ],
)
def test_tcp_between_hosts_of_hardware_is_the_baseline_alone(
    cards: Run, run_copy: Recorded, scope: str, layer: str, expected: str
) -> None:
    assert tcp_beside(cards, run_copy("loopback"), scope, layer).scope == expected


def test_one_flow_of_rdma_in_software_makes_the_run_software(
    cards: Run, run_copy: Recorded
) -> None:
    tcp_beside(cards, run_copy("loopback"), "hardware", "ethernet")
    cards.edit("plan.json", of_flows("verbs-send-latency", scope="software"))
    assert cards.judge().scope == "software"


# ---- what the output says ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flow", "change"),
    [
        (
            WRITE,
            put("path", {"claimed_bytes": 0, "client_sent_bytes": 0, "client_received_bytes": 0}),
        ),
        (WRITE, put("path.client_sent_bytes", 6553599)),
        (WRITE, put("client.device", "rxe1")),
        (WRITE, put("server.device", None)),
        (DATAGRAMS, put("connection", "RC")),
        (DATAGRAMS, put("params.queue_pairs", 4)),
        (DATAGRAMS, put("params.srq", True)),
    ],
    ids=[
        "claims nothing", "claims too little", "another device", "no device", "connection",
        "queue pairs", "shared receive queue",
    ],
)  # fmt: skip
def test_an_output_of_another_connection_or_device_than_planned_is_inconclusive(
    rxe: Run, flow: str, change: Change
) -> None:
    End(rxe.root, flow).prints(change)
    verdict = rxe.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"flow/{flow}") == "inconclusive"


def test_a_printed_device_other_than_the_planned_is_named(rxe: Run) -> None:
    end = rxe.flow("send-bandwidth")
    end.write(end.read().replace(": rxe0\n", ": rxe1\n"))
    verdict = rxe.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    check = check_of(verdict, f"flow/{end.flow}")
    assert check.status == "inconclusive"
    assert "asks for device rxe0 on the client, the output says rxe1" in str(check.measured)


# ---- limits --------------------------------------------------------------------------------------


def of_limits(run: Run, name: str) -> None:
    """Puts a set of limits in the place of the recorded one."""
    text = (TOP / "reports" / "limits" / f"{name}.yml").read_text()
    (run.root / "inputs/limits.json").write_text(json.dumps(yaml.safe_load(text)))
    run.edit("plan.json", put("limits", name))


def test_lost_messages_are_judged(rxe: Run) -> None:
    def loses(line: Document) -> None:
        line["loss"]["lost_messages"] = 30
        for name in ("bytes", "gbit_s", "messages_per_s"):
            line["bandwidth"][name] *= 0.85
        line["cpu"] |= {"client_s_per_gb": None, "server_s_per_gb": None}

    lost = {
        "id": "lost",
        "title": "Lost",
        "scope": {"tool": "perch"},
        "metric": "derived.loss_ppm",
        "bound": {"max": 10000},
        "unit": "ppm",
        "source": "test",
        "severity": "required",
        "remedy": "none",
    }
    End(rxe.root, DATAGRAMS).prints(loses)
    rxe.edit("inputs/limits.json", lambda limits: limits["limits"].append(lost))
    verdict = rxe.judge()
    assert verdict.verdict == "FAIL"
    assert status(verdict, "limit/lost/verbs-ud-send-bandwidth") == "fail"


def test_packets_that_one_device_sent_and_the_other_did_not_take_fail(rxe: Run) -> None:
    of_limits(rxe, "rxe")
    verdict = rxe.judge()
    assert verdict.verdict == "PASS"
    assert status(verdict, "limit/packets-lost/send-bandwidth") == "pass"
    # of 3,443 packets to the server 30 more were sent than came
    end = rxe.flow("send-bandwidth")
    end.edit(lambda one: more("rdma.rxe0/1.counters.sent_pkts", 30)(one["counters"]["after"]))
    verdict = rxe.judge()
    check = check_of(verdict, "limit/packets-lost/send-bandwidth")
    assert (verdict.verdict, check.status) == ("FAIL", "fail")
    assert isinstance(check.measured, float) and check.measured > 100
    assert check.remedy
    assert check.evidence == ["send-bandwidth/alpha/beta/0/1#65536"]
    assert result(rxe, "send-bandwidth")["packets"]["lost"] == 30


def test_traffic_that_stood_still_for_longer_than_a_queue_pairs_retries_fails(rxe: Run) -> None:
    of_limits(rxe, "rxe")

    def longer(line: Document) -> None:
        """Five seconds longer than it was, and begun as much earlier."""
        line |= {"started": "2026-11-21T14:17:34.945Z", "elapsed_s": 6.2}
        rate = line["bandwidth"]
        rate["gbit_s"] = rate["bytes"] * 8e-9 / 6.2
        rate["messages_per_s"] = rate["bytes"] / 65536 / 6.2
        rate["min_interval_gbit_s"] = 0

    def stood(seconds: float) -> Change:
        began = "2026-11-21T14:17:35.445Z"
        return put("stall", {"longest_s": seconds, "start_s": 0.5, "began": began})

    end, name = End(rxe.root, WRITE), "limit/stall/verbs-write-bandwidth"
    end.prints(longer, stood(2.1))
    assert status(rxe.judge(), name) == "pass"
    end.prints(stood(5.2))
    verdict = rxe.judge()
    check = check_of(verdict, name)
    assert (verdict.verdict, check.status, check.measured) == ("FAIL", "fail", 5.2)
    assert check.evidence == [f"{WRITE}#65536 at 2026-11-21T14:17:35.445Z"]
    # where a pause was asked for there is none to judge
    end.prints(put("stall", None))
    assert rxe.judge().verdict == "PASS"
