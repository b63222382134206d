"""What a flow's planned commands say of the device and the port that each end must use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from perch.model.plan import Flow
from perch.model.record import Role

_PERFTEST = {"device": ("-d", "--ib-dev"), "port": ("-i", "--ib-port")}
_PERCH = {"device": "device", "port": "ib-port"}


def option_value(argv: Sequence[str], *names: str) -> str | None:
    """What follows one of these options; the last one counts. None where none has a value."""
    last = -1
    for name in names:
        if name in argv:  # seldom: few commands have a given option
            backwards = argv[-2::-1]
            if name in backwards:
                last = max(last, len(argv) - 2 - backwards.index(name))
    return None if last < 0 else argv[last + 1]


def planned(flow: Flow, role: Role, what: Literal["device", "port"]) -> str | None:
    """The device or the port that the command names for one end; None leaves it to the tool."""
    if flow.tool == "perch":
        return option_value(flow.client_argv, _own(role) + _PERCH[what])
    argv = flow.client_argv if role == "client" else flow.server_argv
    if flow.tool == "perftest":
        return option_value(argv, *_PERFTEST[what])
    if flow.tool == "cxi" and what == "device":
        return option_value(argv, "-d", "--device")
    return None


def planned_devices(flow: Flow, role: Role) -> list[str] | None:
    """The devices of a transfer at one end, by pair; None leaves them to the engine."""
    named = option_value(flow.client_argv, _own(role) + "devices", _own(role) + "device")
    return None if named is None else named.split(",")


def _own(role: Role) -> str:
    return "--server-" if role == "server" else "--"
