# Who else can use the RDMA devices of a machine, and who is known to it: namespaces, virtual functions, partitions, neighbours.
import "common" as c;
import "hosts/machine_read" as m;

# What is only shown, and compared between hosts.
def shown($id; $device; $value; $found; $why; $source):
  m::finding($id;
    { $device, $value, $found, status: (if $value == null then "unknown" else "info" end), $why, $source,
      remedy: "Set it alike on all hosts" });

# ib_core's parameter follows `rdma system set netns` (drivers/infiniband/core/device.c, ib_devices_shared_netns).
def namespaces($raw):
  m::file($raw; "/sys/module/ib_core/parameters/netns_mode") as $mode
  | select($mode != null)
  | ({Y: "shared", N: "exclusive"}[$mode]) as $value
  | shown("rdma-namespaces"; null; $value; $value // "cannot be read";
      "exclusive devices are seen in one network namespace only, so containers may see none"; "rdma-system(8), netns");

def virtual($raw):
  $raw.files | keys_unsorted[] | capture("^/sys/class/infiniband/(?<d>[^/]+)/device/sriov_totalvfs$").d | . as $device
  | "/sys/class/infiniband/\($device)/device/sriov_" as $sriov
  | m::file_number($raw; $sriov + "numvfs") as $now | m::file_number($raw; $sriov + "totalvfs") as $most
  | shown("virtual-functions"; $device; $now; if $now == null then "cannot be read" else "\($now) of \($most // "?")" end;
      "virtual functions share the card's link and caches with the test"; "Linux, Documentation/ABI/testing/sysfs-bus-pci");

# ip -j link -> "trust off, spoofchk on 3 of 4"; null: no answer that can be read (iproute2, ip/ipaddress.c, print_vfinfo)
def rights:
  [strings | c::parsed | arrays[0] | objects | .vfinfo_list | arrays | map(objects)] | .[0]
  | if . == null or . == [] then null
    else
      . as $all
      | [ "trust", "spoofchk" | . as $key | [$all[][$key] | booleans] as $told
          | ([$told[] | select(.)] | length) as $on
          | select($told != [])
          | $key + if $on == 0 then " off" elif $on == ($told | length) then " on" else " on for \($on) of \($told | length)" end ]
      | if . == [] then null else join(", ") end end;

def virtual_rights($raw):
  $raw.commands | to_entries[] | select(.key | startswith("virtual ")) | .key[8:] as $port
  | .value as $said | (if $said.exit == 0 then $said.stdout | rights else null end) as $rights
  | shown("virtual-function-rights"; $port; $rights;
      $rights // if $said.exit == 0 then "ip names no virtual function of \($port)" else $said | m::refusal("ip") end;
      "a function without trust, or with a check of its addresses, may lose packets of bonds and containers";
      "ip-link(8), vf trust and spoofchk")
  | .missing = ($said | m::missing("ip"));

# Bit 15 of a key is full membership (InfiniBand Architecture, volume 1, 10.9.2).
def partitions($raw):
  [ $raw.files | to_entries[] | select(.key | contains("/pkeys/"))
    | (.key | capture("^/sys/class/infiniband/(?<device>[^/]+)/ports/(?<port>[0-9]+)/pkeys/(?<index>[0-9]+)$")) + {value: (.value | m::trimmed)} ]
  | group_by([.device, .port])[]
  | (map(.value // "?") | unique | join(", ")) as $keys
  | shown("partitions"; "\(.[0].device)"; $keys; "port \(.[0].port): \($keys)";
      "hosts reach each other only in a partition that both have, one of them as full member";
      "InfiniBand Architecture, volume 1, partitioning; opensm's partitions.conf");

def findings($host):
  . as $raw | namespaces($raw), virtual($raw), virtual_rights($raw), partitions($raw);

# ---- neighbours: what all hosts of a fabric need --------------------------------------------------------------------

# Above this many hosts a table of the kernel's own size (1,024) is sure to be full with two NICs: Linux, net/ipv4/arp.c.
def many: 500;

# The families of the addresses by which RoCE finds its peers: a GID is an IPv6 address, or holds one of IPv4.
def families($raw):
  [$raw.files | to_entries[] | select(.key | test("^/sys/class/infiniband/.*/gids/[0-9]+$")) | .value | strings
   | select(test("^(fe80:|(0000:){7}0000)") | not) | if startswith("0000:0000:0000:0000:0000:ffff:") then "IPv4" else "IPv6" end]
  | unique | if . == [] then ["IPv4"] else . end;

# $hosts: [{host, raw}] of one fabric. Each interface may know each address of the others, with room for as many again.
def between($hosts):
  ($hosts | length) as $count
  | ([$hosts[].host.devices // [] | length] | max) as $rails
  | ($count * ([$rails, 1] | max) * 2) as $needed
  | if $count < 2 or $hosts[0].host.fabric == "loopback" then empty
    else
      $hosts[] | .raw as $raw
      | [ {name: "IPv4", path: "/proc/sys/net/ipv4/neigh/default/gc_thresh3"}, {name: "IPv6", path: "/proc/sys/net/ipv6/neigh/default/gc_thresh3"}
          | .most = m::file_number($raw; .path) ] as $tables
      # a kernel may have no IPv6
      | [$tables[] | select(.name == "IPv4" or .most != null)] as $tables
      | [$tables[] | select(.most == null or .most < $needed).name] as $short
      # only RoCE finds its peers by these tables
      | families($raw) as $families
      | m::finding("neighbours";
          { host: .host.name,
            severity: (if $count > many and .host.fabric == "roce" and ($short == [] or any($short[]; . as $one | $families | index($one) != null))
                       then "required" else "advisory" end),
            status: (if any($tables[]; .most == null) then "unknown" elif all($tables[]; .most >= $needed) then "ok" else "bad" end),
            found: ($tables | map("\(.name) \(.most | if . == null then "cannot be read" else c::whole end)") | join(", ")),
            wanted: "at least \($needed | c::whole): twice \($count) hosts x \([$rails, 1] | max | c::plural("rail"))",
            why: "a full neighbour table drops packets to hosts that it does not know: connections fail at random",
            remedy: "Set host_tune_sysctls: {net.ipv4.neigh.default.gc_thresh3: \($needed)}, of ipv6, too, and gc_thresh2 below it",
            source: "Linux, Documentation/networking/ip-sysctl.rst, neigh/default/gc_thresh3" })
    end;
