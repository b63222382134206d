# The path proof as the report shows it: a row a test, and the counters that should have stood still.
import "format" as f;
import "table" as table;
import "counters" as counters;

def sep: "\t";

# ---- while the records pass (series.jq) ----

# Messages that an unreliable connection lost are of one size; no device counts them.
def lost:
  select((.loss.lost_messages // 0) > 0)
  | [(["moved", .test, "both ends", "lost messages of \(.params.size_bytes) bytes", .flow] | join(sep)), .loss.lost_messages];

# What is the flow's stands on every record of it, and is set again and again.
def updates:
  lost,
  (select(.path != null)
  | [(["path", .test, .flow] | join(sep)),
     {claimed: .path.claimed_bytes, client: .path.client_device_bytes, server: .path.server_device_bytes, state: .path.state}],
    ( .test as $test | .flow as $flow
      | ("client", "server") as $role
      | .counters[$role] // {} | to_entries[]
      | (if .value | type == "object" then .key as $device | .value | to_entries[] | {name: "\($device) \(.key)", key, value}
         else {name: .key, key, value} end)
      | select(.value != null and .value > 0 and (.key | counters::is_trouble))
      | [(["moved", $test, $role, .name, $flow] | join(sep)), .value] ));

# ---- state -> tables ----

def words: {proven: "proven", contradicted: "CONTRADICTED", exceeded: "more than claimed", unknown: "not known", not_judged: "not judged"};
def gravity: {contradicted: 0, exceeded: 1, unknown: 2, not_judged: 3, proven: 4}[.];

def megabytes($key): map(.[$key] | select(. != null)) | if . == [] then "-" else add / 1e6 | f::figure end;

def states: group_by(.state) | sort_by(.[0].state | gravity) | map("\(length) \(words[.[0].state])") | join(", ");

def entries($prefix): [to_entries[] | select(.key | startswith($prefix + sep)) | {parts: (.key | split(sep)), value}];

# jq 1.6 has no cheaper grouping than this one; it sees each flow once.
def table($tests):
  (entries("path") | group_by(.parts[1]) | map({key: .[0].parts[1], value: map(.value)}) | from_entries) as $by_test
  | { columns: [table::left("Test"), table::right("Flows"), table::right("Claimed, MB"), table::right("Client's device, MB"),
                table::right("Server's device, MB"), table::left("Path")],
      rows: [ $tests[] | . as $test | $by_test[.name] | select(. != null)
              | [($test.title | f::cell), (length | f::whole), megabytes("claimed"), megabytes("client"), megabytes("server"), states] ] };

def most_moved: 20;

def moved($tests):
  ($tests | map({key: .name, value: .title}) | from_entries) as $title
  | [ entries("moved") | group_by(.parts[1:4])[]
      | {title: $title[.[0].parts[1]], role: .[0].parts[2], name: .[0].parts[3], sum: (map(.value) | add), flows: length} ]
  | sort_by(-.sum)
  | { rows: (.[:most_moved] | map("\(.title | f::cell), \(.role): \(.name | f::cell) \(.sum | f::whole)"
                                  + (if .flows > 1 then " in \(.flows) flows" else "" end))),
      more: ([length - most_moved, 0] | max) };
