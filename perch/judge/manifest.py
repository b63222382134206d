"""raw/manifest.sha256: are a run's files still as they were fetched?"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from perch.judge.raw import RawFiles, flow_folder, regular
from perch.model.plan import Flow

MANIFEST = "raw/manifest.sha256"

#: What the manifest names. sha256sum writes a name with a backslash in its own way; no file that
#: anybody reads has one.
SEALED = ("plan.json", "rounds.jsonl", "plan.retry.json", "inputs", "raw")

_line = re.compile(
    r"([0-9a-f]{64})  ((?:plan\.json|rounds\.jsonl|plan\.retry\.json|(?:inputs|raw)/.*))"
)

#: Bytes that are hashed at a time.
_BLOCK = 2**20


class Manifest(msgspec.Struct):
    """What differs from the manifest, as paths in order.

    sealed: how many lines it has; None without a manifest. lines: numbers of those that are not
    sha256sum's. unplanned: folders of flows that the plan does not have. odd: lines of flows.jsonl
    that cannot be used, in words.
    """

    sealed: int | None = None
    lines: list[str] = []
    missing: list[str] = []
    new: list[str] = []
    changed: list[str] = []
    unplanned: list[str] = []
    odd: list[str] = []


def _walk(folder: str) -> Iterator[str]:
    """Regular files below a folder; links are not followed."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path)
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


def files(root: Path) -> list[str]:
    """The files that a manifest should name, as paths below `root`, in order."""
    found = []
    for name in SEALED:
        path = root / name
        if path.is_dir():
            found += [os.path.relpath(one, root) for one in _walk(str(path))]
        elif path.is_file() and not path.is_symlink():
            found.append(name)
    return sorted(name for name in found if name != MANIFEST and "\\" not in name)


def digest(path: Path) -> str | None:
    """SHA-256 of a regular file, in hexadecimal; None where it cannot be read."""
    found, held = hashlib.sha256(), regular(path)
    if held is None:
        return None
    try:
        with os.fdopen(held, "rb") as file:
            while block := file.read(_BLOCK):
                found.update(block)
    except OSError:
        return None
    return found.hexdigest()


def _read(root: Path) -> Manifest:
    path = root / MANIFEST
    if not (path.exists() or path.is_symlink()):
        return Manifest()
    try:
        if path.is_symlink() or not path.is_file():
            raise OSError  # a folder, a pipe or a link in its place has taken the manifest away
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return Manifest(sealed=0, lines=["0"])
    lines = text.splitlines()
    given = [(number, _line.fullmatch(line)) for number, line in enumerate(lines, 1)]
    digests: dict[str, str] = {}
    odd = [str(number) for number, match in given if match is None]
    for number, match in given:
        if match and digests.setdefault(match[2], match[1]) != match[1]:
            odd.append(str(number))  # two digests of one file
    there = set(files(root))
    return Manifest(
        sealed=len(lines),
        lines=sorted(odd, key=int),
        missing=sorted(digests.keys() - there),
        new=sorted(there - digests.keys()),
        changed=[
            name
            for name, wanted in sorted(digests.items())
            if name in there and digest(root / name) != wanted
        ],
    )


def _names(path: str) -> list[str]:
    """Of what lies in a folder, in order; none where it is no folder."""
    try:
        return sorted(entry.name for entry in os.scandir(path))
    except OSError:
        return []


def _below(root: str, folder: str, levels: int) -> Iterator[str]:
    """The folders so many levels below `folder`."""
    for name in _names(f"{root}/{folder}"):
        if levels == 1:
            yield f"{folder}/{name}"
        else:
            yield from _below(root, f"{folder}/{name}", levels - 1)


def _unplanned_of(root: str, folder: str, host: str, planned: set[str]) -> Iterator[str]:
    """The same below raw/HOST/[retry/]flows, of planned folders at each level down to a flow's.

    A client's side is read to its end. A server's only to the name of the client, where a plan that
    was cut shows: it would cost as much again.
    """
    for test in _names(f"{root}/{folder}"):
        at = f"{folder}/{test}"
        if at not in planned:
            yield at
            continue
        for client in _names(f"{root}/{at}"):
            of_client = f"{at}/{client}"
            if of_client not in planned:
                yield of_client
            elif client == host:
                for one in _below(root, of_client, levels=3):  # server, rail, repeat
                    if one not in planned:
                        yield one


def _unplanned(root: Path, flows: Iterable[Flow]) -> list[str]:
    """Folders of flows that neither the plan nor that of the repeats has."""
    walks = [
        (host, f"raw/{host}/{part}")
        for host in _names(f"{root}/raw")
        for part in ("flows", "retry/flows")
    ]
    walks = [(host, folder) for host, folder in walks if (root / folder).is_dir()]
    if not walks:  # as in all runs but soaks
        return []
    planned: set[str] = set()
    pairs: set[tuple[str, str, str, bool]] = set()
    for flow in flows:
        planned.add(flow_folder(flow, flow.client))
        pair = flow.test, flow.client, flow.server, flow.retry
        if pair in pairs:
            continue
        pairs.add(pair)
        for host in (flow.client, flow.server):
            of_client = flow_folder(flow, host).rsplit("/", 3)[0]
            planned |= {of_client, of_client.rpartition("/")[0]}
    return [
        one for host, folder in walks for one in _unplanned_of(str(root), folder, host, planned)
    ]


def read_manifest(files: RawFiles, flows: Iterable[Flow]) -> Manifest:
    """What a run's manifest says of its files, and outputs that no flow explains."""
    manifest = _read(files.root)
    manifest.unplanned = _unplanned(files.root, flows)
    return manifest
