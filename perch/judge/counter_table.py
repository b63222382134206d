"""What the name of a counter says: its class, its width, and what it counts of a flow.

Names are the kernel's (Documentation/ABI/testing/sysfs-class-net-statistics and
sysfs-class-infiniband), those of mlx5, ice and bnxt_en in `ethtool -S`, and of mlx5, mlx4, bnxt_re,
irdma and rxe in each driver's hw_counters. bnxt_re and irdma changed some, so that both names are
here. A Cassini NIC's are in HewlettPackard's shs-cxi-driver (drivers/net/ethernet/hpe/ss1/
cass_telem.c). An ionic card names its own; these are a Pollara's in amd/node-scraper (rdmadata.py).
What mlx4's count is in NVIDIA's page "Adapter Diagnostics Counters" of ConnectX-3.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: The last value of a counter of 32 or 64 bits. InfiniBand's counters stop there (InfiniBand
#: Architecture Specification 1.7, section 16.1.3.5).
FULL: Final = frozenset({"4294967295", "18446744073709551615"})

#: InfiniBand's narrow counters stop at their width, too, and cards keep them for RoCE (16.1.3.5).
STOPS_AT: Final = {
    "symbol_error": "65535",
    "link_error_recovery": "255",
    "link_downed": "255",
    "port_rcv_errors": "65535",
    "port_rcv_remote_physical_errors": "65535",
    "port_rcv_switch_relay_errors": "65535",
    "port_xmit_discards": "65535",
    "port_xmit_constraint_errors": "255",
    "port_rcv_constraint_errors": "255",
    "local_link_integrity_errors": "15",
    "excessive_buffer_overrun_errors": "15",
    "VL15_dropped": "65535",
}

#: The class of counters that are no events: bytes, packets, requests. Flushed completions and
#: deferred acknowledgements are among them, as every queue pair that ends or waits has some.
#: bnxt_re's recoverable_errors are its broadcast packets (the kernel's hw/bnxt_re/hw_counters.c).
NO_CLASS: Final = "-"

_NAMES_OF: Final = {
    NO_CLASS: """
        tx_bytes rx_bytes tx_packets rx_packets multicast rx_nohandler port_xmit_data port_rcv_data
        port_xmit_packets port_rcv_packets unicast_xmit_packets unicast_rcv_packets
        multicast_xmit_packets multicast_rcv_packets sent_pkts rcvd_pkts ack_deferred rdma_sends
        rdma_recvs rx_write_requests rx_read_requests rx_atomic_requests req_cqe_flush_error
        resp_cqe_flush_error req_rx_cqe_flush resp_rx_cqe_flush sq_num_wrfe rq_num_wrfe
        recoverable_errors hni_sts_tx_ok_octets hni_sts_rx_ok_octets hni_pcs_good_cw
        hni_pcs_corrected_cw tx_pkts rx_pkts tx_bytes_phy rx_bytes_phy tx_bytes.nic rx_bytes.nic
        rx_corrected_bits_phy rx_corrected_bits
        tx_roce_only_bytes tx_roce_only_pkts rx_roce_only_bytes rx_roce_only_pkts
        rx_roce_good_bytes rx_roce_good_pkts tx_read_req tx_read_resp tx_write_req tx_send_req
        tx_atomic_req rx_read_req rx_read_resp rx_write_req rx_send_req rx_atomic_req
        ip4InOctets ip4OutOctets ip4InPkts ip4OutPkts ip6InOctets ip6OutOctets ip6InPkts ip6OutPkts
        InRdmaReads InRdmaSends InRdmaWrites OutRdmaReads OutRdmaSends OutRdmaWrites RxUDP TxUDP
        tx_rdma_ucast_bytes tx_rdma_ucast_pkts rx_rdma_ucast_bytes rx_rdma_ucast_pkts
        tx_rdma_mcast_bytes tx_rdma_mcast_pkts rx_rdma_mcast_bytes rx_rdma_mcast_pkts""",
    "drops": """
        port_xmit_discards rx_missed_errors rx_fifo_errors rx_over_errors tx_fifo_errors
        out_of_buffer rx_out_of_buffer rx_roce_discard_pkts rx_roce_discards tx_roce_discards
        ip4InDiscards ip6InDiscards resp_rx_outof_buf rx_rdma_mtu_discard_pkts pkts_cancelled_o
        pkts_cancelled_u rx_discards_phy tx_discards_phy rx_dropped.nic send_err""",
    # also frames of protocols that the host does not speak
    "host-drops": "rx_dropped tx_dropped VL15_dropped",
    "errors": """
        symbol_error link_error_recovery port_rcv_errors port_rcv_remote_physical_errors
        local_link_integrity_errors excessive_buffer_overrun_errors port_xmit_constraint_errors
        port_rcv_constraint_errors port_rcv_switch_relay_errors rx_errors tx_errors rx_crc_errors
        rx_frame_errors rx_length_errors tx_carrier_errors tx_aborted_errors collisions
        rx_icrc_encapsulated rx_roce_error_pkts rx_roce_errors tx_roce_errors ip4InTruncatedPkts
        ip6InTruncatedPkts rxVlanErrors InOptErrors InProtoErrors tcpInOptErrors tcpInProtoErrors
        req_rx_inval_pkts hni_pcs_uncorrected_cw rx_crc_errors_phy rx_symbol_err_phy
        rx_pcs_symbol_err_phy rx_fec_uncorrectable_blocks rx_in_range_len_errors_phy
        rx_crc_errors.nic tx_errors.nic req_cqe_error
        resp_cqe_error req_remote_access_errors resp_remote_access_errors resp_local_length_error
        req_remote_invalid_request unrecoverable_err bad_resp_err local_qp_op_err
        local_protection_err mem_mgmt_op_err remote_invalid_req_err remote_access_err remote_op_err
        res_exceed_max res_length_mismatch req_rx_rmt_acc_err req_rx_rmt_req_err req_rx_oper_err
        req_rx_cqe_err req_tx_loc_acc_err req_tx_loc_oper_err req_tx_mem_mgmt_err
        req_tx_loc_sgl_inv_err resp_rx_cqe_err resp_rx_loc_len_err resp_rx_loc_oper_err
        resp_tx_rmt_inval_req_err resp_tx_rmt_acc_err resp_tx_rmt_oper_err resp_tx_loc_sgl_inv_err
        resp_rx_s0_table_err resp_rx_inval_request rq_num_lle rq_num_lpe rq_num_lqpoe rq_num_rae
        rq_num_rire sq_num_bre sq_num_lle sq_num_lpe sq_num_lqpoe sq_num_mwbe sq_num_rae sq_num_rire
        sq_num_roe""",
    "retransmissions": """
        packet_seq_err implied_nak_seq_err local_ack_timeout_err rnr_nak_retry_err roce_adp_retrans
        roce_adp_retrans_to duplicate_request completer_retry_err rcvd_rnr_err send_rnr_err
        rcvd_seq_err retry_exceeded_err retry_rnr_exceeded_err req_transport_retries_exceeded
        req_rnr_retries_exceeded sq_num_tree sq_num_rree to_retransmits seq_err_naks_rcvd
        max_retry_exceeded rnr_naks_rcvd missing_resp dup_req tcpRetransSegs RetransSegs
        sq_num_to sq_num_oos sq_num_rnr rq_num_rnr rq_num_dup tx_rdma_ack_timeout tx_rdma_retx_pkts
        req_rx_pkt_seq_err req_rx_impl_nak_seq_err req_rx_rnr_retry_err req_rx_dup_response
        req_tx_retry_excd_err resp_rx_dup_request resp_tx_rnr_retry_err hni_llr_tx_replay_event
        hni_llr_rx_replay_event nacks spt_timeouts sct_timeouts tct_timeouts""",
    "out-of-sequence": """
        out_of_sequence out_of_seq_request oos_drop_count res_oos_drop_count rq_num_oos
        resp_rx_outouf_seq resp_tx_pkt_seq_err""",
    "congestion": """
        np_ecn_marked_roce_packets np_cnp_sent rp_cnp_handled rp_cnp_ignored rx_ecn_marked_pkts
        tx_cnp_pkts rx_cnp_pkts cnpSent cnpHandled cnpIgnored RxECNMrkd""",
    "pause": "port_xmit_wait",
    "link": "link_downed carrier_down_count link_down_events_phy",
    "pcie": "aer_fatal aer_nonfatal res_tx_pci_err res_rx_pci_err",
    "pcie-corrected": "aer_correctable",
}

CLASS_OF: Final = {name: kind for kind, names in _NAMES_OF.items() for name in names.split()}

#: Names that are numbered by priority, or that each card spells its own way: the first pattern that
#: is found in a name, in any case, has its class.
CLASS_BY_PATTERN: Final = (
    (r"pause|_xoff|_xon|pfc|hni_[rt]x_paused", "pause"),
    (r"ecn|cnp", "congestion"),
    (r"discard", "drops"),
)

#: Counters of the pattern "pause" that are times, and would count each pause twice.
PAUSE_TIMES: Final = r"duration|watchdog"

_by_pattern = [(re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in CLASS_BY_PATTERN]
_pause_times = re.compile(PAUSE_TIMES)


@lru_cache(maxsize=4096)
def class_of(name: str) -> str:
    """The class of a counter; "-" where it has none."""
    known = CLASS_OF.get(name)
    if known is not None:
        return known
    kind = next((kind for pattern, kind in _by_pattern if pattern.search(name)), NO_CLASS)
    return NO_CLASS if kind == "pause" and _pause_times.search(name) else kind


#: The classes in the order in which they are shown. A device counts a class if it has one of these
#: names; other names of the class are extras of some drivers.
COUNTED_BY: Final = {
    kind: frozenset(names.split())
    for kind, names in {
        "drops": "port_xmit_discards rx_missed_errors rx_roce_discard_pkts ip4InDiscards",
        "errors": "port_rcv_errors rx_errors rx_crc_errors hni_pcs_uncorrected_cw",
        "retransmissions": """
            packet_seq_err completer_retry_err to_retransmits tcpRetransSegs RetransSegs sq_num_to
            tx_rdma_ack_timeout hni_llr_tx_replay_event""",
        "out-of-sequence": """
            out_of_sequence out_of_seq_request oos_drop_count rq_num_oos resp_rx_outouf_seq""",
        "link": "link_downed carrier_down_count",
        "pcie": "aer_fatal",
        "pause": """
            port_xmit_wait rx_pause_ctrl_phy rx_pause_frames hni_rx_paused_0 rx_prio0_pause""",
        "congestion": "np_cnp_sent tx_cnp_pkts np_cnp_pkts cnpSent tx_rdma_cnp_pkts",
        "host-drops": "rx_dropped",
        "pcie-corrected": "aer_correctable",
    }.items()
}

#: Completions with errors, and the counter of those among them that a queue pair flushed as it
#: ended. NVIDIA's page "Adapter Diagnostics Counters" calls these normal; a host with mlx5 showed
#: 1009 resp_cqe_error, 998 of them flushed.
FLUSHED_OF: Final = {
    "req_cqe_error": "req_cqe_flush_error",
    "resp_cqe_error": "resp_cqe_flush_error",
    "req_rx_cqe_err": "req_rx_cqe_flush",
    "resp_rx_cqe_err": "resp_rx_cqe_flush",
}

#: Parts of the names that stand still on a healthy path, in any case: drops, errors and what was
#: sent again; the last line is a Cassini NIC's and its retry handler's.
TROUBLE: Final = (
    r"(^|_)err|drop|retry|retrans|discard|duplicate|out_of_|nak|timeout|missed|overrun|fifo"
    r"|collision|downed|rnr|symbol|constraint|xmit_wait|ecn|cnp"
    r"|uncorrected_cw|_paused_[0-9]|_replay_event|nacks$|pkts_cancelled"
)

#: Classes of events after which an RDMA sender repeats all that is outstanding.
GOES_BACK: Final = frozenset(("retransmissions", "out-of-sequence"))

#: The packets that a port sent, as rxe, InfiniBand, bnxt_re, ionic and irdma (IPv4) name them.
SENT: Final = ("sent_pkts", "port_xmit_packets", "tx_pkts", "tx_rdma_ucast_pkts", "ip4OutPkts")
#: The same that it received. Of ionic and irdma it is not known whether all are among them that the
#: other end sent, so that their losses are not known.
RECEIVED: Final = ("rcvd_pkts", "port_rcv_packets", "rx_pkts")

#: A requester repeated what was not acknowledged: after a timeout, or after news of a gap.
RETRIES: Final = (
    "completer_retry_err", "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err",
    "roce_adp_retrans", "to_retransmits", "seq_err_naks_rcvd", "missing_resp", "sq_num_to",
    "sq_num_oos", "tcpRetransSegs", "RetransSegs", "tx_rdma_ack_timeout", "req_rx_pkt_seq_err",
    "req_rx_impl_nak_seq_err",
)  # fmt: skip

#: A responder saw a gap.
GAPS: Final = (
    "out_of_seq_request", "out_of_sequence", "oos_drop_count", "rq_num_oos", "resp_rx_outouf_seq",
)  # fmt: skip

#: Packets that arrived and were refused for their checksum. rxe drops them without counting: there
#: they are among the lost.
CORRUPTED: Final = (
    "rx_icrc_encapsulated", "port_rcv_errors", "rx_roce_error_pkts", "rx_roce_errors",
    "req_rx_inval_pkts",
)  # fmt: skip

#: Bits that forward error correction corrected, as mlx5 and bnxt_en name them.
CORRECTED_BITS: Final = ("rx_corrected_bits_phy", "rx_corrected_bits")

#: Share of a link's bits that FEC may correct. IEEE Std 802.3 (bs, cd, ck) grants PAM4 links 2.4e-4
#: wrong ones. Site policy: a 24th of it, as healthy ones have 1e-5 at most.
CORRECTED_RATIO: Final = 1e-5
