"""Mutated runs: whatever stands in one file, the judge ends with a verdict that is no PASS by it.

Each case is drawn from a fixed seed. Raw files, host checks, manifest and limits are mutated: a
leaf of a JSON document gets another value, or bytes are changed, cut, doubled or put in.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from selftest.runs.slingshot import slingshot

from perch.history.seal import seal
from perch.judge import findings, hosts, laws, planned
from perch.judge.host_lines import index
from perch.judge.raw import RawFiles
from perch.judge.records import FlowReader
from perch.judge.trail import Trail
from perch.model.figures import encode_lines
from perch.model.plan import Round
from perch.run import judging
from tests.py.judging import Run, check_of, put, status

Path_ = tuple[Any, ...]

#: Values of every type, and numbers at the ends of what types hold.
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e300, -1e300, 1e308, 5e-324, 2**63, 2**64, -(2**63), 10**30, "", "x", "nan",
    "\x00\x1b[31m", "9" * 400, [], {}, [None], {"a": None}, [[]], {"": ""},
)  # fmt: skip

#: Without a plan nothing is judged, and the run says so.
PLAN = ("plan.json", "rounds.jsonl")

#: Runs that are mutated and judged whole: some 0.3 s each.
WHOLE = 8
#: Mutated outputs of flows that are read to their records: some milliseconds each.
FLOWS = 250


def leaves(node: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The paths of all values in a document, but of itself."""
    if path:
        yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from leaves(value, (*path, place))


def documents(content: bytes) -> list[Any]:
    """The JSON documents of a file, one or one a line; none where it holds other text."""
    try:
        return [json.loads(content)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return []


def other_leaf(content: bytes, draw: random.Random) -> bytes:
    given = documents(content)
    target = draw.choice(given)
    *owners, last = draw.choice(list(leaves(target)))
    for owner in owners:
        target = target[owner]
    target[last] = draw.choice(VALUES)
    return "".join(json.dumps(one) + "\n" for one in given).encode()


def other_bytes(content: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(content))
    kind = draw.randrange(4)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content + content[at:]
    some = bytes(draw.randrange(256) for _ in range(3))
    return content[:at] + some + content[at + (3 if kind == 2 else 0) :]


def mutated(content: bytes, draw: random.Random) -> bytes:
    can = any(next(leaves(one), None) for one in documents(content))
    return (other_leaf if can and draw.random() < 0.75 else other_bytes)(content, draw)


@cache
def nodes(folder: Path) -> Path:
    root = folder / "nodes"
    root.mkdir()
    slingshot(root)
    seal(root)
    return root


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two sealed runs: over loopback, and of nodes whose hosts were checked."""
    folder = tmp_path_factory.mktemp("sources")
    fixture = Path(__file__).parents[1] / "fixtures/loopback/run"
    loopback = shutil.copytree(fixture, folder / "loopback")
    seal(loopback)
    return [loopback, nodes(folder)]


@pytest.mark.parametrize("seed", range(WHOLE))
def test_a_mutated_run_has_a_verdict(sources: list[Path], tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    source = sources[seed % 2]
    root = shutil.copytree(source, tmp_path / "run")
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.stat().st_size]
    path = draw.choice([path for path in files if path.name not in PLAN])
    before = path.read_bytes()
    path.write_bytes(mutated(before, draw))
    verdict, fault = judging.judge(root)
    assert fault is None
    assert json.loads((root / "verdict.json").read_bytes())["verdict"] == verdict.verdict
    if path.read_bytes() != before:
        assert verdict.verdict != "PASS"


def test_mutated_outputs_become_records(sources: list[Path], tmp_path: Path) -> None:
    """Each leaf and byte may be anything: a flow's reader, laws and serializer bear it."""
    draw = random.Random(0)
    root = shutil.copytree(sources[0], tmp_path / "run")
    plan = planned.read_plan(root / "plan.json")
    files = RawFiles(root)
    known = hosts.read_hosts(files, plan, findings.judged)

    def reader(turn: Round) -> FlowReader:
        made = FlowReader(plan, known, files)
        made.begin(index(files, plan.run, plan.hosts, [turn.flows]).parts[0])
        return made

    whole = {path: path.read_bytes() for path in sorted(root.glob("raw/*/flows.jsonl"))}
    for _ in range(FLOWS):
        path = draw.choice(list(whole))
        lines = whole[path].splitlines(keepends=True)
        at = draw.randrange(1, len(lines) - 1)
        flow_id = json.loads(lines[at])["id"]
        path.write_bytes(b"".join([*lines[:at], mutated(lines[at], draw), *lines[at + 1 :]]))
        turn = next(turn for turn in plan.rounds if any(flow.id == flow_id for flow in turn.flows))
        records = reader(turn).read([turn], Trail()).records
        assert len(records) == sum(len(flow.expect) for flow in turn.flows)
        encode_lines(records)
        laws.judged(records)
        path.write_bytes(whole[path])


# ---- what was found so ---------------------------------------------------------------------------


def test_one_bad_answer_of_a_host_unjudges_no_other(tmp_path: Path) -> None:
    root = tmp_path / "run"
    root.mkdir()
    slingshot(root)
    made = Run(root)
    before = {one.id for one in made.judge().checks if one.id.startswith("host_check/")}

    def bad(answer: dict[str, Any]) -> None:
        answer["commands"]["services cxi0"]["stdout"] = [None]

    made.edit("raw/beta/host_check.json", bad)
    verdict = made.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    found = check_of(verdict, "host_check/answer/beta")
    assert (found.status, found.evidence) == ("inconclusive", ["beta"])
    assert str(found.measured) == (
        "its answer cannot be judged: jq: error: split input and separator must be strings"
    )
    assert status(verdict, "host_check/slingshot-device") == "pass"
    # which takes two
    of_two = {"host_check/machine-clock-skew", "host_check/machine-neighbours"}
    assert before - {one.id for one in verdict.checks} <= of_two


@pytest.mark.parametrize("leaf", ["params.duration_s", "params.gap_us"])
@pytest.mark.parametrize("value", [1e300, 2**63, 2**64 - 1])
def test_a_figure_beyond_all_types_ends_no_judge(
    run_copy: Callable[[str], Path], leaf: str, value: float
) -> None:
    made = Run(run_copy("loopback"))
    made.flow("tcp-latency").prints(put(leaf, value))
    assert made.judge().verdict == "INCONCLUSIVE"
    assert len(made.records()) == 29


def test_a_rate_of_almost_nothing_is_no_result(run_copy: Callable[[str], Path]) -> None:
    made = Run(run_copy("loopback"))
    rate = put("end.sum_received.bits_per_second", 5e-324)
    made.flow("iperf3").prints(rate)
    assert made.judge().verdict == "INCONCLUSIVE"
