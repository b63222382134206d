# SPDX-License-Identifier: Apache-2.0
"""What all of host_setting's parts need: the host as they see it,
and the one kind of failure that they know.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

# bytes; what is read here is small, and a damaged host must not fill our memory
LONGEST_FILE = 1 << 20
# seconds; none of these commands takes more than a few, a hung driver must not hang us
COMMAND_TIMEOUT = 60


class Trouble(Exception):
    """Something that cannot be done: what and why, and what a person can do about it."""

    def __init__(self, what: str, remedy: str):
        super().__init__(f"{what}. To do: {remedy}")
        self.what = what


class System:
    """The host's files and commands. Tests put a made-up tree before every path (root)."""

    def __init__(self, root: str = ""):
        self.root = root.rstrip("/")

    def path(self, path: str) -> str:
        return self.root + path

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def read(self, path: str) -> str | None:
        """The text of a file without its last line end, None where it cannot be read."""
        try:
            with open(self.path(path), encoding="utf-8", errors="surrogateescape") as file:
                return file.read(LONGEST_FILE).rstrip("\n")
        except OSError:
            return None

    def command(self, *argv: str) -> tuple[int, str, str]:
        """Exit code, standard output, standard error; 127 where there is no such program."""
        if shutil.which(argv[0]) is None:
            return 127, "", f"{argv[0]} is not installed"
        environment = dict(os.environ, LC_ALL="C")
        try:
            done = subprocess.run(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=COMMAND_TIMEOUT,
                check=False,
                encoding="utf-8",
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            return 124, "", f"no answer within {COMMAND_TIMEOUT} s"
        return done.returncode, done.stdout, done.stderr.strip()


def sync_directory(path: str) -> None:
    """A new or removed name is on the disk only when its directory is."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(
    path: str, content: bytes, mode: int, owner: int | None = None, group: int | None = None
) -> None:
    """Replaces a file at once: a reader, or a power failure,
    finds the old bytes or the new ones.
    """
    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".perch-", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if (
                owner is not None
                and group is not None
                and (owner, group) != (os.geteuid(), os.getegid())
            ):
                os.fchown(file.fileno(), owner, group)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_directory(directory)
