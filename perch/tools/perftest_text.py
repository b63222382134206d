"""What a program of perftest printed, taken apart: settings, title, columns, rows, lists of times.

A column's meaning and unit come from the table's own header; an unknown one is an error. Formats:
linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT*, REPORT_FMT*) and print_report_lat of
src/perftest_parameters.c, versions 4.5-0.20, 25.01.0-0.80 and 26.04.17.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from perch.model.record import Number, QueuePair, Role
from perch.tools.results import LineError, UnusableError, shown
from perch.tools.text import figure, number

#: Gb/s of one unit. MB and MiB are the same 2^20 bytes: the header was corrected in 2024, the
#: figure never changed.
GBIT = {"MB": 8 * 2**20 / 1e9, "MiB": 8 * 2**20 / 1e9, "Gb": 1.0}

#: The slowest times, which the sorted list and the summary leave out (LAT_MEASURE_TAIL).
TAIL = 2

_RULE = re.compile(r"-{20,}[ \t]*$")
_HEADER = re.compile(r"[ \t]*#bytes[ \t]+#")
# other lines between the figures are not rows, such as warnings about the CPU's frequency
_ROW = re.compile(r"[ \t]*-?([0-9]|inf|nan)", re.IGNORECASE)
_LIST = re.compile(r"#, (?P<unit>[a-z]+)[ \t]*$")
_TIME = re.compile(r"(?P<n>[0-9]{1,18}), (?P<time>[0-9.e+-]{1,30})[ \t]*$")

# ---- columns -------------------------------------------------------------------------------------

_COLUMNS = {
    "#bytes": "size",
    "#iterations": "iterations",
    "MsgRate[Mpps]": "messages",
    "tps average": "transactions",
    "CPU_Util[%]": "cpu",
    "t_min[usec]": "min",
    "t_max[usec]": "max",
    "t_typical[usec]": "typical",
    "t_avg[usec]": "average_us",
    "t_stdev[usec]": "stddev",
    "99% percentile[usec]": "p99",
    "99.9% percentile[usec]": "p99_9",
    # without the word where somebody wrote the table down
    "99%[usec]": "p99",
    "99.9%[usec]": "p99_9",
}
_RATE = re.compile(r"BW (?P<name>peak|average)\[(?P<unit>MB|MiB|Gb)/sec\]")
# of each of two ports; the average is that of both
_PORT = re.compile(r"BW Port[12]\[(MB|MiB|Gb)/sec\]|MsgRate Port[12]\[Mpps\]")
_PORTS = "port"

# a column may have a blank in its name, never two; some headers have one blank between columns
_CROWDED = re.compile(r"(percentile\[usec\]|#bytes|#iterations|\]) ")
_BETWEEN = re.compile(r" {2,}|\t+")


@dataclass(slots=True)
class Row:
    """Figures as printed: bytes, microseconds, millions of messages a second."""

    size: Number | None = None
    iterations: Number | None = None
    messages: Number | None = None
    transactions: Number | None = None
    cpu: Number | None = None
    min: Number | None = None
    max: Number | None = None
    typical: Number | None = None
    average_us: Number | None = None
    stddev: Number | None = None
    p99: Number | None = None
    p99_9: Number | None = None
    peak: Number | None = None
    average: Number | None = None


@dataclass(frozen=True, slots=True)
class Columns:
    """In the order of the header: titles and names of figures. `unit`: of the rates."""

    titles: tuple[str, ...]
    names: tuple[str, ...]
    unit: str | None

    def row(self, text: str) -> Row:
        """The figures of one line. Raises UnusableError where they do not fit."""
        cells = text.split()
        if len(cells) != len(self.names):
            counts = f"{len(cells)} figures under {len(self.names)} columns"
            raise UnusableError(f"a row has {counts}: truncated?")
        columns = zip(self.names, self.titles, cells, strict=True)
        return Row(**{n: figure(cell, title) for n, title, cell in columns if n != _PORTS})


def columns(header: str) -> Columns:
    """The columns of a table. Raises UnusableError where one is unknown or stands there twice."""
    titles = tuple(_BETWEEN.split(_CROWDED.sub(r"\1  ", header).strip()))
    names, unit = [], None
    for title in titles:
        rate = _RATE.fullmatch(title)
        if rate:
            names.append(rate["name"])
            unit = rate["unit"] if rate["name"] == "average" else unit
        elif title in _COLUMNS:
            names.append(_COLUMNS[title])
        elif _PORT.fullmatch(title):
            names.append(_PORTS)
        else:
            raise UnusableError(f"its table has the unknown column {shown(title)}")
    for name in names:
        if name != _PORTS and names.count(name) > 1:
            raise UnusableError(f"its table has the column {name} twice")
    return Columns(titles, tuple(names), unit)


# ---- the table, and lists of single times --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextRow:
    """A row, where it stands, and the times that it sums up, as they were listed, if they were."""

    line: int
    text: str
    times: list[float] | None


@dataclass(slots=True)
class Table:
    """The one table of an output. `whole`: its end was printed."""

    columns: Columns
    rows: list[TextRow] = field(default_factory=list)
    whole: bool = False


def header_at(lines: Sequence[str]) -> int | None:
    """Where the table begins."""
    return next((i for i, line in enumerate(lines) if _is_header(line)), None)


def _is_header(line: str) -> bool:
    return "#bytes" in line and _HEADER.match(line) is not None


def _is_header_again(lines: Sequence[str], at: int, first: int) -> bool:
    return at < len(lines) and lines[at].split() == lines[first].split()


def table(lines: Sequence[str]) -> Table:
    """The table of an output.

    With -H or -U a list of times follows the header of each size, and the header is printed again
    between that list and the row. Raises UnusableError where there is no table, or more than one.
    """
    first = header_at(lines)
    if first is None:
        raise UnusableError("it has no table of results: truncated?")
    read = _read_header(lines, first)
    times: list[float] | None = None
    at = first + 1
    while at < len(lines):
        line = lines[at]
        if _LIST.match(line):
            times, at = _times(lines, at)
            continue
        if _RULE.match(line):
            if times is None or not _is_header_again(lines, at + 1, first):
                read.whole = True
                break
            at += 1
        elif _ROW.match(line):
            read.rows.append(TextRow(at, line, times))
            times = None
        at += 1
    if any(_is_header(line) for line in lines[at:]):
        raise LineError("it has several tables instead of one", first)
    return read


def _read_header(lines: Sequence[str], at: int) -> Table:
    try:
        return Table(columns(lines[at]))
    except UnusableError as why:
        raise LineError(why, at) from None


def _times(lines: Sequence[str], first: int) -> tuple[list[float], int]:
    """The single times of the list whose title is line `first`, and the line behind it.

    -H prints them sorted and without the slowest (`TAIL`), -U as they came and with them.
    """
    found = _LIST.match(lines[first])
    if found is None or found["unit"] != "usec":
        raise LineError(f'its list has the title {shown(lines[first])}, not "#, usec"', first)
    times: list[float] = []
    at = first + 1
    while at < len(lines) and (time := _TIME.match(lines[at])):
        value = number(time["time"])
        if int(time["n"]) != len(times) + 1 or value is None or value <= 0:
            raise LineError(f"time {len(times) + 1} of its list is {shown(lines[at])}", at)
        times.append(value)
        at += 1
    return times, at


# ---- what an output says of itself ---------------------------------------------------------------

_OPS = {
    "Send": "send",
    "RDMA_Write": "write",
    "RDMA_Write_imm": "write-imm",
    "RDMA_Read": "read",
    "FETCH_AND_ADD": "fetch-add",
    "CMP_AND_SWAP": "compare-swap",
}
_JSON_WORDS = re.compile(r"_(Bidirectional|Post_List|BW|Latency|Test)")
# "          RDMA_Write Bidirectional BW Test"; the JSON has "Atomic_FETCH_AND_ADD_BW_Test"
_TITLE = re.compile(
    r" *(?:Atomic[ _])?"
    r"(?P<op>Send|RDMA_Write_imm|RDMA_Write|RDMA_Read|FETCH_AND_ADD|CMP_AND_SWAP) "
    r"(?P<both>Bidirectional )?(?:Post[ _]List )?(?P<kind>BW|Latency) (?:Multicast )?Test *"
)

#: Settings, as the text has them; the names of the JSON have "_" instead of blanks.
SETTINGS = (
    "Device", "Number of qps", "Transport type", "Connection type", "Using SRQ",
    "PCIe relax order", "TX depth", "Post List", "CQ Moderation", "Mtu", "Link type", "GID index",
    "Max inline data", "rdma_cm QPs",
)  # fmt: skip
EVENTS = "Test with events"
# " Number of qps   : 4\t\tTransport type : IB"
_SETTING = re.compile(rf"(?:^|\t) ?({'|'.join(SETTINGS)})[ \t]*: ([^\t]*[^\t ])")
_WHOLE = re.compile(r"(?P<n>[0-9]{1,18})(?:\[[A-Za-z]+\])?")
_GID = re.compile(r" GID: (?P<gid>[0-9:]+)")
_SIDE = re.compile(r" *(?P<side>local|remote) address:(?: LID 0x(?P<lid>[0-9a-f]{1,4})\b)?")
_QUEUE_PAIR = re.compile(r".* QPN 0x(?P<number>[0-9a-f]{1,6}) PSN 0x(?P<psn>[0-9a-f]{1,6})\b")
_MAPPED = [0] * 10 + [255, 255]


@dataclass(frozen=True, slots=True)
class About:
    """All that an output says of its run. `queue_pairs` and the like: None where it does not."""

    op: str
    kind: str
    bidirectional: bool
    device: str | None
    queue_pairs: int | None
    connection: str | None
    transport: str | None
    srq: bool | None
    depth: int | None
    batch: int | None
    moderation: int | None
    mtu: int | None
    link: str | None
    gid_index: int | None
    inline: int | None
    rdma_cm: bool | None
    relaxed: bool | None
    event: bool
    client_address: str | None = None
    server_address: str | None = None
    pairs: dict[Role, list[QueuePair]] = field(default_factory=dict)

    @property
    def is_latency(self) -> bool:
        return self.kind == "latency"

    @property
    def is_raw(self) -> bool:
        """raw_ethernet_bw counts whole frames, not payload: its -s is the frame's, without FCS."""
        return self.connection == "RawEth"


def title(line: str) -> re.Match[str] | None:
    """The title of a test."""
    return _TITLE.fullmatch(_JSON_WORDS.sub(r" \1", line)) if "Test" in line else None


def _count(settings: Mapping[str, str], name: str) -> int | None:
    text = settings.get(name)
    if text is None:
        return None
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise UnusableError(f"{name} is {shown(text)}")
    return int(found["n"])


def _switch(settings: Mapping[str, str], name: str) -> bool | None:
    text = settings.get(name)
    return None if text is None else text == "ON"


def about(
    heading: re.Match[str] | None,
    settings: Mapping[str, str],
    *,
    event: bool,
    addresses: tuple[str | None, str | None] = (None, None),
    pairs: dict[Role, list[QueuePair]] | None = None,
) -> About:
    """The run that a title and settings (by the names of `SETTINGS`) describe."""
    if heading is None:
        raise UnusableError("it does not say which test it is")
    return About(
        op=_OPS[heading["op"]],
        kind={"BW": "bandwidth", "Latency": "latency"}[heading["kind"]],
        bidirectional=heading["both"] is not None,
        device=settings.get("Device"),
        queue_pairs=_count(settings, "Number of qps"),
        connection=settings.get("Connection type"),
        transport=settings.get("Transport type"),
        srq=_switch(settings, "Using SRQ"),
        depth=_count(settings, "TX depth"),
        batch=_count(settings, "Post List"),
        moderation=_count(settings, "CQ Moderation"),
        mtu=_count(settings, "Mtu"),
        link=settings.get("Link type"),
        gid_index=_count(settings, "GID index"),
        inline=_count(settings, "Max inline data"),
        rdma_cm=_switch(settings, "rdma_cm QPs"),
        relaxed=_switch(settings, "PCIe relax order"),
        event=event,
        client_address=addresses[0],
        server_address=addresses[1],
        pairs=pairs or {},
    )


def about_text(lines: Sequence[str]) -> About:
    """What stands above the table. Raises UnusableError where no line names the test."""
    head = lines[: header_at(lines)]
    settings: dict[str, str] = {}
    for line in head:
        for name, value in _SETTING.findall(line):
            settings.setdefault(name, value)
    return about(
        next((found for line in head if (found := title(line))), None),
        settings,
        event=any(line.lstrip(" ").startswith(EVENTS) for line in head),
        addresses=_addresses(head),
        pairs=_pairs(head),
    )


def _pairs(lines: Iterable[str]) -> dict[Role, list[QueuePair]]:
    """Those of the client (local) and of the server (remote), in the order of their lines."""
    found: dict[Role, list[QueuePair]] = {}
    for line in lines:
        if (side := _SIDE.match(line)) and (pair := _QUEUE_PAIR.match(line)):
            role: Role = "client" if side["side"] == "local" else "server"
            numbers = QueuePair(int(pair["number"], 16), int(pair["psn"], 16))
            found.setdefault(role, []).append(numbers)
    return found


def _addresses(lines: Iterable[str]) -> tuple[str | None, str | None]:
    """Those of the first queue pair: of the client (local) and of the server (remote).

    The GID, or where none is printed the LID, as the engine writes it. RoCE's is 0000.
    """
    gids: list[str | None] = []
    lids: list[str | None] = []
    sides: list[str] = []
    for line in lines:
        if found := _GID.match(line):
            gids.append(_gid(found["gid"]))
        elif found := _SIDE.match(line):
            sides.append(found["side"])
            lids.append(found["lid"] and f"lid {int(found['lid'], 16)}")
    local = sides.index("local") if "local" in sides else 0
    remote = sides.index("remote") if "remote" in sides else 1
    stated = gids or lids
    return _at(stated, local), _at(stated, remote)


def _at(stated: Sequence[str | None], i: int) -> str | None:
    return stated[i] if i < len(stated) else None


def _gid(text: str) -> str | None:
    """Sixteen decimal bytes; those of an IPv4-mapped address are shown as that address."""
    words = text.split(":")
    if len(words) != 16 or not all(word.isdecimal() and int(word[:4]) < 256 for word in words):
        return None
    values = [int(word) for word in words]
    if values[:12] == _MAPPED:
        return "::ffff:" + ".".join(str(value) for value in values[12:])
    return ":".join(f"{values[i]:02x}{values[i + 1]:02x}" for i in range(0, 16, 2))


# ---- JSON (--out_json) ---------------------------------------------------------------------------

#: Longer lines than perftest writes are left as they are.
_LONGEST = 200
_PAIR = re.compile(r' *(?P<key>[A-Za-z0-9_. ]*[A-Za-z0-9_.]) *: *(?P<value>[^",]*|"[^"]*"),? *')
_CLOSES = re.compile(r" *}")
_PLAIN = re.compile(r'".*|-?[0-9.]+')


def mended(lines: Iterable[str]) -> str:
    """What version 4.5 writes, as JSON.

    Neither its names nor its words are quoted, and a comma stands before each closing brace.
    """
    text = "\n".join(_mended_line(line) for line in lines)
    return re.sub(r",(\s*})", r"\1", text).rstrip().removesuffix(",")


def _mended_line(line: str) -> str:
    pair = _PAIR.fullmatch(line) if len(line) <= _LONGEST else None
    if pair is None:
        return "}," if _CLOSES.match(line) else line
    key, value = pair["key"], pair["value"]
    if value == "{":
        return f'"{key}": {{'
    return f'"{key}": {value if _PLAIN.fullmatch(value) else shown(value)},'
