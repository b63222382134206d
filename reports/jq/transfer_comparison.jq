# Tables of the report: transfers over RDMA's interface beside those over TCP, of which everything that was asked is the
# same (comparison.transfers of a verdict).
import "format" as f;
import "figure_words" as figure_words;
import "table" as table;

# The first, the last and one between of a sweep show where curves begin, bend and end; charts show the rest.
def picked: unique | if length <= 3 then . else [.[0], .[length / 2 | floor], .[-1]] end;

def cell($row):
  if .value != null then .value | figure_words::quantity($row.unit)
  elif $row.metric == "p99_us" then "too few batches"
  else "not reported" end;

def row:
  . as $row
  | [ (.title | f::cell), "\(.size_bytes | f::size) x \(.batch | f::whole)", (.rdma | cell($row)), (.tcp | cell($row)),
      (.ratio | f::times) ];

# What was asked of both, beside size and batch.
def settings: {completion, queue_pairs, op, devices, threads, consecutive, session, stride_bytes, chunks};
def words:
  [ .op, (.completion | figure_words::waiting_words), (.devices | f::plural("pair")),
    "\(.queue_pairs | f::plural("queue pair")) each", (.threads | f::plural("thread")),
    (if .consecutive == true then "posted one by one" else empty end),
    (if .session == false then "no session" else empty end),
    (if .stride_bytes != null then "\(.stride_bytes | f::size) apart" else empty end),
    (if (.chunks // 1) > 1 then "in \(.chunks) chunks" else empty end) ] | join(", ");

def table:
  . as $rows
  | .[0] as $one
  | ($one.rdma | .name + if .scope == "hardware" then "" else ", \(.scope)" end | f::cell) as $name
  | (map([.size_bytes, .batch]) | picked) as $points
  | { title: "\($name), transfers: \($one | words | f::cell)",
      columns: [table::left("Figure"), table::right("Size x batch"), table::right("RDMA interface (\($name))"),
                table::right("TCP (the engine's tcp backend)"), table::right("RDMA / TCP")],
      rows: [ ("gbit_s", "messages_per_s", "mean_us", "p99_us", "client_s_per_gb", "server_s_per_gb") as $metric
              | $points[] as $point | $rows[] | select(.metric == $metric and [.size_bytes, .batch] == $point) | row ] };

def tables: .transfers // [] | group_by([.rdma.name, settings]) | map(table);
