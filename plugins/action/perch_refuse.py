# SPDX-License-Identifier: Apache-2.0
"""Ends a play with a message that Ansible shows once: `fail` and `assert` show theirs twice."""

from __future__ import annotations

import sys
from pathlib import Path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction, near, refusal

DOCUMENTATION = r"""
module: perch_refuse
short_description: End the play and say why, once
description: The task's C(when) says in which case.
options:
  msg: {description: "The fault, its place and reason, and the remedy.", type: str, required: true}
  word: {description: The word that is not valid, type: str}
  known: {description: The valid words; the closest one is suggested, type: list, elements: str}
author: [The Perch authors]
"""


class ActionModule(PerchAction):
    OPTIONS = {
        "msg": {"type": "str", "required": True},
        "word": {"type": "str", "default": ""},
        "known": {"type": "list", "elements": "str", "default": []},
    }

    def act(self, options, task_vars):
        closest = near(options["word"], options["known"])
        raise refusal(options["msg"].strip() + closest, [], "refused; the error is above")
