"""How the fabric and its hosts were configured while they were measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from perch.model.sections import Fact
from perch.views import words
from perch.views.fabric import of_hosts
from perch.views.inputs import Environment, Interface, Run
from perch.views.ranks import grouped
from perch.views.table import Table, capped, left

#: What a reader calls the checks whose facts stand here, in this order.
_SETTINGS = {
    "qos-pfc": "Priority flow control (PFC)",
    "qos-buffers": "Receive buffers, headroom of PFC",
    "qos-pfc-watchdog": "PFC watchdog",
    "qos-pause": "Link pause",
    "qos-ets": "Classes (ETS)",
    "qos-dcbx": "Who owns DCBX",
    "qos-dscp-trust": "What the NIC trusts",
    "qos-dscp-priority": "DSCP to priority",
    "qos-roce-tos": "Traffic class of RoCE",
    "qos-path": "The way of a packet",
    "qos-ecn": "ECN",
    "qos-ecn-parameters": "ECN parameters",
    "qos-cnp": "Congestion notification packets",
    "slingshot-libfabric": "libfabric of Slingshot",
}
ROWS_MAX = 200


class Configuration(msgspec.Struct):
    lines: list[str]
    qos: Table
    versions: Table


def _where(fact: Fact, hosts: int) -> str:
    named = fact.get("hosts")
    if named is None:
        return "all hosts" if hosts > 1 else "the host"
    return words.cell(words.some(named, 8))


def _said(fact: Fact) -> str:
    found = fact.get("found")
    if fact["status"] == "unknown":
        return f"not known: {words.cell('not read' if found is None else found)}"
    return f"**{words.cell(found)}**" if fact["status"] == "bad" else words.cell(found)


def _qos(run: Run) -> Table:
    """A row for each setting and value; a setting that applies nowhere is left out."""
    rows = [
        [title, words.cell(fact.get("device")), _said(fact), _where(fact, len(run.plan.hosts))]
        for name, title in _SETTINGS.items()
        for fact in run.facts or []
        if fact["id"] == name and fact["status"] != "not_applicable"
    ]
    return capped(left("Setting", "Device", "Found", "Hosts"), rows, ROWS_MAX)


def _limits(run: Run) -> Iterator[str]:
    limits = run.limits.limits
    if not limits:
        yield "No limits: `inputs/limits.json` is missing or cannot be read."
        return
    name = words.cell(run.limits_name.name or run.plan.limits)
    title = run.limits_name.title
    required = sum(limit.is_required for limit in limits)
    yield (
        f"Limits *{name}*{'' if title is None else f' ({words.cell(title)})'}: {required} "
        f"required, {len(limits) - required} advisory. `inputs/limits.json` has the source of each."
    )
    own = sum(one.file in run.limits.files[1:] for one in limits)
    if own:
        verb = "is" if own == 1 else "are"
        yield f"{own} of these limits {verb} your site's own."


def _lines(run: Run) -> Iterator[str]:
    yield from _limits(run)
    if run.facts is None:
        why = "found no card" if run.hosts_checked else "did not run"
        yield (
            "Flow control, traffic classes and ECN of the hosts are unknown: the host checks "
            f"{why}."
        )
    if run.documents.switches:
        yield "The switches were not read; the document's statements are [below](#switches)."
    elif not run.switches:
        yield "The switches were not read."
    yield (
        "This version does not read ECN limits and buffers (PFC headroom) of switches: keep a copy "
        "of their configuration with this report."
    )


def _versions(run: Run) -> Table:
    found = [
        (name, version, host)
        for host, environment in run.environments.items()
        for name, version in (environment.versions or {}).items()
        if version is not None
    ]
    rows = [
        [
            words.cell(group[0][0]),
            words.cell(group[0][1]),
            of_hosts([host for _, _, host in group], len(run.environments)),
        ]
        for group in grouped(found, lambda one: (one[0], words.line(one[1])))
    ]
    return Table(left("Program", "Version", "Hosts"), rows)


def configuration(run: Run) -> Configuration:
    return Configuration(list(_lines(run)), _qos(run), _versions(run))


# ---- the hosts -----------------------------------------------------------------------------------


def _interface(one: Interface) -> str:
    said = f"{one.state or 'state unknown'}, MTU {words.whole(one.mtu_bytes)}"
    said += f", {words.figure(one.rate_gbit_s)} Gb/s" if one.rate_gbit_s else ""
    return f"{said}, {one.driver}" if one.driver else said


def _facts(environment: Environment) -> Iterator[tuple[str, Any]]:
    cpu = environment.cpu
    yield "Host name", environment.hostname
    yield "Operating system", environment.os
    yield "Kernel", environment.kernel
    cpus = f"{cpu.model or 'unnamed'} ({words.whole(cpu.cores)} CPUs)" if cpu else None
    yield "Processor", cpus
    yield "Memory", words.memory_size(environment.memory_bytes)
    for name, value in (environment.tuning or {}).items():
        yield f"Setting {name.replace('_', ' ')}", value
    for one in environment.interfaces or []:
        yield f"Interface {one.name or '?'}", _interface(one)


def _fact_text(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return re.sub(r"\s+", " ", value) if isinstance(value, str) else words.line(value)


def hosts_table(run: Run) -> Table:
    """A row for each fact and value, so that 2 hosts and 500 fit the same table."""
    values: dict[str, list[tuple[str, str]]] = {}
    order: dict[str, int] = {}
    for host, environment in run.environments.items():
        for place, (fact, value) in enumerate(_facts(environment)):
            order.setdefault(fact, place)
            values.setdefault(fact, []).append((_fact_text(value), host))
    rows = [
        [
            words.cell(fact),
            words.cell(group[0][0]),
            of_hosts([host for _, host in group], len(run.environments)),
        ]
        for fact in sorted(values, key=lambda fact: (order[fact], fact))
        for group in grouped(values[fact], lambda one: (one[0],))
    ]
    return Table(left("Fact", "Value", "Hosts"), rows)
