"""Readiness, criterion by criterion: the worst check of a criterion decides it.

It adds no judgement of its own: a criterion without a judged check is not judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from perch.checks import families as checks_of_runs
from perch.model.limits import Limits
from perch.model.verdict import Check, Verdict
from perch.views import words
from perch.views.first_screen import gravity, nearness, place, strain
from perch.views.measured import Results, best_bandwidth
from perch.views.table import Table, left

MET, NOT_MET, NOT_JUDGED = "met", "failed", "not judged"


@dataclass(frozen=True)
class Criterion:
    """checks: ids, or their beginnings up to a slash. metrics: of the limits that belong here.

    only_faults: there is a check only where something is wrong, or in a soak. fault: the title of a
    criterion that failed, where the title itself is a negation.
    """

    id: str
    title: str
    checks: tuple[str, ...] = ()
    metrics: str | None = None
    only_faults: bool = False
    fault: str = ""

    def holds(self, check: Check, metric: str | None) -> bool:
        """metric: of the limit that the check judges by."""
        if any(
            check.id == one or check.id.startswith(one if one.endswith("/") else f"{one}/")
            for one in self.checks
        ):
            return True
        return (
            self.metrics is not None
            and metric is not None
            and re.match(self.metrics, metric) is not None
        )


#: In the order in which an operator asks. `checks` are those whose decorator names no criterion.
CRITERIA = (
    Criterion(
        "coverage",
        "Everything planned was measured",
        ("coverage", "excluded", "nics", "hosts", "host/", "flow/", "plan", "soak/coverage",
         "soak/state", "soak/samples"),
    ),
    Criterion("limits", "Limits to judge by", only_faults=True),
    Criterion(
        "path",
        "Traffic used the intended NIC",
        ("path", "simulated", "software", "imported"),
    ),
    Criterion(
        "throughput",
        "Throughput",
        ("like/", "peers/", "directions/", "sizes/", "rails/"),
        metrics=r"bandwidth\.(gbit_s|messages_per_s)$",
    ),
    Criterion("possible", "No result above line rate", fault="Results above line rate"),
    Criterion("latency", "Latency", metrics=r"latency_us\.(p50|mean|min)$"),
    Criterion(
        "tail",
        "Jitter and tail",
        ("tail/", "far-tail/"),
        metrics=r"latency_us\.(p9|max|stddev)|derived\.(p99|(mean|stddev|max)_per_median)",
    ),
    Criterion(
        "loss",
        "No loss",
        ("switch/drops", "switch/drops-elsewhere", "switch/stated"),
        metrics=r"derived\.(loss_ppm|packets_lost_ppm|packets_retried_ppm|retransmissions)"
        r"|tcp\.retrans",
        fault="Loss",
    ),
    Criterion(
        "integrity",
        "No corruption",
        ("integrity", "switch/errors", "soak/integrity"),
        metrics=r"derived\.packets_corrupted",
        fault="Corruption",
    ),
    Criterion(
        "stability",
        "Stable over time",
        ("interval/", "soak/gaps", "soak/stalls", "soak/interval", "soak/latency", "soak/drift",
         "soak/change", "soak/rate", "soak/reboots"),
        metrics=r"derived\.stall_s|bandwidth\.min_interval",
    ),
    Criterion(
        "leaks", "No memory or file descriptor leaks", ("soak/memory", "soak/handles"),
        only_faults=True, fault="Leaks",
    ),
    Criterion("repeatability", "Repeatable"),
    Criterion(
        "drift", "No regression against the accepted baseline", ("drift", "baseline"),
        fault="Regression against the accepted baseline",
    ),
    Criterion(
        "counters",
        "Counters clean",
        ("soak/counters", "soak/links", "switch/pause-storms",
         "host_check/nic-port-errors", "host_check/nic-interface-errors",
         "host_check/nic-pcie-errors", "host_check/machine-pcie-log",
         "host_check/machine-link-flaps"),
    ),
    Criterion(
        "agreement",
        "Two tools agree",
        ("agreement/", "cross-check", "cross/"),
        metrics=r"agreement\.",
    ),
    Criterion("hosts", "Host configuration", ("host_check/",)),
    Criterion("switches", "Switch configuration", ("switch/",)),
    Criterion(
        "evidence",
        "Evidence complete",
        ("manifest", "schema", "inputs", "soak"),
        only_faults=True,
    ),
)  # fmt: skip


class Judged(msgspec.Struct):
    """A criterion with its state and evidence.

    advisory: nothing of it changes the verdict. words: its title, or its fault where it failed.
    """

    id: str
    title: str
    words: str
    state: str
    evidence: str
    advisory: bool


class _Told(msgspec.Struct):
    """A check; `beside`: it is of a test of TCP that is compared with RDMA's."""

    check: Check
    beside: bool

    @property
    def counts(self) -> bool:
        return self.check.status == "pass" and not self.beside


def _criterion(check: Check, metrics: dict[str, str], families: dict[str, str]) -> str | None:
    """The first one that names a check, else that of its family."""
    parts = check.id.split("/")
    metric = metrics.get(parts[1]) if parts[0] == "limit" and len(parts) > 1 else None
    named = next((one.id for one in CRITERIA if one.holds(check, metric)), None)
    return named or families.get(parts[0])


def _state(told: Sequence[_Told]) -> str:
    """Met where something was judged and nothing was found wanting.

    What TCP met speaks of RDMA's fabric only where nothing else was measured.
    """
    statuses = {one.check.status for one in told}
    if "fail" in statuses:
        return NOT_MET
    if "inconclusive" in statuses:
        return NOT_JUDGED
    if "advisory" in statuses:
        return NOT_MET
    return MET if any(one.counts for one in told) else NOT_JUDGED


def _said(check: Check) -> str:
    text = f"{check.headline}: {words.value(check.measured, check.unit)}"
    if where := place(check):
        text += f", {where}"
    return (
        text if check.limit is None else f"{text} (limit: {words.bound(check.limit, check.unit)})"
    )


def _closest(told: Sequence[_Told]) -> Check:
    """Of those that passed the one that came closest to its bound."""
    passed = [one.check for one in told if one.counts]
    bounded = [one for one in passed if one.limit is not None and not isinstance(one.measured, str)]
    return max(reversed(bounded), key=nearness, default=passed[0])


def _evidence(told: Sequence[_Told], state: str) -> str:
    if not told:
        return "no check of this run covers it"
    checks = [one.check for one in told]
    statuses = {one.status for one in checks}
    passed = sum(one.status == "pass" for one in checks)
    left_open = sum(one.status == "not_judged" for one in checks)
    if state == MET:
        said = _said(_closest(told))
    else:
        said = _said(min(checks, key=lambda one: (gravity(one), -strain(one))))
    if passed + left_open > 1 or state != MET:
        said += f"; {passed} of {len(checks)} checks passed"
        said += f", {left_open} not judged" if left_open else ""
    if state == NOT_JUDGED and passed and statuses <= {"pass", "not_judged"}:
        said += "; they cover TCP only, not RDMA"
    return said


def _of_ceiling(tests: list[Results]) -> str:
    """How near to what is possible: the best of RDMA's interface."""
    best = best_bandwidth(tests)
    if best is None:
        return ""
    share = best[1].of_ceiling
    if share is None:
        return "; no ceiling of the link is known"
    return f"; the best flow reached {words.figure(share)} % of its link's ceiling"


def _beside(tests: list[Results]) -> set[str]:
    """Tests of TCP beside RDMA's."""
    names = {test.name for test in tests if not test.is_rdma}
    return names if len(names) < len(tests) else set()


def judged(checks: list[Check], limits: Limits, tests: list[Results]) -> list[Judged]:
    metrics = {limit.id: limit.metric for limit in limits.limits}
    families = {one.name: one.criterion for one in checks_of_runs() if one.criterion}
    beside = _beside(tests)
    of: dict[str | None, list[_Told]] = {}
    for check in checks:
        told = _Told(check, any(part in beside for part in check.id.split("/")[1:]))
        of.setdefault(_criterion(check, metrics, families), []).append(told)
    found = []
    for one in CRITERIA:
        mine = of.get(one.id, [])
        if not mine and one.only_faults:
            continue
        state = _state(mine)
        evidence = _evidence(mine, state) + (_of_ceiling(tests) if one.id == "throughput" else "")
        said = one.fault if one.fault and state == NOT_MET else one.title
        advisory = state == NOT_MET and all(told.check.status != "fail" for told in mine)
        evidence = words.short_digests(words.cell(evidence))
        found.append(Judged(one.id, one.title, said, state, evidence, advisory))
    return found


# ---- words ---------------------------------------------------------------------------------------


def _state_words(one: Judged, scope: str) -> str:
    """The same words in every scope would let a loopback read like hardware."""
    if one.state == NOT_MET:
        return "**warning**" if one.advisory else f"**{one.state}**"
    return (
        f"{one.state}, in {scope} only" if one.state == MET and scope != "hardware" else one.state
    )


def table(criteria: list[Judged], scope: str) -> Table:
    rows = [[one.title, _state_words(one, scope), one.evidence] for one in criteria]
    return Table(left("Criterion", "State", "Evidence"), rows)


def _titles(criteria: list[Judged], state: str) -> list[str]:
    return [one.words.lower() for one in criteria if one.state == state]


def _unmet(criteria: list[Judged]) -> str:
    """What is not met, in the words of the table: a warning is no failure."""
    said = ""
    for word, advisory in (("failed", False), ("with a warning", True)):
        unmet = [one for one in criteria if one.state == NOT_MET and one.advisory == advisory]
        said += f"; {word}: {words.some(_titles(unmet, NOT_MET), 6)}" if unmet else ""
    return said


def headline(criteria: list[Judged], verdict: Verdict) -> str:
    unmet, left_open = _titles(criteria, NOT_MET), _titles(criteria, NOT_JUDGED)
    met = f"{len(_titles(criteria, MET))} of {len(criteria)} criteria are met"
    if verdict.scope != "hardware":
        return (
            f"**Not judged: this run is no proof of hardware** (scope {verdict.scope}). "
            "The table shows how far it went."
        )
    if unmet or verdict.verdict == "FAIL":
        said = f"**Not ready**: {met}{_unmet(criteria)}."
        if verdict.verdict == "PASS":
            said += " The verdict counts required limits only; readiness counts warnings, too."
        return said
    if verdict.verdict != "PASS":
        return f"**Not judged**: {met}; the others could not be judged."
    if left_open:
        return (
            f"**Nothing failed, but not everything was judged**: {met}; "
            f"not judged: {words.some(left_open, 6)}."
        )
    return f"**Ready**: all {len(criteria)} criteria are met."
