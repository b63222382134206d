"""The eight cxi tools: what HPE's pages print, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Latency, Params, Side
from perch.tools import TOOLS, ToolOutput, read
from perch.tools.perch import CONNECTIONS
from perch.tools.text import lines_of

CXI = Path(__file__).parents[1] / "fixtures" / "cxi"
RULE = "-" * 70


def parts_of(lines: list[str], *, errors: tuple[str, ...] = (), device: str = "cxi1") -> list[Part]:
    flow = Flow(id="t/a/b/0/1", test="t", tool="cxi", kind="latency", client="a", server="b",
                scope="hardware", client_argv=["cxi"],
                server_argv=["cxi", "-d", device])  # fmt: skip
    output, said = "\n".join(lines).encode(), "\n".join(errors).encode()
    return read(ToolOutput(flow, output, said, {"cxi": "2.1.0"}))


def part_of(lines: list[str], *errors: str) -> Part:
    (part,) = parts_of(lines, errors=errors)
    return part


def fixture(name: str) -> list[Part]:
    return parts_of(lines_of((CXI / name).read_bytes()))


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return message.removeprefix("the cxi tool's output cannot be used: ")


def reason(part: Part) -> str:
    """Without the place."""
    return re.sub(r"^line \d+: ", "", why(part))


def params(part: Part) -> Params:
    assert part.params is not None, why(part)
    return part.params


SEND = [
    RULE,
    "    CXI RDMA Send Latency Test",
    "Device           : cxi0",
    "Service ID       : 1",
    "Client TX Mem    : System",
    "Server RX Mem    : System",
    "Test Type        : Iteration",
    "Iterations       : 5",
    "Warmup Iters     : 10",
    "Inter-Iter Gap   : 1000 microseconds",
    "Send Size        : 8",
    "IDC              : Enabled",
    "LL Cmd Launch    : Disabled",
    "Results Reported : Summary",
    "Hugepages        : Disabled",
    "Local (client)   : NIC 0x13 PID 0 VNI 10",
    "Remote (server)  : NIC 0x12 PID 3",
    RULE,
    "     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]",
    "         8           5        1.68        1.89        1.73        0.08",
    RULE,
]


def test_the_summary_tells_service_vni_addresses_and_what_was_on() -> None:
    part = part_of(SEND)
    assert (part.op, part.kind, part.definition) == ("send", "latency", "half_round_trip")
    # in the engine's word: figures are compared where both have one connection
    assert part.connection == "rdm" and part.connection in CONNECTIONS["cxi"]
    assert part.link is not None and part.link.layer == "slingshot"
    assert part.client == Side(device="cxi0", address="NIC 0x13 PID 0")
    assert part.server == Side(device="cxi1", address="NIC 0x12 PID 3")
    assert part.latency_us == Latency(count=5, min=1.68, max=1.89, mean=1.73, stddev=0.08)
    p = params(part)
    assert (p.iterations, p.warmup, p.gap_us, p.svc_id, p.vni) == (5, 10, 1000, 1, 10)
    assert (p.idc, p.ll, p.rdzv, p.tx_memory, p.rx_memory) == (True, False, None, "host", "host")
    assert part.elapsed_s is None
    assert part.claims is not None and (part.claims.sent, part.claims.received) == (120, 120)


def write_bw(unit: str, row: str, size: int) -> Part:
    return part_of(
        [
            "    CXI RDMA Write Bandwidth Test",
            "Device           : cxi0",
            "Test Type        : Iteration",
            "Iterations       : 10",
            f"Write Size       : {size}",
            "List Size        : 64",
            "Bidirectional    : Disabled",
            RULE,
            f"RDMA Size[B]      Writes  BW[{unit}/s]  PktRate[Mpkt/s]",
            row,
            RULE,
        ]
    )


LARGE = "     1048576         640  {}        10.813950"


@pytest.mark.parametrize(
    ("unit", "row", "size", "said"),
    [
        ("MB", LARGE.format("22146.97"), 1048576, 177.17576),
        ("Gb", LARGE.format("177.18"), 1048576, 177.18),
        ("Gb", LARGE.format("22146.97"), 1048576,
         "line 10: bandwidth and rate disagree (22146.97 against 177.175757 Gb/s)"),
        ("MiB", LARGE.format("22146.97"), 1048576,
         'line 9: its table has the unknown column "BW[MiB/s]"'),
        ("MB", "        4096         640   4096.00         2.000000", 4096, 32.768),
        ("MB", "        4096         640   4096.00         1.000000", 4096,
         "line 10: bandwidth and rate disagree (32.768 against 16.384 Gb/s)"),
    ],
)  # fmt: skip
def test_the_header_names_the_unit_and_the_rate_of_packets_must_say_the_same(
    unit: str, row: str, size: int, said: float | str
) -> None:
    part = write_bw(unit, row, size)
    assert (part.bandwidth.gbit_s if part.bandwidth else why(part)) == said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("8 100 2.61 2.91 2.70 0.07", "ok"),
        ("8 100 0.00 2.91 2.70 0.07", "Min is 0, which is not a result"),
        ("8 100 2.61 nan 2.70 0.07", "Max[us] is nan, which is not a result"),
        ("8 100 2.61 inf 2.70 0.07", "Max[us] is inf, which is not a result"),
        ("8 100 2.61 2.91 3.70 0.07", "Min, Mean and Max are 2.61, 3.7 and 2.91, out of order"),
        ("8 100 2.61 2.91 2.70 0.90", "StdDev is 0.9, which Min and Max do not allow"),
        ("8 99 2.61 2.91 2.70 0.07", "it measured 99 messages of 100"),
        ("8 100 2.61 2.91 2.70", "a row has 5 figures under 6 columns: truncated?"),
        ("16 100 2.61 2.91 2.70 0.07", "16 bytes are not among the sizes of its summary"),
        ("8 100 - - - -", "it is the server's output; the figures are in its client's"),
    ],
)
def test_what_is_no_result_is_refused(row: str, said: str) -> None:
    part = part_of(
        [
            "    CXI RDMA Read Latency Test",
            "Device           : cxi0",
            "Test Type        : Iteration",
            "Iterations       : 100",
            "Read Size        : 8",
            RULE,
            "RDMA Size[B]       Reads     Min[us]     Max[us]    Mean[us]  StdDev[us]",
            f"           {row}",
            RULE,
        ]
    )
    assert reason(part) == said


TWO_SIZES = [
    "    CXI RDMA Send Latency Test",
    "Device           : cxi0",
    "Test Type        : Iteration",
    "Iterations       : 2",
    "Min Send Size    : 8",
    "Max Send Size    : 16",
    RULE,
    "     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]",
    "         8           2        1.68        1.89        1.73        0.08",
    "        16           2        1.68        1.89        1.73        0.08",
    RULE,
]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (TWO_SIZES, ["ok", "ok"]),
        (TWO_SIZES[:-1], ["ok", "its table has no end: truncated?"]),
        (TWO_SIZES[:-2], ["ok", "its table has 1 rows for 2 sizes: truncated?"]),
        ([*TWO_SIZES[:9], TWO_SIZES[8], RULE], ["ok", "its table has a size twice"]),
        (TWO_SIZES[:7], ["it has no table of results: truncated?"]),
        (TWO_SIZES[:5], ["its summary has no end: truncated?"]),
        (["warm", *TWO_SIZES[:9], "oops"], ['line 11: "oops" belongs to no table']),
        ([*TWO_SIZES[:7], "See client for results."],
         ["it is the server's output; the figures are in its client's"]),
        (["    CXI Loopback Bandwidth Test", *TWO_SIZES[1:]],
         ['line 1: "    CXI Loopback Bandwidth Test" is no test of the eight tools']),
        (["x"], ["it does not say which test it is"]),
    ],
)  # fmt: skip
def test_a_text_that_stops_early_or_fits_nothing_is_refused(
    lines: list[str], said: list[str]
) -> None:
    assert [why(part) for part in parts_of(lines)] == said


def test_an_empty_output_has_its_reason_from_standard_error() -> None:
    part = part_of([""], "cxi_send_lat: Failed to allocate LNI")
    assert why(part) == "it is empty: cxi_send_lat: Failed to allocate LNI"
    assert part.error is not None and not part.error.traffic


# ---- single measurements (--report-all) ----------------------------------------------------------

SAMPLES = [f"         {n}        1.{n:03}" for n in range(20)]


def with_samples(samples: list[str], least: str, most: str) -> Part:
    return part_of(
        [
            "    CXI RDMA Send Latency Test",
            "Test Type        : Iteration",
            "Iterations       : 20",
            "Send Size        : 8",
            RULE,
            "   SendNum  Latency[us]",
            *samples,
            RULE,
            "Send Size[B]       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]",
            f"           8          20        {least}        {most}        1.00        0.05",
            RULE,
        ]
    )


def test_single_measurements_give_percentiles_where_ten_lie_above_them() -> None:
    part = with_samples(SAMPLES, "1.00", "1.01")
    assert part.latency_us is not None, why(part)
    assert (part.latency_us.p50, part.latency_us.p90) == (1.009, None)


@pytest.mark.parametrize(
    ("samples", "least", "most", "said"),
    [
        (SAMPLES, "1.00", "1.19",
         "its single measurements and its summary are 14.3697479 % apart"),
        (SAMPLES, "1.90", "1.99", "Min, Mean and Max are 1.9, 1 and 1.99, out of order"),
        (SAMPLES[:5] + SAMPLES[6:], "1.00", "1.01",
         '"         6        1.006": sample 5 is missing'),
        (SAMPLES[:19], "1.00", "1.01", "it lists 19 measurements of 20"),
    ],
)  # fmt: skip
def test_a_measurement_that_is_missing_or_of_another_run_is_an_error(
    samples: list[str], least: str, most: str, said: str
) -> None:
    assert reason(with_samples(samples, least, most)) == said


# ---- Perch in a tool's place ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "simulated"),
    [("cxi_send_lat: sim_cxi0 is a simulated device", True), ("dissimulated", False)],
)
def test_a_simulation_says_so_on_standard_error(words: str, simulated: bool) -> None:
    part = part_of(["x"], words)
    assert part.simulated is simulated
    assert part.tool is not None and (part.tool.name, part.tool.version) == ("cxi", "2.1.0")


def test_perch_in_the_tools_place_has_no_version_of_that_tool() -> None:
    part = part_of(["x"], "", "perch: this is perch in the place of cxi_send_lat")
    assert part.tool is not None
    assert (part.tool.name, part.tool.version) == ("perch-personality", None)


@pytest.mark.parametrize(
    ("line", "keys"),
    [("Matching LEs     : Disabled", "client"), ("Matching LEs     : Enabled", "matching")],
)
def test_an_atomics_way_to_its_target_has_a_line_of_its_own(line: str, keys: str) -> None:
    part = part_of(
        [
            "    CXI Atomic Memory Operation Latency Test",
            "Device           : cxi0",
            "Test Type        : Iteration",
            "Iterations       : 100",
            "Atomic Op        : NON-FETCHING SUM",
            "Atomic Type      : UINT64",
            line,
            RULE,
            "AMO Size[B]         Ops     Min[us]     Max[us]    Mean[us]  StdDev[us]",
            "          8         100        2.48        2.63        2.50        0.06",
            RULE,
        ]
    )
    assert params(part).keys == keys


# ---- what HPE's pages print ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "count", "op", "kind", "definition"),
    [
        ("send_lat_range", 11, "send", "latency", "half_round_trip"),
        ("send_lat_all", 1, "send", "latency", "half_round_trip"),
        ("write_lat_all", 1, "write", "latency", "completion"),
        ("read_lat_duration", 5, "read", "latency", "completion"),
        ("atomic_lat", 1, "atomic-op", "latency", "completion"),
        ("send_bw", 1, "send", "bandwidth", "initiator_completion"),
        ("read_bw", 1, "read", "bandwidth", "initiator_completion"),
        ("write_bw_bytes", 1, "write", "bandwidth", "initiator_completion"),
        ("write_bw_both_duration", 7, "write", "bandwidth", "initiator_completion"),
        ("atomic_bw_both_duration", 1, "compare-atomic", "bandwidth", "initiator_completion"),
    ],
)
def test_all_eight_tools_and_both_generations_of_headers_are_read(
    name: str, count: int, op: str, kind: str, definition: str
) -> None:
    parts = fixture(f"{name}.txt")
    assert [part.status for part in parts] == ["ok"] * count
    assert (parts[0].op, parts[0].kind, parts[0].definition) == (op, kind, definition)
    assert all(params(part).svc_id == 1 and params(part).vni == 10 for part in parts)


def test_both_ways_by_duration_the_rate_is_that_of_both_ends() -> None:
    part = fixture("write_bw_both_duration.txt")[0]
    assert part.bandwidth is not None and part.bandwidth.gbit_s == 234.51728
    assert params(part).bidirectional and params(part).hrp and part.elapsed_s == 5


def test_each_size_has_its_own_single_measurements() -> None:
    parts = fixture("send_lat_range_all.txt")
    assert len(parts) == 2
    for part in parts:
        assert part.latency_us is not None
        assert part.latency_us.p99 is not None and part.latency_us.p99_9 is None
    p = params(parts[0])
    assert (p.rdzv, p.idc, p.tx_memory, p.rx_memory) == (True, False, "rocm:0", "huge:2M")


@pytest.mark.parametrize("name", ["send_lat_server.txt", "read_bw_server.txt"])
def test_a_servers_output_is_refused(name: str) -> None:
    assert "server's output" in why(fixture(name)[0])


# ---- what it could not do ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exit_status", "words", "code"),
    [
        (1, "cxi_send_lat: Failed to connect", 4),
        (1, "cxi_send_lat: Failed to open device cxi7", 3),
        (1, "what is this", 6),
        (5, "Failed to connect", 5),
        (127, "Failed to connect", 3),
        (70, "Failed to connect", 6),
    ],
)
def test_its_words_tell_whether_host_or_peer_is_at_fault(
    exit_status: int, words: str, code: int
) -> None:
    assert TOOLS["cxi"].exit_code_of(exit_status, words) == code
