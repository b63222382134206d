"""plan.json and plan.retry.json: what makes a run that cannot be judged, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.errors import PerchError
from perch.judge.planned import plan_to_judge, read_plan, with_retry
from perch.model.plan import Plan
from tests import spelled

Document = dict[str, Any]


def flow(test: str = "t", repeat: int = 1, **said: Any) -> Document:
    made = {
        "id": f"{test}/a/b/0/{repeat}", "test": test, "repeat": repeat, "tool": "perch",
        "kind": "latency", "client": "a", "server": "b", "scope": "software",
        "backend": "tcp", "op": "send", "params": {"size": 8}, "expect": [{"size_bytes": 8}],
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
        plan_to_judge(path)
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
COMMAND = [
    *("perch", "lat", "{server.address}", "--backend", "tcp", "--op", "send", "--size", "8"),
    *("--bind", "{client.address}", "--json"),
]
FORM = {"client": COMMAND, "server": [], "expect": [{"size_bytes": 8}]}
TEST = {"title": "t", "tool": "perch", "kind": "latency", "op": "send", "carrier": "sockets",
        "backend": "tcp", "params": {"size": 8}, "forms": {"1": FORM}}  # fmt: skip
LANES = {"kind": "transfer", "params": {"devices": {"x": 1}}}
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
        ("[]", "plan.json: it cannot be used: expected object, got list"),
        ('{"schema": "perch.plan/1"}', "its schema is 'perch.plan/1', but this Perch reads perch."),
    ],
)
def test_a_damaged_plan_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in fault(tmp_path, text)


@pytest.mark.parametrize(
    ("document", "raw", "words"),
    [
        (plan(), {"hosts": []}, "hosts: expected object, got list"),
        (plan(), {"hosts": {}}, "rounds.jsonl: plan.json does not have its key 'a'"),
        (plan(), {"tests": {}}, "rounds.jsonl: plan.json does not have its key 't'"),
        (plan(rounds=[]), {}, "it has no flow"),
        (WITHOUT_NAME, {}, "host 'a' has a device without a name"),
        (plan(), {"tests": {"t": TEST | {"forms": {"one": FORM}}}}, "tests[...].forms: a key is"),
        (plan(), {"tests": {"t": TEST | LANES}}, "has devices {'x': 1}; use a"),
        (plan(flow() | {"rail": 2}), {}, "has rail 2, but host 'a' has 0 devices"),
        (plan(flow("../../x")), {}, "test name '../../x' cannot be used as a path"),
        (plan(flow("t\n")), {}, "test name 't\n' cannot be used as a path"),
        (plan(flow(repeat=-1)), {}, "is not test/client/server/rail/repeat"),
        (TWO_LINES, {}, "cannot be used as a path"),
        (plan(switches={"../s": {"provider": "x", "scope": "software"}}), {}, "switch name '../s'"),
        (plan(flow(server="a")), {}, "has host 'a' as client and as server"),
        (plan(flow(expect=[])), {}, "expects no record"),
        (plan(flow(expect=[{}])), {}, "expects a record without a size"),
        (plan(flow(expect=[{"size_bytes": 8}] * 2)), {}, "expects the same record twice"),
        (plan(flow() | {"params": {}, "client_argv": []}), {}, "test 't' has no parameter size"),
        (plan(flow(), flow()), {}, "two flows have the same id"),
        (plan(flow() | {"import": OUTSIDE, "scope": "imported"}), {}, "names no file in raw"),
        (
            plan(flow("u"), flow() | {"import": INSIDE, "scope": "imported"}),
            {},
            "it mixes imported flows with others",
        ),
        (plan(flow(params={"size": 8, "soak": "f"})), {}, "belongs to a soak, but the plan"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_judged_by_is_refused_with_its_place(
    tmp_path: Path, document: Document, raw: Document, words: str
) -> None:
    assert words in fault(tmp_path, document, **raw)


def edited(folder: Path, document: Document, change: Callable[[Document], object]) -> str:
    """Why a plan whose test was changed in plan.json by hand cannot be used."""
    spelled.write(folder, document)
    path = folder / "plan.json"
    whole = json.loads(path.read_text())
    change(whole["tests"]["t"])
    path.write_text(json.dumps(whole))
    return why(path)


def asks(**params: Any) -> Callable[[Document], object]:
    return lambda test: test["params"].update(params)


def says(end: str, *words: Any, at: int = -1) -> Callable[[Document], object]:
    """The command of an end has these words in the place of one."""

    def change(test: Document) -> None:
        command = test["forms"]["1"][end]
        place = at if at >= 0 else max(len(command) - 1, 0)
        command[place : place + 1] = words

    return change


IPERF3 = {"tool": "iperf3", "kind": "bandwidth", "params": {"size": 8, "duration": "2s"}}
PERFTEST = {"tool": "perftest", "backend": None, "params": {"size": 8, "iterations": 9}}


@pytest.mark.parametrize(
    ("more", "change", "words"),
    [
        ({}, asks(), ""),
        ({}, says("client", "64", at=8), "the client's command of test 't' has '64' after "
         "'--size', its params ask for '8'"),
        ({}, asks(size=64), "has '8' after '--size', its params ask for '64'"),
        ({}, asks(verify=True), "has '--bind' after '8', its params ask for '--verify'"),
        ({}, says("client"), "ends after '{client.address}', its params ask for '--json'"),
        ({}, says("client", "--json", "--rate"), "has '--rate' after '--json', its params ask for "
         "no more"),
        ({}, says("client", at=0), "has 'lat', its params ask for 'perch'"),
        ({}, says("server", "perch"), "the server's command of test 't' has 'perch', its params "),
        ({}, lambda test: test.update(op="read"), "has 'send' after '--op', its params ask for "),
        ({}, lambda test: test.update(tool="sockperf"), "test 't' is latency of 'sockperf', which"),
        ({}, lambda test: test.update(kind="poem"), "test 't' is poem of 'perch', which Perch can"),
        ({}, lambda test: test["params"].clear(), "test 't' has no parameter size"),
        (IPERF3, says("server", "-p", at=1), "the server's command of test 't' has '-p' after "),
        (IPERF3, lambda test: test["params"].pop("duration"), "has no parameter duration"),
        (PERFTEST, says("client", "-x", "{client.device.gid_index}", at=5),
         "leaves out other words where a host lacks a setting"),
    ],
)  # fmt: skip
def test_a_command_that_contradicts_its_params_is_refused(
    tmp_path: Path, more: Document, change: Callable[[Document], object], words: str
) -> None:
    found = edited(tmp_path, plan(flow(**more)), change)
    assert found == "" if words == "" else words in found


def test_a_number_of_devices_that_has_no_command_is_refused(tmp_path: Path) -> None:
    transfer = flow(kind="transfer", op="write", params={"size": 8, "devices": 1})
    assert "does not have its key ('t', 2)" in edited(tmp_path, plan(transfer), asks(devices=2))


@pytest.mark.parametrize("params", [{"connection": 5}, {"gap": "x"}, {"keys": ["client"]}])
def test_params_that_cannot_be_compared_are_refused(tmp_path: Path, params: Document) -> None:
    backend = "cxi" if "keys" in params else "verbs"
    found = fault(tmp_path, plan(flow(params={"size": 8, **params}, backend=backend)))
    assert "test 't' has params that Perch cannot plan" in found


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_text("[]\n")])
def test_rounds_that_are_missing_or_damaged_are_said(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    fault(tmp_path, plan())
    damage(tmp_path / "rounds.jsonl")
    assert why(tmp_path / "plan.json").startswith("rounds.jsonl")


@pytest.mark.parametrize(("scope", "is_refused"), [("hardware", True), ("software", False)])
def test_a_test_of_cards_that_is_planned_over_sockets_is_refused(
    tmp_path: Path, scope: str, is_refused: bool
) -> None:
    document = plan(flow(backend="verbs", scope=scope))
    for host in document["hosts"].values():
        host |= {"scope": scope, "devices": [{"name": "mlx5_0"}]}
    assert fault(tmp_path, document) == ""
    tests = json.loads((tmp_path / "plan.json").read_text())["tests"]
    for test in tests.values():
        test["carrier"] = "sockets"
    words = "is planned over sockets, but its tool measures rdma"
    assert (words in fault(tmp_path, document, tests=tests)) is is_refused


def test_a_missing_plan_is_said(tmp_path: Path) -> None:
    with pytest.raises(PerchError, match=r"plan\.json: it is missing"):
        read_plan(tmp_path / "plan.json")


# ---- soaks ---------------------------------------------------------------------------------------

SOAK = {"duration_s": 60, "interval_s": 1, "stall_s": 1, "reconnect_s": 5, "mode": "mixed"}
TURNS = SOAK | {"mode": "alternating", "turn_s": 20}


def soaking(seconds: int, **params: Any) -> Document:
    times = {"duration": "{round.seconds}s", "interval": "1s", "stall": "1s", "soak": "f"}
    params = {"size": 8, **times, **params}
    return flow(kind="bandwidth", params=params, estimate_s=seconds)


@pytest.mark.parametrize(
    ("soak", "seconds", "params", "words"),
    [
        (SOAK, [60], {}, ""),
        (SOAK, [59], {}, "flow 't/a/b/0/0' lasts 59 s, but the soak lasts 60 s"),
        (SOAK, [60], {"duration": "60s"}, "test 't' has duration '60s', a soak needs '{round.s"),
        (SOAK | {"interval_s": 2}, [60], {}, "test 't' has interval '1s', but the soak has 2 s"),
        (SOAK, [60], {"stall": 1.5}, "test 't' has stall 1.5, but the soak has 1 s"),
        (SOAK, [60], {"stall": None}, "test 't' has stall None, but the soak has 1 s"),
        (SOAK | {"stall_s": 0}, [60], {}, "its soak lacks valid times"),
        (SOAK | {"mode": "alternating"}, [60], {}, "its soak lacks valid times"),
        (TURNS, [20, 20, 20], {}, ""),
        (TURNS, [20, 20], {}, "its turns together last 40 s, but the soak lasts 60 s"),
        (TURNS, [30, 30], {}, "flow 't/a/b/0/0' lasts 30 s"),
    ],
)
def test_a_soaks_tests_have_its_times(
    tmp_path: Path, soak: Document, seconds: list[int], params: Document, words: str
) -> None:
    flows = [soaking(each, **params) | {"repeat": n} for n, each in enumerate(seconds)]
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
        (AGAIN, {"run": "s"}, "it belongs to run 's', not 'r'"),
        (AGAIN, {"schema": "perch.plan/1"}, "its schema is 'perch.plan/1', but this Perch reads"),
        (AGAIN, {"run": 3}, "it cannot be used: run: expected string, got whole number"),
        (AGAIN, {"plan_sha256": "0"}, "it was made from another plan.json"),
        ([flow("u", 2), flow("u", 3)], {}, "plan.json does not have its key 'u'"),
        ([flow("t", 2, server="a"), flow("t", 3, server="a")], {}, "which is not in the plan"),
        (
            [flow(repeat=1), flow(repeat=2)],
            {},
            "its repeats of t/a/b/0 have the numbers 1, 2, not 2, 3",
        ),
        (AGAIN[:1], {}, "its repeats of t/a/b/0 have the numbers 2, not 2, 3"),
        ([AGAIN[0], AGAIN[0]], {}, "its repeats of t/a/b/0 have the numbers 2, 2, not 2, 3"),
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


def test_rails_repeated_alone_are_no_repeat_of_all_together(tmp_path: Path) -> None:
    """In the plan's one round are both rails, in the repeats' rounds one each."""
    devices = [{"name": "m0"}, {"name": "m1"}]
    document = plan()
    for host in document["hosts"].values():
        host["devices"] = devices

    def rail(number: int, repeat: int = 1) -> Document:
        return flow(id=f"t/a/b/{number}/{repeat}", repeat=repeat, rail=number)

    assert fault(tmp_path, document | {"rounds": [{"flows": [rail(0), rail(1)]}]}) == ""
    alone = [rail(number, repeat) for number in (0, 1) for repeat in (2, 3)]
    _, why = retried(tmp_path, alone)
    assert why is not None and "its repeat t/a/b/0/2 has 1 rails at once, unlike the plan" in why


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
