# NVIDIA Cumulus Linux (NVUE, 5.0 and newer). One shell line asks `nv show interface PORT counters qos -o json` of each port
# (before 5.5 `qos counters`), `ethtool -S` and /sys. Sources: tests/fixtures/switches/README.md.
import "switches/answers" as raw;
import "common" as c;

def required: {qos: "ports", ethtool: "ports", link: "text"};
def optional: {roce: "json", watchdog: "ports", lldp: "json"};

# The frames of JSON counters, wherever a release nests them (`operational`, the name of the port).
def below($key): [.. | objects | .[$key]? | objects] | first // {};

def documents($name): raw::sections($name) | map_values((index("{") // 0) as $at | .[$at:] | c::parsed | if type == "object" then . else null end);

def queues:
  below("egress-queue-stats") | to_entries | sort_by(.key | tonumber? // 999)
  | map(.key as $class | .value | objects
        | { queue: $class, priority: (if $class | test("^[0-7]$") then $class | tonumber else null end),
            bytes: (.["tx-bytes"] | raw::count), packets: (.["tx-frames"] | raw::count),
            drops: ([.["tx-uc-buffer-discards"], .["wred-discards"]] | map(raw::count) | raw::total),
            # frames, whatever unit the table for people shows behind them
            ecn_marked: (.["ecn-marked-frames"] | raw::count) } | raw::queue);
def ingress: below("ingress-buffer-stats") | to_entries
  | map(.key as $group | .value | objects | {queue: "priority group \($group)", drops: ([.["rx-buffer-discards"], .["rx-shared-buffer-discards"]] | map(raw::count) | raw::total)}
        | select(.drops != null) | raw::queue);

#      HwIfInOctets: 21870
def ethtool: [(. // "") | split("\n")[] | capture("^\\s*(?<key>[A-Za-z0-9_]+):\\s*(?<value>[0-9]+)\\s*$")? | .value |= tonumber] | from_entries;

# /sys/class/net/swp1/speed:100000
def link: reduce ((. // "") | split("\n")[] | capture("net/(?<port>[^/]+)/(?<key>speed|operstate):(?<value>.*)$")?) as $l ({}; .[$l.port][$l.key] = $l.value);

def pfc_priorities:
  if . == null then null
  else [.. | objects | .["pfc-priority"]? | values] | first | if . == null then null else [tostring | scan("[0-7]") | tonumber] | unique end
  end;

# {swp1: {lldp: {neighbor: {server01: {chassis: {"system-name": ...}, port: {...}}}}}}, in older releases a list.
def neighbours: [.. | objects | select(.chassis? != null and (.port? | type) == "object")
                 | {system: (.chassis | [.. | objects | .["system-name"]? // empty | strings] | first), port: (.port.description // .port.name)}];

def ports:
  documents("qos") as $qos
  | documents("watchdog") as $watchdog
  | (raw::sections("ethtool") | map_values(ethtool)) as $hw
  | (raw::text("link") | link) as $link
  | (raw::document("roce") | pfc_priorities) as $priorities
  | (raw::document("lldp") // {}) as $lldp
  | ($qos | keys_unsorted) + ($link | keys_unsorted) | unique[] | . as $name
  | select(test("^swp"))
  | ($qos[$name] // {}) as $q
  | ($q | below("pfc-stats")) as $pfc
  | ($hw[$name] // {}) as $n
  | (if $pfc == {} then [range(8) | $n["HwIfInPfc\(.)Pkt"]] else raw::eight($pfc | map_values(.["rx-pause-frames"] | raw::count)) end) as $rx
  | (if $pfc == {} then [range(8) | $n["HwIfOutPfc\(.)Pkt"]] else raw::eight($pfc | map_values(.["tx-pause-frames"] | raw::count)) end) as $tx
  | { port: $name, neighbours: ($lldp[$name] // {} | neighbours),
      up: (if $link[$name].operstate == null then null else $link[$name].operstate == "up" end),
      speed_gbit_s: (($link[$name].speed | raw::count) as $mbit | if $mbit == null then null else $mbit / 1000 end),
      bytes: {rx: ($n.HwIfInOctets | raw::count), tx: ($n.HwIfOutOctets | raw::count)},
      pfc: {enabled_priorities: $priorities, $rx, $tx, rx_total: ($rx | raw::total), tx_total: ($tx | raw::total),
            storms: ([$watchdog[$name] // {} | .. | objects | .["deadlock-count"]? | raw::count | values] | raw::total)},
      queues: (($q | queues) + ($q | ingress)),
      errors: {crc: ($n.HwIfInErrors | raw::count), symbol: null, discards_in: ($n.HwIfInDiscards | raw::count),
               discards_out: ($n.HwIfOutDiscards | raw::count)} }
  | raw::port;
