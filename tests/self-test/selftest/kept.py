"""jq that has compiled a program once and answers again and again.

Compiling the checks of hosts takes jq 1.6 longer than judging five hosts by them.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping

from perch.judge import findings
from perch.judge.jq_program import whole


class _Jq:
    """A process that writes a line for each line that it reads."""

    def __init__(self, program: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".jq", encoding="utf-8") as file:
            file.write(whole(program))
            file.flush()
            self.process = subprocess.Popen(
                ["jq", "-c", "--unbuffered", "-f", file.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            # it has read its program when it has answered, be it with an error
            self.ask(b"null\n")
            self.answer()

    def ask(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def answer(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def end(self) -> None:
        self.process.communicate()


class Kept:
    """Answers as perch.judge.findings does, by one process for each program."""

    def __init__(self) -> None:
        self.alone = findings._answers
        self.running: dict[str, _Jq] = {}

    def answers(self, programs: Mapping[str, str], text: bytes) -> list[bytes]:
        """What each program prints of the same input, a line of JSON."""
        if b"\n" in text:
            return self.alone(programs, text)
        for program in programs.values():
            if program not in self.running:
                self.running[program] = _Jq(program)
        asked = [self.running[program] for program in programs.values()]
        for one in asked:
            one.ask(text + b"\n")
        lines = [one.answer() for one in asked]
        found = dict(zip(programs, lines, strict=True))
        wrong = {area for area, line in found.items() if not line.startswith((b"{", b"["))}
        # an error may be more than a line, and the judge says it in its own words
        for area in wrong:
            self.running.pop(programs[area]).end()
        for area in programs:
            if area in wrong:
                (found[area],) = self.alone({area: programs[area]}, text)
        return list(found.values())

    def end(self) -> None:
        for one in self.running.values():
            one.end()
