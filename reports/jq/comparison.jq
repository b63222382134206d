# RDMA's interface against TCP: only figures with the same definition, waiting mode, depth and size stand side by side.
import "common" as c;

def sep: "\t";

def column:
  if .tool.name | IN("perftest", "cxi", "perch-personality") then
    # agreement.jq has them; what was measured elsewhere has nothing else to stand beside
    if .scope == "imported" and .kind == "bandwidth" then "other" else null end
  elif .tool.name != "perch" then "other"
  elif .backend == "ofi" or .backend == "verbs" or .backend == "cxi" then "rdma"
  elif .backend == "tcp" then "tcp"
  else null end;

def legend:
  if .tool.name != "perch" then
    (.params.queue_pairs // 1) as $n
    | if .tool.name | IN("perftest", "cxi") then "\(.tool.name) \(.op) (RDMA)" + if $n > 1 then ", \($n) queue pairs" else "" end
      else .tool.name + if $n > 1 then ", \($n) streams" else "" end end
  else (.provider // .backend) end;

# The completion level is part of what is timed only where a completion is what is timed: a ping-pong ends by receiving,
# an acknowledged stream by the receiver's word.
def times_completion: .definition | IN("completion", "initiator_completion", "batch_completion");

def terms:
  [ .kind, .definition, (if times_completion then .completion_level else null end),
    .params.completion, .params.queue_pairs, .params.outstanding, .params.gap_us,
    (.params.rate | if . == null then null else [.asked, .unit] end), .params.size_bytes ]
  # what makes two transfers the same question
  + if .kind != "sum" then []
    else [.op, .params["batch", "devices", "threads", "consecutive", "session", "stride_bytes", "chunks"]] end;

def latency_metrics:
  [ {name: "p50_us", title: "Latency, median", unit: "us", better: "lower"},
    {name: "mean_us", title: "Latency, mean", unit: "us", better: "lower"},
    {name: "stddev_us", title: "Jitter, standard deviation", unit: "us", better: "lower"},
    {name: "p99_minus_p50_us", title: "Jitter, p99 - p50", unit: "us", better: "lower"},
    {name: "p99_us", title: "Tail, p99", unit: "us", better: "lower"},
    {name: "p99_9_us", title: "Tail, p99.9", unit: "us", better: "lower"} ];
def bandwidth_metrics:
  [ {name: "gbit_s", title: "Bandwidth", unit: "Gb/s", better: "higher"},
    {name: "client_s_per_gb", title: "CPU of the client", unit: "s/GB", better: "lower"},
    {name: "server_s_per_gb", title: "CPU of the server", unit: "s/GB", better: "lower"},
    {name: "retransmissions", title: "Retransmissions", unit: "segments", better: "lower"},
    {name: "client_system_s_per_gb", title: "Whole host's CPU at the client", unit: "s/GB", better: "lower"},
    {name: "server_system_s_per_gb", title: "Whole host's CPU at the server", unit: "s/GB", better: "lower"} ];
def transfer_metrics:
  [ {name: "gbit_s", title: "Bandwidth of all pairs", unit: "Gb/s", better: "higher"},
    {name: "messages_per_s", title: "Transfers", unit: "/s", better: "higher"},
    {name: "mean_us", title: "Time of a batch, mean", unit: "us", better: "lower"},
    {name: "p99_us", title: "Time of a batch, p99", unit: "us", better: "lower"},
    {name: "client_s_per_gb", title: "CPU of the client", unit: "s/GB", better: "lower"},
    {name: "server_s_per_gb", title: "CPU of the server", unit: "s/GB", better: "lower"} ];
def metrics: {latency: latency_metrics, sum: transfer_metrics}[.] // bandwidth_metrics;

# A socket's own count where the tool reports it, else the host's TCP counter over the flow: never a guess.
def retransmissions: .tcp.retransmissions // .counters.client.TcpRetransSegs;

# Side by side stands one source only: the host's counter for the engine's backends, the tool's own word for other tools.
def compared_retransmissions:
  if .tool.name == "perch" then .counters.client.TcpRetransSegs else .tcp.retransmissions end;

def values:
  if .kind == "latency" then
    .latency_us
    | [ .p50, .mean, .stddev, (if .p99 == null or .p50 == null then null else .p99 - .p50 end), .p99, .p99_9 ]
  elif .kind == "sum" then
    [.bandwidth["gbit_s", "messages_per_s"], .latency_us["mean", "p99"], .cpu["client_s_per_gb", "server_s_per_gb"]]
  else [ .bandwidth.gbit_s, .cpu.client_s_per_gb, .cpu.server_s_per_gb, compared_retransmissions,
           c::per_gigabyte(.cpu.client_system_s; .bandwidth.bytes), c::per_gigabyte(.cpu.server_system_s; .bandwidth.bytes) ]
  end;

# Sends only, and of transfers their sum.
def compared: .kind == "sum" or .op == null or .op == "send";

# A record's place in the comparison, or null: one way, unverified (checking costs what it checks).
def entry:
  if (compared | not) or .params.bidirectional == true or .params.verify == true or column == null then null
  else { key: ([column, legend, .scope, (terms | tojson)] | join(sep)), values: values }
  end;

# Null unless every record reports it: a p99 that only the busiest repeat had samples for would undercut the median.
def median:
  sort | length as $n
  | if $n == 0 or .[0] == null then null
    elif $n % 2 == 1 then .[($n - 1) / 2]
    else (.[$n / 2 - 1] + .[$n / 2]) / 2
    end
  | if . == null then null else c::rounded end;

# Keys of entries (column, label, scope, terms, number) -> one group of each with the medians of its values.
def groups($entries):
  $entries
  | group_by(.parts[0:4])
  | map({ column: .[0].parts[0], name: .[0].parts[1], scope: .[0].parts[2],
          terms: (.[0].parts[3] | fromjson), records: length,
          medians: (map(.value) | [range(0; .[0] | length) as $i | map(.[$i]) | median]) });

def cell($i): {name, scope, value: .medians[$i], records};

def row($rdma; $tcp; $metric; $i):
  ($rdma | cell($i)) as $r
  | ($tcp | cell($i)) as $t
  | { kind: $rdma.terms[0], metric: $metric.name, title: $metric.title, unit: $metric.unit, better: $metric.better,
      definition: $rdma.terms[1], completion: $rdma.terms[3], size_bytes: $rdma.terms[8] }
    + ($rdma.terms
       | if .[0] != "sum" then {}
         else { queue_pairs: .[4], op: .[9], batch: .[10], devices: .[11], threads: .[12], consecutive: .[13],
                session: .[14], stride_bytes: .[15], chunks: .[16] } end)
    + { rdma: $r, tcp: $t, ratio: (if $metric.name == "retransmissions" then null else c::ratio($r.value; $t.value) end) };

# A pair whose definitions differ is named, not compared.
def refused_pairs($rdma; $tcp):
  [ $rdma[] as $r | select(any($tcp[]; .terms == $r.terms) | not)
    | $tcp[]
    | select([.terms[0, 3, 8]] == [$r.terms[0, 3, 8]] and .terms[1] != $r.terms[1])
    | { kind: $r.terms[0], size_bytes: $r.terms[8],
        reason: "\($r.name) measured \($r.terms[1] // "no definition"), \(.name) \(.terms[1] // "no definition")" } ];

# RDMA and TCP of other tools, imported together: each times something else.
def refused_others($groups):
  [$groups[] | select(.column == "other")]
  | [ .[] as $r | select($r.name | contains("(RDMA)")) | .[] | select(.name | contains("(RDMA)") | not)
      | { kind: "bandwidth", size_bytes: $r.terms[8], reason: "\($r.name) measured \($r.terms[1]), \(.name) \(.terms[1])" } ];

def others($groups):
  [ $groups[] | select(.column == "other")
    | { name, definition: .terms[1], completion: .terms[3], size_bytes: .terms[8], gbit_s: .medians[0],
        client_s_per_gb: .medians[1], server_s_per_gb: .medians[2], retransmissions: .medians[3], records } ];

def build($entries):
  groups($entries) as $groups
  | ($groups | map(select(.column == "rdma"))) as $rdma
  | ($groups | map(select(.column == "tcp"))) as $tcp
  | [ $rdma[] as $r | $tcp[] | select(.terms == $r.terms) | . as $t
      | ($r.terms[0] | metrics) as $m
      | range(0; $m | length) as $i | row($r; $t; $m[$i]; $i) ] as $rows
  | { statistic: "median over the records of all pairs and repeats",
      rows: ($rows | map(select(.kind != "sum"))),
      refused: (refused_pairs($rdma; $tcp) + refused_others($groups)),
      others: others($groups) }
    + ($rows | map(select(.kind == "sum")) | if . == [] then {} else {transfers: .} end);
