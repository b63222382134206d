"""Time, as an object, so that a test can have its own."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

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

    def uptime_ns(self) -> int:
        """Since this host booted, asleep or not: /proc/uptime, as the engine reads it."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def boot(self) -> str:
        return boot_id()


def boot_id() -> str:
    """Of this boot of this host; "" where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def date(wall_ns: int) -> str:
    """2026-01-01T00:00:00.000Z."""
    seconds, rest = divmod(wall_ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03d}Z"


def undated(text: str) -> int:
    """Nanoseconds since the epoch, of what `date` has written."""
    at = datetime.datetime.fromisoformat(text[:-1] + "+00:00")
    return round(at.timestamp() * 1000) * 1_000_000


def seconds_text(wall_ns: int) -> str:
    """Seconds since the epoch with six decimals, as text: a float would lose some."""
    return f"{wall_ns // 1_000_000_000}.{wall_ns % 1_000_000_000 // 1000:06d}"
