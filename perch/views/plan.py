"""What a report says of the plan: tests with their commands, pairs, rounds, what ran together."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from perch.model.plan import Excluded, Flow, FlowKey, Plan, PlanHost
from perch.model.text import clean
from perch.plan.flows import Flows
from perch.views import words

#: Commands of one test differ in addresses and devices; some of them are enough.
COMMANDS_MAX = 8

NOT_STATED = "not stated"

#: test, client, server, rail
Stream = tuple[str, str, str, int]


def flow_files(*, is_soak: bool) -> str:
    """Where the commands and outputs of flows are. Of a soak, a flow's id is a path."""
    if not is_soak:
        return "raw/<host>/flows.jsonl"
    return f"raw/<host>/flows/{'/'.join(f'<{part}>' for part in FlowKey.__struct_fields__)}/"


class PlannedTest(msgspec.Struct):
    """A planned test; `client` and `server`: the first different commands of its flows."""

    name: str
    title: str
    kind: str
    flows: int = 0
    repeats: int = 1
    client: list[str] = []
    server: list[str] = []


class Hops(msgspec.Struct):
    pairs: int
    flows: int


class PlanDigest(msgspec.Struct):
    """A plan without its rounds.

    retries: repeats of outliers, which were planned later; no other member counts them. together:
    most flows of a round. hops: by hop class. beside: of each latency under load, the streams that
    ran beside it at one of its hosts. latency_size: the smallest of the engine's.
    """

    run: str
    suite: str
    limits: str
    hosts: dict[str, PlanHost]
    suite_name: str = ""
    created: str | None = None
    excluded: list[Excluded] = []
    tests: list[PlannedTest] = []
    rounds: int = 0
    together: int = 0
    hops: dict[str, Hops] = {}
    beside: dict[Stream, list[Stream]] = {}
    latency_size: int = 0
    retries: int = 0

    @property
    def flows(self) -> int:
        return sum(test.flows for test in self.tests)

    @property
    def pairs(self) -> int:
        return sum(hops.pairs for hops in self.hops.values())


def unreadable(run: str) -> PlanDigest:
    """A run without a whole plan has a verdict all the same, and so a report that says so."""
    return PlanDigest(run=run, suite="the plan cannot be read", limits="-", hosts={})


# ---- commands ------------------------------------------------------------------------------------

_unprintable = re.compile(r"[^ -~\u00a1-\U0010ffff]")


def _word(text: str) -> str:
    """One word of a command for bash, on one line."""
    if _unprintable.search(text) or clean(text) != text:
        return "$'" + clean(text.replace("\\", "\\\\").replace("'", "\\'")) + "'"
    return shlex.quote(text)


def command(argv: Iterable[Any]) -> str:
    return " ".join(_word(str(word)) for word in argv)


def _add_command(commands: list[str], argv: Sequence[str]) -> None:
    if argv and len(commands) < COMMANDS_MAX:
        one = command(argv)
        if one not in commands:
            commands.append(one)


# ---- a digest ------------------------------------------------------------------------------------


def _count(test: PlannedTest, flow: Flow, maker: Flows) -> None:
    if test.flows < 4 * COMMANDS_MAX:
        client, server = maker.commands(flow)
        _add_command(test.client, client)
        _add_command(test.server, server)
    test.flows += 1
    test.repeats = max(test.repeats, flow.repeat)


def _stream(flow: Flow) -> Stream:
    return flow.test, flow.client, flow.server, flow.rail


def _loaded(flows: Sequence[Flow]) -> Iterable[tuple[Stream, list[Stream]]]:
    """The latency flows of a round with the streams at one of their hosts.

    Of imported outputs it is not known what ran at the same time.
    """
    if len({flow.kind for flow in flows}) < 2:
        return
    streams = [flow for flow in flows if flow.kind != "latency" and flow.imported is None]
    for flow in flows:
        if flow.kind == "latency" and flow.imported is None:
            ends = {flow.client, flow.server}
            beside = [_stream(one) for one in streams if {one.client, one.server} & ends]
            if beside:
                yield _stream(flow), beside


def _hops(pairs: Counter[tuple[str, str, str]]) -> dict[str, Hops]:
    found: dict[str, Hops] = {}
    for (name, _, _), flows in pairs.items():
        hops = found.setdefault(name, Hops(0, 0))
        hops.pairs += 1
        hops.flows += flows
    return dict(sorted(found.items()))


def digest(plan: Plan) -> PlanDigest:
    """The planned flows; repeats of outliers, which were planned later, are only counted."""
    tests: dict[str, PlannedTest] = {}
    pairs: Counter[tuple[str, str, str]] = Counter()
    beside: dict[Stream, list[Stream]] = {}
    sizes: set[int] = set()
    maker = Flows(plan)
    rounds = [flows for turn in plan.rounds if (flows := [f for f in turn.flows if not f.retry])]
    for flows in rounds:
        for flow in flows:
            test = tests.get(flow.test)
            if test is None:
                title = flow.title or flow.test
                test = tests[flow.test] = PlannedTest(flow.test, title, flow.kind)
            _count(test, flow, maker)
            pairs[flow.hop_class or NOT_STATED, flow.client, flow.server] += 1
            if flow.kind == "latency" and flow.tool == "perch":
                sizes.update(one.size_bytes for one in flow.expect if one.size_bytes is not None)
        beside.update(_loaded(flows))
    return PlanDigest(
        run=plan.run,
        suite=plan.suite.title or plan.suite.name,
        suite_name=plan.suite.name,
        limits=plan.limits,
        created=plan.created,
        hosts=plan.hosts,
        excluded=plan.excluded,
        tests=list(tests.values()),
        rounds=len(rounds),
        together=max(map(len, rounds), default=0),
        hops=_hops(pairs),
        beside=beside,
        latency_size=min(sizes, default=0),
        retries=sum(flow.retry for turn in plan.rounds for flow in turn.flows),
    )


def commands(tests: Iterable[PlannedTest]) -> list[dict[str, Any]]:
    """Of each test its commands, and how many more differ in addresses."""
    found = []
    for test in tests:
        more = test.flows - test.repeats * max(len(test.client), 1)
        found.append(
            {
                "title": words.cell(test.title),
                "client": test.client,
                "server": test.server,
                "more": words.whole(more) if more > 0 else "",
            }
        )
    return found
