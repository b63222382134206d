"""The registry of checks, and what a check sees of a run.

A check is one function; it yields the findings of one family of ids (`ceiling`, `ceiling/unknown`):

    @check(family="ceiling", order=110, columns=("bandwidth.gbit_s",), criterion="possible",
           source=design("ceiling of a link"))
    def ceiling(run: RunView) -> Iterator[Check]:
        yield Check(id="ceiling", title="No result above line rate",
                    fault="Results above line rate", status="pass", measured=97.1)

Every module of this package is loaded; a new file is a new check.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from perch.errors import ExitCode, PerchError
from perch.judge.columns import COLUMNS
from perch.judge.manifest import Manifest
from perch.judge.switches import SwitchFacts
from perch.judge.trail import Trail
from perch.model.baseline import Baseline
from perch.model.figures import rounded
from perch.model.imported import Documents
from perch.model.limits import Limits
from perch.model.plan import Plan
from perch.model.text import did_you_mean, one_line
from perch.model.text import names as names
from perch.model.text import plural as plural
from perch.model.verdict import EVIDENCE_MAX, Check
from perch.soak.told import Soak

T = TypeVar("T")


@dataclass(frozen=True)
class RunView:
    """A run as checks see it.

    records: the columns that the check asks for. seen: a row a flow (perch.judge.seen). trail: the
    readings of counters, in time. hosts: by name, perch.judge.hosts.HostFacts. retry_fault: why
    plan.retry.json does not count, or "". soak_state: "running", "stopped" or None. root: the run's
    directory. documents: of outputs that were measured elsewhere, what stands beside them.
    """

    plan: Plan
    records: pl.DataFrame
    seen: pl.DataFrame = field(default_factory=pl.DataFrame)
    trail: Trail = field(default_factory=Trail)
    hosts: Mapping[str, Any] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    baseline: Baseline = field(default_factory=Baseline)
    root: Path = Path()
    switches: SwitchFacts | None = None
    documents: Documents | None = None
    manifest: Manifest = field(default_factory=Manifest)
    retry_fault: str = ""
    soak_state: str | None = None
    soak: Soak | None = None
    _prepared: dict[Callable[..., Any], Any] = field(default_factory=dict, repr=False)

    def once(self, prepare: Callable[[RunView], T]) -> T:
        """What several checks need of the same run; each of them asks for the columns of it."""
        if prepare not in self._prepared:
            self._prepared[prepare] = prepare(self)
        result: T = self._prepared[prepare]
        return result


Judge = Callable[[RunView], Iterator[Check]]

#: The lines of the report's readiness; perch.views.readiness has their words.
CRITERIA = (
    "coverage", "limits", "path", "throughput", "possible", "latency", "tail", "loss", "integrity",
    "stability", "leaks", "repeatability", "drift", "counters", "agreement", "hosts", "switches",
    "evidence",
)  # fmt: skip

#: A check with another status has no fault to name.
_FAULTY = ("fail", "inconclusive", "advisory")


def shown(one: Check) -> Check:
    """The finding with its figure rounded, and each text on one line without control characters.

    Here what hosts, tools and people wrote enters the verdict, from which all else is drawn.
    """
    measured = rounded(one.measured) if isinstance(one.measured, float) else one.measured
    return msgspec.structs.replace(
        one,
        id=one_line(one.id),
        title=one_line(one.title),
        fault=one_line(one.fault) if one.fault and one.status in _FAULTY else msgspec.UNSET,
        measured=one_line(measured) if isinstance(measured, str) else measured,
        unit=one.unit and one_line(one.unit),
        source=one.source and one_line(one.source),
        evidence=[one_line(place) for place in one.evidence],
        remedy=one.remedy and one_line(one.remedy),
    )


@dataclass(frozen=True)
class Family:
    """A registered check. `criterion`: the part of readiness; `source`: of its findings."""

    name: str
    order: int
    columns: tuple[str, ...]
    criterion: str | None
    source: str | None
    judge: Judge

    def findings(self, run: RunView) -> Iterator[Check]:
        """What it finds, shown(); a finding without a source of its own has the family's."""
        seen = dataclasses.replace(run, records=run.records[list(self.columns)])
        for one in self.judge(seen):
            source = self.source if one.source is None else one.source
            yield shown(msgspec.structs.replace(one, source=source))


_families: dict[str, Family] = {}


def check(
    *,
    family: str,
    order: int,
    columns: tuple[str, ...] = (),
    criterion: str | None = None,
    source: str | None = None,
) -> Callable[[Judge], Judge]:
    """Registers a check. The verdict lists families by `order`.

    Raises:
        PerchError: another file has this family, or a column or the criterion is unknown.
    """

    def register(judge: Judge) -> Judge:
        file = judge.__code__.co_filename
        known = _families.get(family)
        if known is not None:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"check '{family}' is defined twice; the other is in {_file(known.judge)}",
                file=file,
                remedy="rename one of them",
            )
        unknown = [name for name in columns if name not in COLUMNS]
        if unknown:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"check '{family}' asks for the unknown column '{unknown[0]}'",
                file=file,
                remedy="take a name of COLUMNS in perch/judge/columns.py",
            )
        if criterion is not None and criterion not in CRITERIA:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"check '{family}' has the unknown criterion '{criterion}'"
                f"{did_you_mean(criterion, CRITERIA)}",
                file=file,
                remedy="take one of CRITERIA in perch/checks/__init__.py",
            )
        _families[family] = Family(family, order, columns, criterion, source, judge)
        return judge

    return register


def _file(judge: Judge) -> str:
    return judge.__code__.co_filename


@cache
def families() -> tuple[Family, ...]:
    """All checks, in the order of a verdict.

    Raises:
        PerchError: a check's file is not valid Python.
    """
    for module in pkgutil.iter_modules(__path__):
        try:
            importlib.import_module(f"{__name__}.{module.name}")
        except SyntaxError as error:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"it is not valid Python: {error.msg}",
                file=error.filename or module.name,
                place=f"line {error.lineno}",
                remedy="correct the file",
            ) from None
    return tuple(sorted(_families.values(), key=lambda family: (family.order, family.name)))


def all_findings(run: RunView) -> list[Check]:
    """What all checks find, in the order of a verdict.

    Raises:
        PerchError: two findings have one id, so that users' scripts could not tell them apart, or
            one has another family's, so that its criterion would not show it.
    """
    owners: dict[str, Family] = {}
    found: list[Check] = []
    for family in families():
        for one in family.findings(run):
            if one.id in owners:
                raise PerchError(
                    ExitCode.INCONCLUSIVE,
                    f"finding '{one.id}' is given twice; the other is in "
                    f"{_file(owners[one.id].judge)}",
                    file=_file(family.judge),
                    remedy="rename one of them",
                )
            if family.criterion is not None and one.id.split("/")[0] != family.name:
                raise PerchError(
                    ExitCode.INCONCLUSIVE,
                    f"finding '{one.id}' is of family '{family.name}', whose criterion "
                    f"'{family.criterion}' would not show it",
                    file=_file(family.judge),
                    remedy=f"name it '{family.name}', or '{family.name}/...'",
                )
            owners[one.id] = family
            found.append(one)
    return found


def design(section: str) -> str:
    """The source of a rule of Perch's own."""
    return f"design, {section}"


def first(ids: Iterable[str]) -> list[str]:
    """Evidence: the first of these."""
    return [one for _, one in zip(range(EVIDENCE_MAX), ids, strict=False)]
