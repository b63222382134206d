# shellcheck shell=bash
# What was sealed and then edited, on the recorded run over loopback, sealed as the playbook seals a run.

fault sealed-edited sealed INCONCLUSIVE "manifest/changed" "a raw file that was edited coherently after it was fetched" \
  edit raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout '.bandwidth |= (.gbit_s *= 1.1 | .bytes *= 1.1 | .messages_per_s *= 1.1)'
fault sealed-removed sealed INCONCLUSIVE "manifest/missing" "a raw file that nobody needs and that was removed after all were fetched" remove raw/alpha/flows/tcp-latency/alpha/beta/1/client.stderr
fault sealed-added sealed INCONCLUSIVE "manifest/new" "a raw file that was added after all were fetched" of raw/alpha/added.json raw/alpha/agent.json
fault sealed-plan sealed INCONCLUSIVE "manifest/changed *" "a plan that was cut afterwards: two flows fewer are owed" edit plan.json '.rounds |= .[:-2]'
fault sealed-line sealed INCONCLUSIVE "manifest/line manifest/new" "a manifest with a line that is none" text raw/manifest.sha256 '1s/^/broken /'
fault unplanned-flow sealed INCONCLUSIVE "manifest/unplanned" "a flow that was taken out of the plan after it was measured, and a manifest made anew" \
  edit plan.json '.rounds |= .[:-1]' , sealed_anew

accepted=inputs/baseline.json
fault drift-fabric accepted INCONCLUSIVE "drift/fabric" "a baseline of another fabric" edit "$accepted" '.fabric.limits = "roce"'
fault drift-definitions accepted INCONCLUSIVE "drift/unlike" "two latency definitions compared: the accepted run timed to completion" \
  edit "$accepted" '.terms |= map(sub("definition=half_round_trip"; "definition=completion"))'
fault drift-damaged accepted INCONCLUSIVE "drift/baseline" "a baseline that was written by half" cut_at "$accepted" 300
fault drift-strangers accepted INCONCLUSIVE "drift/missing" "a baseline without any figure of this run" \
  edit "$accepted" '.figures |= with_entries(.key |= "old-" + .)'

# On hardware, with all flows as fast as one another and above every limit: nothing but the past tells.
fault drift-slower aged FAIL "drift/write-bandwidth/bandwidth.gbit_s" "a fabric that became slower by 8 % everywhere since it was accepted" \
  edit "$accepted" '.figures |= with_entries(if .key | test("^write-bandwidth/.*gbit_s$") then .value.value *= 1.09 else . end)'
fault drift-latency aged FAIL "drift/send-latency/latency_us.p50" "a median latency that grew by a quarter since it was accepted" \
  edit 'raw/*/flows/send-latency/*/*/*/client.stdout' '.elapsed_s *= 1.25 | .latency_us |= with_entries(if .key == "count" or .value == null then . else .value *= 1.25 end)'
fault drift-noisy aged INCONCLUSIVE "drift/write-bandwidth/bandwidth.gbit_s" "a fabric that is slower by less than its noise" \
  edit "$accepted" '.figures |= with_entries(if .key | test("^write-bandwidth/.*gbit_s$") then .value.value *= 1.09 | .value.cv_percent = 30 else . end)'
fault drift-rate aged INCONCLUSIVE "drift/fabric" "a baseline of links with another rate" edit "$accepted" '.fabric.hosts.alpha.ends[].rate_gbit_s = 200'

# A site's limit on what was accepted, as reports/limits has none
readonly AGAINST_PAST='.limits += [.limits[] | select(.id == "site-peers") | .id = "site-past" | .bound = {min: 0.95, of: "baseline"} | .unit = "of the baseline"]'
fault past-missed aged FAIL "limit/site-past/write-bandwidth drift/write-bandwidth/bandwidth.gbit_s" "a site's limit on the accepted run's figures that is missed" \
  edit inputs/limits.json "$AGAINST_PAST" , edit "$accepted" '.figures |= with_entries(if .key | test("^write-bandwidth/.*gbit_s$") then .value.value *= 1.2 else . end)'
fault past-unknown fabric INCONCLUSIVE "limit/site-past/write-bandwidth limit/site-past/*" "a site's limit on an accepted run that is not there" edit inputs/limits.json "$AGAINST_PAST"
