"""What an agent's program remembers: a folder of its own, which goes back with the plan.

Each change of it is a message of the actor's memory; all messages up to a checkpoint give the
folder as it was then. Most agents only add to their files, so of one that grew the end is stored.
"""

import base64
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from cleveragents.domain.actor_protocol import Message
from cleveragents.infrastructure.files.data_folder import make_private

LARGEST_FILE = 32 << 20
_KIND = "memory"


class _Known(Struct, frozen=True):
    size: int
    digest: bytes
    mode: int


class MemoryFolder:
    def __init__(self, scratch: str) -> None:
        make_private(scratch)
        self.path = tempfile.mkdtemp(prefix="memory-", dir=scratch)
        self._known: dict[str, _Known] = {}

    def fill(self, messages: Sequence[Message]) -> None:
        """Make the folder what these messages say, oldest first."""
        for message in messages:
            told = json.loads(message.body)
            if told.get("kind") != _KIND:
                continue
            for name in told["gone"]:
                os.unlink(self._place(name))
            for name, change in told["files"].items():
                self._put(name, change)
        self._known = {name: self._seen(name)[0] for name in self._names()}

    def changes(self, parent: str | None) -> tuple[Message | None, tuple[str, ...]]:
        """What is new since the last call, if anything is, and the files too large to keep."""
        files: dict[str, Any] = {}
        skipped: list[str] = []
        names = set(self._names())
        for name in sorted(names):
            if os.path.getsize(self._place(name)) > LARGEST_FILE:
                skipped.append(name)
                continue
            seen, data = self._seen(name)
            before = self._known.get(name)
            if seen != before:
                files[name] = _change(data, seen, before)
                self._known[name] = seen
        gone = sorted(self._known.keys() - names)
        for name in gone:
            del self._known[name]
        if not files and not gone:
            return None, tuple(skipped)
        body = json.dumps({"kind": _KIND, "files": files, "gone": gone}, sort_keys=True)
        return Message.after(parent, body), tuple(skipped)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _names(self) -> Iterator[str]:
        """Names as the store can take them: every byte is one letter."""
        top = os.fsencode(self.path)
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    yield os.path.relpath(path, top).decode("latin-1")

    def _place(self, name: str) -> bytes:
        return os.path.join(os.fsencode(self.path), name.encode("latin-1"))

    def _seen(self, name: str) -> tuple[_Known, bytes]:
        with open(self._place(name), "rb") as file:
            data = file.read()
            mode = os.fstat(file.fileno()).st_mode & 0o777
        return _Known(len(data), hashlib.sha256(data).digest(), mode), data

    def _put(self, name: str, change: dict[str, Any]) -> None:
        place = self._place(name)
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        with open(place, "ab") as file:
            file.truncate(change["from"])
            file.write(base64.b64decode(change["data"]))
        os.chmod(place, change["mode"])


def _change(data: bytes, seen: _Known, before: _Known | None) -> dict[str, Any]:
    start = 0
    if before is not None and hashlib.sha256(data[: before.size]).digest() == before.digest:
        start = before.size
    text = base64.b64encode(data[start:]).decode("ascii")
    return {"from": start, "data": text, "mode": seen.mode}
