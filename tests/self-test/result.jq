# What became of one fault: {ok, why, before, also}. $before, $after: verdicts of the good run and of the spoilt one, in arrays;
# $code: judge's exit; $word: the verdict that was named; $checks: the named check, then those that flip beside it.
def fits($pattern): if $pattern | endswith("*") then startswith($pattern | rtrimstr("*")) else . == $pattern end;
def blocking: .status == "fail" or .status == "inconclusive";

# What stood in the check's place while all was well: itself, what it is a part of, or its kind's word for "all of them".
def stood($id; $checks):
  ($id | split("/")) as $parts
  | [ $id, ($parts | if .[0] == "flow" then "flows/" + .[1] else empty end),
      (if $parts[0] == "host" then "hosts" else empty end),
      (range($parts | length - 1; 0; -1) | $parts[:.] | join("/")) ] as $names
  | [ $names[] as $name | $checks[] | select(.id == $name) ]
    + [ $checks[] | select($parts[0] == "path" and (.id | startswith("path/proven/"))) ]
  | .[0];

($before[0]) as $b | ($after[0]) as $a
| ($checks | split(" ")) as $named
| {FAIL: "fail", INCONCLUSIVE: "inconclusive", PASS: "advisory"}[$word] as $status # a warning alone leaves the verdict as it is
| [$b.checks[] | select(blocking) | .id] as $were
| [$a.checks[] | select(blocking) | .id | select(. as $id | $were | index([$id]) == null)] as $flipped
| stood($named[0]; $b.checks) as $stood
| [ (if $code == "planting" then "the fault could not be planted: \($said | .[0:300])"
     elif $code != {PASS: "0", FAIL: "1", INCONCLUSIVE: "3"}[$word] then "judge ended with exit code \($code): \($said | .[0:300])"
     else empty end),
    (if $a.verdict != $word then "the verdict is \($a.verdict)" else empty end),
    # that a pair was repeated is said in every verdict, and never as a pass
    (if $stood != null and $stood.status != "pass" and ($stood.status != "advisory" or ($stood.id | startswith("retry/") | not)) then "\($stood.id) had not passed before: \($stood.status)" else empty end),
    (if any($a.checks[]; .id == $named[0] and .status == $status) then empty
     else "\($named[0]) is \([$a.checks[] | select(.id == $named[0]) | .status][0] // "not there"); \($flipped | join(", ")) flipped" end),
    (($flipped - [$named[0]]) - [$flipped[] | select(. as $id | any($named[1:][]; . as $p | $id | fits($p)))] | select(. != [])
     | "others flipped, too: \(join(", "))"),
    ([$named[1:][] | select(. as $p | any($flipped[]; fits($p)) | not)] | select(. != []) | "did not flip: \(join(", "))") ] as $wrong
| { ok: ($wrong == []), why: ($wrong | join("; ")), before: $stood.id, also: ($flipped - [$named[0]]) }
