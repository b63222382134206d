# The engine's transfers (perch transfer): what it would refuse, its command line, what it owes, and how long it takes.
import "units" as u {search: "./"};
import "engine" as engine {search: "./"};

def backends: ["verbs", "ofi", "tcp"];
def ops: ["write", "read"];

# Bounds of engine/src/job.h: JOB_BATCH_MAX, JOB_DEVICES_MAX, JOB_THREADS_MAX, JOB_CHUNKS_MAX, JOB_PIECES_MAX.
def largest_batch: 32768;
def most_devices: 8;
def most_threads: 64;
def most_chunks: 1024;
def most_pieces: 262144;

# Not every backend has these: queue pairs of verbs, and libfabric's class of traffic.
def of_verbs: ["mtu", "sl", "traffic_class", "tos", "retry", "rnr_retry", "timeout_exponent", "relaxed_ordering"];
def of_libfabric: ["fabric_class"];

def sizes: .params.size | u::sizes;

# "1:32768" -> [1, 2, 4, ..., 32768]; the engine's --batch has the same grammar.
def batches:
  .params.batch // 1
  | . as $given
  | (tostring | if test("^[0-9]{1,6}(:[0-9]{1,6})?$") then split(":") | map(tonumber) else [0] end) as $part
  | if any($part[]; . < 1 or . > largest_batch) or $part[-1] < $part[0]
      then error("batch \"\($given)\": write N or MIN:MAX (doubling), each from 1 to \(largest_batch)")
    else [$part[0] | recurse(if . * 2 > $part[-1] then empty else . * 2 end)] end;

# Pieces of one transfer.
def chunks($p; $size):
  ($p.chunk // $size | u::bytes) as $chunk
  | $size / ([$chunk, ($size / ($p.max_chunks // most_chunks) | ceil)] | max) | ceil;

# What the largest batch takes of a buffer at each end.
def needs($p; $size; $batch): ($batch - 1) * ($p.stride // $size | u::bytes) + $size;

# Threads share pairs evenly, or pairs share threads.
def threads_fit($threads; $pairs): $threads % $pairs == 0 or $pairs % $threads == 0;

def offset_contradiction($p; $size; $batch):
  if $p.stride != null and ($p.stride | u::bytes) < $size
    then "stride \($p.stride) is smaller than the largest transfer, so that transfers would lie on each other"
  elif $p.buffer != null and ($p.buffer | u::bytes) < needs($p; $size; $batch)
    then "a batch of \($batch) takes a buffer of \(needs($p; $size; $batch)) bytes, and buffer is \($p.buffer)"
  elif $p.chunk != null and ($p.chunk | u::bytes) < 1 then "chunk must be above 0"
  elif $p.chunk != null and ($p.chunk | u::bytes) >= $size then "chunk \($p.chunk) cuts nothing: no transfer is larger"
  elif $p.max_chunks != null and $p.chunk == null then "max_chunks belongs to chunk"
  elif $p.chunk != null and $batch * chunks($p; $size) > most_pieces
    then "a batch of \($batch) is cut into \($batch * chunks($p; $size)) pieces, and \(most_pieces) are possible"
  else empty end;

def device_contradiction($p):
  if $p.devices == null then empty
  elif .backend == "tcp" then "backend tcp has no devices: it goes where the hosts' addresses are routed"
  elif .provider == "shm" then "provider shm has no devices"
  elif $p.devices != "all" and ($p.devices | type != "number" or . < 1 or . > most_devices or . != floor)
    then "devices is a number from 1 to \(most_devices), or all"
  else empty end;

# Why a test cannot be measured at all, first reason only; empty when it can.
def contradiction:
  .params as $p
  | ($p.devices // 1) as $devices
  | (sizes | max) as $size
  | (batches | max) as $batch
  | .backend as $backend
  | (of_verbs + of_libfabric - ({verbs: of_verbs, ofi: of_libfabric}[$backend] // [])) as $others
  | if (backends | index([$backend])) == null
      then "plans know no transfers over backend \($backend); they know those over \(backends | join(", "))"
    elif (.op as $op | ops | index([$op])) == null then "a transfer is a write or a read, not op \(.op)"
    elif $backend != "ofi" and .provider != null then "backend \($backend) has no providers"
    elif any($others[]; $p[.] != null)
      then "backend \($backend) has no \(first($others[] | select($p[.] != null)))"
    elif $p.iterations != null and $p.duration != null then "iterations and duration exclude each other"
    elif $p.iterations == 0 then "iterations must be above 0"
    elif $p.completion == "event" and ($p.queue_pairs // 1) > 1 and $backend != "verbs"
      then "backend \($backend) waits by events for one of its queue_pairs only"
    elif $p.completion == "event" and $devices != "all" and ($p.threads // $devices) < $devices
      then "a thread waits by events for one device only: \($p.threads) threads do not do for \($devices)"
    elif $p.tos != null and $p.traffic_class != null then "tos and traffic_class are the same option"
    elif ($p.threads // 1) < 1 or ($p.threads // 1) > most_threads then "threads are 1 to \(most_threads)"
    elif $devices != "all" and $p.threads != null and (threads_fit($p.threads; $devices) | not)
      then "threads are a multiple or a divisor of the device pairs: \($p.threads) is neither of \($devices)"
    elif $devices != "all" and ($p.cross_rail // 0) >= $devices and ($p.cross_rail // 0) > 0
      then "cross_rail \($p.cross_rail) needs more than \($p.cross_rail) devices"
    else device_contradiction($p), offset_contradiction($p; $size; $batch)
    end;

# ---- devices --------------------------------------------------------------------------------------------------------

# A card is known to libfabric by its RDMA device where the provider drives it, else by the interface over it.
def by_interface($test): $test.backend == "ofi" and ($test.provider // "" | u::of_hardware | not);
def device_name($test): if by_interface($test) then .netdev else .name end;

# Why this host's devices do not do for a test; empty when they do.
def lacks($test):
  $test.params.devices as $asked
  | (.devices | length) as $has
  # the engine chooses a device where none is named, one
  | if $asked == null or ($asked == 1 and $has == 0 and $test.backend == "verbs") then empty
    elif $has == 0 then "names no device (perch_devices), and the test takes \($asked)"
    elif $asked != "all" and $has < $asked
      then "names \($has) of the \($asked) devices that the test takes (perch_devices)"
    else
      .devices[:if $asked == "all" then most_devices else $asked end] as $used
      | (first($used[] | select(device_name($test) == null) | .name) // null) as $nameless
      | if $nameless != null then "does not say which interface is over \($nameless) (netdev in perch_devices)"
        # one machine has one loopback: there several pairs are several endpoints of it
        elif .fabric != "loopback" and ([$used[] | device_name($test)] | length != (unique | length))
          then "names a device twice (perch_devices)"
        else empty end
    end;

# Device i of the one works with device i of the other: as many as both have.
def pairs($test; $client; $server):
  $test.params.devices // 1
  | if . == "all" then [$client, $server | .devices | length] + [most_devices] | min else . end;

# Of the devices in use, the setting that all of them share; `perch transfer` takes one for all.
def settings($key; $n): [.devices[:$n][] | .[$key]] | unique;

# Why two hosts cannot do a test with each other; empty when they can.
def unfit($test; $client; $server):
  pairs($test; $client; $server) as $n
  | $test.params as $p
  | if $p.threads != null and (threads_fit($p.threads; $n) | not)
      then "\($p.threads) threads are neither a multiple nor a divisor of \($n) device pairs"
    elif $p.completion == "event" and ($p.threads // $n) < $n
      then "a thread waits by events for one device only: \($p.threads) threads do not do for \($n)"
    elif ($p.cross_rail // 0) > 0 and $p.cross_rail >= $n
      then "cross_rail \($p.cross_rail) needs more than \($p.cross_rail) devices, and there are \($n)"
    elif $test.backend == "verbs" then
      first(("ib_port", "gid_index") as $key | ($client, $server) | settings($key; $n) | select(length > 1)
            | "devices of a host differ in \($key): \(map(tostring) | join(", ")); a transfer takes one for all")
    else empty end;

# With all devices: those that have no partner at the other end.
def alone($test; $client; $server):
  if $test.params.devices != "all" then empty
  else pairs($test; $client; $server) as $n | ($client, $server) | .devices[$n:][].name end;

# ---- the command line -----------------------------------------------------------------------------------------------

def device_options($test; $client; $server):
  pairs($test; $client; $server) as $n
  | def names: [.devices[:$n][] | device_name($test)] | join(",");
    def shared($key): settings($key; $n) | .[0];
    if $test.backend == "verbs" and $n == 1 then engine::device_options($client; $server)
    elif $test.params.devices == null then []
    elif $n == 1 then {device: ($client | names), server_device: ($server | names)} | engine::options
    else
      { devices: ($client | names), server_devices: ($server | names) }
      + (if $test.backend != "verbs" then {}
         else
           { ib_port: ($client | shared("ib_port")), gid_index: ($client | shared("gid_index")),
             server_ib_port: ($server | shared("ib_port")), server_gid_index: ($server | shared("gid_index")) } end)
      | engine::options
    end;

# A session is what is done unless told otherwise.
def argv($test; $client; $server):
  ["perch", "transfer", $server.address, "--backend", $test.backend]
  + (if $test.provider then ["--provider", $test.provider] else [] end)
  + ["--op", $test.op] + ($test.params | del(.devices, .session) | engine::options)
  + (if $test.params.session == false then ["--no-session"] else [] end)
  + device_options($test; $client; $server)
  + ["--bind", $client.address, "--json"];

# Every record that the flow owes, in the engine's order: of each size and batch one a pair of devices, and the sum.
def expect($test; $client; $server):
  pairs($test; $client; $server) as $n
  | [ $test | sizes[] as $size_bytes | batches[] as $batch
      | (range($n) | {kind: "transfer", $size_bytes, $batch, pair: .}), {kind: "sum", $size_bytes, $batch} ];

# ---- times ----------------------------------------------------------------------------------------------------------

# What a transfer in a batch costs of what a lone message waits. MORI-IO's page: 11 us alone, 0.14 us in a batch of
# 32768, which is an eightieth; software gains less. Posted one by one they wait in part for each other.
def in_a_batch: if .params.consecutive == true then 0.2 else 0.05 end;

# Seconds that a test takes, by what one message costs. $shared: pairs that work at the same time on the same cores.
# Warm-up and iterations are the engine's defaults, in batches. Checking reads every byte twice, at a gigabyte a second.
def measuring(message; $shared):
  .params as $p
  | (1 | message) as $lone
  | in_a_batch as $part
  | [sizes[] as $size | batches[] as $batch
     | ($lone + $batch * ($part * $lone + ($size | message) - $lone)) * $shared
       + (if $p.verify == true then 2 * $batch * $size / 1e9 else 0 end)
     | . as $each
     | $each * ($p.warmup // 10)
       + (if $p.duration then ($p.duration | u::seconds) + $each else $each * ($p.iterations // 100) end)]
  | add;
