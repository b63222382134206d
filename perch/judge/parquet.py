"""records.parquet: the records of DIR/records.jsonl for DuckDB, Spark, polars and pandas.

Objects are structs, so that a value has one name in all of them and in jq: `latency_us.p50`.
Objects whose keys a run chooses (`counters`, `events.counts`, `environment`) are JSON text, as
structs of them would differ from run to run, and `queue_pairs`; histograms are their base64 text.
Every column is there, whether or not a record has a value, so years of runs can be read together.

Most of them are columns already (perch.judge.columns); the others are made beside them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import msgspec
import polars as pl
from polars.io.plugins import register_io_source

from perch.judge.columns import read_file
from perch.model.figures import encode_lines
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


#: Rows of a group.
_ROWS = 8192

#: What polars says, without the system's reason, where a file's first or last bytes do not fit.
_UNWRITTEN = "transport error"


# ---- what is no column ---------------------------------------------------------------------------

_HISTOGRAM = tuple(fields(Histogram))
#: Objects that are JSON text, as they stand in a line; None of one that a line leaves out.
_TEXTS: dict[str, Callable[[Record], Any]] = {
    "client.environment": attrgetter("client.environment"),
    "server.environment": attrgetter("server.environment"),
    "intervals": lambda record: record.intervals or None,
    "events.counts": lambda record: (record.events and record.events.counts) or None,
    "events.moved": lambda record: (record.events and record.events.moved) or None,
    "counters.client": lambda record: (record.counters and record.counters.client) or None,
    "counters.server": lambda record: (record.counters and record.counters.server) or None,
    "environment": attrgetter("environment"),
    "queue_pairs": lambda record: record.queue_pairs or None,
}


def _texts(objects: list[Any]) -> list[bytes | None]:
    """Each object as JSON."""
    lines = iter(encode_lines([one for one in objects if one is not None]).split(b"\n"))
    return [None if one is None else next(lines) for one in objects]


def others(records: Sequence[Record]) -> pl.DataFrame:
    """Columns of what perch.judge.columns leaves out."""
    histograms = [record.histogram for record in records]
    found = [
        pl.Series(path, _texts(list(map(of, records))), dtype=pl.Binary).cast(pl.String)
        for path, of in _TEXTS.items()
    ]
    found.append(pl.Series("has.histogram", [one is not None for one in histograms]))
    for name in _HISTOGRAM:
        values = [one and getattr(one, name) for one in histograms]
        found.append(pl.Series(f"histogram.{name}", values, dtype=pl.String))
    return pl.DataFrame(found)


# ---- the table -----------------------------------------------------------------------------------


def _objects(dtypes: Mapping[str, pl.DataType], path: str = "") -> Iterator[pl.Expr]:
    """Objects of columns. An object that a record does not have is null."""
    for name, dtype in dtypes.items():
        column = pl.col(path + name)
        if isinstance(dtype, pl.Struct):
            whole = pl.struct(_objects(pl.Schema(dtype.to_schema()), f"{path}{name}."))
            yield pl.when(pl.col(f"has.{path}{name}")).then(whole).alias(name)
        elif isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.Struct):
            yield column.str.json_decode(dtype).alias(name)
        else:
            yield column.alias(name)


@cache
def _values() -> list[pl.Expr]:
    """The columns of the table."""
    return list(_objects(SCHEMA))


def write(frame: pl.DataFrame, parts: Sequence[Path], out: Path) -> None:
    """Writes records as one Parquet file: their frame, and files of their `others`, in order.

    Raises OSError where it cannot be written.
    """
    values = _values()

    def groups(*_: object) -> Iterator[pl.DataFrame]:
        first = 0
        for part in parts:
            rest = read_file(part)
            yield frame[first : first + rest.height].with_columns(rest).select(values)
            first += rest.height

    rows = register_io_source(groups, schema=SCHEMA)
    try:
        rows.sink_parquet(out, compression="zstd", maintain_order=True, row_group_size=_ROWS)
    except pl.exceptions.ComputeError as error:
        if _UNWRITTEN not in str(error):
            raise
        raise OSError(f"{out.name} could not be written whole") from error
