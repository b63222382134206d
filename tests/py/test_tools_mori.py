"""MORI-IO's benchmark: its tables, its configuration and its command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Latency, Transfer
from perch.tools import ToolOutput, read
from perch.tools.text import lines_of

MORI = Path(__file__).parents[1] / "fixtures" / "mori"

COLUMNS = "TotalSize (MB) | Max BW (GB/s) | Avg Bw (GB/s) | Min Lat (us) | Avg Lat (us) |"
HEADER = f"| MsgSize (B) | BatchSize | {COLUMNS}"
RULE = "+------+------+"
SMALL = (
    "|     1024    |     1     |      0.00      |      0.20     |      0.17     |  5.25 | 5.87 |"
)
LARGE = (
    "|   1048576   |    128    |     134.22     |     48.44     |     48.32  | 2770.90 | 2777.76 |"
)


def table(*rows: str, rank: int = 0, header: str = HEADER) -> list[str]:
    title = f"|   Initiator Rank {rank}   |"
    return ["+---------------------+", title, RULE, header, RULE, *rows, RULE]


def parts_of(lines: list[str], *argv: str) -> list[Part]:
    flow = Flow(id="t/a/b/0/1", test="t", tool="mori", kind="transfer", client="a", server="b",
                scope="imported", client_argv=list(argv))  # fmt: skip
    return read(ToolOutput(flow, "\n".join(lines).encode()))


def part_of(lines: list[str], *argv: str) -> Part:
    (part,) = parts_of(lines, *argv)
    return part


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return message.removeprefix("MORI-IO's output cannot be used: ")


def test_a_row_is_a_transfer_of_its_initiator_and_its_latency_is_of_a_batch() -> None:
    part = part_of(table(LARGE, rank=7))
    assert (part.status, part.kind, part.definition) == ("ok", "transfer", "batch_completion")
    assert part.bandwidth is not None and part.params is not None
    assert (part.bandwidth.gbit_s, part.bandwidth.peak_gbit_s) == (386.56, 387.52)
    assert (part.bandwidth.messages_per_s, part.bandwidth.bytes) == (46080.2949, None)
    assert part.latency_us == Latency(min=2770.9, mean=2777.76)
    assert part.transfer == Transfer(pair=7, batch_bytes=134217728)
    assert (part.params.size_bytes, part.params.batch) == (1048576, 128)
    assert (part.op, part.params.queue_pairs, part.params.session) == (None, None, None)


def test_its_command_tells_more_with_the_benchmarks_own_defaults() -> None:
    words = ("b.py", "--op-type=write", "--enable-sess", "--enable-batch-transfer")
    part = part_of(table(LARGE), *words, "--num-qp-per-transfer", "4", "--poll_cq_mode", "event")
    params, transfer = part.params, part.transfer
    assert params is not None and transfer is not None and part.bandwidth is not None
    assert (part.op, params.queue_pairs, params.session) == ("write", 4, True)
    assert (params.consecutive, params.completion) == (False, "event")
    assert (params.iterations, params.threads, params.devices) == (128, 1, 1)
    assert (part.bandwidth.bytes, part.elapsed_s) == (17179869184, 0.35555328)
    assert transfer.completed == 16384
    part = part_of(table(LARGE), "b.py", "--iters", "10")
    assert part.params is not None
    assert (part.op, part.params.queue_pairs, part.params.iterations) == ("read", None, 10)


CONFIGURATION = [
    "MORI-IO Benchmark Configurations:", "  op_type: write", "  num_initiator_dev: 2",
    "  transfer_batch_size: 1", "  enable_batch_transfer: True", "  enable_sess: False",
    "  num_qp_per_transfer: 8", "  num_worker_threads: 2", "  poll_cq_mode: PollCqMode.POLLING",
    "  iters: 64", "", "[info] created 2 queue pairs",
]  # fmt: skip


def test_its_configuration_outranks_the_command_and_each_table_is_a_pair() -> None:
    lines = CONFIGURATION * 2 + table(SMALL) + ["I20260101 engine closed"] + table(SMALL, rank=1)
    parts = parts_of(lines, "b.py", "--op-type", "read")
    assert len(parts) == 2
    params, transfer = parts[1].params, parts[1].transfer
    assert params is not None and transfer is not None
    assert (parts[1].op, params.queue_pairs, params.session) == ("write", 8, False)
    assert (params.completion, params.threads) == ("busy", 2)
    assert (transfer.pair, transfer.pairs, transfer.batches) == (1, 2, 64)


def test_initiators_that_print_different_configurations_are_refused() -> None:
    lines = [*CONFIGURATION, "  iters: 65", *table(SMALL)]
    assert why(part_of(lines)) == "its initiators differ in iters: 64, 65"


@pytest.mark.parametrize(
    ("row", "rates"),
    [
        (SMALL, (1.39557070, 1.56038095)),
        ("| 8 | 1 | 0.00 | 0.00 | 0.00 | 5.25 | 5.87 |", (0.0109028961, 0.0121904762)),
    ],
)
def test_below_1_gb_a_second_the_time_has_more_digits(row: str, rates: tuple[float, float]) -> None:
    part = part_of(table(row))
    assert part.bandwidth is not None
    assert (part.bandwidth.gbit_s, part.bandwidth.peak_gbit_s) == pytest.approx(rates, rel=1e-8)


def test_a_row_that_denies_itself_is_an_error_of_its_line_and_the_others_stand() -> None:
    parts = parts_of(
        table(
            LARGE,
            "| 1048576 | 128 | 134.22 | 45.11 | 48.32 | 2770.90 | 2777.76 |",
            "| 1048576 | 128 | 134.22 | 48.44 | 0.00 | 2770.90 | 2777.76 |",
            "| 1048576 | 128 | 128.00 | 48.44 | 48.32 | 2770.90 | 2777.76 |",
            "| 1048576 | 128 | 134.22 | 48.44 | 48.32 | 2770.90 | 0.00 |",
            "| 1048576 | 128 | 134.22 | 48.32 | 48.44 | 2777.76 | 2770.90 |",
            "| 0 | 128 | 0.00 | 48.32 | 48.44 | 2777.76 | 2770.90 |",
        )
    )
    of_batch = "134217728 bytes in"
    assert [why(part) for part in parts] == [
        "ok",
        f"line 7: Max BW is 45.11 GB/s, but {of_batch} 2770.9 us are 48.4383153",
        f"line 8: Avg Bw is 0 GB/s, but {of_batch} 2777.76 us are 48.3186913",
        "line 9: TotalSize is 128 MB, but a batch has 134217728 bytes",
        "line 10: Avg Lat is 0, which is not a result",
        "line 11: Min Lat is above Avg Lat",
        "line 12: MsgSize is 0, which is not a result",
    ]
    assert all(part.error is None or part.error.traffic for part in parts)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (table(SMALL.replace("0.17", "nan")),
         "line 6: Avg Bw (GB/s) is nan, which is not a result"),
        (table(SMALL.replace("0.17", "-0.2")),
         'line 6: Avg Bw (GB/s) is "-0.2", which is not a number'),
        (table(SMALL[:40]), "line 6: it has no end: truncated?"),
        (table(SMALL)[:-1], "its last table has no end: truncated?"),
        (table("| 1024 | 1 | 0.00 |"), "line 6: it has 3 figures under 7 columns: truncated?"),
        ([RULE, *table(SMALL)[2:]], "line 2: a title was expected here"),
        (table(SMALL, header=HEADER.replace("Avg Lat (us)", "Avg Lat (ms)")),
         'line 4: it has the unknown column "Avg Lat (ms)"'),
        (table(SMALL, header=HEADER.replace(" Avg Lat (us) |", "")),
         "line 4: it lacks the column Avg Lat (us)"),
        (table(SMALL, header=HEADER.replace("Min Lat", "Avg Lat")),
         "line 4: it lacks the column Min Lat (us)"),
        (table(), "line 6: a row was expected here"),
        ([*table(SMALL), SMALL], "line 8: it is outside of a table"),
        (["mori: engine started"], "it has no table of results: truncated?"),
        (["", ""], "it is empty"),
    ],
)  # fmt: skip
def test_what_is_no_whole_table_is_an_error(lines: list[str], said: str) -> None:
    assert why(part_of(lines)) == said


ONE_BATCH = f"| MsgSize (B) | {COLUMNS}"


def test_total_size_tells_the_batch_where_rounding_leaves_one_number() -> None:
    rows = ["| 1024 | 0.13 | 3.84 | 3.53 | 34.09 | 37.09 |"]
    why_not = (
        "its batch is unknown: no column, configuration or command states it, and TotalSize is "
        "too small"
    )
    assert why(part_of(table(*rows, header=ONE_BATCH))) == why_not
    large = "| 1048576 | 134.22 | 48.44 | 48.32 | 2770.90 | 2777.76 |"
    parts = parts_of(table(*rows, large, header=ONE_BATCH))
    assert [part.params and part.params.batch for part in parts] == [128, 128]


def test_a_column_that_stands_there_twice_is_refused() -> None:
    twice = table(SMALL, header=HEADER.replace("BatchSize |", "BatchSize | BatchSize |"))
    assert why(part_of(twice)) == "line 4: a column occurs twice"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("thor2-read-size", 18),
        ("thor2-write-size", 18),
        ("thor2-write-batch", 16),
        ("cx7-write-size", 17),
        ("cx7-read-size", 17),
    ],
)
def test_the_published_tables_are_read_whole(name: str, count: int) -> None:
    lines = lines_of((MORI / f"{name}.txt").read_bytes())
    rows = [re.findall("[0-9.]+", line) for line in lines if re.match(r"\| +[0-9]", line)]
    parts = parts_of(lines)
    assert [part.status for part in parts] == ["ok"] * count
    for part, row in zip(parts, rows, strict=True):
        assert part.params is not None and part.latency_us is not None
        assert part.params.size_bytes == int(row[0])
        assert part.latency_us.min == float(row[-2])
