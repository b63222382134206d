"""plan.json and plan.retry.json: what makes a run that cannot be judged, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.errors import PerchError
from perch.judge.commands import seconds
from perch.judge.planned import read_plan, with_retry
from perch.model.plan import Plan
from tests import spelled

Document = dict[str, Any]


def flow(test: str = "t", repeat: int = 1, **said: Any) -> Document:
    made = {
        "id": f"{test}/a/b/0/{repeat}", "test": test, "repeat": repeat, "tool": "perch",
        "kind": "latency", "client": "a", "server": "b", "scope": "software",
        "client_argv": ["perch", "lat", "192.0.2.2"], "expect": [{"size_bytes": 8}],
    }  # fmt: skip
    return made | said


def plan(*flows: Document, **said: Any) -> Document:
    host = {"fabric": "roce", "scope": "software", "port": 18600}
    made = {
        "run": "r", "created": "2026-11-21T08:04:06Z", "limits": "local",
        "suite": {"name": "s", "title": "S"},
        "hosts": {"a": host | {"address": "192.0.2.1"}, "b": host | {"address": "192.0.2.2"}},
        "rounds": [{"flows": [one]} for one in flows or [flow()]],
    }  # fmt: skip
    return made | said


def fault(folder: Path, document: Document | str, **raw: Any) -> str:
    """Why a plan, or the text in the place of plan.json, cannot be used; "" where it can.

    raw: keys of plan.json as it is written.
    """
    path = folder / "plan.json"
    spelled.write(folder, plan() if isinstance(document, str) else document)
    if isinstance(document, str):
        path.write_text(document)
    elif raw:
        path.write_text(json.dumps(json.loads(path.read_text()) | raw))
    return why(path)


def why(path: Path) -> str:
    try:
        read_plan(path)
    except PerchError as error:
        assert error.code == 3
        return str(error)
    return ""


def test_a_whole_plan_has_no_fault(tmp_path: Path) -> None:
    assert fault(tmp_path, plan()) == ""
    # as an inventory's variables are on Ansible's command line, or as an editor saved it
    document = plan()
    document["hosts"]["a"]["port"] = "18600"
    assert fault(tmp_path, document) == ""
    path = tmp_path / "plan.json"
    path.write_text("\ufeff" + path.read_text())
    assert why(path) == ""


TWO_LINES = plan()
TWO_LINES["hosts"]["c\n"] = TWO_LINES["hosts"]["a"]
WITHOUT_NAME = plan()
WITHOUT_NAME["hosts"]["a"]["devices"] = [{"netdev": "e0"}]
FORM = {"client": ["perch", "lat"], "server": [], "expect": [{"size_bytes": 8}]}
TEST = {"title": "t", "tool": "perch", "kind": "latency", "op": None, "carrier": "sockets",
        "forms": {"1": FORM}}  # fmt: skip
OUTSIDE = {"file": "raw/import/../x", "line": 1}
INSIDE = {"file": "raw/import/x", "line": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "plan.json: it is damaged"),
        ('{"schema": "perch.pl', "plan.json: it is damaged"),
        ("{} {}", "plan.json: it cannot be used"),
        ('{"more": ' + "[" * 100_000, "plan.json: it is damaged"),
        ('{"schema": ' + "[" * 100_000, "plan.json: it cannot be used"),
        ("[]", "plan.json: it cannot be used: Expected `object`"),
        ('{"schema": "perch.plan/1"}', "its schema is 'perch.plan/1', and this Perch reads perch."),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in fault(tmp_path, text)


@pytest.mark.parametrize(
    ("document", "raw", "words"),
    [
        (plan(), {"hosts": []}, "$.hosts"),
        (plan(), {"hosts": {}}, "rounds.jsonl: it names what plan.json does not have: 'a'"),
        (plan(), {"tests": {}}, "rounds.jsonl: it names what plan.json does not have: 't'"),
        (plan(rounds=[]), {}, "it holds no flow"),
        (WITHOUT_NAME, {}, "host 'a' has a device without a name"),
        (plan(), {"tests": {"t": TEST | {"forms": {"one": FORM}}}}, "$.tests[...].forms"),
        (plan(), {"tests": {"t": TEST | {"params": {"devices": "x"}}}}, "has 'x' devices"),
        (plan(), {"tests": {"t": TEST | {"params": {"devices": 2}}}}, "not have: ('t', 2)"),
        (plan(flow("../../x")), {}, "is not test/client/server/rail/repeat"),
        (plan(flow("t\n")), {}, "is not test/client/server/rail/repeat"),
        (TWO_LINES, {}, "is not usable as a path"),
        (plan(switches={"../s": {"provider": "x", "scope": "software"}}), {}, "switch name '../s'"),
        (plan(flow(server="a")), {}, "is of host 'a' with itself"),
        (plan(flow(expect=[])), {}, "expects no record"),
        (plan(flow(expect=[{}])), {}, "expects a record without a size"),
        (plan(flow(expect=[{"size_bytes": 8}] * 2)), {}, "expects a record twice"),
        (plan(flow(client_argv=[])), {}, "has no tool or no command"),
        (plan(flow(), flow()), {}, "two flows have the same id"),
        (plan(flow() | {"import": OUTSIDE, "scope": "imported"}), {}, "line of a file of raw/imp"),
        (
            plan(flow("u"), flow() | {"import": INSIDE, "scope": "imported"}),
            {},
            "measured elsewhere beside others",
        ),
        (plan(flow(client_argv=["perch", "lat", "b", "--soak", "f"])), {}, "is of a soak"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_judged_by_is_refused_with_its_place(
    tmp_path: Path, document: Document, raw: Document, words: str
) -> None:
    assert words in fault(tmp_path, document, **raw)


def test_a_command_that_needs_what_the_plan_does_not_say_is_refused(tmp_path: Path) -> None:
    spelled.write(tmp_path, plan(soaking("60s"), soak=SOAK))
    document = json.loads((tmp_path / "plan.json").read_text())
    document["tests"]["t"]["forms"]["1"]["client"].append("{client.device.name}")
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert why(tmp_path / "plan.json") == (
        "plan.json, flow t/a/b/0/1: its test's command needs '{client.device.name}', which the "
        "plan does not say"
    )


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("[]\n")])
def test_rounds_that_are_missing_or_damaged_are_said(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    fault(tmp_path, plan())
    damage(tmp_path / "rounds.jsonl")
    assert why(tmp_path / "plan.json").startswith("rounds.jsonl")


def test_a_missing_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(PerchError, match=r"plan\.json: it is missing"):
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
    flows = [
        soaking(duration) | {"repeat": n, "estimate_s": seconds(duration)}
        for n, duration in enumerate(durations)
    ]
    said = fault(tmp_path, plan(*flows, soak=soak))
    assert (words in said) if words else said == ""


# ---- repeats -------------------------------------------------------------------------------------

AGAIN = [flow(repeat=2), flow(repeat=3)]


def retried(folder: Path, flows: list[Document], **said: Any) -> tuple[Plan, str | None]:
    """The plan with repeats, and why these do not count."""
    spelled.write_retry(folder, [[one] for one in flows], **said)
    return with_retry(read_plan(folder / "plan.json"), folder / "plan.retry.json")


def test_two_repeats_of_a_pair_are_judged_with_its_plan(tmp_path: Path) -> None:
    fault(tmp_path, plan())
    whole, why = retried(tmp_path, AGAIN)
    assert why is None
    assert [(one.repeat, one.retry) for one in whole.flows()] == [(1, False), (2, True), (3, True)]


@pytest.mark.parametrize(
    ("flows", "said", "words"),
    [
        (AGAIN, {"run": "s"}, "it is of run 's', not r"),
        (AGAIN, {"schema": "perch.plan/1"}, "its schema is 'perch.plan/1', and this Perch reads"),
        (AGAIN, {"run": 3}, "it cannot be used: "),
        (AGAIN, {"plan_sha256": "0"}, "it was made from another plan.json"),
        ([flow("u", 2), flow("u", 3)], {}, "it names what plan.json does not have: 'u'"),
        ([flow("t", 2, server="a"), flow("t", 3, server="a")], {}, "which was not planned"),
        ([flow(repeat=1), flow(repeat=2)], {}, "t/a/b/0 is repeated as 1, 2, not as 2, 3"),
        (AGAIN[:1], {}, "is repeated as 2, not as 2, 3"),
        ([AGAIN[0], AGAIN[0]], {}, "is repeated as 2, 2, not as 2, 3"),
    ],
)
def test_repeats_of_something_else_do_not_count(
    tmp_path: Path, flows: list[Document], said: Document, words: str
) -> None:
    fault(tmp_path, plan())
    whole, why = retried(tmp_path, flows, **said)
    assert why is not None
    assert words in why
    assert [one.id for one in whole.flows()] == ["t/a/b/0/1"]


def test_outliers_are_the_exception(tmp_path: Path) -> None:
    fault(tmp_path, plan(*[flow(test) for test in "tuvwxyz"]))
    _, why = retried(tmp_path, [flow(test, repeat) for test in "tu" for repeat in (2, 3)])
    assert why == "it repeats 2 of 7 pairs of hosts, more than a quarter"


def test_a_damaged_plan_of_repeats_is_said(tmp_path: Path) -> None:
    fault(tmp_path, plan())
    (tmp_path / "plan.retry.json").write_text("{")
    _, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why is not None
    assert why.startswith("it is damaged")


@pytest.mark.parametrize("damage", [Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_plan_of_repeats_that_cannot_be_read_is_said(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    fault(tmp_path, plan())
    damage(tmp_path / "plan.retry.json")
    _, why = with_retry(read_plan(tmp_path / "plan.json"), tmp_path / "plan.retry.json")
    assert why == "it is missing or cannot be read"
