"""The hook's end: tell the plan what an agent does, and wait until it may go on.

Part of every tool call of an agent, so it imports next to nothing.
"""

import json
import os
import select
import time
from collections.abc import Mapping
from typing import Any

FOLDER_VARIABLE = "CLEVERAGENTS_HOOKS"
_BELL, _REQUEST, _REPLY = "bell", ".json", ".reply"
_LOOK_SECONDS = 1.0


class NobodyListensError(Exception):
    """The plan that the agent was started by is not there any more."""


def tell(folder: str, message: Mapping[str, Any]) -> str:
    """Empty if the agent may go on, else the reason why not. Raises NobodyListensError."""
    name = os.path.join(folder, f"{time.monotonic_ns():020d}-{os.getpid()}")
    try:
        os.mkfifo(name + _REPLY, 0o600)
        answer = os.open(name + _REPLY, os.O_RDONLY | os.O_NONBLOCK)
        with open(name + ".new", "w", encoding="utf-8") as file:
            json.dump(message, file)
        os.rename(name + ".new", name + _REQUEST)
    except OSError as error:
        raise NobodyListensError from error
    _ring(folder)
    return str(json.loads(_heard(folder, answer)).get("refusal", ""))


def _ring(folder: str) -> None:
    try:
        bell = os.open(os.path.join(folder, _BELL), os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        raise NobodyListensError from error
    try:
        os.write(bell, b"!")
    finally:
        os.close(bell)


def _heard(folder: str, answer: int) -> bytes:
    heard = b""
    while True:
        if not select.select([answer], [], [], _LOOK_SECONDS)[0]:
            _ring(folder)  # also tells whether somebody still listens
            continue
        data = os.read(answer, 65536)
        if not data:
            return heard or b"{}"
        heard += data
