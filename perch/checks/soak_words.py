"""The titles of a soak's checks, and the words for when they do not hold."""

from __future__ import annotations

#: By a check's name, without the test that follows it.
_WORDS = {
    "coverage": (
        "Every moment of test {test} is in an interval or a gap",
        "Time is missing from test {test}",
    ),
    "gaps": ("No connection was lost", "Connections were lost"),
    "stalls": ("No flow stalled", "Flows stalled"),
    "interval": (
        "No interval of test {test} far below the others",
        "Intervals of test {test} far below the others",
    ),
    "latency": (
        "No tail of an interval of test {test} far above the others",
        "Tail of an interval too long, test {test}",
    ),
    "drift": ("No figure of test {test} drifts", "Figures of test {test} drift"),
    "change": ("No figure of test {test} jumps", "Figures of test {test} jump"),
    "memory": ("No process of Perch grows", "Memory of Perch's processes grows"),
    "handles": (
        "No process of Perch leaks file descriptors",
        "Perch's processes leak file descriptors",
    ),
    "integrity": ("No payload was corrupted in the soak", "Payloads were corrupted in the soak"),
    "links": ("No link changed its state", "Links changed state"),
    "clock": ("No clock was set during the soak", "A clock was set during the soak"),
    "reboots": ("No host restarted", "Hosts restarted"),
    "rate": ("The requested rate was kept", "The requested rate was not kept"),
    "sum": (
        "The whole of each flow is the sum of its intervals",
        "The total of a flow differs from the sum of its intervals",
    ),
    "lines": ("Every line of the flows can be used", "Lines of the flows cannot be used"),
    "samples": ("Every host was sampled all the time", "Samples of hosts are missing"),
}
_COUNTERS = {
    "drops": ("No device dropped a packet in the soak", "Devices dropped packets in the soak"),
    "errors": (
        "No device saw a damaged packet in the soak",
        "Devices received damaged packets in the soak",
    ),
    "retransmissions": (
        "RDMA retransmissions were rare in the soak",
        "RDMA retransmitted too much in the soak",
    ),
    "out-of-sequence": (
        "Packets arrived in order in the soak",
        "Too many packets arrived out of order in the soak",
    ),
    "link": ("No link went down in the soak", "Links went down in the soak"),
    "pcie": ("No PCIe error in the soak", "PCIe errors occurred in the soak"),
    "fec": (
        "Links need little error correction (FEC) in the soak",
        "A link needed much error correction (FEC) in the soak",
    ),
    "tcp-retransmissions": (
        "TCP retransmitted less than one segment in a hundred",
        "TCP retransmitted more than one segment in a hundred",
    ),
}


def words(name: str) -> tuple[str, str]:
    """Title and fault of a check: `gaps`, `coverage/TEST`, `counters/CLASS`."""
    what, _, of = name.partition("/")
    if what == "counters":
        return _COUNTERS.get(of, (f"Counters of {of} did not move", f"Counters of {of} moved"))
    title, fault = _WORDS[what]
    return title.format(test=of), fault.format(test=of)
