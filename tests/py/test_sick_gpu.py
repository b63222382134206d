"""Hosts whose NICs cannot reach their GPUs as a suite in GPU memory needs: none may pass.

A composed run of five hosts with a GPU and a card below one PCIe switch each.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from selftest import work
from selftest.edits import Change, Edit, edit, file_says, prints, put, says, substitute
from selftest.edits import sealed_again as sealed
from selftest.faults.hosts import LATELY, logged
from selftest.files import Document, document
from selftest.paths import FIXTURES
from selftest.runs.fabric import compose
from selftest.runs.fabric_plan import RAILED, Fabric

from perch.model.verdict import Verdict

BETA, ALL = "raw/beta/host_check.json", "raw/*/host_check.json"
GPU, DOWN = "0000:c4:00.0", "0000:c3:01.0"
TEST = RAILED[0]
IN_GPU = replace(TEST, params=TEST.params | {"memory": "cuda"})
PRINTED = prints(
    f"{TEST.name}/*",
    put("params.tx_memory", "cuda:0"),
    put("params.rx_memory", "cuda:0"),
    put("params.memory", "cuda:0"),
)


def with_gpu(answer: Document) -> None:
    """The composed card's own numbers in the recorded GPU's neighbourhood."""
    text = json.dumps(document(FIXTURES / "hosts/gpu-nvidia.json")).replace("c1:00.0", "81:00.0")
    given: dict[str, Any] = json.loads(text)
    for part, said in given.items():
        answer[part] |= said
    slot = "../../devices/pci0000:c0/0000:c0:01.1/0000:c2:00.0/0000:c3:00.0/0000:81:00.0"
    answer["links"]["/sys/class/net/enp1s0"] = f"{slot}/net/enp1s0"


def no_peermem(answer: Document) -> None:
    files = answer["files"]
    files["/proc/modules"] = re.sub("^nvidia_peermem .*\n", "", files["/proc/modules"])
    version = files["/proc/driver/nvidia/version"]
    version = version.replace("Open Kernel Module for x86_64", "x86_64 Kernel Module")
    files["/proc/driver/nvidia/version"] = version


def no_gpu(answer: Document) -> None:
    del answer["files"][f"/sys/bus/pci/devices/{GPU}/class"]


def without_nvidia_smi(answer: Document) -> None:
    answer["commands"]["nvidia-smi"] |= {"exit": None, "stdout": ""}


def gpu_says(pattern: str, replacement: str) -> Change:
    return says("nvidia-smi", substitute(pattern, replacement))


REDIRECT = says(
    f"pci {DOWN}", substitute("000230 0d 00 01 00 1f 00 00", "000230 0d 00 01 00 1f 00 1d")
)
XID = f"[{LATELY}.000000] NVRM: Xid (PCI:0000:c4:00): 79, pid=1122, GPU has fallen off the bus."

#: Case, verdict, the check that says so (an id, or how it begins), and what makes it so.
SICK: dict[str, tuple[str, str, tuple[Edit, ...]]] = {
    "GPU P2P through the root, by ACS": (
        "FAIL", "machine-gpu-acs/beta/mlx5_0", (edit(BETA, REDIRECT),),
    ),
    "an IOMMU that translates what a GPU sends": (
        "FAIL", "machine-iommu/beta/",
        (edit(BETA, file_says(("/sys/kernel/iommu_groups/40/type", "DMA"))),),
    ),
    "neither nvidia_peermem nor DMA buffers": (
        "FAIL", "machine-gpu-direct/beta", (edit(BETA, no_peermem),),
    ),
    "a GPU with half its PCIe lanes": (
        "FAIL", f"machine-gpu-link-width/beta/{GPU}",
        (edit(BETA, file_says((f"/sys/bus/pci/devices/{GPU}/current_link_width", "8"))),),
    ),
    "a GPU whose memory lost data": (
        "FAIL", f"machine-gpu-memory-errors/beta/{GPU}",
        (edit(BETA, gpu_says("Enabled, 0$", "Enabled, 2")),),
    ),
    "a GPU without ECC": (
        "FAIL", f"machine-gpu-memory-errors/beta/{GPU}",
        (edit(BETA, gpu_says("Enabled, 0$", "Disabled, [N/A]")),),
    ),
    "a GPU that fell off the bus": (
        "FAIL", "machine-gpu-log/beta", (edit(BETA, logged(XID)),),
    ),
    "a host without a GPU": ("FAIL", "machine-gpu-present/beta", (edit(BETA, no_gpu),)),
    "no nvidia-smi to tell of errors": (
        "INCONCLUSIVE", f"machine-gpu-memory-errors/beta/{GPU}", (edit(BETA, without_nvidia_smi),),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("healthy") / "run"
    compose(root, Fabric(5, (IN_GPU,)))
    for one in (PRINTED, edit(ALL, with_gpu)):
        one(root)
    return root


def judged(healthy: Path, root: Path, *edits: Edit) -> Verdict:
    shutil.copytree(healthy, root)
    for one in edits:
        one(root)
    sealed(root)
    return work.judged(root)


def against(verdict: Verdict) -> list[str]:
    return [one.id for one in verdict.checks if one.status in ("fail", "inconclusive")]


def test_healthy_gpus_pass(healthy: Path, tmp_path: Path) -> None:
    verdict = judged(healthy, tmp_path / "run")
    assert (verdict.verdict, against(verdict)) == ("PASS", [])


@pytest.mark.parametrize("case", SICK)
def test_a_sick_gpu_does_not_pass(case: str, healthy: Path, tmp_path: Path) -> None:
    word, check, edits = SICK[case]
    verdict = judged(healthy, tmp_path / "run", *edits)
    found = against(verdict)
    assert verdict.verdict == word
    assert found and all(one.startswith(f"host_check/{check}") for one in found)
