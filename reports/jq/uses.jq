# Recommended uses: what a use needs of a fabric, each number with its source. A use is recommended only where all that it
# needs was measured and met, on hardware; otherwise it is said what is missing.
import "digits" as digits;
import "figure_words" as words;
import "format" as f;
import "measured" as measured;

# criteria: ids of readiness.jq that must be met. figures: of RDMA's interface; the worst pair and repeat of all tests that have it counts.
#   kind, op, definition: of the test (null: any). size: {min, max} bytes. metric: a column of series.jq, or of_ceiling (%).
def uses:
  [ { title: "NVMe over Fabrics", criteria: ["coverage", "path", "loss", "integrity", "stability", "throughput"],
      figures: [
        { title: "a read of 4 KiB to its completion, median", kind: "latency", op: "read", definition: "completion", size: {min: 4096, max: 4096},
          metric: "p50", unit: "us", max: 10,
          source: "NVM Express, Inc.'s goal for NVMe over Fabrics, no more than 10 µs added to a directly connected device (TechTarget, Everything you need to know about NVMe storage)" },
        { title: "bandwidth of messages of 128 KiB and more", kind: "bandwidth", op: null, definition: null, size: {min: 131072, max: null},
          metric: "of_ceiling", unit: "% of the ceiling", min: 90, source: "site policy: storage shares the link, and is not to be the first to feel it" } ] },
    { title: "Distributed databases", criteria: ["coverage", "path", "loss", "integrity", "stability", "tail", "repeatability"],
      figures: [
        { title: "half of a round trip of up to 256 B, p99", kind: "latency", op: "send", definition: "half_round_trip", size: {min: null, max: 256},
          metric: "p99", unit: "us", max: 20, source: "site policy: a commit waits for two of them, and for a flash write of some tens of µs" } ] },
    { title: "MPI and other tightly coupled work", criteria: ["coverage", "path", "loss", "latency", "tail", "repeatability", "throughput"],
      figures: [
        { title: "half of a round trip of up to 64 B, median", kind: "latency", op: null, definition: "half_round_trip", size: {min: null, max: 64},
          metric: "p50", unit: "us", max: 5, source: "site policy: twice what published half round trips of 100 Gb/s cards and one switch take (limits/roce.yml)" },
        { title: "bandwidth of messages of 1 MiB and more", kind: "bandwidth", op: null, definition: null, size: {min: 1048576, max: null},
          metric: "of_ceiling", unit: "% of the ceiling", min: 90, source: "site policy: collective operations go at the slowest link's pace" } ] },
    { title: "Transfers for inference (key-value caches, model weights)", criteria: ["coverage", "path", "loss", "integrity", "throughput"],
      figures: [
        { title: "transfers of 1 MiB and more, all pairs of devices", kind: "transfer", op: null, definition: null, size: {min: 1048576, max: null},
          metric: "of_ceiling", unit: "% of the ceiling", min: 90,
          source: "site policy: MORI-IO's published Thor2 write of 1 MiB reaches 48.3 of 50 GB/s (limits/reference/thor2-write-size.yml)" } ] } ];

def within($range): ($range.min == null or . >= $range.min) and ($range.max == null or . <= $range.max);

def value($metric; $kind):
  if $kind == "transfer" then
    .sum | if .gbyte_s == null or .ceiling_gbyte_s == null then null else 100 * .gbyte_s / .ceiling_gbyte_s end
  else .worst[$metric] end;

# Of all tests that answer; null where one of them does not tell it.
def worst($figure; $measured):
  [ $measured | measured::rdma($figure.kind)[]
    | select(.about.bidirectional != true and ($figure.op == null or .about.op == $figure.op)
             and ($figure.definition == null or .about.definition == $figure.definition) and (.size_bytes | within($figure.size)))
    | value($figure.metric; $figure.kind) ]
  | if . == [] or any(.[]; . == null) then null elif $figure.max != null then max else min end;

def figure_need($figure; $measured):
  worst($figure; $measured) as $worst
  | ("\($figure.title): " + (if $figure.max != null then "at most" else "at least" end) + " \($figure.max // $figure.min | f::plain) \($figure.unit | f::unit_sign)") as $want
  | { figure: true,
      state: (if $worst == null then "not judged" elif ($worst | within({min: $figure.min, max: $figure.max})) then "met" else "not met" end),
      text: ("\($want); " + (if $worst == null then "not measured" else "the worst measured \($worst | f::figure) \($figure.unit | f::unit_sign)" end)
             + " (\($figure.source))") };

def criterion_need($id; $criteria):
  first($criteria[] | select(.id == $id)) | {state, text: (.title | ascii_downcase)};

def together: map(.state) as $all | if $all | index(["not met"]) != null then "not met" elif $all | index(["not judged"]) != null then "not judged" else "met" end;

# $criteria: of readiness.jq. -> {line, rows: [[use, state, why]]}; where nothing can be recommended, one line says why.
def section($criteria; $measured; $verdict):
  ( if $verdict.scope != "hardware" then "not judged: this run is no proof of hardware."
    elif $verdict.verdict != "PASS" then "not judged: the verdict is \($verdict.verdict)."
    else null end ) as $none
  | if $none != null then {line: $none, rows: []} else
  [ uses[] | . as $use
    | [(.figures[] | figure_need(.; $measured)), (.criteria[] | criterion_need(.; $criteria))] as $needs
    | ($needs | together) as $state
    | { title, $state,
        why: [ ($needs[] | select(.state != "met") | "\(.state): \(.text)"), ($needs[] | select($state == "met" and .figure == true) | .text) ] } ] as $all
  | { line: ([$all[] | select(.state == "met") | .title] | if . == [] then "none." else join(", ") + "." end),
      rows: [$all[] | [.title, {"met": "**recommended**", "not met": "not recommended", "not judged": "not judged"}[.state], (.why | join("; ") | f::cell)]] }
  end;
