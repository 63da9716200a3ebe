"""What a folder holds, byte for byte, in a form that compares and prints well."""

import os
import stat
from pathlib import Path

Tree = dict[bytes, tuple[str, int, bytes]]
"""Path to (kind, permissions, content or link target)."""


def tree_of(root: Path) -> Tree:
    """Everything below `root` but its own top `.git`; links are not followed."""
    top = os.fsencode(root)
    found: Tree = {}
    for folder, folders, files in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name != b".git"]
        for name in (*folders, *files):
            path = folder + b"/" + name
            relative = os.path.relpath(path, top)
            if relative != b".git":
                found[relative] = facts(path)
    return found


def facts(path: bytes) -> tuple[str, int, bytes]:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return "link", 0, os.fsencode(Path(os.fsdecode(path)).readlink())
    if stat.S_ISDIR(mode):
        return "folder", stat.S_IMODE(mode), b""
    if stat.S_ISREG(mode):
        return "file", stat.S_IMODE(mode), Path(os.fsdecode(path)).read_bytes()
    return "special", stat.S_IMODE(mode), b""
