"""Plans whose flows are spelled out: what tests plant faults in, and composers write.

A spelled-out plan is plan.json whose `rounds` are [{flows: [flow]}], each flow with its own
params, commands, scope and expected records. `write` makes plan.json and rounds.jsonl of it,
`read` the other way round. Flows of a test must differ only as a test's template lets them.

The planner makes the commands of a flow that has params: `read` shows them, and `write` does not
look at them. A flow without params keeps its commands; no run can be judged by it.

As a command, for bats:
  spelled.py read DIR            the spelled-out plan of a run
  spelled.py write DIR           standard input becomes the plan of DIR
  spelled.py shares DIR          standard input -> DIR/HOST.json, each host's share of it
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from perch.model import units
from perch.model.plan import SCHEMA, FlowKey, PlanDocument, PlanHost, PlanTest, RoundLine
from perch.model.suite import Carrier
from perch.plan import forms, share
from perch.plan.flows import Flows
from perch.plan.places import scope_of
from perch.plan.rounds import text

Document = dict[str, Any]

#: What all flows of a test have in common.
COMMON = ("title", "tool", "kind", "op", "backend", "provider")
COMMANDS = ("client_argv", "server_argv")


class Split:
    """The two files of a spelled-out plan."""

    def __init__(self, document: Document) -> None:
        self.spelled = document
        flows = [flow for turn in document["rounds"] for flow in turn["flows"]]
        self.hosts = {name: self._host(name, flows) for name in document["hosts"]}
        self.imports: Document = {}
        self.tests: dict[str, Document] = {}
        for flow in flows:
            self._add(flow)
        self.lines = list(self._lines())
        self.rounds = b"".join(map(text, self.lines))
        head = {key: value for key, value in document.items() if key not in ("rounds", "schema")}
        head |= {
            "schema": SCHEMA,
            "hosts": self.hosts,
            "tests": self.tests,
            "imports": self.imports,
            "rounds": {
                "rounds": len(self.lines),
                "flows": len(flows),
                "sha256": hashlib.sha256(self.rounds).hexdigest(),
            },
        }
        self.document = {key: value for key, value in head.items() if value not in ({}, None)}
        self.document["hosts"], self.document["tests"] = self.hosts, self.tests
        self.content = json.dumps(self.document, indent=2).encode() + b"\n"
        self._check()

    def _host(self, name: str, flows: list[Document]) -> Document:
        host = self.spelled["hosts"][name]
        ports = {
            flow["tool"]: flow["ready"]["port"]
            for flow in flows
            if flow["server"] == name and flow.get("ready")
        }
        known = {key: value for key, value in host.items() if value is not None}
        return known | ({"tool_ports": ports} if ports else {})

    def _add(self, flow: Document) -> None:
        test = self.tests.setdefault(flow["test"], self._test(flow))
        if flow.get("import"):
            source = {key: value for key, value in flow["import"].items() if key != "output"}
            more = {"expect": flow["expect"], "command": flow.get("client_argv", [])}
            self.imports[key_of(flow).id] = source | more
            return
        number = devices_of(flow)
        if str(number) in test["forms"]:
            return
        if flow.get("params"):
            client, server = made(flow, test, number)
        else:
            client, server = (self._template(flow, flow.get(key, [])) for key in COMMANDS)
        test["forms"][str(number)] = {
            "client": client,
            "server": server,
            "expect": flow["expect"],
        }

    def _test(self, flow: Document) -> Document:
        """The carrier is one that gives the flow's scope."""
        test = {key: flow[key] for key in COMMON if flow.get(key) is not None}
        test |= {"title": flow.get("title") or flow["test"], "op": flow.get("op"), "forms": {}}
        number = devices_of(flow)
        if flow.get("params"):
            test["params"] = flow["params"]
        elif number > 1:
            test["params"] = {"devices": number}
        ends = [
            msgspec.convert(self.hosts[flow[role]], PlanHost, strict=False)
            for role in ("client", "server")
        ]
        fitting = (
            one for one in get_args(Carrier) if scope_of(one, *ends, number) == flow["scope"]
        )
        carrier = "sockets" if flow.get("import") else next(fitting, None)
        if carrier is None:
            raise ValueError(f"{flow['test']}: its hosts give no scope {flow['scope']}")
        return test | {"carrier": carrier}

    def _template(self, flow: Document, argv: list[str]) -> list[str]:
        ends = {self.spelled["hosts"][flow[end]]["address"]: end for end in ("server", "client")}
        words = [f"{{{ends[word]}.address}}" if word in ends else word for word in argv]
        lasts = f"{units.shown(flow.get('estimate_s', 0))}s"
        if self.spelled.get("soak") and "--duration" in words:
            at = words.index("--duration") + 1
            words[at] = "{round.seconds}s" if words[at] == lasts else words[at]
        return words

    def _lines(self) -> Iterator[RoundLine]:
        for number, turn in enumerate(self.spelled["rounds"]):
            yield RoundLine(
                number,
                max((flow.get("estimate_s", 0) for flow in turn["flows"]), default=0),
                max((flow.get("deadline_s", 0) for flow in turn["flows"]), default=0),
                [key_of(flow) for flow in turn["flows"]],
            )

    def plan(self) -> PlanDocument:
        return msgspec.json.decode(self.content, type=PlanDocument, strict=False)

    def _check(self) -> None:
        """What cannot be said by a test's template is no plan."""
        maker = Flows(self.plan())
        for line, turn in zip(self.lines, self.spelled["rounds"], strict=True):
            for of, flow in zip(maker.round(line).flows, turn["flows"], strict=True):
                said: Document = {"scope": of.scope, "expect": msgspec.to_builtins(of.expect)}
                if not flow.get("params"):
                    said |= dict(zip(COMMANDS, maker.commands(of), strict=True))
                given = {key: flow.get(key) or [] for key in said}
                if flow.get("hop_class"):  # else it follows from the hosts' switches
                    said["hop_class"], given["hop_class"] = of.hop_class, flow["hop_class"]
                if said != given:
                    raise ValueError(f"{of.id}: the plan says {said}, and not {given}")


def made(flow: Document, test: Document, devices: int) -> tuple[list[Any], list[Any]]:
    """The planner's commands of a flow's test."""
    planned = msgspec.convert(test | {"forms": {}}, PlanTest)
    command = forms.command_of(planned)
    if command is None:
        raise ValueError(f"{flow['test']}: {planned.tool} has no test of {planned.kind}")
    form = forms.form(forms.test_of(flow["test"], planned), command, devices)
    return form.client, form.server


def key_of(flow: Document) -> FlowKey:
    ends = flow["client"], flow["server"]
    return FlowKey(flow["test"], *ends, flow.get("rail", 0), flow.get("repeat", 1))


def devices_of(flow: Document) -> int:
    """How many devices of each end a flow uses."""
    return 1 + max((one.get("pair") or 0 for one in flow["expect"]), default=0)


def spelled(plan: PlanDocument, lines: list[RoundLine]) -> Document:
    """A plan with its flows spelled out."""
    maker = Flows(plan)
    rounds = []
    for line in lines:
        turn = maker.round(line)
        maker.fill(turn.flows)
        flows = [msgspec.to_builtins(flow) for flow in turn.flows]
        for flow in flows:
            port = plan.hosts[flow["server"]].tool_ports.get(flow["tool"])
            flow["ready"] = None if port is None else {"port": port, "proto": "tcp"}
            flow.setdefault("server_argv", [])
            flow.setdefault("repeat", 1)
            flow.setdefault("rail", 0)
            if source := flow.pop("imported", None):
                flow["import"] = source
        rounds.append({"flows": flows})
    head = msgspec.to_builtins(plan)
    head = {key: value for key, value in head.items() if key not in ("tests", "imports")}
    return {"excluded": [], **head, "rounds": rounds}


def read(root: Path) -> Document:
    """The plan of a run, spelled out."""
    plan = msgspec.json.decode((root / "plan.json").read_bytes(), type=PlanDocument, strict=False)
    decoder = msgspec.json.Decoder(RoundLine)
    return spelled(plan, decoder.decode_lines((root / "rounds.jsonl").read_bytes()))


def write(root: Path, document: Document) -> None:
    """plan.json and rounds.jsonl of a spelled-out plan; agents that named one walked this."""
    split = Split(document)
    (root / "rounds.jsonl").write_bytes(split.rounds)
    (root / "plan.json").write_bytes(split.content)
    walked(root, only_named=True)


def walked(root: Path, *, only_named: bool = False) -> None:
    """The agents walked the plan of `root`: their reports have its hash, where they had one."""
    digest = hashlib.sha256((root / "plan.json").read_bytes()).hexdigest()
    for path in [*root.glob("raw/*/agent.json"), *root.glob("raw/*/retry/agent.json")]:
        agent = json.loads(path.read_text())
        if "plan_sha256" in agent or not only_named:
            path.write_text(json.dumps(agent | {"plan_sha256": digest}) + "\n")
    for name in ("flows.jsonl", "samples.jsonl"):
        for path in (root / "raw").rglob(name):
            head, _, rest = path.read_bytes().partition(b"\n")
            named = msgspec.json.encode(json.loads(head) | {"plan_sha256": digest})
            path.write_bytes(named + b"\n" + rest)


def edit(root: Path, change: Callable[[Document], object]) -> None:
    """Changes a run's plan."""
    document = read(root)
    change(document)
    write(root, document)


def write_retry(root: Path, rounds: list[list[Document]], **head: Any) -> None:
    """plan.retry.json of spelled-out flows, of the plan in `root`."""
    content = (root / "plan.json").read_bytes()
    lines = [
        RoundLine(
            number,
            max((flow.get("estimate_s", 0) for flow in flows), default=0),
            max((flow.get("deadline_s", 0) for flow in flows), default=0),
            [key_of(flow) for flow in flows],
        )
        for number, flows in enumerate(rounds)
    ]
    document = {
        "schema": "perch.retry/1",
        "run": json.loads(content)["run"],
        "plan_sha256": hashlib.sha256(content).hexdigest(),
        "rounds": msgspec.to_builtins(lines),
    }
    (root / "plan.retry.json").write_text(json.dumps(document | head, indent=2) + "\n")


def main() -> None:
    command, root = sys.argv[1], Path(sys.argv[2])
    if command == "read":
        print(json.dumps(read(root)))
    elif command == "write":
        write(root, json.load(sys.stdin))
    else:
        split = Split(json.load(sys.stdin))
        root.mkdir(exist_ok=True)
        share.write(root, share.shares(split.plan(), split.content, split.lines))


if __name__ == "__main__":
    main()
