"""Commands of a plan's tests, made those of a flow.

The agent has a copy of this file on every host: it needs Python 3.9 and its standard library, no
more. A template is a list of words, and of lists of words that are left out together where the ends
of the flow lack what one of them names. `{client.KEY}` and `{server.KEY}` stand for what the plan
says of the ends:

    address             the host's address
    is_ipv6             nothing, where the address is one of IPv6
    ports.TOOL          the port of a tool's server
    device.KEY          of the host's first device: name, netdev, ib_port, gid_index, svc_id, vni
    devices.KEY         the same of all devices that the flow uses, with commas between them

and `{round.seconds}` for the time that a round of a soak lasts. `{KEY=VALUE}` has a default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

# as Python 3.9 has them
Word = Union[str, list[str]]  # noqa: UP007
Facts = dict[str, Optional[str]]  # noqa: UP045

_placeholder = re.compile(r"\{((?:client|server|round)\.[A-Za-z0-9_.-]+)(?:=([^{}]*))?\}")


def _text(value: Any) -> str | None:
    """A fact as a word; None where there is none."""
    if value is None or value is False:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def facts_of(end: str, host: Mapping[str, Any], devices: int) -> Facts:
    """What placeholders stand for at one end.

    end: client or server.
    host: {address, devices: [{name, ...}], tool_ports: {TOOL: port}}, as the plan has it.
    devices: how many of the host's devices the flow uses, the first ones.
    """
    address = host["address"]
    facts: Facts = {
        f"{end}.address": address,
        f"{end}.is_ipv6": "" if ":" in address else None,
    }
    for tool, port in host.get("tool_ports", {}).items():
        facts[f"{end}.ports.{tool}"] = str(port)
    used = host.get("devices", [])[:devices]
    for key in sorted({key for device in used for key in device}):
        values = [_text(device.get(key)) for device in used]
        facts[f"{end}.device.{key}"] = values[0]
        facts[f"{end}.devices.{key}"] = ",".join(value or "" for value in values)
    return facts


def _filled(word: str, facts: Facts) -> str | None:
    """A word with its placeholders replaced; None where a fact is missing."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        fact = facts.get(match[1])
        if fact is None:
            fact = match[2]
        if fact is None:
            missing = True
            return ""
        return fact

    filled = _placeholder.sub(value, word)
    return None if missing else filled


def expanded(template: Sequence[Word], facts: Facts) -> list[str]:
    """The command of one end of a flow.

    Raises:
        KeyError: a word outside of a list names what the ends lack.
    """
    words: list[str] = []
    for part in template:
        group = [part] if isinstance(part, str) else part
        filled = [_filled(word, facts) for word in group]
        whole = [word for word in filled if word is not None]
        if len(whole) == len(group):
            words += whole
        elif isinstance(part, str):
            raise KeyError(part)
    return words
