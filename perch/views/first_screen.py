"""What a reader sees first: the verdict, what it is worth, the worst findings, each kind once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from perch.model.verdict import Check, Verdict, loosened
from perch.views import words
from perch.views.plan import PlanDigest
from perch.views.ranks import grouped
from perch.views.table import Table, capped, left

STATUS_WORDS = {
    "pass": "pass",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "advisory": "warning",
    "not_judged": "not judged",
}
#: The worst first.
GRAVITY = {"fail": 0, "inconclusive": 1, "advisory": 2, "not_judged": 3, "pass": 4}

_SIGNS = {"PASS": "✅", "FAIL": "❌", "INCONCLUSIVE": "⚠️"}

CHECKS_MAX = 300
EVIDENCE_SHOWN = 3
#: Findings of the first screen, and further checks of the same kind that each names.
FINDINGS_MAX = 3
ALSO_MAX = 3


def gravity(check: Check) -> int:
    return GRAVITY[check.status]


def _reason(verdict: Verdict) -> str:
    """Why it is this verdict, in counts."""
    failed, unjudged = (
        words.plural(sum(check.status == status for check in verdict.checks), "check")
        for status in ("fail", "inconclusive")
    )
    if verdict.verdict == "PASS":
        less = loosened(verdict.checks)
        limits = f"; **limits {less}**" if less else ""
        return f"every planned record was measured, and no required limit was missed{limits}."
    if verdict.verdict == "FAIL":
        return f"{failed} failed."
    missing, planned = len(verdict.coverage.missing), verdict.coverage.planned
    said = []
    if missing:
        was = "was" if missing == 1 else "were"
        lacking = f"{words.whole(missing)} of {words.plural(planned, 'planned record')}"
        said.append(f"{lacking} {was} not measured")
    if not unjudged.startswith("0 "):
        said.append(f"{unjudged} could not be judged")
    return f"{'; '.join(said) or 'the run is not whole'}."


def verdict_word(verdict: Verdict) -> str:
    """The verdict; a PASS that proves nothing of hardware names its scope."""
    if verdict.verdict == "PASS" and verdict.scope != "hardware":
        return f"PASS, {verdict.scope} only"
    return str(verdict.verdict)


def verdict_line(verdict: Verdict) -> str:
    """A PASS that proves nothing of hardware is not green."""
    word = verdict_word(verdict)
    return f"{_SIGNS.get(word, _SIGNS['INCONCLUSIVE'])} **{word}**: {_reason(verdict)}"


def what_line(plan: PlanDigest, less: str) -> str:
    """What was run. `less`: what the site loosened in its limits."""
    hosts = words.cell(words.some(plan.hosts, 8))
    flows = f"{words.whole(plan.flows)} {words.term('flow' if plan.flows == 1 else 'flows')}"
    if plan.retries:
        flows += f" and {words.plural(plan.retries, 'repeat')}"
    counts = [words.plural(len(plan.hosts), "host"), words.plural(plan.pairs, "pair"), flows]
    planned = f", planned {words.cell(plan.created)}" if plan.created else ""
    limits = f"*{words.cell(plan.limits)}*" + (f", {less}" if less else "")
    return (
        f"Suite *{words.cell(plan.suite)}*, run {words.code(plan.run)}{planned}: {hosts} "
        f"({', '.join(counts)}), limits {limits}."
    )


def coverage_line(verdict: Verdict) -> str:
    coverage = verdict.coverage
    said = (
        f"Coverage: {words.whole(coverage.measured)} of {words.whole(coverage.planned)} "
        f"planned {words.term('records')} measured"
    )
    if coverage.missing:
        records = words.plural(len(coverage.missing), "record")
        flows = words.plural(len({one.flow for one in coverage.missing}), "flow")
        said += f", **{records} missing, of {flows}**."
    else:
        said += "."
    nics = [check for check in verdict.checks if check.id == "nics" and check.status != "pass"]
    return " ".join([said, *(f"{words.cell(str(check.measured))}." for check in nics)])


def excluded_line(plan: PlanDigest) -> str:
    tests = sorted({one.test for one in plan.excluded if one.nic is None})
    if not tests:
        return ""
    named = words.some(map(words.code, tests), 8)
    return f"**Left out of the plan**, because a host could not take part: {named}."


# ---- checks --------------------------------------------------------------------------------------


class CheckCells(msgspec.Struct):
    """A check in finished words."""

    status: str
    title: str
    measured: str
    limit: str
    source: str
    evidence: str
    remedy: str


def cells_of(check: Check) -> CheckCells:
    return CheckCells(
        status=STATUS_WORDS[check.status],
        title=words.cell(check.headline),
        measured=words.cell(words.value(check.measured, check.unit)),
        limit=words.cell(words.bound(check.limit, check.unit)),
        source=words.cell(check.source),
        evidence=words.some(map(words.code, check.evidence), EVIDENCE_SHOWN) or words.NOTHING,
        remedy=words.cell(words.capitalized(check.remedy)),
    )


def is_of_hosts(check: Check) -> bool:
    """These have a table of their own: it is long, and most of it only describes the hosts."""
    return check.id.startswith("host_check/")


_COLUMNS = left("Status", "Check", "Measured", "Limit", "Source of the limit", "Evidence", "Action")
_HOST_COLUMNS = left("Status", "Check", "Found", "Limit", "Source and reason", "Hosts", "Action")


def table_of_checks(verdict: Verdict, *, of_hosts: bool) -> Table:
    """The worst first."""
    checks = sorted((one for one in verdict.checks if is_of_hosts(one) == of_hosts), key=gravity)
    table = capped(_HOST_COLUMNS if of_hosts else _COLUMNS, [[] for _ in checks], CHECKS_MAX)
    table.rows = [list(msgspec.structs.astuple(cells_of(check))) for check in checks[:CHECKS_MAX]]
    return table


# ---- findings ------------------------------------------------------------------------------------

_numbers = re.compile(r"[0-9]+")


#: Families whose kind of check is the first two parts of an id; of others it is the first one.
_OF_TWO_PARTS = ("limit", "host_check", "switch", "counters")


def _kind(check: Check) -> tuple[Any, ...]:
    """Checks of one kind are one finding: a limit that many tests miss, a fault of many flows.

    Flows are alike where their messages differ in numbers only.
    """
    parts = check.id.split("/")
    if parts[0] in _OF_TWO_PARTS:
        return tuple(parts[:2])
    if parts[0] in ("flow", "path"):
        return parts[0], _numbers.sub("#", str(check.measured))
    return (parts[0],)


def _bounded(check: Check) -> tuple[float, float | None, float | None] | None:
    """A measured number with its bounds."""
    measured = check.measured
    if isinstance(measured, str) or measured is None or check.limit is None:
        return None
    return measured, check.limit.min, check.limit.max


def nearness(check: Check) -> float:
    """Of a figure within its bound, how much of the room it takes, up to 1."""
    found = _bounded(check)
    if found is None:
        return 0
    measured, least, most = found
    of_most = measured / most if most is not None and most > 0 else 0
    of_least = least / measured if least is not None and measured > 0 else 0
    return max(of_most, of_least, 0)


def strain(check: Check) -> float:
    """How far a figure stands beyond its bound, as a factor; 0 where it does not."""
    found = _bounded(check)
    if found is None:
        return 0
    measured, least, most = found
    if most is not None and 0 < most < measured:
        return measured / most
    if least is not None and measured < least:
        return least / measured if measured > 0 else 1e300
    return 0


class Finding(msgspec.Struct):
    """Checks of one kind: the worst, where it was measured, and the others by name."""

    cells: CheckCells
    word: str
    place: str
    more: str


#: A record, or all repeats of a pair at a size, as checks name their evidence.
_record = re.compile(
    r"[^/#]+/(?P<client>[^/#]+)/(?P<server>[^/#]+)(/(?P<rail>\d+)/(?P<repeat>\d+))?"
    r"(#(?P<size>\d+)(x(?P<batch>\d+)(/\w+)?)?)?"
)


def place(check: Check) -> str:
    """Size, repeat and pair of the worst evidence: 16 B, repeat 2, alpha to beta.

    A text and a count of records have none: their evidence is a list, not the worst.
    """
    found = _record.fullmatch(check.evidence[0]) if check.evidence else None
    if found is None or isinstance(check.measured, str) or check.id == "coverage":
        return ""
    said = []
    if found["size"]:
        said.append(words.size(int(found["size"])))
    if found["batch"]:
        said.append(f"batch {found['batch']}")
    if found["repeat"]:
        said.append(f"repeat {found['repeat']}")
    if found["rail"] not in (None, "0"):
        said.append(f"rail {found['rail']}")
    return words.cell(", ".join([*said, f"{found['client']} to {found['server']}"]))


def _word(check: Check) -> str:
    """A check that names no fault only has its subject."""
    return ", not judged" if check.status == "inconclusive" and not check.fault else ""


def _once(found: list[Finding]) -> list[Finding]:
    """Several checks of one figure are one finding, of the gravest: `found` has the worst first."""
    kept: dict[tuple[str, str], list[Finding]] = {}
    for number, one in enumerate(found):
        key = (one.cells.title, one.place) if one.place else (one.cells.title, str(number))
        kept.setdefault(key, []).append(one)
    for first, *others in kept.values():
        if others:
            by = f"also {_kinds(one.cells.status for one in others)} for this figure"
            first.more = f"{first.more}, {by}" if first.more else by
    return [first for first, *_ in kept.values()]


def _kinds(statuses: Iterable[str], more: str = "") -> str:
    """How many of each status: 1 FAIL, 2 warnings."""
    counts = Counter(statuses)
    return ", ".join(
        words.plural(n, f"{more}{word}") if word == "warning" else f"{n} {more}{word}"
        for word in STATUS_WORDS.values()
        if (n := counts[word])
    )


def more_line(found: list[Finding]) -> str:
    """What the findings behind the first ones are, and what warnings do to the verdict."""
    behind = _kinds((one.cells.status for one in found[FINDINGS_MAX:]), "more ")
    said = [f"{behind}."] if behind else []
    if any(one.cells.status == STATUS_WORDS["advisory"] for one in found):
        said.append("Warnings do not change the verdict.")
    return " ".join(said)


def _subject(check: Check) -> str:
    """The test, flow or host of a check, which follows the kind in its id."""
    parts = check.id.split("/")
    return "/".join(parts[2 if parts[0] in _OF_TWO_PARTS else 1 :])


def _also(checks: list[Check], worst: Check) -> str:
    """The other checks of a finding: also `tcp-latency`, `tcp-bandwidth` and 3 more."""
    if len(checks) == 1:
        return ""
    others = dict.fromkeys(filter(None, (_subject(one) for one in checks if one is not worst)))
    if not others:
        return f"the worst of {len(checks)} checks"
    return f"also {words.some(map(words.code, others), ALSO_MAX)}"


def _finding(checks: list[Check]) -> Finding:
    worst = max(checks, key=strain)
    cells = cells_of(worst)
    cells.measured = words.short_digests(cells.measured)
    return Finding(cells, _word(worst), place(worst), _also(checks, worst))


def findings(verdict: Verdict) -> list[Finding]:
    """All that is not as it should be, each kind once, the worst first."""
    wanting = [one for one in verdict.checks if one.status in ("fail", "inconclusive", "advisory")]
    groups = grouped(wanting, lambda check: (check.status, *_kind(check)))
    # without a measurement no limit could judge: its finding follows from the missing flows
    sums = ("coverage", "excluded", *(() if verdict.coverage.measured else ("limits",)))

    def order(group: list[Check]) -> tuple[bool, int, bool, bool, int]:
        # if raw files were edited, no other finding counts; one that sums up others comes last
        edited, sums_up = group[0].id == "manifest", group[0].id in sums
        return not edited, gravity(group[0]), sums_up, is_of_hosts(group[0]), -len(group)

    return _once([_finding(group) for group in sorted(groups, key=order)])
