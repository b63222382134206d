#!/usr/bin/env bats
# What cannot be measured is refused twice: by the plan before a run, and by the engine. Both have the rules written down
# (playbooks/plan/engine.jq, engine/src/job.c), and must give the same verdict.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# Every operation with every connection, and with each of the other choices: {kind, op, backend, params}. Not in it, since
# the plan is stricter on purpose: relaxed ordering with the latency of write, where it wants to be told the definition.
readonly ROWS='
  def params: {size: 8}, {size: 12}, {size: 8, connection: "uc"}, {size: 8, connection: "ud"},
    {size: 7, connection: "uc", verify: true}, {size: 8, connection: "uc", verify: true}, {size: 4097, connection: "ud"},
    {size: 1025, connection: "ud", mtu: 1024}, {size: 8, connection: "uc", retry: 3}, {size: 8, retry: 3},
    {size: 8, inline: 64}, {size: 8, srq: true}, {size: 8, relaxed_ordering: true, definition: "completion"}, {size: 8, definition: "half_round_trip"},
    {size: 8, queue_pairs: 4}, {size: 8, queue_pairs: 65}, {size: 8, batch: 65}, {size: 8, batch: 16, queue_pairs: 4},
    {size: 8, cq_moderation: 33, queue_pairs: 2}, {size: 8, outstanding: 2, batch: 2}, {size: 8, outstanding: 2, batch: 3},
    {size: 8, completion: "event"}, {size: 8, bidirectional: true}, {size: 8, bidirectional: true, verify: true},
    {size: 8, bidirectional: true, interval: "1s"}, {size: 8, gap: "1ms"}, {size: 8, gap: "1ms", rate: "5msg/s"};
  ("latency", "bandwidth") as $kind
  | ("send", "send-imm", "write", "write-imm", "read", "fetch-add", "compare-swap") as $op
  | params as $params
  | {kind: $kind, op: $op, backend: "verbs", $params}, (select($params.connection == null) | {kind: $kind, op: $op, backend: "tcp", $params}),
    # libfabric has lists, too
    (select($op == "write" and $params.batch != null) | {kind: $kind, op: $op, backend: ("ofi", "cxi"), $params}),
    (select($op == "send" and $params == {size: 8, queue_pairs: 4}) | {kind: $kind, op: $op, backend: ("ofi", "cxi"), params: {size: 8, batch: 64}})'

# Port 1 of loopback: nobody listens there, so that what is not refused as a command ends with exit code 4.
@test "the plan and the engine refuse the same combinations" {
  local verdict rc wrong=0 accepted=0 refused=0
  local -a argv
  while read -ra argv; do
    verdict=${argv[0]} argv=("${argv[@]:1}") rc=0
    "$PERCH" "${argv[@]}" >/dev/null 2>said || rc=$?
    if [[ $verdict == no && $rc -eq 2 ]]; then
      refused=$((refused + 1))
    elif [[ $verdict == yes && $rc -eq 4 ]]; then
      accepted=$((accepted + 1))
    else
      wrong=$((wrong + 1))
      printf 'plan: %s, engine: exit code %d, %s\n%s\n' "$verdict" "$rc" "$(<said)" "${argv[*]}"
    fi
  done < <(jq -n -r -L "$TOP/playbooks/plan" "import \"engine\" as e; [$ROWS][]"'
    | ([e::contradiction] | if . == [] then "yes" else "no" end) as $verdict
    | [$verdict, {latency: "lat", bandwidth: "bw"}[.kind], "127.0.0.1", "--port", "1", "--backend", .backend, "--op", .op]
      + (.params | e::options) | join(" ")')
  ((wrong == 0)) || fail "$wrong combinations are judged differently"
  # a table of which either side takes all, or nothing, would prove nothing
  ((accepted > 50 && refused > 50)) || fail "$accepted accepted, $refused refused"
}
