# Whether a host's samples saw what its flows must have had: processes, all the time, and no restart that nothing explains.
import "digits" as digits;
import "words" as words;

def anomaly($check; $text): {kind: "host", $check, severity: "inconclusive", flow: null, s: null, e: null, since_soak: true, messages: null, value: null, unit: null, lines: [], $text};

# Sightings that a process must have at least, of those that its time had. site policy.
def least: 0.5;

# Of so few samples nobody can say who was missing.
def few: 4;

# Input: a host as soak_host.jq tells it. $agent: the soak{} of its agent.json.
def unseen($flows; $agent):
  . as $host
  | [$flows[] | select(.client == $host.host)] as $own
  | [$flows[] | select(.server == $host.host)] as $served
  | (if .samples > 1 and .last_s > .first_s then (.last_s - .first_s) / (.samples - 1) else null end) as $every
  | ( select($every != null)
      | [ ( ("agent", "sampler", (select($served != []) | "serve")) | {key: ., wanted: $host.samples} ),
          ( $own[] | ("keeper", "measurer") as $role | {key: "\($role) of \(.flow)", wanted: ((.measured_s // 0) / $every)} ),
          ( select($served != []) | {key: "job", wanted: ([$served[] | .measured_s // 0] | add / $every)} )
          | select(.wanted > few and ($host.seen[.key] // 0) < least * .wanted - 2) | .key ]
      | select(. != [])
      | anomaly("memory"; "its samples have no \(words::names(3)) for most of the time: nobody knows whether it grows") ),
    ( select(($agent.client_restarts // 0) != 0 and all($own[]; .gaps == 0))
      | anomaly("samples"; "\($agent.client_restarts | tojson) restarts of its clients, and no gap in their flows") + {file: "agent.json"} ),
    ( select(($agent.serve_restarts // 0) != 0 and all($served[]; .gaps == 0))
      | anomaly("samples"; "\($agent.serve_restarts | tojson) restarts of perch serve, and no gap in the flows that it serves") + {file: "agent.json"} ),
    ( select(($agent.samples_dropped // 0) != 0) | anomaly("samples"; "\($agent.samples_dropped | tojson) samples were dropped, says its agent") + {kind: "dropped", file: "agent.json"} ),
    ( select($agent.unwritten != null)
      | anomaly("samples"; "\($agent.unwritten | tojson) could not be written when it was due, as disk or memory were full or gone") + {kind: "dropped", severity: "advisory", file: "agent.json"} );
