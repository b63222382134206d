"""What a part claims by its figures: the bytes that must have been on the wire."""

from __future__ import annotations

import re

from perch.model.part import Part
from perch.model.record import Number, Record

#: libfabric's names of providers that drive RDMA hardware, alone or as a layer ("verbs;ofi_rxm").
_RDMA_PROVIDER = re.compile(r"(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)")


def lost_messages(part: Part | Record) -> int:
    """Messages of an unreliable connection that were sent and did not arrive."""
    return part.loss.lost_messages or 0 if part.loss else 0


def needed_bytes(part: Part | Record) -> Number:
    """Payload bytes that the figures need on the wire at least, both ways together.

    Each measured message counts, there and back where it was answered; losses do not.
    """
    size = part.params.size_bytes or 0 if part.params else 0
    if part.kind == "latency":
        messages = part.latency_us.count or 0 if part.latency_us else 0
        return messages * size * (2 if part.definition == "half_round_trip" else 1)
    moved = part.bandwidth.bytes or 0 if part.bandwidth else 0
    return moved - lost_messages(part) * size


def is_rdma(backend: str | None, tool: str | None, provider: str | None) -> bool:
    """Whether the bytes go through an RDMA device rather than the sockets of an interface."""
    return (
        backend in ("verbs", "cxi")
        or tool in ("perftest", "cxi", "perch-personality")
        or (provider is not None and _RDMA_PROVIDER.search(provider) is not None)
    )
