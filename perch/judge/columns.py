"""Records as columns: what checks and comparisons work on, a million records in one pass.

A column is a scalar leaf of Record (but for `histogram`) by its dotted path, such as
`latency_us.p50` or `params.size_bytes`; null where a record has none. Beside them stand:

    row                     place in the run's order, from 0
    id, place, pair         flow#place; the place within the flow; test, client, server by tabs
    has.PATH                whether the record has such an object (`has.loss`, `has.packets`)
    events.counts.CLASS     count of a class (Events.CLASSES); null: not counted, or reset
    events.moved.CLASS      host, device and counter that moved first
    events.reset            list of classes whose counter was reset, has wrapped or is full
    ceiling_gbit_s          payload that the expected link can carry (perch.judge.ceiling)
    host_ceiling_gbit_s     payload that PCIe lets through
    possible_gbit_s         payload that the link as it runs, and PCIe, can carry
    worst_interval_share    slowest whole interval as a share of the record's median interval
    memory                  gpu: payload lies in a GPU at either end; else host
    times_mark                  equal for equal histograms, of records that are being judged
    counters.SIDE.TcpRetransSegs   segments that the whole host sent again during the flow

Dtypes: int is Int64, int | float Float64, bool Boolean, text String.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, Union

import msgspec
import polars as pl

from perch.judge.ceiling import ceilings, shares
from perch.model.figures import median, rounded
from perch.model.record import ROLES, Events, Histogram, Interval, Model, Record
from perch.tools.command import MAKERS

#: Fewer whole intervals have no median to stand by.
LEAST_INTERVALS = 3
#: Intervals shorter than this share of the longest are the ragged ends of a run.
WHOLE_INTERVAL = 0.9

#: Objects of which each stands in so many records make their columns by themselves.
FEW = 8

#: Columns of several parts that are read together.
AT_ONCE = 8

#: The host's own count of TCP segments that were sent again, beside what a tool reports.
HOST_RETRANSMISSIONS = "TcpRetransSegs"

_DTYPES: dict[object, pl.DataType] = {
    bool: pl.Boolean(),
    int: pl.Int64(),
    str: pl.String(),
    int | float: pl.Float64(),
}

type_hints = cache(typing.get_type_hints)


@dataclass(frozen=True)
class Leaf:
    """A scalar field of one struct."""

    name: str
    dtype: pl.DataType
    get: Callable[[Any], Any]


@dataclass(frozen=True)
class Node:
    """A struct within Record. `absent` stands for a missing one: all its fields are None."""

    name: str
    get: Callable[[Any], Any]
    absent: object
    leaves: tuple[Leaf, ...]
    nodes: tuple[Node, ...]


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union without None, of a Literal the type of its words."""
    if typing.get_origin(hint) in (Union, types.UnionType):
        return [part for one in typing.get_args(hint) for part in _alternatives(one)]
    if typing.get_origin(hint) is Literal:
        return [str]
    return [] if hint is type(None) else [hint]


def _node(model: type[msgspec.Struct], path: str, get: Callable[[Any], Any]) -> Node:
    leaves, nodes = [], []
    hints = type_hints(model)
    for field in model.__struct_fields__:
        name = f"{path}.{field}" if path else field
        kinds = _alternatives(hints[field])
        one = kinds[0] if len(kinds) == 1 else int | float if set(kinds) == {int, float} else None
        if one is Histogram:  # opaque, and longer than all the rest of a record
            continue
        if isinstance(one, type) and issubclass(one, Model):
            nodes.append(_node(one, name, attrgetter(field)))
        elif one in _DTYPES:
            leaves.append(Leaf(name, _DTYPES[one], attrgetter(field)))
    absent = type("Absent", (), dict.fromkeys(model.__struct_fields__))()
    return Node(path, get, absent, tuple(leaves), tuple(nodes))


_ROOT = _node(Record, "", lambda record: record)


def _all_leaves(node: Node) -> Iterator[tuple[str, pl.DataType]]:
    for leaf in node.leaves:
        yield leaf.name, leaf.dtype
    for child in node.nodes:
        yield f"has.{child.name}", pl.Boolean()
        yield from _all_leaves(child)


#: Every column that a frame of records has, in order, with its dtype.
COLUMNS: dict[str, pl.DataType] = {
    "row": pl.Int64(),
    "id": pl.String(),
    "place": pl.String(),  # with the rail
    "pair": pl.String(),
    **dict(_all_leaves(_ROOT)),
    **{f"events.counts.{name}": pl.Float64() for name in Events.CLASSES},
    **{f"events.moved.{name}": pl.String() for name in Events.CLASSES},
    "events.reset": pl.List(pl.String()),
    "worst_interval_share": pl.Float64(),
    "memory": pl.String(),
    "times_mark": pl.UInt64(),
    "ceiling_gbit_s": pl.Float64(),
    "host_ceiling_gbit_s": pl.Float64(),
    "possible_gbit_s": pl.Float64(),
    **{f"counters.{role}.{HOST_RETRANSMISSIONS}": pl.Float64() for role in ROLES},
}

_IS_THERE = pl.col(name for name in COLUMNS if name.startswith("has.")).fill_null(value=False)


@cache
def _nulls() -> dict[str, pl.Expr]:
    return {name: pl.lit(None, dtype=dtype).alias(name) for name, dtype in COLUMNS.items()}


def with_nulls(frame: pl.DataFrame) -> pl.DataFrame:
    """With each column that no record of it has: one null for all rows, which takes no memory."""
    held = set(frame.columns)
    return frame.with_columns(null for name, null in _nulls().items() if name not in held)


def _series(name: str, values: list[Any]) -> Iterator[pl.Series]:
    """The column of these values, unless all are None. What its dtype cannot hold is null."""
    if values.count(None) < len(values):
        yield pl.Series(name, values, dtype=COLUMNS[name], strict=False)


def _columns_of(node: Node, objects: Sequence[object]) -> Iterator[pl.Series]:
    for leaf in node.leaves:
        yield from _series(leaf.name, list(map(leaf.get, objects)))
    for child in node.nodes:
        found = list(map(child.get, objects))
        if found.count(None) == len(found):
            continue
        yield pl.Series(f"has.{child.name}", [one is not None for one in found])
        absent = child.absent
        yield from _columns_of_many(child, [absent if one is None else one for one in found])


def _columns_of_many(node: Node, objects: Sequence[object]) -> Iterator[pl.Series]:
    """The same. Records that differ in their figures alone share their other objects."""
    distinct = {id(one): one for one in objects}
    if len(distinct) * FEW > len(objects):
        yield from _columns_of(node, objects)
        return
    places = {name: place for place, name in enumerate(distinct)}
    rows = pl.Series([places[id(one)] for one in objects], dtype=pl.UInt32)
    for column in _columns_of(node, list(distinct.values())):
        yield column.gather(rows)


def _events_of(records: Sequence[Record]) -> Iterator[pl.Series]:
    events = [record.events or Events() for record in records]
    for kind in ("counts", "moved"):
        of_kind = list(map(attrgetter(kind), events))
        if any(of_kind):
            for name in Events.CLASSES:
                yield from _series(f"events.{kind}.{name}", [each.get(name) for each in of_kind])
    if any(one.reset for one in events):
        yield from _series("events.reset", [one.reset or None for one in events])


def _host_retransmissions(records: Sequence[Record]) -> Iterator[pl.Series]:
    for role in ROLES:
        of_side = attrgetter(role)
        yield from _series(
            f"counters.{role}.{HOST_RETRANSMISSIONS}",
            [
                of_side(record.counters).get(HOST_RETRANSMISSIONS) if record.counters else None
                for record in records
            ],
        )


def worst_interval_share(intervals: Sequence[Interval]) -> int | float | None:
    """The slowest whole interval as a share of their median; None of fewer than three.

    Latency has no rate of its own: the count of messages stands for it.
    """
    if len(intervals) < LEAST_INTERVALS:
        return None
    lengths = [(one.end_s or 0) - (one.start_s or 0) for one in intervals]
    least = WHOLE_INTERVAL * max(lengths)
    rates = [
        rate
        for one, length in zip(intervals, lengths, strict=True)
        if length >= least and (rate := one.count if one.gbit_s is None else one.gbit_s) is not None
    ]
    middle = median(rates)
    if middle is None or len(rates) < LEAST_INTERVALS:
        return None
    return rounded(min(rates) / middle) if middle > 0 else 0


def part(records: Sequence[Record]) -> pl.DataFrame:
    """Columns of some of a run's records, in order; columns without any value are left out."""
    columns = [
        *_columns_of(_ROOT, records),
        *_events_of(records),
        *_host_retransmissions(records),
        *_series(
            "worst_interval_share", [worst_interval_share(record.intervals) for record in records]
        ),
    ]
    return pl.DataFrame(columns)


def _place() -> pl.Expr:
    """Like Record.place."""
    size, batch, pair = (
        pl.col(name).cast(pl.String).fill_null("null")
        for name in ("params.size_bytes", "params.batch", "transfer.pair")
    )
    end = pl.when(pl.col("kind") == "sum").then(pl.lit("sum")).otherwise(pair)
    transfer = pl.concat_str(size, pl.lit("x"), batch, pl.lit("/"), end)
    is_transfer = pl.col("kind").is_in(["transfer", "sum"])
    return pl.when(is_transfer).then(transfer).otherwise(size)


def on_rail() -> pl.Expr:
    """Like Record.on_rail."""
    rail = pl.concat_str(pl.lit("@rail"), pl.col("rail").cast(pl.String))
    return pl.when(pl.col("rail") > 0).then(rail).otherwise(pl.lit(""))


def _memory() -> pl.Expr:
    """Of other tools and older engines, which say nothing, it is the host's."""
    words = (pl.col(f"params.{name}") for name in ("memory", "tx_memory", "rx_memory"))
    in_gpu = (word.str.split(":").list.first().is_in(list(MAKERS)) for word in words)
    is_gpu = pl.any_horizontal(one.fill_null(value=False) for one in in_gpu)
    return pl.when(is_gpu).then(pl.lit("gpu")).otherwise(pl.lit("host"))


def joined(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The parts of a run, in order, as one frame with every column of COLUMNS."""
    whole = pl.concat(parts, how="diagonal") if parts else pl.DataFrame()
    whole = with_nulls(whole) if whole.height else pl.DataFrame(schema=COLUMNS)
    return (
        whole.with_columns(_IS_THERE, place=_place(), row=pl.int_range(pl.len(), dtype=pl.Int64))
        .with_columns(
            id=pl.concat_str("flow", pl.lit("#"), "place"),
            place=pl.col("place") + on_rail(),
            pair=pl.concat_str("test", "client.host", "server.host", separator="\t"),
            memory=_memory(),
            **shares(),
        )
        .with_columns(**ceilings())
    )[list(COLUMNS)]


def read_file(path: Path, *names: str) -> pl.DataFrame:
    """An Arrow file, or some of its columns. Brackets in its path are no pattern."""
    return pl.scan_ipc(path, glob=False).select(names or pl.all()).collect()


def read(paths: Sequence[Path]) -> pl.DataFrame:
    """The parts of a run, each in an Arrow IPC file, as one frame; each has the column `flow`.

    A few columns are read at a time: parts that are joined are there twice until all are.
    """
    at_once = AT_ONCE if len(paths) > 1 else len(COLUMNS)
    held = [pl.read_ipc_schema(path) for path in paths]
    names = iter({name: None for of_part in held for name in of_part if name != "flow"})
    whole = pl.concat([read_file(path, "flow") for path in paths], rechunk=True)
    while some := list(islice(names, at_once)):
        parts = (
            read_file(path, "flow", *(name for name in some if name in of_part))
            for path, of_part in zip(paths, held, strict=True)
        )
        found = pl.concat(parts, how="diagonal", rechunk=True).drop("flow")
        whole = whole.with_columns(_once(column) for column in found)
    return whole


def _once(column: pl.Series) -> pl.Series | pl.Expr:
    """A column with one value, as many have one in all records: it stands for all rows."""
    if isinstance(column.dtype, pl.List) or column.null_count() or column.min() != column.max():
        return column
    return pl.lit(column[0], dtype=column.dtype).alias(column.name)


def frame(records: Sequence[Record]) -> pl.DataFrame:
    """All columns of all records of a run."""
    return joined([part(records)] if records else [])
