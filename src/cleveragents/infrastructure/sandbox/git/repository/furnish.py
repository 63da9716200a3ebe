"""What a new repository in a sandbox is given of the user's: settings, references, ends.

Nothing that is made here is synced: until the sandbox is recorded as made, it is made again
after a crash.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from cleveragents.domain.errors import SandboxError
from cleveragents.infrastructure.files.durable_files import put_file
from cleveragents.infrastructure.sandbox.git.command import (
    Git,
    GitError,
    hooks_off,
    start_hookless,
)
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.sandbox.git.repository.git_dir import GitFolder

# Plumbing that writes an index of ours must leave no part of it in the user's repository.
_WHOLE_INDEX = ("-c", "core.splitIndex=false", "-c", "index.sparse=false")


def furnish(
    folder: GitFolder, project: Git, common: str, further: Mapping[str, str]
) -> GitSettings:
    """Settings, with `further` ones, attributes, excludes and sparse patterns of the repository
    `project`, and where the history of a shallow clone ends; `common` is its folder."""
    settings = GitSettings.read(project)
    put(folder, "config", settings.config_file(further))
    own = _own_folder(project, common)
    for place, name in (
        (common, "shallow"),
        (common, "info/attributes"),
        (common, "info/exclude"),
        (own, "info/sparse-checkout"),
    ):
        source = os.path.join(place, name)
        if os.path.isfile(source):
            put(folder, name, Path(source).read_bytes())
    return settings


def _own_folder(project: Git, common: str) -> str:
    """What a checkout has to itself; that of a linked worktree is not the folder of all others."""
    if os.path.isdir(os.path.join(project.directory, ".git")) or project.directory == common:
        return common
    return project.text("rev-parse", "--absolute-git-dir")


def put(folder: GitFolder, name: str, data: bytes) -> None:
    put_file(folder.path, name, data, synced=False)


def check_out(git: Git, commit: str, project: str, settings: GitSettings) -> None:
    """Fill the empty folder that `git` looks at, and in which `settings` hold. No hook runs, for
    all there could be are among them. Raises SandboxError."""
    git = git.with_env(hooks_off(settings.values, git.env)).started_by(start_hookless)
    try:
        git.run(*_WHOLE_INDEX, "read-tree", "-m", "-u", commit)
    except GitError as error:
        if not settings.is_partial():
            raise
        raise SandboxError(
            f"{project} is a partial clone, and files of {commit[:12]} are not in it: "
            f"{error.stderr}",
            f"fetch them: git -C {project} fetch --refetch --no-filter",
        ) from error


def active(names: list[str]) -> Mapping[str, str]:
    """GitSettings without which git passes over submodules that are there."""
    return {f"submodule.{name}.active": "true" for name in names}
