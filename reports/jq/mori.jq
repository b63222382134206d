# What MORI-IO's benchmark prints -> parts of records, one a row of its tables. Columns and their units come from each
# table's own header; a line of a table that fits nothing is an error that names it.
# Formats and definitions: ROCm/mori, tests/python/io/benchmark.py. MB and GB are 10^6 and 10^9 bytes, the highest
# bandwidth is bytes over the fastest batch, the average is bytes over the mean time of a batch: what passes between
# batches is in neither. Each row is held against that; with GB of 2^30 bytes it would be off by 7 %.
import "common" as c;
import "recorded" as recorded;
import "results" as result;

def at($lines; $i): "line \($i + 1) (\($lines[$i] | .[0:60] | tojson))";

# ---- tables ---------------------------------------------------------------------------------------------------------

# Outside of tables stand its configuration, and log lines of torch and of the network library.
def of_table: test("^[ \t]*[+|]");
def is_rule: test("^[ \t]*\\+[-+]+\\+[ \t\r]*$");

def cells:
  if test("\\|[ \t\r]*$") | not then error("it has no end: truncated?") else . end
  | gsub("^[ \t]*\\||\\|[ \t\r]*$"; "") | [splits("\\|")] | map(gsub("^[ \t]+|[ \t]+$"; ""));

def titles:
  { size: "MsgSize (B)", batch: "BatchSize", total: "TotalSize (MB)", peak: "Max BW (GB/s)", average: "Avg Bw (GB/s)",
    min: "Min Lat (us)", mean: "Avg Lat (us)" };

def columns:
  cells
  | map(. as $title | first(titles | to_entries[] | select(.value == $title).key)
        // error("the column \($title | tojson) is unknown"))
  | (["size", "total", "peak", "average", "min", "mean"] - .) as $missing
  | if $missing != [] then error("there is no column \($missing | map(titles[.]) | join(", "))")
    elif length != (unique | length) then error("a column stands there twice")
    else . end;

def cell($name):
  if test("^-?(inf|nan)"; "i") then error("\(titles[$name]) is \(.), which is no result")
  # jq 1.7 would keep the spelling, 41.50
  elif test("^[0-9]+(\\.[0-9]+)?$") then tonumber + 0
  else error("\(titles[$name]) is \(tojson), which is no number") end;

def row($columns):
  cells as $cells
  | if ($cells | length) != ($columns | length) then
      error("it has \($cells | length) figures under \($columns | length) columns: truncated?")
    else reduce range(0; $columns | length) as $i ({}; .[$columns[$i]] = ($cells[$i] | cell($columns[$i])))
    end;

def rank:
  cells | (.[0] | capture("^Initiator Rank (?<n>[0-9]+)$").n) // null
  | if . == null then error("a title \"Initiator Rank N\" was expected here") else tonumber end;

# What the next line of a table must be, one after another: state `at`, null between tables.
def rule_after: {"rule under the title": "header", "rule under the header": "row"};

def step($line; $i):
  .at as $at
  | if $line | is_rule then
      if $at == null then .at = "title" | .rows = []
      elif $at == "row" and .rows != [] then .tables += [{rank, columns, rows}] | .at = null
      elif rule_after[$at] then .at = rule_after[$at]
      else error("a \($at) was expected here") end
    elif $at == "title" then .rank = ($line | rank) | .at = "rule under the title"
    elif $at == "header" then .columns = ($line | columns) | .at = "rule under the header"
    elif $at == "row" then .columns as $columns | .rows += [($line | row($columns)) + {i: $i}]
    elif $at == null then error("it belongs to no table")
    else error("a \($at) was expected here")
    end;

def tables($lines):
  reduce (range(0; $lines | length) | select($lines[.] | of_table)) as $i ({at: null, tables: []};
    c::attempt(step($lines[$i]; $i); error("\(at($lines; $i)): \(.)")))
  | if .at != null then error("its last table has no end: truncated?")
    elif .tables == [] then error("it has no table of results: truncated?")
    else .tables end;

# ---- what it was asked to do ----------------------------------------------------------------------------------------

# Each initiator prints the configuration; they must all say the same.
def configured($lines):
  reduce ($lines[]
          | capture("^ *(?<k>op_type|num_initiator_dev|transfer_batch_size|enable_batch_transfer|enable_sess"
                    + "|num_qp_per_transfer|num_worker_threads|poll_cq_mode|iters): *(?<v>.*[^ \t\r])[ \t\r]*$"))
         as {$k, $v} ({};
    if (.[$k] // $v) != $v then error("its configurations differ in \($k): \(.[$k]), \($v)") else .[$k] = $v end);

# "--op-type=write" is two words.
def words: [.[] | strings | if test("^--[a-z_-]+=") then sub("=.*"; ""), sub("^[^=]*="; "") else . end];

def whole($name):
  if . == null then null
  elif test("^[1-9][0-9]*$") then tonumber
  else error("\($name) is \(tojson), which is no whole number above 0") end;

# From its configuration, else from its command with the benchmark's own defaults; without either nobody knows. How many
# queue pairs it takes by default differs between its versions.
def settings($lines; $argv):
  configured($lines) as $said
  | ($argv | words) as $words
  | def value($name; $option; $default):
      $said[$name] // ($words | c::option_value([$option])) // (if $words == [] then null else $default end);
    def flag($name; $option):
      if $said[$name] != null then $said[$name] == "True"
      elif $words == [] then null
      else $words | index($option) != null end;
    { op: value("op_type"; "--op-type"; "read"),
      devices: (value("num_initiator_dev"; "--num-initiator-dev"; "1") | whole("num_initiator_dev")),
      # sweeps over the batch print a column for it
      batch: (value("transfer_batch_size"; "--transfer-batch-size"; null) | whole("transfer_batch_size")),
      batched: flag("enable_batch_transfer"; "--enable-batch-transfer"),
      session: flag("enable_sess"; "--enable-sess"),
      queue_pairs: (value("num_qp_per_transfer"; "--num-qp-per-transfer"; null) | whole("num_qp_per_transfer")),
      threads: (value("num_worker_threads"; "--num-worker-threads"; "1") | whole("num_worker_threads")),
      completion: (value("poll_cq_mode"; "--poll_cq_mode"; "polling")
                   | if . == null then null elif test("polling"; "i") then "busy" elif test("event"; "i") then "event"
                     else error("poll_cq_mode is \(tojson)") end),
      iterations: (value("iters"; "--iters"; "128") | whole("iters")) };

# ---- figures --------------------------------------------------------------------------------------------------------

# Everything is printed with two decimals. The last digit of the comparison is the doubles' own.
def half: 0.005 + 1e-9;

# A table without a column for it has one batch: TotalSize says it where rounding leaves but one whole number, which the
# largest size does first.
def batch_of_total:
  (.rows | max_by(.size))
  | .size as $size | .total as $total
  | (($total - half) * 1e6 / $size | ceil) as $least
  | (($total + half) * 1e6 / $size | floor) as $most
  | if $least == $most and $least >= 1 then $least else null end;

def batch_of_table($set):
  if any(.columns[]; . == "batch") then null
  else $set.batch // batch_of_total
    // error("nothing says its batch: no column, no configuration, and TotalSize is too small")
  end;

def agrees($name; $bytes; $us; $gbyte_s):
  ($bytes / ($us + half) / 1e3 - half) as $least
  | ($bytes / ([$us - half, 1e-9] | max) / 1e3 + half) as $most
  | if $gbyte_s < $least or $gbyte_s > $most then
      error("\($name) is \($gbyte_s) GB/s, but \($bytes) bytes in \($us) us are \($bytes / $us / 1e3 | c::rounded)")
    else . end;

# Two decimals are 0.5 % and more of what is below 1 GB/s: there the time, which has more digits, says it.
def gbit_s($bytes; $us; $gbyte_s):
  if $gbyte_s >= 1 then $gbyte_s * 8 else $bytes * 8 / $us / 1e3 end | result::positive("GB/s");

def checked($bytes):
  (.min | result::positive("Min Lat")) as $min | (.mean | result::positive("Avg Lat")) as $mean
  | if $min > $mean then error("Min Lat is above Avg Lat") else . end
  | if ($bytes / 1e6 - .total | fabs) <= half then .
    else error("TotalSize is \(.total) MB, but \($bytes) bytes are what a batch has") end
  | agrees("Max BW"; $bytes; $min; .peak) | agrees("Avg Bw"; $bytes; $mean; .average)
  | if .average * 8 > result::impossible_gbit_s then error("bandwidth of \(.average) GB/s is impossible") else . end;

def measured($set; $rank):
  (.size | result::positive("MsgSize")) as $size | (.batch | result::positive("BatchSize")) as $batch
  | ($size * $batch) as $bytes
  | checked($bytes)
  | $set.iterations as $n
  | def times($x): if $n == null then null else $n * $x | c::rounded end;
    { elapsed_s: times(.mean / 1e6),
      latency_us: { count: $n, min, max: null, mean, stddev: null,
                    p50: null, p90: null, p95: null, p99: null, p99_9: null, p99_99: null },
      bandwidth: { gbit_s: gbit_s($bytes; .mean; .average), peak_gbit_s: gbit_s($bytes; .min; .peak),
                   peak_definition: "fastest_batch", min_interval_gbit_s: null,
                   messages_per_s: ($batch / .mean * 1e6 | c::rounded), bytes: times($bytes) },
      transfer: { pair: $rank, pairs: $set.devices, batches: $n, completed: times($batch), asked: times($batch),
                  batch_bytes: $bytes, lists: null, window_s: null },
      status: "ok", error: null };

def params($set):
  { size_bytes: .size, batch, iterations: $set.iterations, duration_s: null, queue_pairs: $set.queue_pairs,
    threads: $set.threads, devices: $set.devices, bidirectional: false, completion: $set.completion,
    consecutive: (if $set.batched == null then null else $set.batched | not end), session: $set.session };

# ---- parts and records ----------------------------------------------------------------------------------------------

def unusable($why; $traffic):
  {status: "error", error: {code: 6, message: ("MORI-IO's output cannot be used: " + $why), traffic: $traffic}};

def rows_of($lines; $set):
  tables($lines)[] as $table
  | ($table | batch_of_table($set)) as $batch
  | $table.rows[]
  | (if $batch == null then . else .batch = $batch end) as $row
  | {kind: "transfer", definition: "batch_completion", op: $set.op, params: ($row | params($set))}
    + ($row | c::attempt(measured($set; $table.rank); unusable("\(at($lines; $row.i)): \(.)"; true)));

# $flow: what the plan, or who imports it, knows: {client_argv}.
def parts($lines; $stderr; $flow; $version):
  (if all($lines[]; test("^\\s*$")) then [unusable("it is empty"; false)]
   else c::attempt([rows_of($lines; settings($lines; $flow.client_argv // []))];
                   [unusable(.; any($lines[]; test("Initiator Rank")))]) end)
  | map({tool: {name: "mori", version: $version}} + .);

# Whole records of what was measured elsewhere, without a plan: $flow has {run, test, client, server} and, if known,
# {client_argv}, and a scope if it knows better than "imported".
def records($lines; $stderr; $flow; $version):
  { id: "\($flow.test)/\($flow.client)/\($flow.server)/1", repeat: 1, tool: "mori", kind: "transfer",
    scope: "imported" } + $flow
  | . as $flow
  | parts($lines; $stderr; $flow; $version)[]
  | recorded::record({run: $flow.run, hosts: {}}; {}; $flow; {size_bytes: .params.size_bytes})
  | .scope = $flow.scope;
