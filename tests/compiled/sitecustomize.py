"""Compiles what Python imports from archives once for all tests, which start them again and again.

Ansible sends each module as a new archive of 50 files, perch-agent is one: Python keeps compiled
code for files in folders only. Tests have this folder in PYTHONPATH; the code lies in .cache. The
lab's machines have it, too.
Every Python that they start runs this, so it imports only what Python itself has imported.
"""

import _imp
import marshal
import os
import sys
import zipimport

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEPT = os.path.join(TOP, ".cache", "compiled")
KEY = 0x70657263  # of the hash, a SipHash with 64 bits
_compile = zipimport._compile_source


def compiled(path, source):
    """The code of a file's source, whatever the archive is called this time."""
    name = f"{sys.implementation.cache_tag}-{_imp.source_hash(KEY, source).hex()}-{len(source)}"
    kept = os.path.join(KEPT, name)
    try:
        with open(kept, "rb") as file:
            return marshal.load(file)
    except (OSError, EOFError, ValueError):
        code = _compile(path, source)
    new = f"{kept}.{os.getpid()}"
    try:
        os.makedirs(KEPT, exist_ok=True)
        with open(new, "wb") as file:
            marshal.dump(code, file)
        os.replace(new, kept)
    except OSError:
        pass  # a test took the right to write: nothing is kept
    return code


zipimport._compile_source = compiled
