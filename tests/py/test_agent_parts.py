"""The agent's parts on files and plans: shares, lines, counters, the lease, the packed file."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.agent import children, watch
from perch.agent import share as agent_share
from perch.agent.agent import until_ended
from perch.agent.counters import Counters, Reading, Readings
from perch.agent.devices import find
from perch.agent.errors import AgentError, Exit
from perch.agent.files import Lines, read_lines
from perch.agent.raw import Raw
from perch.agent.share import Share
from perch.plan import share
from perch.plan.counted import table
from setup import zipapp
from tests.py.agent_fakes import FakeClock, JumpingClock, counted, laid_out, now, run, share_of
from tests.py.test_plan_rounds import PLANS, Written

TOP = Path(__file__).parents[2]

# ---- share ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_flows_are_those_of_the_plan(name: str) -> None:
    written = Written(PLANS[name]())
    turns = written.turns()
    for one in share.shares(written.plan, written.content, written.lines()):
        document = json.loads(msgspec.json.encode(one))
        flows = [flow for flows in Share(document, "/engine", 60).rounds() for flow in flows]
        wanted = [
            (place, flow)
            for place, flow in enumerate((flow for turn in turns for flow in turn), start=1)
            if one.host in (flow["client"], flow["server"])
        ]
        assert [(flow.number, flow.id) for flow in flows] == [
            (place, flow["id"]) for place, flow in wanted
        ]
        for flow, (_, planned) in zip(flows, wanted, strict=True):
            argv = planned.get(f"{flow.role}_argv", [])
            if argv[:1] == ["perch"]:
                port = written.plan.hosts[flow.peer].port
                argv = ["/engine", *argv[1:], "--port", str(port)]
            assert flow.argv == argv
            assert flow.is_external == bool(planned.get("server_argv"))
            assert flow.deadline_s == planned["deadline_s"]


def test_each_round_has_its_deadline_after_those_before_it() -> None:
    share = share_of("alpha", flows=3)
    assert [flow.latest_s for (flow,) in share.rounds()] == [30, 70, 110]
    assert share.limit_s == 150


@pytest.mark.parametrize(
    ("asked", "longest"),
    [((None,), "30s"), (("5s", None), "30s"), (("500ms", "5m", "31s"), "5m"), (("0.5h",), "0.5h")],
)
def test_a_server_allows_the_longest_timeout_that_a_test_asks_for(
    asked: tuple[str | None, ...], longest: str
) -> None:
    document = share_of("alpha").document
    test = document["tests"]["t"]
    document["tests"] = {
        str(number): {**test, "params": {} if one is None else {"timeout": one}}
        for number, one in enumerate(asked)
    }
    assert Share(document, "engine", 15).longest_timeout == longest


TEST = share_of("alpha").document["tests"]["t"]
TIMELESS = {"tests": {"t": {**TEST, "params": {"timeout": "abc"}}}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "perch.share/9"}, 'has the schema "perch.share/9"; this agent reads perch.sh'),
        ({"host": "gamma"}, 'is of host "gamma", and not of "alpha"'),
        ({"hosts": {}}, "is damaged: it lacks 'alpha'"),
        ({"tests": {}}, "is damaged: it lacks 't'"),
        ({"rounds": None}, "is damaged: a value is wrong ("),
        ({"rounds": 5}, "is damaged: a value is wrong ("),
        (TIMELESS, "is damaged: a value is wrong ('abc' is not a time); run the playbook again"),
        ({"schema": None}, "has no schema; this agent reads perch.share/"),
    ],
)
def test_a_plan_of_another_kind_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({**share_of("alpha").document, **change}))
    with pytest.raises(AgentError) as caught:
        agent_share.read(plan, "alpha", "engine", 60)
    assert caught.value.code is Exit.HOST and message in caught.value.message
    for text in (plan.read_text()[:100], "[" * 200_000):
        plan.write_text(text)
        with pytest.raises(AgentError, match="it is not JSON"):
            agent_share.read(plan, "alpha", "engine", 60)


# ---- lines ---------------------------------------------------------------------------------------


def test_a_torn_last_line_is_recognised(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b'{"a":1}\n{"a":2}\n')
    assert read_lines(file) == ([{"a": 1}, {"a": 2}], False)
    file.write_bytes(b'{"a":1}\n{"a":2')
    assert read_lines(file) == ([{"a": 1}], True)
    file.write_bytes(b'{"a":1\n{"a":2}\n')
    with pytest.raises(ValueError, match="delimiter"):
        read_lines(file)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from perch.agent.errors import AgentError
from perch.agent.files import Lines
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
lines = Lines(Path(sys.argv[1]))
lines.write({"n": 1})
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
try:
    lines.write({"n": "x" * 100})
except AgentError as error:
    print(int(error.code), error.message)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
lines.write({"n": 2})
"""


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    """A limit on a file's size fails a write as a full disk does."""
    file = tmp_path / "lines"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK.replace("(20, 20)", "(20, -1)"), file],
        capture_output=True,
        text=True,
        check=True,
        cwd=TOP,
        timeout=30,
    )
    assert done.stdout.startswith(f"6 cannot write {file}: File too large; free space there")
    assert read_lines(file) == ([{"n": 1}, {"n": 2}], False)


class Synced(Raw):
    """`at`: the seconds when its files were synchronised."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, share_of("alpha"), FakeClock())
        self.at: list[float] = []

    def sync(self) -> None:
        super().sync()
        self.at.append(now())


def test_files_are_synchronised_once_a_second_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no line was written since, the disk is left alone."""
    synced: list[int] = []
    monkeypatch.setattr("perch.agent.files.os.fdatasync", synced.append)

    async def work() -> list[float]:
        raw = Synced(tmp_path)

        async def measure() -> None:
            await asyncio.sleep(2.5)
            raw.sample(Reading({}, {}))
            await asyncio.sleep(1)

        assert await until_ended(measure(), raw, str) == (Exit.WALKED, None)
        raw.end("done")
        return raw.at

    assert run(work) == [1.0, 2.0, 3.0, 3.5]
    # the heads of both files, the sample, and the last line
    assert len(synced) == 2 + 1 + 1


def test_lines_of_an_earlier_run_are_not_written_over(tmp_path: Path) -> None:
    Lines(tmp_path / "lines").close()
    with pytest.raises(AgentError, match="File exists"):
        Lines(tmp_path / "lines")


def test_a_log_that_strangers_fill_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "LOG_BYTES", 10)
    with (tmp_path / "log").open("wb", buffering=0) as log:
        capture = children.Capture(1000, log.fileno())
        for _ in range(4):
            capture.add(b"refused")
    assert (tmp_path / "log").read_bytes() == b"refused\n(no more of this is logged)\n"
    assert capture.bytes == 28


def test_errors_that_are_cut_keep_their_last_words() -> None:
    capture = children.Capture(10, has_end=True)
    capture.add(b"first line\n" + b"again\n" * 10_000 + b"lost the peer\n")
    text = capture.text()
    assert text.startswith("first line\n(") and text.endswith("again\nlost the peer\n")
    assert "\n(55919 bytes are left out)\n" in text and len(text) < 5000
    short = children.Capture(10, has_end=True)
    short.add(b"first line\nend\n")
    assert short.text() == "first line\nend\n"


# ---- counters ------------------------------------------------------------------------------------

SYS = {
    "sys/class/net/eth0/statistics/rx_bytes": "10\n",
    "sys/class/net/eth0/statistics/tx_bytes": "-1\n",
    "sys/class/net/eth0/carrier_down_count": "3\n",
    "sys/class/net/eth0/device/aer_dev_fatal": "Undefined 0\nDLP 4\nTOTAL_ERR_FATAL 4\n",
    "sys/class/net/eth1/statistics/rx_bytes": "11",
    "sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0": "eth0\n",
    "sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data": "18446744073709551615\n",
    "sys/class/infiniband/mlx5_0/ports/1/hw_counters/port_xmit_data": "1\n",
    "sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence": "5\n",
    "sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan": "12\n",
    "sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0": "eth1\n",
    "sys/class/cxi/cxi0/device/telemetry/hni_sts_tx_ok_octets": "7@1.5\n",
    "sys/class/cxi/cxi0/device/telemetry/hni_pcs_other_cw": "8@1.5\n",
    "sys/class/cxi/cxi0/device/net/hsn0/mtu": "9000\n",
    "sys/class/net/hsn0/statistics/rx_bytes": "12\n",
    "run/cxi/cxi0/nacks": "9\n",
    "proc/net/snmp": "Ip: A\nIp: 1\nTcp: RtoMin RetransSegs\nTcp: 200 42\n",
}

ETHTOOL = """NIC statistics:
     rx_prio3_pause: 6
     rx_prio3_pause: 7
     rx_discards_phy: 1
     rx_packets: 99
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return laid_out(tmp_path, SYS)


class Spoken:
    """A host whose ethtool says this."""

    async def answer(self, argv: list[str], limit_s: float = 5.0) -> str:
        assert argv[:2] == ["ethtool", "-S"]
        return ETHTOOL if argv[2] == "eth0" else ""


class Silent(Spoken):
    """Nobody may ask it."""

    async def answer(self, argv: list[str], limit_s: float = 5.0) -> str:
        raise AssertionError(argv)


def reading(
    root: Path, *wanted: str, asked: Spoken | None = None
) -> tuple[Counters, dict[str, Any]]:
    async def work() -> tuple[Counters, dict[str, Any]]:
        counters = Counters(find(wanted, root), asked or Spoken(), FakeClock(), root)
        found = await counters.reading(settled=True)
        return counters, found.line | counted(found.layout, found.line["values"])

    return run(work)


def test_a_card_is_read_with_what_lies_over_and_under_it(root: Path) -> None:
    for wanted in ("eth0", "mlx5_0"):
        counters, found = reading(root, wanted, "no such device", "missing0")
        assert found["host"] == {"TcpRetransSegs": "42"}
        assert found["netdev"] == {
            "eth0": {
                "rx_bytes": "10",
                "carrier_down_count": "3",
                "aer_fatal": "4",
                "rx_prio3_pause": "6",
                "rx_discards_phy": "1",
            }
        }
        assert found["rdma"] == {
            "mlx5_0/1": {
                "netdev": "eth0",
                "counters": {"port_xmit_data": "18446744073709551615", "out_of_sequence": "5"},
            }
        }
        assert (found["cxi"], counters.lag_s) == ({}, 0.012)
        assert found["time_s"] == "87400.000000"


def test_a_cassini_nic_is_read_with_its_retry_handler(root: Path) -> None:
    counters, found = reading(root, "hsn0")
    assert found["cxi"] == {
        "cxi0": {"netdev": "hsn0", "counters": {"hni_sts_tx_ok_octets": "7", "nacks": "9"}}
    }
    assert list(found["netdev"]) == ["hsn0"]
    assert counters.lag_s == 0.1


def test_an_interface_without_a_card_is_read_without_a_process(root: Path) -> None:
    """hsn0 and eth0 have cards, whose ethtool is asked."""
    _, found = reading(root, "eth1", asked=Silent())
    assert found["netdev"] == {"eth1": {"rx_bytes": "11"}}


def test_every_source_of_the_table_has_lag_and_kind() -> None:
    for entry in table():
        assert {"of", "format", "kind", "lag_ms"} <= set(entry)
        assert ("files" in entry) != ("command" in entry)


class Kept:
    """Where readings go."""

    def __init__(self) -> None:
        self.samples: list[dict[str, Any]] = []

    def sample(self, reading: Reading) -> int:
        self.samples.append(reading.line)
        return len(self.samples)


def test_a_reading_ends_one_flow_and_begins_the_next(root: Path) -> None:
    raw = Kept()

    async def work() -> list[int]:
        clock = JumpingClock()
        counters = Counters(find(["hsn0"], root), Spoken(), clock, root)
        readings = Readings(counters, raw, clock)
        numbers = [await readings.before(), await readings.after(), await readings.before()]
        readings.disturb()
        numbers.append(await readings.before())
        for pause_s in (0.4, 0.2):  # which is then too old to be the beginning
            await asyncio.sleep(pause_s)
            numbers.append(await readings.before())
        return numbers

    assert run(work) == [1, 2, 2, 3, 3, 4]
    times = [one["monotonic_ns"] / 1e9 - 1000 for one in raw.samples]
    assert times == pytest.approx([0, 0.1, 0.1, 0.7])  # the card's lag after the flow
    assert [one["settled"] for one in raw.samples] == [True, True, False, True]


def test_a_flow_is_followed_by_readings_of_which_the_first_settled_one_counts(root: Path) -> None:
    raw = Kept()

    async def work() -> tuple[int, int]:
        clock = JumpingClock()
        counters = Counters(find(["hsn0"], root), Spoken(), clock, root)
        readings = Readings(counters, raw, clock, 1)
        return await readings.before(), await readings.followed()

    assert run(work) == (1, 4)  # a lag of 0.1 s lies between the second and the fourth
    after = [one["monotonic_ns"] / 1e9 - 1000 for one in raw.samples[1:]]
    assert after == pytest.approx([0.05 * step for step in range(20)])
    assert [one["settled"] for one in raw.samples[1:4]] == [False, False, True]


def test_a_layout_stands_before_the_first_of_its_samples(root: Path, tmp_path: Path) -> None:
    """A counter that can no longer be read is in no later sample."""

    async def work() -> None:
        clock = FakeClock()
        raw = Raw(tmp_path, share_of("alpha"), clock)
        counters = Counters(find(["eth0"], root), Spoken(), clock, root)
        for name in ("", "", "proc/net/snmp"):
            if name:
                (root / name).unlink()
            raw.sample(await counters.reading(settled=True))

    run(work)
    _, *lines = read_lines(tmp_path / "samples.jsonl").lines
    assert [line["kind"] for line in lines] == ["layout", "sample", "sample", "layout", "sample"]
    early, _, late, later, last = lines
    assert [one["number"] for one in (lines[1], late, last)] == [1, 2, 3]
    assert (early["host"], later["host"]) == (["TcpRetransSegs"], [])
    assert counted(early, late["values"])["netdev"] == counted(later, last["values"])["netdev"]


# ---- lease ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lease", "renewals", "seconds", "message"),
    [
        (60, 0, 75, "no word from the controller for more than 60 s"),
        (60, 3, 120, "no word from the controller"),
        (0, 0, 225, "the plan should have been over after 200 s"),
    ],
)
def test_an_agent_without_a_controller_ends(
    tmp_path: Path, lease: float, renewals: int, seconds: float, message: str
) -> None:
    file = tmp_path / "lease"
    file.write_bytes(b"")

    async def work() -> tuple[str, float]:
        for number in range(renewals):
            # a wall clock that jumps back renews it, too
            date = (9 - number, 9 - number)
            asyncio.get_running_loop().call_later(15 * number + 10, os.utime, file, date)
        return await watch.until_abandoned(file, lease, 200, JumpingClock()), now()

    reason, took = run(work)
    assert took == seconds and message in reason


# ---- the packed file -----------------------------------------------------------------------------


def test_the_packed_file_is_the_same_and_runs_alone(tmp_path: Path) -> None:
    file = tmp_path / "perch-agent"
    file.write_bytes(zipapp.packed())
    assert zipapp.packed() == file.read_bytes()
    data = {"perch/agent/counters.json", "perch/agent/perch-soak.service"}
    assert data <= set(zipfile.ZipFile(file).namelist())
    done = subprocess.run(
        [sys.executable, "-I", file], capture_output=True, text=True, cwd=tmp_path, timeout=30
    )
    assert done.returncode == Exit.USAGE and "perch-agent poll" in done.stderr


OLD = """
import runpy, sys
sys.version_info = (3, 6, 15)
sys.modules["perch"] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_a_python_that_is_too_old_is_named(tmp_path: Path) -> None:
    """Before anything of the agent is imported, as an old Python could not."""
    file = tmp_path / "perch-agent"
    file.write_bytes(zipapp.packed())
    done = subprocess.run(
        [sys.executable, "-I", "-c", OLD, file], capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stderr) == (
        Exit.HOST,
        "perch-agent: Python 3.6 is too old, 3.9 is needed; set ansible_python_interpreter"
        " (SLES 15: install python311)\n",
    )


def test_who_asks_does_not_load_the_agent(tmp_path: Path) -> None:
    """The controller asks again and again while a host measures."""
    file = tmp_path / "perch-agent"
    file.write_bytes(zipapp.packed())
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", file, "poll", "--out", tmp_path],
        capture_output=True,
        text=True,
        timeout=30,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.stdout == "gone\n" and "perch.agent.asking" in loaded
    assert not {"asyncio", "ctypes", "subprocess", "perch.agent.children"} & loaded


def test_the_agent_imports_the_standard_library_alone() -> None:
    shared = {"perch.errors", "perch.plan.counted", "perch.plan.template", "perch.programs"}
    others = [TOP / f"{name.replace('.', '/')}.py" for name in shared]
    for path in [*(TOP / "perch/agent").glob("*.py"), *others]:
        for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 9))):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                own = name.startswith("perch.agent") or name in shared
                assert own or name.partition(".")[0] in sys.stdlib_module_names, (path, name)
