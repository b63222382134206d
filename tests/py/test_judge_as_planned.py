"""The parts of an output -> one part for each record that the plan expects."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge.as_planned import check_exit, check_server, expected_parts, matched, name_misfit
from perch.judge.asked import Asked, asked
from perch.judge.outcome import Cause
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.tools.command import Ends

LOST = {"code": 4, "message": "peer lost", "traffic": True}


def flow(*sizes: int) -> Flow:
    return Flow(
        id="t/a/b/0/1", test="t", tool="iperf", kind="latency", client="a", server="b",
        scope="software", params={"size": 8}, expect=[Expect(size_bytes=size) for size in sizes],
    )  # fmt: skip


def wanted(planned: Flow) -> Asked:
    return asked(planned, Ends())


def part(size: int | None, **said: Any) -> Part:
    """A part as iperf's test of one stream asks for."""
    params = {"size_bytes": size, "queue_pairs": 1}
    return msgspec.convert({"kind": "latency", "params": params, **said}, Part)


def told(parts: list[Part]) -> list[tuple[Any, ...]]:
    errors = [one.error for one in parts]
    return [
        (one.status, error and error.code, error and error.traffic, error and error.message)
        for one, error in zip(parts, errors, strict=True)
    ]


OK = ("ok", None, None, None)


def test_every_expected_record_gets_one_part_in_the_plans_order() -> None:
    found = matched(flow(8, 16), [part(16), part(8)], None, wanted(flow(8, 16)))
    assert [one.params and one.params.size_bytes for one in found] == [8, 16]


def test_a_size_without_a_line_has_the_causes_code() -> None:
    cause = Cause("error", 4, "exit 4")
    assert told(matched(flow(8, 16), [part(8)], cause, wanted(flow(8, 16)))) == [
        OK,
        ("error", 4, True, "exit 4"),
    ]


def test_sizes_behind_the_error_that_ended_the_run_were_not_reached() -> None:
    parts = [part(8), part(16, status="error", error=LOST)]
    found = told(
        matched(flow(8, 16, 32), parts, Cause("error", 4, "exit 4"), wanted(flow(8, 16, 32)))
    )
    assert found[1] == ("error", 4, True, "peer lost")
    assert found[2] == ("not_measured", 4, False, "not reached: peer lost")


def test_an_error_without_a_size_is_the_records_own() -> None:
    parts = [part(None, status="error", error={"code": 3, "message": "no device"})]
    found = told(matched(flow(8), parts, Cause("error", 6, "exit 1"), wanted(flow(8))))
    assert found == [("error", 6, False, "exit 1; no device")]


def test_exit_0_without_a_line_is_an_error() -> None:
    found = told(matched(flow(8), [], None, wanted(flow(8))))
    assert found == [
        ("error", 6, True, 'the tool exited 0 but left no result for {"size_bytes":8}')
    ]


def test_what_was_never_started_was_not_measured() -> None:
    cause = Cause("not_measured", None, "host a returned no raw data")
    assert told(matched(flow(8), [], cause, wanted(flow(8)))) == [
        ("not_measured", None, False, "host a returned no raw data")
    ]


def test_two_results_for_one_record_are_an_error() -> None:
    found = told(matched(flow(8), [part(8), part(8)], None, wanted(flow(8))))
    assert found[0][3] == 'the output holds 2 results for {"size_bytes":8}'


def test_a_result_for_another_size_is_named() -> None:
    parts = [part(9)]
    found = matched(flow(8), parts, None, wanted(flow(8)))
    name_misfit(found, parts)
    assert told(found)[0][3] == "the result is for 9 bytes, not as planned"


@pytest.mark.parametrize(
    ("code", "statuses"), [(6, [("ok", None), ("error", 6)]), (1, [("ok", 1), ("ok", 1)])]
)
def test_a_command_that_failed_spoils_the_last_record_but_for_a_missed_limit(
    code: int, statuses: list[tuple[str, int | None]]
) -> None:
    found = [Part(), Part()]
    check_exit(found, Cause("error", code, f"exit {code}"))
    assert [(one.status, one.error and one.error.code) for one in found] == statuses


def test_no_figure_counts_without_the_servers_word() -> None:
    found = [Part(), Part(status="not_measured")]
    check_server(found, Cause("error", 6, "host b left no server's line of this flow"))
    assert [one.status for one in found] == ["error", "not_measured"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (part(7), "it holds a result for 7 bytes, which was not asked for"),
        (msgspec.convert({"status": "error", "error": {"message": "line 2 is cut"}}, Part),
         "line 2 is cut"),
    ],
)  # fmt: skip
def test_output_beside_the_expected_records_spoils_the_last(more: Part, message: str) -> None:
    found = expected_parts(flow(8), [part(8), more], None, None, wanted(flow(8)))
    assert told(found) == [("error", 6, True, message)]


def test_pairs_and_their_sum_are_matched_by_place() -> None:
    planned = flow()
    planned.kind, planned.tool, planned.op = "transfer", "perch", "write"
    planned.expect = [
        Expect(size_bytes=8, batch=4, pair=0, kind="transfer"),
        Expect(size_bytes=8, batch=4, kind="sum"),
    ]
    params = {"size_bytes": 8, "batch": 4}
    parts = [
        msgspec.convert({"kind": "sum", "op": "write", "params": params}, Part),
        msgspec.convert(
            {"kind": "transfer", "op": "write", "params": params, "transfer": {"pair": 0}}, Part
        ),
    ]
    found = matched(planned, parts, None, wanted(planned))
    assert [one.kind for one in found] == ["transfer", "sum"]
    # both are there; neither says that it did what the test asks for
    assert [one.error and one.error.message for one in found] == [
        "the plan asks for completion busy, the output says nothing"
    ] * 2
