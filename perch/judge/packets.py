"""What became of a flow's packets, from the RDMA counters of both ends."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from perch.judge.counter_table import CORRUPTED, GAPS, RECEIVED, RETRIES, SENT
from perch.judge.counters import Counts
from perch.model.raw import Block
from perch.model.record import Packets


def of_flow(client: Sequence[Counts], server: Sequence[Counts], *, shared: bool) -> Packets | None:
    """Each packet that one device sent must have arrived at the other.

    `client`, `server`: the counters of the ports that carried the flow, empty where they are not
    known (`Proof.ports`). `shared`: the same counters hold packets of another flow of the round.
    None: no counter has the packets of this flow alone, or none was sent.
    """
    of_client, of_server = _one_of(client, SENT), _one_of(server, SENT)
    if shared or of_client is None or of_server is None or of_client + of_server == 0:
        return None
    there = _missing(of_client, _one_of(server, RECEIVED))
    back = _missing(of_server, _one_of(client, RECEIVED))
    both = [*client, *server]
    return Packets(
        sent=of_client + of_server,
        lost=None if there is None or back is None else there + back,
        retries=_all_of(both, RETRIES),
        gaps=_all_of(both, GAPS),
        corrupted=_all_of(both, CORRUPTED),
    )


def _missing(sent: int, received: int | None) -> int | None:
    return None if received is None else max(sent - received, 0)


def _one_of(ports: Sequence[Counts], names: tuple[str, ...]) -> int | None:
    """The first of several names for one thing, over all ports; None where a port has none."""
    total: int | None = None
    for counters in ports:
        for name in _those_of(counters.block, names):
            count = counters.moved.get(name, 0)
            if count is not None:
                total = count if total is None else total + count
                break
        else:
            return None
    return total


def _all_of(ports: Sequence[Counts], names: tuple[str, ...]) -> int | None:
    """Several things that may be counted, added; None where none of them is."""
    found = [
        n
        for counters in ports
        for name in _those_of(counters.block, names)
        if (n := counters.moved.get(name, 0)) is not None
    ]
    return sum(found) if found else None


@lru_cache(maxsize=4096)
def _those_of(block: Block, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if name in block.known]
