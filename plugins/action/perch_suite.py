# SPDX-License-Identifier: Apache-2.0
"""Refuses a suite that does not fit its schema, before any host is touched."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator, ValidationError

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction, near, nearest, refusal

DOCUMENTATION = r"""
module: perch_suite
short_description: Refuse a suite that does not fit its schema
description: It runs on the controller and reads two files.
options:
  suite: {description: The file of the suite., type: str, required: true}
  schema: {description: The JSON schema of suites., type: str, required: true}
author: [The Perch authors]
"""

PLACES = dict.fromkeys(("cpu", "server_cpu"), "CPUs such as 3 or \"4-7\"") | dict.fromkeys(
    ("numa", "server_numa"), "a NUMA node such as 1"
)
SIZES = ("size", "batch", "buffer", "stride", "chunk")
TIMES = ("duration", "interval", "timeout", "gap", "turn", "stall", "reconnect", "margin", "omit")
TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "a dictionary",
    "array": "a list",
}


def show(value: object) -> str:
    text = json.dumps(value, default=str) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= 60 else text[:57] + "..."


def listed(words: list) -> str:
    return ", ".join(str(word) for word in words)


def size_words(value: object) -> str:
    text = str(value)
    if (
        isinstance(value, str)
        and text != text.upper()
        and text.upper().strip("0123456789:KMG") == ""
    ):
        return f"{show(value)} is no size: K, M and G are upper case; write {text.upper()}"
    return (
        f"{show(value)} is no size: write bytes such as 8, 64K or 64K:1M (K, M, G are upper case)"
    )


def time_words(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value} is no duration: write {value}s"
    return f"{show(value)} is no duration: write a number with its unit, such as 5s"


def value_words(key: str, value: object, error: ValidationError) -> str:
    """What is wrong with one value, and what to write."""
    rule, wanted = error.validator, error.validator_value
    if rule == "enum":
        valid = [str(word) for word in wanted]
        return f"{show(value)} is unknown; valid: {listed(valid)}{near(value, valid)}"
    if rule == "const":
        return f"{show(value)} does not fit this tool; write {wanted}"
    if key in TIMES:
        return time_words(value)
    if key in PLACES and rule == "anyOf":
        off = ' (in quotes, as YAML reads off as false)' if value is False else ""
        return f'{show(value)} is no place: write {PLACES[key]}, auto or "off"{off}'
    if key in SIZES and (rule in ("anyOf", "pattern", "type")):
        return size_words(value)
    if rule == "type":
        return f"{show(value)} is not {TYPES.get(wanted, wanted)}"
    if rule in ("minimum", "maximum"):
        bound = "at least" if rule == "minimum" else "at most"
        return f"{show(value)} is out of range; {bound} {wanted}"
    if rule == "pattern" and key == "name":
        return f"{show(value)} is no name: lower-case letters, digits and dashes, not a dash first"
    if rule in ("minItems", "minLength"):
        return "is empty"
    if rule == "pattern":
        return f"{show(value)} has another form than {wanted}"
    return (
        "does not belong to this tool or mode" if wanted is False or rule is None else error.message
    )


def key_words(error: ValidationError, schema: Mapping) -> Iterator[tuple[str, str]]:
    """(key, words) of keys that are missing, unknown or exclude each other."""
    if error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                choices = schema["$defs"]["test"]["properties"].get(key, {}).get("enum")
                yield key, "is missing" + (f"; choose one of {listed(choices)}" if choices else "")
    elif error.validator == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        for key in error.instance:
            if key not in known:
                yield key, f"is unknown{near(key, known) or f'; valid: {listed(known)}'}"
    elif error.validator == "not":
        yield "", f"{' and '.join(error.validator_value['required'])} exclude each other; give one"


def respelled(suite: object, schema: Mapping) -> tuple[object, dict[tuple[str, str], str]]:
    """The suite with its misspelt keys corrected, and a message for each."""
    suite, found = deepcopy(suite), {}
    for error in list(Draft202012Validator(schema).iter_errors(suite)):
        if error.validator != "additionalProperties":
            continue
        for key, text in list(key_words(error, schema)):
            meant = nearest(key, error.schema["properties"])
            if meant and meant not in error.instance:
                found[place([*error.absolute_path, key], suite)] = text
                error.instance[meant] = error.instance.pop(key)
    return suite, found


def faults(suite: object, schema: Mapping) -> list[str]:
    """Each mistake once: 'test lat, params.duration: 5 is no duration: write 5s'."""
    # a misspelt key would be missing, too
    suite, found = respelled(suite, schema)
    errors = list(Draft202012Validator(schema).iter_errors(suite))
    # a tool may narrow the choices of all tools: the shorter list comes first
    errors.sort(key=lambda error: len(error.validator_value) if error.validator == "enum" else 0)
    for error in errors:
        path = list(error.absolute_path)
        words = list(key_words(error, schema))
        if not words:
            words = [("", value_words(str(path[-1]) if path else "", error.instance, error))]
        for key, text in words:
            # a tool's own rule may refuse a value that the general rule refuses:
            # one message is enough
            found.setdefault(place([*path, *([key] if key else [])], suite), text)
    tests = suite.get("tests") if isinstance(suite, Mapping) else None
    names = Counter(
        test["name"]
        for test in tests or []
        if isinstance(test, Mapping) and isinstance(test.get("name"), str)
    )
    said = [f"{', '.join(filter(None, where))}: {text}" for where, text in found.items()]
    return said + [
        f"test {name}: {number} tests have this name; give each its own"
        for name, number in names.items()
        if number > 1
    ]


def place(path: list, suite: object) -> tuple[str, str]:
    """('test lat', 'params.duration')"""
    if len(path) > 1 and path[0] == "tests":
        test = suite["tests"][path[1]]
        name = test.get("name") if isinstance(test, Mapping) else None
        return f"test {name or f'number {path[1] + 1}'}", ".".join(map(str, path[2:]))
    return "", ".".join(map(str, path)) or "the suite"


def syntax(error: yaml.YAMLError) -> str:
    """Where the YAML is broken, and what to do about a tab."""
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}: " if mark else ""
    problem = getattr(error, "problem", None) or "is no YAML"
    return where + ("a tab; YAML is indented with spaces" if "\\t" in problem else problem)


class ActionModule(PerchAction):
    OPTIONS = {
        "suite": {"type": "str", "required": True},
        "schema": {"type": "str", "required": True},
    }

    def act(self, options, task_vars):
        try:
            suite = yaml.safe_load(Path(options["suite"]).read_text(encoding="utf-8"))
            errors = faults(suite, json.loads(Path(options["schema"]).read_text(encoding="utf-8")))
        except yaml.YAMLError as error:
            errors = [syntax(error)]
        except UnicodeDecodeError:
            errors = ["it is not UTF-8"]
        if errors:
            raise refusal(
                f"The suite {options['suite']} cannot be used. Correct it:",
                errors,
                "the suite cannot be used; its errors are above",
            )
        return {"changed": False}
