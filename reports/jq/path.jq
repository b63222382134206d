# The path proof of a flow: the bytes that it claims against what the devices of both ends counted meanwhile. For each
# end and each way: claimed <= counted, and counted - idle <= wire. docs/definitions.md, "Path proof", has it in words.
import "common" as c;
import "digits" as d;
import "claims" as claims;
import "wire" as wire;

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
# Those that move in every flow are looked up: jq compiles a pattern anew each time that it is asked.
def never_goes_back:
  { rcvd_pkts: true, sent_pkts: true, rdma_sends: true, rdma_recvs: true, ack_deferred: true, port_rcv_data: true, port_xmit_data: true,
    port_rcv_packets: true, port_xmit_packets: true, tx_bytes: true, rx_bytes: true, tx_pkts: true, rx_pkts: true };
def goes_back:
  never_goes_back[.] != true
  and test("^(duplicate_request|out_of_seq|packet_seq_err|rcvd_seq_err|completer_retry|local_ack_timeout|roce_adp_retrans)|rnr");

# ---- what was counted -------------------------------------------------------------------------------------------------

# A counter of bytes or packets: {device, by, unit, header, tx, rx}, tx and rx being the places of its counts. `header`: whether
# it counts each packet's headers; `times`: what one count stands for, where that is not one.
def interface($side; $name):
  $side.netdev[$name]
  | if . == null or (has("tx_bytes") and has("rx_bytes") | not) then empty
    else {device: $name, by: "tx_bytes", unit: "bytes", header: true, tx: ["netdev", $name, "tx_bytes"], rx: ["netdev", $name, "rx_bytes"]} end;

# What the planned command names for one side: its "device" or its "port"; null where it leaves the choice to the tool.
def planned($flow; $role; $what):
  if $flow.tool == "perftest" then
    $flow[$role + "_argv"] // [] | c::option_value({device: ["-d", "--ib-dev"], port: ["-i", "--ib-port"]}[$what])
  elif $flow.tool == "cxi" then
    if $what == "device" then $flow[$role + "_argv"] // [] | c::option_value(["-d", "--device"]) else null end
  elif $flow.tool == "perch" then
    (if $role == "server" then "--server-" else "--" end) as $own
    | $flow.client_argv // [] | c::option_value([$own + {device: "device", port: "ib-port"}[$what]])
  else null end;

# The devices of a transfer at one end, in the order of their pairs; null where the command leaves them to the engine.
def planned_devices($flow; $role):
  (if $role == "server" then "--server-" else "--" end) as $own
  | $flow.client_argv // [] | c::option_value([$own + "devices", $own + "device"])
  | if . == null then null else split(",") end;

# As the engine names the ports in use; 0 leaves the choice to it.
def port_key: {client: "ib_port", server: "server_ib_port"}[.];
def port_of($flow; $parts; $role):
  [planned($flow; $role; "port"), $parts[].params[$role | port_key]]
  | map(select(. != null) | tostring | select(test("^[1-9][0-9]*$"))) | .[0];

# A Cassini NIC counts the octets of all frames that its port carried, Ethernet's too (telemetry of HewlettPackard's
# shs-cxi-driver, drivers/net/ethernet/hpe/ss1/cass_telem.c). Its header is smaller than any of Ethernet's, and not known.
def cassini_counters($side; $name):
  $side.cxi[$name].counters // {}
  | if has("hni_sts_tx_ok_octets") and has("hni_sts_rx_ok_octets") then
      { device: $name, by: "hni_sts_tx_ok_octets", unit: "bytes", mixed: true,
        tx: ["cxi", $name, "counters", "hni_sts_tx_ok_octets"], rx: ["cxi", $name, "counters", "hni_sts_rx_ok_octets"] }
    else empty end;

# The ports of a device that were counted, as they are called; of a named one, that alone.
def ports_of($side; $name; $port):
  $side.rdma // {}
  | if $port != null then . as $all | "\($name)/\($port)" | select($all[.] != null)
    else keys_unsorted[] | select(startswith($name + "/")) end;

# RDMA devices differ in what they count: InfiniBand's port counters (cards keep them for RoCE, too) words of 4 bytes,
# bnxt_re and efa bytes, rxe packets; its bytes are those of the interface under it.
def device_counters($side; $name; $port):
  [ports_of($side; $name; $port)] as $ports
  # several ports, of which none is named: nobody knows which one carried the flow
  | if ($ports | length) != 1 then empty
    else
      $ports[0] as $key
      | $side.rdma[$key] as $it
      | {device: $name, by: null, unit: "bytes"} as $counter
      | def at($by; $tx; $rx): $counter + {by: $by, tx: ["rdma", $key, "counters", $tx], rx: ["rdma", $key, "counters", $rx]};
        if $it.counters | has("port_xmit_data") then at("port_xmit_data"; "port_xmit_data"; "port_rcv_data") + {times: 4}
        elif $it.counters | has("tx_bytes") then at("tx_bytes"; "tx_bytes"; "rx_bytes")
        elif $it.counters | has("sent_pkts") then
          at("sent_pkts"; "sent_pkts"; "rcvd_pkts") + {unit: "packets"},
          ($it.netdev | select(. != null and . != "") | interface($side; .) | .under = true)
        else empty end
    end;

# Which counters show a device's bytes, by what there is to count, whatever was counted.
def counters_of($side; $name; $rdma; $port):
  if $side == null or $name == null then []
  elif $side.cxi[$name] != null then [cassini_counters($side; $name)]
  elif $rdma then [device_counters($side; $name; $port)]
  else [interface($side; $name)] end;

# The same with what they counted. Input: such counters.
def counted($side):
  map(if . == null then null
      else . as {$times, $tx, $rx}
        | ($side | getpath($tx)) as $sent | ($side | getpath($rx)) as $received
        | if $times == null then . + {tx: $sent, rx: $received}
          else . + {tx: (if $sent == null then null else $times * $sent end), rx: (if $received == null then null else $times * $received end)} end
      end);

def counts($side; $name; $rdma; $port): counters_of($side; $name; $rdma; $port) | counted($side);

# The device whose counters must show the bytes: the one that the planned command names; else the tool's, the plan's, or
# what lies over the interface with the host's address; without RDMA that interface itself.
def device_of($flow; $parts; $role; $host; $side; $rdma):
  def counted: . as $name | any($side.rdma | keys_unsorted[]; startswith($name + "/")) or ($side.cxi // {} | has($name));
  ([planned($flow; $role; "device"), $parts[][$role].device | select(type == "string" and . != "")] | .[0]) as $said
  | if $said != null then $said
    elif $rdma then
      [ ($host.devices // [] | .[] | if type == "object" then .name else . end | select(counted)),
        (($side.rdma // {}) + ($side.cxi // {}) | to_entries[] | select(.value.netdev == $side.address)
         | .key | sub("/[^/]*$"; "")) ] | .[0]
    else $side.address end;

# ---- the law ----------------------------------------------------------------------------------------------------------

def finding($state; $why): {state: $state, why: $why};

def subject: "\(.role): \(.device) \(.verb) \(.counted | d::whole) \(.unit)";

# What one counter of one end says of one way: {host, role, device, port, by, way, verb, unit, counted, idle, seconds,
# least, sure, most, noise, late, elsewhere}. `least` was claimed; `sure` of it was seen to arrive, or does not ask for
# it. $explained_by: whose bytes these are; null where others are among them.
def judged($explained_by):
  if .counted == null then
    finding("unknown"; "\(.role): the counter of what \(.device) \(.verb) was reset, has wrapped or is full")
  elif .counted < .sure and .counted >= .sure - .late then
    finding("unknown"; subject + ", \(.sure | d::whole) were claimed; its driver may count a second late, so measure "
                       + "for longer")
  elif .counted < .sure then
    finding("contradicted"; subject + ", but at least \(.sure | d::whole) were claimed"
            + (if .elsewhere == [] then "" else "; \(.elsewhere | join(", ")) carried as many bytes" end))
  elif .counted < .least then
    finding("unknown"; subject + ", and \(.least | d::whole) were sent; nobody saw whether the rest was lost or went "
                       + "another way: with --verify losses are counted")
  elif $explained_by != null and .counted - .idle > .most then
    finding("exceeded"; subject + ", of which \($explained_by) \(.most | d::whole) at most")
  elif .least > 0 and .counted <= .noise then
    finding("unknown"; subject + ", too few to tell from control traffic and idle (\(.noise | d::whole))")
  else finding("proven"; null) end;

# What else carried the claimed bytes, on a host where the claimed device did not.
def elsewhere($at; $way; $bytes):
  ([$at.counts[].device, "lo"]) as $known
  | [ $at.side.netdev | to_entries[] | select($bytes > 0 and .value[$way + "_bytes"] >= $bytes) | .key
      | select(. as $name | $known | index([$name]) == null) ]
  | sort;

def at_least_none: if . < 0 then 0 else . end;

# $at: an end (proof, below); $again: events on either end after which packets were sent again. Of each counter and way, what
# judged() takes; unless $all are asked for, only of those that do not prove the claim. What is known of a way is known of each counter.
def bounds($at; $claim; $rdma; $again; $explained_by; $all):
  header($rdma) as $header
  | ($at.side.seconds // 0) as $seconds
  | ($again * $claim.window) as $repeated
  | ($again * (if $rdma then $claim.window else 1 end) * ($claim.room + $header.most)) as $repeated_bytes
  | ( if $at.role == "client" then ["tx", "sent", "received"], ["rx", "received", "sent"]
      else ["tx", "received", "sent"], ["rx", "sent", "received"] end ) as [$way, $this, $back]
  | ($way == "rx") as $arriving
  # acknowledgements of the other way, and requests for what is read, share this way
  | ($claim["packets_" + $this] + $claim["packets_" + $back] + $claim.messages) as $packets
  # what was lost on the way left its sender, and no more; nor does its receiver show what nobody saw arrive
  | ($claim["least_packets_" + $this] - if $arriving then $claim.lost_packets else 0 end) as $least_packets
  | (if $arriving then $claim["unseen_packets_" + $this] else 0 end) as $unseen_packets
  | range(0; $at.counts | length) as $i
  | $at.counts[$i] as $n
  | (($at.idle_of[$i][$way] // 0) * $seconds / ($at.idle.seconds // 1)) as $idle
  | ( if $n.unit == "packets" then
        [ ($least_packets | at_least_none), ($least_packets - $unseen_packets | at_least_none), $idle,
          (($packets + $repeated) * slack) + control_packets, 0 ]
      else
        ($n.header or $n.mixed) as $all_frames
        | (if $all_frames then control_bytes($claim.sizes; $seconds) else datagram * control_packets end) as $control
        | ($claim[$this] - (if $arriving then $claim.lost else 0 end) + (if $n.header then $header.least * $least_packets else 0 end) | at_least_none)
          as $least
        | [ $least,
            ($least - (if $arriving then $claim["unseen_" + $this] else 0 end) - (if $n.header then $header.least * $unseen_packets else 0 end)
             | at_least_none),
            # under rxe the packets are the proof; they are RDMA's alone
            ($idle + if ($n.header and ($n.under | not)) or $n.mixed then $control else 0 end),
            (($claim["most_" + $this] + $header.most * $packets) * slack + $repeated_bytes + $control
             + if $all_frames then others_bytes($seconds) else 0 end),
            (if $rdma or ($at.driver | counts_late | not) then 0
             elif $claim.elapsed > 1 then $least / $claim.elapsed else $least end) ]
      end ) as [$least, $sure, $noise, $most, $late]
  | $n[$way] as $counted
  | select($all or $counted == null or $counted < $sure or $counted < $least or ($explained_by != null and $counted - $idle > $most)
           or ($least > 0 and $counted <= $noise))
  | { at: $i, role: $at.role, host: $at.host, $rdma, device: $n.device, port: $at.port, over: $at.device, by: $n.by, $way,
      verb: (if $arriving then "received" else "sent" end), unit: $n.unit, $counted, $idle, $seconds, $least, $sure, $noise, $most, $late,
      # asked for by a contradiction alone
      elsewhere: (if $counted != null and $counted < $sure then elsewhere($at; $way; $claim[$this]) else [] end) };

# The gravest finding speaks for the flow.
def worst:
  if (map(.state) | unique) == ["proven"] then .[0]
  else . as $all | first(("not_judged", "contradicted", "unknown", "exceeded", "proven") as $s | $all[] | select(.state == $s)) end;

# Why an end has no bounds; null where it has. $place: of place(), below.
def without_bounds($place; $side; $rdma):
  if $side == null then finding("unknown"; "\($place.role): its agent left no counters of this flow")
  elif $rdma and $place.device != null and $place.port == null and ([ports_of($side; $place.device; null)] | length) > 1 then
    finding("unknown"; "\($place.role): \($place.device) has several ports, and neither plan nor tool names the one in use")
  elif $place.counters == [] then
    finding("unknown"; "\($place.role): no counter of \($place.device // "any device of this flow")"
                       + (if $rdma and $place.port != null then ", port \($place.port)," else "" end) + " could be read")
  else null end;

def layer($parts; $fabric): [$parts[].link.layer | select(. != null)] | .[0] // $fabric;
def is_loopback($parts; $fabric): layer($parts; $fabric) == "loopback" or any($parts[]; .client.device == "lo");

# Why no device counts anything of this flow; null where one does.
def uncounted($flow; $parts; $fabric):
  if $flow.backend == "null" then "the null backend moves no bytes"
  elif $flow.scope == "simulated" or any($parts[]; .simulated == true) then
    "a simulated provider moved the bytes, which no device counts"
  elif layer($parts; $fabric) == "shm" or any($parts[].provider, $flow.provider; . // "" | startswith("shm") or startswith("sm2")) then
    "the bytes went through memory of one host, which no device counts"
  else null end;

# Why no counter can prove this flow's path; null where one can. $uncounted: the above.
def not_judged($uncounted; $parts; $fabric):
  if $uncounted != null then $uncounted
    elif is_loopback($parts; $fabric) then
      "both ends are one machine, and lo counts every byte of both and of everybody else"
    elif any($parts[]; .status != "ok") then "the flow was not measured to its end, so that its claim is not whole"
    else null end;

def bytes_of($ends):
  [$ends[] | [.counts[] | select(.unit == "bytes") | if .tx == null or .rx == null then null else .tx + .rx end] | .[0]]
  | if any(.[]; . == null) then null else add end;

def events($ends; $rdma):
  if $ends[0].side == null then 0
  elif $rdma then
    [ $ends[] | .side as $side | .ports[] as $at | ($side | getpath($at)) as $counters | ($side.names | getpath($at)) // ($counters | keys_unsorted) | .[]
      | select($counters[.] != 0) | select(goes_back) | $counters[.] // 0 ] | add // 0
  else $ends[0].side.host.TcpRetransSegs // 0 end;

# The parts by the device that carried them at one end, as each claims for itself. Only transfers have several; what
# they say of their sum would claim every byte once more.
def by_device($flow; $role):
  if $flow.kind != "transfer" then [.]
  else [.[] | select(.kind != "sum")] | group_by(.[$role].device) end;

# The counters of the one port of each device; [] where one of them is not known.
def every_port: if any(.[]; .ports == []) then [] else [.[] | .side as $side | .ports[] as $at | $side | getpath($at)] end;

# What carried a place, each device's counters by its name: the RDMA ports or the NIC with the interfaces beside them; of sockets
# the interface. [{key, at}], `at` being where its counters are.
def carriers($side; $device; $port; $rdma):
  if $side == null or $device == null then []
  else
    [ if $side.cxi[$device] != null then {key: $device, at: ["cxi", $device, "counters"]}, ($side.cxi[$device].netdev // "")
      elif $rdma then ports_of($side; $device; $port) | {key: ., at: ["rdma", ., "counters"]}, ($side.rdma[.].netdev // "")
      else $device end
      | if type == "object" then . else {key: ., at: ["netdev", .]} end
      | select(.at as $at | $side | getpath($at) != null) ]
  end;

# All of them at one end, each {key, value, names}: its counters, and which of these may be other than 0.
def every_carrier:
  [.[] | .side as $side | .carriers[] | .at as $at | {key, value: ($side | getpath($at)), names: ($side.names | getpath($at))}]
  | if length == 2 and .[0].key < .[1].key then . else unique_by(.key) end;

# What of an end follows from the plan, the host and from what there is to count, and not from what was counted.
def place($flow; $own; $role; $planned; $host; $side; $rdma):
  (if $side == null then null else device_of($flow; $own; $role; $planned; $side; $rdma) end) as $device
  | port_of($flow; $own; $role) as $port
  | { $role, $device, $port, counters: counters_of($side; $device; $rdma; $port),
      driver: $host.drivers[$device // ""], carriers: carriers($side; $device; $port; $rdma),
      ports: (if $rdma and $side != null and $device != null then [ports_of($side; $device; $port) | ["rdma", ., "counters"]]
              else [] end | if length == 1 then . else [] end) }
  | .without_bounds = without_bounds(.; $side; $rdma)
  # of each of these counters the same of the host's idle time, where it has been read then
  | counters_of($host.idle; $device; $rdma; $port) as $idle
  | .idle = [.counters[] as $n | first($idle[] | select(.device == $n.device and .by == $n.by)) // null];

# The same of a flow: {rdma, uncounted, loopback, counted, client, server}, the two with a place for each device.
def places($plan; $hosts; $flow; $parts; $client; $server):
  $plan.hosts[$flow.client].fabric as $fabric
  | any($parts[]; claims::is_rdma) as $rdma
  | def of($role; $side):
      [ $parts | by_device($flow; $role) | if . == [] then [[]] else . end | .[]
        | place($flow; .; $role; $plan.hosts[$flow[$role]]; $hosts[$flow[$role]] // {}; $side; $rdma) ];
    of("client"; $client) as $of_client
    | { $rdma, uncounted: uncounted($flow; $parts; $fabric), loopback: is_loopback($parts; $fabric),
        counted: ([$of_client[].counters[] | "\(.device) \(.unit)"] | if . == [] then null else join(", ") end),
        client: $of_client, server: of("server"; $server) };

# $client, $server: counters::counted of both ends, or null. $hosts: of hosts.jq. $shared: another flow of the round uses
# one of the two hosts, so that their devices count its bytes, too. $places: of a flow that is alike in all that places() asks, or null.
# $all_bounds: whether the round asks for all of them, or those that prove the claim are left out.
# Beside what a record says: `bounds` for the round (round.jq), `ports`: of each end the RDMA counters of the one port
# that carried the flow, [] where that is not known, `carried` (every_carrier) for events.jq, and the `places`.
def proof($plan; $hosts; $flow; $parts; $client; $server; $shared; $places; $all_bounds):
  def planned_or($planned): if . == null then $planned else . end;
  [ $parts[]
    | if .backend != null and .provider != null and .op != null and .kind != null and .tool != null then .
      else . + { backend: (.backend | planned_or($flow.backend)), provider: (.provider | planned_or($flow.provider)), op: (.op | planned_or($flow.op)),
                 kind: (.kind | planned_or($flow.kind)), tool: (.tool | planned_or({name: $flow.tool})) } end ] as $parts
  | ($places // places($plan; $hosts; $flow; $parts; $client; $server)) as $places
  | $places.rdma as $rdma
  | ($parts | [by_device($flow; "client")[][]] | wire::of_flow($rdma)) as $claim
  | def ends_of($role; $side):
      $hosts[$flow[$role]].idle as $idle
      | $places[$role] as $of
      | ($parts | by_device($flow; $role)) as $owned
      | [ range(0; $of | length) as $i
          | $of[$i]
          + { host: $flow[$role], $side, counts: ($of[$i].counters | counted($side)),
              claim: (if ($owned[$i] // []) == $parts then $claim else $owned[$i] // [] | wire::of_flow($rdma) end),
              idle: {seconds: $idle.seconds}, idle_of: ($of[$i].idle | counted($idle)) } ];
    ends_of("client"; $client) as $c | ends_of("server"; $server) as $s
  | (events($c; $rdma) + events($s; $rdma)) as $again
  | not_judged($places.uncounted; $parts; $plan.hosts[$flow.client].fabric) as $why
  | ( if $why != null then finding("not_judged"; $why)
      elif $claim == null then finding("unknown"; "\($flow.tool) does not say how many bytes it moved")
      # what claims nothing, any counter would prove
      elif $claim.sent + $claim.received <= 0 then
        finding("unknown"; "\($flow.tool) claims no byte, so that no counter can show any")
      else null end ) as $why
  | (if $shared then null else "this flow explains" end) as $explained_by
  | [select($why == null) | ($c, $s)[] as $at | select($at.without_bounds == null)
     # by counter, as they are shown
     | [bounds($at; $at.claim; $rdma; $again; $explained_by; $all_bounds)] | if . == [] then empty else sort_by(.at)[] end] as $bounds
  | ([$why, (select($why == null) | ($c, $s)[].without_bounds) | select(. != null)]
     + [$bounds[] | judged($explained_by)] | if . == [] then finding("proven"; null) else worst end) as $finding
  | { claimed_bytes: (if $claim == null then null else $claim.sent + $claim.received | floor end),
      client_device_bytes: bytes_of($c), server_device_bytes: bytes_of($s),
      state: $finding.state, reason: $finding.why,
      counted: $places.counted,
      $bounds, ports: {client: ($c | every_port), server: ($s | every_port)},
      loopback: $places.loopback,
      carried: (if $places.uncounted != null then {client: [], server: []}
                else {client: ($c | every_carrier), server: ($s | every_carrier)} end),
      $places };
def proof($plan; $hosts; $flow; $parts; $client; $server; $shared): proof($plan; $hosts; $flow; $parts; $client; $server; $shared; null; true);
