# The path proof of a flow: the bytes that it claims against what the devices of both ends counted meanwhile. For each
# end and each way: claimed <= counted, and counted - idle <= wire. docs/definitions.md, "Path proof", has it in words.
import "common" as c;
import "format" as f;
import "claims" as claims;

# Bytes of a packet beside its payload. At least: RoCEv2 over IPv4 (InfiniBand Architecture Specification 1.7, Annex 17:
# Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4), or TCP (14, 20, 20). At most: preamble, FCS and gap 24, IPv6 20 more,
# VLAN 4, and the longest extension headers (28) or TCP options (40).
def header($rdma): if $rdma then {least: 58, most: 134} else {least: 54, most: 142} end;

# The engine's own traffic beside the payload, on the interface of the host's address: connecting, the job, results and
# meetings. Counted over veth: 3.5 kB a flow, 0.9 kB a size and 0.2 kB a second each way; four times that is granted.
def control_bytes($sizes; $seconds): 16384 + 4096 * $sizes + 1024 * $seconds;

# What else an interface may carry in a second without being called busy, such as the controller's questions over ssh.
# site policy: 64 KiB.
def others_bytes($seconds): 65536 * $seconds;

# The same on an RDMA device: connection management, in datagrams of 256 bytes (section 13.4). site policy: 100 of them.
def control_packets: 100;
def datagram: 256;

# Packets that are smaller than they could be. site policy: 1 % of the wire.
def slack: 1.01;

# Software interfaces and virtio count each packet as it passes; a card's driver may fetch its counters once a second
# (bnxt_en does), and the last second's bytes are then missing.
def counts_late: . != null and . != "virtio_net";

# What makes an RDMA sender go back and repeat all that is outstanding, as rxe and mlx5 name it.
def goes_back:
  test("^(duplicate_request|out_of_seq|packet_seq_err|rcvd_seq_err|completer_retry|local_ack_timeout|roce_adp_retrans)|rnr");

# ---- what was counted -------------------------------------------------------------------------------------------------

# A counter of bytes or packets: {device, by, unit, tx, rx, header}. `header`: whether it counts each packet's headers.
def interface($side; $name):
  $side.netdev[$name]
  | if . == null or (has("tx_bytes") and has("rx_bytes") | not) then empty
    else {device: $name, by: "tx_bytes", unit: "bytes", header: true, tx: .tx_bytes, rx: .rx_bytes} end;

# What the planned command names for one side: its "device" or its "port"; null where it leaves the choice to the tool.
def planned($flow; $role; $what):
  if $flow.tool == "perftest" then
    $flow[$role + "_argv"] // [] | c::option_value({device: ["-d", "--ib-dev"], port: ["-i", "--ib-port"]}[$what])
  elif $flow.tool == "perch" then
    (if $role == "server" then "--server-" else "--" end) as $own
    | $flow.client_argv // [] | c::option_value([$own + {device: "device", port: "ib-port"}[$what]])
  else null end;

# As the engine names the ports in use; 0 leaves the choice to it.
def port_key: {client: "ib_port", server: "server_ib_port"}[.];
def port_of($flow; $parts; $role):
  [planned($flow; $role; "port"), $parts[].params[$role | port_key]]
  | map(select(. != null) | tostring | select(test("^[1-9][0-9]*$"))) | .[0];

# The ports of a device that were counted; of a named one, that alone.
def ports_of($side; $name; $port):
  [$side.rdma // {} | to_entries[]
   | select(if $port == null then .key | startswith($name + "/") else .key == "\($name)/\($port)" end) | .value];

# RDMA devices differ in what they count: InfiniBand's port counters (cards keep them for RoCE, too) words of 4 bytes,
# bnxt_re and efa bytes, rxe packets; its bytes are those of the interface under it.
def device_counters($side; $name; $port):
  ports_of($side; $name; $port) as $ports
  | def total($counter): [$ports[].counters[$counter]] | if any(.[]; . == null) then null else add end;
    def words: if . == null then null else 4 * . end;
    # several ports, of which none is named: nobody knows which one carried the flow
    if ($ports | length) != 1 then empty
    elif any($ports[].counters; has("port_xmit_data")) then
      { device: $name, by: "port_xmit_data", unit: "bytes",
        tx: (total("port_xmit_data") | words), rx: (total("port_rcv_data") | words) }
    elif any($ports[].counters; has("tx_bytes")) then
      {device: $name, by: "tx_bytes", unit: "bytes", tx: total("tx_bytes"), rx: total("rx_bytes")}
    elif any($ports[].counters; has("sent_pkts")) then
      {device: $name, by: "sent_pkts", unit: "packets", tx: total("sent_pkts"), rx: total("rcvd_pkts")},
      (([$ports[].netdev | select(. != null and . != "")] | unique)[] as $under | interface($side; $under) | .under = true)
    else empty end;

def counts($side; $name; $rdma; $port):
  if $side == null or $name == null then []
  elif $rdma then [device_counters($side; $name; $port)]
  else [interface($side; $name)] end;

# The device whose counters must show the bytes: the one that the planned command names; else the tool's, the plan's, or
# what lies over the interface with the host's address; without RDMA that interface itself.
def device_of($flow; $parts; $role; $host; $side; $rdma):
  def counted: . as $name | any($side.rdma | keys_unsorted[]; startswith($name + "/"));
  ([planned($flow; $role; "device"), $parts[][$role].device | select(type == "string" and . != "")] | .[0]) as $said
  | if $said != null then $said
    elif $rdma then
      [ ($host.devices // [] | .[] | if type == "object" then .name else . end | select(counted)),
        ($side.rdma // {} | to_entries[] | select(.value.netdev == $side.address) | .key | sub("/[^/]*$"; "")) ] | .[0]
    else $side.address end;

# ---- the law ----------------------------------------------------------------------------------------------------------

def finding($state; $why): {state: $state, why: $why};

def subject: "\(.role): \(.device) \(.verb) \(.counted | f::whole) \(.unit)";

# Of one end, way and counter: {role, device, verb, unit, counted, idle, least, most, noise, late, elsewhere, shared}.
def judged:
  if .counted == null then
    finding("unknown"; "\(.role): the counter of what \(.device) \(.verb) was reset, has wrapped or is full")
  elif .counted < .least and .counted >= .least - .late then
    finding("unknown"; subject + ", \(.least | f::whole) were claimed; its driver may count a second late, so measure "
                       + "for longer")
  elif .counted < .least then
    finding("contradicted"; subject + ", but at least \(.least | f::whole) were claimed"
            + (if .elsewhere == [] then "" else "; \(.elsewhere | join(", ")) carried as many bytes" end))
  elif .counted - .idle > .most and (.shared | not) then
    finding("exceeded"; subject + ", of which this flow explains \(.most | f::whole) at most")
  elif .least > 0 and .counted <= .noise then
    finding("unknown"; subject + ", too few to tell from control traffic and idle (\(.noise | f::whole))")
  else finding("proven"; null) end;

# What else carried the claimed bytes, on a host where the claimed device did not.
def elsewhere($at; $way; $bytes):
  ([$at.counts[].device, "lo"]) as $known
  | [ $at.side.netdev | to_entries[] | select($bytes > 0 and .value[$way + "_bytes"] >= $bytes) | .key
      | select(. as $name | $known | index([$name]) == null) ]
  | sort;

# $at: {role, side, device, counts, idle, driver}; $again: events on either end after which packets were sent again.
def findings($at; $claim; $rdma; $again; $shared):
  header($rdma) as $header
  | ($at.side.seconds // 0) as $seconds
  | $at.counts[] as $n
  | ("tx", "rx") as $way
  | (if ($at.role == "client") == ($way == "tx") then ["sent", "received"] else ["received", "sent"] end) as [$this, $back]
  # acknowledgements of the other way, and requests for what is read, share this way
  | ($claim["packets_" + $this] + $claim["packets_" + $back] + $claim.messages) as $packets
  | (first($at.idle.counts[] | select(.device == $n.device and .by == $n.by))[$way] // 0
     | . * $seconds / ($at.idle.seconds // 1)) as $idle
  # what was lost on the way left its sender, and no more
  | (if $way == "rx" then {bytes: $claim.lost, packets: $claim.lost_packets} else {bytes: 0, packets: 0} end) as $lost
  | ($claim["least_packets_" + $this] - $lost.packets) as $least_packets
  | (if $n.header then control_bytes($claim.sizes; $seconds) else datagram * control_packets end) as $control
  | { role: $at.role, device: $n.device, verb: {tx: "sent", rx: "received"}[$way], unit: $n.unit, counted: $n[$way], $idle,
      $shared, elsewhere: elsewhere($at; $way; $claim[$this]) }
    + if $n.unit == "packets" then
        { least: ([$least_packets, 0] | max), noise: $idle, late: 0,
          most: ((($packets + $again * $claim.window) * slack) + control_packets) }
      else
        { least: ([$claim[$this] - $lost.bytes + (if $n.header then $header.least * $least_packets else 0 end), 0] | max),
          # under rxe the packets are the proof; they are RDMA's alone
          noise: ($idle + if $n.header and ($n.under | not) then $control else 0 end),
          most: (($claim["most_" + $this] + $header.most * $packets) * slack
                 + $again * (if $rdma then $claim.window else 1 end) * ($claim.room + $header.most) + $control
                 + if $n.header then others_bytes($seconds) else 0 end) }
        | .late = (if $rdma or ($at.driver | counts_late | not) then 0
                   elif $claim.elapsed > 1 then .least / $claim.elapsed else .least end)
      end
  | judged;

# The gravest finding speaks for the flow.
def worst:
  . as $all | first(("contradicted", "unknown", "exceeded", "proven") as $s | $all[] | select(.state == $s));

def findings_of_end($at; $claim; $rdma; $again; $shared):
  if $at.side == null then finding("unknown"; "\($at.role): its agent left no counters of this flow")
  elif $rdma and $at.device != null and $at.port == null and (ports_of($at.side; $at.device; null) | length) > 1 then
    finding("unknown"; "\($at.role): \($at.device) has several ports, and neither plan nor tool names the one in use")
  elif $at.counts == [] then
    finding("unknown"; "\($at.role): no counter of \($at.device // "any device of this flow")"
                       + (if $rdma and $at.port != null then ", port \($at.port)," else "" end) + " could be read")
  else findings($at; $claim; $rdma; $again; $shared) end;

# Why no counter can prove this flow's path; null where one can.
def not_judged($flow; $parts; $fabric):
  ([$parts[].link.layer | select(. != null)] | .[0] // $fabric) as $layer
  | if $flow.backend == "null" then "the null backend moves no bytes"
    elif $layer == "shm" or any($parts[].provider, $flow.provider; . // "" | test("^(shm|sm2)")) then
      "the bytes went through memory of one host, which no device counts"
    elif $layer == "loopback" or any($parts[].client.device; . == "lo") then
      "both ends are one machine, and lo counts every byte of both and of everybody else"
    elif any($parts[]; .status != "ok") then "the flow was not measured to its end, so that its claim is not whole"
    else null end;

def bytes_of($counts):
  first($counts[] | select(.unit == "bytes") | if .tx == null or .rx == null then null else .tx + .rx end) // null;

def events($side; $rdma):
  if $side == null then 0
  elif $rdma then [$side.rdma[].counters | to_entries[] | select(.key | goes_back) | .value // 0] | add // 0
  else $side.host.TcpRetransSegs // 0 end;

# $client, $server: counters::counted of both ends, or null. $hosts: of hosts.jq. $shared: another flow of the round uses
# one of the two hosts, so that their devices count its bytes, too.
def proof($plan; $hosts; $flow; $parts; $client; $server; $shared):
  [$parts[] | { backend: $flow.backend, provider: $flow.provider, op: $flow.op, kind: $flow.kind, tool: {name: $flow.tool} }
              + with_entries(select(.value != null))] as $parts
  | any($parts[]; claims::is_rdma) as $rdma
  | ($parts | claims::of_flow($rdma)) as $claim
  | def end_of($role; $side):
      ($hosts[$flow[$role]] // {}) as $host
      | (if $side == null then null else device_of($flow; $parts; $role; $plan.hosts[$flow[$role]]; $side; $rdma) end) as $device
      | port_of($flow; $parts; $role) as $port
      | { $role, $side, $device, $port, counts: counts($side; $device; $rdma; $port), driver: $host.drivers[$device // ""],
          idle: {seconds: $host.idle.seconds, counts: counts($host.idle; $device; $rdma; $port)} };
    end_of("client"; $client) as $c | end_of("server"; $server) as $s
  | (events($client; $rdma) + events($server; $rdma)) as $again
  | not_judged($flow; $parts; $plan.hosts[$flow.client].fabric) as $why
  | ( if $why != null then finding("not_judged"; $why)
      elif $claim == null then finding("unknown"; "\($flow.tool) does not say how many bytes it moved")
      # what claims nothing, any counter would prove
      elif $claim.sent + $claim.received <= 0 then finding("unknown"; "\($flow.tool) claims no byte, so that no counter can show any")
      else [($c, $s) as $at | findings_of_end($at; $claim; $rdma; $again; $shared)] | worst end ) as $finding
  | { claimed_bytes: (if $claim == null then null else $claim.sent + $claim.received | floor end),
      client_device_bytes: bytes_of($c.counts), server_device_bytes: bytes_of($s.counts),
      state: $finding.state, reason: $finding.why,
      counted: ($c.counts | map("\(.device) \(.unit)") | if . == [] then null else join(", ") end) };
