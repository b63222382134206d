"""The findings on hosts: reports/jq judges what host-check printed, one process for each area."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.judge.jq_program import whole
from perch.model.figures import encode
from perch.programs import end

#: The areas of checks in the order in which their findings are shown; each is
#: reports/jq/hosts/AREA.jq.
AREAS = ("machine", "nic", "qos", "slingshot")

#: Where jq met an error: in a file of ours with a name of chance.
_place = re.compile(r" \(at [^)]*\)")

#: Seconds that jq may take: 1,000 hosts' answers take it about a minute an area on one processor.
DEADLINE_S = 600

#: What one area finds on all hosts, a list on standard input.
OF_AREA = """
import "hosts/area" as area; import "hosts/{area}" as this;
area::judged("{area}"; .host as $host | .raw | this::findings($host); this::between(.))
"""

#: Differences between hosts that should be alike, from the findings of all areas.
BETWEEN = 'import "hosts/differences" as between; [between::differences(.)]'

Document = dict[str, Any]


class Question(msgspec.Struct):
    """The answer of one host, and the areas that judge it.

    The keys are those that the jq areas read.
    """

    areas: list[str]
    host: Document
    raw: Document


class UnjudgeableError(PerchError):
    """A jq program failed on a host's answer."""

    def __init__(self, area: str, why: str) -> None:
        super().__init__(
            ExitCode.INCONCLUSIVE,
            f"the checks of hosts ({area}) failed: {why}",
            remedy="run the host checks again; if they fail again, report it with host_check.json",
        )
        self.why = why


class _Found(msgspec.Struct):
    """The findings of one area: on each host, and between hosts (these name their host)."""

    of_host: dict[str, list[Document]]
    between: list[Document]


_found = msgspec.json.Decoder(_Found)
_documents = msgspec.json.Decoder(list[Document])


def areas(*, machine: bool, slingshot: bool) -> list[str]:
    """The areas to check: its Slingshot NIC, and all that RDMA needs if the plan asks for it."""
    return [*(AREAS[:3] if machine else []), *(AREAS[3:] if slingshot else [])]


def _start(program: Path, document: Path) -> subprocess.Popen[bytes]:
    command = ["jq", "-c", "-f", str(program), str(document)]
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except FileNotFoundError:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            "jq is not installed",
            remedy="install the package jq and judge again",
        ) from None


def _answer(area: str, process: subprocess.Popen[bytes]) -> bytes:
    try:
        output, errors = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"the checks of hosts ({area}) took longer than {DEADLINE_S} s",
            remedy="judge again while the machine is idle",
        ) from None
    if process.returncode != 0:
        why = _place.sub("", errors.decode("utf-8", "replace").partition("\n")[0])
        raise UnjudgeableError(area, why)
    return output


def _answers(programs: Mapping[str, str], text: bytes) -> list[bytes]:
    """What each program prints of the same input.

    They run at the same time, and none outlives this call.
    """
    with tempfile.TemporaryDirectory(prefix="perch-hosts-") as folder, ExitStack() as ended:
        document = Path(folder) / "document"
        document.write_bytes(text)
        running: dict[str, subprocess.Popen[bytes]] = {}
        for n, (area, program) in enumerate(programs.items()):
            file = Path(folder) / f"{n}.jq"
            file.write_text(whole(program), encoding="utf-8")
            running[area] = _start(file, document)
            ended.callback(end, running[area])
        return [_answer(area, process) for area, process in running.items()]


def answer(what: str, program: str, text: bytes) -> bytes:
    """What one jq program prints of `text`. `what` names it in messages."""
    (said,) = _answers({what: program}, text)
    return said


def _unjudgeable(questions: list[Question], why: str) -> dict[str, str]:
    """The hosts on whose answer a program fails, and how; found by halves.

    Why a program failed on all of them together is known.
    """
    if len(questions) == 1:
        return {questions[0].host["name"]: why}
    half = len(questions) // 2
    found: dict[str, str] = {}
    for part in (questions[:half], questions[half:]):
        try:
            _judged(part)
        except UnjudgeableError as error:
            found |= _unjudgeable(part, error.why)
    return found


def _unknown(why: str) -> Document:
    """The finding on a host whose answer no program can judge."""
    return {
        "id": "answer", "device": None, "status": "unknown", "severity": "required",
        "found": f"its answer cannot be judged: {why}", "wanted": None,
        "why": "each value in the answer of host-check must have its documented type",
        "remedy": "run the role host_check again; if it fails, report it with host_check.json",
        "source": "docs/definitions.md",
    }  # fmt: skip


def judged(questions: list[Question]) -> dict[str, list[Document]]:
    """The findings of each host by its name, in the order of the areas, those between hosts last.

    An answer on which a program fails keeps no other host from being judged. Raises PerchError
    where jq is missing, fails on several answers together, or does not end.
    """
    try:
        return _judged(questions)
    except UnjudgeableError as error:
        bad = _unjudgeable(questions, error.why)
        if not bad:
            raise
    found = _judged([one for one in questions if one.host["name"] not in bad])
    return found | {name: [_unknown(why)] for name, why in bad.items()}


def _judged(questions: list[Question]) -> dict[str, list[Document]]:
    """The same of answers that can be judged."""
    asked = [area for area in AREAS if any(area in question.areas for question in questions)]
    programs = {area: OF_AREA.format(area=area) for area in asked}
    found = [_found.decode(answer) for answer in _answers(programs, encode(questions))]
    of_host: dict[str, list[Document]] = {
        question.host["name"]: [
            finding for area in found for finding in area.of_host.get(question.host["name"], [])
        ]
        for question in questions
    }
    alike = [
        {"host": question.host, "findings": of_host[question.host["name"]]}
        for question in questions
        if "machine" in question.areas
    ]
    between = _between(alike) if alike else []
    for finding in [*between, *(one for area in found for one in area.between)]:
        host = finding.pop("host")
        if host in of_host:
            of_host[host].append(finding)
    return of_host


def _between(alike: list[Document]) -> list[Document]:
    return _documents.decode(answer("between hosts", BETWEEN, encode(alike)))
