# shellcheck shell=bash
# The plan and the limits by which is judged, on the same recorded run.

fault plan-half loopback INCONCLUSIVE "plan" "a plan that was written by half" cut_at plan.json 3000
fault plan-missing loopback INCONCLUSIVE "plan" "no plan" remove plan.json
fault plan-empty loopback INCONCLUSIVE "plan" "a plan that expects nothing" edit plan.json '.rounds = []'
fault plan-twice loopback INCONCLUSIVE "plan" "a flow that stands twice in the plan" edit plan.json '.rounds += [.rounds[0]]'
fault plan-itself loopback INCONCLUSIVE "plan" "a flow of a host with itself" edit plan.json '.rounds[0].flows[0] |= (.server = .client | .id = "tcp-latency/alpha/alpha/1")'
fault idle-host loopback INCONCLUSIVE "coverage host/gamma" "a host without any flow" edit plan.json '.hosts.gamma = .hosts.beta'
fault only-null loopback INCONCLUSIVE "excluded *" "a plan of nothing but the null backend" edit plan.json '.rounds[].flows[].backend = "null"'
fault nics-idle cards PASS "nics" "eight NICs, of which one is measured" edit plan.json '.hosts[].devices += [range(1; 8) | {name: "mlx5_\(.)"}]'
fault unchecked-host loopback INCONCLUSIVE "host_check/skipped" "a host check that was skipped, on hosts that the plan calls hardware" \
  edit plan.json '.host_checks = true | .hosts[].scope = "hardware"'

fault limits-missing loopback INCONCLUSIVE "limits" "no limits" remove inputs/limits.json
fault limits-half loopback INCONCLUSIVE "limits" "limits that were written by half" cut_at inputs/limits.json 1000
fault limits-nothing loopback INCONCLUSIVE "limits" "limits of which none is required" edit inputs/limits.json '.limits[].severity = "advisory"'
fault limit-unsourced loopback INCONCLUSIVE "limits" "a limit without source" edit inputs/limits.json '.limits[0].source = ""'
fault limit-unbound loopback INCONCLUSIVE "limits" "a limit without bound" edit inputs/limits.json '.limits[0].bound = {}'
fault limit-key loopback INCONCLUSIVE "limits" "a limit with a key that nobody knows" edit inputs/limits.json '.limits[0].scope.sise_bytes = 8'
fault limit-typo loopback INCONCLUSIVE "limits" "a limit whose own key is misspelt" edit inputs/limits.json '.limits[0].severty = "required"'
fault limit-metric loopback INCONCLUSIVE "limits" "a limit on a figure that no record has" edit inputs/limits.json '.limits[0].metric = "latency_us.p42"'
fault limit-missed loopback FAIL "limit/iperf-bandwidth/iperf3 limit/iperf-bandwidth/*" "a required limit that is missed" \
  edit inputs/limits.json '.limits |= map(select(.id == "iperf-bandwidth").bound.min = 1000)'
fault limit-unreported loopback INCONCLUSIVE "limit/small-message-mean/tcp-latency limit/small-message-mean/*" "a required limit on a figure that nobody reported" \
  edit inputs/limits.json '.limits |= map(select(.id == "small-message-mean").metric = "latency_us.p99_99")'
