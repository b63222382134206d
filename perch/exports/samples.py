"""Samples and families of Prometheus' text format 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from perch.model.text import clean

_escapes = str.maketrans({"\\": r"\\", '"': r"\""})


def escaped(value: object) -> str:
    """The value of a label, within quotes."""
    return clean(str(value)).translate(_escapes)


def _labels(of: Mapping[str, Any]) -> str:
    known = ",".join(f'{name}="{escaped(one)}"' for name, one in of.items() if one is not None)
    return f"{{{known}}}" if known else ""


def sample(name: str, labels: Mapping[str, Any], value: float) -> str:
    """A line. A label of None is left out."""
    number = int(value) if float(value).is_integer() else value
    return f"{name}{_labels(labels)} {number!r}\n"


def family(name: str, kind: str, text: str, samples: Iterable[str]) -> str:
    """A family with its two comment lines; nothing at all where it has no sample."""
    lines = "".join(samples)
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{lines}" if lines else ""


def gauge(name: str, text: str, samples: Iterable[str]) -> str:
    return family(name, "gauge", text, samples)


def nearest(value: float) -> int:
    """Halves up, as a reader rounds."""
    return math.floor(value + 0.5)


def from_us(microseconds: float) -> float:
    """Seconds, to a picosecond: finer than any tool measures."""
    return nearest(microseconds * 1e6) / 1e12


def from_gbit_s(rate: float) -> int:
    """Bytes a second."""
    return nearest(rate * 125_000_000)
