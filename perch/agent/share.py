"""What the plan asks of this host: perch.share/1, as its agent reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.errors import AgentError, Exit
from perch.agent.place import Wish
from perch.plan.template import Facts, Template, facts_of, places_of

SCHEMA = "perch.share/1"

#: Seconds that a round may overrun its deadline while all is well: a child's last grace, meetings.
ROUND_GRACE = 10

#: The engine's own timeout (engine/src/cli/options_table.c), and seconds of the units of others.
TIMEOUT = "30s"
_UNITS = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}


def _seconds(duration: str) -> float:
    """Raises ValueError: it is not a time."""
    found = re.fullmatch(r"([0-9.]+)([a-z]+)", duration)
    if found is None or found[2] not in _UNITS:
        raise ValueError(f"'{duration}' is not a time")
    return float(found[1]) * _UNITS[found[2]]


class Flow(NamedTuple):
    """This host's end of a flow. Seconds.

    `near`: where its command works best.
    `number` of `total`: among those of all hosts. `latest_s`: after the agent's start, when every
    living host has come to this round. `remaining_s`: what is left of the plan, about.
    """

    id: str
    title: str
    role: str
    client: str
    server: str
    peer: str
    peer_address: str
    peer_port: int
    server_address: str
    server_port: int
    argv: list[str]
    is_external: bool
    listen_port: int
    near: Wish
    deadline_s: float
    number: int
    total: int
    latest_s: float
    remaining_s: float


class Share:
    """A host's share. Flows are spelled out round by round, as they are walked."""

    def __init__(self, document: dict[str, Any], engine: str, start_window_s: float) -> None:
        self.document = document
        self.run: str = document["run"]
        self.plan_sha256: str = document["plan_sha256"]
        self.host: str = document["host"]
        self.hosts: dict[str, Any] = document["hosts"]
        self.address: str = self.hosts[self.host]["address"]
        self.port: int = self.hosts[self.host]["port"]
        self._engine = engine
        self.window_s = start_window_s
        self._rounds: list[dict[str, Any]] = document["rounds"]
        self._templates: dict[tuple[str, int, str], Template] = {}
        self.own = sum(len(one.get("flows", [])) for one in self._rounds)

    @property
    def limit_s(self) -> float:
        """After which the whole plan is over, whatever happens."""
        rounds = sum(float(one["deadline_s"]) + ROUND_GRACE for one in self._rounds)
        return 2 * self.window_s + rounds

    @property
    def longest_timeout(self) -> str:
        """Of all tests: `perch serve` allows its clients no longer one than its own."""
        asked = [
            str(test["params"]["timeout"])
            for test in self.document["tests"].values()
            if test.get("params", {}).get("timeout")
        ]
        return max([TIMEOUT, *asked], key=_seconds)

    def peers(self) -> dict[str, str]:
        """The addresses of the hosts at the other ends."""
        return {name: host["address"] for name, host in self.hosts.items() if name != self.host}

    def devices(self, key: str = "name") -> list[str]:
        """Those that the plan names for this host; `netdev`: their interfaces, as far as named."""
        return [one[key] for one in self.hosts[self.host].get("devices", []) if one.get(key)]

    def rounds(self) -> Iterator[list[Flow]]:
        """Those in which this host has flows, in the order in which they are walked."""
        return filter(None, self.every_round())

    def turns(self) -> Iterator[tuple[float, list[Flow]]]:
        """Of a soak: the seconds of each round, and this host's flows of it."""
        return zip((one["estimate_s"] for one in self._rounds), self.every_round())

    def every_round(self) -> Iterator[list[Flow]]:
        """This host's flows of each round, which run at the same time.

        Each earlier round may have taken its deadline; the first one waits for late starters, and
        one dead peer may have cost a host a start window.
        """
        total = sum(one["size"] for one in self._rounds)
        left = float(sum(one["estimate_s"] for one in self._rounds))
        latest, index = 2 * self.window_s, 0
        for one in self._rounds:
            own = one.get("flows", [])
            together: dict[tuple[Any, ...], list[int]] = {}
            for _, name, client, server, rail, *_ in own:
                together.setdefault((name, client, server), []).append(rail)
            yield [
                self._flow(
                    key,
                    {**one, "together": together[tuple(key[:3])]},
                    (index + place + 1, total, latest, left),
                )
                for place, *key in own
            ]
            latest += one["deadline_s"] + ROUND_GRACE
            left -= one["estimate_s"]
            index += one["size"]

    def _flow(
        self, key: list[Any], turn: dict[str, Any], times: tuple[int, int, float, float]
    ) -> Flow:
        name, client, server, rail, repeat, _ = key
        role = "client" if client == self.host else "server"
        peer = server if role == "client" else client
        test = self.document["tests"][name]
        argv, is_external = self._argv(key, role, turn)
        if argv and argv[0] == "perch":
            argv = [self._engine, *argv[1:], "--port", str(self.hosts[peer]["port"])]
        port = self.hosts[server].get("tool_ports", {}).get(test["tool"])
        return Flow(
            f"{name}/{client}/{server}/{rail}/{repeat}",
            test["title"],
            role,
            client,
            server,
            peer,
            self.hosts[peer]["address"],
            self.hosts[peer]["port"],
            self.hosts[server]["address"],
            self.hosts[server]["port"],
            argv,
            is_external,
            0 if port is None else port + rail,
            self._near(test, rail),
            turn["deadline_s"],
            *times,
        )

    def _near(self, test: dict[str, Any], rail: int) -> Wish:
        """Sockets work where the host's address is; each stream may have a thread."""
        threads = int(test.get("params", {}).get("streams", 1))
        named = [] if test.get("carrier") == "sockets" else self.devices()[rail : rail + 1]
        return Wish(named[0] if named else "", threads)

    def _argv(self, key: list[Any], role: str, turn: dict[str, Any]) -> tuple[list[str], bool]:
        """This end's command, and whether the server has one of its own."""
        name, client, server, rail, _, slots = key
        test = self.document["tests"][name]
        ends = [self.hosts[client], self.hosts[server]]
        asked = test.get("params", {}).get("devices") if test["kind"] == "transfer" else None
        devices = min(len(places_of(asked, end.get("devices", []))) for end in ends)
        form = test["forms"][str(devices)]
        place = (name, devices, role)
        if place not in self._templates:
            self._templates[place] = Template(form.get(role, []))
        at_once = slots or [[turn["together"]]] * 2
        facts: dict[str, Facts] = {
            "client": facts_of(ends[0], devices, rail, *at_once[0]),
            "server": facts_of(ends[1], devices, rail, *at_once[1]),
            "round": {"seconds": str(turn["estimate_s"])},
        }
        return self._templates[place].expanded(facts), bool(form.get("server"))


def read(path: Path, host: str, engine: str, start_window_s: float) -> Share:
    """Raises AgentError: the file is no share of this host."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise AgentError(Exit.HOST, f"cannot read the plan {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise AgentError(Exit.HOST, f"cannot read the plan {path}: it is not JSON") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        has = "no schema" if schema is None else f'the schema "{schema}"'
        raise AgentError(
            Exit.HOST,
            f"the plan {path} has {has}; this agent reads {SCHEMA} (shares/{host}.json of a run)",
        )
    if document.get("host") != host:
        raise AgentError(
            Exit.HOST, f'the plan {path} is of host "{document.get("host")}", and not of "{host}"'
        )
    try:
        share = Share(document, engine, start_window_s)
        for _ in share.rounds():
            pass  # every command can be spelled out
        _ = share.limit_s, share.longest_timeout
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        lacks = (
            f"it lacks {error}" if isinstance(error, KeyError) else f"a value is wrong ({error})"
        )
        raise AgentError(
            Exit.HOST, f"the plan {path} is damaged: {lacks}; run the playbook again"
        ) from None
    return share
