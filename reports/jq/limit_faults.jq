# Are the limits of a run what their schema says?
import "common" as c;

# A key or metric that no record has would let a misspelt limit pass in silence.
def scope_keys:
  ["tool", "backend", "provider", "op", "kind", "definition", "scope", "test", "client", "server", "layer", "hop_class", "completion",
   "size_bytes", "queue_pairs", "bidirectional", "batch", "devices"];
def metric_pattern:
  "^(latency_us\\.(count|min|max|mean|stddev|p50|p90|p95|p99|p99_9|p99_99)|bandwidth\\.(gbit_s|peak_gbit_s|min_interval_gbit_s|messages_per_s)"
  + "|cpu\\.(client|server)(_system)?_s(_per_gb)?|tcp\\.(retransmissions|initial_rtt_us|window_bytes)"
  + "|derived\\.(p99_minus_p50_us|retransmissions_per_gb|stall_s|loss_ppm|packets_(lost|retried|corrupted)_ppm)|agreement\\.(p50_us|mean_us|gbit_s))$";

def unknown_parts:
  ( .scope | objects | keys_unsorted[] | select(. as $k | scope_keys | index([$k]) == null) | "unknown scope key \(tojson)" ),
  ( .metric | strings | select(test(metric_pattern) | not) | "unknown metric \(tojson)" ),
  ( .bound | objects | to_entries[] | select((.key != "min" and .key != "max") or (.value | c::is_finite | not)) | "unknown bound \(.key | tojson)" );

def faults:
  if type != "object" or .schema != "perch.limits/1" or (.limits | type) != "array" then "it is no perch.limits/1 document"
  else
    ( [.limits[].id] | if length == (unique | length) then empty else "two limits have the same id" end ),
    ( .limits[]
      | (.id | tojson) as $id
      | ( if (.bound | type) == "object" and ((.bound.min | c::is_finite) or (.bound.max | c::is_finite)) then empty
          else "limit \($id) has no bound" end ),
        ( if (.metric | type) == "string" and (.scope | type) == "object" then empty else "limit \($id) has no metric or scope" end ),
        ( if (.source | type) == "string" and .source != "" then empty else "limit \($id) has no source" end ),
        ( if .severity == "required" or .severity == "advisory" then empty else "limit \($id) is neither required nor advisory" end ),
        ( unknown_parts | "limit \($id) has the " + . ) )
  end;
