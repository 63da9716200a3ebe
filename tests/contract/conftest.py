"""Makes `tests.support` known to the suites of the ports."""

import sys
from pathlib import Path

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[2]))
