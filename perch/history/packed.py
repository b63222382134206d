"""How a bundle is packed: which files, their description, their order and the archive's bytes.

`perchctl verify` packs again what it unpacked: both must do it alike.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from perch import programs
from perch.errors import ExitCode, PerchError
from perch.judge.manifest import MANIFEST as SEALED
from perch.judge.raw import UNREADABLE
from perch.model.bundle import BundleDocument, BundleTool, BundleVersions
from perch.model.figures import encode, encode_sorted
from perch.run import folder
from perch.run.unpack import NAMES

MANIFEST, SIGNATURE, DESCRIPTION = "manifest.sha256", "manifest.sha256.sig", "bundle.json"

#: Names that may stand in a bundle: those of plans, hosts and flows; none climbs, hides or
#: surprises.
_PART = "[A-Za-z0-9_][A-Za-z0-9._-]*"
NAME = re.compile(f"{_PART}(/{_PART})*")

#: Of a host's documents what another moment would read otherwise.
_MOMENTARY = ("idle", "collected", "later", "commands")
_HOST_DOCUMENTS = ("environment.json", "host_check.json")

#: What role switch_check leaves of a switch.
_OF_SWITCH = ("switch-before.json", "switch-after.json", "samples.jsonl.gz")

#: gzip's header without name and time, made on Unix (RFC 1952).
GZIP_HEADER = bytes.fromhex("1f8b0800000000000003")

BLOCK = 2**20

#: Seconds for tar: for 16 GiB, the most that `perchctl verify` unpacks, at 5 MB/s.
TAR_S = 3600.0


class Tool(msgspec.Struct):
    name: str = ""
    version: str | None = None


class Versions(msgspec.Struct):
    perch_commit: str | None = None
    jq: str | None = None
    tools: list[Tool] = []


class Described(msgspec.Struct):
    """What bundle.json says that does not follow from the run."""

    versions: Versions = msgspec.field(default_factory=Versions)


def _walk(path: Path) -> Iterator[Path]:
    if path.is_symlink():
        return
    if path.is_file():
        yield path
    elif path.is_dir():
        for one in sorted(path.iterdir()):
            yield from _walk(one)


def files(root: Path) -> list[str]:
    """The regular files below a folder, in the order of their names. Raises OSError."""
    return sorted(os.fspath(path.relative_to(root)) for path in _walk(root))


def stray(root: Path, names: Iterable[str]) -> list[str]:
    """Those below raw/ that the plan does not explain: what Perch itself does not put there.

    Whether a soak's flow is planned, and each line of a file, are matters of the judge.
    """
    plan = folder.plan_head(root / folder.PLAN)
    asked = {path.stem for path in (root / "inputs/hosts").glob("*.json")}
    imported = {one.file for one in plan.imports.values()} | {SEALED}

    def is_explained(name: str) -> bool:
        match name.split("/")[1:]:
            case [host, file] | [host, "retry", file] if host in plan.hosts and file in NAMES:
                return True
            case [host, "flows", _, _, _, _, _, "client.soak"]:
                return host in plan.hosts and plan.soak is not None
            case [host, "host_check.json"]:
                return host in asked or host in plan.hosts
            case [switch, file] if switch in (plan.switches or {}):
                return file in _OF_SWITCH
        return name in imported

    return [name for name in names if name.startswith("raw/") and not is_explained(name)]


def listed(root: Path) -> list[str]:
    """The files that a manifest names."""
    return [name for name in files(root) if name not in (MANIFEST, SIGNATURE)]


def _configuration(path: Path) -> str:
    """A hash of what configures a host; that of nothing where the file is no document."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except UNREADABLE:
        return folder.digest(b"")
    kept = {name: value for name, value in document.items() if name not in _MOMENTARY}
    return folder.digest(encode_sorted(kept))


def describe(root: Path, commit: str | None, jq: str | None) -> BundleDocument:
    """bundle.json of a run that this commit packed. `jq` is what judges the hosts' findings.

    Raises PerchError where the run's files cannot be read.
    """
    plan, verdict = folder.plan_head(root / folder.PLAN), folder.verdict_head(root)
    tools = {
        BundleTool(head.tool.name, head.tool.version)
        for head in folder.record_heads(root / folder.RECORDS)
    }
    documents = [
        path
        for name in _HOST_DOCUMENTS
        for path in sorted((root / "raw").glob(f"*/{name}"))
        if folder.is_regular(path)
    ]
    return BundleDocument(
        schema="perch.bundle/1",
        run=plan.run,
        created=plan.created,
        suite=plan.suite.name,
        limits=plan.limits,
        verdict=verdict.verdict,
        scope=verdict.scope,
        versions=BundleVersions(commit, jq, sorted(tools, key=encode)),
        host_configuration={
            os.fspath(path.relative_to(root)): _configuration(path) for path in documents
        },
    )


def versions(root: Path) -> str:
    """Which Perch packed the run, as far as bundle.json says it."""
    try:
        content = (root / DESCRIPTION).read_bytes()
        made = msgspec.json.decode(content, type=Described).versions
    except (*UNREADABLE, OSError):
        made = Versions()
    # the engine's version is Perch's (perch.home)
    said = {tool.version for tool in made.tools if tool.name == "perch" and tool.version}
    commit = f"commit {made.perch_commit or 'unknown'}"
    return ", ".join([*(f"version {one}" for one in sorted(said)), commit])


def archive(root: Path, target: Path) -> None:
    """Writes a tar of the folder whose bytes depend on names and contents alone."""
    command = [
        "tar", "--create", "--format=gnu", "--sort=name", "--mtime=@0", "--owner=0", "--group=0",
        "--numeric-owner", "--mode=u=rwX,go=rX", f"--file={target}",
        f"--directory={root.parent}", root.name,
    ]  # fmt: skip
    ended = programs.finished(
        command, TAR_S, "see that the disk of the temporary folder (TMPDIR) answers",
        package="tar", file=target, env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
    )  # fmt: skip
    if ended.returncode != 0:
        said = ended.stderr.decode(errors="replace").splitlines()
        raise PerchError(ExitCode.NOT_WRITABLE, said[0] if said else "tar failed", file=target)


def compressed(source: BinaryIO) -> Iterator[bytes]:
    """The same content gives the same bytes on every machine with this version of zlib."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    checksum = size = 0
    yield GZIP_HEADER
    while block := source.read(BLOCK):
        checksum, size = zlib.crc32(block, checksum), size + len(block)
        yield packer.compress(block)
    yield packer.flush()
    yield checksum.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")
