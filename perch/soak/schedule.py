"""What the timer of a scheduled soak starts, on the control host. Standard library only.

    schedule.py CONFIG            runs the soak that CONFIG (perch.soak_schedule/1) describes
    schedule.py --check <CONFIG   says what is wrong with it, or when it is due

It runs soak.yml, then writes perch.prom for the node exporter, calls the notify hook, and removes
old runs. A soak of this schedule that was left in the middle, as by a reboot of this host, is
continued. Role soak writes CONFIG and the unit.

Exit: 0 PASS, 1 FAIL, 3 INCONCLUSIVE or not measured; 2 usage, 6 not writable.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

Document = dict[str, Any]
EXITS = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}

#: Seconds between two looks at whether soak.yml takes too long, and those in which it must end:
#: less than systemd gives this program (TimeoutStopSec of the unit).
LOOK_S, END_S = 60.0, 10.0

#: What a schedule does with a path.
VERBS = {os.R_OK: "read", os.W_OK: "write in", os.X_OK: "run"}


def say(text: str) -> None:
    print(f"soak-scheduled: {text}", file=sys.stderr, flush=True)


def die(code: int, text: str) -> NoReturn:
    say(text)
    sys.exit(code)


#: Of each host, whose last line is the end of its agent.
LINES = "raw/*/flows.jsonl"


def document(path: Path | None) -> Document:
    """A JSON object, of standard input without a path; empty where it cannot be read."""
    try:
        found = json.loads(path.read_bytes() if path else sys.stdin.buffer.read())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# ---- what a schedule is asked before it is installed, as the user that will run it ---------------


def _asked(kind: str, name: str, text: str) -> Iterator[str]:
    """What systemd refuses, in its own words; a calendar without a date in the future, too."""
    if re.search(r"[\x00-\x1f\x7f%]", text):  # in a unit, % begins a specifier
        yield f'{name} is "{text}", which does not fit on a line of a unit'
        return
    command = ["systemd-analyze", kind, "--", text]
    said = subprocess.run(command, env={**os.environ, "LC_ALL": "C.UTF-8"}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    due = re.search(r"Next elapse: .*", said.stdout)
    if said.returncode != 0 or (due and due[0] == "Next elapse: never"):
        why = said.stdout.strip() if said.returncode else "Next elapse: never"
        yield f'{name} is "{text}"; systemd says: {why}'
    elif kind == "calendar" and due:
        print(due[0])


def faults(config: Document) -> Iterator[str]:
    """What types and ranges of variables do not tell: Ansible has checked those."""
    yield from _asked("calendar", "soak_schedule_calendar", config["calendar"])
    yield from _asked("timespan", "soak_schedule_delay", config["delay"])
    needed = [("playbook", config["playbook"], os.R_OK)]
    needed += [("inventory", source, os.R_OK) for source in config["inventory"]]
    needed += [(key, word, os.X_OK) for key in ("ansible", "notify") for word in config[key][:1]]
    needed += [("textfile_dir", f"{one}/.", os.W_OK) for one in [config["textfile_dir"]] if one]
    for key, path, mode in needed:
        if not (path.startswith("/") and os.access(path, mode)):
            who = f"{getpass.getuser()} cannot {VERBS[mode]} {path.removesuffix('/.')}"
            yield f"soak_schedule_{key}: {who} on this machine; give a whole path that exists"


# ---- the soak ------------------------------------------------------------------------------------


def ran(command: list[str], limit: Callable[[], float], what: str, **more: Any) -> int:
    """Its exit code, as shells report it. It is ended where it takes longer, or where we end."""
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **more)
    except OSError as error:
        say(f"{what} cannot be started: {error.strerror}")
        return 127
    began = time.monotonic()
    try:
        while (left := began + limit() - time.monotonic()) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(min(left, LOOK_S))
                break
        if child.poll() is None:
            say(f"{what} was ended: it took longer than {limit():g} s")
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if child.poll() is None:
                os.killpg(child.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(END_S)
    code: int = child.wait()
    return 128 - code if code < 0 else code


class Schedule:
    """`before`: the newest run when it began. `run`: that of this time, "" where there is none."""

    def __init__(self, config: Document) -> None:
        self.config = config
        self.name: str = config["name"]
        self.runs = Path(config["runs_dir"])
        self.playbook = Path(config["playbook"]).name
        self.began = int(time.time())
        self.mark = self.runs / f".perch-soak-{self.name}.running"
        self.own = self.runs / f".perch-soak-{self.name}.runs"
        self.before = self.run = self.why = ""
        self.verdict = "INCONCLUSIVE"
        self.soak: Document = {}
        self.fresh_since = self.code = 0

    def lock(self) -> None:
        """One soak at a time: a person may start the schedule, too."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.runs / f".perch-soak-{self.name}.lock", os.O_CREAT | os.O_RDWR)
        except OSError:
            die(6, f"{self.runs} is not writable; the runs of this schedule are kept there")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            die(3, f"a soak of the schedule {self.name} is running; its runs are in"
                f" {self.runs}")  # fmt: skip

    def latest(self) -> str:
        """The newest run of this schedule, or nothing."""
        latest = self.runs / "latest"
        return latest.resolve().name if latest.is_dir() else ""

    def begin(self) -> None:
        """The newest run before: the one after it is ours. The mark of a soak left has it."""
        if self.mark.is_file():
            self.before = self.mark.read_text().strip()
            since = f" (the newest run was {self.before} then)" if self.before else ""
            say(f"the soak before this one was left in the middle{since}; it is continued if it"
                " still runs")  # fmt: skip
            return
        self.before = self.latest()
        new = self.mark.with_suffix(".new")
        new.write_text(f"{self.before}\n")
        new.replace(self.mark)

    def measure(self, work: Path) -> None:
        """Runs soak.yml, and reads what came of it."""
        config, variables = self.config, work / "vars.json"
        told = {**config["vars"], "plan_runs_dir": config["runs_dir"], "soak_wait": True}
        variables.write_text(json.dumps(told))  # a command line can be read by everybody
        self.fresh_since = variables.stat().st_mtime_ns
        sources = [word for source in config["inventory"] for word in ("-i", source)]
        command = [*config["ansible"], config["playbook"], *sources, "-e", f"@{variables}"]
        try:
            self.code = ran(command, self._limit, self.playbook)
        except SystemExit:
            say(f"ended from outside. On the hosts the soak continues; the next start of"
                f" perch-soak-{self.name}.service attaches to it, and playbooks/soak_stop.yml"
                " ends it")  # fmt: skip
            raise
        self._read_outcome()

    def _limit(self) -> float:
        """Seconds after which a soak.yml hangs: else the schedule would have no other soak."""
        run = self.latest()
        soak = document(self.runs / run / "plan.json").get("soak") if run else None
        return float(self.config["limit_s"] + (soak or {}).get("duration_s", 0))

    def _fresh(self, name: str) -> Path | None:
        """A file of the run that was written since soak.yml was started."""
        path = self.runs / self.run / name
        is_fresh = self.run and path.is_file() and path.stat().st_mtime_ns > self.fresh_since
        return path if is_fresh else None

    def _read_outcome(self) -> None:
        """Sets run, verdict and why. Anything missing or odd is INCONCLUSIVE."""
        self.run, self.verdict = self.latest(), "INCONCLUSIVE"
        ended = f"{self.playbook} ended with exit code {self.code}"
        file = self._fresh("verdict.json")
        said = document(file) if file else {}
        verdict = said.get("verdict") if said.get("schema") == "perch.verdict/1" else None
        self.soak = said.get("soak") or {}
        if file is None and self.run in ("", self.before):
            self.run, self.why = "", f"no run was begun: {ended}"
        elif file is None:
            self.why = f"the run has no verdict: {ended}"
        elif verdict not in EXITS:
            self.why = "its verdict.json cannot be read"
        elif verdict != "FAIL" and self.soak.get("running") is not False:
            self.why = f"its verdict does not say that the soak is over, and {ended}"
        elif verdict == "PASS" and self.code != 0:
            self.why = f"{ended}, although the verdict is PASS"
        else:
            self.verdict, self.why = verdict, ""

    def was_over(self) -> bool:
        """Whether soak.yml only fetched a soak that had ended before: nothing was measured."""
        ended = self.soak.get("ended") if self.run == self.before else None
        return bool(ended) and datetime.fromisoformat(str(ended)).timestamp() < self.began

    # ---- what it tells ---------------------------------------------------------------------------

    def export(self) -> None:
        """The node exporter, another user, reads *.prom: the file appears whole, and readable."""
        folder = self.config["textfile_dir"]
        if not folder:
            return
        file, says = self._fresh("perch.prom"), f'perch_verdict{{verdict="{self.verdict}"}} 1'
        text = file.read_text() if file else ""
        if says not in text.splitlines():  # no figure of an earlier run may look like today's
            text = _gauge("perch_verdict", "1 at the run's verdict, 0 at the others.", [
                (f'verdict="{one}"', int(one == self.verdict)) for one in EXITS
            ])  # fmt: skip
        of = f'schedule="{self.name}"'
        about = "1 if the scheduled run was measured to its end and passed."
        text += _gauge("perch_schedule_passed", about, [(of, int(self.verdict == "PASS"))])
        about = "When it ended and this file was written, since 1970."
        text += _gauge("perch_schedule_end_timestamp_seconds", about, [(of, int(time.time()))])
        new = Path(folder) / f".perch.prom.{self.name}"
        try:
            new.write_text(text)
            new.chmod(0o644)
            new.replace(Path(folder) / "perch.prom")
        except OSError:
            say(f"{folder}/perch.prom could not be written; its content belongs to an earlier run")

    def tell(self) -> None:
        """The hook gets its last three arguments, and the same in its environment."""
        hook, limit = self.config["notify"], self.config["notify_limit_s"]
        if not hook:
            return
        report = str(self._fresh("report.html") or self._fresh("report.md") or "")
        folder = str(self.runs / self.run) if self.run else ""
        told = {"SCHEDULE": self.name, "VERDICT": self.verdict, "REPORT": report,
                "RUN_DIR": folder, "MESSAGE": self.why}  # fmt: skip
        environment = {**os.environ, **{f"PERCH_{key}": value for key, value in told.items()}}
        what = f"the notify hook {hook[0]}"
        code = ran([*hook, self.verdict, report, folder], lambda: limit, what, env=environment)
        if code:
            say(f"{what} failed with exit code {code}")

    # ---- the runs of the schedule ----------------------------------------------------------------

    def note_run(self) -> None:
        """Only what this list has was made by the schedule, and may be removed by it."""
        try:
            with self.own.open("a+") as own:
                own.seek(0)
                if self.run not in own.read().splitlines():
                    own.write(f"{self.run}\n")
        except OSError:
            say(f"{self.own} cannot be written: {self.run} will not be removed when it is old")

    def remove_old(self) -> None:
        """Those before the newest `keep`, and only after a run that was measured to its end.

        Accepted runs, baselines of later ones, stay, and so does what still runs.
        """
        keep = self.config["keep"]
        if keep == 0 or not self.run or self.why:
            return
        histories = self.runs.glob("baseline/*/history.jsonl")
        try:
            lines = [line for path in histories for line in path.read_text().splitlines()]
            accepted = {json.loads(line)["run"] for line in lines}
            own = self.own.read_text().splitlines()
        except (OSError, ValueError, KeyError, TypeError):
            say(f"no old run is removed: accepted runs in {self.runs} cannot be read")
            return
        folders = [self.runs / one for one in sorted(set(own), reverse=True)
                   if re.fullmatch(r"[0-9][A-Za-z0-9._-]+", one)]  # fmt: skip
        folders = [one for one in folders if one.is_dir() and not one.is_symlink()]
        for folder in folders[keep:]:
            run = document(folder / "plan.json").get("run", "")
            if run and run not in accepted and folder.name != self.run and not _runs(folder):
                try:
                    shutil.rmtree(folder)
                    say(f"removed {folder.name}, of which {keep} newer ones are kept")
                except OSError:
                    say(f"{folder} cannot be removed")


def _runs(folder: Path) -> bool:
    soak = document(folder / "verdict.json").get("soak") or {}
    ends = (b'\n{"kind":"end",' in path.read_bytes() for path in folder.glob(LINES))
    return bool(soak.get("running")) or not all(ends)


def _gauge(name: str, about: str, values: list[tuple[str, int]]) -> str:
    lines = [f"{name}{{{labels}}} {value}\n" for labels, value in values]
    return f"# HELP {name} {about}\n# TYPE {name} gauge\n" + "".join(lines)


def run(config: Document) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    one = Schedule(config)
    one.lock()
    one.begin()
    with tempfile.TemporaryDirectory() as folder:
        one.measure(Path(folder))
        if one.was_over() and one.verdict == "FAIL":
            one.why = "this soak had ended before and was not fetched yet; it was not run again"
        elif one.was_over():
            say(f"{one.verdict} is the verdict of the soak {one.run}, which had ended before and"
                " was not fetched yet; now one is begun")  # fmt: skip
            one.measure(Path(folder))
            if one.verdict != "FAIL" and one.was_over():
                one.verdict = "INCONCLUSIVE"
                one.why = (f"nothing was measured: {one.playbook} brought {one.run}, which had"
                           " ended before, a second time")  # fmt: skip
    if one.run:
        one.note_run()
    one.mark.unlink(missing_ok=True)
    why = f": {one.why}" if one.why else ""
    say(f"{one.verdict}{why}" + (f". {one.runs / one.run}" if one.run else ""))
    one.export()
    one.tell()
    one.remove_old()
    return EXITS[one.verdict]


def main(words: list[str]) -> int:
    if len(words) != 1:
        die(2, f"one argument is needed\n\n{__doc__}")
    is_check = words[0] == "--check"
    config = document(None if is_check else Path(words[0]))
    if config.get("schema") != "perch.soak_schedule/1":
        die(2, f"{words[0]}: no configuration of a schedule; run playbooks/soak_schedule.yml")
    if not is_check:
        return run(config)
    found = list(faults(config))
    for fault in found:
        say(fault)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
