# iperf 2's CSV (-y C) -> the part of one record: of TCP, one stream or several. Without a heading its columns are those of
# reportCSV_bw_format (iperf 2.1.8, src/Locale.c); with one (2.2, -e) they are what the heading names. Bytes and bits a
# second are whole numbers, times have one decimal.
import "common" as c;
import "results" as result;

def plain_names: ["time", "srcaddress", "srcport", "dstaddr", "dstport", "transferid", "interval", "bytes", "speed"];

def is_heading: startswith("time,srcaddress,");
def is_row: test("^[0-9]{8,}");

def number($name): c::attempt(tonumber; error("\($name) is \(tojson), which is no number"));

# {id, start_s, end_s, bytes, gbit_s, retries, i} of one line
def row($names; $i):
  split(",") as $cells
  | if ($cells | length) == ($names | length) + 5 and $names == plain_names then error("line \($i + 1): it is UDP's, of which iperf 2 knows only the sender's rate: measure it with iperf3 -u -J")
    elif ($cells | length) != ($names | length) then error("line \($i + 1): it has \($cells | length) columns instead of \($names | length): truncated?")
    else [range(0; $names | length) | {key: $names[.], value: $cells[.]}] | from_entries end
  | if .jitter != null then error("line \($i + 1): it is UDP's, of which iperf 2 knows only the sender's rate: measure it with iperf3 -u -J") else . end
  | . as $cell
  | (if .interval == null then {a: .istart, b: .iend} else .interval | capture("^(?<a>[0-9.]+)-(?<b>[0-9.]+)$") // error("line \($i + 1): its interval is \(tojson)") end) as $time
  | c::attempt(
      { $i, id: $cell.transferid, client: $cell.srcaddress, server: $cell.dstaddr, start_s: ($time.a | number("its interval")), end_s: ($time.b | number("its interval")),
        bytes: ($cell.bytes | number("bytes")), gbit_s: (($cell.speed | number("speed")) / 1e9),
        retries: ($cell.tcpretry | if . == null then null else number("tcpretry") end) };
      error("line \($i + 1): \(.)"))
  # one decimal of the time, half of it at either end
  | if .end_s <= .start_s then error("line \($i + 1): its interval is empty")
    elif .bytes <= 0 or .gbit_s <= 0 then error("line \($i + 1): its rate is \(.gbit_s), which is no result")
    elif .gbit_s > result::impossible_gbit_s then error("line \($i + 1): bandwidth of \(.gbit_s) Gb/s is impossible")
    elif (.bytes * 8 / 1e9 / (.end_s - .start_s) / .gbit_s - 1 | fabs) > 0.1 / (.end_s - .start_s) + 0.005 then
      error("line \($i + 1): bytes and rate disagree")
    else . end;

def rows($lines):
  (first($lines[] | select(is_heading) | split(",")) // plain_names) as $names
  | [ range(0; $lines | length) as $i | $lines[$i] | select((test("^\\s*$") or is_heading) | not)
      | if is_row then row($names; $i) else error("line \($i + 1): it is no line of the table: truncated?") end ];

# Of one stream: its total is the last line, from 0 to the end; what stands before it are its intervals.
def total:
  .[-1] as $t
  | if $t.start_s != 0 then error("line \($t.i + 1): stream \($t.id) ends with an interval, not with its total: truncated?")
    elif any(.[:-1][]; .start_s == 0 and .end_s == $t.end_s and .i != $t.i) and length > 2 then error("line \($t.i + 1): stream \($t.id) has two totals")
    elif any(.[:-1][]; .end_s > $t.end_s + 0.05) then error("line \($t.i + 1): stream \($t.id) begins again: give each output a file of its own")
    else $t end;

# Intervals of all streams that begin together, summed.
def intervals($streams):
  [$streams[] | .[:-1][]] | group_by(.start_s)
  | map(select(length == ($streams | length))
        | {start_s: .[0].start_s, end_s: (map(.end_s) | max), count: null, gbit_s: (map(.gbit_s) | add | c::rounded), latency_us: null});

def parts($lines; $version):
  c::attempt(
    rows($lines)
    # -1 is the sum of all, which some versions print and others do not
    | (map(select(.id == "-1"))) as $sums | map(select(.id != "-1")) | group_by(.id) as $streams
    | if $streams == [] then error("it holds no stream") else . end
    | [$streams[] | total] as $totals
    | ($totals | map(.end_s) | max) as $elapsed
    | ($totals | map(.gbit_s) | add) as $gbit_s
    | if $sums != [] and ($sums[-1].gbit_s / $gbit_s - 1 | fabs) > 0.05 then
        error("line \($sums[-1].i + 1): the sum is \($sums[-1].gbit_s) Gb/s and the streams' is \($gbit_s | c::rounded)")
      elif any($totals[]; .end_s < 0.9 * $elapsed) then error("line \($totals[0].i + 1): its streams do not end together: truncated?")
      else . end
    | intervals($streams) as $intervals | ($intervals | result::interval_summary) as $s
    | { tool: {name: "iperf", $version}, kind: "bandwidth", definition: "sender_payload", connection: "stream",
        client: {address: $totals[0].client}, server: {address: $totals[0].server},
        params: { size_bytes: null, queue_pairs: ($streams | length), threads: ($streams | length), bidirectional: false, completion: "event" },
        elapsed_s: ($elapsed | result::positive("elapsed_s")),
        bandwidth: { gbit_s: ($gbit_s | result::positive("speed")), peak_gbit_s: $s.peak_gbit_s, peak_definition: $s.peak_definition,
                     min_interval_gbit_s: $s.min_interval_gbit_s, messages_per_s: null, bytes: ($totals | map(.bytes) | add) },
        $intervals,
        tcp: {retransmissions: ($totals | map(.retries) | if any(.[]; . == null) then null else add end), initial_rtt_us: null, window_bytes: null},
        status: "ok", error: null };
    {tool: {name: "iperf", $version}, status: "error", error: {code: 6, message: "iperf's table cannot be used: \(.)", traffic: true}})
  | [.];
