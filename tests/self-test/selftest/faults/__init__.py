"""The faults: each is planted in a good run, and the check that must find it is named beforehand.

A family of faults is a module; the order of FAMILIES is that of the page of faults.
"""

from __future__ import annotations

import importlib
from functools import cache

from selftest.fault import Fault

FAMILIES = (
    "flows", "origins", "figures", "plans", "devices", "fabric", "sweeps", "between", "hosts",
    "machines", "links", "switches", "history", "slingshot", "repeats", "soak_lines",
    "soak_samples",
)  # fmt: skip


@cache
def all_faults() -> tuple[Fault, ...]:
    """All faults in their order."""
    modules = [importlib.import_module(f"selftest.faults.{name}") for name in FAMILIES]
    found: tuple[Fault, ...] = tuple(fault for module in modules for fault in module.FAULTS)
    twice = {fault.id for fault in found if sum(one.id == fault.id for one in found) > 1}
    if twice:
        raise ValueError(f"two faults have the id {min(twice)}")
    return found
