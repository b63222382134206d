"""perch_engine, which builds the engine on a host; tests/bats/engine_role.bats has the rest."""

from __future__ import annotations

import grp
import os
import pwd
import runpy
from pathlib import Path

from perch.home import HOME


def test_two_hosts_of_one_machine_make_a_folder_at_once(tmp_path: Path) -> None:
    of_module = runpy.run_path(str(HOME / "plugins/modules/perch_engine.py"))
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
