# shellcheck shell=bash
# What the plan asks of this host.

# Seconds that a round may overrun its deadline while everyone is well: a child's last grace, the two meetings, jq.
readonly ROUND_GRACE=10

# PLAN is this host's share of a plan. RUN goes into every result, so that none is taken for another run's; PLAN_SHA256, of the plan that it
# is a share of, into agent.json, so that the results of another plan of the same run are not taken for this one's.
check_plan() {
  local -a said
  mapfile -t said < <(jq -r '.schema, .host, .run, .plan_sha256' "$PLAN" 2>/dev/null)
  [ ${#said[@]} -eq 4 ] || fail "$EXIT_HOST" "cannot read the plan $PLAN, or it is not JSON"
  [ "${said[0]}" = perch.share/1 ] ||
    fail "$EXIT_HOST" "the plan $PLAN has the schema \"${said[0]}\"; this agent reads perch.share/1 (shares/$HOST.json of a run)"
  [ "${said[1]}" = "$HOST" ] || fail "$EXIT_HOST" "the plan $PLAN is of host \"${said[1]}\", and not of \"$HOST\""
  RUN=${said[2]} PLAN_SHA256=${said[3]}
}

# From here on PLAN has the host's flows with their commands.
spell_plan() {
  local status=0
  jq -f "$here/agent.d/share.jq" "$PLAN" >"$OUT/control/plan.json" || status=$?
  [ "$status" -ne 2 ] || fail "$EXIT_INTERNAL" "cannot write $OUT/control/plan.json; make room on this disk" # jq(1): 2 is a system error
  [ "$status" -eq 0 ] || fail "$EXIT_HOST" "the plan $PLAN is damaged: jq says why"
  PLAN=$OUT/control/plan.json
}

# This host's flows, one object a line, with what its end of each needs. `latest_s`: seconds after the agent's start by
# which every living host has come to this round; whoever has not is not coming. Each earlier round may have taken its
# deadline, the first one waits for late starters, and one dead peer may have cost a host a start window.
host_flows() {
  jq -c --arg host "$HOST" --arg engine "$ENGINE" --argjson grace "$ROUND_GRACE" --argjson window "$START_WINDOW" '
    . as $plan
    | ([.rounds[].flows | length] | add // 0) as $total
    | reduce .rounds[] as $round ({latest: (2 * $window), left: ([.rounds[].flows | map(.estimate_s) | max] | add), index: 0, round: 0, out: []};
        .latest as $latest | .left as $left | .index as $index | .round as $number
        | .out += [$round.flows | to_entries[] | (.value + {index: ($index + .key + 1)})
            | select(.client == $host or .server == $host)
            | (if .client == $host then "client" else "server" end) as $role
            | (if $role == "client" then .server else .client end) as $peer
            | { id, title, client, server, $role, $peer, index, total: $total, round: $number, latest_s: $latest, remaining_s: $left,
                peer_address: $plan.hosts[$peer].address, peer_port: $plan.hosts[$peer].port,
                server_address: $plan.hosts[.server].address, server_port: $plan.hosts[.server].port,
                external: (.server_argv != []), listen_port: (.ready.port // 0), deadline_s,
                devices: [$plan.hosts[$host].devices // [] | .[] | if type == "object" then .name else . end],
                argv: ((if $role == "client" then .client_argv else .server_argv end)
                  | if .[0] == "perch" then [$engine] + .[1:] + ["--port", ($plan.hosts[$peer].port | tostring)] else . end) }]
        | .latest += ($round.flows | map(.deadline_s) | max) + $grace
        | .left -= ($round.flows | map(.estimate_s) | max)
        | .index += ($round.flows | length) | .round += 1)
    | .out[]' "$PLAN"
}

# Seconds after which the whole plan is over whatever happens.
plan_limit() {
  jq --argjson grace "$ROUND_GRACE" --argjson window "$START_WINDOW" \
    '2 * $window + ([.rounds[].flows | (map(.deadline_s) | max) + $grace] | add // 0)' "$PLAN"
}

# Sets FLOW_* from one line of host_flows.
read_flow() {
  local -a field
  mapfile -t field < <(jq -r '.id, .role, .peer, .peer_address, .peer_port, .server_address, .server_port, .external,
    .listen_port, .deadline_s, .latest_s, .remaining_s, .index, .total, .title, .client, .server, (.devices | join(" ")),
    .argv[]' <<<"$1")
  FLOW_ID=${field[0]} FLOW_ROLE=${field[1]} FLOW_PEER=${field[2]}
  FLOW_PEER_ADDRESS=${field[3]} FLOW_PEER_PORT=${field[4]}
  FLOW_SERVER_ADDRESS=${field[5]} FLOW_SERVER_PORT=${field[6]}
  FLOW_EXTERNAL=${field[7]} FLOW_LISTEN_PORT=${field[8]}
  FLOW_DEADLINE=${field[9]} FLOW_LATEST=$((STARTED_SECONDS + field[10]))
  FLOW_REMAINING=${field[11]} FLOW_INDEX=${field[12]} FLOW_TOTAL=${field[13]}
  FLOW_TITLE=${field[14]} FLOW_CLIENT=${field[15]} FLOW_SERVER=${field[16]}
  read -ra FLOW_DEVICES <<<"${field[17]}"
  FLOW_ARGV=("${field[@]:18}")
}
