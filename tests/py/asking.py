"""A planned flow, and what makes an output another than the plan asks for."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from perch.judge.asked import asked
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.tools.command import Ends

NO_DEVICES = Ends()


def flow(tool: str, params: dict[str, Any] | None = None, **stated: Any) -> Flow:
    given = {"kind": "latency", "op": "send", **stated}
    return Flow(
        id="t/a/b/0/1", test="t", tool=tool, client="a", server="b", scope="software",
        params={"size": 8} | (params or {}), expect=[Expect(size_bytes=8)], **given,
    )  # fmt: skip


def judged(planned: Flow, part: dict[str, Any], ends: Ends = NO_DEVICES) -> Part:
    found = msgspec.convert(part, Part)
    asked(planned, ends).judge(0, found)
    return found


def why(planned: Flow, part: dict[str, Any], ends: Ends = NO_DEVICES) -> str | None:
    """What makes this part an error; None where it is as planned."""
    error = judged(planned, part, ends).error
    return error.message if error else None


def changed(part: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    made = copy.deepcopy(part)
    *parents, key = path.split(".")
    at = made
    for name in parents:
        at = at[name]
    at[key] = value
    return made


def other(value: Any) -> Any:
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else "other"


#: What the engine says of a send.
SEND = {"backend": "tcp", "kind": "latency", "op": "send", "definition": "half_round_trip"}
