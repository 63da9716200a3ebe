"""Owns the process in which a Python function runs as a tool: JSON in, JSON out.

It is started by its path and loads nothing of this package: what it runs may be anything.
"""

import importlib
import json
import os
import sys
import traceback
from typing import Any

FAILED = 1


def main() -> int:
    call: dict[str, Any] = json.load(sys.stdin)
    # What the function prints is output; the result has a line of its own.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    try:
        function = _function(call["target"])
        result = function(**call["arguments"])
        line = json.dumps(result, allow_nan=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the function's own
        sys.stdout.flush()
        traceback.print_exception(error, limit=-3, file=sys.stdout)
        sys.stdout.flush()
        return FAILED
    sys.stdout.flush()
    answer.write(f"\n{call['token']} {line}\n")
    answer.close()
    return 0


def _function(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


if __name__ == "__main__":
    sys.exit(main())
