"""The folder in which an agent's hooks tell what it is about to do, and wait for the word.

Files and named pipes, because a command that is held inside has no sockets: a hook puts its message
beside a pipe for the answer, and rings the bell.
"""

import errno
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, cast

from msgspec import Struct, field

from cleveragents.domain.foreign_json import read_json
from cleveragents.infrastructure.files.data_folder import make_private
from cleveragents.infrastructure.files.descriptors import opened

BELL = "bell"
REQUEST, REPLY = ".json", ".reply"
LARGEST_MESSAGE = 16 << 20
_NOTHING_TOLD = (errno.ENOENT, errno.ELOOP, errno.EACCES, errno.ENXIO)


class HookKind(StrEnum):
    PRE_TOOL = "pre-tool"
    POST_TOOL = "post-tool"
    PAUSE = "pause"


class HookEvent(Struct, frozen=True, kw_only=True):
    """What one call of a hook said. `call_id` is empty if the agent gives its calls no names."""

    kind: HookKind
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    response: object = None
    error: str = ""
    call_id: str = ""
    session: str = ""
    reply: str = ""

    def ends(self, begun: "HookEvent") -> bool:
        """Whether this tells the end of that call."""
        if self.call_id and begun.call_id:
            return self.call_id == begun.call_id
        return self.tool == begun.tool

    def is_call(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        return self.tool == tool and dict(self.arguments) == dict(arguments)


class HookFolder:
    """Our end of it. `bell` can be waited for: there is something to read when a hook has rung."""

    def __init__(self, scratch: str) -> None:
        make_private(scratch)
        self.path = tempfile.mkdtemp(prefix="hooks-", dir=scratch)
        os.mkfifo(os.path.join(self.path, BELL), 0o600)
        # Open for both, so that it never comes to an end while nobody rings.
        self.bell = os.open(os.path.join(self.path, BELL), os.O_RDWR | os.O_NONBLOCK)

    def messages(self) -> list[HookEvent]:
        """Those that have come since the last look, in their order."""
        with suppress(BlockingIOError):
            os.read(self.bell, 4096)
        names = sorted(name for name in os.listdir(self.path) if name.endswith(REQUEST))
        return [found for name in names if (found := self._message(name)) is not None]

    def answer(self, event: HookEvent, refusal: str = "") -> None:
        """Let the agent go on, or not; one that is gone needs no answer."""
        path = os.path.join(self.path, event.reply)
        with suppress(OSError):
            with opened(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW) as pipe:
                if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
                    return  # put there by an agent that would have us write elsewhere
                os.write(pipe, json.dumps({"refusal": refusal[:2000]}).encode("ascii"))
            os.unlink(path)

    def close(self) -> None:
        os.close(self.bell)
        shutil.rmtree(self.path, ignore_errors=True)

    def _message(self, name: str) -> HookEvent | None:
        data = self._taken(os.path.join(self.path, name))
        return None if data is None else _event(data, name.removesuffix(REQUEST) + REPLY)

    def _taken(self, path: str) -> bytes | None:
        """The bytes of a file, which is gone then. The agent may put there what it likes: a link, a
        pipe or a folder of that name says nothing, and stays."""
        try:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in _NOTHING_TOLD:
                return None
            raise
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            data = os.read(file, LARGEST_MESSAGE)
        finally:
            os.close(file)
        with suppress(FileNotFoundError):
            os.unlink(path)
        return data


def _event(data: bytes, reply: str) -> HookEvent | None:
    """None if it is not what our own hook writes: the agent may write there what it likes."""
    try:
        told = cast("dict[str, Any]", read_json(data))
        kind = HookKind(told["kind"])
    except (ValueError, KeyError, TypeError):
        return None
    arguments = told.get("arguments")
    return HookEvent(
        kind=kind,
        tool=_text(told.get("tool")),
        arguments=cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {},
        response=told.get("response"),
        error=_text(told.get("error")),
        call_id=_text(told.get("call_id")),
        session=_text(told.get("session")),
        reply=reply,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
