"""What a first hardware day has collected: late counters, unanswered questions, addresses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perch.history.first_day import addresses
from perch.judge.lag import lags
from perch.judge.raw import RawFiles
from perch.views.first_day import Answer

SECOND = 10**9


def written(root: Path, flows: list[dict[str, Any]], samples: list[dict[str, Any] | str]) -> Path:
    """A run of which only the lines of host alpha are there."""
    folder = root / "raw/alpha"
    folder.mkdir(parents=True)
    for name, lines in (("flows", flows), ("samples", samples)):
        texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
        (folder / f"{name}.jsonl").write_text("".join(f"{one}\n" for one in texts))
    return root


def flow(role: str, before: int, after: int, ended_s: float) -> dict[str, Any]:
    ended = int(ended_s * SECOND)
    name = f"a/alpha/beta/0/{before}"
    of_line = {
        "kind": "flow",
        "id": name,
        "role": role,
        "state": "done",
        "samples": [before, after],
    }
    return {**of_line, "ended_monotonic_ns": ended}


def sample(number: int, at_s: float, values: str) -> dict[str, Any]:
    at = {"time_s": f"{at_s:.6f}", "monotonic_ns": int(at_s * SECOND)}
    return {"kind": "sample", "number": number, **at, "settled": True, "values": values}


LAYOUT = {
    "kind": "layout",
    "host": ["TcpRetransSegs"],
    "netdev": {"eth0": ["rx_packets"]},
    "rdma": {"bnxt_re0/1": {"netdev": "eth0", "counters": ["tx_bytes", "rx_errors"]}},
    "cxi": {},
}


def followed(late_at: int) -> list[dict[str, Any] | str]:
    """Readings from the flow's end at 100 s on; its bytes show from reading `late_at` on."""
    lines: list[dict[str, Any] | str] = [LAYOUT, sample(1, 98, "0 10 5000 0")]
    for number in range(2, 42):
        moved = 5000 + (2_000_000 if number >= late_at else 0)
        lines.append(sample(number, 100 + (number - 2) * 0.05, f"9999 {number * 20} {moved} 0"))
    return lines


def test_a_counter_is_as_late_as_the_first_reading_that_shows_the_flow(tmp_path: Path) -> None:
    root = written(tmp_path, [flow("client", 1, 2, 100)], followed(23))
    (lag,) = lags(RawFiles(root), "alpha")
    assert (lag.device, lag.counter) == ("bnxt_re0/1", "tx_bytes")
    assert lag.ms == pytest.approx(1050)


def test_readings_of_the_next_flow_are_not_of_this_one(tmp_path: Path) -> None:
    flows = [flow("client", 1, 2, 100), flow("server", 20, 21, 101)]
    assert list(lags(RawFiles(written(tmp_path, flows, followed(23))), "alpha")) == []


@pytest.mark.parametrize(
    "samples",
    [[], followed(2)[:4], ["[", *followed(2)[1:]], [LAYOUT, sample(1, 98, "0 1 x 0")]],
    ids=["none", "one after the flow", "no layout", "no number"],
)
def test_a_flow_that_was_not_followed_tells_no_lag(
    tmp_path: Path, samples: list[dict[str, Any] | str]
) -> None:
    root = written(tmp_path, [flow("client", 1, 2, 100)], samples)
    assert list(lags(RawFiles(root), "alpha")) == []


def test_a_damaged_reading_is_left_out(tmp_path: Path) -> None:
    samples = followed(23)
    samples[10:12] = ["{", sample(11, 100.45, "1 2")]
    root = written(tmp_path, [flow("client", 1, 2, 100)], samples)
    assert [lag.ms for lag in lags(RawFiles(root), "alpha")] == [pytest.approx(1050)]


def test_addresses_of_networks_and_cards_are_found_and_nothing_else() -> None:
    text = b"""inet 198.51.100.7/24 brd 198.51.100.255 at 12:34:56 pci 0000:3b:00.0 fw 22.31.1014
      gid fe80:0000:0000:0000:0202:c9ff:fe00:5301 2001:DB8::5 [::1] 127.0.0.2 255.255.255.0
      link/ether 00:00:5E:00:53:01 brd ff:ff:ff:ff:ff:ff 00:00:00:00:00:00 v1.2.3.4.5 999.1.1.1"""
    assert addresses([text, b"198.51.100.7"]) == [
        "00:00:5e:00:53:01",
        "198.51.100.255",
        "198.51.100.7",
        "2001:db8::5",
        "fe80:0000:0000:0000:0202:c9ff:fe00:5301",
    ]


def test_addresses_within_texts_of_json_and_those_of_other_spelling_are_found() -> None:
    gid = "00:00:00:00:00:00:00:00:00:00:255:255:198:51:100:07"
    text = rb"""{"a": "x\n198.51.100.8\tfe80::2", "node": "08c0:eb03:00f0:28b2"}
      lldp 0c42.a110.0001 guid 0x248a0703000005b1 0x0000000000000000 0000:0000:0000:0000 """
    assert addresses([text + gid.encode()]) == [
        gid,
        "08c0:eb03:00f0:28b2",
        "0c42.a110.0001",
        "0x248a0703000005b1",
        "198.51.100.8",
        "fe80::2",
    ]


@pytest.mark.parametrize(
    ("measured", "missing", "state"),
    [(0, ["no GPU"], "not run"), (2, ["no GPU"], "in part"), (3, [], "measured")],
)
def test_a_question_says_whether_it_is_answered(
    measured: int, missing: list[str], state: str
) -> None:
    assert Answer("c", 3, measured, missing).state == state
