"""How many bits of a link forward error correction (FEC) corrected from sample to sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perch.judge.counter_table import CORRECTED_BITS, CORRECTED_RATIO
from perch.model.record import Number
from perch.soak.samples import SampleLine


class Worst(NamedTuple):
    """The sample in which a larger share of a link's bits was corrected than in any other."""

    device: str
    ratio: float
    line: SampleLine


class Corrected:
    """Of each interface its worst sample. `gbit_s`: the rate of its link; None: nothing is kept."""

    def __init__(self, gbit_s: Number | None) -> None:
        self._bits_s = (gbit_s or 0) * 1e9
        self._worst: dict[str, Worst] = {}

    def add(self, line: SampleLine) -> None:
        bits = self._bits_s * line.long_s
        if bits <= 0:
            return
        for name, n in line.moved.items():
            table, _, counter = name.rpartition("/")
            if n and counter in CORRECTED_BITS:
                device = table.partition("/")[2]
                worst = self._worst.get(device)
                if worst is None or n / bits > worst.ratio:
                    self._worst[device] = Worst(device, n / bits, line)

    def bad(self) -> Iterator[Worst]:
        """Those whose link needed more than a healthy one does."""
        return (one for _, one in sorted(self._worst.items()) if one.ratio > CORRECTED_RATIO)
