"""The times that the two ends of a flow tell, compared with each other and with the tool's own."""

from __future__ import annotations

from perch.judge.counters import moment as time_of
from perch.model.figures import rounded
from perch.model.moments import moment
from perch.model.raw import End, Reading
from perch.model.record import Error, Number, Part

#: Seconds by which sizes may last longer than their process lived: the tools take their times from
#: another clock than the agent.
GRANTED_S = 1
#: The same, as a part of the process's life.
GRANTED = 1.05


def _after(a: float | None, b: float | None) -> float:
    """Seconds by which `a` is later than `b`; 0 where it is not, or one of them is missing."""
    return max(a - b, 0) if a is not None and b is not None else 0


def _read_at(reading: Reading | None) -> float | None:
    return time_of(reading.time_s) if reading else None


def _outside(client: End, parts: list[Part]) -> float:
    """Seconds by which the tool's own start lies outside of its process; below 0 never."""
    said = [part.started for part in parts if part.started is not None]
    if not said or client.started is None or client.ended is None:
        return 0
    if min(said) < client.started:
        return _after(moment(client.started), moment(min(said)))
    if max(said) > client.ended:
        return _after(moment(max(said)), moment(client.ended))
    return 0


def skew_s(client: End | str | None, server: End | str | None, parts: list[Part]) -> Number | None:
    """Seconds by which the server's clock is ahead of the client's; below 0, behind.

    As far as the order of events shows it. The client begins after both ends have met and ends
    before they meet again (roles/agent): the other order comes from the clocks.
    The same holds of the readings of counters, and of the tool's own start, which lies within its
    process. Texts of one format sort like their times, so that dates are read only where the order
    is wrong. None where an end gave no times.
    """
    if not isinstance(client, End) or not isinstance(server, End):
        return None
    if client.started is None or client.ended is None:
        return None
    if server.started is None or server.ended is None:
        return None
    shown = [_outside(client, parts)]
    # the hosts of a soak do not meet: each begins and ends by itself
    if not any(part.soak is not None for part in parts):
        if server.started > client.started:
            shown.append(_after(moment(server.started), moment(client.started)))
        if client.ended > server.ended:
            shown.append(-_after(moment(client.ended), moment(server.ended)))
        if client.counters and server.counters:
            read, other = client.counters, server.counters
            shown.append(_after(_read_at(other.before), _read_at(read.before)))
            shown.append(-_after(_read_at(read.after), _read_at(other.after)))
    return rounded(max(shown, key=abs))


def within_process(parts: list[Part], client: End | str | None) -> None:
    """Spoils the parts of a flow whose sizes took longer than their process lived.

    Devices of a transfer work at the same time, and a soak that goes on after a reboot has had
    several processes.
    """
    if not isinstance(client, End) or client.elapsed_s is None:
        return
    lasted = sum(
        part.elapsed_s or 0
        for part in parts
        if part.status == "ok" and part.kind != "transfer" and not (part.soak and part.soak.resumed)
    )
    if lasted <= GRANTED * client.elapsed_s + GRANTED_S:
        return
    message = f"its sizes took {rounded(lasted)} s, but its process lived {client.elapsed_s} s"
    for part in parts:
        if part.status == "ok":
            part.status, part.error = "error", Error(6, message, traffic=True)
