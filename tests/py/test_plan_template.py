"""Templates of commands: what stands in them becomes what the plan says of the ends."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from perch.plan import template
from perch.plan.template import Template, facts_of

HOST: dict[str, Any] = {
    "address": "192.0.2.1",
    "tool_ports": {"iperf3": 5201},
    "devices": [{"name": "m0", "gid_index": 0}, {"name": "m1", "ib_port": 2.0}, {"name": "m2"}],
}


def expanded(words: list[Any], host: dict[str, Any], devices: int) -> list[str]:
    """A template of a client on this host, whose flow has no server."""
    return Template(words).expanded({"client": facts_of(host, devices)})


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
    assert expanded(words, HOST, 2) == expected


def test_words_are_left_out_together() -> None:
    words = ["a", ["--device", "{client.device.name}", "b"], "c"]
    assert expanded(words, {**HOST, "devices": []}, 1) == ["a", "c"]


def test_a_command_that_cannot_be_without_a_fact_is_refused() -> None:
    with pytest.raises(KeyError, match=r"server\.address"):
        expanded(["{server.address}"], HOST, 1)


def test_what_a_fact_says_is_not_expanded_again() -> None:
    host = {"address": "{server.address}"}
    assert expanded(["{client.address}"], host, 1) == ["{server.address}"]


def test_the_agents_copy_needs_the_standard_library_of_python_3_9() -> None:
    source = Path(template.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 9))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "fnmatch", "typing"}
