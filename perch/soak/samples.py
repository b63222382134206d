"""A host's samples (perch.sample/1) to lines of intervals.jsonl: differences to the last one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from perch.judge.counter_table import NO_CLASS, class_of
from perch.judge.counters import Difference, differences
from perch.judge.raw import LARGEST, RawFiles
from perch.model.figures import rounded
from perch.model.json_keys import repeated_key
from perch.model.raw import Values
from perch.model.record import Number
from perch.soak.lines import Natural
from perch.soak.moments import LAST_MOMENT, dated, microseconds


class Port(msgspec.Struct):
    counters: Values


class Counters(msgspec.Struct):
    host: Values | None = None
    netdev: dict[str, Values] | None = None
    rdma: dict[str, Port] | None = None
    cxi: dict[str, Port] | None = None

    def tables(self) -> dict[str, Values]:
        """By device, as "netdev/eth1"."""
        return {
            "host": self.host or {},
            **{f"netdev/{name}": table for name, table in (self.netdev or {}).items()},
            **{f"rdma/{name}": port.counters for name, port in (self.rdma or {}).items()},
            **{f"cxi/{name}": port.counters for name, port in (self.cxi or {}).items()},
        }


class Temperature(msgspec.Struct):
    name: str
    celsius: Number | None = None


class Process(msgspec.Struct):
    role: str
    pid: Number
    start: str
    resident_bytes: Natural
    flow: str | None = None
    handles: Natural | None = None


class Sample(msgspec.Struct):
    """As the sampler writes it: counters and times are text."""

    boot_id: str
    time_s: str | Number
    uptime_s: str | Number
    counters: Counters
    processes: list[Process]
    schema: Any = None
    run: Any = None
    host: Any = None
    number: Any = None
    links: dict[str, dict[str, str]] | None = None
    temperatures: list[Temperature] | None = None
    dropped: Natural | None = None


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
        if counter not in new and class_of(counter) != NO_CLASS
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
_PACKETS = frozenset(("tx_packets", "rx_packets", "port_xmit_packets", "port_rcv_packets"))


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


def _number(text: str | Number | None) -> float | None:
    try:
        value = math.nan if text is None else float(text)
    except (OverflowError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _is_there(link: Link | None) -> bool:
    return link is not None and ("operstate" in link or "state" in link)


def _changes(before: Link, link: Link) -> Number:
    """An RDMA port has no counter of changes: for it, a different state is one change."""
    old, new = _number(before.get("carrier_changes")), _number(link.get("carrier_changes"))
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
            changes = _number(link.get("carrier_changes"))
            states[name] = LinkState(
                link.get("operstate") or link.get("state"),
                None if changes is None else rounded(changes),
                _changes(known[name], link) if name in known else 0,
            )
        else:
            states[name] = LinkState(flaps=int(_is_there(before.get(name))))
    return states


# ---- samples -------------------------------------------------------------------------------------

_decode = msgspec.json.Decoder(Sample).decode
_part = re.compile(r"at `\$\.(\w+)")


def _decoded(text: bytes) -> Sample | str:
    """A sample, or why the line is not one."""
    try:
        sample = _decode(text)
    except msgspec.ValidationError as error:
        part = _part.search(str(error))
        return f"its {part[1]} have the wrong type" if part else "it is not a sample"
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "not JSON"
    if sample.schema != "perch.sample/1":
        return "it is not a sample"
    repeated = repeated_key(text)
    if repeated is not None:
        return f"it has the key '{repeated}' twice in one object"
    moments = (_number(sample.time_s), _number(sample.uptime_s))
    if any(one is None or not 0 <= one < LAST_MOMENT for one in moments):
        return "its time or uptime is not valid"
    return sample


class Sampler:
    """Compares each sample of a host with the earlier ones."""

    def __init__(self, host: str, run: str, epoch: float) -> None:
        self.host, self.run, self.epoch = host, run, epoch
        self.before: Sample | None = None
        self.at = 0.0
        self.known: dict[str, Values] = {}
        self.links: dict[str, Link] = {}

    def read(self, files: RawFiles) -> Iterator[SampleLine | Fault]:
        file = files.stream(f"raw/{self.host}/samples.jsonl")
        if file is None:
            return
        with file:
            for n, text in enumerate(iter(lambda: file.readline(LARGEST), b""), 1):
                sample = _decoded(text)
                if isinstance(sample, Sample):
                    why = self._misplaced(sample)
                    yield Fault(n, why) if why else self._compared(sample, n)
                else:
                    yield Fault(n, sample)

    def _misplaced(self, sample: Sample) -> str | None:
        before = self.before
        same = before is not None and before.boot_id == sample.boot_id
        if before and same and float(sample.uptime_s) < float(before.uptime_s):
            return "its uptime is lower than that of the sample before it"
        if sample.run != self.run or sample.host != self.host:
            return f"it belongs to run {sample.run!r}, host {sample.host!r}"
        return None

    def _compared(self, sample: Sample, n: int) -> SampleLine:
        before, wall = self.before, float(sample.time_s)
        same = before is not None and before.boot_id == sample.boot_id
        tables, links = sample.counters.tables(), sample.links or {}
        start, step = self.at, None
        if before is None:
            self.at = start = wall - self.epoch
        elif same:
            passed = float(sample.uptime_s) - float(before.uptime_s)
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
            links=_links(self.links, (before.links or {}) if before and same else {}, links),
            absent=_absent(self.known, tables),
            dropped=sample.dropped or 0,
            temperatures=sample.temperatures or [],
            processes=sample.processes,
        )
        self.before = sample
        self.known |= {name: self.known.get(name, {}) | table for name, table in tables.items()}
        self.links |= {name: self.links.get(name, {}) | link for name, link in links.items()}
        return line
