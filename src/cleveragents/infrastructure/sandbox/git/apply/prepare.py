"""Preparing an apply: the merge of a sandbox into the user's checkout, computed and checked.

Nothing of the user's changes here: objects are added, and one reference of ours that keeps them.
In which order: the sandbox as a tree; its submodules, as the project's commit is to name theirs;
the merge with what the project is now; the objects of the result; what is in the way of it; the
commit, a reference that keeps it, and the token that says all this to `carry_out.py`.
Why: git merges inside, over a step's bytes, so that only a result without conflicts comes over, as
objects named by their hashes. Who is refused has nothing in their repository but these.
What is not guaranteed: that the project stays so. Carrying out looks again, and refuses if not.
"""

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import ApplyOptions, PreparedApply
from cleveragents.domain.errors import ApplyConflictError, ApplyRefusedError
from cleveragents.domain.resource import OwnState, PlanResource
from cleveragents.infrastructure.files.installed.disk_usage import bytes_below
from cleveragents.infrastructure.sandbox.git.apply.branches import new_branch
from cleveragents.infrastructure.sandbox.git.apply.bring import Bringing
from cleveragents.infrastructure.sandbox.git.apply.carry_out import GitCarryOut
from cleveragents.infrastructure.sandbox.git.apply.conflicts import (
    refuse_lost_removals,
    with_what_helps,
)
from cleveragents.infrastructure.sandbox.git.apply.ignored import (
    IgnoredPreparing,
    IgnoredSteps,
    git_paths,
)
from cleveragents.infrastructure.sandbox.git.apply.readiness import (
    differing,
    refuse_unready,
    staged,
)
from cleveragents.infrastructure.sandbox.git.apply.switch import Means
from cleveragents.infrastructure.sandbox.git.apply.token import (
    ApplyWay,
    CheckoutToken,
    IgnoredToken,
    target_of,
)
from cleveragents.infrastructure.sandbox.git.apply.undo_folder import kept_places
from cleveragents.infrastructure.sandbox.git.apply.user_commit import unsigned_note, user_commit
from cleveragents.infrastructure.sandbox.git.apply.worktree_update import FileUpdate
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.diff import diff_of_trees, empty_folders, joined
from cleveragents.infrastructure.sandbox.git.merge import merged_tree
from cleveragents.infrastructure.sandbox.git.repository.own_place import details_of, first_index
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, pin, value_of
from cleveragents.infrastructure.sandbox.git.sandbox import left_behind
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import diffs_of, users_submodule
from cleveragents.infrastructure.sandbox.git.submodules.contents import Looked, look
from cleveragents.infrastructure.sandbox.git.submodules.new_repositories import clear_workshop
from cleveragents.infrastructure.sandbox.git.submodules.prepare import SubmoduleApply
from cleveragents.infrastructure.sandbox.git.taking_back.move import CheckoutMove
from cleveragents.infrastructure.sandbox.git.taking_back.prepare import MovePreparation
from cleveragents.infrastructure.sandbox.git.trees import (
    GITLINK,
    FolderTree,
    GitTrees,
    TreeChange,
    own_commit,
    text_of,
    tree_changes,
)
from cleveragents.infrastructure.sandbox.git.views import GitView, GitViews
from cleveragents.infrastructure.sandbox.own_state import read_back, to_plain
from cleveragents.infrastructure.sandbox.strayed import strayed_notes
from cleveragents.infrastructure.snapshots.tree.engine import TreeEngine


class _Merge(Struct, frozen=True, kw_only=True):
    """`ours` is a commit: HEAD, or one of ours that holds the working tree as it is. `apart`: there
    is no merge, and `head` is where the plan began."""

    head: str
    ours: str
    result: str
    changes: tuple[TreeChange, ...]
    apart: bool = False


class GitApply:
    def __init__(
        self, scratch_dir: str, pins: Pins, views: GitViews, snapshots: TreeEngine
    ) -> None:
        self._snapshots = snapshots
        self._means = Means(trees=GitTrees(scratch_dir), views=views)
        self._pins = pins

    def prepare_apply(self, resource: PlanResource, options: ApplyOptions) -> PreparedApply:
        git = _project(resource, options)
        with self._means.views.of_files(resource) as held:
            folder = held.trees.of_sandbox(
                held.git, resource.base, resource.cut_out, first_index(resource)
            )
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
            ignored = self._ignored(held.git, resource, looked, options)
            with held.trees.index_of(held.git, looked.folder.tree) as private:
                rest = left_behind(private, held.trees, resource, looked, ignored)
                empty = empty_folders(private, resource.cut_out)
            inside = diffs_of(resource, submodules.steps)
            diffs = (diff_of_trees(held.git, merge.ours, merge.result), *inside)
            notes = [*submodules.notes, *_left_folders(resource, options, merge)]
            notes += strayed_notes(resource, map(text_of, folder.strayed))
            notes += _notes_on_commit(options, merge, token)
            token = replace(
                token,
                submodules=tuple(submodules.steps),
                new_submodules=tuple(submodules.new),
                notes=tuple(notes),
                ignored=ignored,
            )
            diff = joined(diffs, rest, notes, empty)
            return PreparedApply(
                resource_id=resource.resource_id,
                token=to_plain(token),
                diff=replace(diff, brought=ignored.told if ignored else (), can_bring=bool(rest)),
                snapshots=(ignored.result,) if ignored else (),
                target=target_of(token),
                ignored=ignored.asked if ignored else (),
            )

    def carry_out(self, resource: PlanResource, prepared: PreparedApply) -> str:
        return self._carrying_out(resource, prepared).run()

    def revert(self, resource: PlanResource, prepared: PreparedApply) -> tuple[str, ...]:
        return self._carrying_out(resource, prepared).revert()

    def finish(self, resource: PlanResource, prepared: PreparedApply) -> None:
        if Path(resource.location).is_dir():  # else what was kept in it went with it
            self._carrying_out(resource, prepared).finish()

    def way_of(self, resource: PlanResource, prepared: PreparedApply) -> OwnState | None:
        """Of ignored folders nothing is kept that would be needed."""
        token = read_back(resource, prepared.token, CheckoutToken)
        return None if token.ignored else to_plain(replace(token, notes=()))

    def settle(self, resource: PlanResource, prepared: PreparedApply) -> None:
        """What was kept of an apply stays in the repository."""
        work = self._carrying_out(resource, prepared)
        if isinstance(work, CheckoutMove):
            work.settle()

    def kept_bytes(self, resource: PlanResource) -> int:
        return sum(map(bytes_below, kept_places(resource)))

    def withdraw(self, resource: PlanResource, prepared: PreparedApply) -> None:
        work = self._carrying_out(resource, prepared)
        if isinstance(work, CheckoutMove):
            work.withdraw()

    def prepare_move(self, resource: PlanResource, way: OwnState, side: ApplySide) -> PreparedApply:
        last = read_back(resource, way, CheckoutToken)
        return MovePreparation(self._means, self._pins, resource, last, side).prepared()

    def _carrying_out(
        self, resource: PlanResource, prepared: PreparedApply
    ) -> GitCarryOut | CheckoutMove:
        token = read_back(resource, prepared.token, CheckoutToken)
        git = Git(resource.location)
        if token.side is not None:
            return CheckoutMove(git, self._means, resource, token)
        ignored = IgnoredSteps(git, resource, self._snapshots, token.ignored)
        return GitCarryOut(git, self._means, resource, token, ignored)

    def _ignored(
        self, git: Git, resource: PlanResource, looked: Looked, options: ApplyOptions
    ) -> IgnoredToken | None:
        if not options.with_ignored:
            return None
        nested = (*looked.folder.nested, *looked.folder.strayed)
        paths = git_paths(git, resource, looked.folder.tree, nested)
        preparing = IgnoredPreparing(resource, self._snapshots, paths)
        return preparing.prepare(options.with_ignored)

    def _merge(
        self,
        git: Git,
        held: GitView,
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
        try:
            result = merged_tree(held, resource, ours, folder.tree, options.side)
        except ApplyConflictError as error:
            if options.branch is not None and not details_of(resource).included_uncommitted:
                return _at_its_start(held, resource, folder)
            raise with_what_helps(git, resource, head, ours, error) from error
        if options.commit and options.branch is None:
            refuse_lost_removals(git, held, resource, folder, head)
        changes = tree_changes(held.git, ours, result)
        return _Merge(head=head, ours=ours, result=result, changes=changes)

    def _token(
        self, git: Git, held: GitView, resource: PlanResource, options: ApplyOptions, merge: _Merge
    ) -> CheckoutToken:
        head = merge.head
        if not merge.changes:
            return CheckoutToken(way=ApplyWay.NOTHING, head=head)
        if options.branch is not None:
            ref = new_branch(git, options.branch, head)
            token = _committed(git, ApplyWay.BRANCH, ref, merge, options)
        elif options.commit:
            refuse_unready(git, self._means.trees, resource.plan_id)
            ref = _current_branch(git, resource)
            in_index = staged(git, head, merge.result, merge.result, merge.changes)
            _refuse_overlaps(git, held, resource, merge, in_index)
            token = _committed(git, ApplyWay.COMMIT, ref, merge, options)
        else:
            refuse_unready(git, self._means.trees, resource.plan_id)
            dirty = _uncommitted(git, resource, merge)
            _refuse_overlaps(git, held, resource, merge, dirty)
            commit = own_commit(git, merge.result, "applied without a commit", merge.ours)
            token = CheckoutToken(way=ApplyWay.TREE, head=head, commit=commit)
        pin(git, self._pins.result(resource), token.commit)
        return token


def _at_its_start(held: GitView, resource: PlanResource, folder: FolderTree) -> _Merge:
    """On a branch of its own nothing has to be merged: git and its user can do that later."""
    changes = tree_changes(held.git, resource.base, folder.tree)
    base = resource.base
    return _Merge(head=base, ours=base, result=folder.tree, changes=changes, apart=True)


def _notes_on_commit(options: ApplyOptions, merge: _Merge, token: CheckoutToken) -> list[str]:
    notes: list[str] = []
    if merge.apart and merge.changes:
        notes.append(
            f"{options.branch} begins at {merge.head[:12]}, where the plan did, as commits since"
            f" then change the same lines: git merge {options.branch}"
        )
    if token.unsigned:
        notes.append(unsigned_note(token.unsigned, options.branch))
    return notes


def _committed(
    git: Git, way: ApplyWay, ref: str, merge: _Merge, options: ApplyOptions
) -> CheckoutToken:
    made = user_commit(git, merge.head, merge.result, options.message)
    return CheckoutToken(
        way=way, head=merge.head, ref=ref, commit=made.commit, unsigned=made.unsigned or ""
    )


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
    git: Git, held: GitView, resource: PlanResource, merge: _Merge, dirty: set[bytes]
) -> None:
    files = FileUpdate(git, merge.ours, merge.result)
    overlaps = sorted({*files.overlaps(held.over(git)), *dirty})
    _refuse_in_submodules(resource, merge, overlaps)
    if overlaps:
        raise ApplyConflictError(
            resource.plan_id,
            resource.name,
            [text_of(path) for path in overlaps],
            "you have uncommitted work in files that the plan changes",
        )


def _refuse_in_submodules(resource: PlanResource, merge: _Merge, overlaps: list[bytes]) -> None:
    """That folder is in the way, and what is in it is committed there."""
    for path in _removed(resource, merge):
        inside = [text_of(one) for one in overlaps]
        found = [one for one in inside if f"{one}/".startswith(f"{path}/")]
        if found:
            place = resource.location
            raise ApplyConflictError(
                resource.plan_id,
                resource.name,
                found,
                f"the submodule {path} is checked out there, and the plan puts files in its place",
                f"take it out of the way, git -C {place} submodule deinit {path}, and apply again;"
                " or keep the result on a branch with --branch NAME",
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
    if details_of(resource).included_uncommitted:
        dirty &= differing(git, "diff-tree", "-r", resource.base, merge.ours)
    return _touched(merge) & dirty


def _touched(merge: _Merge) -> set[bytes]:
    return {change.path for change in merge.changes}


def _current_branch(git: Git, resource: PlanResource) -> str:
    found = git.run("symbolic-ref", "--quiet", "HEAD", check=False)
    if found.code != 0:
        raise ApplyRefusedError(
            f"HEAD is detached in {git.directory}: there is no branch to commit to",
            f"agents plan apply {resource.plan_id} --branch NAME",
        )
    return os.fsdecode(found.stdout.removesuffix(b"\n"))
