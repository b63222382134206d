"""All turns of one test between two hosts: each flow against the plan, and their common course."""

from __future__ import annotations

from collections.abc import Iterator

from perch.judge.asked import Asking
from perch.judge.raw import flow_folder
from perch.model.figures import rounded
from perch.model.limits import Limit
from perch.model.plan import Flow
from perch.model.soak import Anomaly, AnomalyKind, FlowState, FlowTold, Severity
from perch.soak import agreement, drift, figures, flow
from perch.soak.bounds import Bounds, of_flow
from perch.soak.facts import Facts, Finder
from perch.soak.flow import Flowing, spoken_s
from perch.soak.lines import FlowLines, Reader, slack
from perch.soak.moments import dated, microseconds
from perch.soak.told import Group

#: Of the time that a flow covers, what all moments between intervals may be. Site policy.
BETWEEN_MOST = 0.05


class Turns:
    """Judges the turns of one test between two hosts, in their order.

    until: when the turn before was over, by its host's uptime; None: there was none, or it is not
    known.
    """

    def __init__(self, reader: Reader, facts: Facts, asking: Asking) -> None:
        self.reader, self.facts, self.asking = reader, facts, asking
        self.series = drift.Series()
        self.until: float | None = None
        self.flows: list[FlowTold] = []
        self.found: list[Anomaly] = []
        self.found_in_course: list[Anomaly] = []
        self.limits: dict[str, dict[str, list[Limit]]] = {}
        self.in_files = 0

    def judge(self, turns: list[Flow]) -> Group:
        bounds = [of_flow(one, self.facts.limits) for one in turns]
        for one, of_one in zip(turns, bounds, strict=True):
            self.limits[one.id] = of_one.by_metric
            self.flows.append(self._turn(one, of_one))
        group, self.found_in_course = drift.of_group(
            turns[0].test, self.series, bounds[-1], self.facts
        )
        for told in self.flows:
            told.drift = group.courses
        return group

    def _turn(self, one: Flow, bounds: Bounds) -> FlowTold:
        read = self.reader.read(one)
        self.in_files += read.in_file
        of = _flowing(one, bounds, read, self.facts)
        chain, begun = flow.chain(of), flow.began(of, self.facts)
        alien = list(self._foreign(of, begun))
        state = _state(of, chain.at, self.facts.states[one.client], is_foreign=bool(alien))
        middle, total = figures.medians(of), figures.total(of)
        self.found += [
            *(
                of.found("foreign", "coverage", "inconclusive",
                         f"its file belongs to another measurement: {why}", lines=[1])
                for why in alien
            ),
            *flow.damaged(of, read.in_file),
            *chain.found,
            *flow.short(of),
            *flow.gaps(of, flow.stop_asked(of, self.facts, begun)),
            *flow.stalls(of),
            *flow.stalls_left(of),
            *flow.silent(of),
            *flow.out_of_order(of),
            *agreement.of_no_connection(of),
            *agreement.connections(of, self.asking.of(one).requests),
            *flow.corrupt(of),
            *agreement.of_messages(of),
            *agreement.unchecked(of),
            *agreement.repeated(of),
            *flow.clock(of),
            *figures.intervals(of, middle),
            *figures.pace(of, total),
            *_missing(of, chain, state),
            *_unlike_whole(of, read, total),
        ]  # fmt: skip
        if begun is not None:
            self.until = begun + chain.at
        self._add_to_series(of)
        return _told(of, chain, state, middle, total)

    def _add_to_series(self, of: Flowing) -> None:
        """Intervals of less than half of the planned length vary too much for a course."""
        for line in of.well:
            if line.long_s > 0.5 * of.soak.interval_s:
                at = of.found.offset + (line.start_s + line.end_s) / 2
                self.series.bandwidth.add(at, line.gbit_s, line.n, of.found)
                self.series.p50.add(at, line.p50, line.n, of.found)
                self.series.p99.add(at, line.p99, line.n, of.found)

    def _foreign(self, of: Flowing, begun: float | None) -> Iterator[str]:
        if not of.lines:
            return
        why = flow.foreign(of, self.facts.addresses[of.flow.server])
        if why is not None:
            yield why
        heads = of.heads
        if len(heads) > 1:
            yield f"another soak begins at line {heads[1].n}"
        if self.until is not None and begun is not None and begun < self.until - of.slack_s:
            yield (
                f"it began {spoken_s(begun)} after its agent, but the turn before it lasted "
                f"{spoken_s(self.until - begun)} longer"
            )


def _flowing(one: Flow, bounds: Bounds, read: FlowLines, facts: Facts) -> Flowing:
    path, soak = f"{flow_folder(one, one.client)}/client.soak", facts.soak
    found = Finder(facts, one.client, path, flow=one.id, more=(read.in_file, read.printed))
    of = Flowing(
        one, soak, read.lines, bounds, found, float(one.estimate_s), slack(soak.interval_s)
    )
    found.offset = _soak_s(of) or 0.0
    return of


def _soak_s(of: Flowing) -> float | None:
    """When the flow started, in seconds since the soak began."""
    return None if of.started_s is None else of.started_s - of.found.facts.epoch


def _state(of: Flowing, at: float, agent: str | None, *, is_foreign: bool) -> FlowState:
    whole = of.whole
    if not of.lines:
        return "waiting" if agent == "running" else "none"
    if is_foreign:
        return "foreign"
    if whole is not None and whole.soak.stopped is True:
        return "stopped"
    if whole is not None and of.duration_s - at <= of.slack_s:
        return "done"
    return "running" if whole is None and agent == "running" else "short"


def _told(
    of: Flowing,
    chain: flow.Chain,
    state: FlowState,
    middle: figures.Medians,
    total: figures.Total,
) -> FlowTold:
    one, soak_s = of.flow, _soak_s(of)
    summary = of.whole.soak if of.whole else None
    return FlowTold(
        flow=one.id, test=one.test, kind=one.kind, client=one.client, server=one.server,
        turn=one.repeat,
        size_bytes=one.expect[0].size_bytes if one.expect else None,
        scope=one.scope, backend=one.backend, provider=one.provider, op=one.op, state=state,
        soak_s=None if soak_s is None else microseconds(soak_s),
        started=None if of.started_s is None else dated(of.started_s),
        planned_s=rounded(of.duration_s), passed_s=microseconds(chain.at),
        measured_s=microseconds(chain.measured), intervals=total.intervals,
        connections=total.connections, gaps=total.gaps, gap_s=rounded(total.gap_s),
        stalls=total.stalls, stall_s=rounded(total.stall_s),
        stall_messages=total.stall_messages, messages=total.messages, bytes=total.bytes,
        resumed=bool(summary and summary.resumed is True),
        stopped=bool(summary and summary.stopped is True),
        dropped_lines=summary.dropped_lines if summary else 0,
        figures=figures.told(of, middle, total), stall_limit_s=of.bounds.most("stall_s"),
    )  # fmt: skip


def _missing(of: Flowing, chain: flow.Chain, state: str) -> Iterator[Anomaly]:
    """Planned time that no line covers."""
    hole: tuple[AnomalyKind, str, Severity] = ("hole", "coverage", "inconclusive")
    if state == "none":
        yield of.found(*hole, "the client.soak of this flow is missing")
    if chain.at > 0 and chain.between > BETWEEN_MOST * chain.at:
        text = f"{spoken_s(chain.between)} of it are outside of intervals and gaps"
        yield of.found(*hole, text, 0, chain.at, value=chain.between, unit="s")
    if of.lines and state in ("done", "short") and not any(of.well):
        yield of.found(*hole, "it has no interval that can be judged", 0, chain.at)
    if of.whole is not None and state == "short":
        text = f"it ended after {spoken_s(chain.at)} of the planned {of.duration_s:g} s"
        left = of.duration_s - chain.at
        yield of.found(*hole, text, chain.at, of.duration_s, value=left, unit="s")


def _unlike_whole(of: Flowing, read: FlowLines, total: figures.Total) -> Iterator[Anomaly]:
    whole = of.whole
    unlike: tuple[AnomalyKind, str, Severity] = ("sum", "sum", "inconclusive")
    if whole is not None:
        for why in figures.sums(of, whole, total):
            yield of.found(*unlike, why, lines=[whole.n])
    if read.differs:
        yield of.found(*unlike, "the last lines of client.soak and of its output differ")
    if whole is not None and whole.soak.dropped_lines:
        n = whole.soak.dropped_lines
        text = f"{n} lines were dropped because disk and memory were full"
        yield of.found("dropped", "lines", "inconclusive", text, lines=[whole.n], value=n,
                       unit="lines")  # fmt: skip
