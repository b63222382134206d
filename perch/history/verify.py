"""`perchctl verify BUNDLE`: is a bundle whole, and do its raw outputs give its verdict?"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.model.text import clean, explained, names


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Checks names, sizes, manifest and signature of BUNDLE, and judges it again in a\n"
        "temporary folder. Other files than those of perchctl bundle are refused.\n"
        "records.jsonl, verdict.json and a soak's intervals.jsonl must be the same to the byte.\n"
        "report.md, report.html, charts, junit.xml, perch.prom and first-day.md are made again\n"
        "and must be the same."
    )
    parser.epilog = (
        "Exit: 0 the same, 1 it differs, is damaged or badly signed, 2 usage,\n"
        "3 it cannot be verified here."
    )
    parser.add_argument(
        "--signers",
        metavar="FILE",
        help="keys that may have signed it, as allowed_signers of ssh-keygen(1)",
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="a file that perchctl bundle made")


def command(args: argparse.Namespace) -> int:
    """Verifies the bundle."""
    from perch.history import signature, unpacked

    bundle = Path(args.bundle)
    if not bundle.is_file() or bundle.is_symlink():
        raise PerchError(
            ExitCode.USAGE,
            f"no such bundle: '{bundle}'",
            remedy="give a file that perchctl bundle made",
        )
    if args.signers is not None and not os.access(args.signers, os.R_OK):
        raise PerchError(ExitCode.USAGE, f"--signers '{args.signers}' cannot be read")
    with tempfile.TemporaryDirectory(prefix="perch-verify.") as name:
        work = Path(name)
        root = unpacked.unpack(bundle, work)
        _check_manifest(bundle, root)
        _check_places(bundle, root)
        unpacked.check_archive(bundle, root, work)
        print(clean(signature.check(bundle, root, args.signers)))
        _check_verdict(bundle, root, work / "again")
    return ExitCode.PASS


def _differs(bundle: Path, what: str) -> PerchError:
    return PerchError(ExitCode.FAIL, what, file=bundle)


def _check_manifest(bundle: Path, root: Path) -> None:
    """Names each file that is not as the manifest says. Raises PerchError."""
    from perch.history import packed
    from perch.history.unpacked import damaged
    from perch.judge.manifest import digest

    sealed: dict[str, str] = {}
    if not (root / packed.MANIFEST).is_file():
        raise damaged(bundle, f"it holds no {packed.MANIFEST}")
    for number, line in enumerate((root / packed.MANIFEST).read_bytes().splitlines(), 1):
        text = line.decode(errors="replace")
        wanted, _, name = text.partition("  ")
        if len(wanted) != 64 or not packed.NAME.fullmatch(name):
            raise damaged(bundle, f"{packed.MANIFEST}, line {number} is not one of sha256sum's")
        sealed[name] = wanted
    there = set(packed.listed(root))
    found = [(name, "it is missing") for name in sorted(sealed.keys() - there)]
    found += [(name, "it is not in the manifest") for name in sorted(there - sealed.keys())]
    found += [
        (name, "it has changed since it was packed")
        for name in sorted(there & sealed.keys())
        if digest(root / name) != sealed[name]
    ]
    for name, what in found:
        print(f"perchctl verify: {clean(name)}: {what}", file=sys.stderr)
    if found:
        raise _differs(
            bundle, f"it is not what was packed: the files above are not as in {packed.MANIFEST}"
        )


def _check_places(bundle: Path, root: Path) -> None:
    """Refuses what perchctl bundle does not pack: no check reads it. Raises PerchError."""
    from perch.history import packed
    from perch.history.bundle import NAMED, PACKED
    from perch.history.unpacked import damaged

    known = {*PACKED, packed.MANIFEST, packed.SIGNATURE, packed.DESCRIPTION}
    known |= {path.name for path in root.glob("plan.*.json")}
    foreign = sorted(path.name for path in root.iterdir() if path.name not in known)
    if foreign:
        raise damaged(bundle, f"perchctl bundle does not pack {names(foreign, NAMED)}")
    for folder, folders, files in os.walk(root):
        empty = os.path.relpath(folder, root)
        if not folders and not files and empty not in PACKED:
            raise damaged(bundle, f"its folder {empty} is empty")


def _check_verdict(bundle: Path, root: Path, work: Path) -> None:
    """Judges the run again, and compares. Raises PerchError."""
    from perch.history import packed
    from perch.history.bundle import NAMED
    from perch.history.unpacked import damaged
    from perch.run import folder, judging

    for name in (folder.PLAN, folder.RECORDS, folder.VERDICT, packed.DESCRIPTION):
        if not (root / name).is_file():
            raise damaged(bundle, f"it holds no {name}")
    _refuse_older(bundle, root)
    if stray := packed.stray(root, packed.files(root)):
        raise damaged(bundle, f"perchctl bundle does not pack {names(stray, NAMED)}")
    again, verdict = folder.judge_again(root, work)
    changed = folder.differences(root, again)
    for name in (folder.RECORDS, folder.VERDICT, folder.INTERVALS):
        if name in changed:
            print(f"perchctl verify: {name}: judged again, it is another file", file=sys.stderr)
        elif (root / name).exists():
            print(f"{name}: the same, to the byte")
    if changed:
        made_by = packed.versions(root)
        raise _differs(
            bundle,
            f"its raw outputs give another verdict with this Perch: {judging.line(verdict)}. "
            f"The bundle was made by {made_by}",
        )
    _check_description(bundle, root)
    if not (root / "raw/manifest.sha256").is_file():
        print(
            "raw/manifest.sha256 is missing, so edits of raw files before packing cannot be "
            "detected"
        )
    unknown = _check_report(bundle, root, again)
    print(clean(judging.line(verdict)))
    if unknown is not None:
        raise unknown


def _check_report(bundle: Path, root: Path, again: Path) -> PerchError | None:
    """Reports are drawn from the run judged again, and compared. Raises PerchError.

    Returns the fault of what could not be drawn here.
    """
    from perch.history import packed, redrawn
    from perch.model.derived import PAGE

    found = redrawn.compared(root, again)
    for name in found.same:
        print(f"{clean(name)}: the same{'' if name == PAGE else ', to the byte'}")
    for name in found.changed:
        print(f"perchctl verify: {clean(name)}: it does not show this verdict", file=sys.stderr)
    if found.changed:
        made_by = packed.versions(root)
        raise _differs(
            bundle,
            "its report is not what its verdict and records give with this Perch. "
            f"The bundle was made by {made_by}",
        )
    if not found.unknown:
        return None
    names = dict.fromkeys(name.partition("/")[0] for name in found.unknown)
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"not compared: {', '.join(names)} ({clean('; '.join(found.why))})",
        file=bundle,
        remedy="install what is missing (setup/setup run), and verify it again",
    )


def _refuse_older(bundle: Path, root: Path) -> None:
    """A bundle of another Perch has other records, and needs that version to verify it."""
    from perch.history import packed
    from perch.run import folder

    try:
        folder.record_heads(root / folder.RECORDS)
    except PerchError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            error.what,
            file=bundle,
            place=f"{folder.RECORDS}, {error.place}" if error.place else folder.RECORDS,
            remedy=f"verify it with the Perch that made it: {packed.versions(root)}",
        ) from None


def _check_description(bundle: Path, root: Path) -> None:
    """bundle.json is read by people who ask what a bundle is of. Raises PerchError."""
    import msgspec

    from perch.history import packed
    from perch.history.unpacked import damaged
    from perch.run import folder

    try:
        said = msgspec.json.decode((root / packed.DESCRIPTION).read_bytes(), type=packed.Described)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(bundle, f"{packed.DESCRIPTION} cannot be used: {explained(error)}") from None
    made = msgspec.to_builtins(packed.describe(root, said.versions.perch_commit, said.versions.jq))
    given = msgspec.json.decode((root / packed.DESCRIPTION).read_bytes())
    off = [name for name in {**made, **given} if made.get(name) != given.get(name)]
    if off:
        raise _differs(bundle, f"{packed.DESCRIPTION} differs from the run in: {', '.join(off)}")
    if folder.plan_head(root / folder.PLAN).run != root.name:
        raise damaged(bundle, f"its folder {root.name} is not named as its run")
