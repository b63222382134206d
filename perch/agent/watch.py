"""Ends an agent whose controller is gone or whose time is over."""

from __future__ import annotations

import asyncio
from pathlib import Path

from perch.agent.clock import Clock

#: Seconds between two looks at the lease, at the most.
LOOK_EVERY = 15.0


def _renewed(lease: Path) -> int:
    try:
        return lease.stat().st_mtime_ns
    except OSError:
        return -1


async def until_abandoned(lease: Path, lease_s: float, limit_s: float, clock: Clock) -> str:
    """Returns when the controller is gone or the plan must be over, with the reason.

    Changes of the file's date count, by the monotonic clock: a wall clock may jump. lease_s: 0
    where only the plan's own length bounds the agent.
    """
    every = min(LOOK_EVERY, lease_s / 4) if lease_s else LOOK_EVERY
    began = seen = clock.monotonic()
    renewed = _renewed(lease)
    while True:
        await asyncio.sleep(every)
        now = clock.monotonic()
        if _renewed(lease) != renewed:
            renewed, seen = _renewed(lease), now
        if lease_s and now - seen > lease_s:
            return (
                f"no word from the controller for more than {lease_s:g} s: it was ended, or the"
                " network to it is down"
            )
        if now - began > limit_s + every:
            return f"the plan should have been over after {limit_s:g} s"
