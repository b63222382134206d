# SPDX-License-Identifier: Apache-2.0
"""What each variable of the role means on this host:
a stream of wishes (a Value and what it should be) and troubles.

A wish may be a function of what is found, where a variable names a part of a value only.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator

from . import irqbalance, network, nic, qos
from .base import System, Trouble
from .peermem import LOADED, Peermem
from .roce import CmTos, TrafficClass
from .values import Directory, HugePages, Irq, Text, Tuned, Value, WholeFile, cpus

Wish = tuple[Value, object]
SYSCTL_FILE = "/etc/sysctl.d/90-perch.conf"
HEAD = "# Written by perch's role host_tune; its tasks_from revert puts the old file back.\n"
CPUS = "/sys/devices/system/cpu"
LIMITS_FILE = "/etc/security/limits.d/90-perch.conf"


class Context:
    """The host, and what the inventory says of it."""

    def __init__(
        self,
        system: System,
        asked: dict,
        listed: list,
        connection: str,
        reached_at: str,
        more_protected: list[str],
        carrier: str,
        provider: str,
    ):
        self.system = system
        self.asked = asked
        self.listed = listed
        self.provider = provider
        self.held = network.protected(system, connection, reached_at, more_protected, carrier)

    def devices(self) -> Iterator[network.Device | Trouble]:
        """The devices that may be altered, and why others may not."""
        if not self.listed:
            yield Trouble(
                "perch_devices is empty, so no device can get this setting",
                "name the devices in the inventory",
            )
        found, troubles = network.devices(self.system, self.listed)
        yield from troubles
        for device in found:
            try:
                for netdev in sorted(device.touched):
                    network.check_untouched(self.held, netdev)
                yield device
            except Trouble as trouble:
                yield trouble

    def netdevs(self) -> Iterator[str | Trouble]:
        """The interfaces of these devices, each once."""
        seen = set()
        for device in self.devices():
            if isinstance(device, Trouble):
                yield device
            elif device.netdev not in seen:
                seen.add(device.netdev)
                yield device.netdev


def _each(things: Iterator, make: Callable) -> Iterator[Wish | Trouble]:
    """What `make` yields for each thing; a trouble of one leaves the others alone."""
    for thing in things:
        if isinstance(thing, Trouble):
            yield thing
            continue
        try:
            yield from make(thing)
        except Trouble as trouble:
            yield trouble


# ---- processor
# and memory ---------------------------------------------------------------------------------------


def _huge_pages(size_kb: int):
    def wishes(context: Context, value) -> Iterator[Wish | Trouble]:
        pages = HugePages(context.system, size_kb=size_kb)
        if not isinstance(value, dict):
            yield pages, int(value)
            return
        wanted = {str(node): int(count) for node, count in value.items()}
        for node in [node for node in wanted if not context.system.exists(pages.file(node))]:
            yield Trouble(
                f"this machine has no NUMA node {node} with huge pages of {pages.size}",
                "`numactl --hardware` lists the nodes",
            )
            del wanted[node]
        if wanted:
            yield pages, wanted

    return wishes


def _numbered(system: System, folder: str, word: str) -> list[str]:
    """The folder's entries of a word and a number, such as cpu12."""
    return [f"{folder}/{n}" for n in system.names(folder) if re.fullmatch(f"{word}[0-9]+", n)]


def governor(context: Context, value) -> Iterator[Wish | Trouble]:
    system = context.system
    paths = [f"{cpu}/cpufreq/scaling_governor" for cpu in _numbered(system, CPUS, "cpu")]
    paths = [path for path in paths if system.exists(path)]
    if not paths:
        yield Trouble(
            "the processors have no governor (no cpufreq)",
            "leave host_tune_governor at null here; a virtual machine's host decides",
        )
    if network.running(system, "tuned"):
        yield Trouble(
            "tuned runs, and would choose the governor again, so it was not set",
            "use host_tune_governor_provider: "
            "tuned and host_tune_tuned_profile, or: systemctl disable --now tuned",
        )
        return
    for path in paths:
        yield Text(system, path=path), value


def idle_latency_us(context: Context, value) -> Iterator[Wish | Trouble]:
    """Each idle state that takes longer to leave is switched off on each CPU."""
    system = context.system
    states = [
        state
        for cpu in _numbered(system, CPUS, "cpu")
        for state in _numbered(system, f"{cpu}/cpuidle", "state")
    ]
    if not states:
        yield Trouble(
            "the processors have no idle states (no cpuidle)",
            "leave host_tune_idle_latency_us at null here; a virtual machine's host decides",
        )
    for state in states:
        if int(Text(system, path=f"{state}/latency").read()) > int(value):
            yield Text(system, path=f"{state}/disable"), "1"


def tuned_profile(context: Context, value) -> Iterator[Wish | Trouble]:
    yield Tuned(context.system), {"profile": value, "mode": "manual"}


def transparent_hugepages(context: Context, value) -> Iterator[Wish | Trouble]:
    yield Text(context.system, path="/sys/kernel/mm/transparent_hugepage/enabled"), value


def memlock(context: Context, value) -> Iterator[Wish | Trouble]:
    # limits.conf(5): a wildcard does not mean root;
    # "-" is the soft and the hard limit; the unit is KiB
    text = f"{HEAD}* - memlock {value}\nroot - memlock {value}\n"
    yield Directory(context.system, path="/etc/security/limits.d"), "present"
    yield WholeFile(context.system, path=LIMITS_FILE), WholeFile.holding(text)
    names = [
        name
        for name in ("sshd", "sudo", "login", "common-session", "system-auth", "password-auth")
        if "pam_limits.so" in (context.system.read(f"/etc/pam.d/{name}") or "")
    ]
    if not names:
        yield Trouble(
            f"{LIMITS_FILE} is there, but no file of /etc/pam.d asks pam_limits.so to read it",
            "add `session required pam_limits.so` to the PAM configuration of sshd and sudo",
        )


def sysctl_path(key: str) -> str:
    """net.ipv4.conf.eth0/1.forwarding is the file net/ipv4/conf/eth0.1/forwarding (sysctl.d(5))"""
    separator = re.search(r"[./]", key)
    swapped = (
        key if separator and separator.group() == "/" else key.translate(str.maketrans("./", "/."))
    )
    return f"/proc/sys/{swapped}"


# What the kernel writes into every interface, or into every one where it was not set,
# and a revert could not take out of them: "all" and ip_forward
# (Documentation/networking/ip-sysctl.rst; inet_forward_change in net/ipv4/devinet.c;
# net/ipv6/addrconf.c), IPv4's "default" (devinet_copy_dflt_conf there),
# and that of the neighbours' times (neigh_copy_dflt_parms in net/core/neighbour.c).
WRITTEN_THROUGH = re.compile(
    r"/proc/sys/net/(ipv4/(ip_forward|conf/all/forwarding|conf/default/.+)"
    r"|ipv6/conf/all/(forwarding|force_forwarding|disable_ipv6|disable_policy"
    r"|ignore_routes_with_linkdown|addr_gen_mode)"
    r"|ipv[46]/neigh/default/(?!gc_thresh[123]$|gc_interval$).+)"
)
# Of each pair the one that is written makes the other 0 (Documentation/admin-guide/sysctl/vm.rst).
TWINS = {
    f"/proc/sys/vm/{prefix}_{one}": f"/proc/sys/vm/{prefix}_{other}"
    for prefix, size in (
        ("dirty", "bytes"),
        ("dirty_background", "bytes"),
        ("overcommit", "kbytes"),
    )
    for one, other in ((size, "ratio"), ("ratio", size))
}


def _check_alone(system: System, key: str, path: str) -> None:
    """Refuses a sysctl that changes more than itself: the old value of that would be lost."""
    if WRITTEN_THROUGH.fullmatch(path):
        raise Trouble(
            f"the kernel writes {key} into other interfaces, too, where it cannot be taken back",
            "set the key of the test's own interface instead (net.ipv4.conf.eth1...)",
        )
    twin = TWINS.get(path)
    if twin and (system.read(twin) or "0").strip() != "0":
        raise Trouble(
            f"setting {key} makes {twin} 0, which cannot be taken back",
            f"set {twin.rpartition('/')[2]} instead",
        )


def sysctls(context: Context, value) -> Iterator[Wish | Trouble]:
    lasting = {}
    for key, wanted in value.items():
        path = sysctl_path(key)
        value_of = Text(context.system, path=path)
        try:
            if ".." in path.split("/"):
                raise Trouble(f"{key} is no key of sysctl", "correct host_tune_sysctls")
            if not context.system.exists(path):
                raise Trouble(
                    f"there is no sysctl {key} ({path} does not exist)",
                    "correct host_tune_sysctls, or load the kernel module that has it",
                )
            if value_of.netdev:
                network.check_untouched(context.held, value_of.netdev)
            _check_alone(context.system, key, path)
        except Trouble as trouble:
            yield trouble
            continue
        lasting[key] = wanted
        yield value_of, _sysctl_text(wanted)
    yield from _overridden(context.system, lasting)
    if lasting:
        text = HEAD + "".join(
            f"{key} = {_sysctl_text(wanted)}\n" for key, wanted in lasting.items()
        )
        yield Directory(context.system, path="/etc/sysctl.d"), "present"
        yield WholeFile(context.system, path=SYSCTL_FILE), WholeFile.holding(text)


def _overridden(system: System, lasting: dict) -> Iterator[Trouble]:
    """Files that are read after ours at boot and say otherwise (sysctl.d(5): by name,
    whatever their directory).
    """
    ours = SYSCTL_FILE.rpartition("/")[2]
    for directory in (
        "/etc/sysctl.d",
        "/run/sysctl.d",
        "/usr/local/lib/sysctl.d",
        "/usr/lib/sysctl.d",
    ):
        for name in system.names(directory):
            if name <= ours or not name.endswith(".conf"):
                continue
            for line in (system.read(f"{directory}/{name}") or "").splitlines():
                key, _, value = line.strip().lstrip("-").partition("=")
                if (
                    key.strip() in lasting
                    and value.split() != _sysctl_text(lasting[key.strip()]).split()
                ):
                    yield Trouble(
                        f"{directory}/{name} sets {key.strip()} to {value.strip()} at boot, "
                        f"after {SYSCTL_FILE}",
                        "change that file, or the variable",
                    )


def _sysctl_text(value) -> str:
    return str(int(value)) if isinstance(value, bool) else " ".join(str(value).split())


# ---- interfaces
# -------------------------------------------------------------------------------------------------


# RFC 8200; below it the kernel takes IPv6 and its addresses away (net/ipv6/addrconf.c)
LEAST_MTU_OF_IPV6 = 1280


def mtu(context: Context, value) -> Iterator[Wish | Trouble]:
    # its last word is the interface (kernel: net/ipv6/addrconf.c, if6_seq_show)
    rows = (context.system.read("/proc/net/if_inet6") or "").splitlines()
    with_ipv6 = {row.split()[-1] for row in rows if row.strip()}

    def wishes(netdev: str) -> Iterator[Wish]:
        if int(value) < LEAST_MTU_OF_IPV6 and netdev in with_ipv6:
            raise Trouble(
                f"with an MTU of {value} {netdev} would lose its IPv6 addresses, "
                "which a revert could not give back",
                f"choose {LEAST_MTU_OF_IPV6} or more",
            )
        yield Text(context.system, path=f"{network.NET}/{netdev}/mtu", netdev=netdev), value

    yield from _each(context.netdevs(), wishes)


def irq_affinity(context: Context, value) -> Iterator[Wish | Trouble]:
    system = context.system
    if network.running(system, "irqbalance") and not context.asked.get("irqbalance_ban"):
        yield Trouble(
            "irqbalance runs and would move the interrupts again, so no interrupt was moved",
            "systemctl disable --now irqbalance, or set host_tune_irqbalance_ban",
        )
        return

    def wishes(netdev: str) -> Iterator[Wish]:
        found, directory = network.interrupts(system, netdev)
        wanted = (
            cpus(system.read(f"{directory}/local_cpulist") or "")
            if value == "local"
            else cpus(value)
        )
        online = cpus(system.read("/sys/devices/system/cpu/online") or "0")
        if not wanted & online:
            raise Trouble(
                f"none of the processors {value} is online for the interrupts of {netdev}",
                f"choose from: {system.read('/sys/devices/system/cpu/online')}",
            )
        chosen = sorted(wanted & online)
        # one processor each in turn, as NVIDIA's set_irq_affinity does
        names = [name for _, name in found]
        for index, name in enumerate(names):
            ordinal = names[:index].count(name)
            yield (
                Irq(system, netdev=netdev, name=name, ordinal=ordinal),
                str(chosen[index % len(chosen)]),
            )

    yield from _each(context.netdevs(), wishes)


def _of_each(make: Callable) -> Callable:
    """`make(system, netdev, value)` of each interface."""

    def wishes(context: Context, value) -> Iterator[Wish | Trouble]:
        def of(netdev: str) -> Iterator[Wish]:
            yield from make(context.system, netdev, value)

        yield from _each(context.netdevs(), of)

    return wishes


# ---- priorities
# -------------------------------------------------------------------------------------------------


def _priorities(make: Callable) -> Callable:
    """`make(context, provider, netdev, value)` where this host owns the interface's priorities."""

    def wishes(context: Context, value) -> Iterator[Wish | Trouble]:
        def of(netdev: str) -> Iterator[Wish]:
            provider = qos.provider_of(context.system, netdev, context.provider)
            qos.check_owner(context.system, netdev, provider)
            if wish := make(context, provider, netdev, value):
                yield wish

        yield from _each(context.netdevs(), of)

    return wishes


def _pfc(context: Context, provider: str, netdev: str, value: list) -> Wish:
    return qos.Pfc(context.system, provider=provider, netdev=netdev), [
        str(priority) in map(str, value) for priority in qos.PRIORITIES
    ]


def _ets(context: Context, provider: str, netdev: str, value: dict) -> Wish:
    def merged(found: dict) -> dict:
        rows = {name: list(row) for name, row in found.items()}
        for name, part in value.items():
            for index, item in (part or {}).items():
                rows[name][int(index)] = item
        shares = [
            share for share, algorithm in zip(rows["tc_bw"], rows["tc_tsa"]) if algorithm == "ets"
        ]
        if shares and sum(shares) != 100:
            raise Trouble(
                f"the percents of the ets classes of {netdev} would be {sum(shares)} together",
                "name every ets class in tc_bw; together they are 100",
            )
        return rows

    return qos.Ets(context.system, provider=provider, netdev=netdev), merged


def _buffers(context: Context, provider: str, netdev: str, value: dict) -> Wish:
    def merged(found: dict) -> dict:
        rows = {name: list(row) for name, row in found.items()}
        for name, part in value.items():
            for index, item in (part or {}).items():
                rows[name][int(index)] = int(item)
        return rows

    return qos.Buffers(context.system, provider=provider, netdev=netdev), merged


def _dscp(context: Context, provider: str, netdev: str, value: dict) -> Wish:
    asked = sorted([int(dscp), int(priority)] for dscp, priority in value.items())

    def merged(found: list) -> list:
        return sorted(
            [pair for pair in found if pair[0] not in {dscp for dscp, _ in asked}] + asked
        )

    table = qos.DscpMap(context.system, provider=provider, netdev=netdev)
    table.asked = asked
    return table, merged


def _trust(context: Context, provider: str, netdev: str, value: str) -> Wish | None:
    trust = qos.Trust(context.system, provider=provider, netdev=netdev)
    if trust.has_switch():
        return trust, value
    # without a switch the first DSCP entry makes a NIC trust DSCP, and the removal of the last one
    # PCP again (mlx5: drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c)
    mapped = bool(
        qos.DscpMap(context.system, provider=provider, netdev=netdev).read()
        or context.asked.get("dscp_priority")
    )
    if mapped != (value == "dscp"):
        raise Trouble(
            f"{netdev} has no switch for what it trusts: DSCP while it has a DSCP map, else PCP",
            (
                "set host_tune_dscp_priority, too"
                if value == "dscp"
                else "leave host_tune_dscp_priority at null, and empty the map"
            ),
        )
    return None


def roce_tos(context: Context, value) -> Iterator[Wish | Trouble]:
    def wishes(device: network.Device) -> Iterator[Wish]:
        wanted = int(value)
        for port in device.ports or [1]:
            yield CmTos(context.system, device=device.name, port=port, netdev=device.netdev), wanted
            override = TrafficClass(
                context.system, device=device.name, port=port, netdev=device.netdev
            )
            if context.system.exists(override.path):
                yield override, wanted

    yield from _each(context.devices(), wishes)


def irqbalance_ban(context: Context, value) -> Iterator[Wish | Trouble]:
    found = list(context.netdevs())
    yield from (one for one in found if isinstance(one, Trouble))
    yield from irqbalance.wishes(context.system, [one for one in found if isinstance(one, str)])


def peermem(context: Context, value) -> Iterator[Wish | Trouble]:
    yield Peermem(context.system), LOADED


SETTINGS: dict[str, Callable[[Context, object], Iterator[Wish | Trouble]]] = {
    "hugepages_2m": _huge_pages(2048),
    "hugepages_1g": _huge_pages(1048576),
    "governor": governor,
    "idle_latency_us": idle_latency_us,
    "tuned_profile": tuned_profile,
    "transparent_hugepages": transparent_hugepages,
    "memlock": memlock,
    "sysctls": sysctls,
    "mtu": mtu,
    "irqbalance_ban": irqbalance_ban,
    "irq_affinity": irq_affinity,
    "rings": _of_each(nic.rings),
    "coalescing": _of_each(nic.coalescing),
    "pcie_read_request": _of_each(nic.read_request),
    "pcie_aspm": _of_each(nic.aspm),
    "pcie_acs": _of_each(nic.acs),
    "pfc_priorities": _priorities(_pfc),
    "ets": _priorities(_ets),
    "buffers": _priorities(_buffers),
    "dscp_priority": _priorities(_dscp),
    "dscp_trust": _priorities(_trust),
    "roce_tos": roce_tos,
    "ecn_priorities": _of_each(nic.ecn),
    "cnp": _of_each(nic.cnp),
    "dcqcn": _of_each(nic.dcqcn),
    "peermem": peermem,
}
