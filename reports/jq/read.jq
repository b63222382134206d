# raw/ -> what each flow's outputs say: see readings.jq. $plan, $hosts: one-element arrays (--slurpfile).
import "readings" as readings;
import "perftest" as perftest;
import "cxi" as cxi;

readings::flows($plan[0]; $hosts[0]; $mark;
  if .flow.tool == "perftest" then perftest::parts(.files.stdout; .files.stderr; .flow; .versions.perftest)
  elif .flow.tool == "cxi" then cxi::parts(.files.stdout; .files.stderr; .flow; .versions.cxi)
  else readings::no_reader end)
