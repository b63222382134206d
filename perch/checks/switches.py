"""What the switches dropped, paused and marked while the flows ran.

A switch that could not be read, and a port that was not found, leave their checks INCONCLUSIVE
whatever the scope: never a pass by omission.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from perch.checks import RunView, check, first, names, plural
from perch.checks.hosts import by_id, finding_status, titled
from perch.checks.switch_bytes import COLUMNS, moved
from perch.model.figures import rounded
from perch.model.imported import Stated
from perch.model.sections import During
from perch.model.verdict import Check, CheckStatus

Finding = dict[str, Any]

#: Figures of documents that the check repeats; all are in the verdict.
STATED_MAX = 5


def _place(finding: Finding) -> str:
    port = finding.get("device")
    return str(finding["switch"]) + (f" {port}" if port is not None else "")


def _counted(findings: list[Finding]) -> str:
    if findings[0].get("device") is None:
        return plural(len(findings), "switch").replace("switchs", "switches")
    return plural(len(findings), "port")


def _judged(alike: list[Finding], status: CheckStatus) -> Check:
    """One check for all ports where all is well; one for each other thing that was found."""
    one = alike[0]
    place, wanted = _place(one), one.get("wanted")
    if status == "pass":
        measured = f"{_counted(alike)}: {wanted}"
    else:
        host = f" ({one['host']})" if one.get("host") else ""
        more = f", and {len(alike) - 1} more" if len(alike) > 1 else ""
        measured = f"{place}{host}: {one.get('found')}{more}"
        measured += "" if wanted is None else f"; wanted: {wanted}"
    shown_only = status == "pass" or one["status"] == "info"
    title, fault = titled(one, "Switches", status)
    return Check(
        id=f"switch/{one['id']}" + ("" if status == "pass" else "/" + place.replace(" ", "/")),
        title=title,
        fault=fault,
        status=status,
        measured=measured,
        source=f"{one.get('source')}: {one.get('why')}",
        evidence=first(sorted({_place(finding) for finding in alike})),
        remedy=None if shown_only else one.get("remedy"),
    )


def _shown(alike: list[Finding]) -> Check:
    """A figure that nothing is wanted of: the largest of all ports."""
    one = alike[0]
    most = max(
        (finding for finding in reversed(alike) if finding.get("value") is not None),
        key=lambda finding: finding["value"],
        default=None,
    )
    measured = "no switch tells"
    if most is not None:
        value = rounded(most["value"])
        measured = f"at most {value:,} {one['unit']}, on {_place(most)} ({most['host']})"
    return Check(
        id=f"switch/{one['id']}",
        title=f"Switches: {one['id'].replace('-', ' ')}",
        status="not_judged",
        measured=measured,
        source=f"{one.get('source')}: {one.get('why')}",
        evidence=[] if most is None else [_place(most)],
    )


def _groups(findings: list[Finding]) -> Iterator[Check]:
    judged: dict[tuple[str, CheckStatus, tuple[str, str]], list[Finding]] = {}
    shown: dict[str, list[Finding]] = {}
    for finding in findings:
        if "unit" in finding:
            shown.setdefault(finding["id"], []).append(finding)
            continue
        status: CheckStatus = (
            "inconclusive" if finding.get("open") else finding_status(finding, finding["scope"])
        )
        what = ("", "") if status == "pass" else (_place(finding), str(finding.get("found")))
        judged.setdefault((finding["id"], status, what), []).append(finding)
    yield from by_id(_judged(judged[key], key[1]) for key in sorted(judged))
    for name in sorted(shown):
        yield _shown(shown[name])


def _unfound(hosts: Iterable[str], rows: list[Finding]) -> Iterator[Check]:
    """A host that no port leads to was not looked at."""
    found = {port["host"] for switch in rows for port in switch["rows"]}
    missing = [name for name in hosts if name not in found]
    if any(row.get("faults") for row in rows):
        remedy = "correct first what switch/answers found"
    else:
        remedy = (
            "name the port (switch_check_ports: {HOST: PORT}), or turn LLDP on at host and "
            "switch; add the host's switch to the group switches"
        )
    if missing:
        yield Check(
            id="switch/ports",
            title="Switches: a port was found for every host",
            fault="Switches: no port was found for some hosts",
            status="inconclusive",
            measured=f"none leads to {names(missing, 8)}",
            source="design, a port that is not found makes its checks inconclusive",
            evidence=first(missing),
            remedy=remedy,
        )


def _shared(run: RunView) -> Iterator[Check]:
    """Ports of several machines that the inventory does not name, as of a multi-host card."""
    shared: dict[str, list[str]] = {}
    for row in run.switches.rows if run.switches else []:
        named = (run.plan.switches or {})[row["name"]].ports
        hosts: dict[str, list[str]] = {}
        for port in row["rows"]:
            hosts.setdefault(port["port"], []).append(port["host"])
        for port, of in hosts.items():
            machines = {
                (run.hosts[one].hostname if one in run.hosts else None) or one for one in of
            }
            if len(machines) > 1 and not named.keys() >= set(of):
                shared[f"{row['name']} {port}"] = of
    if shared:
        place, of = next(iter(shared.items()))
        more = f", and {plural(len(shared) - 1, 'more port')}" if len(shared) > 1 else ""
        yield Check(
            id="switch/shared",
            title="Switches: each port leads to one host",
            fault="Switches: a port leads to several hosts",
            status="inconclusive",
            measured=f"{place} leads to {names(of, 3)}{more}",
            source="design, a port that is not found makes its checks inconclusive",
            evidence=first(sorted({name for of in shared.values() for name in of})),
            remedy="name the port of each of these hosts (switch_check_ports: {HOST: PORT}), or "
            "correct their LLDP",
        )


def _unread(run: RunView) -> Iterator[Check]:
    """Switches that the plan names for hosts of hardware, and that were not read.

    One of the provider infiniband stands for all of its fabric. Nothing reads Slingshot's.
    """
    planned = run.plan.switches or {}
    whole = any(one.provider == "infiniband" for one in planned.values())
    unread: dict[bool, dict[str, list[str]]] = {True: {}, False: {}}
    for name, host in run.plan.hosts.items():
        if host.scope != "hardware" or not host.switch or host.switch in planned:
            continue
        if not (whole and host.fabric == "infiniband"):
            unread[host.fabric != "slingshot"].setdefault(host.switch, []).append(name)
    for readable, found in unread.items():
        if found:
            hosts = [name for of_switch in found.values() for name in of_switch]
            yield Check(
                id="switch/unread" + ("" if readable else "/slingshot"),
                title="Switches: those that the inventory names were read",
                fault="Switches: some named in the inventory were not read",
                status="inconclusive" if readable else "not_judged",
                measured=f"{names(list(found), 8)}, of {plural(len(hosts), 'host')}",
                source="design, never a PASS by omission",
                evidence=first(hosts),
                remedy="add the switch to the group switches (roles/switch_check/README.md); "
                "without perch_switch the verdict is of hosts and links only"
                if readable
                else None,
            )


def _lossless(run: RunView, hosts: Iterable[str]) -> list[set[str]]:
    """The lossless priorities that each of these hosts wants, of those that say so."""
    wanted = [run.hosts[name].wanted.get("pfc_priorities") for name in hosts if name in run.hosts]
    return [set(map(str, one)) for one in wanted if isinstance(one, list)]


def _by_priorities(run: RunView, rows: list[Finding]) -> Iterator[Check]:
    """What must be lossless is known, and hosts and switches agree on it.

    A switch without a priority would be judged by whatever it has PFC on.
    """
    faults: dict[str, str] = {}
    judged = 0
    for row in rows:
        planned = (run.plan.switches or {})[row["name"]]
        hosts = {
            port["host"] for port in row["rows"] if port["host"] in run.plan.hosts
            and run.plan.hosts[port["host"]].scope == "hardware"
        }  # fmt: skip
        hollow = row.get("faults") or not hosts  # nothing of such a switch is judged
        if planned.provider == "infiniband" or planned.scope != "hardware" or hollow:
            continue
        judged += 1
        wanted = _lossless(run, sorted(hosts))
        lacking = set().union(*wanted) - set(map(str, planned.priorities))
        if lacking:
            said = ", ".join(sorted(lacking))
            faults[row["name"]] = f"its hosts want priority {said} lossless, the plan does not"
        elif not planned.priorities and not wanted:
            faults[row["name"]] = "neither its hosts nor the plan name a lossless priority"
    if judged:
        name, why = next(iter(faults.items()), ("", ""))
        yield Check(
            id="switch/priorities",
            title="Switches: hosts and switches agree on the lossless priorities",
            fault="Switches: hosts and switches differ in lossless priorities",
            status="inconclusive" if faults else "pass",
            measured=f"{name}: {why}" if faults else judged,
            unit=None if faults else "switches",
            source="design, never a PASS by omission",
            evidence=first(faults),
            remedy="set switch_check_priorities as host_check_pfc_priorities; where that is [], no "
            "priority is lossless"
            if faults
            else None,
        )


def _stated(stated: list[Stated]) -> Iterator[Check]:
    """Words of a person about a switch can warn, and prove nothing."""
    if not stated:
        return
    lost = [one for one in stated if one.measure in ("drops", "errors") and one.high > 0]
    said = dict.fromkeys(one.words for one in lost or stated)
    yield Check(
        id="switch/stated",
        title="Switches: documents state no drops or errors",
        fault="Switches: documents state drops or errors",
        status="advisory" if lost else "not_judged",
        measured=f"in words, read from no switch: {'; '.join(list(said)[:STATED_MAX])}",
        source="design, imported figures can fail a run, never pass it",
        evidence=first(one.place for one in lost or stated),
        remedy="list the switches in the inventory (group switches) and let Perch read them",
    )


def _attended(sampled: dict[str, During]) -> str:
    """Of a soak's switches the one that was read least, as no playbook was there."""
    shares = {name: one["covered_percent"] or 0 for name, one in sampled.items()}
    name = min(shares, key=shares.__getitem__)
    return f"; {name} was read in {shares[name]:.3g} % of the soak: only while a playbook waits"


def _while_flows_ran(rows: list[Finding], is_soak: bool) -> Iterator[Check]:
    """Readings during the flows show when it was; the counters before and after are judged."""
    sampled: dict[str, During] = {row["name"]: row["during"] for row in rows if "during" in row}
    if not sampled:
        return
    intervals = sum(one["intervals"] for one in sampled.values())
    marked = {name: one for name, one in sampled.items() if one["marked"] or not one["intervals"]}
    measured = f"{plural(intervals, 'interval')} on {names(list(sampled), 8)}"
    if marked:
        name, worst = max(marked.items(), key=lambda of: of[1]["marked"])
        why = worst["marks"][0]["why"] if worst["marks"] else "only one reading"
        measured += f"; no rate in {sum(one['marked'] for one in marked.values())}: {name}: {why}"
    if is_soak:
        measured += _attended(sampled)
    yield Check(
        id="switch/during",
        title="Switches: each interval while flows ran has rates",
        fault="Switches: some intervals while flows ran have no rate",
        status="advisory" if marked else "pass",
        measured=measured,
        source="design, a figure that is not certain is not shown",
        evidence=first(marked or sampled),
        remedy="set switch_check_interval longer if answers are late; do not clear counters "
        "during a run"
        if marked
        else None,
    )


@check(family="switch", order=180, columns=COLUMNS)
def switches(run: RunView) -> Iterator[Check]:
    if run.documents is not None:
        yield from _stated(run.documents.switches)
    yield from _unread(run)
    if run.switches is None:
        return
    yield from _by_priorities(run, run.switches.rows)
    yield from _groups(run.switches.findings)
    yield from moved(run)
    yield from _while_flows_ran(run.switches.rows, run.plan.soak is not None)
    yield from _unfound(run.plan.hosts, run.switches.rows)
    yield from _shared(run)
    simulated = [row["name"] for row in run.switches.rows if row.get("scope") == "simulated"]
    if simulated:
        yield Check(
            id="switch/simulated",
            title="Switches: some are simulated",
            status="not_judged",
            measured=f"simulated, no proof of any switch: {names(simulated, 8)}",
            source="design, software and simulated scopes are named",
            evidence=first(simulated),
        )
