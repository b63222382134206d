# How a flow ended, from the agent's client.json and server.json: null when the client ran and exited 0,
# else {state, code, message}, with the design's exit codes. code is null where nothing was ever started.
import "common" as c;

def read_side($lines):
  if ($lines | length) == 0 then null
  else ($lines | join("\n") | c::parsed)
    | if type == "object" and .schema == "perch.flow/1" then . else {state: "unreadable"} end
  end;

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

# 126 and 127 are the shell's words for "not executable" and "not found".
def code_of_exit($tool):
  if . == 126 or . == 127 then 3
  elif $tool == "perch" and . >= 1 and . <= 6 then .
  else 6 end;

def cause($flow; $client; $server; $agent; $stderr):
  (c::tail_text($stderr; 2) | if . == "" then "" else ": " + . end) as $words
  | if $client == null then absent($flow.client; $agent)
    elif $client.state == "unreadable" then
      {state: "not_measured", code: null, message: "client.json of this flow on \($flow.client) is damaged"}
    elif $client.state == "not_run" then {state: "not_measured", code: null, message: ("not run" + ($client | said))}
    elif $client.state == "peer_dead" then
      {state: "not_measured", code: 4, message: ("host \($flow.server) could not be reached" + ($client | said))}
    elif $client.state == "meeting_failed" then
      {state: "not_measured", code: 4,
       message: ("the two ends did not meet" + ($client | said) + server_story($server))}
    elif $client.state != "done" then
      {state: "error", code: 6, message: "client.json has the unknown state \($client.state | tojson)"}
    elif $client.timed_out == true then
      {state: "error", code: 4, message: ("stopped at its deadline of \($flow.deadline_s) s" + $words)}
    elif $client.signal != null and $client.signal != 0 then
      {state: "error", code: 6, message: ("\($flow.tool) was ended by signal \($client.signal)" + $words)}
    elif ($client.exit | type) != "number" then
      {state: "error", code: 6, message: "client.json has no exit code"}
    elif $client.exit != 0 then
      {state: "error", code: ($client.exit | code_of_exit($flow.tool)), message: ("exit \($client.exit)" + $words)}
    else null
    end;
