# What import_outputs.awk cut out -> one document an output, for import_<tool>.jq: {number, file, line, tool, titles, doc,
# command, parts}. Parts are the readers', each faulty one with the `line` of its file that is at fault. One output is in memory.
import "common" as c;

def next_output: [label $stop | inputs | if startswith("E") then ., break $stop else . end];

# "L\t12\ttext" -> {kind, line, text}
def fields: .[0:1] as $kind | .[2:] | index("\t") as $at | {$kind, line: (.[:$at] | tonumber), text: .[$at + 1:]};

# Input: lines of an output. {number, file, line, bare, doc, titles, end, context: [{kind, line, text}], lines, at}; `at` are the lines' numbers.
def output:
  (.[0] | split("\t")) as $head
  | (.[-1] | if startswith("E") then .[2:] else "end" end) as $ending
  | [.[1:][] | select(startswith("C") or startswith("S")) | fields] as $context
  | [.[] | select(startswith("L")) | .[2:]] as $lines
  | { number: ($head[1] | tonumber), file: $head[2], line: ($head[3] | tonumber), bare: ($head[4] == "bare"), doc: ($head[4] != ""),
      titles: $head[5:], $ending, $context,
      # cut at the first tab, before which are digits alone (regular expressions would take most of the time)
      lines: [$lines[] | .[index("\t") + 1:]], at: [$lines[] | .[:index("\t")] | tonumber] };

# ---- commands -------------------------------------------------------------------------------------------------------

# Words of a command line; what quotes, pipes and the shell would change is not known: null.
def words:
  gsub("\"(?<w>[A-Za-z0-9_.:/=,-]*)\""; .w) | sub(" +#.*$"; "") | sub(" *([0-9]?>+|[|;&]).*$"; "")
  | if test("[\"'`$\\\\*?<>(){}]") then null else [splits("[ \t]+") | select(. != "")] end;

# The one command of a program ($names: a pattern) that is a client's; null where none stands before the output, an error
# where several different ones do, for any of them may have printed it.
def command($names; is_client):
  [.context[] | select(.kind == "C" and (.text | test("(^|/)(" + $names + ")( |$)"))) | .text | words | select(. != null)]
  | [.[] | select(is_client)] | unique
  | if length > 1 then error("\(length) commands stand before it, and which of them printed it cannot be told") else .[0] end;

def server_command($names; is_client):
  [.context[] | select(.kind == "C" and (.text | test("(^|/)(" + $names + ")( |$)"))) | .text | words | select(. != null)]
  | [.[] | select(is_client | not)] | unique | if length == 1 then .[0] else null end;

# ---- faults ---------------------------------------------------------------------------------------------------------

# The reader's own number of a line, in what it says, becomes the file's.
def numbered($at):
  . as $text
  | (capture("line (?<n>[0-9]+)") // null) as $said
  | if $said == null or $at[($said.n | tonumber) - 1] == null then $text
    else sub("line [0-9]+"; "line \($at[($said.n | tonumber) - 1])") end;

# A part's line in the file: what the reader told, in a number of its own or in words, else where the output begins.
def placed($at; $first):
  if .status == "ok" or .placed then del(.placed)
  else
    (.error.message | capture("line (?<n>[0-9]+)").n // null) as $said
    | (.line // (if $said == null then null else ($said | tonumber) - 1 end)) as $i
    | .line = (if $i == null then $first else $at[$i] // $first end)
    | .error.message |= numbered($at)
  end;

def failed($why): {status: "error", error: {code: 6, message: $why, traffic: true}};

# Two rows of one size are two results of which nobody says which holds.
def without_twice:
  [.[] | select(.status == "ok") | [.kind, .transfer.pair, .params.batch, .params.size_bytes]] as $all
  | if ($all | length) == ($all | unique | length) then .
    else . + [failed("it holds two results of one size, and nothing tells which of them counts")] end;

# Results of nothing: every figure that is said must be one. (Readers refuse zero, nan and inf; this is the last door.)
def is_figure: type == "number" and . > 0 and . < 1e300;
def measured:
  if .status != "ok" then .
  elif (.latency_us.mean // .bandwidth.gbit_s | is_figure) then .
  else failed("it has no result above 0") end;

# $tool: whose reader it is; parts: of an output to [part]. server: whether the output is that of a server, whose client has the figures.
def documents($tool; parts; server):
  def all: next_output | if . == [] then empty else output, all end;
  all
  | . as $one
  | (if server then [failed("it is the server's output; the figures are in its client's")]
     else c::attempt(parts; [failed("it cannot be read: \(.)")]) end) as $parts
  | (if ($parts | type) == "array" and all($parts[]; type == "object" and .status != null) then $parts else [failed("it cannot be read")] end) as $parts
  | ($one | {number, file, line, $tool, titles, doc, command: ($parts[0].command), server: server})
    + { parts: (if $parts == [] then [failed("it holds no result")] else $parts | without_twice end
                | map(measured | del(.command) | placed($one.at; $one.line))) };
