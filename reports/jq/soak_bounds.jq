# What every soak is judged by, where inputs/limits.json has no limit of the same metric (soak.*) that speaks of the flow. Of the same form as
# a limit. `paced`, only here: the flow was asked for a pace, so that what it carries is the fabric's doing and no other load's.
import "limits" as limits;
import "bounds" as bounds;

def bound($metric; $scope; $bound; $severity; $source): {$metric, $scope, $bound, $severity, $source};

def built_in:
  [ bound("soak.gaps"; {}; {max: 0}; "required"; "site policy: a connection that is lost in a soak will be lost in production"),
    bound("soak.stall_s"; {scope: "hardware"}; {max: 0.02}; "required"; "site policy: RDMA that stands still for 20 ms repeats what was lost (its shortest retransmission timeouts are shorter)"),
    bound("soak.stall_s"; {scope: ["software", "simulated"]}; {max: 0.04}; "advisory";
      "arithmetic: ten ticks of the scheduler of 4 ms (CONFIG_HZ=250), and Linux's shortest delayed acknowledgement (TCP_DELACK_MIN)"),
    bound("soak.stall_s"; {scope: ["software", "simulated"]}; {max: 1}; "required"; "site policy: no machine's other work stops a process for a second"),
    bound("soak.interval_share"; {scope: "hardware"}; {min: 0.9}; "required"; "site policy: within 10 % of the flow's median interval"),
    bound("soak.interval_share"; {scope: ["software", "simulated"]}; {min: bounds::least_share}; "advisory"; "site policy: as of the intervals of every run"),
    bound("soak.window_share"; {scope: "hardware"}; {min: bounds::least_share}; "required"; "site policy: a link that stands still for half of an interval is a fault, no noise"),
    bound("soak.window_share"; {scope: ["software", "simulated"]}; {min: 0.1}; "advisory"; "site policy: a tenth of a second of which a tenth was used"),
    bound("soak.p99_times"; {scope: "hardware"}; {max: bounds::most_tail}; "required"; "site policy: within an order of magnitude of the flow's median p99"),
    bound("soak.p99_us"; {scope: ["software", "simulated"]}; {max: 20000}; "advisory"; "arithmetic: half of Linux's shortest delayed acknowledgement, 40 ms (TCP_DELACK_MIN)"),
    bound("soak.bandwidth_percent"; {scope: "hardware"}; {max: 5}; "required"; "site policy: as against an accepted run (drift), within one soak"),
    bound("soak.bandwidth_percent"; {scope: ["software", "simulated"], paced: true}; {max: 25}; "required"; "site policy: what is paced carries its pace, whatever else runs"),
    bound("soak.bandwidth_percent"; {scope: ["software", "simulated"]}; {max: 25}; "advisory"; "site policy: sockets share their hosts' cores"),
    bound("soak.p50_percent"; {scope: "hardware"}; {max: 10}; "required"; "site policy: as against an accepted run (drift), within one soak"),
    bound("soak.p50_percent"; {scope: ["software", "simulated"]}; {max: 100}; "advisory"; "site policy: sockets share their hosts' cores"),
    bound("soak.p99_percent"; {scope: "hardware"}; {max: 25}; "advisory"; "site policy: as against an accepted run (drift), within one soak"),
    bound("soak.leak_mb_per_hour"; {}; {max: 1}; "required"; "design, a process that grows by more does not last"),
    bound("soak.handles_per_hour"; {}; {max: 0}; "required"; "design, handles that only grow run out"),
    bound("soak.rate_percent"; {}; {max: 1}; "required"; "design, a bandwidth cap is kept within 1 %"),
    bound("soak.clock_s"; {}; {max: 0.128}; "advisory"; "RFC 5905, STEPT: a clock that is off by 128 ms is stepped, below that it is slewed") ];

# A flow as limits ask for it.
def facets:
  . as $flow
  | { tool: {name: .tool}, backend, provider, op, kind, test, scope, client: {host: .client}, server: {host: .server},
      params: {size_bytes: .expect[0].size_bytes}, paced: ((.client_argv // []) | index("--rate") != null) };

def speaks_of($flow):
  .scope | to_entries
  | all(.[]; .key as $key | .value
      | if $key == "paced" then . == $flow.paced else . as $wanted | $flow | limits::facet($key) as $value | $wanted | limits::fits($value) end);

# {METRIC: [limits]} of a flow. $limits: those of the run.
def of_flow($limits):
  facets as $flow
  | def chosen($all): [$all[] | select(.metric | startswith("soak.")) | select(.removed == null and speaks_of($flow))] | group_by(.metric) | map({key: .[0].metric, value: .}) | from_entries;
    # of two that speak of a flow, the one that asks for its pace
    chosen(built_in) | map_values(if any(.[]; .scope.paced) then map(select(.scope.paced)) else . end)
    | . + chosen($limits);

def severity: if . == "required" then "fail" else "advisory" end;

# The tightest bounds of all limits of a metric, so that what keeps them needs no further look. Input: of_flow().
def tightest($metric): [.[$metric] // [] | .[].bound] | {least: (map(.min | numbers) | max), most: (map(.max | numbers) | min)};
def within($t): ($t.most == null or . <= $t.most) and ($t.least == null or . >= $t.least);

# The gravest limit of a metric that a value breaks, with its severity; empty where it keeps all. Input: of_flow().
def broken($metric; $value):
  [.[$metric] // [] | .[] | select(limits::broken_by($value))]
  | select(. != [])
  | sort_by(.severity == "advisory")[0]
  | {severity: (.severity | severity), bound, source};
