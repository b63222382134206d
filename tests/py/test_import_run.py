"""`perchctl import --run`: outputs that were measured elsewhere become a run that cannot pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import spelled

FIXTURES = Path(__file__).parents[1] / "fixtures"
NOTES = FIXTURES / "import/notes.md"
IPERF = FIXTURES / "tools/iperf_plain.txt"
SEND_LAT = FIXTURES / "perftest/4.5/send_lat.txt"
BOTH = FIXTURES / "perftest/4.5/write_bw_both.txt"
ROCE = Path(__file__).parents[2] / "reports/limits/roce.yml"

Perchctl = Callable[..., Any]


@pytest.fixture(name="place", autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(perchctl: Perchctl, *words: object) -> None:
    ended = perchctl("import", "--run", "run", *words)
    assert ended.code == 0, ended.stderr


def judged(perchctl: Perchctl, code: int) -> str:
    ended = perchctl("judge", "run")
    assert ended.code == code, ended
    return str(ended.stdout)


def verdict() -> Any:
    return json.loads(Path("run/verdict.json").read_text())


def check(identity: str) -> Any:
    (found,) = (check for check in verdict()["checks"] if check["id"] == identity)
    return found


def missing() -> list[tuple[str, str]]:
    return [(one["flow"], one["message"]) for one in verdict()["coverage"]["missing"]]


def plan() -> Any:
    """The plan, its flows spelled out."""
    return spelled.read(Path("run"))


def flows() -> Any:
    return [flow for turn in plan()["rounds"] for flow in turn["flows"]]


# ---- a run ---------------------------------------------------------------------------------------

LARGE = "limit/large-message-share/ib_send_bw-Bandwidth-Test"


def test_notes_are_judged_and_nothing_makes_them_a_pass(perchctl: Perchctl) -> None:
    made(perchctl, "--limits", "roce", NOTES)
    said = judged(perchctl, 1)
    assert said.startswith("FAIL: 5 of 5 records measured, scope imported")
    ceiling = check("ceiling")
    assert ceiling["status"] == "pass" and round(ceiling["measured"], 1) == 99.7
    assert check("imported")["status"] == "inconclusive"
    assert check(LARGE)["status"] == "pass"
    assert [flow["test"] for flow in flows()] == [
        "ib_send_bw-Bandwidth-Test",
        "Initial-Test-Untuned-System",
        "After-Initial-Tuning",
        "Final-Results-Optimized",
        "TCP-Performance-Baseline-iperf",
    ]
    assert flows()[0]["client_argv"][:3] == ["ib_send_bw", "-d", "rocep11s0"]
    assert (Path("run/raw/import/notes.md")).read_bytes() == NOTES.read_bytes()
    assert Path("run").stat().st_mode & 0o777 == 0o755


def test_a_figure_above_its_links_ceiling_fails_the_run(perchctl: Perchctl) -> None:
    made(perchctl, "--limits", "roce", "--link-rate", "5", NOTES)
    judged(perchctl, 1)
    assert check("ceiling")["status"] == "fail"
    assert flows()[0]["import"]["link"] == {"rate_gbit_s": 5, "source": "given with --link-rate"}


def test_a_figure_that_misses_a_limit_of_hardware_fails_the_run(perchctl: Perchctl) -> None:
    row = "9.23               9.23                 0.001100"
    slow = NOTES.read_text().replace(row, "4.61               4.61                 0.000550")
    assert slow != NOTES.read_text()
    Path("slow.md").write_text(slow)
    made(perchctl, "--limits", "roce", "slow.md")
    judged(perchctl, 1)
    assert check(LARGE)["status"] == "fail"


def test_an_output_that_cannot_be_read_is_expected_by_the_run(perchctl: Perchctl) -> None:
    row = " 65536      500              nan                6.35\t\t   0.000102"
    Path("bad.txt").write_text(re.sub(" 65536  .*", row, BOTH.read_text()))
    ended = perchctl("import", "--run", "run", SEND_LAT, "bad.txt")
    assert ended.code == 1 and "perchctl import: bad.txt:" in ended.stderr
    assert "1 of 2 records measured" in judged(perchctl, 3)
    ((flow, message),) = missing()
    assert flow == "bad.txt/unknown/unknown/0/1" and "raw/import/bad.txt:23: BW peak" in message
    assert check("flow/bad.txt/unknown/unknown/0/1")["status"] == "inconclusive"


def test_files_of_one_name_and_outputs_without_a_size_keep_their_places(
    perchctl: Perchctl,
) -> None:
    for name, file in (("a", IPERF), ("b", SEND_LAT)):
        Path(name).mkdir()
        Path(name, "out.txt").write_bytes(file.read_bytes())
    made(perchctl, "a/out.txt", "b/out.txt")
    assert [(flow["test"], flow["import"]["file"], flow["expect"]) for flow in flows()] == [
        ("out.txt", "raw/import/out.txt", [{}]),
        ("2-out.txt", "raw/import/2-out.txt", [{"size_bytes": 64}]),
    ]
    assert "2 of 2 records measured" in judged(perchctl, 3)


def test_a_run_without_limits_says_how_to_give_them(perchctl: Perchctl) -> None:
    ended = perchctl("import", "--run", "run", SEND_LAT)
    assert ended.stdout == "run: 1 output of 1 file; judge it: perchctl judge run\n"
    judged(perchctl, 3)
    assert str(check("limits")["remedy"]).startswith("import the outputs again with --limits SET")


@pytest.mark.parametrize("name", ["ü.txt", "-x.txt", ".hidden", "_.txt"])
def test_an_output_of_any_name_can_be_bundled(perchctl: Perchctl, name: str) -> None:
    Path("./" + name).write_bytes(IPERF.read_bytes())
    made(perchctl, "--limits", "local", "./" + name)
    assert perchctl("report", "run").code == 0
    assert perchctl("bundle", "run").code == 0


def test_several_sizes_that_cannot_be_read_are_each_named(perchctl: Perchctl) -> None:
    ended = perchctl("import", "--run", "run", FIXTURES / "perftest/4.5/send_bw_all.txt")
    assert ended.code == 1
    assert "13 of 16 records measured" in judged(perchctl, 3)
    assert len(missing()) == 3


# ---- what makes no run ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--run", "there", NOTES), 2, "there exists, and no run is overwritten"),
        (("--run", "a b", NOTES), 2, "'a b' is no name of a run"),
        (("--run", "run", NOTES, "none.txt"), 1, "no output of a known tool in none.txt"),
        (("--run", "run", "nowhere.txt"), 1, "no file could be read"),
        (("--run", "run", "--limits", "no-such-set", NOTES), 2, "no set of limits 'no-such-set'"),
        (("--run", "run", "--limits", "rocce", NOTES), 2, "'rocce', did you mean 'roce'?"),
        (("--run", "run", "--link-rate", "fast", NOTES), 2, "is no rate"),
        (("--run", "none.txt/run", NOTES), 6, "cannot be written"),
    ],
)
def test_nothing_is_overwritten_and_no_half_of_a_run_is_left(
    perchctl: Perchctl, place: Path, words: tuple[object, ...], code: int, said: str
) -> None:
    Path("there").mkdir()
    Path("none.txt").write_text("no output of anything\n")
    ended = perchctl("import", *words)
    assert (ended.code, ended.stdout) == (code, "") and said in ended.stderr
    assert sorted(path.name for path in place.iterdir()) == ["none.txt", "there"]


def test_one_flow_of_another_run_given_twice_makes_no_run(perchctl: Perchctl) -> None:
    records = perchctl("import", SEND_LAT).stdout
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_text(records)
    ended = perchctl("import", "--run", "run", "a.jsonl", "b.jsonl")
    assert ended.code == 1 and "unknown/0/1 is in 2 outputs; give one of them" in ended.stderr
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (r"^( *)bound: {max: 9}", r"\1bound: {max: 9}\n\1bound: {max: 900}",
         "the key 'bound' occurs twice"),
        ("bound: {max: 9}", "bound: {max: .inf}", "bound.max"),
        ("^limits:", "limits: [", "limits.yml, line"),
    ],
)  # fmt: skip
def test_limits_that_cannot_be_used_make_no_run(
    perchctl: Perchctl, old: str, new: str, said: str
) -> None:
    text = re.sub(old, new, ROCE.read_text(), count=1, flags=re.MULTILINE)
    assert text != ROCE.read_text()
    Path("limits.yml").write_text(text)
    ended = perchctl("import", "--run", "run", "--limits", "limits.yml", IPERF)
    assert ended.code == 2 and said in ended.stderr
    assert not Path("run").exists()


def test_the_limits_of_another_run_are_taken_as_they_are(perchctl: Perchctl) -> None:
    made(perchctl, "--limits", "tcp", IPERF)
    limits = Path("run/inputs/limits.json")
    ended = perchctl("import", "--run", "again", "--limits", limits, IPERF)
    assert ended.code == 0, ended.stderr
    assert Path("again/inputs/limits.json").read_bytes() == limits.read_bytes()
    limits.write_text("[]")
    ended = perchctl("import", "--run", "third", "--limits", limits, IPERF)
    assert ended.code == 2 and str(limits) in ended.stderr


# ---- files that were changed after the plan ------------------------------------------------------


def test_a_line_that_moved_is_found(perchctl: Perchctl) -> None:
    made(perchctl, "--limits", "roce", NOTES)
    file = Path("run/raw/import/notes.md")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:39] + lines[45:]))
    assert "0 of 5 records measured" in judged(perchctl, 3)


def test_an_output_more_is_found(perchctl: Perchctl) -> None:
    made(perchctl, "--limits", "roce", NOTES)
    file = Path("run/raw/import/notes.md")
    file.write_text(f"{file.read_text()}\n```\n{IPERF.read_text()}\n```\n")
    assert "5 of 5 records measured" in judged(perchctl, 1)
    ((flow, message),) = missing()
    assert flow == "not-planned/unknown/unknown/0/6"
    assert message.endswith("holds an output that the plan does not know")
    assert check(f"flow/{flow}")["status"] == "inconclusive"


@pytest.mark.parametrize("link", [False, True])
def test_a_file_less_or_a_link_in_its_place_is_found(perchctl: Perchctl, link: bool) -> None:
    made(perchctl, NOTES)
    file = Path("run/raw/import/notes.md")
    file.unlink()
    if link:
        file.symlink_to(NOTES)
    assert "0 of 5 records measured" in judged(perchctl, 3)
    assert all(message.endswith("holds no output") for _, message in missing())


def test_a_figure_that_was_changed_to_another_size_is_found(perchctl: Perchctl) -> None:
    made(perchctl, SEND_LAT)
    file = Path("run/raw/import/send_lat.txt")
    file.write_text(file.read_text().replace("\n 64      1000", "\n 32      1000"))
    assert "0 of 1 records measured" in judged(perchctl, 3)
    assert missing()[0][1].endswith("holds no such result")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file": "raw/import/../../plan.json", "line": 1}, "names no file in raw/import"),
        (None, "it mixes imported flows with others"),
    ],
)
def test_a_plan_cannot_lead_the_judge_to_files_outside(
    perchctl: Perchctl, change: dict[str, object] | None, said: str
) -> None:
    made(perchctl, NOTES)
    changed = plan()
    flow = changed["rounds"][0]["flows"][0]
    if change is None:
        del flow["import"]
        for host in changed["hosts"].values():
            host["scope"] = flow["scope"] = "software"
    else:
        flow["import"] |= change
    spelled.write(Path("run"), changed)
    judged(perchctl, 3)
    assert said in check("plan")["measured"]


def test_a_copy_that_was_edited_later_is_found(perchctl: Perchctl) -> None:
    made(perchctl, IPERF)
    judged(perchctl, 3)
    assert check("manifest")["status"] == "pass"
    with Path("run/raw/import/iperf_plain.txt").open("a") as copy:
        copy.write("\n")
    judged(perchctl, 3)
    assert check("manifest/changed")["evidence"] == ["raw/import/iperf_plain.txt"]
