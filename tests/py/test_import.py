"""`perchctl import FILE...`: records of outputs that were measured elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import raw_lines

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOTES = FIXTURES / "import/notes.md"
SEND_LAT = FIXTURES / "perftest/4.5/send_lat.txt"
SWEEP = FIXTURES / "perftest/25.01/write_bw_all.txt"
STREAMS = FIXTURES / "tools/iperf3_streams.json"

Record = dict[str, Any]


class Imported:
    """What the command printed."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.records: list[Record] = [json.loads(line) for line in stdout.splitlines()]
        self.faults = stderr.splitlines()

    def only_fault(self) -> str:
        (fault,) = self.faults
        return fault


Import = Callable[..., Imported]


@pytest.fixture(name="imported")
def _imported(perchctl: Callable[..., Any]) -> Import:
    return lambda *words: Imported(*perchctl("import", *words))


@pytest.fixture(name="write")
def _write(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


Write = Callable[[str, str], Path]


def edited(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    changed = re.sub(old, new, text, flags=re.MULTILINE)
    assert changed != text
    return changed


def document(path: Path) -> Any:
    return json.loads(path.read_text())


def tools(records: list[Record]) -> dict[str, int]:
    return dict(Counter(record["tool"]["name"] for record in records))


# ---- every tool ----------------------------------------------------------------------------------


def test_an_output_of_each_tool_becomes_records(imported: Import, write: Write) -> None:
    cut = write("cut.txt", SEND_LAT.read_text().rstrip("\n"))
    ends = raw_lines.ends(FIXTURES / "loopback/run", "*/0/1", "client")
    flows = [write(f"{number}.txt", end.read()) for number, end in enumerate(ends)]
    result = imported(
        cut,
        FIXTURES / "perftest/4.5/write_bw_both.json",
        FIXTURES / "tools/iperf_slow.txt",
        FIXTURES / "cxi/send_bw.txt",
        *flows,
    )
    assert (result.code, result.faults) == (0, [])
    assert {record["schema"] for record in result.records} == {"perch.record/2"}
    assert set(tools(result.records)) == {"perftest", "iperf", "iperf3", "cxi", "perch"}


def test_figures_and_scope_are_those_of_the_output(imported: Import) -> None:
    result = imported(FIXTURES / "tools/iperf_slow.txt", FIXTURES / "cxi/send_bw.txt", SEND_LAT)
    assert [record["scope"] for record in result.records] == ["software", "imported", "software"]
    slow, cxi, latency = result.records
    assert slow["bandwidth"]["gbit_s"] == 0.0505 and cxi["bandwidth"]["gbit_s"] == 190.18016
    assert latency["latency_us"]["mean"] == 81.88 and "sl" not in latency["params"]
    assert "address" not in slow["client"] or slow["client"]["address"]
    assert latency["path"]["state"] == "not_judged"


def test_what_cannot_be_read_is_named_with_file_and_line_and_the_rest_is_printed(
    imported: Import, write: Write
) -> None:
    gbits = FIXTURES / "perftest/4.5/send_bw_gbits_4.txt"
    result = imported(
        write("unit.txt", edited(gbits, "Gb/sec", "furlongs")),
        FIXTURES / "tools/iperf3_killed.json",
        FIXTURES / "cxi/send_lat_server.txt",
        FIXTURES / "tools/iperf_refused.err",
        FIXTURES / "perftest/4.5/wrong_device.txt",
        "none.txt",
        FIXTURES / "perftest/25.01/send_bw_both_duration.txt",
        FIXTURES / "mori/cx7-read-size.txt",
        SEND_LAT,
        SEND_LAT,
    )
    assert (result.code, len(result.records), len(result.faults)) == (1, 1, 9)
    assert all(re.fullmatch("perchctl import: .+:[0-9]+: .+; .+", said) for said in result.faults)
    assert "unknown column" in result.faults[0]
    assert "given twice" in result.faults[-1]


def test_records_of_an_output_without_a_command_say_nothing_of_it(imported: Import) -> None:
    (record,) = imported(SEND_LAT).records
    assert not {"warmup", "memory", "verify", "clock"} & set(record["params"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "FILE is missing"),
        (("--limits", "roce", SEND_LAT), "--limits requires --run"),
        (("--link-rate", "fast", SEND_LAT), "--link-rate 'fast' is no rate"),
        (("--link-rates", "1", SEND_LAT), "did you mean '--link-rate'?"),
    ],
)
def test_a_wrong_command_line_is_named(
    imported: Import, words: tuple[object, ...], said: str
) -> None:
    result = imported(*words)
    assert result.code == 2 and said in result.only_fault()


def test_a_table_that_has_a_column_twice_is_refused(imported: Import, write: Write) -> None:
    result = imported(write("twice.txt", edited(SEND_LAT, r"t_min\[usec\]", "t_avg[usec]")))
    assert (result.code, result.records) == (1, [])
    assert re.search(r"twice\.txt:22: .*column average_us twice", result.only_fault())


def test_a_fault_that_repeats_is_one_message(imported: Import, write: Write) -> None:
    result = imported(write("rate.txt", edited(SWEEP, r"0\.(\d{6})$", r"7.\1")))
    assert (result.code, result.records) == (1, [])
    said = result.only_fault()
    assert "rate.txt:23: bandwidth and message rate disagree" in said
    assert "(the like in lines 24, 25, 26, 27, 28 and 17 more)" in said


def test_control_characters_of_a_file_do_not_reach_the_terminal(
    imported: Import, write: Write
) -> None:
    bad = write("bad.txt", edited(SEND_LAT, r"t_min\[usec\]", "t_\x1b[31m[usec]"))
    assert "\x1b" not in imported(bad).only_fault()


# ---- notes in Markdown ---------------------------------------------------------------------------


def test_notes_give_each_table_its_record_named_by_its_heading(imported: Import) -> None:
    result = imported(NOTES)
    assert (result.code, result.faults) == (0, [])
    assert [
        (
            record["test"],
            record.get("bandwidth", {}).get("gbit_s") or record["latency_us"]["mean"],
            record["client"].get("device"),
            record["link"]["rate_gbit_s"],
        )
        for record in result.records
    ] == [
        ("ib_send_bw-Bandwidth-Test", 9.23, "rocep11s0", 10),
        ("Initial-Test-Untuned-System", 52.07, "rocep19s0", 10),
        ("After-Initial-Tuning", 14.85, "rocep19s0", 10),
        ("Final-Results-Optimized", 14.37, "rocep19s0", 10),
        ("TCP-Performance-Baseline-iperf", 4.67, None, 10),
    ]


def test_settings_and_command_of_notes_become_the_records(imported: Import) -> None:
    first, _, _, last, _ = imported(NOTES).records
    assert (first["op"], first["connection"]) == ("send", "RC")
    assert (first["params"]["queue_pairs"], first["params"]["outstanding"]) == (4, 128)
    assert (first["link"]["mtu_bytes"], first["link"]["layer"]) == (1024, "ethernet")
    assert "srq" not in first["params"]
    assert "mtu_bytes" not in last["link"] and "layer" not in last["link"]
    assert (last["latency_us"]["p99"], last["latency_us"]["p99_9"]) == (15.85, 21.7)


def test_a_link_rate_in_words_counts_where_a_document_states_one(
    imported: Import, write: Write
) -> None:
    two = write("two.md", edited(NOTES, "92% of 10G link", "92% of 10G link, of a 25G link"))
    assert {record["link"].get("rate_gbit_s") for record in imported(two).records} == {None}
    given = imported("--link-rate", "25", two).records
    assert {record["link"]["rate_gbit_s"] for record in given} == {25}


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        (r"-n 5000 -q 4 -F(?s:(.*?))- \*\*Number of QPs\*\*: 4", r"-n 5000 -q 2 -F\1- x", 43,
         "20000 messages of 10000"),
        ("-s 1048576", "-s 65536", 43, "command asks for 65536"),
        ("-d rocep11s0 -x", "-d rocep12s0 -x", 43, "device is rocep11s0, but its command asks for"),
        (r"^ib_send_bw -d rocep11s0.*", r"\g<0>\nib_send_bw -d rocep11s0 192.168.251.112", 43,
         "which of them printed it"),
        (r"^ib_send_bw -d rocep11s0.*\n", "", 41, "no command"),
    ],
)  # fmt: skip
def test_a_table_that_its_command_denies_is_refused(
    imported: Import, write: Write, old: str, new: str, line: int, said: str
) -> None:
    result = imported(write("notes.md", edited(NOTES, old, new)))
    assert result.code == 1 and len(result.records) == 4
    assert re.search(rf"notes\.md:{line}: .*{re.escape(said)}", result.only_fault())


def test_manual_pages_hold_both_ends_and_documents_several_sweeps(imported: Import) -> None:
    documents = ("import/cxi_send_lat.1.md", "import/mori-io-benchmark.md")
    result = imported(*(FIXTURES / name for name in documents))
    assert (result.code, result.faults) == (0, [])
    assert tools(result.records) == {"cxi": 12, "mori": 86}


@pytest.mark.parametrize("words", [(), ("--run", "made")])
def test_a_named_pipe_is_refused_and_not_waited_for(words: tuple[str, ...], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "perch", "import", *words, "pipe"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 1
    assert "pipe:1: it is not a regular file; give the file of an output" in done.stderr


# ---- logs ----------------------------------------------------------------------------------------


def test_outputs_in_one_log_are_told_apart_by_their_own_words(
    imported: Import, write: Write
) -> None:
    row = " 4096       5                nan               1.87   \t\t     0.000478"
    log = write(
        "log",
        "$ ib_send_lat -d rxe0 192.0.2.1\n"
        + SEND_LAT.read_text()
        + "$ iperf -c 192.0.2.2 -t 2\n"
        + (FIXTURES / "tools/iperf_plain.txt").read_text()
        + STREAMS.read_text()
        + edited(SWEEP, " 4096  .*", row),
    )
    result = imported(log)
    assert result.code == 1
    assert tools(result.records) == {"perftest": 23, "iperf": 1, "iperf3": 1}
    (number,) = (n for n, line in enumerate(log.read_text().splitlines(), 1) if "nan" in line)
    assert re.match(rf"perchctl import: .*log:{number}: .*nan", result.only_fault())
    assert result.records[0]["params"]["memory"] == "host"  # its command is known


def test_lists_of_times_do_not_cut_an_output_of_perftest(imported: Import, write: Write) -> None:
    names = ("send_lat_all_both_lists", "read_lat_unsorted", "send_lat_histogram")
    texts = [(FIXTURES / f"perftest/formats/{name}.txt").read_text() for name in names]
    result = imported(write("log", "".join(texts)))
    assert (result.code, result.faults) == (0, [])
    assert [record["op"] for record in result.records] == ["send"] * 23 + ["read", "send"]
    assert result.records[-1]["latency_us"]["p90"] == 5.60731


# ---- iperf, iperf3 -------------------------------------------------------------------------------


def test_iperf_2_prints_tables_of_streams_and_text_with_a_sum(
    imported: Import, write: Write
) -> None:
    names = ("csv", "csv_e", "csv_streams", "streams", "e_streams", "plain")
    records = imported(*(FIXTURES / f"tools/iperf_{name}.txt" for name in names)).records
    assert [
        (
            record["bandwidth"]["gbit_s"],
            record["params"]["queue_pairs"],
            len(record.get("intervals", [])),
        )
        for record in records
    ] == [
        (19.319245, 1, 2),
        (11.8777473, 1, 2),
        (30.3153116, 3, 2),
        (19.9, 3, 2),
        (28.6, 3, 2),
        (14.8, 1, 0),
    ]
    csv = FIXTURES / "tools/iperf_csv.txt"
    cut = write("cut.csv", "".join(csv.read_text().splitlines(keepends=True)[:2]))
    rate = write("rate.csv", edited(csv, ",18686673376", ",86866733760"))
    result = imported(cut, rate)
    assert (result.code, result.records) == (1, [])
    assert re.search(r"cut\.csv:2: .*truncated", result.faults[0])
    assert re.search(r"rate\.csv:1: .*disagree", result.faults[1])


def test_udp_is_read_of_iperf3_with_loss_and_jitter_and_of_iperf_2_it_is_not(
    imported: Import, write: Write
) -> None:
    udp = FIXTURES / "tools/iperf3_udp.json"
    (record,) = imported(udp).records
    assert (record["definition"], record["connection"]) == ("receiver_payload", "datagram")
    assert record["loss"] == {"sent_messages": 17265, "lost_messages": 265, "jitter_us": 12.3}
    assert "tcp" not in record
    sender = document(udp)
    del sender["end"]["sum_received"]
    texts = ("tools/iperf_udp.txt", "tools/iperf_udp_csv.txt")
    result = imported(
        write("sender.json", json.dumps(sender, indent=1)), *(FIXTURES / name for name in texts)
    )
    assert (result.code, result.records, len(result.faults)) == (1, [], 3)
    assert (
        "iperf_udp.txt:2: iperf 2 reports only the sender's rate of UDP; measure with"
        in (result.faults[1])
    )


def test_iperf3_sums_streams_and_both_ways_and_its_faults_have_their_line(
    imported: Import, write: Write
) -> None:
    records = imported(STREAMS, FIXTURES / "tools/iperf3_bidir.json").records
    assert [
        (
            record["bandwidth"]["gbit_s"],
            record["params"]["queue_pairs"],
            record["params"]["bidirectional"],
        )
        for record in records
    ] == [(16.5984617, 3, False), (13.0553324, 1, True)]
    half = write("half.json", "\n".join(STREAMS.read_text().splitlines()[:100]) + "\n")
    result = imported(
        half, FIXTURES / "tools/iperf3_refused.json", FIXTURES / "tools/iperf3_text.txt"
    )
    assert result.code == 1
    assert re.search(r"half\.json:100: .*truncated", result.faults[0])
    assert "iperf3_refused.json:10: iperf3: unable to connect" in result.faults[1]
    assert re.search(r"iperf3_text\.txt:1: .*-J", result.faults[2])


def test_a_total_of_iperf_2_that_may_be_an_interval_is_refused(
    imported: Import, write: Write
) -> None:
    streams = FIXTURES / "tools/iperf_e_streams.txt"
    lines = streams.read_text().splitlines(keepends=True)
    one = (FIXTURES / "tools/iperf_mbytes.txt").read_text()
    result = imported(
        write("second.txt", "".join(lines[:13])),  # as if it had lasted one second
        write("interval.txt", "".join(lines[:16])),
        write("sum.txt", edited(streams, r"^(\[SUM\] 0.0000-2.*)15$", r"\g<1>1")),
        write("one.txt", re.sub(r" 33 .*\n$", " 3\n", one)),
    )
    assert (result.code, result.records) == (1, [])
    said = "\n".join(result.faults)
    for text in ("second.txt:13: .*may be an interval",
                 "interval.txt:.*ends with an interval, not with its total",
                 "sum.txt:.*retries of its streams", "one.txt:.*has no end"):  # fmt: skip
        assert re.search(text, said)


# ---- perftest ------------------------------------------------------------------------------------


def test_the_message_rate_tells_the_unit_of_a_document(imported: Import, write: Write) -> None:
    results = {"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 98.1, "BW_average": 97.51,
               "MsgRate": 0.185985}  # fmt: skip
    info = {"test": "Send_BW_Test", "Number_of_qps": 1, "Connection_type": "RC", "Mtu": 4096,
            "Link_type": "IB", "TX_depth": 128}  # fmt: skip

    def file(name: str, **changed: float | None) -> Path:
        figures = {k: v for k, v in {**results, **changed}.items() if v is not None}
        return write(name, json.dumps({"test_info": info, "results": figures}, indent=1))

    result = imported(
        file("gb.json"),
        file("mib.json", BW_average=11624.1, BW_peak=11700.5),
        file("none.json", MsgRate=None),
        file("other.json", MsgRate=12345.0),
    )
    assert result.code == 1
    assert [int(record["bandwidth"]["gbit_s"]) for record in result.records] == [97, 97]
    assert re.search(r"none\.json:\d+: .*unit", result.faults[0])
    assert "other.json" in result.faults[1]


def test_of_a_half_table_only_what_is_whole_is_printed(imported: Import, write: Write) -> None:
    half = write("half.txt", "".join(SWEEP.read_text().splitlines(keepends=True)[:30]))
    row = " 8192       5                0.00               0.00   \t\t     0.000000"
    zero = write("zero.txt", edited(SWEEP, " 8192  .*", row))
    result = imported(half, zero)
    assert (result.code, len(result.records)) == (1, 7 + 22)
    assert re.search(r"half\.txt:30: .*no end", result.faults[0])
    line = next(n for n, text in enumerate(zero.read_text().splitlines(), 1) if " 8192" in text)
    assert f"zero.txt:{line}: " in result.faults[1]


# ---- records of other runs -----------------------------------------------------------------------


def test_records_of_another_run_keep_their_names_and_lose_their_proof(
    imported: Import, write: Write
) -> None:
    first = imported(NOTES).records
    lines = [json.dumps(record) for record in first]
    again = imported(write("records.jsonl", "\n".join(lines) + "\n"))
    assert (again.code, again.records) == (0, first)
    lines[0] = lines[0].replace('"gbit_s": 9.23', '"gbit_s": 19.23')
    lines[1] = lines[1].replace('"min": 13.98', '"min": 1e999')
    lines[2] = lines[2].replace('"status": "ok"', '"status": "error"')
    lines[3] = lines[3][:-1]
    result = imported(write("records.jsonl", "\n".join(lines) + "\n"))
    assert (result.code, len(result.records)) == (1, 1)
    for n, said in enumerate(result.faults, 1):
        assert f"records.jsonl:{n}: " in said
    low = json.dumps(imported(SEND_LAT).records[0]).replace('"mean": 81.88', '"mean": 1')
    assert "mean lies below" in imported(write("mean.jsonl", low)).only_fault()


def test_records_of_the_first_version_are_read(imported: Import, write: Write) -> None:
    (record,) = imported(SEND_LAT).records
    del record["rail"]
    counts = {"drops": 0, "errors": None}
    old = record | {
        "schema": "perch.record/1",
        "events": {"counts": counts, "from": {}, "stale": None},
        "error": None,
        "histogram": None,
        "intervals": [],
    }
    (again,) = imported(write("records.jsonl", json.dumps(old))).records
    assert again["rail"] == 0 and again["latency_us"] == record["latency_us"]
    assert again["events"] == {"counts": {"drops": 0}, "reset": ["errors"]}


def test_many_files_start_no_process(
    imported: Import, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(f"{n}.txt", SEND_LAT.read_text()) for n in range(300)]

    def refuse(*_words: object, **_options: object) -> None:
        raise AssertionError("a process was started")

    for module, name in ((subprocess, "Popen"), (os, "fork"), (os, "posix_spawn")):
        monkeypatch.setattr(module, name, refuse)
    result = imported(*files)
    assert (result.code, len(result.records)) == (0, 300)
