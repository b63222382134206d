"""Bundles: packed alike, verified from their raw outputs, and refused where they were changed."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from perch.errors import PerchError
from perch.exports import report
from perch.history import packed, unpacked
from perch.model import schemas
from perch.views import inputs
from tests.py.bundle_built import closed, opened, sealed_again
from tests.py.conftest import FIXTURES, Ended
from tests.py.judging import Run, put

Perchctl = Callable[..., Ended]


@pytest.fixture
def bundle(judged: Path, perchctl: Perchctl, tmp_path: Path) -> Path:
    """Its bundle."""
    path = tmp_path / "run.tar.gz"
    ended = perchctl("bundle", judged, path)
    assert ended.code == 0, ended.stderr
    return path


@pytest.fixture
def edited(bundle: Path, tmp_path: Path) -> Callable[..., Path]:
    """`edited(change)`: the bundle after `change(folder)`; `seal`: with a new manifest."""

    def edit(change: Callable[[Path], object], *, seal: bool = False) -> Path:
        root = opened(bundle, tmp_path / "opened")
        change(root)
        if seal:
            sealed_again(root)
        closed(root, bundle)
        return bundle

    return edit


# ---- packing -------------------------------------------------------------------------------------


def test_a_verdict_that_its_raw_outputs_do_not_give_is_not_packed(
    judged: Path, perchctl: Perchctl
) -> None:
    verdict = judged / "verdict.json"
    document = json.loads(verdict.read_text())
    document["checks"] = [one for one in document["checks"] if one["id"] != "payload"]
    verdict.write_text(json.dumps(document))
    ended = perchctl("bundle", judged)
    assert ended.code == 1
    assert f"perchctl bundle: {judged}: judging it again gives another verdict" in ended.stderr
    assert not list(judged.parent.glob("*.tar.gz"))


def test_a_bundle_gives_its_verdict_again(bundle: Path, perchctl: Perchctl) -> None:
    ended = perchctl("verify", bundle)
    assert (ended.code, ended.stderr) == (0, "")
    assert "verdict.json: the same, to the byte" in ended.stdout
    assert "not signed" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("PASS: ")


def test_the_same_run_gives_the_same_bytes(
    judged: Path, bundle: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    again = shutil.copytree(judged, tmp_path / "elsewhere/run")
    perchctl("bundle", again, tmp_path / "again.tar.gz")
    assert (tmp_path / "again.tar.gz").read_bytes() == bundle.read_bytes()


def test_nothing_is_written_over(judged: Path, bundle: Path, perchctl: Perchctl) -> None:
    before = bundle.read_bytes()
    assert perchctl("bundle", judged, bundle).code == 1
    assert bundle.read_bytes() == before


def test_the_description_says_what_the_run_says(bundle: Path, tmp_path: Path) -> None:
    root = opened(bundle, tmp_path / "opened")
    said = json.loads((root / "bundle.json").read_text())
    assert said["run"] == root.name
    assert said["verdict"] == "PASS"
    assert said["host_configuration"].keys() == {
        f"raw/{host}/environment.json" for host in ("alpha", "beta")
    }


@pytest.mark.parametrize("name", ["loopback", "perftest"])
def test_a_description_is_as_its_schema_says(name: str, run_copy: Callable[[str], Path]) -> None:
    # an output of the perftest run does not name its tool's version
    root = run_copy(name)
    Run(root).judge()
    described = packed.describe(root, "0" * 40, "jq-1.7")
    validator = jsonschema.Draft202012Validator(schemas.schema("bundle"))
    validator.validate(msgspec.to_builtins(described))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("inputs/my-token", "x"),
        ("raw/alpha/id_ed25519", "x"),
        ("inputs/site.pem", "x"),
        ("inputs/notes", "-----BEGIN OPENSSH PRIVATE KEY-----\n"),
        ("inputs/vars.yml", "a: b\n$ANSIBLE_VAULT;1.1;AES256\n"),
        ("raw/alpha/log", "PERCH_TOKEN=abc"),
    ],
)
def test_no_secret_goes_into_a_bundle(
    judged: Path, perchctl: Perchctl, tmp_path: Path, name: str, text: str
) -> None:
    (judged / name).write_text(text)
    ended = perchctl("bundle", judged, tmp_path / "out")
    assert ended.code == 1
    assert f"{name}: it looks like a secret" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["plan.json", "inputs/limits.json", "report.md", "raw"])
def test_a_run_with_a_link_is_not_packed(
    judged: Path, perchctl: Perchctl, tmp_path: Path, name: str
) -> None:
    if (judged / name).exists():
        (judged / name).rename(tmp_path / "elsewhere")
    (judged / name).symlink_to(tmp_path / "elsewhere")
    ended = perchctl("bundle", judged, tmp_path / "out")
    assert ended.code == 3
    assert name in ended.stderr


def test_links_to_raw_files_are_left_behind(
    judged: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("outside")
    (judged / "raw/alpha/link").symlink_to(tmp_path / "outside")
    perchctl("bundle", judged, tmp_path / "out")
    assert not (opened(tmp_path / "out", tmp_path / "opened") / "raw/alpha/link").exists()


def test_a_part_that_cannot_be_read_is_not_packed(
    judged: Path, perchctl: Perchctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path / "alpha"))

    monkeypatch.setattr(packed, "files", refuse)
    ended = perchctl("bundle", judged, tmp_path / "out")
    assert ended.code == 3
    assert "alpha: it cannot be read (Permission denied), and nothing less is" in ended.stderr
    assert not (tmp_path / "out").exists()


# ---- verifying -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["plan.json", "verdict.json", "records.jsonl", "bundle.json", "raw/alpha/flows.jsonl",
     "raw/alpha/samples.jsonl", "inputs/limits.json"],
)  # fmt: skip
def test_a_changed_file_is_named(
    edited: Callable[..., Path], perchctl: Perchctl, name: str
) -> None:
    def change(root: Path) -> None:
        with (root / name).open("a") as file:
            file.write(" ")

    ended = perchctl("verify", edited(change))
    assert ended.code == 1
    assert f"{name}: it has changed since it was packed" in ended.stderr


def test_missing_and_new_files_are_named(edited: Callable[..., Path], perchctl: Perchctl) -> None:
    def change(root: Path) -> None:
        (root / "raw/alpha/flows.jsonl").rename(root / "raw/alpha/other.json")

    ended = perchctl("verify", edited(change))
    assert ended.code == 1
    assert "raw/alpha/flows.jsonl: it is missing" in ended.stderr
    assert "raw/alpha/other.json: it is not in the manifest" in ended.stderr


@pytest.mark.parametrize(
    "name", ["README.md", "report.pdf", "plan.txt", "notes/plan.json", "raw/gamma/", "inputs2/"]
)
def test_what_no_bundle_has_is_refused(
    bundle: Path, perchctl: Perchctl, tmp_path: Path, name: str
) -> None:
    root = opened(bundle, tmp_path / "opened")
    path = root / name
    (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
    if not name.endswith("/"):
        path.write_text("# PASS on hardware")
    sealed_again(root)
    closed(root, bundle)
    ended = perchctl("verify", bundle)
    assert ended.code == 1
    assert name.rstrip("/").removesuffix("/plan.json") in ended.stderr


def test_another_plan_of_the_run_is_verified(
    judged: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    (judged / "plan.0.json").write_bytes((judged / "plan.json").read_bytes())
    made = tmp_path / "planned.tar.gz"
    assert perchctl("bundle", judged, made).code == 0
    assert perchctl("verify", made).code == 0


def test_a_forged_verdict_is_found_by_judging_again(
    edited: Callable[..., Path], perchctl: Perchctl
) -> None:
    def change(root: Path) -> None:
        (root / "inputs/limits.json").unlink()

    ended = perchctl("verify", edited(change, seal=True))
    assert ended.code == 1
    assert "verdict.json: judged again, it is another file" in ended.stderr
    assert "give another verdict" in ended.stderr


def test_intervals_of_a_soak_are_compared_too(
    edited: Callable[..., Path], perchctl: Perchctl
) -> None:
    def change(root: Path) -> None:
        (root / "intervals.jsonl").write_text("{}\n")

    ended = perchctl("verify", edited(change, seal=True))
    assert ended.code == 1
    assert "intervals.jsonl: judged again, it is another file" in ended.stderr


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("verdict", "FAIL", "verdict"),
        ("scope", "hardware", "scope"),
        ("host_configuration", {"raw/alpha/environment.json": "0" * 64}, "host_configuration"),
        ("versions.tools.0.version", "9", "versions"),
    ],
)
def test_a_forged_description_is_found(
    edited: Callable[..., Path], perchctl: Perchctl, path: str, value: object, named: str
) -> None:
    def change(root: Path) -> None:
        Run(root).edit("bundle.json", put(path, value))

    ended = perchctl("verify", edited(change, seal=True))
    assert ended.code == 1
    assert f"bundle.json differs from the run in: {named}" in ended.stderr


def test_a_bundle_without_its_description_is_refused(
    edited: Callable[..., Path], perchctl: Perchctl
) -> None:
    ended = perchctl("verify", edited(lambda root: (root / "bundle.json").unlink(), seal=True))
    assert ended.code in (1, 3)
    assert "bundle.json" in ended.stderr


def test_a_bundle_whose_folder_is_not_named_as_its_run_is_damaged(
    bundle: Path, perchctl: Perchctl, tmp_path: Path
) -> None:
    root = opened(bundle, tmp_path / "opened")
    closed(root.rename(root.with_name("another")), bundle)
    ended = perchctl("verify", bundle)
    assert ended.code == 1
    assert "its folder another is not named as its run" in ended.stderr


def test_a_run_that_was_never_sealed_is_verified_and_named(
    bundle: Path, perchctl: Perchctl
) -> None:
    ended = perchctl("verify", bundle)
    assert ended.code == 0
    assert "edits of raw files before packing cannot be detected" in ended.stdout


def test_a_bundle_of_an_older_perch_is_refused_by_name(
    edited: Callable[..., Path], perchctl: Perchctl
) -> None:
    def change(root: Path) -> None:
        path = root / "records.jsonl"
        path.write_text(path.read_text().replace("perch.record/2", "perch.record/1"))

    ended = perchctl("verify", edited(change, seal=True))
    assert ended.code == 3
    assert "records.jsonl, line 1: its schema is 'perch.record/1'" in ended.stderr
    assert re.search("verify it with the Perch that made it: version .*, commit ", ended.stderr)


def test_a_bundle_of_perch_0_1_names_what_can_read_it(perchctl: Perchctl, tmp_path: Path) -> None:
    bundle = shutil.copy(FIXTURES / "history/perch-0.1.bundle.tar.gz", tmp_path)
    ended = perchctl("verify", bundle)
    assert ended.code == 3
    assert "records.jsonl, line 1: its schema is 'perch.record/1'" in ended.stderr
    assert "verify it with the Perch that made it" in ended.stderr
    root = opened(Path(bundle), tmp_path / "opened")
    for command, code in (("judge", 3), ("report", 0)):
        ended = perchctl(command, root)
        assert ended.code == code
        assert "plan.json: its schema is 'perch.plan/1', but this Perch reads" in ended.stderr
        assert "use the Perch that made it, or plan and measure again" in ended.stderr
    (fault,) = json.loads((root / "verdict.json").read_bytes())["checks"]
    assert fault["remedy"] == "use the Perch that made it, or plan and measure again"


@pytest.mark.parametrize("percent", [0, 30, 70, 100])
def test_a_changed_byte_of_the_archive_is_damage(
    bundle: Path, perchctl: Perchctl, percent: int
) -> None:
    content = bytearray(bundle.read_bytes())
    content[(len(content) - 1) * percent // 100] ^= 0x10
    bundle.write_bytes(content)
    ended = perchctl("verify", bundle)
    assert ended.code == 1
    assert "it is damaged" in ended.stderr


def test_a_bit_that_no_unpacker_reads_is_damage(bundle: Path, tmp_path: Path) -> None:
    tar = tmp_path / "tar"
    tar.write_bytes(gzip.decompress(bundle.read_bytes()))
    unpacked.check_compression(bundle, tar)
    content = bytearray(bundle.read_bytes())
    content[-9] ^= 0x80  # where deflate ends within a byte, nobody reads the rest of it
    bundle.write_bytes(content)
    with pytest.raises(PerchError, match="not as gzip packs them"):
        unpacked.check_compression(bundle, tar)


def test_headers_of_the_archive_count_too(bundle: Path, perchctl: Perchctl, tmp_path: Path) -> None:
    root = opened(bundle, tmp_path / "opened")
    again = io.BytesIO()
    with tarfile.open(fileobj=again, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.add(root, root.name)  # with today's times
    again.seek(0)
    bundle.write_bytes(b"".join(packed.compressed(again)))
    ended = perchctl("verify", bundle)
    assert ended.code == 1
    assert "names, modes or times" in ended.stderr


@pytest.mark.parametrize("more", [b"\0", b"x", gzip.compress(b"more", mtime=0)])
def test_what_follows_the_archive_is_damage(bundle: Path, perchctl: Perchctl, more: bytes) -> None:
    bundle.write_bytes(bundle.read_bytes() + more)
    assert "something follows its archive" in perchctl("verify", bundle).stderr


def test_an_archive_that_ends_early_is_damage(bundle: Path, perchctl: Perchctl) -> None:
    bundle.write_bytes(bundle.read_bytes()[:-9])
    assert perchctl("verify", bundle).code == 1


def test_another_gzip_may_have_packed_it(bundle: Path, perchctl: Perchctl, tmp_path: Path) -> None:
    (tmp_path / "tar").write_bytes(gzip.decompress(bundle.read_bytes()))
    with bundle.open("wb") as target:
        subprocess.run(["gzip", "-n", "-c", "-6", tmp_path / "tar"], stdout=target, check=True)
    assert perchctl("verify", bundle).code == 0


def _link(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return member


@pytest.mark.parametrize(
    ("member", "why"),
    [
        (_link("run/raw"), "neither a file nor a folder"),
        (tarfile.TarInfo("/etc/cron.d/x"), "a name that no run has"),
        (tarfile.TarInfo("run/../../x"), "a name that no run has"),
        (tarfile.TarInfo("run/.ssh"), "a name that no run has"),
        (tarfile.TarInfo("other/plan.json"), "2 runs"),
        (tarfile.TarInfo("run/plan.json"), "twice"),
    ],
)
def test_an_archive_that_would_write_elsewhere_is_refused(
    perchctl: Perchctl, tmp_path: Path, member: tarfile.TarInfo, why: str
) -> None:
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.GNU_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("run/plan.json"))
        archive.addfile(member)
    tar.seek(0)
    (tmp_path / "hostile").write_bytes(b"".join(packed.compressed(tar)))
    ended = perchctl("verify", tmp_path / "hostile")
    assert ended.code == 1
    assert why in ended.stderr


@pytest.mark.parametrize("most", ["abc", "", "-1", "1e9"])
def test_a_limit_of_bytes_that_is_no_number_is_a_usage_error(
    bundle: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    monkeypatch.setenv("PERCH_VERIFY_MOST_BYTES", most)
    ended = perchctl("verify", bundle)
    assert ended.code == 2
    assert f"PERCH_VERIFY_MOST_BYTES is '{most}', not a number of bytes" in ended.stderr


def test_too_much_is_not_unpacked(
    bundle: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERCH_VERIFY_MOST_BYTES", "1000")
    ended = perchctl("verify", bundle)
    assert ended.code == 3
    assert "more than 1000 bytes" in ended.stderr


# ---- reports -------------------------------------------------------------------------------------


@pytest.fixture
def reported(judged: Path, perchctl: Perchctl) -> Path:
    """The run with what is drawn from it, but for pictures."""
    drawn = inputs.read_run(judged)
    for name, text in report.texts(drawn, report.draw(drawn)):
        report.write(judged / name, text)
    return judged


def test_a_report_is_drawn_again(reported: Path, perchctl: Perchctl, tmp_path: Path) -> None:
    assert perchctl("bundle", reported, tmp_path / "packed").code == 0
    ended = perchctl("verify", tmp_path / "packed")
    assert (ended.code, ended.stderr) == (0, "")
    for name in ("report.md", "junit.xml", "perch.prom"):
        assert f"{name}: the same, to the byte" in ended.stdout


@pytest.mark.parametrize("name", ["report.md", "junit.xml", "perch.prom", "report.html"])
def test_a_report_of_another_verdict_is_not_packed(
    reported: Path, perchctl: Perchctl, tmp_path: Path, name: str
) -> None:
    (reported / name).write_text("PASS")
    ended = perchctl("bundle", reported, tmp_path / "packed")
    assert ended.code == 1
    assert f"{name}: it does not show this verdict; run perchctl report" in ended.stderr


@pytest.mark.parametrize("name", ["report.md", "junit.xml", "perch.prom"])
def test_a_forged_report_is_found(
    reported: Path, perchctl: Perchctl, tmp_path: Path, name: str
) -> None:
    perchctl("bundle", reported, tmp_path / "packed")
    root = opened(tmp_path / "packed", tmp_path / "opened")
    with (root / name).open("a") as file:
        file.write("All is well.\n")
    sealed_again(root)
    closed(root, tmp_path / "packed")
    ended = perchctl("verify", tmp_path / "packed")
    assert ended.code == 1
    assert f"{name}: it does not show this verdict" in ended.stderr
