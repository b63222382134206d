"""The plan and the limits that a run is judged by, mostly on the recorded run over loopback."""

from selftest.edits import Change, cut_at, edit, put, remove, replaced, where
from selftest.fault import FAIL, INCONCLUSIVE, PASS, fault
from selftest.files import Document

PLAN, LIMITS = "plan.json", "inputs/limits.json"


def first_round_twice(plan: Document) -> None:
    plan["rounds"].append(plan["rounds"][0])


def with_itself(plan: Document) -> None:
    for round_ in plan["rounds"]:
        for flow in round_["flows"]:
            if flow["test"] == "tcp-latency":
                flow["server"] = flow["client"]


def another_host(plan: Document) -> None:
    plan["hosts"]["gamma"] = plan["hosts"]["beta"]


def null_backend(plan: Document) -> None:
    for round_ in plan["rounds"]:
        for flow in round_["flows"]:
            flow["backend"] = "null"


def eight_cards(plan: Document) -> None:
    for host in plan["hosts"].values():
        host["devices"] += [{"name": f"mlx5_{number}"} for number in range(1, 8)]


def unchecked_hardware(plan: Document) -> None:
    plan["host_checks"] = True
    for host in plan["hosts"].values():
        host["scope"] = "hardware"


def advisory(limits: Document) -> None:
    for limit in limits["limits"]:
        limit["severity"] = "advisory"


def without(name: str) -> Change:
    def limits(document: Document) -> None:
        document["limits"] = [one for one in document["limits"] if one["id"] != name]

    return limits


def of_the_site(limit: Document) -> None:
    """The set's limit as a site's own file replaces it."""
    limit["replaces"] = {
        "from": "local.yml",
        **{name: limit[name] for name in ("severity", "bound", "source")},
    }
    limit |= {"from": "site.yml", "bound": {"max": 500000}, "source": "site policy"}


def of_limit(name: str, change: Change) -> Change:
    """The change, of one limit of the set."""

    def limits(document: Document) -> None:
        for limit in document["limits"]:
            where(lambda one: one["id"] == name, change)(limit)

    return limits


FAULTS = (
    fault(
        "plan-half",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "a plan that is cut in half",
        cut_at(PLAN, 3000),
    ),
    fault(
        "plan-exchanged",
        "cards",
        INCONCLUSIVE,
        "host/alpha host/beta",
        "a plan that was replaced after the agents ran the first one",
        replaced(PLAN, '"created": "2026', '"created":  "2026'),
    ),
    fault(
        "plan-carrier",
        "cards",
        INCONCLUSIVE,
        "plan",
        "tests of cards that are planned over sockets, so that no hardware limit applies",
        replaced(PLAN, '"carrier": "rdma"', '"carrier": "sockets"'),
    ),
    fault("plan-missing", "loopback", INCONCLUSIVE, "plan", "no plan", remove(PLAN)),
    fault(
        "plan-empty",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "a plan that expects nothing",
        edit(PLAN, put("rounds", [])),
    ),
    fault(
        "plan-command",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "a command that measures for a tenth of the time that its test's params ask for",
        replaced(PLAN, r'"--duration",\s*"300ms"', '"--duration", "30ms"'),
    ),
    fault(
        "plan-params",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "params that ask for other messages than the command",
        replaced(PLAN, r'("params": \{\s*"size": )"64K"', r'\1"4K"'),
    ),
    fault(
        "plan-twice",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "a flow that occurs twice in the plan",
        edit(PLAN, first_round_twice),
    ),
    fault(
        "plan-itself",
        "loopback",
        INCONCLUSIVE,
        "plan",
        "a flow of a host with itself",
        edit(PLAN, with_itself),
    ),
    fault(
        "idle-host",
        "loopback",
        INCONCLUSIVE,
        "coverage host/gamma",
        "a host without any flow",
        edit(PLAN, another_host),
    ),
    fault(
        "only-null",
        "loopback",
        INCONCLUSIVE,
        "excluded *",
        "a plan with only the null backend",
        edit(PLAN, null_backend),
    ),
    fault(
        "nics-idle",
        "rxe",
        PASS,
        "nics",
        "eight NICs, of which one is measured",
        edit(PLAN, eight_cards),
    ),
    fault(
        "unchecked-host",
        "loopback",
        INCONCLUSIVE,
        "host_check/skipped machines manifest",
        "a host check that was skipped, on hosts that the plan calls hardware",
        edit(PLAN, unchecked_hardware),
    ),
    fault("limits-missing", "loopback", INCONCLUSIVE, "limits", "no limits", remove(LIMITS)),
    fault(
        "limits-half",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a file of limits that is cut in half",
        cut_at(LIMITS, 1000),
    ),
    fault(
        "limits-nothing",
        "loopback",
        INCONCLUSIVE,
        "limits limits/set",
        "limits that are all advisory",
        edit(LIMITS, advisory),
    ),
    fault(
        "limit-unsourced",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit without source",
        edit(LIMITS, put("limits.0.source", "")),
    ),
    fault(
        "limit-unbound",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit without bound",
        edit(LIMITS, put("limits.0.bound", {})),
    ),
    fault(
        "limit-hollow",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit that every figure meets",
        edit(LIMITS, put("limits.0.bound", {"min": 0})),
    ),
    fault(
        "limit-key",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit with an unknown key",
        edit(LIMITS, put("limits.0.scope.sise_bytes", 8)),
    ),
    fault(
        "limit-typo",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit whose own key is misspelt",
        edit(LIMITS, put("limits.0.severty", "required")),
    ),
    fault(
        "limit-metric",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "a limit on a figure that no record has",
        edit(LIMITS, put("limits.0.metric", "latency_us.p42")),
    ),
    fault(
        "limit-loosened",
        "loopback",
        INCONCLUSIVE,
        "limits/set",
        "a limit that was loosened under its own name",
        edit(LIMITS, of_limit("small-message-mean", put("bound.max", 500000))),
    ),
    fault(
        "limit-taken-out",
        "loopback",
        INCONCLUSIVE,
        "limits/set",
        "a set without one of its limits",
        edit(LIMITS, without("small-message-mean")),
    ),
    fault(
        "limit-loosened-by-the-site",
        "loopback",
        PASS,
        "limits/set",
        "a required bound that the site's own file weakens",
        edit(LIMITS, of_limit("small-message-mean", of_the_site)),
    ),
    fault(
        "limits-other",
        "loopback",
        INCONCLUSIVE,
        "limits/set",
        "limits of another set than the plan names",
        edit(PLAN, put("limits", "roce")),
    ),
    fault(
        "limits-repeated",
        "loopback",
        INCONCLUSIVE,
        "limits",
        "limits that have a key twice",
        replaced(LIMITS, r'("severity": ?)"required"', r'\1"required", \1"advisory"'),
    ),
    fault(
        "limit-missed",
        "loopback",
        FAIL,
        "limit/iperf-bandwidth/iperf3 limit/iperf-bandwidth/*",
        "a required limit that is missed",
        edit(LIMITS, of_limit("iperf-bandwidth", put("bound.min", 1000))),
    ),
    fault(
        "limit-unreported",
        "loopback",
        INCONCLUSIVE,
        "limit/small-message-mean/tcp-latency limit/small-message-mean/* limits/set",
        "a required limit on a figure that no tool reported",
        edit(LIMITS, of_limit("small-message-mean", put("metric", "latency_us.p99_99"))),
    ),
)
