# Lines of `perch transfer --json` and flows of a plan, made by hand after docs/definitions.md and reports/schema: pairs
# of devices that each move 1,000 batches of 128 transfers of 1 KiB.

# $pair null: the sum of $n pairs.
def line($pair; $n):
  ($pair == null) as $sum
  | (if $sum then $n else 1 end) as $m
  | def device($name): if $sum then [range($n) | "\($name)\(.)"] | join(",") else "\($name)\($pair)" end;
    { schema: "perch.record/1", tool: {name: "perch", version: "0"}, backend: "verbs", provider: null, op: "write",
      kind: (if $sum then "sum" else "transfer" end), definition: "batch_completion",
      client: {device: device("c")}, server: {device: device("s")},
      link: {rate_gbit_s: (100 * $m), mtu_bytes: 4096, layer: "ethernet"},
      params: { size_bytes: 1024, batch: 128, iterations: 1000, duration_s: null, warmup: 10, queue_pairs: 4,
                outstanding: 64, threads: $n, devices: $n, consecutive: false, session: true, buffer_bytes: 131072,
                stride_bytes: null, chunk_bytes: null, chunks: 1, cross_rail: 0, bidirectional: false,
                completion: "busy", verify: false },
      elapsed_s: 0.1,
      latency_us: { count: (1000 * $m), min: 50, max: 400, mean: 99, stddev: 5, p50: 98, p90: 110, p95: 120, p99: 200,
                    p99_9: null, p99_99: null },
      bandwidth: { gbit_s: (10.48576 * $m), peak_gbit_s: (if $sum and $n > 1 then null else 20.97152 end),
                   peak_definition: "fastest_batch", min_interval_gbit_s: null, messages_per_s: (1.28e6 * $m),
                   bytes: (131072000 * $m) },
      transfer: { pair: $pair, pairs: $n, batches: (1000 * $m), completed: (128000 * $m), asked: (128000 * $m),
                  batch_bytes: 131072, lists: 1, window_s: 0.1, numa_node: null },
      path: (if $sum then null else {client_sent_bytes: 132382720, client_received_bytes: 0, lost_bytes: 0} end),
      integrity: null, status: "ok", error: null };

# The planned flow of $n pairs, whose command has $argv, too.
def flow($n; $argv):
  { id: "t/a/b/1", test: "t", repeat: 1, scope: "hardware", tool: "perch", backend: "verbs", provider: null, op: "write",
    kind: "transfer", client: "a", server: "b",
    client_argv: (["perch", "transfer", "b", "--backend", "verbs", "--op", "write", "--size", "1K", "--batch", "128",
                   "--queue-pairs", "4", "--iterations", "1000"] + $argv),
    expect: [ (range($n) | {kind: "transfer", size_bytes: 1024, batch: 128, pair: .}),
              {kind: "sum", size_bytes: 1024, batch: 128} ] };
