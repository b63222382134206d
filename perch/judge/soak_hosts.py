"""What the agent of a soak says in flows.jsonl beside the ends of its flows."""

from __future__ import annotations

import msgspec

from perch.judge.host_lines import FLOWS, Stretch, between, flow_line, lines_of
from perch.judge.raw import RawFiles, walk_folder
from perch.model.raw import SoakAgent
from perch.model.raw_lines import Brief, EndLine, EpisodeLine, FlowLine, StartLine

_line = msgspec.json.Decoder(StartLine | EpisodeLine | EndLine)
_brief = msgspec.json.Decoder(Brief)


def soak_agent(files: RawFiles, host: str) -> SoakAgent:
    """Of lines that cannot be read nothing; perch.judge.host_lines.index names them."""
    told = SoakAgent()
    for number, (at, text) in enumerate(lines_of(files, f"{walk_folder(host)}/{FLOWS}"), 1):
        try:
            brief = _brief.decode(text)
            if brief.kind == "flow" and brief.role == "client":
                told.clients.setdefault(brief.id, (number, at, at + len(text)))
            if brief.kind in ("start", "episode", "end"):
                _tell(told, number, _line.decode(text))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
    return told


def _tell(told: SoakAgent, number: int, line: StartLine | EpisodeLine | EndLine) -> None:
    if isinstance(line, StartLine):
        told.starts.append(line)
    elif isinstance(line, EpisodeLine):
        told.episodes.setdefault(line.what, []).append(number)
    else:
        told.end, told.end_at = line, number


def client_line(files: RawFiles, host: str, at: tuple[int, int, int]) -> FlowLine | None:
    """A line of `SoakAgent.clients`; None where it cannot be read."""
    _, begin, end = at
    return flow_line(between(files, f"{walk_folder(host)}/{FLOWS}", Stretch(begin, end)))
