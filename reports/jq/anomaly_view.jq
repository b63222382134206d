# What was out of the ordinary, with its time, flow and evidence: what the records show, and counters, tails, flaps, logs of the
# verdict's checks.
import "format" as f;
import "table" as table;

# Checks that tell of something that happened, not of how something is set.
def tells:
  (.status | IN("fail", "inconclusive", "advisory"))
  and (.id | test("^(counters|interval|tail|clock|drift)/"
                  + "|^switch/(drops|drops-elsewhere|pause-storms|errors|link-up)"
                  + "|^host_check/(machine-(link-flaps|pcie-log|pcie-log-others|hardware-log|memory-errors|throttled)|nic-(port|interface)-errors|nic-pcie-errors|slingshot-(link-flaps|codewords|retry-handler))"));

def when_of: [.evidence[]? | capture(" at (?<t>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)").t] | .[0];

def of_check:
  { kind: "check", when: when_of, where: (.evidence[:2] | join(", ") | if . == "" then null else . end),
    what: ("\(.title): \(.unit as $unit | .measured | f::value($unit))"
           + if .limit == null then "" else " (limit: \(.unit as $unit | .limit | f::bound($unit)))" end),
    flow: null, evidence: ("check " + (.id | f::code)), of: .id };

def phase: if .kind == "check" then (if .of | startswith("host_check/") then "before the run" else "during the run" end) else "not known" end;

# As many as anomaly_rows.jq keeps of each kind
def rows_max: 60;

def kinds: ["error", "stall", "interval", "check", "spike"];

# Input: what anomaly_rows::of_records found.
def section($checks):
  .more as $more
  | (.rows + [$checks[] | select(tells) | of_check]
   | sort_by((.kind as $k | kinds | index($k)), .when // "~", .where)) as $all
  | { table: { columns: ["When", "Where", "What", "Evidence" | table::left(.)],
               rows: ($all[:rows_max]
                      | map([ (.when // phase | f::cell), (.where | if . == null then "-" else f::code end), (.what | f::cell),
                              (.evidence // "record \(.where | f::code), \("raw/\(.flow | split("/")[1])/flows/\(.flow)/" | f::code)") ])) },
      more: ([($all | length) - rows_max, 0] | max + $more) };
