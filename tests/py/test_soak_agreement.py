"""Lines of a soak that contradict the plan, the whole, or each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.soak_built import Document, composed

LOAD = "node1/flows/load/node1/node2/0/1/client.soak"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def put(path: str, value: object) -> Callable[[Document], None]:
    """Changes a value at a path like "server.host"."""

    def change(line: Document) -> None:
        *owners, last = path.split(".")
        for owner in owners:
            line = line[owner]
        line[last] = value

    return change


# ---- connections ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("server.host", "gamma"), "its server host is gamma, in the whole node2"),
        (put("server.address", "192.0.2.77"), "its server address is 192.0.2.77, in the whole 1"),
        (put("client.device", "eth7"), "its client device is eth7, in the whole eth1"),
        (put("backend", "ofi"), "the plan asks for backend tcp, the output says ofi"),
        (put("op", "write"), "the plan asks for op send, the output says write"),
        (put("definition", "completion"), "the plan asks for definition receiver_acknowledged, "),
        (put("params.verify", True), "the plan asks for verify false, the output says true"),
        (put("params.size_bytes", 64), "its messages have 64 bytes, not 65536"),
        (put("params.queue_pairs", 2), "it had queue pairs 2, the soak's first line has 1"),
        (put("tool.version", "9.9"), "its version is 9.9, in the whole "),
        (put("connection", "rdm"), "its connection type is rdm, in the whole stream"),
    ],
)
def test_a_connection_unlike_the_plan_or_the_whole_is_found(
    root: Path, change: Callable[[Document], None], said: str
) -> None:
    """The one after a gap, whose ends no figure of the first shows."""
    soak = composed(root, "--duration 600 --plant gap=3@300:0")
    before = soak.judge(), soak.texts("damaged")
    assert before == ("FAIL", [])

    def second(line: Document, _: int) -> None:
        if line["kind"] == "connection" and line["connection_number"] == 2:
            change(line)

    soak.edit_lines(LOAD, second)
    soak.judge()
    (text,) = soak.texts("damaged")
    assert text.startswith(f"inconclusive load/node1/node2/0/1: line 9, connection 2: {said}"), text


def test_a_soak_that_waits_otherwise_than_its_connection_is_found(root: Path) -> None:
    soak = composed(root, "--duration 600")

    def head(line: Document, _: int) -> None:
        if line["kind"] == "soak":
            line["job"]["completion"] = "busy"

    soak.edit_lines(LOAD, head)
    assert soak.judge() == "INCONCLUSIVE"
    assert "it had completion event, the soak's first line has busy" in soak.texts("damaged")[0]


def test_addresses_that_name_a_process_differ_by_connection(root: Path) -> None:
    """Of a soak that runs, the first connection tells the others what they must be."""
    soak = composed(root, "--duration 600 --backend ofi --running 580 --plant gap=3@300:0")

    def own(line: Document, place: int) -> None:
        if line["kind"] == "connection":
            line["connection"] = "rdm"
            line["server"]["address"] = f"fi_shm://{1000 + place}:0:0"

    soak.edit_lines("*/flows/*/*/*/*/*/client.soak", own)
    soak.judge()
    assert soak.texts("damaged") == []
