# iperf 2 (2.1.x, text of `-e -i 1`) -> the part of one record. The rate is the sender's, as its client prints it.
# Nothing is guessed: a line whose unit or shape is unknown is an error, for 5.09 may be GBytes or MBytes.
import "common" as c;
import "results" as result;

# iperf 2 counts bytes in powers of 1024 and bits in powers of 1000 (iperf 2.1.8, src/stdio.c: kKilo_to_Unit).
def bytes_of($number; $prefix):
  ($number | tonumber) * ({"": 1, "K": 1024, "M": 1048576, "G": 1073741824, "T": 1099511627776}[$prefix]);
def bits_of($number; $prefix; $unit):
  if $unit == "Bytes" then 8 * bytes_of($number; $prefix)
  else ($number | tonumber) * ({"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}[$prefix])
  end;

def report_line:
  "^\\[ *(?<id>[0-9]+|SUM)\\] +(?<start>[0-9]+\\.[0-9]+)- *(?<end>[0-9]+\\.[0-9]+) sec"
  + " +(?<amount>[0-9]+(\\.[0-9]+)?) (?<amount_prefix>[KMGT]?)Bytes"
  + " +(?<rate>[0-9]+(\\.[0-9]+)?) (?<rate_prefix>[KMGT]?)(?<rate_unit>bits|Bytes)/sec"
  + "( +[0-9]+/[0-9]+ +(?<retries>[0-9]+))?";

def rows($lines):
  any($lines[]; test("^\\[ ID\\].* Rtry ")) as $retries
  | [ $lines[] | select(test("^\\[ *([0-9]+|SUM)\\] +[0-9.]+- *[0-9.]+ +sec"))
    | . as $line
    | (capture(report_line) // error("its line " + ($line | tojson) + " has an unknown shape or unit"))
    | { id, start_s: (.start | tonumber | c::rounded), end_s: (.end | tonumber | c::rounded),
        bytes: bytes_of(.amount; .amount_prefix),
        gbit_s: (bits_of(.rate; .rate_prefix; .rate_unit) / 1e9),
        retries: (if .retries == null then null else .retries | tonumber | c::rounded end) }
    # under the heading of -e half a number would be another one; only a sum ends with it
    | if $retries and (.retries == null or (.id != "SUM" and ($line | test("/[0-9]+ +[0-9]+$")))) then
        error("its line \($line | tojson) has no end: truncated?")
      else . end ];

# The first figure that a header line holds, in bytes: "TCP window size: 16.0 KByte (default)".
def size_in($lines; $heading):
  first($lines[] | capture("^" + $heading + ": +(?<n>[0-9]+(\\.[0-9]+)?) (?<p>[KMG]?)Byte") | bytes_of(.n; .p) | floor)
  // null;

def initial_rtt($lines):
  [ $lines[] | capture("icwnd/mss/irtt=[0-9]+/[0-9]+/(?<us>[0-9]+)").us | tonumber ]
  | if length == 0 then null else add / length end;

def ends($lines):
  first($lines[] | capture("^\\[ *[0-9]+\\] local (?<client>[^ %]+)(%[^ ]+)? port [0-9]+ connected with (?<server>[^ ]+) port"))
  // {client: null, server: null};

# With -e iperf says how many; else each has told of its connection.
def streams($lines):
  first($lines[] | capture("\\((?<n>[0-9]+) flows?\\)").n | tonumber)
  // ([$lines[] | capture("^\\[ *(?<id>[0-9]+)\\] local ").id] | [unique | length, 1] | max);

def started($lines):
  (first($lines[] | capture(" on (?<d>[0-9-]+) (?<t>[0-9:]+)(\\.[0-9]+)? \\(UTC\\)") | .d + "T" + .t + "Z") // null);

# The total is the last line, from 0 to the end. Where output stops early, what stands last is an interval: the
# duration asked for (-t) tells a total from the first second.
def total($rows; $duration):
  ($rows | last) as $t
  | if $t == null then error("it holds no result line")
    elif $t.start_s != 0 then error("its last line is an interval, not the total: truncated?")
    elif $duration != null and $t.end_s < 0.9 * $duration then
      error("its last line ends at \($t.end_s) s of \($duration) s: truncated?")
    else $t
    end;

# The sum of all streams against each one's own total, which stands before it. Each is rounded, at worst by 0.5 %; retries are not.
def of_all_streams($rows):
  . as $sum
  | ($rows | map(select(.id != "SUM")) | group_by(.id) | map(.[-1])) as $ends
  | if $ends == [] then .
    elif any($ends[]; .start_s != 0) then error("stream \(first($ends[] | select(.start_s != 0).id)) ends with an interval, not with its total: truncated?")
    elif ($ends | map(.bytes) | add / $sum.bytes - 1 | fabs) > 0.02 then error("the sum of its streams is not that of its last line: truncated?")
    elif $sum.retries != null and ($ends | map(.retries) | add) != $sum.retries then error("the retries of its streams are not those of its last line: truncated?")
    else . end;

# Both columns are rounded to three digits, at worst 0.5 % each; a misread prefix would be off by 2.4 % and more.
def consistent:
  (.bytes * 8 / .end_s / 1e9) as $expected
  | if .gbit_s > 0 and (($expected / .gbit_s) - 1 | fabs) > 0.02 then
      error("transfer and bandwidth disagree (\($expected | c::rounded) against \(.gbit_s | c::rounded) Gb/s)")
    elif .gbit_s > result::impossible_gbit_s then error("bandwidth of \(.gbit_s) Gb/s is impossible")
    else .
    end;

# Three digits are printed, which may be off by 0.5 %.
def claims: {sent: (. * 0.995), received: 0, most_sent: (. * 1.005)};

# Behind the total there are at most summaries of its own ("[ CT] final connect times").
def ended($lines):
  ([range(0; $lines | length) | select($lines[.] | test("bits/sec|Bytes/sec"))] | last // 0) as $at
  | ([$lines[$at:][] | select(test("^\\s*$|^\\[") | not)] | .[0]) as $rest
  | if $rest == null then . else error("it ends with \($rest | tojson)") end;

def params($lines; $argv):
  { size_bytes: size_in($lines; "Write buffer size"), iterations: null,
    duration_s: ($argv | c::option_value(["-t", "--time"]) | if . == null then null else c::attempt(tonumber; null) end),
    warmup: null, gap_us: null, queue_pairs: streams($lines), outstanding: null, batch: null, threads: streams($lines),
    devices: null, inline_bytes: null, bidirectional: false, completion: "event", memory: "host", verify: false,
    clock: null, rate: ($argv | c::option_value(["-b", "--bandwidth"]) | if . == null then null else {asked: null, unit: .} end) };

def measured($lines; $argv):
  params($lines; $argv) as $params
  | rows($lines) as $all
  | ($all | map(select(if $params.queue_pairs > 1 then .id == "SUM" else .id != "SUM" end))) as $rows
  | (total($rows; $params.duration_s) | consistent | (if $params.queue_pairs > 1 then of_all_streams($all) else . end) | ended($lines)) as $total
  | ($rows[:-1] | map({start_s, end_s, count: null, gbit_s: (.gbit_s | result::natural("intervals.gbit_s")), latency_us: null})) as $intervals
  | ($intervals | result::interval_summary) as $s
  | ends($lines) as $ends
  | { client: {address: $ends.client}, server: {address: $ends.server}, params: $params, started: started($lines),
      elapsed_s: ($total.end_s | result::positive("elapsed_s")),
      bandwidth: { gbit_s: ($total.gbit_s | result::positive("bandwidth")), peak_gbit_s: $s.peak_gbit_s,
                   peak_definition: $s.peak_definition, min_interval_gbit_s: $s.min_interval_gbit_s,
                   messages_per_s: null, bytes: ($total.bytes | floor | result::positive("transfer")) },
      intervals: $intervals,
      tcp: { retransmissions: $total.retries, initial_rtt_us: (initial_rtt($lines) | result::positive_or_null("irtt")),
             window_bytes: size_in($lines; "TCP window size") },
      claims: ($total.bytes | claims), status: "ok", error: null };

# iperf 2 exits 0 where it could not connect, and says so on standard error.
def why_nothing($stderr): c::tail_text($stderr; 1) | if . == "" then "" else " (" + . + ")" end;

def parts($lines; $stderr; $argv; $version):
  { tool: {name: "iperf", version: $version}, kind: "bandwidth", definition: "sender_payload", connection: "stream" } as $base
  | (any($lines[]; test("bits/sec|Bytes/sec"))) as $traffic
  | (c::tail_text($stderr; 1) | test("failed|refused|reset|timed out|unreachable"; "i")) as $peer
  | if all($lines[]; test("^\\s*$")) then
      [$base + {status: "error", error: {code: (if $peer then 4 else 6 end), traffic: false,
               message: ("iperf's output is empty" + why_nothing($stderr))}}]
    else
      [c::attempt($base + measured($lines; $argv);
                  $base + {status: "error", error: {code: (if $peer then 4 else 6 end), traffic: $traffic,
                           message: ("iperf's output cannot be used: " + . + why_nothing($stderr))}})]
    end;
