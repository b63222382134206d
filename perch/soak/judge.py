"""A soak: lines of its flows and samples of its hosts to intervals.jsonl, and what is found.

One flow or host is read at a time, and its lines are written as they are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import msgspec

from perch.judge.asked import Asking
from perch.judge.hosts import HostFacts
from perch.judge.raw import RawFiles
from perch.model.figures import rounded
from perch.model.limits import Limit, Limits
from perch.model.plan import Flow, Plan, SoakPlan
from perch.model.record import Number
from perch.model.soak import (
    ANOMALIES_MAX,
    Anomaly,
    Blind,
    FlowState,
    FlowTold,
    SoakSection,
    SoakState,
)
from perch.soak.blind import blind
from perch.soak.course import Turns
from perch.soak.facts import Facts, gathered
from perch.soak.host import Host
from perch.soak.lines import Reader
from perch.soak.told import Group, Soak, Watch

#: Anomalies in the verdict of each kind and flow or host.
KEPT_OF_EACH = 20

_RANKS = {"fail": 0, "inconclusive": 1, "advisory": 2}


class _AllTurns(msgspec.Struct):
    """What `Turns` has of one test between two hosts, of all of them; `told` by the flow's id."""

    told: dict[str, FlowTold] = {}
    groups: list[Group] = []
    found: list[Anomaly] = []
    found_in_course: list[Anomaly] = []
    limits: dict[str, dict[str, list[Limit]]] = {}
    lines: int = 0


def judge(
    plan: Plan,
    soak: SoakPlan,
    hosts: Mapping[str, HostFacts],
    limits: Limits,
    files: RawFiles,
    out: BinaryIO,
) -> Soak:
    """`out`: gets intervals.jsonl."""
    facts = gathered(plan, soak, hosts, limits.limits, files)
    turns = _turns(plan, Reader(files, out, plan.run, facts.epoch, facts.told), facts)
    flows = [turns.told[flow.id] for flow in plan.flows()]
    watches, of_hosts = _hosts(plan, facts, flows, files, out)
    found = sorted(
        (*turns.found, *turns.found_in_course, *of_hosts),
        key=lambda one: (_RANKS[one.severity], -1 if one.start_s is None else one.start_s),
    )
    by_flow = Counter(one.flow for one in found)
    for flow_told in flows:
        flow_told.anomalies = by_flow[flow_told.flow]
    passed_s = _least(plan, turns.told, "passed_s")
    measured_s = _least(plan, turns.told, "measured_s")
    state = _state([flow.state for flow in flows])
    section = _section(facts, flows, watches, turns.groups, found, passed_s, measured_s, state)
    return Soak(
        msgspec.to_builtins(section),
        state,
        passed_s,
        turns.lines,
        flows,
        turns.limits,
        watches,
        turns.groups,
        found,
    )


def _turns(plan: Plan, reader: Reader, facts: Facts) -> _AllTurns:
    pairs: dict[tuple[str, str, str], list[Flow]] = {}
    for flow in plan.flows():
        pairs.setdefault((flow.test, flow.client, flow.server), []).append(flow)
    every, asking = _AllTurns(), Asking(plan.hosts)
    for flows in pairs.values():
        turns = Turns(reader, facts, asking)
        every.groups.append(turns.judge(flows))
        every.told |= {flow.flow: flow for flow in turns.flows}
        every.found += turns.found
        every.found_in_course += turns.found_in_course
        every.limits |= turns.limits
        every.lines += turns.in_files
    return every


def _hosts(
    plan: Plan, facts: Facts, flows: Sequence[FlowTold], files: RawFiles, out: BinaryIO
) -> tuple[list[Watch], list[Anomaly]]:
    watches, found = [], []
    for name, planned in plan.hosts.items():
        host = Host(facts, name, planned)
        host.read(files, out)
        watch, of_host = host.judge(flows)
        watches.append(watch)
        found += of_host
    return watches, found


def _state(states: Sequence[FlowState]) -> SoakState:
    """Of the soak, by its flows' states."""
    if all(state == "none" for state in states):
        return "none"
    if any(state in ("running", "waiting") for state in states):
        return "running"
    if "stopped" in states:
        return "stopped"
    return "done" if all(state == "done" for state in states) else "short"


def _least(plan: Plan, told: Mapping[str, FlowTold], name: str) -> float:
    """Of the flow that has least; of turns the sum."""
    rounds = [[getattr(told[flow.id], name) for flow in turn.flows] for turn in plan.rounds]
    if plan.soak is not None and plan.soak.mode == "alternating":
        return rounded(sum(min(one, default=0) for one in rounds))
    return rounded(min((value for one in rounds for value in one), default=0))


def _shown(found: Sequence[Anomaly]) -> list[Anomaly]:
    """The gravest first, numbered; of each kind and flow or host the first."""
    of_each: Counter[tuple[str, str]] = Counter()
    shown: list[Anomaly] = []
    for one in found:
        key = (one.flow or one.host, one.kind)
        if of_each[key] < KEPT_OF_EACH and len(shown) < ANOMALIES_MAX:
            of_each[key] += 1
            shown.append(msgspec.structs.replace(one, id=f"a{len(shown) + 1}"))
    return shown


def _section(
    facts: Facts,
    flows: Sequence[FlowTold],
    watches: Sequence[Watch],
    groups: Sequence[Group],
    found: Sequence[Anomaly],
    passed_s: Number,
    measured_s: Number,
    state: SoakState,
) -> SoakSection:
    soak, shown = facts.soak, _shown(found)
    ends = [flow.soak_s + flow.passed_s for flow in flows if flow.soak_s is not None]
    stall_limits = {flow.stall_limit_s for flow in flows if flow.stall_limit_s is not None}
    return SoakSection(
        mode=soak.mode,
        duration_s=soak.duration_s,
        interval_s=soak.interval_s,
        stall_s=soak.stall_s,
        reconnect_s=soak.reconnect_s,
        turn_s=soak.turn_s,
        stall_limits_s=sorted(stall_limits),
        started=facts.date(0),
        ended=facts.date(max(ends, default=None)),
        flows=list(flows),
        hosts=[watch.told for watch in watches],
        anomalies=shown,
        anomaly_counts=dict(Counter(one.kind for one in found)),
        anomalies_left_out=len(found) - len(shown),
        blind=[Blind(name, text) for name, text in blind(soak, flows, watches, groups)],
        passed_s=passed_s,
        measured_s=measured_s,
        state=state,
        running=state == "running",
    )
