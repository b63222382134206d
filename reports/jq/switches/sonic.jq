# SONiC, read from its databases by sonic-db-dump, which every release has and whose answer is JSON; the counters are SAI's.
# What `show queue counters`, `show pfc counters`, `pfcwd show stats` and `show lldp table` print comes from there, too,
# but less what somebody's sonic-clear has subtracted. Sources: tests/fixtures/switches/README.md.
import "switches/answers" as raw;

def required: {counters: "json", ports: "json", qos: "json"};
def optional: {lldp: "json"};

# {KEY: fields}: a hash stands under "value".
def hashes: (. // {}) | map_values(if type == "object" and (.value | type) == "object" then .value else {} end);
# TABLE:PORT or TABLE|PORT; a key of CONFIG_DB may name several ports, separated by commas.
def by_port($table):
  [to_entries[] | select(.key | startswith($table)) | .value as $v | .key[($table | length) + 1:] | split(",")[] | {key: ., value: $v}] | from_entries;

def sai($name): .["SAI_" + $name] | raw::count;

def queues($db; $port):
  [ $db["COUNTERS_QUEUE_NAME_MAP"] // {} | to_entries[] | select(.key | startswith($port + ":"))
    | (.key[($port | length) + 1:]) as $number
    | ($db["COUNTERS:" + .value] // {})
    | { queue: $number, priority: (if $number | test("^[0-7]$") then $number | tonumber else null end),
        bytes: sai("QUEUE_STAT_BYTES"), packets: sai("QUEUE_STAT_PACKETS"), drops: sai("QUEUE_STAT_DROPPED_PACKETS"),
        ecn_marked: sai("QUEUE_STAT_WRED_ECN_MARKED_PACKETS"), storms: (.PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED | raw::count) } | raw::queue ]
  | sort_by(.queue | tonumber? // 999);

# Lossless traffic that has no room in a switch is dropped before its queue: by the priority group at the port's entrance.
def group_drops($db; $port):
  [ $db["COUNTERS_PG_NAME_MAP"] // {} | to_entries[] | select(.key | startswith($port + ":"))
    | ($db["COUNTERS:" + .value] // {}) as $c
    | .key[($port | length) + 1:] as $number
    | { queue: "priority group \($number)", priority: (if $number | test("^[0-7]$") then $number | tonumber else null end),
        drops: ($c | sai("INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS")) } | select(.drops != null) | raw::queue ];

def priorities: if . == null then null else [tostring | scan("[0-7]") | tonumber] end;

def ports:
  (raw::document("counters") | hashes) as $db
  | (raw::document("ports") | hashes | by_port("PORT_TABLE")) as $state
  | (raw::document("qos") | hashes | by_port("PORT_QOS_MAP")) as $map
  | (raw::document("qos") != null) as $configured
  | (raw::document("lldp") | hashes | by_port("LLDP_ENTRY_TABLE")) as $lldp
  | ($db["COUNTERS_PORT_NAME_MAP"] // {}) | to_entries[] | .key as $name
  | ($db["COUNTERS:" + .value] // {}) as $c
  | queues($db; $name) as $queues
  | { port: $name,
      neighbours: [$lldp[$name] // empty | {system: .lldp_rem_sys_name, port: (.lldp_rem_port_desc // .lldp_rem_port_id)}],
      up: (if $state[$name].oper_status == null then null else $state[$name].oper_status == "up" end),
      speed_gbit_s: (($state[$name].speed | raw::count) as $mbit | if $mbit == null then null else $mbit / 1000 end),
      bytes: {rx: ($c | sai("PORT_STAT_IF_IN_OCTETS")), tx: ($c | sai("PORT_STAT_IF_OUT_OCTETS"))},
      pfc: ({ enabled_priorities: (if $configured then $map[$name].pfc_enable // "" else null end | priorities),
             rx: [range(8) | . as $n | $c | sai("PORT_STAT_PFC_\($n)_RX_PKTS")], tx: [range(8) | . as $n | $c | sai("PORT_STAT_PFC_\($n)_TX_PKTS")],
             storms: ([$queues[].storms] | raw::total) }
            | . + {rx_total: (.rx | raw::total), tx_total: (.tx | raw::total)}),
      queues: ([$queues[] | del(.storms)] + group_drops($db; $name)),
      # SAI has no counter of bad checksums alone that every switch fills: errors on arrival stand for them
      errors: { crc: ($c | sai("PORT_STAT_IF_IN_ERRORS")), symbol: null, discards_in: ($c | sai("PORT_STAT_IF_IN_DISCARDS")),
                discards_out: ($c | sai("PORT_STAT_IF_OUT_DISCARDS")) } }
  | raw::port;
