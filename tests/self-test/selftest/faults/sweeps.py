"""Directions, rails, sizes and far tails, on composed fabrics that measure several of each."""

from selftest.edits import prints, slower, where
from selftest.fault import FAIL, fault
from selftest.faults.fabric import SHARE, tail

FAULTS = (
    fault(
        "asymmetric",
        "swept",
        FAIL,
        f"directions/write-sizes limit/site-peers/write-sizes {SHARE}/write-sizes",
        "a pair that is slow in one of its two directions",
        *(prints(f"write-sizes/delta/gamma/0/{repeat}", slower(0.8)) for repeat in (1, 2)),
    ),
    fault(
        "slow-rail",
        "railed",
        FAIL,
        "rails/siblings/write-rails rails/elsewhere/write-rails "
        f"limit/site-peers/write-rails {SHARE}/write-rails",
        "a NIC of ten that is slow with each of its peers",
        *(prints(f"write-rails/{ends}/1/1", slower(0.8)) for ends in ("gamma/*", "*/gamma")),
    ),
    fault(
        "slow-rails",
        "railed",
        FAIL,
        f"rails/elsewhere/write-rails limit/site-peers/write-rails {SHARE}/write-rails",
        "a host of five that is slow by both of its NICs, which are like each other",
        *(prints(f"write-rails/{ends}/*/1", slower(0.8)) for ends in ("gamma/*", "*/gamma")),
    ),
    fault(
        "slow-size",
        "swept",
        FAIL,
        f"sizes/write-sizes limit/site-peers/write-sizes {SHARE}/write-sizes "
        "directions/write-sizes",
        "a pair that is slow at one of its three sizes only",
        *(
            prints(
                f"write-sizes/gamma/delta/0/{repeat}",
                where(lambda line: line["params"]["size_bytes"] == 131072, slower(0.7)),
            )
            for repeat in (1, 2)
        ),
    ),
    fault(
        "thin-tail",
        "swept",
        FAIL,
        "far-tail/send-tail limit/site-tail/send-tail",
        "a tail that only p99.99 shows: fifteen messages of a hundred thousand",
        *(
            prints(
                f"send-tail/alpha/beta/0/{repeat}",
                tail(15, 2_000_000),
            )
            for repeat in (1, 2)
        ),
    ),
)
