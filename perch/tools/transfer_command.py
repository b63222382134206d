"""The engine's transfers (perch transfer). What it would refuse, `perch check` says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import Host, SuiteTest
from perch.tools import perch_command
from perch.tools.command import Command, Cost, Template, Word
from perch.tools.perch_command import drives_card, options

BACKENDS = ("verbs", "ofi", "cxi", "tcp")
OPS = ("write", "read")

#: Settings of a device that a command names once for all devices of an end, by backend.
SETTINGS: dict[str | None, tuple[str, ...]] = {
    "verbs": ("ib_port", "gid_index"), "cxi": ("svc_id", "vni"),
}  # fmt: skip

#: Bounds of engine/src/job.h: JOB_BATCH_MAX, JOB_DEVICES_MAX.
BATCH_MAX, DEVICES_MAX = 32768, 8

#: The engine's defaults, in batches.
WARMUP, ITERATIONS = 10, 100

#: What a transfer in a batch costs of what a lone message waits. MORI-IO's page: 11 us alone, 0.14
#: us in a batch of 32768, an eightieth; software gains less. Posted one by one they wait in part
#: for each other.
IN_A_BATCH, ONE_BY_ONE = 0.05, 0.2

#: Bytes a second that are read to be checked; every byte is read twice.
CHECKED_BYTES_S = 1e9

_batch = re.compile("([0-9]{1,6})(?::([0-9]{1,6}))?")


def batches(test: SuiteTest) -> list[int]:
    """1:32768 -> 1, 2, 4, ..., 32768; the engine's --batch has the same grammar."""
    given = test.get("batch", 1)
    found = _batch.fullmatch(units.shown(given))
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most <= BATCH_MAX:
        form = f"N or MIN:MAX (doubling), each from 1 to {BATCH_MAX}"
        raise ValueError(f'batch "{given}": write {form}')
    return units.doubled(least, most)


def _refusals(test: SuiteTest) -> Iterator[str]:
    """What plans do not know of; and a number of devices, which no single command holds."""
    if test.backend not in BACKENDS:
        known = ", ".join(BACKENDS)
        yield f"plans know no transfers over backend {test.backend}; they know those over {known}"
    if test.op not in OPS:
        yield f"a transfer is a write or a read, not op {test.op}"
    devices = test.get("devices")
    if devices is None:
        return
    if test.provider == "shm":
        yield "provider shm has no devices"
    if devices != "all" and not (isinstance(devices, int) and 1 <= devices <= DEVICES_MAX):
        yield f"devices is a number from 1 to {DEVICES_MAX}, or all"


# ---- devices -------------------------------------------------------------------------------------


def _named_by(test: SuiteTest) -> str:
    """libfabric knows a card by its RDMA device where the provider drives it, else by netdev."""
    return "netdev" if test.backend == "ofi" and not drives_card(test) else "name"


def _lacks(test: SuiteTest, host: Host) -> str | None:
    lacking = perch_command.lacks(test, host)
    asked, has = test.get("devices"), len(host.devices)
    if lacking is not None:
        return lacking
    # the engine chooses a device where none is named, one
    if asked is None or (asked == 1 and has == 0 and test.backend in SETTINGS):
        return None
    if has == 0:
        return f"names no device (perch_devices), and the test takes {asked}"
    if asked != "all" and has < asked:
        return f"names {has} of the {asked} devices that the test takes (perch_devices)"
    return _names_fault(host, _named_by(test), DEVICES_MAX if asked == "all" else asked)


def _names_fault(host: Host, key: str, devices: int) -> str | None:
    used = host.devices[:devices]
    for device in used:
        if device.get(key) is None:
            return (
                f"does not say which interface is over {device['name']} (netdev in perch_devices)"
            )
    # one machine has one loopback: there several pairs are several endpoints of it
    if host.fabric != "loopback" and len({device[key] for device in used}) != len(used):
        return "names a device twice (perch_devices)"
    return None


def _settings(host: Host, key: str, devices: int) -> list[Any]:
    """What the devices in use have for a setting: one, where all of them share it."""
    found = {device.get(key) for device in host.devices[:devices]}
    return sorted(found, key=lambda value: (value is not None, value))


def _unfit(test: SuiteTest, client: Host, server: Host, devices: int) -> str | None:
    threads, crossed = test.get("threads"), test.get("cross_rail", 0)
    if threads is not None and threads % devices and devices % threads:
        return f"{threads} threads are neither a multiple nor a divisor of {devices} device pairs"
    if test.get("completion") == "event" and threads is not None and threads < devices:
        return (
            f"a thread waits by events for one device only: {threads} threads do not do for "
            f"{devices}"
        )
    if 0 < crossed >= devices:
        return f"cross_rail {crossed} needs more than {crossed} devices, and there are {devices}"
    return _settings_unfit(test, client, server, devices)


def _settings_unfit(test: SuiteTest, client: Host, server: Host, devices: int) -> str | None:
    for key in SETTINGS.get(test.backend, ()):
        of_server = key if key == "vni" else f"server_{key}"
        for host, given in ((client, key), (server, of_server)):
            found = _settings(host, key, devices)
            if len(found) > 1 and test.get(given) is None:
                named = ", ".join("null" if value is None else str(value) for value in found)
                return f"devices of a host differ in {key}: {named}; a transfer takes one for all"
    return None


# ---- the command ---------------------------------------------------------------------------------


def _device_words(test: SuiteTest, devices: int) -> list[Word]:
    key = _named_by(test)
    if test.backend in SETTINGS and devices == 1:
        return perch_command.device_words(test)
    if test.get("devices") is None:
        return []
    if devices == 1:
        return [
            ["--device", f"{{client.device.{key}}}"],
            ["--server-device", f"{{server.device.{key}}}"],
        ]
    named: list[Word] = [
        ["--devices", f"{{client.devices.{key}}}"],
        ["--server-devices", f"{{server.devices.{key}}}"],
    ]
    if test.backend == "verbs":
        return [
            *named,
            ["--ib-port", "{client.device.ib_port}"],
            ["--gid-index", "{client.device.gid_index}"],
            ["--server-ib-port", "{server.device.ib_port}"],
            ["--server-gid-index", "{server.device.gid_index}"],
        ]
    return [*named, *perch_command.services(test)] if test.backend == "cxi" else named


def _template(test: SuiteTest, devices: int) -> Template:
    """A session is the default."""
    params = {k: v for k, v in test.params.items() if k not in ("devices", "session")}
    no_session = ["--no-session"] if test.params.get("session") is False else []
    return perch_command.command(
        test, [*options(params), *no_session], _device_words(test, devices)
    )


def _expect(test: SuiteTest, devices: int) -> list[Expect]:
    """Of each size and batch one a pair of devices, and their sum."""
    owed = []
    for size in units.sizes(test.params["size"]):
        for batch in batches(test):
            owed += [Expect(size, batch, pair, "transfer") for pair in range(devices)]
            owed.append(Expect(size, batch, kind="sum"))
    return owed


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    """`shared`: pairs that work at the same time on the same cores."""
    warmup, duration = test.get("warmup", WARMUP), test.get("duration")
    iterations, verifies = test.get("iterations", ITERATIONS), test.get("verify") is True
    part = ONE_BY_ONE if test.get("consecutive") is True else IN_A_BATCH
    lone, total = cost(1), 0.0
    for size in units.sizes(test.params["size"]):
        for batch in batches(test):
            each = (lone + batch * (part * lone + cost(size) - lone)) * shared
            each += 2 * batch * size / CHECKED_BYTES_S if verifies else 0
            measured = each * iterations if duration is None else units.seconds(duration) + each
            total += each * warmup + measured
    return total


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    expect=_expect,
    carrier=perch_command.carrier,
    lacks=_lacks,
    unfit=_unfit,
    is_engine=True,
)
