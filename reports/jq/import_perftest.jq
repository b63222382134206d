# Outputs of perftest -> documents (import_outputs.jq). Notes often keep the table alone: what it was then stands in its
# command and in settings ("- **MTU**: 1024") before it.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_outputs" as o;
import "perftest" as perftest;
import "results" as _;
import "common" as c;

def programs: "ib_(send|write|read|atomic)_(bw|lat)|raw_ethernet_(bw|lat)";

# Options whose next word is their value (perftest_parameters.c, long_options and the string of short ones).
def takes_value:
  test("^-[dipmcSxlnsoqtuDfwyQrgPTIAABCEGJjKkVvuLMO]$")
  or (startswith("--") and (contains("=") | not)
      and (test("^--(all|bidirectional|report_gbits|report-gbits|CPU-freq|events|rdma_cm|no-peak|noPeak|dualport|odp|out_json|run_infinitely|use_hugepages|report-cycles|report-histogram|report-unsorted|disable_pcie_relaxed|use-srq|use_old_post_send|ipv6|force-link.*|perform_warm_up|cpu_util|report-both)$") | not));

# A client names its server, the last word that no option takes.
def is_client: length > 1 and (.[-1] | startswith("-") | not) and (.[-2] | takes_value | not);

# "- **Number of QPs**: 4" -> " Number of qps : 4", as perftest prints it
def names:
  ["Device", "Number of qps", "Transport type", "Connection type", "Using SRQ", "PCIe relax order", "TX depth", "Post List", "CQ Moderation", "Mtu",
   "Link type", "GID index", "Max inline data", "rdma_cm QPs"];
def setting:
  (capture("^ *[-*+] +(\\*\\*)?(?<k>[A-Za-z_ ]+)(\\*\\*)?:(\\*\\*)? *(?<v>.*[^ ]) *$") // null)
  | if . == null then empty
    else . as $s | names[] | select(ascii_downcase == ($s.k | ascii_downcase)) | " \(.) : \($s.v | gsub("`"; ""))" end;

def title($program):
  ($program | sub("^.*/"; "") | capture("^(ib|raw_ethernet)_((?<op>send|write|read|atomic)_)?(?<kind>bw|lat)$") // error("its command \($program | tojson) is unknown")) as $p
  | {send: "Send", write: "RDMA_Write", read: "RDMA_Read", atomic: "Atomic FETCH_AND_ADD"}[$p.op // "send"] as $op
  | if $op == "Atomic FETCH_AND_ADD" then error("its command does not say which atomic operation it is") else . end
  | "                    \($op) \(if $p.kind == "bw" then "BW" else "Latency" end) Test";

def both_ways: any(.[]; IN("-b", "--bidirectional"));

# What the command says of a table that stands alone, as perftest prints it. A queue pair is RC where -c does not say another.
def of_command:
  . as $argv
  | ( ["Device", ["-d", "--ib-dev"], null], ["Number of qps", ["-q", "--qp"], null], ["Connection type", ["-c", "--connection"], "RC"],
      ["GID index", ["-x", "--gid-index"], null], ["TX depth", ["-t", "--tx-depth"], null] )
  | . as $o | ($argv | c::option_value($o[1])) // $o[2] | select(. != null) | " \($o[0]) : \(.)";

# A table by itself, as perftest would have printed it around: what no one says stays unknown. What a setting says comes first.
def whole_text($command):
  if .bare | not then .
  elif .doc | not then error("it has a table without a title: it does not say which test it is")
  elif $command == null then error("no command stands before it: nothing says which test its table is of")
  else
    [title($command[0]) | if $command | both_ways then sub(" (?<k>BW|Latency) Test"; " Bidirectional \(.k) Test") else . end] as $title
    | ([.context[] | select(.kind == "S") | .text | setting] + [$command | of_command]) as $said
    | . as $one
    | .lines = ($title + $said + $one.lines + (if .ending == "fence" then ["-" * 40] else [] end))
    | .at = ([range(0; ($title + $said | length)) | $one.line] + $one.at + [$one.at[-1]])
  end;

# What only the command would say is not known where there is none. A send test both ways counts what it receives only by
# duration: a peak tells that it was none.
def without_command:
  if .status != "ok" then .
  elif .params.bidirectional and .op == "send" and .kind == "bandwidth" and .bandwidth.peak_gbit_s == null then
    o::failed("only its command says whether its iterations are of one way or of both")
  else .params |= (.sl = null | .traffic_class = null | .memory = null | .verify = null | .warmup = null | .clock = null) end;

# Text and command must be of one run. What memory other than the host's holds is not looked into.
def with_command($argv):
  def asked($names): $argv | c::option_value($names);
  if .status != "ok" then .
  else
    (asked(["-s", "--size"]) | if . == null then null else c::attempt(tonumber; null) end) as $size
    | asked(["-d", "--ib-dev"]) as $device
    | if $size != null and $size != .params.size_bytes then o::failed("its row is of \(.params.size_bytes) bytes, and its command asks for \($size)")
      elif $device != null and .client.device != null and .client.device != $device then
        o::failed("it is of device \(.client.device), and its command asks for \($device)")
      else
        .server.address = (.server.address // $argv[-1])
        | if any($argv[]; test("^--use[_-]")) then .params.memory = null else . end
      end
  end;

# The document has no unit: message rate x size says it, where it fits one of the two and not the other.
def of_json($argv):
  def read($more): perftest::parts(.; []; {client_argv: ($argv + $more)}; null);
  read(["--report_gbits"]) as $gb | read([]) as $mib
  | [$gb, $mib] | map(select(all(.[]; .status == "ok")))
  | if length == 0 then $mib elif length == 1 or .[0][0].kind == "latency" then .[0]
    else [o::failed("its unit cannot be told: its message rate x size fits MiB/s and Gb/s alike, or is missing")] end;

def parts:
  . as $one
  | o::command(programs; is_client) as $command
  | o::server_command(programs; is_client) as $server
  | (if any(.lines[]; test("^[ \t]*\\{")) then
       .lines | if any(($command // [])[]; . == "--report_gbits") then perftest::parts(.; []; {client_argv: $command}; null) else of_json($command // []) end
     else whole_text($command)
       | . as $text
       | perftest::parts(.lines; []; {client_argv: ($command // []), server_argv: ($server // [])}; null)
       | map(if .line == null then . else .line = ($text.at[.line] // $one.line) | .placed = true end)
     end)
  | map((if $command == null then without_command else with_command($command) end) | .command = $command);

o::documents("perftest"; parts; false)
