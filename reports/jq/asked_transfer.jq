# What the planned command of a transfer asks for, held against what the output says was done: asked.jq's for this kind.
import "common" as c;
import "asked" as asked;
import "path" as path;
import "transfer" as transfer;

# The engine's defaults (perch transfer --help).
def iterations: 100;
def warmup: 10;
def most_chunks: 1024;

def number($name): c::option_value([$name]) | asked::amount;
def given($name): asked::has_option([$name]);

# Bytes of the pieces that a transfer of the given size is cut into: larger where there would be too many of them.
def chunk($size):
  number("--chunk") as $chunk
  | if $chunk == null then $size
    else [([$chunk, ($size / (number("--max-chunks") // most_chunks) | ceil)] | max), $size] | min end;
def chunks($size): $size / chunk($size) | ceil;

# Transfers that the plan asks of a part with $n pairs of devices: null for a time. A duration has no number of batches.
def batches: number("--iterations") // if given("--duration") then null else iterations end;
def transfers($flow; $n):
  ($flow.client_argv | batches) as $batches
  | (.params.threads = ($flow.client_argv | number("--threads") // $n) | transfer::lanes($n)) as $lanes
  | if $batches == null then null else $batches * .params.batch * $lanes end;

# As a record's params say it: [name, planned value] each. A third, true, where an output may leave it out. $n: pairs.
def asked_for($size; $n):
  . as $argv
  | (c::option_value(["--duration"]) | asked::seconds) as $duration
  | ["completion", c::option_value(["--completion"]) // "busy"], ["verify", given("--verify")],
    ["bidirectional", false, true], ["duration_s", $duration],
    ["iterations", batches],
    ["warmup", number("--warmup") // warmup], ["queue_pairs", number("--queue-pairs") // 1],
    ["threads", number("--threads") // $n], ["devices", $n], ["consecutive", given("--consecutive")],
    ["session", (given("--no-session") | not)], ["cross_rail", number("--cross-rail") // 0],
    ["outstanding", number("--outstanding")], ["buffer_bytes", number("--buffer")], ["chunks", chunks($size)],
    (("tx", "rx") as $way | $argv | asked::asked_memory($way) | ["\($way)_memory", . // "host", . == null]),
    # what queue pairs have beside that; batch is the transfer's own there
    (select(c::option_value(["--backend"]) == "verbs") | asked::asked_of_verbs
     | select(.[0] | IN("mtu_bytes", "gid_index", "sl", "traffic_class", "retry", "rnr_retry", "timeout_exponent"))
     | . + [.[0] | IN("sl", "traffic_class")]),
    (select(given("--relaxed-ordering")) | ["relaxed_ordering", true]),
    (select(c::option_value(["--backend"]) == "ofi") | ["fabric_class", c::option_value(["--traffic-class"])])
  | select(.[1] != null);

# Distances that were not asked for: null. A stride of the transfer's own size is none.
def unasked($argv):
  ( .params.stride_bytes as $stride | ($argv | number("--stride")) as $planned
    | select(($planned // .params.size_bytes) != ($stride // .params.size_bytes))
    | "the plan asks for stride \($planned | c::spoken), the output says \($stride | c::spoken)" ),
  # what is not cut has no size of its own
  ( .params.size_bytes as $size | ($argv | chunk($size)) as $planned
    | select((.params.chunk_bytes // $size) != $planned)
    | "the plan asks for chunks of \($planned) bytes, the output says \(.params.chunk_bytes | c::spoken)" );

# The devices of this part's pair, as planned; of the sum all of them, in any order.
def devices($flow; $role):
  path::planned_devices($flow; $role) as $names
  | if $names == null then null
    elif .kind == "sum" then $names | sort
    elif $role == "client" then [$names[.transfer.pair]]
    else
      ($flow.client_argv | number("--cross-rail") // 0) as $offset
      | [$names[(.transfer.pair + $offset) % ($names | length)]]
    end;

def other_devices($flow):
  . as $p
  | ("client", "server") as $role
  | devices($flow; $role) as $asked
  | select($asked != null and ($p[$role].device // "" | split(",") | sort) != $asked)
  | "the plan asks for device \($asked | join(",")) on the \($role), the output says \($p[$role].device)";

def unlike($flow):
  . as $p
  | ([$flow.expect[].pair | select(. != null)] | max // 0 | . + 1) as $n
  | ( ("backend", "provider", "op") as $k
      | select($flow[$k] != null and ($p[$k] | asked::fits_plan($k; $flow[$k]) | not))
      | "the plan asks for \($k) \($flow[$k] | c::spoken), the output says \($p[$k] | c::spoken)" ),
    ( $flow.client_argv | asked_for($p.params.size_bytes; $n)
      | . as $asked | ($p | asked::stated($asked[0])) as $stated
      | select(($stated == null and $asked[2] == true) or ($stated | asked::same_value($asked[1])) | not)
      | "the plan asks for \($asked[0]) \($asked[1] | c::spoken), the output says \($stated | c::spoken)" ),
    unasked($flow.client_argv),
    ( select(.transfer.pairs != $n) | "the plan asks for \($n) pairs of devices, the output says \(.transfer.pairs | c::spoken)" ),
    ( select(.definition != "batch_completion") | "\(.kind) has no definition \(.definition | tojson)" ),
    ( transfers($flow; $n) as $asked | select(.transfer.asked != $asked)
      | "the plan asks for \($asked) transfers, the output says \(.transfer.asked | c::spoken)" ),
    other_devices($flow);

# What was measured must be what was planned: the engine's word against the plan's flow and its command.
def as_planned($flow):
  if .status != "ok" then .
  else ([limit(1; unlike($flow))] | .[0]) as $why
    | if $why == null then . else . + {status: "error", error: {code: 6, message: $why, traffic: true}} end
  end;
