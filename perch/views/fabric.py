"""Topology as inventory and switches tell it; the devices under test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from perch.model.figures import is_finite
from perch.model.plan import PlanHost
from perch.views import words
from perch.views.inputs import Environment, Run
from perch.views.plan import NOT_STATED, Hops, PlanDigest
from perch.views.ranks import grouped
from perch.views.table import Table, capped, left, right

Switch = Mapping[str, Any]

# ---- topology ------------------------------------------------------------------------------------

#: Above so many a row for each host is no longer read; groups are.
HOSTS_MAX = 64

_HOPS = {
    "same_switch": "one switch",
    "same_group": "one group, several switches",
    "cross_group": "between groups",
}


class Topology(msgspec.Struct):
    lines: list[str]
    hosts: Table
    hops: Table


def _ports_of(host: str, switches: Sequence[Switch]) -> str | None:
    ports = {
        f"{switch['name']} {row['port']}"
        for switch in switches
        for row in switch["rows"]
        if row.get("host") == host
    }
    return words.some(sorted(ports), 4) or None


def _host_table(hosts: dict[str, PlanHost], switches: Sequence[Switch]) -> Table:
    rows = [
        [name, host.address, host.fabric, host.group, host.switch, _ports_of(name, switches)]
        for name, host in hosts.items()
    ]
    columns = left("Host", "Address", "Fabric", "Group", "Switch", "Switch port")
    return Table(columns, [[words.cell(one) for one in row] for row in rows])


def _group_table(hosts: dict[str, PlanHost]) -> Table:
    groups = grouped(hosts.items(), lambda of: (of[1].group, of[1].switch, of[1].fabric))
    rows = []
    for group in groups:
        one = group[0][1]
        place = [words.cell(text) for text in (one.group, one.switch, one.fabric)]
        named = words.cell(words.some((name for name, _ in group), 8))
        rows.append([*place, words.whole(len(group)), named])
    return Table(left("Group", "Switch", "Fabric") + right("Hosts") + left("Which"), rows)


def _hop_table(hops: dict[str, Hops]) -> Table:
    rows = [
        [words.cell(_HOPS.get(name, name)), words.whole(of.pairs), words.whole(of.flows)]
        for name, of in hops.items()
        if name != NOT_STATED
    ]
    return Table(left("Way between the ends") + right("Pairs", "Flows"), rows)


def _lines(plan: PlanDigest, switches: Sequence[Switch], *, imported: bool) -> Iterator[str]:
    if imported:
        yield (
            "The outputs were measured elsewhere: their hosts and how they are connected are "
            "not known."
        )
        return
    n = len(plan.hosts)
    possible = f" of {words.whole(n * (n - 1))} possible" if n > 1 else ""
    yield (
        f"{words.plural(n, 'host')}, {words.plural(plan.pairs, 'pair')} of client and server "
        f"measured{possible}, in {words.plural(plan.rounds, 'round')} of at most "
        f"{words.plural(plan.together, 'flow')} at the same time."
    )
    if all(host.switch is None and host.group is None for host in plan.hosts.values()):
        yield (
            "The inventory does not say which switch or group a host is connected to "
            "(`perch_switch`, `perch_group`), so hop classes are not known."
        )
    if not switches:
        yield "No switch was read in this run."


def topology(run: Run) -> Topology:
    hosts = run.plan.hosts
    imported = any(check.id == "imported" for check in run.verdict.checks)
    many = len(hosts) > HOSTS_MAX
    return Topology(
        lines=list(_lines(run.plan, run.switches, imported=imported)),
        hosts=_group_table(hosts) if many else _host_table(hosts, run.switches),
        hops=_hop_table(run.plan.hops),
    )


# ---- devices under test --------------------------------------------------------------------------

DEVICES_MAX = 100
#: Devices of the first screen.
NAMED_MAX = 3


Fact = Mapping[str, Any]


class Facts:
    """What the hosts' checks found, by check, device and host."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._of: dict[tuple[str, str, str | None], Fact] = {}
        for fact in facts:
            if fact["status"] in ("ok", "bad", "info"):  # the others could not be read
                for host in fact.get("hosts") or [None]:
                    self._of[fact["id"], fact.get("device") or "", host] = fact

    def _fact(self, name: str, device: str | None, host: str) -> Fact | None:
        """A fact without hosts is of all."""
        place = name, device or ""
        return self._of.get((*place, None)) or self._of.get((*place, host))

    def found(self, name: str, device: str | None, host: str) -> str | None:
        fact = self._fact(name, device, host)
        return None if fact is None else fact.get("found")

    def brief(self, name: str, device: str | None, host: str) -> str | None:
        """Of `16 GT/s, the card has 16 GT/s` the first part, unless it is too little."""
        fact = self._fact(name, device, host)
        if fact is None or fact.get("found") is None:
            return None
        found = str(fact["found"])
        return found if fact["status"] == "bad" else found.split(", ")[0]


class _Named(msgspec.Struct):
    name: str | None
    netdev: str | None


def _idle_netdev(environment: Environment, name: str | None) -> str | None:
    """The network interface of a device, as its counters were read."""
    before = environment.idle.before if environment.idle else None
    ports = {**before.rdma, **before.cxi} if before else {}
    return next((port.netdev for key, port in ports.items() if key.split("/")[0] == name), None)


def _devices(planned: PlanHost, environment: Environment) -> list[_Named]:
    """Those that the inventory names, then those that the agent found; else the interfaces."""
    found: dict[str | None, _Named] = {}
    for device in planned.devices:
        name = device.get("name")
        found.setdefault(name, _Named(name, device.get("netdev")))
    for read in environment.devices:
        found.setdefault(read.name, _Named(read.name, None))
    for one in found.values():
        one.netdev = one.netdev or _idle_netdev(environment, one.name)
    if found:
        return list(found.values())
    loopback = planned.fabric == "loopback"
    return [
        _Named(one.name, one.name)
        for one in environment.interfaces or []
        if (one.name == "lo" if loopback else one.state == "up" and one.name != "lo")
    ]


def _together(parts: Iterable[str | None], between: str) -> str | None:
    return words.joined(parts, between) or None


def _cells(one: _Named, facts: Facts, host: str, environment: Environment) -> list[str]:
    interface = next((x for x in environment.interfaces or [] if x.name == one.netdev), None)
    read = next((x for x in environment.devices if x.name == one.name), None)

    def found(fact: str, device: str | None = one.name) -> str | None:
        return facts.found(fact, device, host)

    def brief(fact: str) -> str | None:
        return facts.brief(fact, one.name, host)

    own = one.netdev is None or one.netdev == one.name
    state = found("nic-port-state")
    if state is not None:
        state = state.removeprefix("4: ").replace(", 5: ", ", ", 1)
    port = _together([state, found("nic-link-layer"), found("slingshot-link-state")], ", ")
    rate, mtu = (interface.rate_gbit_s, interface.mtu_bytes) if interface else (None, None)
    path_mtu = found("nic-path-mtu")
    cells = [
        one.name if own else f"{one.name} ({one.netdev})",
        found("nic-board"),
        found("nic-firmware") or (read.firmware if read else None),
        found("nic-driver")
        or (read.driver if read else None)
        or (interface.driver if interface else None),
        _together([brief("nic-pcie-speed"), brief("nic-pcie-width")], ", "),
        brief("nic-numa-node"),
        port or (interface.state if interface else None),
        found("nic-link-speed")
        or found("slingshot-link-speed")
        or (None if rate is None else f"{words.figure(rate)} Gb/s"),
        _together(
            [
                found("nic-mtu", one.netdev) or (None if mtu is None else str(mtu)),
                None if path_mtu is None else f"RDMA {path_mtu}",
            ],
            "; ",
        ),
    ]
    return [words.cell(text) for text in cells]


def _nics(run: Run) -> Table:
    facts = Facts(run.facts or [])
    nothing = Environment()
    rows = []
    for host, planned in run.plan.hosts.items():
        environment = run.environments.get(host, nothing)
        rows += [
            (_cells(device, facts, host, environment), host)
            for device in _devices(planned, environment)
        ]
    columns = left(
        "Device", "Card", "Firmware", "Driver", "PCIe", "Memory node", "Port", "Link", "MTU",
        "Hosts",
    )  # fmt: skip
    found = []
    for group in grouped(rows, lambda row: tuple(row[0])):
        hosts = sorted({host for _, host in group})
        found.append([*group[0][0], of_hosts(hosts, len(run.plan.hosts))])
    return capped(columns, found, DEVICES_MAX)


def of_hosts(hosts: list[str], all_hosts: int) -> str:
    """Which hosts, in a few words."""
    if len(hosts) == all_hosts > 1:
        return "all hosts"
    return words.cell(words.some(hosts, 8))


def _switch_row(switch: Switch) -> list[str]:
    rows = switch["rows"]
    simulated = "" if switch["scope"] == "hardware" else f", **{words.cell(switch['scope'])}**"
    speeds = sorted({one for row in rows if is_finite(one := row.get("speed_gbit_s"))})
    lossless = {
        " ".join(map(str, row["priorities"])) or "none"
        for row in rows
        if row.get("priorities") is not None
    }
    return [
        words.cell(switch["name"]),
        words.cell(switch["provider"]) + simulated,
        words.cell(words.some(sorted({row["port"] for row in rows}), 8) or "-"),
        ", ".join(f"{words.figure(speed)} Gb/s" for speed in speeds) or "-",
        words.cell("; ".join(sorted(lossless)) or "-"),
    ]


class Devices(msgspec.Struct):
    nics: Table
    switches: Table
    notes: list[str]

    @property
    def line(self) -> str:
        """One line for the first screen."""
        titles = [column.title for column in self.nics.columns]
        at = [titles.index(title) for title in ("Device", "Card", "Link", "Hosts")]
        shown = self.nics.rows[:NAMED_MAX]
        said = [", ".join(row[i] for i in at if row[i] != words.NOTHING) for row in shown]
        if not said:
            return ""
        more = len(self.nics.rows) > NAMED_MAX
        end = "; more in [the devices](#device-under-test)." if more else "."
        return f"Measured on {'; '.join(said)}{end}"


def _notes(run: Run) -> Iterator[str]:
    missing = len(run.plan.hosts) - len(run.environments)
    if not run.environments:
        yield (
            "No host left an `environment.json`: nothing is known of the machines but what the "
            "outputs say."
        )
    elif missing > 0:
        yield f"{words.plural(missing, 'host')} left no `environment.json`."
    if run.facts is None and run.environments:
        why = "found no card" if run.hosts_checked else "did not run"
        yield (
            f"The hosts' checks {why}, so cards, PCIe links and ports are known only from the "
            "agents."
        )


def devices(run: Run) -> Devices:
    columns = left("Switch", "Kind", "Ports to the hosts", "Speed", "PFC priorities")
    rows = [_switch_row(switch) for switch in run.switches[:DEVICES_MAX]]
    return Devices(_nics(run), Table(columns, rows), list(_notes(run)))
