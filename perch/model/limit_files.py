"""Files of limits, as people write them (reports/limits/*.yml, a site's own).

A set may extend another one (`extends: FILE` beside it): an entry with the id of one there changes
the keys that it has, any other is added. It may be of links of one fabric and of rates above
`above_gbit_s` up to `up_to_gbit_s`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from perch.errors import ExitCode, PerchError
from perch.home import HOME
from perch.model.limit_faults import name_of
from perch.model.limit_sets import LimitFile
from perch.model.limits import Limit

#: The sets that come with this version.
SETS = HOME / "reports/limits"

#: Levels of lists and objects, at most: a set has 5. libyaml composes each in a call of its own, so
#: that tens of thousands of them end the process without a word.
DEEPEST = 64


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


#: The keys of a set that are not of its limits.
_OF_SET = ("extends", "fabric", "above_gbit_s", "up_to_gbit_s")


class RateSet(msgspec.Struct, frozen=True):
    """A set of limits for links of one fabric and of some rates, in Gb/s."""

    name: str
    fabric: str
    above_gbit_s: float
    up_to_gbit_s: float

    def takes(self, fabric: str, gbit_s: float) -> bool:
        return self.fabric == fabric and self.above_gbit_s < gbit_s <= self.up_to_gbit_s


def rate_sets(folder: Path) -> list[RateSet]:
    """The sets of a folder that are of some rates, slowest first."""
    found = []
    for path in folder.glob("*.yml"):
        document = _read(path).document
        if isinstance(document, dict) and "up_to_gbit_s" in document:
            found.append(msgspec.convert({**document, "name": path.stem}, RateSet))
    return sorted(found, key=lambda one: (one.fabric, one.up_to_gbit_s))


def read(path: Path) -> LimitFile:
    """A file of limits, whole. Raises PerchError where it cannot be read or is not YAML."""
    return _whole(path, ())


def _whole(path: Path, extending: tuple[Path, ...]) -> LimitFile:
    """`extending`: the files that extend this one."""
    if path in extending:
        why = "it extends itself"
        raise PerchError(ExitCode.USAGE, why, file=path, remedy="correct the limits")
    file = _read(path)
    if not isinstance(file.document, dict):
        return file
    own = {key: value for key, value in file.document.items() if key not in _OF_SET}
    if "extends" in file.document:
        base = _whole(path.parent / str(file.document["extends"]), (*extending, path)).document
        own["limits"] = _extended(_entries(base), _entries(own))
    return file._replace(document=own)


def _entries(document: Any) -> list[Any]:
    entries = document.get("limits") if isinstance(document, dict) else None
    return entries if isinstance(entries, list) else []


def _extended(base: list[Any], own: list[Any]) -> list[Any]:
    """Entries without an id stay, for the checker to refuse."""
    changed = {name_of(one): one for one in own if name_of(one) is not None}
    names = {name_of(one) for one in base}
    kept = [{**one, **changed[name_of(one)]} if name_of(one) in changed else one for one in base]
    return kept + [one for one in own if name_of(one) is None or name_of(one) not in names]


def _refuse_endless(text: str) -> None:
    """Depth and aliases, which can exhaust the stack and the memory of a reader."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        mark: Any = event.start_mark
        if depth > DEEPEST:
            what = f"it has more than {DEEPEST} levels of lists and objects"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=mark)
        if isinstance(event, yaml.AliasEvent):
            what = f"an alias (*{event.anchor}); write its value here"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=mark)


def _read(path: Path) -> LimitFile:
    """The file as it is written."""
    try:
        text = path.read_text(errors="replace")
        _refuse_endless(text)
        return LimitFile(path, text, yaml.load(text, _Loader))
    except OSError as error:
        what, place = f"it cannot be read ({error.strerror})", ""
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is not valid YAML"
    raise PerchError(ExitCode.USAGE, what, file=path, place=place, remedy="correct the limits")


@cache
def shipped(name: str) -> tuple[Limit, ...] | None:
    """The limits of a set that comes with this version; None for an unknown name."""
    path = next((one for one in SETS.glob("*.yml") if one.stem == name), None)
    return None if path is None else msgspec.convert(read(path).document, _Set).limits


class _Set(msgspec.Struct):
    limits: tuple[Limit, ...]
