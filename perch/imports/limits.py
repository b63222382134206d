"""The limits of an imported run: a set of reports/limits, or a file of limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from perch.errors import ExitCode, PerchError
from perch.model import limit_sets
from perch.model.limit_sets import LimitFile

SETS = Path(__file__).resolve().parents[2] / "reports/limits"


class _Loader(yaml.SafeLoader):
    """YAML's last key of a name would win, and a bound be another than the one above it."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in names:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {key.value} stands there twice", problem_mark=key.start_mark
                )
            names.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _path(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        path = SETS / f"{name}.yml"
    if path.is_file():
        return path
    known = ", ".join(sorted(one.stem for one in SETS.glob("*.yml")))
    raise PerchError(
        ExitCode.USAGE, f"no set of limits '{name}'", remedy=f"give a file, or one of {known}"
    )


def read(name: str) -> bytes:
    """inputs/limits.json of a run. Raises PerchError where the limits cannot be used."""
    path = _path(name)
    text = path.read_text(errors="replace")
    if path.suffix not in (".yml", ".yaml"):
        limits = limit_sets.decoded(text.encode(), str(path))
        if limits.fault:
            raise PerchError(ExitCode.USAGE, limits.fault, remedy="correct the limits")
        return text.encode()
    try:
        document = yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is no YAML"
        raise PerchError(
            ExitCode.USAGE, what, file=path, place=place, remedy="correct the file"
        ) from None
    merged = limit_sets.merged(LimitFile(path.name, text, document), None)
    return msgspec.json.format(msgspec.json.encode(merged), indent=2) + b"\n"
