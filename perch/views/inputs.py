"""Everything that a report is drawn from, read in one place: a judged run and its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from perch.errors import ExitCode, PerchError
from perch.judge import host_lines, planned
from perch.judge.hosts import ENVIRONMENTS
from perch.judge.raw import RawFiles
from perch.model import derived
from perch.model.imported import Documents
from perch.model.limit_sets import decoded as decoded_limits
from perch.model.limits import Limits
from perch.model.plan import Plan
from perch.model.record import Number
from perch.model.sections import Fact, Switch
from perch.model.verdict import Verdict
from perch.run import folder
from perch.views import plan as plan_view
from perch.views.references import Reference, read_references

_T = TypeVar("_T")

VERDICT, RECORDS, INTERVALS = folder.VERDICT, folder.RECORDS, folder.INTERVALS


# ---- what agents found ---------------------------------------------------------------------------


class Cpu(msgspec.Struct):
    model: str | None = None
    cores: Number | None = None


class Interface(msgspec.Struct):
    name: str | None = None
    state: str | None = None
    mtu_bytes: Number | None = None
    rate_gbit_s: Number | None = None
    driver: str | None = None


class Device(msgspec.Struct):
    name: str | None = None
    driver: str | None = None
    firmware: str | None = None


class Port(msgspec.Struct):
    netdev: str | None = None


class Ports(msgspec.Struct):
    rdma: dict[str, Port] = {}
    cxi: dict[str, Port] = {}


class Idle(msgspec.Struct):
    before: Ports | None = None


class Environment(msgspec.Struct):
    """perch.environment/1 or /2, as far as a report shows it. The first has `idle`."""

    schema: str = ""
    hostname: str | None = None
    os: str | None = None
    kernel: str | None = None
    cpu: Cpu | None = None
    memory_bytes: Number | None = None
    tuning: dict[str, Any] | None = None
    interfaces: list[Interface] | None = None
    rdma: list[Device] | None = None
    cxi: list[Device] | None = None
    versions: dict[str, Any] | None = None
    idle: Idle | None = None
    address_interface: str = ""
    idle_samples: tuple[int, int] | None = None

    @property
    def devices(self) -> list[Device]:
        return [*(self.rdma or []), *(self.cxi or [])]


# ---- runs that were accepted before --------------------------------------------------------------


class PastFigure(msgspec.Struct):
    value: Number
    of: int = 0


class PastRun(msgspec.Struct):
    """perch.history/1: one accepted run."""

    run: str
    terms: list[str]
    figures: dict[str, PastFigure]
    accepted: str | None = None
    verdict: str | None = None
    label: str | None = None


# ---- a run ---------------------------------------------------------------------------------------


class LimitsName(msgspec.Struct):
    name: str | None = None
    title: str | None = None


class Run(msgspec.Struct):
    """A judged run as views see it.

    environments: of the hosts that left one, in the plan's order. mark: perch.model.derived.
    """

    root: Path
    plan: plan_view.PlanDigest
    verdict: Verdict
    records: pl.DataFrame
    limits: Limits
    limits_name: LimitsName
    environments: dict[str, Environment]
    history: list[PastRun]
    references: list[Reference]
    mark: str

    @property
    def soak(self) -> dict[str, Any] | None:
        return self.verdict.soak if isinstance(self.verdict.soak, dict) else None

    @property
    def facts(self) -> list[Fact] | None:
        """What the hosts' checks found; None: they did not run."""
        return self.verdict.facts if isinstance(self.verdict.facts, list) else None

    @property
    def hosts_checked(self) -> bool:
        """Whether host-check left an answer that was judged."""
        return any(check.id.startswith("host_check/") for check in self.verdict.checks)

    @property
    def documents(self) -> Documents:
        """What stands beside imported outputs."""
        found = self.verdict.documents
        return found if isinstance(found, Documents) else Documents()

    @property
    def switches(self) -> list[Switch]:
        return self.verdict.switches if isinstance(self.verdict.switches, list) else []


_environment = msgspec.json.Decoder(Environment)
_past = msgspec.json.Decoder(PastRun)
_name = msgspec.json.Decoder(LimitsName)


def _content(path: Path) -> bytes:
    """Of a regular file; nothing of any other."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""


def _decoded(decoder: msgspec.json.Decoder[_T], content: bytes) -> _T | None:
    try:
        return decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _environments(root: Path, run: str, hosts: list[str]) -> dict[str, Environment]:
    files, found = RawFiles(root), {}
    for host in hosts:
        one = files.document(f"raw/{host}/environment.json", _environment)
        if one is None or one.schema not in ENVIRONMENTS:
            continue
        if one.idle_samples:
            one.idle = _idle(files, run, host, one)
        found[host] = one
    return found


def _idle(files: RawFiles, run: str, host: str, environment: Environment) -> Idle | None:
    """The devices that were read while the host was idle."""
    samples, interface = environment.idle_samples, environment.address_interface
    readings = host_lines.idle(files, run, host, samples, interface)
    if readings is None or readings.before is None:
        return None
    rdma, cxi = (
        {name: Port(block.netdev) for name, block in blocks.items()}
        for blocks in (readings.before.layout.rdma, readings.before.layout.cxi)
    )
    return Idle(Ports(rdma, cxi))


def _history(root: Path) -> list[PastRun]:
    """Oldest first; none at all where a line of them is damaged."""
    lines = _content(root / "inputs/history.jsonl").splitlines()
    runs = [_decoded(_past, line) for line in lines if line.strip()]
    return [] if None in runs else [run for run in runs if run is not None]


def _run(
    root: Path, plan: Plan | None, verdict: Verdict, records: pl.DataFrame, limits: Limits
) -> Run:
    digest = plan_view.digest(plan) if plan else plan_view.unreadable(verdict.run)
    name = _decoded(_name, _content(root / "inputs/limits.json"))
    return Run(
        root=root,
        plan=digest,
        verdict=verdict,
        records=records,
        limits=limits,
        limits_name=name or LimitsName(),
        environments=_environments(root, digest.run, list(digest.hosts)),
        history=_history(root),
        references=read_references(root),
        mark=derived.mark(root),
    )


def _plan(root: Path) -> Plan | None:
    try:
        return planned.read_plan(root / "plan.json")
    except PerchError:
        return None


# ---- a run that was judged before ----------------------------------------------------------------


def read_run(root: Path) -> Run:
    """A run as its last verdict has it. Raises PerchError where it was not judged."""
    for name in (VERDICT, RECORDS):
        if not (root / name).is_file():
            raise PerchError(
                ExitCode.USAGE,
                f"{name} is missing",
                file=root,
                remedy=folder.first_judge(root, root),
            )
    verdict, records = folder.verdict(root), folder.frame(root)
    limits = decoded_limits(_content(root / "inputs/limits.json") or None)
    return _run(root, _plan(root), verdict, records, limits)


def of_judged(
    root: Path, plan: Plan | None, verdict: Verdict, records: pl.DataFrame, limits: Limits
) -> Run:
    """A run that was judged just now; `plan` is None where it cannot be used."""
    return _run(root, plan, verdict, records, limits)
