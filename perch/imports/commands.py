"""Commands and rates in the text around outputs."""

from __future__ import annotations

import re

_PROMPT = re.compile(r"(?:(?:\[[^]]*\] ?|[^ ]*[@:~/][^ ]* ?)?[$#] +|\++ +)")
_WRAPPER = re.compile(
    "(?:sudo|time|nohup|[A-Z_]+=[^ ]*"
    "|(?:numactl|taskset|timeout|stdbuf)(?: +(?:-[^ ]*|[0-9a-fx,][0-9a-fx,-]*))*) +"
)
_PROGRAM = re.compile(
    r"(?:[^ ]*/)?(?:"
    r"(?:ib_(?:send|write|read|atomic)_(?:bw|lat)|raw_ethernet_(?:bw|lat)|iperf3?"
    r"|cxi_(?:send|write|read|atomic)_(?:bw|lat))(?: |$)"
    r"|(?:torchrun|python3?) .*benchmark\.py)"
)
#: Longer lines are no commands that anybody typed.
LONGEST = 4000

_UNIT = r"(?:GbE|Gb/s|Gbps|Gbit/s"
# "9.23 Gbps (92% of 10G link)", "link rate: 25 Gb/s"
_RATE = re.compile(
    rf"(?<![0-9.])(?P<before>[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?) ?{_UNIT}|G)[ -](?:link|line)"
    r"|[Ll]ink(?:[ -](?:[Rr]ate|[Ss]peed))?(?:\*\*)?: *(?:\*\*)? ?"
    rf"(?P<after>[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?) ?{_UNIT}|G(?:[^A-Za-z/]|$))"
)


def command(text: str, *, fenced: bool) -> str | None:
    """A command of one of the tools, without its prompt.

    It stands behind a prompt, or in a code block of Markdown (`fenced`).
    """
    if len(text) > LONGEST or (fenced and text.startswith("# ")):
        return None
    prompt = _PROMPT.match(text)
    if prompt is None and not fenced:
        return None
    bare = text[prompt.end() if prompt else 0 :].lstrip(" ")
    while wrapper := _WRAPPER.match(bare):
        bare = bare[wrapper.end() :]
    return bare if _PROGRAM.match(bare) else None


def rates(text: str) -> set[float]:
    """Gb/s of links that a line of prose states."""
    if len(text) > LONGEST:
        return set()
    return {float(found["before"] or found["after"]) for found in _RATE.finditer(text)}
