"""perftest: text and JSON of 4.5 to 25.01."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Latency, Link, QueuePair, Side
from perch.tools import TOOLS, ToolOutput, perftest, read
from perch.tools.perftest_figures import _params
from perch.tools.perftest_text import about_text, mended
from perch.tools.text import lines_of

PERFTEST = Path(__file__).parents[1] / "fixtures" / "perftest"

RULE = "-" * 87
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
    "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
)
SHORT_LATENCY = LATENCY.partition("   99%")[0]
DURATION = " #bytes        #iterations       t_avg[usec]    tps average"


def bandwidth_header(unit: str) -> str:
    return (
        f" #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]"
    )


def parts_of(
    lines: list[str],
    *argv: str,
    errors: tuple[str, ...] = (),
    server: tuple[str, ...] = (),
    version: str | None = None,
) -> list[Part]:
    flow = Flow(
        id="t/a/b/0/1",
        test="t",
        tool="perftest",
        kind="latency",
        client="a",
        server="b",
        scope="hardware",
        client_argv=["ib", *argv],
        server_argv=["ib", *server],
    )
    versions = {"perftest": version} if version else {}
    return read(ToolOutput(flow, "\n".join(lines).encode(), "\n".join(errors).encode(), versions))


def part_of(lines: list[str], *argv: str) -> Part:
    (part,) = parts_of(lines, *argv)
    return part


def fixture(name: str) -> list[str]:
    return lines_of((PERFTEST / name).read_bytes())


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return re.sub(r"^perftest's output cannot be used: (line \d+: )?", "", message)


def times(part: Part) -> Latency:
    assert part.status == "ok" and part.latency_us is not None, why(part)
    return part.latency_us


def gbit_s(part: Part) -> float:
    assert part.bandwidth is not None and part.bandwidth.gbit_s is not None, why(part)
    return part.bandwidth.gbit_s


# ---- text ----------------------------------------------------------------------------------------

FOUR_PAIRS = [
    RULE,
    "                    Send BW Test",
    " Dual-port       : OFF\t\tDevice         : rocep11s0",
    " Number of qps   : 4\t\tTransport type : IB",
    " Connection type : RC\t\tUsing SRQ      : OFF",
    " TX depth        : 128",
    " CQ Moderation   : 1",
    " Mtu             : 1024[B]",
    " Link type       : Ethernet",
    " GID index       : 3",
    " Max inline data : 0[B]",
    " rdma_cm QPs\t : OFF",
    " Data ex. method : Ethernet",
    RULE,
    " local address: LID 0000 QPN 0x0134 PSN 0x8b23ce",
    " GID: 00:00:00:00:00:00:00:00:00:00:255:255:192:00:02:112",
    " remote address: LID 0000 QPN 0x011f PSN 0x3ec20",
    " GID: 254:128:00:00:00:00:00:00:02:17:34:255:254:51:68:85",
    RULE,
    bandwidth_header("Gb"),
    " 1048576    20000          9.23               9.23                 0.001100",
    RULE,
]


def test_iterations_are_of_each_queue_pair_and_the_settings_are_the_outputs() -> None:
    (part,) = parts_of(FOUR_PAIRS, "-n", "5000", "-q", "4", server=("-d", "mlx5_1"), version="6.06")
    assert part.tool is not None and part.tool.version == "6.06"
    assert (part.status, part.op, part.kind) == ("ok", "send", "bandwidth")
    assert (part.definition, part.connection) == ("initiator_completion", "RC")
    bandwidth, params = part.bandwidth, part.params
    assert bandwidth is not None and params is not None and part.claims is not None
    assert (bandwidth.gbit_s, bandwidth.peak_gbit_s) == (9.23, 9.23)
    assert (bandwidth.messages_per_s, bandwidth.bytes) == (1100, 20971520000)
    assert (params.queue_pairs, params.outstanding, params.iterations) == (4, 128, 5000)
    assert (params.inline_bytes, params.gid_index) == (0, 3)
    assert part.link == Link(mtu_bytes=1024, layer="ethernet")
    assert part.client == Side(device="rocep11s0", address="::ffff:192.0.2.112")
    assert part.server == Side(device="mlx5_1", address="fe80:0000:0000:0000:0211:22ff:fe33:4455")
    assert (part.claims.sent, part.claims.received) == (20971520000, 0)


def test_an_output_names_the_queue_pairs_of_both_ends() -> None:
    (part,) = parts_of(FOUR_PAIRS, "-n", "5000", "-q", "4", server=("-d", "mlx5_1"), version="6.06")
    assert part.queue_pairs == {
        "client": [QueuePair(0x134, 0x8B23CE)],
        "server": [QueuePair(0x11F, 0x3EC20)],
    }


def write_bw(unit: str, *argv: str) -> Part:
    row = " 65536      5000             11030.78            11030.45\t\t     0.176487"
    title = "                    RDMA_Write BW Test"
    return part_of([title, bandwidth_header(unit).replace("Gb", unit), row, RULE], *argv)


def test_mb_and_mib_are_the_same_bytes() -> None:
    assert gbit_s(write_bw("MB", "-n", "5000")) == gbit_s(write_bw("MiB")) == 92.5301211


@pytest.mark.parametrize(
    ("unit", "argv", "said"),
    [
        (
            "Gb",
            ("-n", "5000"),
            "bandwidth and message rate disagree (11030.45 against 92.5300163 Gb/s)",
        ),
        ("kB", (), 'its table has the unknown column "BW peak[kB/sec]"'),
        ("MB", ("-C",), "with -C its figures are cycles, not usec"),
        ("MB", ("-n", "4000"), "it measured 5000 messages of 4000"),
    ],
)
def test_what_contradicts_itself_or_its_command_is_refused(
    unit: str, argv: tuple[str, ...], said: str
) -> None:
    assert why(write_bw(unit, *argv)) == said


def test_the_typical_time_is_the_median_and_percentiles_stay_as_reported() -> None:
    row = " 2  1000  4.73  21.70  14.30  \t  14.37  \t0.82   \t\t15.85   \t\t21.70  "
    part = part_of(["                    Send Latency Test", LATENCY, row, RULE], "-n", "1000")
    assert part.definition == "half_round_trip"
    assert times(part) == Latency(
        count=1000, min=4.73, max=21.7, mean=14.37, stddev=0.82, p50=14.3, p99=15.85, p99_9=21.7
    )
    assert part.claims is not None and (part.claims.sent, part.claims.received) == (2000, 2000)


def test_of_a_thousand_times_the_greatest_is_p99_9() -> None:
    bad = "t_max is 43.4 us, and p99_9 21.7 us"
    for count, most, said in ((1000, 21.7, "ok"), (1000, 43.4, bad), (2000, 43.4, "ok")):
        row = f" 2 {count} 4.73 {most} 14.30 14.37 0.82 15.85 21.70"
        assert why(part_of([" Send Latency Test", LATENCY, row, RULE])) == said


def read_lat(rate: str, *argv: str) -> Part:
    row = f" 64            58            17493.11        {rate}  "
    return part_of(["                    RDMA_Read Latency Test", DURATION, row, RULE], *argv)


def test_a_duration_has_an_average_that_its_rate_of_transactions_must_fit() -> None:
    part = read_lat("57.17", "-D", "3", "-f", "1")
    assert part.definition == "completion" and part.elapsed_s == 1.01460038
    assert (times(part).mean, times(part).p50, times(part).min) == (17493.11, None, None)
    assert "do not fit" in why(read_lat("28.58"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [
                "Conflicting CPU frequency values detected: 5008.116000 != 3295.212000.",
                " 2       1000          1.10           2.05         1.11   \t       1.12   \t0.00",
                RULE,
            ],
            "ok",
        ),
        ([" 2 1000 0.00 2.05 1.11 1.12 0.00", RULE], "t_min is 0, which is not a result"),
        ([" 2 1000 1.10 2.05 1.11 inf 0.00", RULE], "t_avg[usec] is inf, which is not a result"),
        ([" 2 1000 -nan 2.05 1.11 1.12 0.00", RULE], "t_min[usec] is -nan, which is not a result"),
        ([" 2 1000 1.10 2.05 1.11 1.12 0.00"], "its table has no end: truncated?"),
        ([" 2 1000 1.10 2.0", RULE], "a row has 4 figures under 7 columns: truncated?"),
        (
            [" 2 1000.5 1.10 2.05 1.11 1.12 0.00", RULE],
            "#iterations is 1000.5, which is not a whole number",
        ),
        (
            [" 2 1000 1.10 2.05 1.51 1.12 0.00", RULE],
            "t_avg of 1.12 us is below what t_min and t_typical allow, 1.305",
        ),
        ([" 2 1000 1.10 1.05 1.11 1.12 0.00", RULE], "its percentiles are out of order"),
        ([RULE], "its table is empty"),
        (
            [" 2 1000 1.10 2.05 1.11 1.12 0.00", RULE, SHORT_LATENCY],
            "it has several tables instead of one",
        ),
    ],
)
def test_warnings_may_stand_between_the_rows_and_nothing_else_may(
    rows: list[str], said: str
) -> None:
    lines = ["                    Send Latency Test", SHORT_LATENCY, *rows]
    assert why(parts_of(lines, "-n", "1000")[-1]) == said


def test_a_fault_names_its_line() -> None:
    lines = ["                    Send Latency Test", SHORT_LATENCY, " 2 1000 0.00 2.05", RULE]
    (part,) = parts_of(lines)
    assert part.error is not None and ": line 3: a row has" in part.error.message


@pytest.mark.parametrize(
    ("title", "argv", "iterations", "moved"),
    [
        ("RDMA_Write", ("-n", "500", "-b"), 500, (65536000, 32768000, 32768000)),
        ("Send", ("-D", "3", "-b"), 500, (32768000, 16384000, 16384000)),
    ],
)
def test_both_ways_the_rate_is_the_sum_and_only_a_send_by_duration_counts_both(
    title: str, argv: tuple[str, ...], iterations: int, moved: tuple[int, int, int]
) -> None:
    row = f" 65536      {iterations}              0.00               6.35   \t\t     0.000102"
    heading = f"                    {title} Bidirectional BW Test"
    part = part_of([heading, bandwidth_header("MB"), row, RULE], *argv)
    assert part.params is not None and part.params.bidirectional
    assert part.bandwidth is not None and part.bandwidth.peak_gbit_s is None
    assert part.claims is not None
    assert (part.bandwidth.bytes, part.claims.sent, part.claims.received) == moved


def test_where_the_average_has_no_digits_left_the_message_rate_has() -> None:
    row = " 8          1000             0.00               0.00   \t\t     0.000215"
    title = "                    Atomic FETCH_AND_ADD BW Test"
    part = part_of([title, bandwidth_header("MB"), row, RULE], "-n", "1000")
    assert part.op == "fetch-add" and gbit_s(part) == 1.376e-05
    assert part.bandwidth is not None and part.bandwidth.messages_per_s == 215


def test_an_empty_output_has_its_reason_from_standard_error() -> None:
    (part,) = parts_of([], errors=("Unable to find the Infiniband/RoCE device",))
    assert part.error is not None and not part.error.traffic
    assert why(part) == "it is empty: Unable to find the Infiniband/RoCE device"


@pytest.mark.parametrize(
    ("rdma_cm", "argv", "classes"),
    [
        ("OFF", [], (0, 0)),
        ("ON", ["-S", "3", "-T", "104", "-R"], (3, 104)),
        ("ON", ["-R"], (None, None)),
    ],
)
def test_the_connection_manager_chooses_what_the_command_does_not_name(
    rdma_cm: str, argv: list[str], classes: tuple[int | None, int | None]
) -> None:
    run = about_text(["   Send BW Test", " PCIe relax order: OFF", f" rdma_cm QPs\t : {rdma_cm}"])
    params = _params(run, argv, 8)
    assert (params.sl, params.traffic_class) == classes
    assert params.relaxed_ordering is False


# ---- JSON ----------------------------------------------------------------------------------------

BROKEN = [
    "{", "test_info: {", "test: Send_Bidirectional_BW_Test,", 'Device: "rxe0",',
    "Number_of_qps: 1,", "TX_depth : 128,", "Connection_type: RC,", "Mtu: 4096,",
    "Link_type: Ethernet,", "},", "results: {", "MsgSize: 65536,", "n_iterations: 500,",
    "BW_peak: 12.06,", "BW_average: 6.35,", "MsgRate: 0.000102,", "},", "}",
]  # fmt: skip


def test_version_4_5_writes_what_is_no_json_and_its_command_says_the_unit() -> None:
    part = part_of(BROKEN, "-n", "500", "-b")
    assert (part.op, gbit_s(part)) == ("send", 0.0532676608)
    assert part.client is not None and part.client.device == "rxe0"
    assert part.link is not None and part.link.mtu_bytes == 4096
    assert part_of(BROKEN, "-n", "500", "-b", "--report_gbits").status == "error"


def test_the_json_of_an_atomic_test_names_its_operation() -> None:
    text = """{ "test_info": {"test": "Atomic_CMP_AND_SWAP_Latency_Test", "Link_type": "IB",
      "PCIe_relax_order": "ON"}, "results": { "MsgSize": 8, "n_iterations": 1000, "t_min": 1.10,
      "t_max": 9.5, "t_typical": 1.6, "t_avg": 1.75, "t_stdev": 0.3, "percentile_99": 3.2,
      "percentile_99.9": 9.5}}"""
    part = part_of(text.split("\n"), "-n", "1000")
    assert (part.op, part.definition) == ("compare-swap", "completion")
    assert part.link == Link(layer="infiniband")
    assert (times(part).p50, times(part).p99_9) == (1.6, 9.5)
    assert part.params is not None and part.params.relaxed_ordering is True


def test_a_deviation_that_perftest_cannot_square_is_left_out() -> None:
    # 25.01 on Soft-RoCE of a busy emulated machine: its true deviation is above 30,000 us
    row = " 64  1000  654.43  395368.70  13986.82  22024.46  6101.98  163301.01  395368.70"
    part = part_of(["                    Send Latency Test", LATENCY, row, RULE], "-n", "1000")
    assert (part.status, times(part).mean, times(part).stddev) == ("ok", 22024.46, None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{", '"test_info": {'], "it is not a JSON document: truncated?"),
        (['{"test_info": {}, "results": {}}'], "it does not say which test it is"),
        (['{"results": {}}'], "its document does not fit: 'test_info' is missing"),
        (['{"test_info": {}, "results": {"t_avg": "x"}}'],
         "its document does not fit: results.t_avg: expected number, got string"),
    ],
)  # fmt: skip
def test_a_document_that_is_none_is_an_error(lines: list[str], said: str) -> None:
    assert why(part_of(lines)) == said


def test_long_lines_are_left_alone_when_json_is_mended() -> None:
    line = "a " * 20000
    assert mended([line]) == line.rstrip()


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("4.5/send_lat", ("-n", "1000")),
        ("4.5/write_bw_both", ("-n", "500")),
        ("25.01/send_lat_events", ("-n", "1000")),
        ("25.01/send_bw_both_duration", ("-D", "3", "-f", "1")),
    ],
)
def test_json_gives_what_the_text_gives(name: str, argv: tuple[str, ...]) -> None:
    text, document = (part_of(fixture(f"{name}.{kind}"), *argv) for kind in ("txt", "json"))
    assert text.status == "ok"
    for key in ("op", "kind", "latency_us", "bandwidth", "link"):
        assert getattr(text, key) == getattr(document, key)
    assert text.params is not None and document.params is not None
    assert text.params.completion == document.params.completion


# ---- what the programs printed -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "argv", "p50"),
    [
        ("4.5/send_lat.txt", (), 16.32),
        ("4.5/read_lat.txt", (), 21.6),
        ("4.5/atomic_lat.txt", (), None),
        ("4.5/send_lat_ud.txt", (), None),
        ("4.5/send_lat_cm.txt", ("-R",), 42.91),
        ("25.01/send_lat_events.txt", ("-e",), 1870.14),
    ],
)
def test_latency_of_4_5_and_25_01(name: str, argv: tuple[str, ...], p50: float | None) -> None:
    part = part_of(fixture(name), "-n", "1000", *argv)
    assert times(part).p50 is not None
    assert p50 is None or times(part).p50 == p50
    assert part.params is not None
    assert part.params.rdma_cm is ("-R" in argv)
    assert part.params.completion == ("event" if "-e" in argv else "busy")
    assert part.connection == ("UD" if "ud" in name else "RC")


def test_latency_by_duration_without_a_frequency_of_the_processor_is_an_error() -> None:
    part = part_of(fixture("4.5/send_lat_duration.txt"), "-D", "3", "-f", "1")
    assert "t_avg[usec] is inf" in why(part)
    part = part_of(fixture("25.01/read_lat_duration.txt"), "-D", "3", "-f", "1")
    assert times(part).mean == 17493.11


@pytest.mark.parametrize(
    ("name", "argv", "rate", "moved"),
    [
        ("4.5/send_bw_gbits_4.txt", ("-n", "500", "-q", "4"), 0.22, 4 * 500 * 65536),
        ("4.5/write_bw_both.txt", ("-n", "500", "-b"), 0.053, 2 * 500 * 65536),
        ("4.5/write_bw_list.txt", ("-n", "1600", "-l", "16"), None, None),
        ("25.01/read_bw_duration.txt", ("-D", "3", "-f", "1"), None, None),
        ("25.01/atomic_bw.txt", ("-n", "1000"), None, 8000),
    ],
)
def test_bandwidth_of_4_5_and_25_01(
    name: str, argv: tuple[str, ...], rate: float | None, moved: int | None
) -> None:
    part = part_of(fixture(name), *argv)
    assert rate is None or gbit_s(part) == pytest.approx(rate, abs=0.005)
    assert part.bandwidth is not None and part.claims is not None and part.params is not None
    assert moved is None or part.bandwidth.bytes == moved
    if "list" in name:
        assert part.params.batch == 16
    if "read" in name:
        assert part.elapsed_s == pytest.approx(1, abs=0.1) and part.claims.sent == 0
        assert part.bandwidth.peak_gbit_s is None


def test_each_size_of_a_sweep_is_a_part() -> None:
    parts = parts_of(fixture("25.01/write_bw_all.txt"), "-a", "-n", "5")
    assert [part.status for part in parts] == ["ok"] * 23
    assert parts[-1].params is not None and parts[-1].params.size_bytes == 8388608


def test_a_table_without_an_end_or_a_row_is_an_error() -> None:
    *others, last = parts_of(fixture("4.5/send_bw_all.txt"), "-a", "-n", "50")
    assert len(others) > 3 and "truncated" in why(last)
    (part,) = parts_of(fixture("25.01/send_bw.txt"), "-n", "300")
    assert why(part).startswith("its table is empty")


def test_raw_ethernet_counts_whole_frames() -> None:
    part = part_of(fixture("formats/raw_ethernet_bw.txt"))
    assert (part.definition, part.connection) == ("frame_completion", "RawEth")
    assert gbit_s(part) == 95.6243431
    assert part.link is not None and part.link.layer is None


# ---- what it could not do ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exit_status", "words", "code"),
    [
        (1, "Unable to find the Infiniband/RoCE device", 3),
        (1, "Couldn't connect to 10.0.0.2:18515", 4),
        (1, "Completion with error at client: Failed status 12: wr_id 0", 4),
        (1, "ib_send_bw: unrecognized option '--ipv6-addr'", 3),
        (1, "Failed status 1", 6),
        (127, "Couldn't connect", 3),
    ],
)
def test_its_words_tell_whether_host_or_peer_is_at_fault(
    exit_status: int, words: str, code: int
) -> None:
    assert TOOLS["perftest"].exit_code_of(exit_status, words) == code


def test_the_readers_of_a_run_and_of_an_import_are_one() -> None:
    lines = fixture("4.5/send_lat.txt")
    (found,) = perftest.found(lines, [], ["-n", "1000"], [])
    assert found.part.latency_us == part_of(lines, "-n", "1000").latency_us
