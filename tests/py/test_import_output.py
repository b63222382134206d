"""Outputs in the text around them: commands, headings, names."""

from __future__ import annotations

import re

import pytest

from perch.imports import commands, faults, names
from perch.imports.cut import Cutter, is_markdown
from perch.imports.documents import Document, read_files
from perch.imports.output import Context, Output, words
from perch.tools.results import UnusableError

IPERF = re.compile("(^|/)iperf( |$)")


def output(*lines: str, context: tuple[str, ...] = ()) -> Output:
    return Output("f", 1, "iperf", context=[Context("command", text) for text in context],
                  lines=list(lines), at=list(range(1, len(lines) + 1)))  # fmt: skip


def is_client(argv: list[str]) -> bool:
    return "-c" in argv


def cut(text: str) -> list[Output]:
    lines = text.split("\n")
    cutter = Cutter("f", markdown=is_markdown(lines))
    cutter.cut(lines)
    return cutter.outputs


# ---- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("ib_send_bw -d mlx5_0 192.0.2.1 # client", ["ib_send_bw", "-d", "mlx5_0", "192.0.2.1"]),
        ("iperf -c 192.0.2.1 > out.txt 2>&1", ["iperf", "-c", "192.0.2.1"]),
        ('ib_send_bw --host="192.0.2.1"', ["ib_send_bw", "--host=192.0.2.1"]),
        ("ib_send_bw $HOST", None),
    ],
)
def test_what_the_shell_would_change_of_a_command_is_not_known(
    text: str, argv: list[str] | None
) -> None:
    assert words(text) == argv


def test_several_commands_are_ambiguous() -> None:
    with pytest.raises(UnusableError, match="nothing shows which of them printed it"):
        output(context=("iperf -c a", "iperf -c b")).command(IPERF, is_client)


def test_the_same_command_twice_and_a_servers_are_one_clients() -> None:
    one = output(context=("iperf -c a", "iperf -c a", "iperf -s", "iperf3 -c b"))
    assert one.command(IPERF, is_client) == ["iperf", "-c", "a"]
    assert one.server_command(IPERF, is_client) == ["iperf", "-s"]


@pytest.mark.parametrize(
    ("text", "fenced", "bare"),
    [
        ("$ ib_send_bw -a 10.0.0.1", False, "ib_send_bw -a 10.0.0.1"),
        ("[root@a ~]# sudo numactl -N 0 -m 0 ib_send_bw 10.0.0.1", False, "ib_send_bw 10.0.0.1"),
        ("user@host:~$ LANG=C taskset -c 0-3 iperf -c b", False, "iperf -c b"),
        ("+ iperf3 -c b", False, "iperf3 -c b"),
        ("iperf3 -c b", False, None),
        ("iperf3 -c b", True, "iperf3 -c b"),
        ("# iperf3 -c b", True, None),
        ("$ ls -l", False, None),
        ("$ numactl " + "-1 " * 1000 + "!", False, None),
    ],
)
def test_a_command_stands_behind_a_prompt_or_in_a_code_block(
    text: str, fenced: bool, bare: str | None
) -> None:
    assert commands.command(text, fenced=fenced) == bare


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("9.23 Gbps (92% of 10G link)", {10.0}),
        ("- **Link rate**: 25 Gb/s", {25.0}),
        ("Link: 100G", {100.0}),
        ("two: 10GbE link and a 25G link", {10.0, 25.0}),
        ("9.23 Gb/s were measured", set()),
        ("Link: 10Gizmos", set()),
    ],
)
def test_prose_states_the_links_rate(text: str, rates: set[float]) -> None:
    assert commands.rates(text) == rates


# ---- cutting -------------------------------------------------------------------------------------


def test_a_table_in_a_code_block_keeps_its_lines_headings_and_command() -> None:
    one, two = cut(
        "# Notes\n## Test\n```\nnumactl -N 0 \\\n  ib_send_bw -q 4 10.0.0.1\n```\n- **MTU**: 1024\n"
        "```\n#bytes  #iterations\n65536   1\n```\n### Again\n```\n#bytes  #iterations\n8  1\n```\n"
    )
    assert (one.line, one.bare, one.fenced, one.at) == (9, True, True, [9, 10])
    assert (one.titles, one.lines[1]) == (["Notes", "Test"], "65536   1")
    assert one.context == [
        Context("command", "ib_send_bw -q 4 10.0.0.1"),
        Context("setting", "- **MTU**: 1024"),
    ]
    # a command holds for all tables below it
    assert two.titles == ["Notes", "Test", "Again"] and two.context == one.context


def test_in_a_log_a_command_speaks_of_the_output_right_below_it() -> None:
    text = "Client connecting to b, TCP port 5001\n[  1] 0.0-1.0 sec\n"
    first, second = cut(f"$ iperf -c b\n{text}{'-' * 60}\n{text}")
    assert [context.text for context in first.context] == ["iperf -c b"]
    assert second.context == [] and len(first.lines) == 2  # a rule of iperf's is the next one's


def test_carriage_returns_and_bytes_that_are_no_text_do_no_harm() -> None:
    (read,) = read_files([("f", b"Client connecting to \xff, TCP port 1\r\n\x00\r\n")])
    assert read.documents[0].output.lines[0] == "Client connecting to \ufffd, TCP port 1"
    assert not read.documents[0].results[0].is_ok


@pytest.mark.parametrize(
    "text",
    ["1" * 100000, "- " + "a" * 100000, "{" * 100000, "+" * 100000, " " * 100000 + "#bytes"],
)
def test_a_hostile_line_costs_little(text: str) -> None:
    assert len(cut(f"```\n{text}\n```\n{text}\n")) <= 2


# ---- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "titles", "test", "title"),
    [
        ("a/n.md", ["Notes", "Test: ib_send_bw", "Test Results"], "ib_send_bw", "ib_send_bw"),
        ("a/n.md", ["Notes", "Results"], "n.md", "n.md"),
        ("a/.out put.txt", [], "out-put.txt", ".out put.txt"),
        ("a.md", ["N", "Tuned", "4 QPs, (a)"], "4-QPs-a", "Tuned: 4 QPs, (a)"),
    ],
)
def test_the_lowest_heading_that_names_something_names_the_test(
    file: str, titles: list[str], test: str, title: str
) -> None:
    document = Document(1, Output(file, 1, "iperf", titles=titles), None, False, [])
    assert (names.test_name(document), names.title(document)) == (test, title)


def test_a_servers_output_is_dropped_beside_its_clients_and_a_fault_alone() -> None:
    server = b"Server listening on TCP port 5001\n[  1] 0.0-1.0 sec\n"
    client = b"Client connecting to b, TCP port 5001\n[  1] 0.0-1.0 sec\n"
    both, alone = read_files([("a", server + client), ("b", server)])
    assert [document.is_server for document in both.documents] == [False]
    assert [document.is_server for document in alone.documents] == [True]
    (said,) = faults.messages("b", alone.documents)
    assert said.startswith("b:1: it is the server's output")


def test_two_results_of_one_size_are_no_result() -> None:
    row = " 64 5 9 9 9 9"
    text = (
        "                    Send Latency Test\n"
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
        f"{row}\n{row}\n{'-' * 80}\n"
    )
    (read,) = read_files([("f", text.encode())])
    results = read.documents[0].results
    assert [result.is_ok for result in results] == [True, True, False]
    error = results[-1].part.error
    assert error is not None and "two results of one size" in error.message
