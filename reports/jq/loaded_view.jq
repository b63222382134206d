# Latency under load beside the same latency without: where the plan lets a latency flow run beside streams at one of its hosts. Source:
# draft-calabria-bmwg-ai-fabric-training-bench-02, latency unloaded and under load, and the ratio of the two. Only what was asked
# alike of the same hosts, at the same size, is divided; the figures are the records'.
import "figures" as figures;
import "format" as f;
import "table" as table;
import "comparison" as comparison;

def columns: [ ["mean", "Mean"], ["p50", "Median"], ["p95", "p95"], ["p99", "p99"], ["p99_9", "p99.9"], ["max", "Maximum"] ];

# ---- what was measured (view_measured.jq) ----

def figures_at: 4; # series.jq: before a row's figures stand place, client, server and definition

# The figures of several repeats or pairs: medians, and of maxima the greatest. What one lacks all lack, as the others alone would
# flatter: a tail is missing where few messages came, and few come where they are slow. Input: rows.
def merged($names): . as $all | [columns[] | .[0] as $name | ($names | index($name)) as $at
  | {key: $name, value: ([$all[] | .[figures_at + $at]] | if $name == "max" then map(values) | max else comparison::median end)}] | from_entries;

# Gb/s of the streams beside a flow; null where one of them had several sizes one after another, or none. $streams: [test, client, server] each.
def load($streams; $places; $rate):
  [ $streams[] as [$test, $client, $server] | [($places[$test] // [])[] | [.rows[] | select(.[1] == $client and .[2] == $server) | .[figures_at + $rate]] | select(. != [])] ]
  | if any(.[]; length != 1 or any(.[0][]; . == null)) then null else map(.[0] | comparison::median) | add end;

# $beside: of plan_digest.jq, [{flow, streams}] of [test, client, server] each. $places: of series.jq; $names, $rates: its columns.
# -> [{title, size_bytes, load: {titles, gbit_s}, unloaded, loaded}], or with `why` where nothing may stand beside it
def measured($beside; $places; $terms; $tests; $names; $rates):
  if $beside == [] then [] else
    ($tests | map({key: .name, value: .title}) | from_entries) as $titles
    | ($beside | map({key: (.flow | join("/")), value: .streams}) | from_entries) as $of
    | [ $tests[] | select(.kind == "latency") | .name as $test | ($places[$test] // [])[] | .size as $size | .rows[]
        | {$test, $size, pair: [.[1], .[2]], row: ., terms: $terms[$test], beside: $of[[$test, .[1], .[2]] | join("/")]} ] as $all
    | [ $all[] | select(.beside != null) ] | group_by([.test, .size])
    | map( . as $loaded
           | ([.[].pair] | unique) as $pairs
           | [ $all[] | select(.beside == null and .size == $loaded[0].size) | select(.pair as $p | $pairs | index([$p]) != null) ] as $idle
           | [ $idle[] | select(.terms == $loaded[0].terms) ] as $like
           | ([$like[].pair] | unique) as $common
           | { title: $titles[.[0].test], size_bytes: (.[0].size | tonumber),
               load: { titles: ([.[].beside[][0]] | unique | map($titles[.])),
                       gbit_s: ([.[] | load(.beside; $places; $rates | index("gbit_s"))] | if any(.[]; . == null) then null else comparison::median end) } }
             + if $idle == [] then {why: "no like latency was measured between these hosts without load"}
               elif $like == [] then {why: ("it was asked otherwise without load (" + figures::unlike($idle[0].terms; $loaded[0].terms) + ")")}
               else {unloaded: ($like | map(.row) | merged($names)),
                     loaded: ([$loaded[] | select(.pair as $p | $common | index([$p]) != null) | .row] | merged($names))} end )
    | sort_by(.title, .size_bytes) end;

# ---- the report (view_results.jq) ----

def most: 12; # tests and sizes; the figures of all are in records.jsonl
def told: if . == null then "-" else "\(f::figure) µs" end;

# Input: what measured() made.
def section:
  { table: { columns: [table::left("Test"), table::right("Size"), table::left("Figure"), table::right("Unloaded"), table::right("Under load"),
                       table::right("Under load / unloaded")],
             rows: [ [.[] | select(.why == null)][:most][] | . as $one | columns[] | .[0] as $name | select($one.loaded[$name] != null or $one.unloaded[$name] != null)
                      | [ ($one.title | f::cell), ($one.size_bytes | f::size), .[1], ($one.unloaded[$name] | told), ($one.loaded[$name] | told),
                          (if $one.loaded[$name] == null or ($one.unloaded[$name] // 0) == 0 then "-" else $one.loaded[$name] / $one.unloaded[$name] | f::times end) ] ] },
    more: ([([.[] | select(.why == null)] | length) - most, 0] | max),
    loads: (group_by(.title) | map("*\(.[0].title | f::cell)* ran beside \(.[0].load.titles | f::names(4) | f::cell)"
                                   + (if .[0].load.gbit_s == null then "" else ", which carried \(.[0].load.gbit_s | f::figure) Gb/s meanwhile" end)
                                   + (if .[0].why == null then "" else "; not compared: \(.[0].why | f::cell)" end) + ".")) };

# At each test's smallest size; more than four tests in one chart could not be told apart.
def points:
  [ [.[] | select(.why == null)] | group_by(.title)[:4][] | min_by(.size_bytes) | . as $one
    | (["unloaded", "unloaded"], ["loaded", "under load"]) as [$key, $words]
    | columns | to_entries[] | {order: .key, name: .value[0], figure: .value[1]}
    | select($one[$key][.name] != null)
    | {series: "\($one.title), \($one.size_bytes | f::size), \($words)", figure, order, latency_us: $one[$key][.name]} ];
