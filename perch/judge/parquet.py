"""records.parquet: the records of DIR/records.jsonl for DuckDB, Spark, polars and pandas.

Objects are structs, so that a value has one name in all of them and in jq: `latency_us.p50`.
Objects whose keys a run chooses (`counters`, `events.counts`, `environment`) are JSON text, as
structs of them would differ from run to run; histograms are their base64 text. Every column is
there, whether or not a record has a value, so years of runs can be read together.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import msgspec
import polars as pl

from perch.model.record import Record

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


#: Lines that are read and rows that are written at a time: a hundred thousand records take some
#: 130 MiB beside one of their files, which are mapped into memory one after another.
_LINES, _ROWS = 1024, 8192


def write(records: Sequence[Path], out: Path) -> None:
    """Writes files of records, one JSON object a line, as one Parquet file, in the same order.

    Raises OSError where it cannot be written.
    """
    files = [path for path in records if path.stat().st_size > 0]
    if not files:
        pl.DataFrame(schema=SCHEMA).write_parquet(out)
        return
    lines = pl.scan_ndjson(files, schema=SCHEMA, batch_size=_LINES)
    lines.sink_parquet(out, compression="zstd", maintain_order=True, row_group_size=_ROWS)
