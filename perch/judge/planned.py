"""plan.json and plan.retry.json: read, and refused where a run could not be judged by them."""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.judge.argv import option_value
from perch.judge.commands import seconds
from perch.judge.raw import UNREADABLE
from perch.model.json_keys import repeated_key
from perch.model.moments import moment
from perch.model.plan import Flow, Plan, Round, SoakPlan
from perch.model.record import Number

SCHEMA = "perch.plan/1"

#: A message names so many faults of a plan; the others follow from the same mistake, as a rule.
FAULTS_MAX = 3

#: Repeats of a flow that was outside of its limits: with the first one, three values have a median
#: that a single stray cannot move.
REPEATS = 2

#: Outliers are the exception: where more than a quarter lies outside, a quartile does, and no
#: spread of single flows explains it (J. W. Tukey, Exploratory Data Analysis, 1977, counts as
#: outside what lies beyond the quartiles).
MOST_REPEATED = 0.25

#: Seconds by which the turns of a soak may differ from its whole, as a part of it.
TURNS_TOLERANCE = 1e-6

_name = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
#: An id becomes a path under raw/, so nothing in it may climb out of there.
_flow_id = re.compile(rf"{_name.pattern}(/{_name.pattern}){{3}}")
_imported_file = re.compile(r"raw/import/[^/\n]+")


class _Head(msgspec.Struct):
    schema: Any = None


#: An inventory's numbers are text where they were given on Ansible's command line.
_plan = msgspec.json.Decoder(Plan, strict=False)
_head = msgspec.json.Decoder(_Head)


def _joined(faults: Iterable[str]) -> str:
    return "; ".join(islice(faults, FAULTS_MAX))


# ---- a plan by itself ----------------------------------------------------------------------------


def _expect_faults(flow: Flow) -> Iterator[str]:
    if not flow.expect:
        yield f"flow '{flow.id}' expects no record"
    if flow.imported is not None:
        return  # of what was measured elsewhere, several outputs may be unreadable
    # what has no size would be matched by any record, and what is expected twice by one
    if any(expect.size_bytes is None for expect in flow.expect):
        yield f"flow '{flow.id}' expects a record without a size"
    if len(set(flow.expect)) != len(flow.expect):
        yield f"flow '{flow.id}' expects a record twice"


def _import_faults(flow: Flow) -> Iterator[str]:
    source = flow.imported or {}
    file, line = source.get("file"), source.get("line")
    if not (isinstance(file, str) and _imported_file.fullmatch(file) and isinstance(line, int)):
        yield f"flow '{flow.id}' has no line of a file of raw/import"


def _flow_faults(flow: Flow, plan: Plan) -> Iterator[str]:
    if not _flow_id.fullmatch(flow.id):
        yield f"flow id '{flow.id}' is not test/client/server/repeat"
    for role in ("client", "server"):
        if flow.host(role) not in plan.hosts:
            yield f"flow '{flow.id}': {role} '{flow.host(role)}' is not a host of the plan"
    if flow.retry:
        yield f"flow '{flow.id}' says of itself that it is a repeat"
    yield from _expect_faults(flow)
    if flow.imported is not None:
        yield from _import_faults(flow)
        return
    # what never leaves a host is no measurement of the fabric between hosts
    if flow.client == flow.server:
        yield f"flow '{flow.id}' is of host '{flow.client}' with itself"
    if not flow.tool or not flow.client_argv:
        yield f"flow '{flow.id}' has no tool or no command"


def _is_positive(value: Number | None) -> bool:
    return value is not None and 0 < value < float("inf")


def _has_times(soak: SoakPlan) -> bool:
    times = (soak.duration_s, soak.interval_s, soak.stall_s, soak.reconnect_s)
    if not all(_is_positive(time) for time in times):
        return False
    if soak.turn_s is None:
        return soak.mode == "mixed"
    return _is_positive(soak.turn_s)


def _soak_flow_faults(flow: Flow, soak: SoakPlan) -> Iterator[str]:
    """A soak is judged over the time that its commands were given."""
    asked = {
        "--duration": soak.duration_s,
        "--interval": soak.interval_s,
        "--stall": soak.stall_s,
    }
    for option, planned in asked.items():
        given = seconds(option_value(flow.client_argv, option))
        if option == "--duration" and soak.mode == "alternating":
            # a turn has a part of the time, the last one what is left, with a rest that is no
            # interval
            most = (soak.turn_s or 0) + soak.interval_s
            fits = given is not None and 0 < given < most
        else:
            fits = given is not None and abs(given - planned) <= 1e-9 * planned
        if not fits:
            yield f"flow '{flow.id}' has {option} of {given} s, and the soak {planned} s"


def _turns_s(plan: Plan) -> float:
    """Seconds of all turns together: each lasts as long as its shortest flow."""
    total = 0.0
    for turn in plan.rounds:
        given = [seconds(option_value(flow.client_argv, "--duration")) for flow in turn.flows]
        total += min((time for time in given if time is not None), default=0)
    return total


def _soak_faults(plan: Plan) -> Iterator[str]:
    soak = plan.soak
    if soak is None:
        for flow in plan.flows():
            if "--soak" in flow.client_argv:
                yield f"flow '{flow.id}' is of a soak, and the plan is not"
        return
    if not _has_times(soak):
        yield "its soak has no times"
        return
    for flow in plan.flows():
        yield from _soak_flow_faults(flow, soak)
    if soak.mode == "alternating":
        turns = _turns_s(plan)
        # turns that are not there are no time that was measured
        if abs(turns / soak.duration_s - 1) > TURNS_TOLERANCE:
            yield f"its turns together last {turns:g} s, and the soak {soak.duration_s} s"


def _twice(flows: Iterable[Flow]) -> Iterator[str]:
    seen: set[str] = set()
    for flow in flows:
        if flow.id in seen:
            yield f"two flows have the same id '{flow.id}'"
        seen.add(flow.id)


def faults(plan: Plan) -> Iterator[str]:
    """What is wrong with a plan, in words; nothing where it can be judged by."""
    if plan.schema != SCHEMA:
        yield f"its schema is '{plan.schema}', not {SCHEMA}"
        return
    if not any(turn.flows for turn in plan.rounds):
        yield "it holds no flow"
        return
    if moment(plan.created) is None:
        yield f"created is {plan.created!r}, no time such as 2026-11-21T08:04:06Z"
    for kind, names in (("host", plan.hosts), ("switch", plan.switches or {})):
        for name in names:
            if not _name.fullmatch(name):
                yield f"{kind} name '{name}' is not usable as a path"
    if len({flow.imported is None for flow in plan.flows()}) > 1:
        yield "it has flows that were measured elsewhere beside others"
    for flow in plan.flows():
        yield from _flow_faults(flow, plan)
    yield from _soak_faults(plan)
    yield from _twice(plan.flows())


@contextmanager
def _without_collector() -> Iterator[None]:
    """A large plan has a million objects and no cycle: looking for some takes most of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _decoded(text: bytes, file: str) -> Plan:
    """A plan whose types are right. Raises PerchError."""
    try:
        with _without_collector():
            repeated = repeated_key(text)  # first: a large plan is not held twice
            plan = _plan.decode(text)
    except msgspec.ValidationError as error:
        why = str(error)
        try:
            schema = _head.decode(text).schema
        except UNREADABLE:
            schema = SCHEMA  # it has none that could be read, and `why` says more
        if schema != SCHEMA:
            why = f"its schema is {schema!r}, not {SCHEMA}"
        raise PerchError(ExitCode.INCONCLUSIVE, f"{file} cannot be used: {why}") from None
    except UNREADABLE as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE, f"{file} is damaged (half-written?): {error}"
        ) from None
    if repeated is not None:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{file} cannot be used: it has the key '{repeated}' twice in one object",
        )
    return plan


def _text(path: Path) -> bytes:
    """Of a regular file: a link may lead out of the run, where nothing seals it."""
    try:
        if path.is_file() and not path.is_symlink():
            return path.read_bytes().removeprefix(BOM_UTF8)
    except OSError:
        pass
    raise PerchError(ExitCode.INCONCLUSIVE, f"{path.name} is missing or cannot be read")


def read_plan(path: Path) -> Plan:
    """plan.json of a run. Raises PerchError where a run cannot be judged by it."""
    plan = _decoded(_text(path), path.name)
    found = _joined(faults(plan))
    if found:
        raise PerchError(ExitCode.INCONCLUSIVE, f"{path.name} cannot be used: {found}")
    return plan


# ---- a plan of repeats ---------------------------------------------------------------------------


def _by_pair(flows: Iterable[Flow]) -> dict[str, list[Flow]]:
    pairs: dict[str, list[Flow]] = {}
    for flow in flows:
        pairs.setdefault(f"{flow.test}/{flow.client}/{flow.server}", []).append(flow)
    return pairs


def _unlike(flow: Flow, planned: Flow) -> list[str]:
    keys = (key for key in Flow.__struct_fields__ if key not in ("id", "repeat"))
    return [key for key in keys if getattr(flow, key) != getattr(planned, key)]


def _repeat_fault(flow: Flow, pair: str, planned: list[Flow]) -> str | None:
    if not planned:
        return f"flow '{flow.id}' repeats what was not planned"
    if flow.id != f"{pair}/{flow.repeat}":
        return f"flow '{flow.id}' is not named by its test, hosts and repeat"
    last = max(one.repeat for one in planned)
    if not last < flow.repeat <= last + REPEATS:
        return f"flow '{flow.id}' has a repeat that does not follow the planned ones"
    unlike = _unlike(flow, planned[0])
    if unlike:
        return f"flow '{flow.id}' is not as it was planned: {', '.join(unlike[:FAULTS_MAX])}"
    return None


def retry_faults(again: Plan, plan: Plan) -> Iterator[str]:
    """What keeps the flows of a plan.retry.json from counting as repeats of this plan's."""
    if again.schema != SCHEMA:
        yield f"its schema is '{again.schema}', not {SCHEMA}"
    elif again.run != plan.run:
        yield f"it is of run '{again.run}', not {plan.run}"
    elif again.hosts != plan.hosts:
        yield "its hosts are not those of the plan"
    else:
        planned, repeated = _by_pair(plan.flows()), _by_pair(again.flows())
        for pair, flows in repeated.items():
            for flow in flows:
                fault = _repeat_fault(flow, pair, planned.get(pair, []))
                if fault:
                    yield fault
        # one repeat that is named several times would outvote all others
        for pair, flows in repeated.items():
            repeats = [flow.repeat for flow in flows]
            if len(repeats) != REPEATS or len(set(repeats)) != REPEATS:
                named = ", ".join(map(str, repeats))
                yield f"{pair} is repeated {len(repeats)} times ({named}), not {REPEATS} times"
        # one pair may always be tried again
        if len(repeated) > max(MOST_REPEATED * len(planned), 1):
            yield (
                f"it repeats {len(repeated)} of {len(planned)} pairs of hosts, more than a quarter"
            )


def with_retry(plan: Plan, path: Path) -> tuple[Plan, str | None]:
    """The plan with the repeats of plan.retry.json, marked as such; else why these do not count."""
    if not (path.exists() or path.is_symlink()):
        return plan, None
    try:
        again = _decoded(_text(path), path.name)
    except PerchError as error:
        return plan, error.what
    found = _joined(retry_faults(again, plan))
    if found:
        return plan, found
    for flow in again.flows():
        flow.retry = True
    rounds = plan.rounds + [Round(turn.flows) for turn in again.rounds]
    return msgspec.structs.replace(plan, rounds=rounds), None


def is_imported(plan: Plan) -> bool:
    """Whether the run's outputs were measured elsewhere; a plan has such flows only, or none."""
    return next(plan.flows()).imported is not None
