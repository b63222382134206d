"""The action perchctl, which runs perchctl on the controller, in a real play."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perch.home import HOME

PLAYBOOK = HOME / ".venv/bin/ansible-playbook"

#: Stands for perch: says what it was given, and ends with the exit code that it is asked for.
PROGRAM = """
import sys
print(sys.argv[1:], repr(sys.stdin.read()))
sys.stderr.buffer.write(b"first\\nlast \\xff\\n\\n")
open(sys.argv[1], "w").close()
sys.exit(int(sys.argv[2]))
"""

Said = dict[str, Any]


def said(folder: Path, *tasks: Said, check: bool = False) -> list[Said]:
    """The result of each task. Its host cannot be reached: nothing may ask it."""
    package = folder / "perch"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(PROGRAM)
    shared = {"home": str(folder), "python": sys.executable}
    steps = [
        {"perchctl": shared | task, "register": f"said{number}", "ignore_errors": True}
        for number, task in enumerate(tasks)
    ]
    show = {"copy": {"content": "{{ [" + ", ".join(str(step["register"]) for step in steps) +
            "] | to_json }}", "dest": str(folder / "said.json")},
            "delegate_to": "localhost", "check_mode": False}  # fmt: skip
    book = folder / "book.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": [*steps, show]}]))
    ended = subprocess.run(
        [PLAYBOOK, "-i", "nowhere.invalid,", book, *(["--check"] if check else [])],
        env=os.environ | {"ANSIBLE_CONFIG": str(HOME / "ansible.cfg"), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    results: list[Said] = json.loads((folder / "said.json").read_text())
    return results


@pytest.fixture(autouse=True)
def _ansible() -> None:
    if not PLAYBOOK.exists():
        pytest.skip("NOT TESTED: .venv has no Ansible (setup/setup run)")


def test_what_it_says_and_how_it_ends_is_the_result(tmp_path: Path) -> None:
    made = str(tmp_path / "made")
    good, bad, gone = said(
        tmp_path,
        {"argv": [made, "0"], "stdin": '{"µ": 1}'},
        {"argv": [made, "3"]},
        {"argv": [made, "0"], "python": "/nowhere/python"},
    )
    assert good["rc"] == 0 and good["changed"] and not good["failed"]
    assert good["stdout_lines"] == [f"['{made}', '0'] " + repr('{"µ": 1}')]
    assert good["stderr"] == "first\nlast \ufffd"
    assert bad["rc"] == 3 and bad["failed"] and bad["stdout"] == f"['{made}', '3'] ''"
    assert gone["failed"] and gone["rc"] == 2
    assert gone["msg"] == "/nowhere/python cannot be run: No such file or directory"


def test_in_check_mode_it_runs_only_where_the_task_says_so(tmp_path: Path) -> None:
    (skipped,) = said(tmp_path, {"argv": [str(tmp_path / "made"), "0"]}, check=True)
    assert skipped["skipped"] and skipped["rc"] == 0
    assert not (tmp_path / "made").exists()
