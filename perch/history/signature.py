"""Signatures of ssh-keygen(1) -Y: who vouches for a bundle's manifest."""

from __future__ import annotations

import tempfile
from pathlib import Path

from perch import programs
from perch.errors import ExitCode, PerchError
from perch.history import packed
from perch.history.bundle import NAMESPACE

#: Seconds: it takes a moment. The kernel calls a task that hangs so long hung
#: (hung_task_timeout_secs).
VERIFY_S = 120.0


def _said(words: list[str], manifest: Path) -> tuple[bool, str]:
    """Whether ssh-keygen agrees, and its words."""
    with manifest.open("rb") as text:
        ended = programs.finished(
            ["ssh-keygen", "-Y", *words], VERIFY_S, "see that the disk answers, and verify again",
            package="openssh-client", file=manifest.name, stdin=text,
        )  # fmt: skip
    return ended.returncode == 0, (ended.stdout + ended.stderr).decode(errors="replace").strip()


def check(bundle: Path, root: Path, signers: str | None) -> str:
    """What the signature says. Raises PerchError where it is bad, or none is there but wanted."""
    signature = root / packed.SIGNATURE
    if not signature.exists():
        if signers is not None:
            raise PerchError(ExitCode.FAIL, "it is not signed", file=bundle)
        return "not signed: who packed it is not known, and edits before packing cannot be detected"
    manifest = root / packed.MANIFEST
    if signers is None:
        good, said = _said(["check-novalidate", "-n", NAMESPACE, "-s", str(signature)], manifest)
        if not good:
            raise _bad(bundle, said)
        return f"signed, by a key that is not checked (give --signers): {said}"
    return _signed_by_one_of(bundle, signature, manifest, Path(signers))


def _bad(bundle: Path, said: str) -> PerchError:
    return PerchError(
        ExitCode.FAIL, f"the signature is bad: {said}", file=bundle, place=packed.SIGNATURE
    )


def _signed_by_one_of(bundle: Path, signature: Path, manifest: Path, signers: Path) -> str:
    """Line by line: a key may stand in several, and ssh-keygen ends its search at the first."""
    why = f"{signers} does not name its key"
    with tempfile.NamedTemporaryFile("w") as one:
        for line in signers.read_text(errors="surrogateescape").splitlines():
            Path(one.name).write_text(line + "\n", errors="surrogateescape")
            _, principals = _said(
                ["find-principals", "-s", str(signature), "-f", one.name], manifest
            )
            for principal in principals.splitlines():
                words = ["verify", "-f", one.name, "-I", principal, "-n", NAMESPACE]
                good, said = _said([*words, "-s", str(signature)], manifest)
                if good:
                    return said
                why = said
    raise _bad(bundle, why)
