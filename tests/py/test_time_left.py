"""The time left that a playbook shows follows what has passed, not only what was planned."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "plugins/action/perch_wait.py"


@pytest.fixture(scope="module")
def plugin() -> Any:
    spec = importlib.util.spec_from_file_location("waiting", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("planned", "planned_passed", "passed", "left"),
    [
        (100, 0, 0, 100),  # the first flow: the plan's own
        (60, 40, 40, 60),  # as planned
        (60, 40, 80, 120),  # twice as slow
        (60, 40, 20, 30),  # twice as fast
        (0, 100, 130, 0),
    ],
)
def test_time_left_follows_the_pace_so_far(
    plugin: Any, planned: float, planned_passed: float, passed: float, left: float
) -> None:
    assert plugin.time_left(planned, planned_passed, passed) == left


@pytest.mark.parametrize(("rail", "said"), [(0, ""), (1, "rail 1, ")])
def test_a_line_of_progress_has_the_corrected_time(plugin: Any, rail: int, said: str) -> None:
    event = {"index": 3, "total": 14, "title": "TCP latency", "client": "a", "server": "b"}
    line = plugin.progress_line(event | {"flow": f"t/a/b/{rail}/1"}, 39.6)
    assert line == f"[ 3/14] TCP latency, a -> b, {said}about 40 s left"
