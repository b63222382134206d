"""Puts into the wheel what perchctl needs besides its modules: reports/, checker and version.

The planner asks the checker for the engine's rules. It is compiled from a copy of the sources, as
an installed collection may be read-only and keeps its files as they were.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

#: Seconds for make, as plugins/modules/perch_engine.py gives it, and the exit code of timeout(1),
#: which ends its compilers, too.
MAKE_S, LATE = 1800, 124


class Dependencies(MetadataHookInterface):
    """Takes the versions of the packages in `names` from the lists of requirements."""

    def update(self, metadata: dict[str, Any]) -> None:
        lists = sorted(Path(self.root, "setup").glob("requirements*.txt"))
        text = "\n".join(one.read_text(encoding="utf-8") for one in lists)
        pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", text, re.MULTILINE))
        metadata["dependencies"] = [f"{name}=={pins[name]}" for name in self.config["names"]]


class Data(BuildHookInterface):
    """hatchling's hook of this project (pyproject.toml)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._scratch = tempfile.TemporaryDirectory()
        engine = Path(self._scratch.name) / "engine"
        engine.mkdir()
        source = Path(self.root) / "engine"
        shutil.copy(source / "Makefile", engine)
        shutil.copytree(source / "src", engine / "src")
        made = subprocess.run(
            [*f"timeout --kill-after=10 {MAKE_S} make -s check-tool -C".split(), engine],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            late = f"make did not end within {MAKE_S} s" if made.returncode == LATE else ""
            raise RuntimeError(
                f"{made.stderr.strip() or late}\nthe engine's checker could not be built; it needs "
                "gcc, make, pkg-config, libjansson-dev, libssl-dev and zlib1g-dev"
            )
        build_data["force_include"] |= {
            f"{self.root}/reports": "perch/home/reports",
            f"{engine}/build-check/perch": "perch/home/engine/build-check/perch",
            f"{self.root}/engine/src/version.h": "perch/home/engine/src/version.h",
        }
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._scratch.cleanup()
