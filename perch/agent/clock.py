"""Time, as an object, so that a test can have its own."""

from __future__ import annotations

import time

#: Seconds from SIGTERM to SIGKILL: perch closes its connections within its 2 s of farewell.
KILL_AFTER = 5.0


class Clock:
    """Durations are of the monotonic clock; the wall clock may jump, and only dates results."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        return time.time_ns()

    def monotonic(self) -> float:
        return self.monotonic_ns() / 1e9


def date(wall_ns: int) -> str:
    """2026-01-01T00:00:00.000Z."""
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03d}Z"


def seconds_text(wall_ns: int) -> str:
    """Seconds since the epoch with six decimals, as text: a float would lose some."""
    return f"{wall_ns // 1_000_000_000}.{wall_ns % 1_000_000_000 // 1000:06d}"
