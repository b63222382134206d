"""What host-check printed on composed hosts: servers of recorded ones, with names of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from selftest.files import compact, document, write
from selftest.paths import FIXTURES

Document = dict[str, Any]

PARTS = ("files", "later", "links", "commands")
#: A server of three recorded ones.
SERVER = ("hosts/machine-amd", "hosts/qos-mlx5-dcb", "hosts/nic-mlx5")
#: What the composed site wants of each host.
WANTED = {"pfc_priorities": [3]}


def answer(
    host: str,
    number: int,
    collected: str,
    netdev: str = "enp1s0",
    parts: tuple[str, ...] = SERVER,
) -> Document:
    """What a host answered, with addresses of its own.

    `netdev`: the interface over its card. `parts`: the recorded answers that it is made of.
    """
    found = [document(FIXTURES / f"{name}.json") for name in parts]
    merged: Document = {"schema": found[0]["schema"], "hostname": host, "collected": collected}
    for part in PARTS:
        merged[part] = {}
        for one in found:
            merged[part] |= one.get(part) or {}
    text = compact(merged)
    for pattern, replacement in (
        (r"ens1np0|enp129s0f0np0", netdev),
        (r"c1:00\.0", "81:00.0"),
        (r"c000:0201", f"c000:020{number}"),
        (r"192\.0\.2\.1\b", f"192.0.2.{number}"),
        (r"f0:28:b2", f"f0:28:b{number}"),
        (r"ef0:28b2", f"ef0:28b{number}"),
    ):
        text = re.sub(pattern, replacement, text)
    said: Document = json.loads(text)
    return said


def want(root: Path, host: str) -> None:
    """Writes what is wanted of a host."""
    wanted = {"schema": "perch.wanted/1", "host": host, "wanted": WANTED}
    write(root / f"inputs/hosts/{host}.json", wanted)


def check_hosts(root: Path, netdev: str = "enp1s0") -> None:
    """Writes what is wanted of each host of the plan, and what it answered ten seconds later."""
    plan = document(root / "plan.json")
    collected = plan["created"].replace("00Z", "10Z")
    for number, host in enumerate(plan["hosts"], 1):
        want(root, host)
        write(root / f"raw/{host}/host_check.json", answer(host, number, collected, netdev))
