"""Accepted runs, the list of runs, and what a later run is planned with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from perch.errors import PerchError
from perch.run import lines
from perch.run.recall import recall
from tests.py.conftest import Ended
from tests.py.judging import Run, put, status

Perchctl = Callable[..., Ended]


@pytest.fixture
def runs(run_copy: Callable[[str], Path], tmp_path: Path) -> Path:
    """A folder runs/ with the judged run `one`."""
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.move(run_copy("loopback"), folder / "one")
    Run(folder / "one").judge()
    return folder


def index(runs: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (runs / "index.jsonl").read_text().splitlines()]


def kept(runs: Path) -> Path:
    """The folder of the accepted run."""
    return next((runs / "baseline").iterdir())


def planned(runs: Path, name: str = "two") -> Path:
    """The plan of another run of this fabric."""
    root = runs / name
    (root / "inputs").mkdir(parents=True)
    for file in ("plan.json", "rounds.jsonl"):
        shutil.copy(runs / "one" / file, root)
    return root


# ---- the list of runs ----------------------------------------------------------------------------


def test_a_run_has_one_line_however_often_it_is_noted(runs: Path, perchctl: Perchctl) -> None:
    assert perchctl("runs", runs / "one").code == 0
    assert perchctl("runs", runs / "one").code == 0
    (line,) = index(runs)
    assert (line["folder"], line["verdict"], line["suite"]) == ("one", "PASS", "fixture")
    assert line["planned"] == line["measured"] > 0


def test_a_line_has_medians_by_size_and_versions(runs: Path, perchctl: Perchctl) -> None:
    perchctl("runs", runs / "one")
    (line,) = index(runs)
    latency = line["medians"]["tcp-latency"]
    assert (latency["metric"], latency["unit"]) == ("latency_us.p50", "us")
    records = Run(runs / "one").records()
    p50s = [
        record["latency_us"]["p50"]
        for record in records
        if record["test"] == "tcp-latency" and record["params"]["size_bytes"] == 8
    ]
    assert latency["by_size"]["8"] == pytest.approx(median(p50s))
    assert line["medians"].keys() == {record["test"] for record in records}
    kernel = json.loads((runs / "one/raw/alpha/environment.json").read_text())["kernel"]
    assert line["versions"]["kernel"] == [kernel]


def test_a_line_has_terms_limits_and_ceilings(runs: Path, perchctl: Perchctl) -> None:
    perchctl("runs", runs / "one")
    medians = index(runs)[0]["medians"]
    latency = medians["tcp-latency"]
    assert "definition=half_round_trip" in latency["terms"][0].split()
    assert latency["limits"]["8"] == {"min": None, "max": 2000, "severity": "advisory"}
    assert all(one["ceilings"] == {} for one in medians.values())  # loopback has none


def test_shares_of_the_ceiling_become_bounds(
    run_copy: Callable[[str], Path], perchctl: Perchctl
) -> None:
    root = run_copy("perftest")  # its links have a rate
    path = root / "inputs/limits.json"
    limits = json.loads(path.read_text())
    floor = limits["limits"][0] | {"metric": "bandwidth.gbit_s", "scope": {}}
    least = {"id": "floor", "bound": {"min": 0.01}, "unit": "Gb/s"}
    share = {"id": "share", "bound": {"min": 0.5, "of": "ceiling"}, "unit": "of the ceiling"}
    limits["limits"] = [floor | least, floor | share]
    path.write_text(json.dumps(limits))
    Run(root).judge()
    perchctl("runs", root)
    (line,) = index(root.parent)
    bounded = [test for test in line["medians"].values() if test["ceilings"]]
    assert bounded
    for test in bounded:
        for size, top in test["ceilings"].items():
            assert test["limits"][size]["min"] == pytest.approx(top / 2)


def test_a_required_limit_hides_an_advisory_one(runs: Path, perchctl: Perchctl) -> None:
    path = runs / "one/inputs/limits.json"
    limits = json.loads(path.read_text())
    mine = next(one for one in limits["limits"] if one["metric"] == "latency_us.p50")
    limits["limits"] += [
        mine | {"id": f"own-{most}", "bound": {"max": most}, "severity": "required"}
        for most in (9000, 7000)
    ]
    path.write_text(json.dumps(limits))
    Run(runs / "one").judge()
    perchctl("runs", runs / "one")
    limit = index(runs)[0]["medians"]["tcp-latency"]["limits"]["8"]
    assert limit == {"min": None, "max": 7000, "severity": "required"}


def test_a_line_of_an_older_perch_stays(runs: Path, perchctl: Perchctl) -> None:
    older = '{"schema": "perch.index/1", "run": "older", "verdict": "PASS"}'
    (runs / "index.jsonl").write_text(f"{older}\n")
    assert perchctl("runs", runs / "one").code == 0
    assert (runs / "index.jsonl").read_text().splitlines()[0] == older


def test_index_lines_are_as_their_schema_says(runs: Path, perchctl: Perchctl) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    perchctl("accept", runs / "one")
    room = Path(__file__).parents[2] / "reports/schema"
    for name, document in (
        ("index", index(runs)[0]),
        ("baseline", json.loads((kept(runs) / "baseline.json").read_text())),
    ):
        schema = json.loads((room / f"{name}.schema.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)


def test_lines_that_cannot_be_read_are_named_and_kept(runs: Path, perchctl: Perchctl) -> None:
    (runs / "index.jsonl").write_text('{"run": "older"}\nhalf a li\n')
    ended = perchctl("runs", runs / "one")
    assert ended.code == 1
    assert "index.jsonl, line 2: " in ended.stderr
    assert (runs / "index.jsonl").read_text().splitlines()[:2] == ['{"run": "older"}', "half a li"]
    assert len((runs / "index.jsonl").read_text().splitlines()) == 3


def test_a_run_without_a_usable_plan_has_a_line(runs: Path, perchctl: Perchctl) -> None:
    (runs / "one/plan.json").write_text("[]")
    Run(runs / "one").judge()
    assert perchctl("runs", runs / "one").code == 0
    assert index(runs)[0]["suite"] is None


def test_ten_at_once_each_leave_their_line(runs: Path) -> None:
    def note(number: int) -> None:
        with lines.locked(runs):
            lines.set_line(runs / "index.jsonl", f"run-{number}", {"run": f"run-{number}"})

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(note, range(10)))
    assert {line["run"] for line in index(runs)} == {f"run-{number}" for number in range(10)}
    assert len(index(runs)) == 10


@pytest.mark.parametrize("name", ["verdict.json", "records.jsonl", "plan.json"])
def test_only_a_judged_run_is_noted(runs: Path, perchctl: Perchctl, name: str) -> None:
    (runs / "one" / name).unlink()
    ended = perchctl("runs", runs / "one")
    assert ended.code == 3
    assert name in ended.stderr


def test_an_index_that_is_not_a_file_is_not_written_through(
    runs: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    (runs / "index.jsonl").symlink_to(tmp_path / "elsewhere")
    assert perchctl("runs", runs / "one").code == 6
    assert not (tmp_path / "elsewhere").exists()


# ---- acceptance ----------------------------------------------------------------------------------


def test_an_accepted_run_keeps_its_figures(runs: Path, perchctl: Perchctl) -> None:
    ended = perchctl("accept", "--label", "first light", runs / "one")
    assert ended.code == 0
    document = json.loads((kept(runs) / "baseline.json").read_text())
    line = json.loads((kept(runs) / "history.jsonl").read_text())
    assert document["schema"] == "perch.baseline/1"
    assert {**line, "schema": ""} == {**document, "schema": ""}
    assert document["fabric"]["id"] == kept(runs).name
    assert (document["label"], document["forced"]) == ("first light", None)
    assert f"{len(document['figures'])} figures" in ended.stdout
    assert index(runs)[0]["accepted"] == document["accepted"]
    p50s = [one for key, one in document["figures"].items() if key.endswith("/latency_us.p50")]
    assert p50s
    assert all(one["value"] > 0 and one["unit"] == "us" for one in p50s)


def test_a_run_that_was_accepted_twice_has_one_line(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", "--label", "first", runs / "one")
    perchctl("accept", "--label", "again", runs / "one")
    (line,) = (kept(runs) / "history.jsonl").read_text().splitlines()
    assert json.loads(line)["label"] == index(runs)[0]["label"] == "again"


def test_another_verdict_loses_its_acceptance(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    (runs / "one/inputs/limits.json").unlink()
    Run(runs / "one").judge()
    perchctl("runs", runs / "one")
    assert index(runs)[0]["accepted"] is None


def test_raw_files_that_give_another_verdict_are_refused(runs: Path, perchctl: Perchctl) -> None:
    (runs / "one/inputs/limits.json").unlink()
    ended = perchctl("accept", runs / "one")
    assert ended.code == 1
    assert "judging it again gives another verdict.json" in ended.stderr
    assert not (runs / "baseline").exists()


def test_only_a_reason_accepts_what_is_not_a_pass(runs: Path, perchctl: Perchctl) -> None:
    (runs / "one/inputs/limits.json").unlink()
    Run(runs / "one").judge()
    assert perchctl("accept", runs / "one").code == 1
    assert perchctl("accept", "--force", "", runs / "one").code == 2
    assert perchctl("accept", "--force", "ticket 7", runs / "one").code == 0
    assert index(runs)[0]["forced"] == "ticket 7"


def test_records_of_an_older_perch_are_refused(runs: Path, perchctl: Perchctl) -> None:
    path = runs / "one/records.jsonl"
    path.write_text(path.read_text().replace("perch.record/2", "perch.record/1"))
    assert perchctl("accept", runs / "one").code == 1


# ---- recall --------------------------------------------------------------------------------------


def test_a_plan_of_the_same_fabric_gets_the_accepted_run(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", "--label", "first light", runs / "one")
    root = planned(runs)
    said = recall(root, runs)
    assert said is not None
    assert "(first light)" in said
    for name in ("baseline.json", "history.jsonl"):
        assert (root / "inputs" / name).read_bytes() == (kept(runs) / name).read_bytes()


def test_a_plan_of_another_fabric_gets_none(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    root = planned(runs)
    Run(root).edit("plan.json", put("suite.name", "other"))
    assert recall(root, runs) is None
    assert not (root / "inputs/baseline.json").exists()


def test_none_recalls_nothing(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    assert recall(planned(runs), runs, "none") is None


def test_the_first_run_and_the_newest_are_recalled(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    history = kept(runs) / "history.jsonl"
    last = history.read_text()
    older = "".join(json.dumps({"run": f"run-{n}"}) + "\n" for n in range(20))
    history.write_text(f"{older}damaged\n{last}")
    root = planned(runs)
    recall(root, runs)
    lines = (root / "inputs/history.jsonl").read_text().splitlines()
    shown = [json.loads(line)["run"] for line in lines]
    assert shown[:-1] == ["run-0", *(f"run-{n}" for n in range(12, 20))]
    assert len(shown) == 10


def test_a_baseline_that_was_edited_is_refused(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    path = kept(runs) / "baseline.json"
    document = json.loads(path.read_text())
    next(iter(document["figures"].values()))["value"] *= 2
    path.write_text(json.dumps(document))
    with pytest.raises(PerchError, match="not what was accepted"):
        recall(planned(runs), runs)


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "perch.baseline/1"}', "[" * 100000])
def test_a_baseline_that_cannot_be_used_is_refused(runs: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "given.json").write_text(text)
    with pytest.raises(PerchError, match=r"given\.json"):
        recall(planned(runs), runs, str(tmp_path / "given.json"))


def test_an_accepted_run_cannot_vouch_for_itself(runs: Path, perchctl: Perchctl) -> None:
    perchctl("accept", runs / "one")
    root = shutil.copytree(runs / "one", runs / "two")
    recall(root, runs)
    assert status(Run(root).judge(), "drift/baseline") == "inconclusive"


# ---- sealing -------------------------------------------------------------------------------------


def test_sealing_names_every_file_once(runs: Path, perchctl: Perchctl) -> None:
    root = runs / "one"
    first = perchctl("seal", root)
    assert first.code == 0
    assert first.stdout.endswith(" files sealed, 0 before\n")
    manifest = (root / "raw/manifest.sha256").read_text()
    (root / "raw/alpha/later").write_text("more")
    assert perchctl("seal", root).stdout.startswith("1 files sealed")
    assert (root / "raw/manifest.sha256").read_text().startswith(manifest)
    assert status(Run(root).judge(), "manifest") == "pass"
    assert perchctl("seal", runs / "nowhere").code == 2


def test_an_edit_after_sealing_is_seen(runs: Path, perchctl: Perchctl) -> None:
    root = runs / "one"
    perchctl("seal", root)
    with (root / "raw/alpha/flows.jsonl").open("a") as file:
        file.write("\n")
    assert perchctl("seal", root).stdout.startswith("0 files sealed")
    assert status(Run(root).judge(), "manifest/changed") == "inconclusive"


@pytest.mark.parametrize("name", ["plan.json", "inputs/limits.json", "raw/manifest.sha256"])
def test_a_link_is_not_sealed(runs: Path, perchctl: Perchctl, tmp_path: Path, name: str) -> None:
    path = runs / "one" / name
    (tmp_path / "elsewhere").write_bytes(path.read_bytes() if path.exists() else b"")
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    ended = perchctl("seal", runs / "one")
    assert ended.code == 3
    assert f"{name}: it is a link" in ended.stderr


@pytest.mark.parametrize("name", ["plan.json", "inputs/limits.json"])
def test_a_link_is_not_judged(runs: Path, tmp_path: Path, name: str) -> None:
    path = runs / "one" / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert Run(runs / "one").judge().verdict == "INCONCLUSIVE"
