# MTU, GIDs and IP addresses of each NIC, and ARP where several share a subnet -> findings. Nothing is sent: whether
# the path carries full packets is the measurement's to show.
import "common" as c;
import "hosts/nic_read" as r;
import "hosts/nic_link" as l;

def ip_sysctl: "Linux, Documentation/networking/ip-sysctl.rst";

# ---- MTU --------------------------------------------------------------------------------------------------------

def mtu($raw; $netdev): r::number($raw; "/sys/class/net/\($netdev)/mtu");

def interface_mtu($raw; $netdev; $host):
  mtu($raw; $netdev) as $mtu | $host.wanted.mtu as $wanted
  | if $mtu == null then r::unknown("no /sys/class/net/\($netdev)/mtu")
    else r::as_wanted($wanted; $mtu == $wanted; "\($mtu)"; null) end
  | r::finding("mtu"; $netdev;
      { severity: "required", wanted: ($wanted | if . == null then null else tostring end), source: "host_check_mtu",
        why: "the smallest MTU of a path decides how much of each packet is payload",
        remedy: "host_tune_mtu: \($wanted // "BYTES"), or ip link set \($netdev) mtu \($wanted // "BYTES"); the switch needs more than that" });

# The largest of InfiniBand's MTUs that an interface's MTU leaves room for: 96 bytes are headers (Linux,
# include/rdma/ib_addr.h, iboe_get_mtu: GRH 40, UDP 8, BTH 12, XRC 4, atomics 28, ICRC 4).
def allowed: (. - 96) as $room | [4096, 2048, 1024, 512, 256 | select(. <= $room)] | .[0];

# ibv_devinfo: "port: 1 ... max_mtu: 4096 (5) active_mtu: 1024 (3)", one block for each port
def verbs($raw; $d; $key):
  [r::said($raw; "verbs \($d.name)") | strings | "\n" + . | split("\n\\s*port:\\s+"; "")[1:][] | select(test("^\($d.port)\\b"))
   | capture("\\n\\s*" + $key + ":\\s+(?<v>[0-9]+)").v | tonumber] | .[0];

def path_mtu($raw; $d; $host):
  verbs($raw; $d; "active_mtu") as $active | verbs($raw; $d; "max_mtu") as $most
  | (r::text($raw; $d.dir + "/link_layer") == "InfiniBand") as $infiniband
  | (if $d.netdev == null or $infiniband then null else mtu($raw; $d.netdev) | if . == null then null else allowed end end) as $allowed
  # on cards an interface's MTU is no excuse unless the inventory asks for it
  | ($host.scope == "hardware" and ($infiniband | not) and $host.wanted.path_mtu == null and $host.wanted.mtu == null and $most != null) as $full
  | ($host.wanted.path_mtu // if $infiniband or $full then $most else ([$allowed, $most | values] | min) end) as $wanted
  | if $active == null then r::unread($raw; "verbs \($d.name)")
    else r::as_wanted($wanted; $active >= $wanted; "\($active)" + if $most == null then "" else " of \($most)" end; null) end
  | r::finding("path-mtu"; $d.name;
      # on cards without ibv_devinfo it is not known: an MTU of 1500 on all hosts would pass
      { severity: (if $host.wanted.path_mtu != null or $full or ($active == null and $d.rdma and $host.scope == "hardware") then "required" else "advisory" end),
        wanted: ($wanted | if . == null then null else tostring end),
        source: (if $host.wanted.path_mtu != null then "host_check_path_mtu" elif $infiniband or $full then "the port's own maximum (ibv_devinfo)"
                 else "Linux, include/rdma/ib_addr.h, iboe_get_mtu" end),
        why: "RDMA cuts messages at this size, whatever the interface could carry",
        remedy: (if $infiniband then "See the MTU of the other end and of the partition (ibportstate, opensm's partitions.conf)"
                 else "Raise the interface's MTU (host_tune_mtu: 4200 or more carries 4096), and bring the port down and up; or set host_check_path_mtu" end) });

# ---- GIDs -------------------------------------------------------------------------------------------------------

# "0000:0000:0000:0000:0000:ffff:c000:0201" -> "192.0.2.1"; null for others
def mapped:
  [strings | capture("^(0000:){5}ffff:(?<a>[0-9a-f]{2})(?<b>[0-9a-f]{2}):(?<c>[0-9a-f]{2})(?<d>[0-9a-f]{2})$"; "i")
   | [.a, .b, .c, .d | r::hex | tostring] | join(".")] | .[0];

# IPv6 as GIDs are written: "2001:db8::1" -> "2001:0db8:0000:0000:0000:0000:0000:0001"
def groups: if . == "" then [] else split(":") end;
def spelled_out:
  ascii_downcase | split("::") | map(groups) | .[0] as $head | (.[1] // []) as $tail
  | $head + [range(8 - ($head | length) - ($tail | length)) | "0"] + $tail
  | map(("0000" + .)[-4:]) | join(":");

# What packets are routed by: IPv4 of a mapped GID, or an IPv6 address that is no link's own (fe80::/10, RFC 4291); else null.
def routable: mapped // ([strings | ascii_downcase | select(test("^fe[89ab]") | not)] | .[0]);

# ip -j address show dev NAME -> [{family, local, prefixlen}]; null where that cannot be read
def parsed_addresses($name; $raw):
  r::said($raw; $name) | if . == null then null else c::parsed end
  | if type != "array" then null else [.[] | objects | select(.ifname != null)] end;
def addresses($raw; $netdev):
  parsed_addresses("address \($netdev)"; $raw)
  | if . == null then null else [.[] | .addr_info // [] | .[] | objects | select(.local | type == "string")] end;
# Those that a GID can stand for, each with what that GID is: IPv4 where there is any, else IPv6.
def routed($raw; $netdev):
  addresses($raw; $netdev)
  | if . == null then null
    else map(if .family == "inet6" then .gid = (.local | spelled_out | routable) else .gid = .local end | select(.gid != null))
      | if any(.family == "inet") then map(select(.family == "inet")) else . end end;

def entry_text: "\(.index): \(.gid | mapped // .), \(.type // "type not known"), \(.netdev // "no interface")";

# The entry that a measurement will use has to be RoCE v2, of this interface: v1 is not routed, and marks nothing for ECN.
def gid($raw; $d; $layer):
  ([$d.gids[] | select(.index == $d.gid_index)] | .[0]) as $entry
  | if $d.gids == [] then r::result("bad"; "the port has no GID"; null)
    elif $d.gid_index == null then
      if $layer == "InfiniBand" then r::result("ok"; "\($d.gids | length) GIDs, index 0 is used"; null)
      else ([$d.gids[] | select(.type == "RoCE v2" and (.gid | routable) != null)]
             | (map(select(.gid | mapped)) + .)[0]) as $first
        | if $first == null then r::result("bad"; "no RoCE v2 GID with a routable address"; null)
          else r::result("ok"; "gid_index is not set; there is \($first | .gid as $g | entry_text)"; null) end end
    elif $entry == null then r::result("bad"; "no GID at index \($d.gid_index); there are: \([$d.gids[].index | tostring] | join(", "))"; null)
    else r::either($layer == "InfiniBand"
                   or ($entry.type == "RoCE v2" and ($entry.netdev == null or $d.named == null or $entry.netdev == $d.named));
                   $entry | entry_text; null) end
  | r::finding("gid"; $d.name;
      { severity: "required",
        wanted: (if $layer == "InfiniBand" then "a GID at the index that is used"
                 else "a RoCE v2 GID of \($d.named // "the interface") at the index that is used" end),
        why: "a queue pair with another GID uses RoCE v1, another interface, or does not connect", source: l::sysfs,
        remedy: ("Give the interface its address, then set gid_index in perch_devices to an entry of \($d.dir)/gids "
                 + "whose type is RoCE v2") });

def gid_address($raw; $d):
  routed($raw; $d.netdev) as $addresses
  | [$d.gids[] | select(.type == "RoCE v2") | .gid | routable | values | ascii_downcase] as $gids
  | if $addresses == null then r::unread($raw; "address \($d.netdev)")
    elif $addresses == [] then r::result("bad"; "\($d.netdev) has no IPv4 address, and no routable IPv6 address"; null)
    else [$addresses[] | select(.gid | IN($gids[]) | not) | .local] as $without
      | r::either(($without | length) < ($addresses | length);
                  if $without == [] then [$addresses[].local] | join(", ") else "no RoCE v2 GID for \($without | join(", "))" end; null) end
  | r::finding("gid-address"; $d.name;
      { severity: "required", wanted: "a RoCE v2 GID with the IPv4 or IPv6 address of \($d.netdev)",
        why: "addresses are found and routed by it", source: l::sysfs,
        remedy: "ip address add ADDRESS/LENGTH dev \($d.netdev); an address without a GID: bring the interface down and up" });

# ---- ARP --------------------------------------------------------------------------------------------------------

def number_of: [strings | capture("^(?<a>[0-9]{1,3})\\.(?<b>[0-9]{1,3})\\.(?<c>[0-9]{1,3})\\.(?<d>[0-9]{1,3})$")
  | ((.a | tonumber) * 256 + (.b | tonumber)) * 65536 + (.c | tonumber) * 256 + (.d | tonumber)] | .[0];
def same_net($a; $b):
  ([$a.prefixlen, $b.prefixlen] | min) as $length | ($a.local | number_of) as $x | ($b.local | number_of) as $y
  | $x != null and $y != null and ($length | type == "number") and $length > 0
    and (pow(2; 32 - $length) as $size | ($x / $size | floor) == ($y / $size | floor));

# The other interfaces of the host with an address in one of this one's subnets; null where they cannot be read.
def neighbours($raw; $netdev):
  parsed_addresses("addresses"; $raw) as $all
  | if $all == null then null
    else [$all[] | .ifname as $name | .addr_info // [] | .[] | objects | select(.family == "inet") | . + {name: $name}]
      | [.[] | select(.name == $netdev)] as $own
      | [.[] | select(.name != $netdev) | . as $other | select(any($own[]; same_net(.; $other))) | .name] | unique end;

# What holds is the greater of `all` and the interface's own.
def setting($raw; $netdev; $key):
  [r::number($raw; "/proc/sys/net/ipv4/conf/all/\($key)"), r::number($raw; "/proc/sys/net/ipv4/conf/\($netdev)/\($key)")]
  | if any(. == null) then null else max end;

def arp_wanted:
  [ { key: "arp_ignore", good: [1, 2], set: 1,
      why: "otherwise each interface answers for all addresses of the host, and traffic takes the wrong one" },
    { key: "arp_announce", good: [2], set: 2,
      why: "otherwise requests carry another interface's address, and peers learn the wrong one" },
    { key: "rp_filter", good: [0, 2], set: 2,
      why: "strict filtering drops what arrives by another interface than answers would take" } ];

def arp($raw; $netdev):
  neighbours($raw; $netdev) as $near
  | arp_wanted[] as $want
  | setting($raw; $netdev; $want.key) as $value
  | if $near == null then r::unread($raw; "addresses")
    elif $near == [] then r::not_applicable("no other interface in its subnet")
    elif $value == null then r::unknown("no /proc/sys/net/ipv4/conf/\($netdev)/\($want.key)")
    else r::either($want.good | index([$value]) != null; "\($value), with \($near | join(", ")) in the same subnet"; $value) end
  | r::finding($want.key | gsub("_"; "-"); $netdev;
      { severity: "required", wanted: ($want.good | map(tostring) | join(" or ")), why: $want.why, source: ip_sysctl,
        remedy: "host_tune_sysctls: {net.ipv4.conf.all.\($want.key): \($want.set)}, or sysctl -w net.ipv4.conf.all.\($want.key)=\($want.set)" });

# ---- all --------------------------------------------------------------------------------------------------------

def findings($raw; $host; $devices):
  ( $devices[] | select(.rdma) as $d | $d
    | r::text($raw; $d.dir + "/link_layer") as $layer
    | path_mtu($raw; $d; $host), gid($raw; $d; $layer),
      if $layer == "Ethernet" and $d.netdev != null then gid_address($raw; $d) else empty end ),
  ( r::interfaces($devices)[].netdev | select(r::there($raw; .)) | interface_mtu($raw; .; $host), arp($raw; .) );
