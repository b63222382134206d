"""The report of a site's RDMA notes, which were measured elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from perch.imports.switches import stated
from tests.py.conftest import FIXTURES

NOTES = FIXTURES / "import/notes.md"
SCHEMAS = Path(__file__).parents[2] / "reports/schema"

Perchctl = Callable[..., Any]


def reported(perchctl: Perchctl, tmp_path: Path, notes: Path) -> Path:
    """The folder of a run that was made of notes, with its report."""
    run = tmp_path / "run"
    for words in (("import", "--run", run, notes), ("report", run)):
        ended = perchctl(*words)
        assert ended.code == 0, ended.stderr
    return run


def changed(tmp_path: Path, *changes: tuple[str, str]) -> Path:
    """The notes with other words."""
    text = NOTES.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "changed.md"
    path.write_text(text)
    return path


@pytest.fixture(name="run")
def _run(perchctl: Perchctl, tmp_path: Path) -> Path:
    return reported(perchctl, tmp_path, NOTES)


@pytest.fixture(name="report")
def _report(run: Path) -> str:
    return (run / "report.md").read_text()


def verdict(run: Path) -> Any:
    return json.loads((run / "verdict.json").read_text())


def section(report: str, title: str) -> str:
    return report.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_report_shows_what_the_socket_said_of_its_connection(report: str) -> None:
    assert (
        "initial round trip 161 µs; window 16,384 bytes; initial congestion window 14,336 bytes; "
        "segments of at most 1,448 bytes"
    ) in report


# ---- stages --------------------------------------------------------------------------------------


def test_the_stages_of_the_notes_are_an_evolution_with_their_own_percentages(report: str) -> None:
    """71 %, 91 %, then 72 %, 99 % and 96 % (by rounded figures) in the notes' words."""
    said = section(report, "Evolution")
    assert "### RDMA Latency Testing (ib_send_lat): Latency Test Results - Evolution" in said
    assert (
        "| Figure | Size | Initial Test (Untuned System) | After Initial Tuning "
        "| Final Results (Optimized) | first to last |" in said
    )
    assert "| Latency, mean | 2 B | 52.1 µs | 14.9 µs (-71 %) | 14.4 µs (-3.2 %) | -72 % |" in said
    assert (
        "| Jitter, standard deviation | 2 B | 115 µs | 10.1 µs (-91 %) | 0.820 µs (-92 %) "
        "| -99 % |" in said
    )
    assert "| Tail, p99 | 2 B | not measured | not measured | 15.9 µs | - |" in said
    assert "| Maximum | 2 B | 626 µs | 355 µs (-43 %) | 21.7 µs (-94 %) | -97 % |" in said
    assert "no run of this fabric was accepted" not in report
    assert (
        "- From *Initial Test (Untuned System)* to *Final Results (Optimized)*: latency (mean) "
        "52.1 µs to 14.4 µs (-72 %), jitter (standard deviation) 115 µs to 0.820 µs (-99 %), the "
        "longest message 626 µs to 21.7 µs (-97 %)." in report
    )


def test_the_stages_are_drawn(run: Path) -> None:
    assert (run / "charts/evolution.svg").exists()


def test_outputs_of_other_commands_or_headings_are_no_stages(
    perchctl: Perchctl, tmp_path: Path
) -> None:
    """Two devices, and one of them twice: nothing was tuned in between."""
    table = NOTES.read_text().split("#### Initial Test")[1].split("```")[1]
    command = "$ ib_send_lat -d m{} -x 3 192.0.2.2"
    blocks = [
        f"### Device {n}\n```\n{command.format(n)}\n{table}```\n```\n{table}```\n" for n in (0, 1)
    ]
    notes = tmp_path / "notes.md"
    notes.write_text("# Notes\n## Latency\n" + "".join(blocks))
    run = reported(perchctl, tmp_path, notes)
    assert len((run / "records.jsonl").read_text().splitlines()) == 4
    assert "documents" not in verdict(run)


# ---- RDMA against TCP ----------------------------------------------------------------------------


def test_every_row_of_the_notes_comparison_is_there_with_what_they_have(report: str) -> None:
    rows = [
        line.split(" | ")
        for line in section(report, "RDMA against TCP").splitlines()
        if "|" in line
    ][2:]
    assert [row[:3] for row in rows] == [
        ["| Bandwidth", "4.67 Gb/s", "9.23 Gb/s"],
        ["| Latency", "161 µs", "14.3 µs"],
        ["| Jitter, standard deviation", "not measured", "0.820 µs"],
        ["| Tail, p99", "not measured", "15.9 µs"],
        ["| CPU of the client", "not measured", "not measured"],
        ["| Packets lost or retransmitted", "not measured", "not measured"],
    ]
    assert "no output has it for TCP |" in rows[2][3]
    assert "of its switch the document says: Packet Drops: 0; Drops of Primary" in rows[5][3]


# ---- switches ------------------------------------------------------------------------------------


def test_what_the_notes_say_of_their_switch_is_shown_and_proves_nothing(
    run: Path, report: str
) -> None:
    said = section(report, "Switches")
    assert "**Perch read none of these switches**" in said
    switch, queue = "Cisco Nexus Switch (192.168.50.229)", "Primary Traffic Queue (QoS Group 3)"
    for row in (
        f"| {switch} | - | Interface Utilization | about 100 % | `raw/import/notes.md:166` |",
        f"| {switch} | {queue} | TX Bandwidth | 7,854 to 9,979 Mb/s | `raw/import/notes.md:178` |",
        f"| {switch} | {queue} | TX Packets | 900,735 to 1,144,474 packets/s |",
        f"| {switch} | {queue} | Drops | 0 |",
    ):
        assert row in said
    (check,) = (one for one in verdict(run)["checks"] if one["id"].startswith("switch/"))
    assert (check["id"], check["status"]) == ("switch/stated", "not_judged")
    assert "| No loss | not judged |" in report
    assert "read from no switch: interface utilization about 100 %, packet drops 0" in report


def test_the_verdict_is_as_its_schema_says(run: Path) -> None:
    schema = json.loads((SCHEMAS / "verdict.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(verdict(run))


def test_drops_that_notes_state_are_a_warning(perchctl: Perchctl, tmp_path: Path) -> None:
    notes = changed(tmp_path, ("- Drops: 0 ✅", "- Drops: 1,200"))
    run = reported(perchctl, tmp_path, notes)
    (check,) = (one for one in verdict(run)["checks"] if one["id"] == "switch/stated")
    assert check["status"] == "advisory"
    assert check["measured"].endswith("Drops of Primary Traffic Queue (QoS Group 3): 1,200")
    assert check["evidence"] == ["raw/import/changed.md:180"]
    report = (run / "report.md").read_text()
    assert "| No loss | **warning** |" in report


def figures(*lines: str) -> list[str]:
    return [one.words for one in stated("f", ["## Leaf switch", *lines])]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- Utilisation: 97.5%", "Utilisation: 97.5 %"),
        ("* **Throughput:** about 40 Gbps", "Throughput: about 40,000 Mb/s"),
        ("- Rate: 1.5 - 2 Gb/s, sometimes less", "Rate: 1,500 to 2,000 Mb/s"),
        ("- Input errors: 3", "Input errors: 3"),
        ("- ECN marks: 1,024", "ECN marks: 1,024"),
        ("- PFC pause frames: 12", "PFC pause frames: 12"),
    ],
)
def test_figures_of_switches_are_read_in_their_units(line: str, said: str) -> None:
    assert figures(line) == [said]


@pytest.mark.parametrize(
    "line",
    [
        "- Drops: none",
        "- Drops: 3 %",
        "- TX Bandwidth: 7,854",
        "- Assessment: 100 % normal",
        "- Carries 98% of RDMA traffic",
        "Packet Drops: 0",
        "```",
    ],
)
def test_words_without_a_figure_in_its_unit_are_left_to_the_document(line: str) -> None:
    assert figures(line) == []


def test_only_sections_that_name_a_switch_are_read() -> None:
    lines = [
        "- Drops: 1", "## Switch to busy polling", "- Drops: 2", "### A switch", "- Drops: 3",
        "```", "- Drops: 4", "```", "#### Port 1", "- Drops: 5", "### Hosts", "- Drops: 6",
    ]  # fmt: skip
    assert [(one.switch, one.part, one.high, one.place) for one in stated("f", lines)] == [
        ("A switch", "", 3, "f:5"),
        ("A switch", "Port 1", 5, "f:10"),
    ]
