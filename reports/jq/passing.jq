# One pass over the records, for the report and for other programs: each record that was measured becomes a short row of its
# figures; all else is folded into one flat state that does not grow with them (tally.jq says why it is flat).
import "anomaly_rows" as anomaly_rows;
import "interval_view" as interval_view;
import "ceiling" as ceiling;
import "figures" as figures;
import "comparison" as comparison;
import "counters" as counters;
import "transfer_rows" as transfer_rows;

def sep: "\t";

# ---- rows -----------------------------------------------------------------------------------------------------------

# Whole messages of the measured time.
def messages: .params.size_bytes as $size | if .bandwidth.bytes == null or ($size // 0) <= 0 then null else .bandwidth.bytes / $size | round end;

def about:
  { kind: (if transfer_rows::is_transfer then "transfer" else .kind end),
    definition, completion_level, completion: .params.completion, backend, provider, op, tool: .tool.name,
    version: .tool.version, bidirectional: .params.bidirectional, layer: .link.layer, mtu_bytes: .link.mtu_bytes,
    rate_gbit_s: .link.rate_gbit_s, histogram_unit: .histogram.unit, initial_rtt_us: .tcp.initial_rtt_us,
    window_bytes: .tcp.window_bytes, peak_definition: .bandwidth.peak_definition, connection, scope,
    asked: (.params | {queue_pairs, outstanding, iterations, duration_s, inline_bytes, memory, verify, traffic_class, sl, gid_index, gap_us}) }
  + if transfer_rows::is_transfer then {transfer: transfer_rows::about} else {} end;

# [place, client, server, definition, figures...], the figures in series.jq's order. A place is kind, test and size.
def row:
  (.params.size_bytes | tostring) as $size
  | if transfer_rows::is_transfer then transfer_rows::row
    elif .latency_us != null then
      [ "latency" + sep + .test + sep + $size, .client.host, .server.host, .definition ]
      + (.latency_us | [.count, .min, .mean, .stddev, .p50, .p90, .p95, .p99, .p99_9, .p99_99, .max])
    elif .bandwidth != null then
      [ "bandwidth" + sep + .test + sep + $size, .client.host, .server.host, .definition,
        (.bandwidth | .gbit_s, .min_interval_gbit_s, .peak_gbit_s, .messages_per_s), .cpu.client_s_per_gb, .cpu.server_s_per_gb,
        comparison::retransmissions, messages, ceiling::of_record ]
    else [.kind + sep + .test + sep + $size, .client.host, .server.host, .definition] end;

# The text of a histogram that may belong to the smallest size's distribution, "size<TAB>test<TAB>text"; which size that is, the
# plan says. Of sizes that come in rising order this is the first alone.
def histogram($least):
  select(.histogram != null and .kind == "latency" and .definition == "half_round_trip" and .backend != "null" and .histogram.encoding == "hdr-v2-zlib-base64")
  | select($least == null or .params.size_bytes <= $least)
  | (.params.size_bytes | tostring) + sep + .test + sep + .histogram.data;

# ---- the state ------------------------------------------------------------------------------------------------------
# Who changes it holds no other copy, or jq copies all of it for one update: nothing that could yield a second result (//, a
# list's elements, reduce) may be open around setpath. Brackets close it: [[...]] as $new.

# What a test is, and what figures of two runs must have in common (figures.jq): of its first record, as all of a test are asked
# alike. Made only then: it takes longer than all else.
def first_of_test($r):
  if has("about" + sep + $r.test) then .
  else setpath(["about" + sep + $r.test]; $r | about) | setpath(["terms" + sep + $r.test]; $r | figures::terms) end;

# What a flow said of its ends and their link: what ceilings are computed from.
def one_end($host; $device; $link):
  if $device == null then . else
    ("end" + sep + $host + sep + $device + $link) as $key | if has($key) then . else setpath([$key]; true) end end;
def ends($r):
  [$r.link | sep + (.layer // "-") + sep + (.rate_gbit_s // "-" | tostring) + sep + (.mtu_bytes // "-" | tostring)] as $link
  | one_end($r.client.host; $r.client.device; $link[0]) | one_end($r.server.host; $r.server.device; $link[0]);

def path($r):
  ("path" + sep + $r.test) as $key | .[$key] as $old | $r.path as $p
  | [[ $old[0] + 1, $old[1] + $p.claimed_bytes, $old[2] + $p.client_device_bytes, $old[3] + $p.server_device_bytes,
       ($old[4] // {} | setpath([$p.state]; .[$p.state] + 1)) ]] as $new
  | setpath([$key]; $new[0]);

# Where a flow's packets were counted by its RDMA devices: flows, sent, lost, sent again, and those that tell neither of the two.
def packets($r):
  ("packets" + sep + $r.test) as $key | .[$key] as $old | $r.packets as $p
  | [[ $old[0] + 1, $old[1] + $p.sent, $old[2] + ($p.lost // 0), $old[3] + ($p.retries // 0),
       $old[4] + (if $p.lost == null or $p.retries == null then 1 else 0 end) ]] as $new
  | setpath([$key]; $new[0]);

def added($key; $value): .[$key] as $old | [[$old[0] + $value, $old[1] + 1]] as $new | setpath([$key]; $new[0]);

# Counters that should have stood still. Which these are is asked once of all flows that have counters of the same names, as a
# pattern costs more than all else here.
def names: [.counters | .client, .server | if . == null then null else keys_unsorted, (.[] | objects | keys_unsorted) end] | tojson;
# [[role, device or null, name, the state's key behind the host, and behind the test]]
def troubles:
  [ ("client", "server") as $role | .counters[$role] // {} | . as $all | keys_unsorted[]
    | if $all[.] | type == "object" then . as $device | $all[.] | keys_unsorted[] | [$device, .] else [null, .] end
    | select(.[1] | counters::is_trouble)
    | [ $role, .[0], .[1], sep + (.[0] // "") + sep + .[1], sep + $role + sep + (if .[0] == null then "" else .[0] + " " end) + .[1] ] ];

def counts($r; $troubles; $i):
  if $i == ($troubles | length) then .
  else
    $troubles[$i] as $t
    | ($r.counters[$t[0]] | if $t[1] == null then .[$t[2]] else .[$t[1]][$t[2]] end) as $n
    | if $n == null or $n <= 0 then .
      else
        added("trouble" + sep + $r[$t[0]].host + $t[3]; $n)
        # the report's table of counters stands beside the paths
        | if $r.path == null then . else added("moved" + sep + $r.test + $t[4]; $n) end
      end
    | counts($r; $troubles; $i + 1)
  end;

# No more names are kept than this, lest counters that move by turns fill the memory.
def most_names: 1000;

def counted($r):
  ($r | names) as $names
  | .names[$names] as $troubles
  | if $troubles != null then counts($r; $troubles; 0)
    else
      [.names | if length < most_names then . else {} end | setpath([$names]; $r | troubles)] as $known
      | setpath(["names"]; $known[0]) | counted($r)
    end;

# Messages that an unreliable connection lost are of one size; no device counts them.
def lost($r):
  if $r.loss.lost_messages == null or $r.loss.lost_messages <= 0 then .
  else added("moved" + sep + $r.test + sep + "both ends" + sep + "lost messages of \($r.params.size_bytes) bytes"; $r.loss.lost_messages) end;

# First start, the last start with what it took, and the time in all, in whole microseconds, so that parts sum up to the same.
def time($r):
  ("time" + sep + $r.test) as $key | .[$key] as $old
  | [[ ([$old[0], $r.started] | map(values) | min), ([$old[1], [$r.started, $r.elapsed_s]] | max), $old[2] + ($r.elapsed_s * 1e6 | round) ]] as $new
  | setpath([$key]; $new[0]);

# What stands on every record of a flow, and counts once.
def flow($r):
  setpath(["flow"]; $r.flow)
  | if $r.path == null then . else path($r) end
  | if $r.packets == null then . else packets($r) end
  | if $r.counters == null then . else counted($r) end;

# Of all that have a key the one of the least rank stays.
def ranked($u): .[$u[0]] as $old | if $old == null or $u[2] < $old.rank then setpath([$u[0]]; $u[1] + {rank: $u[2]}) else . end;
def course($updates; $i): if $i == ($updates | length) then . else ranked($updates[$i]) | course($updates; $i + 1) end;
def odd($updates; $i): if $i == ($updates | length) then . else anomaly_rows::fold($updates[$i]) | odd($updates; $i + 1) end;

def least($r):
  if $r.kind != "latency" or $r.status != "ok" or (.least != null and .least <= $r.params.size_bytes) then .
  else setpath(["least"]; $r.params.size_bytes) end;

def record($r):
  [$r | anomaly_rows::updates] as $odd
  | [$r | interval_view::updates] as $course
  | if .flow == $r.flow then . else flow($r) end
  | ends($r) | lost($r) | least($r)
  | if $r.elapsed_s == null then . else time($r) end
  | if $r.status != "ok" then . else first_of_test($r) end
  | odd($odd; 0) | course($course; 0);

# Records -> rows and texts of histograms, and at the end the state. $after: the flow of which a part before this one had the
# last record, or null.
def of(records; $after):
  foreach (records, null) as $r ({flow: $after, names: {}};
    if $r == null then del(.flow, .names, .least) else record($r) end;
    if $r == null then . elif $r.status != "ok" then empty else .least as $least | $r | row, histogram($least) end);
