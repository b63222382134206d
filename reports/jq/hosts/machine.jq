# What a host says of itself apart from its network cards: memory, processors, kernel, firewall, clock, log -> findings.
import "hosts/machine_read" as m;
import "hosts/unread" as unread;
import "hosts/machine_memory" as memory;
import "hosts/machine_cpu" as cpu;
import "hosts/machine_kernel" as kernel;
import "hosts/machine_firewall" as firewall;
import "hosts/machine_clock" as clock;
import "hosts/machine_log" as log;
import "hosts/machine_log_drivers" as drivers;
import "hosts/machine_sharing" as sharing;
import "hosts/machine_gpu" as gpu;

# The interfaces that other hosts' connections may come in by: those under test, of loopback lo; none is not known.
def interfaces($raw; $host):
  if $host.fabric == "loopback" then ["lo"]
  else [$host.devices[] | .netdev // empty] + [$raw.files | keys_unsorted[] | select(endswith("/carrier_down_count"))
         | capture("^/sys/class/net/(?<n>[^/]+)/carrier_down_count$").n] | unique end;

# Whether a device under test is one of the kernel's own, whose packets pass its filter.
def has_soft($raw; $host):
  any($host.devices[].name; . as $d | (kernel::listed($raw) | index([$d]) != null) and kernel::is_soft($raw; $d));

# Input: what host-check printed. $host: as area.jq has it.
def findings($host):
  m::sane | . as $raw | log::log(.) as $log
  | ( memory::findings($host), cpu::findings($host), kernel::findings($host),
    firewall::findings($host; interfaces($raw; $host); has_soft($raw; $host)), clock::findings($host), log::findings($log), drivers::findings($host; $log), sharing::findings($host),
    gpu::findings($host) )
  | unread::settled($raw);

# $hosts: [{host, raw}] of one fabric -> findings between them, each with the host that it blames.
def between($hosts): [$hosts[] | .raw |= m::sane] | . as $sane | clock::between($sane), sharing::between($sane) | unread::settled({});
