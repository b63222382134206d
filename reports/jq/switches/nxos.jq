# Cisco NX-OS. JSON of `show interface`, `show queuing interface`, `show queuing pfc-queue detail` and `show lldp neighbors
# detail`; of priority flow control the table of text, whose columns Cisco documents, since the key of the priorities' bit
# map in its JSON is nowhere published. Sources of the formats: tests/fixtures/switches/README.md.
import "switches/answers" as raw;

# What must be answered, and what may be missing on some platforms or without LLDP.
def required: {interfaces: "json", pfc: "text", queuing: "json"};
def optional: {watchdog: "json", lldp: "json"};

def tables($table): [.. | objects | .["TABLE_" + $table]? // empty | .["ROW_" + $table] | raw::rows];

# "(8)" is the map of the priorities in hexadecimal: bit 3.
def priorities_of_map:
  (ascii_downcase | explode | reduce .[] as $d (0; . * 16 + (if $d >= 97 then $d - 87 else $d - 48 end))) as $map
  | [range(8) | select(($map / pow(2; .) | floor) % 2 == 1)];

# Ethernet1/1        Auto On  (8)       0          0
def pfc_line:
  capture("^(?<port>\\S+[0-9])\\s+(?<mode>Auto|On|Off|ON|OFF)\\s+(?<oper>On|Off)\\s*(\\((?<map>[0-9a-fA-F]{1,2})\\))?\\s+(?<rx>[0-9]+)\\s+(?<tx>[0-9]+)\\s*$")
  | { port, on: (.oper == "On"), rx: (.rx | tonumber), tx: (.tx | tonumber),
      priorities: (if .oper == "Off" then [] elif .map == null then null else .map | priorities_of_map end) };
def pfc_table: [(. // "") | split("\n")[] | pfc_line?] | map({key: (.port | raw::port_key), value: .}) | from_entries;

# Rows of one QoS group: Tx and drops, in Pkts and Byts, of unicast, out-of-band and multicast queues.
def stat($type; $unit):
  [.[] | select((.["eq-stat-type"] // "" | tostring | test($type; "i")) and (.["eq-stat-units"] // "" | tostring | test("^" + $unit; "i")))
   | [.["eq-uc-stat-value"], .["eq-oobfc-uc-stat-value"], .["eq-mc-stat-value"]] | map(values | raw::count) | raw::total] | raw::total;

def queues($cos_of):
  [ tables("qosgrp_egress_stats")[]
    | (.["eq-qosgrp"] | tostring) as $group
    | tables("qosgrp_egress_stats_entry") as $stats
    | { queue: $group,
        # a group is the priority of its number, unless the table of pause frames says otherwise
        priority: (if $cos_of[$group] != null then $cos_of[$group] elif $group | test("^[0-7]$") then $group | tonumber else null end),
        bytes: ($stats | stat("^tx"; "byt")), packets: ($stats | stat("^tx"; "pkt")), drops: ($stats | stat("drop"; "pkt")),
        ecn_marked: ($stats | stat("ecn"; "pkt")) } | raw::queue ];

# {PORT: {queues, rx{}, tx{}}}; the rows of a port are several (Ingress, Egress).
def queuing:
  [ (. // {}) | tables("queuing_interface")[] | select(.if_name_str != null)
    | tables("pfc_stats") as $pfc
    | ($pfc | map(select(.["pfc-qosgrp"] != null and (.cos | raw::count) != null)
                  | {key: (.["pfc-qosgrp"] | tostring), value: (.cos | raw::count)}) | from_entries) as $cos_of
    | { key: (.if_name_str | raw::port_key),
        value: { queues: queues($cos_of),
                 rx: ($pfc | map({key: (.cos | tostring), value: (.["rx-pause-count"] | raw::count)}) | from_entries),
                 tx: ($pfc | map({key: (.cos | tostring), value: (.["tx-pause-count"] | raw::count)}) | from_entries) } } ]
  | group_by(.key)
  | map({key: .[0].key, value: {queues: (map(.value.queues) | add), rx: (map(.value.rx) | add), tx: (map(.value.tx) | add)}})
  | from_entries;

# "Ethernet1/1 Interface PFC watchdog ...": how often its queues were shut down.
def watchdog:
  [ (. // {}) | tables("queuing_interface")[] | select(.if_name_str != null)
    | { key: (.if_name_str | tostring | split(" ")[0] | raw::port_key),
        value: ([tables("qosgrp_stats")[] | tables("qosgrp_stats_entry")[] | to_entries[] | select(.key | test("shutdown"; "i")) | .value | raw::count] | raw::total) } ]
  | map(select(.value != null)) | from_entries;

def neighbours:
  [ (. // {}) | tables("nbor_detail")[]
    | {key: (.l_port_id // "" | raw::port_key), value: {system: .sys_name, port: ([.port_desc, .port_id] | map(strings | select(. != "" and . != "null")) | first)}} ]
  | group_by(.key) | map({key: .[0].key, value: map(.value)}) | from_entries;

# `Last clearing of "show interface" counters`: "never", 00:01:02, 1d21h, 113w5d; some releases print a date. Of an age in
# hours the least that it may be.
def cleared:
  (. // "" | tostring) as $said
  | ($said | capture("^(?<h>[0-9]+):(?<m>[0-9]{2}):(?<s>[0-9]{2})$") // null) as $clock
  | if $clock != null then {ago_s: (($clock.h | tonumber) * 3600 + ($clock.m | tonumber) * 60 + ($clock.s | tonumber)), at: null}
    elif $said | test("^([0-9]+[ywdhms])+$") then
      {ago_s: ([$said | scan("[0-9]+[a-z]") | (.[:-1] | tonumber) * {y: 31536000, w: 604800, d: 86400, h: 3600, m: 60, s: 1}[.[-1:]]] | add), at: null}
    else {ago_s: null, at: (if $said == "" then null else $said end)} end;

def ports:
  (raw::text("pfc") | pfc_table) as $pfc
  | (raw::document("queuing") | queuing) as $queuing
  | (raw::document("watchdog") | watchdog) as $watchdog
  | (raw::document("lldp") | neighbours) as $neighbours
  | (raw::document("interfaces") // {}) | tables("interface")[]
  | select((.interface // "" | tostring) | test("^eth"; "i"))
  | (.interface | raw::port_key) as $key
  | $pfc[$key] as $flow
  | { port: .interface, neighbours: ($neighbours[$key] // []),
      up: (if .state == null then null else .state == "up" end),
      # eth_bw is in kbit/s
      speed_gbit_s: ((.eth_bw | raw::count) as $kbit | if $kbit == null then (.eth_speed // "" | raw::gbit_s) else $kbit / 1e6 end),
      cleared: (.eth_clear_counters | cleared),
      bytes: {rx: (.eth_inbytes | raw::count), tx: (.eth_outbytes | raw::count)},
      pfc: { enabled_priorities: $flow.priorities, rx: raw::eight($queuing[$key].rx // {}), tx: raw::eight($queuing[$key].tx // {}),
             rx_total: $flow.rx, tx_total: $flow.tx, storms: $watchdog[$key] },
      queues: ($queuing[$key].queues // []),
      errors: { crc: (.eth_crc | raw::count), symbol: null, discards_in: (.eth_indiscard | raw::count),
                discards_out: (.eth_outdiscard | raw::count) } }
  | raw::port;
