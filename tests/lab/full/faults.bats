#!/usr/bin/env bats
# The fault that needs a machine to boot again: the server's power fails while traffic runs.

load ../helpers
load ../measure

setup_file() {
  lab_ready
  measure_files
}
teardown_file() { measure_files_gone; }
setup() { common_setup; }
teardown() { common_teardown; }

@test "a server whose power fails in the middle of a flow is exit 4 and FAIL, and the client's host is left clean" {
  lab_plan '[{name: "power", title: "power", tool: "perch", backend: "verbs", kind: "latency",
      params: {completion: "event", size: 64, duration: "60s", interval: "200ms"}},
    {name: "later", title: "later", tool: "perch", backend: "verbs", kind: "latency", params: {completion: "event", size: 64, iterations: 20}}]'
  start_agents
  LIMIT=100 run_on alpha "until [ -s $THERE/run/alpha/flows/$(flow_of power)/client.stdout ]; do sleep 0.1; done"
  LIMIT=20 run_expecting 0 "$LAB" kill beta
  wait_agents 300 alpha
  fetch_raw alpha
  nothing_left alpha
  judge_run 1
  record power '.status == "error" and .error.code == 4 and .error.traffic'
  finding power fail 4
  # and whoever is dead is not asked again
  record later '.status == "not_measured" and .error.code == 4'
  said later "beta.*(does not answer|could not be reached)"
  check host/beta '.status == "inconclusive" and .remedy != null'
  LIMIT=300 run_expecting 0 "$LAB" start beta
}
