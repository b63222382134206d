# Records -> {key: place, value: {"bandwidth.gbit_s": {low, high, of}}} for each stream that was watched long enough: the 95 % interval of
# its mean over time. Neighbouring intervals resemble each other (a rate control swings, a burst lasts), so that they count
# as fewer than they are: batch means, of ten to nineteen batches of neighbours, by Student's t. Source: B. Schmeiser, "Batch Size
# Effects in the Analysis of Simulation Output", Operations Research 30 (1982): ten to thirty batches, whatever the length.
import "student" as student;

def batches: 10;

inputs
| select(.kind == "bandwidth" and .status == "ok" and .bandwidth.gbit_s != null and (.intervals // [] | length) >= batches)
| . as $record
# the last one may be a short one
| (.intervals[0] | .end_s - (.start_s // 0)) as $long
| [.intervals[] | select(.gbit_s != null and .end_s - (.start_s // 0) > 0.9 * $long) | .gbit_s] as $course
| select(($course | length) >= batches)
| ($course | length / batches | floor) as $each
| [range(0; $course | length / $each | floor) as $i | $course[$i * $each:($i + 1) * $each] | add / length]
| student::interval(0) as $of
| $record
| { key: "\(.test)/\(.client.host)/\(.server.host)/\(.params.size_bytes)",
    value: {"bandwidth.gbit_s": {low: ([.bandwidth.gbit_s - $of.half_width, 0] | max), high: (.bandwidth.gbit_s + $of.half_width), of: "intervals"}} }
