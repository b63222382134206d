"""`perchctl hosts DIR`: the findings on hosts alone, without a run."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.text import clean, did_you_mean, explained, plural

if TYPE_CHECKING:
    from perch.judge.findings import Question
    from perch.judge.raw import RawFiles
    from perch.model.plan import PlanHost

Document = dict[str, Any]

#: A host whose name no folder may have has no files, either.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")

SIGNS = {
    "pass": "ok",
    "fail": "BAD",
    "inconclusive": "NOT KNOWN",
    "advisory": "advisory",
    "not_judged": "not judged",
}

#: What compares the fabric's traits with the hosts: the area of its checks, and the finding.
TRAITS = "qos", "qos-lossless"

_variables = msgspec.json.Decoder(dict[str, Document])


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges what host-check read on hosts: DIR/raw/HOST/host_check.json against\n"
        "DIR/inputs/hosts/HOST.json. Standard input has the inventory's variables of the hosts,\n"
        "{HOST: {perch_fabric, perch_devices, ...}}. Prints what was found, what is wanted, why,\n"
        "and what to do; the verdict last."
    )
    parser.epilog = (
        "Exit: 0 PASS, 1 FAIL, 2 usage, 3 INCONCLUSIVE (something could not be read, or there\n"
        "was nothing to check)."
    )
    parser.add_argument(
        "--traits",
        action="store_true",
        help="only whether a host of hardware contradicts perch_fabric_traits",
    )
    parser.add_argument("folder", metavar="DIR", help="the folder that playbooks/check.yml made")


def _wrong(variables: Document) -> Iterator[str]:
    """What is wrong with a host's variables, in words."""
    from perch.plan.hosts import variables_of_a_host, wrong_ports

    known = variables_of_a_host()
    for key in variables:
        if key.startswith("perch_") and key not in known:
            yield f"there is no variable '{key}'{did_you_mean(key, known)}"
    yield from wrong_ports(variables)


def _planned(name: str, variables: Document) -> PlanHost:
    """A host as a plan would have it, from the inventory's variables."""
    from perch.model.plan import PlanHost
    from perch.plan.discovery import is_choice
    from perch.plan.hosts import (
        PORT,
        TOOLS_OF_A_HOST,
        default_scope,
        ports_of,
        refused_fabric,
        tool_ports,
        traits,
    )

    for why in _wrong(variables):
        raise PerchError(
            ExitCode.USAGE, why, place=f"host {name}", remedy="correct it in the inventory"
        )
    if variables.get("perch_fabric") is None:
        raise PerchError(
            ExitCode.USAGE,
            "perch_fabric is not set; it says what is checked",
            place=f"host {name}",
            remedy="give the variables of the inventory",
        )
    devices = variables.get("perch_devices") or []
    if isinstance(devices, list):
        devices = [{"name": one} if isinstance(one, str) else one for one in devices]
        # what a choice stands for, only the host knows: it has read those, and each is judged
        if any(is_choice(str(one.get("name"))) for one in devices if isinstance(one, dict)):
            devices = []
    given: Document = {
        "address": variables.get("perch_address") or name,
        "fabric": variables["perch_fabric"],
        "scope": default_scope(variables.get("perch_scope"), variables.get("perch_fabric")),
        "backends": variables.get("perch_backends") or [],
        "tools": variables.get("perch_tools") or TOOLS_OF_A_HOST,
        "devices": devices,
        "port": variables.get("perch_port") or PORT,
        "link_gbit_s": variables.get("perch_link_gbit_s"),
    }
    try:
        # numbers are text where they were given on Ansible's command line
        host = msgspec.convert(given, PlanHost, strict=False)
        host.traits = traits(variables)
        of_tools = tool_ports(variables)
    except msgspec.ValidationError as error:
        raise PerchError(
            ExitCode.USAGE,
            f"perch_{explained(error)}",
            place=f"host {name}",
            remedy="correct it in the inventory",
        ) from None
    fault = refused_fabric(host.fabric)
    if fault is not None:
        raise PerchError(ExitCode.USAGE, fault[0], place=f"host {name}", remedy=fault[1])
    own = {tool: of_tools[tool] for tool in host.tools if tool in of_tools}
    host.ports = [host.port, *ports_of(own, devices)]
    return host


def _question(
    files: RawFiles, name: str, host: PlanHost, only: list[str] | None = None
) -> Question | None:
    """What is to be judged of a host; None where it left no answer. `only`: in these areas."""
    from perch.judge import findings, hosts

    answer = hosts.answer_of(files, name) if _NAME.fullmatch(name) else None
    if answer is None or not hosts.is_answer(answer):
        return None
    slingshot = host.fabric == "slingshot" or "cxi" in [*host.backends, *host.tools]
    areas = only or findings.areas(machine=True, slingshot=slingshot)
    return findings.Question(areas, hosts.subject(name, host, hosts.wanted_of(files, name)), answer)


def _line(finding: Document, scope: str) -> tuple[str, str]:
    """The status of a finding, and the finding in words."""
    from perch.checks.hosts import finding_status, words

    status = finding_status(finding, scope)
    text = f"{finding['id']}: {words(finding)}"
    if status != "pass" and finding["status"] != "info":
        wanted = "" if finding["wanted"] is None else f"; wanted: {finding['wanted']}"
        text += f"{wanted}; {finding['why']}. {finding['remedy']}"
    return status, text


def _lines(files: RawFiles, hosts: dict[str, PlanHost]) -> Iterator[tuple[str, str, str]]:
    """(status, host, text) of everything that was found."""
    from perch.judge import findings
    from perch.judge.hosts import unknown_setting

    asked = {name: _question(files, name, host) for name, host in hosts.items()}
    found = findings.judged([question for question in asked.values() if question])
    for name, host in hosts.items():
        question = asked[name]
        unknown = "inconclusive" if host.scope == "hardware" else "not_judged"
        if question is None:
            yield unknown, name, "the host's checks did not run, or left nothing that can be read"
        elif misspelt := unknown_setting(name, question.host["wanted"]):
            yield unknown, name, misspelt
        for finding in found.get(name, []):
            status, text = _line(finding, host.scope)
            yield status, name, text


def _contradictions(files: RawFiles, hosts: dict[str, PlanHost]) -> Iterator[str]:
    """What the hosts do against the traits that the inventory says of their fabric."""
    from perch.judge import findings

    area, contradicted = TRAITS
    said = {name: host for name, host in hosts.items() if host.traits}
    asked = [_question(files, name, host, [area]) for name, host in said.items()]
    found = findings.judged([question for question in asked if question])
    for name, host in said.items():
        for finding in found.get(name, []):
            status, text = _line(finding, host.scope)
            if finding["id"] == contradicted and status == "fail":
                yield f"host {name}: {text}"


def _verdict(count: Counter[str]) -> tuple[ExitCode, str]:
    """Of how many findings have each status."""
    if bad := count["fail"]:
        return ExitCode.FAIL, f"FAIL: {plural(bad, 'bad finding')}"
    if unknown := count["inconclusive"]:
        return ExitCode.INCONCLUSIVE, f"INCONCLUSIVE: {plural(unknown, 'thing')} not known"
    if good := count["pass"]:
        return ExitCode.PASS, f"PASS: {plural(good, 'finding')}, as wanted"
    return ExitCode.INCONCLUSIVE, "INCONCLUSIVE: there was nothing to check"


def command(args: argparse.Namespace) -> int:
    """Judges the hosts and returns their verdict's exit code."""
    from perch.judge.raw import UNREADABLE, RawFiles

    root = Path(args.folder)
    if not root.is_dir():
        raise PerchError(ExitCode.USAGE, f"no such folder: '{args.folder}'")
    try:
        given = _variables.decode(sys.stdin.buffer.read() if sys.stdin else b"")
    except UNREADABLE:
        raise PerchError(
            ExitCode.USAGE,
            "standard input is not the JSON object {HOST: {perch_fabric, ...}}",
            remedy="give the variables of the hosts",
        ) from None
    hosts = {name: _planned(name, variables) for name, variables in given.items()}
    if args.traits:
        wrong = list(_contradictions(RawFiles(root), hosts))
        print(clean("\n".join(wrong)))
        return ExitCode.FAIL if wrong else ExitCode.PASS
    count: Counter[str] = Counter()
    for status, name, text in _lines(RawFiles(root), hosts):
        count[status] += 1
        print(clean(f"{SIGNS[status]}: {name}: {text}"))
    code, verdict = _verdict(count)
    print(verdict)
    return code
