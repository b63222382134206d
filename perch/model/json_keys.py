"""Keys that a JSON object has twice: the last one would win, and a reader sees the first."""

from __future__ import annotations

import json
from typing import Any

import msgspec


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


def repeated_key(text: bytes) -> str | None:
    """The first key that an object of the document has twice; None where none has.

    text: JSON that msgspec decodes; other text has no such key. A line of the engine takes some
    10 microseconds.
    """
    try:
        if _has_as_many(text):
            return None
        json.loads(text, object_pairs_hook=_object)
    except _RepeatedError as error:
        return str(error.args[0])
    except (ValueError, RecursionError, msgspec.MsgspecError):
        return None
    return None
