# SPDX-License-Identifier: Apache-2.0
"""The old values: one file a setting, on the disk before the setting is changed for the first
time, never overwritten.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat

from .base import System, Trouble, sync_directory, write_whole

SCHEMA = "perch.host_tune_kept/1"
STATE = "/var/lib/perch/host_tune"
KEPT = STATE + "/kept"
MADE = STATE + "/made.json"  # directories that were not there before us
OURS = ["/var/lib/perch", STATE, KEPT]


class Entry:
    """One old value: of what (spec), for which variable (setting), and the value."""

    def __init__(self, name: str, data: dict):
        self.name = name
        self.setting = data["setting"]
        self.spec = data["spec"]
        self.old = data["old"]


class Kept:
    """The store.

    Nothing is made on the host before the first value is kept. One program at a time uses it.
    """

    def __init__(self, system: System):
        self.system = system
        self._lock = None

    def _lock_now(self) -> None:
        if self._lock is not None:
            return
        try:
            for directory in OURS[1:]:
                self._check_ours(directory)
            self._lock = os.open(
                self.system.path(KEPT), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            )
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(self._lock), os.stat(self.system.path(KEPT))):
                raise BlockingIOError  # a program that has just ended took its store away
        except BlockingIOError as error:
            self._unlock()
            raise Trouble(
                f"another program tunes this host or reverts it ({KEPT} is locked)",
                "try again when it is done",
            ) from error
        except OSError as error:
            self._unlock()
            raise Trouble(
                f"{KEPT} cannot be used: {error.strerror}",
                "look into it; run as root: ansible_become: true",
            ) from error

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_ours(self, directory: str) -> None:
        """What is kept is written back as root: only root may have put it there."""
        status = os.lstat(self.system.path(directory))
        owner = os.geteuid() if self.system.root else 0
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != owner
            or stat.S_IMODE(status.st_mode) != 0o700
        ):
            raise Trouble(
                f"{directory} is not a directory of root's own with mode 0700, "
                "so what is kept in it is not trusted",
                "look into it and, if it is right, chown root and chmod 700 it",
            )

    def open(self) -> None:
        """Makes the store, and notes which of its directories were not there."""
        made = []
        try:
            for directory in OURS:
                if not self.system.exists(directory):
                    os.makedirs(
                        self.system.path(directory), 0o755 if directory == OURS[0] else 0o700
                    )
                    made.append(directory)
                    sync_directory(os.path.dirname(self.system.path(directory)))
            if made and not self.system.exists(MADE):
                write_whole(self.system.path(MADE), json.dumps(made).encode(), 0o600)
        except OSError as error:
            raise Trouble(
                f"old values cannot be kept in {KEPT}: {error.strerror}",
                "run as root: ansible_become: true",
            ) from error
        self._lock_now()

    def _names(self) -> list[str]:
        return [
            name
            for name in self.system.names(KEPT)
            if name.endswith(".json") and not name.startswith(".")
        ]

    def keep(self, setting: str, key: str, spec: dict, old: object) -> None:
        """Keeps a value, unless an older one of the same thing is there:
        the first is the host's own.
        """
        self.open()
        names = self._names()
        mark = hashlib.sha256(key.encode()).hexdigest()[:16]
        if any(name.endswith(f"-{mark}.json") for name in names):
            return
        last = max(
            (int(name.split("-")[0]) for name in names if name.split("-")[0].isdigit()), default=0
        )
        data = {"schema": SCHEMA, "setting": setting, "spec": spec, "old": old}
        path = f"{self.system.path(KEPT)}/{last + 1:06d}-{mark}.json"
        try:
            write_whole(path, (json.dumps(data, sort_keys=True) + "\n").encode(), 0o600)
        except OSError as error:
            raise Trouble(
                f"the old value of {key} cannot be kept in {KEPT}: {error.strerror}",
                "make room there",
            ) from error

    def entries(self) -> tuple[list[Entry], list[Trouble]]:
        """All of them, the newest first, and what could not be read."""
        entries, troubles = [], []
        if self.system.exists(KEPT):
            self._lock_now()
        for name in reversed(self._names()):
            try:
                data = json.loads(self.system.read(f"{KEPT}/{name}") or "")
                if data["schema"] != SCHEMA:
                    raise ValueError(f"its schema is {data['schema']}")
                entries.append(Entry(name, data))
            except (ValueError, KeyError, TypeError) as error:
                troubles.append(
                    Trouble(
                        f"{KEPT}/{name} holds no kept value ({error})",
                        "look into it, and remove it by hand",
                    )
                )
        return entries, troubles

    def forget(self, entry: Entry) -> None:
        os.unlink(self.system.path(f"{KEPT}/{entry.name}"))
        sync_directory(self.system.path(KEPT))

    def close(self) -> None:
        """Where nothing is kept, or no more: takes away the store itself,
        and the directories that were made for it.
        """
        directory = self.system.path(KEPT)
        if not os.path.isdir(directory):
            return
        for name in os.listdir(directory):
            if name.startswith(".perch-"):  # what a program that was killed had begun to write
                os.unlink(f"{directory}/{name}")
        if self._names():
            return
        try:
            made = json.loads(self.system.read(MADE) or "[]")
        except ValueError:
            made = []
        try:
            os.rmdir(directory)
        except OSError as error:
            raise Trouble(
                f"{KEPT} cannot be taken away: {error.strerror}", "look into it"
            ) from error
        if self.system.exists(MADE):
            os.unlink(self.system.path(MADE))
        for path in (STATE, OURS[0]):
            if path in made or path == STATE:
                try:
                    os.rmdir(self.system.path(path))
                except OSError:
                    break  # somebody else's files are in it by now
