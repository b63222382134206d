"""What became of a fault: whether the named checks flipped, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perch.model.verdict import Check, Verdict
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault

BLOCKING = ("fail", "inconclusive")
#: The status of the named check under each verdict: a warning alone leaves the verdict as it is.
STATUS = {FAIL: "fail", INCONCLUSIVE: "inconclusive", PASS: "advisory"}


def blocking(verdict: Verdict) -> list[str]:
    """The ids of the checks that keep a verdict from PASS."""
    return [check.id for check in verdict.checks if check.status in BLOCKING]


def stood(check: str, verdict: Verdict) -> Check | None:
    """What stood in the check's place while all was well.

    The check itself, what it is a part of, or the family's word for "all of them".
    """
    parts = check.split("/")
    names = [check]
    if parts[0] == "flow":
        names.append(f"flows/{parts[1]}")
    if parts[0] == "host":
        names.append("hosts")
    names += ["/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]
    by_id = {one.id: one for one in verdict.checks}
    found = [by_id[name] for name in names if name in by_id]
    if parts[0] == "path":
        found += [one for one in verdict.checks if one.id.startswith("path/proven/")]
    return found[0] if found else None


def _fits(check: str, pattern: str) -> bool:
    return check.startswith(pattern[:-1]) if pattern.endswith("*") else check == pattern


def _any_fits(check: str, patterns: Iterable[str]) -> bool:
    return any(_fits(check, pattern) for pattern in patterns)


def wrong(fault: Fault, before: Verdict, after: Verdict) -> str:
    """What is not as the fault names it; "" where all is."""
    return "; ".join(_wrong(fault, before, after))


def _wrong(fault: Fault, before: Verdict, after: Verdict) -> Iterator[str]:
    named, *others = fault.checks
    known = set(blocking(before))
    flipped = [check for check in blocking(after) if check not in known]
    if after.verdict != fault.word:
        yield f"the verdict is {after.verdict}"
    yield from _stood_badly(named, before)
    status = next((check.status for check in after.checks if check.id == named), "not there")
    if status != STATUS[fault.word]:
        yield f"{named} is {status}; {', '.join(flipped) or 'nothing'} flipped"
    more = [check for check in flipped if check != named and not _any_fits(check, others)]
    if more:
        yield f"others flipped, too: {', '.join(more)}"
    turned = flipped + _turned(before, after)
    missed = [one for one in others if not any(_fits(check, one) for check in turned)]
    if missed:
        yield f"did not flip: {', '.join(missed)}"


def _turned(before: Verdict, after: Verdict) -> list[str]:
    """The ids of the checks that had passed and now do not, and of new warnings."""
    was = {check.id: check.status for check in before.checks}
    passed = {check for check, status in was.items() if status == "pass"}
    families = {check.partition("/")[0] for check in passed}
    return [
        one.id
        for one in after.checks
        if one.status != "pass"
        and (
            one.id in passed
            or one.id.partition("/")[0] in families
            or (one.status == "advisory" and was.get(one.id) != "advisory")
        )
    ]


def _stood_badly(named: str, before: Verdict) -> Iterator[str]:
    """The named check must have passed, or what stood in its place."""
    found = stood(named, before)
    if found is None or found.status == "pass":
        return
    # that a pair was repeated is said in every verdict, and never as a pass
    if not (found.status == "advisory" and found.id.startswith("retry/")):
        yield f"{found.id} had not passed before: {found.status}"
