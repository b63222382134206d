# Parts of records + what only the plan knows -> records, one for each `expect` entry of a flow, in its order.
import "common" as c;
import "perch" as perch;
import "iperf3" as iperf3;
import "iperf" as iperf;
import "outcome" as outcome;

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

def params($expect):
  { size_bytes: (.size_bytes // $expect.size_bytes | number_or_null), iterations: (.iterations | number_or_null),
    duration_s: (.duration_s | number_or_null), warmup: (.warmup | number_or_null), gap_us: (.gap_us | number_or_null),
    queue_pairs: (.queue_pairs | number_or_null), outstanding: (.outstanding | number_or_null),
    batch: (.batch | number_or_null), threads: (.threads | number_or_null), devices: (.devices | number_or_null),
    inline_bytes: (.inline_bytes | number_or_null), bidirectional: (if .bidirectional == null then null else .bidirectional == true end),
    completion: (.completion | c::text_or_null), memory: (.memory | c::text_or_null),
    verify: (if .verify == null then null else .verify == true end), clock: (.clock | c::text_or_null),
    rate: (.rate | rate) };

# What the agents counted on each host over the whole flow, where they did: every size of the flow carries it.
def counters($client; $server):
  if $client.counters == null and $server.counters == null then null
  else {client: ($client.counters // {} | map_values(number_or_null)), server: ($server.counters // {} | map_values(number_or_null))}
  end;

def record($plan; $flow; $expect):
  . as $p
  | ($plan.hosts[$flow.client].fabric) as $fabric
  | { schema: "perch.record/1", run: $plan.run, flow: $flow.id, test: $flow.test, repeat: $flow.repeat, scope: $flow.scope,
      tool: ($p.tool // {name: $flow.tool, version: null}),
      backend: ($p.backend // $flow.backend), provider: ($p.provider // $flow.provider),
      op: ($p.op // $flow.op), kind: ($p.kind // $flow.kind), definition: $p.definition,
      completion_level: $p.completion_level, connection: $p.connection,
      client: ($p.client | side($flow.client; $plan.hosts[$flow.client].address)),
      server: ($p.server | side($flow.server; $plan.hosts[$flow.server].address)),
      link: ($p.link | link($fabric)), params: ($p.params | params($expect)),
      started: $p.started, elapsed_s: $p.elapsed_s, latency_us: $p.latency_us, bandwidth: $p.bandwidth,
      intervals: ($p.intervals // []), histogram: $p.histogram, cpu: $p.cpu, path: null, integrity: $p.integrity,
      tcp: $p.tcp, counters: $p.counters, transfer: null, status: $p.status, error: $p.error };

def parts($flow; $files; $versions):
  if $flow.tool == "perch" then perch::parts($files.stdout)
  elif $flow.tool == "iperf3" then iperf3::parts($files.stdout)
  elif $flow.tool == "iperf" then iperf::parts($files.stdout; $files.stderr; $flow.client_argv; $versions.iperf)
  else [{status: "error", error: {code: 6, message: "no reader for the tool \($flow.tool | tojson)", traffic: false}}]
  end;

# What was measured must be what was planned: the tool's word for backend, kind and operation against the plan's.
def as_planned($flow):
  . as $p
  | first(("backend", "kind", "op") as $k
      | select($p[$k] != null and $flow[$k] != null and $p[$k] != $flow[$k])
      | "the plan asks for \($k) \($flow[$k]), the output says \($p[$k])")
    // null
  | if . == null or $p.status != "ok" then $p
    else . as $why | $p + {status: "error", error: {code: 6, message: $why, traffic: true}} end;

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

# A result for another size than planned is named, for iperf picks a default where its option is misspelt.
def misfit($parts):
  if length == 1 and ($parts | length) == 1 and $parts[0].status == "ok" and .[0].params == null then
    [.[0] + {error: (.[0].error | .message = "the result is for \($parts[0].params.size_bytes) bytes, not as planned")}]
  else . end;

def flow_records($plan; $hosts; $flow; $files):
  ($hosts[$flow.client] // {}) as $host
  | outcome::read_side($files.client) as $client
  | outcome::read_side($files.server) as $server
  | outcome::cause($flow; $client; $server; $host.agent; $files.stderr) as $cause
  | ( if $cause != null and $cause.state == "not_measured" then []
      elif $cause != null and $flow.tool != "perch" and ($files.stdout | all(test("^\\s*$"))) then []
      else parts($flow; $files; $host.versions // {}) end ) as $parts
  | (matched($flow; $parts; $cause) | misfit($parts) | with_exit($cause)) as $out
  | range(0; $out | length) as $i
  | $out[$i] + {counters: counters($client; $server)} | record($plan; $flow; $flow.expect[$i]);
