"""What a Markdown document says of switches, under headings that name one: figures in words.

    ### Cisco Nexus Switch (192.0.2.229)
    - **Interface Utilization**: ~100%
    **Primary Traffic Queue (QoS Group 3):**
    - TX Bandwidth: 7,854 - 9,979 Mbps

Sentences without a figure are left to the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from perch.model.figures import rounded
from perch.model.imported import Measure, Stated

_FENCE = re.compile(" {0,3}(```+|~~~+)")
_HEADING = re.compile(r"(?P<level>#{1,6}) +(?P<title>[^#].*?)[ #]*$")
# a device, not "Switch to busy polling"
_SWITCH = re.compile(r"\bswitch(?:es)?\b(?! (?:to|from|on|off|over)\b)", re.IGNORECASE)
_PART = re.compile(r"\*\*(?P<part>[^*]{1,120}?):?\*\*:?[ \t]*$")
_ITEM = re.compile(
    r" *[-*+] +(?:\*\*)?(?P<name>[A-Za-z][^:*]{0,60}?)(?:\*\*)?: *(?:\*\*)? *(?P<value>.+)$"
)

_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,15}(?:\.[0-9]{1,9})?"
_VALUE = re.compile(
    rf"(?P<about>~|≈|about |around |approx\.? |circa )?(?P<low>{_NUMBER})"
    rf"(?: *(?:-|–|to) *(?P<high>{_NUMBER}))? *(?P<unit>%|[GMK]?b(?:ps|/s|it/s)|pps"
    r"|packets/s)?(?:[ ,;(.]|$)",
    re.IGNORECASE,
)

#: Gb/s and the like in Mb/s.
_MBIT = {"g": 1000.0, "m": 1.0, "k": 0.001, "b": 0.000001}

_MEASURES: tuple[tuple[Measure, re.Pattern[str], str], ...] = (
    ("drops", re.compile(r"drop|discard", re.IGNORECASE), ""),
    ("errors", re.compile(r"\berror", re.IGNORECASE), ""),
    ("pause", re.compile(r"\bpause|\bpfc\b", re.IGNORECASE), ""),
    ("ecn", re.compile(r"\becn\b", re.IGNORECASE), ""),
    ("utilisation", re.compile(r"utili[sz]ation|\busage\b", re.IGNORECASE), "%"),
    ("bandwidth", re.compile(r"bandwidth|throughput|\brate\b", re.IGNORECASE), "Mb/s"),
    ("packets", re.compile(r"packets", re.IGNORECASE), "packets/s"),
)


def _in_unit(found: re.Match[str]) -> tuple[str, float]:
    """The unit as records have it, and what a number is multiplied by."""
    unit = (found["unit"] or "").lower()
    if unit in ("", "%"):
        return unit, 1.0
    return ("packets/s", 1.0) if unit.startswith("p") else ("Mb/s", _MBIT[unit[0]])


def _figure(line: str, switch: str, part: str, place: str) -> Stated | None:
    """The figure of an item; None where it has none that is known, or in another unit."""
    item = _ITEM.match(line)
    value = _VALUE.match(item["value"]) if item else None
    if item is None or value is None:
        return None
    unit, factor = _in_unit(value)
    for measure, names, wanted in _MEASURES:
        if names.search(item["name"]):
            if unit != wanted:
                return None
            low, high = (
                rounded(float(number.replace(",", "")) * factor)
                for number in (value["low"], value["high"] or value["low"])
            )
            return Stated(
                switch, item["name"].strip(), measure, low, high, place, part, unit,
                value["about"] is not None,
            )  # fmt: skip
    return None


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(lines, start=1):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence):
            fence = ""
        elif not fence and len(line) <= 400:
            yield number, line


def stated(file: str, lines: Sequence[str]) -> list[Stated]:
    """What a document says, in its order. `place` is `file:line`."""
    return list(_stated(file, _outside_code(lines)))


def _stated(file: str, lines: Iterable[tuple[int, str]]) -> Iterator[Stated]:
    """A section is about switches from a heading that names one to the next one of its level."""
    section, switch, part = 0, "", ""
    for number, line in lines:
        heading = _HEADING.match(line)
        if heading:
            level, title = len(heading["level"]), heading["title"]
            section = 0 if level <= section else section
            part = ""
            if _SWITCH.search(title):
                section, switch = section or level, title
            elif section:
                part = title
        elif section and (found := _PART.match(line.strip())):
            part = found["part"]
        elif section:
            one = _figure(line, switch, part, f"{file}:{number}")
            if one is not None:
                yield one
