"""Numbers with units, as suites write them and as the engine reads them."""

from __future__ import annotations

import re

from perch.model.record import Number

KIBI, MEBI, GIBI = 2**10, 2**20, 2**30

SIZES = {"": 1, "K": KIBI, "M": MEBI, "G": GIBI}
TIMES_S = {"ns": 1e-9, "us": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600}
#: Of rates: decimal, unlike sizes.
RATES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}

#: The engine's bounds: sizes of one job, and bytes of one message (4 GiB - 1).
SIZES_MAX = 128
SIZE_MAX = 2**32 - 1

_size = re.compile(r"([0-9]+)([KMG]?)")
_time = re.compile(r"([0-9]+(?:[.][0-9]+)?)(ns|us|ms|s|m|h)")
_rate = re.compile(r"([0-9]+(?:[.][0-9]+)?)([KMG]?)(msg/s|messages/s|b/s)")


def size_bytes(given: int | str) -> int:
    """Bytes: "64K" is 65536. Raises ValueError."""
    if isinstance(given, int):
        return given
    found = _size.fullmatch(given)
    if found is None:
        raise ValueError(f'"{given}" is no size; write 8, 64K or 1M')
    return int(found[1]) * SIZES[found[2]]


def sizes(given: int | str) -> list[int]:
    """Bytes of each size: "8:64" is 8, 16, 32, 64. A third part is added, not doubled.

    The engine's --size has the same grammar. Raises ValueError.
    """
    parts = [size_bytes(part) for part in str(given).split(":")]
    why = None
    if any(not 1 <= part <= SIZE_MAX for part in parts):
        why = "a part is out of range"
    elif len(parts) > 3:
        why = "it has more than three parts"
    elif len(parts) > 1 and parts[1] < parts[0]:
        why = "MAX is less than MIN"
    elif len(parts) == 3 and (parts[1] - parts[0]) / parts[2] >= SIZES_MAX:
        why = f"these are more than {SIZES_MAX} sizes"
    if why is not None:
        form = f"SIZE, MIN:MAX (doubling) or MIN:MAX:STEP, each from 1 to {SIZE_MAX}"
        raise ValueError(f'size "{given}": {why}; write {form}')
    if len(parts) == 1:
        return parts
    if len(parts) == 2:
        return doubled(parts[0], parts[1])
    return list(range(parts[0], parts[1] + 1, parts[2]))


def doubled(least: int, most: int) -> list[int]:
    """3, 10: 3, 6."""
    steps = [least]
    while steps[-1] * 2 <= most:
        steps.append(steps[-1] * 2)
    return steps


def seconds(given: Number | str) -> float:
    """Seconds: "300ms" is 0.3. Raises ValueError."""
    if isinstance(given, (int, float)):
        return given
    found = _time.fullmatch(given)
    if found is None:
        raise ValueError(f'"{given}" is no duration; write 300ms, 2s or 1m')
    return float(found[1]) * TIMES_S[found[2]]


def rate(given: str) -> tuple[float, str]:
    """A rate and its unit, b/s or messages/s: "5Gb/s" is 5e9 b/s. Raises ValueError."""
    found = _rate.fullmatch(given)
    if found is None:
        raise ValueError(f'"{given}" is no rate; write 1000msg/s or 5Gb/s')
    value = float(found[1]) * RATES[found[2]]
    if value == 0:
        raise ValueError("a rate must be above 0")
    return value, "b/s" if found[3] == "b/s" else "messages/s"


def pace(given: str, size: int) -> float:
    """Seconds from one message of `size` bytes to the next, at a rate. Raises ValueError."""
    value, unit = rate(given)
    return 8 * size / value if unit == "b/s" else 1 / value


def shown(value: object) -> str:
    """A parameter as a word of a command line: 2.0 is "2"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
