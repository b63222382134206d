"""Tests of a suite: which can be measured, by which hosts, with how many devices of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model import units
from perch.model.record import Number, Scope
from perch.model.suite import Carrier, Host, SuiteTest
from perch.model.text import did_you_mean
from perch.plan import capable, machines, rails, times
from perch.plan import soak as soaks
from perch.plan.engine import Check
from perch.plan.forms import command_of
from perch.plan.pairs import Pair, Turn, circle
from perch.plan.places import scope_of
from perch.plan.soak import Soak
from perch.plan.template import RAILS_MAX, Facts, Template, facts_of
from perch.tools import TOOLS
from perch.tools.command import Command

#: Of a transfer that chooses devices, what depends on their number: asked of each pair of hosts.
BY_DEVICES = ("threads", "cross_rail", "completion")

#: Devices of the ends of a command that only the engine's rules are asked of.
_SAMPLES = [{"name": f"device{i}", "netdev": f"netdev{i}"} for i in range(RAILS_MAX)]


class Fleet:
    """The hosts by name.

    `likeness`: hosts with the same number make the same pairings. `is_mixed`: several fabrics.
    """

    def __init__(self, hosts: dict[str, Host]) -> None:
        self.hosts = hosts
        self.is_mixed = len({host.fabric for host in hosts.values()}) > 1
        numbers: dict[Any, int] = {}
        self.likeness = {
            name: numbers.setdefault(_likeness(host), len(numbers)) for name, host in hosts.items()
        }


def _likeness(host: Host) -> Any:
    """What a pairing depends on: neither the host's address nor its name."""
    devices = tuple(
        (device["name"], device.get("ib_port"), device.get("gid_index")) for device in host.devices
    )
    can = tuple(host.can.items())
    return host.scope, host.fabric, host.slowdown, devices, can, host.drivers, host.gpus


class Pairing(NamedTuple):
    """What a test is between two hosts over one rail.

    `unfit`: why it cannot be. `devices`: of each in use.
    """

    devices: int
    scope: Scope
    unfit: str | None
    estimate_s: Number
    deadline_s: int


@dataclass
class PlannedTest:
    """A test, the hosts that can take part and why others cannot, and its rounds.

    The turns of a round run at the same time. `asked`: the pairs of each round, with or without a
    rail. `unfit`: those whose devices do not fit each other, which are in no turn, and why.
    """

    test: SuiteTest
    command: Command
    fleet: Fleet
    is_soak: bool = False
    able: list[str] = field(default_factory=list)
    unable: list[tuple[str, str]] = field(default_factory=list)
    asked: list[list[Pair]] = field(default_factory=list)
    rounds: list[list[Turn]] = field(default_factory=list)
    unfit: list[tuple[Pair, str]] = field(default_factory=list)
    _pairings: dict[tuple[int, int, int], Pairing] = field(default_factory=dict)
    _rails: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    @property
    def turns(self) -> list[Turn]:
        return [turn for turns in self.rounds for turn in turns]

    def between(self, client: str, server: str, rail: int = 0) -> Pairing:
        likeness = self.fleet.likeness
        key = likeness[client], likeness[server], rail
        found = self._pairings.get(key)
        if found is None:
            hosts = self.fleet.hosts
            found = self._pairings[key] = self._pairing(hosts[client], hosts[server], rail)
        return found

    def rails(self, client: str, server: str) -> list[int]:
        """Those that the test measures between two hosts."""
        likeness = self.fleet.likeness
        key = likeness[client], likeness[server]
        found = self._rails.get(key)
        if found is None:
            hosts = self.fleet.hosts
            found = [0]
            if self.test.kind == "transfer":
                found = rails.places(self.test, hosts[client])[:1]
            elif self.command.by_rail(self.test):
                bad = self.without(client) | self.without(server)
                both = rails.between(self.test, hosts[client], hosts[server])
                found = [rail for rail in both if rail not in bad]
            self._rails[key] = found
        return found

    def without(self, host: str) -> dict[int, str]:
        """What the test needs and a device of a host cannot do, by the device's place."""
        if self.command.carrier(self.test) != "rdma":
            return {}
        of = self.fleet.hosts[host]
        found = capable.without(self.test, of, rails.used(self.test, of))
        return {
            at: found[device["name"]]
            for at, device in enumerate(of.devices)
            if device["name"] in found
        }

    def by_rail(self, pairs: list[Pair]) -> list[Turn]:
        """The pairs again for each rail that they have, in the order of the rails."""
        of_pairs = [self.rails(*pair) for pair in pairs]
        found = sorted({rail for of_pair in of_pairs for rail in of_pair})
        if all(of_pair == found for of_pair in of_pairs):
            return [Turn(rail, pairs) for rail in found]
        return [
            Turn(rail, [one for one, has in zip(pairs, of_pairs, strict=True) if rail in has])
            for rail in found
        ]

    def pairings(self) -> Iterable[Pairing]:
        """All different ones between the hosts of its turns."""
        for turn in self.turns:
            for pair in turn.pairs:
                self.between(*pair, turn.rail)
        return self._pairings.values()

    def _pairing(self, client: Host, server: Host, rail: int) -> Pairing:
        test, command = self.test, self.command
        devices = 1
        if test.kind == "transfer":
            devices = min(len(rails.places(test, end)) for end in (client, server))
        scope = scope_of(command.carrier(test), client, server, devices, rail)
        ends = [rails.row(end, rail, devices) for end in (client, server)]
        unfit = (
            _across(command.carrier(test), client, server)
            or rails.apart(test, client, server)
            or command.unfit(test, ends[0], ends[1], devices)
        )
        if self.is_soak or unfit is not None:
            return Pairing(devices, scope, unfit, 0, 0)
        slowdown = max(client.slowdown, server.slowdown)
        if test.rails == "together":  # software shares the cores
            slowdown *= 1 if scope == "hardware" else len(self.rails(client.name, server.name))
        lag = max(times.lag_s(end.drivers) for end in (client, server))
        estimate = times.estimate_s(command, test, scope, slowdown, devices, lag)
        deadline = times.deadline_s(command, test, estimate, slowdown, devices)
        return Pairing(devices, scope, None, estimate, deadline)


def _across(carrier: Carrier, client: Host, server: Host) -> str | None:
    """Why no RDMA goes from one host to the other."""
    if carrier == "sockets" or client.fabric == server.fabric:
        return None
    return f"one is on {client.fabric}, the other on {server.fabric}"


# ---- whether a test can be measured at all -------------------------------------------------------


def _command(test: SuiteTest) -> Command:
    """Raises ValueError."""
    command = command_of(test)
    if command is not None:
        return command
    tool = TOOLS.get(test.tool)
    if tool is None or not tool.commands:
        known = [name for name, one in TOOLS.items() if one.commands]
        near = did_you_mean(test.tool, known) or f"; known are {', '.join(known)}"
        raise ValueError(f"no suite can ask for the tool '{test.tool}'{near}")
    near = did_you_mean(test.kind, tool.commands) or f"; known are {', '.join(tool.commands)}"
    raise ValueError(f"{test.tool} has no kind '{test.kind}'{near}")


def _asked_of_engine(test: SuiteTest, command: Command, soak: Soak | None) -> list[str]:
    """A command of the test; of a transfer by choice, what holds for any number of devices."""
    devices = test.get("devices", 1) if test.kind == "transfer" else 1
    if not isinstance(devices, int):
        given = {key: value for key, value in test.params.items() if key not in BY_DEVICES}
        test, devices = msgspec.structs.replace(test, params=given), 1
    facts: dict[str, Facts] = {
        end: facts_of({"address": end, "devices": _SAMPLES}, devices)
        for end in ("client", "server")
    }
    if soak is not None:
        facts["round"] = {"seconds": units.shown(soak.plan.turn_s or soak.plan.duration_s)}
    return Template(command.template(test, devices).client).expanded(facts)


def _round_refusals(test: SuiteTest, command: Command) -> Iterator[str]:
    """Of what says which flows there are, and which of them run together."""
    if test.directions == "both" and test.get("bidirectional"):
        yield "directions both needs a test that goes one way; bidirectional goes both ways"
    if test.kind == "transfer":
        if test.rails == "together":
            yield "a transfer moves data over all its devices together; leave rails out"
    elif test.params.get("devices") is not None and not command.by_rail(test):
        yield (
            "devices needs a test that names a device: backend verbs, cxi or ofi (not provider "
            "shm), tool perftest or cxi; leave it out"
        )
    refusal = rails.refusal(test)
    if refusal is not None:
        yield refusal


#: Keys of which a number counts something; a warm-up may be a time, too.
_COUNTS = ("iterations", "warmup", "outstanding", "queue_pairs")
#: Keys that name CPUs and NUMA nodes; the engine checks those of its own tests, too.
_PLACES = ("cpu", "server_cpu", "numa", "server_numa")


def _slips(params: Mapping[str, Any]) -> Iterator[str]:
    """Values of another type than meant."""
    for name in ("duration", "interval", "timeout"):
        given = params.get(name)
        if isinstance(given, (int, float)) and not isinstance(given, bool):
            yield f"{name} is {given}, without a unit; write {given}s"
    for name in _COUNTS:
        given = params.get(name)
        if isinstance(given, str) and given.isdecimal():
            yield f"{name} is a number in quotes; write {name}: {given}"


def _refusals(test: SuiteTest, command: Command, soak: Soak | None, check: Check) -> Iterator[str]:
    yield from _slips(test.params)
    if soak is not None:
        yield from soaks.refusals(test)
        test = soaks.lasting(test, soak)
    for name in _PLACES:
        machines.check_list(name, str(test.params.get(name, "auto")))
    yield from command.refusals(test)
    yield from _round_refusals(test, command)
    if command.is_engine:
        refusal = check(_asked_of_engine(test, command, soak))
        if refusal is not None:
            yield refusal
        return
    for name in ("duration", "interval", "timeout"):
        if name in test.params and units.seconds(test.params[name]) == 0:
            yield f"{name} must be above 0"


def checked(test: SuiteTest, soak: Soak | None, check: Check) -> tuple[SuiteTest, Command]:
    """The test as its flows run it, and its command.

    Raises:
        PerchError: why it can be measured nowhere.
    """
    try:
        command = _command(test)
        for why in _refusals(test, command, soak, check):
            raise ValueError(why)
    except KeyError as error:
        why = f"it has no parameter {error.args[0]}"
        raise PerchError(ExitCode.USAGE, why, place=f"test {test.name}") from None
    except ValueError as error:
        raise PerchError(ExitCode.USAGE, str(error), place=f"test {test.name}") from None
    return (test if soak is None else soaks.lasting(test, soak)), command


# ---- who takes part ------------------------------------------------------------------------------


def _lacks(test: SuiteTest, command: Command, host: Host) -> str | None:
    if test.tool not in host.tools:
        return f"has no tool {test.tool}"
    lacking = command.lacks(test, host)
    if lacking is None and (command.by_rail(test) or test.kind == "transfer"):
        lacking = rails.lacking(test, host)
    if lacking is None:
        lacking = capable.no_gpu(test, host)
    if lacking is None and command.carrier(test) == "rdma":
        lacking = _cannot(test, command, host)
    return lacking


def _cannot(test: SuiteTest, command: Command, host: Host) -> str | None:
    """A rail that cannot is left out by itself; a host is, where no rail is left."""
    used = rails.used(test, host)
    left = {one["name"] for one in used} - capable.without(test, host, used).keys()
    if command.by_rail(test) and left:
        return None
    return capable.lacking(test, host, used)


def planned(
    tests: Sequence[SuiteTest], fleet: Fleet, soak: Soak | None, check: Check
) -> Iterator[PlannedTest]:
    """Raises PerchError where a test can be measured nowhere."""
    circles: dict[tuple[str, ...], list[list[Pair]]] = {}
    for given in tests:
        test, command = checked(given, soak, check)
        one = PlannedTest(test, command, fleet, soak is not None)
        for name, host in fleet.hosts.items():
            lacking = _lacks(test, command, host)
            if lacking is None:
                one.able.append(name)
            else:
                one.unable.append((name, lacking))
        able = tuple(one.able)
        if able not in circles:
            circles[able] = circle(able) if soak is None else soaks.pairings(soak, able)
        one.asked = circles[able]
        one.rounds = [turns for pairs in one.asked for turns in _rounds(one, pairs)]
        yield one


def _rounds(one: PlannedTest, pairs: list[Pair]) -> Iterator[list[Turn]]:
    """The rounds of pairs that share no host."""
    if one.test.kind == "transfer" or one.fleet.is_mixed:
        pairs = list(_fitting(one, pairs))
    if one.test.rails == "together":
        pairs = [pair for pair in pairs if len(one.rails(*pair)) > 1]
    turns = one.by_rail(pairs) if pairs else []
    rounds = [[turn] for turn in turns]
    if one.test.rails == "together":
        rounds = [turns] if turns else []
    for together in rounds:
        yield together
        if one.test.directions == "both":
            yield [turn.back() for turn in together]


def _fitting(one: PlannedTest, pairs: list[Pair]) -> Iterator[Pair]:
    """Those whose devices fit each other."""
    for pair in pairs:
        why = one.between(*pair).unfit
        if why is None:
            yield pair
        else:
            one.unfit.append((pair, why))
