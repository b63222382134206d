#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Sets the variables of the role host_tune on a host, or puts everything back that it ever set."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_setting
short_description: Change settings of a host so that they can be put back
description:
  - Reads each setting and keeps its value on the host before the first change,
    in a file that is never overwritten.
  - Writes the wanted value and reads it back.
    The unit perch-tune.service applies at boot the settings that a boot resets.
  - A setting that cannot be changed is returned in RV(troubles), each with a remedy,
    and does not keep the rest from being done.
options:
  settings:
    description: "The settings, as names of variables without host_tune_, and their values."
    type: dict
    default: {}
  state:
    description: "Set these; or put all kept values back."
    type: str
    choices: [set, reverted]
    default: set
  devices: {description: The inventory's perch_devices., type: list, elements: raw, default: []}
  connection:
    description: How Ansible reaches the host (ansible_connection).
    type: str
    default: ssh
  reached_at:
    description: The address by which Ansible reaches the host (ansible_host).
    type: str
    default: ""
  protected:
    description: More interfaces that are never altered.
    type: list
    elements: str
    default: []
  connection_interface: {description: The interface of that connection., type: str, default: ""}
  qos_provider:
    description: The program that sets priorities.
    type: str
    choices: [auto, dcb, mlnx_qos]
    default: auto
  root: {description: Put before every path of the host; for tests., type: str, default: ""}
attributes:
  check_mode: {support: full, description: Says what would change.}
  diff_mode: {support: full, description: Shows each value before and after.}
author: [The Perch authors]
"""

EXAMPLES = r"""
- name: Reserve huge pages
  perch.fabric.host_setting:
    settings: {hugepages_2m: 512}

- name: Put everything back
  perch.fabric.host_setting:
    state: reverted
"""

RETURN = r"""
changes: {description: The changes, a line each., returned: always, type: list, elements: str}
troubles:
  description: The settings that could not be changed, each with its remedy.
  returned: always
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule

try:
    from ansible_collections.perch.fabric.plugins.module_utils.perch_tuning import (
        boot,
        network,
        settings,
        values,
    )
    from ansible_collections.perch.fabric.plugins.module_utils.perch_tuning.base import (
        System,
        Trouble,
    )
    from ansible_collections.perch.fabric.plugins.module_utils.perch_tuning.kept import Kept
except ImportError:  # from a checkout, ansible.cfg says where they are
    from ansible.module_utils.perch_tuning import boot, network, settings, values
    from ansible.module_utils.perch_tuning.base import System, Trouble
    from ansible.module_utils.perch_tuning.kept import Kept


class Work:
    """One call: what was found, changed and not done."""

    def __init__(self, system: System, check: bool):
        self.system, self.check = system, check
        self.kept = Kept(system)
        self.changes: list[str] = []
        self.troubles: list[str] = []
        self.before: list[str] = []
        self.after: list[str] = []

    def note(self, value: values.Value, found, wanted) -> None:
        title, old, new = value.title(), value.show(found), value.show(wanted)
        if "\n" in old + new:
            what = {old: "new file", new: "removed"}.get("(absent)", "other content")
            self.changes.append(f"{title}: {what}")
            self.before.append(f"{title}:\n{old}")
            self.after.append(f"{title}:\n{new}")
        else:
            self.changes.append(f"{title}: {old} -> {new}")
            self.before.append(f"{title}: {old}")
            self.after.append(f"{title}: {new}")

    def write(self, value: values.Value, found, wanted, how):
        """Writes, and notes what has become of it: a driver may take nothing, or a part.

        Answers what is there now.
        """
        how(wanted)
        taken = value.read()
        if taken != found:
            self.note(value, found, wanted if value.agrees(taken, wanted) else taken)
        return taken

    def set(self, setting: str, value: values.Value, wanted) -> list[list[str]]:
        """Answers the lines that apply it at boot."""
        found = value.read()
        if callable(wanted):
            wanted = wanted(found)
        if not value.agrees(found, wanted):
            if self.check:
                self.note(value, found, wanted)
            else:
                self.kept.keep(setting, value.key(), value.spec(), found)
                taken = self.write(value, found, wanted, value.write)
                if not value.agrees(taken, wanted):
                    self.troubles.append(f"host_tune_{setting}: {value.shortfall(taken, wanted)}")
        return value.boot(wanted)

    def tune(self, context: settings.Context, asked: dict) -> None:
        """All that can be done; whatever happens then, each old value is kept before its change."""
        lines: dict[str, list[list[str]]] = {}
        if asked and not self.check:
            self.kept.open()  # and its lock, before anything is read
        for setting in filter(asked.__contains__, settings.SETTINGS):
            for wish in settings.SETTINGS[setting](context, asked[setting]):
                try:
                    if isinstance(wish, Trouble):
                        raise wish
                    lines.setdefault(setting, []).extend(self.set(setting, *wish))
                except Trouble as trouble:
                    self.troubles.append(f"host_tune_{setting}: {trouble}")
        for setting, value, wanted in boot.wishes(self.system, lines):
            self.set(setting, value, wanted)
        if not self.check:
            self.kept.close()

    def put_back(self, held: set[str] | None, entry) -> None:
        value = values.from_spec(self.system, entry.spec)
        if value.netdev:
            network.check_untouched(held, value.netdev)
        found = value.read()
        if not value.agrees(found, entry.old):
            if self.check:
                self.note(value, found, entry.old)
            else:
                taken = self.write(value, found, entry.old, value.restore)
                if not value.agrees(taken, entry.old):
                    raise value.shortfall(taken, entry.old)
        if not self.check:
            self.kept.forget(entry)

    def revert(self, held: set[str] | None) -> None:
        entries, damaged = self.kept.entries()
        self.troubles += [str(trouble) for trouble in damaged]
        for entry in entries:
            try:
                self.put_back(held, entry)
            except Trouble as trouble:
                self.troubles.append(f"not put back (host_tune_{entry.setting}): {trouble}")
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                self.troubles.append(
                    "not put back: "
                    f"{entry.name} is damaged ({error!r}). Look into it, and remove it by hand"
                )
        if not self.check:
            self.kept.close()


OPTIONS = {
    "settings": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["set", "reverted"], "default": "set"},
    "devices": {"type": "list", "elements": "raw", "default": []},
    "connection": {"type": "str", "default": "ssh"},
    "reached_at": {"type": "str", "default": ""},
    "protected": {"type": "list", "elements": "str", "default": []},
    "connection_interface": {"type": "str", "default": ""},
    "qos_provider": {"type": "str", "choices": ["auto", "dcb", "mlnx_qos"], "default": "auto"},
    "root": {"type": "str", "default": ""},
}


def main() -> None:
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    options = module.params
    system = System(options["root"])
    work = Work(system, module.check_mode)
    if unknown := set(options["settings"]) - set(settings.SETTINGS):
        module.fail_json(
            msg=f"there is no setting {', '.join(sorted(unknown))}; "
            f"there are: {', '.join(settings.SETTINGS)}"
        )
    try:
        if os.geteuid() != 0 and not system.root:
            raise Trouble("settings can be read and kept by root alone", "set ansible_become: true")
        context = settings.Context(
            system,
            options["settings"],
            options["devices"],
            options["connection"],
            options["reached_at"],
            options["protected"],
            options["connection_interface"],
            options["qos_provider"],
        )
        if options["state"] == "set":
            work.tune(context, options["settings"])
        else:
            work.revert(context.held)
    except Trouble as trouble:
        work.troubles.append(str(trouble))
    if (
        work.changes
        and not module.check_mode
        and not system.root
        and system.exists("/run/systemd/system")
    ):
        system.command("systemctl", "daemon-reload")  # perch-tune.service may have come or gone
    module.exit_json(
        changed=bool(work.changes),
        changes=work.changes,
        troubles=work.troubles,
        diff={
            "before": "".join(f"{line}\n" for line in work.before),
            "after": "".join(f"{line}\n" for line in work.after),
        },
    )


if __name__ == "__main__":
    main()
