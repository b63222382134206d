"""The engine's lines: what becomes a result, and what an error with which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Placement, QueuePair, Side
from perch.tools import TOOLS, ToolOutput, read
from perch.tools.perch import parts
from tests import raw_lines

FIXTURES = Path(__file__).parents[1] / "fixtures"

SECONDS = ("client_s", "server_s", "client_system_s", "server_system_s")
#: What each line says.
HEADING: dict[str, Any] = {
    "completion_level": "inject",
    "connection": "stream",
    "link": {"mtu_bytes": 1500, "layer": "ethernet"},
    "cpu": dict.fromkeys(SECONDS, 0.1),
}
LATENCY: dict[str, Any] = HEADING | {
    "schema": "perch.record/1",
    "tool": {"name": "perch", "version": "0.1.0"},
    "backend": "tcp",
    "kind": "latency",
    "definition": "half_round_trip",
    "params": {"size_bytes": 8, "clock": "monotonic"},
    "elapsed_s": 0.2,
    "latency_us": {
        "count": 10000,
        "min": 5,
        "max": 50,
        "mean": 10,
        "stddev": 1,
        "p50": 9,
        "p99": 20,
        "p99_9": 30,
    },
    "status": "ok",
    "error": None,
}
BANDWIDTH: dict[str, Any] = HEADING | {
    "schema": "perch.record/1",
    "kind": "bandwidth",
    "params": {"size_bytes": 8, "clock": "monotonic"},
    "elapsed_s": 1,
    "bandwidth": {
        "gbit_s": 8,
        "bytes": 1_000_000_000,
        "messages_per_s": 125e6,
        "peak_definition": "best_interval_0.1s",
    },
    "status": "ok",
}
LOST = {"status": "error", "error": {"code": 4, "message": "peer lost", "traffic": True}}


def changed(line: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """`line` with the leaves of `change`."""
    merged = dict(line)
    for key, value in change.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = changed(old or {}, value) if both else value
    return merged


def part_of(line: dict[str, Any], change: dict[str, Any] | None = None) -> Part:
    (part,) = parts([json.dumps(changed(line, change or {})).encode()])
    return part


def why(part: Part) -> str:
    """The error's words, or the status."""
    message = part.error.message if part.error else part.status
    return message.removeprefix("perch's line cannot be used: ")


def test_a_line_names_the_queue_pairs_of_both_ends() -> None:
    numbers = {"client": [{"number": 17, "psn": 5}, {"number": 18, "psn": 6}]}
    managed = {"server": [{"number": 19}]}  # by a connection manager
    assert part_of(LATENCY).queue_pairs == {}
    assert part_of(LATENCY, {"queue_pairs": numbers | managed}).queue_pairs == {
        "client": [QueuePair(17, 5), QueuePair(18, 6)],
        "server": [QueuePair(19)],
    }
    assert "queue_pairs" in why(part_of(LATENCY, {"queue_pairs": {"client": [{"number": -1}]}}))


def error_of(part: Part) -> tuple[int | None, str, bool]:
    assert part.error is not None
    return part.error.code, part.error.message, part.error.traffic


def test_a_whole_line_becomes_a_part_with_its_figures_rounded() -> None:
    line = changed(
        LATENCY,
        {
            "latency_us": {"count": 13447, "min": 3.7405, "max": 2119.168, "mean": 7.43668513,
                           "stddev": 48.8922116, "p50": 5.6915, "p90": 6.2515, "p95": 6.8035,
                           "p99": 12.7515, "p99_9": 761.343512345, "p99_99": None},
            "bandwidth": None, "intervals": [], "histogram": None, "integrity": None, "tcp": None,
            "cpu": {"client_s": 0.160839, "server_s": 0.19},
        },
    )  # fmt: skip
    part = part_of(line)
    assert part.status == "ok" and part.error is None and part.bandwidth is None
    assert part.latency_us is not None and part.cpu is not None and part.tool is not None
    assert (part.latency_us.p50, part.latency_us.p99_9) == (5.6915, 761.343512)
    assert (part.cpu.client_s, part.cpu.client_s_per_gb) == (0.160839, None)
    assert (part.tool.name, part.tool.version) == ("perch", "0.1.0")


def test_each_end_has_its_place_where_the_line_says_it() -> None:
    pinned = {"cpu": "4", "node": 1, "memory_node": 1, "unplaced": None}
    free = {"cpu": None, "node": None, "memory_node": 0, "unplaced": "off"}
    ends = {"client": {"host": "a", "placement": pinned}, "server": {"placement": free}}
    part = part_of(LATENCY, ends)
    assert part.client == Side(host="a", placement=Placement("4", 1, 1))
    assert part.server == Side(placement=Placement(memory_node=0, unplaced="off"))
    # earlier versions say nothing of it
    assert part_of(LATENCY, {"client": {"host": "a"}}).client == Side(host="a")


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ("0", "perch's line cannot be used: bandwidth.gbit_s is 0, which is not a result"),
        ("-3", "perch's line cannot be used: bandwidth.gbit_s is -3, which is not a result"),
        ("null", "perch's line cannot be used: bandwidth.gbit_s is null, which is not a result"),
        ("1e300", "perch's line cannot be used: bandwidth.gbit_s is 1"),
        (
            '1e999,"peak_gbit_s": 1e999',
            "line 1 of its output: bandwidth.gbit_s: number out of range",
        ),
        ("nan", "line 1 of its output is not JSON: truncated?"),
    ],
)  # fmt: skip
def test_no_result_is_never_a_figure(figure: str, message: str) -> None:
    line = json.dumps(BANDWIDTH).replace('"gbit_s": 8', f'"gbit_s": {figure}')
    (part,) = parts([line.encode()])
    code, words, traffic = error_of(part)
    assert part.status == "error" and code == 6 and traffic and words.startswith(message)


@pytest.mark.parametrize(
    "line", [b'{"schema":"perch.rec', b"[]", b"7", b" ", b'{"a":1}{}', b'{"a":' + b"[" * 100_000,
             b'{"schema":"\xff"}', b'{"elapsed_s":"x"'],
)  # fmt: skip
def test_a_line_that_is_no_json_object_is_named_and_others_are_kept(line: bytes) -> None:
    good, bad = parts([json.dumps(BANDWIDTH).encode(), line])
    assert good.status == "ok"
    assert error_of(bad) == (6, "line 2 of its output is not JSON: truncated?", True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"latency_us": {"p50": "9"}}, "latency_us.p50: expected number, got string"),
        ({"latency_us": {"count": 9999.5}}, "latency_us.count: expected whole number, got number"),
        ({"params": {"queue_pairs": -1}}, "params.queue_pairs: expected whole number >= 0"),
        ({"intervals": [{"start_s": "0"}]}, "intervals[0].start_s: expected number, got string"),
        ({"client": "alpha"}, "client: expected object, got string"),
        ({"environment": {"FI_X": 1}}, "environment[...]: expected string, got whole number"),
    ],
)
def test_a_value_of_another_type_is_told_with_its_place(
    change: dict[str, Any], message: str
) -> None:
    part = part_of(LATENCY, change)
    assert error_of(part) == (6, f"line 1 of its output: {message}", True)
    assert part.params is not None and part.params.size_bytes == 8 and part.kind == "latency"


def test_what_does_not_fit_is_left_out_of_the_part() -> None:
    beyond = '"size_bytes": 8, "gap_us": 1e999, "duration_s": 1e999'
    (part,) = parts([json.dumps(LATENCY).replace('"size_bytes": 8', beyond).encode()])
    assert why(part) == "line 1 of its output: params.gap_us: number out of range"
    assert part.params is not None and part.params.size_bytes == 8
    assert part.params.gap_us is None and part.params.duration_s is None


def test_an_engine_error_is_told_whatever_else_does_not_fit() -> None:
    part = part_of(LATENCY, LOST | {"latency_us": "none", "params": {"outstanding": 1.5}})
    assert error_of(part) == (4, "peer lost", True)
    assert part.params is not None and part.params.size_bytes == 8
    assert part.params.outstanding is None


@pytest.mark.parametrize(
    "line",
    [b"", b'{"kind":"interval","size_bytes":8,"start_s":0,"end_s":1}',
     b'{"kind":"sample","latency_us":1}', b'{"kind":"sample","laten',
     b'{"latency_us":1,"kind":"sample"}'],
)  # fmt: skip
def test_progress_and_samples_make_no_part(line: bytes) -> None:
    assert parts([line]) == []


def test_half_a_line_of_progress_is_an_error() -> None:
    (part,) = parts([b'{"kind":"interval","size_'])
    assert error_of(part)[1] == "line 1 of its output is not JSON: truncated?"


def test_a_line_of_another_tool_is_an_error() -> None:
    assert why(part_of(LATENCY, {"tool": {"name": "perchx"}})) == (
        'perch\'s line is of the tool "perchx"'
    )


def test_another_schema_is_an_error() -> None:
    assert why(part_of(LATENCY, {"schema": "perch.record/9"})) == (
        'line 1 of its output has schema "perch.record/9"'
    )


def test_an_error_keeps_its_code_and_message_and_place() -> None:
    part = part_of(LATENCY, LOST | {"latency_us": None})
    assert error_of(part) == (4, "peer lost", True)
    assert part.status == "error" and part.params is not None and part.params.size_bytes == 8


@pytest.mark.parametrize(
    ("error", "told"),
    [(None, (6, "perch gave no reason", False)),
     ({"code": 4.5}, (6, "perch gave no reason", False)),
     ({"code": 3, "message": "no device"}, (3, "no device", False))],
)  # fmt: skip
def test_an_error_without_words_says_so(error: Any, told: tuple[int, str, bool]) -> None:
    assert error_of(part_of(LATENCY, {"status": "error", "error": error})) == told


def test_an_error_keeps_what_was_checked_and_nothing_that_is_no_count() -> None:
    checked = {"integrity": {"checked_bytes": 4096, "bad_bytes": 8}}
    kept = part_of(BANDWIDTH, LOST | checked)
    assert kept.integrity is not None and kept.integrity.bad_bytes == 8
    dropped = part_of(BANDWIDTH, LOST | {"integrity": {"checked_bytes": None, "bad_bytes": 8}})
    assert dropped.integrity is None and error_of(dropped)[0] == 4


def test_corrupted_bytes_are_an_error_even_in_a_line_that_says_ok() -> None:
    part = part_of(BANDWIDTH, {"integrity": {"checked_bytes": 1000, "bad_bytes": 1}})
    assert error_of(part) == (5, "1 of 1000 bytes arrived corrupted", True)


def test_a_missed_limit_leaves_the_figures() -> None:
    missed = {"status": "error", "error": {"code": 1, "message": "under --min-gbit"}}
    part = part_of(BANDWIDTH, missed)
    assert part.status == "ok" and error_of(part) == (1, "under --min-gbit", True)
    assert part.bandwidth is not None and part.bandwidth.gbit_s == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "okay"}, "perch's line has the status \"okay\""),
        ({"error": {"code": 4}}, 'perch\'s line says ok and has the error {"code":4'),
        ({"latency_us": None}, "it has no latency_us.count, which perch always writes"),
        ({"elapsed_s": 0.15}, "latencies sum up to 0.2 s of 0.15 s"),
        ({"elapsed_s": None}, "elapsed_s is null, which is not a result"),
        ({"latency_us": {"mean": 51}}, "latency_us.mean lies outside of min and max"),
        ({"latency_us": {"mean": 4.9}}, "latency_us.mean lies outside of min and max"),
        ({"latency_us": {"mean": 6.9}}, "latency_us.mean is below what min and p50 allow"),
        ({"latency_us": {"count": 9999}}, "latency_us.p99_9 of 9999 samples has not ten above it"),
        ({"latency_us": {"p99": 8}}, "latency_us has its percentiles out of order"),
        ({"latency_us": {"min": 9.5}}, "latency_us has its percentiles out of order"),
        ({"params": {"rate": {"overloaded": True}}},
         "the pace that was asked for could not be kept"),
        ({"params": {"verify": True}}, "--verify checked no byte"),
        ({"path": {"client_sent_bytes": 80000, "client_received_bytes": 79999,
                   "claimed_bytes": 159999}},
         "its path claims 159999 bytes, but its figures need 160000"),
        ({"path": {"client_sent_bytes": 80000, "client_received_bytes": 80000}},
         "its path claims null bytes, but its ends sent 160000"),
        ({"path": {"client_sent_bytes": None}}, "path.client_sent_bytes is null"),
        ({"path": {"client_sent_bytes": 80000, "client_received_bytes": 80000,
                   "claimed_bytes": 1}}, "its path claims 1 bytes, but its ends sent 160000"),
        ({"tcp": {"initial_rtt_us": 0}}, "tcp.initial_rtt_us is 0, which is not a result"),
        ({"cpu": {"server_s": -1}}, "cpu.server_s is -1, which is not a result"),
        ({"loss": {"sent_messages": None}}, "loss.sent_messages is null"),
    ],
)  # fmt: skip
def test_figures_that_cannot_be_are_an_error_that_says_why(
    change: dict[str, Any], message: str
) -> None:
    part = part_of(LATENCY, change)
    assert part.status == "error" and error_of(part)[0] == 6
    assert why(part).startswith(message)


@pytest.mark.parametrize(
    "change",
    [{}, {"elapsed_s": 0.15, "params": {"rate": {"asked": 1}}},
     {"definition": "completion", "elapsed_s": 0.1},
     {"path": {"client_sent_bytes": 80000, "client_received_bytes": 80000,
               "claimed_bytes": 160000}},
     {"backend": "null", "completion_level": None, "connection": None, "link": {"layer": "none"}}],
)  # fmt: skip
def test_figures_that_can_be_are_ok(change: dict[str, Any]) -> None:
    assert part_of(LATENCY, change).status == "ok"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "ok"),
        ({"bandwidth": None}, "it has no bandwidth.messages_per_s"),
        ({"bandwidth": {"gbit_s": 8.1}}, "1000000000 bytes in 1 s are not the 8.1 Gb/s"),
        ({"bandwidth": {"gbit_s": 1.6e5, "bytes": 2e13}}, "bandwidth of 160000 Gb/s is impossible"),
        ({"backend": "null", "completion_level": None, "connection": None,
          "bandwidth": {"gbit_s": 1.6e5, "bytes": 2e13}}, "ok"),
        ({"bandwidth": {"messages_per_s": 125e6}}, "ok"),
        ({"bandwidth": {"messages_per_s": 127e6}},
         "127000000 messages a second of 8 bytes are not the 8 Gb/s that it says"),
        ({"params": {"verify": True}, "integrity": {"checked_bytes": 0, "bad_bytes": 0}},
         "--verify checked no byte"),
        ({"loss": {"sent_messages": 125000000, "lost_messages": 1000},
          "path": {"client_sent_bytes": 999992000, "client_received_bytes": 0,
                   "claimed_bytes": 999992000}}, "ok"),
    ],
)  # fmt: skip
def test_a_bandwidth_must_agree_with_its_bytes_and_messages(
    change: dict[str, Any], message: str
) -> None:
    assert why(part_of(BANDWIDTH, change)).startswith(message)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"completion_level": "sent"}, "completion_level"),
        ({"connection": "UD"}, "connection"),
        ({"backend": "verbs", "connection": "stream"}, "connection"),
        ({"link": {"layer": "tokenring"}}, "link.layer"),
        ({"params": {"clock": "sundial"}}, "params.clock"),
        ({"bandwidth": {"peak_definition": "best_interval_1s"}}, "bandwidth.peak_definition"),
        ({"completion_level": None}, "completion_level"),
        ({"connection": None}, "connection"),
        ({"link": None}, "link.layer"),
        ({"params": {"clock": None}}, "params.clock"),
        ({"bandwidth": {"peak_definition": None}}, "bandwidth.peak_definition"),
    ],
)
def test_what_a_figure_means_is_told_in_the_engines_words(
    change: dict[str, Any], name: str
) -> None:
    line = {"backend": "tcp"} | BANDWIDTH
    good = {"completion_level": "delivery", "connection": "stream", "link": {"layer": "ethernet"},
            "params": {"clock": "cycles"},
            "bandwidth": {"peak_gbit_s": 9, "peak_definition": "best_interval_0.1s"}}  # fmt: skip
    assert part_of(line, good).status == "ok"
    said = why(part_of(line, change))
    assert said.startswith(f"its {name} is ") and said.endswith("a word that perch does not write")


@pytest.mark.parametrize("member", [f"cpu.{name}" for name in SECONDS])
def test_a_line_without_what_the_engine_always_writes_is_damaged(member: str) -> None:
    group, name = member.split(".")
    for line in (LATENCY, BANDWIDTH):
        said = f"it has no {member}, which perch always writes"
        assert why(part_of(line, {group: {name: None}})) == said
        assert why(part_of(line, {group: None})) == "it has no cpu.client_s, " + said.split(", ")[1]


def test_a_queue_pair_has_a_path_mtu() -> None:
    verbs = {"backend": "verbs", "connection": "RC", "link": {"mtu_bytes": None}}
    assert why(part_of(LATENCY, verbs)) == "it has no link.mtu_bytes, which perch always writes"


def test_a_path_has_one_mtu() -> None:
    mtu = {"params": {"mtu_bytes": 1024}, "link": {"mtu_bytes": 4096}}
    assert why(part_of(LATENCY, mtu)) == "its MTU is 1024 in params and 4096 in link"
    assert part_of(LATENCY, mtu | {"link": {"mtu_bytes": None}}).status == "ok"


def test_a_silent_second_is_a_finding_and_no_fault() -> None:
    silent = {"start_s": 0, "end_s": 1, "count": 0, "gbit_s": 0, "latency_us": {"count": 0}}
    part = part_of(LATENCY, {"intervals": [silent]})
    (interval,) = part.intervals
    assert (interval.gbit_s, interval.count, interval.latency_us) == (0, 0, None)


def test_an_interval_is_judged_as_the_whole_is() -> None:
    times = {"count": 5, "min": 1, "max": 9, "mean": 20, "stddev": 0}
    part = part_of(LATENCY, {"intervals": [{"start_s": 0, "end_s": 1, "latency_us": times}]})
    assert why(part) == "latency_us.mean lies outside of min and max"


def test_a_stall_keeps_its_date() -> None:
    stall = {"longest_s": 5.123, "start_s": 1.5, "began": "2026-01-01T00:00:01.500Z"}
    part = part_of(LATENCY, {"stall": stall})
    assert part.stall is not None
    assert (part.stall.longest_s, part.stall.began) == (5.123, "2026-01-01T00:00:01.500Z")
    undated = part_of(LATENCY, {"stall": {"longest_s": 0, "start_s": 0, "began": None}})
    assert undated.stall is not None and undated.stall.began is None


def test_where_the_first_bad_byte_lay_is_kept() -> None:
    bad = {"found_by": "server", "message": 3, "offset": 17, "at": "10", "expected": "00",
           "found": "ff", "start_s": 0.5}  # fmt: skip
    integrity = {"checked_bytes": 1000, "bad_bytes": 1, "first_bad": bad}
    part = part_of(BANDWIDTH, {"integrity": integrity})
    assert part.integrity is not None and part.integrity.first_bad is not None
    first = part.integrity.first_bad
    assert (first.found_by, first.offset, first.start_s) == ("server", 17, 0.5)


@pytest.mark.parametrize(("status", "code"), [(1, 1), (3, 3), (6, 6), (7, 6), (126, 3), (127, 3)])
def test_the_exit_status_is_the_code(status: int, code: int) -> None:
    assert TOOLS["perch"].exit_code_of(status, "") == code


@pytest.mark.parametrize("run", ["rxe", "loopback", "transfer"])
def test_every_line_of_the_recorded_runs_is_ok(run: str) -> None:
    flow = Flow(id="t/a/b/0/1", test="t", tool="perch", kind="latency", client="a", server="b",
                scope="software")  # fmt: skip
    ends = raw_lines.ends(FIXTURES / run / "run", role="client")
    outputs = [(end.read().encode(), end.flow) for end in ends]
    assert outputs
    for output, name in outputs:
        if output.startswith(b'{"schema"'):
            made = read(ToolOutput(flow, output))
            assert made and all(part.status == "ok" for part in made), name
