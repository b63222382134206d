"""Pairs of hosts that fell outside: which of them a repeat may cure, and what repeats showed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import polars as pl

from perch.checks import RunView, check, design, first, plural
from perch.checks.held import repeated_pairs
from perch.checks.limit_shares import COLUMNS as LIMIT_COLUMNS
from perch.checks.limit_shares import held_limits
from perch.checks.shapes import COLUMNS as SHAPE_COLUMNS
from perch.checks.shapes import held_shapes
from perch.model.figures import rounded
from perch.model.plan import Flow
from perch.model.sections import Outside
from perch.model.verdict import Check

#: The exit code of a client that lost its peer.
PEER_LOST = 4

#: A verdict names so many pairs outside; beyond them the fault is no outlier.
PAIRS_MAX = 500
#: So many figures of a pair are told.
FIGURES_MAX = 3

_COLUMNS = tuple(
    dict.fromkeys((*LIMIT_COLUMNS, *SHAPE_COLUMNS, "flow", "status", "error.code", "repeat"))
)


def lost_flows(records: pl.DataFrame) -> list[str]:
    """Flows that were lost before traffic had begun."""
    is_lost = (pl.col("status") == "not_measured") & (pl.col("error.code") == PEER_LOST)
    return sorted(set(records.filter(is_lost)["flow"]))


def _pair_of(flow: str) -> str:
    """test/client/server of a flow's id."""
    return "/".join(flow.split("/")[:3])


def _is_grave(run: RunView) -> pl.Expr:
    """Only what fails: a required limit, a shape of hardware."""
    required = [limit.id for limit in run.limits.limits if limit.is_required]
    is_limit = pl.col("kind") == "limit"
    return pl.when(is_limit).then(pl.col("name").is_in(required)).otherwise(pl.lit(value=True))


def _is_hard() -> pl.Expr:
    return (pl.col("kind") == "limit") | pl.col("hard")


def _check_id() -> pl.Expr:
    """The id of the check that a row leads to: limit/ID/TEST, NAME/TEST of a shape."""
    of_shape = pl.concat_str("name", "test", separator="/")
    is_limit = pl.col("kind") == "limit"
    return pl.when(is_limit).then(pl.concat_str(pl.lit("limit/"), of_shape)).otherwise(of_shape)


# ---- what to repeat ------------------------------------------------------------------------------


def _final(checks: Iterable[Check]) -> set[str]:
    """Pairs that no repeat cures: corrupted payload, lost in the middle, impossible figures."""
    failed = [one for one in checks if one.status == "fail"]
    flows = [one.id.removeprefix("flow/") for one in failed if one.id.startswith("flow/")]
    flows += [name for one in failed if one.id == "ceiling" for name in one.evidence]
    return {_pair_of(flow.split("#")[0]) for flow in flows}


def outside(run: RunView, checks: Iterable[Check]) -> Outside | None:
    """The section `outside` of a verdict: pairs that a repeat may cure, with the ids of checks.

    None where there is none, or where pairs were repeated already.
    """
    if repeated_pairs(run.plan.flows()):
        return None
    held = pl.concat([held_limits(run).spoken, run.once(held_shapes)[0]])
    broken = held.filter(pl.col("broken") & _is_grave(run) & _is_hard())
    named = broken.select("row", _check_id().alias("why")).join(
        run.records.select("row", "pair"), on="row"
    )
    found = {
        (pair.replace("\t", "/"), why) for pair, why in named.select("pair", "why").iter_rows()
    }
    found |= {(_pair_of(flow), f"flow/{flow}") for flow in lost_flows(run.records)}
    final = _final(checks)
    whys: dict[str, list[str]] = {}
    for pair, why in found:
        if pair not in final:
            whys.setdefault(pair, []).append(why)
    if not whys:
        return None
    pairs = sorted(pair.split("/") for pair in whys)
    return {
        "pairs": len(pairs),
        "of": run.records["pair"].n_unique(),
        "first": [
            {"test": test, "client": client, "server": server,
             "why": sorted(whys[f"{test}/{client}/{server}"])}
            for test, client, server in pairs[:PAIRS_MAX]
        ],
    }  # fmt: skip


# ---- what repeats cured --------------------------------------------------------------------------


def _excused(run: RunView, missing: set[str]) -> list[str]:
    """Flows that were lost before traffic, and all of whose repeats were measured whole."""
    repeated = repeated_pairs(run.plan.flows())
    flows = []
    for flow in lost_flows(run.records):
        again = repeated.get(_pair_of(flow).replace("/", "\t"))
        if again and not any(one.id in missing for one in again):
            flows.append(flow)
    return flows


def with_excused(run: RunView, checks: list[Check]) -> list[Check]:
    """The checks, where a lost flow that its repeats cured no longer keeps a run from a verdict."""
    missing = set(run.records.filter(pl.col("status") != "ok")["flow"])
    excused = _excused(run, missing)
    if not excused:
        return checks
    cured = f", and in repeats what was lost of {plural(len(excused), 'flow')}"
    done = []
    for one in checks:
        changed = one
        if one.status == "inconclusive" and one.id == "coverage":
            if missing.issubset(excused) and set(one.evidence).issubset(excused):
                changed = msgspec.structs.replace(
                    one, status="pass", remedy=None, measured=f"{one.measured}{cured}"
                )
        elif one.status == "inconclusive" and one.id.removeprefix("flow/") in excused:
            changed = msgspec.structs.replace(one, status="advisory")
        done.append(changed)
    return done


# ---- checks --------------------------------------------------------------------------------------


class Figure(NamedTuple):
    """One figure of a repeated pair: its check, its place in a flow, and each repeat's value."""

    check: str
    place: str
    values: list[float | None]
    is_broken: bool
    is_reason: bool

    def __str__(self) -> str:
        told = ["nothing" if value is None else str(rounded(value)) for value in self.values]
        return f"{self.check} at {self.place}: {', '.join(told)}"


def _figures(run: RunView, pairs: dict[str, list[Flow]]) -> dict[str, list[Figure]]:
    """By pair each figure, in the order of the records.

    Only what a planned repeat showed, and fails, is a reason to repeat a pair.
    """
    firsts = pl.DataFrame(
        [(pair, min(flow.repeat for flow in flows)) for pair, flows in pairs.items()],
        schema={"pair": pl.String, "first": pl.Int64},
        orient="row",
    )
    again = pl.concat([held_limits(run).again, run.once(held_shapes)[1]])
    named = again.join(run.records.select("row", "pair", "place", "repeat"), on="row")
    planned = pl.col("repeat") < pl.col("first")
    found = (
        named.join(firsts, on="pair")
        .sort("row", "seq", maintain_order=True)
        .with_columns(check=_check_id(), reason=pl.col("broken") & _is_grave(run) & _is_hard())
        .group_by("pair", "check", "place", "like", maintain_order=True)
        .agg(
            pl.col("v").sort_by("repeat", maintain_order=True),
            pl.col("broken").any(),
            (pl.col("reason") & planned).any(),
        )
    )
    by_pair: dict[str, list[Figure]] = {pair: [] for pair in pairs}
    for pair, name, place, _, values, is_broken, is_reason in found.iter_rows():
        by_pair[pair].append(Figure(name, place, values, is_broken, is_reason))
    return by_pair


def _told(figures: list[Figure], lost: list[str]) -> str:
    broken = [str(figure) for figure in figures if figure.is_broken]
    words = [*broken[:FIGURES_MAX], *(f"{flow}: lost before traffic" for flow in lost)]
    more = len(broken) - FIGURES_MAX
    return "; ".join(words) + (f"; and {more} more" if more > 0 else "")


def _repeat_check(pair: str, again: list[Flow], figures: list[Figure], lost: list[str]) -> Check:
    if lost or any(figure.is_reason for figure in figures):
        finding = Check(
            id=f"retry/{pair}",
            title=f"Repeated, and judged on the median of all repeats: {pair}",
            fault=f"A repeat was out of limits: {pair}",
            status="advisory",
            measured=_told(figures, lost),
            remedy="one of several repeats fell outside: see the logs of both hosts of that time "
            "before relying on this pair",
        )
    else:
        finding = Check(
            id=f"retry/{pair}",
            title=f"Repeated, and judged on the median of all repeats: {pair}",
            fault=f"Repeated without need: {pair}",
            status="inconclusive",
            measured="the pair was repeated although nothing of it fell outside",
            remedy="remove plan.retry.json and raw/*/retry, judge, and run perchctl retry",
        )
    finding.evidence = first([flow.id for flow in again] + lost)
    return finding


@check(
    family="retry",
    order=230,
    columns=_COLUMNS,
    source=design("outliers are repeated once, and all repeats are judged"),
)
def retries(run: RunView) -> Iterator[Check]:
    """Each pair that was measured again, with what every repeat showed."""
    if run.retry_fault:
        yield Check(
            id="retry/plan",
            title="The repeats are those of this run's verdict",
            fault="The repeats do not belong to this run's verdict",
            status="inconclusive",
            measured=f"plan.retry.json: {run.retry_fault}",
            source=design("plan.retry.json is made from the verdict"),
            evidence=["plan.retry.json"],
            remedy="remove plan.retry.json and raw/*/retry, judge, and run perchctl retry",
        )
    pairs = repeated_pairs(run.plan.flows())
    if not pairs:
        return
    lost = lost_flows(run.records)
    figures = _figures(run, pairs)
    for pair, again in pairs.items():
        name = pair.replace("\t", "/")
        of_pair = [flow for flow in lost if flow.startswith(f"{name}/")]
        yield _repeat_check(name, again, figures[pair], of_pair)
