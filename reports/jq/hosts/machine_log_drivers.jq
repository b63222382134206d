# The kernel's log of a machine: what drivers of NICs and GPUs, the IOMMU and the scheduler say when something broke.
import "common" as c;
import "hosts/machine_read" as m;
import "hosts/machine_log" as log;

def errors($raw; $id; $device; $log; $severity; lost; mended; $part):
  log::judged($raw; $id; $device; $log; lost; mended; "\(.lost | c::plural("failure")), \(.mended | c::plural("warning"))"; $severity;
    {wanted: "no failure since boot, and no warning within a day"} + $part);

def chosen(wanted): if . == null then null else .lines |= map(select(.text | wanted)) end;

# ---- NICs -----------------------------------------------------------------------------------------------------------

# A firmware that stopped, or was restarted. mlx5 prints its state with each syndrome but 10h (the temperature):
# drivers/net/ethernet/mellanox/mlx5/core/health.c; bnxt/bnxt.c; Intel's ice_main.c.
def nic_lost:
  test("mlx5_core.*(health compromised|Fatal error [0-9]|\\bsynd 0x(?!10\\b))")
  or test("bnxt_.*(fatal firmware reset event|firmware (non-)?fatal reset event|firmware (is )?not responding|TX timeout)"; "i")
  or test("(ice|irdma) .*(HMC Error|[Rr]eset requested)");

# A card or module that is too hot or drew too much, a command that the firmware rejected (mlx5/core/events.c and cmd.c), a
# reset that somebody asked for, a queue pair's error (irdma/hw.c), which a program may cause.
def nic_mended:
  (nic_lost | not)
  and (test("mlx5_core.*(High temperature|Port module event\\[error\\]|syndrome \\(0x)") or test("bnxt_.*firmware .*reset event"; "i")
       or test("(ice|irdma) .*abnormal ae_id"));

def nics($raw; $log):
  log::functions($raw)[] as $function
  | errors($raw; "nic-log"; $function.device; $log | chosen(contains($function.address)); "required"; nic_lost; nic_mended;
      { why: "a card whose firmware stopped or overheated loses packets and connections",
        remedy: "Read the lines in dmesg; update the firmware, cool the card or module; if it comes again, replace it",
        source: "Linux, drivers/net/ethernet: mlx5/core/health.c and events.c, bnxt.c, ice_main.c" });

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
