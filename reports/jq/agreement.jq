# The engine's verbs backend beside perftest, its cxi backend beside HPE's cxi tools: only flows with the same ends,
# operation, size, definition and settings are compared, and whether they agree is said by a limit whose metric begins with "agreement.".
import "common" as c;
import "limits" as limits;

def sep: "\t";

def side:
  if .tool.name == "perftest" or .tool.name == "cxi" then .tool.name
  elif .tool.name == "perch" and (.backend == "verbs" or .backend == "cxi") then "engine"
  else null end;

# What makes two flows the same question. Verified and paced ones answer another.
def question:
  [(if .tool.name == "cxi" or .backend == "cxi" then "cxi" else "verbs" end)]
  + [.kind, .op, .connection, .client.host, .server.host, .params.bidirectional == true, .params.size_bytes];

# The largest write that goes as a high-rate put (HewlettPackard/shs-libcxi, man/cxi_write_bw.1.md, --no-hrp).
def hrp_bytes: 2048;

# Settings that must be equal where both sides state them; perftest does not state all of its own.
def settings:
  { definition, completion_level, client_device: .client.device, server_device: .server.device, mtu: .link.mtu_bytes,
    completion: .params.completion, queue_pairs: .params.queue_pairs, outstanding: .params.outstanding, batch: .params.batch,
    cq_moderation: .params.cq_moderation,
    # a read or an atomic sends no payload that could be inline
    inline_bytes: (if .op | IN("send", "send-imm", "write", "write-imm") then .params.inline_bytes else null end),
    gid_index: .params.gid_index, srq: .params.srq, rdma_cm: .params.rdma_cm,
    relaxed_ordering: .params.relaxed_ordering, sl: .params.sl, traffic_class: .params.traffic_class }
  + if .tool.name != "cxi" and .backend != "cxi" then {}
    else
      (.op | IN("atomic-op", "fetch-atomic", "compare-atomic", "fetch-add", "compare-swap")) as $atomic
      | .params
      | { gap_us, svc_id, vni, idc, ll, rdzv, keys, atomic_op, atomic_type, tx_memory, rx_memory,
          # the tools say whether it is on, the engine whether this size has it
          hrp: (if (.size_bytes // 0) > hrp_bytes then null else .hrp end),
          # an atomic's packets are never restricted (docs/options.md), though the tools' line says so
          unrestricted: (if $atomic then null else .unrestricted end) }
    end;

def supported($name): if .[$name] != null and c::supports(.count; c::quantile_of[$name]) then .[$name] else null end;

def figures:
  if .kind == "latency" then .latency_us | {p50_us: .p50, p99_us: supported("p99"), mean_us: .mean}
  else {gbit_s: .bandwidth.gbit_s} end;

# For tally.jq: this record's place, or null.
def entry:
  side as $side
  # none of these tools but the engine has transfers
  # of hosts that nobody names, nobody knows that they are the same
  | if $side == null or .client.host == "unknown" or (.kind | IN("transfer", "sum")) or .params.verify == true or .params.rate != null
       # a pause between messages is a setting of the cxi tools: both must have it
       or ((.params.gap_us // 0) > 0 and .tool.name != "cxi" and .backend != "cxi") then null
    else { key: ([(question | tojson), $side, (settings | tojson)] | join(sep)),
           values: {figures: figures, question: question, record: {tool, op, kind, backend, definition, scope, test, client, server, link, params}} }
    end;

def unlike($other; $name):
  . as $mine
  | [keys_unsorted[] | select($mine[.] != null and $other[.] != null and $mine[.] != $other[.])
     | "\(.): engine \($mine[.]), \($name) \($other[.])"];

def unlike($other): unlike($other; "perftest");

def median($name):
  map(.value.figures[$name] | select(. != null)) | sort | length as $n
  | if $n == 0 then null elif $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end
  | if . == null then null else c::rounded end;

# The cxi tools report a mean always, percentiles only with --report-all.
def metrics($family):
  if . == "bandwidth" then ["gbit_s"] else ["p50_us", "p99_us"] + if $family == "cxi" then ["mean_us"] else [] end end;
def titles: {p50_us: "median", p99_us: "p99", mean_us: "mean", gbit_s: "bandwidth"};

# The limit that speaks of this pair: by what the engine's record says; a limit that names a tool means the engine's.
def bound($limits; $record; $metric):
  first($limits[] | select(.metric == "agreement.\($metric)" and .removed == null)
        | select(.scope | to_entries | all(.[]; .key as $k | .value | limits::fits($record | limits::facet($k))))) // null;

# Settings groups of one side -> {side, settings, entries, question, record}.
def groups($entries):
  $entries
  | group_by(.parts[0:3])
  | map({side: .[0].parts[1], settings: (.[0].parts[2] | fromjson), entries: ., question: .[0].value.question, record: .[0].value.record,
         evidence: (map(.parts[3])[0:2])});

# What may be said of one figure of a pair.
def state($limit; $ratio; $metric):
  if $metric == "p99_us" then {state: "not_judged", reason: "tails are shown, not judged"}
  elif $ratio == null then {state: "not_judged", reason: "one of them does not report it"}
  elif $limit == null then {state: "not_judged", reason: "the run's limits have no agreement.\($metric) for it"}
  elif ($limit.bound.min != null and $ratio < $limit.bound.min) or ($limit.bound.max != null and $ratio > $limit.bound.max)
  then {state: "disagree", reason: null}
  else {state: "agree", reason: null} end;

def row($engine; $perftest; $limits):
  $engine.question[0] as $family
  | (if $family == "cxi" then "cxi" else "perftest" end) as $peer
  | ($engine.settings | unlike($perftest.settings; $peer)) as $unlike
  | ($engine.question[1] | metrics($family))[] as $metric
  | ($engine.entries | median($metric)) as $e
  | ($perftest.entries | median($metric)) as $p
  | (if $unlike == [] then c::ratio($e; $p) else null end) as $ratio
  # no limit speaks of figures whose definitions differ: the design never compares them
  | (if any($unlike[]; startswith("definition: ")) then null else bound($limits; $engine.record; $metric) end) as $limit
  | $engine.question[1:] as $q
  | { kind: $q[0], op: $q[1], connection: $q[2], client: $q[3], server: $q[4], bidirectional: $q[5],
      size_bytes: $q[6], metric: $metric, title: titles[$metric], unit: (if $metric == "gbit_s" then "Gb/s" else "us" end), scope: $engine.record.scope,
      definition: $engine.settings.definition, engine: $e, perftest: $p, $ratio, limit: ($limit.id // null),
      evidence: ($engine.evidence + $perftest.evidence) }
    + (if $family == "cxi" then {peer: "the cxi tools"} else {} end)
    + if $unlike != [] then {state: "not_judged", reason: "not alike (\($unlike[0:3] | join("; ")))"} else state($limit; $ratio; $metric) end;

# Of every question that both answered: the pair that is alike, else the one that is least unlike.
def rows($entries; $limits):
  groups($entries) | group_by(.question) | sort_by(.[0].question)
  | [ .[] | (map(select(.side == "engine"))) as $engine | (map(select(.side != "engine"))) as $perftest
      | select($engine != [] and $perftest != [])
      | [$engine[] as $e | $perftest[] as $p | {$e, $p, unlike: ($e.settings | unlike($p.settings; "") | length)}]
      | (map(select(.unlike == 0)) as $alike | if $alike == [] then [min_by(.unlike)] else $alike end)[]
      | row(.e; .p; $limits) ];

# Who answered alone: a perftest flow without the engine's, or the other way round.
def alone($entries):
  groups($entries) | group_by(.question)
  | [.[] | select((map(.side) | unique | length) == 1) | {side: .[0].side, kind: .[0].question[1], op: .[0].question[2]}]
  | unique;
