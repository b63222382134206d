# The link of each NIC: there, up, of the right kind, as fast as it can be, and free of errors -> findings.
import "common" as c;
import "hosts/nic_read" as r;

def sysfs: "Linux, Documentation/ABI/stable/sysfs-class-infiniband";

def needs_rdma($host): $host.fabric == "roce" or $host.fabric == "infiniband";

def is_there($raw; $d; $host):
  if $d.rdma then r::result("ok"; "found"; null)
  elif r::there($raw; $d.name) then
    r::either(needs_rdma($host) | not; "an interface" + if needs_rdma($host) then ", no RDMA device" else "" end; null)
  else r::result("bad"; "not found; this host has: \(r::listed($raw) | join(", ") | if . == "" then "no RDMA device" else . end)"; null) end
  | r::finding("device"; $d.name;
      { severity: "required", wanted: "the RDMA devices that perch_devices names",
        why: "a missing device cannot be measured", source: sysfs,
        remedy: "Load the driver (mlx5_ib, bnxt_re, irdma, rdma_rxe), or correct perch_devices; rdma link and lspci -nn list devices" });

def none($host):
  if needs_rdma($host) then r::result("bad"; "no RDMA device"; null)
  # TCP alone needs none
  elif $host.scope == "hardware" then r::result("info"; "no RDMA device; perch_devices names no device either"; null)
  else r::not_applicable("no RDMA device; perch_devices names no device either") end
  | r::finding("device"; null;
      { severity: "required", wanted: "an RDMA device", why: "a missing device cannot be measured", source: sysfs,
        remedy: "Load the driver (mlx5_ib, bnxt_re, irdma, rdma_rxe); rdma link and lspci -nn list devices" });

# "4: ACTIVE" and "5: LinkUp"
def state($raw; $d):
  r::text($raw; $d.dir + "/state") as $state | r::text($raw; $d.dir + "/phys_state") as $physical
  | if $state == null then r::unknown("no \($d.dir)/state")
    else r::either(($state | test("^4:")) and ($physical == null or ($physical | test("^5:"))); "\($state), \($physical // "-")"; null) end
  | r::finding("port-state"; $d.name;
      { severity: "required", wanted: "4: ACTIVE, 5: LinkUp", why: "only an active port carries traffic", source: sysfs,
        remedy: (if $d.netdev != null then "Run ip link set \($d.netdev) up; then check cable, transceiver and switch port"
                 else "Check cable and switch port; a port that stays in INIT has no subnet manager" end) });

# The layer is what decides whether GIDs and PFC or LIDs and a subnet manager matter.
def layer($raw; $d; $host):
  ({roce: "Ethernet", infiniband: "InfiniBand"}[$host.fabric // ""]) as $wanted
  | r::text($raw; $d.dir + "/link_layer") as $found
  | if $found == null then r::unknown("no \($d.dir)/link_layer") else r::as_wanted($wanted; $found == $wanted; $found; $found) end
  | r::finding("link-layer"; $d.name;
      { severity: "required", $wanted, source: sysfs,
        why: "a port of the other type cannot communicate on this fabric",
        remedy: "Set the port's type (mlxconfig -d DEVICE set LINK_TYPE_P1=2 for Ethernet, 1 for InfiniBand) and reboot, or correct perch_fabric" });

# ---- speed ------------------------------------------------------------------------------------------------------

# "100 Gb/sec (4X EDR)" -> {gbit, lanes}
def rate: [strings | capture("^(?<gbit>[0-9.]+) Gb/sec \\((?<lanes>[0-9]+)X") | map_values(tonumber + 0)] | .[0];

# The fastest of the supported modes that ethtool lists, in Gb/s: "100000baseCR4/Full". Those advertised come later.
def fastest_mode:
  [strings | capture("Supported link modes:(?<m>[\\s\\S]*?)Supported pause").m
   | match("([0-9]{2,7})base"; "g").captures[0].string | tonumber / 1000] | max;

# What an InfiniBand port says that it can do (infiniband-diags; libibmad, src/dump.c): "LinkWidthSupported:......1X or 4X",
# "LinkSpeedExtSupported:...14.0625 Gbps or 25.78125 Gbps". A lane's signals are coded; sysfs' rate rounds down to 14, 25, 50, 100.
def portinfo($key): [strings | split("\n")[] | capture("^" + $key + ":\\.*(?<v>.*)$").v] | .[0];
def widest: [portinfo("LinkWidthSupported") | strings | match("([0-9]+)X"; "g").captures[0].string | tonumber] | max;
def lane: if . == null or . <= 10 then . elif . < 26 then floor else . / 1.0625 end;
def fastest_lane:
  . as $info
  | [ "LinkSpeedSupported", "LinkSpeedExtSupported", "LinkSpeedExtSupported2" | . as $key | $info | portinfo($key) | strings
      | match("([0-9.]+) Gbps"; "g").captures[0].string | tonumber + 0 ] | max | lane;
def fastest_port: widest as $lanes | fastest_lane as $lane | if $lanes == null or $lane == null then null else $lanes * $lane end;

# Gb/s of the interface as sysfs or ethtool say it; both say nothing, or -1, where there is no link or no hardware.
def interface_gbit($raw; $netdev):
  [ r::number($raw; "/sys/class/net/\($netdev)/speed"),
    (r::said($raw; "settings \($netdev)") | strings | capture("\\n\\s*Speed: (?<v>[0-9]+)Mb/s").v | tonumber) ]
  | map(select(. != null and . > 0)) | if . == [] then null else .[0] / 1000 end;

# The links of a bond, [{name, up, gbit}]; [] is no bond. Its own speed is their sum (Linux, bond_ethtool_get_link_ksettings()).
def members($raw; $netdev):
  "/sys/class/net/\($netdev)/" as $dir
  | if $netdev == null or r::text($raw; $dir + "bonding/mode") == null then []
    else [ $raw.links | keys[] | select(startswith($dir + "lower_")) | . as $lower
           | { name: .[($dir + "lower_" | length):], up: (r::text($raw; $lower + "/operstate") == "up"),
               gbit: (r::number($raw; $lower + "/speed") | if . != null and . > 0 then . / 1000 else null end) } ] end;

# {gbit, lanes, most, most_lanes}; null is not known. Of a bond: its slowest link that is up.
def link($raw; $d):
  r::text($raw; $d.dir + "/link_layer") as $layer
  | (r::text($raw; $d.dir + "/rate") | rate) as $rate
  | if $layer == "InfiniBand" then
      r::said($raw; "portinfo \($d.name)/\($d.port)") as $info
      | {gbit: $rate.gbit, lanes: $rate.lanes, most: ($info | fastest_port), most_lanes: ($info | widest)}
    elif $d.netdev == null then {gbit: (if $d.software then null else $rate.gbit end), lanes: null, most: null, most_lanes: null}
    else { gbit: (([members($raw; $d.netdev)[] | select(.up) | .gbit | values] | min)
                  // interface_gbit($raw; $d.netdev) // if $d.software then null else $rate.gbit end), lanes: null,
           most: (r::said($raw; "settings \($d.netdev)") | fastest_mode), most_lanes: null } end;

# Why the rates of a port are unknown: {why, missing}. Its tool is missing, failed, hung or printed rubbish. Null where the tool
# answered that there is nothing to tell ("Not reported" of a bond), where the driver cannot (EOPNOTSUPP), and in a guest.
def unasked($raw; $d):
  (if r::text($raw; $d.dir + "/link_layer") == "InfiniBand" then "portinfo \($d.name)/\($d.port)" else "settings \($d.netdev)" end) as $name
  | r::command($raw; $name) as $command
  | if $command == null or r::is_guest($raw; $d.chain[0])
       or (r::said($raw; $name) // "" | test("(^|\n)[ \t]*(Supported link modes:|LinkWidthSupported:)"))
       or (r::is_tried($raw; $name) and ([$command.stderr | strings] | any(test("not supported"; "i")))) then null
    else {why: r::silent($raw; $name), missing: r::missing($raw; $name)} end;

def speed($raw; $d; $host):
  link($raw; $d) as $link | $host.link_gbit_s as $wanted
  | (if $link.gbit == null then null
     else "\($link.gbit) Gb/s" + if $link.most == null then "" else " of \($link.most) that the port supports" end end) as $found
  | if $found == null then
      if $host.scope != "hardware" then r::not_applicable("a software link has no speed")
      else r::unknown("neither sysfs nor ethtool reports a speed") end
    elif $wanted != null then r::either($link.gbit >= $wanted; $found; $link.gbit)
    elif $link.most == null and $host.scope == "hardware" and unasked($raw; $d) != null then
      unasked($raw; $d) as $no | r::result("unknown"; "\($found); the supported speed is not known: \($no.why)"; $link.gbit) + {missing: $no.missing}
    else r::as_wanted($link.most; $link.gbit >= $link.most; $found; $link.gbit) end
  | r::finding("link-speed"; $d.name;
      { severity: "required", wanted: (($wanted // $link.most) | if . == null then null else "\(.) Gb/s" end),
        why: "a slower link caps every bandwidth, and other checks do not show it",
        source: (if $wanted != null then "perch_link_gbit_s" else "the port's supported speeds (ethtool or smpquery portinfo)" end),
        remedy: (if .status == "unknown" then "Set perch_link_gbit_s to the rate that was bought; or see why ethtool or smpquery does not answer"
                 else "Check cable, transceiver and switch port; if the link was bought slower, set perch_link_gbit_s" end) });

# value: its links that are up
def bond($raw; $d):
  members($raw; $d.netdev) as $members
  | select($members != [])
  | [$members[] | select(.up | not) | .name] as $down
  | (($members | length) - ($down | length)) as $up
  | r::either($down == []; "\($up) of \($members | length) up" + if $down == [] then "" else "; down: \($down | join(", "))" end; $up)
  | r::finding("bond-links"; $d.name;
      { severity: "required", wanted: "all \($members | length)", source: "Linux, Documentation/networking/bonding.rst",
        why: "a link that is down takes its share of the bandwidth, and the others hide it",
        remedy: "Check its cable, transceiver and switch port; or remove it from \($d.netdev)" });

# InfiniBand alone tells its lanes. A splitter cable of HDR has two, on purpose.
def width($raw; $d; $host):
  link($raw; $d) as $link
  | ($link.most_lanes // 4) as $wanted
  | if $link.lanes == null then r::unknown("no \($d.dir)/rate")
    elif $link.lanes >= $wanted then r::result("ok"; "\($link.lanes)X"; $link.lanes)
    elif $link.lanes == 2 and $link.most_lanes == null and $host.link_gbit_s == null and $host.scope == "hardware" and unasked($raw; $d) != null then
      unasked($raw; $d) as $no | r::result("unknown"; "2X; the supported width is not known: \($no.why)"; 2) + {missing: $no.missing}
    elif $link.lanes == 2 then r::result("info"; "2X, as behind a splitter cable"; 2)
    else r::result("bad"; "\($link.lanes)X"; $link.lanes) end
  | r::finding("link-width"; $d.name;
      { severity: "required", wanted: "\($wanted)X", source: "InfiniBand, PortInfo LinkWidthSupported (smpquery portinfo)",
        why: "each lane that is down takes its share of the bandwidth",
        remedy: "Reseat or replace the cable; ibportstate LID PORT shows what both ends support" });

def subnet_manager($raw; $d):
  r::text($raw; $d.dir + "/sm_lid") as $sm | r::text($raw; $d.dir + "/lid") as $lid
  | if $sm == null or $lid == null then r::unknown("no \($d.dir)/sm_lid or lid")
    else r::either(($sm | test("^0x0*$") | not) and ($lid | test("^0x0*$|^0xffff$"; "i") | not); "LID \($lid), subnet manager at \($sm)"; null) end
  | r::finding("subnet-manager"; $d.name;
      { severity: "required", wanted: "a LID and a subnet manager", source: sysfs,
        why: "ports need a subnet manager to become active and to find paths",
        remedy: "Start a subnet manager (opensm, or the switch's own), then check with sminfo" });

# ---- errors -----------------------------------------------------------------------------------------------------

# From when on a count is reported. Source: rdma-core, infiniband-diags/etc/error_thresholds.
def thresholds:
  { symbol_error: 10, link_error_recovery: 10, link_downed: 10, port_rcv_errors: 10, port_rcv_remote_physical_errors: 100,
    port_rcv_switch_relay_errors: 100, port_xmit_discards: 100, port_xmit_constraint_errors: 100, port_rcv_constraint_errors: 100,
    local_link_integrity_errors: 10, excessive_buffer_overrun_errors: 10, VL15_dropped: 100 };

# Counters of a folder -> [{name, count, gain}]; gain: what came while host-check ran.
def counts($raw; $dir; $names):
  [ $names[] as $name | ($dir + $name) as $path | r::number($raw; $path) as $count | select($count != null)
    | ([$raw.later[$path] | r::trimmed] | .[0] | r::whole) as $later | {$name, $count, gain: (($later // $count) - $count)} ];
# Those that are no number, were gone at the end, or were smaller then: a counter that was reset or has wrapped.
# $has_all: whether the kernel has all of them.
def damaged($raw; $dir; $names; $has_all):
  [ $names[] as $name | ($dir + $name) as $path | select($has_all or $raw.files[$path] != null)
    | r::number($raw; $path) as $count | ([$raw.later[$path] | r::trimmed] | .[0] | r::whole) as $later
    | select($count == null or ((($raw.later // {}) != {}) and ($later == null or $later < $count))) | $name ];
def shown: map("\(.name) \(.count)" + if .gain > 0 then " (+\(.gain) during the check)" else "" end) | join(", ");

# What has been counted since the start may be of last year's cable; what is counted at this moment is not.
def errors($id; $device; $counts; $damaged; $high; $about):
  ($counts | map(select(.gain > 0))) as $now
  | if $counts == [] then r::unknown("no counters")
    elif $now != [] then r::result("bad"; $now | shown; null)
    elif $high == [] and $damaged != [] then r::unknown("\($damaged | c::names(4)): not read as a number, or reset during the check")
    else r::either($high == []; if $high == [] then "below the limits" else $high | shown end; null) end
  | r::finding($id; $device; $about + {severity: (if $now != [] then "required" else "advisory" end)});

def port_errors($raw; $d):
  counts($raw; $d.dir + "/counters/"; thresholds | keys_unsorted) as $counts
  | errors("port-errors"; $d.name; $counts; damaged($raw; $d.dir + "/counters/"; thresholds | keys_unsorted; false); $counts | map(select(.count >= thresholds[.name]));
      { wanted: "below perfquery's limits, and no increase during the check", source: "rdma-core, infiniband-diags/etc/error_thresholds",
        why: "a damaged packet is sent again, which shows in the latency tail",
        remedy: "Reseat or replace the cable, run perfquery -R, and watch whether the counters rise again" });

def interface_counters:
  ["rx_errors", "tx_errors", "rx_crc_errors", "rx_length_errors", "rx_over_errors", "rx_frame_errors", "rx_fifo_errors", "rx_missed_errors",
   "tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors"];

# One frame in ten million: IEEE 802.3's objective is a bit error in 10^12, which is one frame of 9,000 bytes in 14 million.
def interface_errors($raw; $netdev):
  ("/sys/class/net/\($netdev)/statistics/") as $dir
  | counts($raw; $dir; interface_counters) as $counts
  | ([r::number($raw; $dir + "rx_packets"), r::number($raw; $dir + "tx_packets")] | map(. // 0) | add) as $packets
  | errors("interface-errors"; $netdev; $counts; damaged($raw; $dir; interface_counters; true); $counts | map(select(.count > $packets * 1e-7));
      { wanted: "at most one in ten million frames, and no increase during the check", source: "IEEE 802.3, bit error ratio of 10^-12",
        why: "a damaged frame is lost, and RoCE sends it and all later ones again",
        remedy: "Reseat or replace cable and transceiver; ethtool -S \($netdev) and ethtool -m \($netdev) show details" });

def carrier($raw; $netdev):
  ("/sys/class/net/\($netdev)/") as $dir
  | r::text($raw; $dir + "operstate") as $state | r::text($raw; $dir + "carrier") as $carrier
  | ( if $state == null then r::unknown("no \($dir)operstate")
      # some drivers never leave "unknown"; the carrier decides then
      else r::either($state == "up" or ($state == "unknown" and $carrier == "1"); "\($state), carrier \($carrier // "not known")"; null) end
      | r::finding("interface-state"; $netdev;
          { severity: "required", wanted: "up, carrier 1", why: "an interface that is down carries no traffic",
            source: "Linux, Documentation/ABI/testing/sysfs-class-net", remedy: "Run ip link set \($netdev) up; then check cable and switch port" }) ),
    ( r::number($raw; $dir + "carrier_changes") as $changes | r::number($raw; $dir + "carrier_down_count") as $downs
      | if $changes == null then r::unknown("no \($dir)carrier_changes")
        else r::result("info"; "\($changes)" + if $downs == null then "" else ", \($downs) of them down" end; null) end
      | r::finding("carrier-changes"; $netdev;
          { severity: "advisory", wanted: null, why: "a link that goes down loses outstanding packets",
            source: "Linux, Documentation/ABI/testing/sysfs-class-net", remedy: "Run dmesg -T | grep \($netdev) to see when" }) );

# ---- all --------------------------------------------------------------------------------------------------------

def of_port($raw; $d; $host):
  state($raw; $d), layer($raw; $d; $host), speed($raw; $d; $host), bond($raw; $d),
  (select(r::text($raw; $d.dir + "/link_layer") == "InfiniBand") | width($raw; $d; $host), subnet_manager($raw; $d)),
  port_errors($raw; $d);

def findings($raw; $host; $devices):
  if $devices == [] then none($host)
  else
    # a Cassini NIC's own link is slingshot.jq's
    ( $devices[] | select(.cxi | not) | . as $d | is_there($raw; $d; $host),
      if $d.rdma then of_port($raw; $d; $host)
      elif $d.netdev != null and r::there($raw; $d.netdev) then speed($raw; $d; $host), bond($raw; $d) else empty end ),
    ( r::interfaces($devices)[].netdev | select(r::there($raw; .)) | carrier($raw; .), interface_errors($raw; .) ),
    ( $devices[].named | strings | select(r::there($raw; .) | not) | . as $netdev
      | r::result("bad"; "no interface \($netdev)"; null)
      | r::finding("interface-state"; $netdev;
          { severity: "required", wanted: "the interface that perch_devices names", why: "a missing interface cannot be measured",
            source: "Linux, Documentation/ABI/testing/sysfs-class-net", remedy: "Correct netdev in perch_devices; ip link lists the interfaces" }) )
  end;
