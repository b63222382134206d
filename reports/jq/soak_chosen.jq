# Which series of a soak are drawn by name: of each test the pairs of hosts that did worst, of processes those that grew most, of
# sensors the hottest. For both programs that read intervals.jsonl. Input of each: the verdict's `soak`.

def sep: "\t";

# Four lines of two figures each, and one for all others, can still be told apart (as many colours as style.json has, halved).
def pairs_max: 4;
def processes_max: 6;
def sensors_max: 6;

def pair: [.test, .client, .server] | join(sep);

# How far a flow fell below its middle, as a share: 0 is even. What nobody measured is worst.
def ratio($part; $whole): if $part == null or $whole == null or $whole <= 0 or $part < 0 then null else $part / $whole end;
def fall:
  if .figures.bandwidth != null then ratio(.figures.bandwidth.lowest_interval; .figures.bandwidth | .median // .mean) | if . == null then 1 else 1 - . end
  elif .figures.latency != null then ratio(.figures.latency.p99_median; .figures.latency.p99_highest) | if . == null then 1 else 1 - . end
  else 1 end;

# [{test, client, server, key, kind, anomalies, fall}] of all pairs of hosts, the worst of each test first; turns of a pair are one.
def pairs:
  [.flows[]? | {key: pair, test, client, server, kind, anomalies: (.anomalies // 0), fall: fall}]
  | group_by(.key)
  | map(.[0] + {anomalies: (map(.anomalies) | add), fall: (map(.fall) | max)})
  | sort_by(.test, -.anomalies, -.fall, .key);

# {key: true}
def of_pairs: [pairs | group_by(.test)[] | .[:pairs_max][].key | {key: ., value: true}] | from_entries;

# A process by what it is, not by its number: one that was restarted has another. Of what serves a flow nobody knows which.
def process: [.host, .role, .flow // (if .role == "job" then "\(.pid)" else "" end)] | join(sep);
def of_processes:
  [.hosts[]? | .host as $host | .processes[]? | {key: ({host: $host, role, flow, pid} | process), grown: (.mb_per_hour // 0), bytes: (.resident_bytes_last // 0)}]
  | group_by(.key) | map(max_by(.grown)) | sort_by(-.grown, -.bytes, .key) | .[:processes_max] | map({key, value: true}) | from_entries;

def of_sensors:
  [.hosts[]? | .host as $host | .temperature_highest | select(.celsius != null and .name != null) | {key: ($host + sep + .name), celsius}]
  | sort_by(-.celsius, .key) | .[:sensors_max] | map({key, value: true}) | from_entries;
