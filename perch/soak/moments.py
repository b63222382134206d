"""Walls of hosts: how far they may be apart, and moments as text."""

from __future__ import annotations

import math
from datetime import UTC, datetime

#: Seconds that walls of hosts may differ by: far more than where a time server keeps them, as
#: RFC 5905 steps one at 128 ms.
APART_MOST = 60

#: Seconds since 1970: a date has four digits of a year.
LAST_MOMENT = 10**11


def microseconds(seconds: float) -> float:
    """Of a time since the soak began: finer than any clock of a host tells it to another."""
    return round(seconds, 6)


def dated(seconds: float) -> str:
    """RFC 3339 with milliseconds."""
    ms = math.floor(seconds * 1000 + 0.5)
    whole = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
