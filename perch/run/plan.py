"""`perchctl plan DIR`: what is measured, before anything runs."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from errno import EACCES, ENOTDIR
from pathlib import Path
from typing import TYPE_CHECKING

from perch.errors import ExitCode, PerchError
from perch.model.plan import by_reason
from perch.model.text import clean, names, plural

if TYPE_CHECKING:
    from perch.model.plan import Excluded, PlanDocument, RoundLine
    from perch.plan.planner import Inputs, Planned

INPUTS, PLAN, LIMITS = "inputs/plan.json", "plan.json", "inputs/limits.json"
DEVICES = "inputs/devices.json"

#: What to do about a file of devices.
RECORDED = "give the inputs/devices.json of a run (plan_devices)"

#: What to do about a suite without a flow.
NO_FLOW = "give it a test that two hosts can run"

#: What to do about a plan that judging would refuse.
REFUSED = "correct the inventory or the suite"

#: Reasons that are printed; plan.json has all.
EXCLUDED_SHOWN = 8
#: Tests that a printed reason names.
TESTS_SHOWN = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Plans the suite, hosts and switches of DIR/inputs/plan.json, with the devices of\n"
        "DIR/inputs/devices.json if it is there, and prints the planned and excluded\n"
        "measurements. Writes DIR/plan.json, DIR/rounds.jsonl, each host's part in DIR/shares/,\n"
        "and DIR/inputs/limits.json.\n"
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
        help="read the inputs, devices among them, from standard input and keep them in DIR",
    )
    parser.add_argument(
        "--devices",
        metavar="FILE",
        help="with --stdin: devices recorded earlier, the inputs/devices.json of a run",
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
    from perch.plan import bought, discovery, engine, flows, payload, planner, rounds

    root = Path(args.run)
    if (root / PLAN).exists():
        raise PerchError(
            ExitCode.USAGE,
            "it holds a run already, and no file of a run is written over",
            file=root,
            remedy="plan again in a second, or choose another plan_run_name",
        )
    inputs, kept = _given(args.devices) if args.stdin else _kept(root)
    asked = Path(args.limits)
    folder = asked if asked.is_dir() else asked.parent
    named = "" if asked.is_dir() else inputs.limits
    name = bought.limit_set(named, folder, planner.hosts_of(inputs).values())
    try:
        planned = planner.plan(inputs, engine.checker()).judged_by(name)
    except discovery.UndiscoveredError as error:
        if not args.check or inputs.devices_file:
            raise
        print(clean(f"Suite {inputs.suite.name}: planned when the hosts were asked. {error}."))
        return ExitCode.PASS
    _check_flows(planned)
    lines = list(rounds.lines(planned))
    whole = b"".join(map(rounds.text, lines))
    plan = rounds.plan_document(planned, whole)
    _check_head(plan)
    site = limit_files.read(Path(args.site_limits)) if args.site_limits else None
    base = limit_files.read(folder / f"{name}.yml" if asked.is_dir() else asked)
    limits = bought.with_traits(limit_sets.merged(base, site), planned.fleet.hosts.values())
    if args.check:
        _check_folder(root)
    else:
        _write(root, plan, lines, {**kept, LIMITS: _pretty(limits), flows.FILE: whole})
        _recall(root, args)
    devices = discovery.said(planned.fleet.hosts, inputs.devices, inputs.devices_file)
    words = [said(planned), payload.said(payload.payload(planned)), devices]
    print(clean(" ".join(filter(None, words))))
    return ExitCode.PASS


def _given(file: str | None) -> tuple[Inputs, dict[str, bytes]]:
    """The inputs of a plan, and the files that keep them: the devices have one of their own.

    `file`: of devices that were recorded earlier.
    """
    import msgspec

    from perch.plan import planner

    document = sys.stdin.buffer.read()
    inputs = planner.decoded(document)
    parts = msgspec.json.decode(document)
    if file is not None:
        devices = _recorded(Path(file))
        inputs = planner.with_devices(inputs, devices, file)
        parts["devices_file"] = file
    elif inputs.devices is None:
        return inputs, {INPUTS: document}
    else:
        devices = msgspec.json.encode(parts.pop("devices")) + b"\n"
    return inputs, {DEVICES: devices, INPUTS: msgspec.json.encode(parts) + b"\n"}


def _recorded(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = f"it cannot be read ({error.strerror})"
        raise PerchError(ExitCode.USAGE, why, file=path, remedy=RECORDED) from None


def _kept(root: Path) -> tuple[Inputs, dict[str, bytes]]:
    """The same, of a folder that has the files."""
    from perch.plan import planner

    documents = {INPUTS: _bytes(root / INPUTS)}
    inputs = planner.decoded(documents[INPUTS])
    if (root / DEVICES).exists():
        documents[DEVICES] = _bytes(root / DEVICES)
        inputs = planner.with_devices(inputs, documents[DEVICES], inputs.devices_file)
    return inputs, documents


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


def _check_folder(root: Path) -> None:
    """Whether the folder could be made. Raises PerchError."""
    above = next(folder for folder in (root, *root.parents) if folder.exists())
    if not above.is_dir():
        raise _unwritable(root, ENOTDIR)
    if not os.access(above, os.W_OK):
        raise _unwritable(root, EACCES)


def _unwritable(folder: Path, error: int | None) -> PerchError:
    return PerchError(
        ExitCode.NOT_WRITABLE,
        f"it cannot be made ({os.strerror(error or EACCES)})",
        file=folder,
        remedy="choose a folder that this user can write (plan_runs_dir)",
    )


def _check_flows(planned: Planned) -> None:
    """Raises PerchError where nothing can be measured."""
    from perch.plan.excluded import EVERY_TEST

    if not planned.flows():
        reasons = _reasons([one for one in planned.excluded if EVERY_TEST not in one.test], "")
        why = ": ".join(filter(None, ["nothing can be measured", reasons]))
        place = f"suite {planned.inputs.suite.name}"
        raise PerchError(ExitCode.USAGE, why, place=place, remedy=NO_FLOW)


def _check_head(plan: PlanDocument) -> None:
    """Raises PerchError where judging would refuse the plan, after all was measured."""
    from perch.judge import planned

    for fault in planned.head_faults(plan):
        raise PerchError(ExitCode.USAGE, fault, file=INPUTS, remedy=REFUSED)


def _pretty(document: object) -> bytes:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _write(
    root: Path, plan: PlanDocument, lines: Sequence[RoundLine], more: dict[str, bytes]
) -> None:
    """The plan comes last: a folder with a plan has all that belongs to it."""
    import msgspec

    from perch.plan import share
    from perch.run.lines import replace

    for folder in ("inputs", "raw"):
        try:
            (root / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(root / folder, error.errno) from None
    content = msgspec.json.encode(plan) + b"\n"
    share.write(root / share.FOLDER, share.shares(plan, content, lines))
    for name, one in {**more, PLAN: content}.items():
        replace(root / name, one)


def _recall(root: Path, args: argparse.Namespace) -> None:
    from perch.run.recall import recall

    runs = Path(args.runs) if args.runs else root.parent
    found = recall(root, runs, args.baseline)
    if found is not None:
        print(clean(found))


def _reasons(excluded: Sequence[Excluded], rest: str) -> str:
    """Why tests are excluded. `rest`: where the reasons are that are not shown."""
    alike = by_reason(excluded)
    reasons = [f"{names(tests, TESTS_SHOWN)}: {reason}" for reason, tests in alike.items()]
    more = [f"and more{rest}"] if len(reasons) > EXCLUDED_SHOWN else []
    return "; ".join([*reasons[:EXCLUDED_SHOWN], *more])


def said(planned: Planned) -> str:
    """What will be measured, and what not, in one line."""
    return (
        f"Suite {planned.inputs.suite.name}: {plural(planned.flows(), 'flow')}, "
        f"about {lasting(planned.seconds())}. "
        f"Excluded: {_reasons(planned.excluded, ', all in plan.json') or 'nothing'}."
    )


def lasting(seconds: float) -> str:
    """`96 s`, `12 min`, `5.2 h`: in the unit that people plan with."""
    if seconds <= 120:
        return f"{math.ceil(seconds)} s"
    if seconds <= 120 * 60:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 360) / 10:g} h"
