# The parts of an output -> one part for each record that the plan expects of its flow.
import "asked" as asked;
import "asked_transfer" as asked_transfer;
import "common" as c;
import "transfer" as transfer;
import "transfer_sum" as transfer_sum;

def same_as($expect):
  if $expect.kind != null then transfer::place == ($expect | transfer::place)
  else . as $p | all($expect | keys_unsorted[]; $p.params[.] == $expect[.]) end;

# Size to part, of transfers place to part, so that a flow of many sizes is matched without comparing each with each.
def place($flow):
  if $flow.kind == "transfer" then transfer::place else .params.size_bytes // .size_bytes | c::spoken end;
def by_place($flow):
  reduce .[] as $p ({}; ($p | place($flow)) as $k | .[$k] = (.[$k] // []) + [$p]);

def as_planned($flow):
  if $flow.kind == "transfer" then asked_transfer::as_planned($flow) else asked::as_planned($flow) end;

# A record that has no line of its own: the flow's cause, or the error line that ended it, says why. An error line
# without a size (no connection, half a line) is the record's own; one of another size only kept this one from running.
def unmeasured($cause; $ended; $some_measured; $expect):
  if $ended != null and $ended.params.size_bytes == null then
    { status: "error",
      error: { code: ($cause.code // $ended.error.code), traffic: ($ended.error.traffic or $some_measured),
               message: ([$cause.message, $ended.error.message] | map(select(. != null)) | join("; ")) } }
  elif $ended != null then
    { status: "not_measured",
      error: {code: $ended.error.code, traffic: false, message: ("not reached: " + $ended.error.message)} }
  elif $cause != null then
    { status: $cause.state,
      error: {code: $cause.code, message: $cause.message, traffic: ($some_measured and $cause.state == "error")} }
  else
    { status: "error",
      error: {code: 6, traffic: true, message: "the tool exited 0 but left no result for \($expect | tojson)"} }
  end;

# A command that measured everything and still failed: exit 1 is a limit missed and leaves the figures standing,
# any other code spoils the last one, so that the run cannot pass.
def with_exit($cause):
  if $cause == null or any(.[]; .status != "ok") then .
  else {code: $cause.code, message: $cause.message, traffic: true} as $error
    | if $cause.code == 1 then map(.error = $error)
      else .[:-1] + [.[-1] + {status: "error", error: $error}] end
  end;

# Without the server's word no figure of the flow counts, whatever its client printed.
def with_server($cause):
  if $cause == null then .
  else map(if .status == "ok" then . + {status: "error", error: {code: $cause.code, message: $cause.message, traffic: true}} else . end)
  end;

def matched($flow; $parts; $cause):
  ($parts | map(select(.params.size_bytes != null)) | by_place($flow)) as $placed
  | (first($parts[] | select(.status == "error")) // null) as $ended
  | any($parts[]; .status == "ok") as $some
  | [ $flow.expect[] as $expect
      | ($placed[$expect | place($flow)] // (if $expect.size_bytes == null then $parts else [] end)
         | map(select(same_as($expect)))) as $mine
      | if ($mine | length) > 1 then
          $mine[0] + {status: "error", error: {code: 6, traffic: true,
                      message: "the output holds \($mine | length) results for \($expect | tojson)"}}
        elif ($mine | length) == 1 then $mine[0] | as_planned($flow)
        else unmeasured($cause; $ended; $some; $expect) end ]
  | transfer_sum::summed($flow);

# Output that belongs to no expected record (garbage behind the last line, a size nobody asked for) makes all doubtful.
def with_rest($flow; $parts):
  if any(.[]; .status != "ok") then .
  else
    (reduce $flow.expect[] as $e ({}; .[$e | place($flow)] = true)) as $owed
    | ([ $parts[]
         | select(.params.size_bytes == null or $owed[place($flow)] == null)
         | .error.message // "it holds a result for \(place($flow)) bytes, which was not asked for" ] | .[0]) as $why
    | if $why == null or ($parts | length) <= length then .
      else .[:-1] + [.[-1] + {status: "error", error: {code: 6, message: $why, traffic: true}}] end
  end;

# A result for another size than planned is named, for iperf picks a default where its option is misspelt.
def misfit($parts):
  if length == 1 and ($parts | length) == 1 and $parts[0].status == "ok" and .[0].params == null then
    [.[0] + {error: (.[0].error | .message = "the result is for \($parts[0].params.size_bytes) bytes, not as planned")}]
  else . end;
