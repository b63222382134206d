"""A host's samples to lines of intervals.jsonl: differences to the last one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from perch.judge.counter_table import CORRECTED_BITS, FLUSHED_OF, NO_CLASS, RECEIVED, SENT, class_of
from perch.judge.counters import Difference, differences, unflushed
from perch.judge.host_lines import SAMPLES, lines_of, names_of
from perch.judge.raw import RawFiles, walk_folder
from perch.judge.readings import moment
from perch.model.figures import rounded
from perch.model.json_keys import repeated_key
from perch.model.raw import Layout, Reading, Values
from perch.model.raw_lines import SCHEMA, Head, Process, SoakSampleLine, Temperature
from perch.model.record import Number
from perch.soak.moments import LAST_MOMENT, dated, microseconds


class LinkState(msgspec.Struct):
    """`flaps`: how often it changed since the sample that last had it."""

    operstate: str | None = None
    carrier_changes: Number | None = None
    flaps: Number = 0


class SampleLine(msgspec.Struct, kw_only=True):
    """A line of intervals.jsonl. Times: seconds since the soak began, by a monotonic clock.

    step_s: by how much the wall clock was set since the sample before; None after a boot. moved:
    differences by "netdev/eth1/tx_bytes", None where they are not known; events: the same by
    class. absent: counters of trouble that earlier samples had, and that this one lacks.
    """

    schema: str = "perch.sample/1"
    kind: str = "sample"
    run: str
    host: str
    number: Any
    line: int
    boot_id: str
    start_s: Number
    end_s: Number
    started: str
    ended: str
    reset: bool
    step_s: Number | None
    moved: dict[str, Difference]
    events: dict[str, int | None]
    packets: int | None
    bytes: dict[str, dict[str, int | None]]
    watched: int
    links: dict[str, LinkState]
    absent: list[str]
    dropped: Number
    temperatures: list[Temperature]
    processes: list[Process]

    @property
    def long_s(self) -> float:
        return self.end_s - self.start_s


class Fault(msgspec.Struct):
    """An unusable line."""

    line: int
    why: str


# ---- counters ------------------------------------------------------------------------------------


def _moved(known: Mapping[str, Values], tables: Mapping[str, Values]) -> dict[str, Difference]:
    moved: dict[str, Difference] = {}
    for name, table in tables.items():
        old = known.get(name, {})
        if table == old:
            continue
        for counter, n in differences(old, table).items():
            # the first value of a counter without a class has no earlier value to compare with
            known_before = counter in old or class_of(counter) != NO_CLASS
            if n != 0 and counter in table and known_before:
                moved[f"{name}/{counter}"] = n
    return moved


def _absent(known: Mapping[str, Values], tables: Mapping[str, Values]) -> list[str]:
    return [
        f"{name}/{counter}"
        for name, old in known.items()
        if len(old) > len(new := tables.get(name, {}))
        for counter in old
        if counter not in new and (class_of(counter) != NO_CLASS or counter in CORRECTED_BITS)
    ]


@lru_cache(maxsize=4096)
def moved_class(name: str) -> str:
    """The class of "netdev/eth1/rx_errors"; a host's own counters are those of TCP."""
    counter = name.rpartition("/")[2]
    if not name.startswith("host/"):
        return class_of(counter)
    return "tcp-retransmissions" if counter == "TcpRetransSegs" else NO_CLASS


def _events(moved: dict[str, Difference]) -> dict[str, int | None]:
    events: dict[str, int | None] = {}
    for name, n in moved.items():
        kind = moved_class(name)
        device, _, counter = name.rpartition("/")
        if counter in FLUSHED_OF:
            n = unflushed(n, moved.get(f"{device}/{FLUSHED_OF[counter]}", 0))
        if kind != NO_CLASS:
            before = events.get(kind, 0)
            events[kind] = None if n is None or before is None else before + n
    return events


@lru_cache(maxsize=64)
def _watched(tables: tuple[tuple[str, ...], ...]) -> int:
    """The number of counters of trouble. `tables`: the names in each."""
    return sum(class_of(name) != NO_CLASS for names in tables for name in names)


#: Payload and headers of each device, both ways; InfiniBand counts words of four bytes.
_BYTES = {
    "tx_bytes": ("tx", 1), "rx_bytes": ("rx", 1), "port_xmit_data": ("tx", 4),
    "port_rcv_data": ("rx", 4), "hni_sts_tx_ok_octets": ("tx", 1),
    "hni_sts_rx_ok_octets": ("rx", 1),
}  # fmt: skip
_PACKETS = frozenset(("tx_packets", "rx_packets", *SENT, *RECEIVED))


def _bytes(moved: dict[str, Difference]) -> dict[str, dict[str, int | None]]:
    sums: dict[str, dict[str, int | None]] = {}
    for name, n in moved.items():
        device, _, counter = name.rpartition("/")
        if counter in _BYTES:
            way, unit = _BYTES[counter]
            of_device = sums.setdefault(device.partition("/")[2], {})
            of_device[way] = None if n is None else n * unit
    return sums


def _packets(moved: dict[str, Difference]) -> int | None:
    known = [
        n for name, n in moved.items() if n is not None and name.rpartition("/")[2] in _PACKETS
    ]
    return sum(known) if known else None


# ---- links ---------------------------------------------------------------------------------------

Link = dict[str, str]


def _carrier(link: Link) -> float | None:
    return moment(link.get("carrier_changes", ""))


def _is_there(link: Link | None) -> bool:
    return link is not None and ("operstate" in link or "state" in link)


def _changes(before: Link, link: Link) -> Number:
    """An RDMA port has no counter of changes: for it, a different state is one change."""
    old, new = _carrier(before), _carrier(link)
    if old is not None and new is not None and new != old:
        return rounded(new - old)
    now = before | link
    return int(any(now.get(k) != before.get(k) for k in ("operstate", "state", "phys_state")))


def _links(
    known: Mapping[str, Link], before: Mapping[str, Link], links: Mapping[str, Link]
) -> dict[str, LinkState]:
    """`known`: the latest state in any sample. A link that disappeared has changed once."""
    states = {}
    for name in dict.fromkeys((*known, *links)):
        link = links.get(name)
        if link is not None and _is_there(link):
            changes = _carrier(link)
            states[name] = LinkState(
                link.get("operstate") or link.get("state"),
                None if changes is None else rounded(changes),
                _changes(known[name], link) if name in known else 0,
            )
        else:
            states[name] = LinkState(flaps=int(_is_there(before.get(name))))
    return states


# ---- samples -------------------------------------------------------------------------------------

_head = msgspec.json.Decoder(Head)
_sample = msgspec.json.Decoder(SoakSampleLine)
_part = re.compile(r"at `\$\.(\w+)")


class Sampled(NamedTuple):
    """A sample and its counters, by device as "netdev/eth1"."""

    line: SoakSampleLine
    tables: dict[str, Values]


def _tables(reading: Reading) -> dict[str, Values]:
    of, table = reading.layout, reading.table
    return {
        "host": table(of.host),
        **{f"netdev/{name}": table(block) for name, block in of.netdev.items()},
        **{f"rdma/{name}": table(block) for name, block in of.rdma.items()},
        **{f"cxi/{name}": table(block) for name, block in of.cxi.items()},
    }


def _sampled(text: bytes, names: Layout | None) -> Sampled | str:
    """A sample of this layout, or why the line is not one."""
    try:
        line = _sample.decode(text)
    except msgspec.ValidationError as error:
        part = _part.search(str(error))
        return f"its {part[1]} have the wrong type" if part else "it is not a sample"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "not JSON"
    repeated = repeated_key(text)
    if repeated is not None:
        return f"it has the key '{repeated}' twice in one object"
    at, values = moment(line.time_s), line.values.split(" ") if line.values else []
    if at is None or not 0 <= at < LAST_MOMENT or line.uptime_s < 0:
        return "its time or uptime is not valid"
    if names is None or len(values) != len(names.places):
        return "its values are not those that a layout before it names"
    return Sampled(line, _tables(Reading(names, line.time_s, at, values)))


class Sampler:
    """Compares each sample of a host with the earlier ones."""

    def __init__(self, host: str, run: str, epoch: float) -> None:
        self.host, self.run, self.epoch = host, run, epoch
        self.before: SoakSampleLine | None = None
        self.at = 0.0
        self.known: dict[str, Values] = {}
        self.links: dict[str, Link] = {}

    def read(self, files: RawFiles) -> Iterator[SampleLine | Fault]:
        names: Layout | None = None
        lines = lines_of(files, f"{walk_folder(self.host)}/{SAMPLES}")
        for n, (_, text) in enumerate(lines, 1):
            if n == 1:
                why = self._foreign(text)
                if why is not None:
                    yield Fault(n, why)
                    return
            elif (found := names_of(text)) is not None:
                names = found
            else:
                yield self._one(_sampled(text, names), n)

    def _one(self, sample: Sampled | str, n: int) -> SampleLine | Fault:
        why = sample if isinstance(sample, str) else self._misplaced(sample.line)
        if isinstance(sample, str) or why is not None:
            return Fault(n, str(why))
        return self._compared(sample, n)

    def _foreign(self, text: bytes) -> str | None:
        """Why all samples are of something else, by their first line."""
        try:
            head = _head.decode(text)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return "it is not a head"
        if (head.schema, head.run, head.host) == (SCHEMA, self.run, self.host):
            return None
        return f"it is the head of {head.schema}, run {head.run!r}, host {head.host!r}"

    def _misplaced(self, sample: SoakSampleLine) -> str | None:
        before = self.before
        if before and before.boot_id == sample.boot_id and sample.uptime_s < before.uptime_s:
            return "its uptime is lower than that of the sample before it"
        return None

    def _compared(self, sampled: Sampled, n: int) -> SampleLine:
        sample, tables = sampled
        before, wall = self.before, float(sample.time_s)
        same = before is not None and before.boot_id == sample.boot_id
        start, step = self.at, None
        if before is None:
            self.at = start = wall - self.epoch
        elif same:
            passed = sample.uptime_s - before.uptime_s
            self.at += passed
            step = microseconds(wall - float(before.time_s) - passed)
        else:
            self.at = max(wall - self.epoch, self.at)
        if not same:
            self.known, self.links = {}, {}
        moved = _moved(self.known, tables) if same else {}
        line = SampleLine(
            run=self.run,
            host=self.host,
            number=sample.number,
            line=n,
            boot_id=sample.boot_id,
            start_s=microseconds(start),
            end_s=microseconds(self.at),
            started=dated(float((before or sample).time_s)),
            ended=dated(wall),
            reset=before is not None and not same,
            step_s=step,
            moved=moved,
            events=_events(moved),
            packets=_packets(moved),
            bytes=_bytes(moved),
            watched=_watched(tuple(tuple(t) for name, t in tables.items() if name != "host")),
            links=_links(self.links, before.links if before and same else {}, sample.links),
            absent=_absent(self.known, tables),
            dropped=sample.dropped,
            temperatures=sample.temperatures,
            processes=sample.processes,
        )
        self.before = sample
        self.known |= {name: self.known.get(name, {}) | table for name, table in tables.items()}
        self.links |= {name: self.links.get(name, {}) | link for name, link in sample.links.items()}
        return line
