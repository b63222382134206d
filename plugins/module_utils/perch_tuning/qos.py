# SPDX-License-Identifier: Apache-2.0
"""Priorities of a NIC: PFC, ETS, DSCP map and trust, through dcb (iproute2)
or mlnx_qos (NVIDIA's OFED), and who owns them.

dcb's JSON is that of iproute2 6.1 and 6.15 (recorded in the lab;
tests/bats/tune/dcb answers with it). mlnx_qos has only text; its layout is that of NVIDIA's page
on the tool and of a session published in att/netarbiter (nvmf/OUTPUTSAMPLE...).
"""

from __future__ import annotations

import json
import re

from .base import System, Trouble
from .network import running
from .values import Value

PRIORITIES = range(8)  # IEEE 802.1Q
# a driver rounds a buffer down to whole cells, of 128 bytes or a little more (Linux,
# drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c, port_buff_cell_sz)
CELL = 256
NO_DCB = (
    "choose a NIC with DCB; for NVIDIA's older drivers install mlnx_qos; "
    "or leave the variable at null here"
)


def dcb(system: System, *words: str) -> dict:
    """The answer of a `dcb ... show`."""
    code, out, err = system.command("dcb", "-N", "-j", *words)
    if code != 0:
        raise Trouble(f"dcb {' '.join(words)}: {err or 'failed'}", NO_DCB)
    try:
        answer = json.loads(out)
    except ValueError as error:
        raise Trouble(
            f"dcb {' '.join(words)} does not answer with JSON", "install iproute2 5.11 or newer"
        ) from error
    if not isinstance(answer, dict):
        raise Trouble(
            f"dcb {' '.join(words)} answers with no object", "install iproute2 5.11 or newer"
        )
    return answer


def mlnx_qos(system: System, netdev: str) -> str:
    code, out, err = system.command("mlnx_qos", "-i", netdev)
    if code != 0:
        raise Trouble(f"mlnx_qos -i {netdev}: {err or out.strip() or 'failed'}", NO_DCB)
    return out


def change(system: System, argv: list[str]) -> None:
    code, out, err = system.command(*argv)
    if code != 0:
        raise Trouble(
            f"{' '.join(argv)}: {err or out.strip() or 'failed'}",
            "look into the kernel's log (dmesg): the driver refused it",
        )


def provider_of(system: System, netdev: str, wanted: str) -> str:
    """dcb where it answers for this NIC, else mlnx_qos."""
    said = []
    for name, ask in (
        ("dcb", lambda: dcb(system, "pfc", "show", "dev", netdev)),
        ("mlnx_qos", lambda: mlnx_qos(system, netdev)),
    ):
        if wanted in ("auto", name):
            try:
                ask()
                return name
            except Trouble as trouble:
                said.append(trouble.what)
    raise Trouble(
        f"{netdev} has no priority settings that can be reached ({'; '.join(said)})", NO_DCB
    )


def check_owner(system: System, netdev: str, provider: str) -> None:
    """Refuses where the firmware or a daemon would override what is set here."""
    if provider == "mlnx_qos":
        if re.search(r"^DCBX mode: Firmware", mlnx_qos(system, netdev), re.MULTILINE):
            raise Trouble(
                f"the firmware of {netdev} owns DCBX and would override this, so nothing was set",
                f"mlnx_qos -i {netdev} -d os",
            )
    else:
        code, out, _ = system.command("dcb", "-j", "dcbx", "show", "dev", netdev)
        # a driver without DCBX modes refuses the question: then no other owner is known
        if code == 0 and '"host":true' not in out.replace(" ", ""):
            raise Trouble(
                f'the firmware of {netdev} owns DCBX (no "host" in `dcb dcbx show dev {netdev}`) '
                'and would override this, '
                "so nothing was set",
                f"dcb dcbx set dev {netdev} host ieee",
            )
    # Intel's ice and i40e:
    # the firmware's LLDP agent (Documentation/networking/device_drivers/ethernet/intel)
    _, flags, _ = system.command("ethtool", "--show-priv-flags", netdev)
    for flag, owner, stop in (("fw-lldp-agent", "on", "off"), ("disable-fw-lldp", "off", "on")):
        if re.search(rf"^{flag}\s*:\s*{owner}$", flags, re.MULTILINE):
            raise Trouble(
                f"the LLDP agent in the firmware of {netdev} owns DCBX ({flag} {owner}) "
                "and would override this: not set",
                f"ethtool --set-priv-flags {netdev} {flag} {stop}",
            )
    if running(system, "lldpad"):
        raise Trouble(
            "lldpad runs, "
            f"owns the priorities of {netdev} and would override this, so nothing was set",
            "set them with lldptool, or: systemctl disable --now lldpad.socket lldpad",
        )


class _Priorities(Value):
    fields = ("provider", "netdev")
    what = ""

    def title(self) -> str:
        return f"{self.what} of {self.netdev}"

    def key(self) -> str:
        return f"{self.kind} {self.netdev}"

    def commands(self, value, found=None) -> list[list[str]]:
        raise NotImplementedError

    def write(self, value) -> None:
        for argv in self.commands(value, self.read()):
            change(self.system, argv)

    def boot(self, value) -> list[list[str]]:
        return [
            ["wait", f"/sys/class/net/{self.netdev}"],
            *(["run", *argv] for argv in self.commands(value)),
        ]


class Pfc(_Priorities):
    """A list of eight: whether each priority is paused."""

    kind, what = "pfc", "priority flow control"

    def read(self) -> list[bool]:
        if self.provider == "dcb":
            found = dcb(self.system, "pfc", "show", "dev", self.netdev).get("prio_pfc")
        else:
            row = re.search(
                r"^\s*enabled((?:\s+[01]){8})\s*$", mlnx_qos(self.system, self.netdev), re.MULTILINE
            )
            found = [flag == "1" for flag in row.group(1).split()] if row else None
        if not isinstance(found, list) or len(found) != len(PRIORITIES):
            raise Trouble(
                f"{self.provider} does not say which priorities of {self.netdev} are paused", NO_DCB
            )
        return found

    def commands(self, value, found=None) -> list[list[str]]:
        if self.provider == "dcb":
            return [
                [
                    "dcb",
                    "pfc",
                    "set",
                    "dev",
                    self.netdev,
                    "prio-pfc",
                    *(f"{p}:{'on' if value[p] else 'off'}" for p in PRIORITIES),
                ]
            ]
        return [
            ["mlnx_qos", "-i", self.netdev, "--pfc", ",".join(str(int(flag)) for flag in value)]
        ]

    def show(self, value) -> str:
        return "priorities " + (" ".join(str(p) for p in PRIORITIES if value[p]) or "none")


class Ets(_Priorities):
    """Class of each priority, algorithm and share of each class; the words are dcb-ets(8)'s."""

    kind, what = "ets", "transmission selection (ETS)"

    def read(self) -> dict:
        if self.provider == "dcb":
            answer = dcb(self.system, "ets", "show", "dev", self.netdev)
            found = {name: answer.get(name) for name in ("prio_tc", "tc_tsa", "tc_bw")}
        else:
            found = self._of_text(mlnx_qos(self.system, self.netdev))
        if any(not isinstance(row, list) or len(row) != len(PRIORITIES) for row in found.values()):
            raise Trouble(
                f"{self.provider} does not say how the classes of {self.netdev} are served", NO_DCB
            )
        return found

    @staticmethod
    def _of_text(text: str) -> dict:
        """'tc: 0 ratelimit: unlimited, tsa: ets, bw: 10%', and below it ' priority:
        1' for each of its priorities
        """
        found: dict[str, list] = {"prio_tc": [None] * 8, "tc_tsa": ["strict"] * 8, "tc_bw": [0] * 8}
        current = None
        for line in text.splitlines():
            if head := re.match(r"\s*tc:\s*([0-7]) .*\btsa: (\w+)(?:, bw: (\d+)%)?", line):
                current = int(head.group(1))
                found["tc_tsa"][current], found["tc_bw"][current] = (
                    head.group(2),
                    int(head.group(3) or 0),
                )
            elif (row := re.match(r"\s*priority:\s*([0-7])\s*$", line)) and current is not None:
                found["prio_tc"][int(row.group(1))] = current
        return found if None not in found["prio_tc"] else {"prio_tc": None}

    def commands(self, value, found=None) -> list[list[str]]:
        if self.provider == "dcb":
            words = []
            for option, row in (
                ("prio-tc", value["prio_tc"]),
                ("tc-tsa", value["tc_tsa"]),
                ("tc-bw", value["tc_bw"]),
            ):
                words += [option, *(f"{index}:{item}" for index, item in enumerate(row))]
            return [["dcb", "ets", "set", "dev", self.netdev, *words]]
        rows = {
            option: ",".join(str(item) for item in value[name])
            for option, name in (("--prio_tc", "prio_tc"), ("--tsa", "tc_tsa"), ("--tcbw", "tc_bw"))
        }
        return [["mlnx_qos", "-i", self.netdev, *(word for pair in rows.items() for word in pair)]]

    def show(self, value) -> str:
        return "; ".join(
            f"{name.replace('_', '-')} "
            f"{' '.join(f'{i}:{item}' for i, item in enumerate(value[name]))}"
            for name in ("prio_tc", "tc_tsa", "tc_bw")
        )


class Buffers(_Priorities):
    """Buffer of each priority, and bytes of each buffer; the words are dcb-buffer(8)'s."""

    kind, what = "buffers", "receive buffers"

    def read(self) -> dict:
        if self.provider == "dcb":
            answer = dcb(self.system, "buffer", "show", "dev", self.netdev)
            found = {name: answer.get(name) for name in ("prio_buffer", "buffer_size")}
        else:
            found = self._of_text(mlnx_qos(self.system, self.netdev))
        if any(not isinstance(row, list) or len(row) != len(PRIORITIES) for row in found.values()):
            raise Trouble(f"{self.provider} does not tell the buffers of {self.netdev}", NO_DCB)
        return found

    @staticmethod
    def _of_text(text: str) -> dict:
        """'Receive buffer size (bytes): 130944,0,...,max_buffer_size=262016', '  buffer  0 0 1'"""
        sizes = re.search(r"^Receive buffer size \(bytes\): ([0-9,]+)", text, re.MULTILINE)
        row = re.search(r"^\s+buffer((?:\s+[0-7]){8})\s*$", text, re.MULTILINE)
        return {
            "prio_buffer": [int(one) for one in row[1].split()] if row else None,
            "buffer_size": [int(n) for n in sizes[1].strip(",").split(",")][:8] if sizes else None,
        }

    def agrees(self, found, wanted) -> bool:
        pairs = zip(found["buffer_size"], wanted["buffer_size"])
        return found["prio_buffer"] == wanted["prio_buffer"] and all(
            0 <= asked - given < CELL for given, asked in pairs
        )

    def commands(self, value, found=None) -> list[list[str]]:
        rows = [value["prio_buffer"], value["buffer_size"]]
        if self.provider == "dcb":
            maps = [[f"{index}:{item}" for index, item in enumerate(row)] for row in rows]
            words = ["prio-buffer", *maps[0], "buffer-size", *maps[1]]
            return [["dcb", "buffer", "set", "dev", self.netdev, *words]]
        lists = [",".join(map(str, row)) for row in rows]
        words = ["--prio2buffer", lists[0], "--buffer_size", lists[1]]
        return [["mlnx_qos", "-i", self.netdev, *words]]

    def show(self, value) -> str:
        return "; ".join(
            f"{name} {' '.join(f'{i}:{item}' for i, item in enumerate(value[name]))}"
            for name in ("prio_buffer", "buffer_size")
        )


class DscpMap(_Priorities):
    """Pairs of DSCP and priority, sorted."""

    kind, what = "dscp", "DSCP-to-priority map"
    # the pairs that are applied at boot: what the inventory names, not all that a NIC has
    asked: list[list[int]] = []

    def read(self) -> list[list[int]]:
        if self.provider == "dcb":
            rows = dcb(self.system, "app", "show", "dev", self.netdev).get("dscp_prio", [])
            try:
                # iproute2 6.15 adds a third, a blank, to each pair
                return sorted([int(row[0]), int(row[1])] for row in rows)
            except (ValueError, TypeError, IndexError, KeyError) as error:
                raise Trouble(
                    f"dcb does not show the DSCP map of {self.netdev} in numbers",
                    "install iproute2 6.1 or newer",
                ) from error
        found = []
        for priority, row in re.findall(
            r"^\s*prio:([0-7]) dscp:([0-9,\s]+?)$", mlnx_qos(self.system, self.netdev), re.MULTILINE
        ):
            found += [[int(dscp), int(priority)] for dscp in row.split(",") if dscp.strip()]
        return sorted(found)

    def commands(self, value, found=None) -> list[list[str]]:
        extra = [pair for pair in found or [] if pair not in value]
        new = [pair for pair in value if pair not in (found or [])]
        commands = []
        if self.provider == "dcb":
            # added first: with its last entry a NIC may stop trusting DSCP (mlx5)
            head = ["dcb", "app"]
            commands += [
                [
                    *head,
                    "add" if found is not None else "replace",
                    "dev",
                    self.netdev,
                    "dscp-prio",
                    f"{d}:{p}",
                ]
                for d, p in new
            ]
            return commands + [
                [*head, "del", "dev", self.netdev, "dscp-prio", f"{d}:{p}"] for d, p in extra
            ]
        named = {dscp for dscp, _ in value}
        commands += [["mlnx_qos", "-i", self.netdev, "--dscp2prio", f"set,{d},{p}"] for d, p in new]
        return commands + [
            ["mlnx_qos", "-i", self.netdev, "--dscp2prio", f"del,{d},{p}"]
            for d, p in extra
            if d not in named
        ]

    def boot(self, value) -> list[list[str]]:
        return super().boot(self.asked)

    def show(self, value) -> str:
        return " ".join(f"{dscp}:{priority}" for dscp, priority in value) or "none"


class Trust(_Priorities):
    """What a NIC takes a packet's priority from: 'dscp' or 'pcp'."""

    kind, what = "trust", "trusted field"

    def read(self) -> str:
        if self.provider == "mlnx_qos":
            found = re.search(
                r"^Priority trust state: (pcp|dscp|both)$",
                mlnx_qos(self.system, self.netdev),
                re.MULTILINE,
            )
            if not found:
                raise Trouble(f"mlnx_qos does not say what {self.netdev} trusts", NO_DCB)
            return found.group(1)
        order = dcb(self.system, "apptrust", "show", "dev", self.netdev).get("order")
        if not isinstance(order, list):
            raise Trouble(f"dcb does not say what {self.netdev} trusts", NO_DCB)
        return " ".join(str(word).strip() for word in order)

    def has_switch(self) -> bool:
        """dcb has one where kernel (6.1) and driver know apptrust."""
        if self.provider == "mlnx_qos":
            return True
        code, _, _ = self.system.command("dcb", "-j", "apptrust", "show", "dev", self.netdev)
        return code == 0

    def commands(self, value, found=None) -> list[list[str]]:
        if self.provider == "mlnx_qos":
            return [["mlnx_qos", "-i", self.netdev, "--trust", value]]
        return [["dcb", "apptrust", "set", "dev", self.netdev, "order", *value.split()]]

    def agrees(self, found, wanted) -> bool:
        return str(found).split()[:1] == str(wanted).split()[:1]
