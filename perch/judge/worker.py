"""Records of many flows: pieces of a plan, read by processes side by side.

Reading piece N gives four files in a folder: N.jsonl, its records, N.columns, their columns,
N.others, what of them is no column, and N.seen, a row for each flow. Pieces do not depend on the
number of processes, and neither do the outputs.

`python -m perch.judge.worker FOLDER FIRST STEP PARENT` reads the pieces FIRST, FIRST + STEP, ...
Piece N is a file N.rounds, and its readings are N.trail; a line of output says that it is read.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import msgspec
import polars as pl

from perch.errors import ExitCode, PerchError
from perch.judge import laws, parquet, seen
from perch.judge.host_lines import Part
from perch.judge.hosts import HostFacts
from perch.judge.raw import RawFiles
from perch.judge.records import FlowReader
from perch.judge.trail import Trail
from perch.model.figures import encode_lines
from perch.model.plan import Plan, Round, RoundLine
from perch.model.record import Record
from perch.plan.flows import Flows
from perch.terminal import progress

#: Flows from which a second process is worth its start of half a second.
MANY_FLOWS = 2000
#: Flows whose records are made together, and those of the smallest piece: they fit the processor's
#: caches until they are columns.
PIECE_FLOWS = 2048
#: Flows that are read together: what both ends left of more fits no processor's cache.
AT_ONCE = 256
#: Pieces of a large plan: few, as each hands back the counters of all its hosts, and enough for two
#: processes to end at the same time.
PIECES = 24
PROCESSES = 2

#: The signal that a process gets when its parent ends (prctl(2)).
PR_SET_PDEATHSIG = 1

#: A process that used no processor time for so long is stuck: it was stopped, or a file
#: system hangs. The kernel reports tasks after the same time (hung_task_timeout_secs). It is asked
#: each LOOK_S; one that was killed gets ENDING_S to end.
IDLE_S, LOOK_S, ENDING_S = 120.0, 1.0, 10.0

SOURCE = "source"


class Source(msgspec.Struct):
    """What any piece needs beside its rounds. `plan` has no rounds here; `root`: of the run."""

    root: str
    plan: Plan
    hosts: dict[str, HostFacts]


_pack = msgspec.msgpack.Encoder().encode
_source = msgspec.msgpack.Decoder(Source)
#: Rounds as their lines, and whether they are repeats.
_Packed = list[tuple[RoundLine, bool]]
#: Rounds, and where their lines lie in the files of each walk of a host.
_Task = tuple[_Packed, dict[str, Part]]
_task = msgspec.msgpack.Decoder(_Task)
_trail = msgspec.msgpack.Decoder(Trail)


def _pieces(rounds: Iterable[Round], size: int) -> Iterator[list[Round]]:
    """Whole rounds, some `size` flows at a time."""
    piece: list[Round] = []
    flows = 0
    for turn in rounds:
        piece.append(turn)
        flows += len(turn.flows)
        if flows >= size:
            yield piece
            piece, flows = [], 0
    if piece:
        yield piece


class _Reader:
    """Reads pieces of one run."""

    def __init__(self, source: Source) -> None:
        self._flows = Flows(source.plan)
        self._reader = FlowReader(source.plan, source.hosts, RawFiles(Path(source.root)))

    def unpacked(self, piece: _Packed) -> Iterator[Round]:
        for line, retry in piece:
            yield self._flows.round(line, retry=retry)

    def read(
        self, rounds: Iterable[Round], parts: Mapping[str, Part], folder: Path, number: int
    ) -> Trail:
        """Writes the four files of a piece, and returns the readings of its counters."""
        self._reader.begin(parts)
        frames: list[pl.DataFrame] = []
        others: list[pl.DataFrame] = []
        rows: list[seen.Seen] = []
        trail = Trail()
        with (folder / f"{number}.jsonl").open("wb") as file:
            for together in _pieces(rounds, PIECE_FLOWS):
                records: list[Record] = []
                for turns in _pieces(together, AT_ONCE):
                    for turn in turns:
                        self._flows.fill(turn.flows)
                    of_turns = self._reader.read(turns, trail)
                    records += of_turns.records
                    rows += of_turns.seen
                frames.append(laws.judged(records))
                others.append(parquet.others(records))
                file.write(encode_lines(records))
        whole = pl.concat(frames, how="diagonal", rechunk=True)
        for name, frame in (
            ("columns", whole),
            ("others", pl.concat(others)),
            ("seen", seen.frame(rows)),
        ):
            frame.write_ipc(folder / f"{number}.{name}")
        return trail


# ---- the process that judges ---------------------------------------------------------------------


def _ticks(pid: int) -> int:
    """Its processor time in the kernel's ticks (proc(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class _Worker:
    """A process that reads pieces; it ends with the `with` block."""

    def __init__(self, folder: Path, first: int) -> None:
        # -P: not a module of the folder in which perchctl was called
        command = [sys.executable, "-P", "-m", __name__, str(folder)]
        command += map(str, (first, PROCESSES, os.getpid()))
        package = str(Path(__file__).parents[2])
        environment = os.environ | {"PYTHONPATH": package, "POLARS_MAX_THREADS": "1"}
        self._errors = folder / f"{first}.errors"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,  # a line that Python kept would not be seen by select()
            )

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        # what waits for a dead file system does not even end when it is killed
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=ENDING_S)

    def _await(self, output: IO[bytes]) -> None:
        used, since = -1, time.monotonic()
        while not select.select([output], [], [], LOOK_S)[0]:
            now = _ticks(self._process.pid)
            if now != used:
                used, since = now, time.monotonic()
            elif time.monotonic() - since >= IDLE_S:
                raise PerchError(
                    ExitCode.NOT_WRITABLE,
                    f"a process that reads raw outputs did nothing for {IDLE_S:.0f} s",
                    remedy="see that it was not stopped and that the run's disk answers, and judge "
                    "again",
                )

    def read(self) -> None:
        """Waits until it has read its next piece. Raises PerchError where it failed or is stuck."""
        output = self._process.stdout
        if output is not None:
            self._await(output)
            if output.readline():
                return
        code = self._process.wait(ENDING_S)
        said = self._errors.read_text(encoding="utf-8", errors="replace").strip()
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            "a process that reads raw outputs failed: "
            + (said.rpartition("\n")[2] or f"it ended with {code}"),
            remedy="see that memory and disk have room, and judge again",
        )


def _packed(rounds: Iterable[Round]) -> _Packed:
    """Each round as its line; the times of a round are those of its flows."""
    packed = []
    for turn in rounds:
        if not turn.flows:
            continue
        first, keys = turn.flows[0], [flow.key for flow in turn.flows]
        packed.append((RoundLine(0, first.estimate_s, first.deadline_s, keys), first.retry))
    return packed


def _by_workers(
    source: Source,
    pieces: Sequence[Sequence[Round]],
    parts: Sequence[Mapping[str, Part]],
    folder: Path,
) -> Iterator[Trail]:
    (folder / SOURCE).write_bytes(_pack(source))
    count = len(pieces)
    for n, (piece, of_piece) in enumerate(zip(pieces, parts, strict=True)):
        (folder / f"{n}.rounds").write_bytes(_pack((_packed(piece), of_piece)))
    with ExitStack() as running:
        workers = [running.enter_context(_Worker(folder, first)) for first in range(PROCESSES)]
        done = 0
        running.enter_context(progress("outputs read", count, lambda: done))
        for n in range(count):
            workers[n % PROCESSES].read()
            done += 1
            trail = folder / f"{n}.trail"
            yield _trail.decode(trail.read_bytes())
            trail.unlink()


def pieces(rounds: Sequence[Round]) -> list[list[Round]]:
    """The pieces of a plan, in order."""
    flows = sum(len(turn.flows) for turn in rounds)
    size = max(flows // PIECES, PIECE_FLOWS) if flows >= MANY_FLOWS else PIECE_FLOWS
    return list(_pieces(rounds, size))


def read(
    source: Source,
    pieces: Sequence[Sequence[Round]],
    parts: Sequence[Mapping[str, Part]],
    folder: Path,
) -> Iterator[Trail]:
    """Reads each piece, in order, into files of `folder`; gives the readings of its counters.

    `source`: without rounds. `parts`: where the lines of each piece lie. Raises PerchError where a
    worker fails.
    """
    if sum(len(turn.flows) for piece in pieces for turn in piece) >= MANY_FLOWS:
        yield from _by_workers(source, pieces, parts, folder)
        return
    reader = _Reader(source)
    for n, (piece, of_piece) in enumerate(zip(pieces, parts, strict=True)):
        yield reader.read(piece, of_piece, folder, n)


# ---- a worker ------------------------------------------------------------------------------------


def main(folder: Path, first: int, step: int, parent: int) -> None:
    """Reads its share of the pieces. A worker does not outlive `parent`, which started it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the process that judges has ended")
    gc.disable()  # records form no cycles, and looking for some takes a tenth of the time
    reader = _Reader(_source.decode((folder / SOURCE).read_bytes()))
    n = first
    while (piece := folder / f"{n}.rounds").exists():
        rounds, parts = _task.decode(piece.read_bytes())
        piece.unlink()
        trail = reader.read(reader.unpacked(rounds), parts, folder, n)
        (folder / f"{n}.trail").write_bytes(_pack(trail))
        print(n, flush=True)
        n += step


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
