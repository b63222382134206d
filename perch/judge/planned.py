"""A run's plan and its repeats: reads them, and rejects them where a run cannot be judged by them.

plan.json and rounds.jsonl are the plan, plan.retry.json names the repeats.
"""

from __future__ import annotations

import gc
import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from perch.errors import ExitCode, PerchError
from perch.judge.raw import UNREADABLE
from perch.model.json_keys import repeated_key
from perch.model.moments import moment
from perch.model.plan import (
    RETRY_SCHEMA,
    SCHEMA,
    Flow,
    Imported,
    Plan,
    PlanDocument,
    PlanTest,
    RetryDocument,
    Round,
    RoundLine,
    SoakPlan,
)
from perch.model.record import Number
from perch.model.suite import Carrier
from perch.model.text import explained
from perch.model.units import seconds
from perch.plan import forms
from perch.plan.flows import FILE, Flows
from perch.plan.flows import lines as flow_lines
from perch.plan.places import scope_of

#: Files of a run.
PLAN, ROUNDS, RETRY = "plan.json", FILE, "plan.retry.json"

#: What to do with a plan of another version.
OTHER_PERCH = "use the Perch that made it, or plan and measure again"

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
_flow_id = re.compile(rf"{_name.pattern}(/{_name.pattern}){{4}}")
_imported_file = re.compile(r"raw/import/[^/\n]+")


class _Head(msgspec.Struct):
    schema: Any = None


#: An inventory's numbers are text where they were given on Ansible's command line.
_plan = msgspec.json.Decoder(PlanDocument, strict=False)
_retry = msgspec.json.Decoder(RetryDocument)
_head = msgspec.json.Decoder(_Head)


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _joined(faults: Iterable[str]) -> str:
    return "; ".join(islice(faults, FAULTS_MAX))


# ---- a plan by itself ----------------------------------------------------------------------------


def _expect_faults(flow: Flow) -> Iterator[str]:
    if not flow.expect:
        yield f"flow '{flow.id}' expects no record"
    if flow.imported is not None:
        return  # several imported outputs may be unreadable
    # any record would match one without a size, and one record would match both of two equal ones
    if any(expect.size_bytes is None for expect in flow.expect):
        yield f"flow '{flow.id}' expects a record without a size"
    if len(set(flow.expect)) != len(flow.expect):
        yield f"flow '{flow.id}' expects the same record twice"


def _import_faults(flow: Flow, source: Imported) -> Iterator[str]:
    if not _imported_file.fullmatch(source.file):
        yield f"flow '{flow.id}' names no file in raw/import"


def _flow_faults(flow: Flow) -> Iterator[str]:
    if not _flow_id.fullmatch(flow.id):
        yield f"flow id '{flow.id}' is not test/client/server/rail/repeat"
    yield from _expect_faults(flow)
    if flow.imported is not None:
        yield from _import_faults(flow, flow.imported)
        return
    # traffic that never leaves a host does not measure the network between hosts
    if flow.client == flow.server:
        yield f"flow '{flow.id}' has host '{flow.client}' as client and as server"


def _rail_faults(plan: Plan, flow: Flow) -> Iterator[str]:
    for host in (flow.client, flow.server):
        has = len(plan.hosts[host].devices)
        if flow.rail >= has:
            yield f"flow '{flow.id}' has rail {flow.rail}, but host '{host}' has {has} devices"


def _name_faults(plan: PlanDocument) -> Iterator[str]:
    named = (("host", plan.hosts), ("switch", plan.switches or {}), ("test", plan.tests))
    for kind, names in named:
        for name in names:
            if not _name.fullmatch(name):
                yield f"{kind} name '{name}' cannot be used as a path"


def _host_faults(plan: PlanDocument) -> Iterator[str]:
    for name, host in plan.hosts.items():
        if not all(isinstance(device.get("name"), str) for device in host.devices):
            yield f"host '{name}' has a device without a name"


def _are_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _test_faults(plan: PlanDocument) -> Iterator[str]:
    for name, test in plan.tests.items():
        devices = test.params.get("devices")
        if type(devices) not in (type(None), int, str) and not _are_words(devices):
            yield f"test '{name}' has devices {devices!r}; use a number, 'all', names or patterns"
        if plan.soak is None and test.params.get("soak") is not None:
            yield f"test '{name}' belongs to a soak, but the plan has no soak"


def _is_positive(value: Number | None) -> bool:
    return value is not None and 0 < value < float("inf")


def _has_times(soak: SoakPlan) -> bool:
    times = (soak.duration_s, soak.interval_s, soak.stall_s, soak.reconnect_s)
    if not all(_is_positive(time) for time in times):
        return False
    if soak.turn_s is None:
        return soak.mode == "mixed"
    return _is_positive(soak.turn_s)


def _soak_test_faults(name: str, params: Mapping[str, Any], soak: SoakPlan) -> Iterator[str]:
    """Times of a test that differ from its soak's, because a soak is judged over these times."""
    lasts = f"{forms.ROUND_SECONDS}s"
    if params.get("duration") != lasts:
        yield f"test '{name}' has duration {params.get('duration')!r}, a soak needs '{lasts}'"
    for what, planned in (("interval", soak.interval_s), ("stall", soak.stall_s)):
        given = params.get(what)
        try:
            fits = given is not None and abs(seconds(given) - planned) <= 1e-9 * planned
        except (TypeError, ValueError):
            fits = False
        if not fits:
            yield f"test '{name}' has {what} {given!r}, but the soak has {planned} s"


def _params_faults(plan: Plan) -> Iterator[str]:
    """Why outputs cannot be compared with the params of their tests."""
    for name, test in plan.tests.items():
        if test.forms:  # an imported run has none
            yield from forms.faults(name, test)
        if plan.soak is not None:
            yield from _soak_test_faults(name, test.params, plan.soak)


def _soak_flow_faults(flow: Flow, soak: SoakPlan) -> Iterator[str]:
    lasts, planned = flow.estimate_s, soak.duration_s
    if soak.mode == "alternating":
        # the last turn also takes the rest of the time that is shorter than an interval
        fits = 0 < lasts < (soak.turn_s or 0) + soak.interval_s
    else:
        fits = abs(lasts - planned) <= 1e-9 * planned
    if not fits:
        yield f"flow '{flow.id}' lasts {lasts} s, but the soak lasts {planned} s"


def _turns_s(plan: Plan) -> float:
    """Seconds of all turns together: each lasts as long as its shortest flow."""
    return sum(min((flow.estimate_s for flow in turn.flows), default=0) for turn in plan.rounds)


def _soak_faults(plan: Plan) -> Iterator[str]:
    soak = plan.soak
    if soak is None:
        return
    if not _has_times(soak):
        yield "its soak lacks valid times"
        return
    for flow in plan.flows():
        yield from _soak_flow_faults(flow, soak)
    if soak.mode == "alternating":
        turns = _turns_s(plan)
        # a turn that is missing would leave a part of the time without a measurement
        if abs(turns / soak.duration_s - 1) > TURNS_TOLERANCE:
            yield f"its turns together last {turns:g} s, but the soak lasts {soak.duration_s} s"


def _twice(flows: Iterable[Flow]) -> Iterator[str]:
    seen: set[str] = set()
    for flow in flows:
        if flow.id in seen:
            yield f"two flows have the same id '{flow.id}'"
        seen.add(flow.id)


def _carrier(name: str, test: PlanTest) -> Carrier | None:
    """The carrier of a test; None for tools that a suite cannot ask for."""
    command = forms.command_of(test)
    return command.carrier(forms.test_of(name, test)) if command else None


def _carrier_faults(plan: Plan) -> Iterator[str]:
    """Tests of cards that are planned as sockets, so that no limit of hardware would apply.

    Records reveal the contrary, sockets that are planned as cards.
    """
    found = {name: _carrier(name, test) for name, test in plan.tests.items()}
    wrong = {name for name, one in found.items() if one not in (None, plan.tests[name].carrier)}
    for flow in plan.flows() if wrong else ():
        carrier = found[flow.test]
        if flow.test not in wrong or flow.scope != "software" or carrier is None:
            continue
        ends = plan.hosts[flow.client], plan.hosts[flow.server]
        if scope_of(carrier, *ends, flow.devices, flow.rail) == "hardware":
            wrong.discard(flow.test)
            planned = plan.tests[flow.test].carrier
            yield f"test '{flow.test}' is planned over {planned}, but its tool measures {carrier}"


def head_faults(plan: PlanDocument) -> Iterator[str]:
    """Those of plan.json by itself."""
    yield from _name_faults(plan)
    yield from _host_faults(plan)
    yield from _test_faults(plan)
    if moment(plan.created) is None:
        yield f"created is {plan.created!r}, not a time such as 2026-11-21T08:04:06Z"


def faults(plan: Plan) -> Iterator[str]:
    """The faults of a plan with its rounds, in words; without any a run can be judged by it."""
    if not any(turn.flows for turn in plan.rounds):
        yield "it has no flow"
        return
    if len({flow.imported is None for flow in plan.flows()}) > 1:
        yield "it mixes imported flows with others"
    for flow in plan.flows():
        yield from _flow_faults(flow)
        if flow.rail:
            yield from _rail_faults(plan, flow)
    yield from _soak_faults(plan)
    yield from _carrier_faults(plan)
    yield from _twice(plan.flows())


@contextmanager
def without_collector() -> Iterator[None]:
    """A large plan has a million objects and no cycle: looking for some takes most of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_Document = TypeVar("_Document", PlanDocument, RetryDocument)


def _decoded(
    decoder: msgspec.json.Decoder[_Document], text: bytes, schema: str, file: str
) -> _Document:
    """A document whose types are right. Raises PerchError; another version is named."""
    other: str | None = None
    try:
        document = decoder.decode(text)
        if document.schema == schema:
            repeated = repeated_key(text)
            why = f"it has the key '{repeated}' twice in one object" if repeated else None
            if why is None:
                return document
        else:
            why = other = f"its schema is {document.schema!r}, but this Perch reads {schema}"
    except msgspec.ValidationError as error:
        other = _other_version(text, schema)
        why = other or f"it cannot be used: {explained(error)}"
    except UNREADABLE as error:
        why = f"it is damaged: {explained(error)}"
    remedy = OTHER_PERCH if other else ""
    raise PerchError(ExitCode.INCONCLUSIVE, why, file=file, remedy=remedy)


def _other_version(text: bytes, schema: str) -> str | None:
    try:
        found = _head.decode(text).schema
    except UNREADABLE:
        return None
    return f"its schema is {found!r}, but this Perch reads {schema}" if found != schema else None


def _text(path: Path) -> bytes:
    """The text of a regular file; a link may lead out of the run to a file without a seal."""
    try:
        if path.is_file() and not path.is_symlink():
            return path.read_bytes().removeprefix(BOM_UTF8)
    except OSError:
        pass
    raise PerchError(ExitCode.INCONCLUSIVE, "it is missing or cannot be read", file=path.name)


def document(text: bytes, file: str = "plan.json") -> PlanDocument:
    """plan.json, its types right. Raises PerchError."""
    return _decoded(_plan, text, SCHEMA, file)


def _rounds(
    maker: Flows, lines: Iterable[RoundLine], file: str, *, retry: bool = False
) -> Iterator[Round]:
    try:
        for line in lines:
            yield maker.round(line, retry=retry)
    except KeyError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE, f"plan.json does not have its key {error}", file=file
        ) from None


def read_plan(path: Path) -> Plan:
    """The plan whose plan.json this is, with its rounds.

    `Flows.fill` gives flows their commands. Raises PerchError where it contradicts itself.
    """
    text = _text(path)
    head = document(text, path.name)
    _refuse(head_faults(head), path.name)
    with without_collector():
        maker = Flows(head)
        lines = flow_lines(_text(path.with_name(ROUNDS)), head.rounds)
        rounds = list(_rounds(maker, lines, ROUNDS))
        plan = Plan(**msgspec.structs.asdict(head) | {"rounds": rounds, "sha256": digest(text)})
    _refuse(faults(plan), path.name)
    return plan


def plan_to_judge(path: Path) -> Plan:
    """The same. Raises PerchError also where a test's params differ from its commands.

    A run that was judged can be shown even if this Perch would make other commands of its params.
    """
    plan = read_plan(path)
    _refuse(_params_faults(plan), path.name)
    return plan


def _refuse(found: Iterable[str], file: str) -> None:
    if why := _joined(found):
        raise PerchError(ExitCode.INCONCLUSIVE, f"it cannot be used: {why}", file=file)


# ---- a plan of repeats ---------------------------------------------------------------------------

#: Test, client, server and rail of a repeat.
_Pair = tuple[str, str, str, int]


def _pair(flow: Flow) -> _Pair:
    return flow.test, flow.client, flow.server, flow.rail


def _by_pair(flows: Iterable[Flow]) -> dict[_Pair, list[int]]:
    """The repeats of each pair."""
    pairs: dict[_Pair, list[int]] = {}
    for flow in flows:
        pairs.setdefault(_pair(flow), []).append(flow.repeat)
    return pairs


def _pair_faults(pair: _Pair, repeats: list[int], planned: list[int]) -> Iterator[str]:
    name = "/".join(map(str, pair))
    if not planned:
        yield f"it repeats {name}, which is not in the plan"
        return
    wanted = [max(planned) + more for more in range(1, REPEATS + 1)]
    if sorted(repeats) != wanted:  # a repeat that occurs several times would outweigh the others
        named, follow = (", ".join(map(str, one)) for one in (repeats, wanted))
        yield f"its repeats of {name} have the numbers {named}, not {follow}"


def _at_once_faults(again: Iterable[Flow], plan: Plan) -> Iterator[str]:
    """Rails that a repeat measures with more or fewer others than the plan does."""
    planned = {(*_pair(flow), flow.rails_at_once) for flow in plan.flows()}
    for flow in again:
        if (*_pair(flow), flow.rails_at_once) not in planned:
            yield f"its repeat {flow.id} has {flow.rails_at_once} rails at once, unlike the plan"


def _retry_faults(again: Sequence[Flow], plan: Plan) -> Iterator[str]:
    """Why flows do not count as repeats of this plan's flows."""
    planned, repeated = _by_pair(plan.flows()), _by_pair(again)
    yield from _at_once_faults([flow for flow in again if _pair(flow) in planned], plan)
    for pair, repeats in repeated.items():
        yield from _pair_faults(pair, repeats, planned.get(pair, []))
    # one pair may always be tried again
    if len(repeated) > max(MOST_REPEATED * len(planned), 1):
        yield f"it repeats {len(repeated)} of {len(planned)} pairs of hosts, more than a quarter"


def _repeats(plan: Plan, path: Path) -> list[Round]:
    """The rounds of plan.retry.json. Raises PerchError where they do not count."""
    again = _decoded(_retry, _text(path), RETRY_SCHEMA, path.name)
    found = ""
    if again.run != plan.run:
        found = f"it belongs to run '{again.run}', not '{plan.run}'"
    elif again.plan_sha256 != digest(_text(path.with_name(PLAN))):
        found = "it was made from another plan.json"
    if found:
        raise PerchError(ExitCode.INCONCLUSIVE, found, file=path.name)
    rounds = list(_rounds(Flows(plan), again.rounds, path.name, retry=True))
    found = _joined(_retry_faults([flow for turn in rounds for flow in turn.flows], plan))
    if found:
        raise PerchError(ExitCode.INCONCLUSIVE, found, file=path.name)
    return rounds


def with_retry(plan: Plan, path: Path) -> tuple[Plan, str | None]:
    """The plan with the marked repeats of plan.retry.json, or why these do not count."""
    if not (path.exists() or path.is_symlink()):
        return plan, None
    try:
        rounds = _repeats(plan, path)
    except PerchError as error:
        return plan, error.what
    return msgspec.structs.replace(plan, rounds=plan.rounds + rounds), None


def is_imported(plan: Plan) -> bool:
    """Whether the run is imported; all flows of a plan are, or none."""
    return next(plan.flows()).imported is not None
