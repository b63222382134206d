# The engine's JSON lines -> parts of records. The lines already carry the record's key names and units.
import "common" as c;
import "claims" as claim;
import "transfer" as transfer;
import "transfer_line" as line;
import "results" as result;

def percentiles: ["p50", "p90", "p95", "p99", "p99_9", "p99_99"];

# A percentile under the minimum, or p99 under p50, means that the line is damaged or the engine is wrong.
def in_order:
  . as $l
  | [$l.min, $l[percentiles[]], $l.max] | map(select(. != null))
  | if . == sort then $l else error("latency_us has its percentiles out of order") end;

# A hundredth of a tenth is granted: the mean is that of a histogram's buckets. Half of all lie at or above the median, and none
# below the least.
def plausible:
  . as $l
  | if .count != (.count | floor) then error("latency_us.count is no whole number")
    elif .mean < .min * 0.999 or .mean > .max * 1.001 then error("latency_us.mean lies outside of min and max")
    elif .p50 != null and .mean < (.min + .p50) / 2 * 0.999 then error("latency_us.mean is below what min and p50 allow")
    else
      ([percentiles[] | select($l[.] != null and (c::supports($l.count; c::quantile_of[.]) | not))] | .[0]) as $thin
      | if $thin == null then . else error("latency_us.\($thin) of \(.count) samples has not ten above it") end
    end;

def latency:
  if . == null then null
  else
    { count: (.count | result::positive("latency_us.count")),
      min: (.min | result::positive("latency_us.min")),
      max: (.max | result::positive("latency_us.max")),
      mean: (.mean | result::positive("latency_us.mean")),
      stddev: (.stddev | result::natural("latency_us.stddev")),
      p50: (.p50 | result::positive_or_null("latency_us.p50")),
      p90: (.p90 | result::positive_or_null("latency_us.p90")),
      p95: (.p95 | result::positive_or_null("latency_us.p95")),
      p99: (.p99 | result::positive_or_null("latency_us.p99")),
      p99_9: (.p99_9 | result::positive_or_null("latency_us.p99_9")),
      p99_99: (.p99_99 | result::positive_or_null("latency_us.p99_99")) }
    | in_order | plausible
  end;

def bandwidth:
  if . == null then null
  else
    { gbit_s: (.gbit_s | result::positive("bandwidth.gbit_s")),
      peak_gbit_s: (.peak_gbit_s | result::positive_or_null("bandwidth.peak_gbit_s")),
      peak_definition: (.peak_definition | c::text_or_null),
      min_interval_gbit_s: (.min_interval_gbit_s | result::natural_or_null("bandwidth.min_interval_gbit_s")),
      messages_per_s: (.messages_per_s | result::positive_or_null("bandwidth.messages_per_s")),
      bytes: (.bytes | result::positive("bandwidth.bytes")) }
  end;

# A second in which nothing arrived is a finding, so an interval's rate may be zero and its latency absent.
def intervals:
  [ (. // [])[] | { start_s: (.start_s | result::natural("intervals.start_s")),
             end_s: (.end_s | result::positive("intervals.end_s")),
             count: (.count | result::natural_or_null("intervals.count")),
             gbit_s: (.gbit_s | result::natural_or_null("intervals.gbit_s")),
             latency_us: (if .latency_us == null or .latency_us.count == 0 then null else .latency_us | latency end) } ];

def histogram:
  if type == "object" and (.data | type) == "string" then {encoding, unit, data} else null end;

def cpu:
  if . == null then null
  else
    { client_s: (.client_s | result::natural_or_null("cpu.client_s")),
      server_s: (.server_s | result::natural_or_null("cpu.server_s")),
      client_system_s: (.client_system_s | result::natural_or_null("cpu.client_system_s")),
      server_system_s: (.server_system_s | result::natural_or_null("cpu.server_system_s")),
      client_s_per_gb: (.client_s_per_gb | result::natural_or_null("cpu.client_s_per_gb")),
      server_s_per_gb: (.server_s_per_gb | result::natural_or_null("cpu.server_s_per_gb")) }
  end;

# Where the first bad byte lay: told for a reader, and judged by nobody.
def first_bad:
  { found_by: (if .found_by == "server" then "server" else "client" end),
    message: (.message | result::natural("integrity.first_bad.message")),
    offset: (.offset | result::natural("integrity.first_bad.offset")),
    at: (.at | strings // null), expected: (.expected | strings // null), found: (.found | strings // null) }
  + (if (.start_s | type) == "number" then {start_s} else {} end);

def integrity:
  if . == null then null
  else { checked_bytes: (.checked_bytes | result::natural("integrity.checked_bytes")),
         bad_bytes: (.bad_bytes | result::natural("integrity.bad_bytes")) }
       + (if (.first_bad | type) == "object" then {first_bad: (.first_bad | first_bad)} else {} end)
  end;

def tcp:
  if . == null then null
  else { retransmissions: (.retransmissions | result::natural_or_null("tcp.retransmissions")),
         initial_rtt_us: (.initial_rtt_us | result::positive_or_null("tcp.initial_rtt_us")),
         window_bytes: (.window_bytes | result::positive_or_null("tcp.window_bytes")) }
  end;

# What an unreliable connection lost; null on a reliable one.
def loss:
  if type != "object" then null
  else { sent_messages: (.sent_messages | result::natural("loss.sent_messages")),
         lost_messages: (.lost_messages | result::natural_or_null("loss.lost_messages")) } end;

# The longest time in which nothing came to its end; null where a pause was asked for, and where nobody looked: that of a
# transfer has no date.
def stall($dated):
  if type != "object" or ($dated and .began == null) then null
  else { longest_s: (.longest_s | result::natural("stall.longest_s")), start_s: (.start_s | result::natural("stall.start_s")),
         began: (.began | c::text_or_null) } end;

# Payload that this size put on the wire, and what of it was lost, warm-up included, for the path proof.
def claims:
  if type != "object" then null
  else { sent: (.client_sent_bytes | result::natural("path.client_sent_bytes")),
         received: (.client_received_bytes | result::natural("path.client_received_bytes")),
         lost: (.lost_bytes | result::natural_or_null("path.lost_bytes")) } end;

# What the line says about itself, whether or not the measurement came out well.
def heading:
  { tool: {name: "perch", version: (.tool.version | c::text_or_null)},
    backend: (.backend | c::text_or_null), provider: (.provider | c::text_or_null),
    op: (.op | c::text_or_null), kind: (.kind | c::text_or_null),
    definition: (.definition | c::text_or_null), completion_level: (.completion_level | c::text_or_null),
    connection: (.connection | c::text_or_null), simulated: (.simulated == true), environment: .environment,
    client: .client, server: .server, link: .link, params: .params, started: (.started | c::text_or_null) }
  + if .soak | type == "object" then {soak} else {} end;

def figures:
  { elapsed_s: (.elapsed_s | result::positive("elapsed_s")),
    latency_us: (.latency_us | latency), bandwidth: (.bandwidth | bandwidth),
    intervals: (.intervals | intervals), histogram: (.histogram | histogram), cpu: (.cpu | cpu),
    integrity: (.integrity | integrity), tcp: (.tcp | tcp), loss: (.loss | loss), stall: (transfer::is_transfer as $dated | .stall | stall($dated)),
    claims: (.path | claims), transfer: (.transfer | line::stated) };

# Messages come one after another: their times cannot sum up to more than passed. A paced message counts from when it
# was due, so that paced sums may.
def within_elapsed:
  if .latency_us == null or .params.rate != null or transfer::is_transfer then .
  else
    (.latency_us.count * .latency_us.mean * (if .definition == "half_round_trip" then 2 else 1 end) / 1e6) as $sum
    | if $sum > 1.05 * .elapsed_s + 1e-5 then error("latencies sum up to \($sum | c::rounded) s of \(.elapsed_s) s") else . end
  end;

# Messages a second are another way to the same rate: whoever scales one of them up meets the other.
def consistent:
  .bandwidth.messages_per_s as $rate
  | if .bandwidth == null or $rate == null or (.params.size_bytes | c::is_finite | not) then .
    elif ($rate * .params.size_bytes * 8e-9 / .bandwidth.gbit_s - 1 | fabs) > 0.01 then
      error("\($rate) messages a second of \(.params.size_bytes) bytes are not the \(.bandwidth.gbit_s) Gb/s that it says")
    else . end;

# The null backend moves nothing, and its rate has no bound.
def possible:
  within_elapsed
  | if .bandwidth == null or .backend == "null" or transfer::is_transfer then .
    else .elapsed_s as $s | .bandwidth |= result::possible_rate($s; 0.01) | consistent end
  | claim::needed as $needed
  | if .backend != "null" and .claims != null and .claims.sent + .claims.received < $needed then
      error("its path claims \(.claims.sent + .claims.received) bytes, but its figures need \($needed)")
    elif .params.rate.overloaded == true then error("the pace that was asked for could not be kept")
    elif .params.verify == true and (.integrity.checked_bytes // 0) == 0 then error("--verify checked no byte")
    else line::possible end;

def complete:
  if .kind == "latency" and .latency_us == null then error("a latency line without latency_us")
  elif .kind == "bandwidth" and .bandwidth == null then error("a bandwidth line without bandwidth")
  else .
  end;

# An engine that reports an error may still have counted the bytes it checked, and the transfers that were completed:
# exit 5 is shown with them, and a peer that was lost.
def failed:
  heading + { integrity: c::attempt(.integrity | integrity; null),
              transfer: c::attempt(.transfer | line::stated; null),
              status: "error",
              error: { code: (.error.code | if c::is_finite then . else 6 end),
                       message: (.error.message | c::text_or_null // "perch gave no reason"),
                       traffic: (.error.traffic == true) } };

def judged:
  if .integrity != null and .integrity.bad_bytes > 0 then
    . + {status: "error", error: {code: 5, traffic: true,
         message: "\(.integrity.bad_bytes) of \(.integrity.checked_bytes) bytes arrived corrupted"}}
  else . + {status: "ok", error: null}
  end;

def with_missed_limit($error):
  if .status == "ok" and $error.code == 1 then .error = {code: 1, message: $error.message, traffic: true} else . end;

def damaged($why): {status: "error", error: {code: 6, message: $why, traffic: true}};

# Exit 1 is a measurement with all its figures: only a limit given on the command line was missed.
def part:
  if .status == "error" and .error.code != 1 then failed
  elif .status != "ok" and .status != "error" then heading + damaged("perch's line has the status \(.status | c::shown)")
  elif .status == "ok" and .error != null and .error.code != 1 then
    heading + damaged("perch's line says ok and has the error \(.error | tojson | .[0:100])")
  else
    . as $line
    | c::attempt((heading + figures) | complete | possible | judged | with_missed_limit($line.error);
                 . as $why | $line | heading + damaged("perch's line cannot be used: " + $why))
  end;

# Progress and single samples stay in raw/; a record is made of each finished size.
def parts($lines):
  [ range(0; $lines | length) as $i
    | $lines[$i] | select(. != "")
    | c::parsed
    | if type != "object" then {params: null} + damaged("line \($i + 1) of its output is not JSON: truncated?")
      elif .kind == "interval" or .kind == "sample" then empty
      elif .schema != "perch.record/1" then {params: null} + damaged("line \($i + 1) of its output has schema \(.schema | c::shown)")
      else part
      end ];
