"""A soak's samples, episodes and plan, on a composed run of two hosts and two hours."""

import shutil
from pathlib import Path

from selftest.edits import (
    Change,
    Edit,
    NothingChangedError,
    drop,
    edit,
    put,
    remove,
    times,
    where,
    without_lines,
)
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault, fault
from selftest.files import Document
from selftest.runs.composed import soak as soak_composed
from tests import soak_lines

SAMPLES = "raw/node2/samples.jsonl"
LINES = "raw/node2/flows.jsonl"
ERRORS = "counters.netdev.eth1.rx_crc_errors"
MIB = 2**20


def later(*changes: Change) -> Change:
    """The changes, of samples of the second hour."""
    return where(lambda sample: sample["number"] > 60, *changes)


def hourly(*changes: Change) -> Change:
    """The changes, of the sample of one hour."""
    return where(lambda sample: sample["number"] == 60, *changes)


def earlier(*changes: Change) -> Change:
    """The changes, of samples of the first hour."""
    return where(lambda sample: sample["number"] < 60, *changes)


def growing(name: str, each: int) -> Change:
    """The server's process has so much more with each sample."""

    def change(sample: Document) -> None:
        for process in sample["processes"]:
            if process["role"] == "serve":
                process[name] += sample["number"] * each

    return change


def restarted(sample: Document) -> None:
    for process in sample["processes"]:
        if process["role"] == "serve":
            process["start"] = str(sample["number"] // 2)


def words_for_bytes(sample: Document) -> None:
    for process in sample["processes"]:
        process["resident_bytes"] = str(process["resident_bytes"])


def no_measurer(sample: Document) -> None:
    kept = [process for process in sample["processes"] if process["role"] != "measurer"]
    sample["processes"] = kept


def sampled(id_: str, word: str, check: str, title: str, *changes: Change) -> Fault:
    """A fault in the samples of one host."""
    return fault(id_, "soaked", word, f"soak/{check} *", title, edit_samples(*changes))


def watched(id_: str, word: str, title: str, *changes: Change) -> Fault:
    """A fault in the memory of processes, in samples of five minutes each."""
    return fault(id_, "watched", word, "soak/memory *", title, edit_samples(*changes))


def edit_samples(*changes: Change) -> Edit:
    """Changes each sample of a host; counters have their names (tests/soak_lines.py)."""

    def plant(root: Path) -> None:
        before = (root / SAMPLES).read_bytes()
        soak_lines.edit_samples(
            root / SAMPLES, lambda sample, _: [change(sample) for change in changes]
        )
        if (root / SAMPLES).read_bytes() == before:
            raise NothingChangedError("the edit of samples changed nothing")

    return plant


def soak(id_: str, check: str, title: str, planted: Edit) -> Fault:
    """A fault in a plan or in what an agent says."""
    return fault(id_, "soaked", INCONCLUSIVE, f"{check} *", title, planted)


def happened(what: str, count: int) -> Edit:
    """So many episodes of a host."""
    return lambda root: soak_lines.happened(root / LINES, what, count)


def composed(*plants: str) -> Edit:
    """Composes the soak again with faults of tests/soak_compose.py."""

    def plant(root: Path) -> None:
        shutil.rmtree(root)
        soak_composed(
            root, "--duration", "7200", *(word for one in plants for word in ("--plant", one))
        )

    return plant


def course(id_: str, word: str, checks: str, title: str, plant: str) -> Fault:
    """A fault in the course of a soak."""
    return fault(id_, "soaked", word, f"soak/{checks}", title, composed(plant))


FAULTS = (
    fault(
        "soak-unsampled",
        "soaked",
        INCONCLUSIVE,
        "soak/samples *",
        "a host without samples",
        remove(SAMPLES),
    ),
    fault(
        "soak-unsampled-while",
        "soaked",
        INCONCLUSIVE,
        "soak/samples *",
        "a host without samples for five minutes",
        without_lines(SAMPLES, 10, 14),
    ),
    sampled(
        "soak-booted",
        FAIL,
        "reboots soak/samples",
        "a host that restarted, without a second start of its agent",
        later(put("boot_id", "another")),
    ),
    fault(
        "soak-other-boot",
        "soaked",
        INCONCLUSIVE,
        "soak/samples",
        "an environment.json of another boot than the first start of the agent",
        edit("raw/node2/environment.json", put("boot_id", "another")),
    ),
    sampled(
        "soak-other-samples",
        INCONCLUSIVE,
        "samples",
        "the samples of another machine, all of a boot in which the agent did not start",
        put("boot_id", "another"),
    ),
    sampled(
        "soak-flap",
        FAIL,
        "links",
        "a link that went down and came back",
        later(put("links.eth1.carrier_changes", "4")),
    ),
    sampled(
        "soak-port",
        FAIL,
        "links",
        "an RDMA port that is down while its interface is up",
        later(put("links.rxe0/1.state", "1: DOWN")),
    ),
    watched(
        "soak-leak",
        FAIL,
        "a server that grows by 60 MB an hour",
        growing("resident_bytes", 5 * MIB),
    ),
    sampled(
        "soak-handles",
        FAIL,
        "handles",
        "a server that keeps a handle each minute",
        growing("handles", 1),
    ),
    soak(
        "soak-unplanned", "plan", "a soak whose plan has no soak", edit("plan.json", drop("soak"))
    ),
    soak(
        "soak-unplanned-gone",
        "plan",
        "a soak without the key soak in its plan",
        edit("plan.json", drop("soak")),
    ),
    soak(
        "soak-unplanned-time",
        "plan",
        "a soak for half of the time that its commands were given",
        edit("plan.json", times(1 / 2, "soak.duration_s")),
    ),
    sampled(
        "soak-link-away",
        FAIL,
        "links",
        "a link that a sample lacks, and that had changed twenty times after it",
        hourly(drop("links.eth1")),
        later(put("links.eth1.carrier_changes", "22")),
    ),
    sampled(
        "soak-link-gone",
        FAIL,
        "links",
        "a link that disappeared",
        later(drop("links.eth1")),
    ),
    sampled(
        "soak-link-down",
        FAIL,
        "links",
        "a link that is down, and counted no change",
        later(put("links.eth1.operstate", "down")),
    ),
    sampled(
        "soak-counter-away",
        INCONCLUSIVE,
        "samples",
        "an error counter that is no longer read",
        later(drop(ERRORS)),
    ),
    sampled(
        "soak-counter-after",
        INCONCLUSIVE,
        "counters/errors",
        "a device that samples lack, and whose counter of errors was reset meanwhile",
        earlier(put(ERRORS, "9")),
        hourly(put("counters.netdev", {})),
    ),
    sampled(
        "soak-samples-dropped",
        INCONCLUSIVE,
        "samples",
        "samples that fitted neither on disk nor in memory",
        later(put("dropped", 7)),
    ),
    sampled(
        "soak-sample-links",
        INCONCLUSIVE,
        "samples",
        "a sample whose links are a list",
        hourly(put("links", [1])),
    ),
    sampled(
        "soak-sample-counters",
        INCONCLUSIVE,
        "samples",
        "a sample with another number of values than its layout has names",
        hourly(put("values", "12")),
    ),
    sampled(
        "soak-sample-processes",
        INCONCLUSIVE,
        "samples",
        "samples whose processes have words as numbers",
        words_for_bytes,
    ),
    sampled(
        "soak-sample-temperatures",
        INCONCLUSIVE,
        "samples",
        "a sample whose temperatures are words",
        hourly(put("temperatures", ["hot"])),
    ),
    watched(
        "soak-processes-none", INCONCLUSIVE, "samples without any process", put("processes", [])
    ),
    watched(
        "soak-measurer-none",
        INCONCLUSIVE,
        "samples without the process that has the connection",
        no_measurer,
    ),
    soak(
        "soak-restarts",
        "soak/samples",
        "forty restarts of a host's clients that left no gap",
        happened("client_restarted", 40),
    ),
    soak(
        "soak-serve-restarts",
        "soak/samples",
        "a server that restarted, without a gap",
        happened("serve_restarted", 1),
    ),
    watched(
        "soak-leak-restarted",
        FAIL,
        "a server that grows over restarts, each within ten minutes",
        growing("resident_bytes", 5 * MIB),
        restarted,
    ),
    course("soak-gap", FAIL, "gaps *", "a connection that was lost for a minute", "gap@600-660"),
    course(
        "soak-interval",
        PASS,
        "interval/load",
        "an interval at a third of the rate",
        "step=-0.67@600-660",
    ),
    course(
        "soak-latency",
        PASS,
        "latency/latency",
        "an interval with a thousand times the latency",
        "slow=1000@600-660:4",
    ),
    course("soak-drift", FAIL, "drift/load *", "a rate that sinks slowly", "drift=-0.6:0"),
    course("soak-clock", PASS, "clock", "a clock that was set by five seconds", "clock=5@600"),
)
