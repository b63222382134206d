"""Text from outside, made fit for people's eyes and terminals."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

# C0 and C1 controls, DELETE, line and paragraph separators, lone surrogates, U+FFFE and U+FFFF,
# which XML does not have, and the marks, embeddings, overrides and isolates of the Unicode
# Bidirectional Algorithm (UAX #9)
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def _escaped(match: re.Match[str]) -> str:
    sign = match[0]
    code = ord(sign)
    return _SHORT.get(sign) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def clean(text: str) -> str:
    r"""`text` on one line, without what moves a cursor, sets a colour or turns the order of signs.

    Such a sign becomes its escape, as in `\x1b[31m` or `\u202e`; so it can be seen.
    """
    return UNSEEN.sub(_escaped, text)


#: White space with more than spaces in it.
_break = re.compile(r"\s*[^\S ]\s*")


def one_line(text: str) -> str:
    """`text` with a space for each end of a line or tab, and otherwise clean()."""
    return clean(_break.sub(" ", text).strip())


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """`, did you mean '...'?` where a valid word is close, else nothing."""
    close = difflib.get_close_matches(word, list(valid), n=1)
    return f", did you mean '{close[0]}'?" if close else ""


def names(words: list[str], most: int) -> str:
    """A list that stays readable for hundreds of names."""
    shown = ", ".join(words[:most])
    return shown if len(words) <= most else f"{shown} and {len(words) - most} more"


def plural(number: int | float, word: str) -> str:
    """`1 flow`, `2 flows`."""
    return f"{number} {word}" + ("" if number == 1 else "s")


# ---- documents that do not fit their type ------------------------------------------------------

#: What msgspec says of a value that does not fit its type, and where.
_AT = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<place>.*)`)?", re.DOTALL)
_INDEX = re.compile(r"\[[^]]*\]")
_LACKS = re.compile(r"Object missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_TYPES = {
    "int | float": "number",
    "int": "whole number",
    "float": "number",
    "str": "string",
    "array": "list",
}


def _type_in_words(found: re.Match[str]) -> str:
    kinds = found[1].removesuffix(" | null")
    return _TYPES.get(kinds, kinds)


def explained(error: Exception, keys: Mapping[str, Iterable[str]] | None = None) -> str:
    """Why a document cannot be read: "latency_us.p50: expected number, got string".

    keys: the valid ones by their object's place without indices; an unknown key gets the nearest.
    """
    said = _AT.fullmatch(str(error))
    what, place = (said["what"], said["place"]) if said else (str(error), None)
    unknown = _UNKNOWN.search(what)
    near = ""
    if unknown and keys:
        near = did_you_mean(unknown[1], keys.get(_INDEX.sub("", place or ""), ()))
    what = _LACKS.sub(r"'\1' is missing", _UNKNOWN.sub(rf"unknown key '\1'{near}", what))
    words = re.sub(r"`([^`]*)`", _type_in_words, what)
    if words[1:2].islower():  # not in "JSON is malformed"
        words = words[:1].lower() + words[1:]
    if said and said["key"]:
        words = f"a key is wrong, {words}"
    return f"{place}: {words}" if place else words
