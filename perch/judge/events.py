"""What happened on the way of a flow beside its payload: counters of the devices that carried it.

A healthy network drops nothing, repeats nothing, corrects nothing and stays up; pauses and
congestion marks are how it shares, and are shown. docs/definitions.md, "Counters before and after",
has classes and severities in words.
"""

from __future__ import annotations

from functools import lru_cache

from perch.judge.counter_table import COUNTED_BY, FLUSHED_OF
from perch.judge.counters import Counts, classes, unflushed
from perch.judge.path import Proof
from perch.model.plan import Flow
from perch.model.raw import Block
from perch.model.record import ROLES, Events, Number


def of_flow(flow: Flow, proof: Proof, *, measured: bool) -> Events | None:
    """`measured`: whether a part of the flow was. None where no counter was read.

    A class is in `counts` where both ends count it, or where one of them has seen something.
    """
    carried = proof.carried
    if not carried["client"] and not carried["server"]:
        return None
    counts: dict[str, Number] = dict.fromkeys(_counted_by_both(proof), 0)
    moved: dict[str, str] = {}
    reset: dict[str, None] = {}
    for role in ROLES:
        for device, counters in carried[role].items():
            known = classes(counters.block)
            if counters.moved.keys().isdisjoint(known):
                continue
            for name, n in counters.moved.items():
                kind = known.get(name)
                if kind is None:
                    continue
                if name in FLUSHED_OF:
                    n = unflushed(n, counters.get(FLUSHED_OF[name]))
                    if n == 0:
                        continue
                moved.setdefault(kind, f"{flow.host(role)}: {device} {name}")
                if n is None:
                    reset[kind] = None
                else:
                    counts[kind] = counts.get(kind, 0) + n
    stands = proof.loopback or proof.path.state == "proven"
    return Events(
        counts={kind: n for kind, n in counts.items() if kind not in reset} if reset else counts,
        reset=list(reset),
        moved=moved,
        stale=_stale_device(flow, proof, measured) if stands else None,
    )


def _counted_by_both(proof: Proof) -> list[str]:
    client, server = (proof.carried[role].values() for role in ROLES)
    return _in_both(tuple(one.block for one in client), tuple(one.block for one in server))


@lru_cache(maxsize=256)
def _in_both(client: tuple[Block, ...], server: tuple[Block, ...]) -> list[str]:
    """`client`, `server`: what each device of an end counts."""
    by_end = [frozenset().union(*map(_counted, devices)) for devices in (client, server)]
    return [kind for kind in COUNTED_BY if all(kind in counted for counted in by_end)]


def _counted(block: Block) -> frozenset[str]:
    """The classes that a device counts."""
    return frozenset(
        kind for kind, one_of in COUNTED_BY.items() if not one_of.isdisjoint(block.known)
    )


def _stale_device(flow: Flow, proof: Proof, measured: bool) -> str | None:
    """The first device whose counters contradict each other.

    Beside an RDMA device the interface need not move; on a loopback it must.
    """
    for role in ROLES:
        for device, counters in proof.carried[role].items():
            why = _stale(counters, must_move=proof.loopback and measured)
            if why is not None:
                return f"{flow.host(role)}: {device} {why}"
    return None


_BYTES_AND_PACKETS = (
    (("tx_bytes", "rx_bytes"), ("tx_packets", "rx_packets")),
    (("port_xmit_data", "port_rcv_data"), ("port_xmit_packets", "port_rcv_packets")),
)


def _stale(counters: Counts, *, must_move: bool) -> str | None:
    """How bytes and packets of one device contradict each other; None where it counts only one.

    Nothing moves bytes in no packet, or packets of no bytes: one of the two counters is stale, or
    the device's own is another's.
    """
    compared = _compared(counters.block)
    if compared is None:
        return None
    amount, packets = (_sum(counters, names) for names in compared)
    if amount is None or packets is None or (amount > 0 and packets > 0):
        return None
    if amount == packets:
        return "counted neither bytes nor packets" if must_move else None
    if amount == 0:
        return f"counted {packets} packets without a byte"
    return f"counted {amount} bytes in no packet"


@lru_cache(maxsize=4096)
def _compared(block: Block) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """The counters of bytes and of packets that a device has."""
    both = (both for both in _BYTES_AND_PACKETS if both[0][0] in block.known)
    return next((both for both in both if both[1][0] in block.known), None)


def _sum(counters: Counts, names: tuple[str, str]) -> int | None:
    out, back = counters.get(names[0]), counters.get(names[1])
    return None if out is None or back is None else out + back
