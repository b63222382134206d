"""perch_engine, which builds the engine on a host; tests/bats/engine_role.bats has the rest."""

from __future__ import annotations

import grp
import os
import pwd
import runpy
import select
from pathlib import Path
from typing import Any

import pytest

from perch.home import HOME


def loaded() -> dict[str, Any]:
    return runpy.run_path(str(HOME / "plugins/modules/perch_engine.py"))


def test_two_hosts_of_one_machine_make_a_folder_at_once(tmp_path: Path) -> None:
    of_module = loaded()
    engine = object.__new__(of_module["Engine"])
    engine.options = {
        "owner": pwd.getpwuid(os.getuid()).pw_name,
        "group": grp.getgrgid(os.getgid()).gr_name,
    }
    folder = tmp_path / "opt"

    class Looked(type(folder)):  # type: ignore[misc]
        """The other host makes it right after the look."""

        def is_dir(self) -> bool:
            was_there = Path(self).exists()
            Path(self).mkdir(exist_ok=True)
            return was_there

    engine.make_folder(Looked(folder))
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_make_that_hangs_is_ended_with_its_compilers(tmp_path: Path) -> None:
    of_module = loaded()
    compiler = tmp_path / "compiler"
    # the compiler holds make's pipes open; without a deadline both would wait for each other
    script = f"sleep 1000 & echo $! >{compiler}.new && mv {compiler}.new {compiler}; wait"

    compilers = []

    def hang(process: Any, given: bytes, limit_s: float) -> Any:
        while not compiler.exists():
            os.sched_yield()
        compilers.append(os.pidfd_open(int(compiler.read_text(encoding="utf-8"))))
        return of_module["outputs"](process, given, limit_s)

    of_module["run"].__globals__["outputs"] = hang
    with pytest.raises(of_module["StepError"], match=r"make did not end within 0.01 s") as found:
        of_module["run"]("make", ["sh", "-c", script], limit_s=0.01)
    assert "It was killed" in found.value.lines[0]
    assert select.select(compilers, [], [], 60)[0] == compilers  # readable once it has ended
    os.close(compilers[0])


def test_a_make_that_ends_in_time_gives_its_output() -> None:
    of_module = loaded()
    assert of_module["run"]("make", ["cat"], b"built", limit_s=of_module["MAKE_S"]) == "built"
    with pytest.raises(of_module["StepError"], match="make failed with exit code 3"):
        of_module["run"]("make", ["sh", "-c", "exit 3"])
