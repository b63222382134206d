"""What a switch drops is judged by what the inventory says of its hosts' fabric."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perch.judge import seen
from perch.judge.raw import RawFiles
from perch.judge.switches import read_switches
from perch.model.plan import PlanSwitch
from tests.py.checks_built import flow_of, plan_of, record

READING = Path(__file__).parents[1] / "fixtures/switches/reading"
DROPPED = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"


def read(root: Path, phase: str, dropped: str) -> None:
    said = subprocess.run([READING, "sonic", phase], stdout=subprocess.PIPE, check=True)
    reading = json.loads(said.stdout)
    command = reading["commands"]["counters"]
    tables = json.loads(command["stdout"])
    tables["COUNTERS:oid:0x1a00000000003"]["value"][DROPPED] = dropped
    command["stdout"] = json.dumps(tables)
    folder = root / "raw/leaf1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"switch-{phase}.json").write_text(json.dumps(reading))


@pytest.mark.parametrize(
    ("traits", "severity"),
    [({}, "required"), ({"lossless": True}, "required"), ({"lossless": False}, "advisory")],
)
def test_a_fabric_that_may_drop_is_warned(
    traits: dict[str, bool], severity: str, tmp_path: Path
) -> None:
    read(tmp_path, "before", "0")
    read(tmp_path, "after", "17")
    plan = plan_of([flow_of(record("t/node1/node2/0/1"))])
    plan.run = "r"
    for host in plan.hosts.values():
        host.traits = traits
    plan.switches = {"leaf1": PlanSwitch("sonic", "hardware", [3])}
    facts = read_switches(RawFiles(tmp_path), plan, seen.frame([]))
    assert facts is not None
    drops = {one["host"]: one for one in facts.findings if one["id"] == "drops"}
    assert (drops["node1"]["status"], drops["node1"]["severity"]) == ("bad", severity)
    assert drops["node2"]["status"] == "ok"
