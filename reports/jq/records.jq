# Parts of records + what only the plan knows -> records, one for each `expect` entry of a flow, in its order.
import "common" as c;
import "planned" as planned;
import "perch" as perch;
import "iperf3" as iperf3;
import "iperf" as iperf;
import "perftest" as perftest;
import "outcome" as outcome;
import "counters" as counted;
import "path" as path;
import "packets" as packets;

# Fixed order of keys: a record's text is the same whoever made it.
def side($host; $address):
  { host: $host, device: (.device | c::text_or_null), address: (.address | c::text_or_null // $address) };

def link($layer):
  { rate_gbit_s: (.rate_gbit_s | if c::is_finite and . > 0 then c::rounded else null end),
    mtu_bytes: (.mtu_bytes | if c::is_finite and . > 0 then c::rounded else null end),
    layer: (.layer | c::text_or_null // $layer), hop_class: (.hop_class | c::text_or_null) };

def number_or_null: if type == "number" and . < 1e300 and . > -1e300 then c::round_number else null end;

# A paced run that could not keep up says so here, with the number of messages that it left out.
def rate:
  if type != "object" then null
  else { asked: (.asked | number_or_null), unit: (.unit | c::text_or_null), skipped: (.skipped | number_or_null),
         overloaded: (if .overloaded == null then null else .overloaded == true end) } end;

def yes_or_null: if type == "boolean" then . else null end;

def params($expect):
  { size_bytes: (.size_bytes // $expect.size_bytes | number_or_null), iterations: (.iterations | number_or_null),
    duration_s: (.duration_s | number_or_null), warmup: (.warmup | number_or_null), gap_us: (.gap_us | number_or_null),
    queue_pairs: (.queue_pairs | number_or_null), outstanding: (.outstanding | number_or_null),
    batch: (.batch | number_or_null), threads: (.threads | number_or_null), devices: (.devices | number_or_null),
    inline_bytes: (.inline_bytes | number_or_null), bidirectional: (if .bidirectional == null then null else .bidirectional == true end),
    completion: (.completion | c::text_or_null), memory: (.memory | c::text_or_null),
    verify: (if .verify == null then null else .verify == true end), clock: (.clock | c::text_or_null),
    rate: (.rate | rate),
    cq_moderation: (.cq_moderation | number_or_null), srq: (.srq | yes_or_null), rdma_cm: (.rdma_cm | yes_or_null),
    relaxed_ordering: (.relaxed_ordering | yes_or_null),
    gid_index: (.gid_index | number_or_null), sl: (.sl | number_or_null), traffic_class: (.traffic_class | number_or_null),
    retry: (.retry | number_or_null), rnr_retry: (.rnr_retry | number_or_null),
    timeout_exponent: (.timeout_exponent | number_or_null), huge: (.huge | number_or_null) };

# What the agents counted on each host over the whole flow, where they did: every size of the flow carries it.
def counters($client; $server):
  if $client == null and $server == null then null
  else {client: ($client | counted::as_recorded), server: ($server | counted::as_recorded)} end;

# An RDMA device without hardware, by its name or by the driver that its host reports; rdma_rxe and siw are the kernel's two.
def soft_device($host): type == "string" and (test("^(rxe|siw)") or ($host.rdma_drivers[.] // "" | test("^(rdma_rxe|siw|software)$")));

# Another witness, whatever a device is called: no card counts under the names of rxe's own counters. $counted: one side's of a record.
def soft_counters($counted; $device):
  ($device // "" | gsub("[. ]"; "_")) as $name
  | any($counted // {} | to_entries[]; (.value | type) == "object" and ($name == "" or (.key | startswith($name + "/")))
        and (.value | has("sent_pkts") or has("rcvd_pkts")));

# What the output itself shows of its worth: sockets, memory of one host and soft devices are software, whoever plans them.
def shown_scope($flow; $fabric; $hosts):
  if (.client.device | soft_device($hosts[$flow.client])) or (.server.device | soft_device($hosts[$flow.server]))
     or soft_counters(.counters.client; .client.device) or soft_counters(.counters.server; .server.device)
     or ((.link.layer // $fabric) | . == "loopback" or . == "shm") then "software"
  elif $flow.tool == "perftest" then "hardware"
  elif $flow.tool != "perch" or ((.backend // $flow.backend) | . == null or . == "tcp" or . == "null")
     or ((.provider // $flow.provider // "") | test("^(tcp|udp|shm|sm2|net|sockets)")) then "software"
  else "hardware" end;

# Hardware is what both hosts name a driver for that is not a soft device's: without it no counter makes it hardware.
def proven_hardware($p; $scope; $hosts; $flow):
  def without_driver:
    ("client", "server") as $role
    | ($p[$role].device // path::planned($flow; $role; "device")) as $device
    | select(($hosts[$flow[$role]].rdma_drivers[$device // ""] // "") == "")
    | "nothing shows that \($device // "the device") of \($flow[$role]) (\($role)) is hardware: its driver is not in environment.json";
  if $scope != "hardware" or .state != "proven" then .
  else (first(without_driver) // null) as $why
    | if $why == null then . else .state = "unknown" | .reason = $why end
  end;

def record($plan; $hosts; $flow; $expect):
  . as $p
  | ($plan.hosts[$flow.client].fabric) as $fabric
  | ([$flow.scope, ($p | shown_scope($flow; $fabric; $hosts))] | planned::weakest) as $scope
  | { schema: "perch.record/1", run: $plan.run, flow: $flow.id, test: $flow.test, repeat: $flow.repeat,
      $scope,
      tool: ($p.tool // {name: $flow.tool, version: null}),
      backend: ($p.backend // $flow.backend), provider: ($p.provider // $flow.provider),
      op: ($p.op // $flow.op), kind: ($p.kind // $flow.kind), definition: $p.definition,
      completion_level: $p.completion_level, connection: $p.connection,
      client: ($p.client | side($flow.client; $plan.hosts[$flow.client].address)),
      server: ($p.server | side($flow.server; $plan.hosts[$flow.server].address)),
      link: ($p.link | link($fabric)), params: ($p.params | params($expect)),
      started: $p.started, elapsed_s: $p.elapsed_s, latency_us: $p.latency_us, bandwidth: $p.bandwidth,
      intervals: ($p.intervals // []), histogram: $p.histogram, cpu: $p.cpu, path: ($p.path | proven_hardware($p; $scope; $hosts; $flow)), integrity: $p.integrity,
      tcp: $p.tcp, loss: $p.loss, stall: $p.stall, packets: $p.packets, counters: $p.counters, transfer: null, status: $p.status, error: $p.error };

def parts($flow; $files; $versions):
  if $flow.tool == "perch" then perch::parts($files.stdout)
  elif $flow.tool == "iperf3" then iperf3::parts($files.stdout)
  elif $flow.tool == "iperf" then iperf::parts($files.stdout; $files.stderr; $flow.client_argv; $versions.iperf)
  elif $flow.tool == "perftest" then perftest::parts($files.stdout; $files.stderr; $flow; $versions.perftest)
  else [{status: "error", error: {code: 6, message: "no reader for the tool \($flow.tool | tojson)", traffic: false}}]
  end;

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

def has_option($names): any(.[]; . as $a | $names | index([$a]) != null);

# The engine's queue pairs, with its defaults where the command names none. What it chooses by itself is not held.
def asked_of_verbs:
  . as $argv
  | def number($names; $default): $argv | c::option_value($names) // $default | amount;
    ["connection", ($argv | c::option_value(["--connection"]) // "rc" | ascii_upcase)],
    ["queue_pairs", number(["--queue-pairs"]; "1")], ["batch", number(["--batch"]; "1")],
    ["cq_moderation", number(["--cq-moderation"]; "1")], ["inline_bytes", number(["--inline"]; null)],
    # a connection manager settles the path MTU by itself
    (select($argv | has_option(["--rdma-cm"]) | not) | ["mtu_bytes", number(["--mtu"]; null)]),
    ["gid_index", number(["--gid-index"]; null)], ["sl", number(["--sl"]; "0")],
    ["traffic_class", number(["--traffic-class", "--tos"]; "0")], ["retry", number(["--retry"]; null)],
    ["rnr_retry", number(["--rnr-retry"]; null)], ["timeout_exponent", number(["--timeout-exponent"]; null)],
    ["huge", number(["--huge"]; null)],
    (("srq", "rdma-cm", "relaxed-ordering") | [gsub("-"; "_"), (("--" + .) as $o | $argv | has_option([$o]))]);

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

# What the planned command asks for, as a record's params say it: [name, planned value] each. A third, true, where an
# output that does not state it is none the worse.
def asked_for($tool):
  . as $argv
  | (if $tool == "perch" then
       ["completion", ($argv | c::option_value(["--completion"]) // "busy")],
       ["verify", (($argv | index("--verify")) != null)],
       ["bidirectional", (($argv | index("--bidirectional")) != null)],
       ["iterations", ($argv | c::option_value(["--iterations"]) | whole_or_null)],
       ["outstanding", ($argv | c::option_value(["--outstanding"]) | whole_or_null)],
       ["duration_s", ($argv | c::option_value(["--duration"]) | seconds)],
       (select(($argv | c::option_value(["--backend"])) == "verbs") | asked_of_verbs)
     elif $tool == "perftest" then
       ["bidirectional", (($argv | index("-b")) != null)],
       ["completion", (if $argv | index("-e") then "event" else "busy" end)],
       ["queue_pairs", ($argv | c::option_value(["-q", "--qp"]) // "1" | whole_or_null)],
       (asked_of_perftest | . + [true])
     else
       ["duration_s", ($argv | c::option_value(["-t", "--time"]) | seconds)],
       ["queue_pairs", ($argv | c::option_value(["-P", "--parallel"]) // "1" | whole_or_null)],
       (select($tool == "iperf3") | ["bidirectional", (($argv | index("--bidir")) != null)])
     end)
  | select(.[1] != null);

# Where a part states what was asked for.
def stated($name): if $name == "connection" then .connection elif $name == "mtu_bytes" then .link.mtu_bytes else .params[$name] end;

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
  | ( ((if $flow.tool == "perch" or $flow.tool == null then "backend", "provider", "op" elif $flow.tool == "perftest" then "op" else empty end), "kind") as $k
      | select($flow[$k] != null and ($p[$k] | fits_plan($k; $flow[$k]) | not) and ($flow.tool != null or $p[$k] != null))
      | "the plan asks for \($k) \($flow[$k]), the output says \($p[$k])" ),
    ( select($flow.tool != null)
      | $flow.client_argv // [] | asked_for($flow.tool)
      | . as $asked | ($p | stated($asked[0])) as $stated
      | select(($stated == null and $asked[2] == true) or ($stated | same_value($asked[1])) | not)
      | "the plan asks for \($asked[0]) \($asked[1]), the output says \($stated)" ),
    ( select($flow.tool == "perch") | $p | known_definitions as $known | select([.definition] | inside($known) | not)
      | "\(.kind) of \(.op) has no definition \(.definition | tojson)" ),
    ( select($p.params.duration_s != null and $p.elapsed_s != null)
      | ($p.params.duration_s - (if $flow.tool == "perftest" then 2 * ($flow.client_argv // [] | margin_s // ($p.params.duration_s / 2)) else 0 end)) as $planned
      | select($p.elapsed_s < 0.9 * $planned)
      | "it lasted \($p.elapsed_s) s of \($planned) s" );

# Another device or port than planned: its counters would prove the wrong path. Verbs' tools always name theirs.
def other_device($flow):
  . as $p
  | ("client", "server") as $role
  | ( path::planned($flow; $role; "device") as $asked | $p[$role].device as $said
      | select($asked != null and $said != $asked and ($said != null or $flow.backend == "verbs" or $flow.tool == "perftest"))
      | "the plan asks for device \($asked) on the \($role), the output says \($said)" ),
    ( path::port_of($flow; []; $role) as $asked | $p.params[$role | path::port_key] as $said
      | select($asked != null and $said != null and ($said | tostring) != $asked)
      | "the plan asks for port \($asked) on the \($role), the output says \($said)" );

# What was measured must be what was planned: the tool's word against the plan's flow and its command.
def as_planned($flow):
  if .status != "ok" then .
  else . as $p
    | ([limit(1; unlike($flow), other_device($flow))] | .[0]) as $why
    | if $why == null then $p else $p + {status: "error", error: {code: 6, message: $why, traffic: true}} end
  end;

def same_as($expect): . as $p | all($expect | keys_unsorted[]; $p.params[.] == $expect[.]);

# Size to part, so that a flow of many sizes is matched without comparing each with each.
def by_size:
  reduce .[] as $p ({}; (($p.params.size_bytes | tostring)) as $k | .[$k] = (.[$k] // []) + [$p]);

# A record that has no line of its own: the flow's cause, or the error line that ended it, says why. An error line
# without a size (no connection, half a line) is the record's own; one of another size only kept this one from running.
def unmeasured($cause; $ended; $some_measured; $expect):
  if $ended != null and $ended.params.size_bytes == null then
    { status: "error",
      error: { code: ($cause.code // $ended.error.code), traffic: ($ended.error.traffic or $some_measured),
               message: ([$cause.message, $ended.error.message] | map(select(. != null)) | join("; ")) } }
  elif $ended != null then
    { status: "not_measured",
      error: {code: $ended.error.code, traffic: false, message: ("not reached: " + $ended.error.message)} }
  elif $cause != null then
    { status: $cause.state,
      error: {code: $cause.code, message: $cause.message, traffic: ($some_measured and $cause.state == "error")} }
  else
    { status: "error",
      error: {code: 6, traffic: true, message: "the tool exited 0 but left no result for \($expect | tojson)"} }
  end;

# A command that measured everything and still failed: exit 1 is a limit missed and leaves the figures standing,
# any other code spoils the last one, so that the run cannot pass.
def with_exit($cause):
  if $cause == null or any(.[]; .status != "ok") then .
  else {code: $cause.code, message: $cause.message, traffic: true} as $error
    | if $cause.code == 1 then map(.error = $error)
      else .[:-1] + [.[-1] + {status: "error", error: $error}] end
  end;

# Without the server's word no figure of the flow counts, whatever its client printed.
def with_server($cause):
  if $cause == null then .
  else map(if .status == "ok" then . + {status: "error", error: {code: $cause.code, message: $cause.message, traffic: true}} else . end)
  end;

def matched($flow; $parts; $cause):
  ($parts | map(select(.params.size_bytes != null)) | by_size) as $sized
  | (first($parts[] | select(.status == "error")) // null) as $ended
  | any($parts[]; .status == "ok") as $some
  | [ $flow.expect[] as $expect
      | ($sized[$expect.size_bytes | tostring] // (if $expect.size_bytes == null then $parts else [] end)
         | map(select(same_as($expect)))) as $mine
      | if ($mine | length) > 1 then
          $mine[0] + {status: "error", error: {code: 6, traffic: true,
                      message: "the output holds \($mine | length) results for \($expect | tojson)"}}
        elif ($mine | length) == 1 then $mine[0] | as_planned($flow)
        else unmeasured($cause; $ended; $some; $expect) end ];

# Output that belongs to no expected record (garbage behind the last line, a size nobody asked for) makes all doubtful.
def with_rest($flow; $parts):
  if any(.[]; .status != "ok") then .
  else
    ([ $parts[] | . as $p | select(.params.size_bytes == null or (any($flow.expect[]; . as $e | $p | same_as($e)) | not))
       | .error.message // "it holds a result for \(.params.size_bytes) bytes, which was not asked for" ] | .[0]) as $why
    | if $why == null or ($parts | length) <= length then .
      else .[:-1] + [.[-1] + {status: "error", error: {code: 6, message: $why, traffic: true}}] end
  end;

# A result for another size than planned is named, for iperf picks a default where its option is misspelt.
def misfit($parts):
  if length == 1 and ($parts | length) == 1 and $parts[0].status == "ok" and .[0].params == null then
    [.[0] + {error: (.[0].error | .message = "the result is for \($parts[0].params.size_bytes) bytes, not as planned")}]
  else . end;

# $shared: another flow of the round uses one of the two hosts.
def flow_records($plan; $hosts; $flow; $shared; $files):
  ($hosts[$flow.client] // {}) as $host
  | outcome::read_side($files.client) as $client
  | outcome::read_side($files.server) as $server
  | outcome::belongs($plan.run; $flow; $client; $server) as $foreign
  | (if $foreign != null then $foreign else outcome::cause($flow; $client; $server; $host.agent; $files.stderr) end) as $cause
  | ( if $foreign != null or ($cause != null and $cause.state == "not_measured") then []
      elif $cause != null and $flow.tool != "perch" and ($files.stdout | all(test("^\\s*$"))) then []
      else parts($flow; $files; $host.versions // {}) end ) as $parts
  | ( matched($flow; $parts; $cause) | misfit($parts) | with_rest($flow; $parts) | with_exit($cause)
      | with_server(outcome::server_cause($flow; $server)) ) as $out
  | ($client.counters | counted::counted) as $of_client
  | ($server.counters | counted::counted) as $of_server
  | { counters: counters($of_client; $of_server), packets: packets::of_flow($of_client; $of_server; $shared), path: path::proof($plan; $hosts; $flow; $out; $of_client; $of_server; $shared) } as $both
  | range(0; $out | length) as $i
  | $out[$i] + $both | record($plan; $hosts; $flow; $flow.expect[$i]);
