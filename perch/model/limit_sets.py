"""The limits of a run: a set and a site's own file become one, and inputs/limits.json is read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model import limit_faults
from perch.model.json_keys import repeated_key
from perch.model.limit_faults import Fault, is_text
from perch.model.limits import Limit, Limits
from perch.model.text import explained

#: Of many faults so many are named in a verdict.
MOST_FAULTS = 3


class LimitFile(NamedTuple):
    """A file of limits, its text and the document in it."""

    path: Path
    text: str
    document: Any

    @property
    def name(self) -> str:
        """As records of a run have it."""
        return self.path.name

    def at(self, fault: Fault) -> str:
        """The fault with its place, for a terminal."""
        return limit_faults.at(fault, str(self.path), self.text)


class _Document(msgspec.Struct):
    """inputs/limits.json, when its faults are known to be none."""

    limits: tuple[Limit, ...]
    name: str | None = None
    files: tuple[str, ...] = ()


def _is_removal(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("severity") == "removed"


def _removal_faults(own: list[Any], names: list[str | None], set_name: str) -> list[Fault]:
    found = []
    removals = [entry for entry in own if _is_removal(entry)]
    removed = [entry.get("id") for entry in removals]
    for entry in removals:
        name = str(entry.get("id"))
        if not is_text(entry.get("source")):
            found.append(Fault(name, "source", "no source: a removal names its reason"))
        found += [
            Fault(name, str(key), "a removal has id, severity and source only")
            for key in entry
            if key not in ("id", "severity", "source")
        ]
        if entry.get("id") not in names:
            found.append(
                Fault(name, "id", f"removes nothing: {set_name} has no limit with this id")
            )
        if removed.count(entry.get("id")) > 1:
            found.append(Fault(name, "id", f"{removed.count(entry.get('id'))} entries remove it"))
    for entry in own:
        given = limit_faults.name_of(entry)
        if not _is_removal(entry) and given is not None and given in removed:
            found.append(Fault(given, "id", "it is both removed and given"))
    return found


def _site_faults(base: LimitFile, site: LimitFile) -> list[Fault]:
    """What is wrong with a site's own file; a file of removals alone is a whole one."""
    document = site.document
    own = document.get("limits") if isinstance(document, dict) else None
    if not isinstance(own, list):
        return list(limit_faults.site_faults(document))
    given = [entry for entry in own if not _is_removal(entry)]
    found = [] if own and not given else [*limit_faults.site_faults({**document, "limits": given})]
    names = [limit_faults.name_of(limit) for limit in base.document["limits"]]
    return found + _removal_faults(own, names, base.name)


def _entry(old: dict[str, Any], new: dict[str, Any] | None, base: str, site: str) -> dict[str, Any]:
    if new is None:
        return {**old, "from": base}
    if _is_removal(new):
        return {**old, "from": base, "removed": {"file": site, "source": new["source"]}}
    was = {key: old[key] for key in ("severity", "bound", "source")}
    return {**new, "from": site, "replaces": {"from": base, **was}}


def _joined(base: LimitFile, site: LimitFile | None) -> dict[str, Any]:
    document = base.document
    own = {entry["id"]: entry for entry in site.document["limits"]} if site else {}
    name = site.name if site else ""
    known = {old["id"] for old in document["limits"]}
    limits = [_entry(old, own.get(old["id"]), base.name, name) for old in document["limits"]]
    limits += [{**new, "from": name} for key, new in own.items() if key not in known]
    return {
        "schema": "perch.limits/1",
        "name": document.get("name"),
        "title": document.get("title"),
        "files": [base.name, *([name] if site else [])],
        "limits": limits,
    }


def _refuse(faults: list[str]) -> None:
    if faults:
        first, *more = dict.fromkeys(faults)
        raise PerchError(ExitCode.USAGE, first, remedy="correct the limits", more=more)


def merged(base: LimitFile, site: LimitFile | None) -> dict[str, Any]:
    """The document of inputs/limits.json.

    A whole entry of the site's replaces the set's with the same id or is added; an entry
    `{id, severity: removed, source}` takes one out of the judging and leaves it to be shown.

    Raises:
        PerchError: every fault with its file, line and key, each a line.
    """
    _refuse([base.at(fault) for fault in limit_faults.file_faults(base.document)])
    if site is not None:
        _refuse([site.at(fault) for fault in _site_faults(base, site)])
    document = _joined(base, site)
    # partners of relative limits may have been replaced or removed
    files = " with ".join(document["files"])
    _refuse([limit_faults.at(fault, files, "") for fault in limit_faults.run_faults(document)])
    return document


def decoded(content: bytes | None, name: str = "inputs/limits.json") -> Limits:
    """The limits of a run from the bytes of inputs/limits.json; None: it cannot be read.

    A document with faults gives no limit and names the first faults.
    """
    if content is None:
        return Limits(fault=f"{name} is missing or cannot be read")
    try:
        text = content.decode()
        document = msgspec.json.decode(content)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        return Limits(fault=f"{name} is damaged: {explained(error)}")
    repeated = repeated_key(content)
    if repeated is not None:
        return Limits(fault=f"{name} has the key '{repeated}' twice in one object")
    faults = [limit_faults.at(fault, name, text) for fault in limit_faults.run_faults(document)]
    if faults:
        return Limits(fault="; ".join(faults[:MOST_FAULTS]))
    try:
        made = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        return Limits(fault=f"{name}: {explained(error)}")
    digest = hashlib.sha256(content).hexdigest()
    return Limits(made.limits, name=made.name, files=made.files, digest=digest)
