# The engine's tests: what it would refuse, its command line, and how long it takes.
import "units" as u {search: "./"};

def backends: ["tcp", "ofi", "verbs", "cxi", "null"];

# Of libfabric: an operation and a type of its own (--atomic-op, --atomic-type).
def atomics: ["atomic-op", "fetch-atomic", "compare-atomic"];

# Operations by backend; the connection narrows them further.
def ops: {tcp: ["send"], verbs: ["send", "send-imm", "write", "write-imm", "read", "fetch-add", "compare-swap"]}[.]
  // (["send", "write", "read", "fetch-add", "compare-swap"] + if IN("ofi", "cxi") then atomics else [] end);
def connection_ops: {uc: ["send", "send-imm", "write", "write-imm"], ud: ["send", "send-imm"]};

# What only queue pairs have: the engine's options of the same names.
def queue_pair_params:
  ["connection", "mtu", "sl", "traffic_class", "tos", "queue_pairs", "batch", "cq_moderation", "inline", "srq", "rdma_cm", "relaxed_ordering",
   "retry", "rnr_retry", "timeout_exponent", "huge"];
def of_bandwidth: ["queue_pairs", "batch", "cq_moderation"];

def not_verbs: queue_pair_params - ["huge"] - if IN("ofi", "cxi") then ["batch"] else [] end;

# The engine's options that only some backends have, by the same names.
def only_of:
  { cxi: ["svc_id", "server_svc_id", "vni", "no_idc", "no_ll", "rdzv", "unrestricted", "no_hrp", "keys"],
    libfabric: ["fabric_class", "atomic_op", "atomic_type"] };

def largest_mtu: 4096; # InfiniBand Architecture Specification 1.7, section 7.7.8

# A message that may be lost names itself by its first word (engine: VERIFY_LOSSY_MIN).
def verify_lossy_min: 8;

# The engine's default of --outstanding for bandwidth.
def outstanding: .outstanding // 64;

# Of queue pairs; the test is the input, its parameters $p and its sizes $sizes.
def verbs_contradiction($p; $sizes):
  ($p.connection // "rc") as $connection
  | ($p.queue_pairs // 1) as $pairs
  | if connection_ops[$connection] != null and (.op as $op | connection_ops[$connection] | index([$op]) == null)
      then "connection \($connection) has no op \(.op)"
    elif $connection == "ud" and ($sizes | max) > ($p.mtu // largest_mtu)
      then "with connection ud a message is one packet, of \($p.mtu // largest_mtu) bytes at most"
    elif $connection != "rc" and ([$p.retry, $p.rnr_retry, $p.timeout_exponent] != [null, null, null])
      then "connection \($connection) acknowledges nothing, and so has no retry, rnr_retry or timeout_exponent"
    elif $connection != "rc" and $p.verify == true and ($sizes | min) < verify_lossy_min
      then "verify with connection \($connection) needs sizes of \(verify_lossy_min) bytes or more: a shorter message cannot say which one it is"
    elif ($p.inline // 0 | u::bytes) > 0 and (.op | IN("read", "fetch-add", "compare-swap"))
      then "op \(.op) sends no payload with its work request, and so has no inline"
    elif $p.srq == true and (.op | IN("send", "send-imm", "write-imm") | not) then "op \(.op) takes no receives, and so has no srq"
    elif $p.relaxed_ordering == true and .op == "write" and .kind == "latency" and $p.definition != "completion"
      then "write latency polls memory, which relaxed_ordering makes no proof: use op write-imm or definition completion"
    elif $p.tos != null and $p.traffic_class != null then "tos and traffic_class are the same option"
    elif .kind == "latency" and any(of_bandwidth[]; $p[.] != null) then "queue_pairs, batch and cq_moderation belong to bandwidth"
    elif .kind == "bandwidth" and ([$p.batch // 1, $p.cq_moderation // 1] | max) * $pairs > ($p | outstanding)
      then "queue_pairs x batch and queue_pairs x cq_moderation must not be above outstanding, \($p | outstanding)"
    else empty end;

# Why a test cannot be measured at all, first reason only; empty when it can. The engine has the same rules, but a host
# would find out only in the middle of the run.
def contradiction:
  .params as $p
  | ($p.size | u::sizes) as $sizes
  | .backend as $backend
  | if (backends | index([$backend])) == null then "unknown backend \($backend); known are \(backends | join(", "))"
    elif (.op as $op | $backend | ops | index([$op])) == null then
      "backend \($backend) has " + (if $backend == "tcp" then "op send only, not" else "no op" end) + " \(.op)"
    elif $backend != "ofi" and .provider != null then "backend \($backend) has no providers"
    elif $backend != "verbs" and any($backend | not_verbs[]; $p[.] != null) then
      "backend \($backend) has no \(first($backend | not_verbs[] | select($p[.] != null)))"
    elif $backend != "cxi" and any(only_of.cxi[]; $p[.] != null) then
      "backend \($backend) has no \(first(only_of.cxi[] | select($p[.] != null)))"
    elif ($backend | IN("cxi", "ofi") | not) and any(only_of.libfabric[]; $p[.] != null) then
      "backend \($backend) has no \(first(only_of.libfabric[] | select($p[.] != null)))"
    elif (.op as $op | atomics | index([$op])) == null and ($p.atomic_op != null or $p.atomic_type != null) then
      "op \(.op) has no atomic_op or atomic_type; they belong to \(atomics | join(", "))"
    elif $backend == "null" and $p.completion == "event" then "backend null cannot wait by events"
    elif $p.iterations != null and $p.duration != null then "iterations and duration exclude each other"
    elif $p.iterations == 0 then "iterations must be above 0"
    elif $p.gap != null and $p.rate != null then "gap and rate both set the pace"
    elif .kind == "bandwidth" and $p.definition != null then "definition belongs to latency"
    elif .kind == "bandwidth" and $p.gap != null then "gap belongs to latency; bandwidth is slowed with rate"
    elif .kind == "latency" and (($p.outstanding // 1) != 1 or $p.bidirectional == true)
      then "latency is one message at a time, one way: outstanding and bidirectional belong to bandwidth"
    elif $p.definition == "completion" and (.op | IN("send", "send-imm", "write-imm")) then "op \(.op) is only measured as half_round_trip"
    elif $p.definition == "half_round_trip" and (.op | IN("read", "fetch-add", "compare-swap")) then "op \(.op) is only measured as completion"
    elif $p.definition == "half_round_trip" and (.op as $op | atomics | index([$op]) != null)
      then "op \(.op) is only measured as completion"
    elif .op == "atomic-op" and $p.verify == true then "op atomic-op leaves nothing to verify"
    elif (.op | IN("fetch-add", "compare-swap")) and any($sizes[]; . % 8 != 0) then "op \(.op) works on 64-bit words: sizes are multiples of 8"
    elif $p.bidirectional == true and $p.interval != null and (.op | IN("send", "send-imm", "write-imm") | not)
      then "interval with bidirectional needs op send, send-imm or write-imm"
    elif $p.bidirectional == true and $p.verify == true and (.op | IN("fetch-add", "compare-swap"))
      then "what op \(.op) leaves cannot be verified in both directions"
    else verbs_contradiction($p; $sizes)
    end;

# {size: "8", verify: true} -> ["--size", "8", "--verify"]; a traffic class by name has the option of one by number.
def options:
  [to_entries[] | (if .key == "fabric_class" then .key = "traffic_class" else . end)
   | select(.value != false and .value != null)
   | "--" + (.key | gsub("_"; "-")), (select(.value != true) | .value | tostring)];

# Each side's device, as its inventory names it; what is not named the engine chooses, and says why.
def device_options($client; $server):
  [ ($client.devices[0] | {device: .name, ib_port, gid_index}),
    ($server.devices[0] | {server_device: .name, server_ib_port: .ib_port, server_gid_index: .gid_index}) ]
  | add | options;

# A Cassini NIC's device, and its service and VNI where the inventory names them and the test does not.
def cassini_options($params; $client; $server):
  ($client.devices[0] // {}) as $c | ($server.devices[0] // {}) as $s
  | { device: $c.name, server_device: $s.name, svc_id: ($params.svc_id // $c.svc_id),
      server_svc_id: ($params.server_svc_id // $s.svc_id), vni: ($params.vni // $c.vni) }
  | with_entries(select(.key as $k | $params[$k] == null))
  | options;

def argv($test; $client; $server):
  ["perch", {latency: "lat", bandwidth: "bw"}[$test.kind], $server.address, "--backend", $test.backend]
  + (if $test.provider then ["--provider", $test.provider] else [] end)
  + ["--op", $test.op] + ($test.params | options)
  + (if $test.backend == "verbs" then device_options($client; $server)
     elif $test.backend == "cxi" then cassini_options($test.params; $client; $server)
     else [] end)
  + ["--bind", $client.address, "--json"];

# Seconds that the sizes of a test take, by what one message costs. A gap comes after each message, a rate is a floor.
# Warm-up is the engine's default of 100 messages; the defaults of iterations are the engine's, too.
def measuring(message):
  .params as $p
  | (.kind == "latency") as $latency
  | [$p.size | u::sizes[] as $size
     | ($size | message + ($p.gap // 0 | u::seconds)) as $cost
     | ([$cost, ($p.rate // empty | u::pace($size))] | max) as $each
     | $each * ($p.warmup // 100)
       + (if $p.duration then ($p.duration | u::seconds) + $each
          else $each * ($p.iterations // (if $latency then 1000 else 5000 end)) end)]
  | add;
