# A part, the plan and the hosts -> the record, in a fixed order of keys.
import "common" as c;
import "planned" as planned;
import "asked" as asked;
import "scope" as scope;

def number_or_null: if type == "number" and . < 1e300 and . > -1e300 then c::round_number else null end;

# What the schema counts: half a thread would contradict it, whatever became of the line that said so.
def whole_or_null: number_or_null | if . != null and . >= 0 and . == floor then . else null end;

def yes_or_null: if type == "boolean" then . else null end;

# The variables that the provider read at its start: those that were set for it, and those that it found.
def variables: with_entries(select(.value | type == "string"));

# Fixed order of keys: a record's text is the same whoever made it. The service and VNI in use, the GPU's model, and what a
# server's provider was set to, only where the tool tells them.
def side($host; $address):
  { host: $host, device: (.device | c::text_or_null), address: (.address | c::text_or_null // $address) }
  + if type != "object" then {}
    else . as $p
      | reduce ("svc_id", "vni") as $k ({}; if $p | has($k) then .[$k] = ($p[$k] | number_or_null) else . end)
      | reduce ("idc", "ll") as $k (.; if $p | has($k) then .[$k] = ($p[$k] | yes_or_null) else . end)
      | if $p | has("gpu") then .gpu = ($p.gpu | c::text_or_null) else . end
      | if $p.environment | type == "object" then .environment = ($p.environment | variables) else . end
    end;

def link($layer):
  { rate_gbit_s: (.rate_gbit_s | if c::is_finite and . > 0 then c::rounded else null end),
    mtu_bytes: (.mtu_bytes | if c::is_finite and . > 0 then c::rounded else null end),
    layer: (.layer | c::text_or_null // $layer), hop_class: (.hop_class | c::text_or_null) }
  # what the hosts know beside it (link_facts.jq), only where they do
  + (if .pcie_gbit_s == null then {} else {pcie_gbit_s} end) + (if .ipv6 == true then {ipv6} else {} end) + (if .vlan == true then {vlan} else {} end);

# A paced run that could not keep up says so here, with the number of messages that it left out.
def rate:
  if type != "object" then null
  else { asked: (.asked | number_or_null), unit: (.unit | c::text_or_null), skipped: (.skipped | number_or_null),
         overloaded: (if .overloaded == null then null else .overloaded == true end) } end;

# Of libfabric's providers, of cxi, and of other memory than the host's: only where the tool has them.
def libfabric_params:
  def numbers: ["svc_id", "server_svc_id", "vni", "rdzv_from_bytes"];
  def switches: ["idc", "ll", "rdzv", "unrestricted", "hrp", "fetching", "barrier", "bounce"];
  def words: ["fabric_class", "keys", "atomic_op", "atomic_type", "tx_memory", "rx_memory", "gpu_path"];
  if type != "object" then {}
  else . as $p
    | reduce numbers[] as $k ({}; if $p | has($k) then .[$k] = ($p[$k] | number_or_null) else . end)
    | reduce switches[] as $k (.; if $p | has($k) then .[$k] = ($p[$k] | yes_or_null) else . end)
    | reduce words[] as $k (.; if $p | has($k) then .[$k] = ($p[$k] | c::text_or_null) else . end)
  end;

# Of transfers.
def transfer_params:
  if type != "object" then {}
  else . as $p
    | reduce ("buffer_bytes", "stride_bytes", "chunk_bytes", "chunks", "cross_rail") as $k ({};
        if $p | has($k) then .[$k] = ($p[$k] | whole_or_null) else . end)
    | reduce ("consecutive", "session") as $k (.; if $p | has($k) then .[$k] = ($p[$k] | yes_or_null) else . end)
  end;

# A transfer that was never measured has its place, and nothing else.
def transfer($expect):
  if .transfer != null or $expect.kind == null then .transfer
  else { pair: $expect.pair, pairs: null, batches: null, completed: null, asked: null, batch_bytes: null, lists: null,
         window_s: null, numa_node: null } end;

def params($expect):
  { size_bytes: (.size_bytes // $expect.size_bytes | whole_or_null), iterations: (.iterations | whole_or_null),
    duration_s: (.duration_s | number_or_null), warmup: (.warmup | whole_or_null), gap_us: (.gap_us | number_or_null),
    queue_pairs: (.queue_pairs | whole_or_null), outstanding: (.outstanding | whole_or_null),
    batch: (.batch // $expect.batch | whole_or_null),
    threads: (.threads | whole_or_null), devices: (.devices | whole_or_null),
    inline_bytes: (.inline_bytes | whole_or_null), bidirectional: (if .bidirectional == null then null else .bidirectional == true end),
    completion: (.completion | c::text_or_null), memory: (.memory | c::text_or_null),
    verify: (if .verify == null then null else .verify == true end), clock: (.clock | c::text_or_null),
    rate: (.rate | rate),
    cq_moderation: (.cq_moderation | number_or_null), srq: (.srq | yes_or_null), rdma_cm: (.rdma_cm | yes_or_null),
    relaxed_ordering: (.relaxed_ordering | yes_or_null),
    gid_index: (.gid_index | number_or_null), sl: (.sl | number_or_null), traffic_class: (.traffic_class | number_or_null),
    retry: (.retry | number_or_null), rnr_retry: (.rnr_retry | number_or_null),
    timeout_exponent: (.timeout_exponent | number_or_null), huge: (asked::huge | number_or_null) }
  + libfabric_params + transfer_params;

# A host, device or peer that cannot run it (the engine's exit codes 2, 3 and 4, before any traffic) has measured nothing.
def final_status: if .status == "error" and .error.traffic == false and (.error.code | IN(2, 3, 4)) then "not_measured" else .status end;

# $params: the part's, where they are known already, or null.
def record($plan; $hosts; $flow; $expect; $params):
  . as $p
  | ($plan.hosts[$flow.client].fabric) as $fabric
  | ([$flow.scope, ($p | scope::shown_scope($flow; $fabric; $hosts))] | planned::weakest) as $scope
  | { schema: "perch.record/1", run: $plan.run, flow: $flow.id, test: $flow.test, repeat: ($flow.repeat | number_or_null),
      $scope,
      tool: ($p.tool // {name: $flow.tool, version: null}),
      backend: ($p.backend // $flow.backend), provider: ($p.provider // $flow.provider),
      op: ($p.op // $flow.op), kind: ($p.kind // $expect.kind // $flow.kind), definition: $p.definition,
      completion_level: $p.completion_level, connection: $p.connection,
      client: ($p.client | side($flow.client; $plan.hosts[$flow.client].address)),
      server: ($p.server | side($flow.server; $plan.hosts[$flow.server].address)),
      link: ($p.link + {hop_class: ($p.link.hop_class // $flow.hop_class)} | link($fabric)),
      params: ($params // ($p.params | params($expect))),
      started: $p.started, elapsed_s: $p.elapsed_s, clock_skew_s: $p.clock_skew_s, latency_us: $p.latency_us, bandwidth: $p.bandwidth,
      intervals: ($p.intervals // []), histogram: $p.histogram, cpu: $p.cpu, path: ($p.path | scope::proven_hardware($p; $scope; $hosts; $flow)), integrity: $p.integrity,
      tcp: $p.tcp, loss: $p.loss, stall: $p.stall, packets: $p.packets, events: $p.events, counters: $p.counters,
      transfer: ($p | transfer($expect)),
      status: ($p | final_status), error: $p.error }
    + if $p.soak == null then {} else {soak: $p.soak} end
    + if ($p.environment | type) == "object" then {environment: ($p.environment | variables)} else {} end;
def record($plan; $hosts; $flow; $expect): record($plan; $hosts; $flow; $expect; null);
