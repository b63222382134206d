"""What stands on every record of a flow and counts once, test by test: path, packets; and times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import polars as pl

from perch.views import words
from perch.views.measured import tidy
from perch.views.ranks import grouped
from perch.views.table import Table, left, right


class Packets(msgspec.Struct):
    """Of a test's flows that RDMA devices counted. `whole`: all tell what was lost and repeated."""

    sent: int
    lost: int
    retries: int
    whole: bool


class PathOf(msgspec.Struct):
    """Bytes of a test's flows with a path, and how many flows are in each state."""

    flows: int
    claimed: float | None
    client: float | None
    server: float | None
    states: dict[str, int]


class Times(msgspec.Struct):
    """When a test began, the flow that began last with its seconds, and the seconds of all."""

    began: str | None
    last: tuple[str | None, float]
    seconds: float


#: Columns of `once` beside those of path and packets.
_ONCE = ("flow", "test", "has.path", "has.packets")


def once(records: pl.DataFrame) -> pl.DataFrame:
    """The first record of each flow."""
    names = [name for name in records.columns if name.startswith(("path.", "packets."))]
    first = pl.col("flow").ne_missing(pl.col("flow").shift())
    return records.lazy().filter(first).select(*_ONCE, *names).collect()


def packets(flows: pl.DataFrame) -> dict[str, Packets]:
    """By test. flows: of `once`."""
    counted = flows.filter(pl.col("has.packets").fill_null(value=False))
    lost, retries = pl.col("packets.lost"), pl.col("packets.retries")
    groups = counted.group_by("test", maintain_order=True).agg(
        pl.col("packets.sent").sum().alias("sent"),
        lost.sum().alias("lost"),
        retries.sum().alias("retries"),
        (lost.is_null() | retries.is_null()).any().alias("part"),
    )
    return {
        row["test"]: Packets(
            tidy(row["sent"]), tidy(row["lost"]), tidy(row["retries"]), not row["part"]
        )
        for row in groups.iter_rows(named=True)
    }


_BYTES = {
    "claimed": "path.claimed_bytes",
    "client": "path.client_device_bytes",
    "server": "path.server_device_bytes",
}


def paths(flows: pl.DataFrame) -> dict[str, PathOf]:
    """By test. flows: of `once`."""
    proven = flows.filter(pl.col("has.path").fill_null(value=False))
    sums = proven.group_by("test", maintain_order=True).agg(
        pl.len().alias("flows"),
        *(
            pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(name)
            for name, column in _BYTES.items()
        ),
    )
    states: dict[str, dict[str, int]] = {}
    counted = proven.group_by("test", "path.state").len().sort("test", "path.state")
    for test, state, number in counted.iter_rows():
        states.setdefault(test, {})[state] = number
    return {
        row["test"]: PathOf(states=states[row["test"]], **{k: row[k] for k in row if k != "test"})
        for row in sums.iter_rows(named=True)
    }


def times(records: pl.DataFrame) -> dict[str, Times]:
    """By test, of the records that say how long they took."""
    timed = records.select("test", "started", "elapsed_s").drop_nulls("elapsed_s")
    groups = timed.group_by("test", maintain_order=True).agg(
        pl.col("started").min().alias("began"),
        pl.struct("started", "elapsed_s").sort_by("started", "elapsed_s").last().alias("last"),
        # in whole microseconds, so that parts sum up to the same
        ((pl.col("elapsed_s") * 1e6).round().sum() / 1e6).alias("seconds"),
    )
    return {
        row["test"]: Times(
            row["began"], (row["last"]["started"], row["last"]["elapsed_s"]), row["seconds"]
        )
        for row in groups.iter_rows(named=True)
    }


# ---- the ends, as the flows saw them -------------------------------------------------------------

ENDS_MAX = 60
_LINK = ("link.layer", "link.rate_gbit_s", "link.mtu_bytes")


def _text(value: Any) -> str:
    return words.NOTHING if value is None else str(tidy(value))


def ends_table(records: pl.DataFrame) -> Table:
    """Devices with the link that ceilings are computed from."""
    sides = [
        records.select(
            pl.col(f"{side}.host").alias("host"), pl.col(f"{side}.device").alias("device"), *_LINK
        ).unique(maintain_order=True)
        for side in ("client", "server")
    ]
    ends = {
        (host, device, *(_text(value) for value in link))
        for host, device, *link in pl.concat(sides).iter_rows()
        if device is not None and host is not None
    }
    rows = [
        [*map(words.cell, group[0][1:]), words.cell(words.some(sorted(end[0] for end in group), 8))]
        for group in grouped(ends, lambda end: end[1:])
    ]
    columns = left("Device", "Layer") + right("Rate, Gb/s", "MTU") + left("Hosts")
    return Table(columns, rows[:ENDS_MAX])


# ---- tables --------------------------------------------------------------------------------------

PATH_WORDS = {
    "contradicted": "CONTRADICTED",
    "exceeded": "more than claimed",
    "unknown": "not known",
    "not_judged": "not judged",
    "proven": "proven",
}


def _megabytes(count: float | None) -> str:
    return "-" if count is None else words.figure(count / 1e6)


def _states(states: dict[str, int]) -> str:
    """The worst first."""
    return ", ".join(f"{states[one]} {said}" for one, said in PATH_WORDS.items() if one in states)


def path_table(tests: Iterable[tuple[str, str]], found: dict[str, PathOf]) -> Table:
    """tests: name and title, in the plan's order."""
    rows = [
        [
            words.cell(title),
            words.whole(of.flows),
            *map(_megabytes, (of.claimed, of.client, of.server)),
            _states(of.states),
        ]
        for name, title in tests
        if (of := found.get(name))
    ]
    columns = left("Test") + right(
        "Flows", "Claimed, MB", "Client's device, MB", "Server's device, MB"
    )
    return Table(columns + left("Path"), rows)
