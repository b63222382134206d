"""Who is measured with whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Pair = tuple[str, str]


class Turn(NamedTuple):
    """Pairs of hosts that measure at the same time, each over the same rail."""

    rail: int
    pairs: list[Pair]

    def back(self) -> Turn:
        """With the ends of each pair exchanged."""
        return Turn(self.rail, [(server, client) for client, server in self.pairs])


def circle(hosts: Sequence[str]) -> list[list[Pair]]:
    """Every pair once, in rounds whose pairs share no host: as few rounds as there can be.

    The circle method of round-robin tournaments: one host stays, the others turn by one place a
    round; with an odd number of hosts, a host without a peer has a free round.
    """
    if len(hosts) < 2:
        return []
    places: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    first, *others = places
    rounds = []
    for turn in range(len(others)):
        seats = [first, *others[turn:], *others[:turn]]
        facing = zip(seats[: len(seats) // 2], reversed(seats), strict=False)
        rounds.append(
            [(one, other) for one, other in facing if one is not None and other is not None]
        )
    return rounds


def ring(hosts: Sequence[str]) -> list[Pair]:
    """Each host sends to the next one, the last to the first. Two hosts: one there, one back."""
    return list(zip(hosts, [*hosts[1:], *hosts[:1]], strict=True))


def mesh(hosts: Sequence[str]) -> list[Pair]:
    """Every two hosts once; each host sends about as often as it receives."""
    return [
        (one, other) if (j - i) % 2 else (other, one)
        for i, one in enumerate(hosts)
        for j, other in enumerate(hosts[i + 1 :], start=i + 1)
    ]
