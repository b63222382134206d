#!/usr/bin/env bats
# What switches say, provider by provider: published outputs (tests/fixtures/switches), before and after a minute of traffic,
# read into one shape, compared and judged; and what damaged, refused, cleared and lossy ones come to.

load helpers

READING=$TOP/tests/fixtures/switches/reading

# The rows and findings of a switch, for each reading after a run. Two hosts; the plan says {provider, scope: hardware, ports: {},
# priorities: [3]}, and more; `lossless` is of the hosts' fabric.
# shellcheck disable=SC2016  # jq's own variables
setup_file() {
  keep findings jq -c --unbuffered -f "$(rules 'import "switches/readings" as s; import "switches/checks" as c;
    .plan.lossless as $lossless
    | [ {name: "node1", hostname: "node1", netdevs: ["ens1f0np0"], rates: [], scope: "hardware"},
      {name: "node2", hostname: "n2.example", netdevs: [], rates: [], scope: "hardware"} | . + {$lossless} ] as $hosts
    | ({provider, scope: "hardware", ports: {}, priorities: [3]} + .plan) as $plan | .before as $before
    | [.after[] as $after | s::judged("r"; "leaf1"; $plan; $hosts; $before; $after)
        | {switch: ., ports: $plan.ports, rows, findings: [c::findings($hosts | map({key: .name, value: .}) | from_entries)]}]')"
  keep checks "$TOP/.venv/bin/python" "$TOP/tests/switch_checks.py"
}
teardown_file() { end_kept; }
setup() { common_setup; }
teardown() { common_teardown; }

# The readings as they were published, each made once.
reading_of() {
  local file=$BATS_FILE_TMPDIR/$1-$2.json
  [ -s "$file" ] || "$READING" "$1" "$2" >"$file"
  cat "$file"
}

# judged PROVIDER PLAN: of before.json and after.json, which holds one reading or more, with the checks, in answers.json
judged() {
  jq -nc --slurpfile before before.json --slurpfile after after.json --arg provider "$1" --argjson plan "$2" \
    '{$provider, $plan, before: $before[0], $after}' >asked.json
  ask findings <asked.json >found.json
  ask checks <found.json >answers.json
}

# switches VARIANT [BEFORE [AFTER [PLAN]]]: out.json; filters change the readings first, and PLAN is laid over the plan's
switches() {
  reading_of "$1" before | jq -c "${2:-.}" >before.json
  reading_of "$1" after | jq -c "${3:-.}" >after.json
  judged "${1%%-*}" "${4:-"{}"}"
  jq '.[0]' answers.json >out.json
}

# each_after VARIANT FILTERS PLAN: out.json, an array with one switch for each filter, which changes the reading after the run
each_after() {
  reading_of "$1" before >before.json
  reading_of "$1" after | jq -c "$2" >after.json
  judged "$1" "$3"
  cp answers.json out.json
}

# assert_check ID STATUS [TEXT]: of out.json; TEXT is a part of what was measured
assert_check() {
  local said
  said=$(jq -r --arg id "$1" '.checks[] | select(.id == $id) | "\(.status) \(.measured)"' out.json)
  [[ $said == "$2 "*"${3-}"* ]] || fail "$1 is \"$said\", not $2 ${3-}
$(jq -c '.checks[] | [.id, .status, .measured]' out.json)"
}

# assert_all_pass: nothing is wrong or open
assert_all_pass() {
  assert_json out.json '[.checks[] | select(.status | IN("pass", "not_judged") | not)] == [] and ([.checks[] | select(.status == "pass")] | length) >= 4'
}

@test "NX-OS: ports by LLDP, queues, pause frames by priority and PFC's bit map are read" {
  switches nxos
  assert_json out.json '[.rows[] | [.host, .port]] == [["node1", "Ethernet1/1/1"], ["node2", "Ethernet1/1/2"]]'
  assert_json out.json '.rows[0] | .speed_gbit_s == 10 and .priorities == [3] and .pause == {rx: 1500, tx: 40}
    and .pause_by_priority.rx[3] == 1500 and .storms == 0 and .utilisation_percent == 92.666667 and .errors.crc == 0'
  assert_json out.json '.rows[0].queues[] | select(.queue == "3") | .mbit_s == 9253.333333 and .packets_per_s == 1066666.666667 and .drops == 0'
  assert_all_pass
  assert_check switch/pause-frames not_judged "1,540 frames"
}

@test "NX-OS of before: one row is an object, counters are numbers, drops are WRED's and tail drop's, pause frames are the port's alone" {
  # shellcheck disable=SC2016  # jq's own
  local older='.commands.queuing.stdout |= (fromjson | .TABLE_module.ROW_module = [.TABLE_module.ROW_module]
      | (.. | objects | select(has("TABLE_pfc_stats"))) |= del(.TABLE_pfc_stats)
      | (.. | objects | select(.["eq-stat-type"] == "Dropped") | .["eq-stat-type"]) = "WRED & Tail Drop"
      | (.. | objects | select(has("eq-uc-stat-value")) | .["eq-uc-stat-value"]) |= tonumber | tojson)
    | .commands.interfaces.stdout |= (fromjson | .TABLE_interface.ROW_interface |= map(.eth_inbytes |= (tonumber? // 0) | .eth_bw |= tonumber) | tojson)
    | .commands.lldp.stdout |= (fromjson | .TABLE_nbor_detail.ROW_nbor_detail |= .[0] | tojson)
    | .commands.watchdog.stdout = "% Invalid command at \u0027^\u0027 marker.\n"'
  switches nxos "$older" "$older" '{"ports": {"node2": ["ethernet 1/1/2"]}}'
  assert_json out.json '[.rows[] | [.host, .port, .pause.rx, .pause_by_priority.rx[3], .storms]] ==
    [["node1", "Ethernet1/1/1", 1500, null, null], ["node2", "Ethernet1/1/2", 12, null, null]]'
  assert_json out.json '.switch.gaps == [{command: "watchdog", why: "the switch says: % Invalid command at \u0027^\u0027 marker."}]'
  assert_all_pass
}

@test "EOS: queues of Trident with ECN marks, PFC of its table, no watchdog event is none" {
  switches eos
  assert_json out.json '[.rows[] | [.host, .port, .priorities, .storms]] == [["node1", "Ethernet1/1", [3], 0], ["node2", "Ethernet2/1", [3, 4], 0]]'
  assert_json out.json '.rows[0].queues[] | select(.queue == "TC3") | .priority == 3 and .mbit_s == 81200 and .ecn_marked == 2500 and .drops == 0'
  assert_json out.json '.rows[0].pause_by_priority == {rx: [0, 0, 0, 700, 0, 0, 0, 0], tx: [0, 0, 0, 3, 0, 0, 0, 0]}'
  assert_all_pass
}

@test "EOS on Jericho: virtual output queues count, alone or beside egress queues" {
  local voq='.commands.queues.stdout |= (fromjson | {ingressVoqCounters: {interfaces: (.egressQueueCounters.interfaces | map_values({trafficClasses:
      (.ucastQueues.trafficClasses | map_values(.dropPrecedences.DP0))}))}} | tojson)'
  switches eos "$voq" "$voq"
  assert_json out.json '.rows[0].queues[] | select(.queue == "TC3") | .mbit_s == 81200 and .drops == 0'
  assert_all_pass
  local both='.commands.queues.stdout |= (fromjson | {interfaces: (.egressQueueCounters.interfaces | map_values({trafficClasses: (.ucastQueues.trafficClasses
      | map_values({egressQueueCounters: {countersSum: .dropPrecedences.DP0}, ingressVoqCounters: {countersSum: (.dropPrecedences.DP0 | .droppedPackets += DROPS)}}))}))} | tojson)'
  switches eos "${both/DROPS/0}" "${both/DROPS/5}"
  assert_check switch/drops/leaf1/Ethernet1/1 fail "5 packets in queue TC3"
}

@test "SONiC: its databases give queues, priority groups, pause frames, storms and the neighbours" {
  switches sonic
  assert_json out.json '.rows[0] | .port == "Ethernet0" and .speed_gbit_s == 100 and .priorities == [3, 4] and .pause == {rx: 900, tx: 30} and .storms == 0'
  assert_json out.json '[.rows[0].queues[] | select(.queue == "3" or .queue == "priority group 3") | [.queue, .mbit_s, .drops, .ecn_marked]] ==
    [["3", 91866.666667, 0, 4100], ["priority group 3", null, 0, null]]'
  assert_all_pass
  # lossless traffic without room is dropped at the entrance, before any queue
  switches sonic . '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1a00000000003"].value.SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS = "17" | tojson)'
  assert_check switch/drops/leaf1/Ethernet0 fail "17 packets"
  # and a queue that a storm stopped
  switches sonic . '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1500000000003"].value.PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED = "2" | tojson)'
  assert_check switch/pause-storms/leaf1/Ethernet0 fail "2 during the run"
}

@test "Cumulus: queues, pause frames and deadlocks of each port, whatever another port answers; discards are frames" {
  switches cumulus
  assert_json out.json '.rows[0] | .port == "swp1" and .speed_gbit_s == 200 and .priorities == [3] and .pause == {rx: 55, tx: 2} and .storms == 0'
  assert_json out.json '.rows[0].queues[] | select(.queue == "3") | .mbit_s == 173333.333333 and .ecn_marked == 7000 and .drops == 0'
  assert_all_pass
  switches cumulus . '.commands.qos.stdout |= sub("\"tx-uc-buffer-discards\": 0(?<a>[^}]*)},\\s*\"4\""; "\"tx-uc-buffer-discards\": 76993\(.a)}, \"4\"")'
  assert_check switch/drops/leaf1/swp1 fail "76,993 packets in queue 3"
  # a port whose own answer is missing is not known, and the others are
  switches cumulus . '.commands.qos.stdout |= sub("## swp1\n\\{"; "## swp1\nError: ")'
  assert_json out.json '[.rows[] | [.port, (.queues | length > 0)]] == [["swp1", false], ["swp2", true]]'
  assert_check switch/drops/leaf1/swp1 inconclusive "no counter of the lossless queue"
}

@test "InfiniBand: links lead to the hosts by their nodes' names, words are four bytes, counters that stop are not known at their end" {
  switches infiniband . . '{"priorities": []}'
  assert_json out.json '[.rows[] | [.host, .port]] == [["node1", "SwitchIB Mellanox Technologies port 1 (LID 3)"], ["node2", "SwitchIB Mellanox Technologies port 2 (LID 3)"]]'
  assert_json out.json '.rows[0] | .speed_gbit_s == 103.125 and .tx_mbit_s == 90666.666667 and .errors == {crc: 0, symbol: 0, discards_in: null, discards_out: 0}'
  assert_all_pass
  assert_json out.json '[.checks[].id | select(test("pfc|storm"))] == []'
  # by LID/PORT, too, for a node that has no name; a Symbol counter that is in the old answer alone, and full
  local old='.commands.links.stdout |= sub("node1 HCA-1"; "localhost HCA-1") | .commands.counters.stdout |= gsub("(Symbol|PortRcvErrors|PortXmitDiscards).*"; "")'
  switches infiniband "$old" "$old | .commands.errors.stdout |= sub(\"SymbolErrorCounter:\\\\.*0\"; \"SymbolErrorCounter:..............65535\")" \
    '{"ports": {"node1": ["3/1"]}, "priorities": []}'
  assert_json out.json '.rows[0].errors == {crc: 0, symbol: null, discards_in: null, discards_out: 0}'
  assert_all_pass
}

@test "drops, storms, bad frames, PFC that is off and a port that is down fail; drops in another queue are advisory" {
  local grew='.commands.queues.stdout |= (fromjson | (.egressQueueCounters.interfaces["Ethernet1/1"].ucastQueues.trafficClasses | (.TC3, .TC0).dropPrecedences.DP0.droppedPackets) = 9 | tojson)'
  switches eos . "$grew"
  assert_check switch/drops/leaf1/Ethernet1/1 fail "9 packets in queue TC3; wanted: 0"
  assert_check switch/drops-elsewhere/leaf1/Ethernet1/1 advisory "9 packets in queue TC0"
  assert_check switch/drops pass "1 port"
  switches eos . '.commands.watchdog.stdout = "{\"interfaces\": {\"Ethernet2/1\": {\"txQueues\": {\"3\": {\"stuckCount\": 2, \"recoveryCount\": 2}}}}}"'
  assert_check switch/pause-storms/leaf1/Ethernet2/1 fail "2 during the run"
  switches eos . '.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters.inputErrorsDetail.symbolErrors = 4 | tojson)'
  assert_check switch/errors/leaf1/Ethernet1/1 fail "4 CRC or symbol errors"
  switches eos '.commands.interfaces.stdout |= sub("\"connected\""; "\"notconnect\"")'
  assert_check switch/link-up/leaf1/Ethernet1/1 fail down
  switches nxos . '.commands.pfc.stdout |= sub("Auto On  \\(8\\)"; "Auto Off    ")'
  assert_check switch/pfc/leaf1/Ethernet1/1/1 fail "off; wanted: PFC on priority 3"
  switches eos . . '{"priorities": [3, 4]}'
  assert_check switch/pfc/leaf1/Ethernet1/1 fail "on priority 3 only"
}

@test "discards that no queue counts are a warning; those that a queue counts are its drops" {
  local port='.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters |= (.inDiscards += 12 | .outDiscards += 9) | tojson)'
  local queue='.commands.queues.stdout |= (fromjson | .egressQueueCounters.interfaces["Ethernet1/1"].ucastQueues.trafficClasses.TC0.dropPrecedences.DP0.droppedPackets += 9 | tojson)'
  switches eos . "$port"
  assert_check switch/discards/leaf1/Ethernet1/1 advisory "12 packets in, 9 packets out"
  assert_check switch/discards pass "1 port: no packet discarded outside the queues"
  switches eos . "$port | $queue"
  assert_check switch/discards/leaf1/Ethernet1/1 advisory "12 packets in; wanted: 0"
  # a priority group counts what is dropped at the entrance
  local groups='.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1000000000012"].value.SAI_PORT_STAT_IF_IN_DISCARDS = "17" | .["COUNTERS:oid:0x1a00000000003"].value.SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS = "17" | tojson)'
  switches sonic . "$groups"
  assert_check switch/drops/leaf1/Ethernet0 fail "17 packets"
  assert_check switch/discards pass "2 ports"
  switches nxos . '.commands.interfaces.stdout |= sub("\"eth_indiscard\": \"0\""; "\"eth_indiscard\": \"400\"")'
  assert_check switch/discards/leaf1/Ethernet1/1/1 advisory "400 packets in"
}

@test "a fabric that may drop is warned of what its switches drop; one that must not, fails" {
  local grew='.commands.queues.stdout |= (fromjson | .egressQueueCounters.interfaces["Ethernet1/1"].ucastQueues.trafficClasses.TC3.dropPrecedences.DP0.droppedPackets = 9 | tojson)'
  switches eos . "$grew" '{"lossless": false, "priorities": []}'
  assert_check switch/drops/leaf1/Ethernet1/1 advisory "9 packets in queue TC3"
  local lossless
  for lossless in true null; do
    switches eos . "$grew" "{\"lossless\": $lossless, \"priorities\": []}"
    assert_check switch/drops/leaf1/Ethernet1/1 fail "9 packets in queue TC3"
  done
}

@test "as many bad frames as a healthy link has in the time of a long run are none too many" {
  # 100 Gb/s carry 3e15 bits in 30,000 s
  local errors='.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters.inputErrorsDetail.symbolErrors = ERRORS | tojson) | .collected = "2026-01-01T08:20:00Z"'
  local begun='.collected = "2026-01-01T00:00:00Z"'
  switches eos "$begun" "${errors/ERRORS/3}"
  assert_check switch/errors pass "2 ports: at most one CRC or symbol error in 1e15 bits"
  switches eos "$begun" "${errors/ERRORS/4}"
  assert_check switch/errors/leaf1/Ethernet1/1 fail "4 CRC or symbol errors"
}

@test "what is wrong on a simulated switch is advisory, and it says that it proves nothing" {
  switches nxos . '.commands.pfc.stdout |= sub("Auto On  \\(8\\)"; "Auto Off    ")' '{"scope": "simulated"}'
  assert_check switch/pfc/leaf1/Ethernet1/1/1 advisory off
  assert_check switch/simulated not_judged "no proof of any switch: leaf1"
}

@test "without priorities that are wanted, those that have PFC are held lossless, and PFC itself is shown" {
  local grew='.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1500000000004"].value.SAI_QUEUE_STAT_DROPPED_PACKETS = "3" | tojson)'
  switches sonic . "$grew" '{"priorities": []}'
  assert_check switch/drops/leaf1/Ethernet0 fail "3 packets in queue 3, 4"
  assert_check switch/pfc/leaf1/Ethernet0 not_judged "PFC on priority 3, 4"
  switches sonic . "$grew"
  assert_check switch/drops pass "2 ports"
}

@test "counters that are smaller afterwards are not known, never negative and never zero" {
  switches eos '.commands.queues.stdout |= gsub("\"droppedPackets\": 0"; "\"droppedPackets\": 50")'
  assert_check switch/drops/leaf1/Ethernet1/1 inconclusive "drops of queue TC0: 200, then 0"
  assert_json out.json '[.rows[].queues[].drops | values | select(. < 0)] == []'
  switches nxos '.commands.interfaces.stdout |= gsub("\"eth_crc\": \"0\""; "\"eth_crc\": \"7\"")'
  assert_check switch/errors/leaf1/Ethernet1/1/1 inconclusive "errors (crc): 7, then 0"
  assert_json out.json '.rows[0].errors.crc == null'
}

@test "one counter that went back, or a clear time within the run, leaves nothing of the port known; the others are judged" {
  # 0 drops before and 0 after: only the bytes tell that all of them began anew
  switches eos '.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters.inOctets = 9e12 | tojson)'
  assert_json out.json '.rows[0] | .tx_mbit_s == null and .pause == {rx: null, tx: null} and .storms == null and ([.errors[], .queues[].drops] | unique) == [null]'
  local check
  for check in drops errors pause-storms; do assert_check "switch/$check/leaf1/Ethernet1/1" inconclusive "bytes (rx): 9000000000000, then"; done
  assert_check switch/drops pass "1 port"
  assert_check switch/link-up pass "2 ports"
  # EOS gives the time, NX-OS how long ago; both may have been cleared before the run
  local clear='.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters.lastClear = AT | tojson)'
  switches eos "${clear/AT/1559035567.4582636}" "${clear/AT/1559035567.4582638}"
  assert_all_pass
  switches eos . "${clear/AT/1559035567.4582636}"
  assert_check switch/drops/leaf1/Ethernet1/1 inconclusive "counters cleared"
  local ago was
  for ago in 00:00:59:never 00:00:59:1d21h 59s:never never:1d21h 'Sun Jul 05 12;00;00 2020:never'; do
    was=${ago##*:} ago=${ago%:*}
    switches nxos "(.commands.interfaces.stdout) |= gsub(\"never\"; \"$was\")" "(.commands.interfaces.stdout) |= gsub(\"never\"; \"$ago\")"
    assert_check switch/drops/leaf1/Ethernet1/1/1 inconclusive "counters cleared"
  done
  for ago in 1d21h 113w5d 00:01:00 4d 'Sun Jul 05 12;00;00 2020'; do
    switches nxos "(.commands.interfaces.stdout) |= gsub(\"never\"; \"$ago\")" "(.commands.interfaces.stdout) |= gsub(\"never\"; \"$ago\")"
    assert_all_pass
  done
}

@test "bytes that a port could not carry leave nothing of it known" {
  local said='.commands.interfaces.stdout |= (fromjson | .interfaces["Ethernet1/1"].interfaceCounters.outOctets = SAID | tojson)'
  # 100 Gb/s carry 12.75 TB in the 60 s between and 960 s of the reading
  switches eos . "${said/SAID/12700000000000}"
  assert_all_pass
  switches eos . "${said/SAID/12800000000000}"
  assert_check switch/drops/leaf1/Ethernet1/1 inconclusive "bytes (tx) grew faster than the port can carry: 100 Gb/s"
  assert_json out.json '.rows[0] | .utilisation_percent == null and .tx_mbit_s == null'
  switches eos . "${said/SAID/\"999999999999999999999\"}"
  assert_check switch/drops/leaf1/Ethernet1/1 inconclusive "faster than the port can carry"
  assert_check switch/drops pass "1 port"
}

@test "each port that the inventory names and the switch does not have is named, also where the host has another one" {
  switches nxos . . '{"ports": {"node1": ["Ethernet1/1/1", "Ethernet1/99"], "node2": ["Eth1/98"]}}'
  assert_check switch/ports/leaf1/Ethernet1/99 inconclusive "leaf1 Ethernet1/99 (node1): the switch has no port Ethernet1/99"
  assert_check switch/ports/leaf1/Eth1/98 inconclusive "(node2)"
  assert_check switch/ports inconclusive "none leads to node2"
  assert_json out.json '[.rows[] | [.host, .port]] == [["node1", "Ethernet1/1/1"]] and (.switch.not_found | length) == 2'
}

@test "a port with two hosts as neighbours is of neither, unless the inventory names it for both" {
  local two='.commands.lldp.stdout |= (fromjson | .lldpNeighbors["Ethernet1/1"].lldpNeighborInfo += .lldpNeighbors["Ethernet2/1"].lldpNeighborInfo | .lldpNeighbors["Ethernet2/1"].lldpNeighborInfo = [] | tojson)'
  switches eos . "$two"
  assert_check switch/shared inconclusive "leaf1 Ethernet1/1 leads to node1, node2"
  switches eos . "$two" '{"ports": {"node1": ["Ethernet1/1"]}}'
  assert_check switch/shared inconclusive "leaf1 Ethernet1/1 leads to node1, node2"
  switches eos . "$two" '{"ports": {"node1": ["Ethernet1/1"], "node2": ["Ethernet1/1"]}}'
  assert_all_pass
}

# ports_of LLDP-NAME LLDP-NAME HOST HOST: whose ports those of the two neighbours are, by host
ports_of() {
  jq -n -c -L "$TOP/reports/jq" 'import "switches/readings" as s; $ARGS.positional as $n
    | [$n[2:][] | {name: ., hostname: null, netdevs: []}] as $hosts
    | [["p1", $n[0]], ["p2", $n[1]] | {port: .[0], neighbours: [{system: .[1], port: "x"}]}] as $ports
    | [$hosts[] as $h | $ports | s::of_host(null; $h; s::unshared($hosts)) | map(.port) | join(" ")] | join(",")' -r --args "$@"
}

@test "a neighbour is a host by its full name, by its short one only where no other host has it, and an address is never cut" {
  assert_equal "$(ports_of node1.a.org NODE1.b.org. node1.a.org node1.b.org)" p1,p2
  assert_equal "$(ports_of node1 node1.c.org node1.a.org node1.b.org)" ,
  assert_equal "$(ports_of node1 node2.other.org node1.a.org node2)" p1,p2
  assert_equal "$(ports_of node1.a.org node1.b.org node1 node2)" "p1 p2,"
  assert_equal "$(ports_of 192.0.2.2 192.0.2.1 192.0.2.1 192.0.2.2)" p2,p1
  assert_equal "$(ports_of 192.0.2.7 2001:db8::1 192.0.2.1 2001:db8::2)" ,
}

@test "a switch that was not reached, refused a command, was cut off or said nothing is INCONCLUSIVE, whatever its scope" {
  local provider
  local -A main=([nxos]=queuing [eos]=queues [sonic]=counters [cumulus]=qos [infiniband]=counters)
  for provider in nxos eos sonic cumulus infiniband; do
    each_after "$provider" ".commands.${main[$provider]} as \$c | (\$c | (.exit = null | .stdout = \"\" | .stderr = \"Connection timed out\"), (.stdout = \"% Invalid input (at token 1)\\n\"), (.stdout = \"\"),
      (.stdout = 7), (.stdout = \"\\u0000\\u0001 binary\"), (.exit = 127 | .stdout = \"\" | .stderr = \"not found\")) as \$wrong
      | .commands.${main[$provider]} = \$wrong" '{"scope": "simulated"}'
    assert_json out.json 'length == 6 and all(.[]; [.checks[] | select(.status | IN("pass", "fail"))] == [])'
    assert_json out.json "all(.[]; any(.checks[]; .id == \"switch/answers/leaf1\" and .status == \"inconclusive\" and (.measured | contains(\"${main[$provider]} (after)\"))))"
  done
  for provider in nxos eos sonic; do
    switches "$provider" ".commands.${main[$provider]}.stdout |= .[0:length / 2 | floor]"
    assert_check switch/answers/leaf1 inconclusive "cut off"
  done
}

@test "a switch that answers in the words of another model has the wrong provider, whatever its LLDP says" {
  local asked answers wrong="another form than those of"
  for asked in nxos eos sonic; do
    for answers in nxos eos sonic; do
      [ $asked != $answers ] || continue
      switches $asked "$(other_words $answers before)" "$(other_words $answers after)"
      assert_check switch/answers/leaf1 inconclusive "before: its answers have $wrong $asked; after: its answers have $wrong $asked"
      assert_json out.json 'any(.checks[]; .id == "switch/answers/leaf1" and (.remedy | contains("switch_check_provider")))
        and any(.checks[]; .id == "switch/ports" and (.remedy | contains("switch/answers")))
        and ([.checks[] | select(.status | IN("pass", "fail")) | .id] == [])'
    done
  done
}

# other_words MODEL PHASE: a filter that gives each answer the words of MODEL, of the same command or else of its first one
other_words() {
  reading_of "$1" "$2" | jq -c '.commands' >"other-$2.json"
  jq -r '"\(.) as $other | .commands |= with_entries(.value.stdout = ($other[.key] // $other[$other | keys[0]]).stdout)"' "other-$2.json"
}

@test "a reading of another run, switch or phase, or one of the same moment, is none" {
  each_after nxos '(.run = "other"), (.switch = "leaf9"), (.phase = "before"), (.provider = "eos"), (.commands = []), (.collected = "yesterday"),
    (.collected = "2026-01-01T00:00:30.000000Z"), (.collected = "2025-12-31T00:00:00Z")' '{}'
  assert_json out.json 'length == 8 and all(.[]; [.checks[] | select(.status | IN("pass", "fail"))] == [])'
  assert_json out.json 'all(.[]; any(.checks[]; .id == "switch/answers/leaf1" and .status == "inconclusive"))'
}

@test "a host that no port leads to is named: neither by LLDP nor by the inventory, or by a port that is not there" {
  switches nxos '.commands.lldp.stdout = "% Invalid command"' '.commands.lldp.stdout = "% Invalid command"'
  assert_check switch/ports inconclusive "none leads to node1, node2"
  switches nxos . . '{"ports": {"node1": ["Ethernet1/99"]}}'
  assert_check switch/ports inconclusive "none leads to node1"
  # node1 has two interfaces on this switch: the one that is measured counts
  assert_json out.json '[.rows[].port] == ["Ethernet1/1/2"]'
}

# planned SWITCH: the plan of two hosts and leaf1, as the inventory describes it
planned() {
  jq -n --argjson leaf1 "$1" '{run: "r", created: "2026-01-01T00:00:00Z", limits: "local", switches: {$leaf1},
    suite: {name: "s", title: "S", tests: [{name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}}]},
    hosts: ([["a", "192.0.2.1"], ["b", "192.0.2.2"]] | map({key: .[0], value: {perch_address: .[1], perch_fabric: "roce", perch_link_gbit_s: 100, perch_backends: ["tcp"]}}) | from_entries)}' |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py"
}

@test "a plan holds each switch with its ports and priorities, and refuses what describes none, by its name" {
  planned '{"switch_check_provider": "eos", "switch_check_ports": {"a": "Et1", "b": [2, "Et3"], "not-here": "Et4"}, "host_check_pfc_priorities": [3]}' >plan.json
  assert_json plan.json '.switches == {leaf1: {provider: "eos", scope: "hardware", priorities: [3], ports: {a: ["Et1"], b: ["2", "Et3"]}}}'
  mkdir -p run
  put_plan run <plan.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.json
  planned '{"switch_check_provider": "nxos", "switch_check_priorities": [], "host_check_pfc_priorities": [3], "perch_scope": "simulated"}' >plan.json
  assert_json plan.json '.switches.leaf1 == {provider: "nxos", scope: "simulated"}'
  local wrong
  for wrong in '{}' '{"switch_check_provider": "ios"}' '{"switch_check_provider": "eos", "switch_check_ports": "Et1"}' \
    '{"switch_check_provider": "eos", "switch_check_ports": {"a": {"port": 1}}}' '{"switch_check_provider": "eos", "switch_check_priorities": [8]}'; do
    run planned "$wrong"
    assert_failure
    assert_output --partial "switch leaf1: switch_check_"
  done
}

@test "readings are as their schema says, and one of another phase, without its time or with a number for an answer is not" {
  local schema=$TOP/reports/schema/switch.schema.json provider phase wrong
  for provider in nxos eos sonic cumulus infiniband; do
    for phase in before after; do reading_of $provider $phase >$provider-$phase.json; done
  done
  run_expecting 0 check-jsonschema --schemafile "$schema" ./*-before.json ./*-after.json
  jq '.commands.lldp = {exit: null, stdout: "", stderr: "Permission denied"}' nxos-before.json >none.json
  run_expecting 0 check-jsonschema --schemafile "$schema" none.json
  for wrong in '.phase = "while"' 'del(.collected)' '.commands.lldp.stdout = 7' '.commands.lldp.exit = "0"' '.schema = "perch.switch/2"'; do
    jq "$wrong" nxos-before.json >wrong.json
    run_expecting 1 check-jsonschema --schemafile "$schema" wrong.json
  done
}
