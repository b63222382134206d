"""What the timer of a scheduled soak starts, on the control host. Standard library only.

    schedule.py CONFIG   runs the soak that CONFIG (perch.soak_schedule/1) describes

It runs soak.yml, then writes perch.prom for the node exporter, calls the notify hook, and removes
old runs. A soak of this schedule that was left in the middle, as by a reboot of this host, is
continued. Role soak writes CONFIG and the unit, which runs this once at a time.

Exit: 0 PASS, 1 FAIL, 3 INCONCLUSIVE or not measured; 2 usage, 6 not writable.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

Document = dict[str, Any]
EXITS = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}


def say(text: str) -> None:
    print(f"soak-scheduled: {text}", file=sys.stderr, flush=True)


def die(code: int, text: str) -> NoReturn:
    say(text)
    sys.exit(code)


def document(path: Path) -> Document:
    """A JSON object; empty where it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Outcome(NamedTuple):
    """What came of a soak.yml. `run`: the folder of its verdict, "" where it has made none.

    `files`: those that it wrote, by name. `is_old`: it only fetched a soak that had ended before.
    """

    verdict: str
    why: str = ""
    run: str = ""
    files: dict[str, Path] = {}
    is_old: bool = False


def measure(config: Document) -> Outcome:
    """Runs soak.yml, and reads what came of it. Anything missing or odd is INCONCLUSIVE."""
    playbook = config["playbook"]
    told = {**config["vars"], "plan_runs_dir": config["runs_dir"], "soak_wait": True}
    sources = [word for source in config["inventory"] for word in ("-i", source)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as variables:
        json.dump(told, variables)  # a command line can be read by everybody
        variables.flush()
        began_ns = os.fstat(variables.fileno()).st_mtime_ns
        command = [*config["ansible"], playbook, *sources, "-e", f"@{variables.name}"]
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    return _outcome(Path(config["runs_dir"]), began_ns, code, Path(playbook).name)


def _outcome(runs: Path, began_ns: int, code: int, playbook: str) -> Outcome:
    run = (runs / "latest").resolve()
    written = [one for one in run.glob("*") if one.stat().st_mtime_ns > began_ns]
    files = {one.name: one for one in written}
    ended = f"{playbook} ended with exit code {code}"
    if "verdict.json" not in files:
        return Outcome("INCONCLUSIVE", f"there is no verdict: {ended}")
    said = document(files["verdict.json"])
    verdict = str(said.get("verdict") if said.get("schema") == "perch.verdict/1" else None)
    soak, why = said.get("soak") or {}, ""
    if verdict not in EXITS:
        why = "its verdict.json cannot be read"
    elif verdict != "FAIL" and soak.get("running") is not False:
        why = f"its verdict does not say that the soak is over, and {ended}"
    elif verdict == "PASS" and code != 0:
        why = f"{ended}, although the verdict is PASS"
    over = soak.get("ended")
    is_old = bool(over) and datetime.fromisoformat(str(over)).timestamp() * 1e9 < began_ns
    return Outcome("INCONCLUSIVE" if why else verdict, why, str(run), files, is_old)


# ---- what it tells -------------------------------------------------------------------------------


def export(config: Document, outcome: Outcome) -> None:
    """The node exporter, another user, reads *.prom: the file appears whole, and readable."""
    if not config["textfile_dir"]:
        return
    name, folder, verdict = config["name"], Path(config["textfile_dir"]), outcome.verdict
    own = outcome.files.get("perch.prom")
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


def tell(config: Document, outcome: Outcome) -> None:
    """The hook gets its last three arguments, and the same in its environment."""
    hook, limit = config["notify"], config["notify_limit_s"]
    if not hook:
        return
    report = str(outcome.files.get("report.html") or outcome.files.get("report.md") or "")
    told = {"SCHEDULE": config["name"], "VERDICT": outcome.verdict, "REPORT": report,
            "RUN_DIR": outcome.run, "MESSAGE": outcome.why}  # fmt: skip
    environment = {**os.environ, **{f"PERCH_{key}": value for key, value in told.items()}}
    command = [*hook, outcome.verdict, report, outcome.run]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, env=environment, check=True,
                       timeout=limit)  # fmt: skip
    except OSError as error:
        say(f"the notify hook {hook[0]} cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        say(f"the notify hook {hook[0]} was ended: it took longer than {limit} s")
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


def _measured(config: Document) -> Outcome:
    """A soak of this time: one that only lay on the hosts is none, and a failed one hides none."""
    outcome = measure(config)
    if outcome.is_old and outcome.verdict == "FAIL":
        why = "this soak had ended before and was not fetched yet; it was not run again"
        return outcome._replace(why=why)
    if outcome.is_old:
        say(f"{outcome.verdict} is the verdict of {outcome.run}, which had ended before and"
            " was not fetched yet; now one is begun")  # fmt: skip
        outcome = measure(config)
    if outcome.is_old:
        why = "nothing was measured: a soak that had ended before was fetched once more"
        outcome = outcome._replace(verdict="INCONCLUSIVE", why=why)
    return outcome


def run(config: Document) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    runs = Path(config["runs_dir"])
    mark = runs / f".perch-soak-{config['name']}.running"
    was_left = mark.exists()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError:
        die(6, f"{runs} is not writable; the runs of this schedule are kept there")
    if was_left:
        say("the soak before this one was left in the middle; it is continued if it still runs")
    try:
        outcome = measure(config) if was_left else _measured(config)
    except SystemExit:
        say(f"ended from outside. On the hosts the soak continues; the next start of"
            f" perch-soak-{config['name']}.service attaches to it, and playbooks/soak_stop.yml"
            " ends it")  # fmt: skip
        raise
    mark.unlink()
    say(": ".join(filter(None, [outcome.verdict, outcome.why, outcome.run])))
    export(config, outcome)
    tell(config, outcome)
    if config["keep"] and outcome.run and not outcome.why:
        remove_old(runs, config["keep"])
    return EXITS[outcome.verdict]


def main(words: list[str]) -> int:
    if len(words) != 1:
        die(2, f"one argument is needed\n\n{__doc__}")
    config = document(Path(words[0]))
    if config.get("schema") != "perch.soak_schedule/1":
        die(2, f"{words[0]}: no configuration of a schedule; run playbooks/soak_schedule.yml")
    return run(config)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
