"""index.jsonl, the list of all runs: a line for each judged run.

A line has what years of runs are asked for: the verdict, each test's median by size, the versions
of engine, kernel and firmware. Lines of an older Perch (perch.index/1) have no medians and versions
and stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from perch.checks import figures
from perch.errors import PerchError
from perch.history import folder, lines
from perch.judge.raw import RawFiles
from perch.model.figures import rounded
from perch.model.index import IndexLine, OfHosts, OfTest
from perch.views.inputs import Environment

INDEX = "index.jsonl"

#: One figure for each kind of test; a pair's are in its transfer's sum.
_SHOWN = {"latency": "latency_us.p50", "bandwidth": "bandwidth.gbit_s", "sum": "bandwidth.gbit_s"}
MEDIANS = {
    kind: tuple(one for one in figures.METRICS[kind] if one.name == name)
    for kind, name in _SHOWN.items()
}

_environment = msgspec.json.Decoder(Environment)


def set_run(root: Path) -> None:
    """Writes the run's line; the caller holds the lock. Raises PerchError."""
    path = root.parent / INDEX
    line = line_of(root, lines.read(path))
    lines.set_line(path, line["run"], line)


def line_of(root: Path, index: list[bytes]) -> dict[str, Any]:
    """The run's line (perch.index/2); what was accepted before stays so with the same verdict."""
    verdict = folder.verdict_head(root)
    digest = folder.digest((root / folder.VERDICT).read_bytes())
    was = lines.of_run(index, verdict.run) or {}
    kept = was if was.get("digest") == digest else {}
    head: dict[str, Any] = {
        "run": verdict.run,
        "folder": root.name,
        **_of_plan(root),
        "scope": verdict.scope,
        "verdict": verdict.verdict,
        "planned": verdict.coverage.planned,
        "measured": verdict.coverage.measured,
        "digest": digest,
        **{name: kept.get(name) for name in ("accepted", "label", "forced")},
    }
    of_index = IndexLine(
        schema="perch.index/2",
        medians=medians(folder.frame(root)),
        versions=versions(root),
        **head,
    )
    found: dict[str, Any] = msgspec.to_builtins(of_index)
    return found


def _of_plan(root: Path) -> dict[str, Any]:
    """A run whose plan cannot be read has a verdict, and so a line."""
    try:
        plan = folder.plan_head(root / folder.PLAN)
    except PerchError:
        return dict.fromkeys(("created", "suite", "limits", "fabric"))
    return {
        "created": plan.created,
        "suite": plan.suite.name,
        "limits": plan.limits,
        "fabric": folder.fabric_id(plan),
    }


def medians(records: pl.DataFrame) -> dict[str, OfTest]:
    """Of each test the median over its pairs of hosts and repeats, by size.

    A size is in bytes; of a transfer its batch stands beside it, 65536x8.
    """
    found: dict[str, OfTest] = {}
    rows = figures.figures(records, MEDIANS).drop_nulls("value")
    places = rows.with_columns(place=pl.col("key").str.split("/").list.get(3))
    over = places.group_by("test", "metric", "unit", "place", maintain_order=True)
    for test, metric, unit, place, value in over.agg(pl.col("value").median()).iter_rows():
        of_test = found.setdefault(test, OfTest(metric, unit, {}))
        of_test.by_size[place] = rounded(value)
    return found


def versions(root: Path) -> OfHosts:
    """What ran on the hosts, each version once. `firmware`: device and version."""
    files = RawFiles(root)
    seen: dict[str, set[str]] = {"engine": set(), "kernel": set(), "firmware": set()}
    for path in sorted((root / "raw").glob("*/environment.json")):
        found = files.document(str(path.relative_to(root)), _environment)
        if found is None:
            continue
        engine = (found.versions or {}).get("perch")
        seen["engine"] |= {engine} if isinstance(engine, str) else set()
        seen["kernel"] |= {found.kernel} if found.kernel else set()
        seen["firmware"] |= {f"{one.name} {one.firmware}" for one in found.devices if one.firmware}
    return OfHosts(**{name: sorted(values) for name, values in seen.items()})
