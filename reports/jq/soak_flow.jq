# The lines of one flow (soak_line.jq) against the plan: which time they cover, and every anomaly that is a fact of single lines.
import "common" as c;
import "digits" as digits;
import "soak_bounds" as bounds;
import "soak_line" as line;
import "words" as words;

# Of the planned time, what all these moments may be together. site policy.
def between_most: 0.05;

def anomaly($kind; $check; $severity): {$kind, $check, $severity, host: null, s: null, e: null, messages: null, value: null, unit: null, lines: []};
def fact($kind; $check; $severity; $d): anomaly($kind; $check; $severity) + {s: $d.s, e: $d.e, lines: [$d.n]};

def seconds: digits::fixed(if fabs < 1 then 3 else 1 end) + " s";

# Lines have nine digits of a number.
def digits: 1e-8;

# Why the file's first line is not that of the planned command; empty where it is.
def foreign($flow; $soak; $head):
  ($flow.client_argv // []) as $argv
  | ($argv | c::option_value(["--duration"]) | c::seconds_of) as $duration
  | ($argv | c::option_value(["--rate"])) as $rate
  | if $head == null then "its first line does not say what was measured"
    elif $head.duration_s | line::near($duration; digits) | not then "it was begun for \($head.duration_s) s, and not for \($duration) s"
    elif $head.interval_s | line::near($soak.interval_s; digits) | not then "its intervals are of \($head.interval_s) s, and not of \($soak.interval_s) s"
    elif $head.stall_s | line::near($soak.stall_s; digits) | not then "its stalls begin at \($head.stall_s) s, and not at \($soak.stall_s) s"
    elif $head.server != $argv[2] then "its server is \($head.server | tojson), and not \($argv[2])"
    elif $head.job.kind != $flow.kind or $head.job.op != $flow.op or $head.job.backend != $flow.backend then
      "it measured \($head.job.kind) of \($head.job.op) over \($head.job.backend), and not as planned"
    elif ($head.job.sizes // []) != [$flow.expect[].size_bytes] then "its messages are of \($head.job.sizes // [] | map(tostring) | join(", ")) bytes"
    elif ($rate != null) != ($head.job.rate > 0) then "its pace is not the planned one"
    elif $head.job.verify != ($argv | index("--verify") != null) then "its payload was \(if $head.job.verify then "" else "not " end)verified"
    elif $head.job.bidirectional != ($argv | index("--bidirectional") != null) then "its directions are not the planned ones"
    else empty end;

# Which time is covered: {at, measured, gap_s, ...} and anomalies of holes, overlaps and lengths. Input: the digests.
def chain($interval; $slack):
  reduce (.[] | select(.k == "interval" or .k == "gap" or .k == "stall")) as $d
    ({at: 0, measured: 0, gap_s: 0, between: 0, covered: 0, found: []};
     if $d.k == "stall" then .covered = ([.covered, $d.e] | max)
     else
       ([.at, ([.covered, $d.s] | min)] | max) as $known
       | .between += ([0, $d.s - .at] | max) + (if $d.k == "interval" and ($d.lossy | not) then [0, $d.e - $d.s - $d.el] | max else 0 end)
       | (if $d.s < .at - 0.001 then
            .found += [fact("overlap"; "coverage"; "inconclusive"; $d) + {text: "it begins \(.at - $d.s | seconds) before the line before it ends: twice, or not one after another"}]
          elif $d.s - $known > $slack then
            .found += [fact("hole"; "coverage"; "inconclusive"; {s: .at, e: $d.s, n: $d.n}) + {value: (($d.s - .at) | c::rounded), unit: "s",
                       text: "\($d.s - .at | seconds) before this line are in no interval and in no gap"}]
          else . end)
       | (if $d.k == "interval" and $d.e - $d.s > 1.1 * $interval + $slack + $d.stall_s then
            .found += [fact("length"; "coverage"; "inconclusive"; $d) + {value: ($d.e - $d.s | c::rounded), unit: "s", text: "an interval of \($d.e - $d.s | seconds), where \($interval) s are planned"}]
          else . end)
       | (if $d.k == "gap" then .gap_s += $d.e - $d.s else .measured += $d.e - $d.s end)
       | .at = ([.at, $d.e] | max)
     end);

# Many intervals in the place of few: each longer than a tenth shorter than planned must have its reason beside it (a gap, a stall before it,
# the end). Input: the digests.
def short($interval; $slack):
  [.[] | select(.k != "stall" and .k != "damaged")] as $d
  | [ range(0; $d | length) as $i | $d[$i]
      | select(.k == "interval" and .ok and .e - .s < 0.9 * $interval - $slack)
      | select($d[$i + 1].k == "interval" and ($d[$i - 1] | .k == "interval" and .stall_s < 0.1 and .e - .s < 1.1 * $interval)) ]
  | select(length > 1)
  | fact("length"; "coverage"; "inconclusive"; .[0])
    + {e: .[-1].e, lines: map(.n), value: length, unit: "intervals", text: "\(length) intervals are shorter than the planned \($interval) s, without a reason beside them"};

# When a flow began, in seconds since its agent did: both know the uptime of their host, which nobody sets. $own: the agent's times. Empty: the
# last connection was of another boot, or nobody can say.
def began($own):
  ([.[] | select(.k == "connection")] | .[-1]) as $last
  | select($last.boot != null and $last.boot == $own.boot and all($last.s, $last.uptime, $own.uptime, $own.counted, $own.passed; c::is_finite))
  | $own.counted + $last.uptime - $own.uptime - $last.s | select(. >= 0 and . <= $own.passed);

# When the first host of $flow was asked to stop, in seconds since the flow began; null: neither was, or nobody can say. Of the two agents only
# their walls tell what lies between their beginnings. $began: as began() says, or null.
def stop_asked($flow; $facts; $began):
  $facts.times[$flow.client] as $own
  | [ select($began != null) | $flow.client, $flow.server | select($facts.states[.] == "stopped") | $facts.times[.]
      | select(all(.begun, $own.begun, .passed, .asked; c::is_finite) and .asked >= 0 and .asked <= .passed)
      | (.begun - $own.begun) as $apart | select($apart | fabs <= line::apart_most) | .asked + $apart - $began ]
  | min;

# What was lost when a host's stop had been asked for, and for good, was ended by that: servers do not wait for a keeper whose agent is slow.
# $asked: as stop_asked() says.
def gaps($bounds; $asked):
  ([.[] | select(.k == "interval" or .k == "connection") | .s] | max // 0) as $latest
  | [.[] | select(.k == "gap") | . + {asked: ($asked != null and .s >= $asked and .e > $latest)}] as $gaps
  | ([$bounds | bounds::broken("soak.gaps"; [$gaps[] | select(.asked | not)] | length)][0]) as $broken
  | $gaps[] | select(.asked or $broken != null)
  | fact("gap"; "gaps"; if .asked then "advisory" else $broken.severity end; .)
    + {value: (.e - .s | c::rounded), unit: "s",
       text: "no connection for \(.e - .s | seconds)\(if .asked then ", after the stop had been asked for" else "" end): \(.reason)"};

def stall_lines($bounds):
  .[] | select(.k == "stall")
  | . as $d | (.e - .s) as $long
  | $bounds | bounds::broken("soak.stall_s"; $long)
  | fact("stall"; "stalls"; .severity; $d)
    + {messages: $d.m, value: ($long | c::rounded), unit: "s",
       text: (if $d.m == 0 then "nothing moved for \($long | seconds) between two intervals" else "no completion for \($long | seconds), \($d.m | words::plural("message")) under way" end)};

# So many stalls of an interval have lines, the longest of them (docs/soak.md).
def stall_lines_max: 64;

# Intervals with the lines of their stalls, which stand before each: {n, s, shortest} in `told`. Input: the digests.
def with_stalls:
  foreach .[] as $d ({n: 0, s: 0, shortest: null, told: null};
    if $d.k == "stall" then
      (if .told != null then {n: 0, s: 0} else . end)
      | .told = null | .n += 1 | .s += $d.e - $d.s | .shortest = ([.shortest // infinite, $d.e - $d.s] | min)
    elif $d.k == "interval" and .told == null then {n: 0, s: 0, told: {n, s, shortest}}
    else {n: 0, s: 0, told: {n: 0, s: 0}} end;
    select(.told != null and $d.k == "interval") | .told as $told | $d | .told = $told);

# Stalls that have no line could be one that breaks a limit, as far as the shortest of them leaves room; what they are in the mean, one of them is at least.
def stalls_left($bounds; $stall_s):
  with_stalls
  | . as $d
  | (.stalls - .told.n) as $left
  | (.stall_s - .told.s) as $rest
  # times are written with nine digits
  | (0.001 + 2e-8 * .e * .told.n) as $grace
  | if .told.n != ([.stalls, stall_lines_max] | min) then
      fact("sum"; "sum"; "inconclusive"; $d) + {text: "\(.stalls | words::plural("stall")) in this interval, of which \(.told.n) have lines"}
    elif ($left == 0 and ($rest | fabs) > $grace) or $rest < -$grace or ($left > 0 and $rest > $left * .told.shortest + $grace) then
      fact("sum"; "sum"; "inconclusive"; $d) + {text: "\(.stall_s | seconds) of stalls in this interval, \(.told.s | seconds) of them in its \(.told.n) lines"}
    else empty end,
    ( select($left > 0)
      | ([$bounds | bounds::broken("soak.stall_s"; $rest / $left) | select(.severity == "fail")] != []) as $sure
      | ([$bounds | bounds::broken("soak.stall_s"; $rest - ($left - 1) * $stall_s) | select(.severity == "fail")] != []) as $possible
      | fact("stall"; "stalls"; if $sure then "fail" elif $possible then "inconclusive" else "advisory" end; $d)
        + {value: .stall_s, unit: "s", text: "\(.stalls) stalls of \(.stall_s | seconds) in one interval, of which \(.told.n) have lines"} );

# How many messages a second a job asks for; 0: as many as there can be.
def per_second:
  (.sizes[0] // 1) as $size
  | (.rate // 0) as $rate
  | if .rate_unit == "messages" then $rate elif .rate_unit == "bytes" then $rate / $size else $rate / 8 / $size end;

# An interval without any completion, though its pace had some due.
def silent($bounds; $soak):
  ([.[] | select(.k == "soak")][0].job // {}) as $job
  | ($job | per_second) as $per_s
  | .[] | select(.k == "interval" and .ok and .m == 0 and .stall_s < .el / 2)
  | (.e - .s) as $long
  | select($long > $soak.stall_s and ($per_s == 0 or $per_s * $long > 1) and ($job.gap_ns // 0) * 1e-9 < $long)
  | ([$bounds | bounds::broken("soak.stall_s"; $long) | select(.severity == "fail")] != []) as $broken
  | fact("stall"; "stalls"; if $broken then "fail" else "inconclusive" end; .)
    + {messages: 0, value: ($long | c::rounded), unit: "s", text: "no completion in an interval of \($long | seconds), and no stall that says so"};

# What no engine writes: an interval that failed in the middle of a connection, and a connection that nothing was lost before. Input: the digests.
def out_of_order:
  [.[] | select(.k != "stall" and .k != "damaged")] as $d
  | range(0; $d | length) as $i
  | $d[$i]
  | (if $i == 0 then null else $d[$i - 1] end) as $before
  | if .k == "interval" and (.ok | not) and .code != line::corrupted and ($d[$i + 1].k | . != null and . != "gap" and . != "whole") then
      fact("damaged"; "lines"; "inconclusive"; .) + {text: "line \(.n) is an interval that failed, and no gap follows it"}
    elif .k == "connection" and any($d[:$i][]; .k == "connection") and $before.k != "gap" then
      fact("damaged"; "lines"; "inconclusive"; . + {e: .s}) + {text: "line \(.n) is another connection, and no gap before it says that one was lost"}
    else empty end;

# Each interval is of the connection whose line stands before it.
def of_no_connection:
  foreach (.[] | select(.k == "connection" or .k == "interval")) as $d (null;
    if $d.k == "connection" then {c: $d.c} else .c as $c | {$c, odd: ($d.c != $c)} end;
    select(.odd) | .c as $c | $d
    | fact("damaged"; "lines"; "inconclusive"; .) + {text: "line \(.n) is of connection \(.c), and the line of \($c // "none") stands before it"});

def corrupt:
  .[] | select(.k == "interval" and (.code == line::corrupted) and (.bad // 0) == 0)
  | fact("corrupt"; "integrity"; "fail"; .) + {unit: "bytes", text: "bytes arrived corrupted, as its error says"};

def bad_bytes:
  .[] | select(.k == "interval" and (.bad // 0) > 0)
  | fact("corrupt"; "integrity"; "fail"; .)
    + { value: .bad, unit: "bytes",
        text: ("\(.bad) of \(.checked) bytes arrived corrupted"
               + (if .first_bad | type == "object" then
                    .first_bad | ", the first at byte \(.offset | c::spoken) of message \(.message | c::spoken), \(.at | c::spoken): "
                                 + "\(.found | c::spoken) in place of \(.expected | c::spoken)"
                  else "" end)) };

# Where the wall's clock moved against the one that only counts: NTP slews by 500 ppm at most (RFC 5905), and times are written in milliseconds.
def clock($bounds):
  ($bounds | bounds::tightest("soak.clock_s")) as $tightest
  | [.[] | select(.w != null and .s != null) | [.s, .w - .s, .n], (select(.v != null and .e != null) | [.e, .v - .e, .n])]
  | sort_by(.[0])
  | . as $t
  | range(1; length) as $i
  | $t[$i] as [$at, $off, $n]
  | $t[$i - 1] as [$from, $before]
  | (($off - $before | fabs) - 0.002 - 5e-4 * ($at - $from))
  | select(bounds::within($tightest) | not)
  | . as $stepped
  | $bounds | bounds::broken("soak.clock_s"; $stepped)
  | anomaly("clock"; "clock"; .severity)
    + {s: $from, e: $at, lines: [$n], value: ($off - $before | c::rounded), unit: "s", text: "the clock on the wall was set by \($off - $before | digits::fixed(3)) s"};

# What of an interval's figures lies beyond a limit, by itself or as a share of the flow's median interval.
def beyond($bounds; $tightest; $metric; $value; $d; $kind; $check; words):
  $value
  | select(c::is_finite and (bounds::within($tightest[$metric]) | not))
  | . as $v
  | $bounds | bounds::broken($metric; $v)
  | fact($kind; $check; .severity; $d) + ($v | words);

# Three digits of a figure, and all of a large one: 28,738, 2.29, 0.0155.
def figure:
  if . == 0 then "0"
  else (if fabs >= 100 then 0 elif fabs >= 10 then 1 elif fabs >= 1 then 2 elif fabs >= 0.1 then 3 else 4 end) as $decimals
    | digits::fixed($decimals) | digits::grouped
  end;

def intervals($bounds; $median):
  (reduce ("interval_gbit_s", "interval_share", "window_share", "p99_us", "p99_times") as $m ({}; .["soak." + $m] = ($bounds | bounds::tightest("soak." + $m)))) as $t
  | .[] | select(.k == "interval" and .ok)
  | . as $d
  | if .g != null then
      beyond($bounds; $t; "soak.interval_gbit_s"; .g; $d; "low"; "interval"; {value: $d.g, unit: "Gb/s", text: "\($d.g | figure) Gb/s in this interval"}),
      ( select($median.g > 0)
        | beyond($bounds; $t; "soak.interval_share"; .g / $median.g; $d; "low"; "interval";
            {value: $d.g, unit: "Gb/s", text: "\($d.g | figure) Gb/s, \(. * 100 | digits::fixed(0)) % of the median interval"}),
          ( select(.low != null)
            | beyond($bounds; $t; "soak.window_share"; .low / $median.g; $d; "low"; "interval";
                {value: $d.low, unit: "Gb/s", text: "\($d.low | figure) Gb/s in a window of this interval, \(. * 100 | digits::fixed(0)) % of the median interval"}) ) )
    elif .p99 != null then
      beyond($bounds; $t; "soak.p99_us"; .p99; $d; "slow"; "latency"; {value: $d.p99, unit: "us", text: "p99 of \($d.p99 | figure) us in this interval"}),
      ( select($median.p99 > 0)
        | beyond($bounds; $t; "soak.p99_times"; .p99 / $median.p99; $d; "slow"; "latency";
            {value: $d.p99, unit: "us", text: "p99 of \($d.p99 | figure) us, \(. | digits::fixed(1)) times the median interval's"}) )
    else empty end;

# A pacer that is behind by more gives up what is due (RUN_RATE_BACKLOG_S of the engine).
def backlog_s: 1;

# Bandwidth that is behind its pace makes up for it, over ends of intervals; latency begins anew with each. -> bandwidth's intervals with `due`,
# what the pace allows to be sent in each: what it asks for, and what those before it owe. Input: the digests.
def with_due($per_s; $carries):
  def owed: [[., 0] | max, backlog_s * $per_s] | min;
  foreach (.[] | select(.k == "interval" or .k == "connection")) as $d ({at: null, owed: 0};
    if $d.k == "connection" or ($carries | not) then {at: null, owed: 0} else . end
    | if $d.k == "interval" then
        .due = (.owed + $per_s * ($d.s - (.at // $d.s)) | owed) + $per_s * ($d.e - $d.s)
        | .owed = (.due - $d.m | owed) | .at = $d.e
      else . end;
    select($d.k == "interval") | .due as $due | $d | .due = $due);

# The pace: no interval may carry more than it, but for what one message and what was under way may add; and all of them together what it
# asks for, but for times in which nothing could move.
def pace($flow; $bounds; $total; $whole):
  . as $d
  | ($d | map(select(.k == "soak"))[0].job) as $job
  | ($job // {} | per_second) as $per_s
  | select($per_s > 0)
  | ($job.outstanding // 1) as $under_way
  # how many percent of the pace are too many, or too few
  | def off($share): [$bounds | bounds::broken("soak.rate_percent"; $share * 100)][0];
    ( $d | with_due($per_s; $flow.kind == "bandwidth") | off((.m - 1 - $under_way) / ([.due, 1e-9] | max) - 1) as $broken | select($broken != null)
      | fact("rate"; "rate"; $broken.severity; .) + {value: (.m / .el / $per_s | c::rounded), unit: "of the pace", text: "\(.m) messages in \(.el) s, where the pace allows \(.due | floor)"} ),
    ( select($total.el > 0 and $total.m > 1)
      | (($total.m - $total.n - $under_way) / $total.el / $per_s) as $least
      | ($total.m / ($total.el - $total.stall_s | if . > 0 then . else 1e-9 end) / $per_s) as $most
      | off($least - 1) as $more | off(1 - $most) as $less
      | anomaly("rate"; "rate"; "inconclusive") + {s: 0, e: $total.end, unit: "of the pace"}
      | if $more != null then . + {severity: $more.severity, value: ($least | c::rounded), text: "the flow sent \($least * 100 | digits::fixed(1)) % of its pace"}
        elif $less != null then . + {severity: (if $less.severity == "fail" then "inconclusive" else $less.severity end), value: ($most | c::rounded), text: "the flow kept \($most * 100 | digits::fixed(1)) % of its pace only"}
        else empty end );

# The whole is the sum of its lines, but for those that were dropped.
def sums($total; $whole; $slack):
  ($whole.soak // {}) as $soak
  | def unlike($what; $sum; $said; $grace):
      if $said == null then select($sum > 0) | "no \($what) in the whole, \($sum | c::rounded) in the lines"
      else
        select(if ($soak.dropped_lines // 0) > 0 then $sum > $said + $grace else ($sum - $said | fabs) > $grace end)
        | "\($said) \($what) in the whole, \($sum | c::rounded) in the lines"
      end;
  [ unlike("intervals"; $total.n; $soak.intervals; 0), unlike("gaps"; $total.gaps; $soak.gaps; 0), unlike("stalls"; $total.stalls; $soak.stalls; 0),
    unlike("s of gaps"; $total.gap_s; $soak.gap_s; 0.01 + 1e-6 * $total.gap_s), unlike("s of stalls"; $total.stall_s; $soak.stall_s; 0.01 + 1e-6 * $total.stall_s),
    unlike("s"; $total.el; $whole.el; 0.01 + 1e-6 * $total.el), unlike("s passed"; $total.end; $soak.passed_s; $slack),
    unlike("connections"; $total.connections; $soak.connections; 0),
    (select($whole.kind == "bandwidth") | unlike("bytes"; $total.b; $whole.bytes; 0)),
    (select($whole.kind == "latency") | unlike("samples"; $total.samples; $whole.count; 0)), unlike("corrupted bytes"; $total.bad; $whole.bad; 0),
    # Of all intervals together a percentile is at least the least of theirs. It is at most the most of the next one's, as each is that of its
    # nearest rank. Three digits of each.
    ( select(($soak.dropped_lines // 0) == 0) | range(0; $total.least | length) as $i | ($whole.tail // [])[$i] | numbers
      | select(. < $total.least[$i] * 0.99 or . > ($total.most[$i + 1] // $total.max // infinite) * 1.01)
      | "a \(line::percentiles[$i] | sub("_"; ".")) of \(.) us, outside of those of its intervals" ),
    ( select($total.max != null and $whole.max != null and ($total.max / $whole.max - 1 | fabs) > 0.001 and ($soak.dropped_lines // 0) == 0)
      | "a maximum of \($whole.max) us, and one of \($total.max) us in the lines" ) ]
  | .[] | {text: .};

# Of each percentile the least and the most that intervals have. Where one has none its samples lie anywhere above the percentile below, so that
# nothing is the most, and the least is that of the percentile below.
def tails($all):
  reduce range(0; line::percentiles | length) as $i ({least: [], most: []};
    [$all[][$i]] as $these
    | if $these == [] then . elif all($these[]; . != null) then .least += [$these | min] | .most += [$these | max]
      else .least += [.least[-1] // 0] | .most += [null] end);

def totals:
  . as $d
  | [.[] | select(.k == "interval")] as $i
  | [.[] | select(.k == "gap")] as $gaps
  | def sum(f): reduce ($i[] | f) as $x (0; . + $x);
    def extreme(f; g): [$i[] | f | select(. != null)] | g;
    { n: ($i | length), m: sum(.m), b: sum(.b), el: sum(.el), stalls: sum(.stalls), stall_s: sum(.stall_s), samples: sum(.samples // 0), bad: sum(.bad // 0),
      checked: sum(.checked // 0), gaps: ($gaps | length), gap_s: (reduce $gaps[] as $g (0; . + $g.e - $g.s)),
      "end": ([$d[] | select(.k == "interval" or .k == "gap") | .e] | max // 0), connections: ([$d[] | select(.k == "connection")] | length),
      stall_messages: (reduce ($d[] | select(.k == "stall") | .m // 0) as $m (0; . + $m)),
      max: extreme(.max; max) } + tails([$i[].tail | values]);
