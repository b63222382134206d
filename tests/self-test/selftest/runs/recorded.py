"""Runs that were recorded (tests/fixtures), and what is composed of them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from perch.history.seal import seal
from perch.model.moments import moment
from perch.soak.moments import dated
from selftest.edits import sealed_again
from selftest.files import compact, document, limit_set, write
from selftest.paths import FIXTURES
from selftest.runs.answers import check_hosts
from tests import raw_lines, spelled
from tests.switches.growth import MINUTE, grown

Document = dict[str, Any]


def _copy(name: str, root: Path) -> None:
    shutil.copytree(FIXTURES / name / "run", root, symlinks=True)


def loopback(root: Path) -> None:
    """Recorded, with the set that it names as it is now."""
    _copy("loopback", root)
    write(root / "inputs/limits.json", limit_set("local"))


def transfers(root: Path) -> None:
    """Recorded."""
    _copy("transfer", root)


def rxe(root: Path) -> None:
    """Recorded."""
    _copy("rxe", root)


def sealed(root: Path) -> None:
    """Recorded, with the manifest that the playbook makes when all files were fetched."""
    loopback(root)
    (root / "raw/alpha/agent.log").write_text("composed\n")
    seal(root)


def accepted(root: Path) -> None:
    """Recorded, with an accepted run of the same fabric, a day earlier, as its baseline.

    The accepted figures are the run's own (tests/fixtures/history), half a hundredth larger.
    """
    loopback(root)
    baseline = document(FIXTURES / "history/baseline.json")
    dates = {"created": "2026-11-20T08:04:06Z", "accepted": "2026-11-20T09:00:00Z"}
    baseline |= {"run": "20261120T080406Z-earlier", **dates}
    for figure in baseline["figures"].values():
        figure["value"] *= 1.005
    write(root / "inputs/baseline.json", baseline)


# ---- cards in the place of software devices ------------------------------------------------------

#: What of the recorded bytes was sent once. The emulated machines sent packets again; cards on a
#: good network repeat nothing.
ONCE = {"verbs-read-bandwidth": 0.8, "read-latency": 0.95, "send-bandwidth": 0.95}


def cards(root: Path) -> None:
    """The run over Soft-RoCE, as if two cards had carried it.

    They have a card's name and driver, and count, in words of four bytes, what the interface below
    the software device did; the plan calls them hardware. Its limits judge no speed.
    """
    rxe(root)
    for path in root.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"rxe0", b"mlx5_0"))
    plan = document(root / "plan.json")
    for host, facts in plan["hosts"].items():
        facts["scope"] = "hardware"
        environment = document(root / f"raw/{host}/environment.json")
        environment["boot_id"] = f"composed-{host}"
        environment["rdma"][0]["driver"] = "mlx5_core"
        write(root / f"raw/{host}/environment.json", environment)
    for round_ in plan["rounds"]:
        for flow in round_["flows"]:
            flow["scope"] = "hardware"
    for host in plan["hosts"]:
        _put_card(next(raw_lines.walks(root, host)))
    write(root / "plan.json", plan)
    check_hosts(root, "eth1")
    spelled.walked(root)
    seal(root)


def _put_card(walk: raw_lines.Walk) -> None:
    """A host's card counts what its flows moved, and stands still before the first one."""
    card = Counter(port_xmit_data=0, port_rcv_data=0)
    for end in walk.ends:
        _count(end["counters"], card, ONCE.get(end["id"].partition("/")[0], 1.0))
    raw_lines.rested(walk)
    walk.save()


def _count(counters: Document, card: Counter[str], once: float) -> None:
    """Puts a card's readings in the place of the software device's; `card` goes on counting."""
    readings = (counters["before"], counters["after"])
    interface = [reading["netdev"]["eth1"] for reading in readings]
    moved = {
        name: int((int(interface[1][counter]) - int(interface[0][counter])) * once / 4)
        for name, counter in (("port_xmit_data", "tx_bytes"), ("port_rcv_data", "rx_bytes"))
    }
    for reading, change in zip(readings, ({}, moved), strict=True):
        card.update(change)
        device = reading["rdma"]["mlx5_0/1"]
        others = dict.fromkeys(device["counters"].keys() - {"sent_pkts", "rcvd_pkts"}, "0")
        device["counters"] = others | {name: str(value) for name, value in card.items()}


# ---- a switch ------------------------------------------------------------------------------------


#: Its readings while flows ran, a line of JSON each.
SAMPLES = "samples.jsonl.gz"


def switched(root: Path) -> None:
    """The cards' run, during which a SONiC switch counted what its fixture says.

    It was read before, after, and while flows ran.
    """
    cards(root)
    plan = document(root / "plan.json")
    switch = {"provider": "sonic", "scope": "hardware", "priorities": [3], "ports": {}}
    plan["switches"] = {"leaf1": switch}
    for host in plan["hosts"].values():
        host["switch"] = "leaf1"
    write(root / "plan.json", plan)
    agents = [walk.agent for walk in raw_lines.walks(root)]
    times = min(one["started"] for one in agents), max(one["ended"] for one in agents)
    for phase, at in zip(("before", "after"), times, strict=True):
        said = compact(_reading(plan["run"], phase, at))
        said = said.replace("node1", "alpha").replace("node2", "beta")
        write(root / f"raw/leaf1/switch-{phase}.json", json.loads(said))
    _sample(root / "raw/leaf1", *map(_seconds, times))
    sealed_again(root)


def _seconds(said: str) -> float:
    found = moment(said)
    assert found is not None
    return found


#: Readings of the switch while flows ran, and how long it took to answer.
READINGS, WAIT_S = 4, 0.2


def _sample(folder: Path, begin: float, end: float) -> None:
    """Readings at equal times in between, by which the counters grew evenly."""
    before, after = (document(folder / f"switch-{phase}.json") for phase in ("before", "after"))
    lines = []
    for n in range(1, READINGS + 1):
        share = n / (READINGS + 1)
        at = begin + (end - begin) * share
        commands = {
            name: answer
            | {"stdout": grown(answer["stdout"], after["commands"][name]["stdout"], MINUTE * share)}
            | {"asked_s": at - begin, "answered_s": at - begin + WAIT_S}
            for name, answer in before["commands"].items()
        }
        head = {"phase": "during", "collected": dated(at), "asked_s": at - begin}
        lines.append(before | head | {"commands": commands})
    (folder / SAMPLES).write_bytes(gzip.compress("".join(map(_line, lines)).encode(), mtime=0))


def _line(found: Document) -> str:
    return compact(found) + "\n"


def _reading(run: str, phase: str, collected: str) -> Document:
    folder = FIXTURES / "switches/sonic" / phase
    commands = {
        path.name: {"exit": 0, "stdout": path.read_text(), "stderr": ""}
        for path in sorted(folder.iterdir())
    }
    return {
        "schema": "perch.switch/1", "run": run, "switch": "leaf1", "phase": phase,
        "provider": "sonic", "collected": collected, "commands": commands,
    }  # fmt: skip
