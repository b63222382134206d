#!/usr/bin/env bats
# What a report shows of transfers: tables, charts, and published curves beside them where the run has chosen some. The
# run here is made by hand, as its name says, in the engine's words; the published curves are real.

load helpers

setup() {
  common_setup
  PYTHON=$TOP/.venv/bin/python
  command -v ansible >/dev/null || skip "ansible is not installed"
  made_run run
}
teardown() {
  stop_servers
  common_teardown
}

# A plan of the tests that jq's arguments name, as far as a report reads it.
readonly PLAN='{ schema: "perch.plan/1", run: "made-by-hand", created: "2026-01-01T00:00:00Z", limits: "local",
  suite: {name: "s", title: "Transfers"}, excluded: [],
  hosts: {alpha: {fabric: "loopback", address: "127.0.0.2"}, beta: {fabric: "loopback", address: "127.0.0.3"}},
  rounds: [{flows: [$ARGS.positional[]
    | { id: "\(.)/alpha/beta/1", test: ., title: "Test \(.)", repeat: 1, tool: "perch", kind: "transfer", op: "write",
        scope: "software", client: "alpha", server: "beta", client_argv: ["perch", "transfer"], server_argv: [],
        expect: [{kind: "sum", size_bytes: 1024, batch: 1}] }]}]}'

readonly VERDICT='{ schema: "perch.verdict/1", run: "made-by-hand", verdict: "INCONCLUSIVE", scope: "software",
  coverage: {planned: 2, measured: 1, missing: [{flow: "sizes/alpha/beta/1",
    expect: {kind: "transfer", size_bytes: 8192, batch: 128, pair: 1}, message: "gone"}]},
  checks: [], comparison: {statistic: null, rows: [], refused: [], others: []} }'

# By hand: "sizes" has three sizes over two pairs of devices, "batches" has seven batches over one.
readonly RECORDS='
  def record($test; $kind; $size; $batch; $pair; $pairs; $gbyte; $us):
    { schema: "perch.record/1", run: "made-by-hand", flow: "\($test)/alpha/beta/1", $test, repeat: 1,
      scope: "software", tool: {name: "perch", version: "0"}, backend: "tcp", provider: null, op: "write", $kind,
      definition: "batch_completion", link: {layer: "loopback"},
      client: {host: "alpha", device: "a\($pair)"}, server: {host: "beta", device: "b\($pair)"},
      params: {size_bytes: $size, $batch, queue_pairs: 2, threads: $pairs, devices: $pairs, consecutive: false,
               session: true, completion: "busy", verify: false},
      latency_us: {count: 2000, min: ($us * 0.9), max: ($us * 3), mean: $us, p50: ($us * 0.99), p99: ($us * 2)},
      bandwidth: {gbit_s: ($gbyte * 8), peak_gbit_s: (if $pair == null and $pairs > 1 then null else $gbyte * 9 end),
                  peak_definition: "fastest_batch", messages_per_s: ($gbyte * 1e9 / $size), bytes: 1e9},
      transfer: {$pair, $pairs, batch_bytes: ($size * $batch)}, status: "ok", error: null };
  ( (1024, 4096, 65536) as $size
    | record("sizes"; "transfer"; $size; 128; 0; 2; 1.5; 90), record("sizes"; "transfer"; $size; 128; 1; 2; 1.0; 120),
      record("sizes"; "sum"; $size; 128; null; 2; 2.5; 105) ),
  ( (1, 2, 4, 8, 16, 32, 64) as $batch
    | record("batches"; "transfer"; 1024; $batch; 0; 1; $batch / 20; 20),
      record("batches"; "sum"; 1024; $batch; null; 1; $batch / 20; 20) )'

made_run() {
  mkdir -p "$1/inputs/reference" "$1/raw"
  jq -n "$PLAN" --args sizes batches >"$1/plan.json"
  jq -n "$VERDICT" >"$1/verdict.json"
  jq -nc "$RECORDS" >"$1/records.jsonl"
}

# choose ID...: published curves, as the role plan copies them
choose() {
  local id
  for id in "$@"; do as_json "$TOP/reports/limits/reference/$id.yml" >"run/inputs/reference/$id.json"; done
}

as_json() { "$PYTHON" -c 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)' "$1"; }

# What the role report does behind judge, which would make the records anew: charts in ./charts, words in ./report.md
report() {
  "$TOP/reports/prepare" run report.json
  rm -rf charts
  "$PYTHON" "$TOP/reports/draw.py" report.json charts
}

words() {
  jq '{report_view: ., report_judged_dir: "run"}' report.json >view.json
  run_expecting 0 ansible localhost -c local -m ansible.builtin.template \
    -a "src=$TOP/reports/templates/report.md.j2 dest=$PWD/report.md mode=0644" -e @view.json
}

# The lines of a chart, as "series; measured" or "series; published".
lines_of_chart() {
  grep -o '<path aria-label="[^"]*" role="graphics-symbol" aria-roledescription="line mark"[^>]*' "charts/$1.svg" |
    sed 's/.*series: \(.*\); origin: \([a-z]*\)".*stroke-dasharray="\([^"]*\)".*/\1; \2; \3/'
}

@test "the published curves are whole, as their schema says, and as printed to the last figure" {
  check-jsonschema --schemafile "$TOP/reports/schema/reference.schema.json" "$TOP"/reports/limits/reference/*.yml
  local id rows
  while read -r id rows; do
    as_json "$TOP/reports/limits/reference/$id.yml" >curve.json
    assert_json curve.json ".id == \"$id\" and (.rows | length) == $rows"
    assert_json curve.json '.batch as $b | all(.rows[]; $b == null or .batch == $b)'
    assert_json curve.json 'all(.rows[]; .total_bytes == .size_bytes * .batch)'
    assert_json curve.json 'all(.rows[]; .total_bytes / 1e6 - .total_mb | fabs <= 0.005)'
    assert_json curve.json '[.rows[] | [.size_bytes, .batch]] | . == unique'
    jq -c '.rows[]' curve.json >rows
    jq -nR -c '[inputs | select(test("^\\| +[0-9]"))][] | [scan("[0-9.]+") | tonumber]
      | {size_bytes: .[0], total_mb: .[-5], peak_gbyte_s: .[-4], avg_gbyte_s: .[-3], min_us: .[-2], avg_us: .[-1]} | map_values(. + 0)' \
      "$TOP/tests/fixtures/mori/$id.txt" >printed
    assert_equal "$(jq -c '{size_bytes, total_mb, peak_gbyte_s, avg_gbyte_s, min_us, avg_us} | map_values(. + 0)' rows)" "$(cat printed)"
    # and what is read from the same table as another run's output is the same, its batch too
    jq -nR -c -L "$TOP/reports/jq" "$(imports mori=m)"'m::parts([inputs]; []; {}; null)[]' \
      "$TOP/tests/fixtures/mori/$id.txt" >parts
    assert_equal "$(jq -c 'select(.status == "ok") | [.params.size_bytes, .params.batch, .latency_us.min]' parts)" \
      "$(jq -c '[.size_bytes, .batch, .min_us]' rows)"
  done <<'CURVES'
thor2-read-size 18
thor2-write-size 18
thor2-write-batch 16
cx7-write-size 17
cx7-read-size 17
CURVES
  assert_equal "$(find "$TOP/reports/limits/reference" -name '*.yml' | wc -l)" 5
}

@test "each test has one line for all its pairs, along size and batch, and there is no curve that nobody chose" {
  report
  assert_equal "$(lines_of_chart transfer_size)" "Test sizes; measured; 1,0"
  assert_equal "$(lines_of_chart transfer_batch)" "Test batches; measured; 1,0"
  run cat charts/transfer_size.svg
  assert_output --partial ">Bandwidth in GB/s<"
  assert_output --partial ">64 KiB<"
  refute_output --partial "published"
  words
  refute [ "$(grep -c "Published curves" report.md)" -gt 0 ]
}

@test "tables: all pairs together with the slowest named, each pair, and what the figures mean" {
  report
  words
  run cat report.md
  assert_output --partial "| Test sizes | 2.50 GB/s at 1 KiB, batch 128 | 2.50 GB/s at 64 KiB, batch 128 |"
  assert_output --partial "from posting its first transfer to the completion of its last; max is bytes over the fastest"
  assert_output --partial "| Size | Batch | Total, MB | max, GB/s | avg, GB/s | min, µs | avg, µs | p50, µs | p99, µs |"
  assert_output --partial "| 4 KiB | 128 | 0.524 | 2.50 | 94.5 | 105 | 104 | 210 | 610,352 | pair 1: 1.00 |"
  assert_output --partial "| 4 KiB | 128 | **1** | a1 to b1 | 1.13 | 1.00 | 108 | 120 | 119 | 240 | 244,141 |"
  assert_output --partial "| 1 KiB | 64 | 0.0655 | 3.60 | 3.20 | 18.0 | 20.0 | 19.8 | 40.0 | 3,125,000 |"
  # one pair needs no table of pairs
  assert_equal "$(grep -c 'Each pair of devices by itself' report.md)" 1
  assert_output --partial '| `sizes/alpha/beta/1` | 8 KiB, batch 128, pair 1 | gone |'
}

@test "chosen curves are dashed, with their source, only in the chart that they go along; a broken one is named" {
  choose thor2-write-size cx7-read-size thor2-write-batch
  printf '{"schema": ' >run/inputs/reference/half.json
  report
  assert_equal "$(lines_of_chart transfer_size | sort)" \
    "CX7 read, 1 device, one transfer at a time (MORI-IO Benchmark); published; 6,4
Test sizes; measured; 1,0
Thor2 write, 1 device, 4 queue pairs, batches of 128 (MORI-IO Benchmark); published; 6,4"
  assert_equal "$(lines_of_chart transfer_batch | sort)" "Test batches; measured; 1,0
Thor2 write, 1 device, 16 queue pairs, 1 KiB (MORI-IO Benchmark); published; 6,4"
  grep -q '>Thor2 write, 1 device, 4 queue pairs, batches of 128 (MORI-IO Benchmark)<' charts/transfer_size.svg
  words
  run cat report.md
  assert_output --partial "Dashed lines were published elsewhere"
  assert_output --partial "*Thor2 write, 1 device, 16 queue pairs, 1 KiB*: MORI-IO Benchmark (ROCm/mori, docs/MORI-IO-B"
  assert_output --partial '`inputs/reference/half.json` cannot be drawn: it is no perch.reference/1 document.'
}

@test "what MORI-IO printed stands in one chart with what perch measured, each under its own title" {
  jq -nR -c -L "$TOP/reports/jq" "$(imports mori=m)"'
    m::records([inputs]; []; {run: "made-by-hand", test: "theirs", client: "alpha", server: "beta"}; null)' \
    "$TOP/tests/fixtures/mori/cx7-write-size.txt" | jq -c '.transfer = (.transfer // {pair: 0})' >>run/records.jsonl
  jq -n "$PLAN" --args sizes batches theirs >run/plan.json
  report
  assert_equal "$(lines_of_chart transfer_size)" "Test sizes; measured; 1,0
Test theirs; measured; 1,0"
  words
  run cat report.md
  assert_output --partial "avg as mori prints it"
  assert_output --partial "| 64 MiB | 1 | 67.1 | 49.4 | 49.3 | 1,359 | 1,360 | 735 |"
}

# The lines are the engine's; what only a plan knows is put to them here, and no path was proven.
@test "what perch transfer said over loopback is drawn: each size, batch and pair, with the figures of its lines" {
  perch_serve
  LIMIT=120 run_apart 0 "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend ofi --provider tcp --json --iterations 5 \
    --devices lo,lo --server-devices lo,lo --size 1K:4K --batch 1:16
  jq -c '. + {run: "made-by-hand", flow: "real/alpha/beta/1", test: "real", repeat: 1, scope: "software", path: null}' \
    <<<"$output" >run/records.jsonl
  jq -n "$PLAN" --args real >run/plan.json
  report
  assert_equal "$(lines_of_chart transfer_size | sort -V)" "Test real, batch 1; measured; 1,0
Test real, batch 4; measured; 1,0
Test real, batch 16; measured; 1,0"
  assert_equal "$(lines_of_chart transfer_batch | sort)" "Test real, 1 KiB; measured; 1,0
Test real, 2 KiB; measured; 1,0
Test real, 4 KiB; measured; 1,0"
  assert_json report.json '.tests[0] | [(.rows, .pairs.rows) | length] == [15, 30]'
  jq -c 'select(.kind == "sum") | [.params.size_bytes, .params.batch, (.bandwidth.gbit_s / 8 * 1e6 | round)]' \
    run/records.jsonl >said
  jq -c '.charts[] | select(.name == "transfer_batch").values[] | [.size_bytes, .batch, (.gbyte_s * 1e6 | round)]' \
    report.json | sort -V >drawn
  assert_equal "$(<drawn)" "$(<said)"
  words
  run grep -c '^| [124] KiB | [0-9]* | \*\*[01]\*\* | lo to lo |' report.md
  assert_output 15
}

@test "the plan keeps the chosen curves with the run, and refuses one that is not there" {
  cat >plan.yml <<PLAYBOOK
- name: Plan
  hosts: all
  gather_facts: false
  roles:
    - role: inventory_check
      vars:
        inventory_check_suite_file: $TOP/playbooks/suites/quick.yml
        inventory_check_suite_schema: $TOP/playbooks/suites/suite.schema.json
        inventory_check_limits_dir: $TOP/reports/limits
    - role: plan
      vars:
        plan_suite_file: $TOP/playbooks/suites/quick.yml
        plan_program: $TOP/playbooks/plan.jq
        plan_limits_dir: $TOP/reports/limits
        plan_runs_dir: $PWD/runs
PLAYBOOK
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_ROLES_PATH=$TOP/roles ANSIBLE_NOCOLOR=1
  run_expecting 2 ansible-playbook -i "$TOP/inventories/local" plan.yml -e '{"plan_reference_curves": ["thor3"]}'
  assert_output --partial "There is no curve thor3"
  assert_output --partial "cx7-read-size, cx7-write-size, thor2-read-size, thor2-write-batch, thor2-write-size"
  [ ! -e runs ] || fail "a run was made"
  run_expecting 0 ansible-playbook -i "$TOP/inventories/local" plan.yml \
    -e '{"plan_reference_curves": ["thor2-write-batch"]}'
  assert_equal "$(ls runs/latest/inputs/reference)" thor2-write-batch.json
  assert_equal "$(jq -cS . runs/latest/inputs/reference/thor2-write-batch.json)" \
    "$(as_json "$TOP/reports/limits/reference/thor2-write-batch.yml" | jq -cS .)"
}
