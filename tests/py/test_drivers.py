"""Counters of each vendor's driver: what the agent reads of a card, and what the judge makes of it.

tests/fixtures/counters has what the drivers print. A card's folder below is as the kernel has it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from selftest.paths import FIXTURES

from perch.agent.counters import Counters, Reading, Readings
from perch.agent.devices import find
from perch.checks.counters import OWED
from perch.judge.counter_table import COUNTED_BY, GOES_BACK, class_of
from perch.judge.counters import Counted, is_trouble
from perch.judge.counters import counted as differences
from perch.judge.hosts import HostFacts
from perch.judge.path import Proof
from perch.judge.readings import around
from perch.judge.trail import of_idle
from perch.model.raw import Tables, TablesAround
from tests.py.agent_fakes import FakeClock, counted, run
from tests.py.path_built import flow, part, proof, word
from tests.py.vendors import BY_PORT, CARDS, Card, said

DEVICE, NETDEV = "roce0", "eth1"
PORT = f"sys/class/infiniband/{DEVICE}/ports/1"
#: Bytes of a flow's payload, and what a card counts of them: 1,024 messages of 64 KiB in packets of
#: 4 KiB with 60 bytes of headers.
PAYLOAD, COUNTED = 1024 * 65536, 1024 * 65536 + 16384 * 60
#: Of the interface of every card, as the kernel has them.
STATISTICS = (
    "rx_bytes rx_crc_errors rx_dropped rx_errors rx_missed_errors rx_packets tx_bytes tx_dropped"
    " tx_errors tx_packets"
)


class Host:
    """A host with a card, whose counters a test moves."""

    def __init__(self, root: Path, card: Card) -> None:
        self.root, self.card = root, card
        self.ethtool = said(card.ethtool) if card.ethtool else {}
        put(root / PORT / "gid_attrs/ndevs/0", NETDEV)
        put(root / f"sys/class/net/{NETDEV}/carrier_down_count", "0")
        (root / f"sys/class/net/{NETDEV}/device").mkdir()
        for name in STATISTICS.split():
            put(root / f"sys/class/net/{NETDEV}/statistics/{name}", "0")
        for name, value in said(card.port).items():
            put(self.file(name), value)
        driver = root / f"sys/class/infiniband/{DEVICE}/device/driver"
        driver.parent.mkdir()
        driver.symlink_to(f"../../../../bus/pci/drivers/{card.driver}")

    def file(self, name: str) -> Path:
        """InfiniBand's own lie beside those of the driver."""
        of_port = name.startswith(("port_", "link_", "unicast", "multicast", "VL15", "symbol"))
        return self.root / PORT / ("counters" if of_port else "hw_counters") / name

    def move(self, by: Mapping[str, int]) -> None:
        for name, n in by.items():
            if name in self.ethtool:
                self.ethtool[name] = str(int(self.ethtool[name]) + n)
            else:
                put(self.file(name), str(int(self.file(name).read_text()) + n))

    async def answer(self, argv: list[str], limit_s: float = 5.0) -> str:
        assert argv == ["ethtool", "-S", NETDEV]
        return "NIC statistics:\n" + "".join(f"     {n}: {v}\n" for n, v in self.ethtool.items())

    def read(self) -> dict[str, Any]:
        async def work() -> dict[str, Any]:
            found = await self.counters().reading(settled=True)
            return counted(found.layout, found.line["values"])

        return run(work)

    def counters(self) -> Counters:
        return Counters(find([DEVICE], self.root), self, FakeClock(), self.root)


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text + "\n")


@pytest.fixture
def host(card: str, tmp_path: Path) -> Host:
    return Host(tmp_path, (CARDS | BY_PORT)[card])


def between(before: dict[str, Any], after: dict[str, Any]) -> Counted:
    """What was counted in a second."""
    tables = [
        msgspec.convert(one | {"time_s": at}, Tables) for one, at in ((before, "1"), (after, "2"))
    ]
    found = differences(around(TablesAround(tables[0], tables[1], NETDEV, NETDEV)))
    assert found is not None
    return found


def seen(
    host: Host, moved: int, *, elapsed_s: float = 0.5, then: Callable[[], object] | None = None
) -> Proof:
    """A write whose ends both counted so many bytes; the card counts them in its own unit.

    `then`: what happens to the client's counters before they are read again.
    """
    out, back = host.card.bytes
    first = host.read()
    host.move({out: moved // 50 // host.card.each, back: moved // host.card.each})
    second = host.read()
    server = between(first, second)
    host.move({out: moved // host.card.each, back: moved // 50 // host.card.each})
    if then is not None:
        then()
    client = between(second, host.read())
    facts = HostFacts(drivers={NETDEV: host.card.driver})
    return proof(
        flow(op="write", kind="bandwidth"),
        part(
            client={"device": DEVICE},
            server={"device": DEVICE},
            elapsed_s=elapsed_s,
            link={"mtu_bytes": 4096, "layer": "roce"},
            params={"size_bytes": 65536, "outstanding": 64},
            claims={"sent": PAYLOAD, "received": 0},
        ),
        client,
        server,
        hosts={"a": facts, "b": facts},
    )


# ---- the bytes of a flow -------------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS)
def test_path_is_proven_by_each_drivers_own_counter(host: Host) -> None:
    found = seen(host, COUNTED)
    assert (word(found), found.path.counted) == (("proven", None), f"{DEVICE} bytes")
    assert found.path.client_device_bytes == pytest.approx(COUNTED * 51 / 50, abs=8)


@pytest.mark.parametrize("card", CARDS)
def test_bytes_that_a_card_did_not_count_went_another_way(host: Host) -> None:
    state, why = word(seen(host, 0))
    assert state == "contradicted" and why is not None and f"{DEVICE} sent 0 bytes" in why


@pytest.mark.parametrize("card", BY_PORT)
def test_ports_bytes_prove_the_path_of_a_card_without_a_known_counter(host: Host) -> None:
    found = seen(host, COUNTED)
    assert (word(found), found.path.counted) == (("proven", None), f"{NETDEV} bytes")


@pytest.mark.parametrize("card", BY_PORT)
def test_ports_bytes_may_be_late_but_not_for_long(host: Host) -> None:
    """Nobody knows when this driver fetches them."""
    state, why = word(seen(host, 0))
    assert state == "unknown" and why is not None and "may count a second late" in why
    assert word(seen(host, 0, elapsed_s=10))[0] == "contradicted"


@pytest.mark.parametrize("card", BY_PORT)
def test_path_of_a_card_without_any_counter_is_unknown(host: Host) -> None:
    host.move(dict.fromkeys(host.card.bytes, 0))
    host.ethtool = {}
    before = host.read()
    assert not before["rdma"][f"{DEVICE}/1"]["counters"]
    one = between(before, before)
    claims = part(claims={"sent": PAYLOAD, "received": 0}, client={"device": DEVICE})
    assert word(proof(flow(), claims, one, one)) == (
        "unknown", f"client: no counter of {DEVICE} could be read",
    )  # fmt: skip


# ---- errors, drops and repeats -------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS)
def test_a_card_counts_what_hardware_owes(host: Host) -> None:
    before = host.read()
    names = {*before["rdma"][f"{DEVICE}/1"]["counters"], *before["netdev"][NETDEV]}
    assert {kind for kind in OWED if not names & COUNTED_BY[kind]} == set()


@pytest.mark.parametrize("card", CARDS)
def test_what_was_sent_again_explains_more_bytes(host: Host) -> None:
    assert class_of(host.card.repeats) in GOES_BACK
    much = COUNTED + 3_000_000
    assert word(seen(host, much))[0] == "exceeded"
    assert word(seen(host, much, then=lambda: host.move({host.card.repeats: 2})))[0] == "proven"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rx_roce_errors", "errors"),
        ("tx_roce_discards", "drops"),
        ("rx_out_of_buffer", "drops"),
        ("dup_req", "retransmissions"),
        ("np_cnp_pkts", "congestion"),
        ("InProtoErrors", "errors"),
        ("req_rx_inval_pkts", "errors"),
        ("rx_rdma_mtu_discard_pkts", "drops"),
        ("resp_rx_outouf_seq", "out-of-sequence"),
        ("rx_rdma_ecn_pkts", "congestion"),
        ("frames_rx_pripause3", "pause"),
        ("rq_num_oos", "out-of-sequence"),
        ("sq_num_oos", "retransmissions"),
        ("tx_bytes.nic", "-"),
        ("ip4OutSegRqd", "-"),
    ],
)
def test_class_of_a_drivers_own_name(name: str, kind: str) -> None:
    assert class_of(name) == kind


#: Names of trouble that are none: completions which a queue pair flushed as it ended, broadcast
#: packets (bnxt_re), and a gauge that no agent reads.
NO_TROUBLE = {
    "req_cqe_flush_error", "resp_cqe_flush_error", "req_rx_cqe_flush", "resp_rx_cqe_flush",
    "recoverable_errors", "db_fifo_register",
}  # fmt: skip


@pytest.mark.parametrize(
    "file", sorted((FIXTURES / "counters").glob("*.txt")), ids=lambda f: f.stem
)
def test_every_counter_of_trouble_has_a_class(file: Path) -> None:
    names = said(file.stem)
    assert {name for name in names if is_trouble(name) and class_of(name) == "-"} <= NO_TROUBLE


def test_every_counter_of_trouble_that_a_run_recorded_has_a_class() -> None:
    """TCP's have limits; tx_errors has these two of Ethernet's, too."""
    recorded = FIXTURES.rglob("samples.jsonl")
    names = {name for file in recorded for name in re.findall(r'"(\w+)"', layouts(file))}
    assert "send_err" in names
    assert {name for name in names if is_trouble(name) and class_of(name) == "-"} == {
        "TcpRetransSegs", "tx_heartbeat_errors", "tx_window_errors",
    }  # fmt: skip


def layouts(samples: Path) -> str:
    return "".join(line for line in samples.read_text().splitlines() if '"values"' not in line)


@pytest.mark.parametrize("card", ["mlx5"])
@pytest.mark.parametrize(("failed", "kinds"), [(5, []), (7, ["errors"])])
def test_what_a_queue_pair_flushed_between_two_flows_is_no_error(
    failed: int, kinds: list[str], host: Host
) -> None:
    first = host.read()
    host.move({"req_cqe_error": failed, "req_cqe_flush_error": 5})
    then = host.read()
    tables = [
        msgspec.convert(one | {"time_s": at}, Tables) for one, at in ((first, "1"), (then, "2"))
    ]
    readings = around(TablesAround(tables[0], tables[1], NETDEV, NETDEV))
    assert readings is not None
    trail = of_idle({"a": readings})
    assert [step.kind for step in trail.steps] == kinds


# ---- when and what is read -----------------------------------------------------------------------


@pytest.mark.parametrize("card", CARDS)
def test_a_counter_that_lags_is_waited_for(host: Host) -> None:
    """bnxt_re's card writes its counters to the host each second."""

    async def work() -> float:
        clock = FakeClock()
        began = clock.monotonic()
        await Readings(host.counters(), Kept(), clock).after()
        return clock.monotonic() - began

    assert run(work) == pytest.approx(host.card.lag_s)


@pytest.mark.parametrize("card", ["bnxt_re"])
@pytest.mark.parametrize("follow_s", [0, 1])
@pytest.mark.parametrize(
    ("within", "after_s", "waited_s", "shown"),
    [
        (5, 0.9, 1.1, 12),
        (5, 1.7, 2.2, 12),
        (5, None, 2.2, 5),
        (0, None, 1.1, 0),
    ],
    ids=["in time", "late", "all before the end", "carried nothing"],
)
def test_a_card_that_has_written_nothing_since_a_flow_is_read_later(
    host: Host, within: int, after_s: float | None, waited_s: float, shown: int, follow_s: int
) -> None:
    """It counted 5 until the end of the flow, and 7 more so many seconds after it."""
    name, before = host.card.bytes[0], int(host.file(host.card.bytes[0]).read_text())
    raw = Timed()

    async def work() -> int:
        readings = Readings(host.counters(), raw, FakeClock(), follow_s)
        await readings.before()
        host.move({name: within})
        if after_s is not None:
            asyncio.get_running_loop().call_later(after_s, host.move, {name: 7})
        raw.began_s = FakeClock().monotonic()
        return await readings.followed()

    at_s, values = raw.taken[run(work) - 1]
    if follow_s and after_s is not None:  # readings every 50 ms see when it was
        waited_s = max(host.card.lag_s, after_s)
    assert at_s == pytest.approx(waited_s, abs=0.06)
    assert values[name] == str(before + shown)


class Timed:
    """Each reading of the device's port, and the seconds since the end of a flow."""

    def __init__(self) -> None:
        self.began_s = 0.0
        self.taken: list[tuple[float, dict[str, str]]] = []

    def sample(self, reading: Reading) -> int:
        port = counted(reading.layout, reading.line["values"])["rdma"][f"{DEVICE}/1"]
        self.taken.append((FakeClock().monotonic() - self.began_s, port["counters"]))
        return len(self.taken)


class Kept:
    def sample(self, _: object) -> int:
        return 1


@pytest.mark.parametrize("card", ["mlx5"])
def test_what_ethtool_says_of_the_link_is_read(host: Host) -> None:
    """Of mlx5's names and values those that Dell's article 000286734 has."""
    host.ethtool = {
        "rx_corrected_bits_phy": "153303800", "rx_err_lane_0_phy": "74171021",
        "rx_pcs_symbol_err_phy": "0", "rx_fec_uncorrectable_blocks": "0", "rx_packets_phy": "7",
        "frames_rx_pripause3": "0", "tx_bytes.nic": "5", "rx_corrected_bits": "6",
    }  # fmt: skip
    read = host.read()["netdev"][NETDEV].keys() & host.ethtool.keys()
    assert read == host.ethtool.keys() - {"rx_err_lane_0_phy", "rx_packets_phy"}


@pytest.mark.parametrize("file", ["mlx5-ethtool", "ice-ethtool"])
@pytest.mark.parametrize("card", ["mlx5"])
def test_what_ethtool_counts_as_trouble_is_read(file: str, host: Host) -> None:
    host.ethtool = said(file)
    trouble = {name for name in host.ethtool if class_of(name) != "-"}
    assert trouble - host.read()["netdev"][NETDEV].keys() == set()
    assert {"rx_in_range_len_errors_phy", "rx_crc_errors.nic"} & trouble


@pytest.mark.parametrize("card", ["bnxt_re", "bnxt_re, renamed"])
def test_what_goes_up_and_down_is_no_counter(host: Host) -> None:
    """Queue pairs in use are fewer after a flow, and no counter went back."""
    names = set(host.read()["rdma"][f"{DEVICE}/1"]["counters"])
    gauges = {"active_qps", "watermark_qps", "db_fifo_register", "lifespan"}
    assert not names & gauges and gauges <= said(host.card.port).keys()


@pytest.mark.parametrize("card", ["irdma"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: file.write_text("N/A (no PMA)\n"),
        lambda file: file.write_bytes(b"\xff\x00"),
        lambda file: file.write_text("3\n"),
        lambda file: file.write_text(f"{10**24}\n"),
    ],
    ids=["vanishes", "folder", "text", "bytes", "wraps", "too large"],
)
def test_a_counter_that_cannot_be_read_tells_nothing(spoil: Any, host: Host) -> None:
    file = host.file("ip4OutOctets")
    assert word(seen(host, COUNTED, then=lambda: spoil(file))) == (
        "unknown", f"client: the counter of what {DEVICE} sent was reset, has wrapped or is full",
    )  # fmt: skip
