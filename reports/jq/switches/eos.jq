# Arista EOS. JSON of `show interfaces`, of the counters of queues, pause frames, ECN marks and watchdog, and of LLDP; which
# priorities have PFC is read from the table of text, whose columns are published and whose JSON is not. Sources:
# tests/fixtures/switches/README.md.
import "switches/answers" as raw;

def required: {interfaces: "json", pfc: "text", pause: "json", queues: "json"};
# ECN marks are counted only where `random-detect ecn count` is set; not every platform has the watchdog.
def optional: {pause_detail: "json", ecn: "json", watchdog: "json", lldp: "json"};

def keyed: [to_entries[] | .key |= raw::port_key] | from_entries;

# Ethernet1  Yes  3  Yes  DCBX disabled
def pfc_table:
  [ (. // "") | split("\n")[] | capture("^(?<port>Et\\S*[0-9])\\s+(?<enabled>Yes|No)\\s+(?<list>[0-7][0-7, ]*\\s)?\\s*(?<active>Yes|No)(\\s|$)")?
    | {key: (.port | raw::port_key), value: (if .enabled == "No" or .active == "No" then [] else [.list // "" | scan("[0-7]") | tonumber] end)} ]
  | from_entries;

def of_class: sub("^[^0-9]*"; "") | sub("[^0-9].*$"; "") | if . == "" then null else tonumber end;

# The sum of what lies below: drop precedences, unicast and multicast.
def summed($key): [.. | objects | .[$key]? | raw::count | values] | raw::total;
def queue_of($name): {queue: $name, priority: ($name | of_class), bytes: summed("enqueuedBytes"), packets: summed("enqueuedPackets"), drops: summed("droppedPackets")} | raw::queue;
def merged: group_by(.queue) | map(.[0] + {bytes: (map(.bytes) | raw::total), packets: (map(.packets) | raw::total), drops: (map(.drops) | raw::total)});

# Three shapes, by platform: Trident {egressQueueCounters{interfaces{ucastQueues, mcastQueues}}}, Jericho
# {ingressVoqCounters{interfaces{trafficClasses}}}, and both in one {interfaces{trafficClasses{egressQueueCounters, ingressVoqCounters}}}.
# In the last what went out is the egress queue's, and drops are both's.
def of_both($name):
  ((.egressQueueCounters.countersSum // {}) | queue_of($name))
  + {drops: ([(.egressQueueCounters, .ingressVoqCounters) | .countersSum.droppedPackets? | raw::count | values] | raw::total)};
def queues_of:
  if .ucastQueues != null or .mcastQueues != null then
    [(.ucastQueues, .mcastQueues) | (.trafficClasses // {}) | to_entries[] | .key as $name | .value | queue_of($name)] | merged
  else
    [(.trafficClasses // {}) | to_entries[] | .key as $name | .value
     | if .egressQueueCounters != null or .ingressVoqCounters != null then of_both($name) else queue_of($name) end]
  end;
def queue_tables: (.egressQueueCounters.interfaces // .ingressVoqCounters.interfaces // .interfaces // {}) | map_values(queues_of) | keyed;

def neighbours:
  (.lldpNeighbors // {}) | if type == "object" then . else {} end
  | map_values([.lldpNeighborInfo[]? | {system: .systemName, port: (.neighborInterfaceInfo // {} | .interfaceDescription // .interfaceId_v2 // .interfaceId)}])
  | keyed;

# An interface without an event is left out of the watchdog's answer: none, not unknown.
def storms($port): if .interfaces == null then null else [.interfaces[$port].txQueues // {} | .. | objects | .stuckCount? | raw::count | values] | add // 0 end;

def ports:
  (raw::text("pfc") | pfc_table) as $enabled
  | ((raw::document("pause") // {}).interfaceCounters // {} | keyed) as $pause
  | ((raw::document("pause_detail") // {}).interfaces // {} | keyed) as $detail
  | ((raw::document("queues") // {}) | queue_tables) as $queues
  | ((raw::document("ecn") // {}).intfQueueCounters // {} | keyed) as $ecn
  | (raw::document("watchdog") // {}) as $watchdog
  | ((raw::document("lldp") // {}) | neighbours) as $neighbours
  | ((raw::document("interfaces") // {}).interfaces // {}) | to_entries[] | select(.key | test("^Eth")) | .key as $name | .value
  | ($name | raw::port_key) as $key
  | ($detail[$key].priorities // {}) as $of
  | (.interfaceCounters // {}) as $n
  | { port: $name, neighbours: ($neighbours[$key] // []),
      up: (if .interfaceStatus == null then null else .interfaceStatus == "connected" end),
      speed_gbit_s: ((.bandwidth | raw::count) as $bit | if $bit == null or $bit == 0 then null else $bit / 1e9 end),
      # seconds since 1970, absent where they were never cleared
      cleared: {ago_s: null, at: ($n.lastClear | raw::count)},
      bytes: {rx: ($n.inOctets | raw::count), tx: ($n.outOctets | raw::count)},
      pfc: { enabled_priorities: $enabled[$key],
             rx: raw::eight($of | map_values(.rxFrames | raw::count)), tx: raw::eight($of | map_values(.txFrames | raw::count)),
             rx_total: ($pause[$key].rxFrames | raw::count), tx_total: ($pause[$key].txFrames | raw::count),
             storms: ($watchdog | storms($name)) },
      queues: [($queues[$key] // [])[] | . as $q | (($ecn[$key].queueCounters // {})[$q.priority | tostring] | raw::count) as $marks
               | if $marks == null then $q else $q + {ecn_marked: $marks} end],
      errors: { crc: ($n.inputErrorsDetail.fcsErrors | raw::count), symbol: ($n.inputErrorsDetail.symbolErrors | raw::count),
                discards_in: ($n.inDiscards | raw::count), discards_out: ($n.outDiscards | raw::count) } }
  | raw::port;
