"""What an apply keeps to be taken back by: the user's own files, their index, and a note.

It lies in the git folder of the checkout, where the user's files can be kept as they are by a link,
and stays there until the apply is settled, however many processes that takes.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from cleveragents.domain.ids import ResourceId
from cleveragents.infrastructure.files.durable_files import write_file
from cleveragents.infrastructure.files.filesystems import sync_places
from cleveragents.infrastructure.sandbox.git.command import Git


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
    """`result` is the commit that is applied: a note about another one means nothing."""

    def __init__(self, git: Git, resource_id: ResourceId, result: str) -> None:
        git_dir = Path(git.text("rev-parse", "--absolute-git-dir"))
        self._result = result
        self._path = git_dir / f"cleveragents-apply-{resource_id}"
        self._note = self._path / "note"
        self._old = self._path / "old"
        self.index_before = self._path / "index-before"
        self.index_after = self._path / "index-after"

    def open(self) -> None:
        if self.note() is None:
            self.remove()  # of an apply that was taken back
        self._old.mkdir(mode=0o700, parents=True, exist_ok=True)

    def fresh(self) -> Path:
        """An empty folder for the new files, from where one step takes them to their places."""
        place = self._path / "new"
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

    def make_durable(self) -> None:
        """All that lies here."""
        sync_places([str(self._path)])

    def kept(self, path: bytes) -> Path:
        # Names follow from the path, so that a repetition finds what a killed run has kept.
        return self._old / hashlib.sha256(path).hexdigest()

    def keep(self, path: bytes, file: Path) -> None:
        """Hold on to the user's very file, or to a copy where the file system cannot."""
        place = self.kept(path)
        place.unlink(missing_ok=True)
        try:
            os.link(file, place, follow_symlinks=False)
        except OSError:
            half = place.with_name("half")
            shutil.copy2(file, half, follow_symlinks=False)
            half.replace(place)

    def make_folder(self, place: Path, mode: int) -> None:
        """With its mode from the first moment on. Where somebody has put a file into its way there
        is none to be had, which its own files will tell."""
        draft = self._path / "folder"
        with suppress(FileNotFoundError):
            draft.rmdir()
        draft.mkdir()
        draft.chmod(mode)
        try:
            draft.replace(place)
        except NotADirectoryError:
            return
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            place.mkdir(mode)
            place.chmod(mode)

    def remove(self) -> None:
        """The note first: what is left without it means nothing."""
        with suppress(FileNotFoundError):
            self._note.unlink()
        shutil.rmtree(self._path, ignore_errors=True)
