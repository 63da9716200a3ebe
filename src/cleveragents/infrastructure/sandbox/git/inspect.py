"""What is found out about a real repository before a plan is made on it."""

from pathlib import Path

from cleveragents.domain.action import ResourceSpec
from cleveragents.domain.errors import ResourceError
from cleveragents.domain.ids import PlanId
from cleveragents.domain.resource import OwnState, ResourceInspection
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.config import GitSettings
from cleveragents.infrastructure.sandbox.git.include import check_include
from cleveragents.infrastructure.sandbox.git.repository.own_place import CheckoutDetails, Submodule
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, pin, value_of
from cleveragents.infrastructure.sandbox.git.submodules.inspect import find_submodules
from cleveragents.infrastructure.sandbox.git.submodules.records import in_repository
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, own_commit, text_of
from cleveragents.infrastructure.sandbox.own_state import to_plain

_NAMES_SHOWN = 3
_PARTIAL = (
    "the repository is a partial clone: what it has not fetched of its history cannot be "
    "looked at in the sandbox"
)


def inspect_checkout(
    trees: GitTrees,
    pins: Pins,
    spec: ResourceSpec,
    plan_id: PlanId | None,
    *,
    include_uncommitted: bool,
) -> ResourceInspection:
    """Fix the commit that the plan starts from, and pin it; without a plan, only look.

    Raises ResourceError.
    """
    git = Git(_top_level(spec.location))
    head = _head(git)
    check_include(git.directory, spec.include)
    branch = git.run("symbolic-ref", "--quiet", "--short", "HEAD", check=False).stdout.decode()
    base, notices = head, list[str]()
    if include_uncommitted and plan_id is not None:
        base, notices = _with_uncommitted(trees, git, head, plan_id)
    elif dirty := _dirty(git):
        notices.append(_left_out(dirty))
    if not branch:
        notices.append("HEAD is detached: apply will need --branch NAME")
    if GitSettings.read(git).is_partial():
        notices.append(_PARTIAL)
    found = find_submodules(git, base)
    notices.extend(found.notices())
    if plan_id is not None:
        ref = pins.base(plan_id, spec.name)
        pin(git, ref, base)
        for module in found.usable:
            pin(in_repository(git.directory, module), ref, module.commit)
    return ResourceInspection(
        location=git.directory,
        base=base,
        notices=tuple(notices),
        submodules=tuple(module.path for module in found.usable),
        details=details_at(git, included_uncommitted=base != head, submodules=tuple(found.usable)),
    )


def details_at(
    git: Git, *, included_uncommitted: bool, submodules: tuple[Submodule, ...]
) -> OwnState:
    """With the folder of the repository, and what that has in common with itself after a move."""
    common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
    found = CheckoutDetails(
        git_dir=common,
        git_inode=Path(common).stat().st_ino,
        included_uncommitted=included_uncommitted,
        submodules=submodules,
    )
    return to_plain(found)


def _top_level(location: str) -> str:
    path = Path(location)
    _require_folder(path)
    git = Git(location)
    try:
        git_dir = git.text("rev-parse", "--absolute-git-dir")
        bare = git.text("rev-parse", "--is-bare-repository") == "true"
    except GitError as error:
        raise _not_a_repository(location, error) from error
    # First: git calls its own folder bare in some versions.
    if path.resolve().is_relative_to(git_dir) and Path(git_dir).name == ".git":
        raise ResourceError(
            f"{location} is inside a .git folder", f"use path {Path(git_dir).parent}"
        )
    if bare:
        raise ResourceError(
            f"{location} is a bare repository, it has no files to work on",
            f"git clone {location} work, and use path work",
        )
    return _require_top(path, git)


def _require_top(path: Path, git: Git) -> str:
    top = git.text("rev-parse", "--show-toplevel")
    if path.resolve() != Path(top).resolve():
        raise ResourceError(f"{path} is a sub-folder of the repository {top}", f"use path {top}")
    return top


def _require_folder(path: Path) -> None:
    try:
        if not path.is_dir():
            missing = not path.exists()
            problem = "does not exist" if missing else "is not a folder"
            raise ResourceError(
                f"{path} {problem}", "name the folder of a git repository as `path`"
            )
        next(path.iterdir(), None)
    except OSError as error:
        raise ResourceError(f"{path} cannot be read: {error.strerror}", f"ls -ld {path}") from error


def _not_a_repository(location: str, error: GitError) -> ResourceError:
    return ResourceError(
        f"{location} is not a git repository that can be used ({error.stderr})",
        f"make it one: cd {location} && git init && git add -A && git commit -m start",
    )


def _head(git: Git) -> str:
    head = value_of(git, "HEAD")
    if head is None:
        raise ResourceError(
            f"{git.directory} has no commit yet, so there is nothing to start from",
            f"make a first commit: cd {git.directory} && git add -A && git commit -m start",
        )
    return head


def _with_uncommitted(
    trees: GitTrees, git: Git, head: str, plan_id: PlanId
) -> tuple[str, list[str]]:
    folder = trees.of_checkout(git)
    notices = [
        f"{text_of(path)} is a repository of its own and is not part of this plan"
        for path in folder.nested
    ]
    if folder.tree == git.text("rev-parse", f"{head}^{{tree}}"):
        return head, notices
    message = f"uncommitted work taken along by plan {plan_id}"
    return own_commit(git, folder.tree, message, head), notices


def _dirty(git: Git) -> list[str]:
    """Files that `git add -A` and a commit would take."""
    listed = git.run(
        "status",
        "--porcelain=v1",
        "-z",
        "--untracked-files=all",
        "--no-renames",
        "--ignore-submodules=dirty",
    ).stdout
    return [text_of(line[3:]) for line in listed.split(b"\0")[:-1]]


def _left_out(dirty: list[str]) -> str:
    names = ", ".join(dirty[:_NAMES_SHOWN]) + (", …" if len(dirty) > _NAMES_SHOWN else "")
    one = len(dirty) == 1
    count = "1 file" if one else f"{len(dirty)} files"
    return (
        f"{count} with uncommitted work {'is' if one else 'are'} not part of this plan ({names}): "
        f"add --include-uncommitted to take {'it' if one else 'them'} along"
    )
