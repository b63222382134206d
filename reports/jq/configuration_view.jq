# How the fabric was configured while it was measured: flow control, classes, congestion notification, as the hosts' checks
# found them; limits; versions of the tools; what each test asked for.
import "format" as f;
import "table" as table;

# What a reader calls the checks whose facts stand here, in this order.
def titles:
  { "qos-pfc": "Priority flow control (PFC)", "qos-buffers": "Receive buffers, headroom of PFC", "qos-pfc-watchdog": "PFC watchdog",
    "qos-pause": "Link pause", "qos-ets": "Classes (ETS)", "qos-dcbx": "Who owns DCBX", "qos-dscp-trust": "What the NIC trusts",
    "qos-dscp-priority": "DSCP to priority", "qos-roce-tos": "Traffic class of RoCE", "qos-path": "The way of a packet",
    "qos-ecn": "ECN", "qos-ecn-parameters": "ECN parameters", "qos-cnp": "Congestion notification packets",
    "slingshot-libfabric": "libfabric of Slingshot" };

def where($all): .hosts | if . == null and $all > 1 then "all hosts" elif . == null then "the host" else f::names(8) | f::cell end;

def said: if .status == "unknown" then "not known: \(.found // "not read" | f::cell)" elif .status == "bad" then "**\(.found | f::cell)**" else .found | f::cell end;

# $facts of the verdict -> a row for each thing and value. What does not apply anywhere is left out.
def qos($facts; $all):
  { columns: ["Setting", "Device", "Found", "Hosts" | table::left(.)],
    rows: [ titles | to_entries[] as $title
            | ($facts // [])[] | select(.id == $title.key and .status != "not_applicable")
            | [$title.value, (.device | f::cell), said, where($all)] ] }
  | .more = ([(.rows | length) - 200, 0] | max) | .rows |= .[:200]
  | table::slim;

# Which bounds judge: a set, and what a site has put in place of some of them.
def limits($limits; $plan):
  ($limits.limits // []) as $all
  | if $all == [] then ["No limits: the run has no `inputs/limits.json` that can be read."]
    else
      [ "Limits *\($limits.name // $plan.limits | f::cell)*"
        + (if $limits.title != null then " (\($limits.title | f::cell))" else "" end)
        + ": \([$all[] | select(.severity == "required")] | length) required, \([$all[] | select(.severity == "advisory")] | length) advisory; "
        + "each with its source in `inputs/limits.json`.",
        ([ $all[] | select(.site == true or (.source // "" | test("^site policy"))) | .id ] | length
         | if . > 0 then "Of these, \(.) are site policy: nobody but the site stands behind their figures." else empty end) ]
    end;

def versions($environments):
  ($environments | length) as $n
  | { columns: ["Program", "Version", "Hosts" | table::left(.)],
      rows: [ [ $environments[] | .host as $host | .versions // {} | to_entries[] | select(.value != null) | . + {$host} ]
              | group_by([.key, .value])[]
              | [ (.[0].key | f::cell), (.[0].value | f::cell),
                  (if length == $n and $n > 1 then "all hosts" else map(.host) | f::names(8) end) ] ] };

def lines($plan; $verdict; $limits):
  [ limits($limits; $plan)[],
    ( if $verdict.facts == null then
        "Flow control, classes and ECN of the hosts were not read: the hosts' checks did not run, or left nothing that can be judged." else empty end ),
    ( if ($verdict.switches // []) == [] then "Of the switches nothing was read." else empty end ),
    "ECN thresholds and buffers (PFC headroom) of switches are not read by this version: keep their configuration beside this report." ];

def section($plan; $verdict; $environments; $limits):
  { lines: lines($plan; $verdict; $limits), qos: qos($verdict.facts; $plan.hosts | length), versions: versions($environments) };
