"""The lines of flows in a run's flows.jsonl, which tests read and edit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def of_run(root: Path) -> Iterator[tuple[Path, Document]]:
    """Each line of a flow, with its file."""
    for file in sorted((root / "raw").rglob("flows.jsonl")):
        for text in file.read_text().splitlines():
            if (line := json.loads(text))["kind"] == "flow":
                yield file, line


def edit(root: Path, flow: str, role: str, change: Callable[[Document], object]) -> None:
    """Changes the line of one end of a flow."""
    ((file, old),) = (
        found for found in of_run(root) if (found[1]["id"], found[1]["role"]) == (flow, role)
    )
    new: Document = json.loads(json.dumps(old))
    change(new)
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    lines[lines.index(old)] = new
    file.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))
