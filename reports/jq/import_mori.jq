# Tables of MORI-IO -> documents (import_outputs.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "import_outputs" as o;
import "mori" as mori;
import "recorded" as _;
import "planned" as _;
import "asked" as _;
import "scope" as _;
import "path" as _;
import "digits" as _;
import "wire" as _;
import "claims" as _;
import "results" as _;
import "common" as _;

# In Markdown the prose says how many iterations there were, or nobody: such a record has no count of what it timed.
def parts:
  . as $one
  | o::command("torchrun|python3?"; true) as $argv
  | mori::parts(.lines; []; {client_argv: ($argv // [])}; null)
  | if any(.[]; .status == "ok" and .latency_us.count == null) then [o::failed("nothing says how many batches were timed: no configuration, no command")]
    else map(if .status == "ok" then .transfer.numa_node = null else . end) end
  | map(.command = $argv);

o::documents("mori"; parts; false)
