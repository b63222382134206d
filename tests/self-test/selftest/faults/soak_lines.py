"""A soak's intervals, stalls and sums, on a composed run of two hosts and two hours."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from selftest.edits import (
    Change,
    Edit,
    add,
    doubled_line,
    edit,
    fields,
    first_lines,
    folder,
    put,
    remove,
    rewrite,
    times,
    where,
    without_lines,
)
from selftest.fault import FAIL, INCONCLUSIVE, Fault, fault
from selftest.files import Document
from selftest.runs import noise
from tests import soak_lines

LOAD = "raw/node1/flows/load/node1/node2/0/1/client"
VERIFY = "raw/node1/flows/verify/node1/node2/0/1/client"
LATENCY = "raw/node1/flows/latency/node1/node2/0/1/client"
RATES = ("bandwidth.bytes", "bandwidth.gbit_s", "bandwidth.messages_per_s")


def interval(begin: float, end: float = float("inf")) -> Callable[[Document], bool]:
    """Whether a line is an interval that begins between these seconds."""
    return lambda one: one["kind"] == "interval" and begin < one["start_s"] < end


def is_whole(one: Document) -> bool:
    """Whether a line is that of the whole soak."""
    return bool(one.get("soak"))


def one_interval(*changes: Change, path: str = LOAD) -> Edit:
    """Changes the interval that begins after ten minutes."""
    return edit(f"{path}.soak", where(interval(600, 700), *changes))


def connection(*changes: Change) -> Edit:
    """Changes the only connection."""
    return edit(f"{LOAD}.soak", where(lambda one: one["kind"] == "connection", *changes))


def whole(*changes: Change, path: str = LOAD) -> tuple[Edit, Edit]:
    """Changes the whole, in its file and as it was printed."""
    flow = path.partition("/flows/")[2].removesuffix("/client")
    return (
        edit(f"{path}.soak", where(is_whole, *changes)),
        lambda root: soak_lines.prints(root, flow, *changes),
    )


def fewer(count: int) -> Change:
    """So many round trips less, from around the median; all figures of the line are of the rest."""

    def change(line: Document) -> None:
        ordered = np.sort(noise.samples_of(line))
        first = (len(ordered) - count) // 2
        kept = noise.latency(np.delete(ordered, slice(first, first + count)))
        line |= {name: kept[name] for name in ("latency_us", "histogram")}

    return change


def failed(code: int, message: str) -> Change:
    return fields("", status="error", error={"code": code, "message": message})


def stalls(count: int, total_s: float) -> tuple[Edit, Edit, Edit]:
    """Stalls of one interval, and in the whole."""
    said = {"count": count, "total_s": total_s}
    return (
        one_interval(put("stalls", said)),
        *whole(add(count, "soak.stalls"), add(total_s, "soak.stall_s")),
    )


def short_stalls(lines: list[Document]) -> list[Document]:
    """64 stalls of 30 ms, each with its line, before the interval of theirs."""
    found = []
    for line in lines:
        if interval(600, 700)(line):
            common = {name: line[name] for name in ("schema", "connection_number")}
            common |= {"kind": "stall", "messages": 3, "started": None, "ended": None}
            for number in range(64):
                start = line["start_s"] + 0.1 * number
                found.append({**common, "start_s": start, "end_s": start + 0.03})
        found.append(line)
    return found


def overlapping(lines: list[Document]) -> list[Document]:
    """One interval begins half of a minute before the one before it ended."""
    for line in lines:
        if interval(600, 700)(line):
            line["start_s"] -= 30
    return lines


def copied(lines: list[Document]) -> list[Document]:
    """All intervals have the figures of the first, at times of their own; the whole sums them."""
    own, total = [line for line in lines if line["kind"] == "interval"], lines[-1]
    names = ("messages", "bytes", "bandwidth", "cpu", "path", "stalls", "memory", "handles")
    for line in own[1:]:
        line |= {name: own[0][name] for name in names}
    moved, passed_s = own[0]["bytes"] * len(own), total["elapsed_s"]
    rates = {"gbit_s": moved * 8e-9 / passed_s, "bytes": moved}
    rates["messages_per_s"] = own[0]["messages"] * len(own) / passed_s
    windows = {name: own[0]["bandwidth"][name] for name in ("peak_gbit_s", "min_interval_gbit_s")}
    total["bandwidth"] |= rates | windows
    total["path"] |= {"claimed_bytes": moved, "client_sent_bytes": moved}
    for side in ("client", "server"):
        total["cpu"][f"{side}_s_per_gb"] = total["cpu"][f"{side}_s"] / moved * 1e9
    return lines


def printed_again(root: Path) -> None:
    """What the client printed is the last line of its file."""
    last = soak_lines.read(root / f"{LOAD}.soak")[-1]
    soak_lines.prints(root, "load/node1/node2/0/1", lambda line: line.update(last))


def pace(line: Document) -> None:
    rates = {
        "bytes": 60000 * 65536,
        "gbit_s": 0.524,
        "min_interval_gbit_s": 0.5,
        "peak_gbit_s": 0.6,
    }
    line |= {"messages": 60000, "bytes": 60000 * 65536}
    line["bandwidth"] |= rates


def soak(id_: str, word: str, check: str, title: str, *edits: Edit) -> Fault:
    return fault(id_, "soaked", word, f"soak/{check}", title, *edits)


FAULTS = (
    soak(
        "soak-gone",
        INCONCLUSIVE,
        "coverage/load *",
        "a soak's flow without the file of its intervals",
        remove(f"{LOAD}.soak"),
    ),
    soak(
        "soak-hole",
        INCONCLUSIVE,
        "coverage/load *",
        "an interval that was taken out",
        without_lines(f"{LOAD}.soak", 10, 10),
    ),
    soak(
        "soak-twice",
        INCONCLUSIVE,
        "coverage/load *",
        "an interval that occurs twice",
        doubled_line(f"{LOAD}.soak", 10),
    ),
    soak(
        "soak-overlapping",
        INCONCLUSIVE,
        "coverage/load *",
        "an interval that overlaps the one before it",
        rewrite(f"{LOAD}.soak", overlapping),
    ),
    soak(
        "soak-short",
        INCONCLUSIVE,
        "coverage/load *",
        "a soak that ended after a quarter of its time",
        first_lines(f"{LOAD}.soak", 9),
    ),
    soak(
        "soak-edited",
        INCONCLUSIVE,
        "lines *",
        "an interval whose figures were made ten times as large",
        one_interval(times(10, "messages", "bytes", *RATES)),
    ),
    soak(
        "soak-foreign",
        INCONCLUSIVE,
        "coverage/load *",
        "the intervals of another job",
        edit(f"{LOAD}.soak", where(lambda one: one["kind"] == "soak", put("job.op", "write"))),
    ),
    soak(
        "soak-stopped",
        INCONCLUSIVE,
        "state *",
        "a whole soak whose summary reports a stop",
        *whole(put("soak.stopped", True)),
    ),
    soak(
        "soak-dropped",
        INCONCLUSIVE,
        "lines *",
        "a soak whose disk was full",
        *whole(put("soak.dropped_lines", 3)),
    ),
    soak(
        "soak-sum",
        INCONCLUSIVE,
        "sum *",
        "a summary of a soak that exceeds its intervals",
        *whole(times(2, *RATES)),
    ),
    soak(
        "soak-corrupt",
        FAIL,
        "integrity *",
        "an interval in which a byte arrived corrupted, though the whole says none",
        one_interval(put("integrity.bad_bytes", 1), path=VERIFY),
    ),
    soak(
        "soak-unchecked",
        INCONCLUSIVE,
        "integrity soak/sum",
        "an interval of a verified flow that checked no byte",
        one_interval(put("integrity.checked_bytes", 0), path=VERIFY),
    ),
    soak(
        "soak-hardly-checked",
        INCONCLUSIVE,
        "integrity",
        "a verified flow that checked a byte of each interval, and its whole the sum",
        edit(f"{VERIFY}.soak", where(interval(-1), put("integrity.checked_bytes", 1))),
        *whole(put("integrity.checked_bytes", 120), path=VERIFY),
    ),
    soak(
        "soak-messages",
        INCONCLUSIVE,
        "lines",
        "an interval with half of the messages for the same bytes",
        one_interval(lambda line: line.update(messages=line["messages"] // 2)),
    ),
    soak(
        "soak-slower",
        FAIL,
        "change/load *",
        "a rate that is halved in the middle",
        edit(
            f"{LOAD}.soak",
            where(
                interval(3600),
                times(1 / 2, "messages", "bytes", "bandwidth.min_interval_gbit_s", *RATES),
            ),
        ),
    ),
    soak(
        "soak-stall-among-many",
        FAIL,
        "stalls soak/sum",
        "a stall of five seconds without a line, after 64 of 30 ms with lines",
        rewrite(f"{LOAD}.soak", short_stalls),
        *stalls(65, 6.92),
    ),
    soak(
        "soak-stalls-unlined",
        INCONCLUSIVE,
        "stalls soak/sum",
        "many seconds of stalls without a line",
        *stalls(70, 30),
    ),
    soak(
        "soak-stall-removed",
        INCONCLUSIVE,
        "sum",
        "an interval whose stall has no line",
        *stalls(1, 0.03),
    ),
    soak(
        "soak-silent",
        FAIL,
        "stalls",
        "an interval of a minute without one completion, left out of the whole",
        edit(
            f"{LATENCY}.soak",
            where(interval(600, 660), fields("", messages=0, bytes=0, latency_us=None)),
        ),
        *whole(fewer(12000), path=LATENCY),
    ),
    soak(
        "soak-failed",
        INCONCLUSIVE,
        "lines *",
        "an interval that failed, with no gap behind it",
        one_interval(failed(4, "lost")),
    ),
    soak(
        "soak-failed-all",
        INCONCLUSIVE,
        "coverage/load *",
        "a flow whose intervals all failed",
        edit(f"{LOAD}.soak", where(interval(-1), failed(4, "lost"))),
    ),
    soak(
        "soak-corrupt-error",
        FAIL,
        "integrity *",
        "an interval whose error says that bytes arrived corrupted, and no number of them",
        one_interval(failed(5, "corrupted")),
    ),
    soak(
        "soak-brief",
        INCONCLUSIVE,
        "lines *",
        "an interval that measured a tenth of its minute",
        one_interval(times(1 / 10, "elapsed_s", "messages", "bytes", "bandwidth.bytes")),
    ),
    soak(
        "soak-unsummed",
        INCONCLUSIVE,
        "lines *",
        "a summary of a soak without its intervals",
        *whole(put("soak", None)),
    ),
    soak(
        "soak-reconnected",
        INCONCLUSIVE,
        "lines *",
        "a new connection without a gap after the one before it",
        edit(f"{LOAD}.soak", where(interval(3600), put("connection_number", 2))),
    ),
    soak(
        "soak-elsewhere",
        INCONCLUSIVE,
        "lines",
        "a connection to another host than the whole names",
        connection(put("server.host", "gamma"), put("server.address", "192.0.2.77")),
    ),
    soak(
        "soak-other-client",
        INCONCLUSIVE,
        "lines",
        "a connection in a boot in which its client's agent did not start",
        connection(put("boot_id", "another")),
    ),
    soak(
        "soak-other-job",
        INCONCLUSIVE,
        "lines",
        "a connection whose payload was verified, in a flow without a check",
        connection(put("params.verify", True)),
    ),
    soak(
        "soak-copied",
        INCONCLUSIVE,
        "lines",
        "intervals that all have the figures of the first, and a whole that sums them",
        rewrite(f"{LOAD}.soak", copied),
        printed_again,
    ),
    soak(
        "soak-text",
        INCONCLUSIVE,
        "lines *",
        "a soak whose number is a text",
        one_interval(put("integrity.bad_bytes", "8"), path=VERIFY),
    ),
    soak(
        "soak-folder",
        INCONCLUSIVE,
        "coverage/load *",
        "a folder instead of a soak's file",
        folder(f"{LOAD}.soak"),
    ),
    soak(
        "soak-faster",
        FAIL,
        "rate *",
        "an interval above its pace, although those before it kept theirs",
        edit(f"{LOAD}.soak", where(interval(600, 660), pace)),
    ),
)
