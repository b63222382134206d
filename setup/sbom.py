"""Writes a release's bill of materials (CycloneDX 1.6).

    sbom.py VERSION COMMIT-TIME ARCHIVE >FILE

It lists the Python packages that setup/requirements*.txt pin, with their versions, hashes and
dependencies, and the Debian packages of setup/packages.txt whose libraries the engine links. Those
have no version: the engine is built on each host, from that host's packages. The same commit gives
the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable
from datetime import datetime
from importlib import metadata
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalContact
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).resolve().parent
PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s\\]+)"
    r"(?P<hashes>(?: \\\n +--hash=sha256:[0-9a-f]+)+)",
    re.MULTILINE,
)
# What a package needs may depend on the interpreter: this is the oldest that Perch supports.
PYTHON = {"python_version": "3.11", "python_full_version": "3.11.0", "extra": ""}


def pinned() -> dict[str, re.Match[str]]:
    """Each pinned package, by its normalized name."""
    texts = [one.read_text(encoding="utf-8") for one in sorted(HERE.glob("requirements*.txt"))]
    return {canonicalize_name(pin["name"]): pin for text in texts for pin in PIN.finditer(text)}


def needed(name: str) -> list[str]:
    """The packages that an installed one requires, without its extras."""
    requirements = map(Requirement, metadata.requires(name) or [])
    return [
        canonicalize_name(one.name)
        for one in requirements
        if one.marker is None or one.marker.evaluate(PYTHON)
    ]


def direct() -> list[str]:
    """The packages that perchctl and the playbooks use themselves."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    names = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["names"]
    optional = project["project"]["optional-dependencies"]
    return [canonicalize_name(one) for one in (*names, *optional["playbooks"])]


def closure(names: Iterable[str]) -> set[str]:
    """These packages and all that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += needed(name)
    return found


def linked() -> list[str]:
    """The Debian packages that the engine is linked with."""
    text = (HERE / "packages.txt").read_text(encoding="utf-8")
    section = text.split("\n[build]", 1)[1].split("\n[", 1)[0]
    return re.findall(r"^(\S+-dev)\b", section, re.MULTILINE)


def of_pypi(pin: re.Match[str], required: bool) -> Component:
    """A pinned package. Its hashes are of its wheels, one for each platform."""
    wheels = [
        HashType(alg=HashAlgorithm.SHA_256, content=one)
        for one in re.findall(r"sha256:([0-9a-f]+)", pin["hashes"])
    ]
    index = XsUri(f"https://pypi.org/simple/{canonicalize_name(pin['name'])}/")
    url = PackageURL("pypi", None, pin["name"], pin["version"])
    return Component(
        type=ComponentType.LIBRARY, name=pin["name"], version=pin["version"], purl=url,
        bom_ref=url.to_string(),
        scope=ComponentScope.REQUIRED if required else ComponentScope.EXCLUDED,
        external_references=[
            ExternalReference(type=ExternalReferenceType.DISTRIBUTION, url=index, hashes=wheels)
        ],
    )  # fmt: skip


def of_debian(name: str) -> Component:
    url = PackageURL("deb", "debian", name)
    return Component(
        type=ComponentType.LIBRARY, name=name, purl=url, bom_ref=url.to_string(),
        scope=ComponentScope.REQUIRED,
    )  # fmt: skip


def of_release(version: str, digest: str) -> Component:
    url = PackageURL("generic", None, "perch", version)
    return Component(
        type=ComponentType.APPLICATION, name="perch", version=version, purl=url,
        bom_ref=url.to_string(),
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )  # fmt: skip


def bill(version: str, time: datetime, digest: str) -> Bom:
    """The bill of the release whose source archive has this SHA-256."""
    pins, used = pinned(), direct()
    required = closure(used)
    packages = {name: of_pypi(pin, name in required) for name, pin in pins.items()}
    libraries = [of_debian(name) for name in linked()]
    root = of_release(version, digest)
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest),
        components=[*packages.values(), *libraries],
        metadata=BomMetaData(
            timestamp=time,
            component=root,
            authors=[OrganizationalContact(name="The Perch authors")],
        ),
    )
    bom.register_dependency(root, [*(packages[name] for name in used), *libraries])
    for name, package in packages.items():
        bom.register_dependency(package, [packages[one] for one in needed(name)])
    return bom


def main() -> None:
    version, time, archive = sys.argv[1:]
    digest = hashlib.sha256(Path(archive).read_bytes()).hexdigest()
    bom = bill(version, datetime.fromisoformat(time), digest)
    print(JsonV1Dot6(bom).output_as_string(indent=1))


if __name__ == "__main__":
    main()
