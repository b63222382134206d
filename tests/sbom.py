#!/usr/bin/env python3
"""Validates a bill of materials against CycloneDX's own schema, strictly: sbom.py FILE."""

import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
sys.exit(f"{sys.argv[1]}: {fault.data}" if fault else 0)
