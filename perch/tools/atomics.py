"""Libfabric's atomic operations, as suites name them for the engine and for the cxi tools."""

from __future__ import annotations

from perch.model.suite import SuiteTest

OPS = ("atomic-op", "fetch-atomic", "compare-atomic")

TYPE_BYTES = (
    dict.fromkeys(("int8", "uint8"), 1)
    | dict.fromkeys(("int16", "uint16"), 2)
    | dict.fromkeys(("int32", "uint32", "float"), 4)
    | dict.fromkeys(("int64", "uint64", "double", "float-complex"), 8)
    | dict.fromkeys(("double-complex", "uint128"), 16)
)


def operation(test: SuiteTest) -> str:
    """What an atomic does, from its test or by default."""
    default = "cswap" if test.op == "compare-atomic" else "sum"
    return str(test.get("atomic_op", default))


def type_of(test: SuiteTest) -> str:
    """The type of an atomic's operands, from its test or by default."""
    return str(test.get("atomic_type", "uint64"))
