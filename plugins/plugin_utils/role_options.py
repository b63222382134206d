# SPDX-License-Identifier: Apache-2.0
"""Whether a value is what a role's meta/argument_specs.yml says of an option.

The specs have names, types and choices. The range of a number is in its description, in words
("from 1 to 65535" or "1 to 65535", "at least 1"; of a dictionary "keys from 0 to 63, values from
0 to 7"), so that people and this file read the same sentence. So is what may stand in place of a
number ("at least 0, or C(max)", "or a dictionary"), and which texts there are: FORMS and VALUES
below have the words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from ansible.module_utils.common.validation import check_type_bool, check_type_float, check_type_int
from perch_action import named, near

# of hosts and devices: they become parts of paths and command lines
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# a device by its name, a pattern or a PCI address
DEVICE = re.compile(r"[A-Za-z0-9_*?\[][A-Za-z0-9._:*?!\[\]-]*")
NUMBER = r"(-?\d+(?:\.\d+)?)"
RANGE = re.compile(rf"(?<![\w.]){NUMBER} to {NUMBER}|\b[Aa]t least {NUMBER}")
PARTS = re.compile(
    rf"\b(keys|values) ((?:from )?{NUMBER} to {NUMBER}|at least {NUMBER})", re.IGNORECASE
)
EITHER = re.compile(r"\b[Aa]t least (-?\d+), or (?:[CV]\((\w+)\)|(a dictionary))")
VALUES = re.compile(r"\bvalues (?:one of (\w+(?:, \w+)*)|(numbers or texts))")
FORMS = {
    "a word of letters": "[A-Za-z_]+",
    "a list of processors": r"\d+(-\d+)?(,\d+(-\d+)?)*",
    "a time with its unit, such as 24h": r"(?=.*[1-9])\d+(\.\d+)?[smhd]",
}
WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text",
    "path": "a path", "list": "a list", "dict": "a dictionary",
}  # fmt: skip
CONVERT = {"int": check_type_int, "float": check_type_float, "bool": check_type_bool}


def show(value: object) -> str:
    text = "null" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


# A value against its option of a role's argument spec.


def description(option: Mapping) -> str:
    said = option.get("description", "")
    return said if isinstance(said, str) else " ".join(said)


def bounds(option: Mapping) -> tuple[float | None, float | None]:
    """The range that the description of a number says."""
    found = RANGE.search(description(option))
    if not found:
        return None, None
    least, most, alone = found.groups()
    return (float(alone), None) if alone else (float(least), float(most))


def wanted(option: Mapping, kind: str) -> str:
    """Such as 'a whole number from 1 to 65535'."""
    if option.get("choices"):
        return "one of " + ", ".join(
            str(choice) for choice in option["choices"] if choice is not None
        )
    text = form(option)[0] if kind == "str" and form(option) else WORDS.get(kind, kind)
    least, most = bounds(option) if kind in ("int", "float") else (None, None)
    if most is not None:
        text += f" from {least:.15g} to {most:.15g}"
    elif least is not None:
        text += f", at least {least:.15g}"
    return text


def form(option: Mapping) -> tuple[str, re.Pattern] | None:
    """What a text looks like, in words and as a pattern.

    A word in C() before it, as in "C(local) or a list of", is one, too.
    """
    for words, pattern in FORMS.items():
        if found := re.search(rf"(?:C\((\w+)\) or )?{words}", description(option)):
            other = found[1]
            return (
                (f"{other} or {words}", re.compile(f"{other}|{pattern}"))
                if other
                else (words, re.compile(pattern))
            )
    return None


def scalar_fits(option: Mapping, kind: str, value: object) -> bool:
    if isinstance(value, (Mapping, list, tuple)) or (
        kind in ("int", "float") and isinstance(value, bool)
    ):
        return False
    if kind in CONVERT:
        try:
            value = CONVERT[kind](value)
        except (TypeError, ValueError):
            return False
        if not math.isfinite(value):
            return False
    choices = option.get("choices")
    if choices and (
        value is None or str(value) not in [str(choice) for choice in choices if choice is not None]
    ):
        return False
    if kind == "str" and (shape := form(option)) and not shape[1].fullmatch(str(value)):
        return False
    least, most = bounds(option) if kind in ("int", "float") else (None, None)
    return (least is None or value >= least) and (most is None or value <= most)


def null_fits(option: Mapping) -> bool:
    """Whether null is a value, as Ansible has it when a role starts.

    It is nothing where there is no default, and of choices only if it is one.
    """
    choices = option.get("choices")
    return (
        option.get("default") is None
        and not option.get("required")
        and (not choices or None in choices)
    )


def misfits(name: str, option: Mapping, value: object) -> Iterator[str]:
    """What is wrong with a value, as sentences."""
    kind = option.get("type", "str")
    if kind == "list":
        yield from misfits_list(name, option, value)
    elif kind == "dict" or (kind == "raw" and "options" in option and isinstance(value, Mapping)):
        yield from misfits_dictionary(name, option, value)
    elif kind in ("raw", "str") and EITHER.search(description(option)):
        yield from misfits_either(name, option, value)
    elif kind == "raw":
        # a list of names or dictionaries, such as perch_devices
        if "options" in option and not (isinstance(value, str) and DEVICE.fullmatch(value)):
            yield (
                f"{name} must be a name, a pattern or a quoted PCI address, or a dictionary with "
                f"{', '.join(option['options'])}, and is {show(value)}"
            )
    elif not scalar_fits(option, kind, value):
        yield unfit_scalar(name, option, value)


def misfits_list(name: str, option: Mapping, value: object) -> Iterator[str]:
    """The same fault of several entries is one sentence."""
    if not isinstance(value, (list, tuple)):
        yield f"{name} must be a list, and is {show(value)}"
        return
    element = {key: option[key] for key in ("choices", "options", "description") if key in option}
    element["type"] = option.get("elements", "raw")
    entries: dict[str, list[str]] = {}
    for number, item in enumerate(value, 1):
        for text in misfits("", element, item):
            entries.setdefault(text, []).append(str(number))
    for text, numbers in entries.items():
        if len(numbers) == 1:
            yield f"{name}, entry {numbers[0]},{text}"
        else:
            yield f"{name} (entries {named(numbers)}){text}"


def misfits_dictionary(name: str, option: Mapping, value: object) -> Iterator[str]:
    """A dictionary's keys and values."""
    if not isinstance(value, Mapping):
        yield f"{name} must be a dictionary, and is {show(value)}"
    elif option.get("options"):
        yield from misfits_inside(name, option["options"], value)
    else:
        yield from misfits_parts(name, option, value)


def unfit_scalar(name: str, option: Mapping, value: object) -> str:
    """Why a single value does not fit, with the valid one that is near to it."""
    choices = option.get("choices") or ()
    hint = ""
    if value is None and "null" in choices:
        hint = ' (YAML reads a bare null as nothing: write "null")'
    closest = near(str(value), [str(choice) for choice in choices if choice is not None])
    kind = option.get("type", "str")
    return f"{name} must be {wanted(option, kind)}, and is {show(value)}{hint}{closest}"


def misfits_either(name: str, option: Mapping, value: object) -> Iterator[str]:
    """A whole number, or what the description names in its place."""
    least, word, dictionary = EITHER.search(description(option)).groups()
    if dictionary and isinstance(value, Mapping):
        yield from misfits_parts(name, option, value)
    elif value != word and not scalar_fits({"description": f"at least {least}"}, "int", value):
        yield (
            f"{name} must be a whole number, at least {least}, or {word or dictionary}, "
            f"and is {show(value)}"
        )


def misfits_inside(name: str, options: Mapping, value: Mapping) -> Iterator[str]:
    for key, inner in value.items():
        if key not in options:
            yield (
                f"{name} has {show(key)}, which is unknown; "
                f"valid: {', '.join(options)}{near(str(key), options)}"
            )
        elif inner is not None:
            yield from misfits(f"{name} {key}", options[key], inner)
    for key, option in options.items():
        if option.get("required") and value.get(key) is None:
            yield f"{name} has no {key}"


def misfits_parts(name: str, option: Mapping, value: Mapping) -> Iterator[str]:
    """Keys and values of a dictionary with keys of the user's own."""
    for part, said, *_ in PARTS.findall(description(option)):
        number = {"type": "int", "description": said}
        for key, inner in value.items():
            where = f"{name}, key" if part.lower() == "keys" else f"{name} {key}"
            yield from misfits(where, number, key if part.lower() == "keys" else inner)
    if found := VALUES.search(description(option)):
        inside = {"type": "str", "choices": found[1].split(", ")} if found[1] else {"type": "str"}
        for key, inner in value.items():
            yield from misfits(f"{name} {key}", inside, inner)
