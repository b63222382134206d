# A share of a soak's flows, with all turns of one test between two hosts together -> one document a flow, and one of the drift of all its
# turns. Input (-nR): the lines of each flow's file, ended by "@ LINES DIFFERS" (soak.bash), in the order of $flows.
# $flows, $limits: one-element arrays (--slurpfile). $facts: {run, soak, epoch (s), alpha, states: {HOST: the agent's state}, agents: {HOST: its soak}}.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_drift" as drift;
import "soak_stats" as _;
import "soak_flow" as flow;
import "digits" as _;
import "soak_bounds" as bounds;
import "limits" as _;
import "bounds" as _;
import "words" as _;
import "soak_line" as line;
import "common" as c;

def lines: [label $stop | foreach inputs as $text (0; . + 1;
  if $text[:1] == "@" then {k: "end", text: $text}, break $stop else . as $n | input_line_number as $at | $text | line::digest($n; $facts.run) | .at = $at end)];

def rounded: if . == null then null else c::rounded end;

def figures($median; $total):
  [.[] | select(.k == "interval" and .ok)] as $i
  | ([$i[] | select(.g != null)]) as $b
  | ([$i[] | select(.p50 != null)]) as $l
  | { bandwidth: (if $b == [] then null
        else ($b | min_by(.g)) as $least
          | { mean: (if $total.el > 0 then $total.b * 8e-9 / $total.el | rounded else null end), median: ($median.g | rounded), lowest_interval: ($least.g | rounded),
              lowest_at_s: $least.s, lowest_window: ([$b[].low | select(. != null)] | min | rounded), highest: ($b | max_by(.g).g | rounded) } end),
      latency: (if $l == [] then null
        else ([$l[] | select(.p99 != null)] | max_by(.p99)) as $worst
          | { p50_median: ($median.p50 | rounded), p99_median: ($median.p99 | rounded), p99_highest: ($worst.p99 | rounded), p99_highest_at_s: $worst.s,
              max: ($total.max | rounded), samples_least: ([$l[].samples] | min), samples_median: ([$l[].samples] | c::median) } end),
      corrupt_bytes: (if $total.checked > 0 or $total.bad > 0 then $total.bad else null end),
      checked_bytes: (if $total.checked > 0 then $total.checked else null end) };

# Lines that cannot be used. A half one at the end is what a power cut leaves, and the engine cuts it off; it is one only while nothing follows.
def damaged($last):
  [.[] | select(.k == "damaged" and (.n == $last and .why == "no line of JSON" | not))]
  | .[] | flow::anomaly("damaged"; "lines"; "inconclusive") + {lines: [.n], text: "line \(.n) cannot be used: \(.why)"};

# Input: the digests of one flow, the last one {k: "end"}. $until: when the turn before it was over, by its host's uptime; null: there was none, or
# nobody can say.
def judged($flow; $until):
  .[-1].text as $mark
  | ($mark | split(" ")) as $words
  # without its file a flow is not there, whatever was printed at its end; but a disk that was full from the beginning left all of it there
  | (if $words[1] == "0" and (any(.[]; .k == "soak") | not) then [] else .[:-1] end) as $d
  | ($flow | bounds::of_flow($limits[0].limits // [])) as $bounds
  | $facts.soak as $soak
  | ([$d[] | select(.k == "soak")]) as $heads
  | $heads[0] as $head
  | ([$d[] | select(.k == "whole")] | .[-1]) as $whole
  | ($d | flow::totals) as $total
  | ([$d[] | select(.k == "interval" and .ok)]) as $well
  | {g: ([$well[].g | select(. != null)] | c::median), p50: ([$well[].p50 | select(. != null)] | c::median), p99: ([$well[].p99 | select(. != null)] | c::median)} as $median
  | ([($flow.client_argv // []) | c::option_value(["--duration"]) | c::seconds_of][0]) as $planned
  | line::slack($soak.interval_s) as $slack
  | ($d | flow::chain($soak.interval_s; $slack)) as $chain
  | (if $head.started_ms == null then null else $head.started_ms / 1000 - $facts.epoch end) as $soak_s
  | $facts.states[$flow.client] as $agent
  | ([$d | flow::began($facts.times[$flow.client])][0]) as $began
  | ($d | flow::stop_asked($flow; $facts; $began)) as $asked
  | [ (select($d != []) | flow::foreign($flow; $soak; if $d[0].k == "soak" then $d[0] else null end)),
      (select(($heads | length) > 1) | "line \($heads[1].n) begins another soak"),
      ( select($until != null and $began != null) | select($began < $until - $slack)
        | "it began \($began | flow::seconds) after its agent, when the turn before it had \($until - $began | flow::seconds) to go" ) ] as $foreign
  | (if $d == [] then (if $agent == "running" then "waiting" else "none" end)
     elif $foreign != [] then "foreign"
     elif $whole.soak.stopped == true then "stopped"
     elif $whole != null and $planned - $chain.at <= $slack then "done"
     elif $whole == null and $agent == "running" then "running"
     else "short" end) as $state
  | [ (select($state == "none") | flow::anomaly("hole"; "coverage"; "inconclusive") + {s: null, text: "there is no client.soak of this flow"}),
      ($foreign[] | flow::anomaly("foreign"; "coverage"; "inconclusive") + {lines: [1], text: "its file is of another measurement: \(.)"}),
      ($d | damaged($words[1] | tonumber)), $chain.found[], ($d | flow::short($soak.interval_s; $slack)),
      ($d | flow::gaps($bounds; $asked)), ($d | flow::stall_lines($bounds)),
      ($d | flow::stalls_left($bounds; $soak.stall_s)), ($d | flow::silent($bounds; $soak)),
      ($d | flow::out_of_order), ($d | flow::of_no_connection), ($d | flow::corrupt), ($d | flow::bad_bytes), ($d | flow::clock($bounds)),
      ($d | flow::intervals($bounds; $median)), (select($total.n > 0) | $d | flow::pace($flow; $bounds; $total; $whole)),
      ( select($chain.at > 0 and $chain.between > flow::between_most * $chain.at)
        | flow::anomaly("hole"; "coverage"; "inconclusive") + {s: 0, e: $chain.at, value: ($chain.between | rounded), unit: "s",
            text: "\($chain.between | flow::seconds) of it are in no interval and in no gap"} ),
      ( select($d != [] and $well == [] and ($state == "done" or $state == "short"))
        | flow::anomaly("hole"; "coverage"; "inconclusive") + {s: 0, e: $chain.at, text: "none of its intervals can be judged"} ),
      ( select($whole != null and $state == "short")
        | flow::anomaly("hole"; "coverage"; "inconclusive") + {s: $chain.at, e: $planned, value: ($planned - $chain.at | rounded), unit: "s",
            text: "it ended after \($chain.at | flow::seconds) of \($planned) s"} ),
      ( select($whole != null) | flow::sums($total; $whole; $slack) | flow::anomaly("sum"; "sum"; "inconclusive") + . + {lines: [$whole.n]} ),
      ( select($words[2] == "differs") | flow::anomaly("sum"; "sum"; "inconclusive") + {text: "the last line of client.soak is not what it printed"} ),
      ( ($whole.soak.dropped_lines // 0) as $n | select($n > 0)
        | flow::anomaly("dropped"; "lines"; "inconclusive") + {value: $n, unit: "lines", lines: [$whole.n], text: "\($n) lines were dropped, as disk and memory were full"} ),
      ( select(($flow.client_argv // []) | index("--verify") != null) | $well[] | select(.m > 0 and (.checked // 0) == 0)
        | flow::fact("damaged"; "integrity"; "inconclusive"; .) + {text: "--verify checked no byte in this interval"} ) ] as $found
  | { flow: $flow.id, test: $flow.test, kind: $flow.kind, client: $flow.client, server: $flow.server, turn: ($flow.id | split("/")[3] | tonumber? // 1),
      size_bytes: $flow.expect[0].size_bytes, scope: $flow.scope, backend: $flow.backend, provider: $flow.provider, op: $flow.op,
      $state, soak_s: ($soak_s | rounded), started: (if $head.started_ms == null then null else $head.started_ms / 1000 | line::dated end),
      planned_s: $planned, passed_s: ($chain.at | rounded), measured_s: ($chain.measured | rounded),
      intervals: $total.n, connections: $total.connections, gaps: $total.gaps, gap_s: ($total.gap_s | rounded), stalls: $total.stalls, stall_s: ($total.stall_s | rounded),
      stall_messages: $total.stall_messages, messages: $total.m, bytes: $total.b, resumed: ($whole.soak.resumed == true), stopped: ($whole.soak.stopped == true),
      dropped_lines: ($whole.soak.dropped_lines // 0), figures: ($d | figures($median; $total)),
      # where 0 of the flow lies on the wall, for dates of what has no line
      offset: $soak_s, until: (if $began == null then null else $began + $chain.at end), begun: (if $head.started_ms == null then null else $head.started_ms / 1000 end),
      in_file: ($words[1] | tonumber), found: $found, unusable: [$d[] | select(.k == "damaged" or (.k == "soak" and .n > 1)) | .at] }
    + {series: [$well[] | select(.e - .s > 0.5 * $soak.interval_s) | [($soak_s // 0) + (.s + .e) / 2, .g, .p50, .p99, .n]]};

foreach $flows[0][] as $flow ({key: null, series: [], until: null};
    "\($flow.test)/\($flow.client)/\($flow.server)" as $key
    | (if .key == $key then . else {series: [], until: null} end) as $before
    | (lines | judged($flow; $before.until)) as $told
    | {$key, series: ($before.series + [$told.series[] | . + [$flow.id]]), until: ($told.until // $before.until), told: ($told | del(.series, .until)), ends: $flow.last, $flow};
    .told, (select(.ends) | .series as $series | .flow | drift::of_group($series; bounds::of_flow($limits[0].limits // []); $facts.alpha)))
