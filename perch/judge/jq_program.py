"""Programs of reports/jq, with the libraries that they import in one text.

jq 1.6 compiles an imported library in a time that grows with the square of its definitions.
"""

from __future__ import annotations

import re
from functools import cache

from perch.home import HOME

JQ = HOME / "reports/jq"

_IMPORT = re.compile(r'import "([\w/]+)" as (\w+);')
_DEFINITION = re.compile(r"^def (\w+)(\([^)]*\))?:", re.MULTILINE)
_QUALIFIED = re.compile(r"\w+__\w+")


def _prefix(library: str) -> str:
    return library.replace("/", "__") + "__"


def _without_imports(text: str, libraries: dict[str, str]) -> str:
    """The text with the whole names of what it imports.

    Adds to `libraries` by name those that are not there yet, behind those that they import.
    """
    for name, alias in _IMPORT.findall(text):
        if name not in libraries:
            own = (JQ / f"{name}.jq").read_text(encoding="utf-8")
            libraries[name] = _without_imports(own, libraries)
        text = re.sub(rf"\b{alias}::", _prefix(name), text)
    return _IMPORT.sub("", text)


@cache
def whole(program: str) -> str:
    """The program with its libraries.

    Each definition that others use has its whole name, too: a later library may have one of the
    same short name.
    """
    libraries: dict[str, str] = {}
    main = _without_imports(program, libraries)
    used = set(_QUALIFIED.findall("\n".join([*libraries.values(), main])))
    texts = []
    for name, text in libraries.items():
        found = dict.fromkeys(_DEFINITION.findall(text))
        exported = [(f"{_prefix(name)}{short}", short, given) for short, given in found]
        texts.append(text)
        texts += [f"def {long}{of}: {short}{of};" for long, short, of in exported if long in used]
    return "\n".join([*texts, main])
