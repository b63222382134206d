# Memory of a machine: huge pages, transparent ones, NUMA, what may be locked, and errors that its controllers counted.
import "common" as c;
import "hosts/machine_read" as m;

def kernel_docs: "Linux, Documentation/admin-guide/mm/hugetlbpage.rst";

# ---- huge pages -----------------------------------------------------------------------------------------------------

def pages($raw; $dir): {reserved: m::file_number($raw; $dir + "/nr_hugepages"), free: m::file_number($raw; $dir + "/free_hugepages")};

def pages_of_nodes($raw; $kib):
  [ $raw.files | keys_unsorted[]
    | capture("^(?<dir>/sys/devices/system/node/node(?<n>[0-9]+)/hugepages/hugepages-\($kib)kB)/nr_hugepages$")
    | {node: (.n | tonumber)} + pages($raw; .dir) ]
  | sort_by(.node);

def pages_text: "\(.reserved) reserved, \(.free // "?") free";

def hugepages($raw; $size; $kib; $wanted):
  pages($raw; "/sys/kernel/mm/hugepages/hugepages-\($kib)kB") as $all
  | pages_of_nodes($raw; $kib) as $nodes
  # a kernel that knows the other size, and not this one, has a processor without it
  | ($all.reserved == null and any($raw.files | keys_unsorted[]; startswith("/sys/kernel/mm/hugepages/"))) as $none
  | m::finding("hugepages-\($size)";
      { status: (if $none then if ($wanted // 0) > 0 then "bad" else "info" end
                 elif $all.reserved == null then "unknown"
                 elif $wanted == null then "info"
                 elif $all.reserved < $wanted then "bad"
                 elif $all.free == null then "unknown"
                 elif $all.free < $wanted then "bad"
                 else "ok" end),
        found: (if $none then "this processor has no pages of this size"
                elif $all.reserved == null then "cannot be read"
                else ($all | pages_text)
                  + if ($nodes | length) > 1 then " (" + ([$nodes[] | "node \(.node): \(pages_text)"] | join("; ")) + ")" else "" end end),
        value: (if $none then 0 else $all.reserved end),
        wanted: (if $wanted == null then null | m::wanted_or_alike else "\($wanted) reserved and free" end),
        why: "huge pages need fewer entries in the NIC's translation cache; a test that requires them fails without",
        remedy: "Set host_tune_hugepages_\($size), or write the number to /sys/kernel/mm/hugepages/hugepages-\($kib)kB/nr_hugepages",
        source: kernel_docs }),
    # on the node of each NIC
    ( select(($wanted // 0) > 0 and ($nodes | length) > 1)
      | [$raw.files | keys_unsorted[] | select(endswith("/numa_node")) | capture("^/sys/class/infiniband/(?<d>[^/]+)/device/numa_node$").d][] as $device
      | m::file_number($raw; "/sys/class/infiniband/\($device)/device/numa_node") as $node
      | select($node != null and $node >= 0)
      | ([$nodes[] | select(.node == $node)] | first) as $local
      | m::finding("hugepages-\($size)-local";
          { $device, status: (if $local == null or $local.free == null then "unknown" elif $local.free > 0 then "ok" else "bad" end),
            found: ("node \($node), the NIC's: " + if $local == null then "cannot be read" else $local | pages_text end),
            wanted: "free huge pages on the NIC's node",
            why: "pages on another node are reached over the link between processors",
            remedy: "Write to /sys/devices/system/node/node\($node)/hugepages/hugepages-\($kib)kB/nr_hugepages",
            source: kernel_docs }) );

# ---- transparent huge pages, NUMA, swap -----------------------------------------------------------------------------

# "always [madvise] never" -> madvise
def chosen: (. // "") | capture("\\[(?<w>[a-z+_]+)\\]").w // null;

def transparent($raw; $wanted):
  (m::file($raw; "/sys/kernel/mm/transparent_hugepage/enabled") | chosen) as $found
  | (m::file($raw; "/sys/kernel/mm/transparent_hugepage/defrag") | chosen) as $defrag
  | m::finding("transparent-hugepages";
      { status: m::held($found; $wanted), value: $found,
        found: (if $found == null then "cannot be read" else $found + if $defrag == null then "" else ", defrag \($defrag)" end end),
        wanted: ($wanted | m::wanted_or_alike),
        why: "the kernel stops a process while it merges pages",
        remedy: "Set host_tune_transparent_hugepages, or write to /sys/kernel/mm/transparent_hugepage/enabled",
        source: "Linux, Documentation/admin-guide/mm/transhuge.rst" });

def balancing($raw; $wanted):
  m::file_number($raw; "/proc/sys/kernel/numa_balancing") as $found
  | m::file($raw; "/sys/devices/system/node/online") as $nodes
  | m::finding("numa-balancing";
      { status: (if $found == null and m::has_sysctls($raw) then "not_applicable"
                 elif $wanted != null and $found != $wanted and $nodes == "0" then "not_applicable"
                 else m::held($found; $wanted) end),
        value: $found,
        found: (if $found != null then "\($found)" + if $nodes == "0" then ", with one node" else "" end
                elif m::has_sysctls($raw) then "this kernel has no NUMA balancing" else "cannot be read" end),
        wanted: (if $wanted == null then $wanted | m::wanted_or_alike else "\($wanted)" end),
        why: "NUMA balancing unmaps pages for a moment, and moves them to other nodes",
        remedy: "Set host_tune_sysctls: {kernel.numa_balancing: \($wanted // 0)}",
        source: "Linux, Documentation/admin-guide/sysctl/kernel.rst, numa_balancing" });

def nodes($raw):
  m::file($raw; "/sys/devices/system/node/online") as $online
  | ($online // "" | m::cpu_count) as $count
  | m::finding("numa-nodes";
      { status: m::held($count; null), value: $count,
        found: (if $count == null then "cannot be read" else "\($count | c::plural("node")) (\($online))" end),
        why: "the number of nodes (NPS, sub-NUMA clustering) decides how far memory is from the NIC",
        remedy: "Set the same number of nodes per socket in each firmware (AMD: NPS, Intel: SNC)",
        source: "AMD, BIOS & Workload Tuning Guide, NUMA nodes per socket; Intel, Sub-NUMA clustering" });

# How far each node's memory is: "10 21" a node, in the order of the nodes.
def distances($raw):
  [ $raw.files | keys_unsorted[] | capture("^(?<f>/sys/devices/system/node/node(?<n>[0-9]+)/distance)$") ] | sort_by(.n | tonumber)
  | map(m::file($raw; .f) // "?") | join("; ") | . as $found
  | m::finding("numa-distances";
      { status: (if $found == "" then "unknown" else "info" end), value: (if $found == "" then null else $found end),
        found: (if $found == "" then "cannot be read" else $found end),
        why: "hosts whose nodes lie differently reach the NIC's memory differently", remedy: "Set NPS or SNC alike in each firmware",
        source: "Linux, Documentation/ABI/stable/sysfs-devices-node, distance" });

# dmidecode --type 17: a paragraph a slot, with "Size: 64 GB" or "No Module Installed" -> "16 x 64 GB DDR5 at 4800 MT/s; 8 empty"
def modules($raw):
  m::command($raw; "memory-modules") as $said
  | [ $said.stdout | split("\n\n")[] | select(test("(^|\n)Memory Device\n"))
      | def said($name): capture("\n\\s*" + $name + ": (?<v>[^\n]*\\S)").v // null;
        { size: said("Size"), type: said("Type"), speed: (said("Configured (Memory|Clock) Speed") // said("Speed")) } ] as $slots
  | [$slots[] | select(.size != null and (.size | test("^[0-9]+ [KMGT]B$")))] as $filled
  | ( $filled | group_by([.size, .type, .speed])
      | map("\(length) x \(.[0].size) \(.[0].type // "?") at \(.[0].speed // "?")") | sort | join(", ") ) as $text
  | (($slots | length) - ($filled | length)) as $empty
  | ($text + if $empty == 0 then "" else "; \($empty) empty" end) as $found
  | m::finding("memory-modules";
      { status: (if $filled == [] then "unknown" else "info" end), value: (if $filled == [] then null else $found end),
        found: (if $filled != [] then $found elif $said.exit == 0 then "dmidecode names no module"
                else $said | m::refusal("dmidecode") end), missing: ($said | m::missing("dmidecode")),
        why: "an empty channel or a slower module takes its share of the memory's bandwidth",
        remedy: "Put the same modules into the same slots of all hosts (dmidecode --type 17)", source: "dmidecode(8)" });

def memory($raw):
  (m::file($raw; "/proc/meminfo") // "") as $text
  | ($text | capture("MemTotal: +(?<n>[0-9]+) kB").n // null | m::number) as $total
  | ($text | capture("SwapTotal: +(?<n>[0-9]+) kB").n // null | m::number) as $swap
  # whole GiB: kernels of one version reserve some MiB more or fewer
  | (if $total == null then null else $total / 1048576 | round end) as $gib
  | m::finding("memory";
      { status: m::held($gib; null), value: $gib, found: (if $gib == null then "cannot be read" else "\($gib) GiB" end),
        why: "a host with less memory than its group lacks a module, or uses fewer channels",
        remedy: "Run dmidecode --type memory, which shows empty or disabled slots", source: "proc_meminfo(5)" }),
    m::finding("swap";
      { status: m::held($swap; null), value: (if $swap == null then null else $swap > 0 end),
        found: (if $swap == null then "cannot be read" elif $swap == 0 then "none" else "\($swap) KiB" end),
        why: "a buffer that is not locked may be swapped to disk", remedy: "Run swapoff --all, and remove swap from /etc/fstab",
        source: "proc_meminfo(5)" });

# ---- errors that the memory controllers counted -----------------------------------------------------------------------

def controllers($raw):
  def counted($kind): [$raw.files | to_entries[] | select(.key | startswith("/sys/devices/system/edac/") and test("^/sys/devices/system/edac/mc/mc[0-9]+/\($kind)_count$")) | .value | m::number];
  counted("ue") as $ue | counted("ce") as $ce
  | ($ue | length == 0) as $none | any($ue[], $ce[]; . == null) as $damaged
  | m::finding("memory-errors";
      { status: (if $none then "not_applicable" elif any($ue[]; (. // 0) > 0) then "bad" elif $damaged then "unknown" else "ok" end),
        severity: "required",
        found: (if $none then "no driver counts memory errors (EDAC)" elif $damaged then "some counts cannot be read"
                else "\($ue | add) uncorrected, \($ce | add // 0) corrected since boot" end),
        wanted: "no uncorrected error",
        why: "an uncorrected error loses data, which may be a payload",
        remedy: "Replace the module that dmesg | grep EDAC names",
        source: "Linux, Documentation/driver-api/edac.rst" });

# ---- memory that may be locked ------------------------------------------------------------------------------------------

def kib: if . == null then null elif . == "unlimited" then . else (. | tonumber) / 1024 | floor | tostring end;
def limit_text: if . == null then "cannot be read" elif . == "unlimited" then . else "\(tonumber | c::whole) KiB" end;

# What a limit has to be: unlimited, or at least so many KiB.
def suffices($wanted): . == "unlimited" or ($wanted != "unlimited" and (. | tonumber) >= ($wanted | tonumber));

# CAP_IPC_LOCK is bit 14 of the capabilities in force: who has it is not bound by the limit (drivers/infiniband/core/umem.c).
def may_lock_all($raw):
  (m::file($raw; "/proc/self/status") // "" | capture("CapEff:\\s*(?<x>[0-9a-f]{16})").x // null)
  | if . == null then null else .[12:13] | test("[4567cdef]") end;

def own_limit($raw; $host):
  (m::file($raw; "/proc/self/limits") // "" | capture("Max locked memory +(?<soft>[0-9]+|unlimited) +(?<hard>[0-9]+|unlimited)") // {}) as $limit
  | ($limit.soft | kib) as $soft | may_lock_all($raw) as $free
  | ($host.wanted.memlock | if . == null then null else tostring end) as $wanted
  | m::finding("memlock";
      { status: (if $soft == null then "unknown" elif $wanted == null then "info"
                 elif ($soft | suffices($wanted)) or $free == true then "ok" else "bad" end),
        # without an RDMA device nothing has to be locked
        severity: (if ($host.devices // []) == [] then "advisory" else "required" end), value: $soft,
        found: (($soft | limit_text) + " for \(m::command($raw; "user").stdout | m::trimmed // "the test user")"
                + if ($limit.hard | kib) == $soft then "" else ", which it may raise to \($limit.hard | kib | limit_text)" end
                + if $free == true then "; the limit does not apply (CAP_IPC_LOCK)" else "" end),
        wanted: ($wanted | if . == null then m::wanted_or_alike else limit_text end),
        why: "each buffer of a NIC is locked memory; registration fails above the limit",
        remedy: "Set host_tune_memlock, then log in again (an open connection keeps the old limit)",
        source: "getrlimit(2), RLIMIT_MEMLOCK; limits.conf(5)" });

# What pam_limits gives the user at a login: of limits.conf, then of limits.d by name, the last line of the closest domain.
# Lines for groups and for all are not for root.
def login_limit($raw; $user; $groups):
  [ $raw.files | keys[] | select(startswith("/etc/security/") and test("^/etc/security/limits\\.(conf$|d/)")) ] as $paths
  | [ ($paths | map(select(. == "/etc/security/limits.conf")))[], ($paths | map(select(. != "/etc/security/limits.conf")))[]
      | $raw.files[.] | split("\n")[]
      | select(startswith("#") | not) | capture("^\\s*(?<who>[^#\\s]\\S*)\\s+(?<type>soft|hard|-)\\s+memlock\\s+(?<limit>[0-9]+|unlimited|infinity|-1)\\s*(#.*)?$")
      | select(.type != "hard")
      | (if .who == $user then 3 elif $user == "root" then 0
         elif (.who | startswith("@")) and (.who[1:] as $g | $groups | index([$g]) != null) then 2
         elif .who == "*" then 1 else 0 end) as $rank
      | select($rank > 0) | {$rank, limit: (if .limit | test("^[0-9]+$") then .limit else "unlimited" end)} ]
  | (map(.rank) | max) as $best | map(select(.rank == $best)) | last | .limit // null;

def configured($raw):
  (m::command($raw; "user").stdout | m::trimmed // "?") as $user
  | [m::command($raw; "groups").stdout // "" | splits("\\s+") | select(. != "")] as $groups
  | login_limit($raw; $user; $groups) as $login
  | m::finding("memlock-login";
      { value: ($login // "not set"),
        found: (if $login == null then "limits.conf and limits.d set no limit for \($user)" else "\($login | limit_text) for \($user)" end),
        why: "each new login gets this limit; the present connection may have another",
        remedy: "Set host_tune_memlock, or write a file in /etc/security/limits.d", source: "limits.conf(5), pam_limits(8)" }),
    ( m::command($raw; "service-limits") as $said
      | ($said.stdout // "" | capture("DefaultLimitMEMLOCKSoft=(?<n>[0-9]+|infinity)").n
         // (($said.stdout // "" | capture("DefaultLimitMEMLOCK=(?<n>[0-9]+|infinity)").n) // null)) as $default
      | (if $default == "infinity" then "unlimited" else $default | kib end) as $value
      | m::finding("memlock-service";
          { status: (if $said.exit == null then "not_applicable" else m::held($value; null) end), $value,
            found: (if $value != null then $value | limit_text else $said | m::refusal("systemctl") end),
            why: "services of systemd, such as sshd, get this limit and pass it to their processes",
            remedy: "Set DefaultLimitMEMLOCK= in /etc/systemd/system.conf.d, or LimitMEMLOCK= of the service",
            source: "systemd-system.conf(5)" }) );

def findings($host):
  . as $raw
  | ($host.wanted // {}) as $wanted
  | hugepages($raw; "2m"; 2048; $wanted.hugepages_2m), hugepages($raw; "1g"; 1048576; $wanted.hugepages_1g),
    transparent($raw; $wanted.transparent_hugepages), balancing($raw; $wanted.numa_balancing), nodes($raw), distances($raw), memory($raw), modules($raw),
    controllers($raw), own_limit($raw; $host + {$wanted}), configured($raw);
