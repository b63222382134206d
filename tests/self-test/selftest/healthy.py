"""Healthy runs, none of which may fail, and the same with rates taken away, which must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from selftest import work as working
from selftest.jobs import Jobs
from selftest.outcome import blocking
from selftest.paths import HERE
from selftest.runs.fabric_plan import Fabric
from selftest.tap import Tap

#: As many as the design asks for, and those of --quick.
HEALTHY, FEW = 200, 10
#: What is left of the rates of weakened runs.
STRENGTHS = (0.95, 0.9, 0.85, 0.8)
WEAKEST = STRENGTHS[-1]
#: Weakened runs have seeds of their own.
FIRST_WEAK = 1001
#: So many runs are judged between two lines of progress.
PROGRESS = 20

POWER = HERE / "data/power.tsv"


@dataclass(frozen=True)
class Group:
    """What is weakened. `check`: the one that must say so at the weakest."""

    title: str
    fault: str
    flows: str
    check: str


GROUPS = {
    "one": Group(
        "one pair of ten",
        "the writes of one pair of ten at 80 %",
        "^write-bandwidth/gamma/delta/",
        "limit/site-peers/write-bandwidth",
    ),
    "all": Group(
        "all pairs",
        "all writes at 80 %",
        "^(write|steady)-bandwidth/",
        "limit/large-message-share/write-bandwidth",
    ),
}
#: Lines of TAP: the healthy ones together, and each group at its weakest.
TESTS = 1 + len(GROUPS)


def weakened(group: Group, seed: int, strength: float) -> Fabric:
    """A run of which the group's flows have so much of their rate."""
    healthy = working.healthy(seed)
    return Fabric(seed, healthy.tests, weak=(group.flows, strength))


def _counted(
    jobs: Jobs, runs: Iterable[Fabric], note: Callable[[str], None], named: str
) -> Counter[str]:
    """How many runs have each verdict; healthy ones without PASS are noted."""
    words: Counter[str] = Counter()
    for fabric, verdict in jobs.each(working.judge_fabric, runs):
        words[verdict.verdict] += 1
        if named == "healthy" and verdict.verdict != "PASS":
            against = " ".join(blocking(verdict))
            note(f"healthy run {fabric.seed} is {verdict.verdict}: {against}")
        if words.total() % PROGRESS == 0:
            note(f"{named}: {words.total()} judged")
    return words


def tell_healthy(jobs: Jobs, tap: Tap, count: int) -> None:
    """Judges so many healthy runs and one of each group of weakened ones."""
    runs = [working.healthy(seed) for seed in range(1, count + 1)]
    words = _counted(jobs, runs, tap.note, "healthy")
    failed, others, passed = (words[word] for word in ("FAIL", "INCONCLUSIVE", "PASS"))
    said = f"of {count} healthy runs {failed} fail, {others} are inconclusive, {passed} pass"
    tap.told(failed == 0, said)
    weak = {name: weakened(group, 1, WEAKEST) for name, group in GROUPS.items()}
    for group, (_, verdict) in zip(
        GROUPS.values(), jobs.each(working.judge_fabric, weak.values()), strict=True
    ):
        against = blocking(verdict)
        fails = verdict.verdict == "FAIL" and group.check in against
        why = f"what spoke against it: {' '.join(against)}"
        tap.told(fails, f"{group.fault}: flips to FAIL ({group.check})", why)


def tell_power(jobs: Jobs, tap: Tap, count: int, keep: Path | None) -> None:
    """How many runs of each strength fail.

    Shown and kept, and no test: there is no line between a fault and noise.
    """
    lines = []
    for name, group in GROUPS.items():
        for strength in STRENGTHS:
            seeds = range(FIRST_WEAK, FIRST_WEAK + count)
            runs = [weakened(group, seed, strength) for seed in seeds]
            failed = _counted(jobs, runs, tap.note, f"{name}-{strength}")["FAIL"]
            tap.note(f"power: {name} at {strength}: {failed} of {count} fail")
            lines.append(f"{name}\t{strength}\t{failed}\t{count}\n")
    if keep is not None:
        keep.write_text("".join(lines))


def kept_power() -> dict[tuple[str, float], tuple[int, int]]:
    """What --power --keep found: by group and strength, how many failed, and of how many."""
    rows = [line.split("\t") for line in POWER.read_text().splitlines()]
    return {(name, float(strength)): (int(failed), int(of)) for name, strength, failed, of in rows}
