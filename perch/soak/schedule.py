"""What the timer of a scheduled soak starts, on the control host. Standard library only.

    schedule.py CONFIG            runs the soak that CONFIG (perch.soak_schedule/1) describes
    schedule.py --check <CONFIG   says what is wrong with it, or when it is due

It runs soak.yml, then writes perch.prom for the node exporter, calls the notify hook, and removes
old runs. A soak of this schedule that was left in the middle, as by a reboot of this host, is
continued. Role soak writes CONFIG and the unit.

Exit: 0 PASS, 1 FAIL, 3 INCONCLUSIVE or not measured; 2 usage, 6 not writable.
"""

from __future__ import annotations

import calendar
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
from pathlib import Path
from typing import Any, NoReturn

Document = dict[str, Any]
EXITS = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}

#: Seconds between two looks at whether soak.yml takes too long, and those in which it must end:
#: less than systemd gives this program (TimeoutStopSec of the unit).
LOOK_S, END_S = 60.0, 10.0

TEXTS = ("name", "playbook", "runs_dir", "textfile_dir", "calendar", "delay")
LISTS = ("ansible", "inventory", "notify")
NUMBERS = {"keep": (0, 10**9), "limit_s": (1, 86400), "notify_limit_s": (1, 3600)}
VARIABLES = {"limit_s": "soak_schedule_limit", "notify_limit_s": "soak_schedule_notify_limit"}


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


def is_config(one: Document) -> bool:
    lists = [one.get(key) for key in LISTS]
    return (
        one.get("schema") == "perch.soak_schedule/1"
        and all(isinstance(one.get(key), str) for key in TEXTS)
        and all(isinstance(x, list) and all(isinstance(y, str) for y in x) for x in lists)
        and all(type(one.get(key)) is int for key in NUMBERS)
        and isinstance(one.get("vars"), dict)
        and re.fullmatch(r"[a-z0-9][a-z0-9-]*", one["name"]) is not None
    )


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


def _absent(path: str, name: str, what: str, mode: int) -> Iterator[str]:
    kinds = {"program": Path.is_file, "playbook": Path.is_file, "file or folder": Path.exists}
    is_kind = kinds.get(what, Path.is_dir)
    if not (path.startswith("/") and is_kind(Path(path)) and os.access(path, mode)):
        who = getpass.getuser()
        yield f"{name}: {path} is no {what} on this machine, by its whole path, or not for {who}"


def faults(config: Document) -> Iterator[str]:
    yield from _asked("calendar", "soak_schedule_calendar", config["calendar"])
    yield from _asked("timespan", "soak_schedule_delay", config["delay"])
    yield from _absent(config["playbook"], "soak_schedule_playbook", "playbook", os.R_OK)
    if not config["inventory"]:
        yield "soak_schedule_inventory is empty"
    for source in config["inventory"]:
        yield from _absent(source, "soak_schedule_inventory", "file or folder", os.R_OK)
    for key in ("ansible", "notify"):
        for program in config[key][:1]:
            yield from _absent(program, f"soak_schedule_{key}", "program", os.X_OK)
    if config["textfile_dir"]:
        what = "folder that can be written"
        yield from _absent(config["textfile_dir"], "soak_schedule_textfile_dir", what, os.W_OK)
    for key, (least, most) in NUMBERS.items():
        if not least <= config[key] <= most:
            name = VARIABLES.get(key, f"soak_schedule_{key}")
            yield f"{name} is {config[key]}; it is at least {least}, at most {most}"
    if {"plan_runs_dir", "soak_runs_dir"} & config["vars"].keys():
        yield (
            "soak_schedule_vars: the runs' folder is soak_schedule_runs_dir, and neither"
            " plan_runs_dir nor soak_runs_dir"
        )


# ---- the soak ------------------------------------------------------------------------------------


class EndedError(Exception):
    """A signal ends this program; on the hosts the soak continues."""


def _interrupt(_number: int, _frame: object) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise EndedError


def _end(
    child: subprocess.Popen[bytes], seconds: float, tell: Callable[[int, int], None] = os.kill
) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            tell(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
            return


def _code(child: subprocess.Popen[bytes]) -> int:
    """As shells report it."""
    code = child.wait()
    return 128 - code if code < 0 else code


class Schedule:
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
        with contextlib.suppress(OSError):
            run = str((self.runs / "latest").readlink())
            if re.fullmatch(r"[A-Za-z0-9._-]+", run) and self._is_folder(run):
                return run
        return ""

    def _is_folder(self, run: str) -> bool:
        return (self.runs / run).is_dir() and not (self.runs / run).is_symlink()

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
        """Sets `code`, the exit code of soak.yml."""
        config, variables = self.config, work / "vars.json"
        told = {**config["vars"], "plan_runs_dir": config["runs_dir"], "soak_wait": True}
        variables.write_text(json.dumps(told))  # a command line can be read by everybody
        self.fresh_since = variables.stat().st_mtime_ns
        sources = [word for source in config["inventory"] for word in ("-i", source)]
        command = [*config["ansible"], config["playbook"], *sources, "-e", f"@{variables}"]
        handlers = {
            number: signal.signal(number, _interrupt)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        child = None
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            self._await(child)
        except OSError as error:
            say(f"cannot start {command[0]}: {error.strerror}")
            self.code = 127
            return
        except EndedError:
            if child is not None:
                _end(child, END_S)
            say(f"ended from outside. On the hosts the soak continues; the next start of"
                f" perch-soak-{self.name}.service attaches to it, and playbooks/soak_stop.yml"
                " ends it")  # fmt: skip
            sys.exit(143)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        self.code = _code(child)

    def _await(self, child: subprocess.Popen[bytes]) -> None:
        """Ends a soak.yml that hangs: else the schedule would have no other soak."""
        limit = self.config["limit_s"]
        while child.poll() is None:
            passed = time.time() - self.began
            if passed > limit + self._duration():
                say(f"{self.playbook} is ended: it has run for {passed:.0f} s, {limit} s more than"
                    " its soak (soak_schedule_limit)")  # fmt: skip
                _end(child, END_S)
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(min(limit, LOOK_S))

    def _duration(self) -> float:
        """Seconds for which the plan measures, once there is one."""
        run = self.latest()
        soak = document(self.runs / run / "plan.json").get("soak") if run else None
        found = soak.get("duration_s") if isinstance(soak, dict) else None
        return found if isinstance(found, int | float) else 0

    # ---- what came of it -------------------------------------------------------------------------

    def _fresh(self, name: str) -> Path | None:
        """A file of the run that was written since soak.yml was started."""
        path = self.runs / self.run / name
        if not self.run or path.is_symlink() or not path.is_file() or not os.access(path, os.R_OK):
            return None
        return path if path.stat().st_mtime_ns > self.fresh_since else None

    def _soak(self) -> Document:
        found = document(self.runs / self.run / "verdict.json").get("soak")
        return found if isinstance(found, dict) else {}

    def read_outcome(self) -> None:
        """Sets run ("" without one), verdict and why. Anything missing or odd is INCONCLUSIVE."""
        self.run, self.verdict = self.latest(), "INCONCLUSIVE"
        ended = f"{self.playbook} ended with exit code {self.code}"
        file = self._fresh("verdict.json")
        if file is None and self.run in ("", self.before):
            self.run = ""
            self.why = f"no run was begun: {ended}"
            return
        said = document(file) if file else {}
        verdict = said.get("verdict") if said.get("schema") == "perch.verdict/1" else None
        if file is None:
            self.why = f"the run has no verdict: {ended}"
        elif verdict not in EXITS:
            self.why = "its verdict.json cannot be read"
        elif verdict != "FAIL" and self._soak().get("running") is not False:
            self.why = f"its verdict does not say that the soak is over, and {ended}"
        elif verdict == "PASS" and self.code != 0:
            self.why = f"{ended}, although the verdict is PASS"
        else:
            self.verdict, self.why = verdict, ""

    def was_over(self) -> bool:
        """Whether soak.yml only fetched a soak that had ended before: nothing was measured."""
        ended = self._soak().get("ended") if self.run and self.run == self.before else None
        try:
            moment = time.strptime(re.sub(r"[.]\d+", "", str(ended)), "%Y-%m-%dT%H:%M:%SZ")
        except ValueError:
            return False
        return calendar.timegm(moment) < self.began

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
        for name, about, labels, value in (
            ("info", "Always 1; the labels are the schedule and its run's folder (empty: none).",
             f'{of},folder="{self.run}"', 1),
            ("passed", "1 if the scheduled run was measured to its end and passed.",
             of, self.verdict == "PASS"),
            ("start_timestamp_seconds", "When the schedule began, since 1970.", of, self.began),
            ("end_timestamp_seconds", "When it ended and this file was written, since 1970.",
             of, time.time()),
        ):  # fmt: skip
            text += _gauge(f"perch_schedule_{name}", about, [(labels, int(value))])
        try:
            number, new = tempfile.mkstemp(dir=folder, prefix=".perch.prom.")
            with os.fdopen(number, "w") as out:
                out.write(text)
            Path(new).chmod(0o644)
            Path(new).replace(Path(folder) / "perch.prom")
        except OSError:
            say(f"{folder}/perch.prom could not be written; its content belongs to an earlier run")

    def tell(self) -> None:
        """The hook gets its last three arguments, and the same in its environment."""
        hook, limit = self.config["notify"], self.config["notify_limit_s"]
        if not hook:
            return
        report = self._fresh("report.html") or self._fresh("report.md") or ""
        folder = str(self.runs / self.run) if self.run else ""
        told = {"SCHEDULE": self.name, "VERDICT": self.verdict, "REPORT": str(report),
                "RUN_DIR": folder, "MESSAGE": self.why}  # fmt: skip
        environment = {**os.environ, **{f"PERCH_{key}": value for key, value in told.items()}}
        try:
            child = subprocess.Popen([*hook, self.verdict, str(report), folder], env=environment,
                                     stdin=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        except OSError as error:
            say(f"the notify hook {hook[0]} cannot be started: {error.strerror}")
            return
        try:
            child.wait(limit)
        except subprocess.TimeoutExpired:
            _end(child, 5, os.killpg)
            say(f"the notify hook {hook[0]} was ended: it took longer than {limit} s")
            return
        if child.returncode:
            say(f"the notify hook {hook[0]} failed with exit code {_code(child)}")

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

    def _accepted(self) -> set[str]:
        """Baselines of later runs, by name and by folder. Raises where they cannot be read."""
        names = [path for kind in ("baseline.json", "history.jsonl")
                 for path in self.runs.glob(f"baseline/*/{kind}")]  # fmt: skip
        lines = [(path, line) for path in names for line in path.read_text().splitlines()]
        found = {json.loads(line)["run"] for _, line in lines}
        index = self.runs / "index.jsonl"
        said = map(json.loads, index.read_text().splitlines() if index.exists() else [])
        return found | {one["folder"] for one in said if one.get("accepted") is not None}

    def _still_runs(self, folder: Path) -> bool:
        verdict = folder / "verdict.json"
        said = document(verdict)
        soak = said.get("soak")
        if verdict.is_file() and (not said or (isinstance(soak, dict) and soak.get("running"))):
            return True
        ends = (b'\n{"kind":"end",' in path.read_bytes() for path in folder.glob(LINES))
        return not all(ends)

    def remove_old(self) -> None:
        """Those before the newest `keep`, and only after a run that was measured to its end."""
        keep = self.config["keep"]
        if keep == 0 or not self.run or self.why:
            return
        try:
            accepted = self._accepted()
            own = self.own.read_text().splitlines()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            say(f"no old run is removed: accepted runs in {self.runs} cannot be read")
            return
        named = sorted({one for one in own if re.fullmatch(r"[0-9][A-Za-z0-9._-]+", one)})
        folders = [one for one in reversed(named) if self._is_folder(one)]
        for name in folders[keep:]:
            folder = self.runs / name
            plan = {} if (folder / "plan.json").is_symlink() else document(folder / "plan.json")
            run = plan.get("run") if plan.get("schema") == "perch.plan/2" else None
            if not isinstance(run, str) or name == self.run or {name, run} & accepted:
                continue
            if not self._still_runs(folder):
                try:
                    shutil.rmtree(folder)
                    say(f"removed {name}, of which {keep} newer ones are kept")
                except OSError:
                    say(f"{folder} cannot be removed")


def _gauge(name: str, about: str, values: list[tuple[str, int]]) -> str:
    lines = [f"{name}{{{labels}}} {value}\n" for labels, value in values]
    return f"# HELP {name} {about}\n# TYPE {name} gauge\n" + "".join(lines)


def run(config: Document) -> int:
    one = Schedule(config)
    one.lock()
    one.begin()
    with tempfile.TemporaryDirectory() as folder:
        one.measure(Path(folder))
        one.read_outcome()
        if one.was_over() and one.verdict == "FAIL":
            one.why = "this soak had ended before and was not fetched yet; it was not run again"
        elif one.was_over():
            say(f"{one.verdict} is the verdict of the soak {one.run}, which had ended before and"
                " was not fetched yet; now one is begun")  # fmt: skip
            one.measure(Path(folder))
            one.read_outcome()
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
    if len(words) != 1 or words[0] in ("-h", "--help"):
        print(__doc__, file=sys.stdout if words in (["-h"], ["--help"]) else sys.stderr)
        return 0 if words in (["-h"], ["--help"]) else 2
    is_check = words[0] == "--check"
    config = document(None if is_check else Path(words[0]))
    if not is_config(config):
        which = "standard input" if is_check else words[0]
        die(2, f"{which} is no configuration of a scheduled soak; run playbooks/soak_schedule.yml")
    if not is_check:
        return run(config)
    found = list(faults(config))
    for fault in found:
        say(fault)
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
