"""Plans of a few lines of suite and inventory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from perch.plan import planner, rounds
from perch.plan.planner import Planned
from tests import spelled

#: A latency test; tests change what they are about.
LATENCY = {
    "name": "t",
    "title": "T",
    "tool": "perch",
    "backend": "tcp",
    "kind": "latency",
    "params": {"size": "8:64", "duration": "2s"},
}


def takes_all(argv: Sequence[str]) -> None:
    """An engine without rules."""


def suite_test(**members: Any) -> dict[str, Any]:
    """A test of the engine over tcp, of 8 bytes, unless told otherwise."""
    return {**LATENCY, "params": {"size": 8}, **members}


def hosts(number: int, **variables: Any) -> dict[str, dict[str, Any]]:
    """h0, h1, ... on one RoCE fabric."""
    return {
        f"h{i}": {
            "perch_address": f"192.0.2.{i + 1}",
            "perch_fabric": "roce",
            "perch_backends": ["tcp", "ofi"],
            "perch_link_gbit_s": 100,
            **variables,
        }
        for i in range(number)
    }


def planned(
    tests: Iterable[dict[str, Any]],
    inventory: dict[str, dict[str, Any]],
    check: Any = takes_all,
    **more: Any,
) -> Planned:
    """`more`: soak and soak_duration, switches."""
    suite = {"name": "s", "title": "S", "tests": list(tests), "soak": more.pop("soak", None)}
    document = {
        "run": "r",
        "created": "2026-01-01T00:00:00Z",
        "limits": "local",
        "suite": suite,
        "hosts": inventory,
        **more,
    }
    return planner.plan(msgspec.convert(document, planner.Inputs), check)


def document(planned: Planned) -> Any:
    """The plan, its flows spelled out."""
    lines = list(rounds.lines(planned))
    plan = rounds.plan_document(planned, b"".join(map(rounds.text, lines)))
    return spelled.spelled(plan, lines)


def flows(planned: Planned) -> list[dict[str, Any]]:
    return [flow for turn in document(planned)["rounds"] for flow in turn["flows"]]


def excluded(planned: Planned) -> list[tuple[str, str]]:
    return [(one.test, one.reason) for one in planned.excluded]
