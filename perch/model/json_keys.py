"""Keys that a JSON object has twice: the last one would win, and a reader sees the first."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

#: Lines of one program differ in their figures: a few outlines stand for all of them.
OUTLINES_MAX = 1024

_FIGURES = b"0123456789.-+"
#: Matches may overlap: what looks like a key may end where a key that begins with a colon begins.
_KEY = re.compile(rb'(?=("[^"\\]*+":))')
#: A key that `_KEY` would not find.
_APART = re.compile(rb'"\s+:')
#: The longest string of an output that is of another text each time.
_DATA = b'"data":"'


class _RepeatedError(Exception):
    """Its first argument is the key."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedError(key)
        found[key] = value
    return found


def _has_as_many(text: bytes) -> bool:
    """Whether the document, written again, has as many colons: each key has one.

    In a string a colon stays one, if it was not written as an escape.
    """
    if b"\\u" in text:
        return False
    again = msgspec.json.encode(msgspec.json.decode(text))
    return text.count(b":") == again.count(b":")


class _Outlines:
    """Documents without figures: those that are alike have the same keys.

    Of keys with digits or signs, which may differ in nothing else, each is there once; a document
    with one of them twice, with an escape, or with space behind a key has no outline here.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, list[bytes]] = {}

    def has(self, text: bytes) -> bool:
        """Whether a document is like one that has no key twice."""
        numbered = self._known.get(_outline(text))
        return numbered is not None and set(map(text.count, numbered)) <= {1}

    def add(self, text: bytes) -> None:
        """A document that has no key twice."""
        numbered = [key for key in _KEY.findall(text) if key.translate(None, _FIGURES) != key]
        if b"\\" in text or _APART.search(text) or len(set(numbered)) < len(numbered):
            return
        if len(self._known) < OUTLINES_MAX:
            self._known[_outline(text)] = numbered


def _outline(text: bytes) -> bytes:
    """The text without figures, and without a histogram."""
    begin = text.find(_DATA) + len(_DATA)
    if begin >= len(_DATA):
        text = text[:begin] + text[text.find(b'"', begin) :]
    return text.translate(None, _FIGURES)


_outlines = _Outlines()


def repeated_key(text: bytes) -> str | None:
    """The first key that an object of the document has twice; None where none has.

    text: JSON that msgspec decodes; other text has no such key. A line of the engine takes some
    10 microseconds.
    """
    if _outlines.has(text):
        return None
    try:
        if _has_as_many(text):
            _outlines.add(text)
            return None
        json.loads(text, object_pairs_hook=_object)
    except _RepeatedError as error:
        return str(error.args[0])
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return None
