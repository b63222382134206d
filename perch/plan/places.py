"""What the figures of a pair of hosts are worth, and how far apart the two are."""

from __future__ import annotations

import re

from perch.model.plan import PlanHost
from perch.model.record import Scope
from perch.model.suite import Carrier, Host

#: A host as it is planned, or as the plan has it.
Place = Host | PlanHost

#: Software RDMA devices by their usual names; one with another name is known by its driver, from
#: the record.
_soft = re.compile("rxe|siw")


def is_soft(device: str) -> bool:
    return _soft.match(device) is not None


def scope_of(carrier: Carrier, client: Place, server: Place, devices: int, rail: int = 0) -> Scope:
    """Hardware only where backend or provider is named and drives a card.

    The flow uses so many `devices` of each end, from number `rail` on.
    Which provider libfabric chose by itself is known only from the record.
    """
    if "simulated" in (client.scope, server.scope):
        return "simulated"
    if "software" in (client.scope, server.scope) or "loopback" in (client.fabric, server.fabric):
        return "software"
    if carrier == "rdma":
        used = [*client.devices[rail : rail + devices], *server.devices[rail : rail + devices]]
        return "software" if any(is_soft(device["name"]) for device in used) else "hardware"
    return "software" if carrier == "sockets" else "hardware"


def hop_class(client: Place, server: Place) -> str | None:
    """By switches and their groups; None where the inventory does not name both ends'."""
    grouped = client.group is not None and server.group is not None
    switched = client.switch is not None and server.switch is not None
    if switched and client.switch == server.switch:
        return "same_switch"
    if grouped and client.group != server.group:
        return "cross_group"
    return "same_group" if grouped and switched else None
