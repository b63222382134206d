"""What the shipped suites of real fabrics measure suffices for RDMA against TCP, and for uses.

The engine says what each command would measure and how (`perch check`); the figures are made up.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pytest

from perch.checks.comparison import TRANSFER, compare
from perch.judge import columns
from perch.model.record import Record
from perch.plan import engine
from perch.views.comparisons import against_tcp, comparison
from perch.views.uses import USES, Need
from tests.py.planned import flows
from tests.py.test_plan_suites import INVENTORIES, inventory, suite_plan

REAL = [
    ("rdma", "example_roce", "verbs"),
    ("rdma", "example_infiniband", "verbs"),
    ("rdma-notes", "example_roce", "verbs"),
    ("slingshot", "example_slingshot", "cxi"),
]
of_real_fabrics = pytest.mark.parametrize(("suite", "where", "rdma"), REAL)


@pytest.fixture(autouse=True)
def _built() -> None:
    if not engine.PROGRAM.exists():
        pytest.skip("NOT TESTED: engine/build-check/perch is not built (make -C engine check-tool)")


@cache
def _job(*command: str) -> Any:
    """What the engine says of a command."""
    ended = subprocess.run(
        [engine.PROGRAM, "check", *command[1:]], capture_output=True, check=True, timeout=10
    )
    return json.loads(ended.stdout)


def _latency(iterations: int | None) -> dict[str, Any]:
    """A percentile has ten samples beyond it, or no value (docs/definitions.md)."""
    count = iterations or 10**6
    tails = {"p99": 2, "p99_9": 3}
    enough = {"p99": count >= 1000, "p99_9": count >= 10000}
    known = {name: value for name, value in tails.items() if enough[name]}
    return {"count": count, "mean": 1, "stddev": 1, "min": 1, "max": 9, "p50": 1, **known}


def _figures(kind: str, iterations: int | None) -> dict[str, Any]:
    if kind == "latency":
        return {"latency_us": _latency(iterations)}
    cpu = {f"{end}_s_per_gb": 1 for end in ("client", "server")}
    seconds = {f"{end}_system_s": 1 for end in ("client", "server")}
    found = {"bandwidth": {"gbit_s": 1, "bytes": 10**9}, "cpu": cpu | seconds}
    return found | ({"latency_us": _latency(iterations)} if kind == "sum" else {})


def _records(suite: str, where: str) -> Iterator[Record]:
    """One of each size of the engine's flows, each with every figure that it can have."""
    done = set()
    for flow in flows(suite_plan(suite, inventory(INVENTORIES[where]))):
        if flow["tool"] != "perch" or flow["test"] in done or flow["backend"] == "null":
            continue
        done.add(flow["test"])
        job = _job(*flow["client_argv"])
        for expect in job["expect"]:
            params = {
                **{name: value for name, value in job["params"].items() if value is not None},
                **{name: expect[name] for name in ("size_bytes", "batch") if name in expect},
            }
            params.pop("huge", None)
            record = {
                "schema": "perch.record/2", "run": "r", "rail": 0, "repeat": 1, "flow": flow["id"],
                "test": flow["test"], "scope": flow["scope"], "status": "ok",
                "tool": {"name": "perch", "version": "0"}, "backend": job["backend"],
                "op": job["op"], "kind": expect["kind"], "definition": job["definition"],
                "client": {"host": flow["client"]}, "server": {"host": flow["server"]},
                "counters": {"client": {"TcpRetransSegs": 0}, "server": {}}, "params": params,
                **_figures(expect["kind"], params.get("iterations")),
            }  # fmt: skip
            yield msgspec.convert(record, Record, strict=False)


@cache
def measured(suite: str, where: str) -> list[Record]:
    return list(_records(suite, where))


@of_real_fabrics
def test_a_suite_gives_every_row_of_rdma_against_tcp(suite: str, where: str, rdma: str) -> None:
    section = compare(columns.frame(measured(suite, where)))
    (table,) = (one for one in against_tcp(section, [], {}).short if one.title.startswith(rdma))
    assert len(table.rows) == 8
    said = [cell for row in table.rows for cell in row]
    assert "not measured" not in said and "too few samples" not in said, table.rows


@pytest.mark.parametrize(
    ("where", "rdma"), [("example_roce", "verbs"), ("example_slingshot", "cxi")]
)
@pytest.mark.parametrize("suite", ["transfer-read-many-nics", "transfer-one-at-a-time"])
def test_reads_of_one_device_are_compared_with_tcp(suite: str, where: str, rdma: str) -> None:
    """Their data is there when they complete, as TCP's; writes complete earlier over RDMA."""
    reads = [record for record in measured(suite, where) if record.op == "read"]
    found = comparison(compare(columns.frame(reads)))
    (table,) = (one for one in found.tables if one.title.startswith(rdma))
    assert {row[0] for row in table.rows} == {metric.title for metric in TRANSFER}


@of_real_fabrics
def test_a_suite_checks_payloads_over_rdma(suite: str, where: str, rdma: str) -> None:
    assert any(
        record.params and record.params.verify
        for record in measured(suite, where)
        if record.backend == rdma
    )


def _answers(need: Need, record: Record) -> bool:
    size = record.params.size_bytes if record.params else None
    return (
        record.kind == need.kind
        and need.op in (None, record.op)
        and need.definition in (None, record.definition)
        and size is not None
        and need.size[0] <= size <= (need.size[1] or size)
        and not (record.params and (record.params.verify or record.params.bidirectional))
    )


@of_real_fabrics
def test_a_suite_measures_what_every_use_but_transfers_needs(
    suite: str, where: str, rdma: str
) -> None:
    over_rdma = [record for record in measured(suite, where) if record.backend == rdma]
    unanswered = [
        (use.title, need.title)
        for use in USES
        for need in use.needs
        if need.kind != "transfer" and not any(_answers(need, record) for record in over_rdma)
    ]
    assert unanswered == []
