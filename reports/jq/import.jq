# "path<TAB>line" of many files -> records, or "import: FILE:LINE: what; what to do" (see reports/import). One file at a time.
import "common" as c;
import "recorded" as recorded;
import "perftest" as perftest;
import "iperf" as iperf;
import "iperf3" as iperf3;
import "cxi" as cxi;
import "mori" as mori;
import "perch" as perch;

def marks: {
  perftest: "^[ \t]*#bytes[ \t]+#iterations", perftest_json: "^[ \t]*\"?test_info\"?[ \t]*:", iperf3: "^[ \t]*\"start\"[ \t]*:",
  iperf: "^(Client connecting to|Server listening on) ", cxi: "^ *CXI .* Test *$", mori: "Initiator Rank [0-9]",
  perch: "^\\{.*\"schema\" *: *\"perch\\.record/1\"" };

# [{tool, line}]: the first line of each tool's mark.
def seen: . as $lines | [marks | to_entries[] | .key as $tool | .value as $mark
  | first(range(0; $lines | length) | select($lines[.] | test($mark)) | {$tool, line: (. + 1)})];

# The document has no unit: message rate x size says it, where it fits one of the two and not the other.
def of_json:
  perftest::parts(.; []; {client_argv: ["--report_gbits"]}; null) as $gb | perftest::parts(.; []; {}; null) as $mib
  | [$gb, $mib] | map(select(all(.[]; .status == "ok")))
  | if length == 0 then $mib elif length == 1 or .[0][0].kind == "latency" then .[0]
    else [{status: "error", error: {message: "its unit cannot be told from its message rate"}}] end;

# What iperf 2 prints of a stream without -e, and of one interval alone, could be taken for the total.
def of_iperf:
  . as $lines
  | [.[] | select(test("^\\[ *[0-9]+\\] +[0-9.]+- *[0-9.]+ +sec"))] as $rows
  | [$rows[] | capture("^\\[ *(?<id>[0-9]+)\\]").id] as $ids
  | if any($lines[]; test("^Server listening on ")) then [{status: "error", error: {message: "it is the server's output"}}]
    elif ($ids | unique | length) > 1 and iperf::streams($lines) == 1 then
      [{status: "error", error: {message: "it has several streams and does not say how many"}}]
    elif ($rows | length) == 1 and ($rows[0] | test("- *[0-9]+\\.0+ +sec")) then
      [{status: "error", error: {message: "its one line may be an interval, not the total"}}]
    else iperf::parts($lines; []; []; null) end;

# What only the command would say is not known, although the reader has its defaults. A send test both ways counts what it
# receives only by duration: a peak tells that it was none.
def without_command:
  if .status != "ok" then .
  elif .params.bidirectional and .op == "send" and .kind == "bandwidth" and .bandwidth.peak_gbit_s == null then
    {status: "error", error: {message: "only its command says whether its iterations are of one way or of both"}}
  else .params |= (.sl = null | .traffic_class = null | .memory = null | .verify = null | .warmup = null | .clock = null) end;

# A record counts what it timed; MORI-IO's tables alone do not, the configuration above them does.
def counted:
  if .status != "ok" then .
  elif .latency_us.count == null then {status: "error", error: {message: "nothing says how many batches were timed: no configuration"}}
  else .transfer.numa_node = null end;

def parts($tool):
  if $tool == "perftest" then perftest::parts(.; []; {}; null) | map(without_command)
  elif $tool == "perftest_json" then of_json | map(without_command)
  elif $tool == "iperf3" then iperf3::parts(.)
  elif $tool == "iperf" then of_iperf
  elif $tool == "cxi" then cxi::parts(.; []; {}; null)
  elif $tool == "mori" then mori::parts(.; []; {client_argv: []}; null) | map(counted)
  else perch::parts(.) end;

# Sockets, soft devices and simulations say so; nothing in an output proves hardware.
def scope:
  [.client.device, .server.device | strings] as $devices
  | if .simulated == true or any($devices[]; startswith("sim_")) then "simulated"
    elif any($devices[]; test("^(rxe|siw)")) or (.backend | IN("tcp", "null")) or (.link.layer | IN("loopback", "shm"))
      or (.provider // "" | test("^(tcp|udp|shm|sm2|net|sockets)")) or (.tool.name | IN("iperf", "iperf3")) then "software"
    else "imported" end;

def fault($file; $line; $why): "import: \($file):\($line): \($why | gsub("[\n\r]"; " ")); give the whole output of the client";

# Names as the schema has them: the file's own, and its number among those given, which tells two of one name apart.
def name_of($file): $file | sub("^.*/"; "") | gsub("[^A-Za-z0-9._-]"; "-") | sub("^(?<c>[.-])"; "_\(.c)");

def told($file; $number):
  . as $lines | seen as $seen
  | if $seen == [] then fault($file; 1; "it is of no known tool")
    elif ($seen | length) > 1 then fault($file; $seen | map(.line) | max; "it holds outputs of several tools: " + ($seen | map(.tool) | join(", ")))
    else
      $seen[0] as $one | ($one.tool | sub("_json"; "")) as $tool
      | ($lines | c::attempt(parts($one.tool); [{status: "error", error: {message: "it cannot be read: \(.)"}}])) as $parts
      | if $parts == [] then fault($file; $one.line; "it holds no result")
        else $parts[]
          | if .status != "ok" then fault($file; (.error.message | capture("line (?<n>[0-9]+)").n) // $one.line; .error.message)
            else . as $part
              | name_of($file) as $test
              | {id: "\($test)/unknown/unknown/\($number)", run: "imported", $test, repeat: 1, tool: $tool, scope: "imported", client: "unknown", server: "unknown"} as $flow
              | recorded::record({run: "imported", hosts: {unknown: {}}}; {}; $flow; {size_bytes: .params.size_bytes})
              | .scope = ($part | scope) | tojson end end end;

foreach (inputs, null) as $line ({file: null, number: 0, lines: [], out: null};
  .out = null
  | if $line == null then .out = {file, lines, number}
    else ($line | index("\t")) as $at | $line[:$at] as $file | $line[$at + 1:] as $text
      | if .file == $file then .lines += [$text]
        else (if .file == null then . else .out = {file, lines, number} end) | .file = $file | .number += 1 | .lines = [$text] end end;
  .out // empty | .file as $file | .number as $number | .lines | told($file; $number))
