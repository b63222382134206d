# SPDX-License-Identifier: Apache-2.0
"""Decides from what the hosts say of their soaks: begin a new one,
go on with one that is known here, or refuse.

Nothing is begun where anything is odd: two soaks, one of another controller or inventory,
a host that did not answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from ansible.errors import AnsibleActionFail

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import SHOWN, PerchAction, named

DOCUMENTATION = r"""
module: perch_soak_found
short_description: Decide whether a soak is begun or gone on with
description:
  - Runs on the controller, once for all hosts.
    Fails where hosts have soaks that this controller must not touch.
options:
  hosts:
    description: Of each host what role agent's soak_look has found;
      null of one that did not answer.
    type: dict
    required: true
  runs_dir: {description: Where runs are kept., type: path, required: true}
  stopping:
    description: "Whether the soaks are to be stopped: then any may be,
      also those that are not known here."
    type: bool
    default: false
author: [The Perch authors]
"""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")  # of runs: a host says it, and it becomes a path
UNFINISHED = ("running", "interrupted")


class Known:
    """The run of this name in the runs directory here, if there is one."""

    def __init__(self, runs_dir: Path, run: str) -> None:
        self.dir = runs_dir / run
        self.plan: dict | None = None
        if NAME.fullmatch(run):
            try:
                plan = json.loads((self.dir / "plan.json").read_bytes())
            except (OSError, ValueError):
                return
            if isinstance(plan, dict) and "soak" in plan:
                self.plan = plan

    def stranger(self, host: str, found: Mapping) -> str:
        """Why what this host has is not this run; empty where it is."""
        if self.plan is None:
            return "not known here"
        if host not in self.plan["hosts"]:
            return f"known here, but its plan has no host {host}"
        if found.get("host") not in (None, "", host):
            return f"known here, but was started there as host {found['host']}"
        if found.get("plan_sha256") and found["plan_sha256"] != self._plan_sha256():
            return "known here by its name, but with another plan"
        return ""

    def _plan_sha256(self) -> str:
        return hashlib.sha256((self.dir / "plan.json").read_bytes()).hexdigest()


class ActionModule(PerchAction):
    OPTIONS = {
        "hosts": {"type": "dict", "required": True},
        "runs_dir": {"type": "path", "required": True},
        "stopping": {"type": "bool", "default": False},
    }

    def act(self, options, task_vars):
        self._runs_dir = Path(options["runs_dir"])
        hosts = {host: found for host, found in options["hosts"].items() if found}
        silent = sorted(set(options["hosts"]) - set(hosts))
        unfinished = {
            host: found for host, found in hosts.items() if found.get("state") in UNFINISHED
        }
        runs = sorted({str(found.get("run")) for found in unfinished.values()})
        if options["stopping"]:
            run = runs[0] if len(runs) == 1 and not self._strangers(unfinished) else ""
            return self._answer(run or self._kept(hosts), unfinished, silent)
        self._refuse_unknown(unfinished, runs)
        run = runs[0] if runs else self._kept(hosts)
        if silent and not run:
            raise AnsibleActionFail(
                f"{named(silent)} did not answer, and a soak may run there; nothing was started"
            )
        return self._answer(run, unfinished, silent)

    def _answer(self, run: str, unfinished: Mapping, silent: list[str]) -> dict:
        return {
            "changed": False,
            "run": run,
            "dir": str(self._runs_dir / run) if run else "",
            "running": sorted(unfinished),
            "silent": silent,
        }

    def _strangers(self, unfinished: Mapping) -> list[str]:
        said = []
        for host, found in sorted(unfinished.items()):
            why = Known(self._runs_dir, str(found.get("run"))).stranger(host, found)
            if why:
                message = f" ({found['message']})" if found.get("message") else ""
                said.append(f"{host}: {found.get('run')}, {found.get('state')}{message}, is {why}")
        return said

    def _refuse_unknown(self, unfinished: Mapping, runs: list[str]) -> None:
        strangers = self._strangers(unfinished)
        if strangers:
            more = [f"- and {len(strangers) - SHOWN} hosts more"] if len(strangers) > SHOWN else []
            raise AnsibleActionFail(
                "\n".join(
                    [
                        "A soak is on these hosts that is not this controller's; "
                        "nothing was started.",
                        *(f"- {text}" for text in strangers[:SHOWN]),
                        *more,
                        "The controller and the plan_runs_dir "
                        f"that began it (here it is {self._runs_dir}) can show and fetch it with "
                        "playbooks/soak.yml; playbooks/soak_stop.yml ends it from anywhere.",
                    ]
                )
            )
        if len(runs) > 1:
            which = "; ".join(
                f"{run} on "
                f"{named([h for h, f in sorted(unfinished.items()) if str(f.get('run')) == run])}"
                for run in runs
            )
            raise AnsibleActionFail(
                f"{len(runs)} soaks are on these hosts: "
                f"{which}. One at a time can be shown: --limit names the hosts of one, "
                "playbooks/soak_stop.yml ends them. Nothing was started."
            )

    def _kept(self, hosts: Mapping) -> str:
        """The newest soak that is over, with results still on a host and its plan here."""
        runs = {
            run
            for host, found in hosts.items()
            for run in found.get("kept") or []
            if not Known(self._runs_dir, run).stranger(host, {})
        }
        return max(runs, default="")
