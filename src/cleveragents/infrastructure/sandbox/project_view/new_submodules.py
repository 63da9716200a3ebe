"""Submodules that a step has added while its sandbox stood at the project's path.

git writes down where their files are from where it saw them. Once the step is over, both notes,
that in the submodule and that in its repository, are made to hold where the sandbox really is, as
those of all other submodules do; from then on the sandbox stays there (ADR 0084).
"""

import os

from cleveragents.infrastructure.files.durable_files import put_file, read_file
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder
from cleveragents.infrastructure.sandbox.git.submodules.checked_out import (
    modules_in,
    with_worktree,
    worktree_in,
)


def has_modules(sandbox: str) -> bool:
    return next(modules_in(f"{GitFolder(sandbox).path}/modules"), None) is not None


def settle(sandbox: str, home: str) -> None:
    """For those whose files are said to be below `home`."""
    for module in modules_in(f"{GitFolder(sandbox).path}/modules"):
        config = read_file(module, "config")
        place = worktree_in(config or b"")
        if config is None or place is None:
            continue
        seen = os.path.normpath(os.path.join(module, place))
        if not seen.startswith(f"{home}/"):
            continue
        files = f"{sandbox}{seen.removeprefix(home)}"
        put_file(module, "config", with_worktree(config, os.path.relpath(files, module)))
        pointer = read_file(files, ".git") if _is_folder(sandbox, files) else None
        if pointer is not None and pointer.startswith(b"gitdir: "):
            put_file(
                files, ".git", b"gitdir: " + os.fsencode(os.path.relpath(module, files)) + b"\n"
            )


def _is_folder(sandbox: str, files: str) -> bool:
    """No part of the way there is a link."""
    return os.path.realpath(files) == os.path.join(
        os.path.realpath(sandbox), os.path.relpath(files, sandbox)
    ) and os.path.isdir(files)
