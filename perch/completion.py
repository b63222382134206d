"""perchctl completion: prints a script that completes perchctl's command line in a shell."""

from __future__ import annotations

import argparse
import importlib

from perch.cli import COMMANDS, Parser
from perch.errors import ExitCode
from perch.home import version

#: The shells that the tests try.
SHELLS = ("bash", "zsh")

#: What `metavar` says of a value that is a path.
FILES, FOLDERS = ("FILE", "BUNDLE", "VIEW", "NAME|FILE"), ("DIR", "A", "B")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the shell."""
    parser.description = "Prints a script that completes perchctl's command line in a shell."
    parser.epilog = "Exit: 0 printed, 2 usage, 3 the Python package shtab is missing."
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="the shell: bash or zsh")


def command(args: argparse.Namespace) -> int:
    """Prints its script."""
    import shtab

    print(shtab.complete(every_command(), args.shell))
    return ExitCode.PASS


def every_command() -> argparse.ArgumentParser:
    """One parser with all commands, which `perchctl` itself makes one at a time."""
    parser = Parser(prog="perchctl")
    parser.add_argument("--version", action="version", version=version())
    commands = parser.add_subparsers()
    for name, (module, text) in COMMANDS.items():
        of_command = commands.add_parser(name, help=text)
        importlib.import_module(module).arguments(of_command)
        for action in of_command._actions:
            complete_path(action)
    return parser


def complete_path(action: argparse.Action) -> None:
    """Lets the shell complete a path where the option or operand takes one."""
    import shtab

    if action.metavar in FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif action.metavar in FOLDERS:
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
