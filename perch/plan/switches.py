"""Switches of an inventory: how each is read, its ports to hosts, its lossless priorities."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from typing import Any

from perch.errors import ExitCode, PerchError
from perch.model.plan import PlanSwitch
from perch.plan.hosts import default_scope

PROVIDERS = ("nxos", "eos", "sonic", "cumulus", "infiniband")


def _priorities(variables: Mapping[str, Any]) -> Any:
    for name in ("switch_check_priorities", "host_check_pfc_priorities"):
        if variables.get(name) is not None:
            return variables[name]
    return []


def _faults(variables: Mapping[str, Any]) -> Iterator[str]:
    provider = variables.get("switch_check_provider")
    ports, priorities = variables.get("switch_check_ports") or {}, _priorities(variables)
    if provider not in PROVIDERS:
        known = f"{', '.join(PROVIDERS[:-1])} or {PROVIDERS[-1]}"
        yield f"switch_check_provider is {json.dumps(provider)}, not {known}"
    if not isinstance(ports, dict) or not all(
        isinstance(port, (str, int, float, list)) for port in ports.values()
    ):
        said = "not a port, or a list of ports, for each host"
        yield f"switch_check_ports is {json.dumps(ports)}, {said}"
    if not isinstance(priorities, list) or any(one not in range(8) for one in priorities):
        said = "not a list of priorities from 0 to 7"
        yield f"switch_check_priorities is {json.dumps(priorities)}, {said}"


def _ports(given: Mapping[str, Any], hosts: Container[str]) -> dict[str, list[str]]:
    """What is named of hosts that do not take part is left out."""
    return {
        host: [str(port) for port in (ports if isinstance(ports, list) else [ports])]
        for host, ports in given.items()
        if host in hosts
    }


def switch(name: str, variables: Mapping[str, Any], hosts: Container[str]) -> PlanSwitch:
    """Raises PerchError where switch_check does not take a variable."""
    for fault in _faults(variables):
        raise PerchError(ExitCode.USAGE, fault, place=f"switch {name}")
    return PlanSwitch(
        provider=variables["switch_check_provider"],
        scope=default_scope(variables.get("perch_scope"), variables.get("perch_fabric")),
        priorities=_priorities(variables),
        ports=_ports(variables.get("switch_check_ports") or {}, hosts),
    )
