# A healthy run's files, one line each: "PATH<TAB>LINE", the lines of a file in their order. Five hosts with a card of 100 Gb/s, all
# pairs; composed: no card was here. What is resampled is noise: latencies with their histograms as recorded, rates as the recorded
# ratios to their median (pool.json), about a middle that such a link has.
# $pool: in an array. $seed: of the draw. $weak: {factor, flows: regular expression of flow ids}: their rates are so much lower.
def hosts: ["alpha", "beta", "gamma", "delta", "epsilon"];
def run: "20260101T000000Z-healthy-\($seed)";
def epoch: 1767225600; # 2026-01-01T00:00:00Z
def stamp($s): $s | floor as $whole | ($whole | todate | .[:-1]) + "." + ((($s - $whole) * 1000 | floor | tostring) | ("000" + .)[-3:]) + "Z";

# Park and Miller's minimal standard generator (Communications of the ACM 31, 1988): exact in doubles. Its high part chooses.
def next: . * 16807 % 2147483647;
def numbers($n): reduce range(0; $n) as $i ([($seed + 1) * 7919 | next | next]; . + [.[-1] | next]);
def of($list): $list[(. / 2147483647 * ($list | length)) | floor];

# ---- what is planned ------------------------------------------------------------------------------------------------

# site policy: the rates of a sound 100 Gb/s pair in writes (of 98.0 possible at MTU 4096), and of one TCP stream on it
def rdma_gbit_s: 94;
def tcp_gbit_s: 45;

# The circle method: ten pairs of five hosts in five rounds, none twice in one.
def pairs: [[[0, 1], [2, 4]], [[1, 2], [3, 0]], [[2, 3], [4, 1]], [[3, 4], [0, 2]], [[4, 0], [1, 3]]];

def engine($verb; $server; $client; $options):
  ["perch", $verb, "192.0.2.\($server + 1)"] + $options + ["--bind", "192.0.2.\($client + 1)", "--json"];
def cards: ["--device", "mlx5_0", "--server-device", "mlx5_0"];
def perftest: ["ib_write_bw", "-d", "mlx5_0", "-i", "1", "-p", "18515", "-F", "-c", "RC", "-s", "65536", "-n", "200000", "-t", "16", "-Q", "1", "-I", "0"];

def tests:
  [ {test: "write-bandwidth", title: "RDMA write bandwidth", tool: "perch", backend: "verbs", op: "write", kind: "bandwidth", size: 65536, n: 200000,
     options: (["--backend", "verbs", "--op", "write", "--size", "64K", "--iterations", "200000", "--outstanding", "16", "--cq-moderation", "1", "--inline", "0"] + cards)},
    {test: "send-latency", title: "RDMA send latency", tool: "perch", backend: "verbs", op: "send", kind: "latency", size: 64, n: 4000,
     options: (["--backend", "verbs", "--op", "send", "--size", "64", "--iterations", "4000"] + cards)},
    {test: "perftest-write-bandwidth", title: "perftest, RDMA write bandwidth", tool: "perftest", backend: null, op: "write", kind: "bandwidth", size: 65536, n: 200000, alone: true},
    {test: "steady-bandwidth", title: "RDMA write bandwidth of ten minutes", tool: "perch", backend: "verbs", op: "write", kind: "bandwidth", size: 65536, seconds: 600, alone: true, once: true,
     options: (["--backend", "verbs", "--op", "write", "--size", "64K", "--duration", "600s", "--interval", "10s"] + cards)},
    {test: "tcp-latency", title: "TCP latency", tool: "perch", backend: "tcp", op: "send", kind: "latency", size: 64, n: 4000, alone: true,
     options: ["--backend", "tcp", "--op", "send", "--size", "64", "--iterations", "4000"]},
    {test: "tcp-bandwidth", title: "TCP bandwidth", tool: "perch", backend: "tcp", op: "send", kind: "bandwidth", size: 65536, n: 40000, alone: true,
     options: ["--backend", "tcp", "--op", "send", "--size", "64K", "--iterations", "40000"]},
    {test: "iperf3", title: "iperf3, one stream", tool: "iperf3", backend: null, op: "send", kind: "bandwidth", size: 65536, seconds: 2, alone: true} ];

def flow($test; $repeat; $pair):
  hosts[$pair[0]] as $client | hosts[$pair[1]] as $server
  | $test
  | { id: "\(.test)/\($client)/\($server)/\($repeat)", test, title, $repeat, tool, backend, provider: null, op, kind, $client, $server,
      scope: (if .backend == "verbs" or .tool == "perftest" then "hardware" else "software" end),
      client_argv: (if .tool == "perch" then engine(if .kind == "latency" then "lat" else "bw" end; $pair[1]; $pair[0]; .options)
                    elif .tool == "perftest" then perftest + ["192.0.2.\($pair[1] + 1)"]
                    else ["iperf3", "-c", "192.0.2.\($pair[1] + 1)", "-B", "192.0.2.\($pair[0] + 1)", "-p", "5201", "-J", "-l", "65536", "-t", "2", "-P", "1"] end),
      server_argv: (if .tool == "perftest" then perftest
                    elif .tool == "iperf3" then ["iperf3", "-s", "-1", "-B", "192.0.2.\($pair[1] + 1)", "-p", "5201", "-J"] else [] end),
      ready: (if .tool == "perftest" then {port: 18515, proto: "tcp"} elif .tool == "iperf3" then {port: 5201, proto: "tcp"} else null end),
      deadline_s: ((.seconds // 1) + 32), estimate_s: ((.seconds // 1) + 1), expect: [{size_bytes: .size}] };

def rounds:
  tests as $tests
  | [ (1, 2) as $repeat
      | $tests[]
      | select($repeat == 1 or (.once | not))
      # its reader takes long to begin: every tenth run is judged with it
      | select(.tool != "perftest" or $seed % 10 == 0)
      | . as $test
      | (if .alone then [[0, 1]] else pairs[] end) as $round
      | {flows: [$round[] as $pair | flow($test; $repeat; $pair)]} ];

def plan:
  { schema: "perch.plan/1", run: run, created: "2026-01-01T00:00:00Z", limits: "roce",
    suite: {name: "healthy", title: "Composed: hardware that is not there, its noise resampled from recorded runs"},
    hosts: (reduce range(0; 5) as $i ({}; .[hosts[$i]] =
      { address: "192.0.2.\($i + 1)", group: null, fabric: "roce", scope: "hardware", backends: ["tcp", "verbs"],
        tools: ["perch", "perftest", "iperf3"], devices: [{name: "mlx5_0", netdev: "enp1s0"}], port: 18600 })),
    rounds: rounds, excluded: [] };

# ---- what is measured -----------------------------------------------------------------------------------------------

def six: . * 1e6 | round / 1e6;

# One flow's figures: {gbit_s, bytes, elapsed_s, line}. Input: random numbers of its own. $test: of tests.
def factor($flow): if $weak != null and ($flow.id | test($weak.flows)) then $weak.factor else 1 end;
def rate($flow; $pool): . as $random | (if $flow.backend == "verbs" or $flow.tool == "perftest" then rdma_gbit_s else tcp_gbit_s end)
  * ($random | of($pool.ratios)) * factor($flow) | six;

def heading($flow; $at):
  hosts as $names
  | ($flow.backend == "verbs") as $rdma
  | def side($host): {host: $host, device: (if $rdma then "mlx5_0" else "enp1s0" end), address: "192.0.2.\(1 + ($names | index([$host])))"};
    { schema: "perch.record/1", tool: {name: "perch", version: "0.1.0"}, backend: $flow.backend, provider: null, op: $flow.op, kind: $flow.kind,
      definition: (if $flow.kind == "latency" then "half_round_trip" elif $rdma then "initiator_completion" else "receiver_acknowledged" end),
      completion_level: (if $rdma then "transmit" else "inject" end), connection: (if $rdma then "RC" else "stream" end),
      client: side($flow.client), server: side($flow.server),
      link: {rate_gbit_s: 100, mtu_bytes: (if $rdma then 4096 else 9000 end), layer: "ethernet", hop_class: null},
      params: ({ size_bytes: $flow.expect[0].size_bytes, iterations: null, duration_s: null, warmup: 100, gap_us: 0, queue_pairs: 1,
                 outstanding: (if $flow.kind == "latency" then 1 else 16 end), batch: 1, threads: 1, devices: 1, inline_bytes: null,
                 bidirectional: false, completion: "busy", memory: "host", verify: false, clock: "monotonic", rate: null }
               + if $rdma then { cq_moderation: 1, traffic_class: 0, sl: 0, gid_index: 3, mtu_bytes: 4096, retry: 7, rnr_retry: 7, timeout_exponent: 14,
                                 huge: 0, srq: false, rdma_cm: false, relaxed_ordering: false, inline_bytes: 0 } else {} end),
      started: stamp($at), latency_us: null, bandwidth: null, intervals: [], histogram: null, integrity: null, tcp: null, status: "ok", error: null };

def claim($sent; $received): {claimed_bytes: ($sent + $received), client_sent_bytes: $sent, client_received_bytes: $received};
def cpu($seconds): {client_s: $seconds, server_s: $seconds, client_system_s: $seconds, server_system_s: $seconds, client_s_per_gb: null, server_s_per_gb: null};

def latency($test; $flow; $at; $pool):
  of($pool.latency) as $drawn
  | (($test.n + 100) * $test.size) as $bytes
  | heading($flow; $at) + ($drawn | {elapsed_s, latency_us, histogram}) + {cpu: cpu($drawn.cpu.client_s), path: claim($bytes; $bytes)}
  | .params.iterations = $test.n
  | {sent: $bytes, received: $bytes, messages: (2 * ($test.n + 100)), elapsed_s, lines: [tojson]};

# Of ten minutes, sixty intervals: each with noise of its own, and the whole is their mean.
def steady($test; $flow; $at; $pool):
  . as $random
  | [ reduce range(0; 60) as $i ([$random | next]; . + [.[-1] | next]) | .[1:][] | rate($flow; $pool) * 10 * 1e9 / 8 / $test.size | floor ] as $counts
  | (($counts | add) * $test.size) as $bytes
  | [ range(0; 60) as $i | {start_s: ($i * 10), end_s: ($i * 10 + 10), count: $counts[$i], gbit_s: ($counts[$i] * $test.size * 8 / 10 / 1e9 | six)} ] as $intervals
  | ($bytes + 100 * $test.size) as $sent
  | heading($flow; $at)
    + { elapsed_s: 600, $intervals, cpu: cpu(600), path: claim($sent; 0),
        bandwidth: { gbit_s: ($bytes * 8 / 600 / 1e9 | six), peak_gbit_s: ($intervals | map(.gbit_s) | max), peak_definition: "best_interval_10s",
                     min_interval_gbit_s: ($intervals | map(.gbit_s) | min), messages_per_s: ($bytes / $test.size / 600 | six), $bytes } }
  | .params |= (.duration_s = 600 | .outstanding = 64)
  | {$sent, received: 0, messages: ($sent / $test.size), elapsed_s: 600, lines: ([$intervals[] | {kind: "interval"} + .] + [.] | map(tojson))};

def bandwidth($test; $flow; $at; $pool):
  rate($flow; $pool) as $gbit_s
  | ($test.n * $test.size) as $bytes
  | ($bytes + 100 * $test.size) as $sent
  | ($bytes * 8 / $gbit_s / 1e9 | six) as $elapsed
  | heading($flow; $at)
    + { elapsed_s: $elapsed, cpu: cpu($elapsed), path: claim($sent; 0),
        bandwidth: { $gbit_s, peak_gbit_s: null, peak_definition: null, min_interval_gbit_s: null, messages_per_s: ($test.n / $elapsed | six), $bytes } }
  | .params.iterations = $test.n
  | {$sent, received: 0, messages: ($sent / $test.size), elapsed_s: $elapsed, lines: [tojson]};

# perftest prints MiB/s, two digits
def of_perftest($test; $flow; $pool):
  rate($flow; $pool) as $gbit_s
  | ($gbit_s * 1e9 / 8 / 1048576 * 100 | round / 100) as $mib
  | { sent: ($test.n * $test.size), received: 0, messages: $test.n, elapsed_s: ($test.n * $test.size * 8 / $gbit_s / 1e9 | six),
      lines: [ "---------------------------------------------------------------------------------------", "                    RDMA_Write BW Test",
        " Dual-port       : OFF\t\tDevice         : mlx5_0", " Number of qps   : 1\t\tTransport type : IB", " Connection type : RC\t\tUsing SRQ      : OFF",
        " PCIe relax order: OFF\t\tLock-free      : OFF", " ibv_wr* API     : OFF\t\tUsing DDP      : OFF", " TX depth        : 16", " CQ Moderation   : 1",
        " Mtu             : 4096[B]", " Link type       : Ethernet", " GID index       : 3", " Max inline data : 0[B]", " rdma_cm QPs\t : OFF", " Data ex. method : Ethernet",
        "---------------------------------------------------------------------------------------",
        " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]",
        " 65536      \($test.n)           \($mib)               \($mib)   \t\t     \($mib * 16 / 1e6 | six)",
        "---------------------------------------------------------------------------------------" ] };

def of_iperf3($test; $flow; $at; $pool):
  rate($flow; $pool) as $gbit_s
  | ($gbit_s * 1e9 / 8 * 2 / 65536 | floor * 65536) as $bytes
  | {start: 0, end: 2, seconds: 2, $bytes, bits_per_second: ($bytes * 4), retransmits: 0, sender: true} as $sum
  | { sent: $bytes, received: 0, messages: ($bytes / 65536), elapsed_s: 2,
      lines: [ { start: { connected: [{socket: 5, local_host: "192.0.2.1", local_port: 54775, remote_host: "192.0.2.2", remote_port: 5201}], version: "iperf 3.12",
                          timestamp: {time: ($at | todate), timesecs: $at}, tcp_mss_default: 8948,
                          test_start: {protocol: "TCP", num_streams: 1, blksize: 65536, omit: 0, duration: 2, bytes: 0, blocks: 0, reverse: 0, tos: 0, target_bitrate: 0} },
                 intervals: [{streams: [$sum + {socket: 5, rtt: 50, omitted: false}], sum: ($sum + {omitted: false})}],
                 end: { streams: [{sender: ($sum + {socket: 5}), receiver: ($sum + {socket: 5})}], sum_sent: $sum, sum_received: ($sum | del(.retransmits)),
                        cpu_utilization_percent: {host_total: 50, host_user: 1, host_system: 49, remote_total: 50, remote_user: 1, remote_system: 49} } } | tojson ] };

def measured($test; $flow; $at; $pool):
  if $flow.tool == "perftest" then of_perftest($test; $flow; $pool)
  elif $flow.tool == "iperf3" then of_iperf3($test; $flow; $at; $pool)
  elif $flow.kind == "latency" then latency($test; $flow; $at; $pool)
  elif $test.seconds != null then steady($test; $flow; $at; $pool)
  else bandwidth($test; $flow; $at; $pool) end;

# ---- what the agents left -------------------------------------------------------------------------------------------

# Counters of one host that stood at nought and moved so far: $tx, $rx of bytes and packets, over RDMA or by the interface.
def reading($at; $rdma; $tx; $rx):
  def text: map_values(floor | tostring);
  (if $rdma then [0, 0, 0, 0] else [$tx.bytes, $tx.packets, $rx.bytes, $rx.packets] end) as [$tb, $tp, $rb, $rp]
  | { time_s: "\($at | floor).000000", host: {TcpRetransSegs: "0"},
      netdev: {enp1s0: ({ tx_bytes: (10000 + $tb), tx_packets: (100 + $tp), rx_bytes: (10000 + $rb), rx_packets: (100 + $rp), tx_dropped: 0, tx_errors: 0,
                          rx_dropped: 0, rx_errors: 0, rx_crc_errors: 0, rx_missed_errors: 0 } | text)},
      rdma: {"mlx5_0/1": {netdev: "enp1s0", counters: ({ link_downed: 0, link_error_recovery: 0, symbol_error: 0, port_rcv_errors: 0, port_xmit_discards: 0, port_xmit_wait: 0,
              out_of_sequence: 0, packet_seq_err: 0, local_ack_timeout_err: 0, implied_nak_seq_err: 0, rnr_nak_retry_err: 0, duplicate_request: 0,
              rx_icrc_encapsulated: 0, roce_adp_retrans: 0, np_cnp_sent: 0, np_ecn_marked_roce_packets: 0, rp_cnp_handled: 0 }
            + (if $rdma then {port_xmit_data: ($tx.bytes / 4), port_rcv_data: ($rx.bytes / 4), port_xmit_packets: $tx.packets, port_rcv_packets: $rx.packets}
               else {port_xmit_data: 0, port_rcv_data: 0, port_xmit_packets: 0, port_rcv_packets: 0} end) | text)}} };

def nothing: {bytes: 0, packets: 0};

# Each way's bytes on the wire: payload with 58 bytes a packet, and an acknowledgement of 62 for each message the other way.
def wire($m; $rdma; $mtu; $size):
  (($size / $mtu | ceil) * $m.messages) as $packets
  | if $m.received > 0 then {forth: {bytes: ($m.sent + 60 * $packets / 2), packets: ($packets / 2)}, back: {bytes: ($m.received + 60 * $packets / 2), packets: ($packets / 2)}}
    else {forth: {bytes: ($m.sent + 60 * $packets), packets: $packets}, back: {bytes: (64 * $m.messages), packets: $m.messages}} end;

def end_of($flow; $role; $at; $seconds; $tx; $rx; $rdma):
  { schema: "perch.flow/1", run: run, flow: $flow.id, $role, host: $flow[$role], argv: $flow[$role + "_argv"], started: stamp($at), ended: stamp($at + $seconds + 1),
    elapsed_s: ($seconds + 1), exit: (if $role == "server" and $flow.tool == "perch" then null else 0 end), signal: null, timed_out: false, state: "done", message: null,
    counters: { address_interface: "enp1s0", route_interface: "enp1s0", before: reading($at; $rdma; nothing; nothing), after: reading($at + $seconds + 1; $rdma; $tx; $rx) } }
  | tojson;

def flow_files($test; $flow; $at; $pool):
  measured($test; $flow; $at; $pool) as $m
  | ($flow.scope == "hardware") as $rdma
  | wire($m; $rdma; if $rdma then 4096 else 8948 end; $test.size) as $w
  | "raw/\($flow.client)/flows/\($flow.id)/client" as $client | "raw/\($flow.server)/flows/\($flow.id)/server" as $server
  | "\($client).json\t\(end_of($flow; "client"; $at; $m.elapsed_s; $w.forth; $w.back; $rdma))",
    "\($server).json\t\(end_of($flow; "server"; $at; $m.elapsed_s; $w.back; $w.forth; $rdma))",
    ($m.lines[] | "\($client).stdout\t\(.)");

def host_files($host):
  "raw/\($host)/agent.json\t" + ({schema: "perch.agent/1", run: run, $host, started: stamp(epoch), ended: stamp(epoch + 3600), state: "done", flows_total: 1, flows_done: 1, message: null} | tojson),
  "raw/\($host)/environment.json\t" + ({ schema: "perch.environment/1", $host, hostname: $host, kernel: "6.8.0-60-generic", os: "Composed", cpu: {model: "composed", cores: 64},
      memory_bytes: 540000000000, versions: {perch: "0.1.0", libfabric: "2.1.0", iperf3: "3.18", perftest: "6.24", jq: "1.7"}, tuning: {},
      interfaces: [{name: "enp1s0", mtu_bytes: 9000, state: "up", rate_gbit_s: 100, driver: "mlx5_core"}],
      rdma: [{name: "mlx5_0", driver: "mlx5_core", firmware: "22.39.1002"}], collected: stamp(epoch + 1),
      idle: {address_interface: "enp1s0", route_interface: "enp1s0", before: reading(epoch + 2; true; nothing; nothing), after: reading(epoch + 3; true; nothing; nothing)} } | tojson);

$pool[0] as $pool
| plan as $plan
| (tests | map({key: .test, value: .}) | from_entries) as $tests
| numbers(200) as $numbers
| "plan.json\t\($plan | tojson)",
  (hosts[] | host_files(.)),
  ( [$plan.rounds[].flows | length] as $sizes
    | range(0; $plan.rounds | length) as $r
    | ($sizes[:$r] | add // 0) as $before
    | range(0; $sizes[$r]) as $i
    | $plan.rounds[$r].flows[$i] as $flow
    # ten seconds a round, as none but the steady flow takes longer
    | (epoch + 10 * (1 + $r) + (if any($plan.rounds[:$r][].flows[]; .test == "steady-bandwidth") then 600 else 0 end)) as $at
    | $numbers[$before + $i + 3] | flow_files($tests[$flow.test]; $flow; $at; $pool) )
