# The kernel of a machine: modules for RDMA, the IOMMU, sysctls, its arguments, and which versions of software there are.
import "common" as c;
import "hosts/machine_read" as m;

# ---- modules, drivers and nodes ---------------------------------------------------------------------------------------

def class($device): "/sys/class/infiniband/\($device)/";
def listed($raw): [$raw.files | keys_unsorted[] | select(endswith("/node_type")) | capture("^/sys/class/infiniband/(?<d>[^/]+)/node_type$").d] | unique;

# A software device has no PCI function (or platform device) behind it.
def is_soft($raw; $device): $raw.links[class($device) + "device"] == null;

# Whether this host is to measure over verbs: by its fabric, or by the devices it has.
def uses_verbs($raw; $host): $host.fabric == "roce" or $host.fabric == "infiniband" or listed($raw) != [];

def modules($raw; $host):
  ( {"ib-uverbs": "/sys/class/infiniband_verbs/abi_version", "rdma-ucm": "/sys/class/misc/rdma_cm/abi_version"} | to_entries[]
    | m::file_number($raw; .value) as $abi | (.key | gsub("-"; "_")) as $name
    | m::finding("module-" + .key;
        { status: (if $abi != null then "ok" elif uses_verbs($raw; $host) | not then "not_applicable"
                   elif m::has_sysfs($raw) then "bad" else "unknown" end), severity: "required",
          found: (if $abi != null then "\($name), ABI \($abi)" elif m::has_sysfs($raw) then "\($name) is not loaded" else "cannot be read" end),
          wanted: "\($name) loaded",
          why: (if .key == "ib-uverbs" then "programs cannot open an RDMA device without it" else "rdma_cm cannot connect without it" end),
          remedy: "Run modprobe \($name), and add its name to a file in /etc/modules-load.d", source: "rdma-core, kernel-boot/modules/rdma.conf" }) );

def drivers($raw; $host):
  ($host.devices // [] | map(.name)) as $named
  | (if $named == [] then listed($raw) else [$named[] | select($host.fabric != "slingshot" or (test("^cxi") | not))] end)[] as $device
  | ($raw.links[class($device) + "device/driver"] | if . == null then null else split("/") | last end) as $driver
  | m::file($raw; class($device) + "device/driver/module/version") as $version
  | (listed($raw) | index([$device]) != null) as $there
  | (if $driver != null then $driver + (if $version == null then "" else " " + $version end)
     elif $there and is_soft($raw; $device) then "a software device, which needs no driver" else null end) as $found
  | m::finding("driver";
      { $device, severity: "required", value: $found,
        status: (if $found != null then "ok" elif m::has_sysfs($raw) then "bad" else "unknown" end),
        found: ($found // if m::has_sysfs($raw) then "no driver is bound to this device" else "cannot be read" end),
        wanted: "a driver bound to the device", why: "a device without its driver cannot be used",
        remedy: "Load its driver, which lspci -k names (mlx5_ib, bnxt_re, irdma, ionic_rdma), or correct perch_devices",
        source: "Linux, Documentation/infiniband/sysfs.rst" });

# The files that a driver did not answer in time: host-check has left the whole device.
def stuck($raw):
  $raw.commands | keys_unsorted[] | select(startswith("read ")) | .[5:] as $file
  | m::finding("driver-answers";
      { device: ($file | split("/") | .[4] // null), severity: "required", status: "unknown",
        found: "\($file) cannot be read: its driver did not answer in time; the device was left", wanted: "an answer in time",
        why: "a driver that waits for its card stops each program that asks it",
        remedy: "Read the kernel's log; reset the card or reboot the host",
        source: "Linux, Documentation/filesystems/sysfs.rst" });

# What this user may not open: only what a test opens counts.
def nodes($raw; $host):
  m::command($raw; "rdma-nodes") as $said
  | [$said.stdout // "" | split("\n")[] | select(test("^/dev/infiniband/(uverbs[0-9]+|rdma_cm)( rw)?$"))] as $nodes
  | [$nodes[] | select(endswith(" rw") | not)] as $closed
  | m::finding("rdma-nodes";
      { status: (if uses_verbs($raw; $host) | not then "not_applicable" elif $said.exit != 0 then "unknown" elif $nodes == [] or $closed != [] then "bad" else "ok" end),
        severity: "required",
        found: (if $said.exit != 0 then $said | m::refusal("bash") elif $nodes == [] then "/dev/infiniband has no device node"
                elif $closed != [] then "this user cannot open " + ($closed | join(", ")) else "\($nodes | length | c::plural("node")) readable and writable" end),
        wanted: "uverbs* and rdma_cm readable and writable", why: "a program opens a device through its node",
        remedy: "Run udevadm trigger, or install rdma-core's udev rules, which let all users open the nodes", source: "rdma-core, kernel-boot/rdma-umad.rules, ibv_open_device(3)" });

# ---- the IOMMU ----------------------------------------------------------------------------------------------------------

def iommu_arguments($raw):
  m::arguments($raw; ["iommu", "intel_iommu", "amd_iommu", "iommu.passthrough", "iommu.strict", "arm-smmu.disable_bypass"]) | join(" ");

# Documentation/ABI/testing/sysfs-kernel-iommu_groups: identity lets addresses pass as they are.
def mode: if . == "identity" then "passthrough" elif . == null then null else "translated" end;

def iommus($raw): [$raw.links | keys_unsorted[] | select(startswith("/sys/class/iommu/")) | capture("^/sys/class/iommu/(?<n>[^/]+)$").n];

def allows($wanted; $found): $found == $wanted or ($wanted == "passthrough" and $found == "off");

# Traffic between two devices takes the way through the root where addresses are translated: with GPUs that is no advice.
def iommu_finding($raw; $host; $device; $found; $text; $wanted):
  m::finding("iommu";
    { $device, value: $found, severity: (if $host.gpu then "required" else "advisory" end),
      status: (if $found == null then "unknown" elif $wanted == null then "info" elif allows($wanted; $found) then "ok" else "bad" end),
      found: ($text + (iommu_arguments($raw) | if . == "" then "" else "; " + . end)),
      wanted: (if $wanted == "passthrough" then "passthrough or off" else $wanted | m::wanted_or_alike end),
      why: "translating every address of the NIC costs bandwidth and latency",
      remedy: "Boot with iommu=pt, or turn VT-d or AMD-Vi off in the firmware",
      source: "Linux, Documentation/admin-guide/kernel-parameters.txt, iommu=pt; AMD Instinct system setup: iommu=pt" });

def iommu($raw; $host; $wanted):
  [listed($raw)[] | select(is_soft($raw; .) | not)] as $hard
  | if $hard == [] then
      (if m::has_sysfs($raw) | not then null elif iommus($raw) == [] then "off" else "on" end) as $found
      # without a device there is no group to ask
      | iommu_finding($raw; $host; null; $found; $found // "cannot be read"; if $found == "on" then null else $wanted end)
    else
      $hard[] as $device
      | ($raw.links[class($device) + "device/iommu_group"] | if . == null then null else split("/") | last end) as $group
      | (if $group == null then null else m::file($raw; "/sys/kernel/iommu_groups/\($group)/type") end) as $type
      | (if $group == null then if iommus($raw) == [] then "off" else null end else $type | mode end) as $found
      | iommu_finding($raw; $host; $device; $found;
          if $found == "off" then "off" elif $type == null then "its group's type cannot be read" else "\($found) (\($type))" end; $wanted)
    end;

# ---- sysctls --------------------------------------------------------------------------------------------------------------

# sysctl(8): the first separator tells whether dots or slashes part the words. host-check's sysctl_file does the same.
def sysctl_path:
  "/proc/sys/" + if test("^[^./]*/") then . else explode | map(if . == 46 then 47 elif . == 47 then 46 else . end) | implode end;
def words: if . == null then null else tostring | [splits("\\s+") | select(. != "")] | join(" ") | if . == "" then null else . end end;

# Shown and compared without a wanted value: those that decide what TCP beside RDMA can do.
def compared: ["net.core.rmem_max", "net.core.wmem_max", "net.core.netdev_max_backlog", "net.core.default_qdisc", "net.ipv4.tcp_rmem",
               "net.ipv4.tcp_wmem", "net.ipv4.tcp_congestion_control", "vm.zone_reclaim_mode", "vm.swappiness", "kernel.nmi_watchdog"];

def sysctls($raw; $wanted):
  ($wanted // {} | if type == "object" then . else {} end) as $wanted
  | (($wanted | keys) + compared | unique)[] as $name
  | ($raw.files[$name | sysctl_path] | words) as $found | ($wanted[$name] | words) as $want
  # numa_balancing has a check of its own
  | m::finding("sysctl-" + ($name | gsub("[^A-Za-z0-9]+"; "-"));
      { status: (if $found == null and $want == null and m::has_sysctls($raw) then "not_applicable" else m::held($found; $want) end), value: $found,
        found: (if $found != null then $found elif m::has_sysctls($raw) then "this kernel has no \($name)" else "cannot be read" end),
        wanted: ($want | m::wanted_or_alike), why: "host_check_sysctls sets the value, or other hosts of the group have it",
        remedy: "Set host_tune_sysctls: {\($name): \($want // "VALUE")}", source: "Linux, Documentation/admin-guide/sysctl" });

# ---- versions ---------------------------------------------------------------------------------------------------------------

# Arguments that name this host's disks, addresses or image, and rightly differ.
def own_argument: test("^(BOOT_IMAGE|BOOTIF|root|rootflags|resume|resume_offset|ip|ifname|nfsroot|initrd|rd\\.[a-z.]+|luks[a-z.]*|systemd\\.machine_id|hostname|crashkernel|console|cryptdevice|netroot|bootdev|ksdevice)(=|$)");

def version($id; $value; $found; $why; $remedy; $source):
  m::finding($id; {status: m::held($value; null), $value, found: ($found // $value // "cannot be read"), $why, $remedy, $source});

def versions($raw):
  ([m::file($raw; "/proc/cmdline") // empty | splits("\\s+") | select(own_argument | not)] | sort) as $arguments
  | (m::file($raw; "/etc/os-release") // "" | capture("(^|\\n)PRETTY_NAME=\"?(?<n>[^\"\\n]+)").n // null) as $os
  | (m::file($raw; "/sys/class/dmi/id/bios_version")) as $bios
  | ([m::file($raw; "/sys/class/dmi/id/sys_vendor"), m::file($raw; "/sys/class/dmi/id/product_name")] | map(strings) | if . == [] then null else join(" ") end) as $product
  | version("kernel"; m::file($raw; "/proc/sys/kernel/osrelease");
      m::file($raw; "/proc/sys/kernel/osrelease") | if . == null then null else . + (m::file($raw; "/proc/sys/kernel/version") | if . == null then "" else " " + . end) end;
      "drivers differ between kernels"; "Install the same kernel on all hosts, and reboot"; "uname(1)"),
    version("kernel-arguments"; if m::file($raw; "/proc/cmdline") == null then null else $arguments | join(" ") end; m::file($raw; "/proc/cmdline") | if . == null then null else .[0:300] end;
      "they set C-states, the IOMMU, isolation and mitigations"; "Set the same arguments in the boot loader of all hosts, and reboot";
      "Linux, Documentation/admin-guide/kernel-parameters.txt"),
    version("os"; $os; null; "libraries and defaults differ between releases"; "Install the same release on all hosts"; "os-release(5)"),
    ( select($product != null) | version("model"; $product; null; "different models have different buses"; "Put different models into a perch_group of their own"; "dmidecode(8)") ),
    ( select($bios != null)
      | version("firmware"; $bios; "\($bios) of \(m::file($raw; "/sys/class/dmi/id/bios_date") // "an unknown date")";
          "the firmware sets power, PCIe and NUMA"; "Install the same firmware on all hosts"; "dmidecode(8)") ),
    version("clocksource"; m::file($raw; "/sys/devices/system/clocksource/clocksource0/current_clocksource"); null;
      "a slow clock (hpet, acpi_pm) adds to every measured time";
      "Run dmesg | grep -i tsc to see why the kernel rejected the processor's counter"; "Linux, Documentation/timers/timekeeping.rst");

def package_names: {libibverbs1: "libibverbs", librdmacm1: "librdmacm", libfabric1: "libfabric"};

def packages($raw):
  ( [ (m::command($raw; "packages-dpkg"), m::command($raw; "packages-rpm")) | .stdout // "" | split("\n")[]
      | capture("^(?<name>[a-z0-9-]+) (?<version>[0-9]\\S*)$") ] ) as $all
  | ( ["libibverbs", "librdmacm", "libfabric", "perftest", "rdma-core"][] as $name
      | ([$all[] | select((package_names[.name] // .name) == $name) | .version] | unique | join(", ")) as $version
      | select($version != "")
      | version("package-" + $name; $version; null; "defaults differ between versions"; "Install the same version on all hosts"; "dpkg-query(1), rpm(8)") ),
    ( (m::command($raw; "ofed") | if .exit == 0 then .stdout | m::trimmed else null end) as $ofed
      | select($ofed != null)
      | version("ofed"; $ofed; null; "it replaces the kernel's drivers and the libraries"; "Install the same release on all hosts"; "ofed_info(1)") );

def findings($host):
  . as $raw
  | ($host.wanted // {}) as $w
  | modules($raw; $host), drivers($raw; $host), stuck($raw), nodes($raw; $host),
    iommu($raw; $host; $w.iommu // if $host.gpu then "passthrough" else null end), sysctls($raw; $w.sysctls), versions($raw), packages($raw);
