"""The figures of many of the engine's lines at once: which of them surely hold together.

Each law is perch.tools.perch's, which looks at every line closely that is not surely as it must be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from perch.model.figures import TEN, rounded_all
from perch.model.record import Latency
from perch.tools.engine_figures import (
    ALWAYS,
    BANDWIDTH,
    BUCKETS,
    CLOCKS,
    CLOCKS_S,
    CPU,
    GRAIN_S,
    INTEGRITY,
    LATENCY,
    LOSS,
    TCP,
    TOLERANCE,
    Check,
)
from perch.tools.engine_line import EngineLine
from perch.tools.results import IMPOSSIBLE_GBIT_S, natural, natural_or_none, positive

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

#: Every whole number below is a float, too.
EXACT = 2.0**53
#: Figures nearer than this to a bound are compared with the bound itself.
NEAR = 1e-9

_ELAPSED = [Check("elapsed_s", positive, may_be_absent=False, place="elapsed_s")]
_GROUPS = {
    "latency_us": LATENCY, "bandwidth": BANDWIDTH, "cpu": CPU, "integrity": INTEGRITY,
    "tcp": TCP, "loss": LOSS,
}  # fmt: skip


class _Group:
    """The figures of one object of each line, rounded, by name; nan where there is none.

    `sure`: whether all of them are results. `new`: those that rounding changed.
    """

    def __init__(self, owners: Sequence[Any], checks: Sequence[Check]) -> None:
        names = [check.name for check in checks]
        self._owners, self.there = owners, np.array([one is not None for one in owners])
        self.new: list[tuple[int, str, int | float]] = []
        self.sure: Mask = ~self.there
        self._columns = dict.fromkeys(names, np.full(len(owners), np.nan))
        if not self.there.any():  # as most objects in lines of one kind
            return
        get, none = attrgetter(*names, names[0]), (None,) * (len(names) + 1)
        told = np.array([none if one is None else get(one) for one in owners], float)[:, :-1]
        exact, is_near = rounded_all(told)
        least_is_0 = [check.must_be in (natural, natural_or_none) for check in checks]
        must = [not check.may_be_absent for check in checks]
        holds = (told > 0) | ((told == 0) & least_is_0)
        holds &= (told < EXACT) & ~is_near
        is_missing = np.isnan(told)
        self.sure |= np.all(np.where(is_missing, ~np.array(must), holds), axis=1)
        for row, column in zip(
            *map(np.ndarray.tolist, np.nonzero(_changed(told, exact))), strict=True
        ):
            name = names[column]
            if type(getattr(owners[row], name)) is not float:  # a count stays
                exact[row, column] = told[row, column]
                continue
            value = float(exact[row, column])
            self.new.append((row, name, int(value) if value.is_integer() else value))
        self._columns = dict(zip(names, exact.T, strict=True))

    def __getitem__(self, name: str) -> Floats:
        column: Floats = self._columns[name]
        return column

    def round(self, sure: Mask) -> None:
        """Writes rounded figures to the objects of these lines."""
        for row, name, value in self.new:
            if sure[row]:
                setattr(self._owners[row], name, value)


def _changed(told: Floats, exact: Floats) -> Mask:
    """A whole number may be a float, which becomes an integer."""
    changed: Mask = (told != exact) | (told == np.floor(told))
    return changed & ~np.isnan(told)


def surely_results(lines: Sequence[EngineLine]) -> list[bool]:
    """Whether the figures of each line hold together. Of those that do, they are rounded in place.

    lines: of the kinds latency and bandwidth, without errors, intervals, transfers and soaks. False
    decides nothing.
    """
    if not lines:
        return []
    elapsed = _Group(lines, _ELAPSED)
    groups = {
        name: _Group(list(map(attrgetter(name), lines)), checks) for name, checks in _GROUPS.items()
    }
    sure = np.array([_is_plain(line) for line in lines])
    with np.errstate(all="ignore"):
        for holds in (
            *(group.sure for group in (elapsed, *groups.values())),
            _complete(lines, groups),
            *_latency(lines, groups["latency_us"], elapsed["elapsed_s"]),
            *_bandwidth(lines, groups["bandwidth"], elapsed["elapsed_s"]),
            *_promises(lines, groups["integrity"]),
            *_costs(lines, groups["latency_us"], groups["cpu"]),
        ):
            sure &= holds
    for group in (elapsed, *groups.values()):
        group.round(sure)
    found: list[bool] = sure.tolist()
    return found


def _is_plain(line: EngineLine) -> bool:
    """Whether its pace, which changes what its times mean, and its backend are the usual ones."""
    params = line.params
    return params is not None and params.rate is None and line.backend != "null"


def _complete(lines: Sequence[EngineLine], groups: dict[str, _Group]) -> Mask:
    found = np.ones(len(lines), bool)
    for kind in ("latency", "bandwidth"):
        is_kind = np.array([line.kind == kind for line in lines])
        for group, names in ALWAYS[kind]:
            for name in names:
                found &= ~is_kind | ~np.isnan(groups[group][name])
    return found


def _trips(lines: Sequence[EngineLine]) -> Floats:
    return np.array([2.0 if line.definition == "half_round_trip" else 1.0 for line in lines])


def _latency(lines: Sequence[EngineLine], times: _Group, elapsed: Floats) -> Iterator[Mask]:
    count, mean, least, most = (times[name] for name in ("count", "mean", "min", "max"))
    rising = np.array([least, *(times[name] for name in Latency.PERCENTILES), most])
    before = np.fmax.accumulate(rising)[:-1]
    yield np.all((rising[1:] >= before) | np.isnan(rising[1:]) | np.isnan(before), axis=0)
    middle = times["p50"]
    yield ~times.there | (
        (mean >= least * (1 - BUCKETS) * (1 + NEAR))
        & (mean <= most * (1 + BUCKETS) * (1 - NEAR))
        & (np.isnan(middle) | (mean >= (least + middle) / 2 * (1 - BUCKETS) * (1 + NEAR)))
    )
    for name, quantile in Latency.PERCENTILES.items():
        yield np.isnan(times[name]) | (count * (1 - quantile) >= TEN)
    total_s = count * mean * _trips(lines) / 1e6
    yield ~times.there | (total_s <= (CLOCKS * elapsed + CLOCKS_S) * (1 - NEAR))


def _size(lines: Sequence[EngineLine]) -> Floats:
    return np.array([line.params and line.params.size_bytes for line in lines], float)


def _bandwidth(lines: Sequence[EngineLine], one: _Group, elapsed: Floats) -> Iterator[Mask]:
    rate, moved, messages, size = one["gbit_s"], one["bytes"], one["messages_per_s"], _size(lines)
    near = TOLERANCE * (1 - NEAR)
    yield ~one.there | (
        (rate <= IMPOSSIBLE_GBIT_S) & (np.abs(moved * 8 / elapsed / 1e9 - rate) <= near * rate)
    )
    same = np.abs(messages * size * 8e-9 / rate - 1) <= near
    yield ~one.there | np.isnan(messages) | np.isnan(size) | same


def _promises(lines: Sequence[EngineLine], integrity: _Group) -> Iterator[Mask]:
    bad, checked = integrity["bad_bytes"], integrity["checked_bytes"]
    yield np.isnan(bad) | (bad == 0)
    is_verified = np.array(
        [line.params is not None and line.params.verify is True for line in lines]
    )
    yield ~is_verified | (checked > 0)


def _costs(lines: Sequence[EngineLine], times: _Group, cpu: _Group) -> Iterator[Mask]:
    is_plain = np.array([line.loss is None and line.soak is None for line in lines])
    payload_gb = times["count"] * np.nan_to_num(_size(lines)) / 1e9
    for role in ("client", "server"):
        seconds, cost = cpu[f"{role}_s"], cpu[f"{role}_s_per_gb"]
        far = np.abs(cost * payload_gb - seconds)
        grant = (TOLERANCE * seconds + GRAIN_S) * (1 - NEAR)
        yield ~times.there | ~is_plain | np.isnan(far) | (far <= grant)
