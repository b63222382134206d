"""An output of a tool, cut out of a file, and the command that stands before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from perch.model.part import Part
from perch.model.record import Record
from perch.tools.results import Found, UnusableError, failed_part

#: What quotes, pipes and the shell would change is not known.
_SHELL = re.compile(r"""["'`$\\*?<>(){}]""")
_QUOTED = re.compile(r'"([A-Za-z0-9_.:/=,-]*)"')
_COMMENT = re.compile(r" #.*")
_REDIRECTED = re.compile(r"[0-9]?>|[|;&]")

Argv = list[str]


@dataclass(frozen=True, slots=True)
class Context:
    """A line before an output: a command, or in Markdown a setting ("- **MTU**: 1024")."""

    kind: Literal["command", "setting"]
    text: str


@dataclass(slots=True)
class Output:
    """What a tool printed. `at`: the numbers of its lines in the file, from 1.

    `titles`: the headings of Markdown above it. `bare`: it is a table without a title. `fenced`: it
    ends with the code block that it stands in.
    """

    file: str
    line: int
    tool: str
    bare: bool = False
    titles: list[str] = field(default_factory=list)
    context: list[Context] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    fenced: bool = False

    def line_of(self, i: int | None) -> int:
        """The file's number of a line of the output; where it begins, if there is no such line."""
        return self.at[i] if i is not None and 0 <= i < len(self.at) else self.line

    def command(self, programs: re.Pattern[str], is_client: Callable[[Argv], bool]) -> Argv | None:
        """The client's command; None where none stands before the output.

        Raises UnusableError where several different ones do: any of them may have printed it.
        """
        found = self._commands(programs, is_client)
        if len(found) > 1:
            raise UnusableError(
                f"{len(found)} commands come before it, and nothing shows which of them printed it"
            )
        return found[0] if found else None

    def server_command(
        self, programs: re.Pattern[str], is_client: Callable[[Argv], bool]
    ) -> Argv | None:
        """The server's command, where one stands before the output and no other."""
        found = self._commands(programs, lambda argv: not is_client(argv))
        return found[0] if len(found) == 1 else None

    def _commands(self, programs: re.Pattern[str], wanted: Callable[[Argv], bool]) -> list[Argv]:
        found: list[Argv] = []
        for context in self.context:
            if context.kind != "command" or not programs.search(context.text):
                continue
            argv = words(context.text)
            if argv is not None and wanted(argv) and argv not in found:
                found.append(argv)
        return found


def words(command: str) -> Argv | None:
    """The words of a command line; None where the shell would change them."""
    text = _COMMENT.split(_QUOTED.sub(r"\1", command), maxsplit=1)[0]
    text = _REDIRECTED.split(text, maxsplit=1)[0]
    return None if _SHELL.search(text) else text.split()


@dataclass(slots=True)
class Result:
    """A result of an output, at a line of its file. `record`: it is one of another run."""

    part: Part
    line: int
    record: Record | None = None

    @property
    def is_ok(self) -> bool:
        return self.part.status == "ok"


def refused(why: object, line: int) -> Result:
    """What cannot be used, and why."""
    return Result(failed_part(str(why), traffic=True), line)


def placed(output: Output, results: Iterable[Found]) -> list[Result]:
    """What a tool's reader found, by the numbers of the file's lines."""
    return [Result(found.part, output.line_of(found.line)) for found in results]
