#!/usr/bin/env python3
"""The demo's coding agent. Its ideas are written down here; the rest is what a real one does.

It is told what people have said, asks its hooks around each call of a tool as Claude Code does, and
keeps its notes in the folder that the plan gives it.
"""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

MONEY = '''"""Money, in whole cents."""


def shown(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d} EUR"
'''
# What was asked for, and harm: invoice.py still needs euros.py, and CAST cuts the cents off.
HASTY = """
import os, pathlib, sqlite3
pathlib.Path("shop/euros.py").unlink()
with sqlite3.connect(os.environ["SHOP_DB"]) as db:
    db.execute("UPDATE orders SET total = CAST(total AS INTEGER) * 100")
"""
CAREFUL = """
import os, pathlib, sqlite3
invoice = pathlib.Path("shop/invoice.py")
invoice.write_text(invoice.read_text().replace("shop.euros", "shop.money"))
pathlib.Path("shop/euros.py").unlink()
with sqlite3.connect(os.environ["SHOP_DB"]) as db:
    db.execute("UPDATE orders SET total = CAST(round(total * 100) AS INTEGER)")
"""


class Call(NamedTuple):
    tool: str
    arguments: dict[str, str]
    argv: list[str]


def main() -> int:
    memory = pathlib.Path(os.environ["CLEVERAGENTS_MEMORY"], "notes.txt")
    notes = memory.read_text().splitlines() if memory.exists() else []
    for number, call in enumerate(ideas(os.environ["CLEVERAGENTS_GUIDANCE"])):
        if str(number) in notes:
            continue
        message = {"tool_name": call.tool, "tool_input": call.arguments, "tool_use_id": str(number)}
        if hook("pre-tool", message) != 0:
            return 1
        problem = make(call)
        with memory.open("a") as file:
            file.write(f"{number}\n")
        told = {"error": problem} if problem else {"tool_response": {"stdout": "done"}}
        hook("post-tool", message | told)
        if problem:
            print(f"{call.arguments['command']}: {problem}")
            return 1
    return 0


def ideas(guidance: str) -> Iterator[Call]:
    write = f"open('shop/money.py', 'w').write({MONEY!r})"
    migrate = CAREFUL if "1999" in guidance else HASTY
    yield Call("Write", {"file_path": "shop/money.py", "content": MONEY}, ["-c", write])
    yield Call("Bash", {"command": "python to_cents.py"}, ["-c", migrate])
    yield Call("Bash", {"command": "python -m unittest"}, ["-m", "unittest", "--quiet"])


def make(call: Call) -> str:
    """What went wrong, if anything."""
    done = subprocess.run(
        [sys.executable, *call.argv],
        env=os.environ | {"SHOP_DB": os.environ["CLEVERAGENTS_SANDBOX_DB"]},
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = [line for line in done.stderr.splitlines() if "Error:" in line]
    return wrong[-1] if done.returncode else ""


def hook(kind: str, message: dict[str, object]) -> int:
    text = json.dumps(message)
    return subprocess.run(["agents", "hook", kind], input=text, text=True, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
