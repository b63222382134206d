"""Adds to switches as reports/jq judged them the checks that a verdict makes of their findings.

Reads lines, each an array of {switch, ports, rows, findings}, and prints the same with `checks`.
"""

import json
import sys
from typing import Any

import msgspec
import polars as pl

from perch.checks import RunView
from perch.checks.switches import switches
from perch.judge.hosts import HostFacts
from perch.judge.switches import SwitchFacts
from perch.model.plan import Plan, PlanHost, PlanSwitch, Suite

HOSTS = {
    name: PlanHost(address="192.0.2.1", fabric="roce", scope="hardware", port=1)
    for name in ("node1", "node2")
}
PLAN = Plan(
    schema="perch.plan/2",
    run="r",
    created="2026-01-01T00:00:00Z",
    suite=Suite("s", "S"),
    limits="roce",
    hosts=HOSTS,
    rounds=[],
)


#: They want no priority lossless: the switches' own are judged.
ANSWERS = {name: HostFacts(wanted={"pfc_priorities": []}) for name in HOSTS}


def judged(one: dict[str, Any]) -> dict[str, Any]:
    row = one["switch"]
    facts = SwitchFacts([row], one["findings"])
    planned = PlanSwitch(row["provider"], row["scope"], row["priorities"], one["ports"])
    plan = msgspec.structs.replace(PLAN, switches={row["name"]: planned})
    view = RunView(plan=plan, records=pl.DataFrame(), hosts=ANSWERS, switches=facts)
    return one | {"checks": msgspec.to_builtins(list(switches(view)))}


for line in sys.stdin:
    print(json.dumps([judged(one) for one in json.loads(line)]), flush=True)
