# The hosts' environment.json -> one row for each fact and value, so that 2 hosts and 500 fit the same table.
# Versions of programs stand in the configuration.
import "format" as f;
import "table" as table;

def facts:
  [ ["Host name", .hostname], ["Operating system", .os], ["Kernel", .kernel],
    ["Processor", (if .cpu == null then null else "\(.cpu.model // "unnamed") (\(.cpu.cores | f::whole) CPUs)" end)],
    ["Memory", (.memory_bytes | f::memory_size)],
    ( .tuning // {} | to_entries[] | ["Setting " + (.key | gsub("_"; " ")), .value] ),
    ( .interfaces // [] | .[] | ["Interface " + (.name // "?"),
        "\(.state // "state unknown"), MTU \(.mtu_bytes | f::whole)"
        + (if .rate_gbit_s then ", \(.rate_gbit_s | f::figure) Gb/s" else "" end)
        + (if .driver then ", \(.driver)" else "" end)] ) ]
  | map({fact: .[0], value: (.[1] | if . == null then "not known" elif type == "boolean" then (if . then "yes" else "no" end) else . end)});

def rows($hosts):
  ($hosts | length) as $n
  | [ $hosts[] | .host as $host | facts | to_entries[] | .value + {host: $host, order: .key} ]
  | group_by(.fact)
  | sort_by(.[0].order)
  | { columns: ["Fact", "Value", "Hosts" | table::left(.)],
      rows: [ .[] | group_by(.value | tostring)[]
              | [ (.[0].fact | f::cell), (.[0].value | f::cell),
                  (if length == $n and $n > 1 then "all hosts" else map(.host) | f::names(8) end) ] ] };
