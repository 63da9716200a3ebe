"""A sandbox with layers, for whoever works on it while nothing is mounted: our own tools.

What is in the upper part counts; what is not there shows from the lower one, the user's, unless a
whiteout or an opaque folder says that it does not. The lower part is only read. What is to be
changed is copied up first, as the kernel does it; what is to be gone leaves a whiteout.
The upper part is reached without following a link, as a step may have put one anywhere.
"""

import errno
import os
import stat
from collections.abc import Sequence

from cleveragents.infrastructure.files.copy.one_file import copy_one, dress
from cleveragents.infrastructure.files.descriptors import opened
from cleveragents.infrastructure.files.layers.overlay_marks import (
    is_opaque,
    is_whiteout,
    make_whiteout,
    set_opaque,
)
from cleveragents.infrastructure.files.rooted_folder import FOLDER_FLAGS, RootedFolder


class LayeredFolder:
    """`project` is the user's, `layers` are paths below both. All paths are relative to them."""

    def __init__(self, anchor: RootedFolder, project: str, layers: Sequence[str]) -> None:
        self._anchor = anchor
        self._project = os.path.realpath(project)
        self._layers = [os.fsencode(path) for path in layers]

    def is_in_layer(self, path: bytes) -> bool:
        return any(path.startswith(layer + b"/") for layer in self._layers)

    def is_layer(self, path: bytes) -> bool:
        return path in self._layers

    def below(self, path: bytes) -> os.stat_result | None:
        """What the lower part has at this path, if the folders above it let that show."""
        if not (self.is_in_layer(path) or self.is_layer(path)):
            return None
        parts = path.split(b"/")
        for end in range(1, len(parts)):
            above = self.upper(b"/".join(parts[:end]))
            if above is not None and not self._shows_through(b"/".join(parts[:end]), above):
                return None
        lower = os.path.join(os.fsencode(self._project), path)
        # A link on the way would lead out of the project.
        if os.path.realpath(os.path.dirname(lower)) != os.path.dirname(lower):
            return None
        try:
            return os.lstat(lower)
        except OSError:
            return None

    def upper(self, path: bytes) -> os.stat_result | None:
        """What the upper part has, be it a whiteout."""
        try:
            return self._anchor.status(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def shows_lower(self, path: bytes) -> bool:
        """Whether it is the lower part alone that has it."""
        return self.upper(path) is None and self.below(path) is not None

    def is_there(self, path: bytes) -> bool:
        upper = self.upper(path)
        return self.below(path) is not None if upper is None else not is_whiteout(upper)

    def names(self, path: bytes) -> dict[bytes, bool]:
        """Of what is in a folder, each with whether it is a folder itself."""
        found: dict[bytes, bool] = {}
        lower = self.below(path)
        upper = self.upper(path)
        through = upper is None or self._shows_through(path, upper)
        if lower is not None and stat.S_ISDIR(lower.st_mode) and through:
            with os.scandir(os.path.join(os.fsencode(self._project), path)) as entries:
                found |= {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        if upper is None or not stat.S_ISDIR(upper.st_mode):
            return found
        with os.scandir(self._anchor.folder(path)) as entries:
            own = {os.fsencode(e.name): e.stat(follow_symlinks=False) for e in entries}
        kept = {name: is_folder for name, is_folder in found.items() if name not in own}
        there = {name: status for name, status in own.items() if not is_whiteout(status)}
        return kept | {name: stat.S_ISDIR(status.st_mode) for name, status in there.items()}

    def copy_up(self, path: bytes) -> None:
        """A file, a link, or a folder with all that is in it. Raises OSError."""
        lower = self.below(path)
        upper = self.upper(path)
        if upper is not None and not stat.S_ISDIR(upper.st_mode):
            return
        if lower is not None and upper is None:
            self.make_parents(path)
            self._copy_one(path, lower)
        is_folder = upper is not None or (lower is not None and stat.S_ISDIR(lower.st_mode))
        if is_folder and lower is not None:
            for name in self.names(path):
                self.copy_up(path + b"/" + name)

    def make_parents(self, path: bytes) -> None:
        """The folders above, in the upper part. Raises OSError."""
        parts = path.split(b"/")
        for end in range(1, len(parts)):
            self._make_folder(b"/".join(parts[:end]))

    def make_room(self, path: bytes) -> None:
        """So that a file can be written at `path`: with the mode that the one below has."""
        self.make_parents(path)
        upper, lower = self.upper(path), self.below(path)
        folder, name = self._anchor.place(path)
        if upper is not None and is_whiteout(upper):
            os.unlink(name, dir_fd=folder)
        elif upper is None and lower is not None and stat.S_ISREG(lower.st_mode):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with opened(name, flags, 0o600, dir_fd=folder) as file:
                os.fchmod(file, stat.S_IMODE(lower.st_mode))
        elif upper is None and lower is not None:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))

    def cover(self, path: bytes) -> None:
        """Nothing is at `path` in the upper part: from now on nothing shows there either."""
        if self.below(path) is not None:
            self.make_parents(path)
            folder, name = self._anchor.place(path)
            make_whiteout(name, dir_fd=folder)

    def uncover(self, path: bytes) -> None:
        """Something is about to be moved to `path`."""
        self.make_parents(path)
        upper = self.upper(path)
        if upper is not None and is_whiteout(upper):
            folder, name = self._anchor.place(path)
            os.unlink(name, dir_fd=folder)

    def close_folder(self, path: bytes) -> None:
        """A folder that was moved to `path` does not let show what is below."""
        self._anchor.close_chain()
        upper = self.upper(path)
        if upper is not None and stat.S_ISDIR(upper.st_mode) and self.below(path) is not None:
            set_opaque(self._anchor.folder(path), wanted=True)

    def _shows_through(self, path: bytes, upper: os.stat_result) -> bool:
        return stat.S_ISDIR(upper.st_mode) and not is_opaque(self._anchor.folder(path))

    def _make_folder(self, path: bytes) -> None:
        upper = self.upper(path)
        if upper is not None and not is_whiteout(upper):
            return
        lower = self.below(path)
        folder, name = self._anchor.place(path)
        if upper is not None:
            os.unlink(name, dir_fd=folder)
        os.mkdir(name, 0o777, dir_fd=folder)
        if upper is not None:
            set_opaque(self._anchor.folder(path), wanted=True)
        elif lower is not None and stat.S_ISDIR(lower.st_mode):
            os.fchmod(self._anchor.folder(path), stat.S_IMODE(lower.st_mode) | 0o300)

    def _copy_one(self, path: bytes, lower: os.stat_result) -> None:
        source = os.path.join(os.fsencode(self._project), os.path.dirname(path))
        folder, name = self._anchor.place(path)
        if stat.S_ISDIR(lower.st_mode):
            os.mkdir(name, 0o700, dir_fd=folder)
            dress(self._anchor.folder(path), lower)
            return
        with opened(source, FOLDER_FLAGS) as one:
            copy_one(one, name, folder, name, synced=False)
