"""What the agents of the hosts say of themselves, environment.json and host-check's answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from perch.judge import findings, links
from perch.judge.agents import agent_of
from perch.judge.counters import Counted, counted
from perch.judge.host_lines import FLOWS, SAMPLES, idle
from perch.judge.raw import RawFiles, walk_folder
from perch.judge.readings import around
from perch.judge.soak_hosts import soak_agent
from perch.model.moments import LOST_S, moment
from perch.model.plan import Flow, Plan, PlanHost
from perch.model.raw import Agent, Environment, Readings
from perch.model.record import Number
from perch.model.text import did_you_mean
from perch.tools.command import in_gpu_memory

#: The schemas of environment.json.
ENVIRONMENTS = ("perch.environment/1", "perch.environment/2")

#: The settings that an inventory may want of a host: the variables of roles/host_check without the
#: role's name, except the controller's paths.
WANTED = frozenset(
    (
        "clock_skew_s", "coalescing", "dcbx", "dscp_priority", "dscp_trust", "ecn_priorities",
        "energy_preference", "ets", "firmware", "governor", "hugepages_1g", "hugepages_2m",
        "idle_latency_us", "iommu", "irq_local", "irqbalance", "isolated_cpus",
        "max_read_request", "memlock", "mtu", "neighbours", "numa_balancing", "path_mtu", "pause",
        "pfc_priorities", "pfc_watchdog", "relaxed_ordering", "ring_rx", "ring_tx", "roce_tos",
        "smt", "sysctls", "transparent_hugepages", "turbo",
    )
)  # fmt: skip

#: The format before perch.raw/2.
OLD, GONE = "perch.raw/1", "which is not read any more"

Document = dict[str, Any]

_environment = msgspec.json.Decoder(Environment)
_document = msgspec.json.Decoder(Document)


class HostFacts(msgspec.Struct):
    """One host of a run. A driver is None where the host names none.

    `environment_fault`: why environment.json cannot be used. `unchecked`: why host-check's answer
    is not judged; `checks`: its findings, None where there was none to judge. `wanted`: what the
    inventory wants of the host. `retry_agent`: of the walk over plan.retry.json. `unsampled`: the
    samples.jsonl that an agent's walk lacks. `idle`: what was counted while no flow ran, of these
    readings.
    """

    agent: Agent | None = None
    retry_agent: Agent | None = None
    unsampled: str = ""
    environment: bool = False
    environment_fault: str | None = None
    hostname: str | None = None
    boot_id: str | None = None
    collected: str | None = None
    cores: Number | None = None
    versions: dict[str, Any] = {}
    drivers: dict[str, str | None] = {}
    rdma_drivers: dict[str, str | None] = {}
    cxi_drivers: dict[str, str | None] = {}
    idle: Counted | None = None
    idle_readings: Readings | None = None
    address_interface: str = ""
    links: dict[str, links.LinkFacts] = {}
    unchecked: str | None = None
    wanted: Document = {}
    checks: list[dict[str, Any]] | None = None

    def walker(self, *, retry: bool) -> Agent | None:
        """The agent of the first walk, or of that over plan.retry.json."""
        return self.retry_agent if retry else self.agent


def cxi_hosts(flows: Iterable[Flow]) -> set[str]:
    """The hosts of flows over a Cassini NIC: hardware, whatever the fabric is called."""
    used: set[str] = set()
    for flow in flows:
        if (flow.tool == "cxi" or flow.backend == "cxi") and flow.imported is None:
            used |= {flow.client, flow.server}
    return used


def gpu_hosts(flows: Iterable[Flow]) -> set[str]:
    """The hosts of flows in GPU memory, which their NICs must reach."""
    tests: dict[str, bool] = {}
    used: set[str] = set()
    for flow in flows:
        if flow.test not in tests:
            tests[flow.test] = in_gpu_memory(flow.params.get)
        if tests[flow.test]:
            used |= {flow.client, flow.server}
    return used


def owed_areas(plan: Plan, name: str, *, uses_cxi: bool) -> list[str]:
    """The areas that must be checked of a host.

    Hardware is checked whatever the plan says: a flag of the plan must not switch its checks off.
    """
    host = plan.hosts[name]
    return findings.areas(
        machine=plan.host_checks or host.scope == "hardware",
        slingshot=host.fabric == "slingshot" or uses_cxi,
    )


def _of_schema(document: Document | None, schema: str) -> Document | None:
    return document if document is not None and document.get("schema") == schema else None


def _agent_of(files: RawFiles, plan: Plan, host: str, folder: str = "") -> Agent | None:
    if plan.soak is not None:
        return None if folder else _soak_agent(files, plan, host)
    place = f"raw/{host}/{folder}".rstrip("/")
    agent = agent_of(files, place)
    if agent is None or agent.run is None:
        return agent
    stranger = _stranger(agent, plan, host, place)
    if stranger is None:
        return agent
    return Agent(state="foreign", fault=stranger, run=agent.run, host=agent.host)


def _soak_agent(files: RawFiles, plan: Plan, host: str) -> Agent | None:
    place = walk_folder(host)
    agent = agent_of(files, place)
    if agent is None:
        old = files.stream(f"{place}/agent.json")
        if old is None:
            return None
        old.close()
        return Agent(schema=OLD, state="foreign", fault=f"{place} is in the format {OLD}, {GONE}")
    if agent.run is None:
        return agent
    stranger = _stranger(agent, plan, host, place)
    if stranger is not None:
        return Agent(state="foreign", fault=stranger)
    agent.soak = soak_agent(files, host)
    return agent


def _stranger(agent: Agent, plan: Plan, host: str, place: str) -> str | None:
    """Why a report does not belong to this host, run and plan; None where it does."""
    if agent.run != plan.run:
        return f"{place}/{FLOWS} belongs to run {agent.run!r}"
    if agent.host != host:
        return f"{place}/{FLOWS} belongs to host {agent.host!r}"
    if agent.plan_sha256 != plan.sha256:
        return (
            f"its agent ran a plan with SHA-256 {agent.plan_sha256[:12]}, "
            f"but plan.json has {plan.sha256[:12]}"
        )
    return None


# ---- host-check's answer -------------------------------------------------------------------------


def answer_of(files: RawFiles, host: str) -> Document | None:
    """The output of host-check on a host; None where no such document can be read."""
    return _of_schema(files.document(_answer_file(host), _document), "perch.host_check/1")


def wanted_of(files: RawFiles, host: str) -> Document | None:
    """The settings that the inventory wants of a host; None where they cannot be read."""
    given = _of_schema(files.document(_wanted_file(host), _document), "perch.wanted/1")
    wanted = given.get("wanted") if given and given.get("host") == host else None
    return wanted if isinstance(wanted, dict) else None


def _repeated(files: RawFiles, host: str) -> str | None:
    """Why neither answer nor wanted settings can be used: one of them has a key twice."""
    for path in (_answer_file(host), _wanted_file(host)):
        if why := files.repeated(path):
            return f"{path} {why}"
    return None


def _answer_file(host: str) -> str:
    return f"raw/{host}/host_check.json"


def _wanted_file(host: str) -> str:
    return f"inputs/hosts/{host}.json"


def unknown_setting(host: str, wanted: Document) -> str | None:
    """The message about a misspelt setting, which would otherwise be ignored."""
    unknown = sorted(wanted.keys() - WANTED)
    if not unknown:
        return None
    meant = did_you_mean(unknown[0], sorted(WANTED))
    return f"{_wanted_file(host)} has the unknown setting '{unknown[0]}'{meant}"


def _unwanted(host: str, wanted: Document | None, scope: str) -> str | None:
    """Why a host cannot be compared with the wanted settings."""
    if wanted is None:
        return f"{_wanted_file(host)} has no wanted settings"
    if scope == "hardware" and all(value is None or value == {} for value in wanted.values()):
        return f"all wanted settings in {_wanted_file(host)} are empty"
    return unknown_setting(host, wanted)


def is_answer(answer: Document) -> bool:
    """Whether an answer has the two things that every host can be asked for."""
    parts = [answer.get(key) for key in ("files", "later", "links", "commands")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    kernel = answer["commands"].get("kernel")
    ran = isinstance(kernel, dict) and kernel.get("exit") == 0
    return ran and isinstance(answer["files"].get("/proc/uptime"), str)


def _clock(answer: Document) -> float | None:
    """Seconds since the epoch by the host's clock, as `date +%s.%N` printed them for host-check."""
    command = answer["commands"].get("clock")
    try:
        return float(command["stdout"])
    except (KeyError, TypeError, ValueError):
        return None


def _misplaced(
    answer: Document, environment: Environment | None, created: str, agent: Agent | None
) -> str | None:
    """Why an answer does not belong to this host and run."""
    if environment is None or environment.hostname is None:
        return "its host is unproven: environment.json has no host name"
    if answer.get("hostname") != environment.hostname:
        names = f"{answer.get('hostname')!r}, but in environment.json {environment.hostname!r}"
        return f"its host name is {names}"
    collected, begun = moment(answer.get("collected")), moment(created)
    if collected is None or begun is None:
        return "its time, or the time of the plan, is missing"
    if collected < begun - LOST_S:
        return f"its time, {answer['collected']}, is before that of the plan, {created}"
    over = moment(agent.ended) if agent else None
    if agent is not None and over is not None and collected > over + LOST_S:
        return f"its time, {answer['collected']}, is after its agent ended, {agent.ended}"
    read = _clock(answer)
    if read is not None and not abs(read - collected) <= LOST_S:
        return f"its time is {answer['collected']}, but its clock read {read:.0f} s since 1970"
    return None


def _unchecked(
    answer: Document | None,
    wanted: Document | None,
    host: str,
    environment: Environment | None,
    plan: Plan,
    areas: list[str],
    agent: Agent | None,
) -> str | None:
    if answer is None:
        return "host_check.json is missing or cannot be read"
    if not is_answer(answer):
        return "host_check.json has no readings of the host"
    unwanted = _unwanted(host, wanted, plan.hosts[host].scope) if "machine" in areas else None
    return unwanted or _misplaced(answer, environment, plan.created, agent)


def subject(
    name: str, host: PlanHost, wanted: Document | None, *, uses_gpu: bool = False
) -> Document:
    """A host in the form that the areas of checks read."""
    return {
        "name": name,
        "fabric": host.fabric,
        "scope": host.scope,
        "link_gbit_s": host.link_gbit_s,
        "traits": host.traits,
        "wanted": wanted or {},
        "ports": host.ports or [host.port],
        "devices": host.devices,
        "gpu": uses_gpu,
    }


# ---- all of a run --------------------------------------------------------------------------------


class _Read(msgspec.Struct):
    """One host's documents, before its findings are known."""

    facts: HostFacts
    environment: Environment | None
    question: findings.Question | None


def _environment_of(files: RawFiles, plan: Plan, host: str) -> tuple[Environment | None, str]:
    """A host's environment.json, or why it cannot be used; neither without the file."""
    place = f"raw/{host}/environment.json"
    found = files.document(place, _environment)
    if found is None or found.schema not in ENVIRONMENTS:
        return None, files.fault(place, _environment, ENVIRONMENTS)
    if found.host != host:
        return None, f"belongs to host {found.host!r}"
    if found.schema == ENVIRONMENTS[1] and found.run != plan.run:
        return None, f"belongs to run {found.run!r}"
    return found, ""


def _idle_fault(said: Environment, idle: Readings | None) -> str | None:
    """Why the readings of a host's idle time cannot be used."""
    whole = idle is not None and idle.before is not None and idle.after is not None
    if said.idle_samples is None or whole:
        return None
    return "names samples of its idle time that samples.jsonl does not have"


def _unsampled(files: RawFiles, host: str, walked: Mapping[bool, Agent | None]) -> str:
    """The samples.jsonl that is not there, of a walk (True: of repeats); an agent makes both."""
    for retry, agent in walked.items():
        path = f"{walk_folder(host, retry=retry)}/{SAMPLES}"
        file = files.stream(path) if agent else None
        if file is not None:
            file.close()
        elif agent is not None:
            return path
    return ""


def _read_host(files: RawFiles, plan: Plan, name: str, *, uses_cxi: bool, uses_gpu: bool) -> _Read:
    planned = plan.hosts[name]
    environment, fault = _environment_of(files, plan, name)
    answer = answer_of(files, name)
    wanted = wanted_of(files, name)
    areas = owed_areas(plan, name, uses_cxi=uses_cxi)
    agent, again = _agent_of(files, plan, name), _agent_of(files, plan, name, "retry/")
    unchecked = _repeated(files, name) or _unchecked(
        answer, wanted, name, environment, plan, areas, agent
    )
    asked = unchecked is None and answer is not None and areas
    said = environment or Environment()
    at_rest = around(said.idle) or idle(
        files, plan.run, name, said.idle_samples, said.address_interface
    )
    facts = HostFacts(
        agent=agent,
        retry_agent=again,
        unsampled="" if plan.soak else _unsampled(files, name, {False: agent, True: again}),
        environment=environment is not None,
        environment_fault=fault or _idle_fault(said, at_rest),
        hostname=said.hostname,
        boot_id=said.boot_id,
        collected=said.collected,
        cores=said.cpu.cores if said.cpu else None,
        versions=said.versions,
        drivers={one.name: one.driver for one in said.interfaces if one.name is not None},
        rdma_drivers={one.name: one.driver for one in said.rdma if one.name is not None},
        cxi_drivers={one.name: one.driver for one in said.cxi if one.name is not None},
        idle=counted(at_rest),
        idle_readings=at_rest,
        address_interface=said.address_interface,
        unchecked=unchecked,
        wanted=wanted or {},
    )
    question = (
        findings.Question(areas, subject(name, planned, wanted, uses_gpu=uses_gpu), answer)
        if asked and answer is not None
        else None
    )
    return _Read(facts, environment, question)


def read_hosts(
    files: RawFiles,
    plan: Plan,
    judged: Callable[[list[findings.Question]], Mapping[str, list[Document]]],
) -> dict[str, HostFacts]:
    """Everything that is known of the plan's hosts, in its order.

    `judged`: findings.judged, or what stands in for it. Raises PerchError where jq cannot be run.
    """
    flows = list(plan.flows())
    with_cxi, with_gpu = cxi_hosts(flows), gpu_hosts(flows)
    read = {
        name: _read_host(files, plan, name, uses_cxi=name in with_cxi, uses_gpu=name in with_gpu)
        for name in plan.hosts
    }
    found = judged([one.question for one in read.values() if one.question])
    for name, one in read.items():
        checks = list(found.get(name, [])) if one.question else None
        said = one.environment.interfaces if one.environment else []
        one.facts.checks = checks
        one.facts.links = links.of_host(said, one.facts.idle, checks or [])
    return {name: one.facts for name, one in read.items()}
