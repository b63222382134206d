# shellcheck shell=bash
# A soak's lines and samples, on a composed run of two hosts and two hours.

load=raw/node1/flows/load/node1/node2/1
verify=raw/node1/flows/verify/node1/node2/1
latency=raw/node1/flows/latency/node1/node2/1
samples=raw/node2/samples.jsonl

fault soak-gone soaked INCONCLUSIVE "soak/coverage/load *" "a soak's flow without the file of its intervals" remove "$load/client.soak"
fault soak-hole soaked INCONCLUSIVE "soak/coverage/load *" "an interval that was taken out" text "$load/client.soak" '10d'
fault soak-twice soaked INCONCLUSIVE "soak/coverage/load *" "an interval that stands there twice" text "$load/client.soak" '10p'
fault soak-short soaked INCONCLUSIVE "soak/coverage/load *" "a soak that ended after a quarter of its time" lines "$load/client.soak" 9
fault soak-edited soaked INCONCLUSIVE "soak/lines *" "an interval whose figures were made ten times as large" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .messages *= 10 | .bytes *= 10 | .bandwidth |= (.bytes *= 10 | .gbit_s *= 10 | .messages_per_s *= 10) else . end'
fault soak-foreign soaked INCONCLUSIVE "soak/coverage/load *" "the intervals of another job" edit "$load/client.soak" 'if .kind == "soak" then .job.op = "write" else . end'
fault soak-stopped soaked INCONCLUSIVE "soak/state *" "a soak that was stopped, the whole of it said to be all" \
  edit "$load/client.soak" 'if .soak then .soak.stopped = true else . end' , edit "$load/client.stdout" '.soak.stopped = true'
fault soak-dropped soaked INCONCLUSIVE "soak/lines *" "a soak whose disk was full" \
  edit "$load/client.soak" 'if .soak then .soak.dropped_lines = 3 else . end' , edit "$load/client.stdout" '.soak.dropped_lines = 3'
fault soak-sum soaked INCONCLUSIVE "soak/sum *" "a whole that is more than its intervals" \
  edit "$load/client.soak" 'if .soak then .bandwidth |= (.bytes *= 2 | .gbit_s *= 2 | .messages_per_s *= 2) else . end' , \
  edit "$load/client.stdout" '.bandwidth |= (.bytes *= 2 | .gbit_s *= 2 | .messages_per_s *= 2)'
fault soak-corrupt soaked FAIL "soak/integrity *" "an interval in which a byte arrived corrupted, though the whole says none" \
  edit "$verify/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .integrity.bad_bytes = 1 else . end'
fault soak-unchecked soaked INCONCLUSIVE "soak/integrity *" "an interval of a verified flow that checked no byte" \
  edit "$verify/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .integrity.checked_bytes = 0 else . end'
fault soak-slower soaked FAIL "soak/change/load *" "a rate that is halved half-way" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 3600 then .messages /= 2 | .bytes /= 2 | .bandwidth |= (.bytes /= 2 | .gbit_s /= 2 | .min_interval_gbit_s /= 2 | .messages_per_s /= 2) else . end'
fault soak-unsampled soaked INCONCLUSIVE "soak/samples *" "a host without samples" remove "$samples"
fault soak-unsampled-while soaked INCONCLUSIVE "soak/samples *" "a host without samples for five minutes" text "$samples" '10,14d'
fault soak-booted soaked FAIL "soak/reboots *" "a host that was booted anew" edit "$samples" 'if .number > 60 then .boot_id = "another" else . end'
fault soak-flap soaked FAIL "soak/links *" "a link that went down and came back" \
  edit "$samples" 'if .number > 60 then .links.eth1.carrier_changes = "4" else . end'
fault soak-port soaked FAIL "soak/links *" "an RDMA port that is down, whose interface says nothing of it" \
  edit "$samples" 'if .number > 60 then .links["rxe0/1"].state = "1: DOWN" else . end'
fault soak-leak soaked FAIL "soak/memory *" "a server that grows by 60 MB an hour" \
  edit "$samples" '.number as $n | .processes |= map(if .role == "serve" then .resident_bytes += $n * 1048576 else . end)'
fault soak-handles soaked FAIL "soak/handles *" "a server that keeps a handle each minute" \
  edit "$samples" '.number as $n | .processes |= map(if .role == "serve" then .handles += $n else . end)'
fault soak-stall-among-many soaked FAIL "soak/stalls soak/sum" "a stall of five seconds that has no line, behind 64 of 30 ms that have" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .start_s as $s | .started as $w | ({schema, kind: "stall", connection_number, messages: 3} + (range(0; 64) | {start_s: ($s + . * 0.1), end_s: ($s + . * 0.1 + 0.03), started: null, ended: null})), (.stalls = {count: 65, total_s: 6.92}) elif .soak then .soak |= (.stalls += 65 | .stall_s += 6.92) else . end' , \
  edit "$load/client.stdout" '.soak |= (.stalls += 65 | .stall_s += 6.92)'
fault soak-stalls-unlined soaked INCONCLUSIVE "soak/stalls soak/sum" "many seconds of stalls that have no line" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .stalls = {count: 70, total_s: 30} elif .soak then .soak |= (.stalls += 70 | .stall_s += 30) else . end' , \
  edit "$load/client.stdout" '.soak |= (.stalls += 70 | .stall_s += 30)'
fault soak-stall-removed soaked INCONCLUSIVE soak/sum "an interval whose stall has no line" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .stalls = {count: 1, total_s: 0.03} elif .soak then .soak |= (.stalls += 1 | .stall_s += 0.03) else . end' , \
  edit "$load/client.stdout" '.soak |= (.stalls += 1 | .stall_s += 0.03)'
fault soak-silent soaked FAIL soak/stalls "an interval of a minute without one completion, left out of the whole" \
  edit "$latency/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 660 then .messages = 0 | .bytes = 0 | .latency_us = null elif .soak then .latency_us.count -= 12000 else . end' , \
  edit "$latency/client.stdout" '.latency_us.count -= 12000'
fault soak-failed soaked INCONCLUSIVE "soak/lines *" "an interval that failed, with no gap behind it" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .status = "error" | .error = {code: 4, message: "lost"} else . end'
fault soak-failed-all soaked INCONCLUSIVE "soak/coverage/load *" "a flow of which every interval failed" \
  edit "$load/client.soak" 'if .kind == "interval" then .status = "error" | .error = {code: 4, message: "lost"} else . end'
fault soak-corrupt-error soaked FAIL "soak/integrity *" "an interval whose error says that bytes arrived corrupted, and no number of them" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .status = "error" | .error = {code: 5, message: "corrupted"} else . end'
fault soak-brief soaked INCONCLUSIVE "soak/lines *" "an interval that measured a tenth of its minute" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .elapsed_s /= 10 | .messages /= 10 | .bytes /= 10 | .bandwidth.bytes /= 10 else . end'
fault soak-unsummed soaked INCONCLUSIVE "soak/lines *" "a whole that says nothing of its intervals" \
  edit "$load/client.soak" 'if .soak then .soak = null else . end' , edit "$load/client.stdout" '.soak = null'
fault soak-reconnected soaked INCONCLUSIVE "soak/lines *" "a connection that took the place of another, without a gap between them" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 3600 then .connection_number = 2 else . end'
fault soak-text soaked INCONCLUSIVE "soak/lines *" "a number of a soak that is a text" \
  edit "$verify/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 700 then .integrity.bad_bytes = "8" else . end'
fault soak-folder soaked INCONCLUSIVE "soak/coverage/load *" "a folder in the place of a soak's file" folder "$load/client.soak"
fault soak-faster soaked FAIL "soak/rate *" "an interval above its pace, with nothing owed by those before it" \
  edit "$load/client.soak" 'if .kind == "interval" and .start_s > 600 and .start_s < 660 then .messages = 60000 | .bytes = 60000 * 65536 | .bandwidth |= (.bytes = 60000 * 65536 | .gbit_s = 0.524 | .min_interval_gbit_s = 0.5 | .peak_gbit_s = 0.6) else . end'
fault soak-unplanned soaked INCONCLUSIVE "plan *" "a soak that its plan calls none" edit plan.json '.soak = "x"'
fault soak-unplanned-gone soaked INCONCLUSIVE "plan *" "a soak that its plan does not speak of" edit plan.json 'del(.soak)'
fault soak-unplanned-time soaked INCONCLUSIVE "plan *" "a soak for half of the time that its commands were given" edit plan.json '.soak.duration_s /= 2'
fault soak-link-away soaked FAIL "soak/links *" "a link that a sample lacks, and that had changed twenty times after it" \
  edit "$samples" 'if .number == 60 then del(.links.eth1) elif .number > 60 then .links.eth1.carrier_changes = "22" else . end'
fault soak-link-gone soaked FAIL "soak/links *" "a link that is not there any more" edit "$samples" 'if .number > 60 then del(.links.eth1) else . end'
fault soak-link-down soaked FAIL "soak/links *" "a link that is down, and counted no change" edit "$samples" 'if .number > 60 then .links.eth1.operstate = "down" else . end'
fault soak-counter-away soaked INCONCLUSIVE "soak/samples *" "a counter of errors that is not read any more" edit "$samples" 'if .number > 60 then del(.counters.netdev.eth1.rx_crc_errors) else . end'
fault soak-counter-after soaked INCONCLUSIVE "soak/counters/errors *" "a device that samples lack, and whose counter of errors was reset meanwhile" \
  edit "$samples" 'if .number < 60 then .counters.netdev.eth1.rx_crc_errors = "9" elif .number == 60 then .counters.netdev = {} else . end'
fault soak-samples-dropped soaked INCONCLUSIVE "soak/samples *" "samples that neither disk nor memory had room for" edit "$samples" 'if .number > 60 then .dropped = 7 else . end'
fault soak-sample-links soaked INCONCLUSIVE "soak/samples *" "a sample whose links are a list" edit "$samples" 'if .number == 60 then .links = [1] else . end'
fault soak-sample-counters soaked INCONCLUSIVE "soak/samples *" "a sample whose interface counts in a word" edit "$samples" 'if .number == 60 then .counters.netdev.eth1 = "x" else . end'
fault soak-sample-processes soaked INCONCLUSIVE "soak/samples *" "samples whose processes hold words" edit "$samples" '.processes |= map(.resident_bytes |= tostring)'
fault soak-sample-temperatures soaked INCONCLUSIVE "soak/samples *" "a sample whose temperatures are words" edit "$samples" 'if .number == 60 then .temperatures = ["hot"] else . end'
fault soak-processes-none soaked INCONCLUSIVE "soak/memory *" "samples without any process" edit "$samples" '.processes = []'
fault soak-measurer-none soaked INCONCLUSIVE "soak/memory *" "samples without the process that has the connection" edit "$samples" '.processes |= map(select(.role != "measurer"))'
fault soak-restarts soaked INCONCLUSIVE "soak/samples *" "forty restarts of a host's clients that left no gap" edit raw/node2/agent.json '.soak.client_restarts = 40'
fault soak-serve-restarts soaked INCONCLUSIVE "soak/samples *" "a server that was started anew, and no gap" edit raw/node2/agent.json '.soak.serve_restarts = 1'
fault soak-agent-dropped soaked INCONCLUSIVE "soak/samples *" "samples that were dropped, as the agent counts" edit raw/node2/agent.json '.soak.samples_dropped = 9'
fault soak-leak-restarted soaked FAIL "soak/memory *" "a server that grows over restarts, none of which lives for ten minutes" \
  edit "$samples" '.number as $n | .processes |= map(if .role == "serve" then .resident_bytes += $n * 1048576 | .start = ($n / 8 | floor | tostring) else . end)'
