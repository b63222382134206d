"""Soaks: who sends to whom, for how long, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perch.errors import PerchError
from perch.plan.planner import Planned
from tests.py.planned import document, excluded, flows, hosts, planned, suite_test

LOAD = suite_test(name="load", kind="bandwidth", params={"size": "64K", "rate": "500Mb/s"})
PROBE = suite_test(name="probe", backend="ofi", params={"size": 8, "rate": "200msg/s"})

TURNS = {"mode": "alternating", "turn": "10s", "interval": "2s"}


def soak(
    number: int, settings: dict[str, Any] | None, duration: Any, *tests: dict[str, Any]
) -> Planned:
    return planned(tests or (LOAD, PROBE), hosts(number), soak=settings, soak_duration=duration)


def rounds(plan: Planned) -> list[str]:
    """Of each round its flows as test:client>server/turn."""
    return [
        " ".join(f"{f['test']}:{f['client']}>{f['server']}/{f['repeat']}" for f in turn["flows"])
        for turn in document(plan)["rounds"]
    ]


def durations(plan: Planned) -> list[str]:
    commands = [flow["client_argv"] for flow in flows(plan)]
    return [command[command.index("--duration") + 1] for command in commands]


def test_mixed_is_one_round_in_which_all_send_and_receive() -> None:
    plan = soak(2, {}, "24h")
    assert rounds(plan) == ["load:h0>h1/1 load:h1>h0/1 probe:h0>h1/1 probe:h1>h0/1"]
    said = document(plan)["soak"]
    space = said.pop("space_bytes")
    assert said == {
        "duration_s": 86400,
        "interval_s": 60,
        "stall_s": 0.02,
        "reconnect_s": 1800,
        "mode": "mixed",
    }
    assert set(space) == {"h0", "h1"}
    assert rounds(soak(3, {"pairs": "all"}, "1h", LOAD)) == [
        "load:h0>h1/1 load:h2>h0/1 load:h1>h2/1"
    ]


def test_turns_go_through_all_tests_and_again_with_the_ends_exchanged() -> None:
    plan = soak(3, TURNS, "125s")
    found = rounds(plan)
    assert found[0] == "load:h1>h2/1" and found[5] == "probe:h0>h2/1" and found[6] == "load:h2>h1/2"
    # the rest is long enough for a turn of its own
    assert durations(plan) == ["10s"] * 12 + ["5s"]
    assert plan.seconds() == 125
    # and where it is not, the last turn has it
    assert durations(soak(3, {**TURNS, "interval": "10s"}, "125s")) == ["10s"] * 11 + ["15s"]


def test_a_ring_in_turns_has_all_hosts_send() -> None:
    found = rounds(soak(4, {**TURNS, "pairs": "ring"}, "40s"))
    assert found[-1] == "probe:h1>h0/2 probe:h2>h1/2 probe:h3>h2/2 probe:h0>h3/2"


def test_a_command_has_seconds_and_a_file_of_its_own() -> None:
    plan = soak(2, {"interval": "30s", "stall": "50ms", "reconnect": "5m"}, "1.5d")
    flow = flows(plan)[0]
    assert (flow["estimate_s"], flow["deadline_s"]) == (129600, 129600 + 300 + 30)
    assert " ".join(flow["client_argv"]) == (
        "perch bw 192.0.2.2 --backend tcp --op send --size 64K --rate 500Mb/s --duration 129600s "
        "--interval 30s --stall 50ms --reconnect 5m --soak client.soak --bind 192.0.2.1 --json"
    )


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("1.1h", 3960), ("2.2h", 7920), ("1.1d", 95040), ("0.7d", 60480), ("4.1m", 246)],
)
def test_decimals_are_the_seconds_that_they_say(given: str, seconds: int) -> None:
    plan = soak(2, {"interval": "1.1m"}, given)
    said = document(plan)["soak"]
    assert (said["duration_s"], said["interval_s"]) == (seconds, 66)
    assert set(durations(plan)) == {f"{seconds}s"}


def test_three_turns_of_a_fifth_of_a_second_are_three() -> None:
    plan = soak(2, {**TURNS, "turn": "0.2s", "interval": "0.2s"}, "0.6s")
    assert durations(plan) == ["0.2s"] * 3


@pytest.mark.parametrize(
    ("settings", "duration", "why"),
    [
        *[
            ({}, odd, f"soak_duration {json.dumps(odd)} is not a time with a unit; write 90s, 24h")
            for odd in (24, "24", "0h", "-1h", "24H", "1h30m")
        ],
        ({}, "30s", "interval, 60s, is longer than soak_duration, 30s"),
        ({"mode": "alternating", "turn": "30s"}, "1h", "60s, is longer than its turn, 30s"),
        ({"interval": "20ms"}, "1h", "stall, 20ms, must be shorter than its interval, 20ms"),
        ({}, "366d", "longer than 365 days"),
        *[
            ({what: "0.0000001s"}, "1h", f"the suite's {what}, 0.0000001s, is shorter than 1 ms")
            for what in ("interval", "stall", "reconnect")
        ],
        ({"mode": "alternating"}, "10m", "is too short: 2 turns of 10m are needed"),
        ({"mode": "alternating", "turn": "60s"}, "7d", "10080 turns of 60s; at most 5000 are"),
        ({}, "", "playbooks/soak.yml -e soak_duration=24h"),
        (None, "1h", "suite s is not a soak"),
    ],
)
def test_times_that_cannot_be_are_refused(
    settings: dict[str, Any] | None, duration: Any, why: str
) -> None:
    with pytest.raises(PerchError) as caught:
        soak(2, settings, duration)
    assert why in str(caught.value)


NEEDS = "a soak needs tool perch and kind latency or bandwidth"


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"tool": "iperf3", "backend": None, "kind": "bandwidth"}, NEEDS),
        ({"kind": "transfer", "op": "write"}, NEEDS),
        ({"backend": "null"}, "backend null cannot be soaked"),
        ({"repeat": 2}, "repeat must be 1 in a soak"),
        ({"params": {"size": "8:64"}}, "a test of a soak must have one size"),
        ({"params": {"size": 8, "iterations": 5}}, "iterations cannot be set for a test of a soak"),
        ({"params": {"size": 8, "duration": "1s"}}, "duration cannot be set for a test of a soak"),
        ({"params": {"size": 8, "interval": "1s"}}, "interval cannot be set for a test of a soak"),
    ],
)
def test_tests_that_cannot_be_soaked_are_refused_by_name(members: dict[str, Any], why: str) -> None:
    with pytest.raises(PerchError, match=f"test odd: {why}"):
        soak(2, {}, "1h", suite_test(name="odd", **members))


def test_what_a_host_will_write_grows_with_time() -> None:
    day, hour = (document(soak(2, {}, time))["soak"]["space_bytes"] for time in ("24h", "1h"))
    # 1440 intervals and 4 lines against 60 and 4
    assert abs(day["h0"] * 64 / 1444 - hour["h0"]) <= 64
    assert 10e6 < day["h0"] < 100e6


@pytest.mark.parametrize(
    ("settings", "between"),
    [
        ({}, "h0 and h1"),
        ({"pairs": "all"}, "h0, h2 with h1, h3"),
        (TURNS, "h0, h2 with h1, h3"),
        ({**TURNS, "pairs": "ring"}, "h0, h2 with h1, h3"),
    ],
)
def test_pairs_of_a_soak_without_a_rail_are_excluded(settings: Any, between: str) -> None:
    number = 4 if "with" in between else 2
    inventory = hosts(number, perch_backends=["verbs"], perch_devices=["m0", "m1"])
    for name in ("h1", "h3")[: number // 2]:
        inventory[name]["perch_devices"] = ["m1", "m0"]
    probes = [
        suite_test(name=name, backend="verbs", params={"size": 8, "devices": asked})
        for name, asked in (("a", "all"), ("b", "m1"))
    ]
    found = excluded(planned(probes, inventory, soak=settings, soak_duration="10m"))
    why = "'m1' has no common place in perch_devices; give its devices the same places"
    assert [one for one in found if one[0] == "b"] == [("b", f"{between}: {why}")]
