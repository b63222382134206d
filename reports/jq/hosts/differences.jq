# Every value in which hosts of one fabric differ.
import "common" as c;
import "hosts/words" as words;

def id_of: .id + "#" + (.position | tostring);

# Findings of one host that carry a value, each with its position among those of the same id: the first device of a host
# stands beside the first of the others, whatever their names are.
def placed:
  reduce (.findings[] | select(.value != null)) as $one
    ({seen: {}, out: []}; .seen[$one.id] as $n | .seen[$one.id] = ($n // 0) + 1 | .out += [$one + {position: ($n // 0)}])
  | .out[];

# "1.2 on alpha, beta; 1.3 on gamma"
def spread:
  map("\(.[0].value | if type == "string" then . else tojson end) on \(map(.host) | c::names(4))") | join("; ");

# Where the ends disagree on these, one sends as lossless what the other drops: no tuning, but a fault of the fabric.
def of_both_ends: ["qos-pfc", "qos-pause", "qos-dscp-trust", "qos-dscp-priority", "qos-roce-tos"];

# Input: [{host, value, ...}] of one id and position, of several hosts. The value that most hosts have is the group's; where
# none has the majority, all of them are named.
def difference:
  . as $all
  | (group_by(.value) | sort_by(-length)) as $groups
  | if ($groups | length) < 2 then empty
    else
      (if ($groups[0] | length) > ($groups[1] | length) then [$groups[1:][][]] else $all end)[]
      | { host, id: ("differs-" + .id), device, status: "bad",
          severity: (if .id as $id | of_both_ends | index([$id]) != null then "required" else "advisory" end), found: ($groups | spread), value: null,
          wanted: "the same on all", why: "the slowest or worst set host decides what the group can do",
          remedy: .remedy, source: "site policy: hosts of one fabric are configured alike" }
    end;

# $hosts: [{host, findings}], host as area.jq has it -> findings, each with the name of its host
def differences($hosts):
  words::words as $words
  | $hosts | group_by(.host.fabric)[] | select(length > 1)
  | [.[] | .host.name as $name | placed | . + {host: $name}] | group_by(id_of)[] | difference
  | words::worded($words);
