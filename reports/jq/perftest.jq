# perftest (text of 4.5 to 25.01, JSON of --out_json) -> parts of records, one a row of its table. What a column holds, and
# in which unit, is read from the table's own header: an unknown one is an error, never a guess.
# Formats: linux-rdma/perftest, src/perftest_parameters.h (RESULT_FMT*, REPORT_FMT*_JSON).
import "common" as c;
import "results" as result;

# ---- columns ----------------------------------------------------------------------------------------------------------

# MB and MiB name the same: 2^20 bytes (the header was corrected in 2024, the figure was never another). Gb are decimal.
def gbit_of: {"MB": (8 * 1048576 / 1e9), "MiB": (8 * 1048576 / 1e9), "Gb": 1};

def column:
  if . == "#bytes" then {name: "size"}
  elif . == "#iterations" then {name: "iterations"}
  elif . == "MsgRate[Mpps]" then {name: "messages"}
  elif . == "tps average" then {name: "transactions"}
  elif . == "CPU_Util[%]" then {name: "cpu"}
  # without the word where somebody wrote the table down
  elif . == "99% percentile[usec]" or . == "99%[usec]" then {name: "p99"}
  elif . == "99.9% percentile[usec]" or . == "99.9%[usec]" then {name: "p99_9"}
  # of each of two ports; the average is that of both
  elif test("^(BW Port[12]\\[(MB|MiB|Gb)/sec\\]|MsgRate Port[12]\\[Mpps\\])$") then {name: "port"}
  else (capture("^t_(?<name>min|max|typical|avg|stdev)\\[usec\\]$") // null) as $time
    | (capture("^BW (?<name>peak|average)\\[(?<unit>MB|MiB|Gb)/sec\\]$") // null) as $rate
    | $time // $rate // error("its table has the unknown column \(tojson)")
  end;

# " #bytes #iterations    t_min[usec]": a column may have a blank in its name, never two.
def columns:
  gsub("percentile\\[usec\\] +"; "percentile[usec]  ") | gsub("#bytes "; "#bytes  ") | gsub("#iterations "; "#iterations  ")
  | gsub("\\] "; "]  ") | [splits(" {2,}|\t+") | select(. != "" and . != " ")] | map(gsub("^ +| +$"; "") | column)
  | (map(.name | select(. != "port")) | group_by(.) | map(select(length > 1)[0])) as $twice
  | if $twice == [] then . else error("its table has the column \($twice[0]) twice") end;

def cell_value($name):
  if (.[0:1] | . < "0" or . > "9") and test("^-?(inf|nan)"; "i") then error("\($name) is \(.), which is no result")
  else c::attempt(tonumber; error("\($name) is \(tojson), which is no number")) end;

def row($columns):
  # without regular expressions, which would be most of the work in a long log
  [split("\t")[] | split(" ")[] | select(. != "")] as $cells
  | if ($cells | length) != ($columns | length) then
      error("a row has \($cells | length) figures under \($columns | length) columns: truncated?")
    else [range(0; $cells | length) as $i | {key: $columns[$i].name, value: ($cells[$i] | cell_value($columns[$i].name))}] | from_entries
    end;

# What stands between the figures and is none: warnings about the CPU's frequency, for one.
def is_row: test("^[ \t]*-?([0-9]|inf|nan)"; "i");
def is_rule: startswith("-----") and test("^-{20,}[ \t]*$");
def is_header: contains("#bytes") and test("^[ \t]*#bytes[ \t]+#");

# {columns, rows: [{line, text}], whole} of the one table.
def table($lines):
  [range(0; $lines | length) | select($lines[.] | is_header)] as $headers
  | if $headers == [] then error("it has no table of results: truncated?")
    elif ($headers | length) > 1 then error("it has \($headers | length) tables instead of one")
    else $lines[$headers[0] + 1:] as $rest
      | ([range(0; $rest | length) | select($rest[.] | is_rule)] | .[0]) as $stop
      | { columns: ($lines[$headers[0]] | columns), whole: ($stop != null),
          rows: [range(0; $stop // ($rest | length)) | select($rest[.] | is_row) | {line: ($headers[0] + 1 + .), text: $rest[.]}] }
    end;

# ---- what it says of itself -------------------------------------------------------------------------------------------

# " Number of qps   : 4\t\tTransport type : IB" -> the value behind a name, or null. Lines without the name are passed over before
# a regular expression looks at them: sixteen names in each line would take half of the time of a long log.
def said($lines; $name):
  first($lines[] | select(contains($name)) | capture("(^|\t) ?" + $name + "[ \t]*: (?<v>[^\t]*[^\t ])").v) // null;

def number_said($lines; $name):
  said($lines; $name) | if . == null then null else (capture("^(?<n>[0-9]+)(\\[[A-Za-z]+\\])?$").n // error("\($name) is \(tojson)") | tonumber) end;

# Sixteen decimal bytes; those of an IPv4-mapped address are shown as that address.
def hex: "0123456789abcdef" as $digits | $digits[(. / 16 | floor):(. / 16 | floor) + 1] + $digits[. % 16:. % 16 + 1];
def gid:
  [splits(":") | tonumber]
  | if length != 16 then null
    elif .[:12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255] then "::ffff:" + (.[12:] | map(tostring) | join("."))
    else [range(0; 16; 2) as $i | (.[$i] | hex) + (.[$i + 1] | hex)] | join(":")
    end;

# The first queue pair's: local, then remote.
def gids($lines):
  [$lines[] | select(contains("GID: ")) | capture("^ GID: (?<g>[0-9:]+)").g | c::attempt(gid; null)] as $all
  | ([$lines[] | select(contains("address:")) | capture("^ *(?<side>local|remote) address:").side]) as $sides
  | {client: $all[$sides | index("local") // 0], server: $all[$sides | index("remote") // 1]};

def titles: {"Send": "send", "RDMA_Write": "write", "RDMA_Write_imm": "write-imm", "RDMA_Read": "read", "FETCH_AND_ADD": "fetch-add", "CMP_AND_SWAP": "compare-swap"};

# "                    RDMA_Write Bidirectional BW Test", also "Atomic_FETCH_AND_ADD_BW_Test" of the JSON.
def title:
  gsub("_(?<t>Bidirectional|Post_List|BW|Latency|Test)"; " \(.t)")
  | capture("^ *(Atomic[ _])?(?<op>Send|RDMA_Write_imm|RDMA_Write|RDMA_Read|FETCH_AND_ADD|CMP_AND_SWAP) (?<both>Bidirectional )?(Post[ _]List )?(?<kind>BW|Latency) (Multicast )?Test *$")
  | {op: titles[.op], kind: {"BW": "bandwidth", "Latency": "latency"}[.kind], bidirectional: (.both != null)};

# {op, kind, bidirectional, connection, ...}: all that a text says about its run.
def about_text($lines):
  (first($lines[] | title) // error("it does not say which test it is")) as $title
  | $title
  + { device: said($lines; "Device"), queue_pairs: number_said($lines; "Number of qps"), connection: said($lines; "Connection type"),
      transport: said($lines; "Transport type"), srq: said($lines; "Using SRQ"), depth: number_said($lines; "TX depth"),
      batch: number_said($lines; "Post List"), moderation: number_said($lines; "CQ Moderation"), mtu: number_said($lines; "Mtu"),
      link: said($lines; "Link type"), gid_index: number_said($lines; "GID index"), inline: number_said($lines; "Max inline data"),
      rdma_cm: said($lines; "rdma_cm QPs"), relaxed: said($lines; "PCIe relax order"),
      event: any($lines[]; contains("Test with events") and test("^ *Test with events")), gids: gids($lines) };

def about_json:
  .test_info
  | ((.test | title) // error("it does not say which test it is"))
  + { device: .Device, queue_pairs: .Number_of_qps, connection: .Connection_type, transport: .Transport_type, srq: .Using_SRQ,
      depth: .TX_depth, batch: .Post_List, moderation: .CQ_Moderation, mtu: .Mtu, link: .Link_type, gid_index: .GID_index,
      inline: .Max_inline_data, rdma_cm: .rdma_cm_QPs, relaxed: .PCIe_relax_order,
      event: has("Test with events"), gids: {client: null, server: null} };

# ---- the command ------------------------------------------------------------------------------------------------------

def value_of($argv; $names): $argv | c::option_value($names) | if . == null then null else c::attempt(tonumber; null) end;

# raw_ethernet_bw counts whole frames, not payload (its -s is the frame without its checksum): no ceiling of RoCE is theirs.
def is_raw: .connection == "RawEth";
def layer: if is_raw then null elif .transport == "IW" then "iwarp" elif .link == "Ethernet" then "ethernet" elif .link == "IB" then "infiniband" else null end;
def is_on: if . == null then null else . == "ON" end;

# -C counts processor cycles under a header that says usec.
def check_argv($argv):
  first($argv[] | select(IN("-C", "--report-cycles"))) // null
  | if . == null then empty else error("with \(.) its figures are cycles, whatever its header says") end;

def unless_managed($about): if $about.rdma_cm | is_on then null else 0 end;

def params($about; $argv; $size):
  ($about.queue_pairs // 1) as $pairs
  | { size_bytes: $size, iterations: value_of($argv; ["-n", "--iters"]), duration_s: value_of($argv; ["-D", "--duration"]),
      warmup: 0, gap_us: null, queue_pairs: $pairs,
      # of all queue pairs together, as the engine counts
      outstanding: (if $about.kind == "latency" then 1 elif $about.depth == null then null else $about.depth * $pairs end),
      batch: (if $about.kind == "latency" then null else $about.batch // 1 end), cq_moderation: $about.moderation,
      threads: 1, devices: 1, inline_bytes: $about.inline, bidirectional: $about.bidirectional,
      completion: (if $about.event then "event" else "busy" end), memory: "host", verify: false, clock: "cycles", rate: null,
      srq: ($about.srq | is_on), rdma_cm: ($about.rdma_cm | is_on), gid_index: $about.gid_index,
      relaxed_ordering: ($about.relaxed | is_on),
      # 0 unless asked for (init_perftest_params); with rdma_cm what the connection manager finds, and it is -T that sets the class
      sl: (value_of($argv; ["-S", "--sl"]) // unless_managed($about)),
      traffic_class: (value_of($argv; ["--tclass"]) // value_of($argv; ["-T", "--tos"]) // unless_managed($about)) };

# ---- figures ----------------------------------------------------------------------------------------------------------

def one_sided($op): $op | IN("read", "fetch-add", "compare-swap");

# What is halved: the round trip of a ping-pong; what is posted and completed is not (rtt_factor in print_report_lat).
def round_trips($about): if one_sided($about.op) then 1 else 2 end;

def in_order:
  . as $l | [$l.min, $l.p50, $l.p99, $l.p99_9, $l.max] | map(select(. != null))
  | if . == sort then $l else error("its percentiles are out of order") end;

# Both have two decimals. Half of all lie at or above the median, and none below t_min. (t_max is no bound: perftest leaves the two
# slowest out of it, and not out of the average.)
def plausible:
  (.min // 0) as $min
  | (($min + (.p50 // $min)) / 2) as $least
  | if .mean < $least - 0.01 then error("t_avg of \(.mean) us is below what t_min and t_typical allow, \($least | c::rounded)") else . end;

def whole($name): result::positive($name) | if . == floor then . else result::refuse($name) end;

# -D prints an average only.
def latency:
  { count: (.iterations | whole("#iterations")), min: (.min | result::positive_or_null("t_min")), max: (.max | result::positive_or_null("t_max")),
    mean: (.avg | result::positive("t_avg")), stddev: (.stdev | result::natural_or_null("t_stdev")), p50: (.typical | result::positive_or_null("t_typical")),
    p90: null, p95: null, p99: (.p99 | result::positive_or_null("99% percentile")), p99_9: (.p99_9 | result::positive_or_null("99.9% percentile")),
    p99_99: null }
  | in_order | plausible;

def with_latency($about):
  . as $row
  | latency as $l
  | (round_trips($about) * $l.mean) as $each
  | if $row.transactions == null then .
    # both columns have two decimals
    elif ($row.transactions * $each / 1e6 - 1 | fabs) > 0.01 + 0.005 / $l.mean then
      error("t_avg of \($l.mean) us and \($row.transactions) transactions a second do not fit")
    else . end
  | {latency_us: $l, bandwidth: null, elapsed_s: ($l.count * $each / 1e6 | result::positive("elapsed time"))};

# Its rate of messages is another way to the same figure, in other units: a misread unit shows here. 0.000000 is a rate
# below half a message a second, rounded.
def consistent($unit):
  (.average * $unit) as $gbit_s
  | (.messages * 1e6 * .size * 8 / 1e9) as $other
  | (0.005 * $unit + 0.5 * .size * 8 / 1e9 + 0.005 * $gbit_s) as $rounding
  | if ($gbit_s - $other | fabs) > $rounding then
      error("bandwidth and message rate disagree (\($gbit_s | c::rounded) against \($other | c::rounded) Gb/s)")
    else . end;

# Both ways at once: the rates are the sum of both, the iterations those of this end; only a send test by duration counts
# what it receives among its iterations, too.
def ways($about; $duration): if $about.bidirectional and ($about.op != "send" or $duration == null) then 2 else 1 end;

# Below 1 the average's two decimals are off by more than 0.5 %, and small messages are printed as 0.00 MiB/s: the rate of
# messages then says it, where it has more digits.
def finer($unit):
  if .messages != null and .messages > 0 and .average < 1 and 1e-4 * .average < .messages then .messages * 1e6 * .size * 8 / 1e9
  else .average * $unit end;

def with_bandwidth($about; $unit; $duration):
  (.iterations | whole("#iterations")) as $iterations
  | .average |= result::natural("BW average")
  | (if .messages == null then . else .messages |= result::natural("MsgRate") | consistent($unit) end)
  | ($iterations * .size * ways($about; $duration)) as $bytes
  | (finer($unit) | result::positive("BW average")) as $gbit_s
  | ($bytes * 8 / $gbit_s / 1e9) as $elapsed
  # a peak of 0 was not measured (-D, or more than 20,000 iterations)
  | (if (.peak // 0) == 0 then null else .peak * $unit | result::positive("BW peak") end) as $peak
  | if $gbit_s > result::impossible_gbit_s then error("bandwidth of \($gbit_s) Gb/s is impossible") else . end
  | { latency_us: null, elapsed_s: ($elapsed | result::positive("elapsed time")),
      bandwidth: { gbit_s: $gbit_s, peak_gbit_s: $peak, peak_definition: (if $peak == null then null else "best_run_of_messages" end),
                   min_interval_gbit_s: null, messages_per_s: (if (.messages // 0) == 0 then null else .messages * 1e6 | c::rounded end),
                   bytes: ($bytes | result::positive("bytes")) } };

# What was asked for and what came: iterations are of each queue pair, the table's of all.
def as_asked($about; $params):
  ( select($params.iterations != null)
    | (if $about.kind == "bandwidth" then $params.iterations * $params.queue_pairs else $params.iterations end) as $asked
    | select(.iterations != $asked) | "it measured \(.iterations) messages of \($asked)" );

# Payload on the wire. -D leaves the margins at both ends out of its count, and may carry more in them than between: half
# as much again is granted (site policy).
def claims($about; $params; $elapsed):
  ((.iterations * .size) as $bytes
   | if $params.duration_s == null then {least: $bytes, most: $bytes}
     else {least: $bytes, most: ($bytes * ([$params.duration_s / $elapsed, 1] | max) * 1.5)} end) as $one
  | (if $about.bidirectional and ways($about; $params.duration_s) == 1 then 0.5 else 1 end) as $share
  | (if $about.kind == "latency" then one_sided($about.op) | not else $about.bidirectional end) as $both
  | ($about.op | IN("fetch-add", "compare-swap")) as $atomic
  | { sent: (if $about.op != "read" or $both then $one.least * $share else 0 end),
      received: (if $about.op == "read" or $atomic or $both then $one.least * $share else 0 end),
      most_sent: (if $about.op != "read" or $both then $one.most else 0 end),
      most_received: (if $about.op == "read" or $atomic or $both then $one.most else 0 end) };

def definition($about):
  if $about.kind == "latency" then (if one_sided($about.op) then "completion" else "half_round_trip" end)
  elif $about | is_raw then "frame_completion"
  else "initiator_completion" end;

# One row of figures -> a part. $unit: Gb/s of one unit of its rates.
def measured($about; $argv; $server_argv; $unit):
  . as $row
  | (.size | whole("#bytes")) as $size
  | params($about; $argv; $size) as $params
  | (first(as_asked($about; $params)) // null) as $unlike
  | if $unlike != null then error($unlike) else . end
  | (if $about.kind == "latency" then with_latency($about) else with_bandwidth($about; $unit; $params.duration_s) end) as $figures
  | { op: $about.op, kind: $about.kind, definition: definition($about), connection: $about.connection,
      client: {device: $about.device, address: $about.gids.client},
      server: {device: ($server_argv | c::option_value(["-d", "--ib-dev"])), address: $about.gids.server},
      link: {mtu_bytes: $about.mtu, layer: ($about | layer)}, params: $params, claims: ($row | claims($about; $params; $figures.elapsed_s)),
      status: "ok", error: null }
    + $figures;

# ---- text and JSON ----------------------------------------------------------------------------------------------------

# Its own words where it failed: on either stream, between other lines.
def complaint($lines; $stderr):
  [($stderr, $lines)[] | select(test("fail|error|unable|couldn't|can't|invalid|cannot|not support|refused"; "i"))]
  | .[-2:] | map(gsub("^[ \t]+|[ \t]+$"; "")) | unique | join("; ") | if . == "" then "" else ": " + .[0:300] end;

def unusable($why; $lines; $stderr; $traffic):
  {status: "error", error: {code: 6, message: ("perftest's output cannot be used: " + $why + complaint($lines; $stderr)), traffic: $traffic}};

def unit_of($columns): first($columns[] | select(.name == "average").unit | gbit_of[.]) // null;

def text_rows($lines; $stderr; $argv; $server_argv):
  about_text($lines) as $about
  | table($lines) as $table
  | unit_of($table.columns) as $unit
  | if $table.rows == [] then error("its table is empty")
    elif $about.kind == "bandwidth" and $unit == null then error("its table has no average bandwidth")
    elif $about.kind == "latency" and any($table.columns[]; .name == "avg") == false then error("its table has no latency")
    else . end
  | [ range(0; $table.rows | length) as $i
      | $table.rows[$i] as $row
      | ($row.text | c::attempt(row($table.columns) | measured($about; $argv; $server_argv; $unit);
                                unusable(.; $lines; $stderr; true) + {line: $row.line}))
      | if $i == ($table.rows | length) - 1 and .status == "ok" and ($table.whole | not) then
          {params: null, line: $row.line} + unusable("its table has no end: truncated?"; $lines; $stderr; true)
        else . end ];

# The document has no unit: --report_gbits in the command says it. It is of one size: each size overwrites the last.
def json_rows($argv; $server_argv):
  about_json as $about
  | (if any($argv[]; . == "--report_gbits") then gbit_of.Gb else gbit_of.MiB end) as $unit
  | .results
  | if type != "object" then error("it has no results") else . end
  | { size: .MsgSize, iterations: .n_iterations, min: .t_min, max: .t_max, typical: .t_typical, avg: .t_avg, stdev: .t_stdev,
      p99: .percentile_99, p99_9: .["percentile_99.9"], transactions: .tps_average, peak: .BW_peak, average: .BW_average,
      messages: .MsgRate }
  | [measured($about; $argv; $server_argv; $unit)];

# Version 4.5 writes what is no JSON: neither names nor words are quoted, and a comma stands before each closing brace.
def mended:
  map(capture("^ *(?<k>[A-Za-z0-9_. ]*[A-Za-z0-9_.]) *: *(?<v>[^\",]*|\"[^\"]*\"),? *$") // .
      | if type == "string" then gsub("^ *}.*"; "},")
        elif .v == "{" then "\"\(.k)\": {"
        else "\"\(.k)\": \(if .v | test("^(\"|-?[0-9.]+$)") then .v else .v | tojson end)," end)
  | join("\n") | gsub(",(?<e>\\s*})"; .e) | sub(",\\s*$"; "");

def parts($lines; $stderr; $flow; $version):
  ($flow.client_argv // []) as $argv
  | ($flow.server_argv // []) as $server_argv
  | {tool: {name: "perftest", version: $version}} as $base
  | ($lines | map(select(test("^\\s*$") | not))) as $said
  | (if $said == [] then [unusable("it is empty"; []; $stderr; false)]
     elif $said[0] | test("^[ \t]*\\{") then
       ($said | join("\n")) as $text
       | ($text | c::parsed // ($said | mended | c::parsed)) as $doc
       | if ($doc | type) != "object" then [unusable("it is not a JSON document: truncated?"; []; $stderr; true)]
         else $doc | c::attempt([check_argv($argv)] | $doc | json_rows($argv; $server_argv); [unusable(.; []; $stderr; true)]) end
     else
       c::attempt([check_argv($argv)] | text_rows($lines; $stderr; $argv; $server_argv);
                  (first(range(0; $lines | length) | select($lines[.] | is_header)) // null) as $header
                  | [unusable(.; $lines; $stderr; $header != null)
                     # what is at fault: the table, or where it should have been
                     + {line: ($header // ($lines | length - 1))}])
     end)
  | map($base + .);
