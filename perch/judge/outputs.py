"""What both agents left of a flow of a run."""

from __future__ import annotations

from collections.abc import Mapping

from perch.judge.host_lines import Lines, Part
from perch.judge.hosts import HostFacts
from perch.judge.raw import RawFiles, TooLargeError, walk_folder
from perch.model.plan import Flow
from perch.model.raw import Agent, FlowFiles
from perch.model.raw_lines import FlowLine


class UnusableError(Exception):
    """A host's flows.jsonl that is of no known host, run or format; the message says why."""


#: What agents keep of standard error at least, of one that they cut (perch.agent.children).
STDERR_BYTES = 64 * 1024


class Outputs:
    """Reads the outputs of some flows. `parts`: where their lines lie, by a walk's folder."""

    def __init__(
        self, files: RawFiles, hosts: Mapping[str, HostFacts], parts: Mapping[str, Part]
    ) -> None:
        self._files, self._hosts, self._parts = files, hosts, parts
        self._read: dict[str, Lines | None] = {}

    def of(self, flow: Flow) -> FlowFiles:
        """Raises TooLargeError of an output that is not whole, UnusableError of no known run."""
        raw = FlowFiles(None, None, b"", b"")
        client = self._lines(flow.client, retry=flow.retry)
        if client and (line := client.of(flow.id, "client")):
            raw.client = client.end(line)
            raw.stdout, raw.stderr = _stdout(line), _stderr(line)
        server = self._lines(flow.server, retry=flow.retry)
        if server and (line := server.of(flow.id, "server")):
            raw.server = server.end(line)
            raw.server_stdout, raw.server_stderr = _stdout(line), _stderr(line)
        return raw

    def _lines(self, host: str, *, retry: bool) -> Lines | None:
        folder = walk_folder(host, retry=retry)
        if folder not in self._read:
            part, facts = self._parts.get(folder), self._hosts[host]
            agent = facts.walker(retry=retry) or Agent()
            if agent.fault and agent.run is None:
                raise UnusableError(agent.fault)
            self._read[folder] = part and Lines(
                self._files, folder, part, agent, facts.address_interface
            )
        return self._read[folder]


def _stdout(line: FlowLine) -> bytes:
    """An output. Raises TooLargeError where only its beginning was kept."""
    written = line.stdout_bytes
    if written is not None:
        raise TooLargeError(f"{line.role}'s stdout has {written} bytes, of which 1 MiB were kept")
    return line.stdout.encode()


def _stderr(line: FlowLine) -> bytes:
    """Raises TooLargeError of one that lacks what its agent had kept."""
    kept, written = line.stderr.encode(), line.stderr_bytes
    if written is not None and len(kept) < STDERR_BYTES:
        raise TooLargeError(
            f"{line.role}'s stderr has {written} bytes, of which only {len(kept)} are there"
        )
    return kept
