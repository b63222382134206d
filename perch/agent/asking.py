"""The agent's commands that ask: poll, status, stop and pack.

The controller asks while hosts measure, so these load neither asyncio nor the rest of the agent: a
third of the time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import Any

from perch.agent.clock import KILL_AFTER, boot_id
from perch.agent.errors import AgentError, Exit
from perch.agent.files import end_of, write_whole

#: All that is fetched of a host's folder.
FILES = ("flows.jsonl", "samples.jsonl", "environment.json", "agent.log")

#: Where an archive goes that has no room beside the results.
OTHER_FOLDERS = ("/var/tmp", "/tmp", "/dev/shm")

#: What a file in an archive has less than: eleven octal digits (ustar(5)).
MEMBER_BYTES = 8**11

#: Places in what `stat_of` gives (proc_pid_stat(5), fields 22 and 24).
START, RESIDENT_PAGES = 19, 21

#: What a stop leaves for the agent to say: control/reason.
STOPPED = "stopped by the controller"


def poll(out: Path, offset: int) -> Exit:
    """For the controller: renews the lease, prints "alive" or "gone" and new progress."""
    found = running(out)
    if found is None:
        print("gone", flush=True)
    else:
        os.close(found)
        lease = out / "control" / "lease"
        try:
            os.utime(lease)
        except OSError as error:
            words = f"cannot renew the lease {lease}: {error.strerror}"
            raise AgentError(Exit.HOST, words) from None
        print("alive", flush=True)
    with contextlib.suppress(OSError), (out / "control" / "progress.jsonl").open("rb") as progress:
        progress.seek(offset)
        os.write(sys.stdout.fileno(), progress.read())
    return Exit.WALKED


def status(out: Path) -> Exit:
    """One JSON object: state running, done, stopped or gone (ended without a last line)."""
    found = running(out)
    if found is not None:
        os.close(found)
    print(json.dumps(ended(out) or {"state": "gone" if found is None else "running"}))
    return Exit.WALKED


def ended(out: Path) -> dict[str, Any]:
    """How it ended, as the last line says; {} where there is none."""
    last: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        last = json.loads(last_lines(out / "flows.jsonl")[-1])
    if last.get("kind") != "end":
        return {}
    return {key: last[key] for key in ("state", "flows_done", "message") if key in last}


def stop(out: Path) -> Exit:
    """Prints "stopped" where one ran."""
    if end(running(out), out / "control"):
        print("stopped")
    return Exit.WALKED


def end(found: int | None, control: Path, within_s: float = 3 * KILL_AFTER) -> bool:
    """Ends the agent of a pidfd, which it closes; None: it does not run.

    It is told why, and killed after so many seconds: for a run the last grace of its children.
    """
    if found is None:
        return False
    with contextlib.suppress(AgentError):  # a full disk ends no stop
        write_whole(control / "reason", f"{STOPPED}\n".encode())
    for numbers in ((signal.SIGTERM, signal.SIGCONT), (signal.SIGKILL,)):
        for number in numbers:  # a stopped process handles SIGTERM only when it goes on
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(found, number)
        if select.select([found], [], [], within_s)[0]:
            break
    os.close(found)
    return True


def pack(out: Path, ends: bool = True) -> Exit:
    """Prints an archive for the controller, which takes these names only; "" where none was left.

    ends: the agent first. What goes on is packed as it is.

    Raises:
        AgentError: it cannot be written.
    """
    if ends:
        end(running(out), out / "control")
    found = [name for name in FILES if (out / name).is_file()]
    found += sorted(str(one.relative_to(out)) for one in out.glob("flows/**/client.soak"))
    if not found:
        return Exit.WALKED
    target = out.with_name(out.name + ".tar.gz")
    try:
        _archive(target, out, found)
    except OSError as error:
        print(_elsewhere(out, found, f"cannot write {target}: {error.strerror}"))
    else:
        print(target)
    return Exit.WALKED


def _elsewhere(out: Path, found: list[str], why: str) -> Path:
    """The disk that holds the results is often full of them. Raises AgentError: all are."""
    import tempfile

    for folder in OTHER_FOLDERS:
        with contextlib.suppress(OSError):
            held, name = tempfile.mkstemp(".tar.gz", "perch-", folder)
            os.close(held)
            _archive(Path(name), out, found)
            return Path(name)
    remedy = f"free space there, then `perch-agent pack --out {out}` packs the results"
    raise AgentError(Exit.INTERNAL, f"{why}; {remedy}")


def _archive(target: Path, out: Path, found: list[str]) -> None:
    """Owners and times are ours. Raises OSError, and AgentError: ustar has no room for a file."""
    import tarfile  # of all that asks only this needs it

    try:
        # a level above costs more time than the transfer saves
        with tarfile.open(target, "w:gz", format=tarfile.USTAR_FORMAT, compresslevel=1) as archive:
            for name in found:
                member = tarfile.TarInfo(name)
                with (out / name).open("rb") as content:
                    member.size = os.fstat(content.fileno()).st_size
                    try:
                        archive.addfile(member, content)
                    except ValueError as error:
                        why = "it has 8 GiB or more" if member.size >= MEMBER_BYTES else error
                        words = f"cannot pack {out / name}: {why}; fetch it by hand"
                        raise AgentError(Exit.INTERNAL, words) from None
    except (OSError, AgentError):
        target.unlink(missing_ok=True)
        raise


def mark() -> str:
    """What `alive` knows this process by."""
    return f"{os.getpid()} {identity(os.getpid())}"


def identity(pid: int) -> str:
    """Its start and the boot: with these no number is used again."""
    stat = stat_of(pid)
    return f"{stat[START]}@{boot_id()}" if stat else ""


def stat_of(pid: int) -> list[str]:
    """/proc/N/stat from the state on; nothing of a process that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    stat = text.rpartition(") ")[2].split()
    return [] if stat[0] in "ZX" else stat


def running(out: Path) -> int | None:
    """A pidfd of the agent, to be closed; None where it has ended."""
    try:
        return alive((out / "control" / "pid").read_text())
    except OSError:
        return None


def alive(marked: str) -> int | None:
    """A pidfd of the process that was marked so, to be closed; None where it has ended."""
    try:
        pid, started = marked.split()
        found = os.pidfd_open(int(pid))
    except (OSError, ValueError):
        return None
    if identity(int(pid)) == started:
        return found
    os.close(found)
    return None


def last_lines(path: Path) -> list[str]:
    return end_of(path).decode(errors="replace").splitlines()
