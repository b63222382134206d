# What only several hosts' NICs together show: addresses that two of them have, and MTUs that differ -> findings,
# each with the host that it blames, or null for the group. The work grows with the hosts, not with their pairs.
import "common" as c;
import "hosts/nic_read" as r;
import "hosts/nic_address" as address;
import "hosts/nic_cabling" as cabling;
import "hosts/nic_fec" as fec;
import "hosts/nic_link" as link;
import "hosts/nic_optics" as optics;

# {host, device, kind, value} of every NIC of the group: what must be a NIC's own, and what must be alike. among: only those
# with the same are compared.
def known($hosts):
  $hosts[] | .host as $host | .raw as $raw | r::devices($raw; $host) as $devices
  | ( r::interfaces($devices)[] | select(r::there($raw; .netdev)) | r::text($raw; .dir + "/link_layer") as $layer
      | .netdev as $netdev | {host: $host.name, device: $netdev}
      | (. + {kind: "address", value: (address::addresses($raw; $netdev) // [] | .[].local | select(test("^(127\\.|fe80:|::1$)") | not))}),
        (. + {kind: "mac", value: (r::text($raw; "/sys/class/net/\($netdev)/address") | strings | select(test("^(00:)+00$") | not))}),
        # IPoIB's MTU is nothing to RDMA
        (select($layer != "InfiniBand") | . + {kind: "mtu", value: (address::mtu($raw; $netdev) | values)}) ),
    ( $devices[] | select(.rdma) | . as $d | {host: $host.name, device: $d.name}
      | (. + {kind: "gid", value: $d.gids[].gid}),
        (. + {kind: "path_mtu", value: (address::verbs($raw; $d; "active_mtu") | values)}) ),
    ( select($host.scope == "hardware") | $devices[] | . as $d | fec::fec($raw; $d) | select(. != null and .mode != null and .mode != "None")
      | {host: $host.name, device: $d.name, kind: "fec", value: .mode, among: [link::link($raw; $d).gbit, optics::parts($raw; $d.netdev)], types: optics::types($raw; $d.netdev)} );

# Of the links with each module's part number those that agree, with those of other part numbers and the same type: both need
# the same FEC. Input: what is known.
def of_types:
  [[.[] | select(.kind == "fec" and .types != null)] | group_by(.among)[] | group_by(.value) | max_by(length)[] | . + {kind: "fec_types", parts: .among[1], among: [.among[0], .types]}]
  | group_by(.among)[] | select(([.[].parts] | unique | length) > 1)[];

def about:
  { address:
      { id: "duplicate-address", wanted: "each IP address on one interface only", why: "traffic goes to the host that answered last",
        source: "RFC 5227, IPv4 Address Conflict Detection", remedy: "Give one of them another address (ip address replace)" },
    mac:
      { id: "duplicate-mac", wanted: "each MAC address on one host only", why: "a switch may send the packets of one host to the other",
        source: "IEEE 802.3, MAC addresses",
        remedy: "Give one of them another address (ip link set dev INTERFACE address); this is common on cloned machines" },
    gid:
      { id: "duplicate-gid", wanted: "each GID on one host only", why: "connections reach the wrong host, or fail",
        source: "InfiniBand Architecture, volume 1, GIDs are unique in a subnet",
        remedy: "Correct the hosts' addresses (RoCE) or the cards' GUIDs (InfiniBand, ibstat)" },
    mtu:
      { id: "mtu-ends", wanted: "the same MTU on all interfaces of the fabric", why: "the end with the smaller MTU drops large packets",
        source: "RFC 1191: the smallest MTU of a path is the path's",
        remedy: "Set host_tune_mtu: BYTES on all hosts, or run ip link set INTERFACE mtu BYTES" },
    path_mtu:
      { id: "path-mtu-ends", wanted: "the same active MTU on all ports of the fabric",
        why: "a queue pair does not connect, or stalls, if one end has a smaller path MTU",
        source: "InfiniBand Architecture, volume 1: a queue pair has one path MTU",
        remedy: "Set the same MTU on all interfaces (host_tune_mtu), or on the InfiniBand partition" },
    fec:
      { id: "fec-ends", wanted: "the same FEC on all links of one speed with modules of one kind", why: "links with other FEC have another latency and another error rate",
        source: "ethtool --show-fec; IEEE 802.3, clauses 91, 108 and 119",
        remedy: "Use the same cables and FEC everywhere; run ethtool --set-fec INTERFACE encoding auto, as at the switch ports" },
    fec_types:
      { id: "fec-types", severity: "advisory", wanted: "the same FEC on all links of one speed with modules of one type",
        why: "a type of link has its FEC from the standard, and with another one another error rate",
        source: "ethtool --show-fec, ethtool -m; IEEE 802.3, clauses 91, 108 and 119",
        remedy: "Run ethtool --set-fec INTERFACE encoding auto, as at the switch ports" } };

def blamed($kind; $host; $device; $status; $found):
  r::result($status; $found; null) | r::finding(about[$kind].id; $device; {severity: "required"} + about[$kind]) | . + {host: $host};

# Entries of one value that more than one host has, or, for an address, more than one interface.
def doubled($kind):
  group_by(.value)[]
  | unique_by([.host, .device]) | select(length > 1)
  | select($kind == "address" or ([.[].host] | unique | length) > 1);

# All is well, as far as it was read: of each host that said something, where there is another to compare it with.
def all_well($kind; $found):
  ([.[].host] | unique) as $names
  | select(($names | length) > 1) | $names[] | blamed($kind; .; null; "ok"; $found);

def duplicates($all; $kind):
  ([$all[] | select(.kind == $kind)]) as $mine
  | [$mine | doubled($kind)] as $twice
  | if $mine == [] then empty
    elif $twice == [] then
      $mine | all_well($kind; "each \($kind | ascii_upcase | if . == "ADDRESS" then "address" else . end) is used once")
    else
      $twice[] | map("\(.host) \(.device)") as $who
      | .[] | blamed($kind; .host; .device; "bad"; "\(.value) is also on \($who - ["\(.host) \(.device)"] | c::names(4))") end;

# The value that most NICs have is the group's; where none has the majority, all of them are named.
def alike($all; $kind):
  [$all[] | select(.kind == $kind)] as $mine
  | [$mine | group_by(.among)[] | group_by(.value) | sort_by(-length)] as $compared
  | if $mine == [] then empty
    elif all($compared[]; length == 1) then
      $mine | all_well($kind; "\([$compared[][0][0].value] | unique | map(tostring) | join(" or ")) on all")
    else
      $compared[] | select(length > 1) | . as $groups
      | ($groups | map("\(.[0].value) on \(map("\(.host) \(.device)") | c::names(4))") | join("; ")) as $spread
      | (if ($groups[0] | length) > ($groups[1] | length) then $groups[1:] else $groups end)[][]
      | blamed($kind; .host; .device; "bad"; $spread) end;

# Two names of one machine share everything; a loopback is such a pair.
def between($hosts):
  if ($hosts | length) < 2 or $hosts[0].host.fabric == "loopback" then empty
  else
    [known($hosts)] as $all
    | duplicates($all; "address", "mac", "gid"), alike($all; "mtu", "path_mtu", "fec"), alike([$all | of_types]; "fec_types"), cabling::between($hosts) end;
