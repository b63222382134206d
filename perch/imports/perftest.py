"""Outputs of perftest. Notes often keep only the table.

The command and settings ("- **MTU**: 1024") above such a table then describe the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from perch.imports.output import Argv, Output, Result, placed, refused
from perch.tools import perftest
from perch.tools.perftest_text import SETTINGS
from perch.tools.results import UnusableError, shown
from perch.tools.text import number, option_value

PROGRAMS = re.compile(r"(^|/)(ib_(send|write|read|atomic)_(bw|lat)|raw_ethernet_(bw|lat))( |$)")

#: Ends the table of a code block, as perftest does.
RULE = "-" * 40

# options whose next word is their value (perftest_parameters.c, long_options and the string of
# short ones)
_SHORT_VALUE = re.compile("-[dipmcSxlnsoqtuDfwyQrgPTIAABCEGJjKkVvuLMO]")
_LONG_FLAG = re.compile(
    "--(all|bidirectional|report_gbits|report-gbits|CPU-freq|events|rdma_cm|no-peak|noPeak|dualport"
    "|odp|out_json|run_infinitely|use_hugepages|report-cycles|report-histogra?m|report-unsorted"
    "|disable_pcie_relaxed|use-srq|use_old_post_send|ipv6|force-link.*|perform_warm_up|cpu_util"
    "|report-both)"
)
_PROGRAM = re.compile("(ib|raw_ethernet)_(?:(?P<op>send|write|read|atomic)_)?(?P<kind>bw|lat)")
_SETTING = re.compile(
    r" *[-*+] +(?:\*\*)?(?P<name>[A-Za-z_ ]+)(?:\*\*)?:(?:\*\*)? *(?P<value>.*[^ ]) *"
)
_OPS = {"send": "Send", "write": "RDMA_Write", "read": "RDMA_Read"}
_KINDS = {"bw": "BW", "lat": "Latency"}

#: A command's options by the names of perftest's text. A queue pair is RC without -c.
_OPTIONS = (
    ("Device", ("-d", "--ib-dev"), None),
    ("Number of qps", ("-q", "--qp"), None),
    ("Connection type", ("-c", "--connection"), "RC"),
    ("GID index", ("-x", "--gid-index"), None),
    ("TX depth", ("-t", "--tx-depth"), None),
)
_BOTH_WAYS = ("-b", "--bidirectional")
_GBITS = "--report_gbits"


def _takes_value(word: str) -> bool:
    if word.startswith("--"):
        return "=" not in word and not _LONG_FLAG.fullmatch(word)
    return _SHORT_VALUE.fullmatch(word) is not None


def is_client(argv: Argv) -> bool:
    """A client names its server, the last word that no option takes."""
    return len(argv) > 1 and not argv[-1].startswith("-") and not _takes_value(argv[-2])


# ---- a table by itself ---------------------------------------------------------------------------


def _title(argv: Argv) -> str:
    program = argv[0].rpartition("/")[2]
    found = _PROGRAM.fullmatch(program)
    if found is None:
        raise UnusableError(f"its command is {shown(program)}, which Perch cannot read")
    op = found["op"] or "send"
    if op == "atomic":
        raise UnusableError("its command does not name the atomic operation")
    both = " Bidirectional" if any(word in _BOTH_WAYS for word in argv) else ""
    return f"                    {_OPS[op]}{both} {_KINDS[found['kind']]} Test"


def _settings(output: Output) -> Iterator[str]:
    """`- **Number of QPs**: 4` as perftest prints it: ` Number of qps : 4`."""
    names = {name.lower(): name for name in SETTINGS}
    for context in output.context:
        found = _SETTING.fullmatch(context.text) if context.kind == "setting" else None
        name = names.get(found["name"].lower()) if found else None
        if found and name:
            yield f" {name} : {found['value'].replace('`', '')}"


def _asked(argv: Argv) -> Iterator[str]:
    for name, options, default in _OPTIONS:
        value = option_value(argv, options) or default
        if value is not None:
            yield f" {name} : {value}"


def _whole(output: Output, argv: Argv | None) -> Output:
    """The output as perftest would have printed it; settings come before the command's options."""
    if not output.bare:
        return output
    if argv is None:
        raise UnusableError("cannot tell which test printed this table: it has no command above it")
    above = [_title(argv), *_settings(output), *_asked(argv)]
    below = [RULE] if output.fenced else []
    return replace(
        output,
        lines=[*above, *output.lines, *below],
        at=[output.line] * len(above) + output.at + [output.at[-1]] * len(below),
    )


# ---- additions from the command ------------------------------------------------------------------


def _without_command(result: Result) -> Result:
    """Clears the params that only a command would state.

    A bidirectional send test counts received data only with -D; a peak shows that -D was not used.
    """
    part, params = result.part, result.part.params
    if not result.is_ok or params is None:
        return result
    is_sum = params.bidirectional and part.op == "send" and part.kind == "bandwidth"
    if is_sum and part.bandwidth and part.bandwidth.peak_gbit_s is None:
        return refused(
            "a bidirectional send test needs its command: its iterations may count one way or both",
            result.line,
        )
    params.sl = params.traffic_class = params.warmup = None
    params.memory = params.verify = params.clock = None
    return result


def _with_command(result: Result, argv: Argv) -> Result:
    """Text and command must belong to one run. Only host memory is verified."""
    part, params = result.part, result.part.params
    if not result.is_ok or params is None or part.client is None or part.server is None:
        return result
    size, device = number(option_value(argv, ("-s", "--size"))), part.client.device
    if size is not None and size != params.size_bytes:
        why = f"its row has {params.size_bytes} bytes, but its command asks for {size}"
        return refused(why, result.line)
    asked = option_value(argv, ("-d", "--ib-dev"))
    if asked is not None and device is not None and asked != device:
        why = f"its device is {device}, but its command asks for {asked}"
        return refused(why, result.line)
    part.server.address = part.server.address or argv[-1]
    if any(word.startswith(("--use-", "--use_")) for word in argv):
        params.memory = None
    return result


# ---- reading -------------------------------------------------------------------------------------


def _json(output: Output, argv: Argv) -> list[Result]:
    """The document has no unit: it is the one that message rate x size fits."""
    if _GBITS in argv:
        return placed(output, perftest.found(output.lines, [], argv, []))
    units = [
        placed(output, perftest.found(output.lines, [], words, []))
        for words in ([*argv, _GBITS], argv)
    ]
    fitting = [results for results in units if all(result.is_ok for result in results)]
    if not fitting:
        return units[-1]
    if len(fitting) == 1 or fitting[0][0].part.kind == "latency":
        return fitting[0]
    why = "its message rate is missing, or fits both MiB/s and Gb/s"
    return [refused(f"its unit is unknown: {why}", output.line)]


def read(output: Output) -> tuple[list[Result], Argv | None]:
    """The results of an output, and its client's command. Raises UnusableError."""
    argv = output.command(PROGRAMS, is_client)
    if any(line.lstrip(" \t").startswith("{") for line in output.lines):
        results = _json(output, argv or [])
    else:
        whole = _whole(output, argv)
        server_argv = output.server_command(PROGRAMS, is_client) or []
        results = placed(whole, perftest.found(whole.lines, [], argv or [], server_argv))
    if argv is None:
        return [_without_command(result) for result in results], None
    return [_with_command(result, argv) for result in results], argv
