# Documents of import_<tool>.jq, in the order of the files -> records, and "import: FILE:LINE: what; what to do" for what is none.
# $rates: one-element array of {file: Gb/s of its link, in its own words}; $rate: the person's word, or null.
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

i::without_servers(inputs)
| . as $doc
| i::flow(null) as $flow
| .parts[]
| if .status != "ok" then i::fault($doc.file; .line; .error.message)
  else (.record.flow // $flow.id) as $id
    | i::record({run: "imported", hosts: {}}; $flow + {id: $id}; {size_bytes: .params.size_bytes}; $rate // $rates[0][$doc.file]) | c::spelt end
