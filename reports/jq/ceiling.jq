# What a link can carry at most, as payload: rate x payload / (payload + headers), summed over the packets of one
# message. Bytes of headers a packet: InfiniBand Architecture Specification 1.7, sections 5 and 9 (LRH 8, BTH 12,
# ICRC 4, VCRC 2, RETH 16, AETH 4, immediate 4, DETH 8) and Annex 17 (RoCEv2: Ethernet 14 + FCS 4, IPv4 20, UDP 8);
# IEEE 802.3: preamble 8, gap 12; IEEE 802.1Q: tag 4. RFC 9293 and 7323: TCP 20 + 12 with timestamps.

def packet_overhead($link):
  if $link.layer == "infiniband" then 26
  elif $link.layer == "roce" or $link.layer == "ethernet" then
    82 + (if $link.ipv6 == true then 20 else 0 end) + (if $link.vlan == true then 4 else 0 end)
  elif $link.layer == "slingshot" then 0
  else null
  end;

# Extra bytes a message: RETH on the first packet of a write; AETH on the first and the last packet of a read's answer.
def message_overhead($op; $packets; $datagram):
  ( if $op == "write" then 16
    elif $op == "write-imm" then 20
    elif $op == "send-imm" then 4
    elif $op == "read" then (if $packets > 1 then 8 else 4 end)
    elif $op == "fetch-add" or $op == "compare-swap" then 28
    else 0 end )
  + (if $datagram then 8 * $packets else 0 end);

# Share of the raw rate that payload can reach; null where physics sets no ceiling (loopback, shm) or the MTU is unknown.
def rdma_efficiency($link; $op; $size; $datagram):
  packet_overhead($link) as $each
  | if $each == null or $size == null or $size <= 0 then null
    elif $link.layer == "slingshot" then 1
    elif ($link.mtu_bytes // 0) <= 0 then null
    else ($size / $link.mtu_bytes | ceil) as $packets
      | $size / ($size + $packets * $each + message_overhead($op; $packets; $datagram))
    end;

# A stream fills its segments whatever the message size: 1448 of 1538 bytes at MTU 1500, 94.15 %.
def stream_efficiency($link):
  if $link.layer != "ethernet" and $link.layer != "roce" then null
  elif ($link.mtu_bytes // 0) <= 72 then null
  else ($link.mtu_bytes - 52 - (if $link.ipv6 == true then 20 else 0 end))
       / ($link.mtu_bytes + 38 + (if $link.vlan == true then 4 else 0 end))
  end;

def is_stream: .connection == "stream" or .backend == "tcp";

# Of a transfer's sum: the devices that carry it, at the end that has fewer.
def devices:
  if .kind != "sum" then 1
  else [.transfer.pairs, (.client, .server | .device // "" | split(",") | unique | length | select(. > 0))] | min end;

# The link's rate of a transfer's sum is that of all pairs together. Pairs that share a device, at either end, share its
# link: of so many links' rates one is real.
def links: if .kind != "sum" then 1 else devices / .transfer.pairs end;

# What else a direction carries of the other one's traffic: a read asks in a packet of its own (BTH and RETH, no payload).
# Acknowledgements may stand for any number of packets, so that no least of them is known.
def asked_beside($r):
  if $r.params.bidirectional == true and $r.op == "read" then packet_overhead($r.link) + 16 else 0 end;

# Gb/s of payload that this record's link can carry, both ways summed, and no more than PCIe lets through; null where
# nothing can be said.
def of_record:
  . as $r
  | ( if is_stream then stream_efficiency($r.link)
      else rdma_efficiency($r.link; $r.op; $r.params.size_bytes; $r.connection == "ud") end ) as $share
  | if $share == null or $r.link.rate_gbit_s == null then null
    else
      (if $share == 1 or is_stream then $share else $r.params.size_bytes / ($r.params.size_bytes / $share + asked_beside($r)) end) as $share
      | [ ($r | links) * $r.link.rate_gbit_s * $share, ($r | devices) * ($r.link.pcie_gbit_s | values) ] | min
      | . * (if $r.params.bidirectional == true then 2 else 1 end)
    end;
