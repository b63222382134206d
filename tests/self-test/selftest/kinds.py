"""Which checks have no planted fault: a check that nothing flips is not known to find anything."""

from __future__ import annotations

from collections.abc import Iterable

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


def planted(faults: Iterable[Fault]) -> set[str]:
    """The kinds of checks that some fault must flip."""
    named = {check for fault in faults for check in fault.checks if not check.endswith("*")}
    return {kind(check) for check in named} | {family(check) for check in named}


def needed(good: Iterable[Verdict]) -> set[str]:
    """All families, and the kinds of checks that pass in a good run."""
    found = {one.name for one in families()}
    for verdict in good:
        found |= {kind(check.id) for check in verdict.checks if check.status == "pass"}
    return found


def without_fault(faults: Iterable[Fault], good: Iterable[Verdict]) -> list[str]:
    """The kinds that no fault flips."""
    return sorted(needed(good) - planted(faults))
