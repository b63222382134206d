"""What the rest of Perch knows of a measuring tool, and what a tool's reader is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perch.model.part import Part
from perch.model.plan import Flow
from perch.tools.command import Command

#: The marks of both ends, such as their ports: the own one, and the peer's.
Connection = tuple[bytes, bytes]

#: Perch's exit codes that name a fault of a measurement (docs/definitions.md).
HOST_CANNOT, PEER_LOST, UNUSABLE = 3, 4, 6


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a flow's client printed. `versions`: of its host's tools, by `Tool.version_key`."""

    flow: Flow
    stdout: bytes = b""
    stderr: bytes = b""
    versions: dict[str, Any] = field(default_factory=dict)

    def version(self, key: str) -> str | None:
        """The version of a tool on the client's host, where the host tells it."""
        version = self.versions.get(key)
        return version if isinstance(version, str) and version else None


def shell_exit_code(exit_status: int, words: str) -> int:
    """Perch's code for a tool whose exit status tells nothing.

    126 and 127 are the shell's words for "not executable" and "not found".
    """
    return HOST_CANNOT if exit_status in (126, 127) else UNUSABLE


@dataclass(frozen=True, slots=True)
class Tool:
    """A measuring tool. One file of perch/tools holds it as `TOOL`.

    read: an output of a flow's client -> its results, in the order printed; it never raises.
    read_many: what many clients wrote to standard output -> the same of each, in less time; None
        where nothing is gained.
    exit_code_of: (exit status above 0, last words on standard error) -> Perch's exit code.
    is_tcp: it measures over TCP sockets, whatever its options.
    default_port: of its server; None where the tool takes the host's own port.
    version_key: its key in `versions` of environment.json; None where its output tells its version.
    server_outlives_client: its server may be ended by a signal of the agent (TERM).
    connections: an output of either end -> the connections that it names, each as the marks of the
        own end and of the peer's; None where the tool names none.
    contradiction: a result and its server's output -> why the server tells another one, or None.
    commands: of each kind of test (latency, bandwidth, transfer) that suites may ask it for.
    """

    name: str
    read: Callable[[ToolOutput], list[Part]]
    read_many: Callable[[Sequence[bytes]], list[list[Part]]] | None = None
    exit_code_of: Callable[[int, str], int] = shell_exit_code
    is_tcp: bool = False
    default_port: int | None = None
    version_key: str | None = None
    server_outlives_client: bool = True
    connections: Callable[[bytes], frozenset[Connection]] | None = None
    contradiction: Callable[[Part, bytes], str | None] | None = None
    commands: Mapping[str, Command] = field(default_factory=dict)
