# A soak: the suite's tests for hours, all at the same time or in turns; when each flow runs, and how much disk it takes.
import "units" as u {search: "./"};

# Seconds that say what was written: 1.1h is 3960 s, and 3960.0000000000005 to a computer.
def microseconds: . * 1e6 | round / 1e6;

# "24h", "7d" -> seconds. Days are the plan's own: the engine is given seconds. A number without a unit is refused, as nobody
# knows whether 24 is hours.
def planned_seconds($what):
  if type == "string" and test("^(?=.*[1-9])[0-9]+([.][0-9]+)?(s|m|h|d)$") then
    capture("^(?<n>[0-9.]+)(?<u>.)$") | (.n | tonumber) * {s: 1, m: 60, h: 3600, d: 86400}[.u] | microseconds
  else error("\($what) \(tojson) is no time with a unit; write 90s, 24h or 7d") end;

# The longest time that the engine takes (TIME_MAX, engine/src/options_table.c).
def longest_s: 365 * 86400;

# The shortest interval and stall that it takes (the same), and no shorter time to connect in is of use.
def least_s: 0.001;

# Turns of one plan: each is a round, and the reports hold every flow of all of them.
def most_turns: 5000;

# ---- what cannot be -----------------------------------------------------------------------------------------------

# Of a test: first reason only; empty when it can be soaked.
def contradiction:
  .params as $p
  | if .tool != "perch" or (.kind | IN("latency", "bandwidth") | not) then
      "a soak is of tool perch and of kind latency or bandwidth, which keep each interval"
    elif .backend == "null" then "a soak is of the network, and backend null touches none"
    elif (.repeat // 1) != 1 then "a soak has no repeats; its intervals are them"
    elif ("iterations", "duration", "interval") as $k | $p[$k] != null then
      "\(first(("iterations", "duration", "interval") | select($p[.] != null))) is not a test's to say in a soak: it lasts as soak_duration and interval of soak say"
    elif ($p.size | u::sizes | length) != 1 then "a soak measures one size a test"
    else empty end;

# The suite's soak{} with its defaults, and the play's duration, in seconds; or the end of the plan.
def settings:
  .soak_duration as $asked
  | (.suite.soak // error("suite \(.suite.name) is no soak: it has no key soak (playbooks/suites/soak.yml has one)"))
  | {mode: "mixed", pairs: (if .mode == "alternating" then "all" else "ring" end), turn: "10m", interval: "60s", stall: "20ms", reconnect: "30m"} + .
  | { duration_s: ($asked | planned_seconds("soak_duration")), interval_s: (.interval | u::seconds | microseconds),
      stall_s: (.stall | u::seconds | microseconds), reconnect_s: (.reconnect | u::seconds | microseconds), mode,
      turn_s: (if .mode == "mixed" then null else .turn | u::seconds | microseconds end),
      pairs, texts: {interval, stall, reconnect, turn, duration: $asked} }
  | ([("interval", "stall", "reconnect") as $what | select(.[$what + "_s"] < least_s) | $what]) as $short
  | if $short != [] then error("the suite's \($short[0]), \(.texts[$short[0]]), is shorter than 1 ms, the shortest that the engine tells")
    elif .duration_s > longest_s then error("soak_duration \(.texts.duration) is longer than 365 days, the longest that the engine takes")
    elif .interval_s > .duration_s then
      error("the suite's interval, \(.texts.interval), is longer than soak_duration, \(.texts.duration): there would be no whole one; a longer soak_duration, or a shorter "
        + "soak.interval in a suite of your own (plan_suite_file), has some")
    elif .turn_s != null and .interval_s > .turn_s then
      error("the suite's interval, \(.texts.interval), is longer than its turn, \(.texts.turn): there would be no whole one; soak.interval and soak.turn are the suite's to say (plan_suite_file)")
    elif .stall_s >= .interval_s then error("the suite's stall, \(.texts.stall), is not below its interval, \(.texts.interval)")
    else . end;

# ---- who with whom ------------------------------------------------------------------------------------------------

# Each host sends to the next one, the last to the first: all send and all receive. Two hosts: one there, one back.
def ring: . as $host | [range(length) | [$host[.], $host[(. + 1) % ($host | length)]]];

# Every two hosts once; who sends is such that each host sends about as often as it receives.
def mesh:
  . as $host
  | [range(length) as $i | range($i + 1; length) as $j
     | if ($j - $i) % 2 == 1 then [$host[$i], $host[$j]] else [$host[$j], $host[$i]] end];

# The turns of a test; $circle: its rounds in which no two pairs share a host. Mixed, all is one.
def turns($pairs; $able; $circle):
  if ($able | length) < 2 then []
  elif $pairs == "ring" then [$able | ring]
  elif $circle == null then [$able | mesh]
  else $circle end;

# Tests with their circle -> {test, turn, duration_s, pairs} for each round and test of it. In turns: through all tests and their
# rounds, and again with the ends exchanged, until the time is over. A rest that is shorter than an interval is the last
# turn's; one that is not is a turn of its own.
def schedule($soak; $tests):
  if $soak.mode == "mixed" then
    [[$tests[] | {test: ., turn: 1, duration_s: $soak.duration_s, pairs: turns($soak.pairs; .part.able; null)[0]} | select(.pairs != null)]
     | select(. != [])]
  else
    [$tests[] | . as $test | turns($soak.pairs; .part.able; .circle)[] | {$test, pairs: .}] as $cycle
    | ($cycle | length) as $n
    | ($soak.duration_s / $soak.turn_s | microseconds | floor) as $whole
    | ($soak.duration_s - $whole * $soak.turn_s | microseconds) as $rest
    | ($whole + if $rest >= $soak.interval_s then 1 else 0 end) as $count
    | if $n == 0 then []
      elif $count < $n then
        error("soak_duration \($soak.texts.duration) has no room for all: \($n) turns of \($soak.texts.turn) measure each test and each pair once")
      elif $count > most_turns then
        error("soak_duration \($soak.texts.duration) makes \($count) turns of \($soak.texts.turn), and \(most_turns) are possible; a longer turn makes fewer")
      else
        [range($count) as $i
         | (($i / $n) | floor) as $past
         | [$cycle[$i % $n]
            | { test, turn: ($past + 1), pairs: (if $past % 2 == 1 then [.pairs[] | [.[1], .[0]]] else .pairs end),
                duration_s: (if $i == $count - 1 then $soak.duration_s - $i * $soak.turn_s | microseconds else $soak.turn_s end) }]]
      end
  end;

# A test as its flows of this length run it: engine options of the same names.
def lasting($soak; $duration_s):
  .params += ($soak.texts | {duration: "\($duration_s)s", interval, stall, reconnect, soak: "client.soak"});

# Seconds after which a flow has ended for certain: the keeper ends when its time is over, and at once when it has made nothing
# of a lost connection for `reconnect`; one that was lost just before the end is not awaited. Half a minute beside that, as any flow has.
def deadline_s($soak; $duration_s): $duration_s + $soak.reconnect_s + 30;

# ---- how much it takes on disk ------------------------------------------------------------------------------------

# Bytes of a line, twice the largest that was seen with the engine over tcp and ofi on loopback, as a host with other figures has longer
# numbers: an interval of bandwidth 1.1 KB, of latency with its histogram 3.6 KB.
def line_bytes: {bandwidth: 2200, latency: 7200}[.];
# A line of samples: 2.0 to 2.8 KB with one interface and eight flows; ethtool's own counters of a card are some hundreds more.
def sample_bytes: 16384;
# Stalls that an interval has lines for at most (docs/soak.md), each of 190 bytes. One in ten intervals with all of them is a soak that has
# failed already.
def stall_bytes: 64 * 190 / 10;
# The archive that is made on the host when results are fetched: text, of which gzip leaves less than a third.
def with_archive: . * 4 / 3 | ceil;

# {HOST: bytes} of what a host writes.
def space($soak; $rounds; $hosts):
  def intervals($duration_s): ($duration_s / $soak.interval_s) | ceil + 4; # the first line, connection, whole, and one more
  ($hosts | map_values(intervals($soak.duration_s) * sample_bytes)) as $samples
  | reduce ($rounds[][] | . as $part | .pairs[] | {host: .[0], part: $part}) as $flow ($samples;
      .[$flow.host] += intervals($flow.part.duration_s) * (($flow.part.test.kind | line_bytes) + stall_bytes))
  | map_values(with_archive);

# What the plan says of it.
def said($soak; $rounds; $hosts):
  ($soak | {duration_s, interval_s, stall_s, reconnect_s, mode, turn_s}) + {space_bytes: space($soak; $rounds; $hosts)};
