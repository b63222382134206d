# The soak in the report: how much of it was measured, its anomalies, its flows, what it could not have seen. Input: the
# verdict's `soak`.
import "first_screen" as first_screen;
import "format" as f;
import "soak_chosen" as chosen;
import "soak_words" as w;
import "table" as table;

def anomalies_max: 50;
# So many of one kind at one place, so that a hundred stalls hide no leak.
def alike_max: 8;
def flows_max: 20;
def processes_max: 12;

def is_number: type == "number";

# ---- the first lines ----

def state_words:
  # how much time is left nobody has said: an interval is here once it has ended
  if .running then
    "**It still runs**: " + (if (.passed_s // 0) > 0 then "the first \(.passed_s | w::span) are here, all intervals that had" else "no interval had" end) + " ended when it was fetched."
  elif .state == "done" then "It ran to its end."
  elif .state == "stopped" then "**It was stopped** before its time was over."
  elif .state == "short" then "**It ended before its time was over.**"
  else "**Nothing of it was measured.**" end;

# Connections that were lost, of all flows, and the time of the flow that had none for longest.
def gaps_words:
  [.flows[]? | select((.gaps // 0) > 0)]
  | if . == [] then "no gap" else "\(map(.gaps) | add | f::plural("gap")), \(map(.gap_s // 0) | max | w::span) without a connection in the worst flow" end;

def headline:
  (.measured_s // 0) as $measured
  | "**Soak of \(.duration_s | w::asked)**, \(if .mode == "alternating" then "tests in turn" else "all tests at once" end), an interval each \(.interval_s | w::asked): "
    + "\($measured | w::span) measured (\(if .duration_s > 0 then $measured / .duration_s | w::share else "-" end)) by the flow that has least, \(gaps_words). " + state_words;

def kind_words:
  { corrupt: ["corrupted payload", "corrupted payloads"], hole: "hole", overlap: "overlap", length: "wrong length", foreign: "foreign line", damaged: "damaged line",
    sum: ["sum that differs", "sums that differ"], dropped: "dropped line", host: ["host without samples", "hosts without samples"], gap: "gap", reboot: "reboot", link: "link event", stall: "stall",
    low: "low interval", slow: "slow interval", drift: "drift", change: "change of level", rate: ["rate not kept", "rates not kept"], leak: ["process that grows", "processes that grow"],
    handles: ["process that opens ever more", "processes that open ever more"], counter: ["counter that moved", "counters that moved"], clock: "clock step" };
def counted($kind; $n):
  (kind_words[$kind] // $kind) | if type == "array" then "\($n) \(if $n == 1 then .[0] else .[1] end)"
  elif . == "change of level" and $n != 1 then "\($n) changes of level" else . as $word | $n | f::plural($word) end;

def length_words: if . < 1 then "\(1000 * . | f::plain) ms" else "\(f::plain) s" end;
# A flow's own count has all stalls, anomalies those beyond their limit.
def beyond_words($kind): if $kind == "stall" and (.stall_limits_s // []) != [] then " longer than " + (.stall_limits_s | map(length_words) | join(" or ")) else "" end;

def anomaly_line:
  . as $soak
  | (.anomaly_counts // {}) as $counts
  | ([w::kinds[], ($counts | keys[] | select(. as $k | w::kinds | index([$k]) | not))] | map(select(($counts[.] // 0) > 0))) as $present
  | if $present == [] then
      (if (.measured_s // 0) <= 0 then "Nothing was measured in which an anomaly could have shown."
       elif .state == "done" then "No anomaly was found." else "No anomaly was found in what was measured so far." end)
    else
      "**Anomalies**: " + ([$present[] | . as $k | counted($k; $counts[$k]) + ($soak | beyond_words($k)) | f::cell] | join(", ")) + "." end;

# A flow's times count from its own beginning, which is that of its turn. Input: the flow
def at($s): (if ($s | is_number) and (.soak_s | is_number) then .soak_s + $s else null end) | w::since;

# ---- sentences ----

def findings_max: 6;

# The worst interval of a test, where each of its flows has one.
def worst(figure; pick): map({of: ., v: figure}) | if any(.[]; .v == null) then null else pick end;
def pair: "\(.client | f::cell) to \(.server | f::cell)";
def finding($title):
  if .[0].kind == "bandwidth" then
    worst(.figures.bandwidth.lowest_interval; min_by(.v)) | values
    | "**No interval of \($title) carried less than \(.v | f::figure) Gb/s** (\(.of | pair), \(.of | at(.figures.bandwidth.lowest_at_s)) after the start)"
      + (.of.figures.bandwidth.lowest_window | if is_number then "; in the worst 0.1 s of that flow \(f::figure) Gb/s." else "." end)
  else
    worst(.figures.latency.p99_highest; max_by(.v)) | values
    | "**No interval of \($title) had a p99 above \(.v | f::figure) µs** (\(.of | pair), \(.of | at(.figures.latency.p99_highest_at_s)) after the start)"
      + (.of.figures.latency.max | if is_number then "; the longest message of that flow took \(f::figure) µs." else "." end)
  end;
# $titles: {test: title}, in the plan's order
def findings($titles):
  (.flows // [] | group_by(.test) | map({key: .[0].test, value: .}) | from_entries) as $of
  | [$titles | to_entries[] | .value as $title | $of[.key] | values | finding($title | f::cell)] | .[:findings_max];

# ---- anomalies ----

# What befalls several flows at once is one row: those of one kind that begin within a second of the first, of whole intervals within half of one.
def near($interval): if .kind | IN("low", "slow") then $interval / 2 else 1 end;
def joins($interval): .start_s != null and (.kind | IN("gap", "stall", "low", "slow", "change", "link", "reboot", "clock"));
# [{first, all: [anomaly]}], the one that lasted longest first in all
def together($interval):
  reduce .[] as $a ([];
    (if $a | joins($interval) then
       [to_entries[] | select(.value.first | .kind == $a.kind and .severity == $a.severity and .start_s != null and ($a.start_s - .start_s | fabs) <= ($a | near($interval))) | .key] | last
     else null end) as $at
    | if $at == null then . + [{first: $a, all: [$a]}] else .[$at].all += [$a] end)
  | map(.all |= sort_by(-(.duration_s // 0)));

# Each keeps its place in the verdict, which has the worst first.
def shown($interval):
  together($interval) | to_entries
  | group_by(.value.all[0] | [.kind, .flow, .host]) | map(.[:alike_max][])
  | sort_by(.key) | .[:anomalies_max] | map(.value);

def where:
  # a flow's client is in its name
  if .flow != null then .flow + (if .host == null or .host == (.flow | split("/")[1]) then "" else " at \(.host)" end) | f::cell
  elif .host != null then .host | f::cell else "-" end;

# "FILE:LINE" of one file stand together. The verdict has all.
def lines_max: 3;
def files_max: 2;
def more($n): if . > $n then " and \(. - $n) more" else "" end;
def evidence:
  [.evidence[]? | strings | if test(":[0-9]+$") then {file: sub(":[0-9]+$"; ""), line: sub(".*:"; "")} else {file: ., line: null} end] as $all
  | (reduce $all[].file as $f ([]; if index([$f]) != null then . else . + [$f] end)) as $files
  | if $files == [] then "-" else
      [ $files[:files_max][] as $f
        | [$all[] | select(.file == $f) | .line | values] as $lines
        | ($f | f::code) + (if $lines == [] then "" else ":" + ($lines[:lines_max] | join(", ")) + ($lines | length | more(lines_max)) end) ]
      | join("; ") + ($files | length | more(files_max) | if . == "" then "" else . + " files" end) end;

# The second of two times has its day only where that is another one.
def until($start): if type == "string" and ($start | type) == "string" and .[:10] == $start[:10] then w::clock | .[11:] else w::clock end;

def places: [.[] | .flow // .host] | unique;
def anomaly_row:
  .first as $first | .all as $all | ($all | length - 1) as $others
  | ($all | map(select(.end_s != null)) | max_by(.end_s) // $first) as $last
  | $all[0]
  | [ $first.id + (if $others > 0 then " and \($others) more" else "" end), (first_screen::status_words[.severity // ""] // .severity | f::cell), (.text | f::cell),
      where + ($all | places | length - 1 | if . > 0 then " and \(.) more" else "" end),
      ($first.start | w::clock | f::cell), ($last.end | until($first.start) | f::cell), ($first.start_s | w::since),
      ((.duration_s // (if .start_s != null and .end_s != null then .end_s - .start_s else null end)) | if . == 0 then "-" else w::span end),
      ([$all[].messages | numbers] | if . == [] then "-" else add | f::whole end), evidence ];

def anomalies:
  (.interval_s // 1) as $interval
  | (.anomalies // []) as $all
  | ($all | shown($interval)) as $shown
  | { table: { columns: [ ("No.", "Weight", "What", "Where", "Start, UTC", "End, UTC" | table::left(.)), ("Since the start", "Lasted", "Messages" | table::right(.)), table::left("Evidence") ],
               rows: ($shown | map(anomaly_row)) },
      joined: any($shown[]; .all | length > 1),
      more: (($all | length) - ([$shown[].all | length] | add // 0) + (.anomalies_left_out // 0) | if . > 0 then f::whole else "" end) };

# ---- flows ----

def amount($n; $s): if ($n // 0) == 0 then (if $n == null then "-" else "0" end) else "\($n | f::whole), \($s | w::span)" end;
def rate: if is_number then "\(f::figure) Gb/s" else "-" end;
def time: if is_number then "\(f::figure) µs" else "-" end;
def drift_words: if . == null then "-" elif .judged == false or .over_soak == null then "not judged" else "\(if .over_soak >= 0 then "+" else "-" end)\(100 * .over_soak | fabs | f::figure) %" end;

def flow_row:
  .figures as $g
  | [ (.flow | f::code), (.state | f::cell), (.measured_s | w::span), amount(.gaps; .gap_s), amount(.stalls; .stall_s) ]
    + ( if $g.bandwidth != null then [($g.bandwidth | .mean | rate), ($g.bandwidth | (.lowest_interval | rate) + (if .lowest_window == null then "" else ", in 0.1 s \(.lowest_window | f::figure)" end)), at($g.bandwidth.lowest_at_s)]
        elif $g.latency != null then [($g.latency | "\(.p50_median | time), p99 \(.p99_median | time)"), ($g.latency | "p99 \(.p99_highest | time)" + (if .max == null then "" else ", at most \(.max | f::figure)" end)), at($g.latency.p99_highest_at_s)]
        else ["-", "-", "-"] end )
    + [ (first(.drift[]? | select(.metric == "bandwidth" or .metric == "p50")) // null | drift_words) ];

def flows:
  { table: { columns: [ ("Flow", "State" | table::left(.)), ("Measured", "Gaps", "Stalls" + (if .stall_s == null then "" else " of \(.stall_s | length_words) and more" end), "Typical", "Worst interval", "At", "Drift over the soak" | table::right(.)) ],
             rows: ([.flows[]?] | sort_by(-(.anomalies // 0), -chosen::fall, .flow) | .[:flows_max] | map(flow_row)) },
    more: (.flows // [] | length - flows_max | if . > 0 then f::whole else "" end) };

# ---- hosts ----

def process_rows:
  [.hosts[]? | .host as $host | .processes[]? | . + {host: $host}]
  | sort_by(-(.mb_per_hour // -1e9), -(.resident_bytes_last // 0), .host, .role, .flow) ;

def slope($low; $high): if is_number | not then "-" else "\(f::figure) (\($low | f::figure) to \($high | f::figure))" end;

def processes:
  process_rows as $all
  | { table: { columns: [ ("Process", "Host" | table::left(.)), ("Number", "Watched", "Resident, MB", "MB/h (95 %)", "Handles", "Handles/h (95 %)" | table::right(.)), table::left("Note") ],
               rows: ($all[:processes_max] | map([ (.role + (if .flow == null then "" else " of \(.flow)" end) | f::cell), (.host | f::cell), "\(.pid // "-")",
                       ((.hours // null) | if is_number then . * 3600 | w::span else "-" end), (.resident_bytes_last | if is_number then . / 1e6 | f::figure else "-" end),
                       (.low as $low | .high as $high | .mb_per_hour | slope($low; $high)), (.handles_last | if is_number then f::whole else "-" end),
                       (.handles_low as $low | .handles_high as $high | .handles_per_hour | slope($low; $high)), (.why | if . == null then "-" else f::cell end) ])) },
      more: ($all | length - processes_max | if . > 0 then f::whole else "" end) };

def counters:
  [.hosts[]? | .host as $host | .counters // {} | to_entries[] | select(.value > 0) | "\(.key) \(.value | f::whole) at \($host)"] as $all
  | if $all == [] then "" else "Counted over the soak: " + ($all | f::names(12) | f::cell) + "." end;

# ---- all ----

# $charts: of soak_charts.jq; $titles: {test: title}; $unread: why the lines over time could not be shown, or null
def section($charts; $titles; $unread):
  { findings: findings($titles), headline: headline, anomaly_line: anomaly_line,
    zero_line: (if .started == null then "" else "Times since the start count from \(.started | w::clock | f::cell) UTC." end),
    anomalies: anomalies, flows: flows, processes: processes, counters: counters,
    charts: $charts, unread: ($unread // ""),
    blind: [.blind[]? | .text | f::cell] };
