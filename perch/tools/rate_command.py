"""The engine's message rates (perch rate). What it would refuse, `perch check` says."""

from __future__ import annotations

from collections.abc import Iterator

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import SuiteTest
from perch.tools import perch_command
from perch.tools.command import Command, Cost, Ends, Template, Want, count, duration_s
from perch.tools.perch_params import (
    device_wants,
    inline_want,
    lane_wants,
    memory_wants,
    place_wants,
    warmup_s,
    warmup_wants,
)

BACKENDS = ("verbs", "ofi", "cxi", "tcp")

#: The engine's defaults (engine/src/cli/options.h, engine/src/job/members.c): seconds, messages
#: outstanding on each queue pair, of a list, and for a completion.
DURATION_S, OUTSTANDING, BATCH, MODERATION = 2.0, 512, 32, 64

#: What a message costs that does not wait for the one before it, of what a lone one waits
#: (perch.tools.transfer_command.IN_A_BATCH).
OF_MANY = 0.05


def _refusals(test: SuiteTest) -> Iterator[str]:
    """What plans do not know of."""
    if test.backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        yield f"backend {test.backend} has no message rate; these have: {known}"
    if test.get("devices") is not None and test.provider == "shm":
        yield "provider shm has no devices"


def _template(test: SuiteTest, devices: int) -> Template:
    options = perch_command.options(test.params)
    return perch_command.command(test, options, perch_command.device_words(test))


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    threads = test.get("threads", 1)
    iterations, asked = test.get("iterations"), duration_s(test)
    total = 0.0
    for size in units.sizes(test.params["size"]):
        each = (OF_MANY * cost(1) + cost(size) - cost(1)) * threads
        measured = each * iterations if iterations else (asked or DURATION_S)
        total += warmup_s(test, each) + measured
    return total


def _lasts(test: SuiteTest) -> float | None:
    """Seconds, unless messages are counted."""
    return None if test.get("iterations") is not None else duration_s(test) or DURATION_S


def _queue_wants(test: SuiteTest) -> Iterator[Want]:
    outstanding = count(test, "outstanding", OUTSTANDING) or OUTSTANDING
    batch = count(test, "batch", min(BATCH, outstanding)) or 1
    whole = max(outstanding - outstanding % batch, 1)
    yield Want("threads", count(test, "threads", 1))
    yield Want("queue_pairs", count(test, "queue_pairs", 1))
    yield Want("outstanding", outstanding)
    yield Want("batch", batch)
    if test.backend == "verbs":
        yield Want("cq_moderation", count(test, "cq_moderation", min(MODERATION, whole)))


def _wants(test: SuiteTest, ends: Ends, expect: Expect) -> Iterator[Want]:
    for name in ("backend", "provider", "op", "kind"):
        yield Want(name, getattr(test, name))
    yield Want("definition", "initiator_completion")
    yield Want("completion", test.get("completion", "busy"))
    yield Want("verify", False)
    yield Want("bidirectional", False, True)
    yield Want("duration_s", _lasts(test))
    yield Want("iterations", count(test, "iterations"))
    yield from warmup_wants(test)
    yield Want("clock", test.get("clock", "monotonic"), test.get("clock") is None)
    yield from _queue_wants(test)
    yield from memory_wants(test)
    yield from place_wants(test)
    yield from lane_wants(test, ends)
    if (
        test.backend == "verbs" and count(test, "inline") is not None
    ):  # else as much as its messages
        yield inline_want(test)
    yield from device_wants(test, ends)


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    wants=_wants,
    lasts=_lasts,
    carrier=perch_command.carrier,
    lacks=perch_command.lacks,
    is_engine=True,
    by_rail=perch_command.COMMAND.by_rail,
)
