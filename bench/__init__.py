"""Benchmarks and fuzzers, run by hand or at night, not with every test. What they share with tests is in tests/."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
