# The switches of a verdict as the report shows them: queue, bandwidth, packets, drops, of each port that leads to a host.
import "format" as f;
import "table" as table;

# A table that is read by people: the busiest and the losing ones come first, the rest is in verdict.json.
def rows_max: 200;

def figure_or_dash: if . == null then "-" else f::figure end;
def count_or_dash: if . == null then "-" else f::whole end;

# Pause frames of a queue's priority; of a switch that counts them for the whole port alone, on the port's first row.
def pause($row; $way; $first):
  .priority as $p
  | (if $p == null then null else $row.pause_by_priority[$way][$p] end) as $own
  | if $own != null then $own elif $first and all($row.pause_by_priority[$way][]; . == null) then $row.pause[$way] else null end;

def worth_showing($wanted): . as $q | ($q.mbit_s // 0) >= 0.01 or ($q.drops // 0) > 0 or ($q.ecn_marked // 0) > 0 or ($wanted | index([$q.priority]) != null);

# A port whose queues are not known still shows what it carried as a whole.
def queues_of($wanted):
  . as $row
  | [.queues[] | select(worth_showing($wanted))]
  | if . == [] then [{queue: "port", priority: null, mbit_s: $row.tx_mbit_s, packets_per_s: null, drops: null, ecn_marked: null}] else . end;

def port_rows($switch):
  . as $row
  | queues_of($switch.priorities) | to_entries[] | (.key == 0) as $first | .value
  | { order: [-((.drops // 0)), -((.mbit_s // 0))],
      cells: [ ($switch.name + " " + $row.port | f::cell), ($row.host | f::cell), (.queue | f::cell), (.mbit_s | figure_or_dash),
               (.packets_per_s | count_or_dash), (.drops | count_or_dash), (.ecn_marked | count_or_dash),
               (pause($row; "rx"; $first) | count_or_dash), (pause($row; "tx"; $first) | count_or_dash),
               (if $row.utilisation_percent == null then "-" else "\($row.utilisation_percent | f::figure) %" end) ] };

def about:
  "\(.name | f::cell) (\(.provider | f::cell)" + (if .scope == "hardware" then "" else ", **\(.scope): no proof of a switch**" end) + "): "
  + (if .faults != [] then "not judged: " + (.faults[0:3] | map("\(.command): \(.why)") | join("; ") | f::cell)
     else "read \(.seconds | f::figure) s apart, \([.rows[].port] | unique | length | f::plural("port"))" end)
  + (if .gaps == [] then "" else "; not told: " + (.gaps | map("\(.command) (\(.why))") | join(", ") | f::cell) end)
  + ([.rows[] | select(.lost != []) | "\(.port) (\(.lost[0]))" | f::cell]
     | if . == [] then "" else "; counters began anew in between, so nothing is known of " + (.[0:3] | join(", ")) + (if length > 3 then ", ..." else "" end) end);

# Null without switches.
def section:
  (.switches // []) as $switches
  | if $switches == [] then null
    else [$switches[] | . as $s | .rows[] | port_rows($s)] as $rows
      | { about: [$switches[] | about][:50],
          table: { columns: [table::left("Switch and port"), table::left("Host"), table::left("Queue"), table::right("Mb/s"), table::right("packets/s"),
                             table::right("drops"), table::right("ECN marks"), table::right("pause in"), table::right("pause out"), table::right("port's use")],
                   rows: ($rows | (if length > rows_max then sort_by(.order) else . end) | map(.cells) | .[:rows_max]) },
          more: ([($rows | length) - rows_max, 0] | max) }
    end;
