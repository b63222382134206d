"""perchctl: commands are found by name; every fault is one line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch import cli
from perch.errors import ExitCode, PerchError

Perchctl = Callable[..., Any]
Install = Callable[[Callable[[argparse.Namespace], int]], None]

RUN = str(Path(__file__).parents[1] / "fixtures/loopback/run")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Gives perchctl one command, `judge DIR [--jobs N]`, that does what `install` gets."""

    def arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dir", metavar="DIR", help="the folder of a run")
        parser.add_argument("--jobs", type=int, metavar="N", default=1)

    def install(command: Callable[[argparse.Namespace], int]) -> None:
        module = types.ModuleType("perch.pretended")
        module.__dict__.update(arguments=arguments, command=command)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(cli, "COMMANDS", {"judge": (module.__name__, "judge a run")})

    return install


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def command(args: argparse.Namespace) -> int:
        raise error

    return command


def test_a_command_gets_its_arguments_and_gives_the_exit_code(
    install: Install, perchctl: Perchctl
) -> None:
    def command(args: argparse.Namespace) -> int:
        print(args.dir, args.jobs)
        return 3

    install(command)
    assert perchctl("judge", "runs/latest", "--jobs", 2) == (3, "runs/latest 2\n", "")


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_the_overview_names_each_command(
    words: list[str], install: Install, perchctl: Perchctl
) -> None:
    install(raising(AssertionError()))
    code, stdout, stderr = perchctl(*words)
    assert (code, stderr) == (0, "")
    assert "\n  judge          judge a run\n" in stdout


def test_a_command_explains_itself_without_running(install: Install, perchctl: Perchctl) -> None:
    install(raising(AssertionError()))
    code, stdout, stderr = perchctl("judge", "--help")
    assert (code, stderr) == (0, "")
    assert stdout.startswith("usage: perchctl judge [-h] [--jobs N] DIR\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "perchctl: no command given; see perchctl --help"),
        (
            ["jugde"],
            "perchctl: unknown command 'jugde', did you mean 'judge'?; see perchctl --help",
        ),
        (["zzz"], "perchctl: unknown command 'zzz'; see perchctl --help"),
        (
            ["--versoin"],
            "perchctl: unknown option '--versoin', did you mean '--version'?; see perchctl --help",
        ),
        (["--zzz"], "perchctl: unknown option '--zzz'; see perchctl --help"),
        (["judge"], "perchctl judge: DIR is missing; see perchctl judge --help"),
        (
            ["judge", "x", "--jobs"],
            "perchctl judge: --jobs needs a value; see perchctl judge --help",
        ),
        (
            ["judge", "x", "--job", "2"],
            "perchctl judge: unknown argument '--job', did you mean '--jobs'?; "
            "see perchctl judge --help",
        ),
        (
            ["judge", "x", "--jobs", "many"],
            "perchctl judge: --jobs is 'many', not a whole number; see perchctl judge --help",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    words: list[str], message: str, install: Install, perchctl: Perchctl
) -> None:
    install(raising(AssertionError()))
    assert perchctl(*words) == (2, "", f"{message}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["completion"], "completion: SHELL is missing; give bash or zsh; see"),
        (["completion", "fish"], "completion: SHELL is 'fish', which is unknown; give bash or zsh"),
        (
            ["completion", "bsh"],
            "completion: SHELL is 'bsh', which is unknown, did you mean 'bash'?; give bash or zsh",
        ),
        (["plan"], "plan: DIR, --limits are missing; see"),
        (["plan", "x", "--check=1"], "plan: --check takes no value, but '1' was given; see"),
        (["hosts", "/no pe"], "hosts: no such folder: '/no pe'"),
        (["verify", "/no pe"], "verify: no such bundle: '/no pe'; give a file that"),
    ],
)
def test_commands_name_what_is_wrong_in_plain_words(
    words: list[str], message: str, perchctl: Perchctl
) -> None:
    code, stdout, stderr = perchctl(*words)
    assert (code, stdout) == (2, "")
    assert stderr.startswith(f"perchctl {message}")


def test_a_fault_of_the_run_is_one_line_with_its_own_exit_code(
    install: Install, perchctl: Perchctl
) -> None:
    install(raising(PerchError(ExitCode.INCONCLUSIVE, "no JSON", file="plan.json", place="byte 7")))
    assert perchctl("judge", "x") == (3, "", "perchctl judge: plan.json, byte 7: no JSON\n")


def test_signs_that_steer_a_terminal_are_escaped(install: Install, perchctl: Perchctl) -> None:
    install(raising(PerchError(ExitCode.FAIL, "host \x1b[2J\u202eα\nok")))
    assert perchctl("judge", "x").stderr == "perchctl judge: host \\x1b[2J\\u202eα\\nok\n"


def test_a_full_disk_is_told_with_the_file(install: Install, perchctl: Perchctl) -> None:
    install(raising(OSError(28, "No space left on device", "run/verdict.json")))
    assert perchctl("judge", "x") == (
        6,
        "",
        "perchctl judge: run/verdict.json: No space left on device; see that this user can write "
        "there and that the disk has room\n",
    )


def test_an_interrupt_is_silent_and_130(install: Install, perchctl: Perchctl) -> None:
    install(raising(KeyboardInterrupt()))
    assert perchctl("judge", "x") == (130, "", "")


def test_a_missing_package_is_no_internal_error(install: Install, perchctl: Perchctl) -> None:
    install(lambda args: importlib.import_module("no_such_package").command(args))
    assert perchctl("judge", "x") == (
        3,
        "",
        "perchctl judge: the Python package 'no_such_package' is missing; run setup/setup\n",
    )


def test_an_internal_error_is_one_line_that_names_the_module_and_asks_for_a_report(
    install: Install, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERCH_TRACEBACK", raising=False)
    install(lambda args: cli.say("perchctl", None, code=0))  # type: ignore[arg-type]
    code, stdout, stderr = perchctl("judge", "my run")
    assert (code, stdout) == (6, "")
    assert stderr == (
        "perchctl judge: internal error in perch.model.text: TypeError: expected string or"
        " bytes-like object, got 'NoneType';"
        " this is a bug: report it with the input files and the output of"
        " 'PERCH_TRACEBACK=1 perchctl judge 'my run''\n"
    )


def test_the_traceback_of_an_internal_error_is_there_for_who_asks(
    install: Install, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERCH_TRACEBACK", "1")
    install(raising(ZeroDivisionError("division by zero")))
    code, _, stderr = perchctl("judge", "x")
    assert code == 6
    assert stderr.startswith("Traceback (most recent call last):\n")


def test_each_command_of_the_table_has_a_module_and_a_help_text(perchctl: Perchctl) -> None:
    for name in cli.COMMANDS:
        code, stdout, stderr = perchctl(name, "--help")
        assert (code, stderr) == (0, ""), name
        assert stdout.startswith(f"usage: perchctl {name} "), name


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_help_of_each_command_has_its_exit_codes(name: str, perchctl: Perchctl) -> None:
    assert re.search(r"^Exit: 0 [^.]*2 usage", perchctl(name, "--help").stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "argument", "package"),
    [("report", RUN, "jinja2"), ("completion", "bash", "shtab")],
)
def test_the_help_has_the_exit_code_of_a_missing_package(
    command: str, argument: str, package: str, tmp_path: Path, perchctl: Perchctl
) -> None:
    shutil.copytree(RUN, tmp_path / "run")
    words = [command, argument.replace(RUN, str(tmp_path / "run"))]
    without = f"import sys; sys.modules[{package!r}] = None; from perch.cli import main"
    ended = subprocess.run(
        [sys.executable, "-c", f"{without}; sys.exit(main())", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (
        3,
        f"perchctl {command}: the Python package '{package}' is missing; run setup/setup\n",
    )
    assert re.search(r"3 [a-zA-Z ]* is missing", perchctl(command, "--help").stdout)


def help_to(stdout: str, before: str = ":") -> subprocess.CompletedProcess[str]:
    """`perchctl --help` in a process of its own, with standard output in a shell."""
    words = ["bash", "-c", f'{before}; exec "$0" -m perch --help {stdout}', sys.executable]
    environment = os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[1])}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def test_a_reader_that_has_left_changes_no_exit_code_and_is_no_fault() -> None:
    gone = "exec 3> >(exec true); wait $!"  # the pipe has no reader any more
    ended = help_to(">&3", before=gone)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_reader_that_leaves_in_the_middle_is_no_fault(
    install: Install, perchctl: Perchctl
) -> None:
    install(raising(BrokenPipeError(32, "Broken pipe")))
    assert perchctl("judge", "x") == (141, "", "")


def test_standard_output_that_cannot_be_written_is_told() -> None:
    ended = help_to(">/dev/full")
    assert (ended.returncode, ended.stderr) == (
        6,
        "perchctl: standard output: No space left on device; see that this user can write there "
        "and that the disk has room\n",
    )


def test_a_closed_standard_output_is_no_fault() -> None:
    ended = help_to(">&-")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["judge", "report", "summary", "accept", "bundle", "retry"])
def test_an_empty_name_of_a_run_is_not_the_current_folder(perchctl: Perchctl, command: str) -> None:
    code, _, stderr = perchctl(command, "")
    assert code == 2
    assert "no such run: ''; give the folder of a run" in stderr
