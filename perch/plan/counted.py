"""Which counters there are, and when traffic shows in them: counters.json."""

from __future__ import annotations

import json
import pkgutil
from functools import lru_cache
from typing import Any


@lru_cache
def table() -> list[dict[str, Any]]:
    """Read once: the agent's file may be another one by the next time."""
    # of perch: a package that get_data loads itself is no attribute of the one above it
    content = pkgutil.get_data("perch", "agent/counters.json")
    assert content is not None
    sources: list[dict[str, Any]] = json.loads(content)["sources"]
    return sources
