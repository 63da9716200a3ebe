"""The difference between two trees as people see it, and the ignored files beside it."""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from msgspec.structs import replace

from cleveragents.domain.changes import ChangeKind, FileDiff, ResourceDiff
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import text_of

# Plumbing: nothing of the user's taste in diffs (colours, prefixes, tools) reaches it.
_DIFF = (
    "diff-tree",
    "-r",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=none",
)
_KINDS = {b"A": ChangeKind.ADDED, b"D": ChangeKind.DELETED}


def diff_of_trees(git: Git, old: str, new: str, *, below: str = "") -> ResourceDiff:
    """`below` is where the trees have their place in the project."""
    top = f"{below}/" if below else ""
    places = (f"--src-prefix=a/{top}", f"--dst-prefix=b/{top}")
    patch = git.run(*_DIFF, *places, "--patch", old, new).stdout
    files = _files(git.run(*_DIFF, "-z", "--raw", "--numstat", old, new).stdout)
    shown = text_of(os.fsencode(top))
    return ResourceDiff(
        files=tuple(replace(file, path=shown + file.path) for file in files),
        patch=patch.decode("utf-8", "backslashreplace"),
    )


def joined(
    parts: Iterable[ResourceDiff],
    left_behind: Sequence[str] = (),
    notes: Sequence[str] = (),
    empty_folders: Sequence[str] = (),
) -> ResourceDiff:
    """The diffs of a project and of its submodules as one."""
    found = list(parts)
    return ResourceDiff(
        files=tuple(file for part in found for file in part.files),
        patch="".join(part.patch for part in found),
        left_behind=tuple(left_behind),
        empty_folders=tuple(empty_folders),
        notes=tuple(notes),
    )


def ignored_files(private: Git, include: Sequence[str]) -> tuple[str, ...]:
    """Ignored files of a sandbox, whose tree the private index holds, that were not brought along;
    whole folders as one entry."""
    brought = [PurePosixPath(path) for path in include]
    found = [path for path in _ignored(private, "--directory") if not _within(path, brought)]
    return tuple(text for path in found for text in _without_brought(private, path, brought))


def empty_folders(private: Git, cut_out: Collection[str] = ()) -> tuple[str, ...]:
    """The outermost folders of a sandbox, whose tree the private index holds, that hold no file:
    git has no words for them. In those that belong elsewhere, the sandboxes of others are seen."""
    # All files but ignored ones are in the tree: what git lists as a folder holds none of them.
    args = ("ls-files", "--others", "--directory", "--exclude-standard", "-z")
    listed = private.run(*args).stdout.split(b"\0")[:-1]
    top, others = os.fsencode(private.directory), {os.fsencode(path) for path in cut_out}
    own = (path for path in listed if path.rstrip(b"/") not in others)
    return tuple(text_of(path) for path in own if _holds_nothing(os.path.join(top, path)))


def _holds_nothing(folder: bytes) -> bool:
    if os.path.islink(folder.rstrip(b"/")) or not folder.endswith(b"/"):
        return False
    return not any(files for _, _, files in os.walk(folder))


def _without_brought(private: Git, path: bytes, brought: list[PurePosixPath]) -> list[str]:
    """A folder that holds something brought along is listed file by file, without that."""
    folder = _pure(path)
    if not any(item.is_relative_to(folder) for item in brought):
        return [text_of(path)]
    literal = private.with_env({"GIT_LITERAL_PATHSPECS": "1"})
    inside = _ignored(literal, "--", str(folder))
    return [text_of(item) for item in inside if not _within(item, brought)]


def _ignored(private: Git, *args: str) -> list[bytes]:
    listed = private.run(
        "ls-files", "--others", "--ignored", "--exclude-standard", "-z", *args
    ).stdout
    return listed.split(b"\0")[:-1]


def _within(path: bytes, brought: list[PurePosixPath]) -> bool:
    return any(_pure(path).is_relative_to(item) for item in brought)


def _pure(path: bytes) -> PurePosixPath:
    return PurePosixPath(path.decode("utf-8", "surrogateescape"))


def _files(raw: bytes) -> tuple[FileDiff, ...]:
    """Of `--raw --numstat -z`: first `:… STATUS NUL path`, then `added TAB deleted TAB path`."""
    kinds: dict[bytes, ChangeKind] = {}
    files: list[FileDiff] = []
    fields = iter(raw.split(b"\0")[:-1])
    for field in fields:
        if field.startswith(b":"):
            kinds[next(fields)] = _KINDS.get(field[-1:], ChangeKind.MODIFIED)
            continue
        added, deleted, path = field.split(b"\t", 2)
        files.append(
            FileDiff(
                path=text_of(path),
                kind=kinds[path],
                insertions=_count(added),
                deletions=_count(deleted),
            )
        )
    return tuple(files)


def _count(number: bytes) -> int | None:
    return None if number == b"-" else int(number)
