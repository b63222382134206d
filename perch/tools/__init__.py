"""The measuring tools. A file of this package that holds a `TOOL` adds one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from types import ModuleType

from perch.errors import ExitCode, PerchError
from perch.model.part import Part
from perch.model.record import Error
from perch.tools.tool import UNUSABLE, Tool, ToolOutput

__all__ = ["TOOLS", "Tool", "ToolOutput", "is_tcp", "read", "read_many", "registered"]


def registered(modules: Iterable[ModuleType]) -> dict[str, Tool]:
    """The tools of these modules by name. Two tools of one name are a PerchError."""
    tools: dict[str, Tool] = {}
    files: dict[str, str] = {}
    for module in modules:
        tool = getattr(module, "TOOL", None)
        if not isinstance(tool, Tool):
            continue
        if tool.name in tools:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"tool '{tool.name}' is defined twice; the other is in {files[tool.name]}",
                file=module.__file__,
                remedy="rename one of them",
            )
        tools[tool.name] = tool
        files[tool.name] = str(module.__file__)
    return tools


def _modules() -> list[ModuleType]:
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


TOOLS = registered(_modules())


def is_tcp(name: str | None) -> bool:
    """Whether the tool of this name measures over TCP sockets, whatever its options."""
    tool = TOOLS.get(name or "")
    return tool is not None and tool.is_tcp


def read_many(outputs: Sequence[ToolOutput]) -> list[list[Part]]:
    """What each of many outputs says, as `read` has it."""
    found: list[list[Part]] = [[] for _ in outputs]
    together: dict[str, list[int]] = {}
    for at, output in enumerate(outputs):
        together.setdefault(output.flow.tool, []).append(at)
    for name, places in together.items():
        tool = TOOLS.get(name)
        of_tool = [outputs[at] for at in places]
        if tool is not None and tool.read_many is not None:
            parts = tool.read_many([output.stdout for output in of_tool])
        else:
            parts = list(map(read, of_tool))
        for at, of_output in zip(places, parts, strict=True):
            found[at] = of_output
    return found


def read(output: ToolOutput) -> list[Part]:
    """What an output says: its results, each with a status. It never raises."""
    tool = TOOLS.get(output.flow.tool)
    if tool is None:
        message = f"there is no reader for the tool '{output.flow.tool}'"
        return [Part(status="error", error=Error(code=UNUSABLE, message=message))]
    return tool.read(output)
