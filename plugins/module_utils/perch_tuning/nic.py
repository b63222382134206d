# SPDX-License-Identifier: Apache-2.0
"""Of a NIC's interface: the rings, the moderation of interrupts, congestion control, and PCIe.

ethtool's text is that of its ring.c, coalesce.c and netlink/ (5.9 to 6.11): what a driver does
not have is "n/a". A read request is in Device Control (PCI Express Base Specification, 7.5.3.4).
"""

from __future__ import annotations

import os
import re
from typing import Iterator

from .base import System, Trouble
from .network import NET
from .qos import PRIORITIES, change
from .values import Text, Value

RINGS = ("rx", "tx")
#: Bits 14 to 12 of Device Control: 128 bytes x 2^n.
READ_REQUEST_MASK, READ_REQUEST_SHIFT, READ_REQUEST_LEAST = 0x7000, 12, 128
#: Bits 2 and 3 of ACS Control: requests and completions go up to the root (the same, 7.7.8.3).
REDIRECTS = 0x000C
#: The parts of active state power management, each before that which it needs, so that a revert,
#: which begins with the last, finds it on (Linux, Documentation/ABI/testing/sysfs-bus-pci, link/).
ASPM = ("l1_2_pcipm", "l1_1_pcipm", "l1_2_aspm", "l1_1_aspm", "l1_aspm", "l0s_aspm")
#: Files of debugfs (Linux, drivers/infiniband/hw/mlx5/cong.c).
CC_PARAMS = "/sys/kernel/debug/mlx5/{}/cc_params"
#: Of which writing one changes its mode, too, which a revert would leave (the same file).
CC_PAIRED = ("np_cnp_prio", "np_cnp_prio_mode", "rtt_resp_dscp", "rtt_resp_dscp_valid")


def _asked(system: System, netdev: str, letter: str) -> str:
    code, out, err = system.command("ethtool", letter, netdev)
    if code != 0:
        raise Trouble(
            f"ethtool {letter} {netdev}: {err or out.strip() or 'failed'}",
            "install ethtool; a driver without this setting needs its variable to be null here",
        )
    return out


def _functions(system: System, netdev: str, variable: str) -> list[str]:
    """The PCI functions from the root to the interface's own."""
    path = os.path.realpath(system.path(f"{NET}/{netdev}/device"))
    found = re.findall(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", path)
    if not found:
        raise Trouble(
            f"{netdev} is on no PCI function",
            f"leave {variable} at null here; software devices have none",
        )
    return found


def _function(system: System, netdev: str, variable: str) -> str:
    return _functions(system, netdev, variable)[-1]


class _Ethtool(Value):
    """A dictionary of settings. `wanted`: some of them; what is not named stays."""

    fields = ("netdev",)
    what = letter = ""

    def title(self) -> str:
        return f"{self.what} of {self.netdev}"

    def agrees(self, found, wanted) -> bool:
        return all(found.get(name) == value for name, value in wanted.items())

    def show(self, value) -> str:
        return ", ".join(f"{name} {part}" for name, part in value.items())

    def _words(self, value) -> list[str]:
        pairs = (str(word) for pair in value.items() for word in pair)
        return ["ethtool", self.letter, self.netdev, *pairs]

    def write(self, value) -> None:
        """In one command: a driver refuses what does not fit together."""
        found = self.read()
        changed = {name: part for name, part in value.items() if found.get(name) != part}
        if changed:
            change(self.system, self._words(changed))

    def boot(self, value) -> list[list[str]]:
        return [["wait", f"{NET}/{self.netdev}"], ["run", *self._words(value)]]


class Rings(_Ethtool):
    kind, what, letter = "rings", "rings", "-G"

    def _section(self, title: str) -> dict[str, int]:
        text = _asked(self.system, self.netdev, "-g").partition(title)[2]
        found: dict[str, int] = {}
        for name, count in re.findall(r"^(RX|TX):\s*([0-9]+)$", text, re.MULTILINE):
            found.setdefault(name.lower(), int(count))
        return found

    def read(self) -> dict[str, int]:
        return self._section("Current hardware settings:")

    def most(self) -> dict[str, int]:
        return self._section("Pre-set maximums:")


class Coalescing(_Ethtool):
    kind, what, letter = "coalescing", "interrupt moderation", "-C"

    def read(self) -> dict[str, str]:
        text = _asked(self.system, self.netdev, "-c")
        found = dict(re.findall(r"^([a-z][a-z-]+):\s*([0-9]+|on|off)\s*$", text, re.MULTILINE))
        if adaptive := re.search(r"^Adaptive RX:\s*(on|off)\s+TX:\s*(on|off)\s*$", text, re.M):
            found |= {"adaptive-rx": adaptive[1], "adaptive-tx": adaptive[2]}
        return found


class ReadRequest(Value):
    """Bytes that the NIC asks of memory at once."""

    kind = "read_request"
    fields = ("netdev",)

    def title(self) -> str:
        return f"PCIe read request of {self.netdev}"

    def _setpci(self, more: str) -> list[str]:
        function = _function(self.system, self.netdev, "host_tune_pcie_read_request")
        return ["setpci", "-s", function, f"CAP_EXP+8.w{more}"]

    def _words(self, value) -> list[str]:
        bits = (int(value) // READ_REQUEST_LEAST).bit_length() - 1 << READ_REQUEST_SHIFT
        return self._setpci(f"={bits:04x}:{READ_REQUEST_MASK:04x}")

    def read(self) -> int:
        code, out, err = self.system.command(*self._setpci(""))
        if code != 0 or not re.fullmatch(r"[0-9a-f]{4}", out.strip()):
            raise Trouble(
                f"setpci does not read Device Control of {self.netdev}: {err or out.strip()}",
                "install pciutils; a function without a PCIe capability has none",
            )
        bits = int(out, 16) & READ_REQUEST_MASK
        return READ_REQUEST_LEAST << (bits >> READ_REQUEST_SHIFT)

    def write(self, value) -> None:
        change(self.system, self._words(value))

    def boot(self, value) -> list[list[str]]:
        return [["wait", f"{NET}/{self.netdev}"], ["run", *self._words(value)]]


class Acs(Value):
    """Whether a bridge sends traffic between two devices up to the root: the bits, as setpci has
    them. None: it has no such register.
    """

    kind = "acs"
    fields = ("function", "netdev")

    def key(self) -> str:
        return f"acs {self.function}"

    def title(self) -> str:
        return f"PCIe ACS redirects of {self.function}, above {self.netdev}"

    def _words(self, value) -> list[str]:
        return ["setpci", "-s", self.function, f"ECAP_ACS+6.w={value}:{REDIRECTS:04x}"]

    def read(self) -> str | None:
        code, out, err = self.system.command("setpci", "-s", self.function, "ECAP_ACS+6.w")
        if code == 0 and re.fullmatch(r"[0-9a-f]{4}", out.strip()):
            return f"{int(out, 16) & REDIRECTS:04x}"
        if "apability" in err and "not found" in err:
            return None
        raise Trouble(
            f"setpci does not read ACS Control of {self.function}: {err or out.strip()}",
            "install pciutils",
        )

    def write(self, value) -> None:
        change(self.system, self._words(value))

    def boot(self, value) -> list[list[str]]:
        return [["wait", f"{NET}/{self.netdev}"], ["run", *self._words(value)]]


# ---- what the variables mean ---------------------------------------------------------------------


Wishes = Iterator[tuple[Value, object]]


def rings(system: System, netdev: str, value: dict) -> Wishes:
    wanted = {name: int(count) for name, count in value.items()}
    of_netdev = Rings(system, netdev=netdev)
    most = of_netdev.most()
    for name, count in wanted.items():
        if count > most.get(name, 0):
            raise Trouble(
                f"the {name} ring of {netdev} has {most.get(name, 0)} places at most",
                "ask for fewer in host_tune_rings",
            )
    yield of_netdev, wanted


def coalescing(system: System, netdev: str, value: dict) -> Wishes:
    of_netdev = Coalescing(system, netdev=netdev)
    found = of_netdev.read()
    for name in value:
        if name not in found:
            raise Trouble(
                f"{netdev} has no {name}",
                f"its driver has: {', '.join(found) or 'none'}; correct host_tune_coalescing",
            )
    # YAML's on and off are booleans
    words = {True: "on", False: "off"}
    yield of_netdev, {
        name: words[part] if isinstance(part, bool) else str(part) for name, part in value.items()
    }


def read_request(system: System, netdev: str, value) -> Wishes:
    yield ReadRequest(system, netdev=netdev), int(value)


def aspm(system: System, netdev: str, value) -> Wishes:
    """Off: each part that the kernel controls on the card's link."""
    link = f"{NET}/{netdev}/device/link"
    found = [name for name in ASPM if system.exists(f"{link}/{name}")]
    if not found:
        raise Trouble(
            f"the kernel controls no power saving of the PCIe link of {netdev}",
            "switch ASPM off in the BIOS, and leave host_tune_pcie_aspm at null here",
        )
    for name in found:
        yield Text(system, path=f"{link}/{name}", netdev=netdev), "0"


def acs(system: System, netdev: str, value) -> Wishes:
    """Of each bridge above the card that has ACS."""
    for function in _functions(system, netdev, "host_tune_pcie_acs")[:-1]:
        bridge = Acs(system, function=function, netdev=netdev)
        if bridge.read() is not None:
            yield bridge, "0000"


def ecn(system: System, netdev: str, value) -> Wishes:
    base = f"{NET}/{netdev}/ecn"
    if not system.exists(f"{base}/roce_np/enable"):
        raise Trouble(
            f"{netdev} has no switches for ECN ({base} does not exist)",
            "they come with NVIDIA's OFED driver; "
            "elsewhere use the vendor's tool and leave host_tune_ecn_priorities at null",
        )
    # the notification point answers marked packets, the reaction point slows down
    for part in ("roce_np", "roce_rp"):
        for priority in PRIORITIES:
            yield (
                Text(system, path=f"{base}/{part}/enable/{priority}", netdev=netdev),
                str(int(str(priority) in map(str, value))),
            )


def cnp(system: System, netdev: str, value: dict) -> Wishes:
    """NVIDIA's: the files of its OFED driver, else of the kernel's, where priority is paired."""
    ofed = f"{NET}/{netdev}/ecn/roce_np"
    has_ofed = system.exists(f"{ofed}/cnp_dscp")
    folder = ofed if has_ofed else CC_PARAMS.format(_function(system, netdev, "host_tune_cnp"))
    for name, number in value.items():
        if name == "priority" and not has_ofed:
            raise Trouble(
                f"the driver of {netdev} changes another parameter with the priority of CNP",
                "name dscp alone in host_tune_cnp, and map it with host_tune_dscp_priority",
            )
        file = {"priority": "cnp_802p_prio", "dscp": "cnp_dscp" if has_ofed else "np_cnp_dscp"}
        if not system.exists(f"{folder}/{file[name]}"):
            raise Trouble(
                f"{netdev} has no file for the {name} of CNP ({folder})",
                "use the vendor's tool, such as bnxt_setupcc.sh; leave host_tune_cnp at null here",
            )
        yield Text(system, path=f"{folder}/{file[name]}", netdev=netdev), str(int(number))


def dcqcn(system: System, netdev: str, value: dict) -> Wishes:
    folder = CC_PARAMS.format(_function(system, netdev, "host_tune_dcqcn"))
    found = system.names(folder)
    for name, number in value.items():
        if name in CC_PAIRED:
            raise Trouble(
                f"a change of {name} changes another parameter, too", "set it by other means"
            )
        if name not in found:
            raise Trouble(
                f"{netdev} has no parameter {name} ({folder})",
                f"choose from: {', '.join(found) or 'none, as its driver is not mlx5_ib'}",
            )
        yield Text(system, path=f"{folder}/{name}", netdev=netdev), str(int(number))
