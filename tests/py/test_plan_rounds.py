"""perch.plan/2: hosts and tests once, rounds by the line, and flows made of them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from perch.agent.share import Share as Walked
from perch.errors import ExitCode, PerchError
from perch.judge.planned import document as decoded
from perch.model.plan import PlanDocument, RoundLine
from perch.model.share import Share
from perch.plan import flows, rounds, share
from perch.plan.planner import Planned
from tests.py.planned import hosts, planned, suite_test


def rdma(number: int) -> dict[str, dict[str, Any]]:
    """Hosts with two to four devices, the first with a GID index and an address of IPv6."""
    inventory = hosts(number, perch_backends=["tcp", "ofi", "verbs"], perch_switch="s")
    for i, host in enumerate(inventory.values()):
        host["perch_devices"] = [
            {"name": f"m{j}", "netdev": f"e{j}", "gid_index": 3} for j in range(2 + i % 3)
        ]
    inventory["h0"]["perch_address"] = "fd00::1"
    inventory["h1"].update(perch_scope="simulated", perch_iperf_port=5002)
    return inventory


TRANSFER = {"backend": "verbs", "op": "write", "kind": "transfer"}

PLANS: dict[str, Callable[[], Planned]] = {
    "latency": lambda: planned([suite_test(repeat=2)], hosts(5)),
    "every tool": lambda: planned(
        [
            suite_test(name="v", backend="verbs"),
            suite_test(
                name="i",
                tool="iperf",
                backend=None,
                kind="bandwidth",
                params={"size": 8, "duration": "2s"},
            ),
            suite_test(
                name="p", tool="perftest", backend=None, params={"size": "all", "iterations": 5}
            ),
        ],
        rdma(4),
    ),
    "transfers": lambda: planned(
        [suite_test(**TRANSFER, params={"size": "8:16", "batch": "1:2", "devices": "all"})],
        rdma(5),
    ),
    "soak": lambda: planned(
        [suite_test()],
        hosts(3),
        soak={"mode": "alternating", "turn": "10s", "interval": "2s"},
        soak_duration="65s",
    ),
}


class Written:
    """A plan as it is written."""

    def __init__(self, plan: Planned) -> None:
        self.rounds = b"".join(map(rounds.text, rounds.lines(plan)))
        self.content = msgspec.json.encode(rounds.plan_document(plan, self.rounds))

    @property
    def plan(self) -> PlanDocument:
        return decoded(self.content)

    def lines(self) -> list[RoundLine]:
        return list(flows.lines(self.rounds, self.plan.rounds))

    def turns(self) -> list[list[dict[str, Any]]]:
        """The flows of each round, with their commands."""
        maker = flows.Flows(self.plan)
        made = [maker.round(line).flows for line in self.lines()]
        for turn in made:
            maker.fill(turn)
        return [msgspec.to_builtins(turn) for turn in made]


@pytest.fixture(params=PLANS)
def both(request: pytest.FixtureRequest) -> tuple[Written, Planned]:
    plan = PLANS[request.param]()
    return Written(plan), plan


@pytest.fixture
def written() -> Written:
    return Written(planned([suite_test(repeat=2)], hosts(4)))


def test_flows_are_the_planned_ones(both: tuple[Written, Planned]) -> None:
    written, plan = both
    turns = written.turns()
    for turn, parts in zip(turns, plan.rounds, strict=True):
        wanted = [
            (plan.tests[part.test].test.name, *pair, part.repeat)
            for part in parts
            for pair in part.pairs
        ]
        assert [
            (flow["test"], flow["client"], flow["server"], flow.get("repeat", 1)) for flow in turn
        ] == wanted
    assert sum(map(len, turns)) == plan.flows()


def test_a_rounds_times_are_those_of_its_longest_flow(both: tuple[Written, Planned]) -> None:
    written, plan = both
    for line, parts in zip(written.lines(), plan.rounds, strict=True):
        times = [plan.times(part, *pair) for part in parts for pair in part.pairs]
        assert line.estimate_s == max(estimate for estimate, _ in times)
        assert line.deadline_s == max(deadline for _, deadline in times)


def test_a_flow_is_named_by_test_ends_rail_and_repeat(written: Written) -> None:
    assert json.loads(written.rounds.splitlines()[0])["flows"] == [
        ["t", "h0", "h3", 0, 1],
        ["t", "h1", "h2", 0, 1],
    ]
    assert written.turns()[-1][0]["id"] == "t/h0/h2/0/2"


def test_what_is_not_measured_has_no_test_in_the_plan() -> None:
    plan = Written(planned([suite_test(), suite_test(name="n", backend="null")], hosts(2)))
    assert list(plan.plan.tests) == ["t"]


# ---- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["perch.plan/1", "perch.plan/3"])
def test_a_plan_of_another_version_is_refused_by_name(written: Written, schema: str) -> None:
    for plan in (
        {"schema": schema, "rounds": []},
        json.loads(written.content) | {"schema": schema},
    ):
        with pytest.raises(PerchError) as caught:
            decoded(json.dumps(plan).encode())
        assert caught.value.code == ExitCode.INCONCLUSIVE
        assert str(caught.value) == (
            f"plan.json: its schema is '{schema}', but this Perch reads perch.plan/2; "
            "use the Perch that made it, or plan and measure again"
        )


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": ' + b"[" * 100000])
def test_a_damaged_plan_is_refused(content: bytes) -> None:
    with pytest.raises(PerchError, match=r"plan\.json: it is damaged"):
        decoded(content)


def faults(written: Written) -> str:
    with pytest.raises(PerchError) as caught:
        written.lines()
    assert caught.value.code == ExitCode.INCONCLUSIVE
    return str(caught.value)


def test_rounds_that_are_cut_off_are_refused_with_the_line(written: Written) -> None:
    written.rounds = written.rounds[:-20]
    assert faults(written).startswith("rounds.jsonl, line 6: it cannot be used: ")


def test_other_rounds_are_refused(written: Written) -> None:
    whole = written.rounds
    written.rounds = b"".join(whole.splitlines(keepends=True)[:-1])
    assert "it has 5 rounds with 10 flows, plan.json says 6 with 12" in faults(written)
    written.rounds = whole.replace(b"h3", b"h2")
    assert "or other ones" in faults(written)


@pytest.mark.parametrize("key", ["rounds", "flows"])
def test_counts_of_a_plan_that_are_not_those_of_its_rounds_are_refused(
    written: Written, key: str
) -> None:
    document = msgspec.json.decode(written.content)
    document["rounds"][key] = 99
    written.content = msgspec.json.encode(document)
    assert "plan.json says" in faults(written)


# ---- shares --------------------------------------------------------------------------------------


def shares(written: Written) -> list[Share]:
    return list(share.shares(written.plan, written.content, written.lines()))


def test_a_share_has_a_hosts_own_flows_and_every_rounds_times(written: Written) -> None:
    own = shares(written)[1]
    assert (own.host, len(own.rounds)) == ("h1", 6)
    assert [one.size for one in own.rounds] == [2] * 6
    flow = own.rounds[0].flows[0]
    assert (flow.place, flow.client, flow.server) == (1, "h1", "h2")
    assert len({one.plan_sha256 for one in shares(written)}) == 1


def test_a_share_has_no_host_that_its_own_never_meets() -> None:
    inventory = hosts(3)
    inventory["h2"]["perch_backends"] = []
    found = shares(Written(planned([suite_test()], inventory)))
    assert [list(one.hosts) for one in found] == [["h0", "h1"], ["h0", "h1"], ["h2"]]
    assert [list(one.tests) for one in found] == [["t"], ["t"], []]


def test_an_agent_spells_out_the_commands_of_the_plan(both: tuple[Written, Planned]) -> None:
    """Its own, of each round, with the program and the port of its host."""
    written, _ = both
    for own in shares(written)[:2]:
        found = Walked(msgspec.json.decode(msgspec.json.encode(own)), "engine", 15)
        assert found.own == sum(len(turn) for turn in found.every_round())
        for (seconds, walked), turn in zip(found.turns(), written.turns(), strict=True):
            ends = [one for one in turn if own.host in (one["client"], one["server"])]
            assert seconds == max(one["estimate_s"] for one in turn)
            assert [one.id for one in walked] == [one["id"] for one in ends]
            for one, flow in zip(walked, ends, strict=True):
                role = "client" if own.host == flow["client"] else "server"
                command = flow.get(f"{role}_argv", [])
                if command and command[0] == "perch":
                    port = str(own.hosts[one.peer].port)
                    command = ["engine", *command[1:], "--port", port]
                assert (one.argv, one.deadline_s) == (command, flow["deadline_s"])
