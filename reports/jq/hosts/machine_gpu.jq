# GPUs of a machine: whether each NIC can reach their memory over PCIe, and whether they are sound. Required where a test
# uses GPU memory ($host.gpu); else it is advice.
import "common" as c;
import "hosts/machine_read" as m;
import "hosts/nic_read" as r;
import "hosts/nic_pci_config" as config;

def dir: "/sys/bus/pci/devices/\(.)";

# [{function, vendor, chain: its functions, its own first, then the bridges above it}]
def gpus($raw):
  [ $raw.files | keys_unsorted[] | capture("^/sys/bus/pci/devices/(?<f>[^/]+)/class$").f | . as $function
    | m::file($raw; ($function | dir) + "/vendor") as $vendor
    | { $function, vendor: (if $vendor == "0x10de" then "NVIDIA" else "AMD" end), chain: ($raw.links[$function | dir] | r::functions) } ]
  | sort_by(.function);

def finding($host; $id; $part):
  m::finding("gpu-" + $id; {severity: (if $host.gpu then "required" else "advisory" end)} + $part);

def of_gpu($host; $gpu; $id; $part): finding($host; $id; {device: $gpu.function} + $part);

# ---- which there are, and the way from a NIC to their memory ----------------------------------------------------------

def present($raw; $host; $gpus):
  ($gpus | group_by(.vendor) | map("\(length) of \(.[0].vendor)") | join(", ")) as $text
  | finding($host; "present";
      { value: (if $gpus == [] then null else $text end), wanted: "GPUs with a driver, the same on all hosts",
        status: (if $gpus != [] then "ok" elif $host.gpu then "bad" else "not_applicable" end),
        found: (if $gpus == [] then "no GPU has the driver nvidia or amdgpu" else $text end),
        why: "a test in GPU memory needs a GPU on each end", remedy: "Load the driver (modprobe nvidia or amdgpu); lspci -k names it",
        source: "Linux, Documentation/ABI/testing/sysfs-bus-pci" });

def has_module($raw; $name): m::file($raw; "/proc/modules") // "" | test("(^|\n)\($name) ");

# The kernel's release as one number: "6.8.0-45-generic" -> 6008.
def release($raw):
  m::file($raw; "/proc/sys/kernel/osrelease") // "" | capture("^(?<a>[0-9]{1,3})\\.(?<b>[0-9]{1,3})") // null
  | if . == null then null else (.a | tonumber) * 1000 + (.b | tonumber) end;

# Two ways: the module nvidia_peermem, or a DMA buffer, which the open modules and kernels from 5.12 have (NVIDIA, GPUDirect
# RDMA and GPUDirect Storage, "DMA-BUF"). amdgpu exports DMA buffers by itself.
def direct($raw; $host; $gpus):
  m::file($raw; "/proc/driver/nvidia/version") as $version
  | ($version // "" | test("Open Kernel Module")) as $open
  | release($raw) as $release
  | has_module($raw; "nvidia_peermem") as $peermem
  | ($open and $release != null and $release >= 5012) as $dmabuf
  | any($gpus[]; .vendor == "NVIDIA") as $nvidia
  | finding($host; "direct";
      { wanted: "nvidia_peermem, or the open modules on Linux 5.12 or newer",
        status: (if $gpus == [] then "not_applicable" elif $nvidia | not then "ok"
                 elif $peermem or $dmabuf then "ok" elif m::file($raw; "/proc/modules") == null or $version == null then "unknown" else "bad" end),
        value: (if $nvidia then "peermem \($peermem), dmabuf \($dmabuf)" else null end),
        found: (if $gpus == [] then "no GPU" elif $nvidia | not then "amdgpu exports DMA buffers"
                elif $version == null then "/proc/driver/nvidia/version cannot be read"
                else [ (if $peermem then "nvidia_peermem" else "nvidia_peermem is not loaded" end),
                       (if $open then "open kernel modules" else "closed kernel modules" end) ] | join(", ") end),
        why: "without either, a NIC cannot register GPU memory, and the test fails or copies through the host",
        remedy: "Set host_tune_peermem: true, or install the open kernel modules",
        source: "NVIDIA, GPUDirect RDMA, kernel modules; rdma-core, ibv_reg_dmabuf_mr(3)" });

# What else decides how a NIC and the processor reach GPU memory: GDRCopy's module, and parameters of NVIDIA's driver.
def parameters: ["EnableStreamMemOPs", "GrdmaPciTopoCheckOverride", "PeerMappingOverride"];
def modules($raw; $host; $gpus):
  select(any($gpus[]; .vendor == "NVIDIA"))
  | (m::file($raw; "/proc/driver/nvidia/params") // "") as $text
  | [ "gdrdrv " + (if has_module($raw; "gdrdrv") then "loaded" else "not loaded" end),
      (parameters[] as $name | $text | capture("(^|\n)" + $name + ": (?<v>[0-9]{1,10})(\n|$)").v | "\($name) \(.)") ] | join(", ") | . as $found
  | finding($host; "modules";
      { severity: "advisory", status: (if m::file($raw; "/proc/modules") == null then "unknown" else "info" end),
        value: (if m::file($raw; "/proc/modules") == null then null else $found end), $found,
        why: "hosts with other modules and parameters copy small messages of GPU memory in another way",
        remedy: "Load gdrdrv (GDRCopy) and set the driver's parameters alike on all hosts",
        source: "NVIDIA, GDRCopy; /proc/driver/nvidia/params" });

# Under test: [{device, chain}]; a virtual function's way is that of its physical one.
def nics($raw):
  [ $raw.links | to_entries[] | .value as $to | .key | capture("^/sys/class/infiniband/(?<device>[^/]+)$")
    | .chain = ($to | r::functions | if . == [] then . else r::physical($raw) end) | select(.chain != []) ]
  | sort_by(.device);

# The bridges below the lowest one that both have above them, else null: of a NIC those on its way to a GPU, of both ends.
def between($nic; $gpu):
  ([$nic.chain[1:][] | select(. as $bridge | $gpu.chain | index([$bridge]) != null)] | first) as $common
  | if $common == null then null
    else [$nic, $gpu | .chain[1:] | .[: index([$common])][]] end;

# The nearest GPU of a NIC: {gpu, bridges}, bridges null where only the root complex joins them
def nearest($gpus; $nic):
  [ $gpus[] | {gpu: .function, bridges: between($nic; .)} | select(.bridges != null) ] | sort_by(.bridges | length) | first // null;

# ACS turns packets between two devices of a switch up to the root: both bridges below the common one can do so.
def acs($raw; $host; $gpus; $nic):
  nearest($gpus; $nic) as $near
  | [($near.bridges // [])[] as $bridge | {$bridge} + (m::command($raw; "pci \($bridge)").stdout // "" | config::fields)] as $way
  | [$way[] | select(.redirect == true) | .bridge] as $on
  | any($way[]; (.readable and .express) | not) as $blind
  | finding($host; "acs";
      { device: $nic.device, wanted: "no redirect between the NIC and its nearest GPU",
        status: (if $near == null then "not_applicable" elif $on != [] then "bad" elif $blind then "unknown" else "ok" end),
        found: (if $near == null then "no GPU is below a PCIe switch of this NIC"
                elif $on != [] then "redirects at \($on | join(", ")), on the way to \($near.gpu)"
                elif $blind then "the configuration space of a bridge needs root (ansible_become: true)"
                else "none on the way to \($near.gpu)" end),
        why: "ACS sends traffic to GPU memory through the root complex, at a fraction of the rate",
        remedy: "Set host_tune_pcie_acs: disabled, switch ACS off in the BIOS, or boot with pci=config_acs= (Linux 6.11)",
        source: "NVIDIA, GPUDirect RDMA, PCIe ACS; PCI Express Base Specification, Access Control Services" });

# Where a host has GPUs, how near each NIC has one: NVIDIA's words of `nvidia-smi topo -m`.
def distance($raw; $host; $gpus; $nic):
  nearest($gpus; $nic) as $near
  | m::file_number($raw; ($nic.chain[0] | dir) + "/numa_node") as $node
  | any($gpus[]; m::file_number($raw; (.function | dir) + "/numa_node") == $node) as $same
  | (if $near != null then if ($near.bridges | length) <= 2 then "PIX" else "PXB" end elif $same then "NODE" else "SYS" end) as $way
  | finding($host; "distance";
      { device: $nic.device, severity: "advisory", status: "info", value: $way,
        found: ("\($way): " + if $near != null then "\($near.gpu) is below the same PCIe switch" elif $same then "a GPU is on the same node" else "all GPUs are on other nodes" end),
        why: "the farther a GPU is from the NIC, the less of its memory's rate the NIC gets", source: "nvidia-smi topo -m",
        remedy: "Let each test use the nearest GPU, or move the card to a slot below the GPU's switch" });

# ---- each GPU ---------------------------------------------------------------------------------------------------------

def width($raw; $host; $gpu):
  m::file_number($raw; ($gpu.function | dir) + "/current_link_width") as $now
  | ([$gpu.chain[0:2][] | m::file_number($raw; dir + "/max_link_width") | values | select(. > 0 and . < 64)] | min) as $most
  # the speed of an idle GPU is lowered on purpose, its width is not
  | ([$gpu.chain[0:2][] | m::file($raw; dir + "/max_link_speed") // "" | capture("^(?<v>[0-9.]+) GT/s").v // empty | tonumber + 0] | min) as $speed
  | of_gpu($host; $gpu; "link-width";
      { status: (if $now == null or $most == null then "unknown" elif $now >= $most then "ok" else "bad" end), value: $now,
        found: (if $now == null or $most == null then "cannot be read" else "\($now)x of \($most)x" + if $speed == null then "" else ", up to \($speed) GT/s" end end),
        wanted: (if $most == null then "the width of GPU and slot" else "\($most)x" end),
        why: "a narrow link caps what any NIC can read from the GPU", remedy: "Reseat the GPU or its riser (lspci -vv -s \($gpu.function))",
        source: "Linux, Documentation/ABI/testing/sysfs-bus-pci" });

# A line a region: "0x0000380000000000 0x0000381fffffffff 0x000000000014220c": its first byte, its last, its flags. -> MiB of the
# largest. Sixteen digits are more than a double holds, so only the upper eleven of them count: whole MiB.
def largest($text):
  def mib: .[2:13] | r::hex;
  [ $text // "" | split("\n")[:6][] | capture("^(?<a>0x[0-9a-f]{16}) (?<b>0x[0-9a-f]{16}) 0x[0-9a-f]{16}$") | (.b | mib) - (.a | mib) + 1 ]
  | max;

# "00000000:3B:00.0, NVIDIA H100 80GB HBM3, 81559, Enabled, 0" -> {memory, ecc, errors}; "[N/A]" and the like are null
def smi($raw; $gpu):
  [ m::command($raw; "nvidia-smi") | select(.exit == 0) | .stdout | split("\n")[] | split(", ") | select(length == 5)
    | select((.[0] | ascii_downcase | .[-12:]) == $gpu.function)
    | {memory: (.[2] | m::number), ecc: .[3], errors: (.[4] | m::number)} ] | first // null;

def bar($raw; $host; $gpu):
  largest($raw.files[($gpu.function | dir) + "/resource"]) as $mib
  | smi($raw; $gpu).memory as $memory
  | of_gpu($host; $gpu; "bar";
      { severity: "advisory", value: $mib,
        status: (if $mib == null then "unknown" elif $memory == null then "info" elif $mib >= $memory then "ok" else "bad" end),
        found: (if $mib == null then "cannot be read" else "\($mib | c::whole) MiB" + if $memory == null then "" else " for \($memory | c::whole) MiB of memory" end end),
        wanted: (if $memory == null then "the same on all hosts" else "at least the GPU's memory" end),
        why: "a NIC can register no more GPU memory than this window shows", remedy: "Switch on Above 4G Decoding and Resizable BAR in the BIOS",
        source: "NVIDIA, GPUDirect RDMA, BAR sizes" });

# amdgpu: files of "ue: 0" and "ce: 1" for each block.
def errors($raw; $host; $gpu):
  [ $raw.files | to_entries[] | select(.key | startswith(($gpu.function | dir) + "/ras/")) | .value | capture("(^|\n)ue: (?<n>[0-9]{1,15})").n // "?" ] as $blocks
  | smi($raw; $gpu) as $smi
  | m::command($raw; "nvidia-smi") as $said
  | (if $gpu.vendor == "AMD" then
       if $blocks == [] then {status: "not_applicable", found: "amdgpu counts no memory errors of this GPU"}
       elif any($blocks[]; . == "?") then {status: "unknown", found: "a count of amdgpu is damaged"}
       else ([$blocks[] | tonumber] | add) as $sum | {status: (if $sum > 0 then "bad" else "ok" end), found: "\($sum) uncorrected"} end
     elif $said.exit == null then {status: "unknown", found: "nvidia-smi is not installed", missing: "nvidia-smi of the driver's release"}
     elif $smi == null then {status: "unknown", found: ($said | if .exit == 0 then "nvidia-smi does not name this GPU" else m::refusal("nvidia-smi") end)}
     elif $smi.errors == null then {status: ({Enabled: "unknown", Disabled: "bad"}[$smi.ecc] // "not_applicable"), found: "ECC: \($smi.ecc)"}
     else {status: (if $smi.errors > 0 then "bad" else "ok" end), found: "\($smi.errors) uncorrected since the driver was loaded"} end) as $told
  | of_gpu($host; $gpu; "memory-errors";
      $told + { wanted: "ECC on, no uncorrected error", why: "an uncorrected error of GPU memory loses payload",
        remedy: "Run nvidia-smi -q -d ECC,ROW_REMAPPER (AMD: amd-smi metric --ecc); switch ECC on, or replace the GPU",
        source: "NVIDIA, GPU Memory Error Management; Linux, Documentation/gpu/amdgpu/ras.rst" });

def findings($host):
  . as $raw
  | gpus($raw) as $gpus
  | present($raw; $host; $gpus), direct($raw; $host; $gpus), modules($raw; $host; $gpus),
    ( select($gpus != []) | nics($raw)[] as $nic | acs($raw; $host; $gpus; $nic), distance($raw; $host; $gpus; $nic) ),
    ( $gpus[] as $gpu | width($raw; $host; $gpu), bar($raw; $host; $gpu), errors($raw; $host; $gpu) );
