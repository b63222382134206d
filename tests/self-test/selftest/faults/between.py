"""What devices counted between the flows, and readings of another time than their flow."""

from selftest.edits import Change, add, drop, ends, from_then_on, more, put, readings
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault, fault
from selftest.files import Document

#: Alpha's second flow as a client, and gamma's measured again, which come after others.
WRITES = "write-bandwidth/alpha/gamma/0/1"
AGAIN = "write-bandwidth/gamma/delta/0/3"
COUNTERS = "rdma.mlx5_0/1.counters"
CORRECTED = "netdev.enp1s0.rx_corrected_bits_phy"


def cleared(reading: Document) -> None:
    reading["netdev"]["enp1s0"]["rx_packets"] = "0"


def uncounted(reading: Document) -> None:
    del reading["rdma"]["mlx5_0/1"]["counters"]["symbol_error"]


def gone(reading: Document) -> None:
    del reading["netdev"]["enp1s0"]


def one_moment(end: Document) -> None:
    end["counters"]["after"]["time_s"] = end["counters"]["before"]["time_s"]


def backwards(end: Document) -> None:
    readings = end["counters"]
    before, after = (readings[when]["time_s"] for when in ("before", "after"))
    put("before.time_s", after)(readings)
    put("after.time_s", before)(readings)


def before_flow(id_: str, word: str, check: str, title: str, *changes: Change) -> Fault:
    """A fault in what alpha read before its second flow, and since then."""
    edits = from_then_on(WRITES, *changes, since="before")
    return fault(id_, "fabric", word, f"between/{check}", title, edits)


FAULTS = (
    before_flow(
        "between-link",
        FAIL,
        "link",
        "a link that went down seven times between two flows",
        more(f"{COUNTERS}.link_downed", 7),
    ),
    before_flow(
        "between-errors",
        FAIL,
        "errors",
        "90,000 symbol errors between two flows",
        more(f"{COUNTERS}.symbol_error", 90000),
    ),
    before_flow(
        "between-retransmissions",
        FAIL,
        "retransmissions",
        "packets that were sent again between two flows",
        more(f"{COUNTERS}.packet_seq_err", 40),
    ),
    before_flow(
        "between-pause",
        PASS,
        "pause",
        "pauses between two flows",
        more(f"{COUNTERS}.port_xmit_wait", 90000),
    ),
    before_flow(
        "between-reset",
        INCONCLUSIVE,
        "readings",
        "counters that were cleared between two flows",
        cleared,
    ),
    before_flow(
        "between-missing",
        INCONCLUSIVE,
        "readings",
        "a counter that is missing from some flow on",
        uncounted,
    ),
    before_flow(
        "between-vanished",
        INCONCLUSIVE,
        "readings",
        "an interface that is gone from some flow on",
        gone,
    ),
    before_flow(
        "between-boot",
        INCONCLUSIVE,
        "readings",
        "readings from some flow on with the monotonic clock of another boot",
        add(-(10**12), "monotonic_ns"),
    ),
    before_flow(
        "between-apart",
        INCONCLUSIVE,
        "readings",
        "readings an hour later by the monotonic clock than by the wall clock",
        add(3600 * 10**9, "monotonic_ns"),
    ),
    fault(
        "monotonic-within",
        "fabric",
        INCONCLUSIVE,
        f"flow/{WRITES} coverage path/*",
        "counters that were read after a flow before it, by the monotonic clock",
        ends(WRITES, add(-(10**12), "counters.after.monotonic_ns")),
    ),
    fault(
        "fec",
        "fabric",
        FAIL,
        "fec/alpha/enp1s0",
        "a link on which FEC corrected ten billion bits",
        from_then_on(WRITES, more(CORRECTED, 10**10)),
    ),
    fault(
        "fec-flow",
        "fabric",
        FAIL,
        "fec/alpha/enp1s0",
        "a link on which FEC corrected much in one flow, and nothing in all the others",
        from_then_on(WRITES, more(CORRECTED, 10**8)),
    ),
    fault(
        "fec-reset",
        "fabric",
        INCONCLUSIVE,
        "fec/readings",
        "a count of corrected bits that was reset during a flow",
        readings("alpha", put(CORRECTED, str(10**15))),
        from_then_on(WRITES, put(CORRECTED, "5")),
    ),
    fault(
        "fec-gone",
        "fabric",
        INCONCLUSIVE,
        "fec/readings counters/alike",
        "a count of corrected bits that is missing since some flow",
        from_then_on(WRITES, drop(CORRECTED)),
    ),
    fault(
        "fec-full",
        "fabric",
        INCONCLUSIVE,
        "fec/readings",
        "a count of corrected bits that stands at its last value",
        readings("alpha", put(CORRECTED, str(2**64 - 1))),
    ),
    fault(
        "fec-lacking",
        "fabric",
        INCONCLUSIVE,
        "counters/alike",
        "a card that does not count what FEC corrects, as the others do",
        readings("alpha", drop(CORRECTED)),
    ),
    fault(
        "between-retry",
        "retried",
        FAIL,
        "between/drops",
        "packets that were dropped between a flow and its repeats",
        from_then_on(AGAIN, more(f"{COUNTERS}.port_xmit_discards", 3), since="before"),
    ),
    fault(
        "one-moment",
        "fabric",
        INCONCLUSIVE,
        f"flow/{WRITES} coverage path/*",
        "counters that were read twice at one moment",
        ends(WRITES, one_moment),
    ),
    fault(
        "counters-backwards",
        "fabric",
        INCONCLUSIVE,
        f"flow/{WRITES} coverage path/*",
        "counters whose time runs backwards",
        ends(WRITES, backwards),
    ),
)
