"""What perftest's server printed against its client's row of the same size.

By linux-rdma/perftest, src/*_bw.c and *_lat.c, alike in v4.5-0.20, 25.01.0-0.80 and 26.04.17:
- one way, write, read and atomics: the server measures nothing. It prints the client's figures of
  the last size (xchg_bw_reports);
- both ways by iterations: both ends print the sum of both;
- send, write with immediate data, and sends both ways by duration: each end prints its own rate;
- latency: each end that answers the other prints its own half of the round trip. The server of
  read and atomics prints no row;
- MTU: since 5.1 both ends take the smaller one, and print it (check_mtu). rdma_cm chooses it
  otherwise.
"""

from __future__ import annotations

from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.record import Latency, Number
from perch.tools.perftest_figures import ATOMIC, GRAIN, rate_gbit_s
from perch.tools.perftest_text import GBIT, Row, about_text, table
from perch.tools.results import UnusableError, shown
from perch.tools.text import lines_of

#: Figures that both ends print alike, of versions that may print other digits of them.
SAME = 0.01

#: Both ends wait for each other, so their own figures differ by the first and last messages only:
#: by 1.26 at most in the recorded runs. Twice is granted, and a tenth of a second in which a busy
#: machine runs something else (site policy).
APART, APART_S = 2, 0.1

#: Of fewer samples one may be most of the mean (site policy).
LEAST_SAMPLES = 100


def _row(served: bytes, size: Number | None) -> tuple[Row, float] | None:
    """The server's row of a size, and Gb/s of a unit of its rates; None where it has none."""
    try:
        read = table(lines_of(served))
        rows = [read.columns.row(one.text) for one in read.rows]
    except UnusableError:
        return None
    found = next((row for row in rows if row.size == size), None)
    return (found, GBIT[read.columns.unit or "Gb"]) if found else None


def _far(one: Number, other: Number) -> bool:
    return one > APART * other or other > APART * one


def _of_latency(times: Latency, row: Row) -> str | None:
    """A few long times change the mean, and two modes the median, so both must differ."""
    if (times.count or 0) < LEAST_SAMPLES or not times.mean or not row.average_us:
        return None
    if not _far(times.mean, row.average_us):
        return None
    if times.p50 and row.typical and not _far(times.p50, row.typical):
        return None
    return (
        f"the server's stdout has t_avg of {shown(row.average_us)} us, the client's "
        f"{shown(times.mean)} us"
    )


def _prints_the_same(part: Part) -> bool:
    by_time = part.params is not None and part.params.duration_s is not None
    if part.params is not None and part.params.bidirectional:
        return not (by_time and part.op in ("send", "write-imm"))
    return part.op in ("write", "read", *ATOMIC)


def _rates_differ(part: Part, mine: float, other: float) -> bool:
    if _prints_the_same(part):
        return abs(mine - other) > SAME * max(mine, other)
    if part.connection != "RC" or not part.bandwidth:  # others lose messages
        return False
    bits = (part.bandwidth.bytes or 0) * 8e-9
    one, two = sorted((bits / mine, bits / other))
    return two > APART * one + APART_S


def _other_mtu(part: Part, served: bytes) -> str | None:
    mine = part.link.mtu_bytes if part.link else None
    try:
        other = about_text(lines_of(served)).mtu
    except UnusableError:
        return None
    by_cm = part.params is not None and part.params.rdma_cm
    if mine is None or other is None or by_cm or mine == other:
        return None
    return f"the server's stdout has an MTU of {other} B, the client's of {shown(mine)} B"


def contradiction(part: Part, served: bytes) -> str | None:
    """Why the server's settings, or its row of the same size, are not of this result, or None."""
    unlike = _other_mtu(part, served)
    if unlike is not None:
        return unlike
    found = _row(served, part.params.size_bytes if part.params else None)
    if found is None:
        return None
    row, unit = found
    if part.latency_us is not None:
        return _of_latency(part.latency_us, row)
    if part.bandwidth is None or not row.average or not part.bandwidth.gbit_s:
        return None
    mine = part.bandwidth.gbit_s
    other = rate_gbit_s(row.average, row.messages, row.size or 0, unit)
    if abs(mine - other) <= 2 * GRAIN * unit or not _rates_differ(part, mine, other):
        return None
    return (
        f"the server's stdout has {shown(rounded(other))} Gb/s, the client's {shown(rounded(mine))}"
    )
