# SPDX-License-Identifier: Apache-2.0
"""What Perch's actions share: how they read their options and refuse, and the words they use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from ansible.errors import AnsibleAction
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

SHOWN = 5  # hosts that a message names before it only counts them


def nearest(word: object, valid: Iterable[str], cutoff: float = 0.75) -> str | None:
    return next(iter(get_close_matches(str(word), list(valid), n=1, cutoff=cutoff)), None)


def near(word: object, valid: Iterable[str], cutoff: float = 0.75) -> str:
    """'; did you mean host_tune_mtu?', or nothing where no valid word is close."""
    found = nearest(word, valid, cutoff)
    return f"; did you mean {found}?" if found else ""


def named(hosts: list[str]) -> str:
    """'a, b, c, d, e and 12 more'"""
    more = f" and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    return ", ".join(hosts[:SHOWN]) + more


def told(line: str) -> None:
    """Shows progress at once, on standard error: Ansible keeps standard output back in a pipe."""
    Display().display(line, stderr=True)


def refusal(text: str, errors: Iterable[str], short: str) -> AnsibleAction:
    """Ansible shows the message and then the result, so the result does not repeat the errors."""
    return AnsibleAction(
        "\n".join([text, *(f"- {error}" for error in errors)]), result={"msg": short}
    )


class PerchAction(ActionBase):
    """An action that checks its options and then acts; most need no connection to the host."""

    TRANSFERS_FILES = False
    OPTIONS: Mapping[str, Mapping] = {}
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        _, options = self.validate_argument_spec(argument_spec=self.OPTIONS)
        return result | self.act(options, task_vars)

    def act(self, options: Mapping, task_vars: Mapping) -> dict:
        """What the task's result says of the action."""
        raise NotImplementedError
