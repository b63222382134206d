"""The recorded run over Soft-RoCE as if two cards had carried it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from selftest.runs.answers import check_hosts

from tests import spelled
from tests.py.judging import Document, Run, counts, put
from tests.raw_lines import End, rested, walks

PORT = "mlx5_0/1"


def call_cards(run: Run) -> Run:
    """Plans the flows as hardware, over devices that are called as cards; returns the run.

    The counters have names that only cards use.
    """
    names = {b"rxe0": b"mlx5_0", b"sent_pkts": b"tx_pkts", b"rcvd_pkts": b"rx_pkts"}
    for file in run.root.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            for soft, hard in names.items():
                content = content.replace(soft, hard)
            file.write_bytes(content)
    run.edit("plan.json", _on_hardware)
    for host in ("alpha", "beta"):
        environment = Path("raw") / host / "environment.json"
        run.edit(environment, _with_a_cards_driver, put("boot_id", f"of-{host}"))
    check_hosts(run.root, "eth1")
    spelled.walked(run.root)
    run.fetched = True
    return run


def put_cards(run: Run) -> Run:
    """The same, and both hosts count as a card does."""
    call_cards(run)
    for host in ("alpha", "beta"):
        card: Counter[str] = Counter()
        walk = next(walks(run.root, host))
        for end in walk.ends:
            _as_a_card_counts(end, card)
        rested(walk)
        walk.save()
    return run


def _on_hardware(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["scope"] = "hardware"
    for turn in plan["rounds"]:
        for flow in turn["flows"]:
            flow["scope"] = "hardware"


def _with_a_cards_driver(known: Document) -> None:
    for device in known["rdma"]:
        device["driver"] = "mlx5_core"


def _as_a_card_counts(end: Document, card: Counter[str]) -> None:
    """Bytes in words of four, without what the emulated machines sent again.

    The interface's stand for them: cards on a good network repeat nothing. `card`: what it counted
    so far.
    """
    once = 1.0
    if re.match("verbs-read-b", end["id"]):
        once = 0.8
    elif re.match("read-l|send-b", end["id"]):
        once = 0.95
    before, after = (end["counters"][when] for when in ("before", "after"))

    def words(name: str) -> int:
        sides = [int(side["netdev"]["eth1"][name]) for side in (before, after)]
        return int((sides[1] - sides[0]) * once / 4)

    moved = {"port_xmit_data": words("tx_bytes"), "port_rcv_data": words("rx_bytes")}
    for side, by in ((before, dict.fromkeys(moved, 0)), (after, moved)):
        card.update(by)
        counters = side["rdma"][PORT]["counters"]
        zeros = {name: "0" for name in counters if name not in ("tx_pkts", "rx_pkts")}
        data = {name: str(card[name]) for name in moved}
        side["rdma"][PORT]["counters"] = {**zeros, **data}


def counted(end: End, where: str, counter: str, before: int, after: int) -> None:
    """Sets what a counter of the port, or of an interface, showed before a flow and after it.

    So do all readings of the host that are earlier, and all that are later.
    """
    place = f"rdma.{PORT}.counters" if where == "port" else f"netdev.{where}"
    counts(end, f"{place}.{counter}", before, after)
