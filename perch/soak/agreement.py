"""Lines of one flow that contradict the plan, the whole, or each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perch.judge.asked import Requests, spoken
from perch.judge.laws import PAYLOAD_OPS
from perch.model.part import Part
from perch.model.record import ROLES, Number, Params, Side
from perch.model.soak import Anomaly
from perch.model.text import plural
from perch.soak.flow import Flowing
from perch.soak.line_types import Connection, Described, Interval

#: Backends whose address of an end is that of its interface; of others it may name the process.
_WITH_ADDRESSES = ("tcp", "verbs")

#: Messages whose figures, of nine digits, and seconds of processors do not repeat by chance. Fewer
#: may, as where each window has one message of a slow pace. Site policy.
LEAST_MESSAGES = 100

_NO_SIDE = Side()


def _damaged(of: Flowing, line: Connection, why: str) -> Anomaly:
    text = f"line {line.n}, connection {line.connection_number}: {why}"
    return of.found("damaged", "lines", "inconclusive", text, line.start_s, line.start_s, [line.n])


# ---- connections ---------------------------------------------------------------------------------


def connections(of: Flowing, requests: Sequence[Requests]) -> Iterator[Anomaly]:
    """A soak has the same ends and the same job after each reconnection.

    The engine copies its last connection into the whole.
    """
    own = [line for line in of.lines if isinstance(line, Connection)]
    known = of.whole or next(iter(own), None)
    boots = {start.boot_id for start in of.found.facts.told[of.flow.client].starts}
    for line in own:
        why = _unplanned(of, line, requests)
        if why is None and boots and line.boot_id and line.boot_id not in boots:
            why = f"it is of boot {line.boot_id}, in which the client's agent did not start"
        if why is None and known is not None:
            why = _unlike(line, known)
        if why is not None:
            yield _damaged(of, line, why)


def _unplanned(of: Flowing, line: Connection, requests: Sequence[Requests]) -> str | None:
    params = line.params or Params()
    size = _size(of)
    if size is not None and params.size_bytes != size:
        return f"its messages have {spoken(params.size_bytes)} bytes, not {size}"
    for name in ("completion", "queue_pairs"):
        asked, used = getattr(of.job, name), getattr(params, name)
        if asked != used:
            words = name.replace("_", " ")
            return f"it had {words} {spoken(used)}, the soak's first line has {spoken(asked)}"
    part = Part(
        backend=line.backend, provider=line.provider, op=line.op, kind=of.flow.kind,
        definition=line.definition, connection=line.connection,
        client=line.client, server=line.server, link=line.link, params=params,
    )  # fmt: skip
    return next(filter(None, (one.unlike(part) for one in requests[:1])), None)


def _unlike(line: Described, known: Described) -> str | None:
    """The first thing in which it is another connection than the known one, in words."""
    said, wanted = _identity(line), _identity(known)
    return next(
        (
            f"its {name} is {spoken(value)}, in the {_name(known)} {spoken(wanted[name])}"
            for name, value in said.items()
            if value != wanted[name]
        ),
        None,
    )


def _name(known: Described) -> str:
    return "first connection" if isinstance(known, Connection) else "whole"


def _identity(line: Described) -> dict[str, object]:
    """What a reconnection cannot change while software and cards are the same."""
    found: dict[str, object] = {
        "version": line.tool.version if line.tool else None,
        "backend": line.backend,
        "provider": line.provider,
        "simulation": line.simulated,
        "operation": line.op,
        "definition": line.definition,
        "completion level": line.completion_level,
        "connection type": line.connection,
        "link layer": line.link.layer if line.link else None,
    }
    for role in ROLES:
        side = (line.client if role == "client" else line.server) or _NO_SIDE
        found |= {f"{role} host": side.host, f"{role} device": side.device}
        if line.backend in _WITH_ADDRESSES:
            found[f"{role} address"] = side.address
    return found


def of_no_connection(of: Flowing) -> Iterator[Anomaly]:
    """Intervals that belong to another connection than the last connection's line before them."""
    current: Number | None = None
    for line in of.lines:
        if isinstance(line, Connection):
            current = line.connection_number
        elif isinstance(line, Interval) and line.connection_number != current:
            before = "none" if current is None else current
            text = f"line {line.n} belongs to connection {line.connection_number}, but the last "
            text += f"connection before it is {before}"
            yield of.found("damaged", "lines", "inconclusive", text, *line.at)


# ---- bytes ---------------------------------------------------------------------------------------


def of_messages(of: Flowing) -> Iterator[Anomaly]:
    """The engine counts whole messages, and has their bytes from their number."""
    size = _size(of)
    for line in of.intervals if size is not None else ():
        if line.bytes != line.messages * (size or 0):
            text = f"line {line.n} has {line.messages} messages of {size} bytes, "
            text += f"but {line.bytes} bytes"
            yield of.found("damaged", "lines", "inconclusive", text, *line.at)


def unchecked(of: Flowing) -> Iterator[Anomaly]:
    """With --verify each interval checks every byte that arrived in it, as a record must."""
    for line in of.well if of.asks("verify") else ():
        arrived = _arrived(of, line)
        if line.checked_bytes < arrived:
            text = f"--verify checked {line.checked_bytes} bytes in this interval; "
            text += f"at least {arrived} arrived"
            yield of.found("damaged", "integrity", "inconclusive", text, *line.at)


def _arrived(of: Flowing, line: Interval) -> Number:
    """At least so many bytes were there to check; of an echo they are checked at both ends."""
    if of.flow.op not in PAYLOAD_OPS or of.flow.backend == "null":
        return min(line.messages, 1)
    messages = line.messages if line.latency_us is None else line.samples
    own = (one for one in of.lines if isinstance(one, Connection))
    is_echo = any(one.definition == "half_round_trip" for one in own)
    return messages * (_size(of) or 0) * (2 if is_echo else 1)


def _size(of: Flowing) -> int | None:
    return of.flow.expect[0].size_bytes if of.flow.expect else None


# ---- copies --------------------------------------------------------------------------------------


def repeated(of: Flowing) -> Iterator[Anomaly]:
    """Intervals with the figures and processor seconds of an earlier one, to the last digit.

    A pace makes their bytes equal. Their time, windows and processors still differ.
    """
    first: dict[tuple[object, ...], Interval] = {}
    again: list[tuple[Interval, Interval]] = []
    for line in of.well:
        key = _own(line)
        if key is not None and first.setdefault(key, line) is not line:
            again.append((line, first[key]))
    if again:
        line, original = again[0]
        text = f"{plural(len(again), 'interval')} with all figures of an earlier one, the first "
        text += f"of them line {line.n} with those of line {original.n}"
        lines = [original.n, *(one.n for one, _ in again)]
        yield of.found("damaged", "lines", "inconclusive", text, line.start_s, line.end_s, lines)


def _own(line: Interval) -> tuple[object, ...] | None:
    """Figures that no other interval has; None where they may repeat by chance."""
    b, us, cpu = line.bandwidth, line.latency_us, line.cpu
    found: tuple[object, ...]
    if b is not None and line.messages >= LEAST_MESSAGES:
        found = line.bytes, b.gbit_s, b.peak_gbit_s, b.min_interval_gbit_s
    elif us is not None and line.samples >= LEAST_MESSAGES and us.stddev:
        found = us.count, us.mean, us.stddev, us.min, us.max
    else:
        return None
    found += (cpu.client_s, cpu.server_s) if cpu else (None,)
    return None if None in found else found
