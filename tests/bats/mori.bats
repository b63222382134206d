#!/usr/bin/env bats
# perch as MORI-IO's benchmark: its boxed table of each initiator's rank, over libfabric's tcp provider and over sockets.
# What its arguments mean is in engine/tests/test_mori.c.

# shellcheck disable=SC2030,SC2031,SC2154  # each test is a subshell; run --separate-stderr sets stderr

load helpers

setup() {
  common_setup
  export FI_PROVIDER="tcp,ofi_rxm"
  ln -s "$PERCH" mori_io_benchmark
}
teardown() {
  stop_servers
  common_teardown
}

listens() { ss -ltnH "sport = :$PORT" | grep -q .; }

# mori EXIT ARGUMENT...: to a target of its own; the tables are in tables
mori() {
  local expected=$1
  shift
  PORT=$(free_port)
  ./mori_io_benchmark --port "$PORT" 2>target.err 3>&- &
  SERVERS+=($!)
  wait_until listens
  run_apart "$expected" ./mori_io_benchmark --host=127.0.0.1 --port "$PORT" --iters 3 --enable-sess --enable-batch-transfer "$@"
  sed -n '/^[+|]/p' <<<"$output" >tables
}

# The cells of a table's rows: sizes and batches
rows() { awk -F'|' '/^\| +[0-9]/ { print $2 + 0 "x" $3 + 0 }' tables | xargs; }

@test "each initiator's rank has a table of the page's shape, where the sides have unequal devices, too" {
  mori 0 --backend ofi --devices lo,lo --server-devices lo --num-initiator-dev 2 --transfer-batch-size 16 --all --sweep-max-size 64
  [[ $output = "MORI-IO Benchmark Configurations:"* ]]
  assert_said "perch in the place of MORI-IO's benchmark"
  local rule="+-------------+-----------+----------------+---------------+---------------+--------------+--------------+"
  sed -n 1,5p tables | diff - <(
    cat <<END
+$(printf -- '-%.0s' {1..104})+
|                                            Initiator Rank 0                                            |
$rule
| MsgSize (B) | BatchSize | TotalSize (MB) | Max BW (GB/s) | Avg Bw (GB/s) | Min Lat (us) | Avg Lat (us) |
$rule
END
  )
  grep -q "Initiator Rank 1" tables
  assert_equal "$(rows)" "8x16 16x16 32x16 64x16 8x16 16x16 32x16 64x16"
  # each cell in the middle, as the page has it
  grep -q '^|      8      |     16    |      0.00      |' tables
  grep -q '^|      16     |     16    |      0.00      |' tables
}

@test "all batches, and what the importer of MORI-IO's tables makes of them" {
  mori 0 --backend tcp --op-type write --buffer-size 1024 --all-batch
  assert_equal "$(rows)" "1024x1 1024x2 1024x4 1024x8 1024x16 1024x32 1024x64 1024x128 1024x256 1024x512 1024x1024 1024x2048 1024x4096 1024x8192 1024x16384 1024x32768"
  printf '%s\n' "$output" >output
  (cd "$TOP" && .venv/bin/python -c '
import sys
from perch.model.plan import Flow
from perch.tools import ToolOutput, read
flow = Flow(id="t/a/b/0/1", test="t", tool="mori", kind="transfer", client="a", server="b", scope="imported")
parts = read(ToolOutput(flow, sys.stdin.buffer.read()))
print(len(parts), {p.status for p in parts}, {p.op for p in parts}, {p.params.session for p in parts})') <output >parts
  assert_equal "$(cat parts)" "16 {'ok'} {'write'} {True}"
}

@test "devices that are not there are exit 3, and a count without its names is exit 2" {
  run_apart 3 ./mori_io_benchmark --host 127.0.0.1 --backend ofi --num-initiator-dev 16 --num-target-dev 16
  assert_said "name them with --devices and --server-devices"
  run_apart 2 ./mori_io_benchmark --host 127.0.0.1 --backend tcp --num-initiator-dev 8 --num-target-dev 8
  assert_said "backend tcp has no devices to choose from"
  run_apart 2 ./mori_io_benchmark --host 127.0.0.1 --backend ofi --num-target-dev 2 --devices lo --server-devices lo
  assert_said "--devices names 1 and --server-devices 1"
}
