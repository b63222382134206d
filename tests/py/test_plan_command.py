"""`perchctl plan`: the folder of a run, made of what the playbook resolved."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.plan import engine
from perch.run import plan as command
from tests.py.conftest import Ended
from tests.py.discovered import nic, recorded
from tests.py.planned import hosts, suite_test, takes_all

LIMITS = Path(__file__).parents[2] / "reports/limits/local.yml"

Perchctl = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "checker", lambda: takes_all)


def inputs(**more: Any) -> bytes:
    return json.dumps(
        {
            "run": "20260101T000000Z-s",
            "created": "2026-01-01T00:00:00Z",
            "limits": "local",
            "suite": {"name": "s", "title": "S", "tests": [suite_test()]},
            "hosts": hosts(2),
            **more,
        }
    ).encode()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with the playbook's inputs."""
    root = tmp_path / "runs/one"
    (root / "inputs").mkdir(parents=True)
    (root / "inputs/plan.json").write_bytes(inputs())
    return root


def test_a_plan_its_limits_and_its_inputs_lie_in_the_folder(run: Path, perchctl: Perchctl) -> None:
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended == (
        0,
        "Suite s: 1 flow, about 1 s. Excluded: nothing. Payload: at least 8 kB.\n",
        "",
    )
    plan = json.loads((run / "plan.json").read_bytes())
    assert (plan["run"], plan["limits"]) == ("20260101T000000Z-s", "local")
    assert json.loads((run / "inputs/limits.json").read_bytes())["files"] == ["local.yml"]
    assert (run / "inputs/plan.json").read_bytes() == inputs()
    assert (run / "raw").is_dir()


def test_the_inputs_may_come_from_standard_input(
    tmp_path: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(inputs())))
    assert perchctl("plan", tmp_path / "new", "--stdin", "--limits", LIMITS).code == 0
    assert (tmp_path / "new/inputs/plan.json").read_bytes() == inputs()


def test_devices_have_a_file_of_their_own(
    tmp_path: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = recorded({"h0": [nic("mlx5_0", 1)], "h1": [nic("bnxt0", 1)]})
    given = inputs(hosts=hosts(2, perch_devices=["active"]), devices=found)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    ended = perchctl("plan", tmp_path / "new", "--stdin", "--limits", LIMITS)
    assert ended.code == 0
    assert ended.stdout.endswith("Devices: as the hosts answered.\n")
    assert json.loads((tmp_path / "new/inputs/devices.json").read_bytes()) == found
    assert "devices" not in json.loads((tmp_path / "new/inputs/plan.json").read_bytes())

    for name in ("plan.json", "rounds.jsonl"):
        (tmp_path / "new" / name).rename(tmp_path / name)
    assert perchctl("plan", tmp_path / "new", "--limits", LIMITS).code == 0
    for name in ("plan.json", "rounds.jsonl"):
        assert (tmp_path / "new" / name).read_bytes() == (tmp_path / name).read_bytes()


def test_devices_of_another_run_are_taken_from_its_file_or_refused_by_name(
    tmp_path: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = recorded({name: [nic("mlx5_0", 1)] for name in hosts(2)})
    file, options = tmp_path / "devices.json", ("--limits", LIMITS, "--devices")

    def planned(number: int, *more: str) -> Ended:
        given = inputs(hosts=hosts(2, perch_devices=["active"]))
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        return perchctl("plan", "--stdin", tmp_path / f"run{number}", *options, file, *more)

    file.write_text(json.dumps(found))
    assert f"Devices: of {file}, recorded 20" in planned(1).stdout
    assert json.loads((tmp_path / "run1/inputs/devices.json").read_bytes()) == found
    assert json.loads((tmp_path / "run1/inputs/plan.json").read_bytes())["devices_file"] == str(
        file
    )
    # nobody will ask a host that the file does not have
    file.write_text(json.dumps(recorded({"h0": [nic("mlx5_0", 1)]})))
    assert planned(2, "--check") == (
        2,
        "",
        f"perchctl plan: host h1: neither perch_devices nor {file} names devices; "
        "name them, or leave out: --limit 'all:!h1'\n",
    )
    file.write_text(json.dumps(found)[:-9])
    assert planned(2) == (
        2,
        "",
        f"perchctl plan: {file}: it is damaged (input data was truncated); "
        "give the inputs/devices.json of another run (plan_devices)\n",
    )
    file.unlink()
    assert planned(3).stderr == (
        f"perchctl plan: {file}: it cannot be read (No such file or directory); "
        "give the inputs/devices.json of a run (plan_devices)\n"
    )


def test_recorded_devices_that_are_none_are_named(run: Path, perchctl: Perchctl) -> None:
    (run / "inputs/devices.json").write_bytes(b'{"schema": "perch.devices/2"}')
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended.code == 2
    assert "inputs/devices.json: it is damaged (schema: " in ended.stderr


def test_a_check_plans_what_it_can_without_the_hosts(
    run: Path, tmp_path: Path, perchctl: Perchctl
) -> None:
    choosing = hosts(2, perch_devices=["mlx5_*"])
    (run / "inputs/plan.json").write_bytes(inputs(hosts=choosing))
    ended = perchctl("plan", run, "--check", "--limits", LIMITS)
    assert ended.code == 0
    assert ended.stdout.startswith("Suite s: planned when the hosts were asked. host h0: ")
    assert perchctl("plan", run, "--limits", LIMITS).code == 2
    choosing["h0"]["perch_link_gbit_s"] = 7
    (run / "inputs/plan.json").write_bytes(inputs(hosts=choosing))
    assert "perch_link_gbit_s is 7" in perchctl("plan", run, "--check", "--limits", LIMITS).stderr
    choosing["h0"]["perch_link_gbit_s"] = choosing["h1"]["perch_link_gbit_s"] = 1600
    (run / "inputs/plan.json").write_bytes(inputs(hosts=choosing))
    ended = perchctl("plan", run, "--check", "--limits", LIMITS.parent)
    assert (ended.code, ended.stderr) == (
        2,
        "perchctl plan: plan_limits: no set of limits is of 1600 Gb/s on roce; "
        "name one, such as roce\n",
    )


def test_a_check_refuses_a_folder_that_cannot_be(
    tmp_path: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(inputs())))
    ended = perchctl("plan", tmp_path / "file/run", "--stdin", "--check", "--limits", LIMITS)
    assert ended.code == 6
    assert "file/run: it cannot be made (Not a directory); " in ended.stderr


def test_a_folder_without_inputs_says_where_they_come_from(
    tmp_path: Path, perchctl: Perchctl
) -> None:
    ended = perchctl("plan", tmp_path, "--limits", LIMITS)
    assert ended.code == 2
    assert "inputs/plan.json: it cannot be read (No such file or directory); " in ended.stderr
    assert "--stdin" in ended.stderr and "-e plan_only=true" in ended.stderr


def test_a_check_writes_nothing(run: Path, perchctl: Perchctl) -> None:
    ended = perchctl("plan", run, "--check", "--limits", LIMITS)
    assert ended.code == 0 and ended.stdout.startswith("Suite s: 1 flow")
    assert [path.name for path in run.iterdir()] == ["inputs"]


def test_a_run_is_never_planned_over(run: Path, perchctl: Perchctl) -> None:
    (run / "plan.json").write_text("kept")
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended.code == 2 and "it holds a run already" in ended.stderr
    assert (run / "plan.json").read_text() == "kept"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"{", "inputs/plan.json: it cannot be planned"),
        (b"[" * 100000, "inputs/plan.json: it cannot be planned"),
        (b"[]", "inputs/plan.json: it cannot be planned: expected object, got list"),
        (b"{}", "it cannot be planned: 'run' is missing"),
        (inputs(suite=[]), "it cannot be planned: suite: expected object, got list"),
        (inputs(hosts={"a": {}}), "host a: 'perch_address' is missing"),
        (
            inputs(hosts={"a": {"perch_adress": "192.0.2.1", "perch_fabric": "roce"}}),
            "host a: there is no variable 'perch_adress', did you mean 'perch_address'?",
        ),
        (inputs(soak_duration="1h"), "suite s is not a soak"),
        (
            inputs(swiches={}),
            "it cannot be planned: unknown key 'swiches', did you mean 'switches'?",
        ),
        (
            inputs(suite={"name": "s", "titel": "S", "tests": [suite_test()]}),
            "it cannot be planned: suite: unknown key 'titel', did you mean 'title'?",
        ),
        (
            inputs(suite={"name": "s", "title": "S", "tests": [suite_test() | {"repaet": 3}]}),
            "unknown key 'repaet', did you mean 'repeat'?",
        ),
        (
            inputs(suite={"name": "s", "title": "S", "tests": [], "soak": {"trun": "10m"}}),
            "it cannot be planned: suite.soak: unknown key 'trun', did you mean 'turn'?",
        ),
        (
            inputs(suite={"name": "s", "title": "S", "tests": [], "soak": {"mode": "zzz"}}),
            "it cannot be planned: suite.soak.mode: invalid enum value 'zzz'",
        ),
        (inputs(zzz=1), "it cannot be planned: unknown key 'zzz'\n"),
    ],
)
def test_inputs_that_cannot_be_planned_leave_no_plan(
    run: Path, perchctl: Perchctl, document: bytes, why: str
) -> None:
    (run / "inputs/plan.json").write_bytes(document)
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended.code == 2 and why in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert not (run / "plan.json").exists()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, ": it cannot be read (No such file or directory)"),
        (b"a: [", ", line "),
        (b"a: 1\nb: 2\na: 3\n", ", line 3: the key 'a' occurs twice"),
        (b"[" * 5000, ", line "),
    ],
)
def test_limits_that_cannot_be_read_leave_no_plan(
    run: Path, perchctl: Perchctl, text: bytes | None, why: str
) -> None:
    limits = run.parent / "site.yml"
    if text is not None:
        limits.write_bytes(text)
    ended = perchctl("plan", run, "--limits", LIMITS, "--site-limits", limits)
    assert ended.code == 2 and f"{limits}{why}" in ended.stderr
    assert not (run / "plan.json").exists()


def test_a_full_disk_is_named_with_the_file_that_found_no_room(
    run: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")  # as write(2): without a file

    monkeypatch.setattr("pathlib.Path.chmod", full)
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended.code == 6 and f"{run}/inputs/" in ended.stderr and "No space" in ended.stderr
    assert not (run / "plan.json").exists() and list(run.glob("**/*.part")) == []


def test_a_fault_of_the_sites_limits_is_named(run: Path, perchctl: Perchctl) -> None:
    site = run.parent / "site.yml"
    site.write_text("limits:\n  - {id: a, severity: removed, source: s}\n")
    ended = perchctl("plan", run, "--limits", LIMITS, "--site-limits", site)
    assert ended.code == 2 and "site.yml" in ended.stderr and "removes nothing" in ended.stderr


def test_a_baseline_that_is_not_there_is_refused(run: Path, perchctl: Perchctl) -> None:
    ended = perchctl("plan", run, "--limits", LIMITS, "--baseline", run / "none.json")
    assert ended.code == 3 and "none.json" in ended.stderr


def test_of_many_reasons_some_are_printed(run: Path, perchctl: Perchctl) -> None:
    able = {f"with{i}": one for i, one in enumerate(hosts(2).values())}
    (run / "inputs/plan.json").write_bytes(inputs(hosts=able | hosts(12, perch_backends=[])))
    ended = perchctl("plan", run, "--limits", LIMITS)
    assert ended.stdout.count("has no backend tcp") == 8
    assert "; and more, all in plan.json. Payload: " in ended.stdout


ONE = suite_test()


@pytest.mark.parametrize("check", [["--check"], []])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"hosts": hosts(1)},
            "suite s: nothing can be measured: t: two hosts are needed and 1 can take part; "
            "give it a test that two hosts can run\n",
        ),
        ({"hosts": {}}, "t: two hosts are needed and 0 can take part; give it"),
        ({"suite": {"name": "s", "title": "S", "tests": []}}, "suite s: nothing can be measured; "),
        (
            {"hosts": hosts(2, perch_backends=[])},
            "nothing can be measured: t: h0 has no backend tcp; t: h1 has no backend tcp; t: two",
        ),
        (
            {"suite": {"name": "s", "title": "S", "tests": [ONE, ONE | {"repeat": 2}]}},
            "test t: 2 tests have this name; give each a name of its own\n",
        ),
        (
            {"suite": {"name": "s", "title": "S", "tests": [ONE, ONE | {"repeat": 0}]}},
            "inputs/plan.json: it cannot be planned: suite.tests[1].repeat: expected whole number",
        ),
        (
            {"suite": {"name": "s", "title": "S", "tests": [ONE | {"name": "a/b"}]}},
            "inputs/plan.json: test name 'a/b' cannot be used as a path; correct the inventory or",
        ),
        (
            {"suite": {"name": "s", "title": "S", "tests": [ONE | {"name": ""}]}},
            "inputs/plan.json: test name '' cannot be used as a path",
        ),
        *(
            (
                {"hosts": hosts(2) | {name: hosts(1)["h0"]}},
                f"inputs/plan.json: host name '{shown}' cannot be used as a path",
            )
            for name, shown in (
                ("../../etc", "../../etc"), ("", ""), ("a\nb", r"a\nb"), ("\u202ea", r"\u202ea"),
            )
        ),
        ({"created": "yesterday"}, "inputs/plan.json: created is 'yesterday', not a time such as"),
        ({"created": "99999-01-01T00:00:00Z"}, "created is '99999-01-01T00:00:00Z', not a time"),
    ],
)  # fmt: skip
def test_what_judging_would_refuse_is_refused_before_anything_is_measured(
    run: Path, perchctl: Perchctl, more: dict[str, Any], why: str, check: list[str]
) -> None:
    (run / "inputs/plan.json").write_bytes(inputs(**more))
    ended = perchctl("plan", run, *check, "--limits", LIMITS)
    assert (ended.code, ended.stdout) == (2, "")
    assert why in ended.stderr
    assert [str(path.relative_to(run.parent)) for path in sorted(run.parent.rglob("*"))] == [
        "one", "one/inputs", "one/inputs/plan.json",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5, "1 s"), (120, "120 s"), (121, "3 min"), (7200, "120 min"), (18500, "5.2 h")],
)
def test_long_plans_are_shown_in_minutes_or_hours(seconds: float, shown: str) -> None:
    assert command.lasting(seconds) == shown
