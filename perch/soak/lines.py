"""The lines of a soaking flow: client.soak, and what the client printed at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from perch.judge.host_lines import FLOWS
from perch.judge.raw import LARGEST, RawFiles, flow_folder, walk_folder
from perch.judge.soak_hosts import client_line
from perch.model.figures import encode, supports
from perch.model.json_keys import repeated_key
from perch.model.plan import Flow
from perch.model.raw import SoakAgent
from perch.model.raw_lines import LARGEST_NUMBER
from perch.model.record import Bandwidth, Latency, Number
from perch.soak import histograms
from perch.soak.line_types import (
    Connection,
    Damaged,
    Gap,
    Head,
    Interval,
    Line,
    MomentMs,
    Stall,
    Timed,
    Whole,
)

#: The exit code of corrupted bytes (docs/definitions.md).
CORRUPTED = 5

PERCENTILES = tuple(Latency.PERCENTILES)


# ---- one line ------------------------------------------------------------------------------------

_raw = msgspec.json.Decoder(dict[str, msgspec.Raw])
_WHOLES = (b'"bandwidth"', b'"latency"')
_decoders: dict[bytes, msgspec.json.Decoder[Any]] = {
    **{
        f'"{one.kind}"'.encode(): msgspec.json.Decoder(one)
        for one in (Interval, Gap, Stall, Connection, Head)
    },
    **dict.fromkeys(_WHOLES, msgspec.json.Decoder(Whole)),
}


def near(a: Any, b: Any, share: float) -> bool:
    """Whether they are the same, or numbers that differ by so small a share of b."""
    if a == b:
        return True
    numbers = isinstance(a, int | float) and isinstance(b, int | float)
    return numbers and b != 0 and abs(a / b - 1) <= share


def slack(interval_s: float) -> float:
    """Seconds that may lie between two intervals.

    Two ends need a few round trips, and a sleeping one until its next paced message. What is longer
    than a fiftieth of an interval is missing. Site policy.
    """
    return max(0.25, 0.02 * interval_s)


def _is_outside_of_windows(b: Bandwidth, gbit_s: float, elapsed_s: float) -> bool:
    """Whether a mean contradicts the lowest and the highest window of 0.1 s.

    Windows follow each other from the interval's beginning: what is left of one at the end, and the
    time in which the ends agree on what arrived, is in the mean alone. That takes a round trip, on
    a busy host a second; where it takes longer, the interval has a stall that says so.
    """
    least, peak = b.min_interval_gbit_s or 0, b.peak_gbit_s
    if least > 0 and gbit_s < least * 0.99 and elapsed_s * (1 - gbit_s / least) > 1:
        return True
    return peak is not None and peak < gbit_s * (0.99 - 0.1 / elapsed_s)


def _are_figures(*values: Number | None) -> bool:
    return all(value is None or 0 <= value <= LARGEST_NUMBER for value in values)


def _implausible_bandwidth(line: Interval, b: Bandwidth, elapsed_s: float) -> str | None:
    if b.gbit_s is None or not _are_figures(b.gbit_s, b.min_interval_gbit_s, b.peak_gbit_s):
        return "it lacks figures"
    if b.bytes is not None and b.bytes != line.bytes:
        return f"it says both {b.bytes} and {line.bytes} bytes"
    if not near(line.bytes * 8e-9 / elapsed_s, b.gbit_s, 0.01):
        return f"{line.bytes} bytes are not the {b.gbit_s} Gb/s that it says"
    # one whose connection was lost has what it waited for in vain in its mean alone
    if line.status != "error" and _is_outside_of_windows(b, b.gbit_s, elapsed_s):
        return "its mean lies outside of its lowest and its highest window"
    return None


def _implausible_latency(line: Interval, latency: Latency) -> str | None:
    count = latency.count
    tail = [getattr(latency, name) for name in PERCENTILES]
    if count is None:
        return "it lacks figures"
    if count > line.messages:
        return f"{count} samples of {line.messages} messages"
    order = [one for one in (latency.min, *tail, latency.max) if one is not None]
    if not _are_figures(*order):
        return "it lacks figures"
    if order != sorted(order):
        return "its percentiles are out of order"
    # the engine writes each that ten samples lie above, and no other
    borne = [supports(count, share) for share in Latency.PERCENTILES.values()]
    if borne != [one is not None for one in tail]:
        return f"its percentiles are not those that {count} samples bear"
    return None


def _implausible_time(line: Interval) -> str | None:
    """A hundredth is granted, as to the records of runs."""
    elapsed_s, long_s = line.elapsed_s or 0, line.long_s
    # what is lost in silence is waited for, which is not measured
    if line.loss is None and elapsed_s < long_s - slack(long_s):
        return f"it measured {elapsed_s} s of {long_s} s"
    if elapsed_s > long_s * 1.01 + 0.01:
        return f"it lasted {elapsed_s} s within {long_s} s"
    return None


def implausible(line: Interval) -> str | None:
    """Why an interval's figures cannot be; None where they can."""
    b, latency = line.bandwidth, line.latency_us
    if not line.elapsed_s or line.messages < 0 or line.bytes < 0 or line.connection_number < 0:
        return "it lacks figures"
    if line.ok and line.messages > 0 and b is None and latency is None:
        return "it lacks figures"
    if b is not None and latency is not None:
        return "it has figures of two kinds"
    if line.ok and line.error is not None and line.code != CORRUPTED:
        return "its status is ok, and it has an error"
    why = _implausible_time(line)
    if why is None and b is not None:
        return _implausible_bandwidth(line, b, line.elapsed_s)
    if why is None and latency is not None:
        return _implausible_latency(line, latency)
    return why


def _shown(raw: msgspec.Raw | None, most: int) -> str:
    return "null" if raw is None else bytes(raw)[:most].decode("utf-8", "replace")


def digest(text: bytes, raw: dict[str, msgspec.Raw] | None, run: str) -> Line:
    """One line, typed. `raw`: its members, None where it is no object. `run`: this run's name."""
    if raw is None:
        return Damaged(why="not JSON")
    schema, kind, of_run = raw.get("schema"), raw.get("kind"), raw.get("run")
    if schema is None or bytes(schema) != b'"perch.record/1"':
        return Damaged(why=f"its schema is {_shown(schema, 40)}")
    if of_run is not None and bytes(of_run) != encode(run):
        return Damaged(why=f"it is of run {_shown(of_run, 80)}")
    decoder = _decoders.get(bytes(kind)) if kind is not None else None
    if decoder is None:
        return Damaged(why=f"its kind is {_shown(kind, 40)}")
    try:
        line: Line = decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Damaged(why="a value is not the number or object that it should be")
    repeated = repeated_key(text)
    if repeated is not None:
        return Damaged(why=f"it has the key '{repeated}' twice in one object")
    if isinstance(line, Timed) and (line.start_s < 0 or line.end_s < line.start_s):
        return Damaged(why="it ends before it begins")
    why = implausible(line) if isinstance(line, Interval) else None
    if isinstance(line, Whole) and line.latency_us and not _are_figures(line.latency_us.max):
        why = "it lacks figures"
    if why is None and isinstance(line, Connection) and line.connection_number < 0:
        why = "it does not say which connection"
    return line if why is None else Damaged(why=why)


# ---- a flow's files ------------------------------------------------------------------------------


class FlowLines(msgspec.Struct):
    """The lines of a flow.

    in_file: how many of them are of client.soak. printed: the place that has the others. differs:
    its last line is not what was printed.
    """

    lines: list[Line]
    in_file: int
    printed: str
    differs: bool


def _texts(file: BinaryIO | None) -> Iterator[bytes]:
    if file is None:
        return
    with file:
        for text in iter(lambda: file.readline(LARGEST), b""):
            yield text.rstrip(b"\n")


class Reader:
    """Reads the lines of flows, and writes what of them goes into intervals.jsonl.

    epoch: seconds since 1970 at which the soak began. told: what the hosts' agents say.
    """

    def __init__(
        self,
        files: RawFiles,
        out: BinaryIO,
        run: str,
        epoch: float,
        told: Mapping[str, SoakAgent],
    ) -> None:
        self.files, self.out, self.run, self.epoch, self.told = files, out, run, epoch, told

    def read(self, flow: Flow) -> FlowLines:
        folder = flow_folder(flow, flow.client)
        lines: list[Line] = []
        copy = _Copy(flow, self.run, self.out)
        whole = b""
        for text in _texts(self.files.stream(f"{folder}/client.soak")):
            whole = self._take(text, copy, lines) or whole
        in_file = len(lines)
        printed = b""
        place, output = self._output(flow)
        for text in output.splitlines():
            if whole:
                printed = text
            else:
                whole = self._take(text, copy, lines)
        copy.write(lines)
        has_head = any(isinstance(line, Head) for line in lines)
        # without its file a flow is not there, whatever was printed at its end; but a disk that was
        # full from the beginning left all of it there
        if in_file == 0 and not has_head:
            lines = []
        return FlowLines(lines, in_file, place, bool(printed) and printed != whole)

    def _output(self, flow: Flow) -> tuple[str, bytes]:
        """What the client printed, and the place that has it."""
        at = self.told[flow.client].clients.get(flow.id)
        line = client_line(self.files, flow.client, at) if at else None
        if at is None or line is None:
            return "", b""
        return f"{walk_folder(flow.client)}/{FLOWS}:{at[0]}", line.stdout.encode()

    def _take(self, text: bytes, copy: _Copy, lines: list[Line]) -> bytes:
        """Adds a line, and writes it unless it is the whole or damaged. The whole is returned."""
        try:
            raw = _raw.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raw = None
        line = digest(text, raw, self.run)
        line.n = len(lines) + 1
        lines.append(line)
        if line.n == 1 and raw is not None:
            copy.begin(raw.get("started_ms"), self.epoch)
        if raw is not None and raw.get("kind") and bytes(raw["kind"]) in _WHOLES:
            return text
        is_second_head = isinstance(line, Head) and line.n > 1
        if raw is not None and not isinstance(line, Damaged) and not is_second_head:
            copy.add(line, raw, lines)
        return b""


class _Copy:
    """The lines of one flow as intervals.jsonl has them.

    They wait until their histograms are decoded together, and damaged ones are not written.
    """

    def __init__(self, flow: Flow, run: str, out: BinaryIO) -> None:
        members = {
            "run": run, "flow": flow.id, "test": flow.test, "client": flow.client,
            "server": flow.server, "turn": flow.repeat, "repeat": 1,
            "scope": flow.scope,
        }  # fmt: skip
        #: lines of these kinds say themselves who client and server are
        self.own = {key: members[key] for key in members if key not in ("client", "server")}
        self.members: dict[str, Any] = members
        self.soak_s: float | None = None
        self.out = out
        self.waiting: list[tuple[Line, dict[str, Any]]] = []

    def add(self, line: Line, raw: dict[str, msgspec.Raw], lines: list[Line]) -> None:
        self.waiting.append((line, self.of(line, raw)))
        if len(self.waiting) == histograms.TOGETHER:
            self.write(lines)

    def write(self, lines: list[Line]) -> None:
        """Writes the lines that wait; one whose histogram is of other times becomes damaged."""
        timed = [line for line, _ in self.waiting if isinstance(line, Interval) and line.histogram]
        found = [(one.latency_us or Latency(), one.histogram) for one in timed if one.histogram]
        for at, why in histograms.misfits(found).items():
            n = timed[at].n
            lines[n - 1] = Damaged(n=n, why=why)
        for one in timed:
            one.histogram = None  # nine tenths of all bytes
        for line, members in self.waiting:
            if lines[line.n - 1] is line:
                self.out.write(encode(members) + b"\n")
        self.waiting = []

    def begin(self, started_ms: msgspec.Raw | None, epoch: float) -> None:
        try:
            ms = msgspec.json.decode(started_ms or b"", type=MomentMs)
        except msgspec.MsgspecError:
            return
        self.soak_s = round(ms / 1000 - epoch, 3)

    def of(self, line: Line, raw: dict[str, msgspec.Raw]) -> dict[str, Any]:
        members = self.own if isinstance(line, Head | Connection) else self.members
        if "histogram" in raw:  # nine tenths of all bytes; it stays in raw/
            raw["histogram"] = msgspec.Raw(b"null")
        return {**members, "line": line.n, "soak_s": self.soak_s, **raw}
