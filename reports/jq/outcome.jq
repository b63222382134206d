# How a flow ended, from the agent's client.json and server.json: null when the client ran and exited 0,
# else {state, code, message}, with the design's exit codes. code is null where nothing was ever started.
import "common" as c;

def read_side($lines):
  if ($lines | length) == 0 then null
  else ($lines | join("\n") | c::parsed)
    | if type == "object" and .schema == "perch.flow/1" then . else {state: "unreadable"} end
  end;

# A command without what may differ from the plan's: the program's path and the port that the agent adds.
def bare_command:
  .[1:] as $a
  | [ range(0; $a | length) as $i
      | select(($a[$i] | . == "--port" or . == "-p") or ($i > 0 and ($a[$i - 1] | . == "--port" or . == "-p")) | not)
      | $a[$i] ];

# Most commands are the planned one with its port at the end.
def is_planned($planned):
  (type == "array" and length > 2 and .[-2] == "--port" and .[1:-2] == $planned[1:]) or bare_command == ($planned | bare_command);

# Raw files are fetched, copied and moved about: each must say itself that it tells of this flow, in this run.
def foreign($run; $flow; $role):
  if . == null or .state == "unreadable" then null
  else
    ( if .run != $run then "run \(.run | tojson), not \($run)"
      elif .flow != $flow.id then "flow \(.flow | tojson)"
      elif .role != $role then "role \(.role | tojson), not \($role)"
      elif .host != $flow[$role] then "host \(.host | tojson), not \($flow[$role])"
      elif $role == "client" and .state == "done" and
           ((.argv | type) != "array" or (.argv | is_planned($flow.client_argv) | not)) then
        "another command than planned"
      else null end )
    | if . == null then null else {state: "error", code: 6, message: "raw file belongs to another measurement: \($role).json is of \(.)"} end
  end;

def belongs($run; $flow; $client; $server):
  ($client | foreign($run; $flow; "client")) as $of_client
  | if $of_client != null then $of_client else $server | foreign($run; $flow; "server") end;

def said: if (.message | type) == "string" and .message != "" then ": " + .message else "" end;

# Why there is no client.json: the agent's own report of itself tells the three cases apart.
def absent($host; $agent):
  { state: "not_measured", code: null,
    message: (if $agent == null then "host \($host) returned no raw data"
              elif $agent.state == "running" then "the agent on \($host) was still running when its outputs were fetched"
              else "the agent on \($host) left no client.json of this flow" end) };

# The server's side of the story belongs to a meeting that failed: port in use, tool not installed.
def server_story($server):
  if $server == null then ""
  elif $server.state == "unreadable" then "; the server's server.json cannot be read"
  elif ($server.exit // 0) != 0 or ($server | said) != "" then
    "; server on \($server.host): exit \($server.exit)" + ($server | said)
  else "" end;

# perftest exits 1 whatever happened: its words tell. 12 and 13 are the statuses of a completion whose retries ran out.
def code_of_perftest:
  if test("Failed status (12|13)\\b|Couldn't connect to|Connection refused|onnection timed out|Failed to exchange data|Unexpected CM event") then 4
  elif test("Unable to find the Infiniband/RoCE device|Couldn't get context|not found|Failed to modify QP|Couldn't allocate|Couldn't create|"
            + "Couldn't register|exceeds|Permission denied|Invalid (GID|MTU)") then 3
  else 6 end;

# The cxi tools exit 1 whatever happened, too (errx in their utils/); Perch under one of their names has its own codes.
def code_of_cxi:
  if test("Connection refused|onnection timed out|Connection reset|No route to host|Failed to connect|ync timed out|version mismatch"; "i")
  then 4
  elif test("Unable to open|Failed to open|No such device|Failed to allocate|nsufficient .*huge pages|Permission denied|Invalid device"; "i")
  then 3
  else 6 end;

# 126 and 127 are the shell's words for "not executable" and "not found".
def code_of_exit($tool):
  if . == 126 or . == 127 then 3
  elif $tool == "perch" and . >= 1 and . <= 6 then .
  else 6 end;

def cause($flow; $client; $server; $agent; $stderr):
  def words: c::tail_text($stderr; 2) | if . == "" then "" else ": " + . end;
    if $client == null then absent($flow.client; $agent)
    elif $client.state == "unreadable" then
      {state: "not_measured", code: null, message: "client.json of this flow on \($flow.client) is damaged"}
    elif $client.state == "not_run" then
      # where the other end could not start, that end knows why
      {state: "not_measured", code: null, message: ("not run" + ($client | said) + (if $server.state == "not_run" then $server | said else "" end))}
    elif $client.state == "peer_dead" then
      {state: "not_measured", code: 4, message: ("host \($flow.server) could not be reached" + ($client | said))}
    elif $client.state == "meeting_failed" then
      {state: "not_measured", code: 4,
       message: ("the two ends did not meet" + ($client | said) + server_story($server))}
    elif $client.state != "done" then
      {state: "error", code: 6, message: "client.json has the unknown state \($client.state | c::shown)"}
    elif $client.timed_out == true then
      {state: "error", code: 4, message: ("stopped at its deadline of \($flow.deadline_s) s" + words)}
    elif $client.signal != null and $client.signal != 0 then
      {state: "error", code: 6, message: ("\($flow.tool) was ended by signal \($client.signal | c::spoken)" + words)}
    elif ($client.exit | type) != "number" then
      {state: "error", code: 6, message: "client.json has no exit code"}
    elif $client.exit != 0 then
      {state: "error",
       code: (if $flow.tool == "perftest" and $client.exit < 126 then words | code_of_perftest
              elif $flow.tool == "cxi" and $client.exit == 1 then words | code_of_cxi
              elif $flow.tool == "cxi" then $client.exit | code_of_exit("perch")
              else $client.exit | code_of_exit($flow.tool) end),
       message: ("exit \($client.exit | c::spoken)" + words)}
    else null
    end;

# What the server's side must have left for a result to count: null, else {code, message}. An external tool's server
# ends by itself (one-shot) or by the agent's TERM.
def server_cause($flow; $server):
  if $server == null then {code: 6, message: "host \($flow.server) left no server.json of this flow"}
  elif $server.state == "unreadable" then {code: 6, message: "server.json of this flow on \($flow.server) is damaged"}
  elif $server.state != "done" then
    {code: 6, message: ("the server's side ended in state \($server.state | c::shown)" + ($server | said))}
  elif $flow.tool == "perch" then
    if $server.exit == null or $server.exit == 0 then null else {code: 6, message: "the server's side ended with exit \($server.exit | c::spoken)"} end
  elif $server.timed_out != true
       and (($server.exit == 0 and $server.signal == null)
            or ($server.exit == 143 and ($server.signal == "TERM" or $server.signal == 15))) then null
  else {code: 6, message: "\($flow.tool)'s server ended with exit \($server.exit | c::shown), signal \($server.signal | c::shown)"}
  end;
