# SPDX-License-Identifier: Apache-2.0
"""The traffic class of RoCE: rdma_cm's default for each port,
and the override of NVIDIA's OFED driver.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile

from .base import Trouble
from .values import Text, Value, refusal

CONFIGFS = "/sys/kernel/config"


class CmTos(Value):
    """default_roce_tos of rdma_cm.

    Its directory in configfs is only a view;
    the value stays with the device (kernel: Documentation/ABI/testing/configfs-rdma_cm).
    A tuned host keeps the view, as the value cannot be seen without it.
    """

    kind = "cm_tos"
    fields = ("device", "port", "netdev", "was_there")

    def key(self) -> str:
        return f"cm_tos {self.device} {self.port}"

    def title(self) -> str:
        return f"traffic class of rdma_cm on {self.device} port {self.port}"

    @contextlib.contextmanager
    def _view(self, leave: bool | None = None):
        """leave: whether the view stays; None: as it is found."""
        remedy = (
            "modprobe rdma_cm; the kernel needs CONFIG_CONFIGFS_FS; "
            "or leave host_tune_roce_tos at null here"
        )
        mounted = None
        base = self.system.path(CONFIGFS)
        try:
            if not self.system.root:
                self.system.command("modprobe", "-q", "rdma_cm")
            if not os.path.isdir(f"{base}/rdma_cm"):
                mounted = base = tempfile.mkdtemp(prefix="perch-configfs-")
                code, _, err = self.system.command("mount", "-t", "configfs", "perch", base)
                if code != 0 or not os.path.isdir(f"{base}/rdma_cm"):
                    raise Trouble(
                        "rdma_cm's "
                        f"settings cannot be reached ({err or 'configfs has no rdma_cm'})",
                        remedy,
                    )
            directory = f"{base}/rdma_cm/{self.device}"
            new = not os.path.isdir(directory)
            if self.was_there is None:
                self.was_there = not new
            if new:
                try:
                    os.mkdir(directory)
                except OSError as error:
                    raise Trouble(
                        f"rdma_cm does not know {self.device} ({error.strerror})", remedy
                    ) from error
            try:
                yield f"{directory}/ports/{self.port}/default_roce_tos"
            finally:
                if not (leave if leave is not None else not new):
                    with contextlib.suppress(OSError):
                        os.rmdir(directory)
        finally:
            if mounted:
                self.system.command("umount", mounted)
                with contextlib.suppress(OSError):
                    os.rmdir(mounted)

    def read(self) -> int:
        with self._view() as path:
            try:
                with open(path, encoding="ascii") as file:
                    return int(file.read())
            except OSError as error:
                raise refusal(path, "", error) from error
            except ValueError as error:
                raise Trouble(
                    f"{path} holds no number", "leave host_tune_roce_tos at null here"
                ) from error

    def write(self, value, leave: bool = True) -> None:
        with self._view(leave) as path:
            try:
                with open(path, "w", encoding="ascii") as file:
                    file.write(f"{value}\n")
            except OSError as error:
                raise refusal(path, str(value), error) from error

    def restore(self, value) -> None:
        self.write(value, leave=self.was_there is not False)

    def boot(self, value) -> list[list[str]]:
        return [["tos", self.device, str(self.port), str(value)]]


class TrafficClass(Value):
    """The override of NVIDIA's OFED driver for all but rdma_cm: 'Global tclass=106',
    or nothing, written as -1.
    """

    kind = "traffic_class"
    fields = ("device", "port", "netdev")

    @property
    def path(self) -> str:
        return f"/sys/class/infiniband/{self.device}/tc/{self.port}/traffic_class"

    def title(self) -> str:
        return self.path

    def read(self) -> int:
        found = re.search(
            r"^Global tclass=(\d+)", Text(self.system, path=self.path).read(), re.MULTILINE
        )
        return int(found.group(1)) if found else -1

    def write(self, value) -> None:
        Text(self.system, path=self.path).write(value)

    def boot(self, value) -> list[list[str]]:
        return [["write", self.path, str(value)]]
