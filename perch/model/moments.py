"""Moments as text and as seconds since 1970, and how far the clocks of a run may be apart."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache

#: Seconds within which logs and readings of two hosts can be laid beside each other, as the hosts'
#: own check has it. The times of one host may contradict each other by as much: its clock may have
#: been set meanwhile. Site policy.
CLOSE_S = 1
#: Seconds beyond which nothing shows that a file is of this run and not of another one: of two
#: hosts' clocks, or of a host's and the controller's, which wrote the plan. Site policy.
LOST_S = 300

#: Seconds by which a host's wall may move against the time that only counts, for each second:
#: NTP slews by 500 ppm at most (RFC 5905).
SLEW = 5e-4

_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)
_LENGTH = 19


def moment(text: object) -> float | None:
    """Seconds since the epoch of `2026-11-21T08:04:47.487Z`; None of anything else."""
    return _moment(text) if isinstance(text, str) else None


@lru_cache(maxsize=1024)  # those of the plan and of the agents are asked for with each flow
def _moment(text: str) -> float | None:
    whole, part = _second(text[:_LENGTH]), text[_LENGTH:-1]
    if whole is None or text[-1] != "Z":
        return None
    if not part:
        return whole
    digits = part[1:]
    if part[0] != "." or not (digits.isascii() and digits.isdigit()):
        return None
    return whole + float("0" + part)


@lru_cache(maxsize=1024)  # flows of one round begin and end together
def _second(text: str) -> float | None:
    if not _SECOND.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text + "+00:00").timestamp()
    except ValueError:
        return None
