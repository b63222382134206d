"""A mistake in a suite is named once, with its place and what to write."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

TOP = Path(__file__).parents[2]


def _plugin() -> Any:
    spec = importlib.util.spec_from_file_location("mistakes", TOP / "plugins/action/perch_suite.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLUGIN = _plugin()
SCHEMA = json.loads((TOP / "playbooks/suites/suite.schema.json").read_text())


def faults(more: Any = None, **members: Any) -> Any:
    """Of a suite with one test, changed by members; None takes a member out."""
    test = {
        "name": "lat",
        "title": "L",
        "tool": "perch",
        "backend": "tcp",
        "kind": "latency",
        "params": {"size": 8, "duration": "1s"},
        **members,
    }
    kept = {key: value for key, value in test.items() if value is not None}
    suite = {"name": "mine", "title": "M", "tests": [kept, *([more] if more else [])]}
    return PLUGIN.faults(suite, SCHEMA)


PERFTEST: dict[str, Any] = {
    "tool": "perftest",
    "backend": None,
    "params": {"size": 8, "iterations": 9},
}


@pytest.mark.parametrize(
    ("members", "says"),
    [
        (
            {**PERFTEST, "kind": "bandwith"},
            "kind: 'bandwith' is unknown; valid: latency, bandwidth; did you mean bandwidth?",
        ),
        ({"params": {"size": 8, "duration": 5}}, "params.duration: 5 is no duration: write 5s"),
        (
            {"params": {"size": 8, "duration": "5"}},
            "params.duration: '5' is no duration: write a number with its unit, such as 5s",
        ),
        (
            {"params": {"size": "64k:1m"}},
            "params.size: '64k:1m' is no size: K, M and G are upper case; write 64K:1M",
        ),
        (
            {"params": {"size": "big"}},
            "params.size: 'big' is no size: write bytes such as 8, 64K or 64K:1M "
            "(K, M, G are upper case)",
        ),
        ({"backend": None}, "backend: is missing; choose one of tcp, ofi, verbs, cxi, null"),
        (
            {"backend": "verb"},
            "backend: 'verb' is unknown; valid: tcp, ofi, verbs, cxi, null; did you mean verbs?",
        ),
        (
            {"params": {"size": 8, "duraton": "5s"}},
            "params.duraton: is unknown; did you mean duration?",
        ),
        (
            {"params": {"size": 8, "duration": "5s", "iterations": 3}},
            "params: iterations and duration exclude each other; give one",
        ),
        (
            {"params": {"size": 8, "cpu": False}},
            'params.cpu: false is no place: write CPUs such as 3 or "4-7", auto or "off" '
            "(in quotes, as YAML reads off as false)",
        ),
        (
            {"params": {"size": 8, "server_cpu": "4-"}},
            'params.server_cpu: \'4-\' is no place: write CPUs such as 3 or "4-7", auto or "off"',
        ),
        (
            {"params": {"size": 8, "numa": "0-1"}},
            "params.numa: '0-1' is no place: write a NUMA node such as 1, auto or \"off\"",
        ),
        ({"params": {"size": 8, "pkey": 0}}, "params.pkey: 0 is out of range; at least 1"),
        ({"repeat": 1000}, "repeat: 1000 is out of range; at most 100"),
        ({"repeat": "3"}, "repeat: '3' is not a whole number"),
    ],
)
def test_a_mistake_is_one_message(members: dict[str, Any], says: str) -> None:
    assert faults(**members) == [f"test lat, {says}"]


def test_a_partition_key_is_no_mistake() -> None:
    assert faults(backend="verbs", params={"size": 8, "duration": "1s", "pkey": 0x8001}) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("tilte", "title"), ("prams", "params"), ("knid", "kind"), ("backnd", "backend"),
     ("toool", "tool")],
)  # fmt: skip
def test_a_misspelt_key_is_one_message(wrong: str, right: str) -> None:
    given = {"title": "L", "tool": "perch", "backend": "tcp", "kind": "latency"}
    given["params"] = {"size": 8, "duration": "1s"}  # type: ignore[assignment]
    said = f"test lat, {wrong}: is unknown; did you mean {right}?"
    assert faults(**{right: None, wrong: given[right]}) == [said]


def test_a_misspelt_key_of_the_suite_is_one_message() -> None:
    test = {"name": "lat", "title": "L", "tool": "iperf", "kind": "bandwidth"}
    test["params"] = {"size": 8, "duration": "1s"}  # type: ignore[assignment]
    suite = {"name": "mine", "title": "M", "tets": [test]}
    assert PLUGIN.faults(suite, SCHEMA) == ["tets: is unknown; did you mean tests?"]


def test_a_name_that_stands_twice_is_named() -> None:
    other = {"name": "lat", "title": "P", "tool": "iperf", "kind": "bandwidth"}
    other["params"] = {"size": 8, "duration": "1s"}  # type: ignore[assignment]
    assert faults(other) == ["test lat: 2 tests have this name; give each its own"]


def test_a_test_without_a_name_is_counted() -> None:
    assert faults(name=None) == ["test number 1, name: is missing"]


def test_a_tab_is_named_with_its_line() -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        yaml.safe_load("name: a\ntests:\n\t- b\n")
    assert PLUGIN.syntax(caught.value) == "line 3: a tab; YAML is indented with spaces"


@pytest.mark.parametrize("suite", sorted((TOP / "playbooks/suites").glob("*.yml")), ids=str)
def test_the_suites_have_no_faults(suite: Path) -> None:
    assert PLUGIN.faults(yaml.safe_load(suite.read_text()), SCHEMA) == []


@pytest.mark.parametrize("suite", [None, [], "text", {"tests": "x"}, {"tests": [3]}])
def test_what_is_no_suite_is_refused(suite: Any) -> None:
    assert PLUGIN.faults(suite, SCHEMA)
