"""What one agent needs of a plan: its own flows, the hosts at their other ends, and all rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.plan import PlanDocument, RoundLine
from perch.model.share import SCHEMA, Share, ShareFlow, ShareRound
from perch.plan.slots import pair_of, slots

#: Where the shares of a plan lie, HOST.json each, and those of its plan.retry.json. They are made
#: for the agents' sake: no verdict reads them.
FOLDER, RETRY_FOLDER = "shares", "shares.retry"


def shares(plan: PlanDocument, content: bytes, lines: Iterable[RoundLine]) -> Iterator[Share]:
    """Every host's share, in one pass over the rounds.

    content: plan.json as it is written. lines: of rounds.jsonl.
    """
    digest = hashlib.sha256(content).hexdigest()
    all_rounds: list[ShareRound] = []
    own: dict[str, dict[int, list[ShareFlow]]] = {host: {} for host in plan.hosts}
    for number, line in enumerate(lines):
        all_rounds.append(ShareRound(line.estimate_s, line.deadline_s, len(line.flows)))
        of_pair = slots(line.flows, plan.tests) if plan.soak is not None else {}
        for place, flow in enumerate(line.flows):
            mine = ShareFlow(
                *(place, flow.test, flow.client, flow.server, flow.rail, flow.repeat),
                slots=of_pair.get(pair_of(flow), []),
            )
            for host in (flow.client, flow.server):
                own[host].setdefault(number, []).append(mine)
    for host, flows in own.items():
        yield _share(plan, digest, host, all_rounds, flows)


def _share(
    plan: PlanDocument,
    digest: str,
    host: str,
    rounds: list[ShareRound],
    own: dict[int, list[ShareFlow]],
) -> Share:
    flows = [flow for one in own.values() for flow in one]
    named = {host, *(flow.client for flow in flows), *(flow.server for flow in flows)}
    tests = {flow.test for flow in flows}
    return Share(
        schema=SCHEMA,
        run=plan.run,
        plan_sha256=digest,
        host=host,
        hosts={name: one for name, one in plan.hosts.items() if name in named},
        tests={name: test for name, test in plan.tests.items() if name in tests},
        rounds=[
            msgspec.structs.replace(one, flows=own[number]) if number in own else one
            for number, one in enumerate(rounds)
        ],
        soak=plan.soak,
    )


def write(folder: Path, made: Iterable[Share]) -> None:
    """Writes FOLDER/HOST.json of each host. Raises PerchError."""
    try:
        folder.mkdir(exist_ok=True)
        for one in made:
            (folder / f"{one.host}.json").write_bytes(msgspec.json.encode(one) + b"\n")
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE, f"it cannot be written ({error.strerror})", file=folder
        ) from None
