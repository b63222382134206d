"""Readings of a switch while flows ran: rates, their ranges, and what gives no rate."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from perch.judge.raw import RawFiles
from perch.judge.seen import SCHEMA, Seen
from perch.judge.switch_samples import Flows, during
from perch.judge.switches import read_switches
from perch.model.plan import Plan, PlanHost, PlanSwitch, Suite
from perch.model.sections import During, DuringRow
from perch.soak.moments import dated
from tests.switches.growth import grown

TESTS = Path(__file__).parents[1]
SWITCHES = TESTS / "fixtures/switches"
Document = dict[str, Any]
Change = Callable[[list[Document]], object]

#: The lossless queue of each provider, and Mb/s of port and queue in the fixtures' minute.
PROVIDERS = {
    "nxos": ("3", 9266.666667, 9253.333333),
    "eos": ("TC3", None, 81200),
    "sonic": ("3", None, 91866.666667),
    "cumulus": ("3", None, None),
    "infiniband": ("all lanes", None, None),
}
#: The first reading is 5 s after the one before the flows; an answer takes 0.2 s.
FIRST_S, EVERY_S, WAIT_S = 5, 10, 0.2


@cache
def reading(provider: str, phase: str) -> Document:
    text = subprocess.run(
        [SWITCHES / "reading", provider, phase], capture_output=True, check=True
    ).stdout
    found: Document = json.loads(text)
    return found


def at(seconds: float) -> str:
    """A time of the fixtures' minute."""
    whole, part = divmod(30 + seconds, 60)
    return f"2026-01-01T00:{int(whole):02}:{part:09.6f}Z"


def samples(before: Document, after: Document, count: int = 4) -> list[Document]:
    lines = []
    for n in range(count):
        begin = FIRST_S + n * EVERY_S
        commands = {}
        for name, answer in before["commands"].items():
            later = after["commands"][name]["stdout"]
            text = grown(answer["stdout"], later, begin + WAIT_S / 2)
            times = {"asked_s": 1000 + begin, "answered_s": 1000 + begin + WAIT_S}
            commands[name] = answer | {"stdout": text} | times
        head = {"phase": "during", "collected": at(begin), "asked_s": 1000 + begin}
        lines.append(before | head | {"commands": commands})
    return lines


def write(root: Path, provider: str, change: Change = bool, name: str = "leaf1") -> None:
    """The readings of a switch while flows ran, in a run's folder."""
    raw = root / "raw" / name
    raw.mkdir(parents=True, exist_ok=True)
    before, after = (reading(provider, phase) | {"switch": name} for phase in ("before", "after"))
    lines = samples(before, after)
    change(lines)
    (raw / "samples.jsonl.gz").write_bytes(
        b"".join(gzip.compress(json.dumps(line).encode() + b"\n") for line in lines)
    )


START_S = 1767225630.0  # at(0)
FLOW = Seen("t/node1/node2/0/1", START_S + 16, START_S + 34, START_S + 16, START_S + 34, None)
SEEN = pl.DataFrame([FLOW], schema=SCHEMA, orient="row")


def switch(root: Path, provider: str, **after: str) -> Document:
    """leaf1 as a verdict has it; `after`: what it answers otherwise after the flows.

    `before_at`, `after_at`: when it was read.
    """
    for phase in ("before", "after"):
        one = json.loads(json.dumps(reading(provider, phase)))
        one["collected"] = after.pop(f"{phase}_at", one["collected"])
        if phase == "after":
            for name, text in after.items():
                one["commands"][name]["stdout"] = text
        (root / f"raw/leaf1/switch-{phase}.json").write_text(json.dumps(one))
    plan = Plan(
        schema="perch.plan/2",
        run="r",
        created="2026-01-01T00:00:00Z",
        suite=Suite("s", "S"),
        limits="roce",
        hosts={
            name: PlanHost(address="192.0.2.1", fabric="roce", scope="hardware", port=1)
            for name in ("node1", "node2")
        },
        rounds=[],
        switches={"leaf1": PlanSwitch(provider, "hardware", [3])},
    )
    facts = read_switches(RawFiles(root), plan, SEEN)
    assert facts is not None
    (row,) = facts.rows
    return row


@pytest.mark.parametrize(
    ("phase", "seconds", "why"),
    [
        ("before", -331, "before the plan was made"),
        ("before", -329, None),
        ("before", 315, None),
        ("before", 317, "after the first flow began"),
        ("after", -265, None),
        ("after", -267, "before the last flow ended"),
        ("after", 9e5, None),
    ],
)
def test_switch_is_read_between_plan_and_flows_and_after_them(
    phase: str, seconds: float, why: str | None, tmp_path: Path
) -> None:
    """The plan is of 30 s before at(0), the flow runs from at(16) to at(34), 300 s are granted."""
    write(tmp_path, "sonic")
    row = switch(tmp_path, "sonic", **{f"{phase}_at": dated(START_S + seconds)})
    said = [fault["why"] for fault in row["faults"] if fault["command"] == phase]
    untimely = [one for one in said if one.startswith("it was read at ")]
    assert [one.partition(", ")[2] for one in untimely] == ([why] if why else [])


def judged(root: Path, provider: str, changes: list[Change]) -> dict[str, During]:
    """What is known of switches with these changes, the first of which is `0`."""
    write(root, provider)
    ports = switch(root, provider)
    names = [str(n) for n in range(len(changes))]
    for name, change in zip(names, changes, strict=True):
        write(root, provider, change, name)
    rows = [ports | {"name": name} for name in names]
    return during(RawFiles(root), "r", rows, Flows(SEEN))


def ranges(during: During, queue: str | None) -> DuringRow:
    return next(row for row in during["rows"] if row["queue"] == queue)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_rates_between_readings_are_those_of_the_minute(tmp_path: Path, provider: str) -> None:
    queue, port_rate, queue_rate = PROVIDERS[provider]
    write(tmp_path, provider)
    found: During = switch(tmp_path, provider)["during"]
    assert (found["readings"], found["intervals"], found["marks"]) == (4, 3, [])
    assert found["within_percent"] == pytest.approx(100 * WAIT_S / EVERY_S)
    for name, rate in ((None, port_rate), (queue, queue_rate)):
        row = ranges(found, name)
        # of 3 intervals, from 5 to 35 s, the flow ran in the two from 15 s on
        assert row["intervals"] == 2
        assert row["peak"]["flows"] == ["t/node1/node2/0/1"]
        span = row["figures"]["mbit_s"]
        assert span is not None
        low, high = span["min"], span["max"]
        assert low == pytest.approx(high, rel=1e-4)
        assert rate is None or low == pytest.approx(rate, rel=1e-4)


# ---- what gives no rate --------------------------------------------------------------------------


def port_counter(key: str, value: int) -> Callable[[list[Document]], None]:
    """The third reading's counter of node1's port, of NX-OS."""

    def change(lines: list[Document]) -> None:
        answer = json.loads(lines[2]["commands"]["interfaces"]["stdout"])
        rows = answer["TABLE_interface"]["ROW_interface"]
        next(row for row in rows if row["interface"] == "Ethernet1/1/1")[key] = str(value)
        lines[2]["commands"]["interfaces"]["stdout"] = json.dumps(answer)

    return change


def answer(**changed: Any) -> Callable[[list[Document]], None]:
    return lambda lines: lines[2]["commands"]["interfaces"].update(changed)


def later(seconds: float) -> Callable[[list[Document]], None]:
    """The wall clock is set on before the third reading."""

    def change(lines: list[Document]) -> None:
        for n in (2, 3):
            lines[n]["collected"] = at(FIRST_S + n * EVERY_S + seconds)

    return change


#: Why the third of four readings gives no rate, how often that is marked, and what stays measured.
FAULTS: list[tuple[str, Change, int, int]] = [
    ("no answer within 120 s", answer(exit=None, stdout="", stderr="no answer within 120 s"), 1, 1),
    ("% Invalid command", answer(stdout="% Invalid command at '^' marker."), 1, 1),
    ("cut off", answer(stdout='{"TABLE_interface": {"ROW_interf'), 1, 1),
    ("the switch did not tell of this port", answer(stdout="{}"), 6, 1),
    # another model's words
    ("another form than those of nxos", answer(stdout='{"TABLE_interface": 7}'), 1, 1),
    ("an answer took 8.00 s of 10.0 s", answer(answered_s=1000 + FIRST_S + 28), 2, 1),
    ("it is of run", lambda lines: lines[2].update(run="other"), 1, 1),
    ("it was read as", lambda lines: lines[2].update(provider="eos"), 1, 1),
    ("a line is not a reading", lambda lines: lines[2].pop("commands"), 1, 1),
    ("a line is not a reading", lambda lines: lines[2].update(asked_s="soon"), 1, 1),
    ("clock jumped 3.00 s", later(3), 1, 2),
    ("clock jumped -3.00 s", later(-3), 1, 2),
    ("not later than the one before", lambda lines: lines.insert(2, lines[1]), 1, 3),
    ("bytes (tx): ", port_counter("eth_outbytes", 5), 2, 3),
    ("bytes (rx): ", port_counter("eth_inbytes", 2**32 - 5), 2, 3),
    ("faster than the port can carry", port_counter("eth_outbytes", 2**60), 2, 3),
]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, During]:
    return judged(tmp_path_factory.mktemp("run"), "nxos", [change for _, change, _, _ in FAULTS])


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=[why for why, *_ in FAULTS])
def test_what_is_not_certain_is_marked_and_no_rate(faulty: dict[str, During], number: int) -> None:
    why, _, marked, measured = FAULTS[number]
    found = faulty[str(number)]
    assert (found["marked"], found["intervals"]) == (marked, measured), found["marks"]
    assert any(why in one["why"] for one in found["marks"]), found["marks"]
    for row in found["rows"]:
        span = row["figures"]["mbit_s"]
        if row["queue"] in (None, "3") and span is not None and row["host"] == "node1":
            assert span["min"] == pytest.approx(span["max"], rel=1e-4)


def test_queues_of_another_time_than_their_port_have_no_rate(tmp_path: Path) -> None:
    """SONiC refreshes its queues every 10 s, its ports every second."""

    def change(lines: list[Document]) -> None:
        old, new = (json.loads(lines[n]["commands"]["counters"]["stdout"]) for n in (1, 2))
        for name, table in new.items():
            for key in table.get("value", {}):
                if key.startswith("SAI_QUEUE_STAT"):
                    table["value"][key] = old[name]["value"][key]
        lines[2]["commands"]["counters"]["stdout"] = json.dumps(new)

    found = judged(tmp_path, "sonic", [change])["0"]
    # they stand still, and then have grown twice
    assert [one["why"] for one in found["marks"]] == [
        *["the queues' counters are older or newer than the port's"] * 2,
        *["a counter grew faster than the port can carry"] * 2,
    ]
    assert all(row["queue"] is None for row in found["rows"])


def test_between_two_playbooks_nothing_is_known_and_nothing_is_wrong(tmp_path: Path) -> None:
    """The flow runs from 16 to 34 s; of its 18 s, those from 25 s on are between readings."""

    def change(lines: list[Document]) -> None:
        for n, line in enumerate(lines):
            line["begun"] = at(0 if n < 2 else 20)

    found = judged(tmp_path, "nxos", [bool, change])
    assert [found[name]["covered_percent"] for name in "01"] == [100, 50]
    assert (found["1"]["intervals"], found["1"]["marks"]) == (2, [])
    assert [row["intervals"] for row in found["1"]["rows"]] == [1] * len(found["1"]["rows"])


def test_a_file_that_was_cut_off_keeps_what_it_has(tmp_path: Path) -> None:
    write(tmp_path, "nxos")
    path = tmp_path / "raw/leaf1/samples.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    found: During = switch(tmp_path, "nxos")["during"]
    assert (found["intervals"], found["marks"]) == (
        2,
        [{"at": None, "port": None, "why": "a line is not a reading"}],
    )


def test_a_run_without_readings_says_nothing_of_them(tmp_path: Path) -> None:
    write(tmp_path, "nxos", list.clear)
    assert "during" not in switch(tmp_path, "nxos")
    (tmp_path / "raw/leaf1/samples.jsonl.gz").unlink()
    assert "during" not in switch(tmp_path, "nxos")


def test_another_models_words_after_the_flows_are_a_fault_and_end_nothing(tmp_path: Path) -> None:
    write(tmp_path, "nxos")
    row = switch(tmp_path, "nxos", interfaces='{"TABLE_interface": 7}')
    assert row["faults"] == [
        {"command": "after", "why": "its answers have another form than those of nxos"}
    ]
    assert (row["rows"], "during" in row) == ([], False)


def test_the_interval_that_lost_packets_is_named_with_its_flows(tmp_path: Path) -> None:
    def change(lines: list[Document]) -> None:
        for line in lines[3:]:
            tables = json.loads(line["commands"]["counters"]["stdout"])
            queue = tables["COUNTERS:oid:0x1500000000003"]["value"]
            dropped = int(queue["SAI_QUEUE_STAT_DROPPED_PACKETS"]) + 500
            queue["SAI_QUEUE_STAT_DROPPED_PACKETS"] = str(dropped)
            line["commands"]["counters"]["stdout"] = json.dumps(tables)

    found = judged(tmp_path, "sonic", [change])["0"]
    row = next(row for row in found["rows"] if row["host"] == "node1" and row["queue"] == "3")
    assert row["figures"]["drops"] == {"min": 0, "median": 250, "max": 500}
    assert row["peak"] == {
        "begin": at(FIRST_S + 2 * EVERY_S), "end": at(FIRST_S + 3 * EVERY_S),
        "flows": ["t/node1/node2/0/1"], "of": 1,
    }  # fmt: skip
