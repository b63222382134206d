"""What the service of a scheduled soak runs at its end, on the control host. Standard library only.

    schedule.py NAME RUNS KEEP TEXTFILE [HOOK...]

It writes perch.prom for the node exporter into TEXTFILE, calls the hook, and leaves KEEP runs in
RUNS; "" and 0: not so. Role soak writes the unit, in which systemd runs soak.yml once at a time,
and says how that ended: SERVICE_RESULT and EXIT_STATUS (systemd.exec(5)). A file marks a soak that
systemd has begun. Where soak.yml was ended from outside, as by a reboot, it stays, and the soak is
continued.

Exit: 0 PASS or to be continued, 1 FAIL, 3 INCONCLUSIVE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

Document = dict[str, Any]
EXITS = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}

#: How a soak.yml ends that is told to: by the signal, or with Ansible's or a shell's code for it.
TOLD_TO_END = ("TERM", "INT", "HUP", "99", "130", "143")

OVER_TIME = "soak.yml was ended: it took longer than its time. On the hosts the soak continues"


def say(text: str) -> None:
    print(f"soak-scheduled: {text}", file=sys.stderr, flush=True)


def document(path: Path) -> Document:
    """A JSON object; empty where it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Outcome(NamedTuple):
    """What came of a soak.yml. `run`: the folder of its verdict, "" where it has made none.

    `files`: those that it wrote, by name.
    """

    verdict: str
    why: str = ""
    run: str = ""
    files: dict[str, Path] = {}


def outcome_of(runs: Path, began: float, status: str) -> Outcome:
    """Anything missing or odd is INCONCLUSIVE."""
    run = (runs / "latest").resolve()
    files = {one.name: one for one in run.glob("*") if one.stat().st_mtime > began}
    ended = f"soak.yml ended with exit code {status}"
    if "verdict.json" not in files:
        return Outcome("INCONCLUSIVE", f"there is no verdict: {ended}")
    said = document(files["verdict.json"])
    verdict = str(said.get("verdict") if said.get("schema") == "perch.verdict/1" else None)
    soak, why = said.get("soak") or {}, ""
    over = soak.get("ended")
    if verdict not in EXITS:
        why = "its verdict.json cannot be read"
    elif verdict != "FAIL" and soak.get("running") is not False:
        why = f"its verdict does not say that the soak is over, and {ended}"
    elif verdict == "PASS" and status != "0":
        why = f"{ended}, although the verdict is PASS"
    elif over and datetime.fromisoformat(str(over)).timestamp() < began:
        why = "this soak had ended before and was not fetched yet; no new one was begun"
    is_known = not why or verdict == "FAIL"
    return Outcome(verdict if is_known else "INCONCLUSIVE", why, str(run), files)


def export(name: str, folder: Path, outcome: Outcome) -> None:
    """The node exporter, another user, reads *.prom: the file appears whole, and readable."""
    verdict, own = outcome.verdict, outcome.files.get("perch.prom")
    text = own.read_text() if own else ""
    if f'perch_verdict{{verdict="{verdict}"}} 1' not in text.splitlines():
        # no figure of an earlier run may look like today's
        text = "# HELP perch_verdict 1 at the run's verdict, 0 at the others.\n"
        text += "# TYPE perch_verdict gauge\n"
        text += "".join(f'perch_verdict{{verdict="{v}"}} {int(v == verdict)}\n' for v in EXITS)
    gauges = [
        ("passed", "1 if the scheduled run was measured to its end and passed", verdict == "PASS"),
        ("end_timestamp_seconds", "When it ended and this was written, since 1970", time.time()),
    ]
    for gauge, about, value in gauges:
        gauge = f"perch_schedule_{gauge}"
        text += f"# HELP {gauge} {about}.\n# TYPE {gauge} gauge\n"
        text += f'{gauge}{{schedule="{name}"}} {int(value)}\n'
    new = folder / f".perch.prom.{name}"
    try:
        new.write_text(text)
        new.chmod(0o644)
        new.replace(folder / "perch.prom")
    except OSError:
        say(f"{folder}/perch.prom could not be written; its content belongs to an earlier run")


def tell(name: str, hook: list[str], outcome: Outcome) -> None:
    """The hook gets its last three arguments, and the same in its environment."""
    report = str(outcome.files.get("report.html") or outcome.files.get("report.md") or "")
    told = {"SCHEDULE": name, "VERDICT": outcome.verdict, "REPORT": report,
            "RUN_DIR": outcome.run, "MESSAGE": outcome.why}  # fmt: skip
    environment = {**os.environ, **{f"PERCH_{key}": value for key, value in told.items()}}
    command = [*hook, outcome.verdict, report, outcome.run]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, env=environment, check=True)
    except OSError as error:
        say(f"the notify hook {hook[0]} cannot be started: {error.strerror}")
    except subprocess.CalledProcessError as error:
        say(f"the notify hook {hook[0]} failed with exit code {error.returncode}")


def remove_old(runs: Path, keep: int) -> None:
    """Those before the newest `keep`. Accepted runs, baselines of later ones, stay."""
    try:
        histories = [one.read_text() for one in runs.glob("baseline/*/history.jsonl")]
        accepted = {json.loads(line)["run"] for text in histories for line in text.splitlines()}
    except (OSError, ValueError, KeyError, TypeError):
        return say(f"no old run is removed: accepted runs in {runs} cannot be read")
    judged = [one.parent for one in runs.glob("[0-9]*/verdict.json") if not one.parent.is_symlink()]
    for folder in sorted(judged, reverse=True)[keep:]:
        run = document(folder / "plan.json").get("run")
        if run and run not in accepted:
            shutil.rmtree(folder, ignore_errors=True)
            say(f"removed {folder.name}, of which {keep} newer ones are kept")
    return None


def main(name: str, folder: str, keep: str, textfile: str, *hook: str) -> int:
    runs, status = Path(folder), os.environ.get("EXIT_STATUS", "unknown")
    mark = runs / f".perch-soak-{name}.running"
    timed_out = os.environ.get("SERVICE_RESULT") == "timeout"
    if status in TOLD_TO_END and not timed_out:
        say(
            f"ended from outside. On the hosts the soak continues; the next start of"
            f" perch-soak-{name}.service attaches to it, and playbooks/soak_stop.yml ends it"
        )
        return 0
    # without a mark systemd could not even begin it
    began = mark.stat().st_mtime if mark.exists() else time.time()
    outcome = Outcome("INCONCLUSIVE", OVER_TIME) if timed_out else outcome_of(runs, began, status)
    mark.unlink(missing_ok=True)
    say(": ".join(filter(None, [outcome.verdict, outcome.why, outcome.run])))
    if textfile:
        export(name, Path(textfile), outcome)
    if int(keep) and outcome.run and not outcome.why:
        remove_old(runs, int(keep))
    if hook:
        tell(name, list(hook), outcome)
    return EXITS[outcome.verdict]  # the service has failed, too, where it is no PASS


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
