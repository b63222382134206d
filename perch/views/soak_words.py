"""A soak's kinds of anomalies, the gravest first, and its times in words."""

from __future__ import annotations

import math
from typing import Any

from perch.model.figures import is_finite, rounded
from perch.views import words

#: Kind, and what one and several are called.
KINDS = {
    "corrupt": ("corrupted payload", "corrupted payloads"),
    "hole": ("hole", "holes"),
    "overlap": ("overlap", "overlaps"),
    "length": ("wrong length", "wrong lengths"),
    "foreign": ("foreign line", "foreign lines"),
    "damaged": ("damaged line", "damaged lines"),
    "sum": ("sum that differs", "sums that differ"),
    "dropped": ("dropped line", "dropped lines"),
    "host": ("host without samples", "hosts without samples"),
    "gap": ("gap", "gaps"),
    "reboot": ("reboot", "reboots"),
    "link": ("link event", "link events"),
    "stall": ("stall", "stalls"),
    "low": ("low interval", "low intervals"),
    "slow": ("slow interval", "slow intervals"),
    "drift": ("drift", "drifts"),
    "change": ("change of level", "changes of level"),
    "rate": ("rate not kept", "rates not kept"),
    "leak": ("process that grows", "processes that grow"),
    "handles": ("process that opens ever more", "processes that open ever more"),
    "counter": ("counter that moved", "counters that moved"),
    "clock": ("clock step", "clock steps"),
}

MINUTE, HOUR, DAY = 60, 3600, 86400


def _and(number: int, unit: str, rest: int, rest_unit: str, digits: int = 2) -> str:
    return f"{number} {unit}" + (f" {rest:0{digits}} {rest_unit}" if rest else "")


def span(seconds: Any) -> str:
    """As somebody would say them: 50.0 ms, 12.3 s, 5 min 03 s, 23 h 59 min, 3 d 4 h."""
    if not is_finite(seconds):
        return "-"
    if seconds < 0.0995:
        return f"{words.figure(1000 * seconds)} ms"
    if seconds < 2 * MINUTE:
        return f"{words.figure(seconds)} s"
    whole = math.floor(seconds + 0.5)
    if whole < 2 * HOUR:
        return _and(whole // MINUTE, "min", whole % MINUTE, "s")
    if whole < 2 * DAY:
        return _and(whole // HOUR, "h", whole % HOUR // MINUTE, "min")
    return _and(whole // DAY, "d", whole % DAY // HOUR, "h", digits=1)


def asked(seconds: Any) -> str:
    """What was asked, as it was asked: 24 h, 90 s."""
    if not is_finite(seconds):
        return "-"
    for unit, word in ((HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            return f"{rounded(seconds / unit)} {word}"
    return f"{rounded(seconds)} s" if seconds == math.floor(seconds) else span(seconds)


def since(seconds: Any) -> str:
    """Since the soak began: 3:12:05, with tenths where it is less than two minutes."""
    if not is_finite(seconds):
        return "-"
    if seconds < 2 * MINUTE:
        return f"{words.fixed(seconds, 1)} s"
    whole = math.floor(seconds)
    return f"{whole // HOUR}:{whole % HOUR // MINUTE:02}:{whole % MINUTE:02}"


def share(part: float) -> str:
    """A share of the whole, never rounded up to all of it."""
    percent = math.floor(10000 * part) / 100
    return "100 %" if percent >= 100 else words.percent(percent, 2)


def clock(moment: Any) -> str:
    """`2026-11-22T18:23:16.758Z` as it is read in a table."""
    if not isinstance(moment, str):
        return "-"
    return moment.replace("T", " ", 1).removesuffix("Z")


def length(seconds: float) -> str:
    """Of a limit: 40 ms, 2 s."""
    return f"{words.plain(1000 * seconds)} ms" if seconds < 1 else f"{words.plain(seconds)} s"


def counted(kind: str, number: int) -> str:
    """`1 gap`, `75 stalls`."""
    one, several = KINDS.get(kind, (kind, f"{kind}s"))
    return f"{number} {one if number == 1 else several}"
