"""A soak: a suite's tests for hours, all at the same time or in turns."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model import units
from perch.model.plan import SoakPlan
from perch.model.record import Number
from perch.model.suite import SoakSettings, Suite, SuiteTest
from perch.plan.forms import ROUND_SECONDS
from perch.plan.pairs import Pair, Turn, circle, mesh, ring
from perch.plan.times import DAY_S, LONGEST_S, NO_PROGRESS_S, whole

#: The shortest interval and stall; no shorter time to connect in is of use.
LEAST_S = 0.001

#: Turns of one plan: each is a round, and the reports hold every flow of all of them.
TURNS_MAX = 5000

#: Bytes of a line, twice the largest that was seen with the engine over tcp and ofi on loopback, as
#: a host with other figures has longer numbers: an interval of bandwidth 1.1 KB, of latency with
#: its histogram 3.6 KB.
LINE_BYTES = {"bandwidth": 2200, "latency": 7200}

#: A line of samples: 2.0 to 2.8 KB with one interface and eight flows; ethtool's own counters of a
#: card are some hundreds more.
SAMPLE_BYTES = 16384

#: Stalls that an interval has lines for at most (docs/soak.md), each of 190 bytes. One in ten
#: intervals with all of them is a soak that has failed already.
STALL_BYTES = 64 * 190 / 10

#: Lines of a flow beside its intervals: the first, connection, whole, and one more.
OTHER_LINES = 4

_asked = re.compile("(?=.*[1-9])([0-9]+(?:[.][0-9]+)?)([smhd])")


class Soak(NamedTuple):
    """`plan` has seconds, `texts` the times as the suite and the play write them."""

    plan: SoakPlan
    pairs: str
    texts: SoakSettings
    duration: str


class Part(NamedTuple):
    """Flows of one test over one rail in one round. `seconds`: how long a soak's last."""

    test: int
    repeat: int
    pairs: list[Pair]
    seconds: Number | None = None
    rail: int = 0


def _refuse(what: str) -> None:
    raise PerchError(ExitCode.USAGE, what)


def _rounded(seconds: float) -> Number:
    """Seconds as written: 1.1h is 3960, but 3960.0000000000005 in floating-point numbers."""
    return whole(math.floor(seconds * 1e6 + 0.5) / 1e6)


def _duration_s(asked: Any) -> Number:
    """24h, 7d -> seconds. A number without a unit is rejected: 24 may be hours or seconds."""
    found = _asked.fullmatch(asked) if isinstance(asked, str) else None
    if found is None:
        what = f"soak_duration {json.dumps(asked)} is not a time with a unit"
        raise PerchError(ExitCode.USAGE, what, remedy="write 90s, 24h or 7d")
    return _rounded(float(found[1]) * {**units.TIMES_S, "d": DAY_S}[found[2]])


# ---- mistakes ------------------------------------------------------------------------------------


def refusals(test: SuiteTest) -> Iterator[str]:
    """Why a test cannot be soaked."""
    if test.tool != "perch" or test.kind not in LINE_BYTES:
        yield "a soak needs tool perch and kind latency or bandwidth; only they record intervals"
    if test.backend == "null":
        yield "backend null cannot be soaked: it does not use the network"
    if test.rails != "alone" or test.directions != "one":
        yield "a soak loads all rails together; its pairs say which directions: leave both out"
    if test.repeat != 1:
        yield "repeat must be 1 in a soak; each interval of a soak is a repeat"
    timed = test.first_of(("iterations", "duration", "interval"))
    if timed is not None:
        yield (
            f"{timed} cannot be set for a test of a soak; "
            "set soak_duration, and interval in the suite's key soak"
        )
    if len(units.sizes(test.params["size"])) != 1:
        yield "a test of a soak must have one size"


def _faults(soak: Soak) -> Iterator[str]:
    plan, texts = soak.plan, soak.texts
    for what in ("interval", "stall", "reconnect"):
        if getattr(plan, f"{what}_s") < LEAST_S:
            given = f"the suite's {what}, {getattr(texts, what)},"
            yield f"{given} is shorter than 1 ms, the shortest that the engine accepts"
    if plan.duration_s > LONGEST_S:
        longest = "365 days, the longest that the engine accepts"
        yield f"soak_duration {soak.duration} is longer than {longest}"
    interval = f"the suite's interval, {texts.interval},"
    if plan.interval_s > plan.duration_s:
        yield (
            f"{interval} is longer than soak_duration, {soak.duration}; give a longer "
            "soak_duration. Or set a shorter soak.interval in a suite of your own (plan_suite_file)"
        )
    if plan.turn_s is not None and plan.interval_s > plan.turn_s:
        yield (
            f"{interval} is longer than its turn, {texts.turn}; "
            "change soak.interval or soak.turn in a suite of your own (plan_suite_file)"
        )
    if plan.stall_s >= plan.interval_s:
        yield (
            f"the suite's stall, {texts.stall}, must be shorter than its interval, {texts.interval}"
        )


def settings(suite: Suite, duration: Any) -> Soak | None:
    """The soak that suite and play ask for; None where the suite is not a soak.

    Raises:
        PerchError: there is a time without a soak or a soak without one, or times do not fit.
    """
    given = suite.soak
    if duration in ("", None):
        if given is not None:
            _refuse(
                f"suite {suite.name} is a soak and needs a time; "
                "run playbooks/soak.yml -e soak_duration=24h"
            )
        return None
    if given is None:
        raise PerchError(
            ExitCode.USAGE,
            f"suite {suite.name} is not a soak: it has no key soak",
            remedy="see playbooks/suites/soak.yml for an example",
        )
    turns = given.mode == "alternating"
    plan = SoakPlan(
        duration_s=_duration_s(duration),
        interval_s=_rounded(units.seconds(given.interval)),
        stall_s=_rounded(units.seconds(given.stall)),
        reconnect_s=_rounded(units.seconds(given.reconnect)),
        mode="alternating" if turns else "mixed",
        turn_s=_rounded(units.seconds(given.turn)) if turns else None,
    )
    soak = Soak(plan, given.pairs or ("all" if turns else "ring"), given, duration)
    for fault in _faults(soak):
        _refuse(fault)
    return soak


def lasting(test: SuiteTest, soak: Soak) -> SuiteTest:
    """A test as its flows run it: engine options of the same names."""
    texts = soak.texts
    times = {
        "duration": f"{ROUND_SECONDS}s",
        "interval": texts.interval,
        "stall": texts.stall,
        "reconnect": texts.reconnect,
        "soak": "client.soak",
    }
    return msgspec.structs.replace(test, params={**test.params, **times})


# ---- pairs and rounds ----------------------------------------------------------------------------


def pairings(soak: Soak, hosts: Sequence[str]) -> list[list[Pair]]:
    """The pairs of each turn of a test, or those that load the hosts all the time."""
    if len(hosts) < 2:
        return []
    if soak.pairs == "ring":
        return [ring(hosts)]
    return circle(hosts) if soak.plan.turn_s is not None else [mesh(hosts)]


def _cycle(tests: Sequence[Sequence[Turn]]) -> list[Part]:
    """A turn for each test and each of its rounds."""
    return [
        Part(i, 1, turn.pairs, rail=turn.rail) for i, turns in enumerate(tests) for turn in turns
    ]


def _check_turns(soak: Soak, turns: int, cycle: int) -> None:
    text, each = soak.duration, soak.texts.turn
    if turns < cycle:
        _refuse(
            f"soak_duration {text} is too short: "
            f"{cycle} turns of {each} are needed to measure each test and each pair once"
        )
    if turns > TURNS_MAX:
        _refuse(
            f"soak_duration {text} makes {turns} turns of {each}; at most {TURNS_MAX} are "
            "possible. Set a longer turn"
        )


def schedule(soak: Soak, tests: Sequence[Sequence[Turn]]) -> list[list[Part]]:
    """The rounds of the turns of each test. In turns: through all, again with the ends exchanged.

    A rest that is shorter than an interval is the last turn's; a longer one is a turn of its own.
    """
    turn_s, duration_s = soak.plan.turn_s, soak.plan.duration_s
    cycle = _cycle(tests)
    if not cycle:
        return []
    if turn_s is None:
        return [[part._replace(seconds=duration_s) for part in cycle]]
    turns = math.floor(_rounded(duration_s / turn_s))
    if _rounded(duration_s - turns * turn_s) >= soak.plan.interval_s:
        turns += 1
    _check_turns(soak, turns, len(cycle))
    rounds = []
    for i in range(turns):
        past, at = divmod(i, len(cycle))
        pairs = cycle[at].pairs
        if past % 2:
            pairs = [(server, client) for client, server in pairs]
        last = i == turns - 1
        seconds = _rounded(duration_s - i * turn_s) if last else turn_s
        rounds.append([Part(cycle[at].test, past + 1, pairs, seconds, cycle[at].rail)])
    return rounds


def deadline_s(soak: Soak, seconds: Number) -> Number:
    """When a flow has ended for certain.

    The keeper ends when its time is over, and at once when it has made nothing of a lost connection
    for `reconnect`; one that was lost just before the end is not awaited.
    """
    return seconds + soak.plan.reconnect_s + NO_PROGRESS_S


# ---- how much it takes on disk -------------------------------------------------------------------


def _with_archive(size: float) -> int:
    """The archive is made on the host when results are fetched; gzip leaves under a third."""
    return math.ceil(size * 4 / 3)


def space_bytes(
    soak: Soak, rounds: Sequence[Sequence[Part]], kinds: Sequence[str], hosts: Mapping[str, Any]
) -> dict[str, int]:
    """What each host writes. `kinds`: of the tests, by number."""

    def lines(seconds: Number) -> int:
        return math.ceil(seconds / soak.plan.interval_s) + OTHER_LINES

    space: dict[str, float] = dict.fromkeys(hosts, lines(soak.plan.duration_s) * SAMPLE_BYTES)
    for part in (part for parts in rounds for part in parts):
        kept = lines(part.seconds or 0) * (LINE_BYTES[kinds[part.test]] + STALL_BYTES)
        for client, _ in part.pairs:
            space[client] += kept
    return {host: _with_archive(size) for host, size in space.items()}
