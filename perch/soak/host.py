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
from perch.soak.fec import Corrected
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


class Run:
    """Neighbouring samples in which the same class of counters moved, added up as they come.

    `total`: None where one of them is not known.
    """

    def __init__(self, line: SampleLine) -> None:
        self.start_s, self.end_s = line.start_s, line.end_s
        self.total: int | None = 0
        self.moved: set[str] = set()
        self.lines: list[int] = []

    def add(self, line: SampleLine, kind: str) -> None:
        n = line.events[kind]
        self.total = None if n is None or self.total is None else self.total + n
        self.end_s = line.end_s
        self.moved |= {name for name in line.moved if moved_class(name) == kind}
        if len(self.lines) < EVIDENCE_OF_COUNTERS:
            self.lines.append(line.line)


class Host:
    """Reads the samples of a host, writes them into intervals.jsonl, and judges them.

    No sample is kept: a soak of a week has 10,000, of some KB each.
    """

    def __init__(self, facts: Facts, name: str, planned: PlanHost) -> None:
        self.facts, self.name, self.scope = facts, name, planned.scope
        self.link_gbit_s, self.tolerated = planned.link_gbit_s, tolerated([planned])
        self.bounds: Bounds = of_host(name, self.scope, facts.limits)
        self.found = Finder(facts, name, f"raw/{name}/samples.jsonl")
        self.lives: list[Life] = []
        self.hottest: Hottest | None = None
        self.has_temperatures = False
        self.count = self.watched = self.links_read = 0
        self.first_s = 0.0
        self.last: SampleLine | None = None
        self.boots: dict[str, int] = {}
        self.totals: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self.open: dict[str, Run] = {}
        self.runs: dict[str, list[Run]] = {}
        self.corrected = Corrected(self.link_gbit_s)
        self.singles: dict[str, list[Anomaly]] = {
            kind: [] for kind in ("faults", "times", "clock", "links", "dropped")
        }

    def read(self, files: RawFiles, out: BinaryIO) -> None:
        lives = Lives()
        for line in Sampler(self.name, self.facts.run, self.facts.epoch).read(files):
            if isinstance(line, Fault):
                text = f"line {line.line} of its samples cannot be used: {line.why}"
                fault = self.found("damaged", "samples", "inconclusive", text, lines=[line.line])
                self.singles["faults"].append(fault)
                continue
            out.write(encode(line) + b"\n")
            lives.add(line)
            self._add(line)
        self.lives = lives.all()

    def _add(self, line: SampleLine) -> None:
        before = self.last.dropped if self.last else 0
        self.singles["times"] += self._times(line)
        self.singles["clock"] += self._clock(line)
        self.singles["links"] += self._links(line)
        self.singles["dropped"] += self._dropped(line, before)
        self._count(line)
        self.corrected.add(line)
        self._warm(line)
        self.first_s = self.first_s if self.last else line.start_s
        self.count += 1
        self.boots.setdefault(line.boot_id, line.line)
        self.watched = max(self.watched, line.watched)
        read = sum(one.operstate is not None for one in line.links.values())
        self.links_read = max(self.links_read, read)
        self.last = line

    def _warm(self, line: SampleLine) -> None:
        self.has_temperatures |= bool(line.temperatures)
        for one in line.temperatures:
            if self.hottest is None or one.celsius >= self.hottest.celsius:
                self.hottest = Hottest(one.name, one.celsius, line.end_s)

    def judge(self, flows: Sequence[FlowTold]) -> tuple[Watch, list[Anomaly]]:
        """`flows`: of the whole soak."""
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
        host = HostTold(
            host=self.name,
            samples=self.count,
            boots=len(self.boots),
            first_s=self.first_s if self.last else None,
            last_s=self.last.end_s if self.last else None,
            temperature_highest=self.hottest,
            temperatures=self.has_temperatures,
            processes=processes,
            counters=dict(self.totals),
        )
        watch = Watch(
            host,
            watched=self.watched,
            links_read=self.links_read,
            limits={
                "memory": self.bounds.of("leak_mb_per_hour"),
                "handles": self.bounds.of("handles_per_hour"),
            },
        )
        for kind, singles in self.singles.items():
            found += [*(self._absent() if kind == "dropped" else ()), *singles]
        found += [*self._counters(), *self._fec(), *self._unseen(flows), *self._unlike_agent(flows)]
        found += self._other_boots()
        return watch, found

    # ---- single samples --------------------------------------------------------------------------

    def _of(
        self, line: SampleLine, kind: AnomalyKind, check: str, severity: Severity, text: str,
        value: float | None = None, unit: str | None = None,
    ) -> Anomaly:  # fmt: skip
        return self.found(
            kind, check, severity, text, line.start_s, line.end_s, [line.line], value, unit
        )

    def _times(self, line: SampleLine) -> Iterator[Anomaly]:
        """One sample an interval: where one is missing, it is not known what moved when."""
        long_s = line.long_s
        if line.reset:
            text = f"the host restarted; nothing is known of {long_s:.0f} s"
            yield self._of(line, "reboot", "reboots", "fail", text, long_s, "s")
        elif long_s > 2 * self.facts.soak.interval_s + 1:
            text = f"no sample for {long_s:.0f} s"
            yield self._of(line, "host", "samples", "inconclusive", text, long_s, "s")

    def _clock(self, line: SampleLine) -> Iterator[Anomaly]:
        """Uptime counts in hundredths."""
        if line.step_s is None:
            return
        stepped = abs(line.step_s) - 0.02 - SLEW * line.long_s
        severity = self.bounds.broken("clock_s", stepped) if stepped > 0 else None
        if severity is not None:
            text = f"the wall clock was set by {line.step_s:.3f} s"
            yield self._of(line, "clock", "clock", severity, text, line.step_s, "s")

    def _links(self, line: SampleLine) -> Iterator[Anomaly]:
        for name, link in line.links.items():
            if link.flaps == 0:
                continue
            times = plural(link.flaps, "time")
            text = f"the link of {name} changed {times}, and is {link.operstate}"
            if link.operstate is None:
                text = f"{name} is not there any more"
            yield self._of(line, "link", "links", "fail", text, link.flaps, "changes")

    def _dropped(self, line: SampleLine, before: float) -> Iterator[Anomaly]:
        """Samples that neither disk nor memory had room for. Their count goes on over restarts."""
        if line.dropped != before:
            text = f"{plural(line.dropped, 'sample')} before this one dropped, as disk and "
            yield self._of(line, "dropped", "samples", "inconclusive",
                           text + "memory were full", line.dropped, "samples")  # fmt: skip

    def _absent(self) -> Iterator[Anomaly]:
        """Counters that stay away: of one that is missing now and then the last reading counts."""
        last = self.last
        if last is not None and last.absent:
            text = f"{names(last.absent, 3)} not read any more: what they counted since is not "
            yield self._of(last, "host", "samples", "inconclusive", text + "known",
                           len(last.absent), "counters")  # fmt: skip

    # ---- counters --------------------------------------------------------------------------------

    def _count(self, line: SampleLine) -> None:
        """Neighbouring samples in which the same class moved are one anomaly."""
        for kind, n in line.events.items():
            self.totals[kind] += n or 0
            if n is None:
                self.unknown.add(kind)
            if _is_bad(line, kind):
                self.open.setdefault(kind, Run(line)).add(line, kind)
        for kind in [kind for kind in self.open if not _is_bad(line, kind)]:
            self.runs.setdefault(kind, []).append(self.open.pop(kind))

    def _counters(self) -> Iterator[Anomaly]:
        for kind in sorted({*self.runs, *self.open}):
            if kind == "errors" and self._are_few():
                continue
            for run in (*self.runs.get(kind, ()), *filter(None, [self.open.get(kind)])):
                yield self._counter(kind, run)

    def _are_few(self) -> bool:
        """Whether a healthy link of the rate that was bought has as many errors in this time."""
        if not self.link_gbit_s or self.last is None or "errors" in self.unknown:
            return False
        bits = self.link_gbit_s * 1e9 * (self.last.end_s - self.first_s)
        return self.totals["errors"] <= bits * ERROR_RATIO

    def _counter(self, kind: str, run: Run) -> Anomaly:
        """On software a card's counters are a virtual one's."""
        severity: Severity = "advisory"
        if run.total is None:
            severity = "inconclusive"
        elif self.scope == "hardware" and kind != TCP and kind not in self.tolerated:
            severity = "fail"
        text = f"a counter of {kind} was reset, has wrapped, is full or was not read before"
        if run.total is not None:
            moved = sorted(run.moved)
            text = f"{run.total} {kind}" + (f" ({names(moved, 4)})" if moved else "")
        return self.found(
            "counter", f"counters/{kind}", severity, text, run.start_s, run.end_s, run.lines,
            run.total, "events",
        )  # fmt: skip

    def _fec(self) -> Iterator[Anomaly]:
        """Of each link with too much error correction its worst sample; those that do not tell."""
        severity: Severity = "fail" if self.scope == "hardware" else "advisory"
        for one in self.corrected.bad():
            text = f"FEC corrected {one.ratio:.1e} of the bits of {one.device}"
            yield self._of(
                one.line, "counter", "counters/fec", severity, text, one.ratio, "of all bits"
            )
        for device, line in sorted(self.corrected.gaps.items()):
            text = f"the count of bits that FEC corrected on {device} was reset or is full"
            yield self._of(line, "counter", "samples", "inconclusive", text)

    # ---- what was not seen -----------------------------------------------------------------------

    def _unseen(self, flows: Sequence[FlowTold]) -> Iterator[Anomaly]:
        """Processes that flows must have had, and that samples lack for most of their time."""
        count = self.count
        if self.last is None or count < 2 or not self.last.end_s > self.first_s:
            return
        every = (self.last.end_s - self.first_s) / (count - 1)
        own = [flow for flow in flows if flow.client == self.name]
        served = [flow for flow in flows if flow.server == self.name]
        wanted: dict[str, float] = {"agent": count}
        if served:
            wanted["serve"] = count
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

    def _other_boots(self) -> Iterator[Anomaly]:
        """Boots in which its agent did not start.

        The agent writes environment.json, its first start and its first sample in one boot. After a
        reboot it starts again.
        """
        starts = [start.boot_id for start in self.facts.told[self.name].starts]
        known = self.facts.boots.get(self.name)
        if known and starts and starts[0] != known:
            text = "its environment.json belongs to another boot than the first start of its agent"
            path = f"raw/{self.name}/environment.json"
            yield self.found("host", "samples", "inconclusive", text, path=path)
        for boot, line in self.boots.items():
            if starts and boot not in starts:
                text = f"line {line} of its samples is of boot {boot}, in which its agent did not "
                yield self.found("host", "samples", "inconclusive", text + "start", lines=[line])

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
