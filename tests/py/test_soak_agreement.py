"""Lines of a soak that contradict the plan, the whole, or each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.model.record import Cpu, Latency
from perch.soak import agreement
from perch.soak.bounds import of_flow
from perch.soak.line_types import Interval
from tests.py.soak_built import Document, composed
from tests.py.test_soak_lines import flowing, planned
from tests.soak_lines import samples

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


# ---- bytes ---------------------------------------------------------------------------------------


def interval(*changes: Callable[[Document], None]) -> Callable[[Document, int], None]:
    """Changes the first interval of a flow, which stands third."""

    def edit(line: Document, place: int) -> None:
        for change in changes if place == 2 else ():
            change(line)

    return edit


def test_an_interval_that_checked_less_than_arrived_is_found_and_the_sum_of_them(
    root: Path,
) -> None:
    soak = composed(root, "--duration 600")
    soak.edit_lines(
        "*/flows/verify/*/*/*/*/client.soak", interval(put("integrity.checked_bytes", 1))
    )
    assert soak.judge() == "INCONCLUSIVE"
    wanted = r"inconclusive: verify/.*: --verify checked 1 bytes in this interval; at least 7\d{8} "
    assert re.match(wanted, soak.said("integrity"))
    assert re.match(
        r"inconclusive: verify/.*: \d+ verified bytes in the whole, \d+", soak.said("sum")
    )


def test_a_verified_echo_is_checked_at_both_ends(root: Path) -> None:
    """Its whole claims both, and so must each interval."""
    soak = composed(root, "--duration 600")

    def plan(document: Document) -> None:
        for turn in document["rounds"]:
            for flow in turn["flows"]:
                if flow["test"] == "latency":
                    flow["params"]["verify"] = True

    soak.edit("plan.json", plan)

    def checked(ends: int) -> Callable[[Document, int], None]:
        def change(line: Document, _: int) -> None:
            if line["kind"] == "interval":
                line["integrity"] = {"checked_bytes": ends * line["bytes"], "bad_bytes": 0}

        return change

    def unchecked() -> list[str]:
        soak.judge()
        return [text for text in soak.texts("damaged") if "--verify checked" in text]

    soak.edit_lines("*/flows/latency/*/*/*/*/client.soak", checked(2))
    assert unchecked() == []
    soak.edit_lines("*/flows/latency/*/*/*/*/client.soak", checked(1))
    assert "checked 768000 bytes in this interval; at least 1536000 arrived" in unchecked()[0]


@pytest.mark.parametrize("test", ["load", "latency"])
def test_an_interval_whose_bytes_are_not_those_of_its_messages_is_found(
    root: Path, test: str
) -> None:
    soak = composed(root, "--duration 600")

    def fewer(line: Document) -> None:
        line["messages"] = line["messages"] * 99 // 100
        if line["latency_us"]:
            line["messages"] = line["latency_us"]["count"] + 1

    soak.edit_lines(f"*/flows/{test}/*/*/*/*/client.soak", interval(fewer))
    assert soak.judge() == "INCONCLUSIVE"
    wanted = r"inconclusive: " + test + r"/.*: line 3 has \d+ messages of \d+ bytes, but \d+ bytes"
    assert re.match(wanted, soak.said("lines"))


# ---- copies --------------------------------------------------------------------------------------

_TIMES = ("start_s", "end_s", "started", "ended", "elapsed_s")


def copying(line_of: int, into: range, **own: object) -> Callable[[Document, int], None]:
    """Gives intervals the figures of an earlier line, but for their times and `own`."""
    source: Document = {}

    def change(line: Document, place: int) -> None:
        if place == line_of:
            source.update((key, line[key]) for key in line if key not in _TIMES)
        elif place in into:
            line.update(source | own)

    return change


@pytest.mark.parametrize(
    ("test", "into", "count"), [("load", range(3, 12), 9), ("latency", range(7, 8), 1)]
)
def test_intervals_with_the_figures_of_an_earlier_one_are_found(
    root: Path, test: str, into: range, count: int
) -> None:
    soak = composed(root, "--duration 600")
    soak.edit_lines(f"node1/flows/{test}/*/*/*/*/client.soak", copying(2, into))
    assert soak.judge() == "INCONCLUSIVE"
    (text,) = soak.texts("damaged")
    s = "s" if count > 1 else ""
    assert text == (
        f"inconclusive {test}/node1/node2/0/1: {count} interval{s} with all figures of an earlier "
        f"one, the first of them line {into[0] + 1} with those of line 3"
    )


def test_an_interval_with_processor_seconds_of_its_own_is_its_own(root: Path) -> None:
    """A pace makes bytes and messages equal."""
    soak = composed(root, "--duration 600")
    cpu = {"client_s": 1.25, "server_s": 0.5}
    soak.edit_lines("node1/flows/load/*/*/*/*/client.soak", copying(2, range(3, 4), cpu=cpu))
    soak.judge()
    assert soak.texts("damaged") == []


def test_intervals_of_few_messages_may_be_equal(root: Path) -> None:
    """As of one probe a second, whose times have few digits."""
    few = interval_of(99), interval_of(99)
    many = interval_of(100), interval_of(100)
    bounds = of_flow(planned(kind="latency"), [])
    assert list(agreement.repeated(flowing([*few], bounds))) == []
    assert len(list(agreement.repeated(flowing([*many], bounds)))) == 1


def interval_of(count: int) -> Interval:
    times = Latency(count=count, min=1, max=9, mean=5, stddev=2)
    cpu = Cpu(client_s=1, server_s=1)
    return Interval(start_s=0, end_s=1, status="ok", messages=count, latency_us=times, cpu=cpu)


# ---- boots ---------------------------------------------------------------------------------------


def test_environment_samples_and_connections_are_of_boots_in_which_the_agent_started(
    root: Path,
) -> None:
    soak = composed(root, "--duration 600")
    soak.edit("raw/node1/environment.json", put("boot_id", "another"))
    soak.samples(lambda sample, _: put("boot_id", "strange")(sample), "node2")

    def moved(line: Document, _: int) -> None:
        if line["kind"] == "connection":
            line["boot_id"] = "strange"

    soak.edit_lines(LOAD, moved)
    assert soak.judge() == "INCONCLUSIVE"
    assert soak.texts("host") == [
        "inconclusive node1: its environment.json belongs to another boot than the first start of "
        "its agent",
        "inconclusive node2: line 3 of its samples is of boot strange, in which its agent did not "
        "start",
    ]
    (text,) = soak.texts("damaged")
    assert text.endswith("it is of boot strange, in which the client's agent did not start")


def test_a_reboot_gives_samples_and_connections_a_second_boot(root: Path) -> None:
    """Whose id environment.json does not have."""
    soak = composed(root, "--duration 1500 --plant reboot@700-800")
    boots = {
        line["boot_id"] for path in root.glob("raw/node1/samples.jsonl") for line in samples(path)
    }
    assert boots == {"boot-0-of-node1", "boot-1-of-node1"}
    assert soak.judge() == "FAIL"
    assert soak.texts("host") == soak.texts("damaged") == []
