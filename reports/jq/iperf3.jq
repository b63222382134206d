# iperf3 -J (TCP and UDP) -> the part of one record. The rate is the receiver's; all streams are summed by iperf3 itself.
import "common" as c;
import "results" as result;

def base:
  { tool: {name: "iperf3", version: (.start.version | c::text_or_null | if . == null then null else ltrimstr("iperf ") end)},
    kind: "bandwidth", definition: "receiver_payload", connection: "stream" };

# iperf3 exits 0 with -J even where it could not connect: only its document tells.
def code_of_message:
  if test("refused|connect|timed out|closed|reset|unreachable|No route|broken pipe|busy"; "i") then 4 else 6 end;

def failed:
  ((.intervals // []) | map(.sum.bytes // 0) | add // 0) as $bytes
  | base + { status: "error",
             error: {code: (.error | code_of_message), message: ("iperf3: " + .error), traffic: ($bytes > 0)} };

def interval_rows:
  [ (.intervals // [])[] | (.sum_bidir_reverse.bits_per_second // 0) as $back | .sum | select(.omitted != true)
    | { start_s: (.start | c::rounded), end_s: (.end | c::rounded), count: null,
        gbit_s: ((.bits_per_second + $back) / 1e9 | result::natural("intervals.gbit_s")), latency_us: null } ];

def both_ways($a; $b): if $b == null then $a elif $a == null then null else $a + $b end;

def bandwidth($rows):
  .end as $e
  | ($rows | result::interval_summary) as $s
  | { gbit_s: (both_ways($e.sum_received.bits_per_second; $e.sum_received_bidir_reverse.bits_per_second)
               | if . == null then null else . / 1e9 end | result::positive("sum_received.bits_per_second")),
      peak_gbit_s: $s.peak_gbit_s, peak_definition: $s.peak_definition,
      min_interval_gbit_s: $s.min_interval_gbit_s, messages_per_s: null,
      bytes: (both_ways($e.sum_received.bytes; $e.sum_received_bidir_reverse.bytes) | result::positive("sum_received.bytes")) };

# iperf3 gives CPU as a share of the run's wall time; both ends time the same run.
def cpu($elapsed; $bytes):
  .end.cpu_utilization_percent as $p
  | def seconds: if . == null then null else . / 100 * $elapsed | result::natural("cpu_utilization_percent") end;
    ($p.host_total | seconds) as $client
  | ($p.remote_total | seconds) as $server
  | { client_s: $client, server_s: $server, client_system_s: null, server_system_s: null,
      client_s_per_gb: c::per_gigabyte($client; $bytes), server_s_per_gb: c::per_gigabyte($server; $bytes) };

# At least what the receiver counted; at most what was written, the seconds that --omit leaves out included.
def claims:
  ([(.intervals // [])[] | .sum.bytes // 0] | add // 0) as $sent
  | ([(.intervals // [])[] | .sum_bidir_reverse.bytes // 0] | add // 0) as $back
  | .end.sum_received.bytes as $least
  | (.end.sum_received_bidir_reverse.bytes // 0) as $least_back
  | { sent: $least, received: $least_back, most_sent: ([$sent, .end.sum_sent.bytes // 0, $least] | max),
      most_received: ([$back, $least_back] | max) };

# Queue pairs count connections: for TCP tools those are the streams.
def params:
  # the key came after 3.12
  (.end.sum_received_bidir_reverse != null) as $both
  | .start.test_start as $t
  | { size_bytes: $t.blksize, iterations: null, duration_s: ($t.duration | c::rounded), warmup: null, gap_us: null,
      queue_pairs: $t.num_streams, outstanding: null, batch: null, threads: null, devices: null, inline_bytes: null,
      bidirectional: ($both or $t.bidir == 1), completion: "event", memory: "host", verify: false, clock: null,
      rate: (if ($t.target_bitrate // 0) > 0 then {asked: ($t.target_bitrate / 1e9), unit: "Gb/s"} else null end) };

# UDP: `packets` are those that the receiver knows of, lost ones included; jitter is its estimate. Versions that sum up the
# sender's side alone (before 3.10 or so) do not say what arrived.
def datagrams:
  .end.sum_received as $r
  | if $r == null or $r.packets == null or $r.lost_packets == null then error("it does not say what its receiver got: UDP needs sum_received with packets and lost_packets")
    elif .end.sum_received_bidir_reverse != null then error("UDP both ways at once is not read")
    elif $r.lost_packets < 0 or $r.packets <= 0 or $r.lost_packets >= $r.packets then error("it lost \($r.lost_packets) packets of \($r.packets)")
    else . end
  | .start.test_start.blksize as $size
  # the sizes of what arrived; some are in flight when it ends
  | if $size > 0 and (($r.packets - $r.lost_packets) * $size / $r.bytes - 1 | fabs) > 0.05 then
      error("\($r.packets - $r.lost_packets) packets of \($size) bytes are not the \($r.bytes) bytes that arrived")
    else { sent_messages: $r.packets, lost_messages: $r.lost_packets }
      + if $r.jitter_ms == null then {} else {jitter_us: ($r.jitter_ms * 1000 | result::natural("jitter_ms"))} end
    end;

# What each end counted must hold together, or somebody has lost streams or figures on the way. A receiver has no bytes that nobody
# sent; what was sent while --omit still ran may arrive after it (5 %, site policy).
def whole($elapsed):
  .start.test_start as $t
  | .end as $e
  | (if ($t.omit // 0) > 0 then 1.05 else 1.001 end) as $most
  | def more($received; $sent): $received.bytes != null and $sent.bytes != null and $received.bytes > $sent.bytes * $most;
    if ($t.duration // 0) > 0 and $elapsed < 0.9 * $t.duration then error("it lasted \($elapsed) s of \($t.duration) s: truncated?")
    elif $t.protocol == "TCP" and $t.num_streams != null and ($e.streams | length) != $t.num_streams * (if $e.sum_received_bidir_reverse != null then 2 else 1 end) then
      error("it has \($e.streams | length) streams, and \($t.num_streams) were asked for: truncated?")
    elif more($e.sum_received; $e.sum_sent) or more($e.sum_received_bidir_reverse; $e.sum_sent_bidir_reverse) then
      error("more was received than was sent")
    else ([$e.streams[]?.receiver.bytes] | if any(.[]; . == null) then null else add end) as $streams
      | if $streams != null and $e.streams != [] and ($streams / both_ways($e.sum_received.bytes; $e.sum_received_bidir_reverse.bytes) - 1 | fabs) > 0.001 then
          error("its streams received \($streams) bytes, which are not those of their sum")
        else . end
    end;

def measured($protocols):
  . as $doc
  | .start.test_start.protocol as $protocol
  | ($protocol == "UDP") as $udp
  | if $protocols | index([$protocol]) != null then . else error("protocol \($protocol | tojson) is not read, only \($protocols | join(" and "))") end
  | interval_rows as $rows
  | (.end.sum_received.seconds | result::positive("sum_received.seconds")) as $elapsed
  | (bandwidth($rows) | result::possible_rate($elapsed; 0.01)) as $bandwidth
  | whole($elapsed)
  | base
    + { client: {address: $doc.start.connected[0].local_host}, server: {address: $doc.start.connected[0].remote_host},
        params: ($doc | params),
        started: ($doc.start.timestamp.timesecs | todate),
        elapsed_s: $elapsed, bandwidth: $bandwidth, intervals: $rows,
        cpu: ($doc | cpu($elapsed; $bandwidth.bytes)),
        loss: (if $udp then $doc | datagrams else null end),
        tcp: (if $udp then null else { retransmissions: ($doc.end.sum_sent.retransmits | result::natural_or_null("sum_sent.retransmits")),
               initial_rtt_us: null,
               window_bytes: ($doc.start.sndbuf_actual | if . == 0 then null else result::natural_or_null("sndbuf_actual") end) } end),
        claims: ($doc | claims), status: "ok", error: null }
    + if $udp then {connection: "datagram"} else {} end;

def unusable($why): {status: "error", error: {code: 6, message: ("iperf3's output cannot be used: " + $why), traffic: false}};

def parts($lines; $protocols):
  ($lines | join("\n")) as $text
  | if $text | test("^\\s*$") then [{tool: {name: "iperf3", version: null}} + unusable("it is empty")]
    else
      ($text | c::parsed) as $doc
      | if ($doc | type) != "object" then
          # A document that stops in the middle was being written when iperf3 died: bytes had moved if it lists any.
          [{tool: {name: "iperf3", version: null}}
           + unusable("it is not a JSON document: truncated?")
           | .error.traffic = ($text | test("\"bits_per_second\""))]
        elif ($doc.error | type) == "string" then [$doc | failed]
        else [$doc | c::attempt(measured($protocols); . as $why | $doc | base + unusable($why) | .error.traffic = true)]
        end
    end;

# Plans ask for TCP.
def parts($lines): parts($lines; ["TCP"]);
