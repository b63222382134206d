# Congestion notification (DCQCN): who answers a mark, who slows down, by which parameters, where the notifications go.
# mlx5: /sys/class/net/X/ecn of NVIDIA's OFED, and debugfs of every driver (drivers/infiniband/hw/mlx5/cong.c); bnxt_re:
# configfs of Broadcom's driver (configfs.c), debugfs of the kernel's (drivers/infiniband/hw/bnxt_re/debugfs.c, cc_config);
# irdma: configfs and the module's parameters of Intel's (README of irdma).
import "hosts/qos_dcb" as d;

# "26", "0x1a" -> 26
def number:
  if . == null then null elif test("^[0-9]{1,10}$") then tonumber
  elif test("^0x[0-9a-fA-F]{1,8}$") then
    reduce (ltrimstr("0x") | ascii_downcase | explode[] | if . > 57 then . - 87 else . - 48 end) as $digit
      (0; . * 16 + $digit)
  else null end;

# The files below a folder, {name: text}
def below($raw; $dir):
  reduce ($raw.files | keys[] | select(startswith($dir)) | ltrimstr($dir) | select(test("/") | not)) as $name
    ({}; .[$name] = d::file($raw; $dir + $name));

def folders($device; $net; $pci):
  { ecn: "/sys/class/net/\($net)/ecn/", debug: "/sys/kernel/debug/mlx5/\($pci)/cc_params/",
    bnxt: "/sys/kernel/config/bnxt_re/\($device.name)/ports/\($device.ib_port // 1)/cc/",
    bnxt_debug: "/sys/kernel/debug/bnxt_re/\($pci)/cc_config/",
    irdma: "/sys/kernel/config/irdma/\($device.name)/" };

# mlx5's and bnxt_re's files under debugfs are named by the PCI function; of one interface there is one
def pci_of($raw; $net): d::link_end($raw; "/sys/class/net/\($net)/device");

# The priorities of a point ("np" notifies, "rp" reacts); null where it cannot be read
def point($raw; $at; $which):
  below($raw; $at.ecn + "roce_\($which)/enable/") as $mlx5
  | below($raw; $at.bnxt) as $bnxt | below($raw; $at.irdma) as $irdma
  | (below($raw; $at.bnxt_debug).enable_cc | number) as $for_all
  | if $mlx5 != {} then [range(8) | select($mlx5[tostring] == "1")]
    elif $bnxt.ecn_enable != null then
      if ($bnxt.ecn_enable | number) == 0 then [] else [$bnxt.roce_prio | number | values] end
    elif $for_all != null then if $for_all == 0 then [] else [range(8)] end
    elif $irdma.roce_dcqcn_enable != null then (if $irdma.roce_dcqcn_enable == "1" then [range(8)] else [] end)
    else null end;

def list: if . == [] then "off" else "on for " + d::listed end;

def of_point($raw; $device; $net; $at; $wanted; $which; $id; $why):
  point($raw; $at; $which) as $on
  | { id: $id, device: $device.name, severity: (if $wanted == null then "advisory" else "required" end),
      status: (if $on == null then "unknown" elif $wanted == null then "info"
               elif $wanted - $on == [] and ($wanted != [] or $on == []) then "ok" else "bad" end),
      found: (if $on == null then
                "cannot be read: the driver does not report it, or its directory under configfs is missing"
              else $on | list end),
      value: (if $on == null then null else $on | list end),
      wanted: (if $wanted == null then null else $wanted | list end), $why,
      remedy: ("set host_tune_ecn_priorities; by hand: echo 1 >/sys/class/net/\($net)/ecn/roce_\($which)/enable/PRIORITY "
               + "(NVIDIA's OFED), or bnxt_setupcc.sh"),
      source: "NVIDIA, Explicit Congestion Notification (ECN); Broadcom, bnxt_setupcc.sh" };

# The module's parameters of irdma, "dcqcn_T" and the like
def of_irdma($raw; $device):
  if d::link_end($raw; "/sys/class/infiniband/\($device.name)/device/driver") | . == "ice" or . == "irdma"
  then below($raw; "/sys/module/irdma/parameters/") else {} end;

def parameters($raw; $device; $at):
  ( below($raw; $at.ecn + "roce_np/") as $np | below($raw; $at.ecn + "roce_rp/") as $rp
    | if $np + $rp != {} then ($np | with_entries(.key |= "np_" + .)) + ($rp | with_entries(.key |= "rp_" + .))
      else below($raw; $at.debug) + below($raw; $at.bnxt_debug) + below($raw; $at.bnxt) + below($raw; $at.irdma) + of_irdma($raw; $device) end ) as $all
  | select($all != {})
  | ([$all | to_entries | sort_by(.key)[] | "\(.key)=\(.value // "")"] | join(" ")) as $text
  | { id: "qos-ecn-parameters", device: $device.name, status: "info", severity: "advisory", found: $text, value: $text,
      wanted: null, why: "senders with different parameters share a link unfairly",
      remedy: "use the same driver, firmware and settings on all hosts",
      source: "NVIDIA, DCQCN CC parameters; Broadcom, configfs.c of bnxt_re; Intel, README of irdma" };

# {dscp, priority} of the congestion notification packets
def cnp($raw; $at):
  below($raw; $at.ecn + "roce_np/") as $ecn | below($raw; $at.debug) as $debug | below($raw; $at.bnxt) as $bnxt
  | below($raw; $at.bnxt_debug) as $all
  | { dscp: ($ecn.cnp_dscp // $debug.np_cnp_dscp // $bnxt.cnp_dscp // $all.alt_vlan_dscp | number),
      priority: ($ecn.cnp_802p_prio // $debug.np_cnp_prio // $bnxt.cnp_prio // $all.alt_vlan_pcp | number) };

def notifications($raw; $device; $at; $s; $lossless):
  cnp($raw; $at) as $cnp
  | select($cnp.dscp != null or $cnp.priority != null)
  | (if $s.trust == "dscp" and $cnp.dscp != null and $s.dscp != null then
       $s.dscp[$cnp.dscp | tostring] // $s.default_prio // 0
     else $cnp.priority end) as $p
  | "DSCP \($cnp.dscp // "unknown"), priority \($p // "unknown")" as $found
  | { id: "qos-cnp", device: $device.name, severity: "advisory",
      status: (if $lossless == [] then "info" elif $p == null then "unknown"
               elif $lossless | index($p) != null then "bad" else "ok" end),
      $found, value: $found,
      wanted: (if $lossless == [] then null
               else "a priority without PFC, preferably strict (usually DSCP 48, priority 6 or 7)" end),
      why: "on a paused priority, a notification comes too late to slow its sender",
      remedy: "set host_tune_cnp; by hand: echo 48 >/sys/class/net/\($s.net)/ecn/roce_np/cnp_dscp (OFED), or bnxt_setupcc.sh -c and -p",
      source: "Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015; bnxt_setupcc.sh" };

def counters($raw; $device):
  below($raw; "/sys/class/infiniband/\($device.name)/ports/\($device.ib_port // 1)/hw_counters/") as $all
  | select($all != {})
  | { id: "qos-ecn-counters", device: $device.name, status: "info", severity: "advisory", value: null, wanted: null,
      found: ([$all | to_entries[] | "\(.key) \(.value // "?")"] | join(", ")),
      why: "marks and notifications show that ECN works end to end; counted since the driver was loaded",
      remedy: "rdma statistic show link \($device.name)/\($device.ib_port // 1)",
      source: "kernel, drivers/infiniband/hw/mlx5/counters.c" };

def findings($raw; $device; $s; $lossless; $host):
  folders($device; $s.net; pci_of($raw; $s.net)) as $at
  | ( of_point($raw; $device; $s.net; $at; $host.wanted.ecn_priorities; "np"; "qos-ecn-notification";
               "without it senders get no notification of marks, and only pauses slow them"),
      of_point($raw; $device; $s.net; $at; $host.wanted.ecn_priorities; "rp"; "qos-ecn-reaction";
               "without it a sender slows down only when it is paused")
      # a software device has no such points
      | if .status == "unknown" and $host.scope != "hardware" and $host.wanted.ecn_priorities == null then
          .status = "not_applicable" else . end ),
    parameters($raw; $device; $at), notifications($raw; $device; $at; $s; $lossless), counters($raw; $device);
