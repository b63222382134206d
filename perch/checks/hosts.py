"""Did every host answer, and what did its own checks find?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET, UnsetType

from perch.checks import RunView, check, design, first, plural
from perch.checks.remedies import for_soak
from perch.judge.host_lines import FLOWS
from perch.judge.hosts import OLD, HostFacts, cxi_hosts, owed_areas
from perch.judge.raw import walk_folder
from perch.model.moments import LOST_S, moment
from perch.model.raw import Agent
from perch.model.sections import Fact
from perch.model.verdict import Bound, Check, CheckStatus

Finding = dict[str, Any]

_GRAVITY: tuple[CheckStatus, ...] = ("fail", "inconclusive", "advisory", "not_judged", "pass")

#: Seconds between the readings of an idle time, at least: the agents wait for one (site policy).
IDLE_S = 0.5


def _unfinished(agent: Agent | None, flows: int, created: float, of: str = "") -> str | None:
    """Why the walk of an agent over its flows is not whole. `of`: of which plan it is."""
    if agent is None:
        return f"its agent left no {of}flows.jsonl"
    if agent.fault:
        return agent.fault
    if agent.state == "running":
        return f"its agent was still running, or was killed: its {of}flows.jsonl has no end"
    said = f": {agent.message}" if agent.message else ""
    if agent.state != "done":
        return f"its agent ended in state {agent.state}{said}"
    if agent.message:
        return f"its agent ended in state done, but reports{said}"
    begin, end = moment(agent.started), moment(agent.ended)
    if begin is None or end is None:
        return f"its {of}flows.jsonl does not say when it ran"
    if end < begin:
        return f"its {of}flows.jsonl says that it ended before it began"
    if begin < created - LOST_S:
        return f"its {of}flows.jsonl is of {agent.started}, before the plan"
    if (agent.flows_total, agent.flows_done) != (flows, flows):
        done = f"{agent.flows_done} of {agent.flows_total} flows"
        return f"its {of}flows.jsonl has {done} done, and the plan {flows}"
    return None


def _unfinished_soak(agent: Agent | None) -> str | None:
    if agent is None:
        return "its agent left no flows.jsonl"
    if agent.fault and agent.state != "running":
        return agent.fault
    said = f": {agent.message}" if agent.message else ""
    if agent.state == "running":
        return f"its agent still ran when its outputs were fetched{said}"
    return None if agent.state == "done" else f"its agent ended in state {agent.state}{said}"


def _unanswered(
    facts: HostFacts, flows: int, again: int, created: float, *, is_soak: bool
) -> str | None:
    """Why the raw outputs of a host are not whole. `again`: its flows in plan.retry.json."""
    why = _unfinished_soak(facts.agent) if is_soak else _unfinished(facts.agent, flows, created)
    if why is None and again:
        why = _unfinished(facts.retry_agent, again, created, "retry/")
    if why is None and facts.unsampled:
        why = f"{facts.unsampled} is missing or no regular file"
    return why or _unknown(facts, created)


def _unknown(facts: HostFacts, created: float) -> str | None:
    """Why a host's environment.json does not say which host it was in this run."""
    if facts.environment_fault:
        return f"its environment.json {facts.environment_fault}"
    if not facts.environment:
        return "it left no environment.json"
    collected = moment(facts.collected)
    if facts.hostname is None or collected is None:
        return "its environment.json lacks the host name or the time"
    if facts.cores is None:
        return "its environment.json lacks the number of processors"
    if collected < created - LOST_S:
        return f"its environment.json is of {facts.collected}, before the plan"
    agent = facts.agent or Agent()
    begun, over = moment(agent.started) or created, moment(agent.ended)
    if collected < begun - LOST_S:
        return f"its environment.json is of {facts.collected}, before its agent began"
    if over is not None and collected > over + LOST_S:
        return f"its environment.json is of {facts.collected}, after its agent ended"
    return _not_idle(facts, begun, over)


def _not_idle(facts: HostFacts, begun: float, over: float | None) -> str | None:
    """Why the readings of a host's idle time are not of this run; the agent makes them itself."""
    readings = facts.idle_readings
    for reading in (readings.before, readings.after) if readings else ():
        at = reading.time if reading else None
        if at is not None and (at < begun - LOST_S or (over is not None and at > over + LOST_S)):
            return "its environment.json has idle counters of another time than its agent ran"
    if facts.idle is not None and facts.idle.seconds is not None and facts.idle.seconds < IDLE_S:
        seconds = round(facts.idle.seconds, 6)
        return f"its environment.json has idle counters of {seconds} s, which is too short"
    return None


def _damaged(name: str, facts: HostFacts, agents: tuple[Agent, Agent]) -> Iterator[str]:
    """The files of a host that cannot be used, as far as one looks."""
    for one, retry in zip(agents, (False, True), strict=True):
        if one.fault:
            yield f"{walk_folder(name, retry=retry)}/{FLOWS}"
    if facts.environment_fault:
        yield f"raw/{name}/environment.json"
    yield facts.unsampled


def _look(name: str, facts: HostFacts, agents: tuple[Agent, Agent]) -> str:
    """What to do about outputs that are not whole. `agents`: of the first walk and the repeats."""
    if agents[0].schema == OLD:
        return "judge it with the Perch that measured it, or soak again"
    damaged = [file for file in _damaged(name, facts, agents) if file]
    if damaged:
        return f"fetch {damaged[0]} from its host again, or measure again"
    log = f"raw/{name}/agent.log"
    return f"look at {log}; where it is missing run playbooks/fetch.yml, or measure again"


@check(
    family="hosts",
    order=40,
    source=design("a verdict is drawn from the raw outputs of all hosts"),
)
def hosts(run: RunView) -> Iterator[Check]:
    if any(flow.imported is not None for flow in run.plan.flows()):
        return
    is_soak = run.plan.soak is not None
    whole = True
    created = moment(run.plan.created) or 0
    flows = Counter(
        (name, flow.retry) for flow in run.plan.flows() for name in {flow.client, flow.server}
    )
    for name in run.plan.hosts:
        facts = run.hosts.get(name) or HostFacts()
        planned = flows[name, False], flows[name, True]
        why = _unanswered(facts, *planned, created, is_soak=is_soak)
        if why is None:
            continue
        whole = False
        agents = (facts.agent or Agent(), facts.retry_agent or Agent())
        yield Check(
            id=f"host/{name}",
            title=f"Host {name} left whole outputs",
            fault=f"Outputs of host {name} are missing or incomplete",
            status="inconclusive",
            measured=why,
            evidence=[name],
            remedy=(for_soak(agents[0].state) if is_soak else None) or _look(name, facts, agents),
        )
    if whole:
        count = len(run.plan.hosts)
        yield Check(
            id="hosts",
            title="Every host left whole outputs",
            status="pass",
            measured=count,
            limit=Bound(count, None),
            unit="hosts",
        )


def finding_status(finding: Finding, scope: str) -> CheckStatus:
    """How grave a finding is. On hardware, what is wrong fails, and what is unknown proves nothing.

    What only tunes is a warning everywhere; what nothing is wanted of is shown.
    """
    status, hardware = finding["status"], scope == "hardware"
    if status in ("ok", "info"):
        return "pass" if status == "ok" else "not_judged"
    if finding.get("severity") == "advisory":
        return "advisory" if status == "bad" else "not_judged"
    if status == "not_applicable":
        named = hardware and finding["id"].endswith("-device")
        return "inconclusive" if named else "not_judged"
    if status == "bad":
        return "fail" if hardware else "advisory"
    return "inconclusive" if hardware else "not_judged"


def words(finding: Finding) -> str:
    """What was found, of one of the host's devices or of itself."""
    found = str(finding.get("found"))
    return found if finding.get("device") is None else f"{finding['device']}: {found}"


def titled(finding: Finding, prefix: str, status: CheckStatus) -> tuple[str, str | UnsetType]:
    """The title and the fault of a finding's check; what is only shown is named by its id."""
    judged = status in ("pass", "fail", "advisory")
    title = finding.get("title") if judged else None
    fault = finding.get("fault") if judged and status != "pass" else None
    return (
        f"{prefix}: {title or finding['id'].replace('-', ' ')}",
        f"{prefix}: {fault}" if fault else UNSET,
    )


def _grouped(alike: list[tuple[str, Finding]], status: CheckStatus) -> Check:
    """One check for all hosts of which the same was found."""
    one = alike[0][1]
    names = sorted({host for host, _ in alike})
    wanted = one.get("wanted")
    device = one.get("device")
    place = "" if status == "pass" else "/" + "/".join([names[0], *([device] if device else [])])
    if status == "pass":
        measured = f"{plural(len(names), 'host')}: {one.get('found') if wanted is None else wanted}"
    else:
        measured = words(one) + ("" if wanted is None else f"; wanted: {wanted}")
    shown_only = status == "pass" or one["status"] == "info"
    title, fault = titled(one, "Hosts", status)
    return Check(
        id=f"host_check/{one['id']}{place}",
        title=title,
        fault=fault,
        status=status,
        measured=measured,
        source=f"{one.get('source')}: {one.get('why')}",
        evidence=first(names),
        remedy=None if shown_only else one.get("remedy"),
    )


def by_id(found: Iterable[Check]) -> Iterator[Check]:
    """Findings of one id as one: the gravest, with what was measured of all of them."""
    of: dict[str, list[Check]] = {}
    for one in found:
        of.setdefault(one.id, []).append(one)
    for alike in of.values():
        worst, *others = sorted(alike, key=lambda one: _GRAVITY.index(one.status))
        if others:
            worst.measured = "; ".join(str(one.measured) for one in (worst, *others))
            worst.evidence = first(dict.fromkeys(at for one in alike for at in one.evidence))
        yield worst


def _findings(run: RunView) -> Iterator[Check]:
    inapplicable: list[tuple[str, Finding]] = []
    groups: dict[tuple[str, CheckStatus, str], list[tuple[str, Finding]]] = {}
    for name, planned in run.plan.hosts.items():
        facts = run.hosts.get(name)
        for finding in (facts.checks if facts else None) or []:
            status = finding_status(finding, planned.scope)
            if finding["status"] == "not_applicable" and status == "not_judged":
                inapplicable.append((name, finding))
                continue
            key = (finding["id"], status, "" if status == "pass" else words(finding))
            groups.setdefault(key, []).append((name, finding))
    if inapplicable:
        yield Check(
            id="host_check/not_applicable",
            title="Hosts: what does not apply to them",
            status="not_judged",
            measured=", ".join(sorted({one["id"].replace("-", " ") for _, one in inapplicable})),
            evidence=first(sorted({host for host, _ in inapplicable})),
            source=design("a check that cannot apply is not judged, and shown"),
        )
    yield from by_id(_grouped(groups[key], key[1]) for key in sorted(groups))


def _skipped(run: RunView) -> Iterator[Check]:
    """Hosts that must have checks, and did not answer."""
    with_cxi = cxi_hosts(run.plan.flows())
    skipped: dict[bool, list[str]] = {False: [], True: []}
    for name, planned in run.plan.hosts.items():
        facts = run.hosts.get(name)
        owes = owed_areas(run.plan, name, uses_cxi=name in with_cxi)
        if owes and (facts is None or facts.checks is None):
            skipped[planned.scope == "hardware"].append(name)
    for hardware, names in skipped.items():
        if not names:
            continue
        facts = run.hosts.get(names[0])
        why = (facts.unchecked if facts else None) or "host_check.json is missing or cannot be read"
        yield Check(
            id="host_check/skipped" + ("" if hardware else "/simulated"),
            title="The hosts were checked",
            fault="Hosts were not checked",
            status="inconclusive" if hardware else "not_judged",
            measured=f"no host_check.json of this run, of {plural(len(names), 'host')}: "
            f"{names[0]}: {why}",
            evidence=first(names),
            remedy="run the playbook with its role host_check, which leaves "
            "raw/HOST/host_check.json",
        )


@check(
    family="host_check",
    order=70,
    source=design("a verdict is drawn from the raw outputs of all hosts"),
)
def host_checks(run: RunView) -> Iterator[Check]:
    yield from _skipped(run)
    yield from _findings(run)


#: Findings that describe a device under test or its configuration; checks have the rest.
DESCRIBED = frozenset(
    [
        "nic-board",
        "nic-firmware",
        "nic-driver",
        "nic-pcie-speed",
        "nic-pcie-width",
        "nic-numa-node",
        "nic-port-state",
        "nic-link-layer",
        "nic-link-speed",
        "nic-mtu",
        "nic-path-mtu",
        "slingshot-link-state",
        "slingshot-link-speed",
        "slingshot-libfabric",
        "qos-pfc",
        "qos-pause",
        "qos-ets",
        "qos-dcbx",
        "qos-dscp-trust",
        "qos-dscp-priority",
        "qos-roce-tos",
        "qos-path",
        "qos-ecn",
        "qos-ecn-parameters",
        "qos-cnp",
        "qos-buffers",
        "qos-pfc-watchdog",
    ]
)


def facts(run: RunView) -> list[Fact]:
    """What the hosts' checks found of devices and settings, each once with the hosts that have it.

    `hosts` is None where all of them have it. Empty where no host was checked.
    """
    groups: dict[tuple[str, str, str, str], tuple[Finding, set[str]]] = {}
    for name in run.plan.hosts:
        known = run.hosts.get(name)
        for finding in (known.checks if known else None) or []:
            if finding["id"] not in DESCRIBED:
                continue
            keys = ("id", "device", "status", "found")
            # a missing device or text stands before any other, as null does
            id_, device, status, found = (
                "" if finding.get(key) is None else f" {finding[key]}" for key in keys
            )
            _, names = groups.setdefault((id_, device, status, found), (finding, set()))
            names.add(name)
    return [
        Fact(
            id=one["id"],
            device=one.get("device"),
            status=one["status"],
            found=one.get("found"),
            hosts=None if len(names) == len(run.plan.hosts) else sorted(names),
        )
        for _, (one, names) in sorted(groups.items(), key=lambda item: item[0])
    ]
