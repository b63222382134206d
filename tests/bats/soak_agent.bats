#!/usr/bin/env bats
# A soak that systemd keeps, in a systemd of our own. Sessions without it are in tests/py/test_agent_soak*.py.

load helpers

setup() { common_setup; }
teardown() {
  # what a session says goes to its file: of a test that failed it is shown
  [ -n "${BATS_TEST_COMPLETED:-}" ] || tail -n 20 -- */agent.log */flows.jsonl 2>/dev/null || true
  common_teardown
}

# soak_plan SECONDS: both directions of bandwidth and a paced latency at once
soak_plan() {
  jq -n --argjson port "$(free_port)" --argjson duration "$1" '
    {alpha: "127.0.0.2", beta: "127.0.0.3"} as $hosts
    | def flow($test; $kind; $client; $server; $turn; $seconds):
        {id: "\($test)/\($client)/\($server)/0/\($turn)", $test, title: $test, repeat: $turn, tool: "perch", backend: "tcp", provider: null, op: "send",
         kind: (if $kind == "lat" then "latency" else "bandwidth" end), $client, $server, scope: "software", server_argv: [], ready: null,
         deadline_s: ($seconds + 60), estimate_s: $seconds, expect: [{size_bytes: 8}],
         client_argv: ["perch", $kind, $hosts[$server], "--bind", $hosts[$client], "--backend", "tcp", "--completion", "event", "--duration", "\($seconds)s",
           "--interval", "1s", "--stall", "500ms", "--reconnect", "20s", "--rate", (if $kind == "lat" then "50msg/s" else "0.05Gb/s" end),
           "--soak", "client.soak", "--json"]};
    {run: "20260101T000000Z-soak", created: "2026-01-01T00:00:00Z", suite: {name: "soak", title: "soak"}, limits: "local",
     hosts: ($hosts | map_values({address: ., fabric: "loopback", scope: "software", backends: ["tcp"], port: $port})), excluded: [],
     soak: {duration_s: $duration, interval_s: 1, stall_s: 0.5, reconnect_s: 20, mode: "mixed", turn_s: null},
     rounds: [{flows: [flow("bw"; "bw"; "alpha"; "beta"; 1; $duration), flow("bw"; "bw"; "beta"; "alpha"; 1; $duration),
       flow("lat"; "lat"; "alpha"; "beta"; 1; $duration)]}]}' >plan.json
}

@test "systemd keeps a soak: it comes back after a crash, goes on after a boot, and leaves no unit behind" {
  "$TOP/tests/systemd/box" --possible || skip "no systemd of our own can run here"
  soak_plan 60
  share alpha
  AGENT=$(packed_agent)
  cat >steps <<'END'
set -euo pipefail
keep() { "$AGENT" soak-"$1" --state "$PWD/$2.state" "${@:3}"; }
pid() { systemctl show --property=MainPID --value perch-soak.service; }
until_true() { for _ in {1..300}; do ! "$@" || return 0; sleep 0.1; done; echo "not so within 30 s: $*"; exit 1; }
grown() { [ "$(grep -c '"kind":"interval"' alpha/flows/bw/alpha/beta/0/1/client.soak)" -gt "$1" ]; }
came_back() { [ "$(pid)" -gt 0 ] && [ "$(pid)" != "$crashed" ]; }

keep_alpha() { keep start alpha --plan shares.plan/alpha.json --host alpha --engine "$PERCH" --start-window 20 "$@"; }
systemd-run --quiet --unit=perch-soak.service sleep 100
keep_alpha --out alpha 2>stranger || echo "stranger: $?"
systemctl stop perch-soak.service

keep start beta --plan shares.plan/beta.json --host beta --out beta --engine "$PERCH" --start-window 20 --supervisor session >/dev/null
# what cannot begin leaves no unit
mv shares.plan/alpha.json shares.plan/kept.json
jq '.hosts.alpha.address = "192.0.2.1"' shares.plan/kept.json >shares.plan/alpha.json
keep_alpha --out nowhere 2>nowhere.said || echo "nowhere: $?"
grep -q "did not start on alpha: perch serve on alpha ended with exit code 2: perch: refusing to listen" nowhere.said
mv shares.plan/kept.json shares.plan/alpha.json
! systemctl is-active --quiet perch-soak.service || echo "nowhere: an orphan"
[ ! -e /etc/systemd/system/perch-soak.service ] && [ ! -e alpha.state ]

keep_alpha --out alpha | jq -r .supervisor
systemctl show perch-soak.service --property=LimitMEMLOCK,Restart,KillMode,OOMPolicy
systemctl is-enabled perch-soak.service
until_true grown 0
keep_alpha --out other 2>/dev/null || echo "second: $?"

crashed=$(pid)
kill -KILL "$crashed"
until_true came_back
until_true grown 2

# a disk that is full when it comes back is tried again until there is room
is_full() { [ "$(systemctl show --property=ExecMainStatus --value perch-soak.service)" = 6 ] && [ "$(systemctl show --property=NRestarts --value perch-soak.service)" -ge 3 ]; }
mount -t tmpfs -o size=4k full alpha/control
crashed=$(pid)
kill -KILL "$crashed"
until_true is_full
umount alpha/control
until_true came_back
until_true grown 3
keep status alpha | jq -r .state

systemctl stop perch-soak.service # as a shutdown does
keep status alpha | jq -r .state
sed -i 's/"boot_id":"[^"]*"/"boot_id":"another-boot"/' alpha/flows.jsonl alpha/samples.jsonl
systemctl start perch-soak.service
until_true grown 5
grep -c '"kind":"start"' alpha/flows.jsonl

keep stop alpha
keep stop beta
systemctl is-active perch-soak.service || true
find /etc/systemd /run/systemd/transient -name 'perch-soak*'
END
  LIMIT=200 run_expecting 0 "$TOP/tests/systemd/box" env AGENT="$AGENT" PERCH="$PERCH" bash steps
  for word in systemd LimitMEMLOCK=infinity Restart=on-failure KillMode=mixed OOMPolicy=continue enabled "second: 3" "stranger: 3" "nowhere: 3"; do assert_line "$word"; done
  refute_output --partial orphan
  grep -q 'the unit perch-soak.service is active on alpha, and belongs to no soak of this state' stranger
  assert_equal "$(tail -n 6 <<<"$output" | paste -sd,)" "running,interrupted,4,stopped $PWD/alpha,stopped $PWD/beta,inactive"
  assert_json alpha/flows.jsonl '.kind == "end" and .state == "stopped"'
  grep '"kind":"start"' alpha/flows.jsonl >starts
  assert_json starts '.supervisor == "systemd"'
  grep '"kind":"flow","id":"bw/alpha/beta/0/1"' alpha/flows.jsonl >outcome
  assert_json outcome '.state == "done" and .exit == 0 and (has("samples") | not)' # counters began anew with the boot
  jq -r .stdout outcome >whole
  assert_json whole '.soak.resumed and .soak.gaps >= 2 and .soak.stopped'
}
