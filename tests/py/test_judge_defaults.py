"""What the plan leaves open is what the engine chooses by itself."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from perch.judge.asked import Requests
from perch.model.part import Part
from perch.model.record import Params
from perch.plan import engine, forms
from perch.tools import perch_command, perch_params, transfer_command
from tests.py.asking import changed, flow, other, why


@pytest.fixture(name="job", scope="module")
def _job() -> Callable[..., dict[str, Any]]:
    """What the engine says that it would do by this command."""
    if not engine.PROGRAM.exists():
        pytest.skip("NOT TESTED: engine/build-check/perch is not built (make -C engine check-tool)")

    def check(*words: str) -> dict[str, Any]:
        ended = subprocess.run(
            [engine.PROGRAM, "check", *words], capture_output=True, timeout=10, check=True
        )
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    return check


#: What a plan leaves open, and the engine does not choose by what it finds.
OPEN = ("outstanding", "warmup_s", "threads", "devices", "iterations", "clock", "memory", "huge")


@pytest.mark.parametrize(("kind", "word"), [("latency", "lat"), ("bandwidth", "bw")])
@pytest.mark.parametrize("backend", ["tcp", "verbs", "ofi", "cxi"])
def test_what_the_plan_leaves_open_is_as_the_engine_has_it_by_itself(
    kind: str, word: str, backend: str, job: Callable[..., dict[str, Any]]
) -> None:
    found = job(word, "b", "--backend", backend, "--op", "send", "--size", "8")
    planned = flow("perch", backend=backend, kind=kind)
    part = msgspec.to_builtins(msgspec.convert(found, Part))
    assert why(planned, part) is None
    for name in (
        *OPEN,
        *(("retry", "rnr_retry", "timeout_exponent") if backend == "verbs" else ()),
    ):
        said = found["params"][name]
        wrong = changed(part, f"params.{name}", other(said))
        assert (why(planned, wrong) or "").startswith(f"the plan asks for {name} {said},")


def test_a_transfer_has_as_many_requests_outstanding_as_the_engine_by_itself(
    job: Callable[..., dict[str, Any]],
) -> None:
    outstanding = job("transfer", "b", "--backend", "verbs")["params"]["outstanding"]
    assert outstanding == transfer_command.OUTSTANDING


@pytest.mark.parametrize(
    ("asked_for", "kind", "op", "stated", "message"),
    [
        ({}, "latency", "send", 236, None),
        ({}, "latency", "send", 0, None),
        ({}, "latency", "send", None, None),
        ({}, "latency", "send", 64, "0 or 236 or nothing, the output says 64"),
        ({}, "latency", "write-imm", 220, None),
        ({}, "latency", "write", 236, "0 or 220 or nothing, the output says 236"),
        ({"connection": "ud"}, "latency", "send", 188, None),
        ({}, "latency", "read", 236, "0, the output says 236"),
        ({}, "bandwidth", "send", 64, "0, the output says 64"),
        ({"inline": 64}, "bandwidth", "send", 64, None),
        ({"inline": 64}, "latency", "send", 236, "64, the output says 236"),
    ],
)
def test_bytes_within_work_requests_are_those_of_the_engine_or_the_plan(
    asked_for: dict[str, Any], kind: str, op: str, stated: int | None, message: str | None
) -> None:
    planned = flow("perch", asked_for, backend="verbs", kind=kind, op=op)
    wants = [perch_params.inline_want(forms.test_of("t", planned))]
    said = Requests(wants).unlike(Part(params=Params(inline_bytes=stated)))
    assert said == (message and f"the plan asks for inline_bytes {message}")


@pytest.mark.parametrize(
    ("backend", "params"),
    [
        ("verbs", {"traffic_class": "106"}),
        ("verbs", {"tos": "32"}),
        ("verbs", {"sl": "3", "retry": "2", "timeout_exponent": "18"}),
        ("cxi", {"svc_id": "5", "server_svc_id": "6", "vni": "10"}),
    ],
)
def test_a_quoted_number_is_the_number_that_the_engine_states(
    backend: str, params: dict[str, str], job: Callable[..., dict[str, Any]]
) -> None:
    options = perch_command.options(params)
    found = job("lat", "b", "--backend", backend, "--op", "send", "--size", "8", *options)
    part = msgspec.to_builtins(msgspec.convert(found, Part))
    assert why(flow("perch", params, backend=backend), part) is None
