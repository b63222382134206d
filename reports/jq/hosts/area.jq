# One area of checks over all hosts. perch/judge/findings.py starts a process for each area, and puts together what they find.

# Input: [{host, areas, raw}]. host: {name, fabric, scope, wanted, ports, devices} (perch/judge/hosts.py).
# findings: of one of them; between: of all of a fabric.
# -> {of_host: {name: [findings]}, between: [findings, each with the name of its host]}
def judged($area; findings; between):
  map(select(.areas | index([$area]) != null))
  | { of_host: (map({key: .host.name, value: [findings]}) | from_entries),
      between: [ group_by(.host.fabric)[] | map({host, raw}) | . as $group | between
                 | if .host != null then . else $group[].host.name as $name | . + {host: $name} end ] };
