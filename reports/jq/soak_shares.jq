# The plan's flows in $shares shares, each test between two hosts in one of them, its turns in order. For each flow two lines:
# "SHARE<TAB>{flow}" and "SHARE<TAB>client.soak<TAB>client.stdout<TAB>what each of its lines is given".
[$plan[0].rounds[].flows[]]
| [to_entries[] | .value + {place: .key}]
| group_by([.test, .client, .server])
| sort_by(.[0].place)
| to_entries[]
| (.key % $shares | tostring | "0000"[:4 - length] + .) as $share
| (.value | sort_by(.place)) as $turns
| range(0; $turns | length) as $i
| $turns[$i]
| "raw/\(.client)/flows/\(.id)/client." as $path
| "\($share)\t\({id, test, tool, backend, provider, op, kind, client, server, scope, client_argv, expect, last: ($i + 1 == ($turns | length))} | tojson)",
  "\($share)\t\($path)soak\t\($path)stdout\t" + ({run: $plan[0].run, flow: .id, test, client, server, turn: (.id | split("/")[3] | tonumber? // 1), repeat: 1, scope} | tojson[1:-1])
