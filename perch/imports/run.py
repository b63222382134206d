"""A run of outputs that were measured elsewhere: copies of the files, a plan of them, limits."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import NamedTuple

from perch.errors import ExitCode, PerchError
from perch.imports import faults, names
from perch.imports.documents import Document, ReadFile, read_files
from perch.imports.imported import expected
from perch.judge import manifest
from perch.judge.raw import LARGEST
from perch.model.figures import pretty
from perch.model.plan import (
    SCHEMA,
    Flow,
    Imported,
    PlanDocument,
    PlanHost,
    PlanTest,
    RoundLine,
    RoundsFile,
    Suite,
)
from perch.model.record import ROLES, Number
from perch.plan.flows import FILE
from perch.plan.rounds import text

#: Where the copies lie within the run.
FOLDER = "raw/import"

_NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]*")


class Given(NamedTuple):
    """A file that was given, by its name and its bytes."""

    name: str
    content: bytes


class Made(NamedTuple):
    """A run that was made: how many outputs it has, and what could not be read of them."""

    outputs: int
    files: int
    messages: list[str]


def check_name(root: Path) -> None:
    """Refuses a folder that exists, or whose name no run may have."""
    if root.exists() or root.is_symlink():
        raise PerchError(
            ExitCode.USAGE,
            f"{root} exists, and no run is overwritten",
            remedy="name a folder that does not exist",
        )
    if not _NAME.fullmatch(root.name):
        raise PerchError(
            ExitCode.USAGE,
            f"'{root.name}' is no name of a run",
            remedy="use letters, digits, points, dashes and underscores",
        )


class _Copies:
    """Names of the copies, each of its own, and the names that the files were given by."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.given: dict[str, str] = {}

    def copied(self, files: Iterable[Given]) -> Iterator[tuple[str, bytes]]:
        for file in files:
            if len(file.content) > LARGEST:
                raise PerchError(
                    ExitCode.FAIL,
                    f"no run was made: {file.name} has more than {LARGEST >> 20} MiB",
                    remedy="split it",
                )
            name = self._name(PurePath(file.name).name)
            (self._folder / FOLDER / name).write_bytes(file.content)
            self.given[f"{FOLDER}/{name}"] = file.name
            yield f"{FOLDER}/{name}", file.content

    def _name(self, name: str) -> str:
        plain = re.sub("[^A-Za-z0-9._-]", "-", name)
        plain = plain.removeprefix(".")
        if not _NAME.fullmatch(plain):  # perchctl bundle packs no other one
            plain = f"output{plain}"
        free, n = plain, 2
        while f"{FOLDER}/{free}" in self.given:
            free, n = f"{n}-{plain}", n + 1
        return free


# ---- the plan ------------------------------------------------------------------------------------


def _link(read: ReadFile, rate_gbit_s: Number | None) -> dict[str, object] | None:
    """The link's rate: what a person says, else what the document states in so many words."""
    if rate_gbit_s is not None:
        return {"rate_gbit_s": rate_gbit_s, "source": "given with --link-rate"}
    if read.rate is None:
        return None
    stated, line = read.rate
    return {"rate_gbit_s": stated, "source": f"{read.name}:{line}, in words"}


class _Output(NamedTuple):
    """An output as the plan has it."""

    flow: Flow
    source: Imported


def _output(read: ReadFile, document: Document, test: str, rate_gbit_s: Number | None) -> _Output:
    flow = names.flow(document, test)
    source = Imported(
        read.name,
        document.output.line,
        [expected(result) for result in document.results],
        _link(read, rate_gbit_s),
        list(flow.client_argv),
    )
    return _Output(flow, source)


def _tests(outputs: Iterable[_Output]) -> dict[str, PlanTest]:
    """Raises PerchError where records of other runs have one test that was measured in two ways."""
    tests: dict[str, PlanTest] = {}
    for flow, source in outputs:
        test = PlanTest(
            title=flow.title,
            tool=flow.tool,
            kind=flow.kind,
            op=flow.op,
            carrier="sockets",
            forms={},
            backend=flow.backend,
            provider=flow.provider,
        )
        if tests.setdefault(flow.test, test) != test:
            raise PerchError(
                ExitCode.FAIL,
                f"no run was made: test {flow.test} of {source.file} was measured in another way",
                remedy="import the two runs apart",
            )
    return tests


def _plan(run: str, limits: str, outputs: list[_Output], rounds: bytes) -> PlanDocument:
    flows = [output.flow for output in outputs]
    hosts = sorted({flow.host(role) for flow in flows for role in ROLES})
    return PlanDocument(
        schema=SCHEMA,
        run=run,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        suite=Suite("imported", "outputs that were measured elsewhere"),
        limits=limits,
        hosts={
            name: PlanHost(address=name, fabric="unknown", scope="imported", port=1)
            for name in hosts
        },
        tests=_tests(outputs),
        imports={flow.id: source for flow, source in outputs},
        rounds=RoundsFile(1, len(outputs), hashlib.sha256(rounds).hexdigest()),
    )


def _refuse_twice(flows: Iterable[Flow]) -> None:
    """Records of another run keep their names, and may have been given twice."""
    for name, count in Counter(flow.id for flow in flows).items():
        if count > 1:
            raise PerchError(
                ExitCode.FAIL,
                f"no run was made: flow {name} is in {count} outputs",
                remedy="give one of them",
            )


# ---- the folder ----------------------------------------------------------------------------------


@contextmanager
def _folder(root: Path) -> Iterator[Path]:
    """A folder that becomes `root` when it is whole, and is gone where it does not."""
    half = None
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(prefix=".import.", dir=root.parent))
        half.chmod(0o755)
        (half / FOLDER).mkdir(parents=True)
        (half / "inputs").mkdir()
        yield half
        half.rename(root)
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"{error.filename or root} cannot be written: {error.strerror}",
            remedy="name another folder, or make room on the disk",
        ) from None
    finally:
        if half is not None:
            shutil.rmtree(half, ignore_errors=True)


def make(
    root: Path,
    files: Iterable[Given],
    *,
    limits_name: str,
    limits: bytes | None,
    rate_gbit_s: Number | None,
) -> Made:
    """Makes a run. What could not be read of an output is expected by its plan: it cannot pass.

    Raises PerchError, and leaves no folder, where a file has no output of a known tool, and where
    the folder cannot be written.
    """
    check_name(root)
    with _folder(root) as half:
        copies, namer = _Copies(half), names.Namer()
        outputs: list[_Output] = []
        messages: list[str] = []
        unknown: list[str] = []
        for read in read_files(copies.copied(files)):
            given = copies.given[read.name]
            if not read.is_known:
                unknown.append(given)
            messages += faults.messages(given, read.documents)
            outputs += [_output(read, one, namer.name(one), rate_gbit_s) for one in read.documents]
        if unknown:
            raise PerchError(
                ExitCode.FAIL,
                f"no run was made: no output of a known tool in {', '.join(unknown)}",
                remedy="leave such files out",
            )
        if not outputs:
            raise PerchError(ExitCode.FAIL, "no run was made: no file could be read")
        flows = [output.flow for output in outputs]
        _refuse_twice(flows)
        rounds = text(RoundLine(0, 0, 0, [flow.key for flow in flows]))
        (half / FILE).write_bytes(rounds)
        (half / "plan.json").write_bytes(pretty(_plan(root.name, limits_name, outputs, rounds)))
        if limits is not None:
            (half / "inputs/limits.json").write_bytes(limits)
        sealed = (f"{manifest.digest(half / name)}  {name}\n" for name in manifest.files(half))
        (half / manifest.MANIFEST).write_text("".join(sealed))
    return Made(len(outputs), len(copies.given), messages)
