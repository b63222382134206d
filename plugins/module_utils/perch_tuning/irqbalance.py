# SPDX-License-Identifier: Apache-2.0
"""irqbalance leaves the interrupts of the cards alone: its option --banmod for each driver."""

from __future__ import annotations

import base64
import os
import re
from typing import Iterator

from .base import System, Trouble
from .network import NET, running
from .values import Value, WholeFile

#: Its environment, of Debian, and of Red Hat and SUSE. The last line of a name counts
#: (systemd.exec(5), EnvironmentFile).
FILES = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance")
ARGUMENTS = re.compile(r"^IRQBALANCE_ARGS=(\"?)(.*?)\1[ \t]*$", re.MULTILINE)


class Environment(WholeFile):
    """The file; a daemon that runs begins again with it."""

    kind = "irqbalance"
    places = r"/etc/(default|sysconfig)/irqbalance"

    def write(self, value) -> None:
        super().write(value)
        if running(self.system, "irqbalance"):
            code, out, err = self.system.command("systemctl", "try-restart", "irqbalance.service")
            if code != 0:
                raise Trouble(
                    f"irqbalance runs on with its old options: {err or out.strip()}",
                    "start it again by hand",
                )


def banning(text: str, drivers: list[str]) -> str:
    """The text of the file, with an option for each driver that had none."""
    found = list(ARGUMENTS.finditer(text))
    words = found[-1][2].split() if found else []
    words += [word for word in (f"--banmod={name}" for name in drivers) if word not in words]
    line = f'IRQBALANCE_ARGS="{" ".join(words)}"'
    if found:
        return text[: found[-1].start()] + line + text[found[-1].end() :]
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n"


def wishes(system: System, netdevs: list[str]) -> Iterator[tuple[Value, object]]:
    path = next((path for path in FILES if system.exists(path)), None)
    if path is None:
        raise Trouble(
            f"there is neither {' nor '.join(FILES)}",
            "leave host_tune_irqbalance_ban at null here: irqbalance is not installed",
        )
    links = [system.path(f"{NET}/{netdev}/device/driver") for netdev in netdevs]
    found_links = filter(os.path.exists, links)
    drivers = sorted({os.path.basename(os.path.realpath(link)) for link in found_links})
    if drivers:
        file = Environment(system, path=path)
        found = file.read()
        old = base64.b64decode(found.get("content", "")).decode(errors="surrogateescape")
        new = banning(old, drivers).encode(errors="surrogateescape")
        yield file, found | {"content": base64.b64encode(new).decode()}
