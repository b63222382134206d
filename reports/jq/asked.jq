# What the planned command asks for, held against what the output says was done.
import "common" as c;
import "path" as path;

# Bytes of a huge page, from the memory's name where it is not said apart.
def huge: .huge // {"huge:2M": 2097152, "huge:1G": 1073741824}[.tx_memory // ""];

# "300ms" -> 0.3, as the engine reads it; a bare number is seconds.
def seconds:
  if . == null then null
  else (capture("^(?<n>[0-9.]+)(?<u>ms|us|ns|s|m|h)?$") // {n: "nan", u: null})
    | (.n | tonumber) * ({ns: 1e-9, us: 1e-6, ms: 0.001, m: 60, h: 3600}[.u // "s"] // 1)
  end;

def whole_or_null: if . == null then null else c::attempt(tonumber; .) end;

# "64K" -> 65536, as the engine reads it; null where it is no such number.
def amount:
  if . == null then null
  else (capture("^(?<n>[0-9]+)(?<u>[KMG])?$") // null)
    | if . == null then null else (.n | tonumber) * ({K: 1024, M: 1048576, G: 1073741824}[.u // ""] // 1) end
  end;

def has_option($names): [c::places($names[])] != [];

# The engine's queue pairs, with its defaults where the command names none. What it chooses by itself is not held.
def asked_of_verbs:
  . as $argv
  | def number($names; $default): $argv | c::option_value($names) // $default | amount;
    ["connection", ($argv | c::option_value(["--connection"]) // "rc" | ascii_upcase)],
    ["queue_pairs", number(["--queue-pairs"]; "1")], ["batch", number(["--batch"]; "1")],
    ["cq_moderation", number(["--cq-moderation"]; "1")], ["inline_bytes", number(["--inline"]; null)],
    # a connection manager settles the path MTU by itself, and what packets carry where no option says it
    (($argv | has_option(["--rdma-cm"])) as $managed | (if $managed then null else "0" end) as $default
     | (select($managed | not) | ["mtu_bytes", number(["--mtu"]; null)]),
       ["sl", number(["--sl"]; $default)], ["traffic_class", number(["--traffic-class", "--tos"]; $default)]),
    ["gid_index", number(["--gid-index"]; null)], ["retry", number(["--retry"]; null)],
    ["rnr_retry", number(["--rnr-retry"]; null)], ["timeout_exponent", number(["--timeout-exponent"]; null)],
    ["huge", number(["--huge"]; null)],
    (("srq", "rdma-cm", "relaxed-ordering") | [gsub("-"; "_"), (("--" + .) as $o | $argv | has_option([$o]))]);

# Where payload lies, by the last word that speaks of it: --memory cuda --tx-memory host. The engine numbers GPUs.
def asked_memory($way):
  . as $argv
  | [ range(0; length - 1) as $i
      | if $argv[$i] == "--huge" then "huge:" + $argv[$i + 1]
        elif $argv[$i] == "--memory" or $argv[$i] == "--\($way)-memory" then $argv[$i + 1]
        else empty end ]
  | last
  | if . == null then null
    else . as $word | (capture("^(?<kind>cuda|rocm|ze)(:(?<n>[0-9]+))?$") // null)
      | if . == null then $word else "\(.kind):\(.n // "0" | tonumber)" end
    end;

# A gap's bare number is microseconds, and only that of --gap.
def gap_us: if . == null then null elif test("^[0-9.]+$") then tonumber else seconds * 1e6 end;

# "500Mb/s" -> [0.5, "Gb/s"], as the engine states a rate.
def asked_rate:
  (capture("^(?<n>[0-9.]+)(?<k>[KMG]?)(?<u>msg/s|messages/s|b/s)$") // null)
  | if . == null then [null, null]
    else ((.n | tonumber) * ({K: 1e3, M: 1e6, G: 1e9}[.k] // 1)) as $n
      | if .u == "b/s" then [$n / 1e9, "Gb/s"] else [$n, "messages/s"] end
    end;

# What every backend of the engine states. A pause that nobody asked for, or memory, may go unsaid, but is held if said.
def asked_of_engine:
  . as $argv
  | ["warmup", ($argv | c::option_value(["--warmup"]) | amount)],
    ($argv | c::option_value(["--gap"]) | gap_us | ["gap_us", . // 0, . == null]),
    # a rate that nobody asked for would excuse a figure from its limit
    ($argv | c::option_value(["--rate"]) | ["paced", . != null], (select(. != null) | asked_rate | ["rate", .[0]], ["rate_unit", .[1]])),
    (("tx", "rx") as $way | $argv | asked_memory($way) | ["\($way)_memory", . // "host", . == null]),
    ($argv | has_option(["--bounce"]) | ["bounce", ., not]);

# The engine's lists, traffic class by name and atomics over libfabric, with its defaults, which may go unsaid.
def asked_of_libfabric:
  . as $argv
  | ($argv | c::option_value(["--op"])) as $op
  | def word($name; $default): $argv | c::option_value([$name]) // $default;
    def unasked($name): $argv | has_option([$name]) | not;
    ["batch", (word("--batch"; "1") | amount), unasked("--batch")],
    ["fabric_class", word("--traffic-class"; "default"), unasked("--traffic-class")],
    (select($op | IN("atomic-op", "fetch-atomic", "compare-atomic"))
     | ["atomic_op", word("--atomic-op"; if $op == "compare-atomic" then "cswap" else "sum" end)],
       ["atomic_type", word("--atomic-type"; "uint64")]);

# What may be off without having been asked for (a read has no immediate data, GPUs none, large writes are no high-rate
# puts) is held where it was; service and VNI as asked for, and as in use where that is said.
def asked_of_cassini:
  . as $argv
  | def given($option): $argv | has_option([$option]);
    def number($name): $argv | c::option_value([$name]) | amount;
    (number("--svc-id") | ["svc_id", .], ["client.svc_id", ., true]),
    (number("--server-svc-id") | ["server_svc_id", .], ["server.svc_id", ., true]),
    (number("--vni") | ["vni", .], ["client.vni", ., true], ["server.vni", ., true]),
    (("idc", "ll", "hrp") as $k | select(given("--no-" + $k)) | [$k, false]),
    ["rdzv", given("--rdzv")], (select(given("--unrestricted")) | ["unrestricted", true]),
    # unrestricted reads go through a match list (engine: keys_of)
    ["keys", ($argv | c::option_value(["--keys"]) // "client"
              | if . == "client" and given("--unrestricted") and ($argv | c::option_value(["--op"])) == "read"
                then "matching" else . end)];

# perftest's queue pairs: what its output states beside the command. It lowers depth and moderation to the number of
# messages, and moderation to the depth, 128 of sends and writes (force_dependecies in src/perftest_parameters.c).
def asked_of_perftest:
  . as $argv
  | def number($names): $argv | c::option_value($names) | amount;
    def least: map(select(. != null)) | min;
    number(["-n", "--iters"]) as $messages
    | number(["-q", "--qp"]) as $pairs
    | number(["-t", "--tx-depth"]) as $depth
    | number(["-Q", "--cq-mod"]) as $moderation
    | number(["-l", "--post_list"]) as $batch
    | ($depth // (if $argv[0] // "" | test("_(send|write)_bw$") then 128 else null end)) as $deep
    | ["connection", ($argv | c::option_value(["-c", "--connection"]) // "RC" | ascii_upcase)],
      (select($depth != null and ($batch // 1) <= $depth) | ["outstanding", ([$depth, $messages] | least) * ($pairs // 1)]),
      ["batch", $batch], (select($moderation != null and $deep != null) | ["cq_moderation", ([$moderation, $deep, $messages] | least)]),
      ["inline_bytes", number(["-I", "--inline_size"])], ["gid_index", number(["-x", "--gid-index"])],
      (select($argv | has_option(["-R", "--rdma_cm"]) | not) | ["mtu_bytes", number(["-m", "--mtu"])]),
      ["srq", ($argv | has_option(["--use-srq"]))], ["rdma_cm", ($argv | has_option(["-R", "--rdma_cm"]))],
      (select($argv | has_option(["--disable_pcie_relaxed"])) | ["relaxed_ordering", false]);

# -A CSWAP -C NE, as the engine names it (cxi.jq's atomic_word).
def atomic_of_cxi:
  (c::option_value(["-C", "--cswap-op"]) // "eq" | ascii_downcase) as $compare
  | c::option_value(["-A", "--atomic-op"])
  | if . == null then null
    else ascii_downcase
      | if . == "swap" then "write" elif . == "cswap" and $compare != "eq" then "cswap-" + $compare else . end
    end;

# -t 0 -g NVIDIA: cuda:0. Of a GPU of no said type nothing is held.
def gpu_of_cxi($options):
  c::option_value($options) as $number
  | {AMD: "rocm", NVIDIA: "cuda", INTEL: "ze"}[c::option_value(["-g", "--gpu-type"]) // "" | ascii_upcase] as $kind
  | if $number == null then null elif $kind == null then "" else "\($kind):\($number)" end;

# The cxi tools state what they were asked for; by duration the number of iterations is none. What only some versions
# print (rendezvous where it is off, restricted operations, a kind of memory) is held where it is said.
def asked_of_cxi($server_argv):
  . as $argv
  | def number($names): $argv | c::option_value($names) | amount;
    def given($names): $argv | has_option($names);
    ($argv | c::option_value(["--use-hp"]) | if . == null then "host" else "huge:" + ascii_upcase end) as $pages
    | ($argv[0] // "" | test("cxi_atomic_")) as $atomic
    | ["duration_s", number(["-D"])], (select(given(["-D"]) | not) | ["iterations", number(["-n"])]),
      ["bidirectional", given(["-b"])], ["batch", number(["-l"])], ["warmup", number(["--warmup"])],
      ["gap_us", number(["--latency-gap"])], ["svc_id", number(["-v"])],
      (("idc", "ll", "hrp") as $k | select(given(["--no-" + $k])) | [$k, false]),
      (given(["-R", "--rdzv"]) | ["rdzv", ., not]),
      # an atomic's packets are never restricted, whatever its line says
      (given(["--unrestricted"]) as $asked | select($asked or ($atomic | not)) | ["unrestricted", $asked, true]),
      (($argv | gpu_of_cxi(["-t", "--tx-gpu"])) // $pages | select(. != "") | ["tx_memory", ., . == "host"]),
      (($server_argv | gpu_of_cxi(["-r", "--rx-gpu"])) // $pages | select(. != "") | ["rx_memory", ., . == "host"]),
      (select($atomic)
       | ["atomic_op", ($argv | atomic_of_cxi)], ["fetching", given(["--fetching"])],
         ["atomic_type", ($argv | c::option_value(["-T", "--atomic-type"])
                          | if . == null then null else ascii_downcase | gsub("_"; "-") end)],
         ["keys", (if given(["--matching"]) then "matching" else "client" end)]);

# What the planned command asks for, as a record's params say it: [name, planned value] each. A third, true, where an
# output that does not state it is none the worse.
def asked_for($flow):
  . as $argv
  | $flow.tool as $tool
  | (if $tool == "perch" then
       ["completion", ($argv | c::option_value(["--completion"]) // "busy")],
       ["verify", (($argv | index("--verify")) != null)],
       ["bidirectional", (($argv | index("--bidirectional")) != null)],
       ["iterations", ($argv | c::option_value(["--iterations"]) | whole_or_null)],
       ["outstanding", ($argv | c::option_value(["--outstanding"]) | whole_or_null)],
       ["duration_s", ($argv | c::option_value(["--duration"]) | seconds)],
       asked_of_engine,
       ($argv | c::option_value(["--backend"])) as $backend
       | (select($backend == "verbs") | asked_of_verbs),
         # several connections are another question than one, sockets' too
         (select($backend != "verbs")
          | ["queue_pairs", ($argv | c::option_value(["--queue-pairs"]) // "1" | amount), ($argv | has_option(["--queue-pairs"]) | not)]),
         (select($backend | IN("ofi", "cxi")) | asked_of_libfabric),
         (select($backend == "cxi") | asked_of_cassini)
     elif $tool == "perftest" then
       ["bidirectional", (($argv | index("-b")) != null)],
       ["completion", (if $argv | index("-e") then "event" else "busy" end)],
       ["queue_pairs", ($argv | c::option_value(["-q", "--qp"]) // "1" | whole_or_null)],
       (asked_of_perftest | . + [true])
     elif $tool == "cxi" then asked_of_cxi($flow.server_argv // [])
     else
       ["duration_s", ($argv | c::option_value(["-t", "--time"]) | seconds)],
       ["queue_pairs", ($argv | c::option_value(["-P", "--parallel"]) // "1" | whole_or_null)],
       (select($tool == "iperf3") | ["bidirectional", (($argv | index("--bidir")) != null)])
     end)
  | select(.[1] != null);

# Where a part states what was asked for.
def stated($name): if $name == "connection" then .connection elif $name == "mtu_bytes" then .link.mtu_bytes
  elif $name == "huge" then .params | huge
  elif $name == "paced" then .params.rate != null
  elif $name == "rate" then .params.rate.asked?
  elif $name == "rate_unit" then .params.rate.unit?
  elif $name | contains(".") then getpath($name | split("."))
  else .params[$name] end;

# What perftest leaves out at both ends of its duration; without the option each version has its own.
def margin_s: c::option_value(["-f", "--margin"]) | seconds;

# The closed set of what an operation may be timed by.
def known_definitions:
  if .kind == "latency" then
    {send: ["half_round_trip"], write: ["half_round_trip", "completion"]}[.op // ""] // ["completion"]
  elif .op == "send" then ["receiver_acknowledged"]
  else ["initiator_completion"] end;

def same_value($planned): . == $planned or (type == "number" and ($planned | type) == "number" and (. - $planned | fabs) < 1e-6);

# libfabric names a provider with the layer on it: "tcp" is answered by "tcp;ofi_rxm".
def fits_plan($key; $planned):
  . == $planned or ($key == "provider" and type == "string" and startswith($planned + ";"));

def unlike($flow):
  . as $p
  | ( ((if $flow.tool == "perch" or $flow.tool == null then "backend", "provider", "op"
        elif $flow.tool == "perftest" or $flow.tool == "cxi" then "op"
        else empty end), "kind") as $k
      | select($flow[$k] != null and ($p[$k] | fits_plan($k; $flow[$k]) | not) and ($flow.tool != null or $p[$k] != null))
      | "the plan asks for \($k) \($flow[$k] | c::spoken), the output says \($p[$k] | c::spoken)" ),
    ( select($flow.tool != null)
      | $flow.client_argv // [] | asked_for($flow)
      | . as $asked | ($p | stated($asked[0])) as $stated
      | select(($stated == null and $asked[2] == true) or ($stated | same_value($asked[1])) | not)
      | "the plan asks for \($asked[0]) \($asked[1] | c::spoken), the output says \($stated | c::spoken)" ),
    ( select($flow.tool == "perch") | $p | known_definitions as $known | select([.definition] | inside($known) | not)
      | "\(.kind) of \(.op) has no definition \(.definition | tojson)" );

# A soak that was stopped did as it was told, with exit code 0.
def brief: if . >= 100 then round else (. * 10 | round) / 10 end;

# Less time than was asked for: the one thing in which two flows of one command may differ. Output: an error.
def too_short($flow):
  . as $p
  | select(.params.duration_s != null and .elapsed_s != null)
  | ($p.params.duration_s - (if $flow.tool == "perftest" then 2 * ($flow.client_argv // [] | margin_s // ($p.params.duration_s / 2)) else 0 end)) as $planned
  | select($p.elapsed_s < 0.9 * $planned)
  | if $p.soak.stopped == true then {code: 0, message: "it was stopped after \($p.soak.passed_s // $p.elapsed_s | brief) s of \($planned) s"}
    else {code: 6, message: "it lasted \($p.elapsed_s) s of \($planned) s"} end;

# Another device or port than planned: its counters would prove the wrong path. Verbs' tools always name theirs.
def other_device($flow):
  . as $p
  | ("client", "server") as $role
  # a simulated device has the name of the one that it stands for, and says so (its scope is never hardware)
  | ( path::planned($flow; $role; "device") as $asked | ($p[$role].device | strings | ltrimstr("sim_")) // null | . as $said
      | select($asked != null and $said != $asked
               and ($said != null or $flow.backend == "verbs" or $flow.tool == "perftest" or $flow.tool == "cxi"))
      | "the plan asks for device \($asked) on the \($role), the output says \($said)" ),
    ( path::port_of($flow; []; $role) as $asked | $p.params[$role | path::port_key] as $said
      | select($asked != null and $said != null and ($said | c::spoken) != $asked)
      | "the plan asks for port \($asked) on the \($role), the output says \($said | c::spoken)" );

# What was measured must be what was planned: the tool's word against the plan's flow and its command. A part that says
# word for word what one of the same words in the plan has said before ($known, of likeness()) is not asked again.
def as_planned($flow; $likeness; $known):
  if .status != "ok" then .
  else . as $p
    | ( if $likeness != null and $likeness == $known then [limit(1; too_short($flow))]
        else [limit(1; (unlike($flow) | {code: 6, message: .}), too_short($flow), (other_device($flow) | {code: 6, message: .}))] end | .[0] ) as $why
    | if $why == null then $p else $p + {status: "error", error: ($why + {traffic: true})} end
  end;
def as_planned($flow): as_planned($flow; null; null);

# All that unlike() and other_device() look at. Where the two ends' addresses stand in a command is told, and not which they are:
# they differ from flow to flow.
def likeness($flow; $addresses):
  def of_command: . // [] | [. - $addresses, (c::places($addresses[0])), null, (c::places($addresses[1]))];
  def side: if type == "object" then . + {host: null, address: null} else . end;
  [ ($flow | .tool, .backend, .provider, .op, .kind, (.client_argv, .server_argv | of_command)),
    .backend, .provider, .op, .kind, .definition, .connection, .params, .link.mtu_bytes, (.client, .server | side) ];
