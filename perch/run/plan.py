"""`perchctl plan DIR`: what is measured, before anything runs."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perch.errors import ExitCode, PerchError
from perch.model.text import clean, plural

if TYPE_CHECKING:
    from perch.plan.planner import Planned

INPUTS, PLAN, LIMITS = "inputs/plan.json", "plan.json", "inputs/limits.json"

#: Reasons that are printed; plan.json has all.
EXCLUDED_SHOWN = 8


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Plans the suite, hosts and switches of DIR/inputs/plan.json, and prints the planned and\n"
        "excluded measurements. Writes DIR/plan.json, DIR/rounds.jsonl, each host's part in\n"
        "DIR/shares/, and DIR/inputs/limits.json.\n"
        "The accepted run of the same fabric is copied to DIR/inputs/baseline.json."
    )
    parser.epilog = (
        "Exit: 0 planned, 2 usage, impossible suite or invalid limits, 3 the engine's rules or\n"
        "the accepted run cannot be read, 6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of the run")
    parser.add_argument(
        "--stdin",
        action="store_true",
        help="read the inputs from standard input and keep them in DIR",
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--limits", metavar="PATH", required=True, help="the set of limits, or the folder of sets"
    )
    parser.add_argument("--site-limits", metavar="FILE", help="the site's own limits")
    parser.add_argument("--runs", metavar="DIR", help="where runs are kept (default: beside DIR)")
    parser.add_argument(
        "--baseline",
        metavar="WHICH",
        default="auto",
        help="the accepted run to compare with: auto (default), none, or a baseline.json",
    )


def command(args: argparse.Namespace) -> int:
    """Plans a run."""
    from perch.model import limit_files, limit_sets
    from perch.plan import bought, engine, payload, planner

    root = Path(args.run)
    if (root / PLAN).exists():
        raise PerchError(
            ExitCode.USAGE,
            "it holds a run already, and no file of a run is written over",
            file=root,
            remedy="plan again in a second, or choose another plan_run_name",
        )
    given = sys.stdin.buffer.read() if args.stdin else _bytes(root / INPUTS)
    planned = planner.plan(planner.decoded(given), engine.checker())
    asked = Path(args.limits)
    folder = asked if asked.is_dir() else asked.parent
    named = "" if asked.is_dir() else planned.inputs.limits
    name = bought.limit_set(named, folder, planned.fleet.hosts.values())
    planned = planned.judged_by(name)
    site = limit_files.read(Path(args.site_limits)) if args.site_limits else None
    base = limit_files.read(folder / f"{name}.yml" if asked.is_dir() else asked)
    limits = bought.with_traits(limit_sets.merged(base, site), planned.fleet.hosts.values())
    if not args.check:
        _write(root, planned, given, limits)
        _recall(root, args)
    print(clean(f"{said(planned)} {payload.said(payload.payload(planned))}"))
    return ExitCode.PASS


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise PerchError(
            ExitCode.USAGE,
            f"it cannot be read ({error.strerror})",
            file=path,
            remedy="give the inputs with --stdin; or let Ansible make them and print the plan: "
            "ansible-playbook playbooks/site.yml -e plan_only=true",
        ) from None


def _write(root: Path, planned: Planned, given: bytes, limits: object) -> None:
    """The plan comes last: a folder with a plan has all that belongs to it."""
    import msgspec

    from perch.plan import flows, rounds, share

    for folder in ("inputs", "raw"):
        try:
            (root / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PerchError(
                ExitCode.NOT_WRITABLE,
                f"it cannot be made ({error.strerror})",
                file=root / folder,
                remedy="choose a folder that this user can write (plan_runs_dir)",
            ) from None
    lines = list(rounds.lines(planned))
    whole = b"".join(map(rounds.text, lines))
    plan = rounds.plan_document(planned, whole)
    content = msgspec.json.encode(plan) + b"\n"
    share.write(root / share.FOLDER, share.shares(plan, content, lines))
    documents = {
        INPUTS: given,
        LIMITS: msgspec.json.format(msgspec.json.encode(limits), indent=2) + b"\n",
        flows.FILE: whole,
        PLAN: content,
    }
    for name, one in documents.items():
        part = root / f"{name}.part"
        part.write_bytes(one)
        part.replace(root / name)


def _recall(root: Path, args: argparse.Namespace) -> None:
    from perch.run.recall import recall

    runs = Path(args.runs) if args.runs else root.parent
    found = recall(root, runs, args.baseline)
    if found is not None:
        print(clean(found))


def said(planned: Planned) -> str:
    """What will be measured, and what not, in one line."""
    reasons = [f"{one.test}: {one.reason}" for one in planned.excluded]
    shown = "; ".join(reasons[:EXCLUDED_SHOWN]) or "nothing"
    more = "; and more, all in plan.json" if len(reasons) > EXCLUDED_SHOWN else ""
    return (
        f"Suite {planned.inputs.suite.name}: {plural(planned.flows(), 'flow')}, "
        f"about {lasting(planned.seconds())}. Excluded: {shown}{more}."
    )


def lasting(seconds: float) -> str:
    """`96 s`, `12 min`, `5.2 h`: in the unit that people plan with."""
    if seconds <= 120:
        return f"{math.ceil(seconds)} s"
    if seconds <= 120 * 60:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:g} h"
