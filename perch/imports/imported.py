"""The records of a run whose outputs were measured elsewhere (`perchctl import`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from perch.imports.documents import Document, ReadFile, read_files
from perch.imports.output import Result, refused
from perch.imports.stages import candidate, stages
from perch.judge import recorded
from perch.judge.raw import RawFiles, TooLargeError
from perch.judge.recorded import OfFlow
from perch.judge.scope import LOCAL_LAYERS, device, weakest
from perch.model.imported import Documents
from perch.model.part import Part
from perch.model.plan import Expect, Flow, Plan
from perch.model.record import ROLES, Link, Number, Path, Record, Scope
from perch.tools import is_tcp

#: The host that no output names.
UNKNOWN = "unknown"

NO_PROOF = "measured elsewhere: no counters show what the devices carried"

_SOFT_DEVICE = re.compile("rxe|siw")
_SOCKETS = re.compile("tcp|udp|shm|sm2|net|sockets")

# ---- one record ----------------------------------------------------------------------------------


def shown_scope(part: Part) -> Scope:
    """Sockets, soft devices and simulations show; nothing in an output proves hardware."""
    devices = [name for role in ROLES if (name := device(part, role))]
    if part.simulated or any(name.startswith("sim_") for name in devices):
        return "simulated"
    if (
        any(_SOFT_DEVICE.match(name) for name in devices)
        or part.backend in ("tcp", "null")
        or (part.link is not None and part.link.layer in LOCAL_LAYERS)
        or _SOCKETS.match(part.provider or "")
        or (part.tool is not None and is_tcp(part.tool.name))
    ):
        return "software"
    return "imported"


def _link(part: Part, fabric: str, rate_gbit_s: Number | None) -> Link:
    link = part.link or Link()
    link.layer = link.layer or fabric or None
    if link.rate_gbit_s is None and link.layer not in LOCAL_LAYERS:
        link.rate_gbit_s = rate_gbit_s
    return link


def record(
    plan: Plan, flow: Flow, expect: Expect, result: Result, rate_gbit_s: Number | None
) -> Record:
    """The record of a result. `rate_gbit_s`: of the link, in words or given by a person."""
    part, origin = result.part, result.record
    of_flow = OfFlow()
    if origin is not None:
        of_flow = OfFlow(events=origin.events, clock_skew_s=origin.clock_skew_s)
    made = recorded.record(
        plan,
        flow,
        expect,
        part,
        scope=weakest(shown_scope(part), origin.scope if origin else "imported", "imported"),
        link=_link(part, plan.hosts[flow.client].fabric, rate_gbit_s),
        path=Path(state="not_judged", reason=NO_PROOF) if result.is_ok else None,
        of_flow=of_flow,
    )
    for side in (made.client, made.server):
        side.address = side.address or None
    return made


# ---- as planned ----------------------------------------------------------------------------------


def expected(result: Result) -> Expect:
    """What a plan expects of a result; of what cannot be used it knows no size."""
    part = result.part
    if not result.is_ok or part.params is None:
        return Expect()
    size = part.params.size_bytes
    if part.kind != "transfer":
        return Expect(size_bytes=size)
    pair = part.transfer.pair if part.transfer else None
    return Expect(kind="transfer", size_bytes=size, batch=part.params.batch, pair=pair)


def _place(flow: Flow) -> str:
    source = flow.imported
    return f"{source.file}:{source.line}" if source else ""


def _matched(flow: Flow, document: Document) -> list[Result]:
    """One result for each that the plan expects, in its order."""
    file, line = document.output.file, document.output.line
    left: dict[Expect, list[Result]] = {}
    for result in document.results:
        if result.part.error is not None:
            message = result.part.error.message
            result.part.error.message = f"{file}:{result.line}: {message}"
        left.setdefault(expected(result), []).append(result)
    matched = []
    for expect in flow.expect:
        same = left.get(expect, [])
        if not same:
            matched.append(refused(f"{_place(flow)} holds no such result", line))
        elif len(same) > 1 and same[0].is_ok:
            matched.append(refused(f"{_place(flow)} holds {len(same)} such results", line))
        else:
            matched.append(same.pop(0))
    if len(document.results) > len(flow.expect):
        matched[-1] = refused(f"{_place(flow)} holds more than the plan expects", line)
    return matched


def _missing(flow: Flow) -> list[Result]:
    return [refused(f"{_place(flow)} holds no output", 0) for _ in flow.expect]


def _unplanned(document: Document) -> tuple[Flow, list[Result]]:
    output = document.output
    flow = Flow(
        id=f"not-planned/{UNKNOWN}/{UNKNOWN}/0/{document.number}",
        test="not-planned",
        repeat=document.number,
        tool=output.tool,
        kind="bandwidth",
        client=UNKNOWN,
        server=UNKNOWN,
        scope="imported",
        expect=[Expect()],
    )
    why = f"{output.file}:{output.line} holds an output that the plan does not know"
    return flow, [refused(why, output.line)]


def _read(files: RawFiles, names: Sequence[str]) -> Iterator[ReadFile]:
    def contents(name: str) -> bytes:
        try:
            return files.read(name)
        except TooLargeError:
            return b""  # its outputs are missing

    return read_files((name, contents(name)) for name in names)


def _of_flows(
    flows: Sequence[Flow], documents: Iterable[Document]
) -> Iterator[tuple[Flow, list[Result], Document | None]]:
    """Both are in the order of files and lines: a flow that was passed over is missing."""
    index = {_place(flow): n for n, flow in enumerate(flows)}
    following = 0
    for document in documents:
        at = index.get(f"{document.output.file}:{document.output.line}")
        if at is None or at < following:
            yield *_unplanned(document), None
            continue
        for flow in flows[following:at]:
            yield flow, _missing(flow), None
        yield flows[at], _matched(flows[at], document), document
        following = at + 1
    for flow in flows[following:]:
        yield flow, _missing(flow), None


def read(plan: Plan, files: RawFiles) -> tuple[list[Record], Documents]:
    """One record for each `expect` of the plan, in its order; what the documents say beside them.

    What the plan expects and no file holds is an error, and so is an output that the plan does not
    know: files may have been changed after the plan.
    """
    flows = list(plan.flows())
    names = list(dict.fromkeys(flow.imported.file for flow in flows if flow.imported))
    records, staged, switches = [], [], []

    def documents() -> Iterator[Document]:
        for one in _read(files, names):
            switches.extend(one.switches)
            yield from one.documents

    for flow, results, document in _of_flows(flows, documents()):
        link = (flow.imported.link if flow.imported else None) or {}
        for expect, result in zip(flow.expect, results, strict=True):
            records.append(record(plan, flow, expect, result, link.get("rate_gbit_s")))
        if document is not None and (stage := candidate(flow.test, document)):
            staged.append(stage)
    return records, Documents(stages(staged), switches)
