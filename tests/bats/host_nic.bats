#!/usr/bin/env bats
# What the checks of network cards make of hosts with cards of several makers, whole and broken, and what the gathering
# script really reads. Where the fixtures come from: tests/fixtures/hosts/README.md.

load helpers

setup_file() {
  local name
  for name in nic-mlx5 nic-mlx5-infiniband nic-bnxt nic-irdma nic-rxe; do
    jq --arg name "$name" '{($name): .}' "$TOP/tests/fixtures/hosts/$name.json"
  done | jq -s add >"$BATS_FILE_TMPDIR/fixtures.json"
  jq -n -r --slurpfile fixtures "$BATS_FILE_TMPDIR/fixtures.json" --slurpfile cases "$TOP/tests/fixtures/hosts/nic-cases.json" \
    -f "$(rules "$(<"$TOP/tests/jq/nic_cases.jq") \$fixtures[0] as \$f | $(IFS=, && echo "${ASKED[*]}")")" \
    >"$BATS_FILE_TMPDIR/answers.jsonl" 2>"$BATS_FILE_TMPDIR/said" || { cat "$BATS_FILE_TMPDIR/said" >&2 && return 1; }
}

setup() { common_setup; }
teardown() { common_teardown; }

# asks NAME PROGRAM: a jq program after nic_cases.jq, which knows the fixtures as $f. One jq runs all of the file before its tests,
# since it takes longer to compile the rules than to apply them. answered NAME: what this one prints, as by `run`, and no jq complains.
ASKED=()
asks() { ASKED+=("(($2) | [\"$1\", .] | tojson)"); }
answered() {
  [[ ${ASKED[*]} = *"[\"$1\", .]"* ]] || fail "nothing asks $1"
  assert_equal "$(<"$BATS_FILE_TMPDIR/said")" ""
  run jq -r --arg name "$1" 'select(.[0] == $name)[1]' "$BATS_FILE_TMPDIR/answers.jsonl"
}

# topic NAME COUNT: all its cases are as expected, and there are as many
asks topics '$cases[0] | group_by(.topic)[] | [.[0].topic, ((.[] | misses($f)), "\(length) cases")]'
topic() {
  run jq -r --arg topic "$1" 'select(.[0] == "topics")[1] | select(.[0] == $topic)[1:][]' "$BATS_FILE_TMPDIR/answers.jsonl"
  assert_output "$2 cases"
}

@test "the link: state, layer, speed, width, subnet manager and errors" { topic link 46; }

@test "FEC: modes and blocks, by JSON and text; a tool that is missing, hangs or prints rubbish" { topic fec 18; }

@test "neighbours: by LLDP and smpquery; two on a port, none, and tools that are missing, hang or print rubbish" { topic cabling 20; }

@test "modules: which they are, light, current and heat within their limits; bad answers of ethtool" { topic optics 17; }

@test "configuration: settings, adaptive routing and reporters; tools that are missing, hang or print rubbish" { topic config 27; }

@test "bit errors: few, many, and answers of mlxlink that tell none" { topic bits 10; }

@test "addresses: MTU, active MTU, GIDs, and ARP of several cards in one subnet" { topic address 32; }

@test "PCIe: link, settings, errors, memory node and interrupts" { topic pci 40; }

@test "the driver: firmware, rings, coalescing and offloads" { topic driver 16; }

asks nothing-bad 'hosts | keys_unsorted[] as $of | judged($f[$of]; subject($of))[]
    | select(.status == "bad" or (.why // "") == "" or (.remedy // "" | test("^$|\\.$")) or (.source // "") == "" or (.found // "") == ""
             or (.severity | IN("required", "advisory") | not) or (.status | IN("ok", "unknown", "not_applicable", "info") | not)
             or (.value | type | IN("string", "number", "null") | not) or (keys | length) != 10)
    | "\($of): \(tojson)"'
@test "nothing bad is found on the hosts as they are, and every finding says all that a reader needs" {
  answered nothing-bad
  assert_output ""
}

asks whole 'hosts | keys_unsorted[] as $of | judged($f[$of]; subject($of)) | group_by(.status)
    | "\($of): " + (map("\(length) \(.[0].status)") | join(", "))'
@test "what comes out of each maker's card, as a whole" {
  answered whole
  assert_line "nic-mlx5: 28 info, 5 not_applicable, 28 ok"
  assert_line "nic-mlx5-infiniband: 23 info, 6 not_applicable, 26 ok"
  assert_line "nic-bnxt: 16 info, 7 not_applicable, 23 ok"
  assert_line "nic-irdma: 10 info, 6 not_applicable, 18 ok, 12 unknown"
  assert_line "nic-rxe: 7 info, 21 not_applicable, 11 ok"
}

asks nonsense 'believed($f)'
@test "nonsense in every file and answer is never taken for well" {
  answered nonsense
  assert_output ""
}

asks wrong-types '$f["nic-mlx5"] | (.links |= map_values(7)), (.commands |= map_values(7)), (.commands = {}), (.files = {}), (.links = {})
    | [judged(.; subject("nic-mlx5"))[] | .status] | length > 0'
@test "a document of the wrong types is judged without a word from jq" {
  answered wrong-types
  assert_output "$(printf 'true\n%.0s' 1 2 3 4 5)"
}

asks two-hosts '$f["nic-mlx5"] as $raw | between([$raw, second($raw; {})]) | group_by(.id)[] | "\(.[0].id) \(map(.status)) \(map(.host) | unique | length): \(.[0].found)"'
@test "two hosts, each with addresses of its own: nothing is doubled, the MTUs agree" {
  answered two-hosts
  assert_output 'nic-duplicate-address ["ok","ok"] 2: each address is used once
nic-duplicate-gid ["ok","ok"] 2: each GID is used once
nic-duplicate-mac ["ok","ok"] 2: each MAC is used once
nic-fec-ends ["ok","ok"] 2: RS on all
nic-mtu-ends ["ok","ok"] 2: 4200 on all
nic-path-mtu-ends ["ok","ok"] 2: 4096 on all'
}

asks clone '$f["nic-mlx5"] as $raw | between([$raw, $raw])[] | select(.status == "bad" and .severity == "required") | "\(.id) \(.host) \(.device): \(.found)"'
@test "a cloned host: address, MAC and GIDs are doubled, and both are blamed" {
  answered clone
  assert_line "nic-duplicate-address host0 enp129s0f0np0: 192.0.2.1 is also on host1 enp129s0f0np0"
  assert_line "nic-duplicate-address host1 enp129s0f0np0: 192.0.2.1 is also on host0 enp129s0f0np0"
  assert_line "nic-duplicate-mac host1 enp129s0f0np0: 08:c0:eb:f0:28:b2 is also on host0 enp129s0f0np0"
  assert_line --partial "nic-duplicate-gid host1 mlx5_0: fe80:0000:0000:0000:0ac0:ebff:fef0:28b2 is also on host0 mlx5_0"
}

asks mtus '$f["nic-mlx5"] as $raw | {files: {"/sys/class/net/enp129s0f0np0/mtu": "1500"}} as $small
    | ([$raw, second($raw; {}), second($raw; $small)], [$raw, second($raw; $small)])
    | between(.)[] | select(.id == "nic-mtu-ends") | "\(.status) \(.host): \(.found)"'
@test "MTUs that differ: one host against the others is blamed, of two both are" {
  answered mtus
  assert_output "bad host2: 4200 on host0 enp129s0f0np0, host1 enp129s0f0np0; 1500 on host2 enp129s0f0np0
bad host1: 1500 on host1 enp129s0f0np0; 4200 on host0 enp129s0f0np0
bad host0: 1500 on host1 enp129s0f0np0; 4200 on host0 enp129s0f0np0"
}

asks fec-ends '$f["nic-mlx5"] as $raw | ("fec enp129s0f0np0" as $name | {commands: {($name): ($raw.commands[$name] | .stdout |= sub("\\[\"RS\"\\]"; "[\"Off\"]"))}}) as $off
    | {files: {"/sys/class/net/enp129s0f0np0/speed": "25000"}} as $slow
    | ("module enp129s0f0np0" as $name | {commands: ($off.commands + {($name): ($raw.commands[$name] | .stdout |= sub("MMA1B00"; "MCP1600"))})}) as $copper
    | ([$raw, second($raw; {}), second($raw; $off)], [$raw, second($raw; $off)], [$raw, second($raw; $off + $slow)], [$raw, second($raw; $copper)])
    | [between(.)[] | select(.id == "nic-fec-ends") | "\(.status) \(.severity) \(.host) \(.device): \(.found)"] | join("\n")'
@test "FEC that differs between links of one speed and kind of module is a fault, and between other links it is allowed" {
  answered fec-ends
  assert_output "bad required host2 mlx5_0: RS on host0 mlx5_0, host1 mlx5_0; Off on host2 mlx5_0
bad required host1 mlx5_0: Off on host1 mlx5_0; RS on host0 mlx5_0
bad required host0 mlx5_0: Off on host1 mlx5_0; RS on host0 mlx5_0
ok required host0 null: Off or RS on all
ok required host1 null: Off or RS on all
ok required host0 null: Off or RS on all
ok required host1 null: Off or RS on all"
}

asks fec-types '$f["nic-mlx5"] as $raw | "fec enp129s0f0np0" as $fec | "module enp129s0f0np0" as $optic
    | def is($mode; $part; $type): {commands: {($fec): ($raw.commands[$fec] | .stdout |= sub("\\[\"RS\"\\]"; "[\"\($mode)\"]")),
        ($optic): ($raw.commands[$optic] | .stdout |= sub("MMA1B00-C100D"; $part) | .stdout += ($type | map("\n\tTransceiver type : " + .) | add // ""))}};
      ["100G Ethernet: 100G Base-SR4 or 25GBase-SR"] as $sr4
    | ([second($raw; is("RS"; "A"; $sr4)), second($raw; is("RS"; "A"; $sr4)), second($raw; is("Off"; "B"; $sr4))],
       [second($raw; is("RS"; "A"; $sr4)), second($raw; is("Off"; "A"; $sr4)), second($raw; is("RS"; "A"; $sr4)), second($raw; is("RS"; "B"; $sr4))],
       [second($raw; is("RS"; "A"; $sr4)), second($raw; is("Off"; "B"; ["100G Ethernet: 100G Base-LR4"]))],
       [second($raw; is("RS"; "A"; [])), second($raw; is("Off"; "B"; []))],
       [second($raw; is("RS"; "A"; ["100G Ethernet: (reserved or unknown)"])), second($raw; is("Off"; "B"; ["100G Ethernet: (reserved or unknown)"]))],
       [second($raw; is("RS"; "A"; $sr4)), second($raw; is("RS"; "A"; $sr4))])
    | [between(.)[] | select(.id == "nic-fec-types") | "\(.status) \(.severity) \(.host): \(.found)"] | join("; ")'
@test "FEC that differs between modules of one type and other part numbers is a warning; of another or an unknown type, nothing is said" {
  answered fec-types
  assert_line --index 0 "bad advisory host2: RS on host0 mlx5_0, host1 mlx5_0; Off on host2 mlx5_0"
  assert_line --index 1 --regexp '^ok advisory host0: RS on all; (ok advisory host[23]: RS on all(; )?){2}$'
  assert_equal "${#lines[@]}" 2
}

asks cables 'cables({a: ["l1", "l2"], b: ["l1", "l2"], c: ["l3", "l4"], d: ["l3", "l4"]}, {a: ["l1", "l1"], b: ["l1", "l1"], c: ["l2", "l2"], d: ["l2", "l2"]},
    {a: ["l1", "l2"], b: ["l3", "l4"]}, {a: ["l1"], b: ["l2"]}, {a: ["l1", null], b: ["l1", "l2"]}, {a: ["l1", "l2"], b: ["l2"]})'
asks cables-2 'cables({a: ["l1", "l2", "l3"], b: ["l1", "l2", "l3"], c: ["l2", "l1", "l3"], d: ["l1", "l2", "l3"]},
    {a: ["l1", "l1", "l1"], b: ["l1", "l1", "l1"], c: ["l1", "l1", "l2"], d: ["l2", "l2", "l2"], e: ["l2", "l2", "l2"]},
    {a: ["l1", "l2"], b: ["l2", "l1"]}, {a: ["l1", "l2"], b: ["l1", "l3"], c: ["l1", "l4"]})'
asks cables-3 'cables({a: ["l1", "l2"], b: ["l2", "l1"], c: ["l1", "l2"], d: ["l2", "l1"]},
    {a: ["s1", "l"], b: ["s1", "l"], c: ["s2", "l"], d: ["s2", "l"], e: ["s2", "l"]})'
@test "cables: rail i of all hosts that share leaves is on one leaf, or the host and the rail are named" {
  # two racks of rails; a rack whose leaf takes all rails beside another; hosts that share no leaf; one rail each
  answered cables
  assert_output "4 well
4 well
0 well
0 well
0 well
0 well"
  # two cables of a host exchanged; one in the leaf of another rack; of two hosts nobody knows which is wrong
  answered cables-2
  assert_output "c mlx5_0 required: rail 0 on l2, port 1; other hosts have it on l1
c mlx5_1 required: rail 1 on l1, port 1; other hosts have it on l2
3 well
c mlx5_2 required: rail 2 on l2, port 1; other hosts have it on l1
4 well
a mlx5_0 required: rail 0 on l1, port 1; other hosts have it on l2
a mlx5_1 required: rail 1 on l2, port 1; other hosts have it on l1
b mlx5_0 required: rail 0 on l2, port 1; other hosts have it on l1
b mlx5_1 required: rail 1 on l1, port 1; other hosts have it on l2
0 well
a mlx5_1 required: rail 1 on l2, port 1; other hosts have it on l3, l4
b mlx5_1 required: rail 1 on l3, port 1; other hosts have it on l2, l4
c mlx5_1 required: rail 1 on l4, port 1; other hosts have it on l2, l3
0 well"
  # two leaves whose order alternates; a leaf of its own for the storage of each rack
  answered cables-3
  refute_output --partial required
  assert_output --partial "a mlx5_0 advisory: rail 0 on s1, port 1; other hosts have it on s2"
}

asks lldp-agent '("nic-mlx5", "nic-irdma", "nic-bnxt") as $of | $f[$of] | .commands.lldp |= (.exit = 1 | .stdout = "")
    | .links |= with_entries(if .key | endswith("/driver") then .value |= sub("mlx5_core"; "i40e") else . end)
    | judged(.; subject($of))[] | select(.id == "nic-neighbour").remedy'
@test "a card whose firmware answers LLDP itself is told how to leave it to the host" {
  answered lldp-agent
  assert_output "Start lldpd; turn LLDP on at the switch port; ethtool --set-priv-flags enp129s0f0np0 disable-fw-lldp on
Start lldpd; turn LLDP on at the switch port; ethtool --set-priv-flags ice0 fw-lldp-agent off
Start lldpd; turn LLDP on at the switch port; switch off the LLDP agent of the card's firmware (niccli)"
}

asks alone '$f["nic-mlx5"] as $raw | [between([$raw])[]], [group([$raw, $raw]) | map(.host.fabric = "loopback") | nothing(.)[]] | length'
@test "one host, and two names of one machine on a loopback, have nothing between them" {
  answered alone
  assert_output "0
0"
}

# laid_out FIXTURE COMMAND...: runs it where /sys holds what the fixture says, as files and links, and /proc/irq the
# interrupts of its card. The commands that only a real card answers are not there.
laid_out() {
  jq -r '.files | to_entries[] | select(.key | startswith("/sys/")) | [.key, (.value | @base64)] | @tsv' "$TOP/tests/fixtures/hosts/$1.json" >files.tsv
  jq -r '.links | to_entries[] | [.key, .value] | @tsv' "$TOP/tests/fixtures/hosts/$1.json" >links.tsv
  # configuration space: od's lines back to bytes, for the repeated ones the line before
  jq -r '.commands | to_entries[] | select(.key | startswith("pci ")) | .key[4:], (.value.stdout | split("\n")[])' \
    "$TOP/tests/fixtures/hosts/$1.json" >config.txt
  jq -r '.commands | to_entries[] | select(.key | startswith("interrupts ")) | (.key[11:]) as $function | .value.stdout
    | match("/proc/irq/([0-9]+)/([^/]+)/[^\n]*\n([^\n]+)"; "g") | [$function, .captures[].string] | @tsv' "$TOP/tests/fixtures/hosts/$1.json" >irqs.tsv
  unshare --user --map-root-user --mount bash "$BATS_FILE_TMPDIR/lay_out" "${@:2}"
}

lay_out_script() {
  cat <<'SCRIPT'
set -euo pipefail
mount -t tmpfs none /sys && mount -t tmpfs none /proc/irq
while IFS=$'\t' read -r path text; do
  # a function's and a device's own folders lie where their links lead
  while IFS=$'\t' read -r link target; do
    [[ $path/ != "$link"/* || -L $link || $link == */driver ]] || {
      mkdir -p "${link%/*}" "${link%/*}/$target" && ln -s "$target" "$link"
    }
  done <links.tsv
  mkdir -p "${path%/*}"
  { base64 -d <<<"$text" && echo; } >"$path"
done <files.tsv
while IFS=$'\t' read -r link target; do
  [[ $link != */driver && $link != /sys/class/net/*/device ]] || ln -s "$target" "$link"
done <links.tsv
for path in /sys/class/infiniband/*; do ln -s ../.. "$path/device"; done
line='' before=0 function=''
while read -r at bytes; do
  case $at in
    *:*) function=$at before=0 && : >"/sys/bus/pci/devices/$function/config" ;;
    '*') ;;
    *)
      while ((before < 16#$at)); do printf "$line" >>"/sys/bus/pci/devices/$function/config" && before=$((before + 16)); done
      [[ -z $bytes ]] || { line="\\x${bytes// /\\x}" && printf "$line" >>"/sys/bus/pci/devices/$function/config" && before=$((before + 16)); }
      ;;
  esac
done <config.txt
while IFS=$'\t' read -r function irq name cpus; do
  mkdir -p "/sys/bus/pci/devices/$function/msi_irqs" "/proc/irq/$irq/$name"
  : >"/sys/bus/pci/devices/$function/msi_irqs/$irq"
  echo "$cpus" >"/proc/irq/$irq/effective_affinity_list"
done <irqs.tsv
find /sys /proc/irq -type f -exec sha256sum {} + | sort >before.txt
"$@"
find /sys /proc/irq -type f -exec sha256sum {} + | sort >after.txt
SCRIPT
}

@test "host-check reads of a card what there is of it, and changes nothing" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  local of name
  for of in nic-mlx5:mlx5_0 nic-mlx5-infiniband:mlx5_0 nic-bnxt:bnxt_re0; do
    name=${of#*:} of=${of%:*}
    laid_out "$of" "$TOP/roles/host_check/files/host-check" "$name" >found.json
    diff before.txt after.txt
    # every file of the fixture under /sys, its links, the configuration spaces and the interrupts
    jq -n -r --slurpfile want "$TOP/tests/fixtures/hosts/$of.json" --slurpfile found found.json '$want[0] as $w | $found[0] as $f
      | ( $w.files | to_entries[] | select(.key | startswith("/sys/")) | select($f.files[.key] != .value) | .key ),
        ( $w.later | keys_unsorted[] | select($f.later[.] != "0") | "later \(.)" ),
        ( $w.links | to_entries[] | select($f.links[.key] != .value) | .key ),
        ( $w.commands | to_entries[] | select(.key | test("^(pci|interrupts) ")) | select($f.commands[.key].stdout != .value.stdout) | .key )' >missing.txt
    run cat missing.txt
    assert_output ""
  done
}

@test "host-check reads the devices that a pattern, a PCI address or active stands for" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  local choice function
  function=$(jq -r '.links["/sys/class/infiniband/mlx5_0"]' "$TOP/tests/fixtures/hosts/nic-mlx5.json" | grep -oE '[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-9]' | tail -n 1)
  laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" mlx5_0 | jq -S '.files | keys' >wanted.txt
  for choice in 'mlx5_*' "$function" "${function%:*}:*" active; do
    laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" "$choice" mlx5_0 | jq -S '.files | keys' >found.txt
    diff wanted.txt found.txt
  done
}

# virtual NAME=PORT-NAME:DEV-PORT...: makes the card a virtual function of one with these interfaces, and runs host-check
virtual() {
  # shellcheck disable=SC2016
  laid_out "$1" bash -c 'card=$(readlink -f /sys/class/infiniband/mlx5_0/device) real=${0%/*}/real
    mkdir -p "$real/infiniband/mlx5_9" && ln -s "$real" "$card/physfn"
    for link in /sys/class/net/*; do ln -s "$card" "$link/device" && echo 1 >"$link/dev_port"; done
    for one in "${@:2}"; do
      mkdir -p "$real/net/${one%%=*}" && echo "${one##*:}" >"$real/net/${one%%=*}/dev_port"
      name=${one#*=} name=${name%:*}
      [ -z "$name" ] || echo "$name" >"$real/net/${one%%=*}/phys_port_name"
    done
    exec "$1" mlx5_0' "$(mktemp -d)/x" "$TOP/roles/host_check/files/host-check" "${@:2}" >found.json
}

@test "host-check asks the physical function of a virtual one for FEC, module, flow control and the switch" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  # shellcheck disable=SC2016
  asked='[.commands | keys_unsorted[] | select(test("^(fec|fec-later|module|dcb-pfc|dcb-ets|ethtool-pause) ")) | split(" ")[1]] | unique'
  virtual nic-mlx5 up=p0:0 rep=pf0vf3:0
  assert_json found.json "($asked) == [\"up\"] and .links[\"/sys/class/net/enp129s0f0np0/device/physfn/net\"] == \"up\""
  # of two ports the one of the same number; of one without a number that one
  virtual nic-mlx5 up=:0 upper=:1 uppermost=:2
  assert_json found.json "($asked) == [\"upper\"]"
  virtual nic-mlx5
  assert_json found.json "($asked) == [\"enp129s0f0np0\"]"
  virtual nic-mlx5-infiniband
  assert_json found.json '[.commands["portinfo mlx5_0/1", "neighbour mlx5_0/1", "neighbour-name mlx5_0/1"].argv[2]] == ["mlx5_9", "mlx5_9", "mlx5_9"]'
}

@test "host-check asks what a card's virtual functions may do, where it has some" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  local count
  for count in 0 2; do
    # shellcheck disable=SC2016
    laid_out nic-mlx5 bash -c 'device=/sys/class/infiniband/mlx5_0/device && mkdir $device/net/rep0 && echo pf0vf1 >$device/net/rep0/phys_port_name
      echo "$2" >$device/sriov_numvfs && exec "$1" mlx5_0' bash "$TOP/roles/host_check/files/host-check" "$count" >"found$count.json"
  done
  assert_json found0.json '[.commands | keys[] | select(startswith("virtual "))] == []'
  assert_json found2.json '[.commands | keys[] | select(startswith("virtual "))] == ["virtual enp129s0f0np0"]
    and .commands["virtual enp129s0f0np0"].argv == ["ip", "-j", "link", "show", "dev", "enp129s0f0np0"]'
}

@test "host-check leaves a driver that does not answer a read, and reads the other device" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  cp -r "$TOP/roles/host_check/files" files
  sed -i 's/^readonly COMMAND_SECONDS=.*/readonly COMMAND_SECONDS=1/' files/host-check.d/lib.bash
  # a lease of the file: the kernel holds whoever opens it, for /proc/sys/fs/lease-break-time
  cat >hold.py <<'PY'
import fcntl, os, pathlib, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
pathlib.Path("held").touch()
signal.pause()
PY
  # shellcheck disable=SC2016  # who reads the output waits for its end, which no reader that hangs may hold
  laid_out nic-mlx5 bash -c '"$1" hold.py /sys/class/infiniband/mlx5_0/ports/1/state 3>&- >&- & holder=$!
    until [ -e held ]; do :; done
    said=$(timeout 40 files/host-check mlx5_0 2>err) && printf "%s\n" "$said" >found.json
    kill "$holder"' hung "$TOP/.venv/bin/python"
  [ ! -s err ] || fail "it said: $(<err)"
  assert_json found.json '.commands["read /sys/class/infiniband/mlx5_0/ports/1/state"] == {argv: ["read", "/sys/class/infiniband/mlx5_0/ports/1/state"], exit: 137, stdout: "", stderr: ""}
    and [.commands | keys[] | select(startswith("read "))] == ["read /sys/class/infiniband/mlx5_0/ports/1/state"]
    and (.files | has("/sys/class/infiniband/mlx5_0/fw_ver") and (keys | any(startswith("/sys/class/infiniband/mlx5_0/ports/")) | not))
    and .files["/sys/class/net/enp129s0f0np0/mtu"] == "4200" and .later["/sys/class/net/enp129s0f0np0/statistics/rx_errors"] == "0"'
}

@test "host-check leaves out a counter that is a folder, leads nowhere or is too long, and keeps one that is text" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  # shellcheck disable=SC2016
  laid_out nic-mlx5 bash -c 'cd /sys/class/net/enp129s0f0np0/statistics && rm rx_{crc,length,over}_errors && mkdir rx_crc_errors && ln -s nowhere rx_length_errors
    head -c 300000 /dev/zero | tr "\0" 7 >rx_over_errors && echo "many of them" >tx_errors
    mkdir -p /sys/module/irdma/parameters && echo 500 >/sys/module/irdma/parameters/dcqcn_T && exec "$1" mlx5_0' bad "$TOP/roles/host_check/files/host-check" >found.json
  assert_json found.json '"/sys/class/net/enp129s0f0np0/statistics/" as $at | [.files, .later] | all(.[]; (keys | map(select(test("rx_(crc|length|over)_errors$")))) == []
    and .[$at + "tx_errors"] == "many of them" and .[$at + "rx_errors"] == "0")'
  # what no file of a card says
  assert_json found.json '.files["/sys/module/irdma/parameters/dcqcn_T"] == "500" and ([.commands["devlink-health", "devlink-info", "devlink-param"].argv[2:] | join(" ")]
    == ["health show", "dev info", "dev param show"])'
  jq -f "$(rules 'import "hosts/nic" as n;
    [n::findings({name: "here", fabric: "roce", scope: "hardware", devices: [{name: "mlx5_0"}], wanted: {}})]')" found.json >judged.json
  assert_json judged.json '[.[] | select(.id == "nic-interface-errors").status] == ["unknown"]'
}

@test "host-check keeps the text of an ethtool without JSON, and of one that counts no FEC blocks" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  mkdir bin
  # shellcheck disable=SC2016  # the program's own
  printf '%s\n' '#!/bin/sh' 'case "$*" in *json*|*-I*) echo "ethtool: bad command line argument(s)" >&2; exit 1 ;; *) echo "said $*" ;; esac' >bin/ethtool
  chmod +x bin/ethtool
  PATH=$PWD/bin:$PATH laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" mlx5_0 >found.json
  assert_json found.json '[.commands | to_entries[] | select(.key | test("^(rings|coalescing|features|fec|fec-later) ")) | .value | [.exit, .stdout]] | sort
    == ([["-c", "-g", "-k", "--show-fec", "--show-fec"][] | [0, "said \(.) enp129s0f0np0"]] | sort)'
}

@test "host-check keeps the settings that matter, of mstconfig or of mlxconfig" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  lay_out_script >"$BATS_FILE_TMPDIR/lay_out"
  mkdir bin
  ask_link='.commands["link 0000:81:00.0"] | [.argv[0], .exit, .stdout]'
  cat >bin/mlxconfig <<'MLX'
#!/bin/sh
printf '        %s\n' 'SAFE_MODE_ENABLE True(1) True(1) True(1)' 'NUM_OF_VFS 0 0 8'
[ "$*" = "-d 0000:81:00.0 -e q" ]
MLX
  chmod +x bin/mlxconfig
  PATH=$PWD/bin:$PATH laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" mlx5_0 >found.json
  assert_json found.json '.commands["config 0000:81:00.0"] | .exit == 0 and .argv[3] == "mlxconfig" and (.stdout | ltrimstr("        ")) == "NUM_OF_VFS 0 0 8"'
  # bit errors: by neither tool, by mstflint's, by MFT's where both are
  assert_json found.json "($ask_link) == [\"mstlink\", null, \"\"]"
  printf '#!/bin/sh\necho "-E- Failed to open the device" >&2\nexit 1\n' >bin/mstconfig
  printf '#!/bin/sh\necho "${0##*/} $*"\n' | tee bin/mstlink >bin/mlxlink.later
  chmod +x bin/mst* bin/mlx*
  PATH=$PWD/bin:$PATH laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" mlx5_0 >found.json
  assert_json found.json '.commands["config 0000:81:00.0"] | .exit == 1 and .argv[3] == "mstconfig" and (.stderr | test("Failed to open"))'
  assert_json found.json "($ask_link) == [\"mstlink\", 0, \"mstlink -d 0000:81:00.0 -c --json\"]"
  mv bin/mlxlink.later bin/mlxlink
  PATH=$PWD/bin:$PATH laid_out nic-mlx5 "$TOP/roles/host_check/files/host-check" mlx5_0 >found.json
  assert_json found.json "($ask_link) == [\"mlxlink\", 0, \"mlxlink -d 0000:81:00.0 -c --json\"]"
}

@test "host-check reads an interface of this machine with bash and coreutils alone" {
  local tool interface
  interface=$(basename "$(find /sys/class/net -mindepth 1 -maxdepth 1 ! -name lo | sort | tail -n 1)")
  [ -n "$interface" ] || skip "this machine has no interface but lo"
  mkdir bin
  for tool in bash cat readlink timeout od head mktemp uname date rm sleep dirname; do ln -s "$(command -v "$tool")" "bin/$tool"; done
  run_apart 0 env PATH="$PWD/bin" "$TOP/roles/host_check/files/host-check" "$interface"
  [ -z "$stderr" ] || fail "it said: $stderr"
  echo "$output" >found.json
  assert_json found.json ".files[\"/sys/class/net/$interface/mtu\"] != null and .links[\"/sys/class/net/$interface\"] != null
    and .commands[\"driver $interface\"].exit == null and .commands[\"rings $interface\"].exit == null"
  # shellcheck disable=SC2016
  jq --arg name "$interface" -f "$(rules 'import "hosts/nic" as n;
    [n::findings({name: "here", fabric: "ethernet", scope: "hardware", devices: [{$name}], wanted: {mtu: 68}})]')" found.json >judged.json
  assert_json judged.json 'any(.[]; .id == "nic-device" and .status == "ok") and any(.[]; .id == "nic-mtu" and .status == "bad")
    and any(.[]; .id == "nic-ring-rx" and .status == "unknown" and (.found | endswith("ethtool is not installed (package ethtool)")))'
}
