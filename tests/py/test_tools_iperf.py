"""iperf 2: the text of -e -i 1, and its table (-y C)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Tcp
from perch.tools import TOOLS, ToolOutput, iperf, iperf_csv, read
from perch.tools.text import lines_of

TOOLS_DIR = Path(__file__).parents[1] / "fixtures" / "tools"

HEADER = "Client connecting to 127.0.0.2, TCP port 15001 with pid 6529 (1 flows)"
COLUMNS = "[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)"
FIRST = (
    "[  1] 0.0000-1.0000 sec  2.41 GBytes  20.7 Gbits/sec  19758/0          2"
    "      895K/53(7) us  48862654"
)
SECOND = (
    "[  1] 1.0000-2.0000 sec  2.68 GBytes  23.0 Gbits/sec  21943/0          2"
    "      895K/39(5) us  73746485"
)
TOTAL = (
    "[  1] 0.0000-2.0316 sec  5.09 GBytes  21.5 Gbits/sec  41702/0          5"
    "      895K/784(1494) us  3431758"
)
WHOLE = [
    HEADER,
    "Write buffer size: 131072 Byte",
    "TOS set to 0x0 (Nagle on)",
    "TCP window size: 16.0 KByte (default)",
    "[  1] local 127.0.0.1%lo port 47014 connected with 127.0.0.2 port 15001 (sock=3)"
    " (icwnd/mss/irtt=319/32741/47) (ct=0.33 ms) on 2026-11-21 07:26:44 (UTC)",
    COLUMNS,
    FIRST,
    SECOND,
    TOTAL,
]


def part_of(
    lines: list[str], errors: list[str] | None = None, argv: list[str] | None = None
) -> Part:
    (part,) = iperf.parts(lines, errors or [], argv or [], None)
    return part


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return message.removeprefix("iperf's output cannot be used: ").removeprefix(
        "iperf's table cannot be used: "
    )


def fixture(name: str) -> list[str]:
    return lines_of((TOOLS_DIR / name).read_bytes())


# ---- text ----------------------------------------------------------------------------------------


def test_bits_count_in_powers_of_1000_and_bytes_of_1024_and_the_last_line_is_the_total() -> None:
    flow = Flow(id="t/a/b/0/1", test="t", tool="iperf", kind="bandwidth", client="a", server="b",
                scope="software", client_argv=["iperf", "-t", "2"])  # fmt: skip
    output = ToolOutput(flow, "\n".join(WHOLE).encode(), versions={"iperf": "2.1.8"})
    (part,) = read(output)
    assert part.status == "ok" and part.tool is not None and part.tool.version == "2.1.8"
    assert part.bandwidth is not None and part.params is not None and part.claims is not None
    assert (part.bandwidth.gbit_s, part.bandwidth.bytes) == (21.5, 5465345884)
    assert (part.bandwidth.peak_gbit_s, part.bandwidth.min_interval_gbit_s) == (23, 20.7)
    assert part.tcp == Tcp(
        retransmissions=5, initial_rtt_us=47, window_bytes=16384,
        initial_cwnd_bytes=319 * 1024, mss_bytes=32741,
    )  # fmt: skip
    assert (part.params.size_bytes, part.params.queue_pairs, part.params.duration_s) == (
        131072, 1, 2,
    )  # fmt: skip
    assert part.client is not None and part.client.address == "127.0.0.1"
    assert part.server is not None and part.server.address == "127.0.0.2"
    assert (part.started, part.definition) == ("2026-11-21T07:26:44Z", "sender_payload")
    assert (part.claims.sent, part.claims.most_sent) == (5438019150, 5492672610)


def test_the_notes_baseline_keeps_window_and_segment_of_the_handshake() -> None:
    """iperf prints the window in KiB: 10 segments of 1448 bytes are 14, whatever the notes say."""
    part = part_of(
        [
            "Client connecting to 192.168.251.111, TCP port 5001",
            "TCP window size: 16.0 KByte (default)",
            "[  1] local 192.168.250.112 port 39020 connected with 192.168.251.111 port 5001",
            "      (icwnd/mss/irtt=14/1448/161)",
            "[ ID] Interval       Transfer     Bandwidth",
            "[  1] 0.0000-6.0120 sec  3.27 GBytes  4.67 Gbits/sec",
        ]
    )
    assert part.tcp == Tcp(
        initial_rtt_us=161, window_bytes=16384, initial_cwnd_bytes=14336, mss_bytes=1448
    )


def test_a_window_below_one_kibibyte_is_none() -> None:
    line = "[  1] local 192.0.2.1 port 1 connected with 192.0.2.2 port 2 (icwnd/mss/irtt=0/88/161)"
    part = part_of([line, "[  1] 0.0000-6.0120 sec  3.27 GBytes  4.67 Gbits/sec"])
    assert part.tcp == Tcp(initial_rtt_us=161, mss_bytes=88)


def test_several_streams_are_their_sum_and_the_mean_of_their_round_trips() -> None:
    part = part_of(
        [
            "Client connecting to 127.0.0.2, TCP port 15001 with pid 6543 (2 flows)",
            "[  2] local 127.0.0.1%lo port 1 connected with 127.0.0.2 port 2 (sock=4)"
            " (icwnd/mss/irtt=319/32741/122) on 2026-11-21 07:26:46 (UTC)",
            "[  1] local 127.0.0.1%lo port 3 connected with 127.0.0.2 port 2 (sock=3)"
            " (icwnd/mss/irtt=318/32740/191) on 2026-11-21 07:26:46 (UTC)",
            "[  2] 0.0000-2.0010 sec  4.83 GBytes  20.7 Gbits/sec  39578/0          8   3069K/202",
            "[  1] 0.0000-2.0004 sec  5.47 GBytes  23.5 Gbits/sec  44800/0          8   2302K/151",
            "[SUM] 0.0000-2.0008 sec  10.3 GBytes  44.2 Gbits/sec  84378/0        16",
        ]
    )
    assert part.bandwidth is not None and part.params is not None and part.tcp is not None
    assert (part.bandwidth.gbit_s, part.params.queue_pairs) == (44.2, 2)
    assert (part.tcp.retransmissions, part.tcp.initial_rtt_us) == (16, 156.5)
    assert (part.tcp.initial_cwnd_bytes, part.tcp.mss_bytes) == (318 * 1024, 32740)


@pytest.mark.parametrize(
    ("line", "gbit_s", "size"),
    [
        ("[  1] 0.0000-2.0149 sec  6078 MBytes  3016 MBytes/sec  48623/0  33  767K/1838(3637) us",
         25.3000417, 6373244928),
        ("[  1] 0.0000-2.0140 sec  12.1 MBytes  50.5 Mbits/sec  97/0  0  767K/132(110) us  47825",
         0.0505, 12687769),
    ],
)  # fmt: skip
def test_the_unit_of_each_line_is_read_from_that_line(line: str, gbit_s: float, size: int) -> None:
    bandwidth = part_of([line]).bandwidth
    assert bandwidth is not None and (bandwidth.gbit_s, bandwidth.bytes) == (gbit_s, size)


def total(text: str) -> list[str]:
    return [f"[  1] 0.0000-2.0316 sec  {text}"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (total("5.09 GBytes  21.5 Gparsecs/sec"), "has an unknown shape or unit"),
        (total("5.09 GBytes  21.5 Mbits/sec  41702/0          5"),
         "transfer and bandwidth disagree (21.5"),
        (total("0.00 Bytes  0.00 bits/sec  0/0          0"),
         "bandwidth is 0, which is not a result"),
        (total(f"{'9' * 19} Bytes  1.00 bits/sec"), "has an unknown shape or unit"),
        (["[  1] 0.0000-0.0000 sec  1.0 GBytes  1.0 Gbits/sec"], "elapsed_s is 0"),
        ([FIRST, SECOND], "its last line is an interval, not the total: truncated?"),
        ([HEADER], "it holds no result line"),
        ([*WHOLE, "Segmentation fault"], 'it ends with "Segmentation fault"'),
        ([COLUMNS, total("5.09 GBytes  21.5 Gbits/sec")[0]], "has no end: truncated?"),
        ([COLUMNS, total("5.09 GBytes  21.5 Gbits/sec  41702/0  5")[0]], "has no end: truncated?"),
    ],
)  # fmt: skip
def test_nothing_is_guessed(lines: list[str], message: str) -> None:
    part = part_of(lines)
    assert part.status == "error" and message in why(part)


def test_output_that_stops_early_has_no_total() -> None:
    part = part_of([FIRST], argv=["iperf", "-t", "2"])
    assert part.error is not None and part.error.traffic and part.error.code == 6
    assert why(part) == "its last line ends at 1 s of 2 s: truncated?"


def streams(*rows: str) -> list[str]:
    return ["Client connecting to x, TCP port 1 (2 flows)", *rows]


ONE = "[  1] 0.0000-2.0000 sec  1.00 GBytes  4.29 Gbits/sec  9/0          3   1K/2(3) us  4"
TWO = "[  2] 0.0000-2.0000 sec  1.00 GBytes  4.29 Gbits/sec  9/0          4   1K/2(3) us  4"
SUM = "[SUM] 0.0000-2.0000 sec  2.00 GBytes  8.59 Gbits/sec  18/0         7"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([ONE, TWO, SUM], "ok"),
        ([ONE, TWO, SUM, SUM],
         "its line of 0 to 2 s does not follow the one before: twice?"),
        ([SUM.replace("-2.0000", "-1.0000"), SUM.replace("-2.0000", "-1.0000"), ONE, TWO, SUM],
         "its line of 0 to 1 s does not follow the one before: twice?"),
        ([ONE, SUM], "the sum of its streams is not that of its last line: truncated?"),
        ([ONE, TWO.replace("  4   ", "  5   "), SUM],
         "the retries of its streams are not those of its last line: truncated?"),
        ([ONE, TWO.replace("0.0000-2", "1.0000-2"), SUM],
         "stream 2 ends with an interval, not with its total: truncated?"),
    ],
)  # fmt: skip
def test_the_sum_is_that_of_its_streams(lines: list[str], message: str) -> None:
    assert why(part_of(streams(*lines))) == message


def test_iperf_exits_0_where_it_could_not_connect_and_standard_error_says_why() -> None:
    part = part_of(fixture("iperf_refused.txt"), fixture("iperf_refused.err"))
    assert part.error is not None and (part.error.code, part.error.traffic) == (4, False)
    assert why(part).endswith(" (tcp connect failed: Connection refused)")


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_an_empty_output_is_an_error(lines: list[str]) -> None:
    part = part_of(lines)
    assert part.error is not None and part.error.code == 6 and not part.error.traffic
    assert why(part) == "iperf's output is empty"


@pytest.mark.parametrize(
    ("name", "gbit_s", "pairs"),
    [("iperf_slow.txt", 0.0505, 1), ("iperf_streams.txt", None, 3), ("iperf_plain.txt", None, 1),
     ("iperf_plain_i.txt", 9.75, 1), ("iperf_e_streams.txt", 28.6, 3)],
)  # fmt: skip
def test_recorded_outputs_are_read(name: str, gbit_s: float | None, pairs: int) -> None:
    part = part_of(fixture(name))
    assert part.status == "ok", why(part)
    assert part.bandwidth is not None and part.params is not None
    assert gbit_s in (None, part.bandwidth.gbit_s) and part.params.queue_pairs == pairs


# ---- the table -----------------------------------------------------------------------------------


def table(lines: list[str]) -> Part:
    (part,) = iperf_csv.parts(lines, "2.1.8")
    return part


@pytest.mark.parametrize(
    ("name", "gbit_s", "size", "pairs"),
    [("iperf_csv.txt", 19.319245, 4854906940, 1),
     ("iperf_csv_streams.txt", 30.3153116, 7599685812, 3)],
)  # fmt: skip
def test_a_table_is_read(name: str, gbit_s: float, size: int, pairs: int) -> None:
    part = table(fixture(name))
    assert part.bandwidth is not None and part.params is not None, why(part)
    assert (part.bandwidth.gbit_s, part.bandwidth.bytes) == (gbit_s, size)
    assert (part.params.queue_pairs, part.elapsed_s, len(part.intervals)) == (pairs, 2, 2)


def test_intervals_of_all_streams_are_summed() -> None:
    part = table(fixture("iperf_csv_streams.txt"))
    assert [interval.gbit_s for interval in part.intervals] == [22.876784, 37.9165082]
    assert part.bandwidth is not None and part.bandwidth.peak_definition == "best_interval_1s"


ROW = "20261122065306,127.0.0.1,50266,127.0.0.2,15801,1,{},{},{}"
A = ROW.format("0.0-1.0", 1250000000, 10000000000)
B = ROW.format("1.0-2.0", 1250000000, 10000000000)
ALL = ROW.format("0.0-2.0", 2500000000, 10000000000)
HALF = ROW.format("0.0-0.5", 625000000, 10000000000)
PAIR = ALL.replace(",15801,1,", ",15801,2,")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([A, B, ALL], "ok"),
        ([A, B], "line 2: stream 1 ends with an interval, not with its total: truncated?"),
        ([A, B, ALL, ALL], "line 4: stream 1 has two totals"),
        ([A, B, ALL, HALF], "line 4: stream 1 begins again: give each output a file of its own"),
        ([A, B, ALL[:50]], "line 3: it has 7 columns instead of 9: truncated?"),
        ([A + ",1,2,3,4,5"], "line 1: iperf 2 reports only the sender's rate"),
        ([A, "Segmentation fault"], "line 2: it does not belong to the table: truncated?"),
        ([A.replace("0.0-1.0", "0.0:1.0")], 'line 1: its interval is "0.0:1.0"'),
        ([A.replace("0.0-1.0", "1.0-1.0")], "line 1: its interval is empty"),
        ([A.replace(",1250000000", ",1e999")], 'line 1: bytes is "1e999", which is not a number'),
        ([A.replace(",10000000000", ",0")], "line 1: its rate is 0, which is not a result"),
        ([A.replace(",10000000000", ",5000000000")], "line 1: its bytes and its rate disagree"),
        ([A.replace("1250000000", "1e20").replace("10000000000", "8e20")],
         "line 1: bandwidth of 800000000000 Gb/s is impossible"),
        ([ALL, PAIR], "ok"),
        ([ALL, PAIR.replace("0.0-2.0,2500000000", "0.0-1.0,1250000000")],
         "line 1: its streams do not end together: truncated?"),
        ([ALL, PAIR, ROW.format("0.0-2.0", 5000000000, 20000000000).replace(",1,0.0", ",-1,0.0")],
         "ok"),
        ([ALL, PAIR, ALL.replace(",1,0.0", ",-1,0.0")],
         "line 3: the sum is 10 Gb/s, but its streams add to 20"),
        ([], "it has no stream"),
    ],
)  # fmt: skip
def test_a_table_must_be_whole(lines: list[str], message: str) -> None:
    assert why(table(lines)).startswith(message)


def test_an_interval_that_a_stream_lacks_is_none_of_all() -> None:
    part = table([A, B, A.replace(",15801,1,", ",15801,2,"), ALL, PAIR])
    assert [interval.end_s for interval in part.intervals] == [1]


def test_a_heading_names_the_columns() -> None:
    heading = "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed,tcpretry"
    row = "20261122065308.707,10.0.0.1,1,10.0.0.2,2,1,0.0,2.0,2500000000,10000000000,7"
    part = table([heading, row])
    assert part.status == "ok", why(part)
    assert part.tcp == Tcp(retransmissions=7)
    assert part.client is not None and part.client.address == "10.0.0.1"


def test_udp_has_no_result_in_either_form() -> None:
    assert "UDP" in why(table(fixture("iperf_udp_csv.txt")))


def test_iperf_is_a_tool_over_tcp() -> None:
    tool = TOOLS["iperf"]
    assert (tool.is_tcp, tool.default_port, tool.version_key) == (True, 5001, "iperf")
