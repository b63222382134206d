# InfiniBand, asked of the fabric by infiniband-diags on one of its hosts: `iblinkinfo --line` says which port of which switch
# leads where, `perfquery` reads the port's counters. Credits, not pause frames, hold traffic back, and nothing marks it; a
# port has one row for all virtual lanes. Sources: tests/fixtures/switches/README.md.
import "switches/answers" as raw;

def required: {links: "text", counters: "ports"};
def optional: {errors: "ports"};

# 0xGUID "switch" LID PORT[  ] ==( 4X 25.78125 Gbps Active/  LinkUp)==>  0xGUID LID PORT[  ] "node HCA-1" ( )
def link_line:
  capture("^\\s*(?<guid>0x[0-9a-fA-F]+)\\s+\"(?<name>[^\"]*)\"\\s+(?<lid>[0-9]+)\\s+(?<port>[0-9]+)\\[[^\\]]*\\]\\s+==\\(\\s*(?<state>.*)\\)==>\\s+(?<to>0x[0-9a-fA-F]+)?\\s*(?<to_lid>[0-9]+)?\\s*(?<to_port>[0-9]+)?\\[[^\\]]*\\]\\s+\"(?<node>[^\"]*)\"");

# "4X 25.78125 Gbps Active/  LinkUp": width times the rate of a lane.
def rate: (capture("(?<width>[0-9]+)X\\s+(?<lane>[0-9.]+)\\s*Gbps")? // null) | if . == null then null else (.width | tonumber) * (.lane | tonumber) end;

# PortXmitData:....................4372366170488
def counters: [(. // "") | split("\n")[] | capture("^(?<key>[A-Za-z0-9]+):\\.*(?<value>[0-9]+)\\s*$")? | .value |= tonumber] | from_entries;

# The old counters do not wrap, they stop at their greatest value (InfiniBand Architecture Specification, PortCounters): what
# stands there is not known.
def stops_at: {SymbolErrorCounter: 65535, LinkErrorRecoveryCounter: 255, LinkDownedCounter: 255, PortRcvErrors: 65535, PortXmitDiscards: 65535, PortXmitWait: 4294967295};
def old($key): .[$key] as $v | if $v == null or $v >= stops_at[$key] then null else $v end;
def either($new; $old; $key): if $new[$key] != null then $new[$key] else $old | old($key) end;

def ports:
  (raw::sections("counters") | map_values(counters)) as $wide
  | (raw::sections("errors") | map_values(counters)) as $old
  | (raw::text("links") // "") | split("\n")[] | link_line? | . as $l
  | "\(.lid)/\(.port)" as $key
  | ($wide[$key] // {}) as $n
  | ($old[$key] // {}) as $o
  | { port: "\(.name | gsub("^ +| +$"; "")) port \(.port) (LID \(.lid))", aliases: [$key, "\(.guid)/\(.port)", "\(.name)/\(.port)"],
      # "node HCA-1": the host's name and the adapter's
      neighbours: [{system: (.node | sub("^ +"; "") | split(" ")[0]), port: (.node | sub("^ +"; "") | split(" ")[1:] | join(" ")), guid: .to}],
      up: (.state | test("LinkUp")), speed_gbit_s: (.state | rate),
      # port_xmit_data counts words of four bytes
      bytes: {rx: ($n.PortRcvData | raw::count | if . == null then null else 4 * . end), tx: ($n.PortXmitData | raw::count | if . == null then null else 4 * . end)},
      pfc: {enabled_priorities: null, rx: [range(8) | null], tx: [range(8) | null], rx_total: null, tx_total: null, storms: null},
      queues: [{queue: "all lanes", bytes: ($n.PortXmitData | if . == null then null else 4 * . end), packets: $n.PortXmitPkts,
                drops: either($n; $o; "PortXmitDiscards"), waits: either($n; $o; "PortXmitWait")} | raw::queue],
      errors: {crc: either($n; $o; "PortRcvErrors"), symbol: either($n; $o; "SymbolErrorCounter"), discards_in: null,
               discards_out: either($n; $o; "PortXmitDiscards")} }
  | raw::port;
