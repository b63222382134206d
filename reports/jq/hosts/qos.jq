# What a host says of flow control, classes and congestion notification -> findings.
# Of each RDMA device: of the interfaces that carry it (dcb, ethtool), then of itself (traffic class, path, ECN).
import "hosts/nic_read" as r;
import "hosts/unread" as unread;
import "hosts/qos_dcb" as d;
import "hosts/qos_pause" as pause;
import "hosts/qos_path" as path;
import "hosts/qos_ecn" as ecn;

def numbers_text: if . == [] then "off" else "on for " + d::listed end;
# ---- what is wanted: a value that cannot be counts as none, and is said -----------------------------------------------

def priorities: type == "array" and all(.[]; d::is_priority);
def indices($last; value):
  type == "object" and all(to_entries[]; (.key | d::whole) as $i | $i != null and $i <= $last and (.value | value));
def is_valid($name):
  if $name == "pfc_priorities" or $name == "ecn_priorities" then priorities
  elif $name == "roce_tos" then type == "number" and . >= 0 and . <= 255 and . == floor
  elif $name == "dscp_priority" then indices(63; d::is_priority)
  elif $name == "ets" then
    type == "object" and (keys - ["prio_tc", "tc_tsa", "tc_bw"]) == [] and all(.[]; indices(7; true))
  elif $name == "pause" then . == "on" or . == "off"
  elif $name == "dscp_trust" then . == "dscp" or . == "pcp"
  elif $name == "dcbx" then . == "host" or . == "firmware"
  elif $name == "pfc_watchdog" then type == "boolean"
  else true end;
def invalid: to_entries[] | select(.value != null) | select(.key as $name | .value | is_valid($name) | not);
def wrong($wanted):
  $wanted | invalid
  | { id: "qos-wanted", device: null, status: "bad", severity: "required", value: null,
      found: "host_check_\(.key) is \(.value | tojson | .[0:80])",
      wanted: "priorities and classes 0 to 7, DSCPs 0 to 63, traffic classes 0 to 255; words as in the role's README",
      why: "Perch does not judge an invalid value",
      remedy: "correct this variable in the inventory, or the host_tune variable behind it",
      source: "roles/host_check/README.md" };

def no_pfc($s):
  if $s.unsupported then "the driver of \($s.net) has no data center bridging (\($s.silence))" else $s.silence end;

# status by what is wanted: required where the inventory says so, else shown alone
def wish($s; $want; $found; ok):
  { missing: $s.missing, severity: (if $want == null then "advisory" else "required" end),
    status: (if $found == null then "unknown" elif $want == null then "info" elif ok then "ok" else "bad" end) };

# ---- an interface -----------------------------------------------------------------------------------------------------

# A NIC whose PFC cannot be read: not known on hardware, whatever is wanted; a software device may well have none.
def pfc($s; $host):
  $host.wanted.pfc_priorities as $want
  | wish($s; $want; $s.pfc; ($s.pfc | sort) == ($want // [] | sort))
  + { id: "qos-pfc", device: $s.net, value: (if $s.pfc == null then null else $s.pfc | numbers_text end),
      found: (if $s.pfc == null then no_pfc($s) else "\($s.pfc | numbers_text), by \($s.by)" end),
      wanted: (if $want == null then null else $want | numbers_text end),
      why: "without flow control a full buffer drops packets, and RoCE sends all from there again",
      remedy: ("set host_tune_pfc_priorities; by hand: dcb pfc set dev \($s.net) prio-pfc all:off"
               + ($want // [] | map(" \(.):on") | join(""))),
      source: "IEEE 802.1Q-2018, clause 36; dcb-pfc(8)" }
  | if $s.pfc == null and $s.unsupported and $host.scope != "hardware" and ($want == null or $want == []) then
      .status = "not_applicable" else . end;

def owner($s; $wanted):
  wish($s; $wanted.dcbx; $s.dcbx; $s.dcbx == $wanted.dcbx)
  + { id: "qos-dcbx", device: $s.net, value: $s.dcbx,
      found: (if $s.dcbx == null then $s.silence
              else $s.dcbx + (if $s.agent == "on" then ", the firmware's LLDP agent is on" else "" end)
                   + (if $s.willing == "yes" then ", willing" else "" end) end),
      wanted: $wanted.dcbx,
      why: "the owner of DCBX overrides other settings: firmware applies the switch's, a host keeps its own",
      remedy: (if $s.agent == "on" then
                 "ethtool --set-priv-flags \($s.net) "
                 + if $s.driver == "i40e" then "disable-fw-lldp on" else "fw-lldp-agent off" end
               elif $wanted.dcbx == "firmware" then "mlnx_qos -i \($s.net) -d fw"
               else "dcb dcbx set dev \($s.net) host ieee, or mlnx_qos -i \($s.net) -d os" end),
      source: "dcb-dcbx(8); kernel, Documentation of ice: FW-LLDP" };

# ---- classes

def class_text($s; $p):
  $s.prio_tc[$p] as $tc
  | "priority \($p) in class \($tc)"
    + if $s.tc_tsa == null then ""
      elif $s.tc_tsa[$tc] == "ets" then " (ets \($s.tc_bw[$tc]) %)"
      else " (\($s.tc_tsa[$tc]))" end;

# What keeps the classes from doing what they are for: [text]
def class_faults($s; $lossless):
  ( select($s.tc_tsa != null and $s.tc_bw != null)
    | ([range(8) | select($s.tc_tsa[.] == "ets") | $s.tc_bw[.]] | add) as $sum
    | select($sum != null and $sum != 100) | "the bandwidths of the ets classes sum to \($sum) %" ),
  ( $lossless[] as $p | $s.prio_tc[$p] as $tc
    | [range(8) | select($s.prio_tc[.] == $tc and ([.] | inside($lossless) | not))]
    | select(. != []) | "class \($tc) of priority \($p) is shared with \(d::listed) without PFC" ),
  ( $lossless[] as $p | select($s.tc_tsa != null and $s.tc_bw != null) | $s.prio_tc[$p] as $tc
    | select($s.tc_tsa[$tc] == "ets" and $s.tc_bw[$tc] == 0) | "class \($tc) of priority \($p) has no bandwidth" );

# $want: {prio_tc: {PRIORITY: CLASS}, tc_tsa: {CLASS: WORD}, tc_bw: {CLASS: PERCENT}}, as dcb-ets(8) has it
def class_misses($s; $want):
  ("prio_tc", "tc_tsa", "tc_bw") as $what
  | $want[$what] // {} | to_entries[] | (.key | tostring | d::whole) as $i
  | ($s[$what] | if . != null and $i != null then .[$i] else null end) as $is
  | select($is != .value) | "\($what) \(.key):\($is) instead of \(.value)";

def classes($s; $lossless; $want):
  ([select($s.prio_tc != null) | class_misses($s; $want // {})]) as $misses
  | ([select($s.prio_tc != null) | class_faults($s; $lossless)] | unique) as $faults
  | wish($s; $want; $s.prio_tc; $misses == [])
  + { id: "qos-ets", device: $s.net,
      value: (if $s.prio_tc == null then null
              else "prio_tc \($s.prio_tc | d::row), tsa \($s.tc_tsa // [] | d::row), bw \($s.tc_bw // [] | d::row)" end),
      found: (if $s.prio_tc == null then no_pfc($s)
              else [ (if $lossless == [] then "\($s.prio_tc | unique | length) classes"
                      else $lossless | map(class_text($s; .)) | join(", ") end), $misses[], $faults[] ] | join("; ") end),
      wanted: (if $want != null then $want | tojson
               elif $faults != [] then "a separate class for lossless priorities, and 100 % in all" else null end),
      why: "pauses and bandwidth apply to a whole class, so all its priorities wait together",
      remedy: "set host_tune_ets; by hand: dcb ets set dev \($s.net) prio-tc P:CLASS tc-tsa CLASS:ets tc-bw CLASS:PERCENT",
      source: "IEEE 802.1Q-2018, clause 37; dcb-ets(8)" }
  # faults are bad whatever was wanted; where nothing was, they are advice
  | if $faults != [] and (.status == "info" or .status == "ok") then .status = "bad" | .severity = "advisory" else . end;

# ---- DSCP

# {"24": 3, "25": 3, "26": 3} -> "24-26: 3"
def map_text:
  [to_entries[] | {d: (.key | tonumber), p: .value}] | sort_by(.d)
  | reduce .[] as $one ([]; if length > 0 and .[-1].p == $one.p and .[-1].last + 1 == $one.d then .[-1].last = $one.d
                            else . + [{first: $one.d, last: $one.d, p: $one.p}] end)
  | map("\(.first)\(if .last > .first then "-\(.last)" else "" end): \(.p)")
  | if . == [] then "empty" else join(", ") end;

def trust($s; $want):
  wish($s; $want; $s.trust; $s.trust == $want)
  + { id: "qos-dscp-trust", device: $s.net, found: ($s.trust // no_pfc($s)), value: $s.trust, wanted: $want,
      why: "RoCE v2 packets without a VLAN tag carry their class only in the DSCP",
      remedy: ("set host_tune_dscp_trust; by hand: mlnx_qos -i \($s.net) --trust \($want // "dscp"), or for dscp "
               + "dcb app add dev \($s.net) dscp-prio DSCP:PRIORITY"),
      source: "mlnx_qos --help; dcb-app(8)" };

def dscp_map($s; $want):
  ([$want // {} | to_entries[] | . as $w | ($s.dscp // {})[$w.key | tostring] | select(. != $w.value)
    | "DSCP \($w.key) is \(. // "not mapped") instead of \($w.value)"]) as $misses
  | wish($s; $want; $s.dscp; $misses == [])
  + { id: "qos-dscp-priority", device: $s.net, value: (if $s.dscp == null then null else $s.dscp | map_text end),
      found: (if $s.dscp == null then no_pfc($s) else [($s.dscp | map_text), $misses[]] | join("; ") end),
      wanted: (if $want == null then null else $want | map_text end),
      why: "NIC and switch must map a DSCP to the same priority, or pauses stop the wrong one",
      remedy: "set host_tune_dscp_priority; by hand: dcb app replace dev \($s.net) dscp-prio DSCP:PRIORITY",
      source: "dcb-app(8)" };

# What the inventory says of the fabric beside what the interface does. Limits assume that nothing drops where it says nothing.
def as_said($s; $host):
  $host.traits.lossless as $said
  | select($s.pfc != null and $host.fabric == "roce")
  | select($said != null or ($host.scope == "hardware" and $s.pfc == [] and $host.wanted.pfc_priorities == null))
  | { id: "qos-lossless", device: $s.net, severity: "required", value: null,
      status: (if $said == null then "unknown" elif ($s.pfc == []) == $said then "bad" else "ok" end),
      found: "flow control is \($s.pfc | numbers_text); perch_fabric_traits says \(if $said == null then "nothing" elif $said then "lossless" else "not lossless" end)",
      wanted: (if $said == null then "lossless: true or false" elif $said then "on for a priority" else "off" end),
      why: "limits of drops and retransmissions rest on it",
      remedy: "correct perch_fabric_traits, or the hosts' flow control (host_tune_pfc_priorities)",
      source: "perch_fabric_traits" };

# In a guest a virtual function has no settings of its own, and those of its physical function cannot be seen.
def guest($raw; $s): ecn::pci_of($raw; $s.net) | strings | select(r::is_guest($raw; .));

def interface($raw; $s; $lossless; $host):
  if [guest($raw; $s)] != [] then
    guest($raw; $s) as $function
    | pfc($s; $host) | .status = "not_applicable" | .found = r::guest($function).found
  else
  pfc($s; $host), pause::global_pause($raw; $s.net; $lossless; $host.wanted.pause),
  # of a NIC that has none of it the first finding says all, beside what is wanted
  ( ( owner($s; $host.wanted), classes($s; $lossless; $host.wanted.ets), trust($s; $host.wanted.dscp_trust),
      dscp_map($s; $host.wanted.dscp_priority), pause::buffers($raw; $s.net; $s; $lossless) )
    | select(($s.unsupported and $s.by == null | not) or .severity == "required") ),
  pause::watchdog($raw; $s.net; $host.wanted.pfc_watchdog), pause::counted_pauses($raw; $s.net; $s),
  pause::storm($raw; $s.net), as_said($s; $host) end;

# ---- the host ---------------------------------------------------------------------------------------------------------

def lldpad($raw; $wanted):
  any($raw.files | keys[] | select(endswith("/comm") and test("^/proc/[0-9]+/comm$")); d::file($raw; .) == "lldpad") as $runs
  | { id: "qos-lldpad", device: null, severity: "advisory", value: (if $runs then "runs" else "does not run" end),
      status: (if $runs and $wanted.dcbx == "host" then "bad" else "info" end),
      found: (if $runs then "runs" else "does not run" end),
      wanted: (if $wanted.dcbx == "host" then "does not run, or has the same settings" else null end),
      why: "lldpad overwrites values that dcb or mlnx_qos set",
      remedy: "run systemctl disable --now lldpad, or set the values with lldptool",
      source: "mlnx_qos, its warning; lldpad(8)" };

def not_here($words):
  { id: "qos-device", device: null, status: "not_applicable", severity: "advisory", found: $words, value: null,
    wanted: null, why: "only RoCE needs flow control by priority", remedy: "nothing",
    source: "IEEE 802.1Q-2018, clause 36" };

# The interface of an RDMA device: as the inventory says, else that of its first GID.
def net_of($raw; $device):
  $device.netdev
  // d::file($raw; "/sys/class/infiniband/\($device.name)/ports/\($device.ib_port // 1)/gid_attrs/ndevs/0");

# Those of the plan, or all that were read; an InfiniBand port is none of them.
def devices($raw; $host):
  ( if $host.devices != [] then $host.devices
    else [$raw.files | keys[] | select(endswith("/link_layer")) | capture("^/sys/class/infiniband/(?<name>[^/]+)/ports/1/link_layer$")] end )
  | map(select(d::file($raw; "/sys/class/infiniband/\(.name)/ports/\(.ib_port // 1)/link_layer") != "InfiniBand"));

def of_device($raw; $host; $device; $net):
  [r::carriers($raw; $net)[] | d::settings($raw; .)] as $all
  | ([$all[] | select(.pfc != null)][0] // $all[0]) as $first
  | ($host.wanted.pfc_priorities // $first.pfc // []) as $lossless
  | {first: $first, lossless: $lossless, all: $all};

def findings($planned):
  . as $raw
  # YAML takes on and off without quotes for true and false
  | ($planned | .wanted.pause |= if type == "boolean" then (if . then "on" else "off" end) else . end) as $given
  | ($given | .wanted |= with_entries(select(.key as $name | .value == null or (.value | is_valid($name))))) as $host
  | ( if ["infiniband", "slingshot", "loopback"] | index([$host.fabric]) != null then not_here("not on \($host.fabric)")
    else
      devices($raw; $host) as $devices
      | if $devices == [] then not_here("no RDMA device on Ethernet")
        else
          [$devices[] | {device: ., net: net_of($raw; .)}] as $pairs
          | ( [$pairs[] | select(.net != null) | . + of_device($raw; $host; .device; .net)] ) as $known
          # an interface that carries several devices is checked once
          | ( [$known[] | .lossless as $lossless | .all[] | {s: ., lossless: $lossless}] | unique_by(.s.net)[]
              | interface($raw; .s; .lossless; $host) ),
            ( $known[] | ($raw.files["/proc/net/vlan/\(.net)"] != null) as $tagged
              | path::findings($raw; .device; .first; .lossless; $host; $tagged),
                path::defaults($raw; .device; $host.wanted),
                ecn::findings($raw; .device; .first; .lossless; $host) ),
            ($pairs[] | select(.net == null) | path::nowhere(.device; $host.wanted)),
            wrong($given.wanted), lldpad($raw; $host.wanted)
        end
    end )
  | unread::settled($raw);

# What differs between hosts is found by the values; nothing else is between them.
def between($hosts): empty;
