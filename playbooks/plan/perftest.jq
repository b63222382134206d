# perftest's tests (https://github.com/linux-rdma/perftest): what it would refuse, its command lines, how long it takes.
# Options and rules are those of its versions 4.5 and 25.01, src/perftest_parameters.c.
import "units" as u {search: "./"};

def program($test):
  "ib_" + ({"fetch-add": "atomic", "compare-swap": "atomic"}[$test.op] // $test.op) + {latency: "_lat", bandwidth: "_bw"}[$test.kind];

def ops: ["send", "write", "read", "fetch-add", "compare-swap"];
def connection_ops: {uc: ["send", "write"], ud: ["send"]};
def one_word: .op | IN("fetch-add", "compare-swap"); # 8 bytes, always

# -a: from 2 bytes to 8 MiB, doubling.
def all_sizes: [2 | recurse(if . >= 8388608 then empty else . * 2 end)];

# One run of perftest measures one size, or all of its own.
def sizes: .params.size | if . == "all" then all_sizes else u::sizes end;

# Bounds of its parser, src/perftest_parameters.h.
def least_iterations: 5;
def most_iterations: 100000000;
def no_moderation_above: 8192; # MSG_SIZE_CQ_MOD_LIMIT: above it every message asks for a completion

def of_bandwidth: ["queue_pairs", "tx_depth", "batch", "cq_moderation", "bidirectional", "report_gbits"];

# -D N -f M measures for N - 2 M seconds; N must be above 2 M. One second each side keeps the ends out where there is
# room: without -f, 4.5 takes two, and newer versions a quarter of N.
def margin: if .margin != null then .margin | u::seconds elif (.duration | u::seconds) > 2 then 1 else 0 end;

def contradiction:
  .params as $p
  | ($p.connection // "rc") as $connection
  | (.op as $op | connection_ops[$connection] | . != null and index([$op]) == null) as $unconnected
  | def whole: . == floor;
    if .backend != null or .provider != null then "perftest has no backend or provider"
    elif (.op as $op | ops | index([$op])) == null then "perftest has no op \(.op); it has \(ops | join(", "))"
    elif (sizes | length) != 1 and $p.size != "all" then "perftest measures one size a test, or size all (2 bytes to 8 MiB)"
    elif one_word and ($p.size == "all" or sizes != [8]) then "perftest's atomics work on 8 bytes"
    elif $p.size == "all" and $connection == "ud" then "with connection ud a message is one packet: give one size"
    elif $unconnected then "connection \($connection) has no op \(.op)"
    elif ($p.iterations == null) == ($p.duration == null) then "perftest needs either iterations or duration"
    elif $p.size == "all" and $p.duration != null then "perftest measures size all by iterations only"
    else empty end,
    (select($p.iterations != null and ($p.iterations < least_iterations or $p.iterations > most_iterations))
     | "perftest takes \(least_iterations) to \(most_iterations) iterations"),
    (select($p.duration != null) | ($p.duration | u::seconds) as $seconds | ($p | margin) as $margin
     | if ($seconds | whole | not) or ($margin | whole | not) then "perftest takes whole seconds"
       elif $seconds <= 2 * $margin then "duration must be above twice the margin, which is left out at both ends"
       else empty end),
    (select($p.margin != null and $p.duration == null) | "margin belongs to duration"),
    (select(.kind == "latency") | first(of_bandwidth[] | select($p[.] != null) | "\(.) belongs to bandwidth")),
    (select($p.completion == "event") | if .op == "write" then "perftest has no events with op write" elif $p.duration != null then
       "perftest waits by events with iterations only" else empty end),
    (select($p.inline != null and (.op == "read" or one_word)) | "op \(.op) has no inline data"),
    (select($p.relaxed_ordering == true and .op == "write" and .kind == "latency")
     | "perftest's write latency polls memory, and so has no relaxed_ordering"),
    (select($p.srq == true and .op != "send") | "perftest has srq with op send only"),
    (select($p.rdma_cm == true and $connection == "uc") | "perftest's rdma_cm does not connect uc"),
    (select($p.tos != null and $p.rdma_cm != true) | "perftest takes tos with rdma_cm only; use traffic_class"),
    (select(($p.batch // 1) > 1 and $p.iterations != null and $p.iterations % $p.batch != 0) | "iterations must be a multiple of batch"),
    (select(($p.batch // 1) > 1 and $p.cq_moderation != null and $p.batch % $p.cq_moderation != 0)
     | "batch must be a multiple of cq_moderation");

# Options by parameter; the two ends share all of them. -F: go on where the CPU's frequency is not at its top.
def options($p):
  def flag($option; $value): if $value == null or $value == false then [] elif $value == true then [$option] else [$option, "\($value)"] end;
  ["-F", "-c", ($p.connection // "rc" | ascii_upcase)]
  + (if $p.size == "all" then ["-a"] else ["-s", "\($p.size | u::bytes)"] end)
  + (if $p.duration != null then ["-D", "\($p.duration | u::seconds)", "-f", "\($p | margin)"] else ["-n", "\($p.iterations)"] end)
  + flag("-q"; $p.queue_pairs) + flag("-t"; $p.tx_depth) + flag("-l"; $p.batch) + flag("-Q"; $p.cq_moderation)
  + flag("-I"; $p.inline) + flag("-m"; $p.mtu) + flag("-S"; $p.sl) + flag("--tclass"; $p.traffic_class)
  + flag("-T"; $p.tos) + flag("-u"; $p.timeout_exponent) + flag("-e"; $p.completion == "event") + flag("--use-srq"; $p.srq)
  # its default is on, the engine's off
  + (if $p.relaxed_ordering == false then ["--disable_pcie_relaxed"] else [] end)
  + flag("-R"; $p.rdma_cm) + flag("-b"; $p.bidirectional) + flag("--report_gbits"; $p.report_gbits);

def device_options($device):
  ["-d", $device.name, "-i", "\($device.ib_port // 1)"] + (if $device.gid_index == null then [] else ["-x", "\($device.gid_index)"] end);

def argv($test; $client; $server):
  [program($test)] as $program
  | (if $test.op == "fetch-add" then ["-A", "FETCH_AND_ADD"] elif $test.op == "compare-swap" then ["-A", "CMP_AND_SWAP"] else [] end) as $atomic
  | (["-p", "\($server.tool_ports.perftest)"] + $atomic + options($test.params)) as $shared
  | { client: ($program + device_options($client.devices[0]) + $shared + [$server.address]),
      server: ($program + device_options($server.devices[0]) + $shared) };

# Seconds that a test takes, by what one message costs. Its iterations are of each queue pair.
def measuring(message):
  .params as $p
  | if $p.duration != null then $p.duration | u::seconds
    else [sizes[] | message] | add * $p.iterations * ($p.queue_pairs // 1) * (if $p.bidirectional == true then 2 else 1 end) end;
