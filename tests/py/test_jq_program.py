"""Programs of reports/jq in one text: they must find what the same programs with imports find."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from perch.judge import jq_program
from perch.judge.findings import AREAS, OF_AREA

ANSWERS = {
    "machine": "hosts/machine-intel.json", "nic": "hosts/nic-mlx5.json",
    "qos": "hosts/qos-mlx5-dcb.json", "slingshot": "slingshot/host_check.json",
}  # fmt: skip
HOST = {
    "name": "alpha", "fabric": "roce", "scope": "hardware", "wanted": {}, "link_gbit_s": 200,
    "traits": {}, "ports": [18600], "devices": [],
}  # fmt: skip


def said(document: object, *words: str) -> str:
    done = subprocess.run(
        ["jq", "-c", *words], input=json.dumps(document), capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("area", AREAS)
def test_a_program_finds_the_same_with_its_libraries_in_it(area: str, tmp_path: Path) -> None:
    answer = Path("tests/fixtures") / ANSWERS[area]
    raw = json.loads(answer.read_text(encoding="utf-8"))
    questions = [{"areas": AREAS, "host": HOST, "raw": raw}]
    program = OF_AREA.format(area=area)
    found = said(questions, "-L", str(jq_program.JQ), program)
    assert json.loads(found)["of_host"]["alpha"]
    whole = tmp_path / "whole.jq"  # longer than one argument may be
    whole.write_text(jq_program.whole(program), encoding="utf-8")
    assert said(questions, "-f", str(whole)) == found


def test_a_name_is_that_of_the_library_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jq_program, "JQ", tmp_path)
    (tmp_path / "one.jq").write_text("def f($a): $a + 1;\n")
    (tmp_path / "two.jq").write_text('import "one" as o;\ndef f($a): o::f($a) * 10;\n')
    program = 'import "two" as o; import "one" as t; [o::f(1), t::f(1)]'
    assert said(None, jq_program.whole(program)) == "[20,2]\n"


def test_no_library_defines_what_jq_has() -> None:
    """Those after it in one text would get its definition."""
    listed = subprocess.run(["jq", "-nr", "builtins[]"], capture_output=True, text=True, check=True)
    own = set(listed.stdout.split())
    for path in jq_program.JQ.rglob("*.jq"):
        found = re.findall(
            r"^def (\w+)(\([^)]*\))?:", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        defined = {f"{name}/{given.count(';') + 1 if given else 0}" for name, given in found}
        assert not defined & own, path
