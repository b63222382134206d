# Outputs of iperf 2 -> documents (import_outputs.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_outputs" as o;
import "iperf" as iperf;
import "iperf_csv" as csv;
import "results" as _;
import "common" as c;

def is_client: any(.[]; . == "-c" or startswith("--client") or test("^-c[0-9a-zA-Z]"));

def failed($why): [o::failed($why)];

# What iperf 2 prints of a stream without -e, and of one interval alone, could be taken for the total. Its command says
# that there are no intervals, or how long the whole is.
def of_text($argv):
  . as $lines
  | [range(0; $lines | length) as $i | $lines[$i] | select(test("^\\[ *[0-9]+\\] +[0-9.]+- *[0-9.]+ +sec")) | {$i, text: .}] as $rows
  | (first(range(0; $lines | length) as $i | select($lines[$i] | test("^Client connecting to .* UDP port |datagrams")) | $i) // null) as $udp
  | if $udp != null then failed("it is UDP's, of which iperf 2 knows only the sender's rate: measure it with iperf3 -u -J") | .[0].line = $udp
    elif any($lines[]; test("^\\[(\\*|FD)")) then failed("it went both ways at once, which is not read: measure it with iperf3 --bidir -J")
    # of each stream one line, up to a whole second: cut off after the first second it looks like that
    elif $argv == null and ($rows | length) > 0 and ($rows | map(.text | capture("^\\[ *(?<id>[0-9]+)").id) | length == (unique | length))
         and all($rows[]; .text | test("- *[0-9]+\\.0+ +sec")) then
      failed("its \(if ($rows | length) == 1 then "one line" else "one line of each stream" end) may be an interval, not the total") | .[0].line = $rows[-1].i
    else
      iperf::parts($lines; []; $argv // []; null)
      | map(if .status == "ok" then . else .line = ([range(0; $lines | length) | select($lines[.] | test("\\S"))] | last) end)
    end;

def parts:
  o::command("iperf"; is_client) as $argv
  | .lines
  | (if .[0] | csv::is_row or csv::is_heading then csv::parts(.; null) else of_text($argv) end)
  | map(.command = $argv);

o::documents("iperf"; parts; any(.lines[]; test("^Server listening on ")))
