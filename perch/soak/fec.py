"""How many bits of a link forward error correction (FEC) corrected from sample to sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perch.judge.corrected import share
from perch.judge.counter_table import CORRECTED_BITS, CORRECTED_RATIO
from perch.model.record import Number
from perch.soak.samples import SampleLine


class Worst(NamedTuple):
    """The sample in which a larger share of a link's bits was corrected than in any other."""

    device: str
    ratio: float
    line: SampleLine


class Corrected:
    """Of each interface its worst sample. `gbit_s`: the rate of its link; None: nothing is kept.

    `gaps`: of each the first sample that does not tell.
    """

    def __init__(self, gbit_s: Number | None) -> None:
        self._gbit_s = gbit_s or 0
        self._worst: dict[str, Worst] = {}
        self.gaps: dict[str, SampleLine] = {}

    def add(self, line: SampleLine) -> None:
        if not self._gbit_s or line.long_s <= 0:
            return
        for name, n in line.moved.items():
            table, _, counter = name.rpartition("/")
            if counter not in CORRECTED_BITS:
                continue
            device = table.partition("/")[2]
            if n is None:
                self.gaps.setdefault(device, line)
                continue
            ratio, worst = share(n, line.long_s, self._gbit_s), self._worst.get(device)
            if worst is None or ratio > worst.ratio:
                self._worst[device] = Worst(device, ratio, line)

    def bad(self) -> Iterator[Worst]:
        """Those whose link needed more than a healthy one does."""
        return (one for _, one in sorted(self._worst.items()) if one.ratio > CORRECTED_RATIO)
