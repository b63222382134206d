# SPDX-License-Identifier: Apache-2.0
"""Ends a play with a message that Ansible shows once: `fail` and `assert` show theirs twice."""

from __future__ import annotations

from difflib import get_close_matches

from ansible.errors import AnsibleAction
from ansible.plugins.action import ActionBase

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


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp=None, task_vars=None):
        super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(
            argument_spec={
                "msg": {"type": "str", "required": True},
                "word": {"type": "str", "default": ""},
                "known": {"type": "list", "elements": "str", "default": []},
            }
        )
        message = arguments["msg"].strip()
        for close in get_close_matches(arguments["word"], arguments["known"], n=1):
            message += f"; did you mean {close}?"
        raise AnsibleAction(message, result={"msg": "refused; the error is above"})
