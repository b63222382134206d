"""What the plan asks of an output, compared with what the output says was done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge.asked import STATED, asked
from perch.model.part import Part
from perch.model.plan import Expect
from perch.model.record import Params
from perch.plan import forms
from perch.tools import TOOLS
from perch.tools.command import LINK_LAYERS, Ends
from tests.py.asking import NO_DEVICES, SEND, changed, flow, other, why

# ---- the engine ----------------------------------------------------------------------------------

LATENCY = flow("perch", {"duration": "200ms"}, backend="ofi", provider="tcp")
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


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        (10, None), (9, None),
        (8, "the last 0.4 s have no interval of 0.2 s"),
        (0, "the last 2 s have no interval of 0.2 s"),
    ],
)  # fmt: skip
def test_intervals_that_were_asked_for_cover_the_whole_measurement(
    intervals: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perch.judge.asked.AGREEING_S", 0.1)
    planned = flow("perch", {"duration": "2s", "interval": "200ms"}, backend="ofi", provider="tcp")
    these = [{"start_s": 0.2 * at, "end_s": 0.2 * (at + 1)} for at in range(intervals)]
    part = changed(LATENCY_PART, "params.duration_s", 2) | {"elapsed_s": 2, "intervals": these}
    assert why(planned, part) == said


def test_a_result_of_another_backend_is_named() -> None:
    said = why(LATENCY, changed(LATENCY_PART, "backend", "tcp"))
    assert said == "the plan asks for backend ofi, the output says tcp"


VERBS_KIND: dict[str, str] = {"backend": "verbs", "kind": "bandwidth", "op": "write"}
VERBS = flow(
    "perch",
    {"queue_pairs": 4, "batch": 2, "mtu": 1024, "relaxed_ordering": True, "huge": "2M"},
    **VERBS_KIND,
)
GID_3 = Ends([{"gid_index": 3}], [{"gid_index": 3}])
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


def test_queue_pairs_are_those_of_the_params_defaults_included() -> None:
    assert why(VERBS, VERBS_PART, GID_3) is None
    for name in (
        "queue_pairs", "batch", "cq_moderation", "gid_index", "sl", "traffic_class", "huge", "srq",
        "rdma_cm", "relaxed_ordering",
    ):  # fmt: skip
        wrong = other(VERBS_PART["params"][name])
        assert why(VERBS, changed(VERBS_PART, f"params.{name}", wrong), GID_3) is not None, name


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("connection", "UC", "the plan asks for connection RC, the output says UC"),
        ("link.mtu_bytes", 4096, "the plan asks for mtu_bytes 1024, the output says 4096"),
        ("params.srq", None, "the plan asks for srq false, the output says nothing"),
    ],
)
def test_a_queue_pair_unlike_its_params_is_named(path: str, value: Any, message: str) -> None:
    assert why(VERBS, changed(VERBS_PART, path, value)) == message


@pytest.mark.parametrize(
    ("kind", "memory", "asked_for", "said", "fits"),
    [
        ("latency", "host", None, False, True),
        ("latency", "host", None, None, True),
        ("latency", "host", None, True, False),
        ("latency", "host", True, True, True),
        ("latency", "host", True, False, False),
        ("latency", "cuda:near", None, True, True),
        ("latency", "cuda:near", None, False, True),  # as older engines did
        ("latency", "cuda:near", False, True, False),
        ("bandwidth", "host", None, True, True),
        ("bandwidth", "host", None, False, True),  # as older engines did
        ("bandwidth", "host", False, True, False),
    ],
)
def test_relaxed_ordering_is_as_asked_for_and_off_for_latency_in_host_memory(
    kind: str, memory: str, asked_for: bool | None, said: bool | None, fits: bool
) -> None:
    params = {"relaxed_ordering": asked_for, "memory": memory}
    planned = flow("perch", params, backend="verbs", op="send", kind=kind)
    part = changed(VERBS_PART, "params.relaxed_ordering", said)
    params = part["params"] | {
        "queue_pairs": 1, "batch": 1, "outstanding": 1 if kind == "latency" else 64,
        "inline_bytes": 0, "huge": None, "tx_memory": memory, "rx_memory": memory,
    }  # fmt: skip
    times = "half_round_trip" if kind == "latency" else "receiver_acknowledged"
    part |= {"kind": kind, "op": "send", "definition": times, "params": params}
    message = why(planned, part)
    assert (message is None) is fits
    assert fits or "relaxed_ordering" in str(message)


@pytest.mark.parametrize(
    ("asked_for", "managed", "message"),
    [
        ({"rdma_cm": True}, True, None),
        ({"rdma_cm": True, "sl": 5}, True, "sl 5, the output says 3"),
        ({"rdma_cm": True, "tos": 106}, True, None),
        ({"rdma_cm": True, "traffic_class": 40}, True, "traffic_class 40, the output says 106"),
        ({}, False, "sl 0, the output says 3"),
    ],
)
def test_a_connection_managers_level_and_class_are_its_own_choice(
    asked_for: dict[str, Any], managed: bool, message: str | None
) -> None:
    planned = flow("perch", asked_for, backend="verbs", op="read")
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


@pytest.mark.parametrize(
    ("recorded", "said"),
    [(0x8001, None), (0x0001, None), (0x8002, "32770"), (None, "nothing")],
)
def test_a_partition_is_that_of_the_test_whatever_the_port_is_in_it(
    recorded: int | None, said: str | None
) -> None:
    planned = flow("perch", VERBS.params | {"pkey": 0x8001}, **VERBS_KIND)
    found = why(planned, changed(VERBS_PART, "params.pkey", recorded), GID_3)
    assert (found is None) == (said is None)
    assert said is None or (found and "pkey" in found and found.endswith(f"output says {said}"))


CXI = flow(
    "perch",
    {"atomic_op": "min", "atomic_type": "double", "warmup": 5, "gap": "1ms", "no_idc": True,
     "no_ll": True, "no_hrp": True, "unrestricted": True, "keys": "matching",
     "fabric_class": "low-latency", "svc_id": 2, "server_svc_id": 3, "vni": 20, "memory": "cuda",
     "tx_memory": "host"},
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


PLACED = flow("perch", {"cpu": "3-4", "server_cpu": "off", "numa": 1}, backend="null")
PLACED_PART: dict[str, Any] = {
    "backend": "null", "kind": "latency", "op": "send", "definition": "half_round_trip",
    "client": {"placement": {"cpu": "4", "node": 1, "memory_node": 1}},
    "server": {"placement": {"memory_node": 0, "unplaced": "off"}},
    "params": {
        "completion": "busy", "verify": False, "bidirectional": False, "iterations": 1000,
        "outstanding": 1, "warmup": 100,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("client.placement.cpu", "4", None),
        ("client.placement.cpu", "5", "cpu 3 or 4 on the client"),
        ("client.placement.cpu", None, "cpu 3 or 4 on the client"),
        ("server.placement.unplaced", "few-cores", "unplaced off on the server"),
        ("client.placement.memory_node", 0, "memory_node 1 on the client"),
        ("client.placement.memory_node", None, None),
    ],
)
def test_a_place_that_is_named_is_compared(path: str, value: Any, message: str | None) -> None:
    found = why(PLACED, changed(PLACED_PART, path, value))
    assert (found is None) == (message is None)
    assert message is None or message in str(found)


READ = {"backend": "cxi", "kind": "latency", "op": "read", "definition": "completion"}
COMPARE = READ | {"op": "compare-atomic"}
WRITE = {"backend": "ofi", "kind": "bandwidth", "op": "write", "definition": "initiator_completion"}
SAID = {
    "batch": 1, "fabric_class": "default", "rdzv": False, "keys": "client", "idc": False,
    "ll": False, "hrp": False, "unrestricted": True, "gap_us": 0, "tx_memory": "host",
    "rx_memory": "host",
}  # fmt: skip


@pytest.mark.parametrize(
    ("asked_for", "kind", "params", "message"),
    [
        ({}, READ, SAID, None),
        ({"unrestricted": True}, READ, SAID, "keys matching, the output says client"),
        ({"unrestricted": True}, READ, SAID | {"keys": "matching"}, None),
        ({}, READ, SAID | {"batch": 256}, "batch 1, the output says 256"),
        ({}, READ, SAID | {"rdzv": True}, "rdzv false, the output says true"),
        ({}, READ, SAID | {"gap_us": 1000}, "gap_us 0, the output says 1000"),
        ({}, READ, SAID | {"rx_memory": "cuda:0"}, "rx_memory host, the output says cuda:0"),
        ({"rdzv": True}, READ, SAID, "rdzv true, the output says false"),
        ({}, COMPARE, SAID | {"atomic_op": "cswap", "atomic_type": "uint64"}, None),
        ({"batch": 64}, WRITE, SAID, "batch 64, the output says 1"),
        ({"warmup": 7}, SEND, {"warmup": 100}, "warmup 7, the output says 100"),
        ({"gap": "30us"}, SEND, {"gap_us": 30}, None),
        ({"huge": "2M"}, SEND, {"tx_memory": "host", "rx_memory": "host"},
         "tx_memory huge:2M, the output says host"),
        ({"memory": "cuda:01", "tx_memory": "host"}, SEND,
         {"tx_memory": "host", "rx_memory": "cuda:1"}, None),
        ({"memory": "cuda:near"}, SEND,
         {"tx_memory": "cuda:0", "rx_memory": "cuda:near"},
         "tx_memory cuda:near, the output says cuda:0"),
        ({"bounce": True}, SEND, {"bounce": False}, "bounce true, the output says false"),
    ],
)  # fmt: skip
def test_defaults_are_compared_where_they_are_stated(
    asked_for: dict[str, Any], kind: dict[str, str], params: dict[str, Any], message: str | None
) -> None:
    planned = flow("perch", asked_for, backend=kind["backend"], kind=kind["kind"], op=kind["op"])
    plain = {"completion": "busy", "verify": False, "bidirectional": False}
    said = why(planned, {**kind, "params": plain | params})
    assert said == (message and f"the plan asks for {message}")


@pytest.mark.parametrize(
    ("asked_for", "rate", "message"),
    [
        (None, None, None),
        ("500Mb/s", {"asked": 0.5, "unit": "Gb/s"}, None),
        ("2Kmsg/s", {"asked": 2000, "unit": "messages/s"}, None),
        (None, {"asked": 0.5, "unit": "Gb/s"}, "paced false, the output says true"),
        ("5Gb/s", {"asked": 0.5, "unit": "Gb/s"}, "rate 5, the output says 0.5"),
        ("5Gb/s", None, "paced true, the output says false"),
        ("5Gb/s", {"asked": 5, "unit": "messages/s"}, "rate_unit Gb/s, the output says messages/s"),
    ],
)
def test_a_rate_is_as_asked_for_and_absent_where_none_was(
    asked_for: str | None, rate: dict[str, Any] | None, message: str | None
) -> None:
    kind = {"backend": "tcp", "kind": "bandwidth", "op": "send"}
    params = {"completion": "busy", "verify": False, "bidirectional": False, "warmup": 100}
    part = {**kind, "definition": "receiver_acknowledged", "params": {**params, "rate": rate}}
    said = why(flow("perch", {"warmup": 100, "rate": asked_for}, **kind), part)
    assert said == (message and f"the plan asks for {message}")


# ---- other tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [{"duration_s": 1}, {"queue_pairs": 1}, {"bidirectional": True}, {"queue_pairs": None}],
)
def test_iperf3_did_what_its_params_say(change: dict[str, Any]) -> None:
    planned = flow("iperf3", {"duration": "2s", "streams": 4}, kind="bandwidth")
    good = {"duration_s": 2, "queue_pairs": 4, "bidirectional": False}
    assert why(planned, {"kind": "bandwidth", "params": good}) is None
    assert why(planned, {"kind": "bandwidth", "params": good | change}) is not None


@pytest.mark.parametrize(
    ("asked_for", "change", "message"),
    [
        ({"tx_depth": 16, "cq_moderation": 8}, {}, None),
        ({"tx_depth": 64, "cq_moderation": 64, "iterations": 16}, {"cq_moderation": 16}, None),
        ({"tx_depth": 64}, {}, "outstanding 64, the output says 16"),
        ({"cq_moderation": 200}, {}, "cq_moderation 128, the output says 8"),
        ({}, {"relaxed_ordering": True}, "relaxed_ordering false, the output says true"),
        ({}, {"relaxed_ordering": None, "gid_index": None}, None),
        ({}, {"gid_index": 1}, "gid_index 3, the output says 1"),
        ({"srq": True}, {}, "srq true, the output says false"),
        ({"rdma_cm": True, "mtu": 4096}, {"rdma_cm": True}, None),
    ],
)
def test_perftests_queue_pairs_are_those_of_the_params(
    asked_for: dict[str, Any], change: dict[str, Any], message: str | None
) -> None:
    given = {"queue_pairs": 2, "mtu": 1024, "inline": 0, "relaxed_ordering": False} | asked_for
    planned = flow("perftest", given, kind="bandwidth", op="write")
    params = {
        "bidirectional": False, "completion": "busy", "queue_pairs": 2, "outstanding": 16,
        "batch": 1, "cq_moderation": 8, "inline_bytes": 0, "gid_index": 3, "srq": False,
        "rdma_cm": False, "relaxed_ordering": False,
    }  # fmt: skip
    part = {
        "kind": "bandwidth", "op": "write", "connection": "RC", "link": {"mtu_bytes": 1024},
        "params": params | change,
    }  # fmt: skip
    assert why(planned, part, GID_3) == (message and f"the plan asks for {message}")


@pytest.mark.parametrize(
    ("fabric", "layer", "fits"),
    [
        *(("roce", "ethernet", True), ("roce", "infiniband", False), ("roce", None, True)),
        *(("infiniband", "infiniband", True), ("infiniband", "ethernet", False)),
        ("roce", "iwarp", True),  # siw and irdma: Ethernet below
        *(("slingshot", "ethernet", True), ("loopback", "ethernet", True)),
    ],
)
@pytest.mark.parametrize("tool", ["perch", "perftest"])
def test_the_link_layer_of_verbs_is_the_fabrics(
    tool: str, fabric: str, layer: str | None, fits: bool
) -> None:
    ends = Ends([{"name": "rxe0"}], [{"name": "rxe0"}], fabric=fabric)
    planned = flow(tool, backend="verbs" if tool == "perch" else None)
    side = {"device": "rxe0"}
    part = {
        **SEND, "backend": "verbs", "connection": "RC", "client": side, "server": side,
        "link": {"layer": layer}, "params": {
            "completion": "busy", "verify": False, "bidirectional": False, "queue_pairs": 1,
            "batch": 1, "cq_moderation": 1, "sl": 0, "traffic_class": 0, "srq": False,
            "rdma_cm": False, "relaxed_ordering": False,
        },
    }  # fmt: skip
    words = f"the plan asks for layer {LINK_LAYERS.get(fabric)}, the output says {layer}"
    assert why(planned, part, ends) == (None if fits else words)


ATOMIC = {
    "atomic_op": "sum", "atomic_type": "uint64", "fetching": False, "keys": "client",
    "unrestricted": False, "rx_memory": "rocm:1", "tx_memory": "host",
}  # fmt: skip
SENT = {"rdzv": None, "rx_memory": "rocm:1", "tx_memory": "host"}
ALL = {"fetching": True, "atomic_op": "sum"}


@pytest.mark.parametrize(
    ("op", "asked_for", "params", "message"),
    [
        ("atomic-op", {"atomic_op": "sum", "atomic_type": "uint64"}, {}, None),
        ("atomic-op", {"atomic_op": "min"}, {}, "atomic_op min, the output says sum"),
        ("atomic-op", {"atomic_type": "double"}, {}, "atomic_type double, the output says uint64"),
        ("compare-atomic", {"atomic_op": "cswap-ne"}, ALL | {"atomic_op": "cswap-ne"}, None),
        ("compare-atomic", {}, ALL | {"atomic_op": "cswap"}, None),
        ("compare-atomic", {"atomic_op": "cswap-ne"}, ALL | {"atomic_op": "cswap"},
         "atomic_op cswap-ne, the output says cswap"),
        ("atomic-op", {"atomic_op": "write", "atomic_type": "float-complex"},
         {"atomic_op": "write", "atomic_type": "float-complex"}, None),
        ("fetch-atomic", {}, {}, "fetching true, the output says false"),
        ("atomic-op", {"matching": True}, {}, "keys matching, the output says client"),
        ("atomic-op", {}, {"keys": "matching"}, "keys client, the output says matching"),
        ("atomic-op", {"unrestricted": True}, {}, "unrestricted true, the output says false"),
        ("send", {}, {}, None),
        ("send", {"rdzv": True}, {}, "rdzv true, the output says nothing"),
        ("send", {}, {"rdzv": True}, "rdzv false, the output says true"),
        ("write", {}, {"unrestricted": True}, "unrestricted false, the output says true"),
        ("write", {"unrestricted": True}, {}, None),
        ("send", {"tx_memory": "cuda:0"}, {}, "tx_memory cuda:0, the output says host"),
        ("send", {}, {"rx_memory": "host"}, "rx_memory rocm:1, the output says host"),
        ("send", {"tx_memory": "huge:2M"}, {"tx_memory": "huge:2M"}, None),
        ("send", {"tx_memory": "huge:2M"}, {}, "tx_memory huge:2M, the output says host"),
        ("send", {"rx_memory": "huge:2M"}, {"rx_memory": "huge:2M", "tx_memory": "huge:2M"}, None),
        ("send", {"duration": "2s"}, {}, "duration_s 2, the output says nothing"),
        ("send", {"gap": "1ms"}, {}, "gap_us 1000, the output says nothing"),
    ],
)  # fmt: skip
def test_the_cxi_tools_did_what_their_params_say(
    op: str, asked_for: dict[str, Any], params: dict[str, Any], message: str | None
) -> None:
    planned = flow("cxi", {"rx_memory": "rocm:1"} | asked_for, op=op)
    stated = {"bidirectional": False} | (ATOMIC if "atomic" in op else SENT) | params
    said = why(planned, {"kind": "latency", "op": op, "params": stated})
    assert said == (message and f"the plan asks for {message}")


# ---- adding a tool -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "kind"), [(tool.name, kind) for tool in TOOLS.values() for kind in tool.commands]
)
def test_what_a_tool_wants_has_a_place_in_a_part(tool: str, kind: str) -> None:
    known = {*Params.__struct_fields__, *STATED}
    for backend in ("verbs", "ofi", "cxi", "tcp") if tool == "perch" else (None,):
        planned = flow(tool, {"rate": "1Gb/s", "duration": "4s"}, kind=kind, backend=backend)
        test = forms.test_of("t", planned)
        wants = list(TOOLS[tool].commands[kind].wants(test, NO_DEVICES, Expect(8, 1, 0)))
        assert wants
        assert {want.name for want in wants} <= known


def test_an_output_is_compared_again_where_it_says_something_else() -> None:
    """Values that were seen to be good are not looked at again; others are."""
    ready, good = asked(LATENCY, NO_DEVICES), changed(LATENCY_PART, "params.verify", False)
    for verify, status in ((False, "ok"), (True, "error"), (False, "ok"), (True, "error")):
        found = msgspec.convert(changed(good, "params.verify", verify), Part)
        ready.judge(0, found)
        assert found.status == status
