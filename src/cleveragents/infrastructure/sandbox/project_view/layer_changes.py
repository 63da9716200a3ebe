"""What was changed in the layers of a sandbox, in a few words: an apply does not take it along."""

import os
import stat

from msgspec import Struct

from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.files.layers.known_layers import known_layers
from cleveragents.infrastructure.files.layers.overlay_marks import is_whiteout, opaque_bit


class LayerChange(Struct):
    """`written` files and links, `removed` names, and folders of which nothing shows any more."""

    written: int = 0
    removed: int = 0
    replaced: int = 0

    def __bool__(self) -> bool:
        return bool(self.written or self.removed or self.replaced)

    @property
    def in_words(self) -> str:
        told = ((self.written, "written"), (self.removed, "removed"), (self.replaced, "replaced"))
        return ", ".join(f"{count} {what}" for count, what in told if count)


def layer_changes(sandbox: str) -> dict[str, LayerChange]:
    """By layer, as people read its path; it takes as long as there are changes."""
    layers = known_layers(sandbox)
    return {shown(os.fsencode(path)): _change(os.path.join(sandbox, path)) for path in layers}


def without_untouched(sandbox: str, ignored: list[str]) -> list[str]:
    """Of what is ignored in a sandbox: layers only if they were changed, and with how much."""
    changes = layer_changes(sandbox)
    told: list[str] = []
    for path in ignored:
        change = changes.get(path.rstrip("/"))
        if change is None:
            told.append(path)
        elif change:
            told.append(f"{path} ({change.in_words})")
    return told


def _change(upper: str) -> LayerChange:
    found = LayerChange()
    if not os.path.lexists(upper):  # of what is missing at the top, `fwalk` tells by raising
        return found
    for _, folders, files, fd in os.fwalk(os.fsencode(upper), onerror=_nothing):
        found.replaced += sum(bool(opaque_bit(fd, name)) for name in folders)
        for name in files:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            if is_whiteout(status):
                found.removed += 1
            elif not stat.S_ISDIR(status.st_mode):
                found.written += 1
    return found


def _nothing(error: OSError) -> None:
    """A step may have removed it, or closed it to itself."""
    del error
