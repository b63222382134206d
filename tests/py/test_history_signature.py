"""Signatures of bundles: who vouches for one, and who does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.bundle_built import closed, opened, sealed_again
from tests.py.conftest import Ended

Perchctl = Callable[..., Ended]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An ssh key, its public half beside it."""
    path = tmp_path / "signer"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(words, check=True)
    return path


@pytest.fixture
def signed(judged: Path, perchctl: Perchctl, tmp_path: Path, key: Path) -> Path:
    """The bundle with the key's signature."""
    ended = perchctl("bundle", "--key", key, judged, tmp_path / "signed")
    assert ended.code == 0, ended.stderr
    return tmp_path / "signed"


def signers(key: Path, *lines: str) -> Path:
    """An allowed_signers file; KEY stands for the key."""
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    path = key.with_name("allowed")
    path.write_text("".join(line.replace("KEY", public) + "\n" for line in lines))
    return path


def test_a_known_signer_vouches(signed: Path, perchctl: Perchctl, key: Path) -> None:
    allowed = signers(key, 'other@site namespaces="git" KEY', "me@site KEY")
    ended = perchctl("verify", "--signers", allowed, signed)
    assert ended.code == 0, ended.stderr
    assert "me@site" in ended.stdout


@pytest.mark.parametrize(
    "line",
    [
        'me@site namespaces="git" KEY',
        'me@site valid-before="20200101" KEY',
        "me@site ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_an_unknown_signer_does_not_vouch(
    signed: Path, perchctl: Perchctl, key: Path, line: str
) -> None:
    ended = perchctl("verify", "--signers", signers(key, line), signed)
    assert ended.code == 1
    assert "the signature is bad" in ended.stderr


def test_without_signers_the_signature_is_checked_alone(signed: Path, perchctl: Perchctl) -> None:
    ended = perchctl("verify", signed)
    assert ended.code == 0
    assert "signed, by a key that is not checked" in ended.stdout


def test_a_signature_that_is_wanted_must_be_there(
    judged: Path, perchctl: Perchctl, tmp_path: Path, key: Path
) -> None:
    perchctl("bundle", judged, tmp_path / "unsigned")
    ended = perchctl("verify", "--signers", signers(key, "me@site KEY"), tmp_path / "unsigned")
    assert ended.code == 1
    assert "it is not signed" in ended.stderr


def test_a_new_manifest_breaks_the_signature(
    signed: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    root = opened(signed, tmp_path / "opened")
    (root / "report.md").write_text("# All is well\n")
    sealed_again(root)
    closed(root, signed)
    ended = perchctl("verify", signed)
    assert ended.code == 1
    assert "manifest.sha256.sig: the signature is bad" in ended.stderr
