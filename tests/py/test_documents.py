"""The README's examples work, and the documents keep their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from perch.model import limit_sets
from perch.model.limit_files import read
from perch.plan import engine
from tests.py.planned import flows, planned

TOP = Path(__file__).parents[2]
README = (TOP / "README.md").read_text()
CHANGELOG = (TOP / "CHANGELOG.md").read_text()
DECISIONS = (TOP / "docs/decisions.md").read_text()


def examples() -> list[str]:
    """The README's inventory, suite and limits."""
    return re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)


def hosts() -> dict[str, dict[str, Any]]:
    group = yaml.safe_load(examples()[0])["all"]
    return {name: {**group["vars"], **own} for name, own in group["hosts"].items()}


def test_the_readme_has_150_lines_at_most_and_short_examples() -> None:
    assert len(README.splitlines()) <= 150
    inventory, suite, limits = (len(example.splitlines()) for example in examples())
    assert inventory <= 12
    assert suite <= 10
    assert limits <= 10


def test_the_readmes_hosts_and_suite_make_a_plan() -> None:
    if not engine.PROGRAM.exists():
        pytest.skip("NOT TESTED: engine/build-check/perch is not built (make -C engine check-tool)")
    suite = yaml.safe_load(examples()[1])
    found = planned(suite["tests"], hosts(), engine.checker())
    assert [flow["test"] for flow in flows(found)] == ["write-bandwidth"]
    assert not found.excluded


def test_the_readmes_limits_extend_the_set_of_its_inventory(tmp_path: Path) -> None:
    own = tmp_path / "our-limits.yml"
    own.write_text(examples()[2])
    links = yaml.safe_load(examples()[0])["all"]["vars"]
    assert (links["perch_fabric"], links["perch_link_gbit_s"]) == ("roce", 400)
    base = read(TOP / "reports/limits/roce-400.yml")
    merged = limit_sets.merged(base, read(own))
    assert "our-write-bandwidth" in [limit["id"] for limit in merged["limits"]]


def test_the_readme_names_every_suite_that_ships() -> None:
    named = set(re.findall(r"^\| `([a-z0-9-]+)` \| [^|]+\. \|$", README, re.MULTILINE))
    assert named == {path.stem for path in TOP.glob("playbooks/suites/*.yml")}


@pytest.mark.parametrize("file", ["README.md", "docs/guide.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(file: str) -> None:
    document = TOP / file
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text())
    assert links
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_pictures_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in TOP.glob("docs/images/*")}
    assert [name for name, size in sizes.items() if size > 150 * 1024] == []


def entries() -> Iterator[str]:
    yield from (" ".join(e.split()) for e in re.split(r"^(?=- |#)", DECISIONS, flags=re.MULTILINE))


def test_decisions_are_few_each_with_date_and_alternative() -> None:
    assert len(DECISIONS.splitlines()) <= 250
    decisions = [entry for entry in entries() if entry.startswith("- ")]
    assert len(decisions) > 50
    dated = re.compile(r"^- \*\*.+?\*\*.*?\((?:[^()]*, )?20\d\d-\d\d-\d\d[^()]*\)")
    assert [entry for entry in decisions if not dated.search(entry)] == []
    assert [entry for entry in decisions if "lternative" not in entry] == []


def test_the_changelog_has_the_headings_of_keep_a_changelog() -> None:
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    found = re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE)
    assert {"Added", "Changed", "Fixed"} <= set(found) <= kinds
