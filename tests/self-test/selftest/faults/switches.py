"""What a switch said before and after, on a composed run of two hosts below one."""

import gzip
import json
from pathlib import Path

from selftest.edits import Change, drop, edit, put, remove, says, says_json, substitute
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault, fault
from selftest.files import Document, compact
from selftest.runs.recorded import SAMPLES

BEFORE, AFTER, BOTH = (f"raw/leaf1/switch-{name}.json" for name in ("before", "after", "*"))
GROUP_DROPS = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"


def value(table: str, name: str, said: str) -> Change:
    """A value in a table of SONiC's databases."""

    def change(tables: Document) -> None:
        tables[table]["value"][name] = said

    return change


def counter(oid: str, name: str, said: str) -> Change:
    return says_json("counters", value(f"COUNTERS:oid:{oid}", name, said))


def slower_interface(environment: Document) -> None:
    for interface in environment["interfaces"]:
        if interface["name"] == "eth1":
            interface["rate_gbit_s"] = 25


def of_port(id_: str, word: str, check: str, title: str, path: str, change: Change) -> Fault:
    """A fault in what the switch says of alpha's port."""
    check = f"switch/{check}/leaf1/Ethernet0"
    return fault(id_, "switched", word, check, title, edit(path, change))


def stood_still(root: Path) -> None:
    before = json.loads((root / BEFORE).read_text())["commands"]["counters"]
    edit(AFTER, put("commands.counters", before))(root)


def cleared(root: Path) -> None:
    """The third reading while flows ran has the counters of the first one."""
    path = root / "raw/leaf1" / SAMPLES
    readings = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    counters, earlier = (readings[n]["commands"]["counters"] for n in (2, 0))
    counters["stdout"] = earlier["stdout"]
    text = "".join(f"{compact(one)}\n" for one in readings)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


UNANSWERED = "switch/answers/leaf1 switch/*"
FAULTS = (
    fault(
        "switch-silent",
        "switched",
        INCONCLUSIVE,
        UNANSWERED,
        "a switch that was not read after the run",
        remove(AFTER),
    ),
    of_port(
        "switch-dropped",
        FAIL,
        "drops",
        "a switch that dropped packets of the lossless class",
        AFTER,
        counter("0x1a00000000003", GROUP_DROPS, "17"),
    ),
    of_port(
        "switch-discards",
        PASS,
        "discards",
        "a switch that discarded packets which no queue counted",
        AFTER,
        counter("0x1000000000012", "SAI_PORT_STAT_IF_IN_DISCARDS", "400"),
    ),
    of_port(
        "switch-storm",
        FAIL,
        "pause-storms",
        "a pause storm on a switch's port",
        AFTER,
        counter("0x1500000000003", "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", "2"),
    ),
    fault(
        "switch-out",
        "switched",
        INCONCLUSIVE,
        "switch/unread",
        "a switch that was removed from the plan although hosts are connected to it",
        edit("plan.json", drop("switches")),
    ),
    fault(
        "switch-no-priorities",
        "switched",
        INCONCLUSIVE,
        "switch/priorities",
        "a switch without a wanted lossless priority, between hosts that want one",
        edit("plan.json", put("switches.leaf1.priorities", [])),
    ),
    fault(
        "switch-foreign",
        "switched",
        INCONCLUSIVE,
        UNANSWERED,
        "a switch's reading of another run",
        edit(AFTER, put("run", "20260101T000000Z-other")),
    ),
    fault(
        "switch-early",
        "switched",
        INCONCLUSIVE,
        UNANSWERED,
        "a switch's reading of another year",
        edit(BEFORE, put("collected", "2020-01-01T00:00:00Z")),
    ),
    fault(
        "switch-late",
        "switched",
        INCONCLUSIVE,
        UNANSWERED,
        "a switch that was first read after the flows",
        edit(BEFORE, put("collected", "2026-11-21T14:18:24Z")),
    ),
    fault(
        "switch-still",
        "switched",
        INCONCLUSIVE,
        "switch/moved",
        "a switch whose counters stood still while its hosts moved gigabytes",
        stood_still,
    ),
    fault(
        "switch-during",
        "switched",
        PASS,
        "switch/during",
        "a switch's counters that went back while flows ran, and caught up later",
        cleared,
    ),
    fault(
        "switch-port",
        "switched",
        INCONCLUSIVE,
        "switch/ports",
        "a host without a port on the switch",
        edit(BOTH, says("lldp", substitute('"beta"', '"omega"'))),
    ),
    fault(
        "switch-shared",
        "switched",
        INCONCLUSIVE,
        "switch/shared",
        "a port that the inventory gives to one host, and LLDP to another",
        edit("plan.json", put("switches.leaf1.ports", {"alpha": ["Ethernet0"]})),
        edit(BOTH, says("lldp", substitute('"alpha"', '"beta"'))),
    ),
    of_port(
        "switch-down",
        FAIL,
        "link-up",
        "a switch's port that is down",
        AFTER,
        says_json("ports", value("PORT_TABLE:Ethernet0", "oper_status", "down")),
    ),
    of_port(
        "switch-pfc",
        FAIL,
        "pfc",
        "a switch without PFC on the lossless priority",
        BOTH,
        says_json("qos", value("PORT_QOS_MAP|Ethernet0", "pfc_enable", "4")),
    ),
    of_port(
        "switch-errors",
        FAIL,
        "errors",
        "a switch that saw damaged frames",
        AFTER,
        counter("0x1000000000012", "SAI_PORT_STAT_IF_IN_ERRORS", "900"),
    ),
    fault(
        "switch-cleared",
        "switched",
        INCONCLUSIVE,
        "switch/drops/leaf1/Ethernet0 switch/*",
        "a switch's counters that were cleared during the run",
        edit(BEFORE, counter("0x1a00000000003", GROUP_DROPS, "99999")),
    ),
    fault(
        "switch-model",
        "switched",
        INCONCLUSIVE,
        UNANSWERED,
        "a switch that was asked as another model, and names none of its ports",
        edit(BOTH, says_json("counters", dict.clear)),
    ),
    fault(
        "switch-impossible",
        "switched",
        INCONCLUSIVE,
        "switch/drops/leaf1/Ethernet0 switch/*",
        "a switch's port that counted more bytes than it could carry",
        edit(AFTER, counter("0x1000000000012", "SAI_PORT_STAT_IF_OUT_OCTETS", "9" * 21)),
    ),
    fault(
        "switch-speed",
        "switched",
        FAIL,
        "switch/link-speed/leaf1/Ethernet0",
        "a switch's port of another speed than the host's interface",
        edit("raw/alpha/environment.json", slower_interface),
    ),
)
