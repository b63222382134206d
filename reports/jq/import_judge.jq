# Documents of import_<tool>.jq -> records of an imported run, one for each `expect` of its plan, in its order. What the
# plan expects and no file holds is an error, and so is an output that the plan does not know. $plan: --slurpfile.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_record" as i;
import "recorded" as _;
import "asked" as _;
import "scope" as _;
import "path" as _;
import "digits" as _;
import "wire" as _;
import "common" as c;
import "claims" as _;
import "planned" as _;

def place: [(if .kind == "transfer" then .kind, .batch // .params.batch, (.pair // .transfer.pair) else null end), .size_bytes // .params.size_bytes];
def failed($why): {status: "error", error: {code: 6, message: $why, traffic: true}};

# One part for each expected record. The readers' error is that of what they could not read.
def matched($flow; $doc):
  ($doc.parts | map(. + {at: place})) as $parts
  | [ $flow.expect[]
      | place as $place
      | [$parts[] | select(.at == $place)]
      | if length == 1 then .[0] | if .status == "ok" then . else .error.message = "\($flow.import.file):\(.line): \(.error.message)" end
        elif length == 0 then failed("\($flow.import.file):\($flow.import.line) holds no such result")
        else failed("\($flow.import.file):\($flow.import.line) holds \(length) such results") end ]
  | (($parts | length) - ($flow.expect | length)) as $more
  | if $more <= 0 then . else .[:-1] + [failed("\($flow.import.file):\($flow.import.line) holds more than the plan expects")] end;

def records($flow; parts):
  parts as $parts
  | range(0; $parts | length) as $n
  | $flow.expect[$n] as $expect
  # what the plan owes of an output that could not be read has no size
  | $parts[$n] | i::record($plan[0]; $flow; $expect; $flow.import.link.rate_gbit_s);

def missing($flow): records($flow; [$flow.expect[] | failed("\($flow.import.file):\($flow.import.line) holds no output")]);

def unplanned($doc):
  { id: "not-planned/unknown/unknown/\($doc.number)", test: "not-planned", repeat: 1, tool: $doc.tool, kind: "bandwidth", scope: "imported",
    client: "unknown", server: "unknown", expect: [{size_bytes: null}], import: {link: null} } as $flow
  | records($flow; [failed("\($doc.file):\($doc.line) holds an output that the plan does not know")]);

[$plan[0].rounds[].flows[]] as $flows
| (reduce range(0; $flows | length) as $n ({}; .["\($flows[$n].import.file)\t\($flows[$n].import.line)"] = $n)) as $index
# both are in the order of the files and lines: what was skipped is missing
| foreach (i::without_servers(inputs), null) as $doc ({next: 0};
    .skipped = [] | .doc = null | .extra = null
    | (if $doc == null then $flows | length else $index["\($doc.file)\t\($doc.line)"] end) as $at
    | if $at == null or $at < .next then .extra = $doc
      else .skipped = $flows[.next:$at] | .next = $at + 1 | .doc = $doc | .flow = $flows[$at] end;
    (.skipped[] | missing(.)),
    (select(.doc != null) | .flow as $flow | .doc as $d | records($flow; matched($flow; $d))),
    (select(.extra != null) | unplanned(.extra)))
| c::spelt
