# A soak that runs, or that somebody ended, is no fault of a host or a flow. Input: its state, or null; empty for all others.
def for_soak:
  { running: "Wait for its end: playbooks/soak.yml finds the soak that runs, and judges it anew when it is over",
    stopped: "It was ended on purpose (playbooks/soak_stop.yml, or soak-stop on the host): let the next one run to its end" }[. // ""] // empty;

# What to do about it: one action for each of the design's exit codes.

def for_code:
  if . == 0 then "stopped" | for_soak
  elif . == 1 then "Compare the flow's figures with the limit in its command line; measure again on an idle host before acting"
  elif . == 2 then "Correct the test's parameters in the suite; the flow's client.stderr names the option"
  elif . == 3 then "Install or configure what the message names on that host, then measure again"
  elif . == 4 then
    "Look at the server's raw/<host>/serve.log and at the flow's server.stderr; check address, port and firewall; then measure again"
  elif . == 5 then "Take the path out of service: run the flow again with --verify, then replace cable, adapter or memory in turn"
  elif . == 6 then "Read the flow's client.stderr and client.stdout under raw/; measure again"
  else "Look at raw/<host>/agent.log of that host: the agent says there why; then measure again"
  end;
