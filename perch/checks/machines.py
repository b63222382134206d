"""Is each host a machine of its own, with the devices that the plan gives it?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first, names
from perch.judge.hosts import HostFacts
from perch.model.plan import PlanHost
from perch.model.record import ROLES
from perch.model.verdict import Bound, Check


def _machine(facts: HostFacts) -> str:
    """Its boot id in one spelling; "" where it left none."""
    return (facts.boot_id or "").strip().casefold()


def _own(booted: dict[str, list[str]]) -> Check:
    """`booted`: hosts by boot id. Two with one are one machine; one without may be any."""
    hosts = sum(map(len, booted.values()))
    unknown = booted.pop("", [])
    alike = [group for group in booted.values() if len(group) > 1]
    finding = Check(
        id="machines",
        title="Each host is a machine of its own",
        fault="Hosts may be one machine",
        status="inconclusive" if alike or unknown else "pass",
        measured=len(booted),
        limit=Bound(hosts, None),
        unit="machines",
    )
    if alike:
        finding.measured = "; ".join(f"{', '.join(group)} are one machine" for group in alike)
        finding.evidence = first(name for group in alike for name in group)
        finding.remedy = "correct ansible_host of these hosts in the inventory, and measure again"
    elif unknown:
        finding.measured = f"{names(unknown, 3)} left no boot id in environment.json"
        finding.evidence = first(unknown)
        finding.remedy = "measure these hosts again"
    return finding


def _strange(planned: PlanHost, facts: HostFacts) -> str | None:
    """What of the plan a host does not have. Interfaces of a Cassini NIC may have any name."""
    there = {*facts.drivers, *facts.rdma_drivers, *facts.cxi_drivers}
    for device in planned.devices:
        for name in (device.get("name"), device.get("netdev")):
            if name is not None and name not in there:
                return f"environment.json names no device {name}"
    return None


#: Results in which both ends state the address of their device, and what decides which address of a
#: device that is.
_COLUMNS = (
    "flow", "scope", "status", "tool.name", "backend", "kind", "client.host", "client.device",
    "client.address", "server.host", "server.device", "server.address", "params.ib_port",
    "params.server_ib_port", "params.gid_index", "params.rdma_cm", "rail",
)  # fmt: skip
_CHOICES = ("tool", "host", "device", "port", "gid_index", "rdma_cm")

#: Address of a Cassini NIC, as the engine and HPE's tools print it; a PID is one program's own.
_NIC = r"^NIC 0x[0-9a-fA-F]+"

#: GID or LID, as perch.tools.perftest_text writes them; an end that states none has the plan's.
_OF_PORT = r"^(::ffff:|([0-9a-f]{4}:){7}|lid )"


def _stated(records: pl.DataFrame) -> pl.DataFrame:
    """Each end of these results, with its address."""
    of_nic = pl.col("client.address").str.contains(_NIC).fill_null(False)
    of_perftest = pl.col("tool.name") == "perftest"
    of_verbs = (pl.col("tool.name") == "perch") & (pl.col("backend") == "verbs")
    stated = records.filter(
        (pl.col("status") == "ok")
        & (pl.col("scope") != "imported")
        & pl.col("kind").is_in(["latency", "bandwidth"])
        & (of_nic | of_verbs | of_perftest)
    )
    every = pl.concat(
        stated.select(
            "flow",
            "scope",
            pl.col("params.gid_index", "params.rdma_cm").name.map(lambda name: name[7:]),
            host=f"{role}.host",
            device=f"{role}.device",
            address=pl.coalesce(
                pl.col(f"{role}.address").str.extract(f"({_NIC})"), f"{role}.address"
            ),
            tool=pl.when(of_nic).then(None).otherwise("tool.name"),
            # perftest prints no port: of the plan's devices it is that of the rail
            port=pl.when(of_perftest)
            .then("rail")
            .otherwise("params.ib_port" if role == "client" else "params.server_ib_port"),
        )
        for role in ROLES
    )
    of_port = pl.col("address").str.contains(_OF_PORT).fill_null(False)
    return every.filter((pl.col("tool") != "perftest").fill_null(True) | of_port)


def _one_address(ends: pl.DataFrame) -> tuple[str, pl.DataFrame] | None:
    """A device with another address in some flows than in others was another one, or another's."""
    address = pl.col("address")
    several = ends.filter(address.n_unique().over(_CHOICES) > 1)
    if several.is_empty():
        return None
    host, device = several.select("host", "device").row(0)
    here = several.filter((pl.col("host") == host) & (pl.col("device") == device))
    said = names(here["address"].unique().sort().to_list(), 3)
    return f"{host}: {device} has {said}", several


def _own_address(ends: pl.DataFrame) -> tuple[str, pl.DataFrame] | None:
    """Two hosts of hardware whose flow names one NIC: it measured that NIC against itself."""
    nics = (pl.col("scope") == "hardware") & pl.col("address").str.contains(_NIC)
    shared = ends.filter(nics).filter(pl.col("host").n_unique().over("flow", "address") > 1)
    if shared.is_empty():
        return None
    flow, address = shared.select("flow", "address").row(0)
    return f"both ends of {flow} have {address}", shared


def _addresses(records: pl.DataFrame) -> Iterator[Check]:
    ends = _stated(records)
    found = _one_address(ends) or _own_address(ends)
    if found is None:
        return
    measured, odd = found
    yield Check(
        id="machines/addresses",
        title="Each RDMA device has one address of its own",
        fault="Addresses of RDMA devices contradict each other",
        status="inconclusive",
        measured=measured,
        source=design("an address of a port and GID index does not change during a run"),
        evidence=first(odd["flow"].unique(maintain_order=True)),
        remedy="see whether the address of this device changed during the run (show_gids), or "
        "outputs of another device lie among these; then measure again",
    )


@check(
    family="machines",
    order=45,
    columns=_COLUMNS,
    source=design("a fabric is measured between machines; a boot id is that of one running kernel"),
)
def machines(run: RunView) -> Iterator[Check]:
    """Two hosts of hardware with one boot id measure a machine against itself.

    Every agent writes its host's boot id and devices.
    """
    yield from _addresses(run.records)
    booted: dict[str, list[str]] = {}
    strange: dict[str, str] = {}
    for name, planned in run.plan.hosts.items():
        facts = run.hosts.get(name) or HostFacts()
        if planned.scope != "hardware":
            continue
        booted.setdefault(_machine(facts), []).append(name)
        why = _strange(planned, facts) if facts.environment else None
        if why is not None:
            strange[name] = why
    if not booted:
        return
    hosts = sum(map(len, booted.values()))
    yield _own(booted)
    finding = Check(
        id="machines/devices",
        title="Each host has its planned devices",
        fault="Planned devices are missing on hosts",
        status="inconclusive" if strange else "pass",
        measured=hosts - len(strange),
        limit=Bound(hosts, None),
        unit="hosts",
        source=design("the measured devices are those of the inventory"),
    )
    if strange:
        finding.measured = "; ".join(f"{name}: {why}" for name, why in list(strange.items())[:3])
        finding.evidence = first(strange)
        finding.remedy = (
            "compare perch_devices of these hosts with the hosts themselves, and measure again"
        )
    yield finding
