# One area of checks over all hosts. perch/judge/findings.py starts a process for each area, and puts together what they find.
import "hosts/words" as words;

# Input: [{host, areas, raw}]. host: {name, fabric, scope, wanted, ports, devices} (perch/judge/hosts.py).
# findings: of one of them; between: of all of a fabric.
# -> {of_host: {name: [findings]}, between: [findings, each with the name of its host]}
def judged($area; findings; between):
  words::words as $words
  | map(select(.areas | index([$area]) != null))
  | { of_host: (map({key: .host.name, value: [findings | words::worded($words)]}) | from_entries),
      between: [ group_by(.host.fabric)[] | map({host, raw}) | . as $group | between | words::worded($words)
                 | if .host != null then . else $group[].host.name as $name | . + {host: $name} end ] };
