"""What the packed file runs first: it must speak where Python is too old for the rest."""

import sys

if sys.version_info < (3, 9):  # noqa: UP036, this is the line that says so
    sys.stderr.write(
        "perch-agent: Python {}.{} is too old, 3.9 is needed; set ansible_python_interpreter"
        " (SLES 15: install python311)\n".format(*sys.version_info[:2])
    )
    sys.exit(3)

from perch.agent.command import main

sys.exit(main(sys.argv[1:]))
