# A host's samples (perch.sample/1) -> lines of intervals.jsonl: what moved since the one before. Input (-nR): samples.jsonl. $host, $facts: of soak_facts.jq.
# What cannot be used becomes "#{fault}", which only soak_host.jq reads.
import "counters" as counters;
import "events" as events;
import "soak_line" as line;
import "common" as c;

def tables:
  ["host"], (.netdev // {} | keys_unsorted[] | ["netdev", .]), (("rdma", "cxi") as $kind | .[$kind] // {} | keys_unsorted[] | [$kind, ., "counters"]);

def differences($b; $a): if $a == $b then empty else counters::differences($b; $a) | to_entries[] | select(.value != 0) end;

# Differences as "netdev/eth1/tx_bytes"; of what is new or gone, nothing.
def moved($b; $a):
  reduce ($b | tables) as $at ({};
    ($b | getpath($at)) as $old | ($a | getpath($at)) as $new
    | if ($old | type) != "object" or ($new | type) != "object" then .
      else reduce differences($old; $new) as $d (.; .[($at | map(select(. != "counters")) | join("/")) + "/" + $d.key] = $d.value) end);

# Of all that moved by class; what a host counts of all its sockets is TCP's.
def classes:
  reduce to_entries[] as $e ({};
    ($e.key | split("/")) as $at
    | (if $at[0] != "host" then events::class($at[-1]) elif $at[-1] == "TcpRetransSegs" then "tcp-retransmissions" else "-" end) as $class
    | if $class == "-" then . elif $e.value == null or (has($class) and .[$class] == null) then .[$class] = null else .[$class] += $e.value end);

# Payload and headers of each device, both ways; InfiniBand counts words of four bytes.
def bytes:
  . as $m
  | reduce (keys_unsorted[] | select(endswith("/tx_bytes") or endswith("/rx_bytes") or endswith("/port_xmit_data") or endswith("/port_rcv_data")
                                     or endswith("/hni_sts_tx_ok_octets") or endswith("/hni_sts_rx_ok_octets"))) as $k ({};
      ($k | split("/")) as $at
      | setpath([($at[1:-1] | join("/")), if $at[-1] | test("tx|xmit") then "tx" else "rx" end]; $m[$k] * if $at[-1] | startswith("port_") then 4 else 1 end));

def packets:
  . as $m
  | [ keys_unsorted[] | select(endswith("/tx_packets") or endswith("/rx_packets") or endswith("/port_xmit_packets") or endswith("/port_rcv_packets")) | $m[.] ] | add;

def number: c::attempt(tonumber; null);

def usable:
  type == "object" and .schema == "perch.sample/1" and (.time_s | number) != null and (.uptime_s | number) != null and (.boot_id | type) == "string"
  and (.counters | type) == "object" and (.processes // [] | type) == "array" and (.links // {} | type) == "object";

# How often a link changed since the sample before. A port of RDMA counts none: then its state is another, or not.
def changes($before):
  (.carrier_changes | number) as $new | ($before.carrier_changes | number) as $old
  | if $new != null and $old != null then $new - $old
    elif [.operstate, .state, .carrier_changes] == ($before | [.operstate, .state, .carrier_changes]) then 0
    else 1 end;

# State: {n, prev: the sample before, at: its time since the soak began, by its own clock that only counts}.
foreach inputs as $text ({n: 0, prev: null, at: 0};
    .n += 1
    | ($text | c::parsed) as $s
    | .out = null
    | if ($s | usable | not) then .out = "#" + ({kind: "fault", line: .n, why: (if $s == null then "no line of JSON" else "it is no sample" end)} | tojson)
      elif $s.run != $facts.run or $s.host != $host then .out = "#" + ({kind: "fault", line: .n, why: "it is of run \($s.run | tojson), host \($s.host | tojson)"} | tojson)
      else
        .prev as $p
        | (($s.time_s | number) - $facts.epoch) as $wall
        | ($p != null and $p.boot_id == $s.boot_id) as $same
        | (if $same then .at + ($s.uptime_s | number) - ($p.uptime_s | number) elif $p == null then $wall else [$wall, .at] | max end) as $at
        | (if $same then moved($p.counters; $s.counters) else {} end) as $moved
        | .out = ({ schema: "perch.sample/1", kind: "sample", run: $s.run, host: $s.host, number: $s.number, line: .n, boot_id: $s.boot_id,
              start_s: ((if $p == null then $at else .at end) | c::rounded), end_s: ($at | c::rounded),
              started: (($p // $s).time_s | number | line::dated), ended: ($s.time_s | number | line::dated), reset: ($p != null and ($same | not)),
              step_s: (if $same then ($s.time_s | number) - ($p.time_s | number) - (($s.uptime_s | number) - ($p.uptime_s | number)) | c::rounded else null end),
              $moved, events: ($moved | classes), packets: ($moved | packets), bytes: ($moved | bytes),
              links: ($s.links // {} | with_entries(.key as $k | .value |= { operstate: (.operstate // .state), carrier_changes: (.carrier_changes | number),
                        flaps: (if $same and $p.links[$k] != null then changes($p.links[$k]) else 0 end) })),
              # calculated with, as jq 1.7 keeps a number's spelling else
              temperatures: ($s.temperatures // [] | map(.celsius |= if c::is_finite then . + 0 else null end)), processes: ($s.processes // []) } | tojson)
        | .prev = $s | .at = $at
      end;
    .out)
