# Outputs of iperf3 (-J) -> documents (import_outputs.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_outputs" as o;
import "iperf3" as iperf3;
import "results" as _;
import "common" as c;

def is_client: any(.[]; . == "-c" or startswith("--client"));

# The line that a fault is of: where jq stopped reading, the document's own error, or its summary.
def line_of($lines; $fault):
  def first_of($mark): first(range(0; $lines | length) | select($lines[.] | test($mark))) // null;
  ($lines | join("\n") | [try (fromjson | "") catch .] | .[0]) as $said
  | if $said == "" then first_of("^\\s*\"error\"\\s*:") // first_of("^\\s*\"end\"\\s*:") // 0
    else [($said | capture("line (?<n>[0-9]+)").n | tonumber) - 1, ($lines | length) - 1] | min end;

def parts:
  . as $one
  | (c::attempt(o::command("iperf3"; is_client); null)) as $argv
  | if .lines[0] | test("^Connecting to host ") then [o::failed("iperf3's text is not read: measure with iperf3 -J")]
    else .lines as $lines | iperf3::parts($lines; ["TCP", "UDP"]) | map(if .status == "ok" then . else .line = line_of($lines; .) end) end
  | map(.command = $argv);

o::documents("iperf3"; parts; false)
