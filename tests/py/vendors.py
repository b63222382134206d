"""Cards of each vendor: what their drivers count, as tests/fixtures/counters has it."""

from __future__ import annotations

from typing import NamedTuple

from selftest.paths import FIXTURES


class Card(NamedTuple):
    """`driver`: of its PCI device. `bytes`: what shows a flow's bytes, on the way out and in.

    `each`: of what that counts. `repeats`, `drops`, `errors`: counters of packets that were sent
    again, dropped, and damaged.
    """

    driver: str
    port: str
    bytes: tuple[str, str]
    repeats: str = ""
    drops: str = ""
    errors: str = ""
    each: int = 1
    ethtool: str | None = None
    lag_s: float = 0.01


CARDS = {
    "mlx5": Card(
        "mlx5_core", "mlx5", ("port_xmit_data", "port_rcv_data"), "packet_seq_err",
        "port_xmit_discards", "rx_icrc_encapsulated", 4, "mlx5-ethtool",
    ),
    "mlx4": Card(
        "mlx4_core", "mlx4", ("port_xmit_data", "port_rcv_data"), "sq_num_to", "port_xmit_discards",
        "symbol_error", 4,
    ),
    "bnxt_re": Card(
        "bnxt_en", "bnxt_re", ("tx_bytes", "rx_bytes"), "to_retransmits", "rx_roce_discards",
        "rx_roce_errors", lag_s=1.1,
    ),
    "bnxt_re, renamed": Card(
        "bnxt_en", "bnxt_re-renamed", ("tx_bytes", "rx_bytes"), "local_ack_timeout_err",
        "tx_roce_discards", "tx_roce_errors", lag_s=1.1,
    ),
    "irdma": Card(
        "ice", "irdma", ("ip4OutOctets", "ip4InOctets"), "tcpRetransSegs", "ip4InDiscards",
        "tcpInProtoErrors",
    ),
    "irdma over IPv6": Card(
        "ice", "irdma-renamed", ("ip6OutOctets", "ip6InOctets"), "RetransSegs", "ip6InDiscards",
        "InProtoErrors", ethtool="ice-ethtool",
    ),
    "ionic": Card(
        "ionic", "ionic", ("tx_rdma_ucast_bytes", "rx_rdma_ucast_bytes"), "tx_rdma_ack_timeout",
        "rx_rdma_mtu_discard_pkts", "req_rx_inval_pkts",
    ),
}  # fmt: skip

#: Cards without a counter of RDMA's bytes, whose interfaces count what passes their ports.
BY_PORT = {
    "tx_bytes_phy": Card(
        "mlx5_core", "i40iw-no-pma", ("tx_bytes_phy", "rx_bytes_phy"), ethtool="mlx5-ethtool"
    ),
    "tx_bytes.nic": Card(
        "ice", "i40iw-no-pma", ("tx_bytes.nic", "rx_bytes.nic"), ethtool="ice-ethtool"
    ),
}


def said(name: str) -> dict[str, str]:
    """Values by the names of counters."""
    text = (FIXTURES / "counters" / f"{name}.txt").read_text()
    return dict(line.split(": ", 1) for line in text.splitlines())
