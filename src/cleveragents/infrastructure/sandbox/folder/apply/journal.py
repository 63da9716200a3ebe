"""The note beside a sandbox that tells which paths of the project an apply has changed.

What is left of a killed apply is mended by the next one: `services/apply/apply_service.py`.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.durable_files import write_file
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS
from cleveragents.infrastructure.sandbox.location import make_parent


class ApplyJournal:
    """Written before the project changes and when all of it has changed; both are durable.

    `result` is the snapshot that is applied: a note about another one means nothing.
    """

    def __init__(self, resource: PlanResource, result: str) -> None:
        self._path = resource.sandbox_path + ".apply"
        self._result = result

    def begin(self, paths: Iterable[bytes]) -> None:
        """These are about to change; what was said before stays said."""
        self._write({*self.changed(), *paths}, done=False)

    def finish(self) -> None:
        self._write(self.changed(), done=True)

    def is_done(self) -> bool:
        return bool(self._read().get("done"))

    def changed(self) -> frozenset[bytes]:
        """The paths that this run or a killed one may have changed."""
        return frozenset(bytes.fromhex(text) for text in self._read().get("paths", ()))

    def clear(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)
        with suppress(OSError):  # unless a sandbox of the plan is there, or was never
            os.rmdir(os.path.dirname(self._path))

    def _write(self, paths: Iterable[bytes], *, done: bool) -> None:
        self._make_place()
        note = {"result": self._result, "done": done, "paths": [path.hex() for path in paths]}
        write_file(self._path, json.dumps(note).encode())

    def _make_place(self) -> None:
        """When an apply is taken back, there may be no sandbox any more."""
        place = os.path.dirname(self._path)
        if not os.path.isdir(place):
            make_parent(self._path)
            with opened(os.path.dirname(place), FOLDER_FLAGS) as sandboxes:
                os.fsync(sandboxes)

    def _read(self) -> Mapping[str, Any]:
        try:
            with open(self._path, "rb") as file:
                note = json.load(file)
        except FileNotFoundError:
            return {}
        return note if note["result"] == self._result else {}
