# What became of a flow's packets, from the differences of both ends' RDMA counters (counters::counted): each packet that
# one device sent must have come to the other. rxe names its counters by drivers/infiniband/sw/rxe/rxe_hw_counters.c,
# ConnectX by the kernel's Documentation on mlx5 counters, bnxt_re by its own hw_counters.c.
import "common" as c;

# The first of several names for one thing, summed over ports; null where a port has none of them, or one that tells nothing.
def one_of($names):
  if length == 1 then .[0] | if .[$names[0]] != null then .[$names[0]] else [.[$names[]] | select(. != null)] | .[0] end
  else [.[] | [.[$names[]] | select(. != null)][0]] | if . == [] or any(.[]; . == null) then null else add end end;

# All of several things that may be counted; null where none is.
def all_of($names): [.[][$names[]] | select(. != null)] | add;

def sent: one_of(["sent_pkts", "port_xmit_packets", "tx_pkts"]);
def received: one_of(["rcvd_pkts", "port_rcv_packets", "rx_pkts"]);

# A requester went back to what was not acknowledged: after a timeout, or when it was told of a gap.
def retries:
  all_of(["completer_retry_err", "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err", "roce_adp_retrans",
          "to_retransmits", "seq_err_naks_rcvd", "missing_resp"]);

# A responder saw a gap.
def gaps: all_of(["out_of_seq_request", "out_of_sequence", "oos_drop_count"]);

# Packets that came and were refused for their checksum. rxe drops them uncounted: there they are among the lost.
def corrupted: all_of(["rx_icrc_encapsulated", "port_rcv_errors", "rx_roce_error_pkts"]);

def missing($sent; $received): if $sent == null or $received == null then null else [$sent - $received, 0] | max end;

# $c, $s: of the client and the server the counters of the port that carried the flow, in an array; [] where it is not
# known (path.jq, `ports`). $shared: another flow of the round uses one of the two hosts, and its packets are in the same
# counters.
def of_flow($c; $s; $shared):
  ($c | sent) as $of_client | ($s | sent) as $of_server
  | (if $of_client == null or $of_server == null then null else $of_client + $of_server end) as $sent
  | if $shared or $sent == null or $sent == 0 then null
    else
      { $sent,
        lost: (missing($of_client; $s | received) as $there | missing($of_server; $c | received) as $back
               | if $there == null or $back == null then null else $there + $back end) }
      + ($c + $s | {retries: retries, gaps: gaps, corrupted: corrupted})
    end;
