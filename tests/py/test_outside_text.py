"""What hosts, tools, servers and people wrote reaches no reader as a control character."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selftest.runs.slingshot import slingshot

from perch.model.text import UNSEEN
from tests.py.conftest import Ended
from tests.py.judging import Document, Run
from tests.raw_lines import printed, put

Perchctl = Callable[..., Ended]

#: Colours, a bell, a line of its own, a C1 control, a right-to-left override, a line separator.
EVIL = "\x1b[31mX\x07\r\nPASS: planted\x9b2J\u202eabc\u2028PASS: planted"

#: What is on a line of its own is a lie where it begins so; ends of lines are ours.
_lie = re.compile(r"^\W*PASS: planted", re.MULTILINE)


def harmless(text: str) -> None:
    """Fails where a reader would see more than letters and our own lines."""
    found = [match for match in UNSEEN.finditer(text) if match[0] != "\n"]
    assert not found, repr(text[max(0, found[0].start() - 80) : found[0].end() + 20])
    assert not _lie.search(text)


def shown(run: Run, perchctl: Perchctl) -> Iterator[str]:
    """All that people read of a run: terminal and files."""
    for words in (("judge",), ("report",), ("summary",)):
        ended = perchctl(*words, run.root)
        yield ended.stdout
        yield ended.stderr
        assert ended.code in (0, 1, 3), ended.stderr
    for name in ("report.md", "report.html", "junit.xml", "perch.prom"):
        yield (run.root / name).read_text(encoding="utf-8")
    for chart in (run.root / "charts").iterdir():
        yield chart.read_text(encoding="utf-8")


def planted(node: Any, kept: frozenset[str]) -> Any:
    """The document with EVIL behind each text, but for those of the keys `kept`."""
    if isinstance(node, dict):
        return {key: one if key in kept else planted(one, kept) for key, one in node.items()}
    if isinstance(node, list):
        return [planted(one, kept) for one in node]
    return node + EVIL if isinstance(node, str) else node


def plant(run: Run, file: str, *kept: str) -> None:
    path = run.root / file
    document = json.loads(path.read_text())
    path.write_text(json.dumps(planted(document, frozenset(kept))))


@pytest.fixture
def nodes(tmp_path: Path) -> Run:
    root = tmp_path / "run"
    root.mkdir()
    slingshot(root)
    return Run(root)


def words_of_people(run: Run) -> None:
    """Titles, sources and remedies of limits, names of the suite, the tests and the limits."""
    plant(run, "inputs/limits.json", "schema", "id", "metric", "scope", "unit", "severity")

    def title(plan: Document) -> None:
        plan["run"] += EVIL
        plan["suite"] = {key: text + EVIL for key, text in plan["suite"].items()}
        plan["limits"] += EVIL
        plan["excluded"] = [{"test": f"a{EVIL}", "reason": f"b{EVIL}"}]

    run.edit("plan.json", title)


def words_of_hosts(run: Run) -> None:
    """Names, systems, drivers, what an agent says."""
    for host in ("alpha", "beta"):
        plant(run, f"raw/{host}/environment.json", "schema", "host")
        run.agent(host, put("message", f"ended{EVIL}"))


def words_of_servers(run: Run) -> None:
    """What an engine and a tool said, which may be the words of any server that they reached."""
    for test in ("tcp-latency", "iperf3"):
        end = run.flow(test)
        end.edit(lambda document: document.update(exit=4, message=f"ended{EVIL}"))
        for output in ("stdout", "stderr"):
            end.write(f"perch: {EVIL}\nerror - {EVIL}\n", output)
    error = {"code": 4, "message": f"peer: {EVIL}", "traffic": True}
    run.flow("tcp-bandwidth").prints(put("status", "error"), put("error", error))
    verify = run.flow("tcp-verify")
    verify.write(printed([planted(line, frozenset(["schema"])) for line in verify.lines()]))


@pytest.mark.parametrize("fault", [words_of_people, words_of_hosts, words_of_servers])
def test_no_reader_sees_control_characters(
    loopback: Run, perchctl: Perchctl, fault: Callable[[Run], None]
) -> None:
    fault(loopback)
    texts = "".join(shown(loopback, perchctl))
    assert "planted" in texts
    harmless(texts)


@pytest.mark.parametrize("file", ["plan.json", "inputs/limits.json"])
def test_nor_of_files_that_cannot_be_used(loopback: Run, perchctl: Perchctl, file: str) -> None:
    plant(loopback, file)
    for text in shown(loopback, perchctl):
        harmless(text)


def test_nor_of_the_checks_of_hosts(nodes: Run, perchctl: Perchctl) -> None:
    plant(nodes, "raw/beta/host_check.json", "schema", "hostname", "collected")
    for text in shown(nodes, perchctl):
        harmless(text)


def test_the_verdict_itself_has_none(loopback: Run) -> None:
    words_of_people(loopback)
    words_of_servers(loopback)
    verdict = loopback.judge()
    harmless(verdict.run)
    for check in verdict.checks:
        for text in (check.id, check.title, check.measured, check.source, check.remedy):
            harmless(str(text))
    for one in verdict.coverage.missing:
        harmless(str(one.message))
    titles = [check.title for check in verdict.checks if check.id.startswith("limit/")]
    assert all(r"\x1b[31mX\x07 PASS: planted" in title for title in titles)
    for record in loopback.records():
        harmless(str((record.get("error") or {}).get("message")))
