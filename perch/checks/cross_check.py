"""The engine's TCP bandwidth beside iperf3's: two programs on one path."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check

#: Two programs on one path, whose sockets are tuned differently. Further apart, one of them
#: measures something else.
CROSS_FACTOR = 2

_CROSS = (
    "row", "id", "status", "kind", "client.host", "server.host", "tool.name", "backend",
    "bandwidth.gbit_s", "params.size_bytes", "params.queue_pairs", "params.bidirectional",
    "params.verify", "params.completion",
)  # fmt: skip


def _comparable() -> pl.Expr:
    """One connection, one way, unverified: the engine's by busy polling over tcp, and iperf3's."""
    unset = [
        ~pl.col(f"params.{name}").fill_null(value=False) for name in ("bidirectional", "verify")
    ]
    engine = (
        (pl.col("tool.name") == "perch")
        & (pl.col("backend") == "tcp")
        & (pl.col("params.completion") == "busy")
    )
    return (
        (pl.col("status") == "ok")
        & (pl.col("client.host") != "unknown")
        & (pl.col("kind") == "bandwidth")
        & (pl.col("params.queue_pairs") == 1)
        & unset[0]
        & unset[1]
        & (engine | (pl.col("tool.name") == "iperf3"))
    )


def _pairs(records: pl.DataFrame) -> list[tuple[float, list[str]]]:
    """(engine's mean / iperf3's mean, one record of each) by client, server and size."""
    key = ["client.host", "server.host", "params.size_bytes"]
    means = (
        records.filter(_comparable())
        .group_by([*key, "tool.name"], maintain_order=True)
        .agg(pl.col("bandwidth.gbit_s").mean(), pl.col("id").first())
        .with_columns(pl.col("params.size_bytes").cast(pl.String))
        .sort(key)
    )
    pairs = []
    for _, rows in groupby(
        means.iter_rows(named=True), key=lambda row: [row[name] for name in key]
    ):
        of = {row["tool.name"]: row for row in rows}
        if len(of) == 2:
            ratio = of["perch"]["bandwidth.gbit_s"] / of["iperf3"]["bandwidth.gbit_s"]
            pairs.append((ratio, [of["perch"]["id"], of["iperf3"]["id"]]))
    return pairs


@check(family="cross-check", order=150, columns=_CROSS)
def cross_check(run: RunView) -> Iterator[Check]:
    pairs = _pairs(run.records)
    title = "The engine's TCP bandwidth agrees with iperf3's"
    if not pairs:
        yield Check(
            id="cross-check",
            title=title,
            status="not_judged",
            measured="no flow of each with the same pair, size and one connection",
            source=design("cross-checks"),
        )
        return
    far = [one for one in pairs if not 1 / CROSS_FACTOR <= one[0] <= CROSS_FACTOR]
    worst = max(pairs, key=lambda one: max(one[0], 1 / one[0]))
    yield Check(
        id="cross-check",
        title=title,
        fault="The engine's TCP bandwidth differs from iperf3's",
        status="advisory" if far else "pass",
        measured=rounded(worst[0]),
        limit=Bound(1 / CROSS_FACTOR, CROSS_FACTOR),
        unit="engine / iperf3",
        source="site policy: two programs on one path stay within a factor of two",
        evidence=first(name for _, names in far for name in names) if far else worst[1],
        remedy="compare both command lines (socket buffers, sizes) and repeat on an idle host "
        "before trusting either"
        if far
        else None,
    )
