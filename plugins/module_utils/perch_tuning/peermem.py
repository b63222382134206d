# SPDX-License-Identifier: Apache-2.0
"""The module by which a NIC registers the memory of NVIDIA's GPUs."""

from __future__ import annotations

from .base import Trouble
from .values import Value

LOADED, ABSENT = "loaded", "absent"


class Peermem(Value):
    """nvidia_peermem: loaded or absent (NVIDIA, GPUDirect RDMA, "Using nvidia-peermem")."""

    kind = "peermem"

    def title(self) -> str:
        return "module nvidia_peermem"

    def read(self) -> str:
        return LOADED if self.system.exists("/sys/module/nvidia_peermem") else ABSENT

    def write(self, value) -> None:
        # modprobe -r would take unused modules of the driver along
        argv = ["rmmod", "nvidia_peermem"] if value == ABSENT else ["modprobe", "nvidia-peermem"]
        code, out, err = self.system.command(*argv)
        if code == 0:
            return
        remedy = (
            "end the programs that use GPU memory"
            if value == ABSENT
            else "install NVIDIA's driver beside its OFED, or use its open modules without this one"
        )
        raise Trouble(f"{' '.join(argv)}: {err or out.strip() or 'failed'}", remedy)

    def boot(self, value) -> list[list[str]]:
        return [["run", "modprobe", "nvidia-peermem"]]
