"""What is known of a soak once its files are read: what checks ask beside the verdict's section."""

from __future__ import annotations

from typing import Any

import msgspec

from perch.model.limits import Limit
from perch.model.record import Number
from perch.model.soak import Anomaly, Course, FlowTold, HostTold, SoakState


class Doubt(msgspec.Struct):
    """A drift that may be one beyond its limit; `binding`: a required one."""

    text: str
    binding: bool


class Group(msgspec.Struct):
    """The courses of one test between two hosts."""

    test: str
    courses: list[Course]
    doubts: list[Doubt]


class Watch(msgspec.Struct):
    """What checks ask of a host beside the section.

    watched, links_read: the most counters of trouble and links that a sample had.
    limits: of memory and of handles.
    """

    told: HostTold
    watched: int
    links_read: int
    limits: dict[str, list[Limit]]


class Soak(msgspec.Struct):
    """A soak as it was judged.

    section: as JSON objects. lines: of all client.soak. limits: of each flow by metric.
    """

    section: dict[str, Any]
    state: SoakState
    passed_s: Number
    lines: int
    flows: list[FlowTold]
    limits: dict[str, dict[str, list[Limit]]]
    hosts: list[Watch]
    groups: list[Group]
    anomalies: list[Anomaly]
