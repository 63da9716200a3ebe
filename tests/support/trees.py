"""What a folder holds, byte for byte, in a form that compares and prints well."""

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

Tree = dict[bytes, tuple[str, int, bytes]]
"""Path to (kind, permissions, content or link target)."""


def tree_of(root: Path) -> Tree:
    """Everything below `root` but its own top `.git`; links are not followed."""
    try:
        return _tree(root)
    except PermissionError:
        return _tree_by_force(root)


def _tree_by_force(root: Path) -> Tree:
    """What its owner closed to himself, read without a change by one whom no mode stops."""
    argv = ["unshare", "--user", "--map-root-user", sys.executable, "-I", __file__, str(root)]
    return pickle.loads(subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout)


def _complain(error: OSError) -> None:
    """What is closed is told; a folder that is not there holds nothing."""
    if isinstance(error, PermissionError):
        raise error


def _tree(root: Path) -> Tree:
    top = os.fsencode(root)
    found: Tree = {}
    for folder, folders, files in os.walk(top, onerror=_complain):
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


if __name__ == "__main__":
    pickle.dump(_tree(Path(sys.argv[1])), sys.stdout.buffer)
