"""`perchctl bundle DIR`: packs a judged run into one file that somebody else can verify."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from perch import programs
from perch.errors import ExitCode, PerchError
from perch.model import text
from perch.model.figures import pretty

#: The namespace of a bundle's signatures (ssh-keygen -Y).
NAMESPACE = "perch"

#: So many files that are refused are named.
NAMED = 3

#: Seconds: a version is said in a moment. A person may type a passphrase, or touch a token.
VERSION_S, SIGN_S = 10.0, 300.0

#: What a run holds and others may see, beside plan.*.json. Half-made files are left behind.
PACKED = (
    "plan.json", "rounds.jsonl", "inputs", "raw", "charts", "records.jsonl", "intervals.jsonl",
    "verdict.json", "report.md", "report.html", "junit.xml", "perch.prom", "first-day.md",
)  # fmt: skip

_secret_name = re.compile(
    r"(?:.*/)?(?:[^/]*token[^/]*|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx)"
    r"|\.netrc|\.?vault[^/]*)"
)
_secret = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|(?m:^\$ANSIBLE_VAULT;)|PERCH_TOKEN=")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges DIR again. If the verdict is unchanged, packs DIR's plans, raw outputs, inputs,\n"
        "records, verdict and report into BUNDLE (default: DIR.bundle.tar.gz beside DIR). Adds\n"
        "bundle.json (versions, hashes of the hosts' configuration) and manifest.sha256. The same\n"
        "run gives the same bytes.\n"
        "Files that look like secrets are refused, and so are files in raw/ that no check reads."
    )
    parser.epilog = (
        "Exit: 0 packed, 1 refused, 2 usage, 3 not a judged run, or a tool is missing,\n"
        "6 not writable."
    )
    parser.add_argument(
        "--key", metavar="FILE", help="sign the manifest with this ssh key (ssh-keygen -Y)"
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")
    parser.add_argument("bundle", metavar="BUNDLE", nargs="?", help="the file to write")


def command(args: argparse.Namespace) -> int:
    """Packs the run."""
    from perch.history import packed, seal
    from perch.run import folder

    if args.key is not None and not os.access(args.key, os.R_OK):
        raise PerchError(ExitCode.USAGE, f"--key '{args.key}' cannot be read")
    root = folder.judged_folder(args.run)
    bundle = Path(args.bundle) if args.bundle else root.with_name(f"{root.name}.bundle.tar.gz")
    if bundle.exists() or bundle.is_symlink():
        raise PerchError(
            ExitCode.FAIL, "it exists", file=bundle, remedy="move it away, or name another file"
        )
    run = folder.plan_head(root / folder.PLAN).run
    if not packed.NAME.fullmatch(run) or "/" in run:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"its run '{run}' is not usable as a path",
            file=root / folder.PLAN,
        )
    folder.verdict_head(root)  # a fault names the run's file, not the copy's
    seal.refuse_links(root, (*seal.DOCUMENTS, *PACKED))
    refuse_stale(root)
    names = run_files(root)
    refuse(root, names)
    folder.judged_again(root, args.run)
    with tempfile.TemporaryDirectory(prefix="perch-bundle.") as work:
        count = pack(root, names, Path(work) / run, args.key)
        write(Path(work) / run, bundle)
    signed = ", signed" if args.key else ""
    print(
        f"{bundle}: {count} files, {bundle.stat().st_size} bytes{signed}; "
        f"verify with perchctl verify {bundle}"
    )
    return ExitCode.PASS


def refuse_stale(root: Path) -> None:
    """A report of an earlier verdict would say PASS after FAIL. Raises PerchError."""
    from perch.model import derived

    stale = derived.stale(root)
    if stale:
        command = "first-day" if stale[0] == derived.FIRST_DAY else "report"
        raise PerchError(
            ExitCode.FAIL,
            "it does not show this verdict",
            file=root / stale[0],
            remedy=f"run perchctl {command} {root} first",
        )


def run_files(root: Path) -> list[str]:
    """Regular files of known places. Raises PerchError where one of these cannot be read."""
    from perch.history import packed

    found: list[str] = []
    tops = sorted({*PACKED, *(path.name for path in root.glob("plan.*.json"))})
    try:
        for name in tops:
            path = root / name
            if path.is_dir():
                found += [f"{name}/{one}" for one in packed.files(path)]
            elif path.is_file() and not path.is_symlink():
                found.append(name)
    except OSError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"it cannot be read ({error.strerror}), and nothing less is packed",
            file=error.filename,
        ) from None
    return found


def refuse(root: Path, names: list[str]) -> None:
    """Stops at names that no run has, at secrets, and at other files in raw/.

    Raises PerchError.
    """
    from perch.history import packed

    odd = [name for name in names if not packed.NAME.fullmatch(name)]
    if odd:
        raise PerchError(
            ExitCode.FAIL, "this name cannot be packed", file=odd[0], remedy="move the file away"
        )
    secret = next((name for name in names if _is_secret(root, name)), None)
    if secret is not None:
        raise PerchError(
            ExitCode.FAIL,
            "it looks like a secret, and is not handed over",
            file=secret,
            remedy="remove it from the run",
        )
    stray = packed.stray(root, names)
    if stray:
        raise PerchError(
            ExitCode.FAIL,
            "no plan, check or agent put it there, and no check reads it",
            file=text.names(stray, NAMED),
            remedy="move it away, remove its line from raw/manifest.sha256, and report again",
        )


def _is_secret(root: Path, name: str) -> bool:
    if _secret_name.fullmatch(name):
        return True
    content = (root / name).read_bytes()
    return b"\0" not in content[:32768] and _secret.search(content) is not None


def checkout_commit() -> str | None:
    """The commit of the checkout that this package lies in."""
    return _first_line(["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"])


def _first_line(words: list[str]) -> str | None:
    try:
        ended = programs.run(words, VERSION_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.decode(errors="replace").strip() or None if ended.returncode == 0 else None


def pack(root: Path, names: list[str], target: Path, key: str | None) -> int:
    """Copies the files, describes and seals them; returns how many the manifest names."""
    from perch.history import packed
    from perch.judge.manifest import digest

    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(root / name, target / name)
        except OSError as error:
            raise PerchError(
                ExitCode.INCONCLUSIVE, f"it cannot be read ({error.strerror})", file=root / name
            ) from None
    described = packed.describe(target, checkout_commit(), _first_line(["jq", "--version"]))
    (target / packed.DESCRIPTION).write_bytes(pretty(described))
    listed = packed.listed(target)
    lines = "".join(f"{digest(target / name)}  {name}\n" for name in listed)
    (target / packed.MANIFEST).write_text(lines)
    if key is not None:
        _sign(target / packed.MANIFEST, key)
    return len(listed)


def _sign(manifest: Path, key: str) -> None:
    words = ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", NAMESPACE, str(manifest)]
    ended = programs.finished(
        words, SIGN_S, "see that the key's agent or token answers, and sign again",
        package="openssh-client", file=key, own_session=False,
    )  # fmt: skip
    if ended.returncode != 0:
        why = (ended.stderr.decode(errors="replace") or "ssh-keygen failed").splitlines()[0]
        raise PerchError(ExitCode.INCONCLUSIVE, f"it cannot sign: {why}", file=key)


def write(root: Path, bundle: Path) -> None:
    """Writes the archive of a packed folder whole or not at all."""
    from perch.history import packed

    tar = root.parent / "tar"
    packed.archive(root, tar)
    fresh = bundle.with_name(f".{bundle.name}.new")
    try:
        with tar.open("rb") as source, fresh.open("wb") as target:
            target.writelines(packed.compressed(source))
        fresh.replace(bundle)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise PerchError(
            ExitCode.NOT_WRITABLE, f"it cannot be written ({error.strerror})", file=bundle
        ) from None
