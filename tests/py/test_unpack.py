"""A host's results are taken from its archive by our own code: whole, known and bounded."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from perch.agent import asking
from perch.agent.errors import AgentError
from perch.cli import main
from perch.errors import PerchError
from perch.history import seal
from perch.model.plan import SoakPlan
from perch.model.share import SCHEMA, Share, ShareFlow, ShareRound
from perch.run import unpack
from tests.py.agent_hosts import TOP

LINE = b'{"kind":"end"}\n'


def member(name: str, content: bytes = LINE, **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tarred(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as archive:
        for info, body in members:
            archive.addfile(info, io.BytesIO(body))
    return content.getvalue()


WHOLE = tarred(*(member(name) for name in asking.FILES))


@pytest.fixture
def taken(tmp_path: Path) -> Callable[..., Path]:
    """Unpacks these bytes, or what gzip makes of them; the host's folder."""

    def take(content: bytes, most: int = 1000, *, packed: bool = True) -> Path:
        archive = tmp_path / "alpha.tar.gz"
        archive.write_bytes(gzip.compress(content) if packed else content)
        unpacked(archive, tmp_path, most)
        return tmp_path / "raw/alpha"

    return take


def unpacked(archive: Path, run: Path, most: int, soak: Sequence[str] = ()) -> None:
    with unpack.working(run, "alpha") as work:
        unpack.unpack(archive, work, run / "raw/alpha", most, soak)


def left(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.rglob("*")) if folder.exists() else []


def test_what_an_agent_packs_is_taken_whole(tmp_path: Path) -> None:
    out = tmp_path / "host/out"
    (out / "control").mkdir(parents=True)
    (out / "control/pid").write_text("1 2\n")
    for name in asking.FILES:
        (out / name).write_bytes(os.urandom(3 * unpack.PART // 2))
        (out / name).chmod(0o4777)
    asking.pack(out)
    old = os.umask(0o077)
    try:
        unpacked(tmp_path / "host/out.tar.gz", tmp_path, 2**30)
    finally:
        os.umask(old)
    assert sorted(unpack.NAMES) == sorted(asking.FILES) == left(tmp_path / "raw/alpha")
    for name in asking.FILES:
        assert (tmp_path / "raw/alpha" / name).read_bytes() == (out / name).read_bytes()
        assert stat.S_IMODE((tmp_path / "raw/alpha" / name).stat().st_mode) == 0o644
    assert stat.S_IMODE((tmp_path / "raw/alpha").stat().st_mode) == 0o755


@pytest.mark.skipif(os.getuid() != 0, reason="NOT TESTED: only root gives files to others")
def test_results_of_a_user_with_a_large_number_are_packed(tmp_path: Path) -> None:
    """As Active Directory's users have; ustar has seven octal digits for it."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "flows.jsonl").write_bytes(LINE)
    os.chown(out / "flows.jsonl", 8**7, 8**7)
    asking.pack(out)
    unpacked(tmp_path / "out.tar.gz", tmp_path, 1000)
    assert (tmp_path / "raw/alpha/flows.jsonl").read_bytes() == LINE


@pytest.mark.parametrize(
    ("name", "size", "why"),
    [
        ("agent.log", 8 * 2**30, "it has 8 GiB or more"),
        (f"flows/{'t' * 200}/client.soak", 3, "name is too long"),
    ],
)
def test_what_an_archive_cannot_hold_is_named(
    tmp_path: Path, name: str, size: int, why: str
) -> None:
    file = tmp_path / "out" / name
    file.parent.mkdir(parents=True)
    with file.open("wb") as sparse:
        sparse.truncate(size)
    with pytest.raises(AgentError, match=f"cannot pack {file}: {why}; fetch it by hand"):
        asking.pack(tmp_path / "out")
    assert left(tmp_path) == sorted(one for one in ("out", *Path("out", name).parts[1:]))


FULL = """
import contextlib, sys
from pathlib import Path
from perch.agent import asking
from perch.agent.errors import AgentError
from perch.agent.errors import AgentError
folder = Path("full")
(folder / "out").mkdir()
(folder / "out/flows.jsonl").write_bytes(Path("/dev/urandom").open("rb").read(100_000))
with contextlib.suppress(OSError), (folder / "fill").open("wb", buffering=0) as fill:
    while fill.write(bytes(4096)) == 4096:
        pass
asking.OTHER_FOLDERS = sys.argv[1:]
try:
    asking.pack(folder / "out")
except AgentError as error:
    print(error.message)
print(*sorted(one.name for one in folder.iterdir()))
"""


@pytest.mark.parametrize("others", [["full", "."], ["full"]])
def test_results_on_a_full_disk_are_packed_elsewhere(
    tmp_path: Path, within: list[str], others: list[str]
) -> None:
    """Nothing torn stays; where all disks are full, the message says how to go on."""
    mount = 'mkdir full; mount -t tmpfs -o size=200k tmpfs full; exec "$@"'
    done = subprocess.run(
        [*within, "bash", "-c", mount, "-", sys.executable, "-c", FULL, *others],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TOP)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    said, names = done.stdout.splitlines()
    assert names == "fill out"
    if others[-1] == "full":
        assert said == (
            "cannot write full/out.tar.gz: No space left on device; free space there, then"
            " `perch-agent pack --out full/out` packs the results"
        )
    else:
        assert Path(said).parent == tmp_path
        unpacked(tmp_path / said, tmp_path, 2**20)
        assert (tmp_path / "raw/alpha/flows.jsonl").stat().st_size == 100_000


def test_what_lies_beside_the_results_stays(taken: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "raw/alpha").mkdir(parents=True)
    (tmp_path / "raw/alpha/host_check.json").write_text("{}")
    assert left(taken(tarred(member("flows.jsonl")))) == ["flows.jsonl", "host_check.json"]


@pytest.mark.parametrize("name", [
    "../flows.jsonl", "/flows.jsonl", "./flows.jsonl", "flows/flows.jsonl", "planted",
    "verdict.json", "flows.jsonl\nx", "",
])  # fmt: skip
def test_a_name_that_raw_2_does_not_have_is_refused(taken: Callable[..., Path], name: str) -> None:
    with pytest.raises(PerchError, match=r"is no file of perch\.raw/2|not a regular file"):
        taken(tarred(member("agent.log"), member(name)))


@pytest.mark.parametrize("kind", [
    tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
    tarfile.DIRTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME,
    tarfile.XHDTYPE, tarfile.XGLTYPE,
])  # fmt: skip
def test_only_regular_files_are_taken(taken: Callable[..., Path], kind: bytes) -> None:
    links = {"type": kind, "linkname": "/etc/hostname"}
    with pytest.raises(PerchError, match="is not a regular file"):
        taken(tarred(member("agent.log"), member("flows.jsonl", b"", **links)))


def test_a_name_in_two_parts_is_refused(taken: Callable[..., Path]) -> None:
    with pytest.raises(PerchError, match=r"is no file of perch\.raw/2"):
        taken(tarred(member("x" * 120 + "/flows.jsonl")))


def test_the_lines_of_a_soak_are_taken_of_the_hosts_own_clients_only(tmp_path: Path) -> None:
    """Once, and again where a first fetch was a copy."""
    out, names = tmp_path / "host/out", [f"flows/{'t' * 90}/alpha/beta/{n}/1" for n in range(2)]
    soak = [f"{name}/client.soak" for name in names]
    for text in ("a\n", "a\nb\n"):
        for name in (*soak, "flows.jsonl"):
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text)
        asking.pack(out, ends=False)
        unpacked(tmp_path / "host/out.tar.gz", tmp_path, 100, soak)
        assert [(tmp_path / "raw/alpha" / name).read_text() for name in soak] == [text] * 2
    folders = [one for one in (tmp_path / "raw/alpha").rglob("*") if one.is_dir()]
    assert {stat.S_IMODE(one.stat().st_mode) for one in folders} == {0o755}
    shutil.rmtree(tmp_path / "raw")
    with pytest.raises(PerchError, match=r"is no file of perch\.raw/2"):
        unpacked(tmp_path / "host/out.tar.gz", tmp_path, 100, soak[1:])
    assert left(tmp_path / "raw") == []


def test_a_soak_is_of_the_flows_of_the_share(run: Path) -> None:
    share = unpack.share_of(run, "alpha", retry=False)
    served = ShareFlow(2, "t", "beta", "alpha", 0, 1)
    turn = msgspec.structs.replace(share.rounds[0], flows=[*share.rounds[0].flows, served])
    soak = SoakPlan(60, 1, 0.02, 600, "mixed", None)
    soaked = msgspec.structs.replace(share, soak=soak, rounds=[turn])
    assert unpack.soaking(soaked) == ["flows/t/alpha/beta/0/1/client.soak"] * 2
    assert unpack.soaking(share) == []


def test_a_file_that_stands_there_twice_is_refused(taken: Callable[..., Path]) -> None:
    with pytest.raises(PerchError, match="is there twice"):
        taken(tarred(member("flows.jsonl"), member("flows.jsonl", b"other\n")))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_other_formats_of_tar_are_refused(taken: Callable[..., Path], form: int) -> None:
    info = member("flows.jsonl", uname="\u00e9" * 40, pax_headers={"x": "y"})
    with pytest.raises(PerchError, match=r"not of ustar|not a regular file"):
        taken(tarred(info, form=form))


@pytest.mark.parametrize("end", [1, 300, 512, 600, 1024, len(WHOLE) - 10240 + 2048])
def test_an_archive_that_ends_early_is_refused(taken: Callable[..., Path], end: int) -> None:
    with pytest.raises(PerchError, match="ends early"):
        taken(WHOLE[:end])


@pytest.mark.parametrize("cut", [1, 9, 20])
def test_a_gzip_that_ends_early_is_refused(taken: Callable[..., Path], cut: int) -> None:
    with pytest.raises(PerchError, match="cannot be read"):
        taken(gzip.compress(WHOLE)[:-cut], packed=False)


def test_a_changed_byte_is_seen(taken: Callable[..., Path]) -> None:
    content = bytearray(gzip.compress(WHOLE))
    content[-5] ^= 1  # the checksum
    with pytest.raises(PerchError, match="cannot be read"):
        taken(bytes(content), packed=False)


@pytest.mark.parametrize("content", [b"", b"no archive", WHOLE])
def test_what_is_no_gzip_is_refused(taken: Callable[..., Path], content: bytes) -> None:
    with pytest.raises(PerchError, match=r"cannot be read|ends early"):
        taken(content, packed=False)


def test_a_gzip_that_is_also_a_zip_is_refused(taken: Callable[..., Path]) -> None:
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("flows.jsonl", "other")
    with pytest.raises(PerchError, match="cannot be read"):
        taken(gzip.compress(WHOLE) + other.getvalue(), packed=False)


@pytest.mark.parametrize("more", [b"x", bytes(20 * 512), WHOLE])
def test_what_follows_the_end_is_refused(taken: Callable[..., Path], more: bytes) -> None:
    with pytest.raises(PerchError, match="something follows its end"):
        taken(WHOLE + more)


@pytest.mark.parametrize("at", [0, 100, 124, 148, 257])
def test_a_damaged_header_is_refused(taken: Callable[..., Path], at: int) -> None:
    content = bytearray(WHOLE)
    content[at] ^= 3
    with pytest.raises(PerchError, match="not of ustar"):
        taken(bytes(content))


def test_more_bytes_than_expected_are_refused_before_they_are_read(
    taken: Callable[..., Path], tmp_path: Path
) -> None:
    """The header is enough: none of its 8 GiB is there."""
    bomb, _ = member("flows.jsonl", size=8 * 2**30 - 1)
    with pytest.raises(PerchError, match=r"flows\.jsonl has 8589934591 bytes, \d+ too many"):
        taken(bomb.tobuf(tarfile.USTAR_FORMAT), 2**20)
    with pytest.raises(PerchError, match=r"environment\.json has 600 bytes, 100 too many"):
        taken(tarred(member("agent.log", bytes(500)), member("environment.json", bytes(600))))
    assert left(tmp_path / "raw/alpha") == []


def test_all_or_nothing_is_unpacked(taken: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(PerchError):
        taken(tarred(member("flows.jsonl"), member("samples.jsonl"), member("planted")))
    assert left(tmp_path / "raw/alpha") == []


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two flows of alpha, and one of their repeats."""
    for folder, flows in (("shares", 2), ("shares.retry", 1)):
        (tmp_path / folder).mkdir()
        own = [ShareFlow(place, "t", "alpha", "beta", 0, 1) for place in range(flows)]
        share = Share(SCHEMA, "r", "0", "alpha", {}, {}, [ShareRound(1, 1, 2, own)])
        (tmp_path / folder / "alpha.json").write_bytes(msgspec.json.encode(share))
    (tmp_path / "alpha.tar.gz").write_bytes(gzip.compress(WHOLE))
    return tmp_path


def test_the_plan_bounds_the_bytes(run: Path) -> None:
    share, repeats = (unpack.share_of(run, "alpha", retry=retry) for retry in (False, True))
    assert unpack.expected(share) == unpack.OTHER_BYTES + 2 * unpack.FLOW_BYTES
    assert unpack.expected(repeats) == unpack.OTHER_BYTES + unpack.FLOW_BYTES
    soak = SoakPlan(60, 1, 0.02, 600, "mixed", None, {"alpha": 1000, "beta": 7})
    soaked = msgspec.structs.replace(share, soak=soak)
    assert unpack.expected(soaked) == unpack.expected(share) + 4000


@pytest.mark.parametrize(("more", "where"), [([], "alpha"), (["--retry"], "alpha/retry")])
def test_the_command_unpacks_and_removes_the_archive(
    run: Path, more: list[str], where: str
) -> None:
    archive = run / "alpha.tar.gz"
    assert main(["unpack", str(run), "alpha", str(archive), *more]) == 0
    assert left(run / "raw" / where) == sorted(asking.FILES) and not archive.exists()


def test_the_command_says_why_it_refuses(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it refuses stays, for it may be the only copy; then the advice can be followed."""
    archive = run / "alpha.tar.gz"
    words = ["unpack", str(run), "alpha", str(archive)]
    assert main([*words, "--most-bytes", "20"]) == 3
    assert capsys.readouterr().err == (
        f"perchctl unpack: {archive}: the archive is refused, nothing is unpacked: samples.jsonl"
        " has 15 bytes, 10 too many; raise --most-bytes (agent_most_bytes) if they are right\n"
    )
    assert main([*words, "--most-bytes", "60"]) == 0 and not archive.exists()
    assert main(words) == 2 and "there is no such file" in capsys.readouterr().err
    assert main(["unpack", str(run), "gamma", str(archive)]) == 3
    assert "shares/gamma.json: it cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("most", ["-5", "+5", "many", ""])
def test_the_most_bytes_are_a_number(
    run: Path, capsys: pytest.CaptureFixture[str], most: str
) -> None:
    words = ["unpack", str(run), "alpha", str(run / "alpha.tar.gz"), f"--most-bytes={most}"]
    assert main(words) == 2
    assert f"'{most}' is not a number of bytes" in capsys.readouterr().err


def test_only_a_regular_file_is_opened(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe without a writer is not waited for, and nothing is removed."""
    pipe = run / "pipe"
    os.mkfifo(pipe)
    for one in (pipe, run / "shares"):
        assert main(["unpack", str(run), "alpha", str(one)]) == 2
        assert f"{one}: it is not a regular file" in capsys.readouterr().err
        assert one.exists()
    share = run / "shares/alpha.json"
    assert main(["unpack", str(run), "alpha", str(share)]) == 3
    assert "cannot be read: Not a gzipped file" in capsys.readouterr().err and share.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from perch.cli import main
from perch.run import unpack
from tests.py.agent_hosts import TOP
unpack._read = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_what_a_killed_unpack_leaves_is_not_sealed_and_the_next_one_removes_it(run: Path) -> None:
    (run / "raw").mkdir()
    words = ["unpack", str(run), "alpha", str(run / "alpha.tar.gz")]
    before = left(run)
    ended = subprocess.run([sys.executable, "-c", KILLED, *words], timeout=30)
    assert ended.returncode == -signal.SIGKILL
    (work,) = set(left(run)) - set(before)
    (run / work / "flows.jsonl").write_bytes(LINE)
    assert seal.seal(run) == (0, 0)
    assert main(words) == 0
    assert not (run / work).exists()
