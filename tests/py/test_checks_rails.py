"""A rail that is slower than its siblings, or than the same rail of other hosts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, permutations
from typing import Any

import pytest

from perch.model.record import Link, Record
from perch.model.verdict import Check
from tests.py.checks_built import found, record, run_of

HOSTS = tuple("abcdefgh")


def fabric(hosts: int, rails: int, slow: Mapping[str, float], **more: Any) -> list[Record]:
    """Both ways of all pairs.

    slow: what is left of the rate of NICs (a1; as client: a1 out, as server: a1 in) and of ways
    (a-b1).
    """
    records = []
    for client, server in permutations(HOSTS[:hosts], 2):
        for rail in range(rails):
            ways = f"{client}{rail} out", f"{server}{rail} in"
            keys = f"{client}{rail}", f"{server}{rail}", f"{client}-{server}{rail}", *ways
            rate = 390 * min(slow.get(key, 1) for key in keys)
            about = {"scope": "hardware", "bandwidth": {"gbit_s": rate}} | more
            ends = {
                role: {"host": host, "device": f"mlx5_{rail}"}
                for role, host in (("client", client), ("server", server))
            }
            records.append(record(f"t/{client}/{server}/{rail}/1", **ends, **about))
    return records


def checked(records: list[Record]) -> dict[str, Check]:
    return found(run_of(records), "rails")


def fault(records: list[Record], of: str = "siblings") -> Any:
    one = checked(records)[f"rails/{of}/t"]
    return one.fault if one.status == "fail" else one.status


@pytest.mark.parametrize(("hosts", "rails"), [(2, 2), (3, 2), (8, 8)])
def test_rails_that_are_alike_pass(hosts: int, rails: int) -> None:
    one = checked(fabric(hosts, rails, {"a1": 0.95}))["rails/siblings/t"]
    assert (one.status, one.measured) == ("pass", 0.95)


def test_a_host_of_slower_nics_is_compared_by_what_was_bought() -> None:
    records = fabric(8, 2, {"h0": 0.25, "h1": 0.25})
    for one in records:
        of_h = "h" in (one.client.host, one.server.host)
        one.link = Link(expected_gbit_s=100 if of_h else 400)
    assert fault(records, "elsewhere") == "pass"
    slow = fabric(8, 2, {"h0": 0.25, "h1": 0.125})
    for one, like in zip(slow, records, strict=True):
        one.link = like.link
    assert fault(slow, "elsewhere").endswith(": rail 1 of h (mlx5_1), test t")


def test_message_rates_are_compared_too() -> None:
    slow = fabric(3, 2, {"a1": 0.1}, kind="rate")
    one = checked(slow)["rails/siblings/t"]
    assert (one.status, one.measured) == ("fail", 0.1)


def test_two_hosts_share_a_slow_rail() -> None:
    records = fabric(2, 2, {"a1": 0.1})
    one = checked(records)["rails/siblings/t"]
    assert one.fault == "Slower than its siblings: rail 1 (mlx5_1) between a and b, test t"
    assert (one.status, one.measured) == ("fail", 0.1)
    assert one.evidence == ["t/a/b/1/1#65536", "t/b/a/1/1#65536"]


@pytest.mark.parametrize(("hosts", "rails"), [(3, 2), (8, 8)])
def test_one_slow_nic_is_named_and_no_peer_of_it(hosts: int, rails: int) -> None:
    told = fault(fabric(hosts, rails, {"b1": 0.1}))
    assert told == "Slower than its siblings: rail 1 of b (mlx5_1), test t"


def test_most_rails_may_be_the_slow_ones() -> None:
    told = fault(fabric(2, 4, {"a0": 0.1, "a1": 0.1, "a2": 0.1}))
    assert told == (
        "Slower than its siblings: rail 0 (mlx5_0) between a and b, "
        "rail 1 (mlx5_1) between a and b, rail 2 (mlx5_2) between a and b, test t"
    )


def test_a_rail_that_is_slow_everywhere_is_one_rail() -> None:
    slow = {f"{host}5": 0.5 for host in HOSTS}
    told = fault(fabric(8, 8, slow))
    assert told == "Slower than its siblings: rail 5 of all hosts, test t"


def test_two_slow_nics_do_not_spoil_the_name_of_each_other() -> None:
    told = fault(fabric(4, 4, {"a1": 0.1, "b1": 0.1, "c3": 0.5}))
    assert told == (
        "Slower than its siblings: rail 1 of a (mlx5_1), rail 1 of b (mlx5_1), "
        "rail 3 of c (mlx5_3), test t"
    )


def test_a_way_is_named_where_its_ends_are_sound_elsewhere() -> None:
    told = fault(fabric(4, 2, {"a-b1": 0.5}))
    assert told == "Slower than its siblings: rail 1 (mlx5_1) from a to b, test t"


@pytest.mark.parametrize(
    ("op", "end", "way"),
    [
        ("write", "in", "receiving"),
        ("write", "out", "sending"),
        ("send", "in", "receiving"),
        ("read", "in", "sending"),
        ("read", "out", "receiving"),
    ],
)
@pytest.mark.parametrize("hosts", [3, 5])
def test_a_nic_that_is_slow_one_way_is_named_with_it(
    op: str, end: str, way: str, hosts: int
) -> None:
    records = fabric(hosts, 2, {f"c1 {end}": 0.1}, op=op)
    told = f"rail 1 of c (mlx5_1), {way}, test t"
    assert fault(records) == f"Slower than its siblings: {told}"
    if hosts == 5:
        assert fault(records, "elsewhere") == f"Slower than the same rail of other hosts: {told}"


@pytest.mark.parametrize(("end", "way"), [("in", "receiving"), ("out", "sending")])
@pytest.mark.parametrize("hosts", [3, 4, 6])
def test_all_hosts_but_one_that_are_slow_one_way_do_not_accuse_it(
    end: str, way: str, hosts: int
) -> None:
    """It sends to slow receivers only, or receives from slow senders only."""
    records = fabric(hosts, 2, {f"{host}1 {end}": 0.1 for host in HOSTS[1:hosts]}, op="write")
    named = [f"rail 1 of {host} (mlx5_1), {way}" for host in HOSTS[1:hosts]]
    more = f" and {hosts - 4} more" if hosts > 4 else ""
    told = f"{', '.join(named[:3])}{more}, test t"
    assert fault(records) == f"Slower than its siblings: {told}"


@pytest.mark.parametrize(
    "about",
    [
        {"params": {"size_bytes": 65536, "bidirectional": True}},
        {"op": "fetch-add"},
    ],
)
def test_payload_that_goes_both_ways_names_no_way_of_a_nic(about: dict[str, Any]) -> None:
    told = fault(fabric(3, 2, {"c1 in": 0.1}, **about))
    assert told == (
        "Slower than its siblings: rail 1 (mlx5_1) from a to c, rail 1 (mlx5_1) from b to c, test t"
    )


def test_nics_that_are_slow_one_way_do_not_spoil_the_name_of_others() -> None:
    slow = {"a1": 0.1, "b1 in": 0.2, "c1 out": 0.3, "d-e1": 0.4}
    assert fault(fabric(6, 2, slow | {"d-e1": 1})) == (
        "Slower than its siblings: rail 1 of a (mlx5_1), rail 1 of b (mlx5_1), receiving, "
        "rail 1 of c (mlx5_1), sending, test t"
    )
    del slow["c1 out"]
    assert fault(fabric(6, 2, slow)) == (
        "Slower than its siblings: rail 1 of a (mlx5_1), rail 1 of b (mlx5_1), receiving, "
        "rail 1 (mlx5_1) from d to e, test t"
    )


def test_where_each_pair_is_measured_one_way_two_slow_nics_accuse_no_third() -> None:
    """All that c receives comes from a and b."""
    forth = {f"{a}/{b}" for a, b in combinations(HOSTS[:4], 2)}
    records = [one for one in fabric(4, 2, {"a1": 0.1, "b1": 0.1}) if one.flow[2:5] in forth]
    assert fault(records) == (
        "Slower than its siblings: rail 1 of a (mlx5_1), rail 1 of b (mlx5_1), test t"
    )


def test_a_host_whose_rails_are_all_slow_is_found_elsewhere() -> None:
    slow = {f"a{rail}": 0.5 for rail in range(2)}
    one = checked(fabric(5, 2, slow))
    assert one["rails/siblings/t"].status == "pass"
    assert one["rails/elsewhere/t"].fault == (
        "Slower than the same rail of other hosts: rail 0 of a (mlx5_0), rail 1 of a (mlx5_1), "
        "test t"
    )
    assert one["rails/elsewhere/t"].measured == 0.5


def test_four_hosts_have_no_median_elsewhere() -> None:
    one = checked(fabric(4, 2, {"a1": 0.1}))["rails/elsewhere/t"]
    said = "pairs of hosts with the same rail: 6, and a median needs 10"
    assert (one.status, one.measured) == ("not_judged", said)


def test_elsewhere_is_what_is_as_far_away() -> None:
    records = fabric(5, 2, {})
    far = [
        record(
            one.flow, scope="hardware", bandwidth={"gbit_s": 200}, link={"hop_class": "far"}
        )
        if "e" in one.flow.split("/")
        else one
        for one in fabric(6, 2, {})
    ]  # fmt: skip
    assert checked(records)["rails/elsewhere/t"].status == "pass"
    assert checked(far)["rails/elsewhere/t"].status == "pass"


@pytest.mark.parametrize(
    ("share", "more", "status"),
    [
        (0.91, {}, "pass"),
        (0.89, {}, "fail"),
        (0.6, {"scope": "software"}, "pass"),
        (0.4, {"scope": "software"}, "advisory"),
        (0.6, {"params": {"size_bytes": 64}}, "pass"),
        (0.4, {"params": {"size_bytes": 64}}, "advisory"),
    ],
)
def test_what_a_rail_may_lack(share: float, more: dict[str, Any], status: str) -> None:
    one = checked(fabric(2, 2, {"a1": share}, **more))["rails/siblings/t"]
    assert (one.status, one.measured) == (status, share)


@pytest.mark.parametrize(("factor", "status"), [(2, "pass"), (2.2, "advisory")])
def test_a_latency_may_be_twice_that_of_its_sibling(factor: float, status: str) -> None:
    about: dict[str, Any] = {"kind": "latency", "scope": "hardware"}
    records = [
        record(f"t/a/b/{rail}/1", latency_us={"p50": p50}, **about)
        for rail, p50 in enumerate((2, 2 * factor))
    ]
    assert checked(records)["rails/siblings/t"].status == status


def test_the_best_of_all_repeats_speaks() -> None:
    rates = {"0/1": 390, "1/1": 100, "1/2": 388}
    records = [
        record(f"t/a/b/{flow}", scope="hardware", bandwidth={"gbit_s": rate})
        for flow, rate in rates.items()
    ]
    assert checked(records)["rails/siblings/t"].status == "pass"


def transfer(
    pair: int, rate: float, client: str = "a", server: str = "b", batch: int = 64
) -> Record:
    return record(
        f"t/{client}/{server}/0/1", kind="transfer", op="write", scope="hardware",
        params={"size_bytes": 1 << 20, "batch": batch, "devices": 4, "cross_rail": 1},
        transfer={"pair": pair}, bandwidth={"gbit_s": rate},
    )  # fmt: skip


def test_the_pairs_of_a_transfer_are_rails_and_each_end_has_its_own() -> None:
    slow = {("a", "b", 3), ("c", "a", 2)}  # rail 3 of a, and what sends to it from one rail before
    slow |= {("a", "c", 3), ("b", "a", 2)}
    records = [
        transfer(pair, 100 if (client, server, pair) in slow else 390, client, server)
        for client, server in permutations("abc", 2)
        for pair in range(4)
    ]
    assert fault(records) == "Slower than its siblings: rail 3 of a, test t"


def test_a_small_transfer_is_no_measure_of_its_link() -> None:
    small = [transfer(pair, rate, batch=1) for pair, rate in enumerate((390, 200))]
    assert fault(small) == "pass"
    assert fault([transfer(pair, rate) for pair, rate in enumerate((390, 200))]) != "pass"


def test_tests_and_sizes_are_judged_by_themselves() -> None:
    records = [
        record(
            f"{test}/a/b/{rail}/1", scope="hardware", params={"size_bytes": size},
            bandwidth={"gbit_s": rate},
        )
        for test, size, rate in (("t", 65536, 390), ("t", 131072, 90), ("u", 65536, 40))
        for rail in range(2)
    ]  # fmt: skip
    assert {one.status for one in checked(records).values()} == {"pass", "not_judged"}


def test_one_rail_of_several_devices_says_what_it_needs() -> None:
    run = run_of(fabric(2, 1, {}))
    assert found(run, "rails") == {}
    run.plan.hosts["a"].devices[:] = [{"name": "mlx5_0"}, {"name": "mlx5_1"}]
    one = found(run, "rails")["rails/siblings"]
    assert (one.status, one.remedy) == ("not_judged", "give tests devices: all in their params")
