"""`python -m perch` is perchctl."""

import sys

from perch.cli import main

sys.exit(main())
