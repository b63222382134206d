"""Rails: a flow for each device of two hosts that a test asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from perch.agent.share import Share
from perch.errors import ExitCode, PerchError
from perch.plan import rounds, share
from perch.plan.flows import Flows
from perch.plan.planner import Planned
from tests.py.planned import excluded, flows, hosts, planned, suite_test


def devices(name: str, number: int) -> list[dict[str, Any]]:
    """NAME0, NAME1, ...; each has a GID index of its own."""
    return [{"name": f"{name}{i}", "netdev": f"e{i}", "gid_index": i} for i in range(number)]


def plan(asked: Any, client: int = 2, server: int = 2, **members: Any) -> Planned:
    inventory = hosts(2, perch_backends=["verbs", "tcp"])
    inventory["h0"]["perch_devices"] = devices("mlx5_", client)
    inventory["h1"]["perch_devices"] = devices("mlx5_", server)
    params = {"size": 8} if asked is None else {"size": 8, "devices": asked}
    test = suite_test(**{"backend": "verbs", "params": params} | members)
    return planned([test], inventory)


def option(argv: Sequence[str], name: str) -> str:
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize(
    ("asked", "rails"),
    [
        (None, [0]),
        ("all", [0, 1, 2]),
        (2, [0, 1]),
        ("mlx5_[12]", [1, 2]),
        (["mlx5_2", "mlx5_0"], [0, 2]),
    ],
)
def test_a_flow_is_of_one_rail_and_names_its_devices(asked: Any, rails: list[int]) -> None:
    found = flows(plan(asked, 3, 3))
    assert [flow["id"] for flow in found] == [f"t/h0/h1/{rail}/1" for rail in rails]
    for flow, rail in zip(found, rails, strict=True):
        for end in ("", "server-"):
            assert option(flow["client_argv"], f"--{end}device") == f"mlx5_{rail}"
            assert option(flow["client_argv"], f"--{end}gid-index") == str(rail)
        assert "--devices" not in flow["client_argv"]


def test_perftest_measures_each_rail_too() -> None:
    params = {"size": 8, "iterations": 100, "devices": "all"}
    found = flows(plan("all", tool="perftest", backend=None, params=params))
    assert [option(flow["server_argv"], "-d") for flow in found] == ["mlx5_0", "mlx5_1"]


def test_perftest_listens_on_a_port_of_each_rail() -> None:
    params = {"size": 8, "iterations": 100, "devices": "all"}
    of = plan("all", tool="perftest", backend=None, params=params)
    assert [option(flow["server_argv"], "-p") for flow in flows(of)] == ["18515", "18516"]
    assert {18515, 18516, 5201} <= set(rounds.plan_document(of, b"").hosts["h0"].ports)
    assert not {18517, 5202} & set(rounds.plan_document(of, b"").hosts["h0"].ports)


def test_rails_of_one_pair_do_not_run_at_the_same_time() -> None:
    assert [[part.rail for part in parts] for parts in plan("all").rounds] == [[0], [1]]


def parts(of: Planned) -> list[list[tuple[int, str]]]:
    """Of each round the rail of each flow, and its client."""
    return [
        [(part.rail, client) for part in parts for client, _ in part.pairs] for parts in of.rounds
    ]


def test_rails_together_are_one_round() -> None:
    of = plan("all", rails="together")
    assert parts(of) == [[(0, "h0"), (1, "h0")]]
    (line,) = rounds.lines(of)
    head = rounds.plan_document(of, rounds.text(line))
    flows_of = Flows(head).round(line).flows
    assert [flow.rails_at_once for flow in flows_of] == [2, 2]


def test_a_rail_that_has_no_other_beside_it_is_alone() -> None:
    of = plan("all")
    document = rounds.plan_document(of, b"")
    found = [Flows(document).round(line).flows for line in rounds.lines(of)]
    assert [flow.rails_at_once for flows in found for flow in flows] == [1, 1]


def test_both_directions_follow_each_other() -> None:
    back = plan("all", directions="both")
    assert parts(back) == [[(0, "h0")], [(0, "h1")], [(1, "h0")], [(1, "h1")]]
    assert [flow["id"] for flow in flows(back)] == [
        "t/h0/h1/0/1", "t/h1/h0/0/1", "t/h0/h1/1/1", "t/h1/h0/1/1"
    ]  # fmt: skip
    both = plan("all", rails="together", directions="both")
    assert parts(both) == [[(0, "h0"), (1, "h0")], [(0, "h1"), (1, "h1")]]


def test_what_is_excluded_is_said_of_one_direction() -> None:
    said = (
        "mlx5_2 in t",
        "h0: h1 has no partner at its place in perch_devices; add one there",
    )
    assert excluded(plan("all", 3, 2, directions="both")).count(said) == 1
    test = suite_test(backend="verbs", kind="transfer", op="write", directions="both")
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=[{"name": "m0"}])
    inventory["h1"]["perch_devices"] = [{"name": "m0", "gid_index": 3}]
    assert parts(planned([test], inventory)) == [[(0, "h0")], [(0, "h1")]]


def test_one_rail_is_not_measured_together() -> None:
    of = plan("all", 2, 1, rails="together")
    assert flows(of) == []
    why = "fewer than 2 devices match 'all', and rails together needs 2; see perch_devices"
    assert [one for one in excluded(of) if one[0] == "t"] == [("t", f"h1: {why}")]
    assert {("every test", f"host h{i} is in no flow") for i in range(2)} <= set(excluded(of))


def test_software_rails_together_take_longer() -> None:
    def estimate(rails: str, name: str) -> list[Any]:
        inventory = hosts(2, perch_backends=["verbs"], perch_devices=devices(name, 4))
        params = {"size": 8, "devices": "all", "iterations": 10**6}
        test = suite_test(backend="verbs", params=params, rails=rails)
        return [line.estimate_s for line in rounds.lines(planned([test], inventory))]

    assert estimate("together", "mlx5_") == estimate("alone", "mlx5_")[:1]
    assert estimate("together", "rxe") == pytest.approx([sum(estimate("alone", "rxe"))], rel=0.1)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"rails": "together", "params": {"size": 8}}, "rails together needs devices"),
        (
            {"rails": "together", "kind": "transfer", "op": "write"},
            "a transfer moves data over all its devices together; leave rails out",
        ),
        (
            {
                "directions": "both",
                "kind": "bandwidth",
                "params": {"size": 8, "bidirectional": True},
            },
            "directions both needs a test that goes one way; bidirectional goes both ways",
        ),
    ],
)
def test_what_cannot_be_together_or_both_ways_is_refused(members: Any, why: str) -> None:
    with pytest.raises(PerchError, match=why):
        plan("all", **members)


@pytest.mark.parametrize("members", [{"rails": "together"}, {"directions": "both"}])
def test_a_soak_plans_neither(members: Any) -> None:
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=devices("m", 2))
    test = suite_test(backend="verbs", params={"size": 8, "devices": "all"}, **members)
    with pytest.raises(PerchError, match="a soak loads all rails together"):
        planned([test], inventory, soak={}, soak_duration="24h")


def test_all_of_a_host_that_names_none_is_the_one_that_the_engine_chooses() -> None:
    of_interfaces = suite_test(backend="ofi", provider="tcp", params={"size": 8, "devices": "all"})
    (flow,) = flows(planned([of_interfaces], hosts(2)))
    assert flow["rail"] == 0 and "--device" not in flow["client_argv"]


def test_what_has_no_partner_is_excluded_by_name() -> None:
    found = excluded(plan("all", 3, 2))
    assert (
        "mlx5_2 in t",
        "h0: h1 has no partner at its place in perch_devices; add one there",
    ) in found
    assert ("every test", "no flow uses mlx5_2 of h0") in found


def test_what_no_test_asks_for_is_excluded_by_name() -> None:
    assert ("every test", "no flow uses mlx5_0 of h0, h1") in excluded(plan(["mlx5_1"]))


@pytest.mark.parametrize(
    ("asked", "client", "why"),
    [
        ("bnxt*", 2, "h0 has no device bnxt*; perch_devices has mlx5_0, mlx5_1"),
        (["mlx5_0", "mlx5_7"], 2, "h0 has no device mlx5_7; perch_devices has mlx5_0, mlx5_1"),
        (3, 2, "h0 names 2 of the 3 devices that the test takes (perch_devices)"),
    ],
)
def test_a_host_without_the_devices_is_excluded_by_name(asked: Any, client: int, why: str) -> None:
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=devices("mlx5_", client))
    inventory["h1"]["perch_devices"] = ["bnxt0", "mlx5_0", "mlx5_7", "m"]
    test = suite_test(backend="verbs", params={"size": 8, "devices": asked})
    assert ("t", why) in excluded(planned([test], inventory))


def test_hosts_that_name_no_devices_have_none_to_choose_among() -> None:
    why = "names no device (perch_devices), and the test chooses among them"
    of_interfaces = {"backend": "ofi", "provider": "tcp"}
    both = [
        suite_test(params={"size": 8, "devices": "mlx5_*"}, **of_interfaces),
        suite_test(name="u", **of_interfaces),
    ]
    assert ("t", f"h0 {why}") in excluded(planned(both, hosts(2)))


@pytest.mark.parametrize("more", [{}, {"soak": {}, "soak_duration": "24h"}])
@pytest.mark.parametrize(
    ("asked", "number", "why"),
    [
        ("bnxt*", 2, "'bnxt*' match no device of any host; perch_devices has mlx5_0, mlx5_1"),
        (["mlx5_*", "m"], 7, "'m' match no device of any host; perch_devices has mlx5_0, mlx5_1, "),
    ],
)
def test_a_plan_without_a_flow_for_its_pattern_is_refused(
    asked: Any, number: int, why: str, more: Any
) -> None:
    inventory = hosts(3, perch_backends=["verbs"], perch_devices=devices("mlx5_", number))
    test = suite_test(backend="verbs", params={"size": 8, "devices": asked})
    with pytest.raises(PerchError) as refused:
        planned([test], inventory, **more)
    assert str(refused.value).startswith(f"test t: devices {why}")
    assert str(refused.value).endswith("; change either")
    assert len(str(refused.value).split()) <= 20 and refused.value.code == ExitCode.USAGE
    plain = suite_test(name="u", backend="verbs")
    assert planned([test, plain], inventory, **more).flows() == 3


def test_one_device_is_not_two_rails_but_its_ports_are() -> None:
    twice = [{"name": "m0"}, {"name": "m0", "ib_port": 1}]
    ports = [{"name": "m0", "ib_port": 1}, {"name": "m0", "ib_port": 2}]
    test = suite_test(backend="verbs", params={"size": 8, "devices": "all"})
    for given, rails in ((twice, 0), (ports, 2)):
        of = planned([test], hosts(2, perch_backends=["verbs"], perch_devices=given))
        assert len(flows(of)) == rails
        assert (("t", "h0 names a device twice (perch_devices)") in excluded(of)) == (rails == 0)


@pytest.mark.parametrize("asked", [0, 17, True, [], [""], "", 1.5])
def test_a_choice_that_is_none_is_refused(asked: Any) -> None:
    with pytest.raises(PerchError, match="devices is all, a number from 1 to 16"):
        plan(asked)


def test_a_test_that_names_no_device_cannot_choose_some() -> None:
    for backend, provider in (("tcp", None), ("ofi", "shm"), ("null", None)):
        with pytest.raises(PerchError, match="devices needs a test that names a device"):
            plan("all", backend=backend, provider=provider)


def test_rails_of_libfabric_have_the_names_that_its_provider_drives() -> None:
    cards = [{"name": f"mlx5_{i}", "netdev": f"eth{i}"} for i in range(2)]
    inventory = hosts(2, perch_backends=["ofi"], perch_devices=cards)
    for provider, names in (("tcp;ofi_rxm", ["eth0", "eth1"]), ("verbs", ["mlx5_0", "mlx5_1"])):
        given = {"backend": "ofi", "provider": provider, "params": {"size": 8, "devices": "mlx5_*"}}
        of = planned([suite_test(**given, rails="together")], inventory)
        commands = [flow["client_argv"] for flow in flows(of)]
        for words in commands:
            assert option(words, "--rails") == option(words, "--server-rails") == ",".join(names)
        for end in ("--device", "--server-device"):
            assert [option(words, end) for words in commands] == names
    unnamed = hosts(2, perch_backends=["ofi"], perch_devices=["mlx5_0", "mlx5_1"])
    test = suite_test(backend="ofi", params={"size": 8, "devices": "all"})
    why = "h0 does not say which interface is over mlx5_0 (netdev in perch_devices)"
    assert ("t", why) in excluded(planned([test], unnamed))


def test_a_soak_loads_all_rails_at_the_same_time() -> None:
    inventory = hosts(3, perch_backends=["verbs"], perch_devices=devices("m", 2))
    test = suite_test(backend="verbs", kind="bandwidth", params={"size": 65536, "devices": "all"})
    found = planned([test], inventory, soak={}, soak_duration="24h")
    assert [[(part.rail, len(part.pairs)) for part in parts] for parts in found.rounds] == [
        [(0, 3), (1, 3)]
    ]


def agent(of: Planned) -> Share:
    """The first client's."""
    lines = list(rounds.lines(of))
    document = rounds.plan_document(of, b"".join(map(rounds.text, lines)))
    (mine,) = (one for one in share.shares(document, b"", lines) if one.host == "h0")
    return Share(msgspec.json.decode(msgspec.json.encode(mine)), "engine", 15)


def test_an_agent_makes_the_command_of_its_rail() -> None:
    found = [(flow.id, option(flow.argv, "--device")) for (flow,) in agent(plan("all")).rounds()]
    assert found == [("t/h0/h1/0/1", "mlx5_0"), ("t/h0/h1/1/1", "mlx5_1")]


def test_rails_that_work_together_share_out_their_cores() -> None:
    of = plan("mlx5_[02]", 3, 4, rails="together")
    lines = list(rounds.lines(of))
    made = Flows(rounds.plan_document(of, b"".join(map(rounds.text, lines))))
    planned_flows = made.round(lines[0]).flows
    made.fill(planned_flows)
    (asked,) = agent(of).rounds()
    for words in [flow.client_argv for flow in planned_flows] + [flow.argv for flow in asked]:
        assert option(words, "--rails") == option(words, "--server-rails") == "mlx5_0,mlx5_2"
    alone = agent(plan("all")).rounds()
    assert not any("--rails" in flow.argv for (flow,) in alone)


def test_each_command_of_a_soak_has_a_core_slot_among_all_of_its_host() -> None:
    cards = [{"name": f"mlx5_{i}"} for i in range(2)]
    load = suite_test(name="load", kind="bandwidth", backend="verbs")
    load["params"] = {"size": 65536, "devices": "all"}
    tests = [load, suite_test(name="probe", backend="verbs"), suite_test(name="tcp")]
    inventory = hosts(3, perch_backends=["verbs", "tcp"], perch_devices=cards)
    of = planned(tests, inventory, soak={}, soak_duration="24h")
    lines = list(rounds.lines(of))
    made = Flows(rounds.plan_document(of, b"".join(map(rounds.text, lines))))
    (turn,) = (made.round(line) for line in lines)
    made.fill(turn.flows)
    found: dict[str, set[tuple[str, str]]] = {"h0": set(), "h1": set(), "h2": set()}
    for flow in turn.flows:
        if flow.test == "tcp":
            assert not {"--rails", "--slot"} & set(flow.client_argv)
            continue
        for host, end in ((flow.client, ""), (flow.server, "server-")):
            assert option(flow.client_argv, f"--{end}rails") == "mlx5_0,mlx5_1"
            place = (
                option(flow.client_argv, f"--{end}device"),
                option(flow.client_argv, f"--{end}slot"),
            )
            assert place not in found[host]
            found[host].add(place)
    # a client and a server of each test: four slots of each device, of which probe uses one's
    assert {len(places) for places in found.values()} == {6}
    assert {slot for places in found.values() for _, slot in places} == {
        "1/4", "2/4", "3/4", "4/4"
    }  # fmt: skip
    mine = {flow.id: flow.client_argv for flow in turn.flows if flow.client == "h0"}
    asked = [flow for flows in agent(of).rounds() for flow in flows]
    assert {flow.id: flow.argv[1:-2] for flow in asked if flow.role == "client"} == {
        name: argv[1:] for name, argv in mine.items()
    }
