"""Whether a checkout of the user's can take a result: nothing half done, nothing staged."""

from collections.abc import Collection
from pathlib import Path

from cleveragents.domain.errors import ApplyRefusedError
from cleveragents.domain.ids import PlanId
from cleveragents.infrastructure.sandbox.git.apply.user_index import UserIndex
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.trees import GitTrees, TreeChange

_IN_PROGRESS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "sequencer": "cherry-pick or revert",
    "BISECT_LOG": "bisect",
}


def refuse_unready(git: Git, trees: GitTrees, plan_id: PlanId) -> None:
    """Raises ApplyRefusedError."""
    git_dir = Path(git.text("rev-parse", "--absolute-git-dir"))
    going_on = [text for name, text in _IN_PROGRESS.items() if (git_dir / name).exists()]
    if going_on or git.run("ls-files", "--unmerged", "-z").stdout:
        what = going_on[0] if going_on else "merge"
        raise ApplyRefusedError(
            f"a {what} is in progress in {git.directory}",
            "finish or abort it first, or keep the result on a branch with --branch NAME",
        )
    UserIndex(git, trees, plan_id).refuse_if_locked()


def staged(
    git: Git, head: str, new: str, files: str, changes: Collection[TreeChange]
) -> set[bytes]:
    """Paths to be changed of which the user has staged something that would be lost: the index goes
    from `head` to `new`, and the files to `files`. What is staged already as it is to be stays.
    """
    found = {c.path for c in changes} & differing(git, "diff-index", "--cached", head)
    if found:
        found &= differing(git, "diff-index", "--cached", new)
    if found and files != new:  # of what only files change, the index keeps what it has
        moved = differing(git, "diff-tree", "-r", head, new)
        found &= moved | differing(git, "diff-index", "--cached", files)
    return found


def differing(git: Git, command: str, *args: str) -> set[bytes]:
    listed = git.run(command, "-z", "--name-only", "--no-renames", *args).stdout
    return set(listed.split(b"\0")[:-1])
