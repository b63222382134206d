# What a cxi tool printed, taken apart: the title, the summary of its run, the rows of its tables. A column's meaning
# and unit come from its header; a line that fits nothing is an error that names it.
# Formats: HewlettPackard/shs-libcxi, man/cxi_*.1.md and utils/utils_common.c (tools 2.1.0 to 2.3.0).
import "common" as c;

def is_rule: test("^-{20,}[ \t]*$");
def is_blank: test("^[ \t]*$");
def is_samples_header: test("^ *(SendNum|WriteNum|ReadNum|OpNum)  +Latency\\[us\\] *$");
def is_header: test("^ *(Bytes|(Send|RDMA|Write|Read|AMO) Size\\[B\\])  +");
def is_figures: test("^[ \t]*-?([0-9]|inf|nan|-  )"; "i");

def at($lines; $i): "line \($i + 1) (\($lines[$i] | .[0:60] | tojson))";

def servers: error("it is the server's output; the figures are in its client's");

# ---- title and summary ----

# "    CXI RDMA Send Latency Test"
def titled:
  { "Send": "send", "Write": "write", "Read": "read", "Atomic": "atomic" } as $ops
  | capture("^ *CXI (RDMA (?<op>Send|Write|Read)|(?<amo>Atomic) Memory Operation) (?<kind>Latency|Bandwidth) Test *$")
  | {op: $ops[.op // .amo], kind: (.kind | ascii_downcase)};

def title_at($lines): first(range(0; $lines | length) | select($lines[.] | test("^ *CXI .* Test *$"))) // null;

# "Device           : cxi0"
def pair: capture("^(?<k>[A-Z][A-Za-z0-9 ()/-]*[A-Za-z0-9)]) *: *(?<v>.*[^ \t]|)[ \t]*$") // null;

# From the title to the next rule: names and values, and how many GPUs were found.
def summary($lines; $from):
  ([range($from + 1; $lines | length) | select($lines[.] | is_rule)] | .[0]) as $stop
  | if $stop == null then error("its summary has no end: truncated?")
    else
      { next: $stop,
        about: (reduce range($from + 1; $stop) as $i ({};
          ($lines[$i] | pair) as $pair
          | if $pair != null then .[$pair.k] = $pair.v
            elif $lines[$i] | test("^Found [0-9]+ GPU\\(s\\) *$") or is_blank then .
            else error("\(at($lines; $i)) belongs to no summary") end)) }
    end
  | if .about["Local (server)"] != null then servers else . end;

def number_said($about; $name):
  $about[$name]
  | if . == null then null
    else (capture("^(?<n>[0-9]+)( (seconds|microseconds))?$").n // error("\($name) is \(tojson)") | tonumber) end;

# HPE's tools print a number; Perch under their names says so where libfabric's provider chose.
def service($about): if $about["Service ID"] // "" | startswith("default") then null else number_said($about; "Service ID") end;

# "Enabled", "Disabled", and either with a word behind it.
def switch_said($about; $name):
  $about[$name]
  | if . == null then null
    elif startswith("Enabled") then true
    elif startswith("Disabled") then false
    else error("\($name) is \(tojson)") end;

# "NIC 0x13 PID 0 VNI 10", "NIC 0x12 PID 0 (loopback)"
def nic($about; $name):
  $about[$name]
  | if . == null then {address: null, vni: null}
    else (capture("^NIC (?<nic>0x[0-9a-fA-F]+) PID (?<pid>[0-9]+)( VNI (?<vni>[0-9]+))?( \\(loopback\\))?$")
          // error("\($name) is \(tojson)"))
      | {address: "NIC \(.nic) PID \(.pid)", vni: (.vni | if . == null then null else tonumber end)} end;

# Memory of one side, as the engine names it: host, huge:2M, cuda:0.
def memory($about; $side; $way):
  {"AMD": "rocm", "NVIDIA": "cuda", "INTEL": "ze"} as $runtimes
  | (($about.Hugepages // "") | capture("^Enabled \\((?<size>2M|1G) ").size // null) as $huge
  | $about["\($side) \($way) Mem"]
  | if . == null or . == "System" then (if $huge == null then "host" else "huge:" + $huge end)
    else (capture("^GPU (?<n>[0-9]+)$").n // error("\($side) \($way) Mem is \(tojson)")) as $n
      | ($about["\($side) GPU Type"] // $about["GPU Type"]) as $type
      | ($runtimes[$type // ""] // error("the type of GPU \($n) is \($type | tojson)")) + ":" + $n
    end;

def type_bytes:
  { INT8: 1, UINT8: 1, INT16: 2, UINT16: 2, INT32: 4, UINT32: 4, INT64: 8, UINT64: 8, FLOAT: 4, DOUBLE: 8,
    FLOAT_COMPLEX: 8, DOUBLE_COMPLEX: 16, UINT128: 16 };

# All sizes that the summary announces: from the least to the most, doubling. An atomic has that of its type.
def sizes($about; $op):
  if $op == "atomic" then
    $about["Atomic Type"] as $type | [type_bytes[$type // ""] // error("the atomic type is \($type | tojson)")]
  else
    (first("Send", "Write", "Read" | select(ascii_downcase == $op))) as $word
    | number_said($about; "\($word) Size") as $one
    | (if $one != null then [$one, $one]
       else [number_said($about; "Min \($word) Size"), number_said($about; "Max \($word) Size")] end)
    | if any(.[]; . == null or . <= 0) then error("its summary states no size") else . end
    | .[1] as $most | [.[0] | recurse(if . * 2 > $most then empty else . * 2 end)]
  end;

# "NON-FETCHING CSWAP EQ" -> {fetching, op, compare}
def atomic($about):
  def lower: if . == null then null else ascii_downcase end;
  $about["Atomic Op"]
  | if . == null then {fetching: null, op: null, compare: null}
    else (capture("^(?<non>NON-)?FETCHING (?<op>[A-Z]+)( (?<compare>EQ|NE|LE|LT|GE|GT))?$")
          // error("the atomic op is \(tojson)"))
      | {fetching: (.non == null), op: (.op | lower), compare: (.compare | lower)} end;

# ---- tables ----

def column:
  if test("^(Bytes|(Send|RDMA|Write|Read|AMO) Size\\[B\\])$") then {name: "size"}
  elif test("^(Sends|Writes|Reads|Ops)$") then {name: "count"}
  elif test("^(Min|Max|Mean|StdDev)\\[us\\]$") then {name: (capture("^(?<n>[A-Za-z]+)").n | ascii_downcase)}
  # size / microseconds: 10^6 bytes a second (print_bw_results)
  elif . == "BW[MB/s]" then {name: "rate", gbit: 0.008}
  elif . == "BW[Gb/s]" then {name: "rate", gbit: 1}
  elif . == "PktRate[Mpkt/s]" then {name: "packets"}
  elif . == "OpRate[M/s]" then {name: "messages"}
  else error("its table has the unknown column \(tojson)") end;

def columns($kind):
  [splits("  +") | select(. != "")] | map(gsub("^ +| +$"; "") | column)
  | . as $columns | map(.name) as $names
  | (if $kind == "latency" then ["size", "count", "min", "max", "mean", "stddev"] else ["size", "count", "rate"] end)
  | . as $wanted
  | if ($wanted - $names) != [] then error("its table has no \($wanted - $names | join(", "))")
    elif ($names | unique | length) != ($names | length) then error("its table has a column twice")
    else $columns end;

def cell($name):
  if . == "-" then servers
  elif test("^-?(inf|nan)"; "i") then error("\($name) is \(.), which is no result")
  elif test("^[0-9]+(\\.[0-9]+)?$") then tonumber
  else error("\($name) is \(tojson), which is no number") end;

def row($columns):
  [splits("[ \t]+") | select(. != "")] as $cells
  | if ($cells | length) != ($columns | length) then
      error("a row has \($cells | length) figures under \($columns | length) columns: truncated?")
    else reduce range(0; $cells | length) as $i ({}; .[$columns[$i].name] = ($cells[$i] | cell($columns[$i].name))) end;

def is_sample: test("^ *[0-9]+  +[0-9]+\\.[0-9]{3} *$");

# The samples from one line to another, by number.
def samples($lines; $from; $to):
  [ range($from; $to) as $i
    | $lines[$i] | capture("(?<n>[0-9]+)  +(?<us>[0-9.]+)")
    | if (.n | tonumber) == $i - $from then .us | tonumber
      else error("\(at($lines; $i)): sample \($i - $from) is missing") end ];

# One line that is no sample, and the samples behind it up to line $to. State: `in` which table, its columns, the rows
# so far, and the samples of the table to come. Only a rule closes a table.
def step($lines; $i; $to; $kind):
  $lines[$i] as $line
  | if $to > $i + 1 and ($line | is_samples_header | not) then error("\(at($lines; $i + 1)) belongs to no table")
    elif $line | is_rule then .in = null | .closed = true
    elif $line | is_blank then .
    elif $line | test("^See client for results") then servers
    elif .closed and ($line | is_samples_header) then
      .in = "samples" | .samples = samples($lines; $i + 1; $to) | .closed = false
    elif .closed and ($line | is_header) then
      ($line | c::attempt(columns($kind); error("\(at($lines; $i)): \(.)"))) as $columns
      | .in = "figures" | .columns = $columns | .closed = false
    elif .in == "samples" and ($line | is_figures) then error("\(at($lines; $i)) is no sample: truncated?")
    elif .in == "figures" and ($line | is_figures) then
      .rows += [{i: $i, columns, samples, text: $line}] | .samples = null
    else error("\(at($lines; $i)) belongs to no table") end;

# Samples may be a million, and are never gone through one by one with the state in hand: that would copy it each time.
def tables($lines; $from; $kind):
  ([range($from; $lines | length) | select($lines[.] | is_sample | not)] + [$lines | length]) as $marks
  | reduce range(0; ($marks | length) - 1) as $k ({in: null, columns: null, rows: [], samples: null, closed: true};
      step($lines; $marks[$k]; $marks[$k + 1]; $kind));
