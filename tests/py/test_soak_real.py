"""A soak of seconds with real processes, read by the judge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from perch.run.judging import judge
from tests.py.agent_hosts import BUILT
from tests.py.agent_soaks import BW, Soaks
from tests.py.soak_built import Soak

pytestmark = BUILT

LIMITS = Path(__file__).parents[1] / "fixtures/rxe/run/inputs/limits.json"


def test_what_an_agent_leaves_of_a_soak_is_read(soaks: Callable[..., Soaks]) -> None:
    """Whether it was in time is the machine's, and not asked here."""
    both = soaks("4s")
    for host in both.names:
        both.begin(host)
    both.wait(*both.names)
    run = both.folder / "run"
    (run / "inputs").mkdir(parents=True)
    shutil.copy(LIMITS, run / "inputs")
    for name in ("plan.json", "rounds.jsonl"):
        shutil.copy(both.folder / name, run)
    for host in both.names:
        folder = run / "raw" / host
        shutil.copytree(both.folder / host, folder, ignore=shutil.ignore_patterns("control"))
    assert judge(run)[1] is None
    soak = Soak(run)
    soak.verdict = json.loads((run / "verdict.json").read_text())
    passed = {one["id"] for one in soak.verdict["checks"] if one["status"] == "pass"}
    assert passed >= {"hosts", "soak/state", "soak/sum", "soak/lines", "soak/counters"}
    assert not soak.texts("damaged")
    roles = {one["role"] for host in soak.soak["hosts"] for one in host["processes"]}
    assert roles == {"agent", "serve", "job", "keeper", "measurer"}
    records = map(json.loads, (run / "records.jsonl").read_text().splitlines())
    (load,) = [one for one in records if one["flow"] == BW]
    assert load["counters"]["client"]["lo"]["rx_bytes"] > load["path"]["claimed_bytes"] > 0
