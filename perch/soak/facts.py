"""What judging a soak needs of the run as a whole, and how anomalies get their dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from perch.judge.hosts import HostFacts
from perch.judge.raw import RawFiles, flow_folder
from perch.model.figures import rounded
from perch.model.limits import Limit
from perch.model.moments import moment
from perch.model.plan import Plan, SoakPlan
from perch.model.raw import SoakAgent
from perch.model.record import Number
from perch.model.soak import Anomaly, AnomalyKind, Severity
from perch.model.verdict import EVIDENCE_MAX
from perch.soak.moments import APART_MOST, LAST_MOMENT, dated, microseconds
from perch.soak.stats import FALSE_ALARM

#: Bytes of a flow's first line that are looked at for its beginning.
_FIRST_LINE = 2**16
_started_ms = re.compile(rb'"started_ms":([0-9]{1,14})\b')


class Facts(msgspec.Struct):
    """`epoch`: seconds since 1970 at which the soak began; `known`: whether anybody said so.

    told: what each host's agent says of the soak. addresses: of the hosts. alpha: the probability
    of a false alarm that each figure may have. boots: the boot id in each host's environment.json.
    """

    run: str
    soak: SoakPlan
    limits: tuple[Limit, ...]
    epoch: float
    known: bool
    states: dict[str, str | None]
    told: dict[str, SoakAgent]
    addresses: dict[str, str]
    alpha: float
    boots: dict[str, str | None] = {}

    def date(self, s: float | None) -> str | None:
        if s is None or not self.known or s + self.epoch >= LAST_MOMENT:
            return None
        return dated(s + self.epoch)


def _first_start(plan: Plan, files: RawFiles) -> float | None:
    """The earliest beginning that a flow of the first round tells."""
    starts = []
    for flow in plan.rounds[0].flows if plan.rounds else []:
        file = files.stream(f"{flow_folder(flow, flow.client)}/client.soak")
        if file is not None:
            with file:
                found = _started_ms.search(file.readline(_FIRST_LINE))
            starts += [int(found[1]) / 1000] if found else []
    return min(starts, default=None)


def gathered(
    plan: Plan,
    soak: SoakPlan,
    hosts: Mapping[str, HostFacts],
    limits: tuple[Limit, ...],
    files: RawFiles,
) -> Facts:
    agents = {name: host.agent for name, host in hosts.items()}
    told = {name: (agent.soak if agent else None) or SoakAgent() for name, agent in agents.items()}
    starts = (moment(start.begun) for of in told.values() for start in of.starts[:1])
    begun = min((one for one in starts if one is not None), default=None)
    first = _first_start(plan, files)
    # no flow begins before its agent: one that says so was told by a clock that was set since
    if first is not None and begun is not None and first < begun - APART_MOST:
        first = None
    epoch = min((one for one in (begun, first) if one is not None), default=None)
    # each figure of each test between two hosts, and memory and handles of some ten processes
    pairs = len({(flow.test, flow.client, flow.server) for flow in plan.flows()})
    return Facts(
        run=plan.run,
        soak=soak,
        limits=limits,
        epoch=epoch or 0.0,
        known=epoch is not None,
        states={name: agent.state if agent else None for name, agent in agents.items()},
        told=told,
        addresses={name: host.address for name, host in plan.hosts.items()},
        alpha=FALSE_ALARM / (3 * pairs + 20 * len(plan.hosts)),
        boots={name: host.boot_id for name, host in hosts.items()},
    )


class Finder:
    """Anomalies of one flow or one host, dated.

    path: of the file that evidence is of. more: the number of lines in it, and the place that has
    all lines after them. offset: where 0 of the given times lies since the soak began.
    """

    def __init__(
        self,
        facts: Facts,
        host: str,
        path: str,
        *,
        flow: str | None = None,
        offset: float = 0.0,
        more: tuple[int, str] | None = None,
    ) -> None:
        self.facts, self.host, self.flow, self.path = facts, host, flow, path
        self.offset, self.more = offset, more

    def _place(self, n: int, path: str | None) -> str:
        if self.more is not None and n > self.more[0]:
            return self.more[1]
        return f"{path or self.path}:{n}"

    def __call__(
        self,
        kind: AnomalyKind,
        check: str,
        severity: Severity,
        text: str,
        s: float | None = None,
        e: float | None = None,
        lines: Iterable[int] = (),
        value: float | None = None,
        unit: str | None = None,
        messages: Number | None = None,
        path: str | None = None,
    ) -> Anomaly:
        """Of the time from `s` to `e`, shown by these lines; `path`: of another file."""
        s = None if s is None else microseconds(s + self.offset)
        e = None if e is None else microseconds(e + self.offset)
        places = list(dict.fromkeys(self._place(n, path) for n in lines))[:EVIDENCE_MAX]
        return Anomaly(
            id="",
            kind=kind,
            check=f"soak/{check}",
            severity=severity,
            host=self.host,
            flow=self.flow,
            start=self.facts.date(s),
            end=self.facts.date(e),
            start_s=s,
            end_s=e,
            duration_s=None if s is None or e is None else microseconds(e - s),
            messages=messages,
            value=None if value is None else rounded(value),
            unit=unit,
            text=text,
            evidence=places or [self.path],
        )
