"""Branches of the user's repository: a name for a new one, and who stands on one."""

import os

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.pins import value_of
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import change_ref


def new_branch(git: Git, name: str, commit: str) -> str:
    ref = f"refs/heads/{name}"
    invalid = name.startswith("-") or name == "HEAD" or not git.succeeds("check-ref-format", ref)
    if invalid:
        raise ApplyRefusedError(f"{name!r} is not a valid branch name", "choose another --branch")
    if value_of(git, ref) is not None:
        raise ApplyRefusedError(
            f"there is already a branch {name} in {git.directory}", "choose another --branch"
        )
    _refuse_unborn(git, ref, name)
    # A rehearsal: another branch may be in the way as a folder or a file of that name.
    steps = f"start\ncreate {ref} {commit}\nprepare\nabort\n"
    try:
        change_ref(git, ref, commit, "--stdin", told=os.fsencode(steps))
    except GitError as error:
        raise ApplyRefusedError(
            f"the branch {name} cannot be made: {error.stderr}", "choose another --branch"
        ) from error
    return ref


def checked_out_at(git: Git, ref: str) -> str | None:
    """The working folder that stands on a branch, whether that has a commit or not."""
    listed = git.run("worktree", "list", "--porcelain", "-z").stdout.split(b"\0\0")
    for worktree in listed:
        lines = worktree.split(b"\0")
        if b"branch " + os.fsencode(ref) in lines:
            return os.fsdecode(lines[0].removeprefix(b"worktree "))
    return None


def _refuse_unborn(git: Git, ref: str, name: str) -> None:
    """A branch without a commit is no reference yet, and still somebody's."""
    place = checked_out_at(git, ref)
    if place is not None:
        raise ApplyRefusedError(
            f"the worktree {place} is on the branch {name}, which has no commit yet",
            "choose another --branch",
        )
