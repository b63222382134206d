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

def anomaly($kind; $check; $p; $lines): {$kind, $check, severity: "fail", s: $p.from, e: $p.to, since_soak: true, messages: null, flow: $p.flow, $lines};

def slope($points; $place; $alpha): [$points[] | [.[0] / hour, .[$place]]] | if length < stats::batches_least then null else stats::trend($alpha) end;

# How far the last batch lies above the first.
def rise($points; $place): [$points[] | [.[0], .[$place]]] | stats::batched(stats::batches_least) | .[-1][1] - .[0][1];

# Input: {role, flow, pid, points: [[time, bytes, handles, line]]}.
def judged($bounds; $alpha):
  . as $p
  | ($p.points[-1][0] - $p.points[0][0]) as $life
  | ($p.points[0][0] + warm_up_s($life)) as $from
  | [$p.points[] | select(.[0] >= $from)] as $late
  | (if $late == [] then 0 else $late[-1][0] - $late[0][0] end / hour) as $hours
  | { role: $p.role, flow: $p.flow, pid: $p.pid, samples: ($p.points | length), hours: ($hours | c::rounded), from: ($late[0][0] // null), to: ($late[-1][0] // null),
      resident_bytes_last: $p.points[-1][1], handles_last: $p.points[-1][2], mb_per_hour: null, low: null, high: null,
      handles_per_hour: null, handles_low: null, handles_high: null, judged: false, why: null, found: [] } as $out
  | slope($late; 1; $alpha) as $memory
  # handles mostly stand still, and need no slope
  | (if [$late[][2]] | length > 0 and max - min < granted_handles then {slope: 0, low: 0, high: 0} else slope($late; 2; $alpha) end) as $handles
  | if $memory == null or $memory.low == null then $out | .why = "\($late | length) samples after its warm-up bear no slope"
    else
      rise($late; 1) as $rise
      | rise($late; 2) as $more
      | ([$late[0][3], $late[-1][3]]) as $lines
      | ("\($p.role)" + (if $p.flow == null then "" else " of \($p.flow)" end)) as $name
      | $out
      | .mb_per_hour = ($memory.slope / megabyte | c::rounded) | .low = ($memory.low / megabyte | c::rounded) | .high = ($memory.high / megabyte | c::rounded)
      | .handles_per_hour = ($handles.slope | c::rounded) | .handles_low = ($handles.low | if . == null then null else c::rounded end)
      | .handles_high = ($handles.high | if . == null then null else c::rounded end)
      # a leak of the limit's size must have had the time to grow beyond what is granted
      | (($bounds["soak.leak_mb_per_hour"][0].bound.max // 1) * megabyte * $hours) as $sensible
      | (if $sensible >= granted($p.role) then .judged = true
         else .why = "in \($hours | digits::fixed(2)) h only growth above \(granted($p.role) / megabyte / $hours | digits::fixed(1)) MB/h can be told from a warm-up" end)
      | .low as $low | .high as $high | .mb_per_hour as $slope
      | ([$bounds | bounds::broken("soak.leak_mb_per_hour"; $low)][0]) as $leak
      | (if $leak != null and $rise > granted($p.role) then
           .found += [ anomaly("leak"; "memory"; $out; $lines)
                       + { severity: $leak.severity, value: $slope, unit: "MB/h",
                           text: "\($name) grows by \($slope | digits::fixed(1)) MB/h (\($low | digits::fixed(1)) to \($high | digits::fixed(1))), \($rise / megabyte | digits::fixed(1)) MB so far" } ]
         else . end)
      | .handles_low as $least
      | ([select($least != null) | $bounds | bounds::broken("soak.handles_per_hour"; $least)][0]) as $grow
      | (if $grow != null and $more >= granted_handles then
           .found += [ anomaly("handles"; "handles"; $out; $lines)
                       + {severity: $grow.severity, value: .handles_per_hour, unit: "handles/h", text: "\($name) has \($more | digits::fixed(0)) handles more than after its warm-up, and more and more"} ]
         else . end)
    end;

# A process is its number and the moment of its start. Input: the samples.
def points:
  [ .[] | .end_s as $at | .line as $line | .processes[]
    | select((.resident_bytes | c::is_finite) and (.handles == null or (.handles | c::is_finite)))
    | {key: "\(.role) \(.pid) \(.start) \(.flow)", role, flow, pid, point: [$at, .resident_bytes, (.handles // 0), $line]} ];

def each: points | group_by(.key) | map({role: .[0].role, flow: .[0].flow, pid: .[0].pid, points: map(.point)});

# Input: each.
def all($bounds; $alpha): map(judged($bounds; $alpha));

# Leaks that restarts hide: processes of one role and flow, one after another, as one. Of jobs several run at once, and nothing says which follows which.
# Input: each.
def successive($bounds; $alpha):
  map(select(.role != "job")) | group_by([.role, .flow])[] | select(length > 1) | sort_by(.points[0][0])
  | {role: .[0].role, flow: .[0].flow, pid: .[-1].pid, points: (map(.points) | add | sort_by(.[0]))} | judged($bounds; $alpha) | .found[] | select(.kind == "leak")
  | .text += ", over restarts";
