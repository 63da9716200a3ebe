"""How this program is called by another one, wherever that stands."""

import os
import sys
from collections.abc import Sequence


def own_program() -> Sequence[str]:
    """The command that was installed beside our Python; without one, the module."""
    beside = os.path.join(os.path.dirname(sys.executable), "agents")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "cleveragents"]
