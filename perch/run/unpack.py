"""`perchctl unpack DIR HOST ARCHIVE`: takes a host's results into a run.

What a host sends is not trusted. Of the archive, a gzip of ustar, only regular files with the names
of perch.raw/2 count, each once; whatever else it holds, all of it is refused. Of a soak the lines
of the flows whose client the host is are among these names. tarfile would read
extended headers of any size, so headers are read here.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import glob
import gzip
import os
import shutil
import stat
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from perch.errors import ExitCode, PerchError
from perch.model.folder import existing

if TYPE_CHECKING:
    from perch.model.share import Share

#: perch.raw/2, in the order in which they take their places: flows.jsonl last, as it says that
#: there are results.
NAMES = ("agent.log", "environment.json", "samples.jsonl", "flows.jsonl")

#: Bytes of an end of a flow: its outputs, of which an agent keeps 1 MiB and 64 KiB, escaped as
#: JSON, and two readings of counters.
FLOW_BYTES = 2 * 2**20
#: How often the bytes that the plan has for lines and samples of a soak, which are twice the
#: largest that was seen (perch/plan/soak.py): a flow that fails all the time has more.
SOAK_TIMES = 4
#: Bytes of all the rest: environment, and agent.log with what `perch serve` said.
OTHER_BYTES = 64 * 2**20

#: ustar: blocks of 512 bytes, written 20 at a time.
BLOCK, RECORD = 512, 20 * 512
#: What is copied at a time.
PART = 2**20

#: What a wrong archive raises.
_UNREADABLE = (EOFError, gzip.BadGzipFile, zlib.error)


class _RefusedError(Exception):
    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self._remedy = remedy

    def of(self, archive: Path) -> PerchError:
        what = f"the archive is refused, nothing is unpacked: {self}"
        return PerchError(ExitCode.INCONCLUSIVE, what, file=archive, remedy=self._remedy)


class Member(NamedTuple):
    name: str
    size: int


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Puts the results that a host's agent packed into DIR/raw/HOST, and then removes\n"
        "ARCHIVE. Files of other names, links, and more bytes than expected are refused; then\n"
        "nothing is unpacked, and ARCHIVE stays."
    )
    parser.epilog = "Exit: 0 unpacked, 2 usage, 3 refused, 6 not writable."
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")
    parser.add_argument("host", metavar="HOST", help="a host of its plan")
    parser.add_argument("archive", metavar="ARCHIVE", type=Path, help="the archive of its results")
    parser.add_argument(
        "--retry", action="store_true", help="of repeated flows, into DIR/raw/HOST/retry"
    )
    parser.add_argument(
        "--most-bytes",
        metavar="N",
        type=_bytes,
        default=0,
        help="refuse more bytes than N; 0, the default: 2 MiB a flow of the host, and 64 MiB",
    )


def _bytes(given: str) -> int:
    if not given.isdecimal():
        raise argparse.ArgumentTypeError(f"'{given}' is not a number of bytes")
    return int(given)


def command(args: argparse.Namespace) -> int:
    """Unpacks the results. What is refused may be the only copy, and stays."""
    run = existing(args.run)
    share = share_of(run, args.host, retry=args.retry)
    most = args.most_bytes or expected(share)
    folder = run / "raw" / args.host / ("retry" if args.retry else "")
    with working(run, args.host) as work:
        unpack(args.archive, work, folder, most, soaking(share))
    args.archive.unlink(missing_ok=True)
    return ExitCode.PASS


@contextlib.contextmanager
def working(run: Path, host: str) -> Iterator[Path]:
    """A folder outside of raw/, which is sealed. Those that killed processes left are removed."""
    own = run / f".unpack-{host}.{os.getpid()}"
    for one in run.glob(f".unpack-{glob.escape(host)}.*"):
        process = one.name.rpartition(".")[2]
        if one == own or not Path("/proc", process).exists():
            shutil.rmtree(one)
    own.mkdir()
    try:
        yield own
    finally:
        shutil.rmtree(own)


def share_of(run: Path, host: str, *, retry: bool) -> Share:
    """Raises PerchError."""
    import msgspec

    from perch.model.share import Share
    from perch.plan.share import FOLDER, RETRY_FOLDER

    file = run / (RETRY_FOLDER if retry else FOLDER) / f"{host}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Share)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PerchError(ExitCode.INCONCLUSIVE, f"it cannot be read ({error})", file=file) from None


def expected(share: Share) -> int:
    """Bytes of a host's results, at most, as its share of the plan has them."""
    flows = FLOW_BYTES * sum(len(one.flows) for one in share.rounds)
    soak = share.soak.space_bytes.get(share.host, 0) if share.soak else 0
    return OTHER_BYTES + flows + SOAK_TIMES * soak


def soaking(share: Share) -> list[str]:
    """The files of a soak's flows."""
    own = [one for turn in share.rounds for one in turn.flows if one.client == share.host]
    ids = (f"{one.test}/{one.client}/{one.server}/{one.rail}/{one.repeat}" for one in own)
    return [f"flows/{one}/client.soak" for one in ids] if share.soak else []


def unpack(archive: Path, work: Path, folder: Path, most: int, soak: Sequence[str] = ()) -> None:
    """All files of an archive, or none.

    work: an empty folder of the same file system. most: bytes. soak: names of a soak's.

    Raises:
        PerchError: it is refused.
    """
    names = (*soak, *NAMES)
    with _opened(archive) as file, gzip.open(file, "rb") as stream:
        try:
            _extract(stream, work, most, names)
        except _RefusedError as refused:
            raise refused.of(archive) from None
        except _UNREADABLE as error:
            raise _RefusedError(f"it cannot be read: {error}").of(archive) from None
    _make(folder)
    for name in names:
        if (work / name).exists():
            _make((folder / name).parent, folder)
            (work / name).replace(folder / name)


def _opened(archive: Path) -> BinaryIO:
    """Never waits for a pipe, and reads no device."""
    try:
        file = os.open(archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        why = "there is no such file" if error.errno == errno.ENOENT else f"{error.strerror}"
        raise PerchError(ExitCode.USAGE, why, file=archive) from None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise PerchError(ExitCode.USAGE, "it is not a regular file", file=archive)


def _make(folder: Path, within: Path | None = None) -> None:
    """With those above it that lie within the other; whatever the umask."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in (folder, *folder.parents):
        if within is not None and one == within:
            return
        one.chmod(0o755)
        if within is None:
            return


def _extract(stream: gzip.GzipFile, work: Path, most: int, names: Sequence[str]) -> None:
    left = set(names)
    while (member := _member(_read(stream, BLOCK))) is not None:
        if member.name not in left:
            known = "is there twice" if member.name in names else "is no file of perch.raw/2"
            raise _RefusedError(f"{member.name[:100]!r} {known}")
        left.remove(member.name)
        most -= member.size
        if most < 0:
            raise _RefusedError(
                f"{member.name} has {member.size} bytes, {-most} too many",
                "raise --most-bytes (agent_most_bytes) if they are right",
            )
        _copy(stream, member.size, work / member.name)
        _read(stream, -member.size % BLOCK)
    if any(stream.read(RECORD)) or stream.read(1):
        raise _RefusedError("something follows its end")


def _copy(stream: gzip.GzipFile, size: int, path: Path) -> None:
    """With modes of our own, not those of the archive."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        os.fchmod(target.fileno(), 0o644)
        while size:
            part = _read(stream, min(size, PART))
            target.write(part)
            size -= len(part)


def _read(stream: gzip.GzipFile, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError("it ends early")
    return found


def _member(block: bytes) -> Member | None:
    """A header of ustar; None at the end's block of zeros. Raises PerchError."""
    if not any(block):
        return None
    parts = (block[345:500].rstrip(b"\0"), block[:100].rstrip(b"\0"))
    name = b"/".join(filter(None, parts)).decode(errors="backslashreplace")
    total = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])  # its own field counts as blanks
    if block[257:263] != b"ustar\0" or _octal(block[148:156]) != total:
        raise _RefusedError("it holds a header that is not of ustar")
    if block[156:157] != b"0":
        raise _RefusedError(f"{name!r} is not a regular file")
    return Member(name, _octal(block[124:136]))


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not digits or digits.strip(b"01234567"):
        raise _RefusedError("it holds a header that is not of ustar")
    return int(digits, 8)
