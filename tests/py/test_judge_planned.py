"""plan.json and plan.retry.json: what makes a run that cannot be judged, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.errors import PerchError
from perch.judge.planned import read_plan, with_retry

Document = dict[str, Any]


def flow(test: str = "t", repeat: int = 1, **said: Any) -> Document:
    made = {
        "id": f"{test}/a/b/{repeat}", "test": test, "repeat": repeat, "tool": "perch",
        "kind": "latency", "client": "a", "server": "b", "scope": "software",
        "client_argv": ["perch", "lat", "192.0.2.2"], "expect": [{"size_bytes": 8}],
    }  # fmt: skip
    return made | said


def plan(*flows: Document, **said: Any) -> Document:
    host = {"fabric": "roce", "scope": "software", "port": 18600}
    made = {
        "schema": "perch.plan/1", "run": "r", "created": "2026-11-21T08:04:06Z", "limits": "local",
        "suite": {"name": "s", "title": "S"},
        "hosts": {"a": host | {"address": "192.0.2.1"}, "b": host | {"address": "192.0.2.2"}},
        "rounds": [{"flows": [one]} for one in flows or [flow()]],
    }  # fmt: skip
    return made | said


def fault(folder: Path, document: object) -> str:
    """Why a plan cannot be used; "" where it can."""
    path = folder / "plan.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    try:
        read_plan(path)
    except PerchError as error:
        assert error.code == 3
        return error.what
    return ""


def test_a_whole_plan_has_no_fault(tmp_path: Path) -> None:
    assert fault(tmp_path, plan()) == ""
    # as an inventory's variables are on Ansible's command line, or as an editor saved it
    document = plan()
    document["hosts"]["a"]["port"] = "18600"
    assert fault(tmp_path, document) == ""
    assert fault(tmp_path, "\ufeff" + json.dumps(plan())) == ""


TWO_LINES = plan()
TWO_LINES["hosts"]["c\n"] = TWO_LINES["hosts"]["a"]
OUTSIDE = {"file": "raw/import/../x", "line": 1}
INSIDE = {"file": "raw/import/x", "line": 1}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "plan.json is damaged"),
        ('{"schema": "perch.pl', "plan.json is damaged"),
        (json.dumps(plan()) * 2, "plan.json is damaged"),
        ('{"more": ' + "[" * 100_000, "plan.json is damaged"),
        ('{"schema": ' + "[" * 100_000, "plan.json cannot be used"),
        ([], "cannot be used: Expected `object`"),
        (plan(schema="perch.plan/2"), "its schema is 'perch.plan/2', not perch.plan/1"),
        ({"schema": "perch.plan/2"}, "its schema is 'perch.plan/2', not perch.plan/1"),
        (plan(hosts=[]), "$.hosts"),
        (plan(rounds=[]), "it holds no flow"),
        (plan(flow(id="../../x/y")), "is not test/client/server/repeat"),
        (plan(flow(id="t/a/b/1\n")), "is not test/client/server/repeat"),
        (TWO_LINES, "is not usable as a path"),
        (plan(switches={"../s": {"provider": "x", "scope": "software"}}), "switch name '../s'"),
        (plan(flow(server="c")), "server 'c' is not a host of the plan"),
        (plan(flow(server="a")), "is of host 'a' with itself"),
        (plan(flow(retry=True)), "says of itself that it is a repeat"),
        (plan(flow(expect=[])), "expects no record"),
        (plan(flow(expect=[{}])), "expects a record without a size"),
        (plan(flow(expect=[{"size_bytes": 8}] * 2)), "expects a record twice"),
        (plan(flow(scope="real")), "Invalid enum value 'real'"),
        (plan(flow(client_argv=[])), "has no tool or no command"),
        (plan(flow(), flow()), "two flows have the same id"),
        (plan(flow() | {"import": OUTSIDE}), "has no line of a file of raw/import"),
        (plan(flow("u"), flow() | {"import": INSIDE}), "measured elsewhere beside others"),
        (plan(flow(client_argv=["perch", "lat", "b", "--soak", "f"])), "is of a soak"),
    ],
)
def test_a_plan_that_cannot_be_judged_by_is_refused_with_its_place(
    tmp_path: Path, document: object, words: str
) -> None:
    assert words in fault(tmp_path, document)


def test_a_missing_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(PerchError, match=r"plan\.json is missing"):
        read_plan(tmp_path / "plan.json")


# ---- soaks ---------------------------------------------------------------------------------------

SOAK = {"duration_s": 60, "interval_s": 1, "stall_s": 1, "reconnect_s": 5, "mode": "mixed"}
TURNS = SOAK | {"mode": "alternating", "turn_s": 20}


def soaking(duration: str) -> Document:
    argv = ["perch", "bw", "b", "--soak", "f", "--duration", duration]
    return flow(client_argv=[*argv, "--interval", "1s", "--stall", "1s"])


@pytest.mark.parametrize(
    ("soak", "durations", "words"),
    [
        (SOAK, ["60s"], ""),
        (SOAK, ["59s"], "has --duration of 59.0 s, and the soak 60 s"),
        (SOAK | {"interval_s": 2}, ["60s"], "has --interval of 1.0 s, and the soak 2 s"),
        (SOAK | {"stall_s": 0}, ["60s"], "its soak has no times"),
        (SOAK | {"mode": "alternating"}, ["60s"], "its soak has no times"),
        (TURNS, ["20s", "20s", "20s"], ""),
        (TURNS, ["20s", "20s"], "its turns together last 40 s, and the soak 60 s"),
        (TURNS, ["30s", "30s"], "has --duration of 30.0 s"),
    ],
)
def test_a_soaks_commands_have_its_times(
    tmp_path: Path, soak: Document, durations: list[str], words: str
) -> None:
    flows = [soaking(duration) | {"id": f"t/a/b/{n}"} for n, duration in enumerate(durations)]
    said = fault(tmp_path, plan(*flows, soak=soak))
    assert (words in said) if words else said == ""


# ---- repeats -------------------------------------------------------------------------------------

AGAIN = [flow(repeat=2), flow(repeat=3)]


def first_of(flows: list[Document], **said: Any) -> list[Document]:
    return [flows[0] | said, *flows[1:]]


def test_two_repeats_of_a_pair_are_judged_with_its_plan(tmp_path: Path) -> None:
    fault(tmp_path, plan())
    (tmp_path / "plan.retry.json").write_text(json.dumps(plan(*AGAIN)))
    whole, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why is None
    assert [(one.repeat, one.retry) for one in whole.flows()] == [(1, False), (2, True), (3, True)]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("{", "plan.retry.json is damaged"),
        (plan(*AGAIN, run="s"), "it is of run 's', not r"),
        (plan(*AGAIN, hosts={"a": plan()["hosts"]["a"]}), "its hosts are not those of the plan"),
        (plan(flow("u", 2), flow("u", 3)), "repeats what was not planned"),
        (plan(*first_of(AGAIN, id="t/a/b/9")), "is not named by its test, hosts and repeat"),
        (plan(flow(repeat=1), flow(repeat=2)), "does not follow the planned ones"),
        (
            plan(*first_of(AGAIN, client_argv=["perch", "lat"])),
            "not as it was planned: client_argv",
        ),
        (plan(AGAIN[0]), "is repeated 1 times (2), not 2 times"),
        (plan(AGAIN[0], AGAIN[0]), "is repeated 2 times (2, 2), not 2 times"),
    ],
)
def test_repeats_of_something_else_do_not_count(
    tmp_path: Path, document: object, words: str
) -> None:
    fault(tmp_path, plan())
    text = document if isinstance(document, str) else json.dumps(document)
    (tmp_path / "plan.retry.json").write_text(text)
    whole, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why is not None
    assert words in why
    assert [one.id for one in whole.flows()] == ["t/a/b/1"]


def test_outliers_are_the_exception(tmp_path: Path) -> None:
    fault(tmp_path, plan(*[flow(test) for test in "tuvwxyz"]))
    again = [flow(test, repeat) for test in "tu" for repeat in (2, 3)]
    (tmp_path / "plan.retry.json").write_text(json.dumps(plan(*again)))
    _, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why == "it repeats 2 of 7 pairs of hosts, more than a quarter"


@pytest.mark.parametrize("damage", [Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_plan_of_repeats_that_cannot_be_read_is_said(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    fault(tmp_path, plan())
    damage(tmp_path / "plan.retry.json")
    _, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why == "plan.retry.json is missing or cannot be read"
