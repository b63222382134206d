# Documents of import_<tool>.jq -> {plan, faults}: the plan (perch.plan/1) of a run whose outputs were measured elsewhere. Each
# output is a flow, and owes what it was read to hold; judge reads the files again. What could not be read owes one record.
# $run, $created, $limits; $rate: the person's word; $files: one-element array of the lines of import_outputs.awk's `files`;
# $names: one-element array of {copy: the file's name as it was given}.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_record" as i;
import "recorded" as _;
import "asked" as _;
import "scope" as _;
import "path" as _;
import "digits" as _;
import "wire" as _;
import "common" as _;
import "claims" as _;
import "planned" as _;

def expected:
  if .status != "ok" then {size_bytes: null}
  elif .kind == "transfer" then {kind, size_bytes: .params.size_bytes, batch: .params.batch, pair: .transfer.pair}
  else {size_bytes: .params.size_bytes} end;

def kind_of($tool): [.parts[].kind | strings][0] // {mori: "transfer"}[$tool] // "bandwidth";

# The link's rate: what the person says, else what the document says in so many words.
def link($document):
  if $rate != null then {rate_gbit_s: $rate, source: "given with --link-rate"}
  elif $document.rate // "" | . == "" or . == "x" then null
  else {rate_gbit_s: ($document.rate | tonumber), source: "\($document.file):\($document.line), in words"} end;

def planned($flow; $documents):
  . as $doc
  | ([.parts[] | select(.status == "ok")][0]) as $one
  | link($documents[$doc.file]) as $link
  | { id: $flow.id, test: $flow.test, title: (if $one.record then $flow.test else i::title end), repeat: $flow.repeat,
      tool: $doc.tool, backend: $one.backend, provider: $one.provider, op: $one.op, kind: kind_of($doc.tool),
      client: $flow.client, server: $flow.server, scope: "imported", client_argv: ($doc.command // []), server_argv: [],
      expect: [.parts[] | expected], import: {file: $doc.file, line: $doc.line, $link} };

# Names of tests must differ: what is called alike is no repeat of one thing, for nobody said so.
def named:
  reduce .[] as $doc ({names: {}, out: []};
    ($doc | i::test_name) as $name
    | ((.names[$name] // 0) + 1) as $n
    | .names[$name] = $n
    | .out += [$doc | i::flow(if $n > 1 then "\($name)-\($n)" else $name end)])
  | .out;

([$files[0][] | {key: .[0], value: {file: .[0], rate: .[2], line: .[3]}}] | from_entries) as $documents
| [i::without_servers(inputs)] as $all
| ($all | named) as $flows
| [range(0; $all | length) as $n | $all[$n] | planned($flows[$n]; $documents)] as $planned
| ($planned | group_by(.id) | map(select(length > 1)[0])) as $twice
| { plan:
      { schema: "perch.plan/1", $run, $created, suite: {name: "imported", title: "outputs that were measured elsewhere"},
        limits: $limits,
        hosts: ([$planned[] | .client, .server] | unique
                | map({key: ., value: {address: ., fabric: "unknown", scope: "imported", backends: [], port: 1}}) | from_entries),
        excluded: [], rounds: [{flows: $planned}] },
    refused: [$twice[] | "flow \(.id) is in two outputs; give one of them"],
    faults: [$all[] | . as $doc | .parts[] | select(.status != "ok") | i::fault($names[0][$doc.file]; .line; .error.message)] }
