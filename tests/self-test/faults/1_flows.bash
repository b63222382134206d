# shellcheck shell=bash
# How a flow ended, on a recorded run over loopback: what is not there, what broke off, and what is another's.

latency=raw/alpha/flows/tcp-latency/alpha/beta/1
bandwidth=raw/alpha/flows/tcp-bandwidth/alpha/beta/1
iperf3=raw/alpha/flows/iperf3/alpha/beta/1
of_latency="flow/tcp-latency/alpha/beta/1 coverage"
of_bandwidth="flow/tcp-bandwidth/alpha/beta/1 coverage"
of_iperf3="flow/iperf3/alpha/beta/1 coverage"

fault missing-flow loopback INCONCLUSIVE "$of_latency" "a flow that left no file" remove "$latency"
fault missing-host loopback INCONCLUSIVE "host/beta flow/* coverage limits" "a host whose raw files are missing" remove raw/beta
fault agent-died loopback INCONCLUSIVE "host/alpha" "an agent that died on the way" \
  edit raw/alpha/agent.json '.state = "running" | .ended = null'
fault agent-foreign loopback INCONCLUSIVE "host/alpha" "an agent's report of another run" edit raw/alpha/agent.json '.run = "another"'

fault truncated-line loopback INCONCLUSIVE "$of_latency" "an output that ends in the middle of a line" cut_at "$latency/client.stdout" -100
fault truncated-lines loopback INCONCLUSIVE "$of_latency" "an output whose last sizes are missing" lines "$latency/client.stdout" 2
fault empty-output loopback INCONCLUSIVE "$of_iperf3" "an empty output of a tool that exited 0" cut_at "$iperf3/client.stdout" 0
fault truncated-json loopback INCONCLUSIVE "$of_iperf3" "iperf3's document cut in half" cut_at "$iperf3/client.stdout" 2000
fault refused loopback INCONCLUSIVE "$of_iperf3" "iperf3 that was refused and exited 0" of "$iperf3/client.stdout" +tools/iperf3_refused.json
fault killed-server loopback FAIL "flow/iperf3/alpha/beta/1 coverage" "iperf3 whose server was killed on the way" \
  of "$iperf3/client.stdout" +tools/iperf3_killed.json

fault exit-1 loopback FAIL "flow/tcp-latency/alpha/beta/1" "a limit on the command line that was missed (exit code 1)" edit "$latency/client.json" '.exit = 1'
fault exit-2 loopback INCONCLUSIVE "$of_latency" "a command that was refused (exit code 2)" edit "$latency/client.json" '.exit = 2'
fault exit-3 loopback INCONCLUSIVE "$of_latency" "a host that cannot run it (exit code 3)" edit "$latency/client.json" '.exit = 3'
fault exit-4-before loopback INCONCLUSIVE "$of_latency" "a peer lost before traffic (exit code 4)" \
  edit "$latency/client.json" '.exit = 4' , cut_at "$latency/client.stdout" 0
fault exit-4-after loopback FAIL "$of_latency" "a peer lost after traffic had begun (exit code 4)" \
  edit "$latency/client.json" '.exit = 4' , lines "$latency/client.stdout" 2
fault exit-5 loopback FAIL "$of_latency" "a corrupted payload (exit code 5)" edit "$latency/client.json" '.exit = 5'
fault exit-6 loopback INCONCLUSIVE "$of_latency" "an internal error (exit code 6)" edit "$latency/client.json" '.exit = 6'
fault killed-client loopback INCONCLUSIVE "$of_latency" "a client that was killed, after all its results" \
  edit "$latency/client.json" '.exit = 137 | .signal = "KILL"'
fault deadline loopback FAIL "$of_latency" "a client that was stopped at its deadline, after traffic" \
  edit "$latency/client.json" '.exit = 143 | .signal = "TERM" | .timed_out = true'
fault server-failed loopback INCONCLUSIVE "$of_iperf3" "a server that ended badly, while its client exited 0" \
  edit raw/beta/flows/iperf3/alpha/beta/1/server.json '.exit = 1'
fault server-silent loopback INCONCLUSIVE "$of_latency" "a server that left no word" remove raw/beta/flows/tcp-latency/alpha/beta/1/server.json
fault not-run loopback INCONCLUSIVE "$of_latency" "a flow that was never begun" edit "$latency/client.json" '.state = "not_run" | .exit = null'

fault foreign-run loopback INCONCLUSIVE "$of_latency" "a raw file of another run" edit "$latency/client.json" '.run = "20260101T000000Z-other"'
fault foreign-flow loopback INCONCLUSIVE "$of_latency" "another repeat's files in the place of a flow's" \
  of "$latency/client.json" raw/alpha/flows/tcp-latency/alpha/beta/2/client.json
fault other-size loopback INCONCLUSIVE "$of_bandwidth" "an output of other sizes than planned" text "$bandwidth/client.stdout" 's/"size_bytes":131072/"size_bytes":262144/'
fault other-pairs loopback INCONCLUSIVE "$of_bandwidth" "an output of more queue pairs than planned" text "$bandwidth/client.stdout" 's/"queue_pairs":1,/"queue_pairs":8,/'
fault other-command loopback INCONCLUSIVE "$of_latency" "a client that ran another command than planned" edit "$latency/client.json" '.argv[1] = "bw"'
fault both-ways loopback INCONCLUSIVE "$of_bandwidth" "a sum of both ways that poses as one way" \
  edit "$bandwidth/client.stdout" '.params.bidirectional = true | .bandwidth.gbit_s *= 2 | .bandwidth.bytes *= 2'
fault twice loopback INCONCLUSIVE "$of_bandwidth" "one result twice in an output" append "$bandwidth/client.stdout" "$bandwidth/client.stdout"
fault other-backend loopback INCONCLUSIVE "$of_latency" "the output of another backend" of "$latency/client.stdout" raw/alpha/flows/ofi-latency/alpha/beta/1/client.stdout
fault unlike-definition loopback INCONCLUSIVE "flow/shm-read-latency/alpha/beta/1 coverage" "a time to completion that claims to be half a round trip" \
  edit raw/alpha/flows/shm-read-latency/alpha/beta/1/client.stdout '.definition = "half_round_trip"'
