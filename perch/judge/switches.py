"""What the switches said before and after a run; reports/jq/switches reads each vendor's words."""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from perch.judge import findings
from perch.judge.hosts import ENVIRONMENTS
from perch.judge.jq_program import JQ
from perch.judge.raw import RawFiles
from perch.judge.switch_samples import Flows, during
from perch.model.figures import encode
from perch.model.plan import Plan, PlanHost
from perch.model.raw import Environment

Document = dict[str, Any]

_document = msgspec.json.Decoder(Document)
_environment = msgspec.json.Decoder(Environment)


class SwitchFacts(msgspec.Struct):
    """What one jq process makes of all readings.

    rows: a switch each, with its ports. findings: what is judged, as of hosts, with `switch`,
    `device` (the port), `host` and `scope`; one with a `unit` is only shown.
    """

    rows: list[Document] = []
    findings: list[Document] = []


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
        "netdevs": netdevs, "rates": rates,
    }  # fmt: skip


def read_switches(files: RawFiles, plan: Plan, seen: pl.DataFrame) -> SwitchFacts | None:
    """Everything that is known of the plan's switches; None where it names none.

    `seen`: a row a flow (perch.judge.seen). Raises PerchError where jq is missing, fails or does
    not end.
    """
    if not plan.switches:
        return None
    asked = {
        "run": plan.run,
        "switches": [
            {
                "name": name,
                "planned": msgspec.structs.asdict(planned),  # with what is empty, too
                "before": _reading(files, name, "before"),
                "after": _reading(files, name, "after"),
            }
            for name, planned in plan.switches.items()
        ],
        "hosts": {name: _host(files, name, planned) for name, planned in plan.hosts.items()},
    }
    facts = judged(asked)
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
