"""What a part, or a record, claims by its figures."""

from __future__ import annotations

import re

from perch.model.record import Latency, Number, Params, Part, Record

_RDMA_TOOLS = frozenset({"perftest", "cxi", "perch-personality"})
_rdma_provider = re.compile(r"(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)")


def lost_messages(result: Part | Record) -> int:
    """Messages of an unreliable connection that did not arrive; 0 where nobody counted them."""
    loss = result.loss
    return 0 if loss is None or loss.lost_messages is None else loss.lost_messages


def needed(result: Part | Record) -> Number:
    """Bytes that the figures need on the wire at least.

    Each message that was measured, there and back where a message of the same size answered it,
    without messages that were lost.
    """
    size = (result.params or Params()).size_bytes or 0
    if result.kind == "latency":
        ways = 2 if result.definition == "half_round_trip" else 1
        return ((result.latency_us or Latency()).count or 0) * size * ways
    moved = result.bandwidth.bytes if result.bandwidth else None
    return (moved or 0) - lost_messages(result) * size


def is_rdma(backend: str | None, tool: str | None, provider: str | None) -> bool:
    """Whether the bytes go through an RDMA device rather than the sockets of an interface."""
    return (
        backend in ("verbs", "cxi")
        or tool in _RDMA_TOOLS
        or (provider is not None and _rdma_provider.search(provider) is not None)
    )
