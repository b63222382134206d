"""The commands and links of a Markdown document, and what is wrong with them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from perch.cli import COMMANDS, Parser
from perch.errors import PerchError

TOP = Path(__file__).parents[2]
CHECKER = TOP / "engine/build-check/perch"
MARKDOWN = MarkdownIt("commonmark").enable("table")
SHELL = {"", "sh", "bash", "console"}
ENDS = re.compile(r"\||&&?|;|[0-9]?[<>].*")
#: Programs of the tree, but not what is built.
OWN = re.compile("(tests|setup|reports|roles)/(?!.*build/)")
Words = list[str]


def shown(source: str) -> Iterator[tuple[Words, bool]]:
    """Each command, and whether it is whole: in a block of code rather than within a sentence."""
    for token in MARKDOWN.parse(source):
        if token.type == "code_block" or (token.type == "fence" and token.info in SHELL):
            for line in re.sub(r"\\\n\s*", "", token.content).splitlines():
                yield from ((words, True) for words in commands(line))
        for child in token.children or ():
            if child.type == "code_inline":
                yield from ((words, False) for words in commands(child.content))


def commands(line: str) -> Iterator[Words]:
    """The commands of a line of shell, without what sets their environment."""
    # `[KEY=ssh key]` is an optional variable, described in words
    line = re.sub(r"\[(\w+=)[^]]*\]", r"\1", line)
    try:
        words = shlex.split(line.replace("; ", " ; "), comments=True)
    except ValueError:  # a line of output, with one quotation mark
        return
    found: Words = []
    for word in [*words, ";"]:
        if not ENDS.fullmatch(word):
            found.append(word)
            continue
        while found and re.fullmatch(r"[A-Z_]+=.*", found[0]):
            del found[0]
        if found:
            yield found
        found = []


def faults(words: Words, whole: bool) -> Iterator[str]:
    """What does not exist of a command's program, target, options and variables."""
    program, *rest = words
    name = program.rsplit("/", 1)[-1]
    if name == "make":
        yield from _make(rest)
    elif name == "perchctl":
        yield from _perchctl(rest, whole)
    elif name == "perch":
        yield from _perch(rest, whole)
    elif name == "ansible-playbook":
        yield from _playbook(rest)
    elif whole and OWN.match(program) and not (TOP / program).exists():
        yield f"no file {program}"


def heads(document: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings."""
    found: list[str] = []
    tokens = MARKDOWN.parse(document.read_text(encoding="utf-8"))
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            parts = (one.content for one in inline.children or ())
            found.append(re.sub(r"[^\w\- ]", "", "".join(parts).lower()).replace(" ", "-"))
    return {f"{one}-{n}" if (n := found[:i].count(one)) else one for i, one in enumerate(found)}


def broken(document: Path, source: str) -> Iterator[str]:
    """Links of a document that lead to no file of the tree, or to no heading."""
    for token in MARKDOWN.parse(source):
        for child in token.children or ():
            link = str(child.attrGet("href") or child.attrGet("src") or "")
            name, _, anchor = link.partition("#")
            path = document.parent / name if name else document
            if "://" in link:
                continue
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in heads(path)):
                yield link


# ---- make ----------------------------------------------------------------------------------------


@cache
def targets() -> set[str]:
    done = subprocess.run(["make", "help"], cwd=TOP, capture_output=True, text=True, check=True)
    return set(re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE))


def _make(rest: Words) -> Iterator[str]:
    if rest[:1] == ["-C"]:
        return  # another Makefile's
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    for word in rest:
        variable, is_set, _ = word.partition("=")
        if is_set and not re.search(rf"\b{variable}\b", makefile):
            yield f"make has no variable {variable}"
        if not is_set and word not in targets():
            yield f"make has no target {word}"


# ---- perchctl ------------------------------------------------------------------------------------


def _perchctl(rest: Words, whole: bool) -> Iterator[str]:
    if not rest or rest[0].endswith(":") or rest[0] in ("--help", "COMMAND"):
        return  # the program's name, or the beginning of a message
    if rest[0] not in COMMANDS:
        yield f"perchctl has no command {rest[0]}"
        return
    parser = Parser(prog=f"perchctl {rest[0]}", allow_abbrev=False)
    import_module(COMMANDS[rest[0]][0]).arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    for word in rest[1:]:
        option = word.strip("[]").partition("=")[0]
        if option.startswith("-") and option not in known:
            yield f"perchctl {rest[0]} has no option {option}"
            return
    if whole:
        try:
            parser.parse(rest[1:])
        except PerchError as error:
            yield f"{shlex.join(['perchctl', *rest])}: {error}"


# ---- the engine ----------------------------------------------------------------------------------


@cache
def _help_of(command: str) -> str:
    asked = [str(CHECKER), command, "--help-all"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def _perch(rest: Words, whole: bool) -> Iterator[str]:
    if not rest or not re.fullmatch("[a-z]+", rest[0]):
        return
    if rest[0] in ("lat", "bw", "transfer", "rate") and whole and "HOST" not in rest:
        asked = [str(CHECKER), "check", *rest]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"{shlex.join(['perch', *rest])}: {done.stderr.strip()}"
    elif not (text := _help_of(rest[0])):
        yield f"perch has no command {rest[0]}"
    else:
        for word in rest[1:]:
            option = word.strip("[]").partition("=")[0]
            if option.startswith("--") and not re.search(rf"{option}\b", text):
                yield f"perch {rest[0]} has no option {option}"


# ---- playbooks -----------------------------------------------------------------------------------


@cache
def variables() -> set[str]:
    """Each option of the roles."""
    found = {"ansible_become", "ansible_user"}
    for path in TOP.glob("roles/*/meta/argument_specs.yml"):
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        for entry in specs.values():
            found |= set(entry.get("options") or {})
    return found


def _playbook(rest: Words) -> Iterator[str]:
    for before, word in zip(["", *rest], rest, strict=False):
        if before == "-i":
            if not (TOP / word).exists() and word not in ("inventories/mine", "hosts.yml"):
                yield f"no inventory {word}"
        elif before == "-e":
            given = set(json.loads(word)) if word.startswith("{") else {word.partition("=")[0]}
            yield from (f"no role has the variable {one}" for one in sorted(given - variables()))
        elif word.startswith("perch.fabric."):
            if not (TOP / f"playbooks/{word.removeprefix('perch.fabric.')}.yml").exists():
                yield f"no playbook {word}"
        elif word.endswith(".yml") and not (TOP / word).exists():
            yield f"no playbook {word}"
