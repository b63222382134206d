# The path proof as the report shows it: a row a test, and the counters that should have stood still. Input: the state of passing.jq.
import "format" as f;
import "table" as table;

def sep: "\t";

def words: {proven: "proven", contradicted: "CONTRADICTED", exceeded: "more than claimed", unknown: "not known", not_judged: "not judged"};
def gravity: {contradicted: 0, exceeded: 1, unknown: 2, not_judged: 3, proven: 4}[.];

def megabytes: if . == null then "-" else . / 1e6 | f::figure end;

def states: to_entries | sort_by(.key) | sort_by(.key | gravity) | map("\(.value) \(words[.key])") | join(", ");

def table($tests):
  . as $state
  | { columns: [table::left("Test"), table::right("Flows"), table::right("Claimed, MB"), table::right("Client's device, MB"),
                table::right("Server's device, MB"), table::left("Path")],
      rows: [ $tests[] | . as $test | $state["path" + sep + .name] | select(. != null)
              | [($test.title | f::cell), (.[0] | f::whole), (.[1:4][] | megabytes), (.[4] | states)] ] };

def most_moved: 20;

def moved($tests):
  ($tests | map({key: .name, value: .title}) | from_entries) as $title
  | [ to_entries[] | select(.key | startswith("moved" + sep)) | (.key | split(sep)[1:]) as $of
      | {key: $of, title: $title[$of[0]], role: $of[1], name: $of[2], sum: .value[0], flows: .value[1]} ]
  | sort_by(.key)
  | sort_by(-.sum)
  | { rows: (.[:most_moved] | map("\(.title | f::cell), \(.role): \(.name | f::cell) \(.sum | f::whole)"
                                  + (if .flows > 1 then " in \(.flows) flows" else "" end))),
      more: ([length - most_moved, 0] | max) };
