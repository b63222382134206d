"""Raw files: regular ones below raw/ are read, and nothing else, however it is dressed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from perch.judge import raw
from perch.judge.raw import RawFiles, TooLargeError, flow_folder
from perch.model.plan import Flow
from perch.model.raw import End
from tests.py.conftest import Ended
from tests.py.judging import Run

Perchctl = Callable[..., Ended]

FLOW = Flow(
    id="t/a/b/0/1", test="t", tool="perch", kind="latency", client="a", server="b", scope="software"
)
CLIENT = Path("raw/a/flows/t/a/b/0/1")
SERVER = Path("raw/b/flows/t/a/b/0/1")
OUTPUT = f"{CLIENT}/client.soak"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with one flow."""
    root = tmp_path / "run"
    for folder in (CLIENT, SERVER):
        (root / folder).mkdir(parents=True)
    (root / OUTPUT).write_text("out")
    for folder in (CLIENT, SERVER):
        (root / folder / "x.json").write_text("{}")
    return root


def test_what_lies_below_raw_is_read(run: Path) -> None:
    assert RawFiles(run).read(OUTPUT) == b"out"


def test_a_repeat_lies_beside_the_first_walk() -> None:
    again = msgspec.structs.replace(FLOW, retry=True)
    assert flow_folder(again, "a") == "raw/a/retry/flows/t/a/b/0/1"


def test_files_that_are_not_there_are_missing(tmp_path: Path) -> None:
    assert RawFiles(tmp_path).read(OUTPUT) == b""


def replaced(path: Path, put: Callable[[Path], object]) -> None:
    path.rename(path.with_name("elsewhere"))
    put(path)


@pytest.mark.parametrize(
    "put",
    [
        lambda path: path.symlink_to("elsewhere"),
        os.mkfifo,
        Path.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
    ],
)
def test_a_link_a_pipe_a_folder_and_a_device_are_no_output(
    run: Path, put: Callable[[Path], object]
) -> None:
    replaced(run / CLIENT / "client.soak", put)
    assert RawFiles(run).read(OUTPUT) == b""
    assert RawFiles(run).stream(OUTPUT) is None


@pytest.mark.parametrize("folder", [CLIENT, *list(CLIENT.parents)[:-2]])
def test_no_folder_below_raw_may_be_a_link(run: Path, folder: Path) -> None:
    replaced(run / folder, lambda path: path.symlink_to("elsewhere"))
    files = RawFiles(run)
    assert (files.read(OUTPUT), files.stream(OUTPUT)) == (b"", None)
    assert files.read(f"{SERVER}/x.json") == b"{}"


def test_raw_itself_may_be_a_link(run: Path) -> None:
    replaced(run / "raw", lambda path: path.symlink_to("elsewhere"))
    assert RawFiles(run).read(OUTPUT) == b"out"


def test_the_folder_of_what_is_wanted_may_be_read(run: Path) -> None:
    (run / "inputs/hosts").mkdir(parents=True)
    (run / "inputs/hosts/a.json").write_text("{}")
    files = RawFiles(run)
    assert files.read("inputs/hosts/a.json") == b"{}"
    assert files.read("inputs/limits.json") == b""
    assert files.read("../run/raw/a/x") == b""


def test_an_output_that_is_too_large_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw, "LARGEST", 100)
    (run / OUTPUT).write_text("x" * 101)
    with pytest.raises(TooLargeError, match=r"client\.soak has more than"):
        RawFiles(run).read(OUTPUT)


def test_a_document_of_another_type_is_none(run: Path) -> None:
    decoder = msgspec.json.Decoder(End)
    files = RawFiles(run)
    assert files.document(str(CLIENT / "x.json"), decoder) is not None
    assert files.document(str(CLIENT / "client.soak"), decoder) is None
    assert files.document(str(CLIENT / "nothing.json"), decoder) is None


def test_a_run_of_an_older_agent_is_refused_by_name(loopback: Run, perchctl: Perchctl) -> None:
    (loopback.root / "raw/beta/agent.json").write_text('{"schema": "perch.agent/1"}')
    said = (
        "raw/beta/agent.json: its raw files are perch.raw/1, not perch.raw/2; "
        "judge this run with the Perch that measured it, or measure again\n"
    )
    ended = perchctl("judge", loopback.root)
    assert (ended.code, ended.stderr) == (3, f"perchctl judge: {loopback.root}: {said}")
    verdict = json.loads((loopback.root / "verdict.json").read_text())
    assert (verdict["verdict"], verdict["coverage"]["measured"]) == ("INCONCLUSIVE", 0)
    (found,) = verdict["checks"]
    assert (found["id"], found["fault"]) == ("plan", "The run cannot be judged")
    assert found["evidence"] == ["raw/beta/agent.json"]
