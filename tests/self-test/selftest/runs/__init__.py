"""The good runs.

A recorded run is as it was recorded. A composed one is recorded outputs in another setting, and
shows how the judge judges; it shows nothing about any hardware.
"""

from collections.abc import Callable
from pathlib import Path

from selftest.runs import composed, recorded, slingshot

#: Each makes its run in a folder that is not there yet.
BASES: dict[str, Callable[[Path], None]] = {
    "loopback": recorded.loopback,
    "transfers": recorded.transfers,
    "rxe": recorded.rxe,
    "cards": recorded.cards,
    "fabric": composed.fabric,
    "swept": composed.swept,
    "railed": composed.railed,
    "sealed": recorded.sealed,
    "accepted": recorded.accepted,
    "checked": composed.checked,
    "switched": recorded.switched,
    "slingshot": slingshot.slingshot,
    "retried": composed.retried,
    "aged": composed.aged,
    "soaked": composed.soaked,
    "watched": composed.watched,
}
