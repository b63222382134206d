# What happened on the way of a flow beside its payload: the counters of the devices that carried it, by class. A network
# that is well drops nothing, repeats nothing, corrects nothing and stays up; pauses and congestion marks are how it
# shares, and shown. docs/definitions.md, "Counters before and after", has classes and severities in words.

# The kernel's own names (Documentation/ABI/testing/sysfs-class-net-statistics and sysfs-class-infiniband), and those of
# mlx5 (its ethtool counters page), bnxt_re, irdma and rxe (hw_counters of each driver) and Cassini. A "-" has no class.
# Flushed completions and deferred acknowledgements belong to every queue pair that ends or waits.
def class_of:
  { tx_bytes: "-", rx_bytes: "-", tx_packets: "-", rx_packets: "-", multicast: "-", rx_nohandler: "-", port_xmit_data: "-",
    port_rcv_data: "-", port_xmit_packets: "-", port_rcv_packets: "-", unicast_xmit_packets: "-", unicast_rcv_packets: "-",
    multicast_xmit_packets: "-", multicast_rcv_packets: "-", sent_pkts: "-", rcvd_pkts: "-", ack_deferred: "-",
    rdma_sends: "-", rdma_recvs: "-", rx_write_requests: "-", rx_read_requests: "-", rx_atomic_requests: "-",
    req_cqe_flush_error: "-", resp_cqe_flush_error: "-", hni_sts_tx_ok_octets: "-", hni_sts_rx_ok_octets: "-",
    hni_pcs_good_cw: "-", hni_pcs_corrected_cw: "-", tx_pkts: "-", rx_pkts: "-",

    port_xmit_discards: "drops", rx_missed_errors: "drops", rx_fifo_errors: "drops", rx_over_errors: "drops",
    tx_fifo_errors: "drops", out_of_buffer: "drops", rx_roce_discard_pkts: "drops", ip4InDiscards: "drops",
    ip6InDiscards: "drops", pkts_cancelled_o: "drops", pkts_cancelled_u: "drops", rx_discards_phy: "drops",
    tx_discards_phy: "drops",
    # also frames of protocols that nobody there speaks
    rx_dropped: "host-drops", tx_dropped: "host-drops", VL15_dropped: "host-drops",

    symbol_error: "errors", link_error_recovery: "errors", port_rcv_errors: "errors",
    port_rcv_remote_physical_errors: "errors", local_link_integrity_errors: "errors",
    excessive_buffer_overrun_errors: "errors", port_xmit_constraint_errors: "errors",
    port_rcv_constraint_errors: "errors", port_rcv_switch_relay_errors: "errors", rx_errors: "errors", tx_errors: "errors",
    rx_crc_errors: "errors", rx_frame_errors: "errors", rx_length_errors: "errors", tx_carrier_errors: "errors",
    tx_aborted_errors: "errors", collisions: "errors", rx_icrc_encapsulated: "errors", rx_roce_error_pkts: "errors",
    hni_pcs_uncorrected_cw: "errors", rx_crc_errors_phy: "errors", rx_symbol_err_phy: "errors",

    packet_seq_err: "retransmissions", implied_nak_seq_err: "retransmissions", local_ack_timeout_err: "retransmissions",
    rnr_nak_retry_err: "retransmissions", roce_adp_retrans: "retransmissions", roce_adp_retrans_to: "retransmissions",
    duplicate_request: "retransmissions", completer_retry_err: "retransmissions", rcvd_rnr_err: "retransmissions",
    send_rnr_err: "retransmissions", rcvd_seq_err: "retransmissions", retry_exceeded_err: "retransmissions",
    retry_rnr_exceeded_err: "retransmissions", to_retransmits: "retransmissions", seq_err_naks_rcvd: "retransmissions",
    max_retry_exceeded: "retransmissions", rnr_naks_rcvd: "retransmissions", missing_resp: "retransmissions",
    tcpRetransSegs: "retransmissions", hni_llr_tx_replay_event: "retransmissions",
    hni_llr_rx_replay_event: "retransmissions", nacks: "retransmissions", spt_timeouts: "retransmissions",
    sct_timeouts: "retransmissions", tct_timeouts: "retransmissions",

    out_of_sequence: "out-of-sequence", out_of_seq_request: "out-of-sequence", oos_drop_count: "out-of-sequence",
    res_oos_drop_count: "out-of-sequence",

    np_ecn_marked_roce_packets: "congestion", np_cnp_sent: "congestion", rp_cnp_handled: "congestion",
    rp_cnp_ignored: "congestion", rx_ecn_marked_pkts: "congestion", tx_cnp_pkts: "congestion", rx_cnp_pkts: "congestion",
    cnpSent: "congestion", cnpHandled: "congestion", cnpIgnored: "congestion", RxECNMrkd: "congestion",
    port_xmit_wait: "pause",

    link_downed: "link", carrier_down_count: "link", link_down_events_phy: "link",
    aer_fatal: "pcie", aer_nonfatal: "pcie", res_tx_pci_err: "pcie", res_rx_pci_err: "pcie",
    aer_correctable: "pcie-corrected" };

# Those that are numbered by priority, or that every card calls otherwise. Durations beside counts would count twice.
def class($name):
  class_of[$name]
  // ( $name
       | if test("pause|_xoff|_xon|pfc|hni_[rt]x_paused"; "i") then (if test("duration|watchdog") then "-" else "pause" end)
         elif test("ecn|cnp"; "i") then "congestion"
         elif test("discard"; "i") then "drops" else "-" end );

# A device counts a class if it has one of these, the others being drivers' extras.
def counts($class):
  if $class == "drops" then has("port_xmit_discards") or has("rx_missed_errors") or has("rx_roce_discard_pkts") or has("ip4InDiscards")
  elif $class == "errors" then has("port_rcv_errors") or has("rx_errors") or has("rx_crc_errors") or has("hni_pcs_uncorrected_cw")
  elif $class == "retransmissions" then
    has("packet_seq_err") or has("completer_retry_err") or has("to_retransmits") or has("tcpRetransSegs") or has("hni_llr_tx_replay_event")
  elif $class == "out-of-sequence" then has("out_of_sequence") or has("out_of_seq_request") or has("oos_drop_count")
  elif $class == "link" then has("link_downed") or has("carrier_down_count")
  elif $class == "host-drops" then has("rx_dropped")
  elif $class == "congestion" then has("np_cnp_sent") or has("tx_cnp_pkts") or has("cnpSent")
  elif $class == "pause" then
    has("port_xmit_wait") or has("rx_pause_ctrl_phy") or has("rx_pause_frames") or has("hni_rx_paused_0") or has("rx_prio0_pause")
  elif $class == "pcie" then has("aer_fatal")
  else has("aer_correctable") end;

def classes:
  ["drops", "errors", "retransmissions", "out-of-sequence", "link", "pcie", "pause", "congestion", "host-drops", "pcie-corrected"];

# Nothing moves bytes in no packet, or packets of no bytes: one of the two counters is stale, or no device's. Input: one
# device's differences; null where it is well or counts only one of them.
def stale($moved):
  def sum($a; $b): if .[$a] == null or .[$b] == null then null else .[$a] + .[$b] end;
  ( if has("tx_bytes") and has("tx_packets") then [sum("tx_bytes"; "rx_bytes"), sum("tx_packets"; "rx_packets")]
    elif has("port_xmit_data") and has("port_xmit_packets") then
      [sum("port_xmit_data"; "port_rcv_data"), sum("port_xmit_packets"; "port_rcv_packets")]
    else null end )
  | if . == null or any(.[]; . == null) then null
    elif .[0] == 0 and .[1] == 0 and $moved then "counted neither bytes nor packets"
    elif .[0] == 0 and .[1] > 0 then "counted \(.[1]) packets without a byte"
    elif .[1] == 0 and .[0] > 0 then "counted \(.[0]) bytes in no packet"
    else null end;

# What both ends count, by the names of their counters alone: {CLASS: 0}. $carried: of path::proof.
def counted_classes($carried):
  ($carried | map_values(map(.value) | add // {})) as $all
  | [classes[] as $class | select(all($all[]; counts($class))) | {key: $class, value: 0}] | from_entries;

# $path: of path::proof. $measured: whether any of it was. $classes: of counted_classes. {counts{CLASS: n}, from{CLASS: where}, stale} of both ends; null where
# nobody counted. A class is in `counts` where both ends count it or one has seen something; null: a counter of it was reset,
# wrapped or is full. Input: the flow.
def of_flow($path; $measured; $classes):
  . as $flow
  | $path.carried as $carried
  | if $carried.client == [] and $carried.server == [] then null
    else
      reduce (("client", "server") as $role | $carried[$role][] | .key as $device | .value as $n
              | (.names // ($n | keys_unsorted))[] | select($n[.] != 0 and class_of[.] != "-") | [., $n[.], $role, $device]) as [$name, $n, $role, $device]
        ({counts: $classes, from: {}, stale: null};
          class($name) as $class
          | if $class == "-" then .
            else
              "\($flow[$role]): \($device) \($name)" as $at
              | (.counts | has($class)) as $known
              | if $n == null or ($known and .counts[$class] == null) then .counts[$class] = null | .from[$class] //= $at
                else .counts[$class] += $n | .from[$class] //= $at end
            end)
      | if $path.loopback or $path.state == "proven" then
          # beside an RDMA device the interface need not move, on a loopback it must
          .stale = ( [ ("client", "server") as $role | $carried[$role][] | .key as $device
                       | .value | stale($path.loopback and $measured) | select(. != null) | "\($flow[$role]): \($device) " + . ]
                     | .[0] )
        else . end
    end;
