# Memory and handles of each process over its life: does it grow?
import "common" as c;
import "digits" as digits;
import "soak_stats" as stats;
import "soak_bounds" as bounds;

def megabyte: 1e6;

# What a process touches for the first time is no leak: the first five minutes of its life, or a quarter of a shorter one, are left out. site policy.
def warm_up_s($life): [300, $life / 4] | min;

# Growth of less is pages that are touched as buffers come round: the engine's memory after an hour is that after a minute, within 1 MB (docs/soak.md);
# before Linux 5.14 the rings of libfabric's tcp provider are touched over some 100,000 messages, 48 bytes each as measured on a loopback; twice that is granted.
def granted($role): if $role == "measurer" or $role == "job" then 9.6e6 else 1e6 end;

# A handle or two come and go with a file that is written.
def granted_handles: 3;

# Below so many samples, or an hour, a slope of 1 MB/h cannot be told from a few pages.
def hour: 3600;

def anomaly($kind; $check; $flow; $part): {$kind, $check, severity: $part.severity, s: $part.from, e: $part.to, since_soak: true, messages: null, $flow, lines: $part.lines};

# How far the last batch lies above the first. Input: [[time, value, line]].
def rise: map(.[:2]) | stats::batched(stats::batches_least) | .[-1][1] - .[0][1];

# Growth by the hour of a part of a life, null where its points are too few. Input: [[time, value, line]].
def grown($alpha):
  if length < stats::batches_least then null
  else
    (map([.[0] / hour, .[1]]) | stats::trend($alpha))
    + {rise: rise, hours: ((.[-1][0] - .[0][0]) / hour), from: .[0][0], to: .[-1][0], lines: [.[0][2], .[-1][2]]}
    | if .low == null then null else . end
  end;

# A leak may begin after hours: the whole comes first, then its last half and its last quarter, a third of $alpha for each. What never differs by
# $enough needs no look at its parts. Input: as above.
def parts($alpha; $enough):
  length as $n
  | (map(.[1]) | length > 0 and max - min < $enough) as $still
  | [., (select($still | not) | .[$n / 2 | floor:], .[$n * 3 / 4 | floor:]) | grown($alpha / 3) | values];

# The part that grows beyond a limit, the gravest first; else the one of which nobody can say, as it ends higher by $enough and its growth may lie
# beyond, or does from one end to the other: steps, or a slope that is just beginning ($tell: whether such is told). Empty where there is neither. Input: parts.
def beyond($bounds; $metric; $unit; $enough; $tell):
  map(select(.rise >= $enough))
  | first(
      ( [.[] | . as $part | $bounds | bounds::broken($metric; $part.low / $unit) | $part + {severity, sure: true}],
        [.[] | select($tell) | . as $part | $bounds | bounds::broken($metric; ([$part.high, $part.rise / $part.hours] | max) / $unit)
             | $part + {severity: (if .severity == "fail" then "inconclusive" else .severity end), sure: false}] )
      | select(. != []) | sort_by(.severity == "advisory")[0] );

# Input: {role, flow, pid, points: [[time, bytes, handles, line]]}. $tell: as above.
def judged($bounds; $alpha; $tell):
  . as $p
  | ($p.points[-1][0] - $p.points[0][0]) as $life
  | ($p.points[0][0] + warm_up_s($life)) as $from
  | [$p.points[] | select(.[0] >= $from)] as $late
  | (if $late == [] then 0 else $late[-1][0] - $late[0][0] end / hour) as $hours
  | { role: $p.role, flow: $p.flow, pid: $p.pid, samples: ($p.points | length), hours: ($hours | c::rounded), from: ($late[0][0] // null), to: ($late[-1][0] // null),
      resident_bytes_last: $p.points[-1][1], handles_last: $p.points[-1][2], mb_per_hour: null, low: null, high: null,
      handles_per_hour: null, handles_low: null, handles_high: null, judged: false, why: null, found: [] } as $out
  | granted($p.role) as $granted
  | ([$late[] | [.[0], .[1], .[3]]] | parts($alpha; $granted)) as $memory
  # of handles that were not always read those are judged that were; they mostly stand still, and need no slope
  | ([$late[] | select(.[2] != null) | [.[0], .[2], .[3]]]
     | if length > 0 and (map(.[1]) | max - min < granted_handles) then [{slope: 0, low: 0, high: 0, rise: 0}] else parts($alpha; granted_handles) end) as $handles
  | ("\($p.role)" + (if $p.flow == null then "" else " of \($p.flow)" end)) as $name
  | $out
  | if $memory == [] then .why = "\($late | length) samples after its warm-up bear no slope"
    else
      $memory[0] as $whole
      | .mb_per_hour = ($whole.slope / megabyte | c::rounded) | .low = ($whole.low / megabyte | c::rounded) | .high = ($whole.high / megabyte | c::rounded)
      # a leak of the limit's size must have had the time to grow beyond what is granted
      | (($bounds | bounds::tightest("soak.leak_mb_per_hour").most // 1) * megabyte * $hours) as $sensible
      | (if $sensible >= $granted then .judged = true
         else .why = "in \($hours | digits::fixed(2)) h only growth above \($granted / megabyte / $hours | digits::fixed(1)) MB/h can be told from a warm-up" end)
    end
  | (select($handles != []) | $handles[0] as $whole
     | .handles_per_hour = ($whole.slope | c::rounded) | .handles_low = ($whole.low | c::rounded) | .handles_high = ($whole.high | c::rounded)) // .
  # in a short life a few pages are a step, and no leak that could be told
  | .judged as $long
  | .found = [ ( $memory | beyond($bounds; "soak.leak_mb_per_hour"; megabyte; $granted; $tell and $long)
                 | ("\(.low / megabyte | digits::fixed(1)) to \(.high / megabyte | digits::fixed(1))") as $between
                 | "\(.rise / megabyte | digits::fixed(1)) MB" as $rise
                 | anomaly("leak"; "memory"; $p.flow; .)
                   + { value: (.slope / megabyte | c::rounded), unit: "MB/h",
                       text: (if .sure then "\($name) grows by \(.slope / megabyte | digits::fixed(1)) MB/h (\($between)), \($rise) in \(.hours | digits::fixed(1)) h"
                              else "\($name) has grown by \($rise) in \(.hours | digits::fixed(1)) h, and whether it goes on (\($between) MB/h) cannot be told" end) } ),
               ( $handles | beyond($bounds; "soak.handles_per_hour"; 1; granted_handles; $tell)
                 | anomaly("handles"; "handles"; $p.flow; .)
                   + { value: (.slope | c::rounded), unit: "handles/h",
                       text: ("\($name) has \(.rise | digits::fixed(0)) handles more than \(.hours | digits::fixed(1)) h before, "
                              + (if .sure then "and more and more" else "and whether it takes more and more cannot be told" end)) } ) ];

# A process is its number and the moment of its start. Input: the samples.
def points:
  [ .[] | .end_s as $at | .line as $line | .processes[]
    | select((.resident_bytes | c::is_finite) and (.handles == null or (.handles | c::is_finite)))
    | {key: "\(.role) \(.pid) \(.start) \(.flow)", role, flow, pid, point: [$at, .resident_bytes, .handles, $line]} ];

def each: points | group_by(.key) | map({role: .[0].role, flow: .[0].flow, pid: .[0].pid, points: map(.point)});

# Input: each.
def all($bounds; $alpha): map(judged($bounds; $alpha; true));

# Leaks that restarts hide: processes of one role and flow, one after another, as one, each after its own warm-up. Of jobs several run at once, and
# nothing says which follows which.
# Input: each.
def successive($bounds; $alpha):
  map(select(.role != "job")) | group_by([.role, .flow])[] | select(length > 1) | sort_by(.points[0][0])
  | {role: .[0].role, flow: .[0].flow, pid: .[-1].pid, points: (map(.points | (.[0][0] + warm_up_s(.[-1][0] - .[0][0])) as $from | map(select(.[0] >= $from))) | add | sort_by(.[0]))}
  | select(.points != []) | judged($bounds; $alpha; false) | .found[] | select(.kind == "leak")
  | .text += ", over restarts";
