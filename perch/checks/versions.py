"""Have both ends of each flow the same versions of tools and libraries?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from perch.checks import RunView, check, design, first, names
from perch.judge.hosts import HostFacts
from perch.model.plan import Flow
from perch.model.verdict import Check
from perch.tools import TOOLS

#: The engine's backends that go through libfabric.
OF_LIBFABRIC = ("ofi", "cxi")


def _keys(name: str, backend: str | None) -> Iterator[str]:
    """What a flow of this tool uses of its hosts, by its key in `versions` of environment.json."""
    tool = TOOLS.get(name)
    yield (tool and tool.version_key) or name
    if name == "perch" and backend in OF_LIBFABRIC:
        yield "libfabric"


def _hosts(flows: Iterable[Flow]) -> dict[tuple[str, str | None], dict[str, None]]:
    """The hosts of the flows of each tool and backend."""
    found: dict[tuple[str, str | None], dict[str, None]] = {}
    for flow in flows:
        if flow.imported is None:
            of = found.setdefault((flow.tool, flow.backend), {})
            of[flow.client] = of[flow.server] = None
    return found


def _used(run: RunView) -> dict[str, dict[str, None]]:
    """The hosts at which each of these is used, in the order of the plan's tools."""
    used: dict[str, dict[str, None]] = {}
    for (tool, backend), hosts in _hosts(run.plan.flows()).items():
        for key in _keys(tool, backend):
            used.setdefault(key, {}).update(hosts)
    return used


@check(
    family="versions",
    order=46,
    source=design("figures of one test are compared with each other: one version measures them"),
)
def versions(run: RunView) -> Iterator[Check]:
    """Hosts with different versions are not comparable: a warning, as each may be sound."""
    told, unlike, evidence = [], [], dict[str, None]()
    for key, hosts in _used(run).items():
        by_version: dict[str, list[str]] = {}
        for host in hosts:
            facts = run.hosts.get(host) or HostFacts()
            if facts.environment:  # a host without one is found by itself
                by_version.setdefault(str(facts.versions.get(key) or ""), []).append(host)
        unknown = by_version.pop("", [])
        told += [f"{key} {version}" for version in by_version]
        if unknown:
            unlike.append(f"{names(unknown, 3)} names no version of {key}")
            evidence.update(dict.fromkeys(unknown))
        if len(by_version) > 1:
            parts = [f"{version} on {names(of, 3)}" for version, of in by_version.items()]
            unlike.append(f"{key}: {', '.join(parts)}")
            evidence.update(dict.fromkeys(host for of in by_version.values() for host in of))
    if not told and not unlike:
        return
    finding = Check(
        id="versions",
        title="Hosts have the same versions of tools and libraries",
        fault="Hosts have different versions of tools or libraries",
        status="advisory" if unlike else "pass",
        measured="; ".join(unlike or told),
    )
    if unlike:
        finding.evidence = first(evidence)
        finding.remedy = "install one version on all hosts, and measure again"
    yield finding
