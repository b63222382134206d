"""All meetings of an agent, through one `perch meet --lines`: a wait costs no process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import NamedTuple

from perch.agent.children import Children, Process, end
from perch.agent.errors import Exit


class Place(NamedTuple):
    """A host's `perch serve`."""

    address: str
    port: int


class Answer(NamedTuple):
    """`exit` 0: all parties came. `same_machine`: the place's kernel is this host's."""

    exit: int
    message: str
    same_machine: bool = False


class Meetings:
    """Asks for meetings. The process starts with the first one, and again where it has ended."""

    def __init__(self, children: Children, engine: str, log: int) -> None:
        self._children = children
        self._argv = [engine, "meet", "--lines"]
        self._log = log
        self._process: Process | None = None
        self._requests = self._answers = -1
        self._rest = b""
        self._number = 0
        self._asked: dict[int, asyncio.Future[Answer]] = {}

    def ask(
        self, place: Place, name: str, timeout_s: float, parties: int = 2
    ) -> asyncio.Future[Answer]:
        """Takes part in a meeting. Cancelling what it gives takes no part any more."""
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        try:
            if self._process is None:
                self._start()
            self._number += 1
            self._asked[self._number] = asked
            self._tell(
                id=self._number,
                host=place.address,
                port=place.port,
                flow=name,
                parties=parties,
                timeout_ms=max(1, round(timeout_s * 1000)),
            )
        except OSError as error:
            self._asked.pop(self._number, None)
            asked.set_result(Answer(Exit.INTERNAL, f"cannot ask for a meeting: {error.strerror}"))
            return asked
        number = self._number
        asked.add_done_callback(lambda future: self._forget(number, future))
        return asked

    async def close(self) -> None:
        """Ends the process, stopped or not; all who have asked are told."""
        if self._process is not None:
            await end(self._process)

    def _forget(self, number: int, future: asyncio.Future[Answer]) -> None:
        if self._asked.pop(number, None) is not None and future.cancelled() and self._process:
            with contextlib.suppress(OSError):
                self._tell(cancel=number)

    def _start(self) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        try:
            process = self._children.start(self._argv, requests, answers, self._log)
        except OSError:
            os.close(self._requests)
            os.close(self._answers)
            raise
        finally:
            os.close(requests)
            os.close(answers)
        self._process = process
        self._rest = b""
        os.set_blocking(self._requests, False)  # a stopped process must not stop the agent
        asyncio.get_running_loop().add_reader(self._answers, self._read)
        process.ended.add_done_callback(lambda _: self._lost())

    def _tell(self, **request: object) -> None:
        os.write(self._requests, json.dumps(request).encode() + b"\n")

    def _read(self) -> None:
        *lines, self._rest = (self._rest + os.read(self._answers, 65536)).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            asked = self._asked.get(answer.get("id"))
            if asked is not None and not asked.done():
                same = answer.get("same_machine", False)
                asked.set_result(Answer(answer["exit"], answer.get("message", ""), same))
        if not lines and not self._rest:
            asyncio.get_running_loop().remove_reader(self._answers)  # its end

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self._answers)
        os.close(self._answers)
        os.close(self._requests)
        self._process = None
        for asked in list(self._asked.values()):
            if not asked.done():
                asked.set_result(Answer(Exit.INTERNAL, "perch meet --lines ended"))
