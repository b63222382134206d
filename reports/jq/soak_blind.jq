# What a soak could not have seen, in words. Input: {plan, flows, hosts, groups}.
import "common" as c;
import "digits" as digits;
import "words" as words;

def blind($id; $text): {$id, $text};
def number: digits::fixed(if . == floor then 0 else 3 end);

def all:
  .plan.soak as $soak
  | .flows as $flows
  | ([$flows[].figures.latency | select(. != null)]) as $latency
  | blind("interval"; "What passes within \($soak.interval_s | number) s shows in an interval's lowest window of 0.1 s, in its percentiles and as a stall, and has no date finer than that."),
    blind("stalls"; "A pause of less than \($soak.stall_s * 1000 | number) ms is no stall."),
    ( select(any($flows[]; .kind == "bandwidth")) | blind("buffers"; "A pause that is shorter than a stream's buffers take to fill does not stop its completions; latency beside it shows it.") ),
    ( select($latency != [])
      | ([$latency[].samples_least | select(. != null)] | min) as $least
      | blind("percentiles"; "An interval has \($least // 0) samples at least: "
          + ( [c::quantile_of | to_entries[] | select(.value >= 0.99) | .key as $p | select($least == null or (c::supports($least; .value) | not)) | $p | sub("_"; ".")]
              | if . == [] then "ten of them lie above its p99.99" else "\(join(", ")) of such an interval \(if length == 1 then "is no figure" else "are no figures" end); those of the whole are" end) + ".") ),
    ( select(any($flows[]; .kind == "bandwidth" and .figures.checked_bytes == null)) | blind("payload"; "Only flows with --verify look at what arrives; the others would not see a flipped bit.") ),
    ( select(any($flows[]; .stalls > 64)) | blind("stall_lines"; "Of more than 64 stalls of one interval the longest 64 have lines; all are counted.") ),
    ( [.hosts[] | select(.temperatures != true) | .host] | select(. != []) | blind("temperatures"; "No temperature was told by \(words::names(4)).") ),
    ( [.hosts[] | select(.samples == 0) | .host] | select(. != []) | blind("counters"; "Nothing is known of counters, links and memory of \(words::names(4)): no samples.") ),
    ( [.hosts[] | select(.samples > 0 and .watched == 0) | .host] | select(. != []) | blind("counters_unread"; "No counter of trouble was read of \(words::names(4)).") ),
    ( [.hosts[] | select(.samples > 0 and .links_read == 0) | .host] | select(. != []) | blind("links_unread"; "No link was read of \(words::names(4)).") ),
    ( [.hosts[].processes[] | select(.handles_last == null)] | select(. != []) | blind("handles_unread"; "Handles of \(length | words::plural("process") | sub("processs"; "processes")) were not read.") ),
    ( [.hosts[].processes[] | select(.judged | not)] | select(. != [])
      | blind("memory"; "\(length | words::plural("process") | sub("processs"; "processes")) lived too briefly for a slope of 1 MB/h; \(.[0].why // "").") ),
    ( [.groups[].drift[] | select(.judged | not) | "\(.metric): \(.why)"] | unique | select(. != []) | blind("drift"; "Not every course bears a drift: \(words::names(3)).") ),
    ( select($soak.mode == "alternating") | blind("turns"; "Tests take turns of \($soak.turn_s | number) s: what happens in another test's turn is not seen by this one.") ),
    blind("hosts"; "Counters are read once an interval; one that was cleared and moved again between two readings shows too little.");
