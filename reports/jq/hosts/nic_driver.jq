# What drives each NIC, and how: firmware, driver, rings, coalescing, offloads -> findings.
import "common" as c;
import "hosts/nic_read" as r;

# "driver: mlx5_core\nversion: 5.8-3.0.7\nfirmware-version: 22.39.1002 (MT_0000000359)" -> {driver, version, "firmware-version"}
def driver($raw; $netdev):
  if $netdev == null then {}
  else [ r::said($raw; "driver \($netdev)") | strings | split("\n")[] | capture("^(?<key>[a-z-]+): *(?<value>.*)$")
         | select(.value != "") ] | from_entries end;

# A text, or one for each kind of card: {MT_0000000359: 22.39.1002, BCM57508: ...}
def wanted_firmware($host; $board; $model):
  $host.wanted.firmware
  | if type == "object" then .[$board // ""] // .[$model // ""] elif type == "number" then tostring else . end;

def firmware($raw; $d; $host):
  ("/sys/class/infiniband/\($d.name)/") as $dir
  | r::text($raw; $dir + "board_id") as $board | r::text($raw; $dir + "hca_type") as $model
  | (r::text($raw; $dir + "fw_ver") // driver($raw; $d.netdev)["firmware-version"]) as $found
  | wanted_firmware($host; $board; $model) as $wanted
  | ( if $found == null or $found == "0.0.0" then
        if $host.scope != "hardware" then r::not_applicable("a device without firmware")
        else r::unknown("neither \($dir)fw_ver nor ethtool -i says it") end
      # ethtool adds more behind it: the board, the boot image
      else r::as_wanted($wanted; $found == $wanted or ($found | startswith("\($wanted) ")); $found; $found) end
      | r::finding("firmware"; $d.name;
          { severity: "advisory", $wanted, source: "host_check_firmware", why: "cards of other firmware have other faults and other defaults",
            remedy: "Update the card's firmware (mlxfwmanager, niccli or bnxtnvm, nvmupdate64e; devlink dev flash), then reset it" }) ),
    ( if $board == null and $model == null then r::not_applicable("the driver tells no board")
      else [$model, $board | values | .[0:80]] | join(", ") | . as $text | r::result("info"; $text; $text) end
      | r::finding("board"; $d.name;
          { severity: "advisory", wanted: null, why: "other cards have other firmware, ports and limits",
            source: "Linux, Documentation/ABI/stable/sysfs-class-infiniband", remedy: "Measure hosts with other cards as a group of their own" }) );

# The vendor's packages replace the kernel's modules and give them a version of their own; the kernel's show its own.
def driver_finding($raw; $d):
  driver($raw; $d.netdev) as $said
  | r::text($raw; "/proc/sys/kernel/osrelease") as $kernel
  | ([$raw.links["/sys/bus/pci/devices/\($d.function)/driver"] | strings | split("/") | last] | .[0]) as $linked
  | ($said.driver // $linked) as $name
  | (r::text($raw; "/sys/module/\($name)/version") // $said.version) as $version
  | ([r::said($raw; "ofed") | strings | rtrimstr(":")] | .[0]) as $ofed
  | if $name == null then r::unread($raw; "driver \($d.netdev // "-")")
    else
      (if $version == null then "version not known" elif $version == $kernel then "of the kernel" else $version[0:80] end) as $origin
      | r::result("info"; "\($name), \($origin)" + if $ofed == null then "" else "; \($ofed[0:80])" end; "\($name) \($origin)") end
  | r::finding("driver"; $d.name;
      { severity: "advisory", wanted: null, why: "the vendor's driver and the kernel's differ in speed and in defaults",
        source: "ethtool -i, /sys/module/DRIVER/version, ofed_info -s", remedy: "Install the same driver on all hosts" });

# ---- rings, coalescing, offloads --------------------------------------------------------------------------------

# JSON of newer ethtool, else null
def one_object: c::parsed | if type == "array" and (.[0] | type) == "object" then .[0] else null end;

# ethtool -g, as JSON {"rx-max": 8192, "rx": 1024, ...} or as two tables (ethtool, netlink/rings.c and ethtool.c)
def rings:
  one_object // ( split("Current hardware settings:")
    | map([ split("\n")[] | capture("^(?<key>RX|TX):\\s+(?<value>[0-9]+)\\s*$")
            | {key: (.key | ascii_downcase), value: (.value | tonumber)} ] | from_entries)
    | if length != 2 then {} else {"rx-max": .[0].rx, "tx-max": .[0].tx, rx: .[1].rx, tx: .[1].tx} end );

def ring($raw; $netdev; $rings; $way; $wanted):
  ([$rings[$way], $rings["\($way)-max"]] | map(if type == "number" then . else null end)) as [$now, $most]
  | (if $wanted == "max" then $most elif $wanted == null then null
     else [$wanted, $most | values] | min end) as $least
  | if $now == null then
      if r::command($raw; "rings \($netdev)").exit == null then r::unread($raw; "rings \($netdev)")
      else r::not_applicable("the driver tells no ring sizes") end
    else r::as_wanted($least; $now >= $least; "\($now)" + if $most == null then "" else " of \($most)" end; $now) end
  | r::finding("ring-\($way)"; $netdev;
      { severity: "advisory", wanted: ($least | if . == null then null else "at least \(.)" end), source: "host_check_ring_\($way)",
        why: "TCP drops what finds no place in a ring; RDMA does not use it", remedy: "ethtool -G \($netdev) \($way) \($least // $most // "N")" });

# ethtool -c: "Adaptive RX: on  TX: off" and "rx-usecs: 8"; as JSON also {"rx": true} for the first (netlink/coalesce.c)
def switch: if . == true then "on" elif . == false then "off" else tostring end;
def coalescing:
  (one_object // null) as $json
  | if $json != null then
      $json | del(.ifname)
      | with_entries(select(.value != null) | .key |= ({rx: "adaptive-rx", tx: "adaptive-tx"}[.] // .) | .value |= switch)
    else
      ([capture("Adaptive RX: (?<rx>on|off|n/a)\\s+TX: (?<tx>on|off|n/a)") | {"adaptive-rx": .rx, "adaptive-tx": .tx}] | .[0] // {})
      + ([split("\n")[] | capture("^(?<key>[a-z][a-z-]+): *(?<value>[0-9]+|on|off)\\s*$")] | from_entries)
      | with_entries(select(.value != "n/a")) end;

def coalescing_finding($raw; $netdev; $host):
  r::said($raw; "coalescing \($netdev)") as $said
  | ($said // "" | coalescing) as $found
  | ($host.wanted.coalescing // {} | with_entries(.value |= switch)) as $wanted
  | [$wanted | to_entries[] | select($found[.key] != .value) | "\(.key) \($found[.key] // "not there")"] as $other
  | ([ "adaptive-rx", "adaptive-tx", "rx-usecs", "rx-frames", "tx-usecs", "tx-frames" | select($found[.] != null)
       | "\(.) \($found[.])" ] | join(", ")) as $text
  | if $said == null then
      if r::command($raw; "coalescing \($netdev)").exit == null then r::unread($raw; "coalescing \($netdev)")
      else r::not_applicable("the driver has no coalescing") end
    elif $found == {} then r::unknown("ethtool -c said nothing that can be read")
    elif $wanted == {} then r::result("info"; $text; $text)
    else r::either($other == []; if $other == [] then $text else $other | join(", ") end; $text) end
  | r::finding("coalescing"; $netdev;
      { severity: "advisory", wanted: (if $wanted == {} then null else [$wanted | to_entries[] | "\(.key) \(.value)"] | join(", ") end),
        source: "host_check_coalescing", why: "a card that waits before it interrupts adds the wait to every latency in event mode, and to TCP's",
        remedy: "ethtool -C \($netdev) \(if $wanted == {} then "NAME VALUE" else [$wanted | to_entries[] | "\(.key) \(.value)"] | join(" ") end)" });

# Those that change what TCP beside RDMA costs. ethtool -k as JSON {"x": {"active": true}}, as text "x: on [fixed]".
def offloads:
  ["rx-checksumming", "tx-checksumming", "tcp-segmentation-offload", "generic-receive-offload", "large-receive-offload",
   "receive-hashing", "ntuple-filters"];
def features:
  one_object as $json
  | if $json != null then $json | map_values(if type == "object" then .active | switch else null end)
    else [split("\n")[] | capture("^(?<key>[a-z][a-z0-9-]+): (?<value>on|off)\\b")] | from_entries end;

def offload_finding($raw; $netdev):
  (r::said($raw; "features \($netdev)") // "" | features) as $found
  | ([offloads[] | select($found[.] != null) | "\(.) \($found[.])"] | join(", ")) as $text
  | if $text == "" then r::unread($raw; "features \($netdev)") else r::result("info"; $text; $text) end
  | r::finding("offloads"; $netdev;
      { severity: "advisory", wanted: null, source: "ethtool -k", why: "TCP's share of a comparison depends on them; RDMA does not",
        remedy: "ethtool -K \($netdev) NAME on" });

def findings($raw; $host; $devices):
  ( $devices[] | select(.rdma or .chain != []) as $d | $d | firmware($raw; $d; $host), driver_finding($raw; $d) ),
  ( r::interfaces($devices)[].netdev | select(r::there($raw; .)) | . as $netdev
    | (r::said($raw; "rings \($netdev)") // "" | rings) as $rings
    | ring($raw; $netdev; $rings; "rx"; $host.wanted.ring_rx), ring($raw; $netdev; $rings; "tx"; $host.wanted.ring_tx),
      coalescing_finding($raw; $netdev; $host), offload_finding($raw; $netdev) );
