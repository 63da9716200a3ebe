"""What an apply keeps to be taken back by: the user's own files, their index, and a note.

It lies in the git folder of the checkout, where the user's files can be kept as they are by a link,
and stays there until the apply is finished or reverted, however many processes that takes: after a
kill the next apply does it (`services/apply/apply_service.py`).
"""

import hashlib
import json
import os
import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

from cleveragents.domain.ids import ResourceId
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import write_file
from cleveragents.infrastructure.files.update.stage_folder import StageFolder
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of
from cleveragents.infrastructure.sandbox.git.submodules.records import submodules_of

APPLY = "apply"
UNDO = "undo"
_NEW = "new"
_OLD = "old"


class UndoNote(Struct, frozen=True, kw_only=True):
    """`files` are the paths about to change, each with whether there was one; `folders` the modes
    of those that may go with their last file, `made` those that come with their first."""

    files: Mapping[bytes, bool] = field(default_factory=dict[bytes, bool])
    folders: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    made: tuple[bytes, ...] = ()

    def joined(self, later: "UndoNote") -> "UndoNote":
        """With what a repetition adds: of folders, what the first run found is what was there."""
        made = (*self.made, *(path for path in later.made if path not in self.made))
        folders = {path: mode for path, mode in later.folders.items() if path not in self.made}
        return UndoNote(
            files={**self.files, **later.files},
            folders={**folders, **self.folders},
            made=made,
        )


class UndoFolder:
    """`result` is the commit that is applied: a note about another one means nothing. Taking an
    apply back keeps its own things apart: those of the apply are still needed."""

    def __init__(self, git: Git, resource_id: ResourceId, result: str, going: str = APPLY) -> None:
        git_dir = Path(git.text("rev-parse", "--absolute-git-dir"))
        self._result = result
        self._path = git_dir / f"cleveragents-{going}-{resource_id}"
        self._note = self._path / "note"
        self.index_before = self._path / "index-before"
        self.index_after = self._path / "index-after"

    def open(self) -> None:
        if self.note() is None:
            self.remove()  # of an apply that was taken back
        (self._path / _OLD).mkdir(mode=0o700, parents=True, exist_ok=True)

    def fresh(self) -> Path:
        """An empty folder for the new files, from where one step takes them to their places."""
        place = self._path / _NEW
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        return place

    def note(self) -> UndoNote | None:
        try:
            told = json.loads(self._note.read_bytes())
        except FileNotFoundError:
            return None
        if told["result"] != self._result:
            return None
        return UndoNote(
            files={bytes.fromhex(path): there for path, there in told["files"].items()},
            folders={bytes.fromhex(path): mode for path, mode in told["folders"].items()},
            made=tuple(bytes.fromhex(path) for path in told["made"]),
        )

    def add(self, later: UndoNote) -> None:
        """Durable before anything changes; what was noted before stays noted."""
        note = (self.note() or UndoNote()).joined(later)
        told = {
            "result": self._result,
            "files": {path.hex(): there for path, there in note.files.items()},
            "folders": {path.hex(): mode for path, mode in note.folders.items()},
            "made": [path.hex() for path in note.made],
        }
        write_file(str(self._note), json.dumps(told).encode())

    @contextmanager
    def stage(self) -> Generator[StageFolder]:
        stage = StageFolder(str(self._path))
        try:
            yield stage
        finally:
            stage.close()

    def kept(self, path: bytes) -> Path:
        return self._path / os.fsdecode(kept_name(path))

    def remove(self) -> None:
        """The note first: what is left without it means nothing."""
        with suppress(FileNotFoundError):
            self._note.unlink()
        shutil.rmtree(self._path, ignore_errors=True)


def staged_name(path: bytes) -> bytes:
    return f"{_NEW}/".encode() + path


def kept_name(path: bytes) -> bytes:
    # Follows from the path, so that a repetition finds what a killed run has kept.
    return f"{_OLD}/{hashlib.sha256(path).hexdigest()}".encode()


def kept_places(resource: PlanResource) -> Iterator[str]:
    """Where the things of this resource lie that an apply has kept, in all its repositories."""
    own = (f"cleveragents-{word}-{resource.resource_id}" for word in (APPLY, UNDO, "modules"))
    names = tuple(own)
    modules = (module.repository(resource.location) for module in submodules_of(resource))
    for folder in (details_of(resource).git_dir, *modules):
        yield from (place for name in names if os.path.isdir(place := os.path.join(folder, name)))
