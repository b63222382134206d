"""Packs a collection's archive again, so that the same commit gives the same bytes.

    repack.py FILE SECONDS

ansible-galaxy lists files in the order of the file system and writes the present time. Here they
are in the order of their names, and each has the commit's time.
"""

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

LISTS = "MANIFEST.json", "FILES.json"


def json_bytes(value: Any) -> bytes:
    """JSON as ansible-galaxy writes it."""
    return json.dumps(value, indent=True).encode()


def sorted_lists(files: bytes, manifest: bytes) -> dict[str, bytes]:
    """Both lists: of the files, in order, and of the collection, with the new list's checksum."""
    listed, described = json.loads(files), json.loads(manifest)
    listed["files"].sort(key=lambda one: one["name"])
    text = json_bytes(listed)
    described["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(text).hexdigest()
    return {"MANIFEST.json": json_bytes(described), "FILES.json": text}


def repacked(archive: bytes, seconds: int) -> bytes:
    """The archive with its files in order and of this time, the two lists first."""
    packed = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        contents = {one.name: old.extractfile(one) for one in old if one.isfile()}
        read = {name: stream.read() for name, stream in contents.items() if stream}
        read |= sorted_lists(read["FILES.json"], read["MANIFEST.json"])
        for one in sorted(old, key=lambda one: (one.name not in LISTS, one.name)):
            one.mtime = seconds
            one.pax_headers = {}
            if one.isfile():
                one.size = len(read[one.name])
            new.addfile(one, io.BytesIO(read[one.name]) if one.isfile() else None)
    return packed.getvalue()


def main() -> None:
    path, seconds = Path(sys.argv[1]), int(sys.argv[2])
    path.write_bytes(repacked(path.read_bytes(), seconds))


if __name__ == "__main__":
    main()
