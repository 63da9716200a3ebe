"""Owns the tools that read and write single files of a sandbox."""

import errno
import os
import re
import shutil
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.tools.confinement import Place, place, resolve_folder

Arguments = Mapping[str, Any]
_MOST_MATCHES = 1000


def read(root: str, arguments: Arguments) -> ToolResult:
    with _reporting(arguments["path"]), place(root, arguments["path"]) as where:
        data = _read(where)
    return ToolResult(output=data.decode("utf-8", "backslashreplace"), values={"size": len(data)})


def write(root: str, arguments: Arguments) -> ToolResult:
    data = arguments["content"].encode()
    with (
        _reporting(arguments["path"]),
        place(root, arguments["path"], make_parents=True) as where,
    ):
        _write(where, data)
    return ToolResult(output=f"wrote {len(data)} bytes to {arguments['path']}")


def edit(root: str, arguments: Arguments) -> ToolResult:
    old, new = arguments["old"].encode(), arguments["new"].encode()
    with _reporting(arguments["path"]), place(root, arguments["path"]) as where:
        data = _read(where)
        found = data.count(old) if old else 0
        if found == 0:
            raise _no(arguments, "the text in `old` is not in it")
        if found > 1 and not arguments.get("all", False):
            raise _no(arguments, f"the text in `old` is in it {found} times; add `all: true`")
        _write(where, data.replace(old, new))
    return ToolResult(output=f"replaced {found} in {arguments['path']}", values={"count": found})


def delete(root: str, arguments: Arguments) -> ToolResult:
    with _reporting(arguments["path"]), place(root, arguments["path"]) as where:
        mode = os.stat(where.name, dir_fd=where.folder, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(mode):
            os.unlink(where.name, dir_fd=where.folder)
        elif arguments.get("recursive", False):
            shutil.rmtree(where.name, dir_fd=where.folder)
        else:
            _remove_empty(where, arguments)
    return ToolResult(output=f"deleted {arguments['path']}")


def move(root: str, arguments: Arguments) -> ToolResult:
    path, target = arguments["path"], arguments["to"]
    with (
        _reporting(path),
        place(root, path) as source,
        place(root, target, make_parents=True) as goal,
    ):
        if not arguments.get("overwrite", False) and _exists(goal):
            raise _no(arguments, f"{target} exists already; add `overwrite: true`")
        os.rename(source.name, goal.name, src_dir_fd=source.folder, dst_dir_fd=goal.folder)
    return ToolResult(output=f"moved {path} to {target}")


def list_files(root: str, arguments: Arguments) -> ToolResult:
    start = arguments.get("path", ".")
    with _reporting(start):
        deep = arguments.get("recursive", False)
        names = sorted(_walk(root, start)) if deep else _listing(root, start)
    return ToolResult(output="\n".join(map(_shown, names)), values={"count": len(names)})


def search(root: str, arguments: Arguments) -> ToolResult:
    try:
        pattern = re.compile(arguments["pattern"])
    except re.error as error:
        raise ToolError(
            f"file.search: {arguments['pattern']!r} is not a regular expression: {error}",
            "correct `pattern`",
        ) from error
    start, lines = arguments.get("path", "."), list[str]()
    with _reporting(start):
        for name in sorted(_walk(root, start)):
            lines.extend(_matches(root, name, pattern))
            if len(lines) >= _MOST_MATCHES:
                lines = [*lines[:_MOST_MATCHES], f"… only the first {_MOST_MATCHES} are shown"]
                break
    return ToolResult(output="\n".join(lines), values={"count": len(lines)})


FILE_TOOLS: Mapping[str, Callable[[str, Arguments], ToolResult]] = {
    "file.read": read,
    "file.write": write,
    "file.edit": edit,
    "file.delete": delete,
    "file.move": move,
    "file.list": list_files,
    "file.search": search,
}


@contextmanager
def _reporting(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(
                f"{path}: it is a link, and links are not followed out of a file's own place",
                "name the file that the link points to",
            ) from error
        raise ToolError(f"{path}: {error.strerror or error}", "check the path") from error


def _no(arguments: Arguments, problem: str) -> ToolError:
    return ToolError(f"{arguments['path']}: {problem}", "correct the step and resume the plan")


def _read(where: Place) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(where.name, flags, dir_fd=where.folder)
    with os.fdopen(descriptor, "rb") as file:
        _refuse_special(descriptor, where)
        return file.read()


def _write(where: Place, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(where.name, flags, 0o666, dir_fd=where.folder)
    with os.fdopen(descriptor, "wb") as file:
        _refuse_special(descriptor, where)
        file.truncate()
        file.write(data)


def _refuse_special(descriptor: int, where: Place) -> None:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise ToolError(f"{where.relative}: it is not a regular file", "check the path")


def _remove_empty(where: Place, arguments: Arguments) -> None:
    try:
        os.rmdir(where.name, dir_fd=where.folder)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        raise _no(arguments, "the folder is not empty; add `recursive: true`") from error


def _exists(where: Place) -> bool:
    try:
        os.stat(where.name, dir_fd=where.folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _listing(root: str, start: str) -> list[str]:
    base = resolve_folder(root, start)
    entries = sorted(os.scandir(base), key=lambda entry: entry.name)
    return [
        entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
        for entry in entries
        if not (entry.name == ".git" and os.path.samefile(base, root))
    ]


def _walk(root: str, start: str) -> Generator[str]:
    base, top = resolve_folder(root, start), os.path.realpath(root)
    if os.path.isfile(base):
        yield os.path.relpath(base, top)
        return
    for folder, folders, files in os.walk(base, onerror=_raise):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            relative = os.path.relpath(os.path.join(folder, name), top)
            if relative != ".git":
                yield relative


def _shown(name: str) -> str:
    """A name with bytes that are not UTF-8 escaped, so that it can be stored and printed."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _raise(error: OSError) -> None:
    raise error


def _matches(root: str, name: str, pattern: re.Pattern[str]) -> Generator[str]:
    path = os.path.join(root, name)
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    with open(path, "rb") as file:
        if b"\0" in file.read(8192):
            return
        file.seek(0)
        for number, line in enumerate(file, start=1):
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if pattern.search(text):
                yield f"{_shown(name)}:{number}:{text}"
