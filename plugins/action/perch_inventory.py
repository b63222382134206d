# SPDX-License-Identifier: Apache-2.0
"""Refuses an inventory whose variables no role knows, or which cannot be what they are,
before any host is touched.

What a variable may be is in the roles' meta/argument_specs.yml; plugin_utils/role_options.py reads
it. Keys that are hosts are said to be there, too ("keys are hosts").
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from ansible import context
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.utils.vars import load_extra_vars
from ansible.vars.plugins import get_vars_from_inventory_sources, get_vars_from_path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
import role_options
from perch_action import PerchAction, named, near, nearest, refusal

DOCUMENTATION = r"""
module: perch_inventory
short_description: Refuse an inventory that the roles cannot use
description:
  - Looks at the variables of the inventory and of the command line,
    and at the roles' argument specs. It runs on the controller, once for all hosts.
options:
  roles: {description: The directory of the roles., type: str, required: true}
  foreign:
    description: Variables that belong to others although their names begin as a role's do.
    type: list
  switches:
    description: Hosts of the inventory that are switches. They have no perch_address.
    type: list
  limits:
    description: The set of limits whose hosts must be in the inventory; empty for none.
    type: str
  limits_site: {description: The same of the site's own limits., type: str}
  measuring: {description: Whether hosts are to be measured against each other., type: bool}
  handed_on:
    description: "Variables for a later call of another playbook, by the variable that holds them.
      With it (it may be empty) they are looked at, and the names of the inventory and of the
      command line; no host is. The answer has the names that the inventory sets: C(sets)."
    type: dict
author: [The Perch authors]
"""

ADDRESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*|::[0-9A-Fa-f:.]*")


def _port_of(device: Mapping) -> str:
    """A card may have two ports under one name."""
    port = int(device.get("ib_port") or 1)
    return device["name"] if port == 1 else f"{device['name']} (ib_port {port})"


class Specs:
    """What the roles know: the options of all entry points of all roles."""

    def __init__(self, roles: Path) -> None:
        self.options: dict[str, Mapping] = {}
        self.required: list[str] = []  # what an inventory must say of each host
        self.role: dict[str, str] = {}
        self.prefixes = {"perch_": "inventory_check"}
        for file in sorted(roles.glob("*/meta/argument_specs.yml")):
            role = file.parts[-3]
            self.prefixes[f"{role}_"] = role
            for entry in yaml.safe_load(file.read_text(encoding="utf-8"))[
                "argument_specs"
            ].values():
                for name, option in (entry.get("options") or {}).items():
                    self.options[name] = option
                    self.role[name] = role
                    if option.get("required") and name.startswith("perch_"):
                        self.required.append(name)
        if not self.options:
            raise AnsibleActionFail(f"there are no roles in {roles}")

    def unknown(self, name: str) -> str | None:
        """Why this cannot be a variable, or None."""
        if name in self.options:
            return None
        for prefix, role in sorted(self.prefixes.items(), key=lambda item: -len(item[0])):
            if name.startswith(prefix):
                remedy = near(name, self.options) or f" (roles/{role}/README.md lists them)"
                return f"{name} is no variable of the role {role}{remedy}"
        if name.startswith("ansible_"):
            return None
        # another's variable, unless it is all but one of ours
        closest = near(name, self.options, cutoff=0.93)
        return f"{name} is no variable of any role{closest}" if closest else None


class Inventory:
    """The inventory's variables, each with the group or host that sets it;
    facts and variables of roles are not among them.
    """

    def __init__(self, task_vars: Mapping, loader) -> None:
        self.hostvars = task_vars["hostvars"]
        self.manager = self.hostvars._inventory
        self.loader = loader
        self.playbook_dir = task_vars["playbook_dir"]
        self.extra = load_extra_vars(loader)
        self.groups = {name: self._variables(group) for name, group in self.manager.groups.items()}
        self.hosts = {name: self._variables(host) for name, host in self.manager.hosts.items()}

    def _variables(self, entity) -> dict:
        # as ansible-inventory does it: the sources' own,
        # then group_vars/ and host_vars/ beside inventory and playbook
        return {
            **entity.vars,
            **get_vars_from_inventory_sources(self.loader, self.manager._sources, [entity], "task"),
            **get_vars_from_path(self.loader, self.playbook_dir, [entity], "task"),
        }

    def places(self) -> Iterator[tuple[str, Mapping]]:
        yield "the command line (-e)", self.extra
        for name, variables in self.groups.items():
            yield f"group {name}", variables
        for name, variables in self.hosts.items():
            yield f"host {name}", variables

    def origins(self, host: str) -> dict[str, str]:
        """Each variable of a host, and where it is set; what counts most comes last."""
        groups = sorted(
            self.manager.hosts[host].get_groups(),
            key=lambda group: (group.depth, group.priority, group.name),
        )
        found = {
            name: f"group {group.name}"
            for group in groups
            for name in self.groups.get(group.name, {})
        }
        found |= {name: f"host {host}" for name in self.hosts[host]}
        return found | {name: "the command line (-e)" for name in self.extra}

    def strays(self) -> Iterator[str]:
        """Files of variables for hosts and groups that are not there."""
        for source in map(Path, filter(None, self.manager._sources)):
            folder = source if source.is_dir() else source.parent
            alone = [
                path
                for path in folder.glob("*")
                if path.is_file() and not path.name.startswith(".")
            ] == [source]
            if not source.exists() or not (source.is_dir() or alone):
                continue  # the folder may be shared with another inventory
            for kind, known in (("host", self.hosts), ("group", self.groups)):
                for path in sorted((folder / f"{kind}_vars").glob("[!.]*")):
                    # what Ansible reads: a directory, or a file with one of these endings or none
                    ending = path.suffix if path.suffix in (".yml", ".yaml", ".json") else ""
                    if (
                        not ending
                        and not path.is_dir()
                        and "." in path.name
                        and path.name not in known
                    ):
                        continue
                    name = path.name.removesuffix(ending)
                    if name not in known and not name.endswith("~"):
                        yield (
                            f"{path.relative_to(folder)} is for a {kind} "
                            f"that the inventory does not have{near(name, known)}"
                        )


class ActionModule(PerchAction):
    OPTIONS = {
        "roles": {"type": "str", "required": True},
        "foreign": {"type": "list", "elements": "str", "default": []},
        "switches": {"type": "list", "elements": "str", "default": []},
        "limits": {"type": "str", "default": ""},
        "limits_site": {"type": "str", "default": ""},
        "measuring": {"type": "bool", "default": False},
        "handed_on": {"type": "dict"},
    }

    def act(self, options, task_vars):
        self._roles = Path(options["roles"]).resolve()
        self._specs = Specs(self._roles)
        self._inventory = Inventory(task_vars, self._loader)
        if options["handed_on"] is not None:
            return self._look_ahead(options["handed_on"], set(options["foreign"]))
        # the task runs for one host of all: what is that host's own counts for no other
        own = self._inventory.hostvars.raw_get(task_vars["inventory_hostname"])
        self._play_vars = {
            name: value
            for name, value in task_vars.items()
            if name not in own or own[name] != value
        }
        hosts = [
            host for host in task_vars["ansible_play_hosts_all"] if host not in options["switches"]
        ]
        if errors := self._errors(hosts, options):
            raise refusal(
                "The inventory is wrong; no host was touched.",
                errors,
                "the inventory is wrong; its errors are above",
            )
        return {"changed": False, "hosts": len(hosts)}

    def _errors(self, hosts: list[str], options: Mapping) -> list[str]:
        """Values are compared with each other only where each alone is valid."""
        return [
            *self._unknown(set(options["foreign"])),
            *self._inventory.strays(),
            *self._nowhere(),
            *self._not_there("plan_switches has", options["switches"]),
            *self._wrong_values(hosts),
        ] or [
            *self._host_errors(hosts, options["measuring"]),
            *self._limit_errors(options["limits"]),
            *self._limit_errors(options["limits_site"]),
        ]

    def _look_ahead(self, handed_on: Mapping, foreign: set[str]) -> dict:
        errors = list(self._unknown(foreign, handed_on.items()))
        for place, variables in handed_on.items():
            errors += [
                f"{place}: {text}"
                for name, value in variables.items()
                if name in self._specs.options
                for text in self._misfits(name, value)
            ]
        if errors:
            raise refusal(
                "These variables are wrong; nothing was changed.",
                errors,
                "variables are wrong; they are listed above",
            )
        return {
            "changed": False,
            "sets": sorted(
                {
                    name
                    for part in (self._inventory.groups, self._inventory.hosts)
                    for one in part.values()
                    for name in one
                }
            ),
        }

    def _unknown(
        self, foreign: set[str], more: Iterable[tuple[str, Mapping]] = ()
    ) -> Iterator[str]:
        found: dict[str, list[str]] = {}
        for place, variables in [*self._inventory.places(), *more]:
            for name in sorted(set(map(str, variables)) - foreign):
                if why := self._specs.unknown(name):
                    found.setdefault(why, []).append(place)
        for why, places in found.items():
            hosts = [place.removeprefix("host ") for place in places if place.startswith("host ")]
            where = [place for place in places if not place.startswith("host ")]
            yield f"{', '.join([*where, *([self._named(hosts)] if hosts else [])])}: {why}"

    def _nowhere(self) -> Iterator[str]:
        """Devices of a group without hosts are named on no host.

        Other variables of an empty group do no harm.
        """
        for name, group in self._inventory.manager.groups.items():
            if "perch_devices" in self._inventory.groups[name] and not group.get_hosts():
                yield f"group {name} sets perch_devices, and no host is in it"

    def _misfits(self, name: str, value: object) -> Iterator[str]:
        option = self._specs.options[name]
        if value is None and role_options.null_fits(option):
            return
        yield from role_options.misfits(name, option, value)
        if re.search(
            r"\bkeys are hosts\b", role_options.description(option), re.IGNORECASE
        ) and isinstance(value, Mapping):
            yield from self._not_there(f"{name} has", value)

    def _not_there(self, what: str, hosts: Iterable[str]) -> Iterator[str]:
        known = self._inventory.hosts
        for host in map(str, hosts):
            if host not in known:
                closest = near(host, known)
                yield f"{what} {host}, which is not a host of the inventory{closest}"

    def _wrong_values(self, hosts: list[str]) -> list[str]:
        """Each error once, with the hosts that have it."""
        found: dict[str, list[str]] = {}
        self._values = {}
        defaults = self._defaults()
        for host in self._inventory.hosts:
            origins = self._inventory.origins(host)
            values = self._values[host] = {}
            names = [name for name in origins if name in self._specs.options]
            for name, value, problem in self._templated(host, names, defaults):
                problems = [problem] if problem else self._misfits(name, value)
                values[name] = value
                for text in problems:
                    found.setdefault(f"{text} (set for {origins[name]})", []).append(host)
            meant = {nearest(name, self._specs.options) for name in origins}  # has its own message
            for name in self._specs.required if host in hosts else []:
                if name not in origins and name not in meant:
                    found.setdefault(f"{name} is not set", []).append(host)
        return [f"{self._named(where)}: {text}" for text, where in found.items()]

    @staticmethod
    def _named(hosts: list[str]) -> str:
        return f"host{'s' if len(hosts) > 1 else ''} {named(hosts)}"

    def _defaults(self) -> dict:
        """What the roles' defaults say: an inventory's templates may use them."""
        defaults: dict = {}
        for file in sorted(self._roles.glob("*/defaults/main.yml")):
            defaults |= self._loader.load_from_file(str(file)) or {}
        return defaults

    def _templated(
        self, host: str, names: list[str], defaults: Mapping
    ) -> Iterator[tuple[str, object, str | None]]:
        known = {
            **defaults,
            **self._inventory.hostvars.raw_get(host),
            "hostvars": self._inventory.hostvars,
        }
        for name in names:
            known["role_path"] = str(self._roles / self._specs.role[name])
            try:
                yield name, self._template(known, name), None
            except AnsibleError as error:
                # facts, and what a role sets, come later; what is omitted is not set
                if re.search(r"ansible_|plan_run_dir", str(known.get(name))) or "Omit" in str(
                    error.message
                ):
                    continue
                yield name, None, f"{name} cannot be computed: {error.message}"

    def _template(self, known: Mapping, name: str) -> object:
        """By what the inventory says; where that is not enough,
        the play and its files of variables may say the rest.
        """
        try:
            return self._templar.copy_with_new_env(available_variables=known).template(
                known.get(name)
            )
        except AnsibleError:
            wider = {**self._play_vars, **known}
            return self._templar.copy_with_new_env(available_variables=wider).template(
                known.get(name)
            )

    def _value(self, host: str, name: str) -> object:
        value = self._values[host].get(name)
        return self._specs.options[name].get("default") if value is None else value

    def _host_errors(self, hosts: list[str], measuring: bool) -> Iterator[str]:
        found: dict[str, list[str]] = {}
        for host in hosts:
            for text in self._host_misfits(host):
                found.setdefault(text, []).append(host)
        yield from (f"{self._named(where)}: {text}" for text, where in found.items())
        yield from self._shared_addresses(hosts)
        if measuring and len(hosts) < 2:
            limited = context.CLIARGS.get("subset")
            why = f"--limit {limited} leaves" if limited else "the inventory has"
            todo = "name two hosts or more after --limit" if limited else "add a host"
            yield f"two hosts or more are needed, and {why} only {', '.join(hosts)}; {todo}"

    def _host_misfits(self, host: str) -> Iterator[str]:
        """What is wrong with one host alone. Texts that are equal for many hosts are shown once."""
        # it becomes a part of paths in the run's directory
        if not role_options.NAME.fullmatch(host):
            yield "the name of a host has letters, digits, dots, dashes and underscores only"
        address = str(self._value(host, "perch_address"))
        if not ADDRESS.fullmatch(address):
            yield (
                "perch_address must be an address or a name, without a prefix length, "
                f"and is {role_options.show(address)}"
            )
        ports = {
            name: int(self._value(host, name))
            for name in self._specs.options
            if re.fullmatch(r"perch_(\w+_)?port", name)
        }
        if len(set(ports.values())) < len(ports):
            yield "its ports must differ, and are " + ", ".join(
                f"{name}: {port}" for name, port in ports.items()
            )
        devices = [
            device if isinstance(device, str) else _port_of(device)
            for device in self._value(host, "perch_devices")
        ]
        if twice := sorted({device for device in devices if devices.count(device) > 1}):
            place = self._inventory.origins(host).get("perch_devices", "")
            yield (
                f"perch_devices has {', '.join(twice)} twice; "
                f"name each device once (set for {place})"
            )

    def _shared_addresses(self, hosts: list[str]) -> Iterator[str]:
        owners: dict[str, list[str]] = {}
        for host in hosts:
            owners.setdefault(str(self._value(host, "perch_address")), []).append(host)
        for address, several in owners.items():
            if len(several) > 1:
                yield (
                    f"{self._named(several)} have the same perch_address {address}; "
                    "give each host its own"
                )

    def _limit_errors(self, file: str) -> Iterator[str]:
        """A limit for a host that is not there would never apply, without a word."""
        if not file or not Path(file).is_file():
            return
        try:
            limits = yaml.safe_load(Path(file).read_text(encoding="utf-8"))["limits"]
            scopes = [(limit["id"], limit.get("scope", {})) for limit in limits]
            named_ends = [
                (name, end, scope.get(end, []))
                for name, scope in scopes
                for end in ("client", "server")
            ]
        except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
            return  # the role plan says what is wrong with it, before any host is touched
        for name, end, hosts in named_ends:
            yield from self._not_there(
                f"{Path(file).name}, limit {name}: the {end} is",
                [hosts] if isinstance(hosts, str) else hosts,
            )
