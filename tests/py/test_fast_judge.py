"""What decides at once that nothing has to be said of a flow, against what says it.

A composed run has faults of every family. It is judged as it is, and with each flow looked at
closely: both give the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perch.judge import alike, as_planned, bounds, path, readings, times
from perch.judge.places import Counter, Place
from perch.judge.wire import Claim, of_flow
from perch.model.record import Role
from perch.run import judging
from perch.tools import perch
from tests.py.path_built import flow, part, side
from tests.py.test_same_bytes import planned

Document = dict[str, Any]

#: Of perch.judge: where a decision is looked up, and what it then decides: nothing.
UNSURE: dict[str, tuple[object, Callable[..., Any]]] = {
    "surely_hold": (path, lambda *_, **__: False),
    "_is_whole": (as_planned, lambda *_: False),
    "surely_timely": (times, lambda *_: False),
    "key": (alike.Kinds, lambda *_: None),
    "surely_results": (perch, lambda lines: [False] * len(lines)),
    "_steps": (readings, lambda _, texts: [None] * len(texts)),
}


# ---- a run with faults ---------------------------------------------------------------------------


class Samples:
    """The readings of one host."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._head, self._layout, *rest = map(json.loads, file.read_text().splitlines())
        names = [("host", name) for name in self._layout["host"]]
        for device, of_device in self._layout["netdev"].items():
            names += [(device, name) for name in of_device]
        for device, port in self._layout["rdma"].items():
            names += [(device, name) for name in port["counters"]]
        self._place = {name: at for at, name in enumerate(names)}
        self._lines = rest
        self._values = [line["values"].split(" ") for line in rest]

    def put(self, number: int, counter: tuple[str, str], text: str) -> None:
        self._values[number - 1][self._place[counter]] = text

    def more(self, number: int, counter: tuple[str, str], by: int) -> None:
        """Adds to a counter from one reading on."""
        at = self._place[counter]
        for values in self._values[number - 1 :]:
            values[at] = str(int(values[at]) + by)

    def line(self, number: int) -> Document:
        """A reading without its values."""
        found: Document = self._lines[number - 1]
        return found

    def write(self) -> None:
        for line, values in zip(self._lines, self._values, strict=True):
            line["values"] = " ".join(values)
        documents = [self._head, self._layout, *self._lines]
        self._file.write_text("".join(map(compact, documents)))


class Ends:
    """Both ends of a flow: their lines, what the engine printed, and the hosts' readings."""

    def __init__(self, client: Document, server: Document, samples: list[Samples]) -> None:
        self.client, self.server = client, server
        self.engine: Document = json.loads(client["stdout"])
        self._samples = samples

    def moved(self, end: int, counter: tuple[str, str], by: int) -> None:
        """So much more within the flow, at the client (0) or the server (1)."""
        self._samples[end].more(self.line(end)["samples"][1], counter, by)

    def between(self, end: int, counter: tuple[str, str], by: int) -> None:
        """So much more before the flow."""
        self._samples[end].more(self.line(end)["samples"][0], counter, by)

    def shows(self, end: int, counter: tuple[str, str], text: str) -> None:
        """The text of one reading, after the flow."""
        self._samples[end].put(self.line(end)["samples"][1], counter, text)

    def line(self, end: int) -> Document:
        return (self.client, self.server)[end]

    def reading(self, end: int, at: int) -> Document:
        return self._samples[end].line(self.line(end)["samples"][at])


SENT, RECEIVED = ("rxe0/1", "sent_pkts"), ("rxe0/1", "rcvd_pkts")
BYTES = "eth1", "tx_bytes"
Fault = Callable[[Ends], object]


def said(**values: Any) -> Fault:
    """The engine's line with other values, by their paths with two underlines for a point."""

    def change(ends: Ends) -> None:
        for name, value in values.items():
            *parents, key = name.split("__")
            at = ends.engine
            for parent in parents:
                at = at[parent]
            at[key] = value

    return change


def together(*faults: Fault) -> Fault:
    def change(ends: Ends) -> None:
        for fault in faults:
            fault(ends)

    return change


def of_line(end: int, **values: Any) -> Fault:
    return lambda ends: ends.line(end).update(values)


FAULTS: dict[str, Fault] = {
    "few packets": lambda ends: ends.moved(0, SENT, -100),
    "no packet arrived": lambda ends: ends.moved(1, RECEIVED, -120),
    "many packets": lambda ends: ends.moved(0, SENT, 500),
    "many bytes": lambda ends: ends.moved(0, BYTES, 5_000_000),
    "few bytes": lambda ends: ends.moved(1, BYTES, -35_000),
    "lost packets": lambda ends: ends.moved(1, RECEIVED, -1),
    "repeated": lambda ends: ends.moved(0, ("rxe0/1", "completer_retry_err"), 2),
    "repeated much": together(
        lambda ends: ends.moved(0, ("rxe0/1", "completer_retry_err"), 2),
        lambda ends: ends.moved(0, SENT, 102),
    ),
    "dropped": lambda ends: ends.moved(1, ("eth1", "rx_dropped"), 3),
    "error": lambda ends: ends.moved(0, ("eth1", "rx_crc_errors"), 3),
    "reset": lambda ends: ends.shows(0, SENT, "5"),
    "full": lambda ends: ends.shows(1, BYTES, "18446744073709551615"),
    "no number": lambda ends: ends.shows(1, BYTES, "x"),
    "narrow and full": lambda ends: ends.shows(0, ("rxe0/1", "link_downed"), "255"),
    "went down between": lambda ends: ends.between(0, ("rxe0/1", "link_downed"), 1),
    "error between": lambda ends: ends.between(1, ("eth1", "rx_errors"), 7),
    "traffic between": lambda ends: ends.between(1, SENT, 70),
    "went back between": lambda ends: ends.between(1, SENT, -70),
    "bytes without packets": together(
        lambda ends: ends.moved(0, ("eth1", "tx_packets"), -210),
        lambda ends: ends.moved(0, ("eth1", "rx_packets"), -210),
    ),
    "early reading": lambda ends: ends.reading(0, 1).update(time_s="1795270000.5"),
    "no time": lambda ends: ends.reading(1, 1).update(time_s="never"),
    "another number": lambda ends: ends.reading(0, 0).update(number=7),
    "no readings": lambda ends: ends.server.pop("samples"),
    "other numbers": of_line(0, samples=[1, 2]),
    "earlier number": lambda ends: ends.server["samples"].__setitem__(0, 3),
    "other command": lambda ends: ends.client["argv"].append("--verify"),
    "other port": lambda ends: ends.client["argv"].__setitem__(-1, "18601"),
    "another path": lambda ends: ends.client["argv"].__setitem__(0, "/usr/bin/perch"),
    "failed": of_line(0, exit=5, stderr="perch: bytes arrived corrupted\n"),
    "signal": of_line(1, signal="KILL"),
    "timed out": of_line(0, timed_out=True),
    "message": of_line(0, message="odd"),
    "not done": of_line(1, state="meeting_failed"),
    "words": of_line(0, stderr="perch: a choice\nsomething odd\n"),
    "completion": of_line(0, stderr="Completion with error at client\n"),
    "late end": of_line(1, ended="2026-11-21T23:59:59.000Z"),
    "no start": of_line(1, started=None),
    "no duration": of_line(0, ended_monotonic_ns=None),
    "skew": of_line(1, started="2026-11-21T14:17:37.000Z"),
    "other version": said(tool__version="0.0.9"),
    "other host": said(server__host="stranger"),
    "no host": said(client__host=None),
    "other address": said(client__address="192.0.2.3"),
    "no address": said(server__address=None),
    "other device": said(client__device="rxe1"),
    "simulated": said(simulated=True),
    "other layer": said(link__layer="loopback"),
    "unknown layer": said(link__layer="string"),
    "other MTU": said(link__mtu_bytes=1024),
    "other size": said(params__size_bytes=65),
    "other completion": said(params__completion="busy"),
    "other iterations": said(params__iterations=51),
    "text": said(params__iterations="50"),
    "overloaded": said(params__rate={"asked": 1, "overloaded": True}),
    "another environment": said(environment={"FI_X": "1"}),
    "long": said(elapsed_s=30),
    "nothing": said(elapsed_s=0),
    "not in its process": said(started="2026-11-20T00:00:00.000Z"),
    "odd start": said(started="yesterday"),
    "fewer claimed": said(path__client_sent_bytes=1),
    "no claim": said(path=None),
    "mean": said(latency_us__mean=1),
    "median": said(latency_us__p50=2e6),
    "many digits": said(latency_us__stddev=206.257361234567),
    "unsupported": said(latency_us__p99=3000),
    "count": said(latency_us__count=49),
    "deviation": said(latency_us__stddev=0),
    "no histogram": said(histogram=None),
    "other unit": said(histogram__unit="ns"),
    "cpu": said(cpu__client_s=500),
    "no cpu": said(cpu__server_s=None),
    "a status": said(status="fine"),
    "an error": said(error={"code": 1, "message": "above its limit", "traffic": True}),
    "stall": said(stall={"longest_s": 0.1, "start_s": 0.01, "began": "2026-11-21T14:17:36.999Z"}),
    "loss": said(loss={"sent_messages": 60, "lost_messages": 0, "jitter_us": 0.5}),
    "schema": said(schema="perch.record/9"),
}  # fmt: skip


def compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


def spoil(root: Path) -> Iterator[str]:
    """Plants each fault in a flow of its own. Returns the ids of these flows."""
    hosts = {file.name: file for file in (root / "raw").iterdir()}
    samples = {name: Samples(file / "samples.jsonl") for name, file in hosts.items()}
    lines = {
        name: list(map(json.loads, (file / "flows.jsonl").read_text().splitlines()))
        for name, file in hosts.items()
    }
    ends = {
        (line["id"], line["role"]): (name, line)
        for name, of_host in lines.items()
        for line in of_host
        if line["kind"] == "flow"
    }
    flows = sorted({of_flow for of_flow, _ in ends})
    for at, fault in enumerate(FAULTS.values()):
        (client, mine), (server, theirs) = (
            ends[flows[at * len(flows) // len(FAULTS)], role] for role in ("client", "server")
        )
        both = Ends(mine, theirs, [samples[client], samples[server]])
        fault(both)
        mine["stdout"] = compact(both.engine)
        yield mine["id"]
    for name, file in hosts.items():
        samples[name].write()
        (file / "flows.jsonl").write_text("".join(map(compact, lines[name])))


def test_what_decides_at_once_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    planned(root, hosts=8)
    assert len(set(spoil(root))) == len(FAULTS)
    outputs = judging.RECORDS, judging.VERDICT

    def judged() -> list[bytes]:
        assert judging.judge(root)[1] is None
        return [(root / name).read_bytes() for name in outputs]

    fast = judged()
    records = [json.loads(line) for line in fast[0].splitlines()]
    assert 40 < sum(record["status"] != "ok" for record in records) < len(records) / 2
    for name, (module, unsure) in UNSURE.items():
        monkeypatch.setattr(module, name, unsure)
        assert judged() == fast, name


# ---- bounds --------------------------------------------------------------------------------------


def _claims() -> Iterator[Claim]:
    for kind, connection, size, loss in (
        ("latency", "RC", 64, None),
        ("bandwidth", "UC", 9000, None),
        ("bandwidth", "UD", 2048, {"sent_messages": 600, "lost_messages": 3}),
    ):
        sent = 64 * 600 if kind == "latency" else size * 600
        one = part(
            kind=kind, connection=connection, loss=loss,
            params={"size_bytes": size, "outstanding": 4}, link={"mtu_bytes": 4096},
            claims={"sent": sent, "received": sent if kind == "latency" else 0},
        )  # fmt: skip
        for rdma in (True, False):
            claim = of_flow(flow(kind=kind), [one], rdma=rdma)
            assert claim is not None
            yield claim


def test_bounds_that_surely_hold_have_nothing_to_say() -> None:
    rng = random.Random(1)
    kinds: list[tuple[Any, Any]] = [
        ("bytes", "interface"), ("bytes", "under"), ("bytes", "nic"), ("bytes", "port"),
        ("packets", "port"),
    ]  # fmt: skip
    claims, sure, told = list(_claims()), 0, 0
    for _ in range(20000):
        claim, (unit, of) = rng.choice(claims), rng.choice(kinds)
        rdma = rng.random() < 0.5
        role: Role = rng.choice(("client", "server"))

        def counter(most: float, unit: Any = unit, of: Any = of) -> Counter:
            tx, rx = (rng.choice([None, 0, *[int(rng.expovariate(1 / most))] * 8]) for _ in "tr")
            return Counter("d", "tx", unit, of, tx, rx)

        largest = claim.sent.bytes * 1.2 if unit == "bytes" else 900
        found = counter(largest)
        for way in ("tx", "rx"):  # many at or near a bound
            if rng.random() < 0.7:
                claimed = rng.choice([claim.sent, claim.received])
                near = claimed.bytes if unit == "bytes" else claimed.packets
                setattr(found, way, int(near * rng.choice([1, 1, 1.01, 2, 3])) + rng.randrange(300))
        place = Place(
            role, "a", side(seconds=rng.choice([None, 0.5, 9.2])), "d", None, [found],
            [rng.choice([None, counter(rng.choice([1, 1e3, 1e6]))])], 1.5, "mlx5_core", [], [],
        )  # fmt: skip
        surely = bounds.surely_hold(
            role, place.counters, place.idle, place.idle_seconds, bounds.seconds_of(place), claim,
            rdma=rdma,
        )  # fmt: skip
        of_place = bounds.bounds(place, claim, 1, rdma=rdma, again=rng.choice([0, 0, 3]))
        holds = all(bounds.judged(one, "this flow explains") is bounds.PROVEN for one in of_place)
        assert holds or not surely
        sure, told = sure + surely, told + (not holds)
    assert sure > 500
    assert told > 500
