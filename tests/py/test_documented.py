"""Documents show commands, targets, options, variables, files and headings that exist."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import msgspec
import pytest

from perch.model.plan import PlanDocument
from perch.model.verdict_document import VerdictDocument
from tests.py.conftest import Ended
from tests.py.documented import TOP, broken, faults, shown

LISTED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=TOP, capture_output=True, text=True, check=True
).stdout.splitlines()
#: Texts from elsewhere, and what is kept of earlier versions.
OTHERS = ("tests/fixtures/import/", "docs/examples/", "CHANGELOG.md", "docs/decisions.md")
DOCUMENTS = [one for one in LISTED if not one.startswith(OTHERS)]


def wrong(source: str) -> list[str]:
    return [fault for words, whole in shown(source) for fault in faults(words, whole)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_each_command_of_a_document_exists(name: str) -> None:
    assert wrong((TOP / name).read_text(encoding="utf-8")) == []


def test_the_first_documents_show_commands_of_each_kind() -> None:
    text = "".join((TOP / one).read_text("utf-8") for one in ("README.md", "docs/guide.md"))
    programs = [words[0].rsplit("/", 1)[-1] for words, _ in shown(text)]
    for program, least in {"make": 20, "ansible-playbook": 10, "perchctl": 3, "perch": 5}.items():
        assert programs.count(program) >= least, program


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("Run `make jugde`.", "make has no target jugde"),
        ("    make judge RUNS_DIR=x # why", "make has no variable RUNS_DIR"),
        ("    cd x && PERCH=1 make nothing", "make has no target nothing"),
        ("| a |\n|---|\n| `perchctl jugde` |", "perchctl has no command jugde"),
        ("`perchctl import [--limit FILE] FILE`", "perchctl import has no option --limit"),
        ("    perchctl import \\\n      --json F", "perchctl import has no option --json"),
        ("    perchctl judge", "DIR is missing"),
        ("    perch serve &\n    perch lat h --sizes 8 | jq .", "unknown option '--sizes'"),
        ("`perch lat --tokens`", "perch lat has no option --tokens"),
        ("`perch latency`", "perch has no command latency"),
        ("    ansible-playbook -i inventories/local playbooks/sites.yml", "no playbook playbook"),
        ("    ansible-playbook -i inventories/x playbooks/site.yml", "no inventory inventories/x"),
        ("`ansible-playbook playbooks/site.yml -e plan_suit=x`", "no role has the variable plan"),
        ('    ansible-playbook playbooks/soak.yml -e \'{"soak_x": 1}\'', "the variable soak_x"),
        ("```sh\ntests/rum lint\n```", "no file tests/rum"),
    ],
)  # fmt: skip
def test_a_mistake_is_found(source: str, fault: str) -> None:
    found = wrong(
        f"# Title\n\n{'| a |' + chr(10) + '|---|' + chr(10) if source[0] == '|' else ''}{source}\n"
    )
    assert len(found) == 1
    assert fault in found[0]


@pytest.mark.parametrize("name", [one for one in LISTED if not one.startswith(OTHERS[0])])
def test_each_link_of_a_document_leads_to_a_file_and_a_heading(name: str) -> None:
    assert list(broken(TOP / name, (TOP / name).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("link", ["docs/guide.html", "docs/guide.md#no-such", "#demos", "none.png"])
def test_a_broken_link_is_found(link: str) -> None:
    source = f"[text]({link}), ![image]({link})\n\n[one](docs/guide.md#hosts), [two](#demo)\n"
    assert list(broken(TOP / "README.md", source)) == [link, link]


@pytest.mark.parametrize("name", ["demo", "soak"])
def test_the_examples_have_the_formats_of_this_version(name: str) -> None:
    folder = TOP / "docs/examples" / name
    plan = msgspec.json.decode((folder / "plan.json").read_bytes(), type=PlanDocument)
    found = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=VerdictDocument)
    assert (found.run, found.verdict, found.scope) == (plan.run, "PASS", "software")
    assert f"run `{plan.run}`" in (folder / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("command", "code"), [("summary", 2), ("bundle", 3)])
def test_an_example_without_raw_files_is_read_not_judged(
    perchctl: Callable[..., Ended], command: str, code: int
) -> None:
    ended = perchctl(command, TOP / "docs/examples/demo")
    assert ended.code == code and "records.jsonl" in ended.stderr
    assert ended.stderr.endswith("; read its report.md: without raw files it cannot be judged\n")


def test_the_table_of_checks_has_each_family() -> None:
    section = (TOP / "docs/definitions.md").read_text("utf-8").split("\n## Checks\n")[1]
    rows = [row.split("|")[1] for row in section.split("\n## ")[0].splitlines() if "|" in row]
    listed = [name for row in rows for name in re.findall(r"`(.*?)`", row)]
    faults = (TOP / "docs/self-test.md").read_text("utf-8").splitlines()
    spoken = "".join(cells[4] for row in faults if len(cells := row.split("|")) > 5)
    source = "".join(one.read_text("utf-8") for one in (TOP / "perch/checks").glob("*.py"))
    given = {
        *re.findall(r"`([a-z_-]+)[`/]", spoken),
        *re.findall(r'\bid=f?"([a-z_-]+)["/]', source),
    }
    assert sorted(listed) == sorted(given)
