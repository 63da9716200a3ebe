"""Owns preparing an apply: the merge of a sandbox into the user's checkout, computed and checked.

Nothing of the user's changes here: objects are added, and one reference of ours that keeps them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cleveragents.domain.applying import ApplyOptions, PreparedApply
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.sandbox import PlanResource
from cleveragents.infrastructure.sandbox.git import Git, GitError
from cleveragents.infrastructure.sandbox.git_bring import Bringing
from cleveragents.infrastructure.sandbox.git_carry_out import GitCarryOut
from cleveragents.infrastructure.sandbox.git_checkout import left_behind
from cleveragents.infrastructure.sandbox.git_diff import diff_of_trees, joined
from cleveragents.infrastructure.sandbox.git_files import FileUpdate
from cleveragents.infrastructure.sandbox.git_merge import merged_tree
from cleveragents.infrastructure.sandbox.git_ready import differing, refuse_unready, staged
from cleveragents.infrastructure.sandbox.git_refs import Pins, pin, value_of
from cleveragents.infrastructure.sandbox.git_submodule_apply import SubmoduleApply
from cleveragents.infrastructure.sandbox.git_submodule_look import look
from cleveragents.infrastructure.sandbox.git_submodule_new import clear_workshop
from cleveragents.infrastructure.sandbox.git_submodule_steps import NOTES, diffs_of, users_submodule
from cleveragents.infrastructure.sandbox.git_switch import Means
from cleveragents.infrastructure.sandbox.git_trees import (
    GITLINK,
    FolderTree,
    TreeChange,
    Trees,
    own_commit,
    text_of,
    tree_changes,
)
from cleveragents.infrastructure.sandbox.git_views import GitViews, Held
from cleveragents.infrastructure.sandbox.strayed import strayed_notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Merge:
    """`ours` is a commit: HEAD, or one of ours that holds the working tree as it is."""

    head: str
    ours: str
    result: str
    changes: tuple[TreeChange, ...]


class GitApply:
    def __init__(self, scratch_dir: str, pins: Pins, views: GitViews) -> None:
        self._means = Means(trees=Trees(scratch_dir), views=views)
        self._pins = pins

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        git = _project(resource, options)
        with self._means.views.of_files(resource) as held:
            folder = held.trees.of_sandbox(held.git, resource.base, resource.cut_out)
            looked = look(held.git, held.trees, resource, folder)
            over = Bringing(views=self._means.views, held=held, resource=resource)
            # First: what the project's commit is to name has to be there.
            submodules = SubmoduleApply(self._means, over, options).prepare(looked)
            try:
                merge = self._merge(git, held, resource, looked.folder, options)
                _refuse_removal(resource, options, merge)
                _bring(git, over, merge)
                token = self._token(git, held, resource, options, merge)
            except BaseException:
                clear_workshop(resource)
                raise
            inside = diffs_of(resource, submodules.steps)
            diffs = (diff_of_trees(held.git, merge.ours, merge.result), *inside)
            notes = [*submodules.notes, *_left_folders(resource, options, merge)]
            notes += strayed_notes(resource, map(text_of, folder.strayed))
            told = {NOTES: notes} if notes else {}
            return PreparedApply(
                resource_id=resource.resource_id,
                token={**token, **submodules.token, **told},
                diff=joined(diffs, left_behind(held.git, held.trees, resource, looked), notes),
            )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        return self._carrying_out(resource, prepared).run()

    def take_back(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        return self._carrying_out(resource, prepared).take_back()

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        if Path(resource.location).is_dir():  # else what was kept in it went with it
            self._carrying_out(resource, prepared).settle()

    def _carrying_out(self, resource: PlanResource, prepared: PreparedApply) -> GitCarryOut:
        return GitCarryOut(Git(resource.location), self._means, resource, prepared.token)

    def _merge(
        self,
        git: Git,
        held: Held,
        resource: PlanResource,
        folder: FolderTree,
        options: ApplyOptions,
    ) -> _Merge:
        head = value_of(git, "HEAD")
        if head is None:
            raise ApplyRefusedError(
                f"{git.directory} has no commit to apply to", f"git -C {git.directory} status"
            )
        ours = head
        if not options.commit:
            tree = self._means.trees.of_checkout(git).tree
            ours = own_commit(git, tree, "working tree", head)
        result = merged_tree(held, resource, ours, folder.tree)
        changes = tree_changes(held.git, ours, result)
        return _Merge(head=head, ours=ours, result=result, changes=changes)

    def _token(
        self, git: Git, held: Held, resource: PlanResource, options: ApplyOptions, merge: _Merge
    ) -> dict[str, str]:
        if not merge.changes:
            return {"kind": "nothing", "head": merge.head}
        if options.branch is not None:
            commit = _user_commit(git, merge, options.message)
            ref = _new_branch(git, options.branch, commit)
            token = {"kind": "branch", "head": merge.head, "ref": ref, "commit": commit}
        elif options.commit:
            refuse_unready(git, self._means.trees, resource.plan_id)
            ref = _current_branch(git, resource)
            in_index = staged(git, merge.head, merge.changes)
            _refuse_overlaps(git, held, resource, merge, in_index)
            commit = _user_commit(git, merge, options.message)
            token = {"kind": "commit", "head": merge.head, "ref": ref, "commit": commit}
        else:
            refuse_unready(git, self._means.trees, resource.plan_id)
            dirty = _uncommitted(git, resource, merge)
            _refuse_overlaps(git, held, resource, merge, dirty)
            commit = own_commit(git, merge.result, "applied without a commit", merge.ours)
            token = {"kind": "tree", "head": merge.head, "commit": commit}
        pin(git, self._pins.result(resource), commit)
        return token


def _bring(git: Git, over: Bringing, merge: _Merge) -> None:
    """The result into the user's repository; until here nothing of it is there."""
    resource, inside = over.resource, over.held.git
    ends = (merge.ours, resource.base)
    # The trees by themselves too: of a commit alone, git leaves out what its history leads to.
    known = [*ends, *(f"{end}^{{tree}}" for end in ends)]
    try:
        pack = over.pack(inside, merge.result, known)
        over.unpack(pack, git, [merge.result, "--not", *known], strict=True)
    except GitError as error:
        raise ApplyRefusedError(
            f"the result cannot be brought into {git.directory}: {error.stderr}",
            f"agents plan diff {resource.plan_id}",
        ) from error
    blobs = [change.new_oid.decode() for change in merge.changes if change.is_file]
    over.contents(inside, blobs, git)


def _refuse_overlaps(
    git: Git, held: Held, resource: PlanResource, merge: _Merge, dirty: set[bytes]
) -> None:
    files = FileUpdate(git, merge.ours, merge.result)
    overlaps = sorted({*files.overlaps(held.over(git)), *dirty})
    if overlaps:
        raise ApplyConflictError(
            resource.plan_id,
            resource.name,
            [text_of(path) for path in overlaps],
            "you have uncommitted work in files that the plan changes",
        )


def _refuse_removal(resource: PlanResource, options: ApplyOptions, merge: _Merge) -> None:
    """Of a submodule that is checked out: what says that it is gone is the index, or a commit."""
    removed = _removed(resource, merge)
    if removed and not options.commit:
        raise ApplyRefusedError(
            f"the plan removes the submodule {removed[0]}, which only a commit can do",
            f"agents plan apply {resource.plan_id}, or with --branch NAME",
        )


def _left_folders(resource: PlanResource, options: ApplyOptions, merge: _Merge) -> list[str]:
    if options.branch is not None:
        return []
    return [
        f"the submodule {path} is removed; its folder stays, with all that is in it"
        for path in _removed(resource, merge)
    ]


def _removed(resource: PlanResource, merge: _Merge) -> list[str]:
    """The submodules to be removed that the user has checked out."""
    gone = [c for c in merge.changes if c.old_mode == GITLINK and c.new_mode != GITLINK]
    return [text_of(c.path) for c in gone if users_submodule(resource, c.name) is not None]


def _project(resource: PlanResource, options: ApplyOptions) -> Git:
    if options.branch is not None and not options.commit:
        raise ApplyRefusedError(
            "a branch holds commits, so --branch and --no-commit exclude each other",
            f"agents plan apply {resource.plan_id} --branch {options.branch}",
        )
    if not Path(resource.location).is_dir():
        raise ApplyRefusedError(
            f"the project {resource.location} is not there any more",
            "put the folder back if it was moved",
        )
    return Git(resource.location)


def _uncommitted(git: Git, resource: PlanResource, merge: _Merge) -> set[bytes]:
    """Paths to be changed that hold uncommitted work which the plan does not know about."""
    dirty = differing(git, "diff-tree", "-r", merge.head, merge.ours)
    dirty |= differing(git, "diff-index", "--cached", merge.head)
    if resource.details.get("included_uncommitted"):
        dirty &= differing(git, "diff-tree", "-r", resource.base, merge.ours)
    return _touched(merge) & dirty


def _touched(merge: _Merge) -> set[bytes]:
    return {change.path for change in merge.changes}


def _user_commit(git: Git, merge: _Merge, message: str) -> str:
    identity = _identity(git)
    made = git.run(
        "-c",
        "i18n.commitEncoding=UTF-8",
        "commit-tree",
        "-p",
        merge.head,
        merge.result,
        input=message.rstrip("\n").encode("utf-8", "replace") + b"\n",
        env=identity,
    )
    return made.stdout.decode().strip()


def _identity(git: Git) -> Mapping[str, str]:
    """What the user's shell says about author and committer; the rest is in their config."""
    prefixes = ("GIT_AUTHOR_", "GIT_COMMITTER_")
    env = {key: value for key, value in os.environ.items() if key.startswith(prefixes)}
    for variable in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        # useConfigOnly: a name guessed from the machine is not an identity.
        args = ("-c", "user.useConfigOnly=true", "var", variable)
        if git.run(*args, env=env, check=False).code != 0:
            raise ApplyRefusedError(
                f"git does not know who commits in {git.directory}",
                'git config --global user.name "Your Name" && '
                "git config --global user.email you@example.com, or apply with --no-commit",
            )
    return env


def _current_branch(git: Git, resource: PlanResource) -> str:
    found = git.run("symbolic-ref", "--quiet", "HEAD", check=False)
    if found.code != 0:
        raise ApplyRefusedError(
            f"HEAD is detached in {git.directory}: there is no branch to commit to",
            f"agents plan apply {resource.plan_id} --branch NAME",
        )
    return os.fsdecode(found.stdout.removesuffix(b"\n"))


def _new_branch(git: Git, name: str, commit: str) -> str:
    ref = f"refs/heads/{name}"
    invalid = name.startswith("-") or name == "HEAD" or not git.succeeds("check-ref-format", ref)
    if invalid:
        raise ApplyRefusedError(f"{name!r} is not a valid branch name", "choose another --branch")
    if value_of(git, ref) is not None:
        raise ApplyRefusedError(
            f"there is already a branch {name} in {git.directory}", "choose another --branch"
        )
    # A rehearsal: another branch may be in the way as a folder or a file of that name.
    steps = f"start\ncreate {ref} {commit}\nprepare\nabort\n"
    try:
        git.run("update-ref", "--stdin", input=os.fsencode(steps))
    except GitError as error:
        raise ApplyRefusedError(
            f"the branch {name} cannot be made: {error.stderr}", "choose another --branch"
        ) from error
    return ref
