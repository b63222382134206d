"""Where the checkout has what the self-test takes."""

from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
TOP = HERE.parents[1]
FIXTURES = TOP / "tests/fixtures"
LIMITS = TOP / "reports/limits"
