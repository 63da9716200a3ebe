"""An MCP server for tests that goes on writing when nobody has called it, in every way it can."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

# Whatever happens, it is over then: the machine is not ours alone.
LONGEST = 20
CHILD = f"""
import pathlib, time
end = time.monotonic() + {LONGEST}
while time.monotonic() < end:
    with pathlib.Path("child").open("a") as file: file.write("x")
    time.sleep(0.002)
"""


def note(name: str) -> None:
    with pathlib.Path(name).open("a", encoding="utf-8") as file:
        file.write("x")


def tick() -> None:
    while True:
        note("thread")
        time.sleep(0.002 if "early" not in sys.argv else 0)


def chain() -> None:
    """Each link starts the next one in a session of its own, and is gone."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        note("chain")
    os._exit(0)


def on_term(*_: object) -> None:
    note("term")
    os._exit(0)


def say(identity: object, result: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
    sys.stdout.flush()


def main() -> None:
    signal.signal(signal.SIGTERM, on_term)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "initialize":
            if "early" in sys.argv:
                threading.Thread(target=tick, daemon=True).start()
            say(message["id"], {"protocolVersion": "2025-06-18", "capabilities": {}})
        elif message.get("method") == "tools/list":
            say(message["id"], {"tools": [{"name": "begin", "inputSchema": {}}]})
        elif message.get("method") == "tools/call":
            threading.Thread(target=tick, daemon=True).start()
            subprocess.Popen([sys.executable, "-c", CHILD], start_new_session=True)
            if os.fork() == 0:
                chain()
            time.sleep(0.3)
            say(message["id"], {"content": [{"type": "text", "text": "begun"}]})
    note("end-of-input")


if __name__ == "__main__":
    main()
