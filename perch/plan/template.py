"""Commands of a plan's tests, made those of a flow.

The agent has a copy of this file on every host: it needs Python 3.9 and its standard library, no
more. A template is a list of words, and of lists of words that are left out together where the ends
of the flow lack what one of them names. `{client.KEY}` and `{server.KEY}` stand for what the plan
says of the ends:

    address             the host's address
    is_ipv6             nothing, where the address is one of IPv6
    ports.TOOL          the port of a tool's server; of rail N the Nth behind it
    device.KEY          of the flow's first device: name, netdev, ib_port, gid_index, svc_id, vni
    devices.KEY         the same of all devices that the flow uses, with commas between them
    devices.rail        likewise, each with its port and GID index, where it has any: NAME:PORT:GID
    rails.KEY           the devices of all rails that work at the same time, with commas between
    slot                K/N: each of these has N commands, and this is number K of its own

and `{round.seconds}` for the time that a round of a soak lasts. `{client.KEY=VALUE}` has a default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Optional, Union

# as Python 3.9 has them
Word = Union[str, list[str]]  # noqa: UP007
#: Eight dual-plane adapters of a host have 16 devices (real hosts with the most).
RAILS_MAX = 16

#: What a placeholder of one end stands for, by its key.
Facts = Mapping[str, Optional[str]]  # noqa: UP045
#: A word in pieces: literal ones, and placeholders as (end, key, default).
Piece = Union[str, tuple[str, str, Optional[str]]]  # noqa: UP007, UP045

_placeholder = re.compile(r"\{(client|server|round)\.([A-Za-z0-9_.-]+)(?:=([^{}]*))?\}")


def _text(value: Any) -> str | None:
    """A fact as a word; None where there is none."""
    if value is None or value is False:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def places_of(asked: Any, devices: Sequence[Mapping[str, Any]]) -> list[int]:
    """The places of those devices of a host that a test asks for.

    asked: its `devices`: nothing for the first, all, so many, or names and patterns. Where a host
    names none, the engine chooses one.
    """
    if asked is None or asked is False:
        return [0]
    if asked == "all":
        return list(range(min(max(len(devices), 1), RAILS_MAX)))
    if isinstance(asked, int):
        return list(range(asked))
    patterns = asked if isinstance(asked, list) else [asked]
    return [
        place
        for place, device in enumerate(devices[:RAILS_MAX])
        if any(fnmatchcase(str(device["name"]), pattern) for pattern in patterns)
    ]


def _rail(device: Mapping[str, Any]) -> str:
    """NAME, NAME:PORT or NAME:PORT:GID, as perch transfer takes it."""
    settings = [_text(device.get(key)) or "" for key in ("name", "ib_port", "gid_index")]
    return ":".join(settings).rstrip(":")


def facts_of(
    host: Mapping[str, Any],
    devices: int,
    rail: int = 0,
    together: Sequence[int] = (),
    slot: str = "",
) -> EndFacts:
    """What placeholders of one end stand for.

    host: {address, devices: [{name, ...}], tool_ports: {TOOL: port}}, as the plan has it.
    devices: how many of the host's devices the flow uses, from number `rail` on. together: the
    rails that work at the same time. slot: K/N, where they have several commands each.
    """
    address, facts = host["address"], EndFacts()
    facts["address"] = address
    facts["is_ipv6"] = "" if ":" in address else None
    for tool, port in host.get("tool_ports", {}).items():
        facts[f"ports.{tool}"] = str(port + rail)
    used = host.get("devices", [])[rail : rail + devices]
    for key in sorted({key for device in used for key in device}):
        values = [_text(device.get(key)) for device in used]
        facts[f"device.{key}"] = values[0]
        facts[f"devices.{key}"] = ",".join(value or "" for value in values)
    several = slot not in ("", "1/1")
    facts["slot"] = slot if several else None
    if len(together) > 1 or (several and used):
        at_once = [host["devices"][one] for one in together]
        for key in ("name", "netdev"):
            facts[f"rails.{key}"] = ",".join(_text(one.get(key)) or "" for one in at_once)
    if used:
        facts["devices.rail"] = ",".join(map(_rail, used))
    return facts


class _Group:
    """Words with placeholders, which are there together."""

    def __init__(self, word: Word) -> None:
        self._word = word
        self._pieces = [_pieces(one) for one in ([word] if isinstance(word, str) else word)]
        ends = {piece[0] for pieces in self._pieces for piece in pieces if isinstance(piece, tuple)}
        self.end = ends.pop() if len(ends) == 1 else ""

    def filled(self, facts: Mapping[str, Facts]) -> list[str]:
        """The words, none where they are left out. Raises KeyError as `Template.expanded`."""
        end = facts.get(self.end)
        if not isinstance(end, EndFacts):
            return self._filled(facts)
        found = end.filled.get(self)
        if found is None:
            found = end.filled[self] = self._filled(facts)
        return found

    def _filled(self, facts: Mapping[str, Facts]) -> list[str]:
        filled = [_filled(pieces, facts) for pieces in self._pieces]
        whole = [one for one in filled if one is not None]
        if len(whole) == len(filled):
            return whole
        if isinstance(self._word, str):
            raise KeyError(self._word)
        return []


class EndFacts(dict[str, Optional[str]]):  # noqa: UP045, as Python 3.9 has it
    """What placeholders of one end stand for.

    `filled`: what became of groups of words; `parts`: of templates, where it is the client.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[Template, list[list[str] | _Group]] = {}
        self.filled: dict[_Group, list[str]] = {}


def _pieces(word: str) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for match in _placeholder.finditer(word):
        pieces += [word[at : match.start()], (match[1], match[2], match[3])]
        at = match.end()
    return [piece for piece in [*pieces, word[at:]] if piece]


class Template:
    """A command with placeholders, read once and expanded for many flows."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._parts: list[list[str] | _Group] = []
        literal: list[str] = []
        for word in words:
            if isinstance(word, str) and not _placeholder.search(word):
                literal.append(word)
            else:
                self._parts += [literal, _Group(word)]
                literal = []
        self._parts.append(literal)

    def expanded(self, facts: Mapping[str, Facts]) -> list[str]:
        """The command of one end of a flow. facts: {client: ..., server: ..., round: ...}.

        Raises:
            KeyError: a word that is not left out names what the ends lack.
        """
        client, parts = facts.get("client"), self._parts
        if isinstance(client, EndFacts):
            if self not in client.parts:
                client.parts[self] = self._of_client(facts)
            parts = client.parts[self]
        words: list[str] = []
        for part in parts:
            words += part if isinstance(part, list) else part.filled(facts)
        return words

    def _of_client(self, facts: Mapping[str, Facts]) -> list[list[str] | _Group]:
        """The parts, with those that a client's facts fill: it has many flows."""
        parts: list[list[str] | _Group] = [[]]
        for part in self._parts:
            if not isinstance(part, list) and part.end == "client":
                part = part.filled(facts)
            if isinstance(part, list) and isinstance(parts[-1], list):
                parts[-1] = parts[-1] + part
            else:
                parts.append(part)
        return parts


def _filled(pieces: list[Piece], facts: Mapping[str, Facts]) -> str | None:
    """A word; None where a fact is missing."""
    word = ""
    for piece in pieces:
        if isinstance(piece, str):
            word += piece
            continue
        end, key, default = piece
        fact = facts[end].get(key) if end in facts else None
        if fact is None:
            fact = default
        if fact is None:
            return None
        word += fact
    return word
