#!/usr/bin/env bats
# What hosts say of themselves apart from their network cards: judged on two servers' published words (tests/fixtures/hosts),
# and read from this machine's real /proc and /sys, and from trees that are made up where it has none.

load helpers

FIXTURES=$TOP/tests/fixtures/hosts
WANTED='{"hugepages_2m": 4096, "governor": "performance", "energy_preference": "performance", "idle_latency_us": 10, "smt": false, "turbo": true,
  "isolated_cpus": "8-15", "irqbalance": false, "memlock": "unlimited", "transparent_hugepages": "madvise", "numa_balancing": 0,
  "iommu": "passthrough", "sysctls": {"net.core.rmem_max": 268435456, "net.ipv4.tcp_rmem": "4096 87380 134217728"}, "clock_skew_s": 1}'
HOST='{"name": "a", "fabric": "roce", "scope": "hardware", "devices": [{"name": "mlx5_0"}], "ports": [18600, 5201]}'

# shellcheck disable=SC2016  # jq's own variables
setup_file() {
  keep findings jq -c --unbuffered -f "$(rules 'import "hosts/machine" as m;
    map(.host as $host | .findings = [.doc | m::findings($host)] | del(.doc, .host))')"
}
teardown_file() { end_kept; }
setup() { common_setup; }
teardown() { common_teardown; }

# judge FILE [JQ-OF-THE-DOCUMENT [JQ-OF-THE-HOST]]: its findings, in findings.json
judge() {
  jq -c --argjson host "$HOST" --argjson wanted "$WANTED" "(\$host + {\$wanted} | ${3:-.}) as \$host | ${2:-.} | [{doc: ., \$host}]" "$1" >asked.json
  ask findings <asked.json >answer.json
  jq '.[0].findings' answer.json >findings.json
}

status_of() { jq -r --arg id "machine-$1" '[.[] | select(.id == $id) | .status] | unique | join("+")' findings.json; }
found_of() { jq -r --arg id "machine-$1" '[.[] | select(.id == $id) | .found] | first' findings.json; }

# cases FILE: lines "ID = STATUS = JQ-EDIT", each of them: with that edit alone the finding has that status.
cases() {
  local id status edit
  {
    printf '. as $doc | ($host + {$wanted}) as $host | [empty'
    while IFS='=' read -r id status edit; do
      [ -z "$id" ] || printf ',\n($doc | (%s) | {id: "%s", status: "%s", edit: %s, doc: ., $host})' "$edit" "${id// /}" "${status// /}" \
        "$(jq -n --arg e "$edit" '$e')"
    done
    printf ']'
  } >cases.jq
  jq -c --argjson host "$HOST" --argjson wanted "$WANTED" -f cases.jq "$1" >asked.json
  ask findings <asked.json >answers.json
  assert_json answers.json "length == $(grep -c '{id: "' cases.jq)"
  run jq -r '.[] | .id as $id | .status as $status | .edit as $edit
    | [.findings[] | select(.id == "machine-" + $id) | .status] | unique | join("+")
    | select(. != $status) | "\($edit): \($id) is \(.), not \($status)"' answers.json
  assert_success
  assert_output ""
}

whole() {
  assert_json findings.json 'all(.[]; (keys - ["device", "found", "id", "remedy", "severity", "source", "status", "value", "wanted", "why"]) == []
    and all(.id, .found, .why, .remedy, .source; type == "string" and . != "")
    and (.id | test("^machine-[a-z0-9A-Z-]+$")) and (.status | test("^(ok|bad|unknown|not_applicable|info)$")) and (.severity | test("^(required|advisory)$"))
    and (.remedy | endswith(".") | not) and (.value | type | . != "object" and . != "array") and (.wanted | type | . == "string" or . == "null"))'
}

@test "a tuned AMD server is as wanted" {
  judge "$FIXTURES/machine-amd.json"
  whole
  assert_equal "$(jq -c '[.[] | select(.status == "bad" or .status == "unknown") | .id]' findings.json)" "[]"
  local id
  for id in hugepages-2m hugepages-2m-local transparent-hugepages numa-balancing memory-errors memlock governor energy-preference turbo idle-states smt \
    isolated-cpus isolation irqbalance module-ib-uverbs module-rdma-ucm driver rdma-nodes iommu sysctl-net-core-rmem-max sysctl-net-ipv4-tcp-rmem firewall clock \
    pcie-log pcie-log-others hardware-log link-flaps; do
    assert_equal "$id $(status_of $id)" "$id ok"
  done
  assert_equal "$(found_of idle-states)" "C1, 1 us to wake, on CPUs 0-127 (acpi_idle: POLL, C1, C2); /dev/cpu_dma_latency: at most 1 us"
  assert_equal "$(found_of clock)" "chrony: within 0.310 ms of 192.0.2.1"
}

@test "an Intel server as it comes is told what to change, and what is only shown is shown" {
  judge "$FIXTURES/machine-intel.json"
  whole
  assert_equal "$(jq -r '[.[] | select(.status == "bad") | .id | ltrimstr("machine-")] | join(" ")' findings.json)" \
    "hugepages-2m hugepages-2m-local transparent-hugepages numa-balancing memlock governor energy-preference energy-bias throttled idle-states smt isolated-cpus irqbalance iommu sysctl-net-core-rmem-max sysctl-net-ipv4-tcp-rmem firewall clock pcie-log link-flaps"
  assert_equal "$(jq -r '[.[] | select(.status == "bad" and .severity == "required") | .id] | join(" ")' findings.json)" "machine-memlock machine-firewall machine-link-flaps"
  assert_equal "$(found_of firewall)" "closed: 18600/tcp, 5201/tcp"
  assert_equal "$(found_of link-flaps)" "6 in the last hour, 6 in ten"
  assert_equal "$(found_of memlock)" "8,192 KiB for perch"
  # nothing absolute wanted: info, with what is compared
  judge "$FIXTURES/machine-intel.json" . '.wanted = {}'
  whole
  assert_json findings.json '[.[] | select(.id == "machine-governor", .id == "machine-hugepages-2m", .id == "machine-smt", .id == "machine-iommu",
    .id == "machine-memlock", .id == "machine-idle-states") | [.status, .value]] == [["info", 0], ["info", "8192"], ["info", "powersave"], ["info", 170], ["info", "on"], ["info", "translated"]]'
}

@test "memory: pages, limits and errors, each by itself" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
hugepages-2m = bad = .files["/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"] = "4095"
hugepages-2m = bad = .files["/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"] = "4095"
hugepages-2m = unknown = del(.files["/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"])
hugepages-2m = unknown = .files |= with_entries(select(.key | test("hugepages-") | not))
hugepages-2m-local = bad = .files["/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages"] = "0"
hugepages-2m-local = ok = .files["/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages"] = "0"
transparent-hugepages = bad = .files["/sys/kernel/mm/transparent_hugepage/enabled"] = "[always] madvise never"
transparent-hugepages = unknown = .files["/sys/kernel/mm/transparent_hugepage/enabled"] = "always madvise never"
numa-balancing = bad = .files["/proc/sys/kernel/numa_balancing"] = "1"
numa-balancing = not_applicable = .files["/proc/sys/kernel/numa_balancing"] = "1" | .files["/sys/devices/system/node/online"] = "0"
numa-balancing = not_applicable = del(.files["/proc/sys/kernel/numa_balancing"])
numa-balancing = unknown = del(.files["/proc/sys/kernel/numa_balancing"], .files["/proc/sys/kernel/ostype"])
memory-errors = bad = .files["/sys/devices/system/edac/mc/mc1/ue_count"] = "1"
memory-errors = unknown = .files["/sys/devices/system/edac/mc/mc1/ue_count"] = "?"
memory-errors = not_applicable = .files |= with_entries(select(.key | test("edac") | not))
memlock = bad = .files["/proc/self/limits"] = "Max locked memory         65536                unlimited            bytes     "
memlock = ok = .files["/proc/self/limits"] = "Max locked memory  65536  65536  bytes" | .files["/proc/self/status"] = "CapEff:\t000001ffffffffff"
memlock = bad = .files["/proc/self/limits"] = "Max locked memory  65536  65536  bytes" | .files["/proc/self/status"] = "CapEff:\t000001ffffffbfff"
memlock = unknown = .files["/proc/self/limits"] = "Max open files 1024 1024 files"
CASES
  judge "$FIXTURES/machine-amd.json" '.files["/proc/self/limits"] = "Max locked memory  67108864  67108864  bytes"' '.wanted.memlock = "65536"'
  assert_equal "$(status_of memlock)" ok
  judge "$FIXTURES/machine-amd.json" '.files["/proc/self/limits"] = "Max locked memory  67107840  67107840  bytes"' '.wanted.memlock = 65536'
  assert_equal "$(status_of memlock)" bad
}

@test "a login's limit is pam_limits': the closest domain's last line, and nothing of groups and all for root" {
  run jq -n -r -f "$(rules 'import "hosts/machine_memory" as m;
    def of($user; $conf; $d): {files: {"/etc/security/limits.conf": $conf, "/etc/security/limits.d/90-rdma.conf": $d}} | m::login_limit(.; $user; [$user, "rdma"]) // "none";
    of("perch"; "* soft memlock 64"; ""), of("perch"; "* soft memlock 64"; "* - memlock unlimited"),
    of("perch"; "@rdma soft memlock 128\n* soft memlock unlimited"; ""), of("perch"; "@rdma soft memlock 128"; "* soft memlock unlimited"),
    of("perch"; "@other soft memlock 128\nperch - memlock 32 # small"; "@rdma soft memlock -1"),
    of("root"; "* - memlock unlimited\n@rdma - memlock unlimited"; ""), of("root"; "root - memlock infinity"; ""),
    of("perch"; "#* soft memlock 64\n* hard memlock 64\n* soft nofile 64"; ""), of("perch"; "* soft memlock 64\n* soft memlock 65"; "")')"
  assert_output $'64\nunlimited\n128\n128\n32\nnone\nunlimited\nnone\n65'
}

@test "processors: frequency, idle states, threads and who else uses them, each by itself" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
governor = bad = .files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"] = "0-3,5-127 performance\n4 powersave"
governor = unknown = .files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"] = "performance"
governor = not_applicable = del(.files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"])
governor = unknown = del(.files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"], .files["/sys/devices/system/cpu/present"])
energy-preference = bad = .files["/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"] = "0-127 power"
energy-bias = bad = .files["/sys/devices/system/cpu/cpu*/power/energy_perf_bias"] = "0-127 15"
energy-bias = ok = .files["/sys/devices/system/cpu/cpu*/power/energy_perf_bias"] = "0-127 0"
turbo = bad = .files["/sys/devices/system/cpu/cpufreq/boost"] = "0"
turbo = bad = .files["/sys/devices/system/cpu/cpu*/cpufreq/boost"] = "0-126 1\n127 0"
turbo = bad = .files["/sys/devices/system/cpu/intel_pstate/no_turbo"] = "1"
turbo = unknown = del(.files["/sys/devices/system/cpu/cpufreq/boost"], .files["/sys/devices/system/cpu/cpu*/cpufreq/boost"])
frequency = bad = .files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq"] = "0-126 3707812\n127 1500000"
throttled = bad = .files["/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count"] = "0-127 1"
throttled = ok = .files["/sys/devices/system/cpu/cpu*/thermal_throttle/package_throttle_count"] = "0-127 0"
idle-states = ok = .files["/sys/devices/system/cpu/cpu*/cpuidle/state2/disable"] = "0-127 0"
idle-states = bad = .commands["idle-latency"].stdout = "  2000000000" | .files["/sys/devices/system/cpu/cpu*/cpuidle/state2/disable"] = "0-126 1\n127 0"
idle-states = ok = .commands["idle-latency"].stdout = "  2000000000"
idle-states = unknown = del(.files["/sys/devices/system/cpu/cpu*/cpuidle/state2/disable"])
idle-states = unknown = .files["/sys/devices/system/cpu/cpu*/cpuidle/state1/latency"] = "0-127 ?"
idle-states = not_applicable = .files |= with_entries(select(.key | test("cpuidle") | not))
idle-states = info = .files |= (with_entries(select(.key | test("cpuidle/state") | not)) | .["/sys/devices/system/cpu/cpuidle/current_driver"] = "none")
smt = bad = .files["/sys/devices/system/cpu/smt/active"] = "1"
smt = unknown = .files["/sys/devices/system/cpu/smt/active"] = ""
isolated-cpus = ok = .files["/sys/devices/system/cpu/isolated"] = "8,9-12,13-15"
isolated-cpus = bad = .files["/sys/devices/system/cpu/isolated"] = "8-14"
isolated-cpus = unknown = del(.files["/sys/devices/system/cpu/isolated"])
irqbalance = bad = .files["/proc/*/comm"] += "\n77 irqbalance"
irqbalance = ok = .files["/proc/*/comm"] += "\n77 irqbalance --foreground --banmod=mlx5_core --banmod=nvme"
irqbalance = bad = .files["/proc/*/comm"] += "\n77 irqbalance --foreground --banmod=nvme --banirq=120"
irqbalance = bad = .links |= with_entries(select(.key | test("/device/driver$") | not)) | .files["/proc/*/comm"] += "\n77 irqbalance --banmod=mlx5_core"
irqbalance = unknown = .files["/proc/*/comm"] = "812 chronyd"
tuned-settings =  = .
tuned-settings = ok = .commands["tuned-verify"] = {exit: 0, stdout: "Verification succeeded, current system settings match the preset profile.\nSee TuneD log file ('/var/log/tuned/tuned.log') for details.", stderr: ""}
tuned-settings = ok = .commands["tuned-verify"] = {exit: 0, stdout: "Verfication succeeded, current system settings match the preset profile.", stderr: ""}
tuned-settings = bad = .commands["tuned-verify"] = {exit: 1, stdout: "Verification failed, current system settings differ from the preset profile.\nYou can mostly fix this by restarting the TuneD daemon, e.g.:", stderr: ""}
tuned-settings = unknown = .commands["tuned-verify"] = {exit: 1, stdout: "", stderr: "Cannot verify profile if there is no connection to daemon"}
tuned-settings = unknown = .commands["tuned-verify"] = {exit: null, stdout: "", stderr: ""}
irqbalance = unknown = del(.files["/proc/*/comm"])
mitigations = unknown = .files |= with_entries(select(.key | test("vulnerabilities") | not))
CASES
}

@test "the kernel: modules, nodes, the IOMMU and sysctls, each by itself" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
module-ib-uverbs = bad = del(.files["/sys/class/infiniband_verbs/abi_version"])
module-rdma-ucm = bad = del(.files["/sys/class/misc/rdma_cm/abi_version"])
module-rdma-ucm = unknown = del(.files["/sys/class/misc/rdma_cm/abi_version"], .files["/sys/devices/system/cpu/present"])
driver = bad = del(.links["/sys/class/infiniband/mlx5_0/device/driver"])
driver = ok = .links = {}
driver = bad = .links = {} | del(.files["/sys/class/infiniband/mlx5_0/node_type"])
rdma-nodes = bad = .commands["rdma-nodes"].stdout = "/dev/infiniband/rdma_cm rw\n/dev/infiniband/uverbs0"
rdma-nodes = bad = .commands["rdma-nodes"].stdout = ""
rdma-nodes = unknown = .commands["rdma-nodes"].exit = 124
iommu = bad = .files["/sys/kernel/iommu_groups/40/type"] = "DMA"
iommu = unknown = del(.files["/sys/kernel/iommu_groups/40/type"])
iommu = unknown = del(.links["/sys/class/infiniband/mlx5_0/device/iommu_group"])
iommu = ok = del(.links["/sys/class/infiniband/mlx5_0/device/iommu_group"], .links["/sys/class/iommu/ivhd0"])
sysctl-net-core-rmem-max = bad = .files["/proc/sys/net/core/rmem_max"] = "212992"
sysctl-net-core-rmem-max = unknown = del(.files["/proc/sys/net/core/rmem_max"])
sysctl-vm-swappiness = info = .files["/proc/sys/vm/swappiness"] = "60"
driver-answers =  = .
driver-answers = unknown = .commands["read /sys/class/infiniband/mlx5_0/ports/1/state"] = {"argv": [], "exit": 137, "stdout": "", "stderr": ""}
CASES
  judge "$FIXTURES/machine-amd.json" '.files["/proc/sys/net/ipv4/conf/eth0.1/rp_filter"] = "2"' '.wanted.sysctls = {"net/ipv4/conf/eth0.1/rp_filter": 2, "net.ipv4.conf.eth0/1.rp_filter": 0}'
  assert_equal "$(jq -c '[.[] | select(.id | test("rp-filter")) | [.status, .found]]' findings.json)" '[["bad","2"],["ok","2"]]'
  # a host that measures over TCP alone needs none of it, and one with a software device has no IOMMU to look at
  judge "$FIXTURES/machine-amd.json" '.links = {} | .files |= with_entries(select(.key | test("infiniband|rdma") | not))' '.fabric = "ethernet" | .devices = []'
  assert_equal "$(status_of module-ib-uverbs) $(status_of rdma-nodes) $(status_of driver)" "not_applicable not_applicable "
  judge "$FIXTURES/machine-amd.json" '.links = {}'
  assert_equal "$(found_of driver)" "a software device, which needs no driver"
}

@test "the firewall: closed is closed, open is open, and what asks for more than the port is not known" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
firewall = bad = .commands.nft.stdout |= sub("18000"; "18601")
firewall = unknown = .commands.nft.exit = 1
firewall = unknown = .commands.nft.stdout |= .[0:-3]
firewall = unknown = .commands.nft = {"argv": ["nft"], "exit": null, "stdout": "", "stderr": ""}
firewall = bad = .commands.iptables.stdout = "# Generated by iptables-save v1.8.10 (nf_tables)\n*filter\n:INPUT DROP [0:0]\nCOMMIT"
firewall = ok = .commands.nft.stdout |= sub("\"drop\""; "\"accept\"")
firewall = ok = .commands.nft.stdout = "{\"nftables\": []}"
firewall = unknown = .commands.nft.stdout |= sub("\"policy\": \"drop\""; "\"policy\": \"accept\"") | .commands.nft.stdout |= sub("\"left\": {\"meta\": {\"key\": \"iifname\"}}, \"right\": \"lo\"}}, {\"accept\": null}"; "\"left\": {\"payload\": {\"protocol\": \"ip\", \"field\": \"saddr\"}}, \"right\": \"192.0.2.7\"}}, {\"drop\": null}")
CASES
  # firewalld's zones: the trusted interface lets all through, once the device under test hangs on it
  judge "$FIXTURES/machine-intel.json" . '.devices[0].netdev = "eno1"'
  assert_equal "$(status_of firewall)" unknown
  judge "$FIXTURES/machine-intel.json" 'del(.files["/sys/class/net/ens3f0np0/carrier_down_count"])' '.devices[0].netdev = "eno1"'
  assert_equal "$(status_of firewall)" ok
  # without both programs a filter may be there, unless the kernel has none
  judge "$FIXTURES/machine-amd.json" '.commands.nft.exit = null | .commands.iptables.exit = null | .files["/proc/modules"] = "mlx5_ib 1 0 - Live 0x0"'
  assert_equal "$(status_of firewall)" ok
  judge "$FIXTURES/machine-amd.json" '.commands.nft.exit = null | .commands.iptables.exit = null | .files["/proc/modules"] = "ip_tables 1 0 - Live 0x0"'
  assert_equal "$(status_of firewall)" unknown
  # a software device's own packets pass the filter, too
  judge "$FIXTURES/machine-amd.json" '.links = {}'
  assert_equal "$(found_of firewall)" "let through: 18600/tcp, 5201/tcp; closed: 4791/udp"
}

@test "the clock: who keeps it, and how hosts' clocks stand to each other" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
clock = bad = .commands.chrony.stdout |= sub("Normal"; "Not synchronised")
clock = bad = .commands.chrony.stdout |= sub("-0.000000023"; "-1.5")
clock = bad = .commands.chrony.stdout |= sub("0.000412000"; "3.0")
clock = ok = .commands.chrony = {"exit": null, "stdout": ""}
clock = bad = .commands.chrony.exit = null | .commands.timedatectl.stdout |= sub("d=yes"; "d=no")
clock = unknown = .commands.chrony.exit = 1 | .commands.timedatectl.exit = 1
clock = ok = .commands.chrony.stdout = "506 Cannot talk to daemon"
CASES
  run jq -n -c --slurpfile raw "$FIXTURES/machine-amd.json" -f "$(rules 'import "hosts/machine" as m;
    def at($name; $off; $kept): {host: {name: $name, wanted: {}}, raw: ($raw[0] | .commands.clock.stdout = (1795262398.5 + $off | tostring)
      | if $kept then . else .commands.chrony.exit = 1 | .commands.timedatectl.exit = 1 end)};
    def told(hosts): [m::between([hosts]) | select(.id == "machine-clock-skew") | [.host, .status, .found]];
    told(at("a"; 0.25; true), at("b"; 0.5; true)),
    told(at("a"; 0; false), at("b"; 0; false), at("c"; -40; true)),
    told(at("a"; 0; false), at("b"; 3600; false)),
    # a slow connection looks like a clock that is ahead, unless somebody keeps the clock
    told(at("a"; 0; false), at("b"; 5; false)), told(at("a"; 0; false), at("b"; 5; true)),
    told(at("a"; 0; true), (at("b"; 0; true) | .raw.files.PERCH_ASKED = "now")), told(at("a"; 99; true))')"
  assert_output '[[null,"ok","at most 0.250 s from the median"]]
[["c","bad","40.0 s behind the median of 3 hosts and the controller"]]
[["b","bad","3,600 s ahead of the median of 2 hosts and the controller"]]
[["b","unknown","5.00 s ahead of the median of 2 hosts and the controller, or a slow connection"]]
[[null,"ok","at most 5.00 s from the median"]]
[["b","unknown","its clock was not compared with the controller'\''s"]]
[]'
}

@test "isolation, memory modules, and who shares the devices" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
isolation = ok = .
isolation = bad = .files["/proc/cmdline"] |= sub("irqaffinity=[^ ]* "; "")
isolation = bad = .files["/proc/cmdline"] |= sub("irqaffinity=0-7,"; "irqaffinity=0-8,")
isolation = bad = .files["/sys/devices/system/cpu/nohz_full"] = "8-14"
isolation = bad = .files["/sys/devices/system/cpu/nohz_full"] = "(null)"
isolation = not_applicable = .files["/sys/devices/system/cpu/isolated"] = ""
numa-distances = unknown = del(.files["/sys/devices/system/node/node0/distance"], .files["/sys/devices/system/node/node1/distance"])
memory-modules = unknown = .commands["memory-modules"] = {"argv": ["dmidecode"], "exit": 1, "stdout": "", "stderr": "Permission denied"}
memory-modules = unknown = .commands["memory-modules"].stdout = "# No SMBIOS nor DMI entry point found, sorry."
virtual-functions = info = .files["/sys/class/infiniband/mlx5_0/device/sriov_numvfs"] = "4"
virtual-functions = unknown = .files["/sys/class/infiniband/mlx5_0/device/sriov_numvfs"] = "x"
virtual-function-rights =  = .
virtual-function-rights = info = .commands["virtual eth4"] = {"argv": ["ip"], "exit": 0, "stderr": "", "stdout": "[{\"ifname\": \"eth4\", \"vfinfo_list\": [{\"vf\": 0, \"spoofchk\": true, \"trust\": false}]}]"}
virtual-function-rights = unknown = .commands["virtual eth4"] = {"argv": ["ip"], "exit": 0, "stderr": "", "stdout": "[{\"ifname\": \"eth4\"}]"}
virtual-function-rights = unknown = .commands["virtual eth4"] = {"argv": ["ip"], "exit": 0, "stderr": "", "stdout": "[{\"vfinfo_list\": [{\"vf\": 0, \"trust\": \"on\"}, 7]}]"}
virtual-function-rights = unknown = .commands["virtual eth4"] = {"argv": ["ip"], "exit": null, "stderr": "", "stdout": ""}
rdma-namespaces = info = .files["/sys/module/ib_core/parameters/netns_mode"] = "N"
rdma-namespaces = unknown = .files["/sys/module/ib_core/parameters/netns_mode"] = "?"
partitions = info = .files["/sys/class/infiniband/mlx5_0/ports/1/pkeys/0"] = "0xffff"
CASES
  judge "$FIXTURES/machine-amd.json" '.files["/sys/class/infiniband/mlx5_0/ports/1/pkeys/0"] = "0xffff" | .files["/sys/class/infiniband/mlx5_0/ports/1/pkeys/7"] = "0x8001"
    | .commands["memory-modules"].stdout |= sub("4800 MT/s\n\nHandle 0x0041"; "4400 MT/s\n\nHandle 0x0041") | .files["/sys/class/infiniband/mlx5_0/device/sriov_numvfs"] = "4"'
  whole
  assert_equal "$(found_of partitions)" "port 1: 0x8001, 0xffff"
  assert_equal "$(found_of memory-modules)" "1 x 64 GB DDR5 at 4400 MT/s, 1 x 64 GB DDR5 at 4800 MT/s; 1 empty"
  assert_equal "$(found_of virtual-functions) $(found_of rdma-namespaces)" "4 of 16 shared"
  judge "$FIXTURES/machine-amd.json" '.commands["virtual eth4"] = {exit: 0, stdout: ({vfinfo_list: [range(4) | {vf: ., spoofchk: (. != 1), trust: false}]} | tojson | "[\(.)]")}'
  assert_equal "$(found_of virtual-function-rights)" "trust off, spoofchk on for 3 of 4"
  # of a host on which nothing is isolated, the other kernel's words
  judge "$FIXTURES/machine-amd.json" '.files["/proc/cmdline"] = "isolcpus=8-15 rcu_nocbs=8-15" | .files["/sys/devices/system/cpu/nohz_full"] = ""'
  assert_equal "$(found_of isolation)" "8-15: missing: nohz_full, irqaffinity"
}

@test "GPUs: the way from a NIC to their memory, and their errors" {
  jq -s '.[0] * .[1]' "$FIXTURES/machine-amd.json" "$FIXTURES/gpu-nvidia.json" >gpu.json
  cases gpu.json <<'CASES'
gpu-present = ok = .
gpu-modules = info = .
gpu-modules = unknown = del(.files["/proc/modules"])
gpu-direct = ok = .files["/proc/modules"] = ""
gpu-direct = ok = .files["/proc/driver/nvidia/version"] |= sub("Open Kernel Module for x86_64"; "x86_64 Kernel Module")
gpu-direct = bad = (.files["/proc/driver/nvidia/version"] |= sub("Open Kernel Module for x86_64"; "x86_64 Kernel Module")) | .files["/proc/modules"] = "nvidia 1 0 - Live 0x0"
gpu-direct = bad = .files["/proc/modules"] = "nvidia 1 0 - Live 0x0" | .files["/proc/sys/kernel/osrelease"] = "5.4.0-1-generic"
gpu-direct = unknown = del(.files["/proc/driver/nvidia/version"], .files["/proc/modules"])
gpu-direct = ok = .files["/sys/bus/pci/devices/0000:c4:00.0/vendor"] = "0x1002"
gpu-acs = ok = .
gpu-acs = bad = .commands["pci 0000:c3:00.0"] = .commands["pci 0000:c0:01.1"]
gpu-acs = ok = .commands["pci 0000:c2:00.0"] = .commands["pci 0000:c0:01.1"]
gpu-acs = unknown = .commands["pci 0000:c3:01.0"].stdout |= .[:230]
gpu-acs = not_applicable = .links["/sys/class/infiniband/mlx5_0"] = "../../devices/pci0000:e0/0000:e0:01.1/0000:c1:00.0/infiniband/mlx5_0"
gpu-link-width = bad = .files["/sys/bus/pci/devices/0000:c4:00.0/current_link_width"] = "8"
gpu-link-width = unknown = del(.files["/sys/bus/pci/devices/0000:c4:00.0/current_link_width"])
gpu-bar = bad = .files["/sys/bus/pci/devices/0000:c4:00.0/resource"] |= sub("0x000000bfffffffff"; "0x000000a00fffffff")
gpu-bar = info = .commands["nvidia-smi"].exit = 9
gpu-bar = unknown = .files["/sys/bus/pci/devices/0000:c4:00.0/resource"] = "0x1 0x2"
gpu-memory-errors = unknown = .commands["nvidia-smi"].exit = null
gpu-memory-errors = unknown = .commands["nvidia-smi"] |= (.exit = 137 | .stdout = "")
gpu-memory-errors = unknown = .commands["nvidia-smi"].stdout |= sub("C4"; "C5")
gpu-memory-errors = not_applicable = .commands["nvidia-smi"].stdout |= sub("Enabled, 0"; "[N/A], [N/A]")
gpu-memory-errors = bad = .files["/sys/bus/pci/devices/0000:c4:00.0/vendor"] = "0x1002" | .files["/sys/bus/pci/devices/0000:c4:00.0/ras/umc_err_count"] = "ue: 1\nce: 0"
gpu-memory-errors = ok = .files["/sys/bus/pci/devices/0000:c4:00.0/vendor"] = "0x1002" | .files["/sys/bus/pci/devices/0000:c4:00.0/ras/umc_err_count"] = "ue: 0\nce: 7"
gpu-memory-errors = unknown = .files["/sys/bus/pci/devices/0000:c4:00.0/vendor"] = "0x1002" | .files["/sys/bus/pci/devices/0000:c4:00.0/ras/umc_err_count"] = "0"
CASES
  judge gpu.json '.files["/proc/driver/nvidia/params"] = "EnableMSI: 1\nGrdmaPciTopoCheckOverride: 1\nRegistryDwords: \"\"" | .files["/proc/modules"] += "\ngdrdrv 24576 0 - Live 0x0"'
  assert_equal "$(found_of gpu-modules)" "gdrdrv loaded, GrdmaPciTopoCheckOverride 1"
  judge gpu.json
  whole
  assert_equal "$(found_of gpu-bar)" "131,072 MiB for 81,559 MiB of memory"
  judge gpu.json '.commands["nvidia-smi"] |= (.exit = 137 | .stdout = "")' '.gpu = true'
  assert_json findings.json 'any(.[]; .id == "machine-gpu-memory-errors" and .severity == "required" and .found == "nvidia-smi did not answer in time, and was stopped")'
  judge gpu.json '.links["/sys/class/infiniband/mlx5_0"] = "../../devices/pci0000:e0/0000:e0:01.1/0000:c1:00.0/infiniband/mlx5_0"'
  assert_equal "$(found_of gpu-distance)" "NODE: a GPU is on the same node"
}

@test "GPUs are found by vendor, class and driver, and read with the bridges above them" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  [ -d /sys/bus/pci/devices ] || skip "no PCI here"
  local of=pci0000:c0/0000:c0:01.1 name
  mkdir -p "pci/$of" devices
  ln -s "../drivers/$of" devices/0000:c0:01.1
  # a GPU, a second that no driver holds, the chipset's sound, and a NIC
  for name in 0000:c4:00.0:0x10de:0x030200:nvidia 0000:c5:00.0:0x1002:0x120000: 0000:c6:00.0:0x10de:0x040300:snd 0000:c7:00.0:0x15b3:0x020000:mlx5_core; do
    IFS=: read -r domain bus slot vendor class driver <<<"$name"
    name=$domain:$bus:$slot
    mkdir "pci/$of/$name"
    echo "$vendor" >"pci/$of/$name/vendor"
    echo "$class" >"pci/$of/$name/class"
    echo 16 >"pci/$of/$name/current_link_width"
    [ -z "$driver" ] || ln -s "../../drivers/$driver" "pci/$of/$name/driver"
    ln -s "../drivers/$of/$name" "devices/$name"
  done
  # shellcheck disable=SC2016  # the inner shell's
  unshare --user --map-root-user --mount bash -c 'mount --bind devices /sys/bus/pci/devices && mount --bind pci /sys/bus/pci/drivers && "$1"' \
    tree "$TOP/roles/host_check/files/host-check" >found.json
  assert_json found.json '(.files | keys | map(select(endswith("/class")))) == ["/sys/bus/pci/devices/0000:c4:00.0/class"]
    and .links["/sys/bus/pci/devices/0000:c0:01.1"] != null'
}

@test "neighbour tables are large enough for all hosts and rails of a fabric" {
  run jq -n -c --slurpfile raw "$FIXTURES/machine-amd.json" -f "$(rules 'import "hosts/machine" as m;
    def of($n; $rails; $v4; $v6): [range($n) | {host: {name: "h\(.)", fabric: "roce", wanted: {}, devices: [range($rails) | {name: "mlx5_\(.)"}]},
      raw: ($raw[0] | .files["/proc/sys/net/ipv4/neigh/default/gc_thresh3"] = $v4 | .files["/proc/sys/net/ipv6/neigh/default/gc_thresh3"] = $v6)}];
    def told(hosts): [m::between(hosts) | select(.id == "machine-neighbours") | [.status, .severity, .found, .wanted]] | unique;
    told(of(64; 8; "1024"; "1024")), told(of(65; 8; "1024"; "1024")), told(of(501; 2; "4096"; "2003")), told(of(501; 2; "2004"; "2004")),
    told(of(2; 1; null; "1024")), told(of(2; 1; "1024"; null)), told(of(2; 0; "3"; "4")), told(of(1; 8; "1"; "1")),
    told(of(501; 2; "4096"; "2003") | map(.raw.files["/sys/class/infiniband/mlx5_0/ports/1/gids/3"] = "fd00:0000:0000:0000:0000:0000:0000:0001")),
    told(of(501; 2; "5"; "5") | map(.host.fabric = "infiniband"))')"
  assert_output '[["ok","advisory","IPv4 1,024, IPv6 1,024","at least 1,024: twice 64 hosts x 8 rails"]]
[["bad","advisory","IPv4 1,024, IPv6 1,024","at least 1,040: twice 65 hosts x 8 rails"]]
[["bad","advisory","IPv4 4,096, IPv6 2,003","at least 2,004: twice 501 hosts x 2 rails"]]
[["ok","required","IPv4 2,004, IPv6 2,004","at least 2,004: twice 501 hosts x 2 rails"]]
[["unknown","advisory","IPv4 cannot be read, IPv6 1,024","at least 4: twice 2 hosts x 1 rail"]]
[["ok","advisory","IPv4 1,024","at least 4: twice 2 hosts x 1 rail"]]
[["bad","advisory","IPv4 3, IPv6 4","at least 4: twice 2 hosts x 1 rail"]]
[]
[["bad","required","IPv4 4,096, IPv6 2,003","at least 2,004: twice 501 hosts x 2 rails"]]
[["bad","advisory","IPv4 5, IPv6 5","at least 2,004: twice 501 hosts x 2 rails"]]'
}

@test "the kernel's log: errors of the bus, of processors, and links that went down" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
pcie-log = bad = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"
pcie-log = ok = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)"
pcie-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)"
pcie-log = ok = .commands["kernel-log-lines"].stdout += "\n[863000.000000] nvme 0000:c2:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
pcie-log-others = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] pcieport 0000:c0:01.1: AER: Multiple Corrected error received: 0000:c2:00.0"
hardware-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mce: [Hardware Error]: Machine check events logged"
hardware-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mce: Uncorrected hardware memory error in user-access at 3aeff2200"
hardware-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] Memory failure: 0x3aeff2: recovery action for dirty LRU page: Recovered"
pcie-log = bad = .links["/sys/class/infiniband/mlx5_0"] = "../../devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0/infiniband/mlx5_0" | .commands["kernel-log-lines"].stdout += "\n[9.000000] pcieport 0000:c0:01.1: DPC: containment event, status:0x1f01 source:0x0000"
pcie-log-others = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] pcieport 0000:00:1b.0: DPC: containment event, status:0x1f01 source:0x0000"
hardware-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] [Hardware Error]: Uncorrected, software restartable error."
hardware-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0"
hardware-log = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0"
hardware-log = unknown = .commands["kernel-log-lines"] = {"exit": 1, "stdout": "", "stderr": "dmesg: read kernel buffer failed: Operation not permitted"}
pcie-log = unknown = .commands["kernel-log-lines"].stdout = ""
pcie-log = unknown = del(.commands["kernel-log-lines"])
link-flaps = bad = .commands["kernel-log-lines"].stdout += ([range(5) | "\n[86399\(.).000000] bnxt_en 0000:c1:00.0 ens1np0: NIC Link is Down"] | add)
link-flaps = ok = .commands["kernel-log-lines"].stdout += ([range(5) | "\n[86399\(.).000000] bnxt_en 0000:c1:00.0 ens1np01: NIC Link is Down"] | add)
link-flaps = ok = .commands["kernel-log-lines"].exit = 1
link-flaps = unknown = .commands["kernel-log-lines"].exit = 1 | .files["/sys/class/net/ens1np0/carrier_down_count"] = "7"
link-flaps = bad = .commands["kernel-log-lines"].exit = 1 | .files["/sys/class/net/ens1np0/carrier_down_count"] = "7000"
CASES
}

@test "the kernel's log: failures of NICs, GPUs, the IOMMU and programs, and what only sounds so" {
  cases "$FIXTURES/machine-amd.json" <<'CASES'
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: poll_health:848:(pid 0): device's health compromised - reached miss count"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: print_health_info:520:(pid 0): synd 0x8: unrecoverable hardware error"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c2:00.0: print_health_info:520:(pid 0): synd 0x8: unrecoverable hardware error"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: print_health_info:520:(pid 0): synd 0x10: High temperature"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: temp_warn:171:(pid 0): High temperature on sensors with bit set 0 1"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: Port module event: module 0, Cable plugged"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] bnxt_en 0000:c1:00.0 ens1np0: Fatal firmware reset event, data1: 0x2, data2: 0x1, min wait 2000 ms, max wait 16000 ms"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] bnxt_en 0000:c1:00.0 ens1np0: Firmware fatal reset event received"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] bnxt_en 0000:c1:00.0 ens1np0: Solicited firmware reset event, data1: 0x2, data2: 0x1, min wait 2000 ms, max wait 16000 ms"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] ice 0000:c1:00.0 rocep7s0f1: abnormal ae_id = 0x401 bool qp=1 qp_id = 1, ae_src=5"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] ice 0000:c1:00.0: HMC Error: 0x1"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0: print_health_info:425:(pid 912): Health issue observed, firmware internal error, severity(3) ERROR:"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0: print_health_info:425:(pid 912): Health issue observed, High temperature, severity(4) WARNING:"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0: wait_func:1195:(pid 1967079): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0: mlx5_health_try_recover:333:(pid 12): health recovery flow aborted, PCI reads still not working"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: Port module event: module 1, Cable unplugged"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W)."
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: mlx5_cmd_out_err:838:(pid 1): CREATE_MKEY(0x200) op_mod(0x0) failed, status bad resource(0x5), syndrome (0x305684), err(-22)"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[863000.000000] mlx5_core 0000:c1:00.0: mlx5_cmd_out_err:838:(pid 1441871): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2), syndrome (0x305684), err(-22)"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] bnxt_en 0000:c1:00.0: QPLIB: bnxt_re_is_fw_stalled: FW STALL Detected. cmdq[0xe]=0x3 waited (103641 > 100000) msec active 1"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] bnxt_en 0000:c1:00.0 ens1np0: Firmware reset aborted, PCI config space invalid"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] bnxt_en 0000:c1:00.0 ens1np0: Chip temperature has gone above the critical thermal threshold!"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[863000.000000] bnxt_en 0000:c1:00.0 ens1np0: Chip temperature has gone below the critical thermal threshold!"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] ice 0000:c1:00.0: Rebuild failed, unload and reload driver"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] ice 0000:c1:00.0: The module's power requirements exceed the device's power supply. Cannot start link"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] ionic 0000:c1:00.0: FW heartbeat stalled at 2952797608"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] ionic 0000:c1:00.0: FW Down: Stopping LIFs"
nic-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] ionic 0000:c1:00.0: DEVCMD IONIC_CMD_LIF_INIT (3) timeout after 10 secs"
nic-log = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] ionic 0000:c1:00.0: FW heartbeat restored at 2952797609"
nic-log = bad = .links = {"/sys/class/cxi/cxi2": "../../devices/pci0000:c0/0000:c0:01.1/0000:c3:00.0/cxi/cxi2"} | .commands["kernel-log-lines"].stdout += "\n[863000.000000] cxi_core 0000:c3:00.0: cxi2[hsn2]: C_EC_UNCOR_NS: C_IXE error: port_dfa_mismatch (37) (was first error at 1705904239:768794936)"
nic-log = ok = .links = {"/sys/class/cxi/cxi2": "../../devices/pci0000:c0/0000:c0:01.1/0000:c3:00.0/cxi/cxi2"} | .commands["kernel-log-lines"].stdout += "\n[9.000000] cxi_core 0000:c3:00.0: cxi2[hsn2]: C_EC_UNCOR_NS: C1_HNI error: llr_eopb (32)"
nic-log = bad = .links = {"/sys/class/cxi/cxi2": "../../devices/pci0000:c0/0000:c0:01.1/0000:c3:00.0/cxi/cxi2"} | .commands["kernel-log-lines"].stdout += "\n[9.000000] cxi_ss1 0000:c3:00.0: cxi2[hsn2]: C_EC_CRIT: C_PI_IPD error: pri_rarb_xlat_rbyp_ctrl_fifo_err (46)"
nic-log = unknown = del(.commands["kernel-log-lines"])
transmit-timeouts = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] NETDEV WATCHDOG: ens1np0 (mlx5_core): transmit queue 3 timed out"
transmit-timeouts = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0 ens1np0: NETDEV WATCHDOG: CPU: 3: transmit queue 5 timed out 5010 ms"
transmit-timeouts = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] NETDEV WATCHDOG: ens1np01 (mlx5_core): transmit queue 3 timed out"
gpu-log = not_applicable = .
gpu-log = ok = .files["/proc/modules"] += "\nnvidia 9895936 120 nvidia_uvm, Live 0x0"
gpu-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] NVRM: Xid (PCI:0000:01:00): 79, pid=1122, GPU has fallen off the bus."
gpu-log = bad = .commands["kernel-log-lines"].stdout += "\n[863000.000000] NVRM: Xid (PCI:0000:00:06): 31, pid=79749, name=exe, Ch 0000000a, intr 00000000. MMU Fault"
gpu-log = not_applicable = .commands["kernel-log-lines"].stdout += "\n[9.000000] NVRM: Xid (PCI:0000:00:06): 31, pid=79749, name=exe, Ch 0000000a, intr 00000000. MMU Fault"
gpu-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] amdgpu 0000:03:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block"
gpu-log = not_applicable = .commands["kernel-log-lines"].stdout += "\n[863000.000000] amdgpu 0000:03:00.0: amdgpu: no uncorrectable hardware errors detected in umc block"
iommu-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] DMAR: [DMA Read NO_PASID] Request device [0xc1:0x00.0] fault addr 0x70ad5000 [fault reason 0x07] Next page table ptr is invalid"
iommu-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] AMD-Vi: Event logged [IO_PAGE_FAULT device=c1:00.0 domain=0x0012 address=0x00000000ff6101b0 flags=0x0070]"
iommu-log = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] mlx5_core 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000d address=0xcfd51ad0 flags=0x0070]"
iommu-log = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] DMAR: [DMA Read NO_PASID] Request device [0c1:00.0] fault addr 0x7 [fault reason 0x07] ?"
iommu-log-others = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] DMAR: [DMA Write] Request device [00:02.0] PASID ffffffff fault addr 0 [fault reason 02] Present bit in context entry is clear"
iommu-log-others = ok = .commands["kernel-log-lines"].stdout += "\n[9.000000] DMAR: [Firmware Bug]: No firmware reserved region can cover this RMRR"
hung-tasks = bad = .commands["kernel-log-lines"].stdout += "\n[9.000000] INFO: task python3:4711 blocked for more than 120 seconds."
CASES
  judge "$FIXTURES/machine-amd.json" '.commands["kernel-log-lines"].stdout += "\n[ 9.000000] mlx5_core 0000:c1:00.0: print_health_info:520:(pid 0): synd 0x8: unrecoverable hardware error\n[856800.0] NVRM: Xid (PCI:0000:01:00): 48, pid=1"' '.gpu = true'
  assert_equal "$(jq -r '.[] | select(.id == "machine-nic-log", .id == "machine-gpu-log") | .severity' findings.json)" $'required\nrequired'
  assert_equal "$(found_of gpu-log)" "1 failure, 0 warnings, the last 2 hours ago: NVRM: Xid (PCI:0000:01:00): 48, pid=1"
}

@test "every kind of line that the judge knows is gathered" {
  log_program journalctl 'exit 1'
  log_program dmesg 'echo "[    0.000000] Linux version"; cat kinds'
  grep -o 'stdout += "\\n[^"]*"' "$BATS_TEST_FILENAME" | sed 's/^stdout += "\\n//; s/"$//; s/\\n.*//; /Cable plugged/d; /no uncorrectable/d; /heartbeat restored/d' >kinds
  [ "$(wc -l <kinds)" -gt 30 ]
  PATH=$PWD/bin:$PATH gather
  jq -r '.commands["kernel-log-lines"].stdout' found.json >lines
  run grep -vxFf lines kinds
  assert_output ""
}

@test "what cannot be read is never ok: nothing there, everything empty, everything garbage" {
  local edit
  for edit in '.files = {} | .links = {} | .commands = {}' '.links |= map_values("") | .files |= map_values("") | .commands |= map_values(.stdout = "")' \
    '.links |= map_values("?") | .files |= map_values("????\n?? ?") | .commands |= map_values(.stdout = "\u0001{[?,\n%")' \
    '.links |= map_values("9" * 60000) | .files |= map_values("9" * 60000) | .commands |= map_values(.stdout = "9" * 60000)' \
    '.files |= map_values(5) | .links |= map_values([]) | .commands |= map_values(5)'; do
    judge "$FIXTURES/machine-amd.json" "$edit"
    whole
    # what the links alone tell: that there is a device, and whose
    assert_equal "$edit: $(jq -c '[.[] | select(.status == "ok" and .id != "machine-driver") | .id]' findings.json)" "$edit: []"
  done
  judge "$FIXTURES/machine-amd.json" '.commands |= map_values(.exit = 124 | .stdout = "")'
  whole
}

# gather [COMMAND...]: what host-check reads here, in found.json
gather() { "$@" "$TOP/roles/host_check/files/host-check" >found.json; }

@test "host-check reads this machine, as root and as nobody, within its time, and changes nothing" {
  PERCH_SYSCTLS='net.ipv4.ip_forward ../../../etc/passwd' PERCH_ASKED=2026-01-01T00:00:00.5 LIMIT=60 gather timeout 60
  assert_json found.json '.schema == "perch.host_check/1" and .files.PERCH_ASKED == "2026-01-01T00:00:00.5" and .files["/proc/sys/net/ipv4/ip_forward"] != null
    and (.files | keys | any(test("passwd")) | not) and .files["/proc/meminfo"] != null and (.commands.clock.stdout | test("^[0-9]+[.][0-9]+$"))
    and .commands["cpu-model"].exit == 0 and (.commands["cpu-model"].stdout | test("processor") and (test("\n\n") | not))'
  assert_equal "$(jq -r '.files["/proc/sys/net/ipv4/ip_forward"]' found.json)" "$(cat /proc/sys/net/ipv4/ip_forward)"
  assert_equal "$(jq -r '.files["/proc/self/limits"]' found.json | sed -n 's/^Max locked memory *\([^ ]*\).*/\1/p')" "$(sed -n 's/^Max locked memory *\([^ ]*\).*/\1/p' /proc/self/limits)"
  judge found.json . '.devices = [] | .fabric = "loopback"'
  whole
  assert_equal "$(status_of driver)" ""
  [ "$(id -u)" -eq 0 ] || skip "the rest needs root"
  # nobody may not see the log, or the limits of others
  chmod a+rx "$BATS_TEST_TMPDIR" "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/* 2>/dev/null || true
  gather setpriv --reuid=65534 --regid=65534 --clear-groups env TMPDIR=/tmp
  assert_json found.json '.commands.user.stdout == "nobody" and (.files["/proc/self/status"] | test("CapEff:\\s*0000000000000000"))'
  judge found.json . '.devices = [] | .fabric = "loopback"'
  whole
}

@test "a tool that hangs ends with its deadline, even if no signal reaches it, and is not asked again; others are" {
  sed 's/^readonly COMMAND_SECONDS=.*/readonly COMMAND_SECONDS=1/' "$TOP/roles/host_check/files/host-check.d/lib.bash" >lib.bash
  mkdir bin scratch
  # what waits in the kernel is ended by no signal, and holds its files: a process of another session does so, too
  printf '%s\n' '#!/bin/bash' 'echo asked >>asked' 'setsid sleep 1000 & echo $! >left' 'wait' >bin/nvidia-smi
  printf '%s\n' '#!/bin/bash' 'echo told; exec sleep 1000' >bin/ethtool
  chmod +x bin/*
  # shellcheck disable=SC2016
  PATH=$PWD/bin:$PATH run timeout 60 bash -c '. ./lib.bash && SCRATCH=$PWD/scratch
    ask first nvidia-smi -q; ask again nvidia-smi -L; ask other echo well; ask named bash -c "exec ethtool" ethtool eth0; ask "named again" ethtool -i eth0
    echo "{$COMMANDS}"'
  kill "$(<left)"
  assert_success
  echo "$output" >said.json
  assert_json said.json '[.first, .named | .exit | . == 124 or . == 137] == [true, true] and .other.stdout == "well" and .first.stdout == ""
    and ([.again, .["named again"] | [.exit, .stderr]] | unique) == [[124, "it hung before, and was not asked again"]]'
  assert_equal "$(<asked)" asked
}

@test "a limit that is lowered for the session is the one that counts" {
  # shellcheck disable=SC2016  # for the inner shell
  gather bash -c 'ulimit -l 64 && exec "$@"' lowered
  assert_json found.json '.files["/proc/self/limits"] | test("Max locked memory +65536 +65536")'
  judge found.json '.files["/proc/self/status"] = "CapEff:\t0000000000000000"'
  assert_equal "$(status_of memlock) $(jq -r '.[] | select(.id == "machine-memlock") | .value' findings.json)" "bad 64"
}

@test "irqbalance is found with what it was told, and with nothing else of its environment" {
  cp "$(command -v sleep)" irqbalance
  SECRET=hidden IRQBALANCE_BANNED_CPULIST=2-3 ./irqbalance 60 3>&- &
  local pid=$!
  wait_until grep -qx irqbalance "/proc/$pid/comm" # not before it is that program
  gather
  kill "$pid"
  assert_equal "$(jq -r '.files["/proc/*/comm"] | split("\n")[] | select(contains("irqbalance"))' found.json)" "$pid irqbalance IRQBALANCE_BANNED_CPULIST=2-3"
  refute grep -q hidden found.json
}

@test "tuned is asked whether its profile holds, where it runs" {
  local pid
  mkdir bin
  printf '%s\n' '#!/bin/sh' '[ "$*" = verify ] && echo "Verification succeeded, current system settings match the preset profile."' >bin/tuned-adm
  chmod +x bin/tuned-adm
  PATH=$PWD/bin:$PATH gather
  assert_json found.json '.commands | has("tuned-verify") | not'
  cp "$(command -v sleep)" tuned
  ./tuned 60 3>&- &
  pid=$!
  wait_until grep -qx tuned "/proc/$pid/comm" # not before it is that program
  PATH=$PWD/bin:$PATH gather
  kill "$pid"
  assert_json found.json '.commands["tuned-verify"] | .exit == 0 and (.stdout | startswith("Verification succeeded"))'
}

# tree FILE=TEXT... -- COMMAND...: runs it where /sys/devices/system/cpu holds these files alone
tree() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --user --map-root-user --mount bash -c '
    set -e
    cpu=/sys/devices/system/cpu
    mount -t tmpfs none "$cpu"
    while [ "$1" != -- ]; do
      mkdir -p "$cpu/$(dirname "${1%%=*}")"
      printf "%b\n" "${1#*=}" >"$cpu/${1%%=*}"
      shift
    done
    shift
    "$@"' tree "$@"
}

@test "each CPU's value is read, and told as ranges" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  local -a files=(present=0-11 online=0-10 isolated= smt/active=1)
  local cpu
  for cpu in 0 1 2 3 5 7 8 9 10; do files+=("cpu$cpu/cpufreq/scaling_governor=performance"); done
  files+=(cpu4/cpufreq/scaling_governor=powersave cpu6/cpufreq/scaling_governor=powersave cpu0/cpuidle/state0/name=POLL cpu0/cpuidle/state0/latency=0
    cpu0/cpuidle/state0/disable=0 cpu0/cpufreq/scaling_driver='a b]c"d')
  tree "${files[@]}" -- "$TOP/roles/host_check/files/host-check" >found.json
  assert_equal "$(jq -r '.files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"]' found.json | sort)" $'0-3,5,7-10 performance\n4,6 powersave'
  assert_equal "$(jq -r '.files["/sys/devices/system/cpu/cpu*/cpufreq/scaling_driver"]' found.json)" '0 a b]c"d'
  judge found.json
  assert_equal "$(found_of governor)" 'performance on 0-3,5,7-10; powersave on 4,6 (a b]c"d)'
  # nonsense for the number of CPUs is no endless loop
  LIMIT=30 tree present=0-99999999999 -- timeout 30 "$TOP/roles/host_check/files/host-check" >found.json
  assert_json found.json '.files["/sys/devices/system/cpu/present"] == "0-99999999999"'
}

# log_program NAME SCRIPT: a program of that name, in bin/
log_program() {
  mkdir -p bin
  printf '#!/bin/bash\n%s\n' "$2" >"bin/$1"
  chmod +x "bin/$1"
}

@test "the log comes from the journal or else from the kernel, and only the lines that matter of it" {
  log_program journalctl 'case " $* " in *" --lines=1 "* | *"--grep="*) exit 1 ;; esac
    echo "1795262000.100000 h kernel: Linux version"; for ((i = 0; i < 500; i++)); do echo "1795262$((100 + i)).100000 h kernel: e1000e 0000:00:1f.6 eth0: NIC Link is Down $i"; done
    echo "1795262900.1 h kernel: something else"'
  PATH=$PWD/bin:$PATH gather
  jq -r '.commands["kernel-log-lines"].stdout' found.json >lines
  assert_equal "$(sed -n '1p;2p' lines)" $'source journal\n1795262000.100000 h kernel: Linux version'
  assert_equal "$(wc -l <lines) $(tail -n 1 lines)" "82 1795262599.100000 h kernel: e1000e 0000:00:1f.6 eth0: NIC Link is Down 499"
  log_program journalctl 'exit 0'
  log_program dmesg 'echo "[    0.000000] Linux version"; echo "[    5.0] mce: [Hardware Error]: Machine check events logged"'
  PATH=$PWD/bin:$PATH gather
  assert_equal "$(jq -r '.commands["kernel-log-lines"].stdout' found.json)" $'source dmesg\n[    0.000000] Linux version\n[    5.0] mce: [Hardware Error]: Machine check events logged'
  log_program dmesg 'echo "dmesg: read kernel buffer failed: Operation not permitted" >&2; exit 1'
  PATH=$PWD/bin:$PATH gather
  judge found.json
  assert_equal "$(status_of hardware-log) $(found_of hardware-log)" "unknown dmesg answered 1: dmesg: read kernel buffer failed: Operation not permitted"
  log_program dmesg 'exit 0'
  PATH=$PWD/bin:$PATH gather
  judge found.json
  assert_equal "$(found_of hardware-log)" "the kernel log is empty"
}

@test "what host-check prints is as its schema says, and the whole documents among the fixtures are, too" {
  gather
  "$TOP/.venv/bin/check-jsonschema" --schemafile "$TOP/reports/schema/host_check.schema.json" found.json "$FIXTURES"/machine-*.json \
    "$FIXTURES"/nic-[!c]*.json "$FIXTURES"/qos-*.json "$TOP/tests/fixtures/slingshot/host_check.json"
  jq '.files["/proc/uptime"] = 7' found.json >wrong.json
  run "$TOP/.venv/bin/check-jsonschema" --schemafile "$TOP/reports/schema/host_check.schema.json" wrong.json
  assert_failure
}
