"""What a planned command asks for, compared with what the output says was done."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from perch.judge import asked
from perch.judge.commands import amount, memory, seconds
from perch.model.plan import Flow
from perch.model.record import Part

ADDRESSES = ("192.0.2.1", "192.0.2.2")


def flow(tool: str, argv: list[str], **stated: Any) -> Flow:
    return Flow(
        id="t/a/b/0/1", test="t", tool=tool, client="a", server="b", scope="software",
        client_argv=argv, **{"kind": "latency", **stated},
    )  # fmt: skip


def why(planned: Flow, part: dict[str, Any]) -> str | None:
    """What makes this part an error; None where it is as planned."""
    found = msgspec.convert(part, Part)
    asked.as_planned(planned, found, ADDRESSES)
    return found.error.message if found.error else None


def changed(part: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(part)
    *parents, key = path.split(".")
    at = made
    for name in parents:
        at = at[name]
    at[key] = value
    return made


def other(value: Any) -> Any:
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else "other"


# ---- the engine ----------------------------------------------------------------------------------

LATENCY = flow(
    "perch", ["perch", "lat", "b", "--duration", "200ms"], backend="ofi", provider="tcp", op="send"
)
LATENCY_PART: dict[str, Any] = {
    "backend": "ofi", "provider": "tcp;ofi_rxm", "op": "send", "kind": "latency",
    "definition": "half_round_trip", "elapsed_s": 0.2,
    "params": {"completion": "busy", "verify": False, "bidirectional": False, "duration_s": 0.2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("params.completion", "event"), ("params.verify", True), ("params.verify", None),
        ("params.bidirectional", True), ("params.duration_s", 2), ("definition", "completion"),
        ("definition", None), ("op", None), ("backend", None), ("provider", None),
        ("provider", "tcpx"), ("elapsed_s", 0.1),
    ],
)  # fmt: skip
def test_an_output_of_another_measurement_is_an_error(path: str, value: Any) -> None:
    assert why(LATENCY, LATENCY_PART) is None
    assert why(LATENCY, changed(LATENCY_PART, path, value)) is not None


def test_a_result_of_another_backend_is_named() -> None:
    said = why(LATENCY, changed(LATENCY_PART, "backend", "tcp"))
    assert said == "the plan asks for backend ofi, the output says tcp"


VERBS = flow(
    "perch",
    ["perch", "bw", "b", "--backend", "verbs", "--op", "write", "--queue-pairs", "4", "--batch",
     "2", "--mtu", "1024", "--gid-index", "3", "--relaxed-ordering", "--huge", "2M"],
    backend="verbs", kind="bandwidth", op="write",
)  # fmt: skip
VERBS_PART: dict[str, Any] = {
    "backend": "verbs", "kind": "bandwidth", "op": "write", "connection": "RC",
    "definition": "initiator_completion", "link": {"mtu_bytes": 1024},
    "params": {
        "completion": "busy", "verify": False, "bidirectional": False, "outstanding": 64,
        "queue_pairs": 4, "batch": 2, "cq_moderation": 1, "inline_bytes": 0, "gid_index": 3,
        "sl": 0, "traffic_class": 0, "retry": 7, "huge": 2097152, "tx_memory": "huge:2M",
        "rx_memory": "huge:2M", "srq": False, "rdma_cm": False, "relaxed_ordering": True,
    },
}  # fmt: skip


def test_queue_pairs_are_those_of_the_command_defaults_included() -> None:
    assert why(VERBS, VERBS_PART) is None
    for name in (
        "queue_pairs", "batch", "cq_moderation", "gid_index", "sl", "traffic_class", "huge", "srq",
        "rdma_cm", "relaxed_ordering",
    ):  # fmt: skip
        wrong = other(VERBS_PART["params"][name])
        assert why(VERBS, changed(VERBS_PART, f"params.{name}", wrong)) is not None, name


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("connection", "UC", "the plan asks for connection RC, the output says UC"),
        ("link.mtu_bytes", 4096, "the plan asks for mtu_bytes 1024, the output says 4096"),
        ("params.srq", None, "the plan asks for srq false, the output says nothing"),
    ],
)
def test_a_queue_pair_unlike_its_command_is_named(path: str, value: Any, message: str) -> None:
    assert why(VERBS, changed(VERBS_PART, path, value)) == message


def test_what_was_not_asked_for_is_the_engines_choice() -> None:
    part = changed(changed(VERBS_PART, "params.retry", 3), "params.inline_bytes", 64)
    assert why(VERBS, part) is None


@pytest.mark.parametrize(
    ("argv", "managed", "message"),
    [
        (["--rdma-cm"], True, None),
        (["--rdma-cm", "--sl", "5"], True, "sl 5, the output says 3"),
        (["--rdma-cm", "--tos", "106"], True, None),
        (["--rdma-cm", "--traffic-class", "40"], True, "traffic_class 40, the output says 106"),
        ([], False, "sl 0, the output says 3"),
    ],
)
def test_a_connection_managers_level_and_class_are_its_own_choice(
    argv: list[str], managed: bool, message: str | None
) -> None:
    planned = flow("perch", ["perch", "lat", "b", "--backend", "verbs", *argv])
    params = {
        "completion": "busy", "verify": False, "bidirectional": False, "queue_pairs": 1, "batch": 1,
        "cq_moderation": 1, "srq": False, "relaxed_ordering": False, "rdma_cm": managed, "sl": 3,
        "traffic_class": 106,
    }  # fmt: skip
    part = {
        "backend": "verbs", "kind": "latency", "op": "read", "definition": "completion",
        "connection": "RC", "params": params,
    }  # fmt: skip
    assert why(planned, part) == (message and f"the plan asks for {message}")


CXI = flow(
    "perch",
    ["perch", "lat", "b", "--backend", "cxi", "--op", "fetch-atomic", "--atomic-op", "min",
     "--atomic-type", "double", "--warmup", "5", "--gap", "1ms", "--no-idc", "--no-ll", "--no-hrp",
     "--unrestricted", "--keys", "matching", "--traffic-class", "low-latency", "--svc-id", "2",
     "--server-svc-id", "3", "--vni", "20", "--memory", "cuda", "--tx-memory", "host"],
    backend="cxi", op="fetch-atomic",
)  # fmt: skip
CXI_PART: dict[str, Any] = {
    "backend": "cxi", "kind": "latency", "op": "fetch-atomic", "definition": "completion",
    "client": {"svc_id": 2, "vni": 20}, "server": {"svc_id": 3, "vni": 20},
    "params": {
        "completion": "busy", "verify": False, "bidirectional": False, "warmup": 5,
        "gap_us": 1000, "batch": 1, "fabric_class": "low-latency", "atomic_op": "min",
        "atomic_type": "double", "svc_id": 2, "server_svc_id": 3, "vni": 20, "idc": False,
        "ll": False, "rdzv": False, "unrestricted": True, "hrp": False, "keys": "matching",
        "tx_memory": "host", "rx_memory": "cuda:0", "bounce": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", CXI_PART["params"])
def test_every_option_of_cxi_is_compared(name: str) -> None:
    assert why(CXI, CXI_PART) is None
    wrong = other(CXI_PART["params"][name])
    assert why(CXI, changed(CXI_PART, f"params.{name}", wrong)) is not None
    unstated = why(CXI, changed(CXI_PART, f"params.{name}", None))
    assert (unstated is None) == (name in ("batch", "bounce"))


@pytest.mark.parametrize("path", ["client.svc_id", "client.vni", "server.svc_id", "server.vni"])
def test_a_service_in_use_may_go_unstated_but_is_compared(path: str) -> None:
    role, name = path.split(".")
    assert why(CXI, changed(CXI_PART, path, CXI_PART[role][name] + 1)) is not None
    assert why(CXI, changed(CXI_PART, path, None)) is None


READ = {"backend": "cxi", "kind": "latency", "op": "read", "definition": "completion"}
COMPARE = READ | {"op": "compare-atomic"}
WRITE = {"backend": "ofi", "kind": "bandwidth", "op": "write", "definition": "initiator_completion"}
SEND = {"backend": "tcp", "kind": "latency", "op": "send", "definition": "half_round_trip"}
STATED = {
    "batch": 1, "fabric_class": "default", "rdzv": False, "keys": "client", "idc": False,
    "ll": False, "hrp": False, "unrestricted": True, "gap_us": 0, "tx_memory": "host",
    "rx_memory": "host",
}  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "kind", "params", "message"),
    [
        ([], READ, STATED, None),
        (["--unrestricted"], READ, STATED, "keys matching, the output says client"),
        (["--unrestricted"], READ, STATED | {"keys": "matching"}, None),
        ([], READ, STATED | {"batch": 256}, "batch 1, the output says 256"),
        ([], READ, STATED | {"rdzv": True}, "rdzv false, the output says true"),
        ([], READ, STATED | {"gap_us": 1000}, "gap_us 0, the output says 1000"),
        ([], READ, STATED | {"rx_memory": "cuda:0"}, "rx_memory host, the output says cuda:0"),
        (["--rdzv"], READ, STATED, "rdzv true, the output says false"),
        ([], COMPARE, STATED | {"atomic_op": "cswap", "atomic_type": "uint64"}, None),
        (["--batch", "64"], WRITE, STATED, "batch 64, the output says 1"),
        (["--warmup", "7"], SEND, {"warmup": 100}, "warmup 7, the output says 100"),
        (["--gap", "30"], SEND, {"gap_us": 30}, None),
        (["--huge", "2M"], SEND, {"tx_memory": "host", "rx_memory": "host"},
         "tx_memory huge:2M, the output says host"),
        (["--bounce"], SEND, {"bounce": False}, "bounce true, the output says false"),
    ],
)  # fmt: skip
def test_defaults_are_compared_where_they_are_stated(
    argv: list[str], kind: dict[str, str], params: dict[str, Any], message: str | None
) -> None:
    command = ["perch", "x", "b", "--op", kind["op"], "--backend", kind["backend"], *argv]
    planned = flow("perch", command, backend=kind["backend"], kind=kind["kind"], op=kind["op"])
    plain = {"completion": "busy", "verify": False, "bidirectional": False}
    said = why(planned, {**kind, "params": plain | params})
    assert said == (message and f"the plan asks for {message}")


@pytest.mark.parametrize(
    ("argv", "rate", "message"),
    [
        ([], None, None),
        (["--rate", "500Mb/s"], {"asked": 0.5, "unit": "Gb/s"}, None),
        (["--rate", "2Kmsg/s"], {"asked": 2000, "unit": "messages/s"}, None),
        ([], {"asked": 0.5, "unit": "Gb/s"}, "paced false, the output says true"),
        (["--rate", "5Gb/s"], {"asked": 0.5, "unit": "Gb/s"}, "rate 5, the output says 0.5"),
        (["--rate", "5Gb/s"], None, "paced true, the output says false"),
        (["--rate", "5Gb/s"], {"asked": 5, "unit": "messages/s"},
         "rate_unit Gb/s, the output says messages/s"),
    ],
)  # fmt: skip
def test_a_rate_is_as_asked_for_and_absent_where_none_was(
    argv: list[str], rate: dict[str, Any] | None, message: str | None
) -> None:
    kind = {"backend": "tcp", "kind": "bandwidth", "op": "send"}
    command = ["perch", "bw", "b", "--backend", "tcp", "--warmup", "100", *argv]
    params = {"completion": "busy", "verify": False, "bidirectional": False, "warmup": 100}
    part = {**kind, "definition": "receiver_acknowledged", "params": {**params, "rate": rate}}
    said = why(flow("perch", command, **kind), part)
    assert said == (message and f"the plan asks for {message}")


# ---- other tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"duration_s": 1}, {"queue_pairs": 1}, {"bidirectional": True}, {"queue_pairs": None}],
)
def test_iperf3_did_what_its_command_says(change: dict[str, Any]) -> None:
    planned = flow("iperf3", ["iperf3", "-t", "2", "-P", "4"], kind="bandwidth", op="send")
    good = {"duration_s": 2, "queue_pairs": 4, "bidirectional": False}
    assert why(planned, {"kind": "bandwidth", "params": good}) is None
    assert why(planned, {"kind": "bandwidth", "params": good | change}) is not None


@pytest.mark.parametrize(
    ("argv", "change", "message"),
    [
        (["-t", "16", "-Q", "8"], {}, None),
        (["-t", "64", "-Q", "64", "-n", "16"], {"cq_moderation": 16}, None),
        (["-t", "64"], {}, "outstanding 128, the output says 32"),
        (["-Q", "8"], {"relaxed_ordering": True}, "relaxed_ordering false, the output says true"),
        ([], {"relaxed_ordering": None, "gid_index": None}, None),
        ([], {"gid_index": 1}, "gid_index 3, the output says 1"),
        (["--use-srq"], {}, "srq true, the output says false"),
        (["-R", "-m", "4096"], {"rdma_cm": True}, None),
    ],
)
def test_perftests_queue_pairs_are_those_of_the_command(
    argv: list[str], change: dict[str, Any], message: str | None
) -> None:
    command = ["ib_write_bw", "-c", "RC", "-q", "2", "-x", "3", "-m", "1024", "-I", "0"]
    planned = flow(
        "perftest", [*command, "--disable_pcie_relaxed", *argv], kind="bandwidth", op="write"
    )
    params = {
        "bidirectional": False, "completion": "busy", "queue_pairs": 2, "outstanding": 32,
        "batch": 1, "cq_moderation": 8, "inline_bytes": 0, "gid_index": 3, "srq": False,
        "rdma_cm": False, "relaxed_ordering": False,
    }  # fmt: skip
    part = {
        "kind": "bandwidth", "op": "write", "connection": "RC", "link": {"mtu_bytes": 1024},
        "params": params | change,
    }  # fmt: skip
    assert why(planned, part) == (message and f"the plan asks for {message}")


ATOMIC = {
    "atomic_op": "sum", "atomic_type": "uint64", "fetching": False, "keys": "client",
    "unrestricted": False, "rx_memory": "rocm:1", "tx_memory": "host",
}  # fmt: skip
SENT = {"rdzv": None, "rx_memory": "rocm:1", "tx_memory": "host"}


@pytest.mark.parametrize(
    ("tool", "argv", "params", "message"),
    [
        ("atomic", ["-A", "sum", "-T", "uint64"], {}, None),
        ("atomic", ["-A", "min", "-T", "double"], {}, "atomic_op min, the output says sum"),
        ("atomic", ["-A", "sum", "-T", "double"], {}, "atomic_type double, the output says uint64"),
        ("atomic", ["-A", "cswap", "-C", "ne", "--fetching"],
         {"atomic_op": "cswap-ne", "fetching": True}, None),
        ("atomic", ["-A", "cswap", "-C", "ne"], {"atomic_op": "cswap"},
         "atomic_op cswap-ne, the output says cswap"),
        ("atomic", ["-A", "SWAP", "-T", "FLOAT_COMPLEX"],
         {"atomic_op": "write", "atomic_type": "float-complex"}, None),
        ("atomic", ["--fetching"], {}, "fetching true, the output says false"),
        ("atomic", ["--matching"], {}, "keys matching, the output says client"),
        ("atomic", [], {"keys": "matching"}, "keys client, the output says matching"),
        ("atomic", ["--unrestricted"], {}, "unrestricted true, the output says false"),
        ("send", [], {}, None),
        ("send", ["-R"], {}, "rdzv true, the output says nothing"),
        ("send", [], {"rdzv": True}, "rdzv false, the output says true"),
        ("send", [], {"unrestricted": True}, "unrestricted false, the output says true"),
        ("send", ["--unrestricted"], {}, None),
        ("send", ["-t", "0", "-g", "NVIDIA"], {}, "tx_memory cuda:0, the output says host"),
        ("send", [], {"rx_memory": "host"}, "rx_memory rocm:1, the output says host"),
        ("send", ["--use-hp", "2M"], {"tx_memory": "huge:2M"}, None),
        ("send", ["--use-hp", "2M"], {}, "tx_memory huge:2M, the output says host"),
    ],
)  # fmt: skip
def test_the_cxi_tools_did_what_their_commands_say(
    tool: str, argv: list[str], params: dict[str, Any], message: str | None
) -> None:
    planned = flow("cxi", [f"cxi_{tool}_lat", *argv], op="x")
    planned.server_argv = ["cxi", "-r", "1", "-g", "AMD"]
    stated = {"bidirectional": False} | (ATOMIC if tool == "atomic" else SENT) | params
    said = why(planned, {"kind": "latency", "op": "x", "params": stated})
    assert said == (message and f"the plan asks for {message}")


# ---- time, device and port -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "argv", "elapsed", "message"),
    [
        ("perftest", ["-D", "4", "-f", "1"], 1.9, None),
        ("perftest", ["-D", "4", "-f", "1"], 1.7, "it lasted 1.7 s of 2 s"),
        ("perftest", ["-D", "4"], 0.1, None),
        ("perftest", ["-D", "4", "-f", "0"], 3.5, "it lasted 3.5 s of 4 s"),
        ("iperf3", ["-t", "4"], 3.5, "it lasted 3.5 s of 4 s"),
    ],
)
def test_a_duration_is_kept_perftests_without_its_margins(
    tool: str, argv: list[str], elapsed: float, message: str | None
) -> None:
    params = {
        "duration_s": 4, "bidirectional": False, "completion": "busy", "queue_pairs": 1,
        "srq": False, "rdma_cm": False,
    }  # fmt: skip
    part = {"kind": "bandwidth", "op": "write", "params": params, "elapsed_s": elapsed}
    assert why(flow(tool, ["ib_write_bw", *argv], kind="bandwidth", op="write"), part) == message


@pytest.mark.parametrize(
    ("stopped", "passed", "code", "message"),
    [
        (True, 32.4912, 0, "it was stopped after 32.5 s of 120 s"),
        (False, 30.4, 6, "it lasted 30.385008 s of 120 s"),
    ],
)
def test_a_soak_that_was_stopped_did_as_it_was_told(
    stopped: bool, passed: float, code: int, message: str
) -> None:
    soak = {
        "planned_s": 120, "passed_s": passed, "interval_s": 1, "intervals": 30, "connections": 1,
        "gaps": 0, "gap_s": 0, "stalls": 0, "stall_s": 0, "stopped": stopped, "resumed": False,
        "dropped_lines": 0,
    }  # fmt: skip
    params = {"duration_s": 120, "verify": False, "bidirectional": False, "completion": "busy"}
    part = msgspec.convert({**SEND, "params": params, "elapsed_s": 30.385008, "soak": soak}, Part)
    planned = flow("perch", ["perch", "lat", "b", "--duration", "120s"], backend="tcp", op="send")
    asked.as_planned(planned, part, ADDRESSES)
    assert part.error is not None
    assert (part.status, part.error.code, part.error.message) == ("error", code, message)
    assert part.error.traffic


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe1"}, "params": {"ib_port": 1}},
         None),
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe0"}},
         "the plan asks for device rxe1 on the server, the output says rxe0"),
        ({"server": {"device": "rxe1"}},
         "the plan asks for device rxe0 on the client, the output says nothing"),
        ({"client": {"device": "rxe0"}, "server": {"device": "rxe1"}, "params": {"ib_port": 2}},
         "the plan asks for port 1 on the client, the output says 2"),
        ({"client": {"device": "sim_rxe0"}, "server": {"device": "rxe1"}}, None),
    ],
)  # fmt: skip
def test_an_output_of_another_device_or_port_is_an_error(
    part: dict[str, Any], message: str | None
) -> None:
    argv = ["perch", "lat", "b", "--device", "rxe0", "--server-device", "rxe1", "--ib-port", "1"]
    planned = flow("perch", argv, backend="verbs", op="send")
    plain = {"completion": "busy", "verify": False, "bidirectional": False}
    whole = {**SEND, "backend": "verbs"} | part
    whole["params"] = plain | part.get("params", {})
    assert why(planned, whole) == message


# ---- words of commands ---------------------------------------------------------------------------


def test_times_and_amounts_are_read_as_the_engine_reads_them() -> None:
    assert [seconds(text) for text in ("300ms", "2", "1m", "1.5h")] == [0.3, 2, 60, 5400]
    assert [amount(text) for text in ("64K", "1M", "7", "x", None)] == [65536, 2**20, 7, None, None]


def test_the_last_word_about_memory_counts() -> None:
    argv = ["perch", "--memory", "cuda:01", "--tx-memory", "host"]
    assert (memory(argv, "tx"), memory(argv, "rx")) == ("host", "cuda:1")


def test_the_addresses_of_two_flows_share_one_command() -> None:
    argv = ["perch", "lat", "192.0.2.2", "--bind", "192.0.2.1"]
    assert asked.without(ADDRESSES, argv) == ("perch", "lat", "", "--bind", "")
