"""The devices' counters, as counters.json says which. Only read here, as text."""

from __future__ import annotations

import asyncio
import glob
import re
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from perch.agent.clock import Clock, seconds_text
from perch.agent.devices import Devices, first_line
from perch.agent.kernel_files import FILES, WITHIN_S
from perch.plan.counted import table

#: Seconds for which a reading is of this moment. The judge takes a flow's first one from a second
#: before it at most (CLOSE_S), and a slow host needs some of them to begin.
FRESH_S = 0.5

#: Seconds between two readings that follow a flow: the slowest counters known come in steps of a
#: second (bnxt_en), most within a hundredth of one.
FOLLOW_EVERY_S = 0.05

#: Lags after which a card that has written nothing since a flow is waited for no longer: the last
#: bytes may have been in what it wrote before the end.
LAGS = 2

_count = re.compile(r"[0-9]{1,20}")
_name = re.compile(r"[A-Za-z0-9_.-]+")

Values = dict[str, str]


class Answers(Protocol):
    async def answer(self, argv: list[str], limit_s: float = 5.0) -> str: ...


class Reading(NamedTuple):
    """What samples.jsonl has of a reading: names and places of its values, and the rest."""

    layout: dict[str, Any]
    line: dict[str, Any]


class _Source(NamedTuple):
    """An entry of the table, of one device: its files were looked for once."""

    of: str
    key: str
    entry: dict[str, Any]
    files: list[Path]
    command: list[str]


def _parse(text: str, entry: dict[str, Any], file: Path) -> Values:
    kind = entry["format"]
    if kind == "value":  # telemetry says "value@seconds.nanoseconds"
        value = text.partition("\n")[0].partition("@")[0]
        return {file.name: value} if _count.fullmatch(value) else {}
    if kind == "aer":  # errors by kind, their sum in the last line
        sums = re.findall(r"^TOTAL_ERR_\w+ ([0-9]{1,20})$", text, re.MULTILINE)
        return {file.name.replace("aer_dev_", "aer_"): sums[-1]} if sums else {}
    rows = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
    found = {}
    for names, values in zip(rows[::2], rows[1::2]):
        found.update({f"Tcp{name}": value for name, value in zip(names[1:], values[1:])})
    return {name: found[name] for name in entry["names"] if name in found}


def _spoken(text: str, entry: dict[str, Any]) -> Values:
    """Of `ethtool -S`; some drivers name two counters alike: the first one counts."""
    found: Values = {}
    for line in text.splitlines():
        name, _, value = (word.strip() for word in line.partition(":"))
        if re.fullmatch(entry["match"], name) and _count.fullmatch(value):
            found.setdefault(name, value)
    return found


class Counters:
    """Reads all devices that this host's flows concern."""

    def __init__(
        self, devices: Devices, answers: Answers, clock: Clock, root: Path = Path("/")
    ) -> None:
        self.devices = devices
        self._answers = answers
        self._clock = clock
        self._root = root
        self._sources = [
            source
            for entry in table()
            for key in self._keys(entry["of"])
            for source in self._found(entry, key)
        ]
        self.lag_s = max((self._lag_ms(one) for one in self._sources), default=0) / 1000
        self._late = [file for one in self._sources if self._writes_ms(one) for file in one.files]

    def _keys(self, of: str) -> list[str]:
        found = {
            "host": [""],
            "netdev": self.devices.netdevs,
            "rdma": list(self.devices.rdma),
            "cxi": list(self.devices.cxi),
        }
        return found[of]

    def _place(self, key: str, pattern: str) -> str:
        device, _, port = key.partition("/")
        named = pattern.format(name=glob.escape(key), device=glob.escape(device), port=port)
        return str(self._root / named.lstrip("/"))

    def _found(self, entry: dict[str, Any], key: str) -> list[_Source]:
        if "needs" in entry and not Path(self._place(key, entry["needs"])).exists():
            return []
        files = [
            Path(file)
            for pattern in entry.get("files", [])
            for file in sorted(glob.glob(self._place(key, pattern)))  # noqa: PTH207, from the root
            if _name.fullmatch(Path(file).name)
            and re.fullmatch(entry.get("match", ".*"), Path(file).name)
        ]
        command = [word.format(name=key) for word in entry.get("command", [])]
        return [_Source(entry["of"], key, entry, files, command)] if files or command else []

    def _lag_ms(self, source: _Source) -> int:
        """A device that says its own is believed, but where its driver is known to be later."""
        entry, lag = source.entry, int(source.entry["lag_ms"])
        if "lag_file" in entry:
            own = first_line(Path(self._place(source.key, entry["lag_file"])))
            if re.fullmatch(r"[0-9]{1,5}", own):
                lag = int(own)
        return max(lag, self._writes_ms(source))

    def _writes_ms(self, source: _Source) -> int:
        """Of a driver whose card writes its counters to the host from time to time, that time."""
        of_drivers: dict[str, int] = source.entry.get("lag_ms_of", {})
        return of_drivers.get(self._driver(source.key), 0) if of_drivers else 0

    def written(self) -> tuple[str | None, ...]:
        """What such cards have written by now; empty without one."""
        return tuple(FILES.texts(self._late)) if self._late else ()

    def _driver(self, key: str) -> str:
        """Of an RDMA device; "" where it has none."""
        try:
            link = Path(self._place(key, "/sys/class/infiniband/{device}/device/driver"))
            return link.readlink().name
        except OSError:
            return ""

    async def reading(self, settled: bool) -> Reading:
        wall, now = self._clock.wall_ns(), self._clock.monotonic_ns()
        found: dict[str, dict[str, Values]] = {
            of: {key: {} for key in self._keys(of)} for of in ("host", "netdev", "rdma", "cxi")
        }
        texts = iter(FILES.texts([file for source in self._sources for file in source.files]))
        for source in self._sources:
            values = found[source.of][source.key]
            said = await self._said(source.command) if source.command else ""
            spoken = [_spoken(said, source.entry)]
            spoken += [_parse(next(texts) or "", source.entry, file) for file in source.files]
            for one in spoken:
                for name, value in one.items():
                    values.setdefault(name, value)
        line = {
            "time_s": seconds_text(wall),
            "monotonic_ns": now,
            "settled": settled,
        }
        tables = [values for by_device in found.values() for values in by_device.values()]
        line["values"] = " ".join(value for values in tables for value in values.values())
        return Reading(self._layout(found), line)

    def _layout(self, found: dict[str, dict[str, Values]]) -> dict[str, Any]:
        """Which counter each value is of, in their order."""
        devices = self.devices
        return {
            "host": list(found["host"][""]),
            "netdev": {key: list(values) for key, values in found["netdev"].items()},
            "rdma": {
                key: {"netdev": devices.rdma[key], "counters": list(values)}
                for key, values in found["rdma"].items()
            },
            "cxi": {
                key: {"netdev": devices.cxi[key], "counters": list(values)}
                for key, values in found["cxi"].items()
            },
        }

    async def _said(self, command: list[str]) -> str:
        """A command that once hung is asked no more: the kernel may hold it for ever."""
        if " ".join(command) in FILES.left:
            return ""
        began = self._clock.monotonic()
        said = await self._answers.answer(command, WITHIN_S)
        if not said and self._clock.monotonic() - began >= WITHIN_S:
            FILES.leave_command(command, WITHIN_S)
        return said


class Writes(Protocol):
    def sample(self, reading: Reading) -> int: ...


class Readings:
    """A reading may end one flow and begin the next: where nothing was sent between them."""

    def __init__(self, counters: Counters, raw: Writes, clock: Clock, follow_s: float = 0) -> None:
        self.counters = counters
        self._raw = raw
        self._clock = clock
        self._follow_s = follow_s
        self._fresh: int = 0
        self._traffic = self._taken = float("-inf")
        self._begun: tuple[str | None, ...] | None = None

    def disturb(self) -> None:
        """A meeting or a command: traffic that the last reading lacks."""
        self._fresh = 0
        self._traffic = self._clock.monotonic()

    async def before(self) -> int:
        """The number of a reading."""
        self._begun = self.counters.written()
        is_fresh = self._fresh and self._clock.monotonic() - self._taken < FRESH_S
        return self._fresh if is_fresh else await self.take()

    async def after(self) -> int:
        """The same, once the slowest counter shows what has passed."""
        self._traffic = self._clock.monotonic()
        ended = self.counters.written()
        for _ in range(LAGS if self.counters.lag_s else 0):
            await asyncio.sleep(self.counters.lag_s)
            if not self._is_behind(ended):
                break
        return await self.take()

    def _is_behind(self, ended: tuple[str | None, ...]) -> bool:
        """Whether a card that counted in a flow has written nothing since its end.

        What a card writes after the end is all of the flow. One that counted nothing carried none.
        """
        return self._begun is not None and self._begun != ended == self.counters.written()

    async def followed(self) -> int:
        """The same where a walk follows its flows; else `after`.

        All readings of those seconds are kept; the first one that is settled counts.
        """
        if not self._follow_s:
            return await self.after()
        self._traffic = self._clock.monotonic()
        ended, lag_s = self.counters.written(), self.counters.lag_s
        after = 0
        while not after or self._clock.monotonic() - self._traffic < self._follow_s:
            is_behind = not after and self._is_behind(ended)
            number = await self.take()
            waited_s = self._taken - self._traffic
            if not after and waited_s >= (lag_s * LAGS if is_behind else lag_s):
                after = number
            passed = self._clock.monotonic() - self._taken
            await asyncio.sleep(max(0, FOLLOW_EVERY_S - passed))
        return after

    async def take(self) -> int:
        self._taken = self._clock.monotonic()
        settled = self._taken - self._traffic >= self.counters.lag_s
        self._fresh = self._raw.sample(await self.read(settled))
        return self._fresh

    async def read(self, settled: bool) -> Reading:
        return await self.counters.reading(settled)
