"""records.parquet: the records of DIR/records.jsonl for DuckDB, Spark, polars and pandas.

Objects are structs, so that a value has one name in all of them and in jq: `latency_us.p50`.
Objects whose keys a run chooses (`counters`, `events.counts`, `environment`) are JSON text, as
structs of them would differ from run to run, and `queue_pairs`; histograms are their base64 text.
Every column is there, whether or not a record has a value, so years of runs can be read together.

Most of them are columns already (perch.judge.columns); only the others are read from the lines.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import msgspec
import polars as pl
from polars.io.plugins import register_io_source

from perch.model.record import Histogram, Record

#: A union has the type that comes first here: the column of 3.5 holds 3, too.
_SCALARS: dict[object, pl.DataType] = {
    str: pl.String(), float: pl.Float64(), int: pl.Int64(), bool: pl.Boolean(),
}  # fmt: skip


def _alternatives(hint: Any) -> list[Any]:
    """The types of a union without None and bounds; of a Literal the type of its words."""
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return [one for part in typing.get_args(hint) for one in _alternatives(part)]
    if origin is Annotated:
        return _alternatives(typing.get_args(hint)[0])
    if origin is Literal:
        return [str]
    return [] if hint is type(None) else [hint]


def _dtype(hint: Any) -> pl.DataType:
    kinds = _alternatives(hint)
    first = kinds[0]
    if typing.get_origin(first) is list:
        return pl.List(_dtype(typing.get_args(first)[0]))
    if typing.get_origin(first) is dict or first is Any:
        return pl.String()
    if isinstance(first, type) and issubclass(first, msgspec.Struct):
        return pl.Struct(fields(first))
    return next(dtype for kind, dtype in _SCALARS.items() if kind in kinds)


def fields(model: type[msgspec.Struct]) -> dict[str, pl.DataType]:
    """The columns of a type, by name, in its order."""
    hints = typing.get_type_hints(model, include_extras=True)
    return {name: _dtype(hints[name]) for name in model.__struct_encode_fields__}


SCHEMA = fields(Record)


#: Rows of a group, which are made and written at a time.
_ROWS = 8192


# ---- what is no column ---------------------------------------------------------------------------


class _Texts(msgspec.Struct):
    """Objects that are JSON text, as they stand in a line; empty where there is none."""

    counts: msgspec.Raw = msgspec.Raw()
    moved: msgspec.Raw = msgspec.Raw()
    client: msgspec.Raw = msgspec.Raw()
    server: msgspec.Raw = msgspec.Raw()
    environment: msgspec.Raw = msgspec.Raw()


_NONE = _Texts()


class _Line(msgspec.Struct):
    """What of a record is no column."""

    client: _Texts
    server: _Texts
    histogram: Histogram | None = None
    intervals: msgspec.Raw = msgspec.Raw()
    events: _Texts = msgspec.field(default_factory=lambda: _NONE)
    counters: _Texts = msgspec.field(default_factory=lambda: _NONE)
    environment: msgspec.Raw = msgspec.Raw()
    queue_pairs: msgspec.Raw = msgspec.Raw()


_line = msgspec.json.Decoder(_Line)
_HISTOGRAM = tuple(fields(Histogram))
_TEXTS = (
    "client.environment", "server.environment", "intervals", "events.counts", "events.moved",
    "counters.client", "counters.server", "environment", "queue_pairs",
)  # fmt: skip


def _others(lines: list[bytes]) -> Iterator[pl.Series]:
    """Columns of what is none yet."""
    found = [_line.decode(line) for line in lines]
    for path in _TEXTS:
        texts = [bytes(raw) or None for raw in map(attrgetter(path), found)]
        yield pl.Series(path, texts, dtype=pl.Binary).cast(pl.String)
    histograms = [one.histogram for one in found]
    yield pl.Series("has.histogram", [one is not None for one in histograms])
    for name in _HISTOGRAM:
        values = [one and getattr(one, name) for one in histograms]
        yield pl.Series(f"histogram.{name}", values, dtype=pl.String)


# ---- the table -----------------------------------------------------------------------------------


def _values(dtypes: Mapping[str, pl.DataType], path: str = "") -> Iterator[pl.Expr]:
    """Objects of columns. An object that a record does not have is null."""
    for name, dtype in dtypes.items():
        column = pl.col(path + name)
        if isinstance(dtype, pl.Struct):
            whole = pl.struct(_values(pl.Schema(dtype.to_schema()), f"{path}{name}."))
            yield pl.when(pl.col(f"has.{path}{name}")).then(whole).alias(name)
        elif isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
            yield column.str.json_decode(dtype).alias(name)
        else:
            yield column.alias(name)


def write(frame: pl.DataFrame, records: Path, out: Path) -> None:
    """Writes records as one Parquet file: of their frame, and of their lines in the same order.

    Raises OSError where it cannot be written.
    """
    values = list(_values(SCHEMA))

    def groups(*_: object) -> Iterator[pl.DataFrame]:
        with records.open("rb") as lines:
            for first in range(0, frame.height, _ROWS):
                others = _others(list(islice(lines, _ROWS)))
                yield frame[first : first + _ROWS].with_columns(*others).select(values)

    rows = register_io_source(groups, schema=SCHEMA)
    rows.sink_parquet(out, compression="zstd", maintain_order=True, row_group_size=_ROWS)
