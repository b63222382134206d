"""Who is measured with whom, and when."""

from __future__ import annotations

import pytest

from perch.plan.pairs import circle, mesh, ring
from tests.py.planned import document, flows, hosts, planned, suite_test


@pytest.mark.parametrize("number", [2, 3, 4, 7, 8, 16])
def test_every_pair_is_measured_once_and_no_host_twice_in_a_round(number: int) -> None:
    rounds = circle([f"h{i}" for i in range(number)])
    pairs = [tuple(sorted(pair)) for pairs in rounds for pair in pairs]
    assert len(pairs) == len(set(pairs)) == number * (number - 1) // 2
    assert all(len({host for pair in pairs for host in pair}) == 2 * len(pairs) for pairs in rounds)
    # as few rounds as there can be
    assert len(rounds) == number - 1 + number % 2


def test_one_host_alone_has_no_pairs() -> None:
    assert circle(["a"]) == []


def test_a_ring_sends_to_the_next_and_the_last_to_the_first() -> None:
    assert ring(["a", "b"]) == [("a", "b"), ("b", "a")]
    assert ring(["a", "b", "c"]) == [("a", "b"), ("b", "c"), ("c", "a")]


@pytest.mark.parametrize("number", [2, 3, 5, 8])
def test_a_mesh_has_each_host_send_about_as_often_as_the_others(number: int) -> None:
    pairs = mesh([str(i) for i in range(number)])
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == number * (number - 1) // 2
    sent = [sum(client == str(i) for client, _ in pairs) for i in range(number)]
    assert max(sent) - min(sent) <= 1


def test_repeats_are_spread_over_the_run() -> None:
    tests = [suite_test(name="a", repeat=3), suite_test(name="b", repeat=2)]
    ids = [flow["id"] for flow in flows(planned(tests, hosts(2)))]
    assert ids == [f"{name}/h0/h1/0/{repeat}" for name, repeat in ("a1", "b1", "a2", "b2", "a3")]


def test_no_two_flows_have_the_same_id() -> None:
    plan = planned([suite_test(name="a", repeat=3), suite_test(name="b")], hosts(4))
    ids = [flow["id"] for flow in flows(plan)]
    assert len(ids) == len(set(ids)) == plan.flows() == 24
    assert len(document(plan)["rounds"]) == 12
