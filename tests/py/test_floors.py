"""Shipped limits: a tenth of what was bought fails, whatever a test moves its data with."""

from __future__ import annotations

from typing import Any

import pytest

from perch.model import limit_files
from tests.py.checks_built import found, record, run_of

NEAR = {"roce-400": ("verbs", 400), "ib-ndr": ("verbs", 400), "slingshot-200": ("cxi", 200)}


def failed(limits: str, gbit_s: float, **members: Any) -> list[str]:
    """The limits of a set that such a record does not meet."""
    backend, rate = NEAR[limits]
    layer = {"roce-400": "ethernet", "ib-ndr": "infiniband"}.get(limits, "slingshot")
    params = {"bidirectional": False, **members.pop("params")}
    link = {"rate_gbit_s": rate, "expected_gbit_s": rate, "mtu_bytes": 4096, "layer": layer}
    ends = {
        role: {"host": host, "device": "mlx5_0"}
        for role, host in (("client", "a"), ("server", "b"))
    }
    about = {"scope": "hardware", "backend": backend, "link": link, "params": params}
    bandwidth = {"gbit_s": gbit_s, **members.pop("bandwidth", {})}
    one = record("t/a/b/0/1", bandwidth=bandwidth, **about, **ends, **members)
    shipped = limit_files.shipped(limits)
    assert shipped is not None
    checks = found(run_of([one], *shipped), "limit")
    return [name for name, check in checks.items() if check.status in ("fail", "advisory")]


@pytest.mark.parametrize("limits", NEAR)
@pytest.mark.parametrize(
    "members",
    [
        *[{"op": op} for op in ("send", "send-imm", "write", "write-imm", "read")],
        *[
            {
                "kind": kind,
                "op": "write",
                "params": {"size_bytes": size, "batch": batch, "devices": 1},
                "transfer": {"pair": 0} if kind == "transfer" else {"pairs": 1},
            }
            for kind in ("transfer", "sum")
            for size, batch in ((1 << 16, 64), (1 << 20, 4), (1 << 22, 1), (1 << 26, 1))
        ],
    ],
)
def test_a_tenth_of_what_was_bought_fails_and_nearly_all_of_it_does_not(
    limits: str, members: dict[str, Any]
) -> None:
    rate = NEAR[limits][1]
    members = {"params": {"size_bytes": 1 << 16}} | members
    assert failed(limits, rate / 10, **members)
    assert not failed(limits, rate * 0.96, **members)


@pytest.mark.parametrize(
    ("mmsg_s", "size", "queue_pairs", "fails"),
    [(2.9, 64, 4, True), (3.1, 64, 4, False), (2.9, 128, 4, False), (2.9, 64, 1, False)],
)
def test_a_rate_of_small_writes_below_the_published_one_is_a_warning(
    mmsg_s: float, size: int, queue_pairs: int, fails: bool
) -> None:
    params = {"size_bytes": size, "queue_pairs": queue_pairs, "threads": 1, "batch": 32}
    rate = {"kind": "rate", "op": "write", "params": params}
    rate["bandwidth"] = {"messages_per_s": mmsg_s * 1e6}
    assert ("limit/message-rate/t" in failed("roce-400", 1, **rate)) == fails
