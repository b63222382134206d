"""The one way of rounding and the one serializer: the same bytes on every machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, TypeGuard

import msgspec
import numpy as np
import numpy.typing as npt

_encoder = msgspec.json.Encoder()
_sorted = msgspec.json.Encoder(order="sorted")

#: Significant digits of a figure: finer than any tool measures, coarser than what the order of a
#: sum changes.
DIGITS = 9
_SPECIFIER = f".{DIGITS}g"

#: Readers of JSON take no larger integer (int64 of databases).
_WHOLE = 2**63


def rounded(value: float) -> int | float:
    """`value` with 9 significant digits, a whole number as an integer if 64 bits hold it.

    Integers are counts and stay exact.
    """
    if isinstance(value, int):
        return value
    figure = float(format(value, _SPECIFIER))
    return int(figure) if figure.is_integer() and abs(figure) < _WHOLE else figure


#: Powers of ten up to here are exact in a double: with a whole number below 2^53, their product or
#: quotient is the double nearest to the decimal.
_EXACT_POWER = 22
#: A figure so near to the middle of two, in units of its last digit, is rounded by itself.
_MIDDLE = 1e-6


def rounded_all(
    values: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """`rounded` of many figures not below 0, as floats; nan stays. And where it is not sure."""
    with np.errstate(all="ignore"):
        digits = DIGITS - 1 - np.floor(np.log10(values))
    digits[~np.isfinite(digits)] = 0
    unsure = np.abs(digits) > _EXACT_POWER
    digits[unsure] = 0
    up, down = 10.0 ** np.maximum(digits, 0), 10.0 ** np.maximum(-digits, 0)
    scaled = values * up / down
    whole = np.rint(scaled)
    unsure |= np.abs(np.abs(scaled - whole) - 0.5) < _MIDDLE
    return whole / up * down, unsure


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that JSON can carry."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def ratio(a: float | None, b: float | None) -> int | float | None:
    """a / b, rounded; None where one of them is missing or b is not above 0."""
    if a is None or b is None or not b > 0:
        return None
    return rounded(a / b)


def median(values: Sequence[float]) -> float | None:
    """The middle value; of an even number the mean of the two. None of none."""
    ordered = sorted(values)
    n = len(ordered)
    if n == 0:
        return None
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


#: Ten, of a product of a share that no float holds.
TEN = 9.999999


def supports(count: float, quantile: float) -> bool:
    """Whether ten of `count` samples lie above this quantile (docs/definitions.md)."""
    return count * (1 - quantile) >= TEN


#: The signs of perch.model.text.UNSEEN that JSON may hold as they are, in UTF-8.
_raw = re.compile(
    rb"\x7f|\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
    rb"|\xef\xbf[\xbe\xbf]"
)


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())


def _visible(text: bytes) -> bytes:
    """JSON without raw controls of terminals and line separators, which JSON itself allows.

    To a reader of lines, U+2028 may end one. The encoder escapes those below U+0020 itself.
    """
    if text.isascii() and b"\x7f" not in text:
        return text
    return _raw.sub(_escape, text)


def encode(document: Any) -> bytes:
    """One line of JSON, without the newline."""
    return _visible(_encoder.encode(document))


def encode_lines(documents: Sequence[Any]) -> bytes:
    """A line of JSON for each, with its newline."""
    return _visible(_encoder.encode_lines(documents))


def encode_sorted(document: Any) -> bytes:
    """One line whose keys are in the order of their names, for what is hashed."""
    return _visible(_sorted.encode(document))


def pretty(document: Any) -> bytes:
    """A document for files that people open, too."""
    return msgspec.json.format(encode(document), indent=2) + b"\n"
