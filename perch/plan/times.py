"""How long a flow takes, about, and when it has ended for certain."""

from __future__ import annotations

import math
from collections.abc import Iterable

from perch.errors import ExitCode, PerchError
from perch.model.record import Number, Scope
from perch.model.suite import Carrier, SuiteTest
from perch.plan.counted import table
from perch.tools.command import Command, Cost

DAY_S = 86400

#: The longest time that the engine takes (JOB_TIME_MAX, engine/src/job/members.h).
LONGEST_S = 365 * DAY_S

#: Seconds without progress after which the engine gives up.
NO_PROGRESS_S = 30

#: Starting a program, connecting and the two meetings, on a laptop with two cores.
START_S = 0.5

#: A flow may take so much longer than it should on a busy machine.
PATIENCE = 3


def whole(value: float) -> Number:
    """2.0 is written as 2."""
    return int(value) if value == int(value) else value


def usual(carrier: Carrier, scope: Scope, slowdown: Number) -> Cost:
    """A message over loopback TCP on a laptop with two cores: 25 us there and back, and 2 GB/s.

    Over a software RDMA device there (rdma_rxe, measured with perftest): 50 us and 60 MB/s. Over
    the slowest RoCE link in use, 10 Gb/s, a message takes no longer than over TCP.
    """
    wait, bytes_s = 2.5e-5, 2e9
    if carrier == "rdma":
        wait, bytes_s = (2.5e-5, 1e9) if scope == "hardware" else (5e-5, 6e7)
    return lambda size: (wait + size / bytes_s) * slowdown


def worst(slowdown: Number) -> Cost:
    """Where two pollers share one core: the slice of 3 ms of the kernel's scheduler a message."""
    return lambda size: (3e-3 + size / 1e8) * slowdown


def lag_s(drivers: Iterable[str]) -> float:
    """Seconds that the agent waits after each flow for the counters of devices with these drivers.

    Those of others are there within a few milliseconds.
    """
    known = {name: ms for one in table() for name, ms in one.get("lag_ms_of", {}).items()}
    return max((known.get(driver, 0) / 1000 for driver in drivers), default=0)


def estimate_s(
    command: Command, test: SuiteTest, scope: Scope, slowdown: Number, devices: int, lag: float
) -> Number:
    """Seconds, to a tenth. Pairs of devices work side by side on cards; software shares cores.

    lag: seconds until the counters of both ends show the flow. Raises PerchError.
    """
    shared = 1 if scope == "hardware" else devices
    cost = usual(command.carrier(test), scope, slowdown)
    seconds = command.measuring(test, cost, shared) + START_S * slowdown + lag
    if seconds > LONGEST_S:
        what = "a flow would take longer than 365 days, the longest that the engine accepts"
        remedy = "lower perch_slowdown, or measure less"
        raise PerchError(ExitCode.USAGE, what, place=f"test {test.name}", remedy=remedy)
    return whole(math.floor(seconds * 10 + 0.5) / 10)


def deadline_s(
    command: Command, test: SuiteTest, estimate: Number, slowdown: Number, devices: int
) -> int:
    measured = command.measuring(test, worst(slowdown), devices)
    return math.ceil(NO_PROGRESS_S + PATIENCE * max(estimate, measured))
