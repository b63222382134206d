# What import_<tool>.jq made of outputs (documents of parts) -> flows and records of what was measured elsewhere.
import "recorded" as recorded;
import "planned" as planned;

# In a file that holds both ends of a test, the server's output has nothing to say; alone it is a fault. Documents of one
# file come together.
def without_servers(documents):
  foreach (documents, null) as $d ({file: null, clients: false, held: [], out: []};
    (if $d == null or $d.file != .file then .out = (if .clients then [] else .held end) | .held = [] | .clients = false | .file = $d.file
     else .out = [] end)
    | if $d == null then . elif $d.server then .held += [$d] else .clients = true | .out += [$d] end;
    .out[]);

# ---- names, as the schema has them ----------------------------------------------------------------------------------

def slug: gsub("[^A-Za-z0-9._-]+"; "-") | gsub("-{2,}"; "-") | sub("^[.-]+"; "") | sub("[.-]+$"; "") | if . == "" then "output" else .[0:80] end;
def file_name: .file | sub("^.*/"; "");

# A heading that names no test: "Results", "Test Command".
def says_nothing: test("^((the|test|my|raw|full) )?(results?|outputs?|commands?|log|example [0-9]+|run)( used)?:?$"; "i");
def headings: [.titles[1:][] | select(says_nothing | not) | gsub("^[Tt]est: *"; "")] | if . == [] then null else . end;

# A file's own name; in Markdown the headings above the output, the lowest that names something.
def test_name: if .doc then (headings // [file_name])[-1] else file_name end | slug;
def title: if .doc then (headings // [file_name]) | join(": ") else file_name end;

# The flow of a document. $test: its name, or null for its own. A record that comes from another run keeps its names.
def flow($test):
  ([.parts[].record | select(. != null)] | .[0]) as $r
  | if $r != null then {id: $r.flow, test: $r.test, repeat: $r.repeat, client: $r.client.host, server: $r.server.host}
    else ($test // test_name) as $name
      | {id: "\($name)/unknown/unknown/\(.number)", test: $name, repeat: 1, client: "unknown", server: "unknown"} end
  | . + {run: "imported", tool: null, scope: "imported"};

# ---- records --------------------------------------------------------------------------------------------------------

# Sockets, soft devices and simulations say so; nothing in an output proves hardware.
def shown_scope:
  [.client.device, .server.device | strings] as $devices
  | if .simulated == true or any($devices[]; startswith("sim_")) then "simulated"
    elif any($devices[]; test("^(rxe|siw)")) or (.backend | IN("tcp", "null")) or (.link.layer | IN("loopback", "shm"))
      or (.provider // "" | test("^(tcp|udp|shm|sm2|net|sockets)")) or (.tool.name | IN("iperf", "iperf3")) then "software"
    else "imported" end;
def scope: [shown_scope, .record.scope // "imported", "imported"] | planned::weakest;

def no_proof:
  { claimed_bytes: null, client_device_bytes: null, server_device_bytes: null, state: "not_judged",
    reason: "measured elsewhere: nobody counted what the devices carried", counted: null };

# A part -> its record. $rate: Gb/s of the link, in words or by the person, or null.
def record($plan; $flow; $expect; $rate):
  . as $part
  | recorded::record($plan; {}; $flow; $expect)
  | .scope = ($part | scope)
  | if .status == "ok" then .path = no_proof else . end
  | if .link.layer | IN("loopback", "shm") then . else .link.rate_gbit_s = (.link.rate_gbit_s // $rate) end;

# ---- faults ---------------------------------------------------------------------------------------------------------

def what_to_do:
  if test("server's") then "give the output of the client"
  elif test("truncated|no end|no result|not a JSON|is empty") then "give the whole output of the client"
  elif test("UDP|both ways at once|iperf3 -J") then "measure again as it says"
  elif test("command|unit") then "give the output with the command that printed it, in one Markdown file, or another format"
  else "give the output as the tool printed it, or measure again" end;
def fault($file; $line; $why): ($why | gsub("[\n\r\t]+"; " ")) as $said | "import: \($file):\($line): \($said); \($said | what_to_do)";
