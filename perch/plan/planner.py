"""Inventory and suite -> every flow that must be measured, before anything runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.devices import Devices
from perch.model.plan import Excluded, PlanSwitch
from perch.model.record import Number
from perch.model.suite import Host, SoakSettings, Suite, SuiteTest
from perch.model.text import explained
from perch.plan import bought, discovery, hosts, machines, rails
from perch.plan import soak as soaks
from perch.plan.engine import Check
from perch.plan.excluded import excluded
from perch.plan.soak import Part, Soak
from perch.plan.switches import switch
from perch.plan.tests import Fleet, PlannedTest, planned


class Inputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """inputs/plan.json: what Ansible resolved. `limits` is the name of a set; "": by the rate.

    hosts: {NAME: {perch_address, perch_fabric, ...}}. switches: {NAME: {switch_check_provider,
    ...}}. soak_duration: how long a suite that is a soak lasts, with its unit; else empty.
    devices: what the hosts said of theirs, now or in `devices_file`.
    """

    run: str
    created: str
    limits: str
    suite: Suite
    hosts: dict[str, dict[str, Any]]
    switches: dict[str, dict[str, Any]] = {}
    soak_duration: Any = ""
    devices: Devices | None = None
    devices_file: str = ""


_devices = msgspec.json.Decoder(Devices)

#: The keys of the inputs' objects, by their places.
_KEYS = {
    "": Inputs.__struct_fields__,
    "suite": Suite.__struct_fields__,
    "suite.tests": SuiteTest.__struct_fields__,
    "suite.soak": SoakSettings.__struct_fields__,
}


@dataclass(frozen=True)
class Planned:
    """All that a plan says. `rounds`: the parts of each run at the same time."""

    inputs: Inputs
    fleet: Fleet
    tests: list[PlannedTest]
    rounds: list[list[Part]]
    excluded: list[Excluded]
    switches: dict[str, PlanSwitch]
    soak: Soak | None

    def judged_by(self, limits: str) -> Planned:
        """The plan, with the name of its set of limits."""
        return replace(self, inputs=msgspec.structs.replace(self.inputs, limits=limits))

    def times(self, part: Part, client: str, server: str) -> tuple[Number, Number]:
        """Seconds that a flow takes, about, and those after which it has ended for certain."""
        if self.soak is not None and part.seconds is not None:
            return part.seconds, soaks.deadline_s(self.soak, part.seconds)
        pairing = self.tests[part.test].between(client, server, part.rail)
        return pairing.estimate_s, pairing.deadline_s

    def flows(self) -> int:
        return sum(len(part.pairs) for parts in self.rounds for part in parts)

    def seconds(self) -> float:
        """What all rounds take, about."""
        return sum(self._round_times(parts)[0] for parts in self.rounds)

    def _round_times(self, parts: Sequence[Part]) -> tuple[Number, Number]:
        times = {self.times(part, *pair) for part in parts for pair in part.pairs}
        return max(time for time, _ in times), max(time for _, time in times)

    def round_times(self) -> Iterator[tuple[Number, Number]]:
        """Of each round the longest estimate and the latest deadline."""
        return map(self._round_times, self.rounds)


def _measured(tests: Sequence[PlannedTest]) -> Iterator[list[Part]]:
    """Repeats are outermost: what drifts over the run then shows as a spread between repeats."""
    for repeat in range(1, max((one.test.repeat for one in tests), default=0) + 1):
        for i, one in enumerate(tests):
            if one.test.repeat >= repeat:
                for turns in one.rounds:
                    yield [Part(i, repeat, turn.pairs, rail=turn.rail) for turn in turns]


_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decoded(document: bytes, file: str = "inputs/plan.json") -> Inputs:
    """Raises PerchError."""
    try:
        return msgspec.json.decode(document, type=Inputs)
    except _UNREADABLE as error:
        why = f"it cannot be planned: {explained(error, _KEYS)}"
        raise PerchError(ExitCode.USAGE, why, file=file) from None


def with_devices(inputs: Inputs, document: bytes, file: str) -> Inputs:
    """The inputs with recorded devices; `file`: whence, "" where of their own run.

    Raises PerchError.
    """
    try:
        devices = _devices.decode(document)
    except _UNREADABLE as error:
        raise PerchError(
            ExitCode.USAGE,
            f"it is damaged ({explained(error)})",
            file=file or "inputs/devices.json",
            remedy="give the inputs/devices.json of another run (plan_devices)",
        ) from None
    return msgspec.structs.replace(inputs, devices=devices, devices_file=file)


def hosts_of(inputs: Inputs) -> dict[str, Host]:
    """The hosts as the inventory has them. Raises PerchError."""
    named = {name: hosts.host(name, given) for name, given in inputs.hosts.items()}
    hosts.check(named.values())
    bought.check_rates(named.values())
    bought.check_traits(named.values())
    return named


def plan(inputs: Inputs, check: Check) -> Planned:
    """Plans what can be measured and lists what cannot.

    Raises:
        PerchError: a test, a host, a switch or the times of a soak cannot be.
    """
    _check_tests(inputs.suite)
    soak = soaks.settings(inputs.suite, inputs.soak_duration)
    named = hosts_of(inputs)
    found = discovery.of_hosts(named, inputs.devices, inputs.devices_file)
    discovery.check_rails(named, found, inputs.devices)
    bought.check_devices(found.values(), inputs.devices)
    fleet = Fleet(found)
    switches = {name: switch(name, given, inputs.hosts) for name, given in inputs.switches.items()}
    tests = list(planned(inputs.suite.tests, fleet, soak, check))
    if soak is None:
        rounds = list(_measured(tests))
    else:
        rounds = soaks.schedule(soak, [one.turns for one in tests])
    if not rounds:
        for one in tests:
            rails.check_matched(one.test, fleet.hosts.values())
    _check_places(inputs, tests, rounds)
    return Planned(inputs, fleet, tests, rounds, excluded(tests, fleet), switches, soak)


def _check_tests(suite: Suite) -> None:
    """Raises PerchError where the flows of two tests would have the same ids."""
    count = Counter(test.name for test in suite.tests)
    for name, number in count.items():
        if number > 1:
            why = f"{number} tests have this name"
            remedy = "give each a name of its own"
            raise PerchError(ExitCode.USAGE, why, place=f"test {name}", remedy=remedy)


def _check_places(
    inputs: Inputs, tests: Sequence[PlannedTest], rounds: Sequence[Sequence[Part]]
) -> None:
    """Raises PerchError."""
    for number, one in enumerate(tests):
        if one.test.rails == "together":
            machines.check_together(one.test, max(map(len, one.rounds), default=0))
        if inputs.devices is not None and machines.names_places(one.test):
            parts = (part for parts in rounds for part in parts if part.test == number)
            pairs = (pair for part in parts for pair in part.pairs)
            machines.check_places(one.test, pairs, inputs.devices.machines)
