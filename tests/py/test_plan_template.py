"""Templates of commands: what stands in them becomes what the plan says of the ends."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from perch.plan import template
from perch.plan.template import expanded, facts_of

HOST: dict[str, Any] = {
    "address": "192.0.2.1",
    "tool_ports": {"iperf3": 5201},
    "devices": [{"name": "m0", "gid_index": 0}, {"name": "m1", "ib_port": 2.0}, {"name": "m2"}],
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-c", "{client.address}:{client.ports.iperf3}"], ["-c", "192.0.2.1:5201"]),
        (["{client.device.name}", "{client.devices.name}"], ["m0", "m0,m1"]),
        ([["-x", "{client.device.gid_index}"]], ["-x", "0"]),
        ([["-i", "{client.device.ib_port}"]], []),
        (["{client.device.ib_port=1}"], ["1"]),
        ([["-V{client.is_ipv6}"]], []),
        (["{}", "{other}", "tcp;ofi_rxm"], ["{}", "{other}", "tcp;ofi_rxm"]),
        ([], []),
    ],
)
def test_placeholders_stand_for_facts(words: list[Any], expected: list[str]) -> None:
    assert expanded(words, facts_of("client", HOST, 2)) == expected


def test_words_are_left_out_together() -> None:
    facts = facts_of("client", {**HOST, "devices": []}, 1)
    assert expanded(["a", ["--device", "{client.device.name}", "b"], "c"], facts) == ["a", "c"]


def test_a_command_that_cannot_be_without_a_fact_is_refused() -> None:
    with pytest.raises(KeyError, match=r"server\.address"):
        expanded(["{server.address}"], facts_of("client", HOST, 1))


def test_what_a_fact_says_is_not_expanded_again() -> None:
    host = {"address": "{server.address}"}
    assert expanded(["{client.address}"], facts_of("client", host, 1)) == ["{server.address}"]


def test_the_agents_copy_needs_the_standard_library_of_python_3_9() -> None:
    source = Path(template.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "typing"}
