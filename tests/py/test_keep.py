"""perch_keep, which writes what hosts said on the controller, in a real play."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from perch.home import HOME

PLAYBOOK = HOME / ".venv/bin/ansible-playbook"


def play(folder: Path, files: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """A play of one task that keeps the files, its tasks' results in JSON."""
    tasks = [{"perch_keep": {"files": files}, "register": "kept"}, {"debug": {"var": "kept"}}]
    book = folder / "book.yml"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    return subprocess.run(
        [PLAYBOOK, "-i", "localhost,", book, *options],
        env=os.environ | {"ANSIBLE_CONFIG": str(HOME / "ansible.cfg"), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(autouse=True)
def _ansible() -> None:
    if not PLAYBOOK.exists():
        pytest.skip("NOT TESTED: .venv has no Ansible (setup/setup run)")


def test_files_are_kept_whole_readable_and_once(tmp_path: Path) -> None:
    said = '{"said": "µ ✓ {{ 3 * 37 }}"}'
    outside = tmp_path / "outside"
    outside.write_text("untouched")
    link = tmp_path / "run/inputs/alpha.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    answer = tmp_path / "run/raw/alpha/host_check.json"
    files = {str(answer): "{% raw %}" + said + "{% endraw %}", str(link): "{}"}

    assert "changed=0" not in play(tmp_path, files, "--check").stdout
    assert not answer.exists()
    assert link.is_symlink()

    done = play(tmp_path, files)
    assert "changed=1" in done.stdout, done.stdout + done.stderr
    assert answer.read_text() == said
    assert answer.stat().st_mode & 0o777 == 0o644
    assert answer.parent.stat().st_mode & 0o777 == 0o755
    assert not link.is_symlink()
    assert outside.read_text() == "untouched"
    assert sorted(one.name for one in answer.parent.iterdir()) == ["host_check.json"]

    assert "changed=0" in play(tmp_path, files).stdout


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("no folder")
    done = play(tmp_path, {str(tmp_path / "raw/alpha/host_check.json"): "{}"})
    assert done.returncode == 2
    assert (
        f"'{tmp_path}/raw/alpha/host_check.json' cannot be written: " in done.stdout + done.stderr
    )
