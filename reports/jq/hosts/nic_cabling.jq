# The switch at the other end of each link, and whether rail i of all hosts goes to one leaf -> findings. Ethernet's neighbours
# come from LLDP, InfiniBand's from the node one hop away.
import "common" as c;
import "hosts/nic_read" as r;

# A chassis of lldpctl: {NAME: {id: {type, value}, ...}}, or {id: ...} of one without a name (lldpd, client/json_writer.c).
def chassis:
  objects
  | (if (.id | type) == "object" then {key: .name, value: .} else to_entries[0] end) as $one
  | ([$one.value | objects | .id | objects | .value | strings] | .[0]) as $id
  | ([$one.key | strings] | .[0]) as $name
  | {id: ($id // $name), name: ($name // $id)} | select(.id != null and .id != "");

# {interface: [{id, name, port}]}: the neighbours of each interface, each once. Null: no answer that can be read.
def lldp($raw):
  [r::said($raw; "lldp") | strings | c::parsed | objects | .lldp | objects] | .[0]
  | if . == null then null
    else
      reduce (.interface | (arrays[], objects) | objects | to_entries[] | select((.value | objects | .via // "LLDP") == "LLDP")) as $one
        ({}; ($one.value.port | [objects | .id | objects | .value | strings] | .[0]) as $port
             | .[$one.key] += [$one.value.chassis | (arrays[], .) | chassis | . + {$port}])
      | map_values(unique) end;

# What smpquery says of the node behind a port (infiniband-diags; libibmad, src/dump.c). Switches of NVIDIA's put their model
# behind the name: "MF0;leaf1:MQM9700/U1".
def infiniband($raw; $d):
  def field($key): [strings | split("\n")[] | capture("^" + $key + ":\\.*(?<v>.*)$").v] | .[0];
  "\($d.name)/\($d.port)" as $at
  | r::said($raw; "neighbour \($at)") as $info
  | ($info | field("Guid")) as $id
  | (r::said($raw; "neighbour-name \($at)") | field("Node Description")) as $name
  | if $id == null or ($id | test("^0x[0-9a-f]{16}$") | not) then null
    else [{ $id, name: ($name // $id | [capture("^MF[0-9]+;(?<v>[^:]+):").v] + [.] | .[0]), port: ($info | field("LocalPort")) }] end;

def is_infiniband($raw; $d): r::text($raw; $d.dir + "/link_layer") == "InfiniBand";

# Of a device: [{carrier, neighbours}]; neighbours: as above, or null where that is not known. $lldp: as above.
def links($raw; $d; $lldp):
  if is_infiniband($raw; $d) then [{carrier: $d.name, neighbours: infiniband($raw; $d)}]
  elif $lldp == null then [{carrier: $d.netdev, neighbours: null}]
  else [r::carriers($raw; $d.netdev)[] | {carrier: ., neighbours: ($lldp[.] // [])}] end;

def shown: "\(.name)" + if .port == null then "" else ", port \(.port)" end;

# The leaf of a device as a key and in words; of a bond both leaves. Null where a link has not exactly one neighbour.
def leaf($links):
  if $links == [] or any($links[]; (.neighbours | length) != 1) then null
  else
    [$links[].neighbours[]] | { id: (map(.id) | unique | join("+")), name: (map(.name) | unique | join(" and ")),
                                shown: (map(shown) | unique | join(" and ")) } end;

def is_unwanted($host): $host.wanted.neighbours == false;
def unwanted: r::result("info"; "not checked: host_check_neighbours is false"; null);

# A card whose firmware answers LLDP itself hands none to the host. Linux, device_drivers/ethernet/intel/ice.rst, FW-LLDP.
def own_agent($raw; $d; $carrier):
  ($raw.links["/sys/bus/pci/devices/\($d.chain[0])/driver"] | [strings | split("/") | last] | .[0]) as $driver
  | { ice: "; ethtool --set-priv-flags \($carrier) fw-lldp-agent off", i40e: "; ethtool --set-priv-flags \($carrier) disable-fw-lldp on",
      bnxt_en: "; switch off the LLDP agent of the card's firmware (niccli)" }[$driver // ""] // "";

def neighbour($raw; $host; $d; $links):
  leaf($links) as $leaf
  | (if is_infiniband($raw; $d) then ["neighbour \($d.name)/\($d.port)", "smpquery"] else ["lldp", "lldpctl"] end) as [$command, $tool]
  | [$links[] | select((.neighbours | length) > 1)] as $several
  | [$links[] | select(.neighbours == []) | .carrier] as $none
  | if is_unwanted($host) then unwanted
    elif $leaf != null then r::result("ok"; $leaf.shown; null)
    elif $several != [] then
      r::result("bad"; $several | map("\(.neighbours | length) neighbours on \(.carrier): \(.neighbours | map(shown) | join("; "))") | join("; "); null)
    elif r::is_guest($raw; $d.chain[0]) then r::guest($d.chain[0])
    elif $none != [] then r::unknown("LLDP names no neighbour on \($none | join(", "))")
    elif r::said($raw; $command) == null then
      r::unread($raw; $command) | if $tool == "lldpctl" then .reading = null else . end # it fails where lldpd does not run
    else r::unknown("\($tool) names no neighbour") end
  | r::finding("neighbour"; $d.name;
      { severity: "required", wanted: (if is_unwanted($host) then null else "one switch port at the other end of each link" end),
        why: "a cable in another port takes another path than the plan says",
        source: (if is_infiniband($raw; $d) then "smpquery nodeinfo, one hop away" else "lldpctl; IEEE 802.1AB" end),
        remedy: (if is_infiniband($raw; $d) then "Run the check as root (ansible_become: true); smpquery -D nodeinfo 0,\($d.port) asks the switch"
                 elif $several != [] then "Let no device between host and switch forward LLDP"
                 else "Start lldpd; turn LLDP on at the switch port" + own_agent($raw; $d; $links[0].carrier) end) });

# The devices whose cables are judged, each with its place among all, its links and its leaf.
def cabled($raw; $host; $devices):
  select($host.scope == "hardware" and ($host.fabric == "roce" or $host.fabric == "infiniband"))
  | lldp($raw) as $lldp
  | $devices | to_entries[] | .key as $rail | .value as $d
  | select($d.rdma and ($d.cxi | not) and (is_infiniband($raw; $d) or $d.netdev != null))
  | links($raw; $d; $lldp) as $links | {$rail, $d, $links, leaf: leaf($links)};

def findings($raw; $host; $devices):
  cabled($raw; $host; $devices) | neighbour($raw; $host; .d; .links);

# ---- rails of several hosts -------------------------------------------------------------------------------------

# A host is compared with those that share a leaf with it, since a fabric may have many racks: each of its other rails asks the
# hosts on its leaf where they have this rail. Hosts with other numbers of rails are built differently.

# Input: [{host, rails: {RAIL: leaf id}}] -> {LEAF: {hosts, at: {RAIL: {LEAF: hosts}}}}, of all hosts on a leaf
def table:
  reduce .[] as $one ({};
    reduce ($one.rails | [.[]] | unique[]) as $leaf (.;
      .[$leaf].hosts += 1
      | reduce ($one.rails | to_entries[]) as $rail (.; .[$leaf].at[$rail.key][$rail.value] += 1)));

# Of one rail of a host: {LEAF: votes}; each of its other rails has one, shared out among what the hosts there have.
def votes($table; $rails; $rail):
  reduce ($rails | to_entries[] | select(.key != $rail) | .value) as $leaf ({};
    ($table[$leaf].at[$rail] | .[$rails[$rail]] -= 1) as $others
    | ([$others[]] | add) as $all
    | if $all == 0 then . else reduce ($others | to_entries[] | select(.value > 0)) as $at (.; .[$at.key] += $at.value / $all) end);

# Where a rail should be, by its votes: the leaf or leaves that most have. Null: where it is, or no neighbour is known.
def elsewhere($votes; $leaf):
  ([$votes[]] | max) as $most
  | if $most == null or ($votes[$leaf] // 0) > $most - 1e-9 then null
    else [$votes | to_entries[] | select(.value > $most - 1e-9) | .key] end;

# $alone: none of the hosts that were asked has this rail on that leaf. Where some do, it may be wired so on purpose.
def cabling($host; $device; $result; $rail; $alone):
  $result
  | r::finding("cabling"; $device;
      { severity: (if $alone then "required" else "advisory" end), wanted: "rail \($rail // "i") of all these hosts on one leaf", why: "a rail on another leaf shares its links, and crosses the spine",
        source: "site policy: NIC i of all hosts of a pod is on one leaf, as in rail-optimised fabrics",
        remedy: "Move the cable to the leaf that the others use, or correct the order of perch_devices" })
  | . + {host: $host};

# Hosts of a site without LLDP, which have rails
def unchecked($hosts):
  $hosts[] | select(is_unwanted(.host)) | select([cabled(.raw; .host; r::devices(.raw; .host))] | length > 1)
  | cabling(.host.name; null; unwanted; null; true) | .wanted = null;

def compared($hosts):
  [ $hosts[] | select(is_unwanted(.host) | not) | .host as $host | .raw as $raw
    | [cabled($raw; $host; r::devices($raw; $host))] | select(length > 1)
    | { host: $host.name, count: length, of: (map(select(.leaf != null)) | map({key: "\(.rail)", value: {name: .d.name, leaf}}) | from_entries) }
    | . + {rails: (.of | map_values(.leaf.id))} ]
  | group_by(.count)[] | select(length > 1) | . as $all | table as $table
  | (reduce ($all[].of[].leaf) as $leaf ({}; .[$leaf.id] = $leaf.name)) as $names
  | $all[] | . as $one
  | [ .rails | to_entries[] | . as $rail | votes($table; $one.rails; .key) as $votes
      | {rail: .key, shown: $one.of[.key].leaf.shown, name: $one.of[.key].name, asked: ($votes != {}), to: elsewhere($votes; .value),
         alone: (($votes[.value] // 0) < 1e-9)} ] as $judged
  | if any($judged[]; .asked) | not then empty
    elif all($judged[]; .to == null) then
      cabling(.host; null; r::result("ok"; $judged | map("rail \(.rail) on \(.shown)") | join("; "); null); null; true)
    else
      $judged[] | select(.to != null)
      | cabling($one.host; .name; r::result("bad"; "rail \(.rail) on \(.shown); other hosts have it on \(.to | map($names[.]) | c::names(4))"; null); .rail; .alone) end;

# $hosts: [{host, raw}] of one fabric
def between($hosts): unchecked($hosts), compared($hosts);
