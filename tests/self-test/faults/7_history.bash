# shellcheck shell=bash
# What was sealed and then edited, on the recorded run over loopback, sealed as the playbook seals a run.

fault sealed-edited sealed INCONCLUSIVE "manifest/changed" "a raw file that was edited coherently after it was fetched" \
  edit raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout '.bandwidth |= (.gbit_s *= 1.1 | .bytes *= 1.1 | .messages_per_s *= 1.1)'
fault sealed-removed sealed INCONCLUSIVE "manifest/missing" "a raw file that nobody needs and that was removed after all were fetched" remove raw/alpha/flows/tcp-latency/alpha/beta/1/client.stderr
fault sealed-added sealed INCONCLUSIVE "manifest/new" "a raw file that was added after all were fetched" of raw/alpha/added.json raw/alpha/agent.json
fault sealed-plan sealed INCONCLUSIVE "manifest/changed *" "a plan that was cut afterwards: two flows fewer are owed" edit plan.json '.rounds |= .[:-2]'

accepted=inputs/baseline.json
fault drift-fabric accepted INCONCLUSIVE "drift/fabric" "a baseline of another fabric" edit "$accepted" '.fabric.limits = "roce"'
fault drift-definitions accepted INCONCLUSIVE "drift/unlike" "two latency definitions compared: the accepted run timed to completion" \
  edit "$accepted" '.terms |= map(sub("definition=half_round_trip"; "definition=completion"))'
fault drift-damaged accepted INCONCLUSIVE "drift/baseline" "a baseline that was written by half" cut_at "$accepted" 300
