"""What a worker process does: makes, spoils and judges runs, each in a folder of its own."""

from __future__ import annotations

import copy
import shutil
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perch.judge import findings
from perch.judge.manifest import MANIFEST
from perch.model.figures import encode
from perch.model.verdict import Verdict
from perch.run import judging
from selftest import outcome
from selftest.edits import sealed_again
from selftest.fault import Fault
from selftest.faults import all_faults
from selftest.kept import Kept
from selftest.runs import BASES
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import WITH_PERFTEST, Fabric

#: A reason that is longer is cut.
WHY_MAX = 400

Found = dict[str, list[findings.Document]]
Judged = Callable[[list[findings.Question]], Found]

_verdict = msgspec.json.Decoder(Verdict)


@dataclass(frozen=True)
class Told:
    """Whether it went as it should, and if not, why. verdict: of a run that was judged."""

    ok: bool
    why: str = ""
    verdict: Verdict | None = None


def begin(work: str) -> None:
    """Once in each process: whatever it writes lies below `work`.

    Hundreds of healthy runs have hosts that answered alike: jq judges each answer once, and
    compiles its programs once. Its processes end with their standard input, thus with this one.
    """
    tempfile.tempdir = work
    vars(findings)["_answers"] = Kept().answers
    vars(findings)["judged"] = remembered(findings.judged)


def remembered(judged: Judged) -> Judged:
    """The same function, which asks jq once for hosts that answered alike."""
    known: dict[bytes, Found] = {}

    def once(questions: list[findings.Question]) -> Found:
        key = encode(questions)
        if key not in known:
            known[key] = judged(questions)
        return copy.deepcopy(known[key])

    return once


def verdict_of(root: Path) -> Verdict:
    """The verdict that lies in a judged run's folder."""
    return _verdict.decode((root / judging.VERDICT).read_bytes())


def judged(root: Path) -> Verdict:
    """Judges a run as `perchctl judge` does, and reads what that left."""
    judging.judge(root)
    return verdict_of(root)


def failed(what: str, error: Exception) -> Told:
    """It ended with an exception."""
    said = "".join(traceback.format_exception_only(error)).strip()
    return Told(False, f"{what}: {said}"[:WHY_MAX])


def judge_base(work: Path, name: str) -> Told:
    """Makes a good run in work/base; one that does not pass proves nothing."""
    root = work / "base" / name
    try:
        BASES[name](root)
        verdict = judged(root)
    except Exception as error:
        return failed("it could not be judged", error)
    against = ", ".join(outcome.blocking(verdict))
    why = "" if verdict.verdict == "PASS" else f"the verdict is {verdict.verdict}: {against}"
    return Told(not why, why[:WHY_MAX], verdict)


def judge_fault(work: Path, fault_id: str) -> Told:
    """Spoils a copy of a good run, and judges it."""
    fault = next(one for one in all_faults() if one.id == fault_id)
    return spoil(work, fault)


def spoil(work: Path, fault: Fault) -> Told:
    """The same of a fault that need not be in the list."""
    base, root = work / "base" / fault.base, work / "fault" / fault.id
    # with its verdict, which must be replaced whatever becomes of the new one
    shutil.copytree(base, root, symlinks=True)
    try:
        return _spoilt(fault, base, root)
    finally:
        shutil.rmtree(root)


def _spoilt(fault: Fault, base: Path, root: Path) -> Told:
    try:
        fault.plant(root)
        if fault.base != "sealed" and (root / MANIFEST).is_file():
            sealed_again(root)  # what is planted was so before the files were fetched
    except Exception as error:
        return failed("the fault could not be planted", error)
    try:
        why = outcome.wrong(fault, verdict_of(base), judged(root))
    except Exception as error:
        return failed("it could not be judged", error)
    return Told(not why, why[:WHY_MAX])


def judge_fabric(work: Path, fabric: Fabric) -> Verdict:
    """The verdict of a composed run, which does not stay."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        root = Path(folder) / "run"
        compose(root, fabric)
        return judged(root)


def healthy(seed: int) -> Fabric:
    """A healthy run; every tenth has perftest's flows, too."""
    return Fabric(seed, WITH_PERFTEST) if seed % 10 == 0 else Fabric(seed)
