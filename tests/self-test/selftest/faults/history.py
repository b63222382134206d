"""What was sealed and then edited, and what was accepted before."""

import re

from selftest.edits import (
    content,
    cut_at,
    doubled_line,
    edit,
    prints,
    put,
    remove,
    replaced,
    sealed_again,
    slower,
)
from selftest.fault import FAIL, INCONCLUSIVE, fault
from selftest.files import Document
from selftest.runs import noise

ACCEPTED, LIMITS = "inputs/baseline.json", "inputs/limits.json"
WRITES = "drift/write-bandwidth/bandwidth.gbit_s"


def other_definition(baseline: Document) -> None:
    found = [
        one.replace("definition=half_round_trip", "definition=completion", 1)
        for one in baseline["terms"]
    ]
    baseline["terms"] = found


def strangers(baseline: Document) -> None:
    baseline["figures"] = {f"old-{key}": one for key, one in baseline["figures"].items()}


def faster_writes(baseline: Document, factor: float) -> list[Document]:
    """The accepted run's writes were so much faster."""
    found = [
        one for key, one in baseline["figures"].items()
        if re.search(r"^write-bandwidth/.*gbit_s$", key)
    ]  # fmt: skip
    for one in found:
        one["value"] *= factor
    return found


def noisy_writes(baseline: Document) -> None:
    for one in faster_writes(baseline, 1.09):
        one["cv_percent"] = 30


def other_rate(baseline: Document) -> None:
    for end in baseline["fabric"]["hosts"]["alpha"]["ends"]:
        end["rate_gbit_s"] = 200


def of_the_past(limits: Document) -> None:
    """A site's limit on the accepted run's figures, as reports/limits has none."""
    limit = next(one for one in limits["limits"] if one["id"] == "site-peers")
    bound = {"min": 0.95, "of": "baseline"}
    limits["limits"].append({**limit, "id": "site-past", "bound": bound, "unit": "of the baseline"})


def cut_rounds(plan: Document) -> None:
    del plan["rounds"][-2:]


def cut_round(plan: Document) -> None:
    del plan["rounds"][-1:]


FAULTS = (
    fault(
        "sealed-edited",
        "sealed",
        INCONCLUSIVE,
        "manifest/changed",
        "a raw file that was edited coherently after it was fetched",
        prints(
            "tcp-bandwidth/alpha/beta/0/1",
            slower(1.1),
        ),
    ),
    fault(
        "sealed-removed",
        "sealed",
        INCONCLUSIVE,
        "manifest/missing",
        "a raw file that no check needs and that was removed after all were fetched",
        remove("raw/alpha/agent.log"),
    ),
    fault(
        "sealed-added",
        "sealed",
        INCONCLUSIVE,
        "manifest/new",
        "a raw file that was added after all were fetched",
        content("raw/alpha/added.jsonl", "raw/alpha/samples.jsonl"),
    ),
    fault(
        "sealed-plan",
        "sealed",
        INCONCLUSIVE,
        "manifest/changed *",
        "a plan from which two flows were removed after the run",
        edit("plan.json", cut_rounds),
    ),
    fault(
        "sealed-line",
        "sealed",
        INCONCLUSIVE,
        "manifest/line manifest/new",
        "a manifest with a malformed line",
        replaced("raw/manifest.sha256", r"\A", "broken "),
    ),
    fault(
        "unplanned-flow",
        "sealed",
        INCONCLUSIVE,
        "manifest/odd host/*",
        "a flow that was taken out of the plan after it was measured, and a new manifest",
        edit("plan.json", cut_round),
        sealed_again,
    ),
    fault(
        "repeated-line",
        "sealed",
        INCONCLUSIVE,
        "manifest/odd",
        "a flow's end that stands twice in flows.jsonl",
        doubled_line("raw/alpha/flows.jsonl", 2),
        sealed_again,
    ),
    fault(
        "unsealed",
        "cards",
        INCONCLUSIVE,
        "manifest",
        "a run of hardware whose manifest was removed",
        remove("raw/manifest.sha256"),
    ),
    fault(
        "drift-fabric",
        "accepted",
        INCONCLUSIVE,
        "drift/fabric",
        "a baseline of another fabric",
        edit(ACCEPTED, put("fabric.limits", "roce")),
    ),
    fault(
        "drift-definitions",
        "accepted",
        INCONCLUSIVE,
        "drift/unlike",
        "two latency definitions compared: the accepted run timed to completion",
        edit(ACCEPTED, other_definition),
    ),
    fault(
        "drift-damaged",
        "accepted",
        INCONCLUSIVE,
        "drift/baseline",
        "a baseline file that is cut in half",
        cut_at(ACCEPTED, 300),
    ),
    fault(
        "drift-strangers",
        "accepted",
        INCONCLUSIVE,
        "drift/missing",
        "a baseline without any figure of this run",
        edit(ACCEPTED, strangers),
    ),
    # on hardware, with all flows as fast as one another and above every limit: only the past tells
    fault(
        "drift-slower",
        "aged",
        FAIL,
        WRITES,
        "a fabric that became slower by 8 % everywhere since it was accepted",
        edit(ACCEPTED, lambda one: faster_writes(one, 1.09)),
    ),
    fault(
        "drift-latency",
        "aged",
        FAIL,
        "drift/send-latency/latency_us.p50",
        "a median latency that grew by a quarter since it was accepted",
        prints(
            "send-latency/*/*/*/*",
            noise.longer(1.25),
        ),
    ),
    fault(
        "drift-noisy",
        "aged",
        INCONCLUSIVE,
        WRITES,
        "a fabric that is slower by less than its noise",
        edit(ACCEPTED, noisy_writes),
    ),
    fault(
        "drift-rate",
        "aged",
        INCONCLUSIVE,
        "drift/fabric",
        "a baseline of links with another rate",
        edit(ACCEPTED, other_rate),
    ),
    fault(
        "past-missed",
        "aged",
        FAIL,
        f"limit/site-past/write-bandwidth {WRITES}",
        "a site's limit on the accepted run's figures that is missed",
        edit(LIMITS, of_the_past),
        edit(ACCEPTED, lambda one: faster_writes(one, 1.2)),
    ),
    fault(
        "past-unknown",
        "fabric",
        INCONCLUSIVE,
        "limit/site-past/write-bandwidth limit/site-past/*",
        "a site's limit on an accepted run that is missing",
        edit(LIMITS, of_the_past),
    ),
)
