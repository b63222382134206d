"""`python -m selftest`."""

import sys

from selftest.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
