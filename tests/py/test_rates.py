"""Message rates: the command of a plan, what its output must state, and how lines of it read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.checks import figures
from perch.judge import columns
from perch.judge.asked import asked
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.model.record import Record
from perch.plan.planner import Planned
from perch.tools import perch
from perch.tools.command import Ends
from tests.py.planned import flows, hosts, planned, suite_test

CARDS = {
    "perch_devices": [{"name": "m0", "gid_index": 3}, {"name": "m1", "gid_index": 3}],
    "perch_backends": ["verbs", "tcp", "null"],
}


def plan(params: dict[str, Any], **members: Any) -> Planned:
    test = {"backend": "verbs", "op": "write", "kind": "rate", **members}
    return planned([suite_test(**test, params={"size": "8:32", **params})], hosts(2, **CARDS))


def test_a_flow_of_each_device_owes_a_record_of_each_size() -> None:
    found = flows(plan({"devices": "all", "threads": 8, "queue_pairs": 4}))
    assert [flow["rail"] for flow in found] == [0, 1]
    assert [one["size_bytes"] for one in found[1]["expect"]] == [8, 16, 32]
    assert " ".join(found[1]["client_argv"]) == (
        "perch rate 192.0.2.2 --backend verbs --op write --size 8:32 --threads 8 --queue-pairs 4 "
        "--device m1 --gid-index 3 --server-device m1 --server-gid-index 3 --bind 192.0.2.1 --json"
    )


def test_a_flow_has_the_time_of_all_its_sizes() -> None:
    short, long = (flows(plan({"duration": f"{s}s"}))[0]["deadline_s"] for s in (2, 100))
    assert short > 3 * 2
    assert long > short + 3 * 90
    assert flows(plan({}))[0]["deadline_s"] == short


def test_a_backend_without_message_rate_is_refused() -> None:
    with pytest.raises(Exception, match="backend null has no message rate"):
        plan({}, backend="null")


#: What the engine writes over verbs with all defaults, as far as the plan asks for it.
STATED: dict[str, Any] = {
    "backend": "verbs", "op": "write", "kind": "rate", "definition": "initiator_completion",
    "connection": "RC",
    "params": {
        "size_bytes": 8, "completion": "busy", "verify": False, "bidirectional": False,
        "duration_s": 2.0, "warmup_s": 0.2, "queue_pairs": 1, "threads": 1, "outstanding": 512,
        "batch": 32, "cq_moderation": 64, "tx_memory": "host", "rx_memory": "host",
        "retry": 7, "rnr_retry": 7, "timeout_exponent": 14, "sl": 0, "traffic_class": 0,
    },
}  # fmt: skip


def why(stated: dict[str, Any], more: dict[str, Any] | None = None) -> str | None:
    """`stated`: params of its line that are other ones; `more`: params of the test."""
    planned = Flow(id="t/a/b/0/1", test="t", tool="perch", kind="rate", client="a", server="b",
                   scope="software", params={"size": 8} | (more or {}), backend="verbs", op="write",
                   devices=1, expect=[Expect(8)])  # fmt: skip
    part = msgspec.convert(STATED | {"params": STATED["params"] | stated}, Part)
    asked(planned, Ends()).judge(0, part)
    return None if part.error is None else part.error.message


def test_an_output_states_the_load_that_the_plan_asks_for() -> None:
    assert why({}) is None
    for name, other in {"threads": 2, "queue_pairs": 4, "batch": 1, "cq_moderation": 1,
                        "outstanding": 64, "duration_s": 1.0, "warmup_s": 1.0}.items():  # fmt: skip
        assert name in (why({name: other}) or ""), name
    assert why({"threads": 8, "batch": 16}, {"threads": 8, "batch": 16}) is None
    # lists and moderation are no longer than what is outstanding, unless given
    assert "footprint_bytes 1073741824" in (why({}, {"footprint": "1G"}) or "")
    assert "footprint_bytes" in (why({"footprint_bytes": 1 << 20}) or "")
    assert why({"footprint_bytes": 1 << 30}, {"footprint": "1G"}) is None
    few = {"outstanding": 24, "batch": 24, "cq_moderation": 24}
    assert why(few, {"outstanding": 24}) is None


LINE = (
    b'{"schema":"perch.record/1","tool":{"name":"perch","version":"0.1.0"},"backend":"tcp",'
    b'"op":"write","kind":"rate","definition":"initiator_completion",'
    b'"completion_level":"delivery","connection":"stream","link":{"layer":"loopback"},'
    b'"params":{"size_bytes":64,"clock":"monotonic"},"elapsed_s":2.0,'
    b'"bandwidth":{"gbit_s":0.512,"peak_gbit_s":null,"peak_definition":null,'
    b'"min_interval_gbit_s":null,"messages_per_s":%s,"bytes":128000000},'
    b'"cpu":{"client_s":1.9,"server_s":1.9,"client_system_s":2.0,"server_system_s":2.0},'
    b'"path":{"claimed_bytes":129280000,"client_sent_bytes":129280000,'
    b'"client_received_bytes":0,"lost_bytes":0},'
    b'"message_rate":{"mmsg_s":1.0,"messages":2000000,"post_api":null},"status":"ok",'
    b'"error":null}'
)


def test_a_line_gives_the_rate_as_messages_a_second() -> None:
    (part,) = perch.parts([LINE % b"1000000.0"])
    assert part.status == "ok", part.error
    assert part.kind == "rate"
    assert part.bandwidth is not None
    assert part.bandwidth.messages_per_s == 1000000


@pytest.mark.parametrize("rate", [b"2000000.0", b"null", b"0"])
def test_a_rate_that_its_bytes_deny_or_that_is_missing_is_an_error(rate: bytes) -> None:
    (part,) = perch.parts([LINE % rate])
    assert part.status == "error"


def terms(**params: Any) -> str:
    kind = params.pop("kind", "rate")
    stated = {
        "schema": "perch.record/2", "run": "r", "flow": "t/a/b/0/1", "test": "t", "repeat": 1,
        "rail": 0, "scope": "software", "status": "ok", "tool": {"name": "perch"},
        "client": {"host": "a"}, "server": {"host": "b"}, "kind": kind, "op": "write",
        "params": STATED["params"] | params, "bandwidth": {"messages_per_s": 5e6},
    }  # fmt: skip
    record = msgspec.convert(stated, Record)
    text: str = figures.terms(columns.frame([record]))[0]
    return text


def test_rates_of_another_load_are_not_compared() -> None:
    for name, other in {"threads": 2, "batch": 1, "cq_moderation": 1, "inline_bytes": 64,
                        "footprint_bytes": 1 << 30}.items():  # fmt: skip
        assert (figures.unlike(terms(), terms(**{name: other})) or "").startswith(f"{name}: ")
    # every kind has a footprint
    for kind in ("latency", "bandwidth", "sum"):
        odd = figures.unlike(terms(kind=kind), terms(kind=kind, footprint_bytes=1 << 30))
        assert odd == "footprint_bytes: none and 1073741824"
    # a baseline of an earlier engine had it off, whether its records say so or not
    relaxed = figures.unlike(terms(relaxed_ordering=False), terms(relaxed_ordering=True))
    assert relaxed == "relaxed_ordering: none and true"
    assert figures.unlike(terms(), terms(relaxed_ordering=False)) is None
    assert figures.unlike(terms(), terms()) is None
    assert [metric.name for metric in figures.METRICS["rate"]] == ["bandwidth.messages_per_s"]
