# The kernel's log of a machine: what drivers of NICs and GPUs, the IOMMU and the scheduler say when something broke.
import "common" as c;
import "hosts/machine_read" as m;
import "hosts/machine_log" as log;

def errors($raw; $id; $device; $log; $severity; lost; mended; $part):
  log::judged($raw; $id; $device; $log; lost; mended; "\(.lost | c::plural("failure")), \(.mended | c::plural("warning"))"; $severity;
    {wanted: "no failure since boot, and no warning within a day"} + $part);

def chosen(wanted): if . == null then null else .lines |= map(select(.text | wanted)) end;

# ---- NICs -----------------------------------------------------------------------------------------------------------

# Lines of drivers, one row a kind: the driver, whether it lost something ("lost") or is a warning ("mended"), the words, and the file
# of Linux that prints them (drivers/net/ethernet and drivers/infiniband; of cxi HPE's shs-cxi-driver and its docs).
def nic_lines:
  [ # a firmware that stopped or was restarted. mlx5 prints its state with each syndrome; 10h is the temperature
    ["mlx5_core", "lost", "health compromised|Fatal error [0-9]|\\bsynd 0x(?!10\\b)|Health issue observed, (?!high temperature)", "mlx5/core/health.c"],
    ["mlx5_core", "lost", "health recovery (flow aborted|failed)|handling bad device here", "mlx5/core/health.c"],
    ["mlx5_core", "lost", "timeout\\. Will cause a leak of a command resource", "mlx5/core/cmd.c"],
    ["bnxt_", "lost", "fatal firmware reset event|firmware (non-)?fatal reset event|firmware (is )?not responding|firmware reset aborted|TX timeout", "bnxt/bnxt.c"],
    ["bnxt_", "lost", "FW STALL detected", "bnxt_re/qplib_rcfw.c"],
    ["(ice|irdma)", "lost", "HMC error|reset requested|rebuild failed, unload and reload driver", "ice/ice_main.c, irdma/hw.c"],
    ["ionic", "lost", "FW heartbeat stalled", "ionic/ionic_dev.c"],
    ["cxi_(core|ss1)", "lost", "C_EC_CRIT\\b", "shs-docs, Cassini error handling"],
    # a card or module that is too hot, drew too much or was unplugged; a command that the firmware rejected. ACCESS_REG is rejected
    # where a function may not read a register, as on NVIDIA's DGX, and says nothing of the card
    ["mlx5_core", "mended", "high temperature|port module event\\[error\\]|port module event: .* cable unplugged|insufficient power on the PCIe slot", "mlx5/core/events.c"],
    ["mlx5_core(?!.* ACCESS_REG\\()", "mended", "syndrome \\(0x", "mlx5/core/cmd.c"],
    ["bnxt_", "mended", "chip temperature has (gone above|crossed)|unqualified SFP\\+ module", "bnxt/bnxt.c"],
    # link errors among others; link-flaps judges those
    ["cxi_(core|ss1)", "mended", "C_EC_UNCOR_N?S\\b", "shs-docs, Cassini error handling"],
    # a reset that somebody asked for
    ["bnxt_", "mended", "firmware .*reset event", "bnxt/bnxt.c"],
    ["ionic", "mended", "FW down: stopping LIFs|DEVCMD .* timeout after", "ionic/ionic_lif.c, ionic_main.c"],
    ["ice", "mended", "module is incompatible with the device's NVM|module's power requirements exceed", "ice/ice_main.c"],
    # an error of a queue pair, which a program may cause
    ["(ice|irdma)", "mended", "abnormal ae_id", "irdma/hw.c"] ];
def nic_words($grade): [nic_lines[] | select(.[1] == $grade) | "\\b\(.[0]).*(\(.[2]))"] | join("|");

def nics($raw; $log):
  nic_words("lost") as $lost | nic_words("mended") as $mended
  | log::functions($raw)[] as $function
  | errors($raw; "nic-log"; $function.device; $log | chosen(contains($function.address)); "required";
      test($lost; "i"); (test($lost; "i") | not) and test($mended; "i");
      { why: "a card whose firmware stopped or overheated loses packets and connections",
        remedy: "Read the lines in dmesg; update the firmware, cool the card or module; if it comes again, replace it",
        source: "Linux, drivers/net/ethernet: mlx5, bnxt, ice, ionic; HPE, shs-cxi-driver" });

# "NETDEV WATCHDOG: enp1s0 (mlx5_core): transmit queue 3 timed out", newer "... enp1s0: NETDEV WATCHDOG: CPU: 3: transmit ...".
def stuck($raw; $log):
  $raw.files | keys_unsorted[] | select(endswith("/carrier_down_count"))
  | capture("^/sys/class/net/(?<n>[^/]+)/carrier_down_count$").n | . as $net
  | errors($raw; "transmit-timeouts"; $net;
      $log | chosen(test("NETDEV WATCHDOG: ") and test("(^|[ ])" + ($net | gsub("\\."; "\\.")) + "(:| \\()")); "required";
      test("NETDEV WATCHDOG"); false;
      { wanted: "none since boot", why: "a transmit queue that stands still stops its connections until the driver resets the card",
        remedy: "Update the driver and firmware; look at the lines above it in dmesg for their cause",
        source: "Linux, net/sched/sch_generic.c, dev_watchdog" });

# ---- GPUs -----------------------------------------------------------------------------------------------------------

# "NVRM: Xid (PCI:0000:3b:00): 79, pid=1122, GPU has fallen off the bus." -> 79
def xid: capture("NVRM: Xid \\(PCI:[0-9a-fA-F:.]+\\): (?<n>[0-9]{1,4})").n // null | if . == null then null else tonumber end;

# Those that a program causes, and after which the GPU is healthy (NVIDIA, k8s-device-plugin, internal/rm/health.go), and 63,
# a row of its memory that was replaced (NVIDIA, XID Errors).
def harmless: [13, 31, 43, 45, 63, 68, 109];

def gpu_lost: xid as $xid | if $xid != null then harmless | index($xid) == null else test("amdgpu.* [1-9][0-9]* (new )?uncorrectable hardware errors") end;
def gpu_mended: (gpu_lost | not) and (xid != null or test("amdgpu.* [1-9][0-9]* (new )?correctable hardware errors"));

def gpus($raw; $host; $log):
  (m::file($raw; "/proc/modules") // "" | test("(^|\n)(nvidia|amdgpu) ")) as $has
  | errors($raw; "gpu-log"; null; $log; if $host.gpu then "required" else "advisory" end; gpu_lost; gpu_mended;
      { why: "a GPU that failed stops a test in its memory, or returns wrong bytes",
        remedy: "Look the Xid up in NVIDIA's catalogue (amdgpu: RAS); drain the host, reset or replace the GPU",
        source: "NVIDIA, XID Errors; Linux, drivers/gpu/drm/amd/amdgpu/amdgpu_ras.c" })
  | if .status == "ok" and ($has | not) then .status = "not_applicable" | .found = "no driver of a GPU is loaded" else . end;

# ---- the IOMMU and the scheduler --------------------------------------------------------------------------------------

# "DMAR: [DMA Read NO_PASID] Request device [81:00.0] fault addr ..." (or 0x81:0x00.0), "AMD-Vi: Event logged [IO_PAGE_FAULT
# device=0000:81:00.0 ...", "mlx5_core 0000:81:00.0: AMD-Vi: ...", "arm-smmu-v3 ...: event 0x10 received".
def refused: test("DMAR: \\[.*fault|IO_PAGE_FAULT|arm-smmu.*(event 0x10|context fault)");
def names_function($address):
  ($address | ltrimstr("0000:") | gsub("\\."; "\\.")) as $short
  | gsub("0x(?<h>[0-9a-f]{2}[:.])"; .h) | gsub(":0x"; ":") | test("(^|[^0-9a-f])" + (if $short == $address then "" else "(0000:)?" end) + $short);

def iommu($raw; $log):
  log::functions($raw) as $functions
  | { wanted: "none since boot", why: "the IOMMU refused an access to memory, so its data is lost",
      remedy: "Boot with iommu=pt, update the driver and firmware of the device that the line names",
      source: "Linux, drivers/iommu/intel/dmar.c and amd/iommu.c" } as $part
  | ($log | chosen(refused)) as $faults
  | ( $functions[] as $function
      | errors($raw; "iommu-log"; $function.device; $faults | chosen(names_function($function.address)); "required"; true; false; $part) ),
    errors($raw; "iommu-log-others"; null; $faults | chosen(. as $line | any($functions[]; .address as $a | $line | names_function($a)) | not);
      "advisory"; true; false; $part);

# "INFO: task python3:1234 blocked for more than 120 seconds."
def hung($raw; $log):
  errors($raw; "hung-tasks"; null; $log | chosen(test("task .* blocked for more than ")); "advisory"; true; false;
    { wanted: "none since boot", why: "a program that waits in the kernel for minutes shows that a disk or a driver failed",
      remedy: "Read the call trace below the line in dmesg", source: "Linux, kernel/hung_task.c" });

def findings($host; $log):
  . as $raw | nics($raw; $log), stuck($raw; $log), gpus($raw; $host; $log), iommu($raw; $log), hung($raw; $log);
