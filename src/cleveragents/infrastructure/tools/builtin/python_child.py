"""The process in which a Python function runs as a tool: JSON in, JSON out.

It is started by its path and loads nothing of this package: what it runs may be anything. The
result goes to an open file of its own, whose number it is given: what is printed is output.
"""

import importlib
import json
import os
import sys
import traceback
from typing import Any

FAILED = 1


def main(answer: int) -> int:
    os.set_inheritable(answer, False)  # noqa: FBT003 - the library takes it so
    call: dict[str, Any] = json.load(sys.stdin)
    try:
        function = _function(call["target"])
        result = function(**call["arguments"])
        text = json.dumps(result, allow_nan=False)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the function's own
        sys.stdout.flush()
        traceback.print_exception(error, limit=-3, file=sys.stdout)
        sys.stdout.flush()
        return FAILED
    with os.fdopen(answer, "w", encoding="ascii") as file:
        file.write(text)
    return 0


def _function(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
