# Numbers with units, as suites write them and the engine reads them; and what all parts of the plan know.

# "64K" -> 65536: K, M, G are powers of 1024, as the engine reads them.
def bytes:
  if type == "number" then .
  else (capture("^(?<n>[0-9]+)(?<u>[KMG]?)$") // error("\"\(.)\" is no size; write 8, 64K or 1M"))
    | (.n | tonumber) * {"": 1, K: 1024, M: 1048576, G: 1073741824}[.u]
  end;

# The engine's bounds: sizes of one job, and bytes of one message (4 GiB - 1).
def most_sizes: 128;
def largest_size: 4294967295;

# "8:64K" -> [8, 16, ..., 65536]; with a third part that step is added. The engine's --size has the same grammar.
def sizes:
  . as $given
  | def refuse: error("size \"\($given)\": \(.); write SIZE, MIN:MAX (doubling) or MIN:MAX:STEP, each from 1 to \(largest_size)");
  (tostring | split(":") | map(bytes)) as $part
  | if any($part[]; . < 1 or . > largest_size) then "a part is out of range" | refuse
    elif ($part | length) == 1 then $part
    elif ($part | length) > 3 then "it has more than three parts" | refuse
    elif $part[1] < $part[0] then "MAX is less than MIN" | refuse
    elif ($part | length) == 2 then [$part[0] | recurse(if . * 2 > $part[1] then empty else . * 2 end)]
    elif ($part[1] - $part[0]) / $part[2] >= most_sizes then "these are more than \(most_sizes) sizes" | refuse
    else [range($part[0]; $part[1] + 1; $part[2])]
    end;

# "300ms" -> 0.3
def seconds:
  if type == "number" then .
  else (capture("^(?<n>[0-9]+([.][0-9]+)?)(?<u>ns|us|ms|s|m|h)$") // error("\"\(.)\" is no duration; write 300ms, 2s or 1m"))
    | (.n | tonumber) * {ns: 1e-9, us: 1e-6, ms: 0.001, s: 1, m: 60, h: 3600}[.u]
  end;

# "100Kmsg/s", "5Gb/s" -> seconds from one message of that size to the next; these K, M, G are decimal, as in the engine.
def pace($size):
  (capture("^(?<n>[0-9]+([.][0-9]+)?)(?<k>[KMG]?)(?<u>msg/s|messages/s|b/s)$") // error("\"\(.)\" is no rate; write 1000msg/s or 5Gb/s"))
  | ((.n | tonumber) * {"": 1, K: 1e3, M: 1e6, G: 1e9}[.k]) as $rate
  | if $rate == 0 then error("a rate must be above 0") elif .u == "b/s" then 8 * $size / $rate else 1 / $rate end;

# Providers that drive a card themselves (fi_provider(7)), also below a utility provider such as ofi_rxm.
def of_hardware: test("(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)");
