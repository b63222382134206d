"""Counters between the flows of a host: each reading is compared with the one before it."""

from __future__ import annotations

import pytest

from perch.judge import worker
from perch.model.verdict import Verdict
from tests import raw_lines
from tests.py.cards import PORT
from tests.py.judging import (
    Change,
    Document,
    Run,
    check_of,
    go_on,
    more,
    put,
    status,
)
from tests.raw_lines import End

COUNTERS = f"rdma.{PORT}.counters"


def ends(run: Run) -> list[End]:
    """Alpha's ends of flows as they followed each other."""
    return raw_lines.ends(run.root, host="alpha")


def time_of(end: End, when: str) -> float:
    return float(end.document()["counters"][when]["time_s"])


def test_cards_whose_counters_go_on_pass(cards: Run) -> None:
    verdict = cards.judge()
    assert verdict.verdict == "PASS"
    assert status(verdict, "between") == "pass"
    assert status(verdict, "between/readings") == "pass"


@pytest.mark.parametrize(
    ("counter", "by", "name", "word"),
    [
        (f"{COUNTERS}.link_downed", 7, "link", "FAIL"),
        (f"{COUNTERS}.symbol_error", 9000, "errors", "FAIL"),
        (f"{COUNTERS}.port_xmit_discards", 1, "drops", "FAIL"),
        (f"{COUNTERS}.packet_seq_err", 5, "retransmissions", "FAIL"),
        ("netdev.eth1.rx_prio3_pause", 4, "pause", "PASS"),
        ("netdev.eth1.rx_dropped", 4, "host-drops", "PASS"),
    ],
)
def test_what_moved_between_two_flows_is_judged_as_within_one(
    cards: Run, counter: str, by: int, name: str, word: str
) -> None:
    walk = next(raw_lines.walks(cards.root, "alpha"))
    for reading in walk.samples:  # every reading has the counter
        more(counter, 1)(reading)
    walk.save()
    earlier, later = ends(cards)[3:5]
    go_on(later, more(counter, by), since="before")
    verdict = cards.judge()
    assert verdict.verdict == word
    check = check_of(verdict, f"between/{name}")
    assert check.status == ("fail" if word == "FAIL" else "advisory")
    assert check.evidence == [earlier.flow, later.flow]
    seconds = time_of(later, "before") - time_of(earlier, "after")
    device, _, short = counter.removeprefix("rdma.").removeprefix("netdev.").partition(".")
    most = f"the most {by} of {short.removeprefix('counters.')} on alpha, {device}, in the "
    assert str(check.measured).startswith(f"{by} in 1 interval, {most}")
    assert f"{round(seconds, 3):.9g} s between {earlier.flow} and" in str(check.measured)
    assert status(verdict, "between/readings") == "pass"


def test_on_software_the_same_is_advisory(rxe: Run) -> None:
    later = ends(rxe)[4]
    go_on(later, more("netdev.eth1.rx_missed_errors", 3), since="before")
    verdict = rxe.judge()
    assert (verdict.verdict, status(verdict, "between/drops")) == ("PASS", "advisory")


def cleared(reading: Document) -> None:
    reading["netdev"]["eth1"]["rx_bytes"] = "0"


def without(reading: Document) -> None:
    del reading["rdma"][PORT]["counters"]["link_downed"]


@pytest.mark.parametrize(
    ("change", "said"),
    [(cleared, "eth1 rx_bytes went back"), (without, f"{PORT} link_downed is missing later")],
)
def test_a_counter_that_does_not_go_on_is_inconclusive(
    cards: Run, change: Change, said: str
) -> None:
    earlier, later = ends(cards)[3:5]
    go_on(later, change, since="before")
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    check = check_of(verdict, "between/readings")
    assert check.status == "inconclusive"
    assert str(check.measured).startswith(f"alpha: {said}")
    assert check.evidence[:2] == [earlier.flow, later.flow]


def test_a_reading_of_the_moment_of_an_earlier_one_is_inconclusive(cards: Run) -> None:
    """A flow that lasted until the next one began has its reading."""
    earlier, later = ends(cards)[3:5]
    at, started = later.document()["counters"]["before"]["time_s"], later.document()["started"]
    earlier.edit(put("counters.after.time_s", at), put("ended", started))
    spent = time_of(earlier, "after") - time_of(earlier, "before")
    earlier.edit(put("elapsed_s", spent))
    check = check_of(cards.judge(), "between/readings")
    assert check.status == "inconclusive"
    assert "were read at the same time" in str(check.measured)


# ---- within a flow -------------------------------------------------------------------------------


def one_moment(end: Document) -> None:
    end["counters"]["after"]["time_s"] = end["counters"]["before"]["time_s"]


def backwards(end: Document) -> None:
    moments = end["counters"]
    before, after = (moments[when]["time_s"] for when in ("before", "after"))
    moments["before"]["time_s"], moments["after"]["time_s"] = after, before


def another_day(end: Document) -> None:
    for when in ("before", "after"):
        reading = end["counters"][when]
        reading["time_s"] = f"{float(reading['time_s']) - 86400:.6f}"


def no_time(end: Document) -> None:
    end["counters"]["after"]["time_s"] = ""


def short(end: Document) -> None:
    """A moment before the last reading."""
    at = float(end["counters"]["after"]["time_s"])
    end["counters"]["before"]["time_s"] = f"{at - 0.001:.6f}"


@pytest.mark.parametrize("change", [one_moment, backwards, short, another_day, no_time])
@pytest.mark.parametrize("role", ["client", "server"])
def test_readings_of_another_time_than_their_flow_are_no_evidence(
    rxe: Run, role: str, change: Change
) -> None:
    end = rxe.flow("write-bandwidth", role)
    end.edit(change)
    verdict = rxe.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert {one.flow for one in verdict.coverage.missing} == {end.flow}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_counter_that_one_reading_of_a_flow_lacks_is_inconclusive(cards: Run, when: str) -> None:
    end = cards.flow("write-latency", "server")
    go_on(end, more(f"{COUNTERS}.link_downed", 1))
    end.edit(lambda found: without(found["counters"][when]))
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert str(check_of(verdict, "counters/reset").measured) == f"link: beta: {PORT} link_downed"


# ---- pieces of a plan ----------------------------------------------------------------------------


def test_pieces_and_workers_follow_each_other(cards: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each round is a piece of its own."""
    later = ends(cards)[4]
    go_on(later, more(f"{COUNTERS}.link_downed", 7), since="before")
    whole = cards.judge()
    monkeypatch.setattr(worker, "PIECE_FLOWS", 1)
    assert found(cards.judge()) == found(whole)
    monkeypatch.setattr(worker, "MANY_FLOWS", 1)
    assert found(cards.judge()) == found(whole)
    assert status(whole, "between/link") == "fail"


def found(verdict: Verdict) -> list[Document]:
    return [
        {"id": one.id, "measured": one.measured, "evidence": one.evidence}
        for one in verdict.checks
        if one.id.startswith("between")
    ]
