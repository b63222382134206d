# Outputs of the eight cxi tools -> documents (import_outputs.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "cxi" as cxi;
import "cxi_text" as _;
import "results" as _;
import "import_outputs" as o;
import "common" as _;

# A client names its server; the tools' options with a value are -d, -p, -n and the like.
def is_client: length > 1 and any(.[1:][]; test("^[A-Za-z0-9_-]*\\.[A-Za-z0-9_.-]+$"));

def parts:
  o::command("cxi_(send|write|read|atomic)_(bw|lat)"; is_client) as $argv
  | cxi::parts(.lines; []; {}; null) | map(.command = $argv);

o::documents("cxi"; parts; any(.lines[]; test("^Local \\(server\\)|^See client for results")))
