"""index.jsonl, the list of all runs: a line for each judged run.

A line has what years of runs are asked for: the verdict, each test's median by size with its limit
and ceiling, the versions of engine, kernel and firmware. Lines of an older Perch (perch.index/1)
have no medians and versions and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from perch.checks import figures
from perch.checks.limit_values import bounds_record
from perch.errors import PerchError
from perch.judge.inputs import read_limits
from perch.judge.raw import RawFiles
from perch.model.figures import rounded
from perch.model.index import IndexLine, OfHosts, OfLimit, OfTest
from perch.model.limits import Limit
from perch.model.record import Number
from perch.run import folder, lines
from perch.views.inputs import Environment

INDEX = "index.jsonl"

#: One figure for each kind of test; a pair's are in its transfer's sum.
_SHOWN = {
    "latency": "latency_us.p50",
    "bandwidth": "bandwidth.gbit_s",
    "sum": "bandwidth.gbit_s",
    "rate": "bandwidth.messages_per_s",
}
MEDIANS = {
    kind: tuple(one for one in figures.METRICS[kind] if one.name == name)
    for kind, name in _SHOWN.items()
}

_place = pl.col("key").str.split("/").list.get(3).alias("place")

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
        medians=medians(folder.frame(root), read_limits(root).limits),
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


def medians(records: pl.DataFrame, limits: Iterable[Limit] = ()) -> dict[str, OfTest]:
    """Of each test the median over its pairs of hosts and repeats, by size.

    A size is in bytes; of a transfer its batch stands beside it, 65536x8.
    """
    found: dict[str, OfTest] = {}
    rows = figures.figures(records, MEDIANS).drop_nulls("value").with_columns(_place)
    over = rows.group_by("test", "metric", "unit", "place", maintain_order=True)
    for test, metric, unit, place, value in over.agg(pl.col("value").median()).iter_rows():
        of_test = found.setdefault(test, OfTest(metric, unit, {}))
        of_test.by_size[place] = rounded(value)
    for test, terms in rows.group_by("test").agg(pl.col("terms").unique().sort()).iter_rows():
        found[test].terms = terms
    bounded = rows.join(records.select("row", "ceiling_gbit_s"), on="row", maintain_order="left")
    for test, metric, place, top in _tops(bounded).iter_rows():
        if metric == "bandwidth.gbit_s":
            found[test].ceilings[place] = rounded(top)
    for (test, place), limit in _strictest(bounded, records, limits).items():
        found[test].limits[place] = limit
    return found


def _tops(rows: pl.DataFrame) -> pl.DataFrame:
    """test, metric, place and the lowest ceiling of its links."""
    over = rows.drop_nulls("ceiling_gbit_s").group_by("test", "metric", "place")
    return over.agg(pl.col("ceiling_gbit_s").min()).sort("test", "metric", "place")


def _strictest(
    rows: pl.DataFrame, records: pl.DataFrame, limits: Iterable[Limit]
) -> dict[tuple[str, str], OfLimit]:
    """By test and place; a required limit hides the advisory ones."""
    found: dict[tuple[str, str], OfLimit] = {}
    for limit in limits:
        if limit.removed is not None or limit.bound.of not in (None, "ceiling"):
            continue
        spoken = records.filter(bounds_record(limit)).select("row")
        of_limit = rows.filter(pl.col("metric") == limit.metric).join(spoken, on="row", how="semi")
        times = pl.col("ceiling_gbit_s") if limit.bound.of == "ceiling" else pl.lit(1.0)
        over = of_limit.with_columns(times=times).drop_nulls("times").group_by("test", "place")
        ends = over.agg(least=pl.col("times").max(), most=pl.col("times").min())
        for test, place, least, most in ends.sort("test", "place").iter_rows():
            low, high = _times(limit.bound.min, least), _times(limit.bound.max, most)
            if low is None and high is None:
                continue
            one = OfLimit(low, high, limit.severity)
            was = found.get((test, place))
            found[test, place] = one if was is None else _stricter(was, one)
    return found


def _times(bound: Number | None, factor: float) -> Number | None:
    """A bound of 0 asks nothing of a figure above 0."""
    return rounded(bound * factor) if bound is not None and bound > 0 else None


def _stricter(was: OfLimit, one: OfLimit) -> OfLimit:
    if was.severity != one.severity:
        return was if was.severity == "required" else one
    least = [limit.min for limit in (was, one) if limit.min is not None]
    most = [limit.max for limit in (was, one) if limit.max is not None]
    return OfLimit(max(least, default=None), min(most, default=None), was.severity)


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
