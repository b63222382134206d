# Sentences that a reader may quote. Each is made of what a record or a check carries; what was not measured has no sentence.
import "digits" as digits;
import "format" as f;
import "measured" as measured;

def percent: digits::fixed(1) + " %";

def link_words:
  "a \(.about.rate_gbit_s | f::plain) Gb/s link can carry" + (if .about.mtu_bytes == null then "" else " at MTU \(.about.mtu_bytes | digits::fixed(0))" end);

# docs/definitions.md: half a percent over the ceiling is granted for the clocks of two hosts.
def impossible: 100.5;

def throughput:
  measured::best_bandwidth
  | select(. != null)
  | measured::of_ceiling as $percent
  | if $percent == null then
      "**RDMA's interface carried \(.gbit_s | f::figure) Gb/s** (\(.title | f::cell), \(.size_bytes | f::size)). How much its link could carry is not known: "
      + (if .about.layer | IN("loopback", "shm") then "\(.about.layer | f::cell) has no ceiling."
         else "\([ (if .about.rate_gbit_s == null then "rate" else empty end), (if .about.mtu_bytes == null then "MTU" else empty end) ] | if . == [] then "the layer" else join(" and ") end) not told." end)
    elif $percent > impossible then
      "**\(.gbit_s | f::figure) Gb/s is \($percent | percent) of what \(link_words) (\(.ceiling_gbit_s | f::figure) Gb/s), which cannot be** (\(.title | f::cell))."
    else
      "**\(.gbit_s | f::figure) Gb/s is \($percent | percent) of what \(link_words) (\(.ceiling_gbit_s | f::figure) Gb/s)**: \(.title | f::cell), \(.size_bytes | f::size)."
    end;

def slowest:
  .ranked[] | select(.kind == "bandwidth")
  | .middle as $middle | .slowest[0]
  | "The slowest pair is \(.client | f::cell) to \(.server | f::cell), at \(.value | f::figure) Gb/s: \(100 * .value / $middle | percent) of the middle one.";

def latency:
  measured::best_latency
  | select(. != null)
  | ( "**Half of a round trip of \(.size_bytes | f::size) takes \(.p50 // .mean | f::figure) µs**"
      + (if .p50 == null then " in the mean" else " in the median" + (if .mean == null then "" else ", \(.mean | f::figure) µs in the mean" end) end)
      + " (\(.title | f::cell))." ),
    ( select(.stddev != null)
      | "Its jitter: standard deviation \(.stddev | f::figure) µs"
        + (if .p99 != null and .p50 != null then ", p99 - p50 \(.p99 - .p50 | f::figure) µs" else "" end)
        + (if .max != null then "; the longest of \(.count | f::whole) messages took \(.max | f::figure) µs" else "" end) + "." );

# Ratios as the verdict has them; shared memory is no network.
def against_tcp($comparison):
  [$comparison.rows[] | select(.rdma.name != "shm" and .ratio != null)] as $rows
  | ([$rows[] | select(.metric == "gbit_s")] | if . == [] then null else max_by([.completion == "busy", .size_bytes]) end) as $bandwidth
  | ([$rows[] | select(.metric == "p50_us")] | if . == [] then null else min_by(.size_bytes) end) as $latency
  | ([$rows[] | select(.metric == "client_s_per_gb" and .completion == "event")] | if . == [] then null else max_by(.size_bytes) end) as $cpu
  | [ ($bandwidth | values | "\(.ratio | f::figure) times its bandwidth at \(.size_bytes | f::size)"),
      ($latency | values | "\(.ratio | f::figure) times its latency at \(.size_bytes | f::size)"),
      ($cpu | values | "\(.ratio | f::figure) times its CPU a byte where both wait by events") ]
  | select(length > 0)
  | "Against TCP, RDMA's interface (\($bandwidth // $latency // $cpu | .rdma.name | f::cell)) has " + join(", ") + ".";

def packets:
  [.packets[]] | select(length > 0)
  | {sent: (map(.sent) | add), lost: (map(.lost) | add), retries: (map(.retries) | add), whole: all(.[]; .whole)}
  | "The RDMA devices counted \(.sent | f::whole) packets: \(if .lost == 0 then "none" else .lost | f::whole end) lost on the way, "
    + "\(if .retries == 0 then "none" else .retries | f::whole end) times sent again"
    + (if .whole then "." else ", as far as they count that." end);

def check($checks; $id): first($checks[] | select(.id == $id));

def switches($checks):
  (check($checks; "switch/drops") | select(.status == "pass") | "No switch dropped a packet in a lossless queue: \(.measured | f::cell)."),
  (check($checks; "switch/pause-frames") | select(.measured | type == "string" and startswith("at most")) | "Pause frames: \(.measured | f::cell).");

def path($checks):
  [$checks[] | select(.id | startswith("path/proven/")) | .measured | numbers] | add
  | select(. != null)
  | "Both ends' devices counted the bytes of \(f::plural("flow")): they took the claimed path.";

def integrity($checks):
  check($checks; "integrity") | select(.status == "pass")
  | (.unit | capture("of (?<n>[0-9]+)").n | tonumber | f::whole) as $n
  | "No byte of \($n) that were checked was corrupted.";

def repeats($checks):
  [$checks[] | select((.id | startswith("repeatability/")) and (.measured | type) == "number")] | select(length > 0)
  | (max_by(.measured)) as $worst
  | "Repeats vary by \($worst.measured | f::figure) % at the most (\($worst.title | sub("^Repeats of test "; "") | sub(" agree$"; "") | f::cell))"
    + (if $worst.status == "pass" then ", which is steady." else ", which is **not steady**: above \($worst.limit.max | f::plain) %." end);

# $heads: of evolution_view. Only the first latency and the first bandwidth of RDMA's interface are told.
def evolution($heads):
  ($heads | map(select(.change != null)) | sort_by(.rdma | not)) as $heads
  | [ ($heads | map(select(.metric == "latency_us.p50")) | .[0] // empty), ($heads | map(select(.metric == "bandwidth.gbit_s")) | .[0] // empty) ]
  | select(length > 0)
  | "Since the first accepted run (\(.[0].first | f::cell)): "
    + (map("\(.figure | ascii_downcase) of \(.test | f::cell) \(.from) to \(.now)") | join("; ")) + ".";

# Input: what view_measured.jq made.
def all($verdict; $heads):
  [ throughput, slowest, latency, against_tcp($verdict.comparison), packets, switches($verdict.checks), path($verdict.checks),
    integrity($verdict.checks), repeats($verdict.checks), evolution($heads) ];
