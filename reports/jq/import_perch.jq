# The engine's lines, and records of other runs (records.jsonl) -> documents (import_outputs.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_outputs" as o;
import "perch" as perch;
import "claims" as _;
import "transfer_line" as _;
import "transfer" as _;
import "results" as result;
import "common" as c;

def in_order:
  [.min, .p50, .p90, .p95, .p99, .p99_9, .p99_99, .max] | map(select(. != null)) | . == sort;

# Figures of a record are held as a tool's are; what it proved there (path, counters) is not here to be looked at.
def figures:
  (.elapsed_s | result::positive_or_null("elapsed_s")) as $elapsed
  | if .latency_us == null then .
    else (.latency_us | to_entries[] | .key as $k | .value | if $k == "stddev" then result::natural_or_null($k) else result::positive_or_null("latency_us.\($k)") end | empty),
         if .latency_us | in_order | not then error("its percentiles are out of order")
         # of histograms, and with two decimals (perch.jq, perftest.jq)
         elif .latency_us.min != null and .latency_us.mean < .latency_us.min * 0.999 - 0.01 then error("its mean lies below its least")
         else . end end
  | if .bandwidth == null then .
    else .bandwidth.gbit_s |= result::positive("bandwidth.gbit_s")
      | if .bandwidth.bytes == null or $elapsed == null or (.kind | IN("transfer", "sum")) then . else .bandwidth |= result::possible_rate($elapsed; 0.02) end end
  | if .latency_us == null and .bandwidth == null then error("it has no figures") else . end;

def of_record:
  . as $r
  | (if .status == "ok" and .error == null then
       c::attempt($r | figures | del(.schema, .run, .path, .counters, .packets, .scope); o::failed("the record cannot be used: \(.)"))
     else o::failed("the record is of what was not measured: \(.error.message // .status | tostring)") end)
  | .record = ($r | {flow, test, repeat, scope, tool, client: {host: .client.host}, server: {host: .server.host}});

def has_names: all(.flow, .test, .client.host, .server.host, .tool.name; type == "string") and (.repeat | type) == "number"
  and (.flow | test("^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){3}$"));

def parts:
  .lines as $lines
  | [ range(0; $lines | length) as $i
      | ($lines[$i] | c::parsed) as $line
      | (if ($line | type) == "object" and ($line | has("flow")) then
           if $line | c::attempt(has_names; false) then $line | of_record else o::failed("the record has no flow, hosts or tool") end
         else perch::parts([$lines[$i]])[] end)
      | if .status == "ok" then . else .error.message |= sub("^line 1 of its output"; "the line") | .line = $i end ];

o::documents("perch"; parts; false)
