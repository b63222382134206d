"""Numbers and words as a reader sees them. Templates only place what is made here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from perch.checks import names, plural
from perch.model.figures import encode, is_finite, rounded
from perch.model.text import clean
from perch.model.verdict import Bound

__all__ = ["names", "plural"]

#: A cell that says nothing.
NOTHING = "-"

Figure = int | float | None

KIB, MIB, GIB = 1024, 1024**2, 1024**3

#: Decimals of a figure from this size on: three significant digits, as many as repeats of a
#: network measurement agree in.
_DECIMALS = ((99.95, 0), (9.995, 1), (0.9995, 2), (0.09995, 3), (0.0009995, 4), (0.00001, 5))

# ---- numbers -------------------------------------------------------------------------------------


def fixed(value: float, decimals: int) -> str:
    """`value` with so many decimals, halves away from zero."""
    scaled = abs(value) * 10**decimals
    whole = math.floor(scaled)
    if scaled - whole >= 0.5:
        whole += 1
    digits = str(whole).rjust(decimals + 1, "0")
    if decimals:
        digits = f"{digits[:-decimals]}.{digits[-decimals:]}"
    return ("-" if value < 0 else "") + digits


def whole(value: Figure) -> str:
    """A count: 12,345."""
    if not is_finite(value):
        return "-"
    text = fixed(value, 0)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    return f"{sign}{int(digits):,}"


def figure(value: Figure) -> str:
    """A measured figure in three significant digits; a dash where there is none."""
    if not is_finite(value):
        return "-"
    size = abs(value)
    if size == 0:
        return "0"
    for least, decimals in _DECIMALS:
        if size >= least:
            return fixed(value, decimals) if decimals else whole(value)
    return "< 0.00001"


def plain(value: Figure) -> str:
    """Counts and round limits as they are, measured figures in three digits."""
    return whole(value) if is_finite(value) and value == math.floor(value) else figure(value)


def size(value: Figure) -> str:
    """Bytes of a message: 8 B, 64 KiB, 1 MiB."""
    if not is_finite(value):
        return "-"
    for unit, word in ((MIB, "MiB"), (KIB, "KiB")):
        if value >= unit and value % unit == 0:
            return f"{rounded(value / unit)} {word}"
    return f"{rounded(value)} B"


def memory_size(value: Figure) -> str:
    return f"{figure(value / GIB)} GiB" if is_finite(value) else "-"


def times(value: Figure) -> str:
    """A ratio: 1.98x."""
    return f"{figure(value)}x" if is_finite(value) else "-"


def percent(value: float, decimals: int = 1) -> str:
    return f"{fixed(value, decimals)} %"


_in_a_million = re.compile(r"(?:(\w+) )?in a million( packets)?")


def unit_sign(unit: str | None) -> str:
    """The unit as shown: `packets in a million` is read after a number as `per million packets`."""
    if unit == "us":
        return "µs"
    rare = _in_a_million.fullmatch(unit or "")
    if rare is None:
        return unit or ""
    counted, base = rare.groups()
    if base and counted:
        return f"{counted} per million{base}"
    return f"per million {counted or 'packets'}"


def quantity(value: Figure, unit: str) -> str:
    """A figure with its unit; a dash where there is none."""
    if value is None:
        return "-"
    return whole(value) if unit == "segments" else f"{figure(value)} {unit_sign(unit)}"


def _end(value: Figure) -> str:
    """An end of a bound: as JSON has it where it is too small for decimals."""
    if is_finite(value) and 0 < abs(value) < _DECIMALS[-1][0]:
        return encode(rounded(value)).decode()
    return plain(value)


def bound(limit: Bound | None, unit: str | None) -> str:
    """`at least 90 Gb/s`; a dash where there is no limit."""
    low, high = (limit.min, limit.max) if limit else (None, None)
    if low is None and high is None:
        return "-"
    if low is not None and low == high:
        text = _end(low)
    elif low is not None and high is not None:
        text = f"{_end(low)} to {_end(high)}"
    else:
        text = f"at most {_end(high)}" if low is None else f"at least {_end(low)}"
    return f"{text} {unit_sign(unit)}".rstrip()


def value(measured: Any, unit: str | None) -> str:
    """What a check measured. Words stay as they are: who puts them into Markdown uses `cell`."""
    if measured is None:
        return "-"
    if isinstance(measured, str):
        return measured
    if isinstance(measured, int | float) and not isinstance(measured, bool):
        return f"{plain(measured)} {unit_sign(unit)}".rstrip()
    return encode(measured).decode()


_digest = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


def short_digests(text: str) -> str:
    """Twelve digits of each SHA-256 are enough to compare two; folded tables have all of them."""
    return _digest.sub(r"\1", text)


# ---- text from outside ---------------------------------------------------------------------------

_blank = re.compile(r"\s+")

#: What any of these does in Markdown, it does not behind its escape.
_ESCAPES = {"\\": r"\\", "&": "&amp;", "<": "&lt;"} | {sign: f"\\{sign}" for sign in "|`*[]~$"}
_escaped = str.maketrans(_ESCAPES)
#: An underscore within a word means nothing, and keeps its looks.
_underscore = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
#: Where a colon begins an emoji: ":fe80:" in an address may be one.
_emoji = re.compile(r":(?=(?:100|1234|[a-z+-][a-z0-9_+-]*):)")
_begins_block = re.compile(r"#|>|[-+=] |[-=_]{3}")
_begins_list = re.compile(r"([0-9]+)([.)]) ")


def line(text: Any) -> str:
    """On one line, without any control character."""
    if text is None:
        return "-"
    if not isinstance(text, str):
        text = encode(text).decode()
    return clean(_blank.sub(" ", text).strip(" ") if _blank.search(text) else text)


def cell(text: Any) -> str:
    """Text from outside, in a cell or anywhere else in Markdown: no sign of it does anything."""
    said = line(text).translate(_escaped)
    said = said.replace(" #", r" \#").replace("://", r"\://").replace("www.", r"www\.")
    if "_" in said:
        said = _underscore.sub(r"\\_", said)
    if ":" in said:
        said = _emoji.sub(r"\\:", said)
    if _begins_block.match(said):
        return f"\\{said}"
    return _begins_list.sub(r"\1\\\2 ", said, count=1) if _begins_list.match(said) else said


def code(text: Any) -> str:
    """As code where code can hold it: within it nothing can be escaped."""
    said = line(text)
    return cell(said) if "`" in said or "|" in said or not said else f"`{said}`"


def term(word: str) -> str:
    """A word that links to its meaning in the report."""
    return f"[{word}](#terms)"


def unmarked(markdown: str) -> str:
    """What a terminal shows of such Markdown."""
    text = re.sub(r"(?<!\\)\[([a-z ]+)\]\(#[a-z-]+\)", r"\1", markdown.replace("**", ""))
    text = re.sub(r"\\([^A-Za-z0-9 ])", r"\1", text)
    return text.replace("&lt;", "<").replace("&amp;", "&")


def some(texts: Iterable[str], most: int) -> str:
    return names(list(texts), most)


# ---- words that several tables share -------------------------------------------------------------

_DEFINITIONS = {
    "half_round_trip": "half of a round trip",
    "completion": "from posting to local completion",
    "batch_completion": "from posting the first transfer of a batch to the completion of its last",
    "receiver_acknowledged": "payload until the receiver's final acknowledgement",
    "initiator_completion": "payload until the initiator's last completion",
    "receiver_payload": "payload that the receiver counted",
    "sender_payload": "payload that the sender wrote",
    "frame_completion": "whole Ethernet frames until the sender's last completion",
}


def definition_words(definition: str | None) -> str:
    return _DEFINITIONS.get(definition or "", definition or "not stated")


def waiting_words(completion: str | None) -> str:
    if completion == "event":
        return "waiting by events"
    return "busy polling" if completion == "busy" else "waiting mode not stated"


def capitalized(text: str | None) -> str | None:
    """As a sentence begins."""
    return text and text[:1].upper() + text[1:]


def joined(parts: Iterable[str | None], between: str = "; ") -> str:
    """Those that say something."""
    return between.join(part for part in parts if part)


def optional(show: Callable[[Any], str], number: Any) -> str | None:
    return None if number is None else show(number)
