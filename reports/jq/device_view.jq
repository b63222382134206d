# The device under test: each NIC with its firmware, driver, place on PCIe, port, link and MTU, from what the agents found
# (environment.json) and what the hosts' checks found (facts of the verdict); and the switches between them.
import "format" as f;
import "table" as table;

# facts -> {id: {device: {host, or * for all: found}}}, without what could not be read
def index:
  reduce ((. // [])[] | select(.status | IN("ok", "bad", "info"))) as $fact ({};
    reduce (($fact.hosts // ["*"])[]) as $host (.; .[$fact.id][$fact.device // ""][$host] = {found: $fact.found, status: $fact.status}));

def fact($id; $device; $host): (.[$id][$device // ""] // {}) | .["*"] // .[$host] // null;
def found($id; $device; $host): fact($id; $device; $host).found;

# "16 GT/s, the card has 16 GT/s, its slot 16 GT/s": the rest is of interest where it is less than it should be.
def brief($id; $device; $host): fact($id; $device; $host) | if . == null then null elif .status == "bad" then .found else .found | split(", ")[0] end;
def joined($between): map(select(. != null and . != "")) | if . == [] then null else join($between) end;

# The devices of a host: those that the inventory names, and those that the agent found.
def names($planned; $environment):
  [ ($planned.devices // [] | .[] | if type == "object" then {name, netdev} else {name: ., netdev: null} end),
    (($environment.rdma // [])[], ($environment.cxi // [])[] | {name, netdev: null}) ]
  | reduce .[] as $d ([]; if any(.[]; .name == $d.name) then . else . + [$d] end)
  | map(. as $d
        | .netdev //= ([ ($environment.idle.before // {} | .rdma // {}, .cxi // {}) | to_entries[]
                         | select(.key | split("/")[0] == $d.name) | .value.netdev ] | .[0]));

# A host without any RDMA device still measures over something.
def interfaces($planned; $environment):
  [ ($environment.interfaces // [])[]
    | select(if $planned.fabric == "loopback" then .name == "lo" else .state == "up" and .name != "lo" end)
    | {name, netdev: .name} ];

def cells($facts; $host; $environment):
  . as $d
  | ([($environment.interfaces // [])[] | select(.name == $d.netdev)] | .[0] // {}) as $interface
  | ([(($environment.rdma // [])[], ($environment.cxi // [])[]) | select(.name == $d.name)] | .[0] // {}) as $read
  | $facts
  | [ ($d.name + if $d.netdev == null or $d.netdev == $d.name then "" else " (\($d.netdev))" end),
      found("nic-board"; $d.name; $host),
      (found("nic-firmware"; $d.name; $host) // $read.firmware),
      (found("nic-driver"; $d.name; $host) // $read.driver // $interface.driver),
      ([brief("nic-pcie-speed"; $d.name; $host), brief("nic-pcie-width"; $d.name; $host)] | joined(", ")),
      brief("nic-numa-node"; $d.name; $host),
      ([ (found("nic-port-state"; $d.name; $host) | if . == null then null else ltrimstr("4: ") | sub(", 5: "; ", ") end),
         found("nic-link-layer"; $d.name; $host), found("slingshot-link-state"; $d.name; $host) ] | joined(", ")
       // $interface.state),
      (found("nic-link-speed"; $d.name; $host) // found("slingshot-link-speed"; $d.name; $host)
       // ($interface.rate_gbit_s | if . == null then null else "\(f::figure) Gb/s" end)),
      ([ (found("nic-mtu"; $d.netdev; $host) // ($interface.mtu_bytes | if . == null then null else tostring end)),
         (found("nic-path-mtu"; $d.name; $host) | if . == null then null else "RDMA \(.)" end) ] | joined("; ")) ]
  | map(f::cell);

# $hosts: the plan's; $environments: of the hosts that left one.
def rows($hosts; $environments; $facts):
  ($environments | map({key: .host, value: .}) | from_entries) as $read
  | [ $hosts | to_entries[] | .key as $host | .value as $planned | $read[$host] as $environment
      | (names($planned; $environment) | if . == [] then interfaces($planned; $environment) else . end)[]
      | {cells: cells($facts; $host; $environment), $host} ];

def rows_max: 100;

def nics($hosts; $environments; $facts):
  ($hosts | length) as $all
  | (rows($hosts; $environments; $facts) | group_by(.cells)) as $groups
  | { columns: [ "Device", "Card", "Firmware", "Driver", "PCIe", "Memory node", "Port", "Link", "MTU", "Hosts" | table::left(.) ],
      rows: [ $groups[:rows_max][] | (map(.host) | unique) as $names
              | .[0].cells + [if ($names | length) == $all and $all > 1 then "all hosts" else $names | f::names(8) | f::cell end] ],
      more: ([($groups | length) - rows_max, 0] | max) }
  | table::slim;

# A port's lossless priorities, and the speed that it came up with.
def switches:
  { columns: [ "Switch", "Kind", "Ports to the hosts", "Speed", "PFC priorities" | table::left(.) ],
    rows: [ (. // [])[:rows_max][]
            | [ (.name | f::cell),
                ((.provider | f::cell) + if .scope == "hardware" then "" else ", **\(.scope)**" end),
                ([.rows[].port] | unique | if . == [] then "-" else f::names(8) end | f::cell),
                ([.rows[].speed_gbit_s | values] | unique | if . == [] then "-" else map("\(f::figure) Gb/s") | join(", ") end),
                ([.rows[].priorities | values | map(tostring) | if . == [] then "none" else join(" ") end] | unique
                 | if . == [] then "-" else join("; ") end | f::cell) ] ] }
  | table::slim;

def notes($environments; $facts; $hosts):
  [ (if ($environments | length) == 0 then "No host left an `environment.json`: nothing is known of the machines but what the outputs say."
     elif ($environments | length) < ($hosts | length) then
       "\($hosts | length - ($environments | length) | f::plural("host")) left no `environment.json`." else empty end),
    (if $facts == null and ($environments | length) > 0 then "The hosts' checks did not run, so cards, PCIe links and ports are known only as far as the agents say." else empty end) ];

def section($plan; $verdict; $environments):
  ($verdict.facts | index) as $facts
  | { nics: nics($plan.hosts; $environments; $facts), switches: ($verdict.switches | switches),
      notes: notes($environments; $verdict.facts; $plan.hosts | keys) };

# One line for the first screen: what stands at the ends.
def line:
  .nics as $t
  | ($t.columns | map(.title)) as $titles
  | [ $t.rows[:3][] | . as $row
      | ("Device", "Card", "Link", "Hosts") as $want
      | ($titles | index($want)) as $i | if $i == null or $row[$i] == "-" then empty else {$want, text: $row[$i]} end ]
  | if . == [] then "" else
      reduce .[] as $c ([]; if $c.want == "Device" then . + [[$c.text]] else .[-1] += [$c.text] end)
      | "Measured on " + (map(join(", ")) | join("; "))
        + (if ($t.rows | length) > 3 then "; and more in [the devices](#device-under-test)." else "." end) end;
