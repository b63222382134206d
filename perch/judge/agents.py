"""What an agent says of itself: the first line and the last one of a walk's flows.jsonl."""

from __future__ import annotations

import os
from typing import BinaryIO

import msgspec

from perch.judge.host_lines import FLOWS, LINE_MAX, Stretch, decoded, stretch, whole_lines
from perch.judge.raw import UNREADABLE, RawFiles, schema_of
from perch.model.json_keys import repeated_key
from perch.model.raw import Agent
from perch.model.raw_lines import SCHEMA, Brief, EndLine, Head
from perch.model.text import explained

#: Bytes of the last line, which has no output, at most.
END_MAX = 64 * 2**10

_head = msgspec.json.Decoder(Head)
_brief = msgspec.json.Decoder(Brief)
_last = msgspec.json.Decoder(EndLine)


def agent_of(files: RawFiles, folder: str) -> Agent | None:
    """What the first line and the last one say of the agent; None without the file.

    With a key twice they say nothing that can be used.
    """
    path = f"{folder}/{FLOWS}"
    file = files.stream(path)
    if file is None:
        return None
    with file:
        lines = [file.readline(LINE_MAX)]
        size = file.seek(0, os.SEEK_END)
        end = stretch(file, Stretch(max(size - END_MAX, 0), size)).splitlines(keepends=True)
        last = decoded(_last, end[-1]) if end and end[-1].endswith(b"\n") else None
        done, cut = 0, ""
        if last is not None:
            lines.append(end[-1])
        else:
            file.seek(0)
            done, cut = _without_end(file, size)
    head = decoded(_head, lines[0])
    if head is None or head.schema != SCHEMA:
        return Agent(state="foreign", fault=f"{path}, line 1: {_not_head(lines[0])}")
    agent = Agent(
        fault=f"{path}, {cut}" if cut else "",
        run=head.run,
        plan_sha256=head.plan_sha256,
        host=head.host,
        started=head.started,
        ended=last.ended if last else None,
        state=last.state if last else "running",
        flows_total=head.flows,
        flows_done=last.flows_done if last else done,
        message=last.message if last else None,
    )
    for line in lines:
        if (key := repeated_key(line)) is not None:
            agent.state = "foreign"
            agent.fault = f"{path} has the key '{key}' twice in one object"
    return agent


def _not_head(line: bytes) -> str:
    """Why a first line is no head of this format."""
    try:
        schema = schema_of(line)
        if schema == SCHEMA:
            _head.decode(line)
    except UNREADABLE as error:
        return f"it cannot be read: {explained(error)}"
    if not schema:
        return f"it is not the head of {SCHEMA}"
    return f"its schema is '{schema}', not {SCHEMA}"


def _without_end(file: BinaryIO, size: int) -> tuple[int, str]:
    """How many flows a file without its last line has, and where it is damaged."""
    done = number = over = 0
    line = b""
    for at, line in whole_lines(file):
        number += 1
        done += b'"kind":"flow"' in line[:16]
        over = at + len(line)
    if over < size:
        return done, f"line {number + 1}: the file ends in the middle of it"
    brief = decoded(_brief, line)
    if brief is None or brief.kind == "end":
        return done, f"line {number}: it cannot be read"
    return done, ""
