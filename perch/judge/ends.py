"""The times that the two ends of a flow tell, compared with each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from perch.judge.times import Column, Times, times_of
from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.raw import End
from perch.model.record import Number


def _later(a: Column, b: Column) -> npt.NDArray[np.float64]:
    """Seconds by which `a` is later than `b`; 0 where it is not, or one of them is missing."""
    found: npt.NDArray[np.float64] = np.fmax(np.subtract(a, b), 0)
    return found


def skews_s(client: Times, server: Times) -> list[Number]:
    """Seconds by which the server's clock is ahead of the client's; below 0, behind. Of many flows.

    As far as the order of events shows it. The client begins after both ends have met and ends
    before they meet again (roles/agent): the other order comes from the clocks.
    The same holds of the readings of counters.
    """
    ahead = _later(server.begun, client.begun), _later(server.before, client.before)
    behind = _later(client.over, server.over), _later(client.after, server.after)
    shown = np.array([ahead[0], -behind[0], ahead[1], -behind[1]]).reshape(4, -1)
    most = np.take_along_axis(shown, np.abs(shown).argmax(axis=0)[None], axis=0)[0]
    return [rounded(one) if one else 0 for one in most.tolist()]


def skew_s(client: End | None, server: End | None, parts: Sequence[Part]) -> Number | None:
    """The same of one flow; None where an end gave no times.

    The hosts of a soak do not meet: each begins and ends by itself.
    """
    if client is None or server is None:
        return None
    if None in (client.started, client.ended, server.started, server.ended):
        return None
    if any(part.soak is not None for part in parts):
        return 0
    (found,) = skews_s(times_of(client), times_of(server))
    return found
