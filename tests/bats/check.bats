#!/usr/bin/env bats
# `perch check`: what it says of a command is what that command's records say, and every build says the same, also one that
# has no backend's library.

# shellcheck disable=SC2154  # run --separate-stderr sets stderr

load helpers
load check

: "${CHECK_TOOL:=$TOP/engine/build-check/perch}"

setup() { common_setup; }
teardown() { stop_servers && common_teardown; }

have_backend() { "$PERCH" --version | grep -qw -- "$1"; }

# measured COMMAND WORD...: its records are as was said before
measured() {
  local command=$1
  shift
  run_apart 0 "$PERCH" "$command" 127.0.0.1 --port "$PORT" "$@" --json
  printf '%s\n' "$output" >records
  conform records "$command" host "$@" --json
}

@test "what is said of a command is what its records say" {
  perch_serve
  measured lat --size 8:64 --iterations 50 --warmup 5
  measured lat --duration 20ms --gap 10us --completion event --verify --timeout 9s
  measured lat --rate 5Kmsg/s --iterations 50 --barrier
  measured bw --size 4K:8K --iterations 200 --outstanding 8 --bidirectional
  measured bw --rate 50Mb/s --duration 20ms
  measured lat --backend null --op write --iterations 1000
  measured lat --backend null --op read --iterations 1000
  measured bw --backend null --op fetch-add --size 8:64 --iterations 1000
  measured transfer --size 1K:4K --batch 1:4 --iterations 20 --warmup 2 --chunk 600 --stride 8K
  measured transfer --op read --queue-pairs 2 --threads 2 --duration 20ms --consecutive --no-session --verify
  measured rate --op read --size 8:32 --queue-pairs 2 --threads 2 --iterations 500 --warmup 10 --completion busy
  measured rate --duration 20ms --outstanding 24 --warmup 10
}

@test "the same over libfabric" {
  have_backend ofi || skip "built without ofi"
  perch_serve
  measured lat --backend ofi --provider tcp --iterations 50
  measured lat --backend ofi --provider tcp --op write --definition completion --iterations 50
  measured lat --backend ofi --provider tcp --op fetch-atomic --atomic-type int32 --iterations 50
  measured bw --backend ofi --provider tcp --op read --batch 4 --iterations 200
  measured transfer --backend ofi --provider tcp --devices lo,lo --server-devices lo,lo --batch 4:8 --threads 4 --iterations 20
}

# One command a line.
commands() {
  cat <<'END'
lat h
lat h --size 8:64K --duration 5s --gap 1ms --max-p99 9.5
lat h --backend verbs --op write --device mlx5_0 --server-device mlx5_1 --gid-index 3 --mtu 4096 --rdma-cm
lat h --backend ofi --op fetch-atomic --atomic-type double --atomic-op min
lat h --backend cxi --op read --unrestricted --svc-id 5 --vni 10 --no-ll
lat h --backend null --op compare-swap
lat h --json --soak f --duration 1h --interval 10s
bw h --backend verbs --queue-pairs 8 --batch 4 --cq-moderation 8 --srq --min-gbit 90
bw h --backend cxi --op write --no-idc --no-hrp --keys matching --traffic-class bulk-data
bw h --memory cuda --bounce
bw h --rate 5Gb/s --size 64:1M:64K
transfer h --backend verbs --devices a,b,c,d --server-devices e,f,g,h --cross-rail 1 --threads 8 --batch 1:64 --inline 0
transfer h --backend cxi --op read --duration 3s
rate h --backend verbs --op send --threads 8 --queue-pairs 4 --batch 16 --cq-moderation 48 --inline 32 --size 8:256
rate h --backend cxi --op send --duration 3s --footprint 1G
transfer h --backend ofi --provider efa --queue-pairs 4 --chunk 1M --size 8M
lat h --backend nosuch
lat h --backend verbs --op fetch-add --size 8:16
lat h --backend verbs --connection ud --size 8K
lat h --backend cxi --op send --rdzv --no-hrp
lat h --backend ofi --op write-imm
lat h --backend null --completion event
bw h --backend cxi --queue-pairs 4
bw h --backend verbs --keys matching
bw h --iterations 5 --duration 5s
transfer h --backend null
rate h --backend null
rate h --backend ofi --op fetch-add
transfer h --backend ofi --devices a,b
transfer h --backend verbs --connection uc
lat
lat h --frobnicate
serve
END
}

# said PROGRAM: what it says of all of them, with exit codes
said() {
  local words status
  while read -ra words; do
    status=0
    "$1" check "${words[@]}" 2>&1 || status=$?
    echo "exit $status"
  done < <(commands)
}

@test "a build without any backend's library says the same" {
  [ -x "$CHECK_TOOL" ] || skip "no $CHECK_TOOL: make -C engine check-tool"
  run_apart 0 "$CHECK_TOOL" --version
  assert_equal "${lines[1]}" "backends: tcp null"
  said "$PERCH" >with
  said "$CHECK_TOOL" >without
  assert_equal "$(grep -c '^exit 0$' with)" 16
  assert_equal "$(grep -c '^exit 2$' with)" 17
  diff -u with without
}

@test "no host is asked: the name need not resolve, and no token is read" {
  PERCH_TOKEN_FILE=/no/such/token run_apart 0 "$PERCH" check lat no-such-host.invalid --bind 192.0.2.1 --cpu 1000
  assert_equal "$stderr" ""
  assert_equal "$(jq -r .schema <<<"$output")" perch.check/1
  PERCH_TOKEN_FILE=/no/such/token run_apart 3 "$CHECK_TOOL" lat no-such-host.invalid --backend verbs
  assert_said "built without it"
}

@test "names are taken as they are, so that a plan can ask before it knows the hosts" {
  run_apart 0 "$PERCH" check transfer '{server}' --backend verbs --devices '{c0},{c1}' --server-devices '{s0},{s1}' --cross-rail 1
  jq -e '[.expect[:2][] | .client.device, .server.device] == ["{c0}", "{s1}", "{c1}", "{s0}"]' <<<"$output"
}
