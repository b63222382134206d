"""What host-check printed on composed hosts: servers of recorded ones, with names of their own."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from selftest.files import compact, document, write
from selftest.paths import FIXTURES

Document = dict[str, Any]

PARTS = ("files", "later", "links", "commands")
#: A server of three recorded ones.
SERVER = ("hosts/machine-amd", "hosts/qos-mlx5-dcb", "hosts/nic-mlx5")
#: Of each rail the network, and how the address of a host in it begins in a GID.
NETS = (("192.0.2", "c000:020"), ("203.0.113", "cb00:710"))
#: How long before its answer the controller asked a host, as recorded.
ASKED = timedelta(seconds=1.5)
#: What the composed site wants of each host.
WANTED = {"pfc_priorities": [3]}


def answer(
    host: str,
    number: int,
    collected: str,
    netdev: str = "enp1s0",
    parts: tuple[str, ...] = SERVER,
    rail: int = 0,
) -> Document:
    """What a host answered of one card, with addresses of its own.

    `netdev`: the interface over its card. `parts`: the recorded answers that it is made of.
    """
    net, prefix = NETS[rail]
    found = [document(FIXTURES / f"{name}.json") for name in parts]
    merged: Document = {"schema": found[0]["schema"], "hostname": host, "collected": collected}
    for part in PARTS:
        merged[part] = {}
        for one in found:
            merged[part] |= one.get(part) or {}
    text = compact(merged)
    for pattern, replacement in (
        (r"ens1np0|enp129s0f0np0", netdev),
        (r"mlx5_0", f"mlx5_{rail}"),
        (r"(c|8)1:00\.0", f"{'8a'[rail]}1:00.0"),
        (r"c000:0201", f"{prefix}{number}"),
        (r"192\.0\.2\.1\b", f"{net}.{number}"),
        (r"f0:28:b2", f"f{rail}:28:b{number}"),
        (r"leaf1", f"leaf{rail + 1}"),
        (r"swp1\b", f"swp{number}"),
        (r"02:00:5e:10:00:01", f"02:00:5e:10:00:0{rail + 1}"),
        (r"ef0:28b2", f"ef{rail}:28b{number}"),
    ):
        text = re.sub(pattern, replacement, text)
    said: Document = json.loads(text)
    at = datetime.fromisoformat(collected)
    said["commands"]["clock"]["stdout"] = f"{at.timestamp():.9f}"
    said["files"]["PERCH_ASKED"] = f"{at - ASKED:%Y-%m-%dT%H:%M:%S.%f}"
    return said


def want(root: Path, host: str) -> None:
    """Writes what is wanted of a host."""
    wanted = {"schema": "perch.wanted/1", "host": host, "wanted": WANTED}
    write(root / f"inputs/hosts/{host}.json", wanted)


def _both(first: Document, second: Document) -> Document:
    """An answer of two cards; only of what is asked of a whole host are there two words."""
    found = {**first, **{part: second[part] | first[part] for part in PARTS}}
    addresses = [json.loads(one["commands"]["addresses"]["stdout"]) for one in (first, second)]
    known = {one.get("ifname") for one in addresses[0]}
    more = [one for one in addresses[1] if one.get("ifname") not in known]
    found["commands"]["addresses"]["stdout"] = compact([*addresses[0], *more])
    said = [json.loads(one["commands"]["lldp"]["stdout"]) for one in (first, second)]
    neighbours = [neighbour for one in said for neighbour in one["lldp"]["interface"]]
    found["commands"]["lldp"]["stdout"] = compact({"lldp": {"interface": neighbours}})
    return found


def check_hosts(root: Path, netdev: str = "enp1s0") -> None:
    """Writes what is wanted of each host of the plan, and what it answered ten seconds later."""
    plan = document(root / "plan.json")
    collected = plan["created"].replace("00Z", "10Z")
    for number, (host, planned) in enumerate(plan["hosts"].items(), 1):
        want(root, host)
        said = [
            answer(host, number, collected, device.get("netdev", netdev), rail=rail)
            for rail, device in enumerate(planned.get("devices") or [{}])
        ]
        write(root / f"raw/{host}/host_check.json", reduce(_both, said))
