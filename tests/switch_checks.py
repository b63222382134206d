"""Adds to switches as reports/jq judged them the checks that a verdict makes of their findings.

Reads {switch, rows, findings}, or an array of them, and prints the same with `checks`.
"""

import json
import sys
from typing import Any

import msgspec
import polars as pl

from perch.checks import RunView
from perch.checks.switches import switches
from perch.judge.switches import SwitchFacts
from perch.model.plan import Plan, PlanHost, Suite

HOSTS = {
    name: PlanHost(address="192.0.2.1", fabric="roce", scope="hardware", port=1)
    for name in ("node1", "node2")
}
PLAN = Plan("perch.plan/1", "r", "2026-01-01T00:00:00Z", Suite("s", "S"), "roce", HOSTS, [])


def judged(one: dict[str, Any]) -> dict[str, Any]:
    facts = SwitchFacts([one["switch"]], one["findings"])
    view = RunView(plan=PLAN, records=pl.DataFrame(), switches=facts)
    return one | {"checks": msgspec.to_builtins(list(switches(view)))}


given = json.load(sys.stdin)
json.dump([judged(one) for one in given] if isinstance(given, list) else judged(given), sys.stdout)
