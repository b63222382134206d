# One line of a soak's file -> what judging needs of it: {k: kind, n: its number, s, e: seconds since the flow began, ...}. What is no line,
# or none that could have been measured, is {k: "damaged", n, why}.
import "common" as c;

# "2026-11-22T18:36:27.238Z", or without a fraction -> seconds since 1970; jq 1.6 reads no fraction.
def moment: c::attempt((.[:19] + "Z" | fromdateiso8601) + (.[20:-1] | if . == "" then 0 else tonumber / 1000 end); null);

# Seconds since 1970 -> RFC 3339 with milliseconds; jq 1.6 writes no fraction.
def dated: if . == null then null else ((. * 1000 | round) / 1000) as $t | ($t | floor) as $s | ($s | todate | .[:-1]) + "." + (($t - $s) * 1000 | round | tostring | "000"[:3 - length] + .) + "Z" end;

def natural: c::is_finite and . >= 0;
def near($other; $share): . == $other or (type == "number" and ($other | type) == "number" and ($other | fabs) > 0 and (. / $other - 1 | fabs) <= $share);

# Windows of 0.1 s follow each other from the interval's beginning: what is left of one at the end, and the time in which the ends agree on what arrived,
# is in the mean alone. That takes a round trip, on a busy host a second; where it takes longer, the interval has a stall that says so.
# Input: the bandwidth.
def outside_of_windows($elapsed_s):
  ((.min_interval_gbit_s // 0) as $least | $least > 0 and .gbit_s < $least * 0.99 and $elapsed_s * (1 - .gbit_s / $least) > 1)
  or (.peak_gbit_s // infinite) < .gbit_s * (0.99 - 0.1 / $elapsed_s);

# Two ends need a few round trips between two intervals, and a sleeping one until its next paced message. What is longer than a fiftieth
# of an interval is missing. site policy.
def slack($interval): [0.25, 0.02 * $interval] | max;

# Seconds that walls of hosts may differ by: far more than where a time server keeps them, as RFC 5905 steps one at 128 ms.
def apart_most: 60;

# The exit code of corrupted bytes (docs/definitions.md).
def corrupted: 5;

# Why an interval's figures cannot be; empty where they can. Rates and sums are rounded to nine digits, times of intervals to microseconds:
# a hundredth is granted, as to the records of runs.
def implausible:
  (.end_s - .start_s) as $long
  | if (.elapsed_s | c::is_finite and . > 0 | not) or (.messages | natural | not) or (.bytes | natural | not) then "it lacks figures"
  elif .status == "ok" and .messages > 0 and .bandwidth == null and .latency_us == null then "it lacks figures"
  elif .bandwidth != null and .latency_us != null then "it has figures of two kinds"
  elif .status == "ok" and .error != null and .error.code != corrupted then "its status is ok, and it has an error"
  # what is lost in silence is waited for, which is not measured
  elif .loss == null and .elapsed_s < $long - slack($long) then "it measured \(.elapsed_s) s of \($long) s"
  elif .elapsed_s > (.end_s - .start_s) * 1.01 + 0.01 then "it lasted \(.elapsed_s) s within \(.end_s - .start_s) s"
  elif .bandwidth != null then
    .bandwidth as $b
    | if ($b.gbit_s | natural | not) then "it lacks figures"
      elif $b.bytes != null and $b.bytes != .bytes then "it says both \($b.bytes) and \(.bytes) bytes"
      elif .bytes * 8e-9 / .elapsed_s | near($b.gbit_s; 0.01) | not then "\(.bytes) bytes are not the \($b.gbit_s) Gb/s that it says"
      # one whose connection was lost has what it waited for in vain in its mean alone
      elif .status != "error" and (.elapsed_s as $s | $b | outside_of_windows($s)) then "its mean lies outside of its lowest and its highest window"
      else empty end
  elif .latency_us != null then
    .latency_us as $l
    | ([$l.min, $l.p50, $l.p90, $l.p95, $l.p99, $l.p99_9, $l.p99_99, $l.max] | map(select(. != null))) as $order
    | if $l.count > .messages then "\($l.count) samples of \(.messages) messages"
      elif all($order[]; natural) | not then "it lacks figures"
      elif $order != ($order | sort) then "its percentiles are out of order"
      # the engine writes each that ten samples lie above, and no other
      elif any(c::quantile_of | to_entries[]; c::supports($l.count; .value) != ($l[.key] != null)) then "its percentiles are not those that \($l.count) samples bear"
      else empty end
  else empty end;

# Percentiles in their order, null where there are none; the whole has all of them in its lines.
def percentiles: ["p50", "p90", "p95", "p99", "p99_9", "p99_99"];
def tail: if . == null then . else [.[percentiles[]]] end;

def interval:
  [implausible] as $why
  | if $why != [] then {k: "damaged", why: $why[0]}
    else
      { k: "interval", ok: (.status == "ok"), code: .error.code, c: .connection_number, el: .elapsed_s, lossy: (.loss != null), m: .messages, b: .bytes,
        g: .bandwidth.gbit_s, low: .bandwidth.min_interval_gbit_s, peak: .bandwidth.peak_gbit_s,
        p50: .latency_us.p50, p99: .latency_us.p99, max: .latency_us.max, samples: .latency_us.count, tail: (.latency_us | tail),
        bad: .integrity.bad_bytes, checked: .integrity.checked_bytes, first_bad: .integrity.first_bad,
        stalls: (.stalls.count // 0), stall_s: (.stalls.total_s // 0), claimed: (.path.claimed_bytes // null) }
    end;

# Types of what is calculated with; what a digest does not have is null.
def is_typed:
  def number: . == null or c::is_finite;
  def numbers(f): all(f; number);
  if .k == "interval" then numbers(.code, .c, .el, .m, .b, .g, .low, .peak, .p50, .p99, .max, .samples, .bad, .checked, .stalls, .stall_s, .claimed) and all(.tail // [] | .[]; number)
    and ([.bad, .checked, .stalls, .stall_s, .samples] | all(. == null or . >= 0)) and (.c | natural)
  elif .k == "gap" then .attempts | number
  elif .k == "stall" then .m | number
  elif .k == "connection" then (.c | natural) and (.uptime | number)
  elif .k == "soak" then
    numbers(.started_ms, .duration_s, .interval_s, .stall_s, .reconnect_s)
    and (.job | type == "object" and numbers(.rate, .outstanding, .gap_ns) and (.sizes == null or (.sizes | type == "array" and all(.[]; natural))))
  elif .k == "whole" then
    numbers(.code, .bytes, .count, .max, .g, .low, .el, .bad) and all(.tail // [] | .[]; number)
    and (.soak | type == "object" and all(.intervals, .connections, .gaps, .gap_s, .stalls, .stall_s, .passed_s, .dropped_lines; natural))
  else true end;

def shortened($run):
  if type != "object" then {k: "damaged", why: "no line of JSON"}
    elif .schema != "perch.record/1" then {k: "damaged", why: "its schema is \(.schema | tojson | .[:40])"}
    elif has("run") and .run != $run then {k: "damaged", why: "it is of run \(.run | tojson | .[:80])"}
    elif .kind == "interval" or .kind == "gap" or .kind == "stall" then
      if (.start_s | natural | not) or (.end_s | natural | not) or .end_s < .start_s then {k: "damaged", why: "it ends before it begins"}
      else
        (if .kind == "interval" then interval
         elif .kind == "gap" then {k: "gap", reason: (.reason | tostring | .[:200]), attempts}
         else {k: "stall", m: .messages} end)
        + {s: .start_s, e: .end_s, w: (.started | moment), v: (.ended | moment)}
      end
    elif .kind == "connection" then {k: "connection", s: .start_s, w: (.started | moment), c: .connection_number, client: .client, server: .server, boot: .boot_id, uptime: .uptime_s}
    elif .kind == "soak" then {k: "soak", started_ms, duration_s, interval_s, stall_s, reconnect_s, server, job}
    elif .kind == "bandwidth" or .kind == "latency" then
      { k: "whole", soak, kind, status, code: .error.code, bytes: .bandwidth.bytes, count: .latency_us.count, tail: (.latency_us | tail), max: .latency_us.max,
        g: .bandwidth.gbit_s, low: .bandwidth.min_interval_gbit_s, el: .elapsed_s, bad: .integrity.bad_bytes, rate: .params.rate, message: .error.message }
    else {k: "damaged", why: "its kind is \(.kind | tojson | .[:40])"} end;

# $n: its number in the file. $run: this run; lines that name one name theirs.
def digest($n; $run):
  c::parsed
  | c::attempt(shortened($run) | if is_typed then . else {k: "damaged", why: "what should be a number or an object is none"} end;
      {k: "damaged", why: "what should be a number or an object is none"})
  | .n = $n;
