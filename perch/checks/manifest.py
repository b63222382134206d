"""Are the raw files as they were fetched?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perch.checks import RunView, check, first, names
from perch.model.verdict import Check


class _Fault(NamedTuple):
    """A kind of fault: the title, its words, what one of them and several are or do, what to do."""

    title: str
    fault: str
    one: str
    many: str
    remedy: str


_FAULTS = {
    "changed": _Fault(
        "No file was edited since it was fetched",
        "Raw files were edited after they were fetched",
        "file differs from raw/manifest.sha256",
        "files differ from raw/manifest.sha256",
        "do not trust this run: restore the files from where they were fetched, or measure again",
    ),
    "missing": _Fault(
        "No file was removed since it was fetched",
        "Raw files were removed after they were fetched",
        "file of raw/manifest.sha256 is not there",
        "files of raw/manifest.sha256 are not there",
        "restore them from where they were fetched, or measure again",
    ),
    "new": _Fault(
        "No file was added since all were fetched",
        "Raw files were added after all were fetched",
        "file is not in raw/manifest.sha256",
        "files are not in raw/manifest.sha256",
        "find out who put them there; where the playbook did, run perchctl seal before judging",
    ),
    "line": _Fault(
        "Each line of the manifest is valid",
        "Lines of the manifest are invalid",
        "line of raw/manifest.sha256 is not in the format of sha256sum, number",
        "lines of raw/manifest.sha256 are not in the format of sha256sum, numbers",
        "restore raw/manifest.sha256, or measure again",
    ),
    "unplanned": _Fault(
        "Every output belongs to a planned flow",
        "Outputs belong to flows that were not planned",
        "folder belongs to flows that are not in the plan",
        "folders belong to flows that are not in the plan",
        "restore the plan that was measured; where two runs were mixed, keep their files apart",
    ),
    "odd": _Fault(
        "Every line of the raw files can be used",
        "Lines of raw files cannot be used",
        "line cannot be used",
        "lines cannot be used",
        "restore the file from its host, or measure again",
    ),
}


def _must_be_sealed(run: RunView) -> bool:
    """A run of hardware that is over: the playbook has sealed it before it was judged."""
    hardware = any(host.scope == "hardware" for host in run.plan.hosts.values())
    return hardware and run.soak_state != "running"


@check(
    family="manifest",
    order=910,
    source="design, raw/ is what the hosts sent; raw/manifest.sha256 was made when it had been "
    "fetched",
)
def manifest(run: RunView) -> Iterator[Check]:
    found = run.manifest
    whole = True
    for kind, fault in _FAULTS.items():
        places: list[str] = getattr(found, "lines" if kind == "line" else kind)
        if not places:
            continue
        whole = False
        what = fault.one if len(places) == 1 else fault.many
        yield Check(
            id=f"manifest/{kind}",
            title=fault.title,
            fault=fault.fault,
            status="inconclusive",
            measured=f"{len(places)} {what}: {names(places, 3)}",
            evidence=first(places),
            remedy=fault.remedy,
        )
    if not whole:
        return
    title = "The raw files are as they were fetched"
    if found.sealed is None:
        required = _must_be_sealed(run)
        yield Check(
            id="manifest",
            title=title,
            fault="Raw files have no manifest",
            status="inconclusive" if required else "not_judged",
            measured="there is no raw/manifest.sha256, so later edits cannot be detected",
            remedy="restore raw/manifest.sha256, or measure again; where you fetch by hand, run "
            "perchctl seal before judging"
            if required
            else None,
        )
    else:
        yield Check(
            id="manifest",
            title=title,
            status="pass",
            measured=found.sealed,
            unit="files as in raw/manifest.sha256",
        )
