"""Reads perch.raw/2: what one agent left of all its flows, in flows.jsonl and samples.jsonl.

A large run is read by pieces. An index says where the lines of each piece lie; an agent writes them
in the order of its flows, so that a piece is one stretch of each file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from perch.judge.raw import UNREADABLE, RawFiles, walk_folder
from perch.judge.readings import layout, series
from perch.model.json_keys import repeated_key
from perch.model.moments import moment
from perch.model.plan import Flow
from perch.model.raw import Agent, End, Layout, Reading, Readings
from perch.model.raw_lines import (
    SCHEMA,
    Brief,
    EndLine,
    EpisodeLine,
    FlowLine,
    Head,
    LayoutLine,
    Names,
    SampleLine,
    StartLine,
)
from perch.model.record import ROLES, Role

FLOWS, SAMPLES = "flows.jsonl", "samples.jsonl"

#: Bytes of one line: an output of 1 MiB, each byte of it as \uNNNN.
LINE_MAX = 8 * 2**20

_LAYOUT, _SAMPLE = b'"kind":"layout"', b'"kind":"sample"'

_T = TypeVar("_T")
_head = msgspec.json.Decoder(Head)
_brief = msgspec.json.Decoder(Brief)
_flow = msgspec.json.Decoder(FlowLine)
_last = msgspec.json.Decoder(EndLine)
_of_soak: dict[str, msgspec.json.Decoder[Any]] = {
    "start": msgspec.json.Decoder(StartLine),
    "begin": _brief,
    "episode": msgspec.json.Decoder(EpisodeLine),
}
_layout_line = msgspec.json.Decoder(LayoutLine)
_sample_line = msgspec.json.Decoder(SampleLine)
_sample_lines = msgspec.json.Decoder(list[SampleLine])


class Stretch(NamedTuple):
    """Bytes of a file, from the beginning of a line to the end of one."""

    begin: int
    end: int


class Samples(NamedTuple):
    """Where samples lie that follow each other, from number `first` on.

    `layout`: the last one before them; None where there is none.
    """

    first: int
    lines: Stretch
    layout: Stretch | None


class Part(NamedTuple):
    """Where a host's lines of one piece lie: those of its flows, and the samples that they name."""

    flows: Stretch
    samples: Sequence[Samples] = ()


class Index(NamedTuple):
    """`parts`: by piece, and by a walk's folder. `odd`: lines that cannot be used, in words."""

    parts: list[dict[str, Part]]
    odd: list[str]


def decoded(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T | None:
    try:
        return decoder.decode(line)
    except UNREADABLE:
        return None


def _once(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T | None:
    """The same of a line without a newline; None, too, where an object of it has a key twice.

    Of these types msgspec writes the shortest text that there is. One as short has no more keys.
    """
    found = decoded(decoder, line)
    if found is None or len(msgspec.json.encode(found)) == len(line):
        return found
    return found if repeated_key(line) is None else None


def whole_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Whole lines and where they begin. The last one may be torn; one too long ends it."""
    at = 0
    while line := file.readline(LINE_MAX):
        if not line.endswith(b"\n"):
            return
        yield at, line
        at += len(line)


def lines_of(files: RawFiles, path: str) -> Iterator[tuple[int, bytes]]:
    """The same of a file; none where there is none."""
    file = files.stream(path)
    if file is not None:
        with file:
            yield from whole_lines(file)


# ---- where the lines of each piece lie -----------------------------------------------------------


class _Samples:
    """Where the samples of a file lie: the first is number 1. Those of another host do not count.

    `walk`: run and host. `odd`: lines that cannot be used, by number, and why. `last`: the number
    after which nothing is read.
    """

    def __init__(self, file: BinaryIO, walk: tuple[str, str], last: int | None = None) -> None:
        self._begins, self._ends = array("q"), array("q")
        self.odd: list[tuple[int, str]] = []
        self._layouts: list[tuple[int, Stretch]] = []
        lines = whole_lines(file)
        head = decoded(_head, next(lines, (0, b""))[1])
        if head is None or (head.schema, head.run, head.host) != (SCHEMA, *walk):
            self.odd.append((1, "is no head of this run and host"))
            return
        for number, (at, line) in enumerate(lines, 2):
            if len(self._begins) == last:
                return
            if _SAMPLE in line:
                self._begins.append(at)
                self._ends.append(at + len(line))
            elif _LAYOUT in line:
                self._layouts.append((len(self._begins), Stretch(at, at + len(line))))
            else:
                self.odd.append((number, "is neither a layout nor a sample"))

    def __len__(self) -> int:
        return len(self._begins)

    def of(self, numbers: Iterable[int]) -> list[Samples]:
        """Where those of these numbers lie that are there.

        A soak's flow names its first sample and its last one, and a day lies between.
        """
        there = [number for number in sorted(numbers) if number <= len(self)]
        after = (at for at in range(1, len(there)) if there[at] != there[at - 1] + 1)
        cuts = [0, *after, len(there)] if there else []
        return [self._between(there[begin], there[end - 1]) for begin, end in pairwise(cuts)]

    def _between(self, first: int, last: int) -> Samples:
        """Where the samples of these numbers lie, and those between them."""
        before = (at for begin, at in reversed(self._layouts) if begin < first)
        lines = Stretch(self._begins[first - 1], self._ends[last - 1])
        return Samples(first, lines, next(before, None))


class _Found(msgspec.Struct):
    """One host's lines of a piece, while they are looked for. `samples`: that they name."""

    begin: int
    end: int = 0
    samples: set[int] = set()

    def add(self, end: int, samples: tuple[int, int] | None) -> None:
        """One more line, which ends there."""
        self.end = end
        self.samples.update(samples or ())


class _Place(NamedTuple):
    """A planned flow, and its piece."""

    piece: int
    flow: Flow


class _Walk:
    """Looks for the lines of one walk of a host. `flows`: the planned ones by id."""

    def __init__(self, host: str, flows: Mapping[str, _Place], *, is_soak: bool) -> None:
        self._host, self._flows, self._is_soak = host, flows, is_soak
        self.found: dict[int, _Found] = {}
        self._seen: set[tuple[str, str]] = set()
        self._ended = False

    def take(self, number: int, at: int, line: bytes) -> str | None:
        """Why a line cannot be used; None where it can."""
        brief = decoded(_brief, line)
        if brief is None:
            return "cannot be read"
        if self._ended:
            return "follows the end"
        if brief.kind == ("head" if number == 1 else "end"):
            self._ended = number > 1
            is_read = number == 1 or decoded(_last, line) is not None
            return None if is_read else "cannot be read"
        if self._is_soak and brief.kind in _of_soak:
            return None if decoded(_of_soak[brief.kind], line) is not None else "cannot be read"
        if brief.kind != "flow":
            return f"is of the kind '{brief.kind}', which is not expected there"
        place, end = self._flows.get(brief.id), (brief.id, brief.role)
        here = place and brief.role in ROLES and place.flow.host(brief.role) == self._host
        if place is None or not here:
            return f"is of flow '{brief.id}', whose {brief.role} is not planned on this host"
        if end in self._seen:
            return f"repeats flow {brief.id}"
        self._seen.add(end)
        found = self.found.get(place.piece)
        if found is None:
            found = self.found[place.piece] = _Found(at)
        found.add(at + len(line), brief.samples)
        return None

    def parts(self, samples: _Samples | None) -> dict[int, Part]:
        """By piece where its lines lie."""
        return {
            piece: Part(Stretch(one.begin, one.end), samples.of(one.samples) if samples else ())
            for piece, one in self.found.items()
        }


def _of_walk(
    files: RawFiles,
    folder: str,
    walk: tuple[str, str],
    flows: Mapping[str, _Place],
    *,
    is_soak: bool,
) -> tuple[dict[int, Part], list[str]]:
    """Where the lines of each piece lie, and the lines that cannot be used."""
    found, samples, odd = _Walk(walk[1], flows, is_soak=is_soak), None, []
    for number, (at, line) in enumerate(lines_of(files, f"{folder}/{FLOWS}"), 1):
        why = found.take(number, at, line)
        if why is not None:
            odd.append(f"{folder}/{FLOWS}:{number} {why}")
    file = files.stream(f"{folder}/{SAMPLES}")
    if file is not None:
        with file:
            samples = _Samples(file, walk)
        odd += [f"{folder}/{SAMPLES}:{number} {why}" for number, why in samples.odd]
    return found.parts(samples), odd


def index(
    files: RawFiles,
    run: str,
    hosts: Iterable[str],
    pieces: Sequence[Iterable[Flow]],
    *,
    is_soak: bool = False,
) -> Index:
    """Where all hosts' lines of each piece lie. `pieces`: their flows, repeats among them."""
    places: tuple[dict[str, _Place], dict[str, _Place]] = {}, {}
    for number, flows in enumerate(pieces):
        for flow in flows:
            places[flow.retry][flow.id] = _Place(number, flow)
    parts: list[dict[str, Part]] = [{} for _ in pieces]
    odd: list[str] = []
    for host in hosts:
        for retry in (False, True):
            folder = walk_folder(host, retry=retry)
            of_walk, of_lines = _of_walk(files, folder, (run, host), places[retry], is_soak=is_soak)
            odd += of_lines
            for piece, part in of_walk.items():
                parts[piece][folder] = part
    return Index(parts, odd)


# ---- the lines of a piece ------------------------------------------------------------------------


class Lines:
    """One host's ends of a piece's flows, and the readings around them.

    A flow's line is decoded when it is asked for: those of a whole piece fit no processor's cache.
    `address_interface`: the one with the host's address.
    """

    def __init__(
        self, files: RawFiles, folder: str, part: Part, agent: Agent, address_interface: str
    ) -> None:
        self._agent = agent
        self._address_interface = address_interface
        self._rest = iter(between(files, f"{folder}/{FLOWS}", part.flows).splitlines())
        self._early: dict[tuple[str, str], FlowLine] = {}
        self._readings: dict[int, Reading] = {}
        file = files.stream(f"{folder}/{SAMPLES}") if part.samples else None
        if file is not None:
            with file:
                self._readings = _readings(file, part.samples)

    def of(self, flow: str, role: Role) -> FlowLine | None:
        """What this host's end left. It is asked for once, mostly in the order of the lines."""
        found = self._early.pop((flow, role), None)
        if found is not None:
            return found
        for text in self._rest:
            line = flow_line(text)
            if line is not None and (line.id, line.role) == (flow, role):
                return line
            if line is not None:
                self._early.setdefault((line.id, line.role), line)
        return None

    def end(self, line: FlowLine) -> End:
        """The end in the form that the judge reads."""
        return End(
            run=self._agent.run,
            flow=line.id,
            role=line.role,
            host=self._agent.host,
            argv=line.argv,
            started=line.started,
            ended=line.ended,
            elapsed_s=_lasted(line),
            exit=line.exit,
            signal=line.signal,
            timed_out=line.timed_out,
            state=line.state,
            message=line.message,
            counters=self._counters(line),
            placement=line.placement,
            begun_ns=line.started_monotonic_ns,
            over_ns=line.ended_monotonic_ns,
        )

    def _counters(self, line: FlowLine) -> Readings | None:
        if line.samples is None:
            return None
        before, after = map(self._readings.get, line.samples)
        return Readings(before, after, self._address_interface, line.route_interface)


def _lasted(line: FlowLine) -> float | None:
    """Seconds, by the monotonic clock.

    A flow of a soak that ends in another boot than it began has none at its beginning.
    """
    begun, over = line.started_monotonic_ns, line.ended_monotonic_ns
    if begun is None:
        early, late = moment(line.started), moment(line.ended)
        return None if early is None or late is None or late < early else late - early
    return (over - begun) / 1e9 if begun and over and over >= begun else None


def stretch(file: BinaryIO, at: Stretch) -> bytes:
    file.seek(at.begin)
    return file.read(at.end - at.begin)


def between(files: RawFiles, path: str, at: Stretch) -> bytes:
    """These bytes of a file; none where there is none."""
    file = files.stream(path)
    if file is None:
        return b""
    with file:
        return stretch(file, at)


def flow_line(line: bytes) -> FlowLine | None:
    """None where it cannot be used."""
    return _once(_flow, line)


def _readings(file: BinaryIO, samples: Iterable[Samples]) -> dict[int, Reading]:
    """Readings by their numbers.

    A sample without a layout, or with other values than it names, tells nothing.
    """
    found: dict[int, Reading] = {}
    for one in samples:
        names = names_of(stretch(file, one.layout).rstrip()) if one.layout else None
        texts: list[bytes] = []
        every: list[Reading | None] = []
        for text in stretch(file, one.lines).splitlines():
            if _SAMPLE in text:
                texts.append(text)
            elif _LAYOUT in text:
                every += _series(names, texts)
                names, texts = names_of(text), []
        every += _series(names, texts)
        found |= {
            at: read for at, read in enumerate(every, one.first) if read and read.number == at
        }
    return found


def _series(names: Layout | None, texts: Sequence[bytes]) -> list[Reading | None]:
    """The readings of lines that followed each other; None of a line that cannot be used."""
    if names is None or not texts:
        return [None] * len(texts)
    lines = _once(_sample_lines, b"[" + b",".join(texts) + b"]")
    if lines is not None:
        return series(names, lines)
    found: list[Reading | None] = []
    for text in texts:
        line = _once(_sample_line, text)
        found += series(names, [line]) if line is not None else [None]
    return found


def names_of(text: bytes) -> Layout | None:
    """What a line says if it is a layout; None where it cannot be used, or is another one."""
    line = _once(_layout_line, text)
    if line is None:
        return None

    def ports(of: Mapping[str, Names]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        return tuple((name, one.netdev, tuple(one.counters)) for name, one in of.items())

    netdev = tuple((name, "", tuple(names)) for name, names in line.netdev.items())
    return layout(tuple(line.host), netdev, ports(line.rdma), ports(line.cxi))


# ---- the time in which an agent measured nothing -------------------------------------------------


def idle(
    files: RawFiles, run: str, host: str, samples: tuple[int, int] | None, interface: str
) -> Readings | None:
    """The readings of a host's idle time, by their numbers in environment.json."""
    file = files.stream(f"{walk_folder(host)}/{SAMPLES}") if samples else None
    if file is None or samples is None:
        return None
    with file:
        found = _Samples(file, (run, host), last=max(samples))
        if not samples[0] <= samples[1] <= len(found):
            return None
        before, after = map(_readings(file, found.of(samples)).get, samples)
    return Readings(before, after, interface)
