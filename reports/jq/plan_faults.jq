# Is plan.json whole? Alone, because jq 1.6 needs long to leave unused functions out of a program (README.md).
import "planned" as planned;
import "common" as c;

# \z and not $, which lets a line end through: a path of two lines would lead anywhere.
def name_pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]*\\z";
# A flow's id becomes a path under raw/, so nothing in it may climb out of there.
def id_pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){3}\\z";

def flow_faults($hosts):
  (.id | tojson) as $id
  | ( if (.id | type) == "string" and (.id | test(id_pattern)) then empty else "flow id \($id) is not test/client/server/repeat" end ),
    ( ("client", "server") as $k | select($hosts[.[$k] // ""] == null) | "flow \($id): \($k) \(.[$k] | tojson) is not a host of the plan" ),
    # what never leaves a host is no measurement of the fabric between hosts
    # (of what was measured elsewhere, nobody knows the hosts)
    ( select(.client == .server and .import == null) | "flow \($id) is of host \(.client | tojson) with itself" ),
    # what is repeated stands in plan.retry.json, which is held against this plan; judge marks it
    ( select(has("retry")) | "flow \($id) says of itself that it is a repeat" ),
    ( if (.expect | type) == "array" and (.expect | length) > 0 then empty else "flow \($id) expects no record" end ),
    # what is owed twice would be paid by one record, and what has no size by any (of what was measured elsewhere, several may be unreadable)
    ( .expect | arrays | select(all(.[]; type == "object" and has("size_bytes")) | not) | "flow \($id) expects a record without a size" ),
    ( select(.import == null) | .expect | arrays | select(length > 1 and length != (unique | length)) | "flow \($id) expects a record twice" ),
    ( if .scope as $s | planned::scopes | index([$s]) != null then empty else "flow \($id) has the unknown scope \(.scope | tojson)" end ),
    ( select(.import != null) | .import | if (.file | type) == "string" and (.file | test("^raw/import/[^/\\n]+\\z")) and (.line | type) == "number" then empty
      else "flow \($id) has no line of a file of raw/import" end ),
    ( if (.tool | type) == "string" and (.client_argv | type) == "array" then empty else "flow \($id) has no tool or no command" end );

# A soak is judged as one, and over the time that its commands were given.
def soak_faults:
  def positive: c::is_finite and . > 0;
  # a text of a time and the number beside it
  def near($other): c::is_finite and (. - $other | fabs) <= 1e-9 * $other;
  .soak as $soak
  | if has("soak") | not then
      planned::flows | select(.client_argv | arrays | index("--soak") != null) | "flow \(.id | tojson) is of a soak, and the plan is not"
    elif ($soak | type == "object" and all(.duration_s, .interval_s, .stall_s, .reconnect_s; positive) and (.turn_s | . == null or positive)
          and (.mode == "mixed" or (.mode == "alternating" and .turn_s != null))) | not then "its soak has no times"
    else
      planned::flows
      | (.id | tojson) as $id
      | .client_argv | arrays
      | ({"--duration": "duration_s", "--interval": "interval_s", "--stall": "stall_s"} | to_entries[]) as $o
      | (c::option_value([$o.key]) | c::seconds_of) as $given
      | $soak[$o.value] as $planned
      # a turn has a part of the time, and the last one what is left, with a rest that is no interval
      | select(if $o.key == "--duration" and $soak.mode == "alternating" then ($given | positive | not) or $given >= $soak.turn_s + $soak.interval_s
               else ($given | near($planned)) | not end)
      | "flow \($id) has \($o.key) of \($given | tojson) s, and the soak \($planned) s"
    end,
    # turns that are not there are no time that was measured
    ( select(has("soak") and ($soak | type == "object" and .mode == "alternating" and (.duration_s | positive)))
      | ([.rounds[] | [.flows[]?.client_argv | arrays | c::option_value(["--duration"]) | c::seconds_of | numbers] | min // 0] | add // 0) as $sum
      | select(($sum / $soak.duration_s - 1 | fabs) > 1e-6) | "its turns together last \($sum) s, and the soak \($soak.duration_s) s" );

# Texts of what is wrong; none means that the plan can be judged against.
def faults:
  if type != "object" then "it is not a JSON object"
  elif .schema != "perch.plan/1" then "its schema is \(.schema | tojson), not perch.plan/1"
  elif (.run | type) != "string" then "it names no run"
  elif (.hosts | type) != "object" or (.rounds | type) != "array" then "it has no hosts or no rounds"
  elif ([planned::flows] | length) == 0 then "it holds no flow"
  else
    . as $plan
    | ( $plan.hosts | keys_unsorted[] | select(test(name_pattern) | not) | "host name \(tojson) is not usable as a path" ),
      ( select(has("switches"))
        | if (.switches | type) == "object" and all(.switches[]; type == "object") then
            .switches | keys_unsorted[] | select(test(name_pattern) | not) | "switch name \(tojson) is not usable as a path"
          else "its switches are no objects" end ),
      ( [$plan | planned::flows | .import != null] | unique | select(length > 1)
        | "it has flows that were measured elsewhere beside others" ),
      ( $plan | planned::flows | flow_faults($plan.hosts) ),
      ( $plan | soak_faults ),
      ( [$plan | planned::flows | .id] | if length == (unique | length) then empty else "two flows have the same id" end )
  end;
