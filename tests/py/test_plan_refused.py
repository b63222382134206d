"""Tests that can be measured nowhere are refused by name, before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perch.errors import ExitCode, PerchError
from perch.model import units
from perch.plan import engine
from tests.py.planned import hosts, planned, suite_test


def refusal(check: Any = None, **members: Any) -> str:
    """What a plan with such a test says; it names the test."""
    with pytest.raises(PerchError) as caught:
        planned([suite_test(name="odd", **members)], hosts(2), *([check] if check else []))
    assert caught.value.code == ExitCode.USAGE
    said = str(caught.value)
    assert said.startswith("test odd: ")
    return said.removeprefix("test odd: ")


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"kind": "bandwith"}, "perch has no kind 'bandwith', did you mean 'bandwidth'?"),
        ({"params": {"size": 8, "duration": 5}}, "duration is 5, without a unit; write 5s"),
        ({"params": {"size": 8, "timeout": 0.5}}, "timeout is 0.5, without a unit; write 0.5s"),
        ({"params": {"size": 8, "warmup": "0"}}, "warmup is a number in quotes; write warmup: 0"),
        (
            {"params": {"size": 8, "iterations": "5"}},
            "iterations is a number in quotes; write iterations: 5",
        ),
    ],
)
def test_a_slip_of_a_test_is_named_with_its_correction(members: dict[str, Any], why: str) -> None:
    assert refusal(**members) == why


@pytest.mark.parametrize("device", [{"netdev": "eth0"}, {"name": ""}, "", {"name": 7}])
def test_a_device_without_a_name_is_refused(device: Any) -> None:
    with pytest.raises(PerchError) as caught:
        planned([suite_test()], hosts(2, perch_devices=["mlx5_0", device]))
    assert str(caught.value) == (
        "host h0, perch_devices[1]: the device has no name; "
        "give that of /sys/class/infiniband or /sys/class/cxi"
    )


@pytest.mark.parametrize("slowdown", [1e308, 1e9, 10**30])
def test_a_flow_that_would_take_years_is_refused(slowdown: float) -> None:
    with pytest.raises(PerchError) as caught:
        planned([suite_test()], hosts(2, perch_slowdown=slowdown))
    assert str(caught.value) == (
        "test t: a flow would take longer than 365 days, the longest that the engine accepts; "
        "lower perch_slowdown, or measure less"
    )


# ---- the engine ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> engine.Check:
    """The engine's own rules."""
    if not engine.PROGRAM.exists():
        pytest.skip("NOT TESTED: engine/build-check/perch is not built (make -C engine check-tool)")
    return engine.checker()


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"op": "write", "params": {"size": 8}}, "--op write: the tcp backend"),
        ({"provider": "tcp", "params": {"size": 8}}, "the tcp backend has no providers"),
        ({"params": {"size": 8, "iterations": 1, "duration": "1s"}}, "exclude each other"),
        ({"params": {"size": 8, "outstanding": 2}}, "not a latency"),
        ({"backend": "ofi", "op": "fetch-add", "params": {"size": "1:8"}}, "a multiple of 8"),
        ({"backend": "pigeon"}, "--backend 'pigeon' is not understood; give tcp, verbs"),
        ({"params": {"size": 8, "mtu": 1024}}, "--mtu: the tcp backend"),
        ({"params": {"size": 8, "vni": 1}}, "--vni"),
        ({"params": {"size": "8X"}}, "--size '8X' is not understood"),
        ({"params": {"size": "64k"}}, "--size '64k': K, M and G are upper case"),
        ({"params": {"size": "1:200:1"}}, "--size '1:200:1' is too many"),
        ({"params": {"size": 8, "duration": "0s"}}, "--duration '0s' is out of range"),
        ({"params": {"size": 8, "gap": "soon"}}, "--gap 'soon' is not understood"),
        ({"params": {"size": 8, "rate": "fast"}}, "--rate 'fast' is not understood"),
        ({"params": {"size": 8, "iterations": 0}}, "--iterations '0' is out of range"),
        ({"params": {"size": "8:64:0"}}, "--size '8:64:0' is out of range"),
        ({"params": {"size": "1:4G"}}, "--size '1:4G' is out of range"),
        (
            {"backend": "null", "provider": "tcp", "params": {"size": 8}},
            "the null backend has no providers",
        ),
        (
            {"kind": "bandwidth", "params": {"size": 8, "definition": "half_round_trip"}},
            "--definition; it belongs to: lat",
        ),
        (
            {"backend": "verbs", "op": "read", "params": {"size": 8, "connection": "ud"}},
            "--connection ud has no --op read",
        ),
        (
            {"backend": "verbs", "params": {"size": "8K", "connection": "ud"}},
            "a message is one packet",
        ),
        (
            {"backend": "verbs", "params": {"size": 8, "queue_pairs": 2}},
            "--queue-pairs; it belongs to: bw",
        ),
        (
            {
                "backend": "verbs",
                "kind": "bandwidth",
                "params": {"size": 8, "queue_pairs": 16, "cq_moderation": 65},
            },
            "--cq-moderation 65 needs --outstanding of at least as much, and it is 64",
        ),
        (
            {
                "backend": "verbs",
                "op": "write",
                "params": {
                    "size": 8,
                    "relaxed_ordering": True,
                    "definition": "half_round_trip",
                },
            },
            "the last byte may be visible before the others",
        ),
    ],
)
def test_what_the_engine_refuses_is_said_in_its_words(
    built: engine.Check, members: dict[str, Any], why: str
) -> None:
    assert why in refusal(built, **members)


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"batch": 32769}, "--batch '32769' is out of range"),
        ({"stride": 4}, "--stride"),
        ({"devices": 2, "threads": 3}, "--threads 3"),
        ({"cross_rail": 1}, "--cross-rail 1"),
    ],
)
def test_what_the_engine_refuses_of_transfers_is_said(
    built: engine.Check, params: dict[str, Any], why: str
) -> None:
    test = {"backend": "verbs", "op": "write", "kind": "transfer"}
    assert why in refusal(built, **test, params={"size": 8, **params})


def test_what_depends_on_the_number_of_devices_is_not_refused_for_all_hosts(
    built: engine.Check,
) -> None:
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=["m0", "m1"])
    test = suite_test(
        backend="verbs",
        op="write",
        kind="transfer",
        params={"size": 8, "devices": "all", "threads": 2, "cross_rail": 1},
    )
    assert planned([test], inventory, built).flows() == 1


def test_a_soak_is_asked_with_its_times(built: engine.Check) -> None:
    test = suite_test(
        backend="verbs", op="write", kind="bandwidth", params={"size": 8, "bidirectional": True}
    )
    with pytest.raises(PerchError, match="test t: --interval with --bidirectional"):
        planned([test], hosts(2), built, soak={}, soak_duration="1h")


def test_an_engine_that_is_not_built_is_named_with_what_builds_it(tmp_path: Path) -> None:
    with pytest.raises(PerchError, match="No such file or directory; run make setup") as caught:
        planned([suite_test()], hosts(2), engine.checker(tmp_path / "perch"))
    assert caught.value.code == ExitCode.INCONCLUSIVE


def test_an_engine_that_ends_oddly_is_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "perch"
    program.write_text("#!/bin/sh\necho perch: no >&2\nexit 4\n")
    program.chmod(0o755)
    with pytest.raises(PerchError, match="ended with exit code 4: no"):
        planned([suite_test()], hosts(2), engine.checker(program))


# ---- other tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "kind", "params", "why"),
    [
        ("send", "latency", {"size": "8:64", "iterations": 10}, "one size a test"),
        ("send", "latency", {"size": 8}, "either iterations or duration"),
        ("send", "latency", {"size": 8, "iterations": 3}, "5 to 100000000 iterations"),
        (
            *("write", "latency"),
            {"size": 8, "iterations": 10, "completion": "event"},
            "no events with op write",
        ),
        (
            *("read", "latency"),
            {"size": 8, "iterations": 10, "connection": "uc"},
            "connection uc has no op read",
        ),
        ("fetch-add", "latency", {"size": 64, "iterations": 10}, "work on 8 bytes"),
        (
            *("send", "latency"),
            {"size": 8, "iterations": 10, "queue_pairs": 2},
            "queue_pairs belongs to bandwidth",
        ),
        ("send", "latency", {"size": 8, "iterations": 10, "tos": 8}, "tos with rdma_cm only"),
        ("send", "latency", {"size": 8, "duration": "2s", "margin": "1s"}, "twice the margin"),
        ("send", "bandwidth", {"size": 8, "iterations": 100, "batch": 3}, "a multiple of batch"),
        ("send", "bandwidth", {"size": 8, "duration": "2500ms"}, "whole seconds"),
        ("atomic-op", "latency", {"size": 8, "iterations": 10}, "has no op atomic-op"),
    ],
)
def test_what_perftest_refuses_is_said(
    op: str, kind: str, params: dict[str, Any], why: str
) -> None:
    assert why in refusal(tool="perftest", backend=None, op=op, kind=kind, params=params)


@pytest.mark.parametrize(
    ("op", "params", "why"),
    [
        ("send", {"size": "3:12", "iterations": 5}, "powers of two"),
        ("send", {"size": 8}, "either iterations or duration"),
        ("atomic-op", {"size": 8, "iterations": 5}, "size of its atomic_type"),
        ("write", {"size": 8, "iterations": 5, "rdzv": True}, "op send only"),
        ("send", {"iterations": 5}, "needs a size"),
        ("send", {"size": 8, "iterations": 5, "tx_memory": "gpu"}, 'memory "gpu": write host'),
        ("send", {"size": 8, "iterations": 5, "batch": 2}, "batch belongs to bandwidth"),
        ("compare-atomic", {"iterations": 5, "atomic_op": "sum"}, "has no atomic_op sum"),
    ],
)
def test_what_the_cxi_tools_refuse_is_said(op: str, params: dict[str, Any], why: str) -> None:
    assert why in refusal(tool="cxi", backend=None, op=op, params=params)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"params": {"size": "8:16", "duration": "1s"}}, "iperf measures one size a test"),
        ({"params": {"size": 8}}, "iperf needs a duration"),
        ({"params": {"size": 8, "duration": "1s", "omit": "1s"}}, "omit is iperf3's"),
        ({"params": {"size": 8, "duration": "0s"}}, "duration must be above 0"),
        (
            {"kind": "latency", "params": {"size": 8}},
            "iperf has no kind 'latency'; known are bandwidth",
        ),
        ({"op": "write", "params": {"size": 8}}, "iperf has no backend, provider or op"),
        (
            {"params": {"size": 8, "duration": "1s", "streams": "two"}},
            "streams is 'two'; give a",
        ),
        ({"params": {"size": 8, "duration": "1s", "streams": -1}}, "streams is -1; give a whole"),
        ({"params": {"size": 8, "duration": "1s", "streams": True}}, "streams is True; give a"),
        ({"params": {"duration": "1s"}}, "it has no parameter size"),
    ],
)
def test_what_iperf_refuses_is_said(members: dict[str, Any], why: str) -> None:
    test = {"tool": "iperf", "backend": None, "kind": "bandwidth"}
    assert why in refusal(**{**test, **members})


def test_an_unknown_tool_is_refused_with_the_nearest_one() -> None:
    assert refusal(tool="iperf4").startswith("no suite can ask for the tool 'iperf4', did you mean")
    assert "known are cxi, iperf, iperf3, perch, perftest" in refusal(tool="mpi")


# ---- numbers with units --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("0:64", "a part is out of range"),
        (0, "a part is out of range"),
        (4294967296, "a part is out of range"),
        ("64:8", "MAX is less than MIN"),
        ("1:200:1", "more than 128 sizes"),
        ("1:2:3:4", "more than three parts"),
        ("8X", '"8X" is no size'),
    ],
)
def test_a_size_that_is_none_is_refused(size: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        units.sizes(size)


def test_times_and_rates_have_units() -> None:
    assert units.seconds("300ms") == 0.3
    assert units.seconds("1.5h") == 5400
    assert units.pace("100Kmsg/s", 8) == 1e-5
    assert units.pace("640b/s", 8) == 0.1
    for text in ("soon", "5", "1h30m"):
        with pytest.raises(ValueError, match="is no duration"):
            units.seconds(text)
    for text in ("fast", "5", "5GB/s"):
        with pytest.raises(ValueError, match="is no rate"):
            units.pace(text, 8)
    with pytest.raises(ValueError, match="above 0"):
        units.pace("0msg/s", 8)
