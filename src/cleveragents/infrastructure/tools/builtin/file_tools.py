"""The tools that read and write single files of a sandbox."""

import codecs
import errno
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from cleveragents.domain.decision import ToolResult
from cleveragents.domain.errors import ToolError
from cleveragents.infrastructure.tools.builtin.search_child import files_below
from cleveragents.infrastructure.tools.sandbox_paths import SandboxPath, place, resolve_folder

Arguments = Mapping[str, Any]
_MOST_EDITED = 256 << 20


def read(root: str, arguments: Arguments, most: int) -> ToolResult:
    with (
        reporting(arguments["path"]),
        place(root, arguments["path"]) as where,
        _opened(where) as file,
    ):
        size = os.fstat(file.fileno()).st_size
        data = file.read(most + 1)
    size = max(size, len(data))
    if len(data) <= most:
        text = data.decode("utf-8", "backslashreplace")
        return ToolResult(output=text, values={"size": size})
    return ToolResult(
        output=_beginning(data[:most], size), values={"size": size, "truncated": True}
    )


def write(root: str, arguments: Arguments) -> ToolResult:
    data = arguments["content"].encode()
    with (
        reporting(arguments["path"]),
        place(root, arguments["path"], make_parents=True) as where,
    ):
        _write(where, data)
    return ToolResult(output=f"wrote {len(data)} bytes to {arguments['path']}")


def edit(root: str, arguments: Arguments) -> ToolResult:
    old, new = arguments["old"].encode(), arguments["new"].encode()
    with reporting(arguments["path"]), place(root, arguments["path"]) as where:
        data = _to_edit(where)
        found = data.count(old) if old else 0
        if found == 0:
            raise _no(arguments, "the text in `old` is not in it")
        if found > 1 and not arguments.get("all", False):
            raise _no(arguments, f"the text in `old` is in it {found} times; add `all: true`")
        _write(where, data.replace(old, new))
    return ToolResult(output=f"replaced {found} in {arguments['path']}", values={"count": found})


def delete(root: str, arguments: Arguments) -> ToolResult:
    with reporting(arguments["path"]), place(root, arguments["path"]) as where:
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
        reporting(path),
        place(root, path) as source,
        place(root, target, make_parents=True) as goal,
    ):
        if not arguments.get("overwrite", False) and _exists(goal):
            raise _no(arguments, f"{target} exists already; add `overwrite: true`")
        os.rename(source.name, goal.name, src_dir_fd=source.folder, dst_dir_fd=goal.folder)
    return ToolResult(output=f"moved {path} to {target}")


def list_files(root: str, arguments: Arguments, most: int) -> ToolResult:
    start = arguments.get("path", ".")
    with reporting(start):
        deep = arguments.get("recursive", False)
        names = sorted(_walk(root, start)) if deep else _listing(root, start)
    return listed(names, most)


def listed(names: Sequence[str], most: int) -> ToolResult:
    data = "\n".join(map(_shown, names)).encode()
    if len(data) <= most:
        return ToolResult(output=data.decode(), values={"count": len(names)})
    values = {"count": len(names), "truncated": True}
    return ToolResult(output=_beginning(data[:most], len(data)), values=values)


_LOOKING: Mapping[str, Callable[[str, Arguments, int], ToolResult]] = {
    "file.read": read,
    "file.list": list_files,
}
_CHANGING: Mapping[str, Callable[[str, Arguments], ToolResult]] = {
    "file.write": write,
    "file.edit": edit,
    "file.delete": delete,
    "file.move": move,
}
FILE_TOOLS = frozenset((*_LOOKING, *_CHANGING))


def run(tool: str, root: str, arguments: Arguments, most: int) -> ToolResult:
    """`most` is how many bytes of output are kept."""
    if tool in _CHANGING:
        return _CHANGING[tool](root, arguments)
    return _LOOKING[tool](root, arguments, most)


@contextmanager
def reporting(path: str) -> Generator[None]:
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


@contextmanager
def _opened(where: SandboxPath) -> Generator[IO[bytes]]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(where.name, flags, dir_fd=where.folder)
    with os.fdopen(descriptor, "rb") as file:
        _refuse_special(descriptor, where)
        yield file


def _to_edit(where: SandboxPath) -> bytes:
    with _opened(where) as file:
        data = file.read(_MOST_EDITED + 1)
    if len(data) > _MOST_EDITED:
        raise ToolError(
            f"{where.relative}: it is larger than the {_MOST_EDITED} bytes that can be edited",
            "change it with a command, as `sed` does",
        )
    return data


def _beginning(data: bytes, size: int) -> str:
    """Of something too long: whole characters, and how much more there is."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return f"{decoder.decode(data)}\n[{size - len(data)} bytes left out]"


def _write(where: SandboxPath, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(where.name, flags, 0o666, dir_fd=where.folder)
    with os.fdopen(descriptor, "wb") as file:
        _refuse_special(descriptor, where)
        file.truncate()
        file.write(data)


def _refuse_special(descriptor: int, where: SandboxPath) -> None:
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        raise ToolError(f"{where.relative}: it is not a regular file", "check the path")


def _remove_empty(where: SandboxPath, arguments: Arguments) -> None:
    try:
        os.rmdir(where.name, dir_fd=where.folder)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        raise _no(arguments, "the folder is not empty; add `recursive: true`") from error


def _exists(where: SandboxPath) -> bool:
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


def _walk(root: str, start: str) -> Iterator[str]:
    return files_below(os.path.realpath(root), resolve_folder(root, start))


def _shown(name: str) -> str:
    """A name with bytes that are not UTF-8 escaped, so that it can be stored and printed."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
