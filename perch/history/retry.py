"""`perchctl retry DIR`: plans two more repeats of what fell outside of its limits.

The agents walk the flows of DIR/plan.retry.json, their outputs lie in DIR/raw/HOST/retry/, and
the judge then judges all repeats.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.figures import pretty
from perch.model.plan import RETRY_SCHEMA, Flow, Plan, RetryDocument, RoundLine
from perch.model.sections import OutsidePair
from perch.model.text import clean, names

if TYPE_CHECKING:
    from perch.model.verdict import Verdict

#: The message names so many.
_NAMED = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges DIR. If a repeat may show whether a fault was an outlier, writes\n"
        "DIR/plan.retry.json and each host's part in DIR/shares.retry/. Repeated are missed\n"
        "required limits, flows lost before traffic began and, on hardware, bad intervals and\n"
        "tails. Never repeated: a corrupted payload, a peer lost during traffic, a figure above\n"
        "its link's ceiling."
    )
    parser.epilog = (
        "Exit: 0 repeats planned, 1 nothing to repeat, 2 usage, 3 cannot repeat (over a\n"
        "quarter are outliers, already repeated, no verdict), 6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Plans the repeats."""
    from perch.judge import planned
    from perch.plan import share
    from perch.run import folder, judging, lines

    root = folder.run_folder(args.run)
    if not folder.is_regular(root / folder.PLAN):
        raise folder.no_run(args.run)
    path = root / folder.RETRY
    if path.exists() or path.is_symlink():
        raise PerchError(ExitCode.INCONCLUSIVE, "it exists: a run is repeated only once", file=path)
    verdict, fault = judging.judge(root)
    if fault is not None or not verdict.coverage.planned:
        why = judging.line(verdict) if fault is None else str(fault)
        raise PerchError(ExitCode.INCONCLUSIVE, f"there is nothing to repeat: {why}", file=root)
    if verdict.verdict == "PASS":
        raise PerchError(ExitCode.FAIL, "the verdict is PASS; nothing is repeated", file=root)
    pairs = outside(verdict, root)
    content = (root / folder.PLAN).read_bytes()
    plan = planned.document(content)
    again = placed(repeats(planned.read_plan(root / folder.PLAN), pairs))
    share.write(root / share.RETRY_FOLDER, share.shares(plan, content, again))
    document = RetryDocument(RETRY_SCHEMA, plan.run, folder.digest(content), again)
    try:
        lines.replace(path, pretty(document))
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE, f"it cannot be written ({error.strerror})", file=path
        ) from None
    print(clean(_said(verdict, pairs)))
    return ExitCode.PASS


def outside(verdict: Verdict, root: Path) -> list[OutsidePair]:
    """The pairs of hosts and test that are repeated. Raises PerchError where there are none."""
    from perch.judge.planned import MOST_REPEATED

    found = verdict.outside
    if not isinstance(found, dict):
        raise PerchError(ExitCode.FAIL, "no failed flow can be repeated", file=root)
    count, of, pairs = found["pairs"], found["of"], found["first"]
    # one pair may always be tried again
    if count > max(MOST_REPEATED * of, 1) or count > len(pairs):
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{count} of {of} fell outside, more than a quarter: these are not outliers",
            file=root,
            remedy="look for the cause in the fabric, the hosts or the limits",
        )
    return pairs


def _name(pair: OutsidePair) -> str:
    return f"{pair['test']}/{pair['client']}/{pair['server']}"


def repeats(plan: Plan, pairs: list[OutsidePair]) -> list[list[Flow]]:
    """The flows that follow the planned ones, those together that run at the same time.

    All rails of a pair are measured again.
    """
    from perch.judge.planned import REPEATS

    own: dict[tuple[str, int], list[Flow]] = {}
    for flow in plan.flows():
        own.setdefault((f"{flow.test}/{flow.client}/{flow.server}", flow.rail), []).append(flow)
    named = list(map(_name, pairs))
    asked = [flows for name in named for (pair, _), flows in own.items() if pair == name]
    again = (
        msgspec.structs.replace(flows[0], repeat=max(flow.repeat for flow in flows) + more)
        for more in range(1, REPEATS + 1)
        for flows in asked
    )
    return [list(flows) for _, flows in groupby(again, key=_together)]


def _together(flow: Flow) -> tuple[str | int, ...]:
    """Equal of two flows that follow each other and run at the same time."""
    rail = 0 if flow.rails_at_once > 1 else flow.rail
    return flow.test, flow.client, flow.server, flow.repeat, rail


def placed(together: list[list[Flow]]) -> list[RoundLine]:
    """Each in the first round in which both of its hosts are free, as the planner does."""
    rounds: list[list[Flow]] = []
    busy: list[set[str]] = []
    for flows in together:
        hosts = {flows[0].client, flows[0].server}
        free = next((i for i, taken in enumerate(busy) if not hosts & taken), None)
        if free is None:
            rounds.append([])
            busy.append(set())
            free = len(rounds) - 1
        rounds[free] += flows
        busy[free] |= hosts
    return [
        RoundLine(
            number,
            estimate_s=max(flow.estimate_s for flow in turn),
            deadline_s=max(flow.deadline_s for flow in turn),
            flows=[flow.key for flow in turn],
        )
        for number, turn in enumerate(rounds)
    ]


def _said(verdict: Verdict, pairs: list[OutsidePair]) -> str:
    assert isinstance(verdict.outside, dict)  # pairs are of it
    named = names([f"{_name(pair)} ({pair['why'][0]})" for pair in pairs], _NAMED)
    return f"{len(pairs)} of {verdict.outside['of']} fell outside: {named}"
