# RDMA against TCP on one page: bandwidth, latency, jitter, tail, CPU and loss of each provider beside TCP's. What was not
# measured says so. The ratios are the verdict's; all sizes and figures stand in a table of their own.
import "digits" as digits;
import "figure_words" as words;
import "format" as f;
import "measured" as measured;
import "table" as table;

# Repeats of one figure vary by as much: draft-calabria-bmwg-ai-fabric-training-bench-02 recommends under 5 %.
def noise: 0.05;

# 1.98 -> "+98 % (2.0 times as much)"; 0.09 -> "-91 % (11 times less)"
def advantage($better):
  if . == null then "-"
  else
    (if . > 11 then "> +1000 %" else (if . >= 1 then "+" else "" end) + (100 * (. - 1) | digits::fixed(0)) + " %" end) as $change
    | (if $better == "higher" then . >= 1 + noise else . <= 1 - noise end) as $good
    | (if . >= 1 then "\(f::figure) times as much" else "\(1 / . | f::figure) times less" end) as $times
    | "\($change) (\($times))" | if $good then "**\(.)**" else . end
  end;

def wanted:
  [ {metric: "gbit_s", kind: "bandwidth", title: "Bandwidth"},
    {metric: "p50_us", kind: "latency", title: "Latency, median"}, {metric: "stddev_us", kind: "latency", title: "Jitter, standard deviation"},
    {metric: "p99_us", kind: "latency", title: "Tail, p99"},
    {metric: "client_s_per_gb", kind: "bandwidth", title: "CPU of the client", completion: "event"},
    {metric: "server_s_per_gb", kind: "bandwidth", title: "CPU of the server", completion: "event"} ];

# Busy pollers burn a whole CPU whatever they carry: CPU is compared where the flow waits by events, all else where it polls.
def pick($rows; $want):
  [$rows[] | select(.metric == $want.metric and .kind == $want.kind
                    and ($want.completion == null or .completion == $want.completion))] as $all
  | ($all | map(select($want.completion != null or .completion == "busy")) | if . == [] then $all else . end)
  | if . == [] then null elif $want.kind == "latency" then min_by(.size_bytes) else max_by(.size_bytes) end;

def cell($row):
  if .value != null then .value | words::quantity($row.unit)
  elif $row.metric | test("^p9") then "too few samples"
  else "not measured" end;

def row($rows; $want):
  pick($rows; $want)
  | if . == null then [$want.title + (if $want.completion == "event" then ", waiting by events" else "" end), "-", "not measured", "not measured", "-"]
    else [ (.title | f::cell) + ", " + (.completion | words::waiting_words), (.size_bytes | f::size), (. as $row | .tcp | cell($row)), (. as $row | .rdma | cell($row)),
           (.better as $better | .ratio | advantage($better)) ] end;

# What the devices counted of a provider's packets, or the host's TCP under providers that go over it.
def loss($rows; $provider; $measured):
  ([$measured.tests[] | .name as $name | $measured.by_test[$name].about | select(. != null and (.provider // .backend) == $provider) | $measured.packets[$name] | values]
   | if . == [] then null else {sent: (map(.sent) | add), lost: (map(.lost) | add), retries: (map(.retries) | add)} end) as $packets
  | pick($rows; {metric: "retransmissions", kind: "bandwidth", completion: null}) as $tcp
  | [ "Packets lost or sent again", (if $tcp == null then "-" else $tcp.size_bytes | f::size end),
      (if $tcp.tcp.value == null then "not measured" else "\($tcp.tcp.value | f::plural("segment") ) sent again" end),
      (if $packets != null then "\($packets.lost | f::whole) lost, \($packets.retries | f::whole) times sent again, of \($packets.sent | f::whole)"
       elif $tcp.rdma.value != null then "\($tcp.rdma.value | f::plural("segment")) of TCP under it sent again"
       else "not measured" end), "-" ];

def provider_table($comparison; $provider; $measured):
  ($comparison.rows | map(select(.rdma.name == $provider))) as $rows
  | { title: (($provider | f::cell) + ([$rows[0].rdma.scope] | if .[0] == "hardware" then "" else ", \(.[0])" end)),
      columns: [table::left("Metric"), table::right("Size"), table::right("TCP (the engine)"), table::right("RDMA (\($provider | f::cell))"),
                table::right("RDMA's change")],
      rows: ([wanted[] as $want | row($rows; $want)] + [loss($rows; $provider; $measured)]) };

# ---- where no two are alike ----

def by_definition($point): "\($point.title | f::cell): \($point.about.definition // "no definition" | gsub("_"; " ") | f::cell)";

# Figures of other tools by definitions of their own stand beside each other without a ratio.
def unlike($measured):
  ([$measured | measured::points[] | select(.kind == "bandwidth" and (.about | measured::is_tcp) and .gbit_s != null)] | if . == [] then null else max_by(.gbit_s) end) as $tcp
  | ($measured | measured::best_bandwidth) as $rdma
  | ($measured | measured::best_latency) as $latency
  | ([$measured | measured::points[] | select(.about.initial_rtt_us != null) | .about.initial_rtt_us] | if . == [] then null else min end) as $rtt
  | if $tcp == null or $rdma == null then null
    else
      { columns: [table::left("Metric"), table::right("TCP"), table::right("RDMA"), table::left("Why there is no ratio")],
        rows: ( [ ["Bandwidth", "\($tcp.gbit_s | f::figure) Gb/s", "\($rdma.gbit_s | f::figure) Gb/s",
                   "\(by_definition($tcp)); \(by_definition($rdma))"] ]
                + if $rtt == null or $latency == null then []
                  else [ ["Latency", "\($rtt | f::figure) µs", "\($latency.p50 // $latency.mean | f::figure) µs",
                          "TCP's is a whole round trip of the handshake, RDMA's half of one"] ] end ) }
    end;

# Shared memory is no network.
def section($comparison; $measured):
  ([$comparison.rows[].rdma.name] | unique | map(select(. != "shm"))) as $providers
  | { short: [$providers[] | provider_table($comparison; .; $measured)],
      # also where both carried something, but by definitions that nothing can be divided by
      unlike: (if any($comparison.rows[]; .rdma.name != "shm" and .metric == "gbit_s") then null else unlike($measured) end) };
