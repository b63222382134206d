"""Which checks have no planted fault: a check that nothing flips is not known to find anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from perch import checks
from perch.checks import families
from perch.model.verdict import Verdict
from selftest.fault import Fault

#: The family of ids that do not begin with its name.
FAMILY = {"host": "hosts", "flows": "flow", "interval": "shape", "tail": "shape",
          "far-tail": "shape"}  # fmt: skip

#: Families of which each check needs a fault of its own: their second words name checks, not tests
#: and flows of one run.
FINE = ("host_check", "switch", "soak", "counters", "manifest", "clock")


def family(check: str) -> str:
    """The family of a check's id."""
    first = check.partition("/")[0]
    return FAMILY.get(first, first)


def kind(check: str) -> str:
    """What needs a fault: a family, or of some families one check of it."""
    name = family(check)
    parts = check.split("/")
    return f"{name}/{parts[1]}" if name in FINE and len(parts) > 1 else name


#: A check that is always one of these flips no verdict.
HARMLESS = ("pass", "not_judged")


def _id(node: ast.expr) -> str | None:
    """An id as the source has it; of two the one that flips a verdict, which is the first."""
    if isinstance(node, ast.BinOp):
        return _id(node.left)
    if isinstance(node, ast.IfExp):
        return _id(node.body)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _written(source: str) -> Iterator[str]:
    """The ids of checks that this module writes out in full, unless they are always harmless."""
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Check"):
            continue
        words = {word.arg: word.value for word in node.keywords}
        status = words.get("status")
        if isinstance(status, ast.Constant) and status.value in HARMLESS:
            continue
        name = _id(words["id"]) if "id" in words else None
        if name is not None:
            yield name


def written() -> set[str]:
    """The same of all modules of perch/checks."""
    modules = sorted(Path(*checks.__path__).glob("*.py"))
    return {name for module in modules for name in _written(module.read_text())}


def planted(faults: Iterable[Fault]) -> set[str]:
    """The kinds of checks that some fault must flip."""
    named = {check for fault in faults for check in fault.checks if not check.endswith("*")}
    return named | {kind(check) for check in named} | {family(check) for check in named}


def needed(good: Iterable[Verdict]) -> set[str]:
    """All families, what is written out, and the kinds of checks that pass in a good run."""
    found = {one.name for one in families()} | written()
    for verdict in good:
        found |= {kind(check.id) for check in verdict.checks if check.status == "pass"}
    return found


def without_fault(faults: Iterable[Fault], good: Iterable[Verdict]) -> list[str]:
    """The kinds that no fault flips."""
    return sorted(needed(good) - planted(faults))
