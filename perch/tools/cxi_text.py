"""What one of HPE's cxi tools printed, taken apart: title, summary of its run, rows of its tables.

A column's meaning and unit come from its header. Formats: HewlettPackard/shs-libcxi,
man/cxi_*.1.md and utils/utils_common.c (tools 2.1.0 to 2.3.0).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perch.model.record import Number
from perch.tools import atomics
from perch.tools.results import LineError, UnusableError, shown
from perch.tools.text import figure

#: Bytes of an atomic operation's type.
TYPE_BYTES = {name.upper().replace("-", "_"): size for name, size in atomics.TYPE_BYTES.items()}

_RULE = re.compile(r"-{20,}[ \t]*")
_TITLED = re.compile(r" *CXI .* Test *")
_TITLE = re.compile(
    r" *CXI (?:RDMA (?P<op>Send|Write|Read)|(?P<atomic>Atomic) Memory Operation)"
    r" (?P<kind>Latency|Bandwidth) Test *"
)
# "Device           : cxi0"
_PAIR = re.compile(r"(?P<name>[A-Z][A-Za-z0-9 ()/-]*):(?P<value>.*)")
_GPUS = re.compile(r"Found [0-9]+ GPU\(s\) *")
_NUMBER = re.compile(r"(?P<n>[0-9]{1,18})(?: (?:seconds|microseconds))?")
# "NIC 0x13 PID 0 VNI 10", "NIC 0x12 PID 0 (loopback)"
_NIC = re.compile(
    r"(?P<address>NIC 0x[0-9a-fA-F]+ PID [0-9]+)(?: VNI (?P<vni>[0-9]{1,18}))?(?: \(loopback\))?"
)
_HUGE = re.compile(r"Enabled \((?P<size>2M|1G) ")
_GPU = re.compile(r"GPU (?P<n>[0-9]+)")
_RUNTIMES = {"AMD": "rocm", "NVIDIA": "cuda", "INTEL": "ze"}
# "NON-FETCHING CSWAP EQ"
_ATOMIC = re.compile("(?P<non>NON-)?FETCHING (?P<op>[A-Z]+)(?: (?P<compare>EQ|NE|LE|LT|GE|GT))?")

_SAMPLES_HEADER = re.compile(r" *(?:SendNum|WriteNum|ReadNum|OpNum)  +Latency\[us\] *")
_SAMPLE = re.compile(r" *(?P<n>[0-9]{1,18})  +(?P<us>[0-9]{1,18}\.[0-9]{3}) *")
_HEADER = re.compile(r" *(?:Bytes|(?:Send|RDMA|Write|Read|AMO) Size\[B\])  +")
_FIGURES = re.compile(r"[ \t]*-?(?:[0-9]|inf|nan|-  )", re.IGNORECASE)

_COLUMNS = {
    "Bytes": "size", "Send Size[B]": "size", "RDMA Size[B]": "size", "Write Size[B]": "size",
    "Read Size[B]": "size", "AMO Size[B]": "size",
    "Sends": "count", "Writes": "count", "Reads": "count", "Ops": "count",
    "Min[us]": "min", "Max[us]": "max", "Mean[us]": "mean", "StdDev[us]": "stddev",
    "BW[MB/s]": "rate", "BW[Gb/s]": "rate",
    "PktRate[Mpkt/s]": "packets", "OpRate[M/s]": "messages",
}  # fmt: skip
#: Gb/s of one unit. MB are 10^6 bytes: size / microseconds (print_bw_results).
_GBIT = {"BW[MB/s]": 0.008, "BW[Gb/s]": 1.0}
_WANTED = {
    "latency": ("size", "count", "min", "max", "mean", "stddev"),
    "bandwidth": ("size", "count", "rate"),
}


class ServerError(UnusableError):
    """An output without figures."""

    def __init__(self) -> None:
        super().__init__("it is the server's output; the figures are in its client's")


# ---- title and summary ---------------------------------------------------------------------------


def title_at(lines: Sequence[str]) -> int | None:
    """Where the title of a test stands."""
    return next((i for i, line in enumerate(lines) if _TITLED.fullmatch(line)), None)


def titled(line: str) -> tuple[str, str] | None:
    """`"    CXI RDMA Send Latency Test"` -> `("send", "latency")`."""
    found = _TITLE.fullmatch(line)
    if found is None:
        return None
    return (found["op"] or found["atomic"]).lower(), found["kind"].lower()


Summary = Mapping[str, str]


def summary(lines: Sequence[str], title: int) -> tuple[Summary, int]:
    """Names and values from the title to the next rule, and where that rule is."""
    stop = next((i for i in range(title + 1, len(lines)) if _RULE.fullmatch(lines[i])), None)
    if stop is None:
        raise UnusableError("its summary has no end: truncated?")
    values: dict[str, str] = {}
    for i in range(title + 1, stop):
        pair = _PAIR.fullmatch(lines[i])
        if pair:
            values[pair["name"].rstrip()] = pair["value"].strip(" \t")
        elif lines[i].strip() and not _GPUS.fullmatch(lines[i]):
            raise LineError(f"{quoted(lines[i])} belongs to no summary", i)
    if "Local (server)" in values:
        raise ServerError
    return values, stop


def quoted(line: str) -> str:
    """The beginning of a line, for a message."""
    return shown(line[:60])


def count(about: Summary, name: str) -> int | None:
    """A whole number, with "seconds" or "microseconds" behind it or without."""
    text = about.get(name)
    if text is None:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise UnusableError(f"{name} is {shown(text)}")
    return int(found["n"])


def service(about: Summary) -> int | None:
    """HPE's tools print a number; Perch under their names may say "default"."""
    if about.get("Service ID", "").startswith("default"):
        return None
    return count(about, "Service ID")


def switch(about: Summary, name: str) -> bool | None:
    """Whether it is "Enabled", with a word behind it or without; else it must be "Disabled"."""
    text = about.get(name)
    if text is None:
        return None
    if not text.startswith(("Enabled", "Disabled")):
        raise UnusableError(f"{name} is {shown(text)}")
    return text.startswith("Enabled")


def nic(about: Summary, name: str) -> tuple[str | None, int | None]:
    """Address and VNI of an end."""
    text = about.get(name)
    if text is None:
        return None, None
    found = _NIC.fullmatch(text)
    if found is None:
        raise UnusableError(f"{name} is {shown(text)}")
    return found["address"], int(found["vni"]) if found["vni"] else None


def memory(about: Summary, side: str, way: str) -> str:
    """Memory of one side, as the engine names it: host, huge:2M, cuda:0."""
    name = f"{side} {way} Mem"
    text = about.get(name)
    if text is None or text == "System":
        huge = _HUGE.match(about.get("Hugepages", ""))
        return f"huge:{huge['size']}" if huge else "host"
    found = _GPU.fullmatch(text)
    if found is None:
        raise UnusableError(f"{name} is {shown(text)}")
    kind = about.get(f"{side} GPU Type", about.get("GPU Type"))
    if kind not in _RUNTIMES:
        raise UnusableError(f"the type of GPU {found['n']} is {shown(kind)}")
    return f"{_RUNTIMES[kind]}:{found['n']}"


def sizes(about: Summary, op: str) -> list[int]:
    """All sizes that the summary announces: from the least to the most, doubling."""
    if op == "atomic":
        kind = about.get("Atomic Type")
        if kind not in TYPE_BYTES:
            raise UnusableError(f"the atomic type is {shown(kind)}")
        return [TYPE_BYTES[kind]]
    word = op.capitalize()
    one = count(about, f"{word} Size")
    least = one if one is not None else count(about, f"Min {word} Size")
    most = one if one is not None else count(about, f"Max {word} Size")
    if not least or not most:
        raise UnusableError("its summary states no size")
    found = [least]
    while found[-1] * 2 <= most:
        found.append(found[-1] * 2)
    return found


@dataclass(frozen=True, slots=True)
class Atomic:
    """An atomic operation, in lower case."""

    fetching: bool
    op: str
    compare: str | None


def atomic(about: Summary) -> Atomic | None:
    """The operation of an atomic test."""
    text = about.get("Atomic Op")
    if text is None:
        return None
    found = _ATOMIC.fullmatch(text)
    if found is None:
        raise UnusableError(f"the atomic op is {shown(text)}")
    compare = found["compare"]
    return Atomic(found["non"] is None, found["op"].lower(), compare and compare.lower())


# ---- tables --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Row:
    """Figures as printed: bytes, microseconds, millions of packets or messages a second."""

    size: Number
    count: Number
    min: Number = 0
    max: Number = 0
    mean: Number = 0
    stddev: Number = 0
    rate: Number = 0
    packets: Number | None = None
    messages: Number | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """In the order of the header. `gbit`: Gb/s of one unit of its rate."""

    titles: tuple[str, ...]
    names: tuple[str, ...]
    gbit: float

    def row(self, text: str) -> Row:
        """The figures of one line."""
        cells = text.split()
        if len(cells) != len(self.names):
            counts = f"{len(cells)} figures under {len(self.names)} columns"
            raise UnusableError(f"a row has {counts}: truncated?")
        columns = zip(self.names, self.titles, cells, strict=True)
        return Row(**{name: _figure(cell, title) for name, title, cell in columns})


def _figure(cell: str, title: str) -> Number:
    if cell == "-":
        raise ServerError
    value = figure(cell, title)
    if value < 0:
        raise UnusableError(f"{title} is {shown(cell)}, which is not a number")
    return value


def _columns(header: str, kind: str) -> Columns:
    titles = tuple(re.split(" {2,}", header.strip(" ")))
    for title in titles:
        if title not in _COLUMNS:
            raise UnusableError(f"its table has the unknown column {shown(title)}")
    names = tuple(_COLUMNS[title] for title in titles)
    missing = [name for name in _WANTED[kind] if name not in names]
    if missing:
        raise UnusableError(f"its table has no {', '.join(missing)}")
    if len(set(names)) != len(names):
        raise UnusableError("its table has a column twice")
    return Columns(titles, names, next((_GBIT[t] for t in titles if t in _GBIT), 1.0))


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row, where it stands, and the single times that it sums up, where they were listed."""

    line: int
    text: str
    columns: Columns
    samples: list[float] | None


@dataclass(slots=True)
class Tables:
    """All rows of an output. `closed`: a rule stands behind the last."""

    kind: str
    rows: list[TextRow] = field(default_factory=list)
    closed: bool = True
    _within: str = ""
    _columns: Columns | None = None
    _samples: list[float] | None = None

    def read(self, line: str, i: int) -> None:
        """One line that is no sample."""
        if _RULE.fullmatch(line):
            self._within, self.closed = "", True
        elif line.startswith("See client for results"):
            raise ServerError
        elif self.closed and _SAMPLES_HEADER.fullmatch(line):
            self._within, self._samples, self.closed = "samples", [], False
        elif self.closed and _HEADER.match(line):
            self._within, self._columns, self.closed = "figures", _columns(line, self.kind), False
        elif self._within == "samples" and _FIGURES.match(line):
            raise UnusableError(f"{quoted(line)} is no sample: truncated?")
        elif self._within == "figures" and self._columns and _FIGURES.match(line):
            self.rows.append(TextRow(i, line, self._columns, self._samples))
            self._samples = None
        elif line.strip():
            raise UnusableError(f"{quoted(line)} belongs to no table")

    def sample(self, found: re.Match[str], *, follows: bool) -> None:
        """A single time, which follows the header of samples, or another one."""
        if not follows or self._within != "samples" or self._samples is None:
            raise UnusableError(f"{quoted(found[0])} belongs to no table")
        if int(found["n"]) != len(self._samples):
            raise UnusableError(f"{quoted(found[0])}: sample {len(self._samples)} is missing")
        self._samples.append(float(found["us"]))


def is_header(line: str) -> bool:
    """Whether it heads a table of figures."""
    return _HEADER.match(line) is not None


def tables(lines: Sequence[str], first: int, kind: str) -> Tables:
    """The tables behind the summary, whose rule is line `first`."""
    read = Tables(kind)
    follows = False
    for i in range(first, len(lines)):
        line = lines[i]
        sample = _SAMPLE.fullmatch(line)
        try:
            if sample:
                read.sample(sample, follows=follows)
            else:
                read.read(line, i)
                follows = bool(_SAMPLES_HEADER.fullmatch(line))
        except ServerError:
            raise
        except UnusableError as why:
            raise LineError(why, i) from None
    return read
