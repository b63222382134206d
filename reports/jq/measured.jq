# What view_measured.jq hands over, asked by those who conclude from it. Input of each: that document.

# RDMA's interface, whoever drives it; over which network is another question, which the scope answers.
def is_rdma: .tool == "perftest" or .tool == "cxi" or .tool == "perch-personality" or (.backend | IN("verbs", "ofi", "cxi"));
def is_network: .layer != "shm" and .backend != "null";
def is_tcp: .backend == "tcp" or .tool == "iperf" or .tool == "iperf3";

# Tests that have figures, in the plan's order: {name, title, kind, about, sizes}
def tests: . as $m | [.tests[] | . + ($m.by_test[.name] // empty)];

# One row for each test and size, with `test` and `about`.
def points: [tests[] | . as $t | .sizes[] | . + {title: $t.title, test: $t.name, kind: $t.kind, about: $t.about}];

def of_ceiling: if .gbit_s == null or .ceiling_gbit_s == null then null else 100 * .gbit_s / .ceiling_gbit_s end;

# The figures of one way over RDMA's interface, without verification: what an application may expect.
def rdma($kind): [points[] | select(.kind == $kind and (.about | is_rdma and is_network) and .about.asked.verify != true)];
def one_way: map(select(.about.bidirectional != true));
def best_bandwidth: rdma("bandwidth") | one_way | map(select(.gbit_s != null)) | if . == [] then null else max_by([of_ceiling // 0, .gbit_s]) end;
def best_latency:
  rdma("latency") | map(select(.about.definition == "half_round_trip" and (.p50 // .mean) != null))
  | if . == [] then null else (map(.size_bytes) | min) as $least | map(select(.size_bytes == $least)) | min_by(.mean // .p50) end;
