"""What figures are worth: imported, simulated and software results never stand for hardware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first, plural
from perch.model.verdict import Bound, Check


@check(family="imported", order=20, source=design("imported figures can fail a run, never pass it"))
def imported(run: RunView) -> Iterator[Check]:
    """Perch saw neither path nor hosts, and cannot know what was kept back."""
    outputs = [flow.imported for flow in run.plan.flows() if flow.imported is not None]
    if not outputs:
        return
    files = sorted({one.file for one in outputs})
    links = sorted({(one.link["rate_gbit_s"], one.link["source"]) for one in outputs if one.link})
    yield Check(
        id="imported",
        title="Perch measured everything itself",
        fault="Results were imported, not measured by Perch",
        status="inconclusive",
        measured=f"{plural(len(outputs), 'output')} of {plural(len(files), 'file')} imported: no "
        "path proof, no counters, "
        "no host checks, and only what was handed in"
        + "".join(f"; link of {rate} Gb/s ({source})" for rate, source in links),
        limit=Bound(None, 0),
        unit="outputs",
        evidence=first(files),
        remedy="measure between the hosts with Perch (playbooks/site.yml) before they go into "
        "production",
    )


@check(family="simulated", order=50, columns=("flow", "scope"))
def simulated(run: RunView) -> Iterator[Check]:
    """A simulated device shows that Perch works, and nothing about the device."""
    flows = set(run.records.filter(pl.col("scope") == "simulated")["flow"])
    if not flows:
        return
    of_simulated = [flow for flow in run.plan.flows() if flow.id in flows]
    posing = [flow.id for flow in of_simulated if flow.scope in ("hardware", "software")]
    if not posing:
        yield Check(
            id="simulated",
            title="Simulated results",
            status="not_judged",
            measured=f"{plural(len(flows), 'flow')}, all planned as simulated",
            source=design("software and simulated scopes are named"),
        )
        return
    planned = " and ".join(sorted({flow.scope for flow in of_simulated if flow.id in set(posing)}))
    yield Check(
        id="simulated",
        title="No simulation stands for hardware",
        fault="Simulated results were planned as hardware or software",
        status="inconclusive",
        measured=f"{plural(len(posing), 'flow')} planned as {planned} ran on a simulated device",
        limit=Bound(None, 0),
        unit="flows",
        source=design("scope: hardware, software, simulated"),
        evidence=first(posing),
        remedy="unset FI_PROVIDER_PATH on the hosts and see that /sys/class/cxi lists the NIC, "
        "or plan these hosts with perch_scope: simulated",
    )


@check(
    family="software",
    order=60,
    columns=("id", "test", "scope", "status"),
    source=design("scope: hardware, software, simulated"),
)
def software(run: RunView) -> Iterator[Check]:
    """Results planned as hardware that came over sockets or a soft device.

    Sockets beside RDMA are planned as software, so records are counted test by test.
    """
    planned: Counter[str] = Counter()
    for flow in run.plan.flows():
        if flow.scope != "hardware":
            planned[flow.test] += len(flow.expect)
    soft = run.records.filter((pl.col("scope") == "software") & (pl.col("status") == "ok"))
    posing = 0
    evidence: list[str] = []
    for test, count in sorted(Counter(soft["test"]).items()):
        if count > planned[test]:
            posing += count - planned[test]
            evidence += soft.filter(pl.col("test") == test)["id"].head(20).to_list()
    if posing:
        yield Check(
            id="software",
            title="No software stands for hardware",
            fault="Software results were planned as hardware",
            status="inconclusive",
            measured=f"{plural(posing, 'record')} planned as hardware came over sockets or a "
            "device of software",
            limit=Bound(None, 0),
            unit="records",
            evidence=first(evidence),
            remedy="see which driver raw/HOST/environment.json names for the device (rdma_rxe and "
            "siw are software) and which "
            "provider the flow took; name the card (perch_devices), or plan these hosts with "
            "perch_scope: software",
        )
