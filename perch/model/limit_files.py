"""Files of limits, as people write them (reports/limits/*.yml, a site's own)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from perch.errors import ExitCode, PerchError
from perch.home import HOME
from perch.model.limit_sets import LimitFile
from perch.model.limits import Limit

#: The sets that come with this version.
SETS = HOME / "reports/limits"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Rejects a key that occurs twice, because YAML would silently use the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in names:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key '{key.value}' occurs twice", problem_mark=key.start_mark
                )
            names.add(key.value)
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return made


def read(path: Path) -> LimitFile:
    """A file of limits. Raises PerchError where it cannot be read or is not YAML."""
    try:
        text = path.read_text(errors="replace")
        return LimitFile(path.name, text, yaml.load(text, _Loader))
    except OSError as error:
        what, place = f"it cannot be read ({error.strerror})", ""
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is not valid YAML"
    raise PerchError(ExitCode.USAGE, what, file=path, place=place, remedy="correct the limits")


def shipped(name: str) -> tuple[Limit, ...] | None:
    """The limits of a set that comes with this version; None for an unknown name."""
    path = next((one for one in SETS.glob("*.yml") if one.stem == name), None)
    return None if path is None else msgspec.convert(read(path).document, _Set).limits


class _Set(msgspec.Struct):
    limits: tuple[Limit, ...]
