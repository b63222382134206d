# Processors of a machine: how fast they run, how deep they sleep, and what else runs on them.
import "common" as c;
import "hosts/machine_read" as m;

def cpu: "/sys/devices/system/cpu/";

def has_cpufreq($raw): any($raw.files | keys_unsorted[] | select(startswith("/sys/devices/system/cpu/")); test("^/sys/devices/system/cpu/(cpu\\*/)?cpufreq/"));

# A setting that every CPU has, wanted alike on all. $absent: why there may be none.
def uniform($raw; $id; $what; $wanted; $absent; $part):
  m::per_cpu($raw; $what) as $found
  | m::finding($id;
      { status: (if $found != null then m::held($found | m::spread_value; $wanted | if . == null then . else tostring end)
                 elif $raw.files["/sys/devices/system/cpu/cpu*/" + $what] == null and m::has_sysfs($raw) then "not_applicable"
                 else "unknown" end),
        value: (if $found == null then null else $found | m::spread_value end),
        found: (if $found != null then $found | m::spread_text
                elif m::has_sysfs($raw) and $raw.files["/sys/devices/system/cpu/cpu*/" + $what] == null then $absent
                else "cannot be read" end),
        wanted: (if $wanted == null then null | m::wanted_or_alike else "\($wanted)" end) } + $part);

# ---- frequency ------------------------------------------------------------------------------------------------------

def driver($raw):
  ([m::per_cpu($raw; "cpufreq/scaling_driver") // [] | .[].value] | unique | join(", ")) as $driver
  | (m::file($raw; cpu + "intel_pstate/status") // m::file($raw; cpu + "amd_pstate/status")) as $mode
  | if $driver == "" then "" else " (\($driver)\(if $mode == null then "" else ", \($mode)" end))" end;

def governor($raw; $wanted):
  uniform($raw; "governor"; "cpufreq/scaling_governor"; $wanted; "no frequency driver; the firmware or the hypervisor sets the frequency";
    { why: "a CPU that slows down while idle handles the next packet late",
      remedy: "Set host_tune_governor: performance, or run cpupower frequency-set --governor performance",
      source: "Linux, Documentation/admin-guide/pm/cpufreq.rst" })
  | .found += driver($raw);

# The kernel shows the bias as a number: arch/x86/include/asm/msr-index.h, ENERGY_PERF_BIAS_*.
def bias_of: {performance: 0, balance_performance: 4, default: 6, balance_power: 8, power: 15}[.];

def energy($raw; $wanted):
  uniform($raw; "energy-preference"; "cpufreq/energy_performance_preference"; $wanted; "this driver has no energy preference";
    { why: "the processor can save energy at the cost of speed, even with the governor performance",
      remedy: "Set the governor to performance, or write performance to /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
      source: "Linux, Documentation/admin-guide/pm/intel_pstate.rst and amd-pstate.rst" }),
  uniform($raw; "energy-bias"; "power/energy_perf_bias"; ($wanted | if . == null then null else bias_of end);
    "this processor has no energy bias";
    { why: "a bias to save energy slows the cores and their path to the NIC",
      remedy: "Run x86_energy_perf_policy --epb 0 (0: performance, 15: power), or choose the firmware's performance profile",
      source: "Linux, Documentation/admin-guide/pm/intel_epb.rst" });

# Whether turbo may be used: true, false, or null.
def turbo_is_on($raw):
  (m::per_cpu($raw; "cpufreq/boost") // [] | map(.value) | unique) as $each
  | m::file($raw; cpu + "intel_pstate/no_turbo") as $no | m::file($raw; cpu + "cpufreq/boost") as $boost
  | if $no != null then if $no == "0" then true elif $no == "1" then false else null end
    elif $boost == "0" then false
    elif $each != [] then if $each == ["1"] then true else false end
    elif $boost == "1" then true
    else null end;

def on_off: if . == null then null elif . == true then "on" elif . == false then "off" else . end;

def turbo($raw; $wanted):
  (turbo_is_on($raw) | on_off) as $found
  | m::finding("turbo";
      { status: (if $found == null and m::has_sysfs($raw) and (has_cpufreq($raw) | not) then "not_applicable"
                 else m::held($found; $wanted | on_off) end),
        value: $found, found: ($found // "cannot be read"), wanted: ($wanted | on_off | m::wanted_or_alike),
        why: "turbo is faster but less even: the clock changes with heat and with the load of other cores",
        remedy: "Write to /sys/devices/system/cpu/intel_pstate/no_turbo, or to cpufreq/boost in the same folder",
        source: "Linux, Documentation/admin-guide/pm/intel_pstate.rst and cpufreq.rst" });

def mhz: . / 1000 | c::whole;

# What some CPUs ran at, beside the fastest they can. Right to differ, so never compared.
def frequency($raw):
  [$raw.files | to_entries[] | select(.key | endswith("/scaling_cur_freq") and test("^/sys/devices/system/cpu/cpu[0-9]+/cpufreq/scaling_cur_freq$")) | .value | m::number
   | select(. != null)] as $now
  | ([m::per_cpu($raw; "cpufreq/cpuinfo_max_freq") // [] | .[].value | m::number | select(. != null)] | max) as $most
  | ([m::per_cpu($raw; "cpufreq/scaling_max_freq") // [] | .[].value | m::number | select(. != null)] | min) as $allowed
  | m::finding("frequency";
      { status: (if $now == [] then "not_applicable" elif $allowed != null and $most != null and $allowed < $most then "bad" else "info" end),
        value: $allowed,
        found: (if $now == [] then "this machine shows no frequency"
                else "\($now | min | mhz) to \($now | max | mhz) MHz now; \($allowed // $most // 0 | mhz) MHz allowed, \($most // 0 | mhz) MHz possible" end),
        wanted: "the highest possible frequency allowed", why: "a limit below the processor's highest frequency slows every message",
        remedy: "Run cpupower frequency-set --max, or write to /sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq",
        source: "Linux, Documentation/admin-guide/pm/cpufreq.rst, scaling_max_freq" }),
    ( m::per_cpu($raw; "thermal_throttle/package_throttle_count") as $counts
      | select($counts != null)
      | ([$counts[].value | m::number] | if any(.[]; . == null) then null else max end) as $max
      | m::finding("throttled";
          { status: (if $max == null then "unknown" elif $max > 0 then "bad" else "ok" end),
            found: (if $max == null then "cannot be read" elif $max == 0 then "never since boot"
                    else "\($max) times since boot, because of heat" end),
            wanted: "never", why: "a processor that is too hot slows down, and so does each measurement on it",
            remedy: "Check fans, filters and the power limit; the firmware's log shows since when",
            source: "Linux, Documentation/admin-guide/thermal/intel_powerclamp.rst; arch/x86/kernel/cpu/mce/therm_throt.c" }) );

# ---- idle states ----------------------------------------------------------------------------------------------------

# [{name, latency_us, cpus: those that may enter it}]
def states($raw):
  [ $raw.files | keys_unsorted[] | select(endswith("/latency")) | capture("^/sys/devices/system/cpu/cpu\\*/cpuidle/(?<s>state[0-9]+)/latency$").s ]
  | map(. as $s
      | { name: (m::per_cpu($raw; "cpuidle/\($s)/name") // [{value: $s}] | m::spread_value),
          latency_us: ([m::per_cpu($raw; "cpuidle/\($s)/latency") // [{value: null}] | .[].value | m::number]
                       | if any(.[]; . == null) then null else max end),
          # any bit of it switches the state off
          cpus: ([m::per_cpu($raw; "cpuidle/\($s)/disable") // [] | .[] | select(.value == "0") | .cpus] | join(",")),
          known: (m::per_cpu($raw; "cpuidle/\($s)/disable") != null) })
  | sort_by(.latency_us);

# What programs allow at most, in microseconds; null where none has set it (the kernel's 2,000 s) or it cannot be read.
def asked($raw):
  m::command($raw; "idle-latency") | .stdout | m::number | if . == null or . < 0 or . >= 1000000000 then null else . end;

def idle($raw; $wanted):
  states($raw) as $all | asked($raw) as $asked
  | m::file($raw; cpu + "cpuidle/current_driver") as $driver
  | (m::arguments($raw; ["idle", "intel_idle.max_cstate", "processor.max_cstate", "cpuidle.off"]) | join(" ")) as $arguments
  | ([$all[] | select(.latency_us == null or (.known | not))] != []) as $damaged
  | ([$all[] | select(.cpus != "" and ($asked == null or .latency_us <= $asked))] | last) as $deepest
  | m::finding("idle-states";
      { status: (if $damaged then "unknown"
                 elif $all == [] then
                   if $driver == "none" or $arguments != "" then "info" elif m::has_sysfs($raw) then "not_applicable" else "unknown" end
                 else m::held($deepest.latency_us // 0; null)
                   | if $wanted == null then . elif ($deepest.latency_us // 0) <= $wanted then "ok" else "bad" end end),
        value: (if $damaged then null elif $all == [] then null else $deepest.latency_us // 0 end),
        found: ((if $damaged then "some states cannot be read"
                 elif $all == [] then "no driver for idle states"
                 elif $deepest == null then "all idle states are off"
                 else "\($deepest.name), \($deepest.latency_us) us to wake, on CPUs \($deepest.cpus | if length > 60 then .[:60] + "..." else . end)" end)
                + (if $driver == null then "" else " (\($driver): \([$all[].name] | join(", ")))" end)
                + (if $asked == null then "" else "; /dev/cpu_dma_latency: at most \($asked) us" end)
                + if $arguments == "" then "" else "; \($arguments)" end),
        wanted: (if $wanted == null then null | m::wanted_or_alike else "at most \($wanted) us to wake" end),
        why: "a CPU in a deep idle state wakes late, which adds to the latency",
        remedy: "Set host_tune_idle_latency_us: \($wanted // 10), or run tuned-adm profile network-latency",
        source: "Linux, Documentation/admin-guide/pm/cpuidle.rst" });

# ---- which CPUs, and who else uses them -------------------------------------------------------------------------------

def smt($raw; $wanted):
  m::file($raw; cpu + "smt/active") as $active
  | (if $active == "1" then "on" elif $active == "0" then "off" else null end) as $found
  | m::finding("smt";
      { status: m::held($found; $wanted | on_off), value: $found,
        found: (($found // "cannot be read") + (m::file($raw; cpu + "smt/control") | if . == null then "" else " (\(.))" end)),
        wanted: ($wanted | on_off | m::wanted_or_alike),
        why: "two threads share one core, so a polling thread slows down while the other runs",
        remedy: "Write on or off to /sys/devices/system/cpu/smt/control, or boot with nosmt",
        source: "Linux, Documentation/ABI/testing/sysfs-devices-system-cpu, smt" });

def cpu_list: [(. // "") | split(",")[] | select(test("^[0-9]+(-[0-9]+)?$")) | split("-") | map(tonumber) | range(.[0]; .[-1] + 1)] | unique;

def isolated($raw; $wanted):
  $raw.files[cpu + "isolated"] as $text
  | (m::file($raw; cpu + "isolated") // "") as $list
  | (m::file($raw; cpu + "nohz_full") // "" | if test("^[0-9]") then . else "" end) as $tickless
  | m::finding("isolated-cpus";
      { status: (if $text == null then "unknown" elif $wanted == null then "info"
                 elif ($list | cpu_list) == ($wanted | tostring | cpu_list) then "ok" else "bad" end),
        value: (if $text == null then null else $list end),
        found: (if $text == null then "cannot be read"
                else (if $list == "" then "none" else $list end) + (if $tickless == "" then "" else "; without a tick (nohz_full) \($tickless)" end) end),
        wanted: (if $wanted == null then null | m::wanted_or_alike elif $wanted == "" then "none" else "\($wanted)" end),
        why: "on an isolated core no other process interrupts the polling thread",
        remedy: "Boot with isolcpus= and nohz_full=, or choose tuned's profile cpu-partitioning",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, isolcpus, nohz_full" });

# Whether isolated CPUs are free of what else the kernel runs on them: ticks, RCU callbacks, interrupts.
def isolation($raw):
  (m::file($raw; cpu + "isolated") // "" | cpu_list) as $isolated
  | (m::file($raw; cpu + "nohz_full") | cpu_list) as $tickless
  | (m::argument($raw; "rcu_nocbs") | if . == "all" then $isolated else cpu_list end) as $no_callbacks
  | m::argument($raw; "irqaffinity") as $affinity
  | [ (if $isolated - $tickless == [] then empty else "nohz_full" end),
      # the kernel offloads callbacks of all tickless CPUs (Documentation/timers/no_hz.rst)
      (if $isolated - $tickless - $no_callbacks == [] then empty else "rcu_nocbs" end),
      (if $affinity != null and $isolated - ($affinity | cpu_list) == $isolated then empty else "irqaffinity" end) ] as $lacks
  | m::finding("isolation";
      { status: (if $isolated == [] then "not_applicable" elif $lacks == [] then "ok" else "bad" end),
        found: (if $isolated == [] then "no CPU is isolated"
                else "\(m::file($raw; cpu + "isolated")): " + if $lacks == [] then "no tick, no callbacks, no interrupts" else "missing: \($lacks | join(", "))" end end),
        wanted: "nohz_full, rcu_nocbs and irqaffinity keep isolated CPUs free",
        why: "the kernel's own work on an isolated core delays single messages: it shows in p99.9",
        remedy: "Boot with nohz_full= and rcu_nocbs= of these CPUs, and irqaffinity= of the others (tuned: cpu-partitioning)",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt; admin-guide/kernel-per-CPU-kthreads.rst" });

# The programs that host-check looks for: null where others' processes cannot be seen.
def programs($raw):
  m::file($raw; "/proc/*/comm")
  | if . == null then null
    else [split("\n")[] | capture("^(?<pid>[0-9]+) (?<name>\\S+)( (?<words>.*))?$")]
      | if any(.[]; .pid == "1") then . else null end end;

def runs($raw; $name): programs($raw) | if . == null then null else [.[] | select(.name == $name)] | first end;

# The modules whose interrupts irqbalance leaves alone: "--banmod=mlx5_core" (irqbalance(1)).
def banned: [.words // "" | scan("--banmod=([A-Za-z0-9_]+)")[]];
# The drivers of the RDMA devices.
def drivers($raw):
  [$raw.links | to_entries[] | select(.key | test("^/sys/class/infiniband/[^/]+/device/driver$")) | .value | split("/") | last] | unique;

def irqbalance($raw; $wanted):
  programs($raw) as $programs | runs($raw; "irqbalance") as $it
  | (if $programs == null then null else $it != null end) as $running
  | drivers($raw) as $drivers
  | ($drivers != [] and $drivers - ($it // {} | banned) == []) as $spared
  | m::finding("irqbalance";
      { status: (if $running and $wanted == false and $spared then "ok" else m::held($running; $wanted) end), value: $running,
        found: (if $running == null then "processes of other users cannot be seen"
                elif $running then "runs" + (if ($it.words // "") == "" then ", with no CPU or interrupt excluded" else ": \($it.words)" end)
                else "does not run" end),
        wanted: (if $wanted == null then null | m::wanted_or_alike elif $wanted then "it runs" else "it does not run, or leaves the drivers of RDMA devices alone" end),
        why: "irqbalance moves the NIC's interrupts to other CPUs while a test runs",
        remedy: "Run systemctl disable --now irqbalance, or set host_tune_irqbalance_ban (its option --banmod)",
        source: "irqbalance(1)" });

def tuned($raw):
  runs($raw; "tuned") as $runs | m::file($raw; "/etc/tuned/active_profile") as $profile
  | (if programs($raw) == null then null elif $runs == null then "none" else $profile // "none" end) as $found
  | m::finding("tuned";
      { status: m::held($found; null), value: $found,
        found: (if $found == null then "processes of other users cannot be seen" elif $found == "none" then "no profile is active" else $found end),
        why: "a profile sets governor, idle states and sysctls, and may overwrite yours",
        remedy: "Run tuned-adm profile network-latency, or set host_tune_tuned_profile", source: "tuned-adm(8)" });

# tuned-adm verify says it in one line (tuned, tuned/admin/admin.py; "Verfication" until 2.11).
def tuned_holds($raw):
  m::command($raw; "tuned-verify") as $said
  | select($raw.commands["tuned-verify"] != null)
  | ($said.stdout | if test("^Veri?fication succeeded, ") then true elif test("^Verification failed, ") then false else null end) as $holds
  | m::finding("tuned-settings";
      { status: (if $holds == null then "unknown" elif $holds then "ok" else "bad" end),
        found: (if $holds == null then (if $said.exit == 0 then "tuned-adm verify said nothing of it" else $said | m::refusal("tuned-adm") end)
                elif $holds then "as the profile has them" else "other than the profile has them" end),
        missing: ($said | m::missing("tuned-adm")), wanted: "the settings of the active profile", why: "a setting that was changed by hand or lost is not the one that was chosen",
        remedy: "Read /var/log/tuned/tuned.log for the setting; run systemctl restart tuned", source: "tuned-adm(8), verify" });

def model($raw):
  (m::command($raw; "cpu-model").stdout // "") as $text
  | def said($name): $text | capture("(^|\\n)" + $name + "\\s*: (?<v>[^\\n]*\\S)").v // null;
    (said("model name") // said("CPU part")) as $model | said("microcode") as $code
  | m::file($raw; cpu + "online") as $online
  | m::finding("processor";
      { status: m::held($model; null), value: $model,
        found: (($model // "cannot be read") + (if $online == null then "" else ", CPUs \($online) online" end)
                + if $text | test("(^|\\n)flags\\s*:[^\\n]* hypervisor( |\\n|$)") then ", in a virtual machine" else "" end),
        why: "hosts with different processors give different figures", remedy: "Put hosts with different processors into a perch_group of their own",
        source: "proc_cpuinfo(5)" }),
    m::finding("microcode";
      { status: m::held($code; null), value: $code, found: ($code // "cannot be read"),
        why: "microcode brings mitigations, which cost time", remedy: "Update the firmware, or the microcode package",
        source: "Linux, Documentation/arch/x86/microcode.rst" }),
    m::finding("cpus-online";
      { status: m::held($online; null), value: $online, found: ($online // "cannot be read"),
        why: "an offline CPU can serve no interrupts and run no tests",
        remedy: "Write 1 to /sys/devices/system/cpu/cpuN/online", source: "Linux, Documentation/admin-guide/cputopology.rst" });

# What the processor's holes cost: those whose remedy is at work. Right to differ between models, alike within a group.
def mitigations($raw):
  [$raw.files | to_entries[] | select(.key | startswith(cpu + "vulnerabilities/")) | {name: (.key | split("/") | last), state: .value}] as $all
  | [$all[] | select(.state | startswith("Mitigation"))] as $active
  | (m::argument($raw; "mitigations") // "auto") as $asked
  | m::finding("mitigations";
      { status: (if $all == [] then "unknown" else "info" end),
        value: (if $all == [] then null else "\($asked): \([$active[].name] | sort | join(" "))" end),
        found: (if $all == [] then "cannot be read" else "\($active | length) of \($all | length) active (mitigations=\($asked))" end),
        why: "each costs time in every system call and interrupt", remedy: "Boot with mitigations=, where site policy allows it",
        source: "Linux, Documentation/admin-guide/hw-vuln/index.rst" });

def uncore($raw):
  [$raw.files | to_entries[] | select(.key | endswith("_freq_khz") and test("/intel_uncore_frequency/[^/]+/(min|max)_freq_khz$"))
   | {key: (.key | split("/") | .[-2:] | join("/")), value: (.value | m::number)}] as $all
  | select($all != [])
  | ($all | map("\(.key) \(.value // "?")") | sort | join(", ")) as $text
  | m::finding("uncore-frequency";
      { status: (if any($all[]; .value == null) then "unknown" else "info" end), value: $text, found: "\($text) kHz",
        why: "the path between cores, memory and PCIe has its own clock, which slows while cores are idle",
        remedy: "Write the value of max_freq_khz to min_freq_khz", source: "Linux, Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst" });

def findings($host):
  . as $raw
  | ($host.wanted // {}) as $w
  | governor($raw; $w.governor), energy($raw; $w.energy_preference), turbo($raw; $w.turbo), frequency($raw), idle($raw; $w.idle_latency_us),
    smt($raw; $w.smt), isolated($raw; $w.isolated_cpus), isolation($raw), irqbalance($raw; $w.irqbalance), tuned($raw), tuned_holds($raw), model($raw), mitigations($raw), uncore($raw);
