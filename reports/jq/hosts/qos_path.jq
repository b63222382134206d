# Where RDMA's packets really go: the traffic class that a connection gets, and from there DSCP, priority, class, and
# whether that is lossless.
import "hosts/qos_dcb" as d;

def port: .ib_port // 1;

# rdma_cm's default of a device, {tos, words}; tos null where it cannot be read. The value outlives its directory under
# configfs (cma.c keeps it with the device), and the tools that set it remove the directory (cma_roce_tos,
# bnxt_setupcc.sh): no directory says nothing, unless the module has never been there.
def cm_default($raw; $device):
  "/sys/kernel/config/rdma_cm/\($device.name)/ports/\($device | port)/default_roce_tos" as $path
  | d::file($raw; $path) as $text
  | if $text != null then ($text | d::whole | if . != null and . < 256 then {tos: ., words: "rdma_cm"}
                           else {tos: null, words: "rdma_cm: \($text | .[0:40]) is no traffic class"} end)
    elif $raw.files["/sys/module/rdma_cm/initstate"] == null and $raw.links["/sys/class/misc/rdma_cm"] == null then
      {tos: 0, words: "rdma_cm (not loaded yet)"}
    else
      {tos: null, words: ("rdma_cm: its default cannot be read without a directory under /sys/kernel/config/rdma_cm; "
                          + "0 unless it was set")} end;

# NVIDIA's OFED has one traffic class for all, "Global tclass=106", above whatever a program asks for.
def override($raw; $device):
  d::file($raw; "/sys/class/infiniband/\($device.name)/tc/\($device | port)/traffic_class") // ""
  | capture("(^|\\n)Global tclass=(?<v>[0-9]{1,3})\\b").v // null | if . == null then null else tonumber end;

# What Linux and irdma make of a traffic class where the DSCP is not trusted (rt_tos2priority; README of irdma: ToS 8 is
# priority 2, 16 is 6, 24 is 4)
def linux_priority($tos): {"0": 0, "1": 2, "2": 6, "3": 4}[(($tos % 32) / 8 | floor) | tostring];

# $s: settings of the interface -> {priority, words}
def priority($s; $rdma_driver; $tagged; $tos):
  ($tos / 4 | floor) as $dscp
  | if $s.trust == "dscp" then
      if $s.dscp == null then {priority: null, words: "DSCP \($dscp) -> priority unknown: the map cannot be read"}
      else ($s.dscp[$dscp | tostring] // $s.default_prio // 0) as $p
        | {priority: $p, words: "DSCP \($dscp) -> priority \($p)"} end
    elif $s.trust == "pcp" and $rdma_driver == "irdma" then
      linux_priority($tos) as $p | {priority: $p, words: "DSCP not trusted -> priority \($p) (by the kernel's table)"}
    elif $s.trust == "pcp" and $tagged then
      {priority: null, words: "DSCP not trusted -> priority of the VLAN's tag, which is not known here"}
    elif $s.trust == "pcp" then
      ($s.default_prio // 0) as $p | {priority: $p, words: "DSCP not trusted, and no tag -> priority \($p)"}
    else {priority: null, words: "DSCP \($dscp) -> priority unknown: what is trusted cannot be read"} end;

# {lossless: true, false or null, words} of a traffic class; $lossless: the priorities that are wanted, or null
def chain($s; $rdma_driver; $tagged; $tos; $lossless):
  priority($s; $rdma_driver; $tagged; $tos) as $way
  | $way.priority as $p
  | (if $p == null or $s.pfc == null then null else $s.pfc | index($p) != null end) as $on
  | { lossless: (if $on and $lossless != null and ($lossless | index($p)) == null then false else $on end),
      words: ("ToS \($tos) -> \($way.words)"
              + (if $p != null and $s.prio_tc != null then " -> class \($s.prio_tc[$p])" else "" end)
              + if $on == null then ", PFC unknown" elif $on then ", PFC on" else ", PFC off" end) };

def worst: if any(.[]; .lossless == false) then "bad" elif any(.[]; .lossless == null) then "unknown" else "ok" end;
# Where nothing is lossless and nothing has to be, the way is only shown.
def shown($s; $lossless; $host):
  if $lossless != [] then . elif . != "unknown" then "info"
  elif $s.unsupported and $host.scope != "hardware" then "not_applicable" else . end;
def tos_text($p): "a ToS whose priority is lossless (\($p | d::listed))";

# $lossless: the priorities with PFC, as wanted, else as found ([]: none). $wanted: host_check_*.
def findings($raw; $device; $s; $lossless; $host; $tagged):
  $host.wanted as $wanted
  | d::link_end($raw; "/sys/class/infiniband/\($device.name)/device/driver") as $driver
  | (if [$driver, $s.driver] | any(.[]; . == "ice" or . == "i40e") then "irdma" else $driver end) as $rdma
  | override($raw; $device) as $all | cm_default($raw; $device) as $cm
  | (if $wanted.pfc_priorities == null then null else $lossless end) as $only
  | def of($tos): chain($s; $rdma; $tagged; $tos; $only);
    def one($who; $tos): of($tos) | .words = "\($who): \(.words)";
    [ if $all != null then one("all, by the override traffic_class"; $all)
      else (if $cm.tos == null then {lossless: null, words: $cm.words} else one($cm.words; $cm.tos) end),
           ($wanted.roce_tos | values | one("programs given --tos \(.)"; .)) end
    ] as $ways
  | { id: "qos-path", device: $device.name, severity: (if $lossless == [] then "advisory" else "required" end),
      status: ($ways | worst | shown($s; $lossless; $host)),
      found: ($ways | map(.words) | join("; ")),
      value: (if $ways | worst == "unknown" then null else $ways | map(.words) | join("; ") end),
      wanted: (if $lossless == [] then null else tos_text($lossless) end),
      why: "only the priority that RDMA really takes has to be lossless, and its default is 0",
      remedy: ("host_tune_roce_tos, or mkdir /sys/kernel/config/rdma_cm/\($device.name) and write its default_roce_tos; "
               + "traffic_class in the suite"),
      source: "IEEE 802.1Q-2018, clause 36; kernel, drivers/infiniband/core/cma.c" },
    ( select($all == null) | one("programs that ask for nothing"; 0)
      | { id: "qos-path-plain", device: $device.name, severity: "advisory",
          status: ([.] | worst | shown($s; $lossless; $host)), found: .words,
          value: (if .lossless == null then null else .words end),
          wanted: (if $lossless == [] then null else "a lossless priority, or --tos in every test" end),
          why: "a test without --tos is measured on this priority, whatever the others have",
          remedy: "traffic_class in the suite (tos with rdma_cm); with NVIDIA's OFED the override traffic_class",
          source: "perftest's and perch's manual: the default is 0" } );

def is_set($id; $name; $found; $want; $why; $remedy; $source):
  { id: $id, device: $name, severity: (if $want == null then "advisory" else "required" end),
    status: (if $want == null then (if $found == null then "unknown" else "info" end)
             elif $found == null then "unknown" elif $found == $want then "ok" else "bad" end),
    found: $found, value: $found, wanted: (if $want == null then null else $want | tostring end),
    $why, $remedy, $source };

# What rdma_cm gives a connection that asks for nothing: the RoCE version and the traffic class
def defaults($raw; $device; $wanted):
  d::file($raw; "/sys/kernel/config/rdma_cm/\($device.name)/ports/\($device | port)/default_roce_mode") as $mode
  | cm_default($raw; $device) as $cm | override($raw; $device) as $all
  | ( is_set("qos-roce-tos"; $device.name; $all // $cm.tos; $wanted.roce_tos;
             "it becomes the DSCP of every packet, by which NICs and switches choose the queue";
             "host_tune_roce_tos, or cma_roce_tos -d \($device.name) -t \($wanted.roce_tos // "TOS")";
             "cma_roce_tos of NVIDIA's OFED; kernel, cma_configfs.c")
      | .found |= if . == null then $cm.words elif $all != null then "\(.), by the override traffic_class"
                  else "\(.), by rdma_cm" end ),
    ( if $mode == null then empty
      else is_set("qos-roce-mode"; $device.name; $mode; "RoCE v2";
                  "RoCE v1 has no IP header, and so no DSCP";
                  "echo 'RoCE v2' > /sys/kernel/config/rdma_cm/\($device.name)/ports/\($device | port)/default_roce_mode";
                  "kernel, cma_configfs.c") end );

# A device without a known interface
def nowhere($device; $wanted):
  { id: "qos-path", device: $device.name, status: "unknown", value: null, found: "its interface is not known",
    severity: (if $wanted.pfc_priorities == null then "advisory" else "required" end),
    wanted: "an interface whose settings can be read",
    why: "only the priority that RDMA really takes has to be lossless",
    remedy: "name it in perch_devices: {name: \($device.name), netdev: INTERFACE}",
    source: "kernel, /sys/class/infiniband/DEVICE/ports/1/gid_attrs" };
