"""What the switches said before and after a run; reports/jq/switches reads each vendor's words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import polars as pl

from perch.judge import findings
from perch.judge.hosts import ENVIRONMENTS
from perch.judge.jq_program import JQ
from perch.judge.raw import RawFiles
from perch.judge.switch_samples import Flows, during
from perch.model.figures import encode
from perch.model.moments import LOST_S, moment
from perch.model.plan import Plan, PlanHost
from perch.model.raw import Environment

Document = dict[str, Any]

_document = msgspec.json.Decoder(Document)
_environment = msgspec.json.Decoder(Environment)


class SwitchFacts(msgspec.Struct):
    """What one jq process makes of all readings.

    rows: a switch each, with its ports. findings: what is judged, as of hosts, with `switch`,
    `device` (the port), `host` and `scope`; one with a `unit` is only shown. read_s: when each
    switch was read after the run.
    """

    rows: list[Document] = []
    findings: list[Document] = []
    read_s: dict[str, float] = {}


_facts = msgspec.json.Decoder(SwitchFacts)


def _reading(files: RawFiles, switch: str, phase: str) -> Document | None:
    reading = files.document(f"raw/{switch}/switch-{phase}.json", _document)
    if reading is None or reading.get("schema") != "perch.switch/1":
        return None
    return reading


def _host(files: RawFiles, name: str, planned: PlanHost) -> Document:
    """The speeds of the measured interfaces, where the inventory names them."""
    environment = files.document(f"raw/{name}/environment.json", _environment)
    if environment is None or environment.schema not in ENVIRONMENTS:
        environment = Environment()
    netdevs = [
        device["netdev"] for device in planned.devices if isinstance(device.get("netdev"), str)
    ]
    rates = [
        one.rate_gbit_s
        for one in environment.interfaces
        if one.name in netdevs and one.rate_gbit_s is not None and one.rate_gbit_s > 0
    ]
    return {
        "name": name, "hostname": environment.hostname, "scope": planned.scope,
        "netdevs": netdevs, "rates": rates, "lossless": planned.traits.get("lossless"),
    }  # fmt: skip


def _span(seen: pl.DataFrame) -> tuple[float, float]:
    """When the first flow began and the last one ended; without flows any time is right."""
    first = pl.min_horizontal("client_begin", "server_begin").min().fill_null(math.inf)
    last = pl.max_horizontal("client_end", "server_end").max().fill_null(-math.inf)
    begin, end = seen.select(first.alias("first"), last.alias("last")).row(0)
    return begin, end


def _untimely(seen: pl.DataFrame, plan: Plan, readings: Mapping[str, Document | None]) -> Document:
    """Why readings are not of the time before and after the flows, by phase.

    The controller's clock dates them, and those of the hosts the flows: LOST_S apart at most.
    """
    created = moment(plan.created)
    begin, end = _span(seen)
    why = {}
    for phase, reading in readings.items():
        said = reading.get("collected") if reading is not None else None
        at = moment(said)
        if at is None:
            continue  # jq says so
        if created is not None and at < created - LOST_S:
            why[phase] = f"it was read at {said}, before the plan was made"
        elif phase == "before" and at > begin + LOST_S:
            why[phase] = f"it was read at {said}, after the first flow began"
        elif phase == "after" and at < end - LOST_S:
            why[phase] = f"it was read at {said}, before the last flow ended"
    return why


def read_switches(files: RawFiles, plan: Plan, seen: pl.DataFrame) -> SwitchFacts | None:
    """Everything that is known of the plan's switches; None where it names none.

    `seen`: a row a flow (perch.judge.seen). Raises PerchError where jq is missing, fails or does
    not end.
    """
    if not plan.switches:
        return None
    switches: list[Document] = []
    for name, planned in plan.switches.items():
        readings = {phase: _reading(files, name, phase) for phase in ("before", "after")}
        one: Document = {"name": name, **readings, "untimely": _untimely(seen, plan, readings)}
        one["planned"] = msgspec.structs.asdict(planned)  # with what is empty, too
        switches.append(one)
    asked = {
        "run": plan.run,
        "switches": switches,
        "hosts": {name: _host(files, name, planned) for name, planned in plan.hosts.items()},
    }
    facts = judged(asked)
    for one in switches:
        at = moment((one["after"] or {}).get("collected"))
        if at is not None:
            facts.read_s[one["name"]] = at
    read = [row for row in facts.rows if not row["faults"]]
    sampled = during(files, plan.run, read, Flows(seen))
    for row in read:
        if row["name"] in sampled:
            row["during"] = sampled[row["name"]]
    return facts


def judged(asked: Document) -> SwitchFacts:
    """What jq finds on switches. `asked`: as reports/jq/switches/findings.jq takes it."""
    program = (JQ / "switches/findings.jq").read_text(encoding="utf-8")
    return _facts.decode(findings.answer("switches", program, encode(asked)))
