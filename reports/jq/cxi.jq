# The eight cxi tools (cxi_send_lat, _write_, _read_, _atomic_, and the same with _bw), text -> parts of records, one
# for each row of their tables. How they measure: HewlettPackard/shs-libcxi, man/cxi_*.1.md and utils/utils_common.c.
import "common" as c;
import "cxi_text" as text;
import "results" as result;

# ---- figures ----------------------------------------------------------------------------------------------------

# Payload of a packet (PORTALS_MTU).
def packet_bytes: 2048;

# Two of its columns come from one division: a misread unit, or a row of another table, shows here.
def consistent($gbit):
  (.rate * $gbit) as $gbit_s
  | (if .packets != null then .packets / (.size / packet_bytes | ceil) else .messages end) as $rate
  | if $rate == null then .
    else
      ($rate * .size * 0.008) as $other
      | (0.005 * $gbit + 5e-7 * .size * 0.008 + 1e-4 * $gbit_s) as $rounding
      | if ($gbit_s - $other | fabs) > $rounding then
          error("bandwidth and rate disagree (\($gbit_s | c::rounded) against \($other | c::rounded) Gb/s)")
        else .messages_per_s = $rate * 1e6 end
    end;

# Within the two decimals of what it calls the least and the most.
def quantile($sorted; $name; $least; $most):
  ($sorted | length) as $n
  | c::quantile_of[$name] as $q
  | if $n == 0 or (c::supports($n; $q) | not) then null
    else [[$sorted[[($q * $n | ceil) - 1, 0] | max], $most] | min, $least] | max | result::positive($name) end;

# Two decimals of a truncated figure.
def truncated: 0.011;

# The single measurements under one table, sorted, where they are those that it sums up. HPE's page of cxi_write_lat
# shows 5 % between them (an older print lost a zero: 2.007 became 2.07); what is further apart belongs to another run.
def samples_of($row; $samples):
  if $samples == null then []
  elif ($samples | length) != $row.count then error("it lists \($samples | length) measurements of \($row.count)")
  elif any($samples[]; . <= 0) then error("a measurement is 0")
  else ($samples | sort) as $sorted
    | [[$sorted[0], $row.min], [$sorted[-1], $row.max], [($sorted | add / length), $row.mean]]
    | (map(.[0] / .[1] - 1 | fabs) | max) as $apart
    | if $apart > 0.1 then
        error("its single measurements and its summary are \($apart * 100 | c::rounded) % apart")
      elif any(.[]; (.[0] - .[1] | fabs) > truncated) then []
      else $sorted end
  end;

# It takes the mean as whole nanoseconds before it squares it, which adds the root of twice the mean at most.
def stddev_bound: (.max - .min) / 2 + (2 * .mean / 1000 | sqrt) + truncated;

def latency($samples):
  . as $row
  | (.count | result::positive("the count")) as $count
  | (.min | result::positive("Min")) as $min
  | (.max | result::positive("Max")) as $max
  | (.mean | result::positive("Mean")) as $mean
  | (.stddev | result::natural("StdDev")) as $stddev
  | if $min > $mean + truncated or $mean > $max + truncated then
      error("Min, Mean and Max are \($min), \($mean) and \($max), out of order")
    elif $stddev > stddev_bound then error("StdDev is \($stddev), which Min and Max do not allow")
    else samples_of($row; $samples) as $sorted
      | {$count, $min, $max, $mean, $stddev}
        + (["p50", "p90", "p95", "p99", "p99_9", "p99_99"]
           | map({key: ., value: quantile($sorted; .; $min; $max)}) | from_entries)
    end;

# Halved: the round trip of a send and its echo. The others end when the last byte was written where it belongs.
def round_trips($run): if $run.op == "send" then 2 else 1 end;

def with_latency($run; $samples):
  latency($samples) as $l
  | (round_trips($run) * $l.count * $l.mean / 1e6) as $busy
  | if $run.duration != null and $busy > 1.05 * $run.duration then
      error("\($l.count) measurements of \($l.mean) us take longer than \($run.duration) s")
    else {latency_us: $l, bandwidth: null, elapsed_s: $run.duration} end;

# Both ways at once: the rate is the sum of both, the count that of this end; by duration the other end has its own.
def bytes_moved($run; $gbit_s):
  (.count * .size) as $own
  | if $run.both | not then $own
    elif $run.duration == null then 2 * $own
    else [$gbit_s * $run.duration / 8 * 1e9, $own] | max | floor end;

def with_bandwidth($run):
  (first($run.columns[] | .gbit | select(. != null))) as $gbit
  | .count |= result::positive("the count")
  | consistent($gbit)
  | (.rate * $gbit | result::positive("BW")) as $gbit_s
  | if $gbit_s > result::impossible_gbit_s then error("bandwidth of \($gbit_s) Gb/s is impossible") else . end
  | bytes_moved($run; $gbit_s) as $bytes
  | ($bytes * 8 / $gbit_s / 1e9) as $elapsed
  | if $run.duration != null and ($elapsed < 0.9 * $run.duration or $elapsed > 1.5 * $run.duration + 1) then
      error("\($bytes) bytes at \($gbit_s) Gb/s are not \($run.duration) s")
    else . end
  | { latency_us: null, elapsed_s: ($elapsed | result::positive("elapsed time")),
      bandwidth: { gbit_s: $gbit_s, peak_gbit_s: null, peak_definition: null, min_interval_gbit_s: null,
                   messages_per_s: (.messages_per_s | if . == null then null else c::rounded end),
                   bytes: ($bytes | result::positive("bytes")) } };

# Payload on the wire, from the client (sent) and to it (received). A latency's warm-up is beside its count; what the
# other end moved by duration is known from the rate, within 2 % (the clocks of two ends; site policy).
def claims($run; $bytes):
  ((.count + (if $run.kind == "latency" then $run.warmup // 0 else 0 end)) * .size) as $own
  | (if $run.both then [$bytes - $own, 0] | max else 0 end) as $theirs
  | (if $run.both and $run.duration != null then 1.02 else 1 end) as $slack
  # an echo, or what was there before
  | (if ($run.kind == "latency" and $run.op == "send") or $run.fetching then $own else 0 end) as $answer
  | (if $run.op == "read" then {sent: $theirs, received: $own}
     elif $run.fetching then {sent: ($own + $theirs), received: ($own + $theirs)}
     else {sent: $own, received: ($answer + $theirs)} end)
  | { sent: (.sent / $slack | floor), received: (.received / $slack | floor),
      most_sent: (.sent * $slack | ceil), most_received: (.received * $slack | ceil) };

# ---- one run ----------------------------------------------------------------------------------------------------

# What the text says of its run: {op, kind, both, sizes, iterations, duration, warmup, ...}.
def run_of($lines; $at; $about):
  ($lines[$at] | text::titled // error("\(text::at($lines; $at)) is no test of the eight tools")) as $t
  | text::atomic($about) as $atomic
  | $about["Test Type"] as $type
  | if $type != "Iteration" and $type != "Duration" then error("its test type is \($type | tojson)") else . end
  | def number($name): text::number_said($about; $name);
    { op: $t.op, kind: $t.kind, $atomic, fetching: ($atomic.fetching == true),
      both: (text::switch_said($about; "Bidirectional") == true), sizes: text::sizes($about; $t.op),
      iterations: number("Iterations"), duration: number("Duration"), warmup: number("Warmup Iters"),
      gap: number("Inter-Iter Gap"), list: number("List Size") }
  | if ($type == "Duration" and .duration == null) or ($type == "Iteration" and .iterations == null) then
      error("its summary does not say how long it ran") else . end;

# As the engine names them (docs/options.md): what compares, what answers, what does neither.
def record_op($run):
  if $run.op != "atomic" then $run.op
  elif $run.atomic.op == "cswap" then "compare-atomic"
  elif $run.fetching then "fetch-atomic"
  else "atomic-op" end;

# Its SWAP is libfabric's atomic write, and CSWAP EQ its plain compare and swap.
def atomic_word:
  if .op == "swap" then "write"
  elif .op == "cswap" and .compare != "eq" then "cswap-" + (.compare // "eq")
  else .op end;

def params($run; $about; $size):
  def switched($name): text::switch_said($about; $name);
  ($run.kind == "latency") as $latency
  | text::memory($about; "Client"; "TX") as $tx
  | { size_bytes: $size, iterations: $run.iterations, duration_s: $run.duration, warmup: $run.warmup,
      gap_us: $run.gap, queue_pairs: 1, outstanding: (if $latency then 1 else $run.list end),
      batch: (if $latency then null else $run.list end), threads: 1, devices: 1, inline_bytes: null,
      bidirectional: $run.both, completion: "busy", memory: $tx, verify: false, clock: null, rate: null,
      svc_id: text::service($about), vni: text::nic($about; "Local (client)").vni,
      idc: switched("IDC"), ll: switched("LL Cmd Launch"), rdzv: switched("Rendezvous PUTs"), hrp: switched("HRP"),
      unrestricted: (switched("Restricted") | if . == null then null else not end),
      keys: (switched("Matching LEs") | if . == null then null elif . then "matching" else "client" end),
      atomic_op: ($run.atomic | atomic_word), fetching: $run.atomic.fetching,
      atomic_type: ($about["Atomic Type"] | if . == null then null else ascii_downcase | gsub("_"; "-") end),
      tx_memory: $tx, rx_memory: text::memory($about; "Server"; "RX") };

# What was asked for and what came: each iteration of a bandwidth test is a whole list.
def as_asked($run):
  ( select($run.duration == null)
    | ($run.iterations * (if $run.kind == "bandwidth" then $run.list // 1 else 1 end)) as $asked
    | select(.count != $asked) | "it measured \(.count) messages of \($asked)" );

def definition($run):
  if $run.kind == "bandwidth" then "initiator_completion"
  elif $run.op == "send" then "half_round_trip"
  else "completion" end;

def measured($run; $about; $row; $server_argv):
  ($row.text | text::row($row.columns)) as $figures
  | ($figures.size | result::positive("the size")) as $size
  | (first($figures | as_asked($run)) // null) as $unlike
  | if $unlike != null then error($unlike)
    elif any($run.sizes[]; . == $size) | not then error("\($size) bytes are not among the sizes of its summary")
    else $figures end
  | (if $run.kind == "latency" then with_latency($run; $row.samples)
     else with_bandwidth($run + {columns: $row.columns}) end) as $out
  | { op: record_op($run), kind: $run.kind, definition: definition($run), connection: "RDM", link: {layer: "slingshot"},
      client: {device: $about.Device, address: text::nic($about; "Local (client)").address},
      server: {device: ($server_argv | c::option_value(["-d", "--device"])),
               address: text::nic($about; "Remote (server)").address},
      params: params($run; $about; $size), claims: ($figures | claims($run; $out.bandwidth.bytes // 0)),
      status: "ok", error: null }
    + $out;

# ---- all of it --------------------------------------------------------------------------------------------------

def unusable($why; $stderr; $traffic):
  (c::tail_text($stderr; 2) | if . == "" then "" else ": " + .[0:300] end) as $words
  | { params: null, status: "error",
      error: {code: 6, message: ("the cxi tool's output cannot be used: " + $why + $words), traffic: $traffic} };

def rows($lines; $stderr; $server_argv):
  (text::title_at($lines) // error("it does not say which test it is")) as $title
  | text::summary($lines; $title) as $summary
  | run_of($lines; $title; $summary.about) as $run
  | text::tables($lines; $summary.next; $run.kind) as $tables
  | ($tables.rows | length) as $n
  | ($run.sizes | length) as $planned
  | if $n == 0 then error("it has no table of results: truncated?") else . end
  | [ $tables.rows[] as $row
      | c::attempt(measured($run; $summary.about; $row; $server_argv);
                   unusable("\(text::at($lines; $row.i)): \(.)"; $stderr; true)) ]
  | if $n != $planned then . + [unusable("its table has \($n) rows for \($planned) sizes: truncated?"; $stderr; true)]
    elif $tables.closed | not then .[:-1] + [unusable("its table has no end: truncated?"; $stderr; true)]
    elif (map(.params.size_bytes | select(. != null)) | length > (unique | length)) then
      .[:-1] + [unusable("its table has a size twice"; $stderr; true)]
    else . end;

# Perch under one of these names says so on standard error, and whether the provider below it was a simulation.
def simulated($stderr): any($stderr[]; test("\\bsimulated\\b"));

# The version that a host's -V tells is then that of the page which Perch prints after, and no tool's.
def is_perch($stderr): any($stderr[]; test("\\bis perch in the place of\\b"));

def parts($lines; $stderr; $flow; $version):
  { tool: (if is_perch($stderr) then {name: "perch-personality", version: null}
           else {name: "cxi", version: $version} end),
    simulated: simulated($stderr) } as $base
  | (if all($lines[]; text::is_blank) then [unusable("it is empty"; $stderr; false)]
     else c::attempt(rows($lines; $stderr; $flow.server_argv // []);
                     [unusable(.; $stderr; any($lines[]; text::is_header))]) end)
  | map($base + .);
