"""perchctl: finds the command, runs it, and reports an error as one line and an exit code.

A command is a module with two functions:

    arguments(parser: argparse.ArgumentParser) -> None    declares its arguments
    command(args: argparse.Namespace) -> int              runs it and returns the exit code

COMMANDS lists it. Only the module of the requested command is imported;
it imports polars and other large packages within `command`, so that --help answers at once.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import NoReturn

from perch.errors import WRITABLE, ExitCode, PerchError
from perch.home import version
from perch.model.text import clean, did_you_mean

#: Exit codes of a process that a signal ended, as shells report them.
INTERRUPTED, BROKEN_PIPE = 130, 141

#: polars' allocator keeps freed memory for ten seconds; so it gives it back, a hundred megabytes of
#: a hundred thousand records. It reads this when polars is imported (jemalloc(3), "TUNING").
ALLOCATOR = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}

#: numpy's linear algebra, which Perch hardly uses, starts a thread for each processor when it is
#: imported: a fifth of the time that numpy takes to start.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}

#: Name, module, and a line for `perchctl --help`; in the order of a run's life.
COMMANDS: dict[str, tuple[str, str]] = {
    "plan": ("perch.run.plan", "turn a suite and an inventory into a plan"),
    "unpack": ("perch.run.unpack", "take the results that a host has sent into a run"),
    "judge": ("perch.run.judge", "judge a run from its folder"),
    "report": ("perch.exports.report", "judge a run and write its report"),
    "summary": ("perch.views.summary", "print a judged run in one screen"),
    "hosts": ("perch.views.hosts", "judge answers of the host checks, without a run"),
    "accept": ("perch.history.accept", "make a run the baseline of its fabric"),
    "seal": ("perch.history.seal", "hash the files of a run"),
    "retry": ("perch.history.retry", "plan repeats of flows that missed a limit"),
    "compare": ("perch.history.compare", "compare the figures of two judged runs"),
    "compare-tuning": ("perch.history.compare_tuning", "compare runs before and after tuning"),
    "bundle": ("perch.history.bundle", "pack a judged run into one file"),
    "verify": ("perch.history.verify", "check a bundle and judge it again"),
    "import": ("perch.imports.command", "read outputs that were measured elsewhere"),
    "runs": ("perch.history.runs", "add a judged run to the list of runs"),
    "trend": ("perch.history.trend", "draw each test's median over the runs of a fabric"),
    "first-day": ("perch.history.first_day", "say what a first day of a fabric has collected"),
    "completion": ("perch.completion", "print the completion script of a shell"),
}

#: Options that stand in the place of a command.
OPTIONS = ("--help", "--version")

#: What argparse says of a wrong command line -> what Perch says.
_ARGPARSE = {
    r"^the following arguments are required: (.*, .*)": r"\1 are missing",
    r"^the following arguments are required: (.*)": r"\1 is missing",
    r"^argument (\S+): invalid choice: (.*) \(choose from .*\)": r"\1 is \2, which is unknown",
    r"^argument (\S+): invalid int value: (.*)": r"\1 is \2, not a whole number",
    r"^argument (\S+): expected one argument": r"\1 needs a value",
    r"^argument (\S+): ignored explicit argument (.*)": r"\1 takes no value, but \2 was given",
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are PerchErrors with the nearest valid option."""

    def error(self, message: str) -> NoReturn:  # instead of usage and an exit
        raise PerchError(ExitCode.USAGE, self._plain(message), remedy=f"see {self.prog} --help")

    def _plain(self, message: str) -> str:
        """argparse's message in Perch's words."""
        for pattern, words in _ARGPARSE.items():
            message = re.sub(pattern, words, message)
        for action in self._actions:
            name = action.metavar or action.dest
            if action.choices is not None and message.startswith(f"{name} "):
                given = re.fullmatch(r".* is '(.*)', which .*", message)
                near = did_you_mean(given[1], action.choices) if given else ""
                return f"{message}{near}; give {' or '.join(action.choices)}"
        return message

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parses all words; an unknown one is an error."""
        args, unknown = self.parse_known_args(words)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            self.error(f"unknown argument '{unknown[0]}'{did_you_mean(unknown[0], options)}")
        return args


def overview() -> str:
    """The text of `perchctl --help`."""
    lines = [f"  {name:<14} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: perchctl COMMAND [ARGUMENT...]",
            "",
            "Plans, judges and reports the runs of a fabric.",
            "",
            *lines,
            "",
            "`perchctl COMMAND --help` describes a command.",
            "`perchctl --version` prints the version.",
            "Exit: 0 PASS or done, 1 FAIL or refused, 2 usage, 3 INCONCLUSIVE or unreadable,",
            "6 not writable.",
        ]
    )


def run(words: Sequence[str]) -> int:
    """Runs the command that the first word names.

    Raises:
        PerchError: the command line is wrong, or the command met an error that a user can mend.
    """
    if not words:
        raise PerchError(ExitCode.USAGE, "no command given", remedy="see perchctl --help")
    name, *rest = words
    if name in ("-h", "--help"):
        print(overview())
        return ExitCode.PASS
    if name == "--version":
        print(f"perchctl {version()}")
        return ExitCode.PASS
    if name not in COMMANDS:
        kind, known = ("option", OPTIONS) if name.startswith("-") else ("command", COMMANDS)
        raise PerchError(
            ExitCode.USAGE,
            f"unknown {kind} '{name}'{did_you_mean(name, known)}",
            remedy="see perchctl --help",
        )
    module = importlib.import_module(COMMANDS[name][0])
    parser = Parser(
        prog=f"perchctl {name}",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.arguments(parser)
    code: int = module.command(parser.parse(rest))
    return code


def _own_words() -> list[str]:
    """The process's arguments. It ends soon: looking for cycles takes a tenth of its start."""
    gc.disable()
    return sys.argv[1:]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs perchctl with these words (default: the process's) and returns its exit code."""
    os.environ |= ALLOCATOR | ONE_THREAD
    words = _own_words() if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    program = f"perchctl {words[0]}" if words and words[0] in COMMANDS else "perchctl"
    try:
        code = run(words)
    except SystemExit as ended:  # argparse, after --help
        code = int(ended.code or 0)
    except PerchError as error:
        code = say(program, *error.lines, code=error.code)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = BROKEN_PIPE
    except OSError as error:
        code = say(program, f"{system_error(error)}; {WRITABLE}", code=ExitCode.NOT_WRITABLE)
    except ModuleNotFoundError as error:
        code = say(program, missing_package(error), code=ExitCode.INCONCLUSIVE)
    except Exception as error:
        code = say(program, internal_error(error, words), code=ExitCode.NOT_WRITABLE)
    return flushed(code, program)


def say(program: str, *messages: str, code: int) -> int:
    """Prints each on a line of standard error and returns the code."""
    for message in messages:
        print(f"{program}: {clean(message)}", file=sys.stderr)
    return code


def system_error(error: OSError) -> str:
    """The operating system's error and its file."""
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror or error}"


def missing_package(error: ModuleNotFoundError) -> str:
    """A set-up with fewer packages, such as that of `setup/setup verify`, runs fewer commands."""
    return f"the Python package '{error.name}' is missing; run setup/setup"


def internal_error(error: Exception, words: Sequence[str]) -> str:
    """Names where Perch failed; with PERCH_TRACEBACK=1 it also prints the traceback."""
    if os.environ.get("PERCH_TRACEBACK") == "1":
        traceback.print_exception(error)
    return (
        f"internal error in {module_of(error.__traceback__)}: {type(error).__name__}: {error}; "
        "this is a bug: report it with the input files and the output of "
        f"'PERCH_TRACEBACK=1 perchctl {shlex.join(words)}'"
    )


def module_of(trace: TracebackType | None) -> str:
    """The innermost module of Perch in a traceback."""
    module = __name__
    for frame, _ in traceback.walk_tb(trace):
        name = str(frame.f_globals.get("__name__", ""))
        module = name if name.startswith("perch.") else module
    return module


def flushed(code: int, program: str) -> int:
    """Flushes standard output; a reader that has closed it is not an error, so `code` stays."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        # the interpreter would flush again at its end, fail, and exit with another code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            why = f"standard output: {system_error(error)}; {WRITABLE}"
            return say(program, why, code=ExitCode.NOT_WRITABLE)
    return code
