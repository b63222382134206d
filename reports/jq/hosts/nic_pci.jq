# Each NIC's place in the machine: PCIe link, its settings, its errors, memory node and interrupts -> findings.
import "hosts/nic_read" as r;
import "hosts/nic_pci_config" as config;

def sysfs_pci: "Linux, Documentation/ABI/testing/sysfs-bus-pci";
def dir: "/sys/bus/pci/devices/\(.)/";

# ---- link -------------------------------------------------------------------------------------------------------

# "16.0 GT/s PCIe" or, of older kernels, "8 GT/s" -> 16
def giga($raw; $path): r::text($raw; $path) | [strings | capture("^(?<v>[0-9]+(\\.[0-9]+)?) GT/s").v | tonumber + 0] | .[0];
# The widths that PCI Express has; 63, all bits of the field, is of a card that no longer answers.
def lanes($raw; $path): r::number($raw; $path) as $n | if [1, 2, 4, 8, 12, 16, 32] | index([$n]) != null then $n else null end;

def ends($raw; $chain): [$chain[0:2][] | dir] ;

# The link between the NIC and what is above it: as fast as the slower end, as wide as the narrower one. A virtual
# function, and a machine without PCIe, has a link of no speed.
def no_link($raw; $d; $host; $path):
  if r::is_guest($raw; $d.chain[0]) then r::not_applicable("\($d.chain[0]) reports no PCIe link, as is usual for a virtual function")
  elif $host.scope != "hardware" then r::not_applicable("\($d.chain[0]) has no PCIe link")
  else r::unknown(if $raw.files[$path] == null then "no \($path)" else "\($path) cannot be true" end) end;

def pcie_link($raw; $d; $host; $id; read; $unit; $worse):
  [$d.chain[0:2][] | dir] as $ends
  | ($ends[0] + "current_link_\($id)") as $path
  | ($path | read) as $now
  | ($ends[0] + "max_link_\($id)") as $can
  | ($can | read) as $own
  | [$ends[] + "max_link_\($id)" | read | values] as $most
  | ($most | min) as $wanted
  | if $now == null or ($own != null and $now > $own) then no_link($raw; $d; $host; $path)
    elif $own == null then no_link($raw; $d; $host; $can)
    else r::either($now >= $wanted; "\($now)\($unit); the card supports \($most[0])\($unit)"
                                    + if ($most | length) > 1 then ", its slot \($most[1])\($unit)" else "" end; $now) end
  | r::finding("pcie-\($id)"; $d.name;
      { severity: "required", wanted: ($wanted | if . == null then null else "\(.)\($unit)" end), source: sysfs_pci,
        why: "a \($worse) link to the card caps every bandwidth, and looks like a network fault",
        remedy: "Reseat the card or its riser; check the slot's width and the BIOS's link speed (lspci -vv -s \($d.chain[0]))" });

# GT/s and lanes -> Gb/s of payload on the link: 8b/10b up to 5 GT/s, 128b/130b up to 32, 242/256 from 64 (flits).
def coded($lanes): . * $lanes * if . <= 5 then 0.8 elif . <= 32 then 128 / 130 else 242 / 256 end;

# Between the bridge above a card and the root: a PCIe switch is two bridges, of which the lower has the link to the card and the
# upper the link to what is above it. [{lower, upper, now, most, id}] of those that came up slower or narrower than both ends can.
def uplinks($raw; $chain):
  [ range(2; $chain | length; 2) as $i | $chain[$i] as $lower | $chain[$i + 1] as $upper
    | ({id: "speed", unit: " GT/s"}, {id: "width", unit: "x"}) as $of
    | def told($function; $which): ($function | dir) + "\($which)_link_\($of.id)" | if $of.id == "speed" then giga($raw; .) else lanes($raw; .) end;
      told($lower; "current") as $now
    | [$lower, ($upper | values) | told(.; "max") | values] as $most
    | {lower: $lower, upper: ($upper // "the root"), id: $of.id, $now, most: ($most | min), unit: $of.unit} ];

def uplink($raw; $d; $host):
  uplinks($raw; $d.chain) as $all
  | [$all[] | select(.now == null or .most == null)] as $unread
  | [$all[] | select(.now != null and .most != null and .now < .most)] as $bad
  | if $all == [] then r::not_applicable("no PCIe switch is above \($d.chain[0])")
    elif $unread != [] and $bad == [] then
      $unread[0] | no_link($raw; $d; $host; (.lower | dir) + "\(if .now == null then "current" else "max" end)_link_\(.id)")
    else r::either($bad == []; if $bad == [] then "\($all | map(.lower) | unique | length) above \($d.chain[1]), each as fast as it can be"
                               else $bad | map("\(.lower) to \(.upper): \(.now)\(.unit) of \(.most)\(.unit)") | join("; ") end; null) end
  | r::finding("pcie-uplinks"; $d.name;
      { severity: "required", wanted: "full speed and width", source: sysfs_pci,
        why: "a slow link of a PCIe switch caps every card below it, and looks like a network fault",
        remedy: "Check the switch board and its cables or risers, and the BIOS's link speed (lspci -vv; lspci -t shows the bridges)" });

# The least of all links between the card and the root. $gbit: what the inventory expects of the network port, else its rate.
def bandwidth($raw; $d; $gbit):
  [ $d.chain[] | dir as $dir | giga($raw; $dir + "current_link_speed") as $speed | lanes($raw; $dir + "current_link_width") as $lanes
    | select($speed != null and $lanes != null) | $speed | coded($lanes) ] as $all
  | ($all | min) as $least
  | if $least == null then r::not_applicable("\($d.chain[0]) reports no PCIe link")
    elif $gbit == null then r::result("info"; "\($least | floor) Gb/s"; $least | floor)
    else r::either($least >= $gbit; "\($least | floor) Gb/s on PCIe, \($gbit) Gb/s on the network"; $least | floor) end
  | r::finding("pcie-bandwidth"; $d.name;
      { severity: "required", wanted: ($gbit | if . == null then null else "at least \(.) Gb/s" end),
        why: "PCIe limits how much the card can read from memory and send", source: "PCI Express Base Specification, encodings",
        remedy: "Move the card to a faster or wider slot; or set perch_link_gbit_s to the rate that was bought" });

# ---- settings ---------------------------------------------------------------------------------------------------

# virtual: in a guest, where the fields are empty, as its physical one's hold.
def fields($raw; $function):
  r::said($raw; "pci \($function)")
  | if . == null then {readable: false} else config::fields end
  | .virtual = r::is_guest($raw; $function);

# One setting of the card. A machine that shows no PCIe (a virtual one) has none; without root it cannot be read.
def setting($own; $id; $d; $about; judged):
  $own
  | if .readable | not then r::unknown("the configuration space of \($d.chain[0]) needs root (ansible_become: true)")
    elif .express | not then r::not_applicable("\($d.chain[0]) has no PCIe capability")
    elif .virtual then r::guest($d.chain[0])
    else judged end
  | r::finding($id; $d.name; {severity: "advisory", source: "PCI Express Base Specification, Device Control"} + $about);

def on_off: if . == null then "not there" elif . then "on" else "off" end;

# A function may send no larger packet than the port above takes: the link's errors would be fatal.
def payload($own; $above; $d):
  ([$own.payload_most, $above.payload_most | values] | min) as $most
  | ($above.payload != null and $own.payload != null and $own.payload > $above.payload) as $broken
  | setting($own; "pcie-max-payload"; $d;
      { severity: (if $broken then "required" else "advisory" end), wanted: ($most | if . == null then null else "\(.) bytes, which both ends support" end),
        why: (if $broken then "the port above rejects packets larger than its own setting"
              else "smaller packets spend a larger share of the link on headers" end),
        remedy: "Boot with pci=pcie_bus_perf, or set it in the BIOS; lspci -vv -s \($d.chain[0]) shows DevCap and DevCtl" };
      r::either(.payload >= $most and ($broken | not);
                "\(.payload) bytes" + if $above.payload == null then "" else "; the port above: \($above.payload)" end; .payload));

def read_request($own; $d; $wanted):
  setting($own; "pcie-max-read-request"; $d;
    { wanted: ($wanted | if . == null then null else "\(.) bytes" end),
      why: "a card that reads memory in small pieces waits more often",
      # DevCtl is at offset 8 of capability 10h, the size in bits 14:12 (setpci(8))
      remedy: ("Run setpci -s \($d.chain[0]) CAP_EXP+8.w=\([128, 256, 512, 1024, 2048, 4096] | index([$wanted]) // 5)000:7000 "
               + "(lost at reboot), or set it in the BIOS") };
    r::as_wanted($wanted; .read_request == $wanted; "\(.read_request) bytes"; .read_request));

def relaxed_ordering($own; $d; $wanted):
  setting($own; "pcie-relaxed-ordering"; $d;
    { wanted: ($wanted | if . == null then null else on_off end),
      why: "with strict ordering, writes to memory wait for each other, most of all on AMD EPYC",
      remedy: "Set PCIe relaxed ordering in the BIOS; for mlx5 cards run mlxconfig -d DEVICE set PCI_WR_ORDERING=1; then reboot" };
    r::as_wanted($wanted; .relaxed_ordering == $wanted; .relaxed_ordering | on_off; .relaxed_ordering | on_off));

# Only traffic between two devices (a GPU and the NIC) is turned back by ACS; host memory never is.
def acs($raw; $own; $d):
  [$d.chain[1:][] as $bridge | {$bridge} + fields($raw; $bridge)] as $above
  | [$above[] | select(.redirect == true) | .bridge] as $on
  | setting($own; "pcie-acs"; $d;
      { wanted: null, why: "ACS sends traffic to GPU memory through the root complex, which is slower",
        source: "PCI Express Base Specification, Access Control Services",
        remedy: "For peer-to-peer traffic: set host_tune_pcie_acs: disabled, or switch ACS off in the BIOS" };
      if $above == [] then r::not_applicable("no bridge is above \($d.chain[0])")
      elif any($above[]; .readable | not) then r::unknown("the configuration space of a bridge needs root")
      else r::result("info"; if $on == [] then "no redirect above" else "redirects at \($on | join(", "))" end; $on != [] | on_off) end);

def ats($own; $d):
  setting($own; "pcie-ats"; $d;
    { wanted: null, why: "behind an IOMMU, a card with ATS caches address translations and waits less",
      source: "PCI Express Base Specification, Address Translation Services",
      remedy: "Run mlxconfig -d DEVICE set ATS_ENABLED=1 on cards that have ATS" };
    r::result("info"; .ats | on_off; .ats | on_off));

# 32 outstanding requests are too few to fill a fast link with what a card reads.
def tags($own; $d):
  setting($own; "pcie-extended-tags"; $d;
    { wanted: (if $own.extended_tags == null then null else "on" end), why: "a card with few outstanding reads cannot fill its link",
      remedy: "Update the BIOS; by hand setpci -s \($d.chain[0]) CAP_EXP+8.w=0100:0100, lost at reboot" };
    if .extended_tags == null then r::not_applicable("the card has no extended tags")
    else r::either(.extended_tags; .extended_tags | on_off; .extended_tags | on_off) end);

def aspm($own; $d):
  setting($own; "pcie-aspm"; $d;
    { wanted: "off", why: "a link that sleeps takes microseconds to wake, which shows in the latency", source: "PCI Express Base Specification, Link Control",
      remedy: "Set host_tune_pcie_aspm: disabled, or switch ASPM off in the BIOS" };
    if .aspm == null then r::unknown("no Link Control") else r::either(.aspm == "off"; .aspm; .aspm) end);

# Only shown: what memory of another device (a GPU) or an error of the bus makes of it is the test's to show.
def second($own; $d):
  ( {id: "pcie-atomics", value: ($own.atomics | on_off), why: "atomic operations on memory of another device, such as a GPU, need it"},
    {id: "pcie-completion-timeout", value: $own.timeout, why: "after this time without an answer of memory the card reports an error"} ) as $one
  | setting($own; $one.id; $d;
      { wanted: null, why: $one.why, source: "PCI Express Base Specification, Device Control 2", remedy: "Set it alike in each BIOS; lspci -vv shows DevCtl2" };
      if $one.value == null then r::not_applicable("not told") else r::result("info"; $one.value; $one.value) end);

# ---- errors -----------------------------------------------------------------------------------------------------

# "RxErr 0\nBadTLP 3\n...\nTOTAL_ERR_COR 3" -> ["BadTLP 3"]; null where there is no such file, "damaged" where it does not
# end with its sum (Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats). A kind that the kernel has no name for is
# "dev_nonfatal_errs_bit[27] 3" (drivers/pci/pcie/aer.c).
def aer($raw; $function; $kind):
  r::text($raw; "\($function | dir)aer_dev_\($kind)")
  | if . == null then null
    elif test("\nTOTAL_ERR_[A-Z]+ [0-9]+$") | not then "damaged"
    else [split("\n")[:-1][] | capture("^(?<name>\\S+) (?<n>[0-9]+)$") | select(.n | test("[1-9]")) | "\(.name) \(.n)"] end;

# The card's own and those of the port above it, which sees the other end of the link.
def errors($raw; $d; $id; $kinds; $severity; $why):
  [$d.chain[0:2][] as $function | $kinds[] as $kind | {$function, $kind, counts: aer($raw; $function; $kind)} | select(.counts != null)] as $all
  | [$all[] | select(.counts | type == "array" and . != []) | "\(.function) \(.kind): \(.counts | join(", "))"] as $bad
  | if $all == [] then r::not_applicable("the kernel counts no PCIe errors here (AER)")
    elif any($all[]; .counts == "damaged") then r::unknown("aer_dev_\($kinds[0]) is damaged")
    else r::either($bad == []; if $bad == [] then "none since boot" else $bad | join("; ") end; null) end
  | r::finding($id; $d.name;
      { $severity, wanted: "none", $why, source: "Linux, Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats",
        remedy: "Reseat the card or its riser, clean its contacts; dmesg -T | grep -i aer shows when; a reboot clears the counts" });

# ---- memory and interrupts --------------------------------------------------------------------------------------

def numa($raw; $d):
  r::number($raw; "\($d.function | dir)numa_node") as $node
  | (r::text($raw; "/sys/devices/system/node/online") | r::ranges) as $nodes
  | ($nodes != null and ($nodes | map(.[1] - .[0] + 1) | add) == 1) as $single
  | r::text($raw; "\($d.function | dir)local_cpulist") as $cpus
  | if $node == null then r::unknown("no numa_node")
    else r::either($node >= 0 or $single; "node \($node), processors \($cpus // "not known")"; null) end
  | r::finding("numa-node"; $d.name;
      { severity: "advisory", wanted: "the node of its slot", source: sysfs_pci,
        why: "threads and memory cannot be placed on the card's node if the node is unknown",
        remedy: "Update the BIOS, which reports the node; until then choose CPUs by hand (perch lat --cpu, numactl)" });

# "==> /proc/irq/45/mlx5_comp0@pci:0000:81:00.0/../effective_affinity_list <==\n7" -> {name, cpus}. Those that carry no
# packets (commands, events, pages, configuration) may be anywhere.
def interrupts:
  [ strings | split("==> ")[1:][] | capture("^/proc/irq/(?<irq>[0-9]+)/(?<name>[^/]+)/\\.\\./effective_affinity_list <==\\n(?<cpus>[0-9,-]+)")
    | select(.name | test("async|pages|cmd|config|control|misc|mbx|mailbox|oicr|fw_|recovery"; "i") | not) ];

def irq_local($raw; $d; $wanted):
  $d.function as $function
  | (r::text($raw; "\($function | dir)local_cpulist") | r::ranges) as $near
  | (r::said($raw; "interrupts \($function)") | interrupts) as $all
  | if $all == [] then
      if r::command($raw; "interrupts \($function)") == null then r::not_applicable("no MSI interrupts")
      else r::unread($raw; "interrupts \($function)") end
    elif $near == null then r::unknown("no local_cpulist")
    else
      [$all[] | select(.cpus | r::ranges | . == null or (r::within($near) | not))] as $away
      | "\($away | length) of \($all | length) elsewhere" as $count
      | if $away == [] then r::result("ok"; "all \($all | length) on processors of its node"; null)
        elif $wanted then r::result("bad"; "\($count): \($away | map("\(.name | split("@")[0]) on \(.cpus)") | .[0:3] | join(", "))"; null)
        else r::result("info"; $count; null) end end
  | r::finding("irq-affinity"; $d.name;
      { severity: "advisory", wanted: (if $wanted then "processors of the card's node" else null end),
        source: "Linux, Documentation/core-api/irq/irq-affinity.rst",
        why: "an interrupt on another node reads all its data from the card's node",
        remedy: "Set host_tune_irq_affinity, and stop irqbalance or ban these interrupts from it" });

# ---- all --------------------------------------------------------------------------------------------------------

# $gbit: of the device's network link, or null
def of_device($raw; $d; $host; $gbit):
  fields($raw; $d.chain[0]) as $own
  | (if $d.chain[1] == null then {} else fields($raw; $d.chain[1]) end) as $above
  | $host.wanted as $wanted
  | pcie_link($raw; $d; $host; "speed"; . as $path | giga($raw; $path); " GT/s"; "slower"),
    pcie_link($raw; $d; $host; "width"; . as $path | lanes($raw; $path); "x"; "narrower"),
    uplink($raw; $d; $host), bandwidth($raw; $d; $host.link_gbit_s // $gbit),
    payload($own; $above; $d), read_request($own; $d; $wanted.max_read_request),
    relaxed_ordering($own; $d; $wanted.relaxed_ordering), acs($raw; $own; $d), ats($own; $d), tags($own; $d), aspm($own; $d), second($own; $d),
    errors($raw; $d; "pcie-errors"; ["fatal", "nonfatal"]; "required"; "an uncorrected PCIe error loses data, or repeats it"),
    errors($raw; $d; "pcie-corrected-errors"; ["correctable"]; "advisory"; "PCIe sends damaged packets again, which costs time"),
    numa($raw; $d), irq_local($raw; $d; if $wanted.irq_local == null then true else $wanted.irq_local end);

def findings($raw; $host; $devices; gbit):
  $devices[] as $d | select($d.chain != []) | of_device($raw; $d; $host; $d | gbit);
