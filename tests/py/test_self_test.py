"""The verdict's own test: what it says of faults that are not found, and how runs are composed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selftest import cli, edits, kinds, work
from selftest.fault import FAIL, INCONCLUSIVE, Fault, fault
from selftest.faults import all_faults
from selftest.runs import BASES
from selftest.table import page

from perch.run import judging
from tests.raw_lines import HostFiles

TOP = Path(__file__).parents[2]
LATENCY, BANDWIDTH = "tcp-latency/alpha/beta/0/1", "tcp-bandwidth/alpha/beta/0/1"
OF_LATENCY = "flow/tcp-latency/alpha/beta/0/1"


@pytest.fixture(scope="module")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the good run over loopback, judged."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "base").mkdir()
    assert work.judge_base(folder, "loopback").ok
    return folder


# ---- faults --------------------------------------------------------------------------------------


def test_page_of_faults_is_what_the_program_prints() -> None:
    assert "\n".join(page(all_faults())) + "\n" == (TOP / "docs/self-test.md").read_text()


def test_every_good_run_has_a_fault_and_every_fault_a_good_run() -> None:
    assert {one.base for one in all_faults()} == set(BASES)


def test_a_fault_that_flips_its_check_alone_is_ok(loopback: Path) -> None:
    planted = next(one for one in all_faults() if one.id == "missing-flow")
    assert work.spoil(loopback, planted) == work.Told(True)


def loopback_fault(id_: str, word: str, checks: str, edit: edits.Edit) -> Fault:
    return fault(id_, "loopback", word, checks, "", edit)


SLOW_LINK = {"rate_gbit_s": 10, "mtu_bytes": 1500, "layer": "ethernet", "hop_class": None}
REMOVED = edits.output(LATENCY, lambda _: "")
NOT_OK = (
    (
        loopback_fault(
            "harmless", INCONCLUSIVE, OF_LATENCY, edits.prints(LATENCY, edits.put("note", "unread"))
        ),
        f"{OF_LATENCY} is not there; nothing flipped",
    ),
    (
        loopback_fault(
            "nothing", INCONCLUSIVE, OF_LATENCY, edits.prints(LATENCY, edits.put("status", "ok"))
        ),
        "changed nothing",
    ),
    (
        loopback_fault("other-check", INCONCLUSIVE, "limits coverage", REMOVED),
        f"limits is not there; coverage, {OF_LATENCY} flipped",
    ),
    (
        loopback_fault("more", INCONCLUSIVE, OF_LATENCY, REMOVED),
        "others flipped, too: coverage",
    ),
    (
        loopback_fault("fewer", INCONCLUSIVE, f"{OF_LATENCY} coverage path/*", REMOVED),
        "did not flip: path/*",
    ),
    (
        loopback_fault("other-verdict", FAIL, f"{OF_LATENCY} coverage", REMOVED),
        "the verdict is INCONCLUSIVE",
    ),
    (
        loopback_fault(
            "stood-unjudged", FAIL, "ceiling", edits.prints(BANDWIDTH, edits.put("link", SLOW_LINK))
        ),
        "ceiling had not passed before: not_judged",
    ),
)


@pytest.mark.parametrize(("planted", "why"), NOT_OK, ids=[one.id for one, _ in NOT_OK])
def test_another_outcome_than_named_is_not_ok(loopback: Path, planted: Fault, why: str) -> None:
    told = work.spoil(loopback, planted)
    assert not told.ok
    assert why in told.why
    assert not list((loopback / "fault").iterdir()), "the spoilt run stayed"


def test_a_base_that_does_not_pass_is_not_ok(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(root: Path) -> None:
        BASES["loopback"](root)
        REMOVED(root)

    monkeypatch.setitem(BASES, "spoilt", spoilt)
    (tmp_path / "base").mkdir()
    told = work.judge_base(tmp_path, "spoilt")
    assert not told.ok
    assert told.why == f"the verdict is INCONCLUSIVE: coverage, {OF_LATENCY}"


UNCHANGED = (
    edits.text("a.txt", lambda text: text),
    edits.replaced("a.txt", "absent", "x"),
    edits.edit("a.json", edits.put("key", 1)),
    edits.edit("no-*.json", edits.put("key", 1)),
    edits.cut_at("a.txt", 100),
    edits.first_lines("a.txt", 9),
    edits.without_lines("a.txt", 5, 6),
    edits.content("a.txt", "same.txt"),
    edits.prints("t/a/b/0/1", edits.put("key", 1)),
    edits.output("t/a/b/0/1", lambda text: text),
    edits.ends("t/a/b/0/1", edits.put("state", "done")),
    edits.ends("t/a/b/0/2", edits.put("state", "done")),
    edits.agent("a", edits.put("run", "r")),
)


@pytest.mark.parametrize("plant", UNCHANGED)
def test_an_edit_that_changes_nothing_is_refused(tmp_path: Path, plant: edits.Edit) -> None:
    for name in ("a.txt", "same.txt"):
        (tmp_path / name).write_text("one\ntwo\n")
    (tmp_path / "a.json").write_text('{"key": 1}')
    agent = {"run": "r", "plan_sha256": "", "host": "a", "flows_total": 1, "started": None}
    files = HostFiles(tmp_path / "raw/a", agent | {"state": "running"})
    files.end({"id": "t/a/b/0/1", "role": "client", "state": "done", "stdout": '{"key": 1}\n'})
    files.close()
    with pytest.raises(edits.NothingChangedError):
        plant(tmp_path)


# ---- what is chosen ------------------------------------------------------------------------------


def test_quick_plants_one_fault_of_each_family() -> None:
    some = cli.chosen(all_faults(), re.compile(""), quick=True)
    assert sorted(one.kind for one in some) == sorted({one.kind for one in all_faults()})


def test_a_check_without_a_fault_is_named(loopback: Path) -> None:
    good = [work.verdict_of(loopback / "base/loopback")]
    without = [one for one in all_faults() if one.kind not in ("integrity", "cross-check")]
    assert kinds.without_fault(all_faults(), good) == []
    assert kinds.without_fault(without, good) == ["cross-check", "integrity"]


def test_a_check_whose_id_is_written_out_needs_a_fault_of_its_own() -> None:
    assert {"expected/faster", "switch/during", "switch/unread", "retry/plan"} <= kinds.written()
    assert not {"hosts", "switch/unread/slingshot", "switch/simulated"} & kinds.written()
    without = [one for one in all_faults() if "switch/stated" not in one.checks]
    assert kinds.without_fault(without, []) == ["switch/stated"]


@pytest.mark.parametrize(
    "words",
    [["--sloppy"], ["--healthy", "x"], ["--faults", "("], ["--good", "."],
     ["--faults", "no-such-fault", "--healthy", "0"]],
)  # fmt: skip
def test_a_wrong_command_line_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err.endswith("; see tests/self-test/run --help\n")


def test_list_has_a_line_for_each_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--list", "--faults", "^exit-4"]) == 0
    rows = [line.split("\t")[:3] for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["exit-4-before", "loopback", "INCONCLUSIVE"],
        ["exit-4-after", "loopback", "FAIL"],
    ]


def test_a_verdict_that_an_earlier_judgement_left_is_replaced(loopback: Path) -> None:
    root = loopback / "base/loopback"
    (root / judging.VERDICT).write_text("{}")
    assert work.judged(root).verdict == "PASS"
