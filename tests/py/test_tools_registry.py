"""One file a tool: what the registry holds, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from perch.checks import scope
from perch.errors import ExitCode, PerchError
from perch.imports import imported
from perch.judge import links
from perch.model.part import Part
from perch.model.plan import Flow, Plan, PlanHost, Suite
from perch.model.record import ToolName
from perch.tools import TOOLS, Tool, ToolOutput, read, registered

TOP = Path(__file__).parents[2]
#: The variables of hosts that an inventory may set.
OF_HOSTS = yaml.safe_load((TOP / "roles/inventory_check/meta/argument_specs.yml").read_text())[
    "argument_specs"
]["host"]["options"]


def module(name: str, tool: Tool | None = None) -> ModuleType:
    made = ModuleType(name)
    made.__file__ = f"perch/tools/{name}.py"
    if tool is not None:
        made.TOOL = tool  # type: ignore[attr-defined]
    return made


def test_a_module_with_a_tool_adds_it() -> None:
    tool = Tool("netperf", read=lambda output: [])
    assert registered([module("helpers"), module("netperf", tool)]) == {"netperf": tool}


def test_two_tools_of_one_name_refuse_to_load() -> None:
    modules = [module(name, Tool("iperf", read=lambda output: [])) for name in ("a", "b")]
    with pytest.raises(PerchError) as error:
        registered(modules)
    assert error.value.code == ExitCode.INCONCLUSIVE
    assert str(error.value) == (
        "perch/tools/b.py: tool 'iperf' is defined twice; the other is in perch/tools/a.py; "
        "rename one of them"
    )


def test_a_tool_without_a_reader_is_an_error_part() -> None:
    flow = Flow(id="t/a/b/0/1", test="t", tool="ttcp", kind="bandwidth", client="a", server="b",
                scope="software")  # fmt: skip
    (part,) = read(ToolOutput(flow))
    assert part.status == "error" and part.error is not None and part.error.code == 6
    assert part.error.message == "there is no reader for the tool 'ttcp'" and not part.error.traffic


@pytest.mark.parametrize(("status", "code"), [(126, 3), (127, 3), (1, 6)])
def test_the_shell_says_what_could_not_run(status: int, code: int) -> None:
    assert Tool("x", read=lambda output: []).exit_code_of(status, "") == code


def test_every_tool_has_its_own_name() -> None:
    assert all(name == tool.name for name, tool in TOOLS.items())


def test_a_tool_over_tcp_says_so_in_its_own_file_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool("netperf", read=lambda output: [], is_tcp=True)
    monkeypatch.setitem(TOOLS, "netperf", tool)
    host = PlanHost("192.0.2.1", "roce", "hardware", 1)
    plan = Plan(
        schema="perch.plan/2", run="r", created="", suite=Suite("s", "S"), limits="x", rounds=[],
        hosts={"a": host, "b": host},
    )  # fmt: skip
    flow = Flow(id="t/a/b/0/1", test="t", tool="netperf", kind="bandwidth", client="a", server="b",
                scope="software")  # fmt: skip
    part = Part(status="ok", tool=ToolName("netperf"))
    assert scope.is_beside(flow, plan)
    assert links.is_stream(part, flow)
    assert imported.shown_scope(part) == "software"


# ---- what suites and inventories may name --------------------------------------------------------


def test_suites_and_inventories_may_name_each_tool_that_has_commands() -> None:
    planned = {tool.name for tool in TOOLS.values() if tool.commands}
    schema = json.loads((TOP / "playbooks/suites/suite.schema.json").read_text())
    assert set(schema["$defs"]["test"]["properties"]["tool"]["enum"]) == planned
    assert set(OF_HOSTS["perch_tools"]["choices"]) == planned


def test_inventories_may_set_the_port_of_each_tool_that_has_one() -> None:
    ports = {
        f"perch_{tool.name}_port": tool.default_port
        for tool in TOOLS.values()
        if tool.default_port is not None
    }
    assert {name: OF_HOSTS.get(name, {}).get("default") for name in ports} == ports
