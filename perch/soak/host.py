"""The samples of one host: holes, boots, the clock, links, counters, and how its processes grow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from perch.judge.host_lines import FLOWS
from perch.judge.raw import RawFiles
from perch.model.figures import encode
from perch.model.moments import SLEW
from perch.model.plan import PlanHost, tolerated
from perch.model.soak import Anomaly, AnomalyKind, FlowTold, HostTold, Hottest, Severity
from perch.model.text import names, plural
from perch.soak.bounds import Bounds, of_host
from perch.soak.facts import Facts, Finder
from perch.soak.processes import Life, Lives, ProcessJudge, successive
from perch.soak.samples import Fault, SampleLine, Sampler, moved_class
from perch.soak.told import Watch

#: Classes that are no anomalies: pauses and marks are how a network shares, packets that the stack
#: drops may belong to no flow, and corrected errors did no harm.
SHOWN = ("pause", "congestion", "host-drops", "pcie-corrected")

#: Of a million packets so many may be sent again or be out of order: thirty times the 0.033 that a
#: bit error ratio of 1e-12 damages (IEEE Std 802.3; packets of 4,178 bytes).
RARE_PPM = 1
#: Of a link's bits after error correction so many are wrong on a healthy one (IEEE Std 802.3ck).
ERROR_RATIO = 1e-15
RARE = ("retransmissions", "out-of-sequence")

#: TCP segments sent again, as a share of all packets, and the fewest that are of note. Site policy.
TCP_SHARE, TCP_LEAST = 0.01, 100
TCP = "tcp-retransmissions"

#: The share of a process's time in which samples must have seen it, from so many samples on:
#: fewer do not show which process was missing. Site policy.
SEEN_LEAST, FEW = 0.5, 4

EVIDENCE_OF_COUNTERS = 20


class Host:
    """Reads the samples of a host, writes them into intervals.jsonl, and judges them."""

    def __init__(self, facts: Facts, name: str, planned: PlanHost) -> None:
        self.facts, self.name, self.scope = facts, name, planned.scope
        self.link_gbit_s, self.tolerated = planned.link_gbit_s, tolerated([planned])
        self.bounds: Bounds = of_host(name, self.scope, facts.limits)
        self.found = Finder(facts, name, f"raw/{name}/samples.jsonl")
        self.lines: list[SampleLine] = []
        self.faults: list[Fault] = []
        self.lives: list[Life] = []
        self.hottest: Hottest | None = None
        self.has_temperatures = False

    def read(self, files: RawFiles, out: BinaryIO) -> None:
        lives = Lives()
        for line in Sampler(self.name, self.facts.run, self.facts.epoch).read(files):
            if isinstance(line, Fault):
                self.faults.append(line)
                continue
            out.write(encode(line) + b"\n")
            lives.add(line)
            self._warm(line)
            line.processes = []  # most of a sample, and no longer asked for
            self.lines.append(line)
        self.lives = lives.all()

    def _warm(self, line: SampleLine) -> None:
        self.has_temperatures |= bool(line.temperatures)
        for one in line.temperatures:
            if self.hottest is None or one.celsius >= self.hottest.celsius:
                self.hottest = Hottest(one.name, one.celsius, line.end_s)

    def judge(self, flows: Sequence[FlowTold]) -> tuple[Watch, list[Anomaly]]:
        """`flows`: of the whole soak."""
        lines = self.lines
        judge = ProcessJudge(self.bounds, self.facts.alpha, self.found)
        processes, found = [], []
        for life in self.lives:
            told, of_life = judge.judge(life)
            processes.append(told)
            found += of_life
        for life in successive(self.lives):
            for one in judge.judge(life, tells=False)[1]:
                if one.kind == "leak":
                    one.text += ", over restarts"
                    found.append(one)
        counters: Counter[str] = Counter()
        for line in lines:
            counters.update({kind: n or 0 for kind, n in line.events.items()})
        host = HostTold(
            host=self.name,
            samples=len(lines),
            boots=len({line.boot_id for line in lines}),
            first_s=lines[0].start_s if lines else None,
            last_s=lines[-1].end_s if lines else None,
            temperature_highest=self.hottest,
            temperatures=self.has_temperatures,
            processes=processes,
            counters=dict(counters),
        )
        links_read = (sum(one.operstate is not None for one in x.links.values()) for x in lines)
        watch = Watch(
            host,
            watched=max((line.watched for line in lines), default=0),
            links_read=max(links_read, default=0),
            limits={
                "memory": self.bounds.of("leak_mb_per_hour"),
                "handles": self.bounds.of("handles_per_hour"),
            },
        )
        found += [*self._faults(), *self._times(), *self._clock(), *self._links(), *self._lost()]
        found += [*self._counters(), *self._unseen(flows), *self._unlike_agent(flows)]
        return watch, found

    # ---- single samples --------------------------------------------------------------------------

    def _of(
        self, line: SampleLine, kind: AnomalyKind, check: str, severity: Severity, text: str,
        value: float | None = None, unit: str | None = None,
    ) -> Anomaly:  # fmt: skip
        return self.found(
            kind, check, severity, text, line.start_s, line.end_s, [line.line], value, unit
        )

    def _faults(self) -> Iterator[Anomaly]:
        for one in self.faults:
            text = f"line {one.line} of its samples cannot be used: {one.why}"
            yield self.found("damaged", "samples", "inconclusive", text, lines=[one.line])

    def _times(self) -> Iterator[Anomaly]:
        """One sample an interval: where one is missing, it is not known what moved when."""
        for line in self.lines:
            long_s = line.long_s
            if line.reset:
                text = f"the host restarted; nothing is known of {long_s:.0f} s"
                yield self._of(line, "reboot", "reboots", "fail", text, long_s, "s")
            elif long_s > 2 * self.facts.soak.interval_s + 1:
                text = f"no sample for {long_s:.0f} s"
                yield self._of(line, "host", "samples", "inconclusive", text, long_s, "s")

    def _clock(self) -> Iterator[Anomaly]:
        """Uptime counts in hundredths."""
        for line in self.lines:
            if line.step_s is None:
                continue
            stepped = abs(line.step_s) - 0.02 - SLEW * line.long_s
            severity = self.bounds.broken("clock_s", stepped) if stepped > 0 else None
            if severity is not None:
                text = f"the wall clock was set by {line.step_s:.3f} s"
                yield self._of(line, "clock", "clock", severity, text, line.step_s, "s")

    def _links(self) -> Iterator[Anomaly]:
        for line in self.lines:
            for name, link in line.links.items():
                if link.flaps == 0:
                    continue
                times = plural(link.flaps, "time")
                text = f"the link of {name} changed {times}, and is {link.operstate}"
                if link.operstate is None:
                    text = f"{name} is not there any more"
                yield self._of(line, "link", "links", "fail", text, link.flaps, "changes")

    def _lost(self) -> Iterator[Anomaly]:
        """Samples that neither disk nor memory had room for, and counters that stay away.

        Their count goes on over restarts. A counter that is missing now and then is
        compared with its last reading; one that stays away is not known.
        """
        last = self.lines[-1] if self.lines else None
        if last is not None and last.absent:
            text = f"{names(last.absent, 3)} not read any more: what they counted since is not "
            yield self._of(last, "host", "samples", "inconclusive", text + "known",
                           len(last.absent), "counters")  # fmt: skip
        before: float = 0
        for line in self.lines:
            if line.dropped != before:
                text = f"{plural(line.dropped, 'sample')} before this one dropped, as disk and "
                yield self._of(line, "dropped", "samples", "inconclusive",
                               text + "memory were full", line.dropped, "samples")  # fmt: skip
            before = line.dropped

    # ---- counters --------------------------------------------------------------------------------

    def _counters(self) -> Iterator[Anomaly]:
        """Neighbouring samples in which the same class moved are one anomaly."""
        for kind in sorted({kind for line in self.lines for kind in line.events}):
            if kind == "errors" and self._are_few():
                continue
            run: list[SampleLine] = []
            for line in self.lines:
                if _is_bad(line, kind):
                    run.append(line)
                elif run:
                    yield self._counter(kind, run)
                    run = []
            if run:
                yield self._counter(kind, run)

    def _are_few(self) -> bool:
        """Whether a healthy link of the rate that was bought has as many errors in this time."""
        counts = [line.events.get("errors", 0) for line in self.lines]
        if not self.link_gbit_s or any(n is None for n in counts):
            return False
        seconds = self.lines[-1].end_s - self.lines[0].start_s
        bits = self.link_gbit_s * 1e9 * seconds
        return sum(n or 0 for n in counts) <= bits * ERROR_RATIO

    def _counter(self, kind: str, run: list[SampleLine]) -> Anomaly:
        """On software a card's counters are a virtual one's."""
        counts = [line.events[kind] for line in run]
        known = [n for n in counts if n is not None]
        total = sum(known) if len(known) == len(counts) else None
        severity: Severity = "advisory"
        if total is None:
            severity = "inconclusive"
        elif self.scope == "hardware" and kind != TCP and kind not in self.tolerated:
            severity = "fail"
        moved = sorted({name for line in run for name in line.moved if moved_class(name) == kind})
        text = f"a counter of {kind} was reset, has wrapped, is full or was not read before"
        if total is not None:
            text = f"{total} {kind}" + (f" ({names(moved, 4)})" if moved else "")
        return self.found(
            "counter", f"counters/{kind}", severity, text, run[0].start_s, run[-1].end_s,
            [line.line for line in run][:EVIDENCE_OF_COUNTERS], total, "events",
        )  # fmt: skip

    # ---- what was not seen -----------------------------------------------------------------------

    def _unseen(self, flows: Sequence[FlowTold]) -> Iterator[Anomaly]:
        """Processes that flows must have had, and that samples lack for most of their time."""
        lines = self.lines
        if len(lines) < 2 or not lines[-1].end_s > lines[0].start_s:
            return
        every = (lines[-1].end_s - lines[0].start_s) / (len(lines) - 1)
        own = [flow for flow in flows if flow.client == self.name]
        served = [flow for flow in flows if flow.server == self.name]
        wanted: dict[str, float] = {"agent": len(lines)}
        if served:
            wanted["serve"] = len(lines)
        for flow in own:
            for role in ("keeper", "measurer"):
                wanted[f"{role} of {flow.flow}"] = flow.measured_s / every
        if served:
            wanted["job"] = sum(flow.measured_s for flow in served) / every
        seen: Counter[str] = Counter()
        for life in self.lives:
            seen[life.name] += len(life.times)
        missing = [
            name for name, n in wanted.items() if n > FEW and seen[name] < SEEN_LEAST * n - 2
        ]
        if missing:
            text = f"its samples have no {names(missing, 3)} for most of the time, so "
            yield self.found("host", "memory", "inconclusive", text + "growth is not known")

    def _unlike_agent(self, flows: Sequence[FlowTold]) -> Iterator[Anomaly]:
        """Restarts that no gap explains, and files that were late."""
        told = self.facts.told[self.name]
        path = f"raw/{self.name}/{FLOWS}"
        roles = (
            ("client_restarted", "client", "its clients", "in their flows"),
            ("serve_restarted", "server", "perch serve", "in the flows that it serves"),
        )
        for what, end, whose, where in roles:
            lines = told.episodes.get(what, [])
            if lines and all(flow.gaps == 0 for flow in flows if getattr(flow, end) == self.name):
                text = f"{len(lines)} restarts of {whose}, and no gap {where}"
                yield self.found("host", "samples", "inconclusive", text, lines=lines, path=path)
        if told.end is not None and told.end.unwritten is not None:
            text = f"{told.end.unwritten} could not be written when it was due, as disk or memory "
            yield self.found("dropped", "samples", "advisory", text + "were full or gone",
                             lines=[told.end_at], path=path)  # fmt: skip


def _is_bad(line: SampleLine, kind: str) -> bool:
    """Whether what moved of a class in a sample is an anomaly."""
    n = line.events.get(kind, 0)
    packets = line.packets or 0
    if n == 0 or kind in SHOWN:
        return False
    if kind == TCP:
        return n is not None and n > TCP_SHARE * packets and n > TCP_LEAST
    if n is None or kind not in RARE:
        return True
    return n * 1e6 > RARE_PPM * packets
