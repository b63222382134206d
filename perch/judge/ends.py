"""The times that the two ends of a flow tell, compared with each other."""

from __future__ import annotations

from collections.abc import Sequence

from perch.model.figures import rounded
from perch.model.raw import End, Reading
from perch.model.record import Number, Part


def _after(a: float | None, b: float | None) -> float:
    """Seconds by which `a` is later than `b`; 0 where it is not, or one of them is missing."""
    return max(a - b, 0) if a is not None and b is not None else 0


def _read_at(reading: Reading | None) -> float | None:
    return reading.time if reading else None


def skew_s(client: End | None, server: End | None, parts: Sequence[Part]) -> Number | None:
    """Seconds by which the server's clock is ahead of the client's; below 0, behind.

    As far as the order of events shows it. The client begins after both ends have met and ends
    before they meet again (roles/agent): the other order comes from the clocks.
    The same holds of the readings of counters. None where an end gave no times.
    """
    if client is None or server is None:
        return None
    if client.started is None or client.ended is None:
        return None
    if server.started is None or server.ended is None:
        return None
    shown: list[float] = [0]
    # the hosts of a soak do not meet: each begins and ends by itself
    if not any(part.soak is not None for part in parts):
        shown.append(_after(server.begun, client.begun))
        shown.append(-_after(client.over, server.over))
        if client.counters and server.counters:
            read, other = client.counters, server.counters
            shown.append(_after(_read_at(other.before), _read_at(read.before)))
            shown.append(-_after(_read_at(read.after), _read_at(other.after)))
    return rounded(max(shown, key=abs))
