"""Did a soak last, and what happened in it? Each anomaly names the check that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from perch.checks import RunView, check, design, first, names, plural
from perch.checks.remedies import for_soak
from perch.checks.soak_words import words
from perch.model.limits import Limit
from perch.model.soak import Anomaly, FlowTold, ProcessTold
from perch.model.verdict import EVIDENCE_MAX, Bound, Check, CheckStatus
from perch.soak.told import Group, Soak, Watch

_RANKS = ("fail", "inconclusive", "advisory")

_HEALTHY = "IEEE 802.3, PCI Express: a healthy link has next to none within a soak"

_UNREAD = (
    "see raw/HOST/samples.jsonl and agent.log; check that perch_devices in the inventory carry the "
    "traffic"
)
_AGENT = "see agent.log and flows.jsonl of that host"


@check(family="soak", order=900)
def soak(run: RunView) -> Iterator[Check]:
    if run.soak is not None:
        yield from _Checks(run, run.soak).all()


# ---- words ---------------------------------------------------------------------------------------


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds:.0f} s"


def _words(limits: Iterable[Limit]) -> str:
    """Each bound with where it comes from; those that are only shown say so."""
    said = set()
    for limit in limits:
        bound = limit.bound
        of = f"at most {bound.max}" if bound.min is None else f"at least {bound.min}"
        said.add(f"{of}{'' if limit.is_required else ' (shown)'}: {limit.source}")
    return "; ".join(sorted(said))


def _most(limits: Iterable[Limit]) -> float | None:
    """The bound that must be kept."""
    return min(
        (one.bound.max for one in limits if one.is_required and one.bound.max is not None),
        default=None,
    )


def _check(
    found: Sequence[Anomaly], name: str, well: str | float, source: str, remedy: str
) -> Check:
    """What the gravest anomaly says, and how many more there are; `well`: where there is none."""
    title, fault = words(name)
    one = Check(id=f"soak/{name}", title=title, status="pass", measured=well, source=source)
    if not found:
        return one
    gravest = min(found, key=lambda anomaly: _RANKS.index(anomaly.severity))
    when = "" if gravest.start is None else f" at {gravest.start}"
    more = "" if len(found) == 1 else f"; and {len(found) - 1} more"
    evidence = sorted({place for anomaly in found for place in anomaly.evidence})
    return msgspec.structs.replace(
        one,
        fault=fault,
        status=gravest.severity,
        measured=f"{gravest.flow or gravest.host}: {gravest.text}{when}{more}",
        evidence=evidence[:EVIDENCE_MAX],
        remedy=remedy,
    )


def _with(
    one: Check,
    status: CheckStatus,
    measured: str,
    remedy: str | None,
    evidence: list[str] | None = None,
) -> Check:
    return msgspec.structs.replace(
        one, status=status, measured=measured, remedy=remedy,
        evidence=one.evidence if evidence is None else evidence,
    )  # fmt: skip


# ---- checks --------------------------------------------------------------------------------------


class _Checks:
    def __init__(self, run: RunView, soak: Soak) -> None:
        assert run.plan.soak is not None
        self.hosts, self.plan, self.soak = run.plan.hosts, run.plan.soak, soak

    def all(self) -> Iterator[Check]:
        tests: dict[str, list[FlowTold]] = {}
        for flow in self.soak.flows:
            tests.setdefault(flow.test, []).append(flow)
        yield self.state()
        for test, flows in tests.items():
            yield self.coverage(test, flows)
        yield self.gaps()
        yield self.stalls()
        for test, flows in tests.items():
            yield from self.intervals(test, flows)
            yield from self.tails(test, flows)
            yield from self.courses(test, flows)
        yield self.memory()
        yield self.handles()
        yield from self.counters()
        yield self.integrity()
        yield self.links()
        yield self.of(
            "clock", 0,
            "RFC 5905: a clock that is off by 128 ms is stepped",
            "synchronise the hosts with one time server (systemctl enable --now chronyd); until "
            "then, times of logs and anomalies do not match there",
        )  # fmt: skip
        yield self.of(
            "reboots", 0, "site policy: a host of a fabric stays up",
            "see why it went down (journalctl -b -1)",
        )  # fmt: skip
        yield self.rate()
        ended = [flow for flow in self.soak.flows if flow.state in ("done", "stopped")]
        yield self.of(
            "sum", plural(len(ended), "flow"), design("nothing is averaged away"),
            "files were edited, damaged or mixed up: measure again",
        )  # fmt: skip
        yield self.of(
            "lines", f"{self.soak.lines} lines",
            design("a half line at the end is tolerated, no other"),
            "see the named lines; was the disk full (dropped lines)?",
        )  # fmt: skip
        yield self.samples()

    def found(self, name: str, flows: Sequence[FlowTold] | None = None) -> list[Anomaly]:
        ids = None if flows is None else {flow.flow for flow in flows}
        return [
            one
            for one in self.soak.anomalies
            if one.check == f"soak/{name}" and (ids is None or one.flow in ids)
        ]

    def of(self, name: str, well: str | float, source: str, remedy: str) -> Check:
        return _check(self.found(name), name, well, source, remedy)

    def limits(self, metric: str, flows: Sequence[FlowTold] | None = None) -> list[Limit]:
        """Those that speak of any of these flows."""
        of = self.soak.flows if flows is None else flows
        all_of_it = (one for flow in of for one in self.soak.limits[flow.flow].get(metric, []))
        return list({id(one): one for one in all_of_it}.values())

    def state(self) -> Check:
        state, planned_s = self.soak.state, self.plan.duration_s
        said = {
            "running": "still running", "stopped": "stopped early", "short": "time is missing",
            "none": "not started", "done": "done",
        }[state]  # fmt: skip
        remedies = {
            "short": "see flows.jsonl and agent.log of the hosts whose flows lack time",
            "none": "see agent.log of the hosts: the soak never began there",
        }
        return Check(
            id="soak/state",
            title="The soak lasted as long as planned",
            fault="The soak is shorter than planned",
            status="pass" if state == "done" else "inconclusive",
            measured=f"{said}: {_hours(self.soak.passed_s)} of {_hours(planned_s)}",
            limit=Bound(planned_s, None),
            unit="s",
            source=design("a soak is judged over its whole time"),
            remedy=for_soak(state) or remedies.get(state),
        )

    def coverage(self, test: str, flows: Sequence[FlowTold]) -> Check:
        intervals = plural(sum(flow.intervals for flow in flows), "interval")
        measured = _hours(sum(flow.passed_s for flow in flows))
        one = _check(
            self.found("coverage", flows),
            f"coverage/{test}",
            f"{plural(len(flows), 'flow')}, {intervals}, {measured} measured",
            design("intervals and gaps follow each other, and together they are the planned time"),
            "see the lines that are named, and agent.log of that host; measure again",
        )
        open_flows = [flow for flow in flows if flow.state != "done"]
        if one.status != "pass" or not open_flows:
            return one
        state = open_flows[0].state
        text = f"{len(open_flows)} of {plural(len(flows), 'flow')} not measured to the end: "
        one.fault = f"Test {test} was not measured to the end"
        return _with(
            one,
            "inconclusive",
            f"{text}{open_flows[0].flow} is {state}",
            for_soak("running" if state == "waiting" else state)
            or "see flows.jsonl and agent.log of the hosts, and measure again",
            first(flow.flow for flow in open_flows),
        )

    def gaps(self) -> Check:
        n = sum(flow.gaps for flow in self.soak.flows)
        lost_s = sum(flow.gap_s for flow in self.soak.flows)
        one = self.of(
            "gaps", f"{n} lost, {lost_s:.1f} s without one" if n else 0,
            _words(self.limits("gaps")),
            "see the logs of both hosts and of the switches at that time",
        )  # fmt: skip
        if n and one.status == "pass":
            one.title = "Lost connections are within the limit"
        return one

    def stalls(self) -> Check:
        """A silence is a stall from a length on that the suite says.

        Where a required limit is below it, the outcome is not known.
        """
        least = self.plan.stall_s
        limits = self.limits("stall_s")
        most = _most(limits)
        n = sum(flow.stalls for flow in self.soak.flows)
        stood_s = sum(flow.stall_s for flow in self.soak.flows)
        well = f"{plural(n, 'stall')}, {stood_s:.3f} s in total, each shorter than the limit"
        one = self.of(
            "stalls", well if n else 0, f"{_words(limits)}; docs/soak.md",
            "see counters, pauses and logs at that time; other work on a core of software",
        )  # fmt: skip
        if n and one.status == "pass":
            one.title = "Stalls are shorter than the limit"
        if one.status in ("fail", "inconclusive") or most is None or least <= most:
            return one
        text = f"the limit is {most} s, but stalls shorter than {least} s were not recorded"
        return _with(one, "inconclusive", text, f"give the suite a soak.stall of at most {most} s")

    # ---- by test ---------------------------------------------------------------------------------

    def intervals(self, test: str, flows: Sequence[FlowTold]) -> Iterator[Check]:
        of = [(flow, flow.figures.bandwidth) for flow in flows if flow.figures.bandwidth]
        if of:
            lowest = [one.lowest_interval for _, one in of if one.lowest_interval is not None]
            yield self._held(
                f"interval/{test}", flows,
                ("interval_share", "window_share", "interval_gbit_s"),
                f"lowest interval {min(lowest, default=None)} Gb/s",
                [flow.flow for flow, one in of if one.lowest_interval is None], "a figure",
                "check the logs of both hosts and of the switches at that time (link, pause "
                "storms, other traffic)",
            )  # fmt: skip

    def tails(self, test: str, flows: Sequence[FlowTold]) -> Iterator[Check]:
        of = [(flow, flow.figures.latency) for flow in flows if flow.figures.latency]
        if of:
            highest = [one.p99_highest for _, one in of if one.p99_highest is not None]
            yield self._held(
                f"latency/{test}", flows, ("p99_us", "p99_times"),
                f"highest p99 {max(highest, default=None)}",
                [flow.flow for flow, one in of if one.p99_highest is None],
                "samples enough for a p99",
                "look for other load and pauses at that time on both hosts, and for "
                "retransmissions",
            )  # fmt: skip

    def _held(
        self, name: str, flows: Sequence[FlowTold], metrics: Iterable[str], well: str,
        without: list[str], lacks: str, remedy: str,
    ) -> Check:  # fmt: skip
        """Every limit on a test's lines; `without`: flows that have nothing."""
        limits = [limit for metric in metrics for limit in self.limits(metric, flows)]
        found = self.found(name.partition("/")[0], flows)
        one = _check(found, name, well, _words(limits) or "no limit", remedy)
        if not limits:
            return _with(one, "not_judged", "no limit applies to it", one.remedy)
        is_hard = any(flow.scope == "hardware" for flow in flows)
        if not without or not (one.status == "pass" or (is_hard and one.status == "advisory")):
            return one
        # what was found in other flows stays
        before = f"{one.measured}; " if one.status == "advisory" else ""
        longer = "give the suite a longer interval, or latency a higher rate: a p99 needs 1,000 "
        return _with(
            one, "inconclusive" if is_hard else "not_judged",
            f"{before}no interval of {names(without, 3)} has {lacks}",
            f"{longer}samples" if is_hard else None, without[:EVIDENCE_MAX],
        )  # fmt: skip

    def courses(self, test: str, flows: Sequence[FlowTold]) -> Iterator[Check]:
        groups = [group for group in self.soak.groups if group.test == test]
        metrics = ("bandwidth_percent", "p50_percent", "p99_percent")
        limits = [limit for metric in metrics for limit in self.limits(metric, flows)]
        courses = [course for group in groups for course in group.courses]
        judged = [course for course in courses if course.judged]
        whys = [course.why for course in courses if not course.judged]
        is_hard = any(flow.scope == "hardware" for flow in flows)
        for name in ("drift", "change"):
            one = _check(
                self.found(name, flows),
                f"{name}/{test}",
                f"{plural(len(judged), 'course')} within their limits",
                f"{_words(limits)}; P. K. Sen 1968, A. N. Pettitt 1979, one false alarm in a "
                "hundred soaks (Bonferroni)",
                "look at what changed at that time: logs of hosts and switches, temperatures, "
                "other load, routes",
            )
            if one.status == "pass" and not judged:
                why = (whys[0] if whys else None) or "no interval has a figure"
                longer = "soak for longer, or with a shorter interval"
                one = _with(one, "inconclusive" if is_hard else "not_judged", why,
                            longer if is_hard else None)  # fmt: skip
            elif one.status == "pass" and name == "drift":
                one = self._doubted(one, groups)
            yield one

    def _doubted(self, one: Check, groups: Sequence[Group]) -> Check:
        """Where the limit is only shown, the doubt is only shown, too."""
        doubts = [doubt for group in groups for doubt in group.doubts]
        if not doubts:
            return one
        gravest = min(doubts, key=lambda doubt: not doubt.binding)
        longer = "soak for longer: the interval of a slope narrows with time"
        return _with(
            one, "inconclusive" if gravest.binding else "not_judged",
            f"{gravest.text}: a drift beyond its limit would look the same",
            longer if gravest.binding else None,
        )  # fmt: skip

    # ---- processes -------------------------------------------------------------------------------

    def memory(self) -> Check:
        return self._growth("memory", "MB/h", lambda one: one.judged)

    def handles(self) -> Check:
        return self._growth("handles", "an hour", lambda one: one.handles_low is not None)

    def _host_limits(self, name: str) -> list[Limit]:
        return [limit for one in self.soak.hosts for limit in one.limits[name]]

    def _growth(self, name: str, unit: str, is_told: Callable[[ProcessTold], bool]) -> Check:
        """Growth that is not clear in any one process may still be there.

        Handles need no time for it, as few come and go.
        """
        processes = [process for one in self.soak.hosts for process in one.told.processes]
        told = [process for process in processes if is_told(process)]
        untold = [process for process in processes if not is_told(process)]
        limits = self._host_limits(name)
        most = _most(limits)
        well = f"{len(told)} of {len(processes)} processes ran long enough to judge"
        if told and name == "memory":
            well += f", the steepest {max(one.mb_per_hour or 0 for one in told)} MB/h"
        one = self.of(
            name, well, "; ".join(sorted({limit.source for limit in limits})),
            "report the engine's version and the named lines to its developers; restart the "
            "growing process",
        )  # fmt: skip
        one.title += "" if most is None else f" by more than {most} {unit}"
        if one.status != "pass" or (processes and not untold and most is not None):
            return one
        if most is None:
            return _with(one, "not_judged", "no required limit", None)
        if not processes:
            return _with(one, "not_judged", "no process was seen", None)
        # the one that has most room to grow unseen
        least = next((p for p in reversed(untold) if p.role in ("measurer", "job")), untold[-1])
        why = least.why or "too few samples"
        if name == "handles" and least.handles_last is None:
            why = "its file descriptors were not counted"
        return _with(one, "not_judged", f"{well}; {least.role}: {why}", None)

    # ---- hosts -----------------------------------------------------------------------------------

    def _unread(self, count: Callable[[Watch], int]) -> tuple[list[str], CheckStatus]:
        """Hosts that were looked at and showed nothing: what is not read cannot move."""
        unread = [
            one.told.host for one in self.soak.hosts if one.told.samples > 1 and count(one) == 0
        ]
        is_hard = any(self.hosts[name].scope == "hardware" for name in unread)
        return unread, "inconclusive" if is_hard else "not_judged"

    @property
    def _is_seen(self) -> bool:
        return any(one.told.samples > 1 for one in self.soak.hosts)

    def counters(self) -> Iterator[Check]:
        found = [one for one in self.soak.anomalies if one.check.startswith("soak/counters/")]
        for name in sorted({one.check for one in found}):
            kind = name.removeprefix("soak/counters/")
            yield _check(
                [one for one in found if one.check == name], f"counters/{kind}",
                "",
                f"{_HEALTHY}; retransmissions: thirty times the damage of a bit error ratio of "
                "1e-12",
                "check the other end at that time: switch ports, cables and the other hosts",
            )  # fmt: skip
        unread, status = self._unread(lambda one: one.watched)
        watched = sum(one.watched for one in self.soak.hosts)
        one = Check(
            id="soak/counters",
            title="No error counter moved beyond its limit in any interval",
            fault="Error counters were not read",
            status="pass",
            measured=f"{watched} counters, none beyond its limit",
            source=_HEALTHY,
        )
        if unread:
            text = f"no counter was read on {names(unread, 4)}"
            yield _with(one, status, text, _UNREAD if status == "inconclusive" else None)
        elif found or not self._is_seen:
            text = "see the classes that moved" if found else "no host has two samples"
            yield _with(one, "not_judged", text, None)
        else:
            yield one

    def links(self) -> Check:
        unread, status = self._unread(lambda one: one.links_read)
        one = self.of(
            "links", 0, "IEEE 802.3: a healthy link stays up",
            "replace cable and transceiver of that port, and check the port on the switch",
        )  # fmt: skip
        if one.status not in ("pass", "advisory"):
            return one
        if unread:
            text = f"no link was read on {names(unread, 4)}"
            one.fault = "Link states were not read"
            return _with(one, status, text, _UNREAD if status == "inconclusive" else None)
        if self._is_seen:
            return one
        return _with(one, "not_judged", "no host has two samples", one.remedy)

    def integrity(self) -> Check:
        one = self.of(
            "integrity", 0,
            design("one bad byte is a failure"),
            "do not use this fabric; offset, time and pattern help to find the faulty NIC, memory "
            "or switch",
        )  # fmt: skip
        is_verified = any(flow.figures.checked_bytes is not None for flow in self.soak.flows)
        if is_verified or one.status != "pass":
            return one
        return _with(one, "not_judged", "no flow verifies its payload", None)

    def rate(self) -> Check:
        """A pace has a limit for each flow that was asked for one."""
        limits = self.limits("rate_percent")
        most = min((one.bound.max for one in limits if one.bound.max is not None), default=None)
        one = self.of(
            "rate", f"within {most} %", _words(limits),
            "where less was sent, the fabric could not carry the rate; otherwise report it with "
            "the named lines",
        )  # fmt: skip
        if most is not None or one.status != "pass":
            return one
        return _with(one, "not_judged", "no limit applies to it", None)

    def samples(self) -> Check:
        late = 2 * self.plan.interval_s + 5
        bad: dict[str, str] = {}
        for host in (one.told for one in self.soak.hosts):
            first_s, last_s = host.first_s or 0, host.last_s or 0
            if host.samples == 0:
                bad[host.host] = f"{host.host} left no sample"
            elif first_s > late or last_s < self.soak.passed_s - late:
                bad[host.host] = f"{host.host} has samples from {first_s} to {last_s} s only"
        n = sum(one.told.samples for one in self.soak.hosts)
        one = self.of(
            "samples", f"{n} samples of {plural(len(self.soak.hosts), 'host')}",
            design("counters, memory, links and temperatures once an interval"), _AGENT,
        )  # fmt: skip
        if not bad:
            return one
        one.fault = words("samples")[1]
        return _with(one, "inconclusive", names(list(bad.values()), 3), _AGENT, list(bad))
