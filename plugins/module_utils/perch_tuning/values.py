# SPDX-License-Identifier: Apache-2.0
"""The kinds of things that can be read, changed and put back.

A spec, as JSON, is enough to make one again.
"""

from __future__ import annotations

import base64
import errno
import os
import re

from .base import LONGEST_FILE, System, Trouble, sync_directory, write_whole
from .network import interrupts

KINDS: dict[str, type] = {}


def cpus(text: str) -> set[int]:
    """'0-2,5' as numbers"""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


class Value:
    """One thing of the host. `netdev` is the interface that a change of it would touch, if any."""

    kind = ""
    fields: tuple[str, ...] = ()
    netdev: str | None = None
    places = ""  # a regular expression: the paths that this kind may write

    def __init__(self, system: System, **spec):
        self.system = system
        for field in self.fields:
            setattr(self, field, spec.get(field))

    def __init_subclass__(cls):
        KINDS[cls.kind] = cls

    def spec(self) -> dict:
        return {"kind": self.kind} | {field: getattr(self, field) for field in self.fields}

    def key(self) -> str:
        return " ".join([self.kind, *(str(getattr(self, field)) for field in self.fields)])

    def title(self) -> str:
        return self.key()

    def read(self) -> object:
        raise NotImplementedError

    def write(self, value) -> None:
        raise NotImplementedError

    def restore(self, value) -> None:
        """Writes what was there before the first change."""
        self.write(value)

    def agrees(self, found, wanted) -> bool:
        return found == wanted

    def show(self, value) -> str:
        return str(value)

    def boot(self, value) -> list[list[str]]:
        """The lines that apply it at boot (boot.py); none for what lasts by itself."""
        return []

    def shortfall(self, found, wanted) -> Trouble:
        """What to say when the host did not take a value that it was given."""
        return Trouble(
            f"{self.title()} was set to {self.show(wanted)}, and is {self.show(found)}",
            "look into the kernel's log (dmesg); the driver or another program holds it",
        )


def from_spec(system: System, spec: dict) -> Value:
    if spec.get("kind") not in KINDS:
        raise Trouble(
            f"a value of the kind {spec.get('kind')} was kept, which this version does not know",
            "revert with the version that tuned",
        )
    value = KINDS[spec["kind"]](
        system, **{name: value for name, value in spec.items() if name != "kind"}
    )
    path = getattr(value, "path", "") if "path" in value.fields else ""
    words = [
        str(getattr(value, field))
        for field in ("device", "netdev", "port", "size_kb")
        if field in value.fields
    ]
    if (
        ".." in path.split("/")
        or not re.fullmatch(value.places, path)
        or any("/" in word or word == ".." for word in words)
    ):
        raise Trouble(
            f"a kept value names {path or ' '.join(words)}, "
            f"which is not a place of a {value.kind}: the file was edited",
            "look into it, and remove it by hand",
        )
    return value


def refusal(path: str, value: str, error: OSError) -> Trouble:
    """A file of the kernel that could not be read or written, in words."""
    name = f"{path} cannot be set to {value}" if value else f"{path} cannot be read"
    if error.errno == errno.ENOENT:
        if not path.startswith(("/sys/", "/proc/")):
            return Trouble(
                f"{path} cannot be made: its directory is missing",
                "install the program that reads it, or leave the variable at null",
            )
        return Trouble(
            f"{path} does not exist",
            "this kernel, driver or device does not have it: leave its variable at null here",
        )
    if error.errno == errno.EROFS:
        return Trouble(f"{name}: it is read-only", "in a container the host itself must be tuned")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Trouble(
            f"{name}: not permitted",
            "run as root (ansible_become: true); in a container tune the host itself",
        )
    return Trouble(f"{name}: {error.strerror}", "choose a value that it takes")


class Text(Value):
    """A file of /sys or /proc that holds one value.

    Of '[always] madvise never' the value is the chosen word.
    """

    kind = "text"
    fields = ("path", "netdev")
    places = r"/sys/.+|/proc/sys/.+"

    def __init__(self, system: System, **spec):
        super().__init__(system, **spec)
        # the path itself says whose it is, whatever else was said
        found = re.match(
            r"/sys/(?:.+/)?net/([^/]+)/|/proc/sys/net/[^/]+/(?:conf|neigh)/([^/]+)/", str(self.path)
        )
        named = found and (found.group(1) or found.group(2))
        if named and named not in ("all", "default"):
            self.netdev = named

    def key(self) -> str:
        return f"text {self.path}"

    def title(self) -> str:
        return self.path

    def read(self) -> str:
        try:
            with open(self.system.path(self.path), encoding="utf-8") as file:
                text = file.read(LONGEST_FILE).strip("\n")
        except UnicodeDecodeError as error:
            raise Trouble(
                f"{self.path} does not hold text", "leave its variable at null here"
            ) from error
        except OSError as error:
            raise refusal(self.path, "", error) from error
        chosen = re.search(r"(?:^|\s)\[(\S+)\](?:\s|$)", text)
        return chosen.group(1) if chosen else text

    def write(self, value) -> None:
        try:
            descriptor = os.open(self.system.path(self.path), os.O_WRONLY | os.O_TRUNC)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(f"{value}\n")
        except OSError as error:
            raise self._explained(str(value), error) from error

    def _explained(self, value: str, error: OSError) -> Trouble:
        if error.errno == errno.EINVAL:
            choice = self.system.read(os.path.dirname(self.path) + "/scaling_available_governors")
            if self.path.endswith("/scaling_governor") and choice:
                return Trouble(
                    f"{self.path} does not take {value}", f"choose one of: {choice.strip()}"
                )
        return refusal(self.path, value, error)

    def agrees(self, found, wanted) -> bool:
        return str(found).split() == str(wanted).split()

    def boot(self, value) -> list[list[str]]:
        return [] if self.path.startswith("/proc/sys/") else [["write", self.path, str(value)]]


class WholeFile(Value):
    """A file with its bytes, owner and mode, a link, or nothing."""

    kind = "file"
    fields = ("path",)
    places = (
        r"/etc/(sysctl\.d|security/limits\.d|perch|perch/host_tune\.d)/[^/]+"
        r"|/etc/systemd/system/(multi-user\.target\.wants/)?perch-tune\.service"
    )

    def title(self) -> str:
        return self.path

    @staticmethod
    def holding(text: str, mode: int = 0o644) -> dict:
        return {
            "content": base64.b64encode(text.encode()).decode(),
            "mode": mode,
            "owner": os.geteuid(),
            "group": os.getegid(),
        }

    def read(self) -> dict:
        path = self.system.path(self.path)
        try:
            if os.path.islink(path):
                return {"link": os.readlink(path)}
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                content = base64.b64encode(file.read()).decode()
            return {
                "content": content,
                "mode": status.st_mode & 0o7777,
                "owner": status.st_uid,
                "group": status.st_gid,
            }
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise refusal(self.path, "", error) from error

    def write(self, value) -> None:
        path = self.system.path(self.path)
        try:
            if "content" in value:
                write_whole(
                    path,
                    base64.b64decode(value["content"]),
                    value["mode"],
                    value["owner"],
                    value["group"],
                )
                return
            if os.path.lexists(path):
                os.unlink(path)
            if "link" in value:
                os.symlink(value["link"], path)
            sync_directory(os.path.dirname(path))
        except OSError as error:
            raise refusal(self.path, "its new content", error) from error

    def show(self, value) -> str:
        if "link" in value:
            return f"link to {value['link']}"
        if "content" not in value:
            return "(absent)"
        return base64.b64decode(value["content"]).decode(errors="replace")


class Directory(Value):
    """A directory that is there ('present') or not. One with other files in it is never removed."""

    kind = "directory"
    fields = ("path",)
    places = (
        r"/etc/(sysctl\.d|security/limits\.d|perch|perch/host_tune\.d"
        r"|systemd/system/multi-user\.target\.wants)"
    )

    def title(self) -> str:
        return self.path

    def read(self) -> str:
        return "present" if os.path.isdir(self.system.path(self.path)) else "absent"

    def write(self, value) -> None:
        path = self.system.path(self.path)
        try:
            if value == "present":
                os.mkdir(path, 0o755)
            elif not os.listdir(path):
                os.rmdir(path)
        except OSError as error:
            raise refusal(self.path, value, error) from error

    def agrees(self, found, wanted) -> bool:
        return found == wanted or (wanted == "absent" and bool(self.system.names(self.path)))


class HugePages(Value):
    """Reserved huge pages of one size: a count for each NUMA node,
    or one for the host (which the kernel spreads).
    """

    kind = "huge_pages"
    fields = ("size_kb",)

    @property
    def size(self) -> str:
        return "1 GiB" if self.size_kb == 1048576 else f"{self.size_kb // 1024} MiB"

    def title(self) -> str:
        return f"huge pages of {self.size}"

    def file(self, node: str) -> str:
        base = (
            f"/sys/devices/system/node/node{node}/hugepages" if node else "/sys/kernel/mm/hugepages"
        )
        return f"{base}/hugepages-{self.size_kb}kB/nr_hugepages"

    def read(self) -> dict:
        if not self.system.exists(self.file("")):
            raise Trouble(
                f"this machine has no huge pages of {self.size}",
                "leave the variable at null here (1 GiB needs the processor flag pdpe1gb, "
                "which virtual machines may hide)",
            )
        nodes = [
            name[4:]
            for name in self.system.names("/sys/devices/system/node")
            if re.fullmatch(r"node[0-9]+", name)
        ]
        nodes = [node for node in nodes if self.system.exists(self.file(node))]
        return {node: int(Text(self.system, path=self.file(node)).read()) for node in nodes or [""]}

    def write(self, value) -> None:
        if isinstance(value, int):
            value = {"": value}
        for node, count in value.items():
            Text(self.system, path=self.file(node)).write(count)

    def agrees(self, found, wanted) -> bool:
        if isinstance(wanted, int):
            return sum(found.values()) == wanted
        return all(found.get(node) == count for node, count in wanted.items())

    def show(self, value) -> str:
        if isinstance(value, int):
            return str(value)
        return ", ".join(
            f"{count} on node {node}" if node else str(count) for node, count in value.items()
        )

    def boot(self, value) -> list[list[str]]:
        value = {"": value} if isinstance(value, int) else value
        return [["write", self.file(node), str(count)] for node, count in value.items()]

    def shortfall(self, found, wanted) -> Trouble:
        asked = wanted if isinstance(wanted, int) else sum(wanted.values())
        given = sum(
            count for node, count in found.items() if isinstance(wanted, int) or node in wanted
        )
        if given > asked:
            return Trouble(
                f"{given} huge pages of {self.size} remain where {asked} were asked for",
                "end the programs that hold them, and try again",
            )
        size = "1G" if self.size_kb == 1048576 else f"{self.size_kb // 1024}M"
        return Trouble(
            f"the kernel gave {given} "
            f"of {asked} huge pages of {self.size} (what is there stays reserved until a revert)",
            "ask for fewer, or reserve them early, with kernel parameters: "
            f"hugepagesz={size} hugepages={asked}",
        )


class Irq(Value):
    """The processors of one interrupt of a NIC.

    After a reboot it may have another number, so its name finds it,
    and where several of the NIC have one name its place among them.
    """

    kind = "irq"
    fields = ("netdev", "name", "ordinal")

    def key(self) -> str:
        return f"irq {self.netdev} {self.name} {self.ordinal}"

    def title(self) -> str:
        more = f" ({self.ordinal + 1}. of the name)" if self.ordinal else ""
        return f"interrupt {self.name}{more} of {self.netdev}"

    def _file(self) -> str:
        numbers = [
            number for number, name in interrupts(self.system, self.netdev)[0] if name == self.name
        ]
        if not 0 <= self.ordinal < len(numbers):
            raise Trouble(
                f"there is no interrupt {self.name} of {self.netdev}",
                "bring its device and driver back as they were",
            )
        return f"/proc/irq/{numbers[self.ordinal]}/smp_affinity_list"

    def read(self) -> str:
        return Text(self.system, path=self._file()).read()

    def write(self, value) -> None:
        Text(self.system, path=self._file()).write(value)

    def agrees(self, found, wanted) -> bool:
        return cpus(found) == cpus(wanted)

    def boot(self, value) -> list[list[str]]:
        return [["irq", self.netdev, self.name, str(self.ordinal), str(value)]]


class Tuned(Value):
    """The profile of tuned, and whether tuned chose it (auto) or a person. None: tuned is off."""

    kind = "tuned"

    def title(self) -> str:
        return "tuned's profile"

    # "Current active profile: X" and "No current active profile." are the words of tuned-adm
    # (redhat-performance/tuned, tuned/admin/admin.py); its mode is a file.
    def read(self) -> dict:
        code, out, err = self.system.command("tuned-adm", "active")
        if code == 127:
            raise Trouble(
                "tuned-adm is not installed",
                "install tuned, or use host_tune_governor_provider: static",
            )
        found = re.search(r"^Current active profile: (.+)$", out, re.MULTILINE)
        if not found and "No current active profile" not in out + err:
            raise Trouble(f"tuned-adm active says: {(out + err).strip()}", "systemctl start tuned")
        mode = (self.system.read("/etc/tuned/profile_mode") or "manual").strip()
        return {"profile": found.group(1).strip() if found else None, "mode": mode}

    def write(self, value) -> None:
        argv = ["tuned-adm", "off"]
        if value["mode"] == "auto":
            argv = ["tuned-adm", "auto_profile"]
        elif value["profile"]:
            argv = ["tuned-adm", "profile", *value["profile"].split()]
        code, out, err = self.system.command(*argv)
        if code != 0:
            raise Trouble(
                f"{' '.join(argv)}: {err or out.strip()}", "`tuned-adm list` names the profiles"
            )

    def show(self, value) -> str:
        return f"{value['profile'] or 'off'} ({value['mode']})"
