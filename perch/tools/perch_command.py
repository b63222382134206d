"""The engine's tests of latency and bandwidth. What it would refuse, `perch check` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perch.model import units
from perch.model.suite import Carrier, Host, SuiteTest
from perch.tools import perch_params
from perch.tools.command import Command, Cost, Template, Word
from perch.tools.perch_params import drives_card, named_by

_SUBCOMMANDS = {"latency": "lat", "bandwidth": "bw", "transfer": "transfer", "rate": "rate"}


def carrier(test: SuiteTest) -> Carrier:
    if test.backend == "verbs":
        return "rdma"
    if test.backend == "cxi":
        return "card"
    return "provider" if drives_card(test) else "sockets"


def lacks(test: SuiteTest, host: Host) -> str | None:
    if test.backend is not None and test.backend not in host.backends:
        return f"has no backend {test.backend}"
    if test.provider == "shm" and host.fabric != "loopback":
        return "shares no memory with another host (provider shm)"
    asked, has = test.get("devices"), len(host.devices)
    # the engine chooses a device where none is named, one
    if asked is None or has == 0:
        return None
    return _names_fault(host, named_by(test), asked if isinstance(asked, int) else has)


def _names_fault(host: Host, key: str, devices: int) -> str | None:
    used = host.devices[:devices]
    for device in used:
        if device.get(key) is None:
            return (
                f"does not say which interface is over {device['name']} (netdev in perch_devices)"
            )
    # a device may have several ports; one machine has one loopback, and several endpoints of it
    different = {(device[key], str(device.get("ib_port") or 1)) for device in used}
    if host.fabric != "loopback" and len(different) != len(used):
        return "names a device twice (perch_devices)"
    return None


def options(params: Mapping[str, Any]) -> list[str]:
    """{size: 8, verify: true} -> --size 8 --verify; a traffic class by name has one's option.

    devices: which of them flows use, no option of one flow. Relaxed ordering is on or off.
    """
    words = []
    for name, value in params.items():
        if name == "relaxed_ordering" and value is not None:
            words += ["--relaxed-ordering", "on" if value else "off"]
            continue
        if value is None or value is False or name == "devices":
            continue
        option = "traffic_class" if name == "fabric_class" else name
        words.append("--" + option.replace("_", "-"))
        if value is not True:
            words.append(units.shown(value))
    return words


def command(test: SuiteTest, options: list[str], devices: list[Word]) -> Template:
    """A command of the engine: it needs none at the server's end."""
    provider = ["--provider", test.provider] if test.provider else []
    return Template(
        [
            *("perch", _SUBCOMMANDS[test.kind], "{server.address}"),
            *("--backend", str(test.backend), *provider, "--op", test.op),
            *options,
            *devices,
            *("--bind", "{client.address}", "--json"),
        ]
    )


def _rail_words(test: SuiteTest) -> list[Word]:
    """Where rails work together, each end shares its cores out among them, in a soak always."""
    is_soak = test.get("soak") is not None and device_words(test) != []
    if test.rails == "alone" and not is_soak:
        return []
    key = named_by(test)
    rails: list[Word] = [
        ["--rails", f"{{client.rails.{key}}}"],
        ["--server-rails", f"{{server.rails.{key}}}"],
    ]
    slots: list[Word] = [["--slot", "{client.slot}"], ["--server-slot", "{server.slot}"]]
    return [*rails, *slots] if is_soak else rails


def device_words(test: SuiteTest) -> list[Word]:
    """Each end's device as its inventory names it; what is not named the engine chooses."""
    if test.backend == "verbs":
        return [
            ["--device", "{client.device.name}"],
            ["--ib-port", "{client.device.ib_port}"],
            ["--gid-index", "{client.device.gid_index}"],
            ["--server-device", "{server.device.name}"],
            ["--server-ib-port", "{server.device.ib_port}"],
            ["--server-gid-index", "{server.device.gid_index}"],
        ]
    if test.backend == "cxi":
        return [
            ["--device", "{client.device.name}"],
            ["--server-device", "{server.device.name}"],
            *services(test),
        ]
    if test.get("devices") is None:
        return []
    key = named_by(test)
    return [
        ["--device", f"{{client.device.{key}}}"],
        ["--server-device", f"{{server.device.{key}}}"],
    ]


def services(test: SuiteTest) -> list[Word]:
    """Service and VNI of Cassini NICs, where the test names none."""
    named: dict[str, Word] = {
        "svc_id": ["--svc-id", "{client.device.svc_id}"],
        "server_svc_id": ["--server-svc-id", "{server.device.svc_id}"],
        "vni": ["--vni", "{client.device.vni}"],
    }
    return [word for name, word in named.items() if test.get(name) is None]


def _template(test: SuiteTest, devices: int) -> Template:
    return command(test, options(test.params), [*device_words(test), *_rail_words(test)])


def _refusals(test: SuiteTest) -> Iterator[str]:
    if test.backend is None:
        yield "a test of the engine names its backend"


def _measuring(test: SuiteTest, cost: Cost, shared: int) -> float:
    """A gap comes after each message, a rate is a floor."""
    rate = test.get("rate")
    gap = units.seconds(test.get("gap", 0))
    duration = test.get("duration")
    iterations = test.get("iterations", perch_params.ITERATIONS[test.kind])
    total = 0.0
    for size in units.sizes(test.params["size"]):
        each = cost(size) + gap
        if rate is not None:
            each = max(each, units.pace(rate, size))
        measured = each * iterations if duration is None else units.seconds(duration) + each
        total += perch_params.warmup_s(test, each) + measured
    return total


COMMAND = Command(
    template=_template,
    measuring=_measuring,
    refusals=_refusals,
    wants=perch_params.wants,
    carrier=carrier,
    lacks=lacks,
    is_engine=True,
    by_rail=lambda test: test.backend in ("verbs", "ofi", "cxi") and test.provider != "shm",
)
