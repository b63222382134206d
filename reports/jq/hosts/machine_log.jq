# The kernel's log of a machine: errors of PCIe and of the processors, and links that went down.
import "common" as c;
import "hosts/machine_read" as m;
import "hosts/link_flaps" as flaps;

def now($raw): $raw.collected | c::attempt(fromdateiso8601; null);
def uptime($raw): m::file($raw; "/proc/uptime") // "" | capture("^(?<s>[0-9]+(\\.[0-9]+)?)").s // null | if . == null then null else tonumber end;

# host-check's lines: "source journal" or "source dmesg", the oldest line that the log has, then those that matter, as
# "1763740800.123456 host kernel: ..." and "[   12.345678] ...". Null where the log could not be read.
# -> {source, since, lines: [{time, text}]}; a time that cannot be told is null
def log($raw):
  m::command($raw; "kernel-log-lines") as $said
  | (now($raw) - uptime($raw) | c::attempt(.; null))? // null | . as $start
  | ($said.stdout // "" | split("\n") | map(select(. != ""))) as $all
  | ($all[0] // "" | capture("^source (?<s>journal|dmesg)$").s // null) as $source
  | if $said.exit != 0 or $source == null or ($all | length) < 2 then null
    else
      [ $all[1:][]
        | if $source == "journal" then capture("^ *(?<t>[0-9]+(\\.[0-9]+)?) (?<text>.*)$") // {t: null, text: .}
          else capture("^(<[0-9]+>)?\\[ *(?<t>[0-9]+\\.[0-9]+)\\](\\[[^\\]]*\\])? *(?<text>.*)$") // {t: null, text: .} end
        | {time: (.t | if . == null then null elif $source == "journal" then tonumber
                       elif $start == null then null else $start + tonumber end), text} ] as $lines
      | {$source, since: $lines[0].time, lines: $lines[1:]} end;

def refused($raw): m::command($raw; "kernel-log-lines") | if .exit == 3 or .exit == 0 then "the kernel log is empty" else m::refusal("dmesg") end;

def ago($now): if . == null or $now == null then "" else ", the last \(($now - .) / 3600 | if . < 1 then "within the hour" else "\(floor | c::plural("hour")) ago" end)" end;

# Lines -> {lost, mended: lines; recent: how many were mended within a day; found}. words: their numbers in words.
def counted($now; lost; mended; words):
  { lost: [.[] | select(.text | lost)], mended: [.[] | select(.text | mended)] }
  | .recent = ([.mended[] | select($now == null or .time == null or .time > $now - 86400)] | length)
  | .found = (if .lost == [] and .mended == [] then "none"
              else ({lost: (.lost | length), mended: (.mended | length)} | words)
                   + ([.lost[], .mended[] | .time | numbers] | max | ago($now)) end);

# Those where something was lost fail; the others within a day are said: a sound part has none. Source: site policy.
def judged($raw; $id; $device; $log; lost; mended; words; $severity; $part):
  now($raw) as $now
  | ($log | if . == null then null else .lines | counted($now; lost; mended; words) end) as $all
  | m::finding($id;
      { $device, severity: (if $all != null and $all.lost != [] then $severity else "advisory" end),
        status: (if $all == null then "unknown" elif $all.lost != [] or $all.recent > 0 then "bad" else "ok" end),
        found: (if $all == null then refused($raw)
                else $all.found + (if $all.lost + $all.mended == [] then "" else ": " + ($all.lost + $all.mended | last | .text | .[0:120]) end) end) } + $part);

def errors($raw; $id; $device; $log; lost; mended; $severity; $part):
  judged($raw; $id; $device; $log; lost; mended; "\(.lost) uncorrected, \(.mended) corrected"; $severity;
    {wanted: "no uncorrected error, and no corrected error within a day"} + $part);

def addresses: [split("/")[] | select(test("^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$"))];
# The PCI functions under test, [{device, address, port}]: of RDMA devices the end of the link device, of Cassini NICs that of the NIC
# itself. port: the one above it, where the link shows that.
def functions($raw):
  [ $raw.links | to_entries[] | .value as $to | .key
    | ( select(startswith("/sys/class/infiniband/")) | capture("^/sys/class/infiniband/(?<device>[^/]+)/device$")
        | .address = ($to | addresses | last) | .port = ($raw.links["/sys/class/infiniband/" + .device] // "" | addresses | .[-2:-1] | first) ),
      ( select(startswith("/sys/class/cxi/")) | capture("^/sys/class/cxi/(?<device>[^/]+)$")
        | .address = ($to | addresses | last) | .port = ($to | addresses | .[-2:-1] | first) )
    | select(.address != null) ];

# drivers/pci/pcie/aer.c; "Correctable" in newer kernels. A port that contains an error (dpc.c) has cut off all below it. The port announces an error, and the device's own line follows,
# unless the port cannot tell whose it was: the first counts where there is none of the second.
def contained: test("DPC:? containment event");
def pcie_lost: test("(severity=|AER: (Multiple )?)Uncorrect(ed|able)") or contained;
def pcie_mended: test("(severity=|AER: (Multiple )?)Correct(ed|able)");
def pcie_lines: [.[] | select(.text | test("PCIe Bus Error: severity="))] as $own | if $own != [] then $own else . end;

def pcie($raw; $log):
  functions($raw) as $functions
  | { why: "a packet lost on the bus is sent again, which slows the test",
      remedy: "Reseat the card or its riser; lspci -vv shows the device's status", source: "Linux, Documentation/PCI/pcieaer-howto.rst" } as $part
  | ( $functions[] | .device as $device | .address as $address | (.port // "none") as $port
      | ($log | if . == null then null
                else .lines |= (map(select(.text | contains($address) or (contains($port) and contained))) | pcie_lines) end) as $own
      | errors($raw; "pcie-log"; $device; $own; pcie_lost; pcie_mended; "required"; $part) ),
    ( ($log | if . == null then null
              else .lines |= (map(select(.text | . as $t
                                         | any($functions[]; .address as $a | (.port // "none") as $p | $t | contains($a) or (contains($p) and contained)) | not))
                             | pcie_lines) end) as $others
      | errors($raw; "pcie-log-others"; null; $others; pcie_lost; pcie_mended; "advisory"; $part) );

# arch/x86/kernel/cpu/mce, drivers/edac, drivers/acpi/apei/ghes.c, mm/memory-failure.c
def cpu_lost: test("Uncorrected hardware memory error|Memory failure: 0x") or test("Hardware Error") and test("Uncorrected|[Ff]atal|Deferred|severity: recoverable") or test("EDAC .* UE ");
def cpu_mended: (cpu_lost | not) and (test("AER|PCIe") | not) and (test("Machine check events logged|Corrected error|severity: corrected") or test("EDAC .* CE "));

def links($raw; $log):
  $raw.files | keys_unsorted[] | select(endswith("/carrier_down_count"))
  | capture("^/sys/class/net/(?<n>[^/]+)/carrier_down_count$").n | . as $net
  | ($log | if . == null then null
            else [.lines[] | select(.text | test("[Ll]ink (is )?([Dd]own|DOWN)") and test("(^|[^A-Za-z0-9_.-])" + ($net | gsub("\\."; "\\.")) + "([^A-Za-z0-9_.-]|$)"))
                  | .time // now($raw)] end) as $times
  | flaps::judged($times; m::file_number($raw; "/sys/class/net/\($net)/carrier_down_count"); (uptime($raw) | if . == null then null else . / 3600 end); now($raw)) as $judged
  | m::finding("link-flaps";
      { device: $net, severity: "required", status: $judged.status, found: $judged.found, wanted: flaps::wanted, why: flaps::why,
        remedy: "Reseat or replace cable or module; check the switch port's errors, and whether a program sets the interface down",
        source: "HPE cxi_healthcheck (shs-docs, CXI_Healthcheck.md), the only published rule" });

# $log: of this host, as `log` has it
def findings($log):
  . as $raw
  | pcie($raw; $log),
    errors($raw; "hardware-log"; null; $log; cpu_lost; cpu_mended; "required";
      { why: "a failing processor or memory corrupts results and can stop the machine",
        remedy: "Run ras-mc-ctl --errors (rasdaemon), or read the management controller's log: both name the part", source: "Linux, Documentation/arch/x86/x86_64/machinecheck.rst" }),
    links($raw; $log);
