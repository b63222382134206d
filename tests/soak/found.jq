# A verdict of a soak, what was planted in it ($planted), and when the machine itself stood still ($pauses: [[START, END]]) -> a row for each
# fault: {session, id, title, start_s, found, kind, n, after_s, good}; one for what was found beside them; and the verdict.
#
# An anomaly is a fault's where they are there at the same time: it may begin an interval (1 s) before the fault, as it is told by whole
# intervals, and end when connections are there again: the keepers' longest pause between two attempts (5 s), an attempt, an interval.
def slack_before: 1.5;
def slack_after: 8;

# RFC 3339 -> seconds
def moment:
  if . == null then null
  else . as $t | (sub("\\.[0-9]+"; "") | fromdate) + ("0" + (($t | capture("(?<f>\\.[0-9]+)").f) // ".0") | tonumber) end;

# By the soak's own clock, which is never stepped; where an anomaly has no time in it, by the wall.
def timed($soak_start):
  . + (if .start_s != null then {from: ($soak_start + .start_s), to: ($soak_start + (.end_s // .start_s))}
       else {from: (.start | moment), to: ((.end // .start) | moment)} end);

def is_of($fault): .from != null and .from <= ($fault.end // infinite) + slack_after and .to >= $fault.start - slack_before;

# Sockets share their hosts' cores: what stood still while a processor did is the machine's. Of whole intervals, within one.
def is_of_machine:
  (if .kind == "stall" then 0.05 elif .kind | IN("slow", "low", "length", "rate", "hole") then 1 else null end) as $slack
  | . as $one
  | $slack != null and any($pauses[]; .[0] <= $one.to + $slack and .[1] >= $one.from - $slack);

# Intervals end on a grid: what lies in one is known when it has ended.
def known($soak_start): (.to - $soak_start) | ceil;

# What the verdict must be. Where nothing is planted, or nothing that a fabric does, a pause of the machine may keep it from PASS.
def wanted:
  if $planted == [] then ["PASS", "INCONCLUSIVE"]
  elif all($planted[]; .mode == "none" or .mode == "said") then ["PASS"]
  else ["FAIL"] end;

def named: [.[].kind] | unique | join(", ");
def told: [.[] | "\(.kind) \(.flow // .host // "") at \(.start_s // .start) s (\(.severity))"] | unique | .[:4] | join("; ");

def row($fault; $soak_start; $others):
  ($fault | {session, id, title, start_s: (.start - $soak_start), n: 0, after_s: null}) as $row
  | if $fault.mode == "said" then
      $said[$fault.id] as $at
      | $row + {found: ($at != null), kind: "said by the engine or the agent", after_s: (if $at == null then null else $at - $fault.start end), good: ($at != null)}
    elif $fault.mode == "none" then
      [$others[] | select(.from <= $fault.end + 1 and .to >= $fault.start)] as $any
      | $row + {found: ($any != []), kind: (if $any == [] then "nothing, as it should be" else $any | named end), n: ($any | length), good: ($any == [])}
    else
      ([.[] | select(is_of($fault) and .to >= $fault.start and (.kind as $kind | any($fault.kinds[]; . == $kind)))] | sort_by(.to)) as $these
      | $row + {found: ($these != []), kind: ($these | named), n: ($these | length), good: ($these != []),
                after_s: (if $these == [] then null else ($these[0] | known($soak_start)) - $row.start_s end)}
    end;

(.soak.started | moment) as $soak_start
| . as $verdict
| [.soak.anomalies[]? | timed($soak_start)] as $all
| [$all[] | select(. as $one | any($planted[]; . as $fault | .mode != "none" and ($one | is_of($fault))) | not)] as $others
# What limits on sockets call advisory, a moment beside which nothing failed, is no false alarm but where nothing at all was planted.
| [$others[] | select(is_of_machine | not) | select($planted == [] or .severity != "advisory")] as $false
| if $soak_start == null then {session: $session, id: "verdict", title: "the judge reads the soak", found: false, kind: "", start_s: null, after_s: null, n: 0, good: false}
  else
    ($planted[] as $fault | $all | row($fault; $soak_start; $false)),
    {session: $session, id: "else", title: "nothing else", start_s: null, after_s: null, found: ($false != []), n: ($false | length),
     kind: ([($false | told), ($others | length - ($false | length) | if . > 0 then "\(.) of the machine itself, or advisory" else empty end)] | map(select(. != "")) | join("; ")), good: ($false == [])},
    {session: $session, id: "verdict", title: "verdict", start_s: null, after_s: null, found: null, n: 0, kind: "\($verdict.verdict), soak \($verdict.soak.state)",
     good: (($verdict.soak.state == "done" or $verdict.verdict == "FAIL") and ($verdict.verdict | IN(wanted[])))}
  end
