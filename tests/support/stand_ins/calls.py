"""What every stand-in does: two calls, each between its hooks, with messages as recorded."""

import json
import pathlib
import subprocess
import sys

HERE = str(pathlib.Path.cwd())
TEXT = "written by write tool, key a\n"
SHELL = 'echo "shell key a" >> shell_a.txt'


def say(*words: object, flush: bool = True) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    if flush:
        sys.stdout.flush()


def ask(command: str, message: dict[str, object]) -> None:
    """Exit code 2 keeps the call from being made, for all of them."""
    done = subprocess.run(
        command, shell=True, input=json.dumps(message), text=True, capture_output=True
    )
    say(f"hook {message.get('hook_event_name')}: {done.returncode}", flush=True)
    assert done.stdout == "", "some take what a hook prints for an answer"
    if done.returncode == 2:
        sys.exit(f"blocked: {done.stderr}")


def write() -> None:
    assert not pathlib.Path("file_a.txt").exists()
    pathlib.Path("file_a.txt").write_text(TEXT)


def shell() -> None:
    subprocess.run(SHELL, shell=True, check=True)
