# The tests of HPE's cxi tools (cxi_send_lat and its seven sisters): what they would refuse, their command lines, how
# long they take.
# Options and rules: HewlettPackard/shs-libcxi, man/cxi_*.1.md and parse_common_opt in utils/utils_common.c.
import "units" as u {search: "./"};

def atomics: ["atomic-op", "fetch-atomic", "compare-atomic"];
def is_atomic: .op as $op | atomics | index([$op]) != null;

def program($test):
  "cxi_" + (if $test | is_atomic then "atomic" else $test.op end) + {latency: "_lat", bandwidth: "_bw"}[$test.kind];

def ops: ["send", "write", "read"] + atomics;

def of_latency: ["warmup", "gap", "no_ll", "clock"];
def of_bandwidth: ["batch", "bidirectional", "no_hrp"];
def of_atomics: ["atomic_op", "atomic_type", "matching"];

def type_bytes:
  { int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, uint64: 8, float: 4, double: 8,
    "float-complex": 8, "double-complex": 16, uint128: 16 };

def power_of_two: if . == 1 then true elif . % 2 == 1 or . < 1 then false else . / 2 | power_of_two end;

# -s takes one size, or a range of powers of two.
def sizes:
  if is_atomic then [type_bytes[.params.atomic_type // "uint64"]] else .params.size | u::sizes end;

# The engine's words for an atomic operation -> the tool's, for its -A and -C.
def atomic_word: {"write": "swap"}[.] // if startswith("cswap") then "cswap" else . end;
def compare_word: if . == "cswap" then "eq" else ltrimstr("cswap-") end;
def default_operation: if .op == "compare-atomic" then "cswap" else "sum" end;

def contradiction:
  .params as $p
  | (.params.atomic_op // default_operation) as $operation
  | def whole: . == floor;
    if .backend != null or .provider != null then "cxi has no backend or provider"
    elif (.op as $op | ops | index([$op])) == null then "cxi has no op \(.op); it has \(ops | join(", "))"
    elif ($p.iterations == null) == ($p.duration == null) then "cxi needs either iterations or duration"
    elif is_atomic and $p.size != null then "an atomic has the size of its atomic_type"
    elif is_atomic | not and $p.size == null then "cxi needs a size"
    else empty end,
    (select(is_atomic | not) | first(of_atomics[] | select($p[.] != null) | "\(.) belongs to atomics")),
    (select(is_atomic)
     | first("tx_memory", "rx_memory", "rdzv" | select($p[.] != null) | "cxi's atomics have no \(.)")),
    (select((.op == "compare-atomic") != ($operation | startswith("cswap")))
     | "op \(.op) has no atomic_op \($operation)"),
    (select(sizes | length > 1)
     | select(any(sizes[0]; power_of_two | not) or ($p.size | tostring | split(":") | length) != 2)
     | "a range of cxi's is MIN:MAX, both powers of two"),
    (select($p.duration != null) | select($p.duration | u::seconds | whole | not) | "cxi takes whole seconds"),
    (select(.kind == "bandwidth") | first(of_latency[] | select($p[.] != null) | "\(.) belongs to latency")),
    (select(.kind == "latency") | first(of_bandwidth[] | select($p[.] != null) | "\(.) belongs to bandwidth")),
    (select($p.rdzv != null and .op != "send") | "cxi has rdzv with op send only"),
    (select($p.no_idc != null and .op == "read") | "op read sends no data, and so has no no_idc"),
    (select($p.no_hrp != null and (.op | IN("send", "read"))) | "op \(.op) has no high-rate puts"),
    (select($p.unrestricted != null and .op == "send") | "op send is always unrestricted"),
    (select($p.gap != null) | ($p.gap | u::seconds * 1e6) | select((. - round | fabs) > 1e-6)
     | "cxi takes whole microseconds for gap"),
    (($p.tx_memory, $p.rx_memory) | strings | select(test("^(host|huge:(2M|1G)|(cuda|rocm|ze):[0-9]+)$") | not)
     | "memory \(tojson): write host, huge:2M, huge:1G, or cuda:N, rocm:N or ze:N"),
    (select([$p.tx_memory, $p.rx_memory] | map(strings | select(startswith("huge"))) | unique | length > 1)
     | "cxi has one kind of huge pages");

def flag($option; $value):
  if $value == null or $value == false then [] elif $value == true then [$option] else [$option, "\($value)"] end;

# "cuda:0" -> ["-t", "0", "-g", "NVIDIA"]
def gpu($option; $memory):
  ($memory // "" | capture("^(?<kind>cuda|rocm|ze):(?<n>[0-9]+)$") // null)
  | if . == null then [] else [$option, .n, "-g", {cuda: "NVIDIA", rocm: "AMD", ze: "INTEL"}[.kind]] end;

# What each end is told by itself: its device, its service, the GPU that it sends from or receives into.
def own($device; $port):
  ["-d", $device.name] + flag("-v"; $device.svc_id) + ["-p", "\($port)"];

def options($test):
  $test.params as $p
  | ($p.atomic_op // ($test | default_operation)) as $operation
  | (if $test | is_atomic then
       ["-A", ($operation | atomic_word)]
       + (if $test.op == "compare-atomic" then ["-C", ($operation | compare_word)] else [] end)
       + ["-T", ($p.atomic_type // "uint64" | gsub("-"; "_"))] + flag("--fetching"; $test.op != "atomic-op")
       + flag("--matching"; $p.matching)
     else ["-s", ($test | sizes | if length == 1 then "\(.[0])" else "\(.[0]):\(.[-1])" end)] end)
  + (if $p.duration != null then ["-D", "\($p.duration | u::seconds)"] else ["-n", "\($p.iterations)"] end)
  + flag("--warmup"; $p.warmup)
  + flag("--latency-gap"; if $p.gap == null then null else $p.gap | u::seconds * 1e6 | round end)
  + flag("-l"; $p.batch) + flag("-b"; $p.bidirectional) + flag("-R"; $p.rdzv) + flag("--unrestricted"; $p.unrestricted)
  + flag("--no-hrp"; $p.no_hrp) + flag("--no-idc"; $p.no_idc) + flag("--no-ll"; $p.no_ll)
  + flag("--report-all"; if $test.kind == "latency" and $p.duration == null then $p.report_all else null end)
  + flag("-c"; {cycles: "cycles", monotonic: "clock_gettime"}[$p.clock // ""])
  + flag("--use-hp";
         [$p.tx_memory, $p.rx_memory] | map(strings | select(startswith("huge:")) | ltrimstr("huge:")) | .[0]);

def argv($test; $client; $server):
  program($test) as $program
  | $server.tool_ports.cxi as $port
  | { client: ([$program] + own($client.devices[0]; $port) + gpu("-t"; $test.params.tx_memory) + options($test)
               + [$server.address]),
      server: ([$program] + own($server.devices[0]; $port) + gpu("-r"; $test.params.rx_memory)) };

# Seconds that a test takes, by what one message costs. Its own defaults: a gap of 1 ms and 10 messages to warm up,
# which come before the clock of -D starts; lists of 256, of atomics 4,096.
def measuring(message):
  .params as $p
  | (is_atomic) as $atomic
  | [sizes[] as $size
     | ($size | message) as $each
     | if .kind == "latency" then
         ($each + ($p.gap // "1ms" | u::seconds)) as $cost
         | ($p.warmup // 10) * $cost + (if $p.duration then $p.duration | u::seconds else $cost * $p.iterations end)
       elif $p.duration then $p.duration | u::seconds
       else $each * $p.iterations * ($p.batch // if $atomic then 4096 else 256 end)
            * (if $p.bidirectional == true then 2 else 1 end)
       end]
  | add;
