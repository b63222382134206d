"""Single lines and intervals: what cannot be, what is owed, and which limits speak of a flow."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from perch.judge.raw import RawFiles
from perch.model.plan import Flow, SoakPlan
from perch.model.raw import SoakAgent
from perch.soak import drift, flow, lines
from perch.soak.blind import blind
from perch.soak.bounds import Bounds, of_flow
from perch.soak.facts import Facts, Finder
from perch.soak.figures import figure, with_due
from perch.soak.flow import Flowing
from perch.soak.line_types import Connection, Damaged, Interval, Line, Stall, Stalls

INTERVAL: dict[str, Any] = {
    "schema": "perch.record/1", "kind": "interval", "start_s": 0, "end_s": 1,
    "started": "2026-01-01T00:00:00.000Z", "ended": "2026-01-01T00:00:01.000Z", "status": "ok",
    "elapsed_s": 1, "connection_number": 1, "messages": 1000, "bytes": 125000000,
}  # fmt: skip
LATENCY = INTERVAL | {"messages": 1, "bytes": 1, "latency_us": {"count": 1}}


def digest(line: dict[str, Any]) -> Line:
    text = json.dumps(line).encode()
    raw = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return lines.digest(text, raw, "r")


def why(line: dict[str, Any]) -> str | None:
    one = digest(line)
    return one.why if isinstance(one, Damaged) else None


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"bandwidth": {"gbit_s": 1, "min_interval_gbit_s": 0.9, "peak_gbit_s": 1.1}}, None),
        ({"bandwidth": {"gbit_s": 10}}, "125000000 bytes are not the 10 Gb/s that it says"),
        (
            {"bandwidth": {"gbit_s": 1, "peak_gbit_s": 0.5}},
            "its mean lies outside of its lowest and its highest window",
        ),
        (
            {"latency_us": {"count": 1000, "min": 1, "p50": 3, "p90": 2, "max": 9}},
            "its percentiles are out of order",
        ),
        ({"latency_us": {"count": 1001}}, "1001 samples of 1000 messages"),
        ({"run": "other", "bandwidth": {"gbit_s": 1}}, 'it is of run "other"'),
        ({"schema": "perch.record/9"}, 'its schema is "perch.record/9"'),
        ({"kind": "poem"}, 'its kind is "poem"'),
        ({"start_s": 2}, "it ends before it begins"),
        ({"messages": 0, "elapsed_s": 0.5}, "it measured 0.5 s of 1 s"),
        ({"messages": 0, "elapsed_s": 2}, "it lasted 2 s within 1 s"),
        ({}, "it lacks figures"),
    ],
)
def test_an_interval_that_contradicts_itself_is_none(
    change: dict[str, Any], wanted: str | None
) -> None:
    assert why(INTERVAL | change) == wanted


@pytest.mark.parametrize(
    "change",
    [
        {"stalls": [1]}, {"stalls": {"count": "3"}}, {"integrity": {"bad_bytes": "8"}},
        {"integrity": {"bad_bytes": -8}}, {"bandwidth": "x", "latency_us": None}, {"error": "x"},
        {"connection_number": "1"}, {"connection_number": None}, {"kind": "bandwidth", "soak": "x"},
        {"kind": "soak", "started_ms": "x", "job": {}}, {"kind": "soak", "job": 1},
        {"elapsed_s": 0.1}, {"latency_us": None}, {"start_s": None},
    ],
)  # fmt: skip
def test_values_that_are_not_numbers_make_a_line_damaged(change: dict[str, Any]) -> None:
    assert why(LATENCY) is None
    assert why(LATENCY | change) is not None


def test_figures_have_three_digits_and_all_of_a_large_one() -> None:
    assert [figure(x) for x in (28738.2, 2.287, 0.01553, 0)] == ["28,738", "2.29", "0.0155", "0"]


# ---- limits --------------------------------------------------------------------------------------


def planned(scope: Any = "software", **more: Any) -> Flow:
    return Flow(
        "t/a/b/0/1", "t", "perch", more.pop("kind", "bandwidth"), "a", "b", scope,
        expect=[], **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flow_of", "severities"),
    [
        (planned("hardware"), ("fail", "fail", "fail")),
        (planned(), ("advisory", None, "fail")),
        (planned(params={"rate": "1Gb/s"}), ("fail", None, "fail")),
    ],
)
def test_hardware_is_held_to_more_than_software_and_a_flow_with_a_pace_to_it(
    flow_of: Flow, severities: tuple[str | None, ...]
) -> None:
    bounds = of_flow(flow_of, [])
    broken = (("bandwidth_percent", 30), ("stall_s", 0.03), ("gaps", 1))
    assert tuple(bounds.broken(*one) for one in broken) == severities


# ---- what is owed --------------------------------------------------------------------------------


def sent(start_s: float, end_s: float, messages: int) -> Interval:
    return Interval(start_s=start_s, end_s=end_s, messages=messages)


@pytest.mark.parametrize(
    ("carries", "due"),
    [(True, [100, 140, 100, 700, 200, 100]), (False, [100, 90, 100, 700, 100, 100])],
)
def test_bandwidth_makes_up_for_what_it_is_behind_and_latency_begins_anew(
    carries: bool, due: list[int]
) -> None:
    """Over the time between intervals, too; never more than a second's, nor after a loss."""
    course: list[Interval | Connection] = [
        sent(0, 1, 60), sent(1.1, 2, 140), sent(2, 3, 100), sent(3, 10, 0), sent(10, 11, 200),
        Connection(), sent(11, 12, 100),
    ]  # fmt: skip
    assert [round(one) for _, one in with_due(iter(course), 100, carries=carries)] == due


def stalled(start_s: float, long_s: float) -> Stall:
    return Stall(n=1, start_s=start_s, end_s=start_s + long_s, messages=1)


def owing(count: int, total_s: float) -> Interval:
    return Interval(n=9, start_s=0, end_s=60, stalls=Stalls(count, total_s))


MANY = [stalled(i / 2, 0.03) for i in range(64)]
SUM, STALL = ("sum", "inconclusive"), "stall"


@pytest.mark.parametrize(
    ("course", "found"),
    [
        ([stalled(1, 0.5), owing(1, 0.5)], []),
        ([owing(1, 0.5)], [SUM, (STALL, "advisory")]),
        ([stalled(1, 0.5), owing(1, 0.6)], [SUM]),
        ([*MANY, owing(100, 2.9)], [(STALL, "advisory")]),
        ([*MANY, owing(214, 6.32)], [(STALL, "inconclusive")]),
        ([*MANY, owing(100, 3.1)], [SUM, (STALL, "advisory")]),
        ([*MANY, owing(65, 6.92)], [SUM, (STALL, "fail")]),
        (
            [*MANY, owing(214, 6.32), owing(1, 0.5)],
            [(STALL, "inconclusive"), SUM, (STALL, "advisory")],
        ),
    ],
)
def test_an_interval_owes_as_many_lines_of_stalls_as_it_counts_and_their_time(
    course: list[Line], found: list[tuple[str, str]]
) -> None:
    """Up to 64 lines; what has none is as long as it can be."""
    of = flowing(course, of_flow(planned(kind="latency"), []))
    assert [(one.kind, one.severity) for one in flow.stalls_left(of)] == found


def test_stalls_without_a_line_are_said_to_be_one_anomaly() -> None:
    found = SimpleNamespace(latency=None, checked_bytes=None)
    told: Any = SimpleNamespace(kind="latency", stalls=65, figures=found)
    texts = dict(blind(SoakPlan(60, 60, 0.02, 600, "mixed"), [told], [], []))
    assert texts["stall_lines"].endswith(
        "The others together are one more anomaly of that interval."
    )


def flowing(course: list[Line], bounds: Bounds) -> Flowing:
    soak = SoakPlan(60, 60, 0.02, 600, "mixed")
    facts = Facts("r", soak, (), 0.0, False, {}, {}, {}, 0.001)
    return Flowing(planned(), soak, course, bounds, Finder(facts, "a", "file"), 60, 1.2)


def test_a_long_drift_is_no_step() -> None:
    of = flowing([], of_flow(planned("hardware"), []))
    series = drift.Series()
    for n in range(1500):
        series.bandwidth.add(60 * n, 100 - 0.03 * n + n * 7919 % 13 / 10, n, of.found)
    group, found = drift.of_group("t", series, of.bounds, of.found.facts)
    assert [one.kind for one in found] == ["drift"]
    assert group.courses[0].over_soak == pytest.approx(-45 / 78, rel=0.03)


HUGE = 10**400


def test_numbers_beyond_all_bounds_make_a_line_damaged() -> None:
    of_latency = {"count": 1, "max": HUGE}
    parts = (
        {"messages": HUGE}, {"bytes": HUGE}, {"elapsed_s": HUGE}, {"end_s": HUGE},
        {"latency_us": of_latency}, {"connection_number": HUGE}, {"stalls": {"total_s": HUGE}},
        {"latency_us": None, "bandwidth": {"gbit_s": HUGE}},
    )  # fmt: skip
    assert [part for part in parts if why(LATENCY | part) is None] == []


# ---- histograms of intervals ---------------------------------------------------------------------

SOAK = Path(__file__).parents[1] / "fixtures/soak/lat.soak"


def read_with(root: Path, change: Callable[[dict[str, Any]], object]) -> tuple[list[Line], bytes]:
    """The recorded soak with its first interval changed, and what of it is published."""
    texts = SOAK.read_text().splitlines()
    first = json.loads(texts[2])
    change(first)
    texts[2] = json.dumps(first)
    file = root / "raw/a/flows/t/a/b/0/1/client.soak"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(texts) + "\n")
    out = io.BytesIO()
    read = lines.Reader(RawFiles(root), out, "r", 0, {"a": SoakAgent()}).read(planned())
    return read.lines, out.getvalue()


def test_a_recorded_soak_has_the_times_of_its_histograms(tmp_path: Path) -> None:
    read, out = read_with(tmp_path, lambda line: None)
    assert not any(isinstance(line, Damaged) for line in read)
    assert not any(line.histogram for line in read if isinstance(line, Interval))
    raw, published = (json.loads(text.splitlines()[2]) for text in (SOAK.read_bytes(), out))
    assert raw["histogram"]["data"]
    assert published == published | raw | {"histogram": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"latency_us": {"count": 200}}, "its histogram has 201 of 200 samples"),
        ({"latency_us": {"p50": 6.5}}, "p50 is 6.5 us, and "),
        ({"latency_us": {"max": 1300}}, "max is 1300 us, and "),
        ({"latency_us": {"mean": 20}}, "mean is 20 us, and "),
        ({"histogram": {"data": "AAAA"}}, "its histogram cannot be decoded"),
        ({"histogram": {"unit": "us"}}, "its histogram is in another unit"),
        ({"histogram": {"encoding": "csv"}}, "its histogram is in another unit"),
    ],
)
def test_an_interval_unlike_its_histogram_is_damaged_and_not_published(
    tmp_path: Path, change: dict[str, dict[str, Any]], said: str
) -> None:
    def planted(line: dict[str, Any]) -> None:
        for key, values in change.items():
            line[key] |= values

    read, out = read_with(tmp_path, planted)
    (damaged,) = [line for line in read if isinstance(line, Damaged)]
    assert damaged.n == 3 and damaged.why.startswith(said)
    numbers = [json.loads(line)["line"] for line in out.splitlines()]
    assert numbers == [n for n in range(1, len(read)) if n != 3]
