"""perch_put, which writes an agent's files on a host, as Ansible runs it."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perch.home import HOME

MODULE = HOME / "plugins/modules/perch_put.py"


def put(
    folder: Path,
    files: dict[str, str],
    *,
    programs: Mapping[str, bytes] = MappingProxyType({}),
    check: bool = False,
) -> dict[str, Any]:
    """The module's answer. Nothing that it says has the text of a file."""
    asked = folder / "asked.json"
    asked.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {
        "files": {str(folder / name): text for name, text in files.items()},
        "programs": {
            str(folder / name): base64.b64encode(content).decode()
            for name, content in programs.items()
        },
        "_ansible_check_mode": check,
    }}))  # fmt: skip
    ended = subprocess.run(
        ["sh", "-c", 'umask 0; exec "$@"', "sh", sys.executable, MODULE, asked],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = ended.stdout + ended.stderr
    assert not any(text.strip() in said for text in files.values()), said
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


def test_files_and_their_folders_are_the_owners_alone(tmp_path: Path) -> None:
    files = {"run/a/token": "geheim µ\n", "run/a/share.json": '{"plan": "{{ 3 * 37 }}"}'}
    first = put(tmp_path, files)
    assert first["changed"] and [Path(one).name for one in first["paths"]] == [
        "token",
        "share.json",
    ]
    assert 0 < first["free_bytes"] <= shutil.disk_usage(tmp_path).total
    for name, text in files.items():
        assert (tmp_path / name).read_bytes() == text.encode()
        assert mode(tmp_path / name) == "600"
    assert mode(tmp_path / "run") == mode(tmp_path / "run/a") == "700"
    assert sorted(one.name for one in (tmp_path / "run/a").iterdir()) == ["share.json", "token"]
    assert not put(tmp_path, files)["changed"]


def test_a_program_and_its_folders_are_for_all_to_run(tmp_path: Path) -> None:
    agent = {"bin/agent": b"PK\x00\xff"}
    assert put(tmp_path, {"token": "geheim"}, programs=agent)["changed"]
    assert (tmp_path / "bin/agent").read_bytes() == b"PK\x00\xff"
    assert mode(tmp_path / "bin/agent") == mode(tmp_path / "bin") == "755"
    assert not put(tmp_path, {"token": "geheim"}, programs=agent)["changed"]
    (tmp_path / "bin/agent").chmod(0o700)
    assert put(tmp_path, {}, programs=agent, check=True)["changed"]
    assert mode(tmp_path / "bin/agent") == "700"
    assert put(tmp_path, {}, programs=agent)["changed"]
    assert mode(tmp_path / "bin/agent") == "755"


def test_what_differs_is_replaced(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    outside.chmod(0o600)
    put(tmp_path, {"same": "as it is", "open": "for all", "text": "of before"})
    (tmp_path / "open").chmod(0o644)
    (tmp_path / "link").symlink_to(outside)
    files = {"same": "as it is", "open": "for all", "text": "of now", "link": "theirs"}
    assert [Path(one).name for one in put(tmp_path, files)["paths"]] == ["open", "text", "link"]
    assert mode(tmp_path / "open") == "600"
    assert (tmp_path / "text").read_text() == "of now"
    assert not (tmp_path / "link").is_symlink()


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    assert put(tmp_path, {"run/token": "geheim"}, check=True)["changed"]
    assert not (tmp_path / "run").exists()


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    answer = put(tmp_path, {"plain/token": "geheim"})
    assert answer["failed"]
    assert answer["msg"] == (
        f"'{tmp_path}/plain/token' cannot be written: File exists; check its folder"
    )
