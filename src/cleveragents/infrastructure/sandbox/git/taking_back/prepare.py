"""Preparing the way back over an apply to a checkout, and forward again: found out and checked.

Nothing of the user's changes here: at most a commit is made, and one reference of ours to keep it.
A commit is taken back by moving the branch where it is still the tip and nobody else can have it;
otherwise by one more commit, which changes the same paths. What somebody has changed since at those
paths is in the way, and is named.
"""

import os
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from cleveragents.domain.applied import ApplySide
from cleveragents.domain.apply import PreparedApply
from cleveragents.domain.changes import ResourceDiff
from cleveragents.domain.errors import ApplyConflictError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.sandbox.git.apply.branches import checked_out_at
from cleveragents.infrastructure.sandbox.git.apply.readiness import differing, refuse_unready
from cleveragents.infrastructure.sandbox.git.apply.switch import HEAD, Means
from cleveragents.infrastructure.sandbox.git.apply.token import ApplyWay, CheckoutToken
from cleveragents.infrastructure.sandbox.git.apply.user_commit import unsigned_note, user_commit
from cleveragents.infrastructure.sandbox.git.command import Git
from cleveragents.infrastructure.sandbox.git.diff import diff_of_trees, joined
from cleveragents.infrastructure.sandbox.git.repository.pins import Pins, pin, value_of
from cleveragents.infrastructure.sandbox.git.submodules.carry_out import users_submodule
from cleveragents.infrastructure.sandbox.git.taking_back.move import CheckoutMove, is_used
from cleveragents.infrastructure.sandbox.git.trees import TreeChange, text_of, tree_changes
from cleveragents.infrastructure.sandbox.own_state import read_back, to_plain

_OTHERS = ("refs/heads", "refs/remotes", "refs/tags")


class _Ends(Struct, frozen=True, kw_only=True):
    """The commits that have the files of an apply on the side one comes from, and goes to."""

    here: str
    there: str


class MovePreparation:
    def __init__(
        self, means: Means, pins: Pins, resource: PlanResource, last: CheckoutToken, side: ApplySide
    ) -> None:
        self._git = Git(resource.location)
        self._means, self._pins = means, pins
        self._resource = resource
        self._applied = read_back(resource, resource.intent, CheckoutToken)
        self._last, self._side = last, side

    def prepared(self) -> PreparedApply:
        token = self._token()
        self._refuse_used(token)
        ends = self._ends()
        diff = ResourceDiff()
        if token.way is not ApplyWay.NOTHING:
            notes = [unsigned_note(token.unsigned, None)] if token.unsigned else []
            diff = joined(
                [diff_of_trees(self._git, ends.here, ends.there), *self._inner()], notes=notes
            )
        return PreparedApply(
            resource_id=self._resource.resource_id,
            token=to_plain(token),
            diff=diff,
            target=self._target(token),
        )

    def _token(self) -> CheckoutToken:
        applied = self._applied
        shared = {"side": self._side, "notes": (), "unsigned": ""}
        match applied.way:
            case ApplyWay.NOTHING:
                return replace(applied, **shared)
            case ApplyWay.BRANCH:
                return self._branch(replace(applied, **shared))
            case ApplyWay.COMMIT:
                return self._commit(replace(applied, **shared))
            case ApplyWay.TREE:
                return self._tree(replace(applied, **shared))

    def _ends(self) -> _Ends:
        applied = self._applied
        before = f"{applied.commit}^1" if applied.way is ApplyWay.TREE else applied.head
        if self._side is ApplySide.BEFORE:
            return _Ends(here=applied.commit, there=before)
        return _Ends(here=before, there=applied.commit)

    def _tree(self, token: CheckoutToken) -> CheckoutToken:
        """Files alone, as long as what was changed is not committed or staged."""
        ends = self._ends()
        head = value_of(self._git, HEAD) or ""
        paths = {change.path for change in tree_changes(self._git, ends.here, ends.there)}
        committed = paths & differing(self._git, "diff-tree", "-r", self._applied.head, head)
        self._refuse(committed, "committed since then")
        index = paths & differing(self._git, "diff-index", "--cached", head)
        if index:
            index &= differing(self._git, "diff-index", "--cached", f"{self._applied.commit}^1")
        self._refuse(index, "staged since then")
        there = value_of(self._git, ends.there) or ""
        return replace(token, head=head, old=ends.here, commit=there, kept_by=self._kept_by())

    def _commit(self, token: CheckoutToken) -> CheckoutToken:
        ref, last = token.ref, self._last
        found = self._git.run("symbolic-ref", "--quiet", HEAD, check=False).stdout
        if os.fsdecode(found).removesuffix("\n") != ref:
            why = f"it is not checked out: git -C {self._git.directory} switch {_branch(ref)}"
            raise self._blocked([f"the branch {_branch(ref)}"], why)
        tip = value_of(self._git, ref) or ""
        if tip == last.commit and self._may_move(ref):
            commit, unsigned = last.head, ""
        else:
            commit, unsigned = self._counter_commit(tip)
        kept_by = self._kept_by()
        return replace(token, head=tip, old=tip, commit=commit, kept_by=kept_by, unsigned=unsigned)

    def _branch(self, token: CheckoutToken) -> CheckoutToken:
        """One that an apply has made, which nobody has to have checked out."""
        ref, last = token.ref, self._last
        self._refuse_checked_out(ref)
        tip = value_of(self._git, ref) or ""
        created, gone = (
            last.side is None or not last.head,
            last.side is not None and not last.commit,
        )
        here = "" if gone else last.commit
        if tip != here and (gone or not tip):
            why = "there is one by now" if tip else "it is gone"
            raise self._blocked([f"the branch {_branch(ref)}"], why)
        if tip == here and (gone or self._may_move(ref)):
            there = "" if created and not gone else last.head
            return replace(token, head=tip, commit=there)
        commit, unsigned = self._counter_commit(tip)
        return replace(token, head=tip, commit=commit, unsigned=unsigned)

    def _kept_by(self) -> str:
        """The commit under whose name the files are kept that come back."""
        return self._last.commit if self._side is ApplySide.BEFORE else ""

    def _may_move(self, ref: str) -> bool:
        """Whether going back to where `last` came from takes nothing away that others have."""
        last = self._last
        back_again = self._git.succeeds("merge-base", "--is-ancestor", last.commit, last.head)
        return back_again or not self._holders(last.commit, ref)

    def _holders(self, commit: str, ref: str) -> list[str]:
        """Other branches, tags, and what is known of other repositories."""
        args = ("for-each-ref", f"--contains={commit}", "--format=%(refname)", *_OTHERS)
        return [name for name in self._git.text(*args).split("\n") if name and name != ref]

    def _counter_commit(self, tip: str) -> tuple[str, str]:
        """One on top, that changes what the apply has changed, and nothing else."""
        ends = self._ends()
        changes = tree_changes(self._git, ends.here, ends.there)
        self._refuse_submodules()
        since = {change.path for change in tree_changes(self._git, ends.here, tip)}
        self._refuse(_overlapping(changes, since), "changed by commits since then")
        with self._means.trees.private_index(self._git) as private:
            private.run("read-tree", tip)
            private.run("update-index", "-z", "--index-info", input=_entries(changes))
            tree = private.text("write-tree")
        made = user_commit(self._git, tip, tree, self._message())
        pin(self._git, self._pins.undoing(self._resource), made.commit)
        return made.commit, made.unsigned

    def _message(self) -> str:
        subject = self._git.text("log", "-1", "--format=%s", self._applied.commit)
        word = "Revert" if self._side is ApplySide.BEFORE else "Reapply"
        what = "reverts" if self._side is ApplySide.BEFORE else "brings again"
        return f'{word} "{subject}"\n\nThis {what} commit {self._applied.commit}.'

    def _refuse_submodules(self) -> None:
        paths = [s.path for s in (*self._applied.submodules, *self._applied.new_submodules)]
        if paths:
            why = "submodules change with a commit that others have, or have built on"
            raise self._blocked([f"the submodule {path}" for path in paths], why)

    def _refuse_checked_out(self, ref: str) -> None:
        place = checked_out_at(self._git, ref)
        if place is not None:
            raise self._blocked([f"the branch {_branch(ref)}"], f"checked out in {place}")

    def _refuse_used(self, token: CheckoutToken) -> None:
        """Raises ApplyConflictError for all that is in the way of files, index and submodules."""
        if token.way not in (ApplyWay.COMMIT, ApplyWay.TREE):
            return
        refuse_unready(self._git, self._means.trees, self._resource.plan_id)
        if self._side is ApplySide.BEFORE:
            used = [new.path for new in token.new_submodules if is_used(self._resource, new.path)]
            if used:
                names = [f"the submodule {path}" for path in used]
                raise self._blocked(names, "checked out since then")
        self._refuse_moved_submodules(token)
        move = CheckoutMove(self._git, self._means, self._resource, token)
        found = [name for switch in move.checkouts() for name in switch.in_the_way()]
        if found:
            raise self._blocked(found, "changed since then")

    def _refuse_moved_submodules(self, token: CheckoutToken) -> None:
        for step in token.submodules:
            git = users_submodule(self._resource, step.path)
            if step.repository or step.commit == step.head:
                continue
            here = step.commit if self._side is ApplySide.BEFORE else step.head
            if git is None or value_of(git, HEAD) != here:
                raise self._blocked([f"the submodule {step.path}"], "moved on since then")
            on = git.run("symbolic-ref", "--quiet", HEAD, check=False).stdout
            ref = os.fsdecode(on).removesuffix("\n")
            if self._side is ApplySide.BEFORE and ref and _held_elsewhere(git, here, ref):
                raise self._blocked([f"the submodule {step.path}"], "others have its commit")

    def _inner(self) -> Iterator[ResourceDiff]:
        for step in sorted(self._applied.submodules, key=lambda step: step.path):
            git = users_submodule(self._resource, step.path)
            if git is not None and step.head and not step.repository:
                ends = (step.head, step.files)
                old, new = ends if self._side is ApplySide.AFTER else ends[::-1]
                yield diff_of_trees(git, old, new, below=step.path)

    def _target(self, token: CheckoutToken) -> str:
        branch = _branch(token.ref)
        match token.way:
            case ApplyWay.NOTHING:
                return "nothing to bring"
            case ApplyWay.TREE:
                return "in the working tree; what you have changed elsewhere stays"
            case ApplyWay.COMMIT | ApplyWay.BRANCH:
                return self._commit_target(token, branch)

    def _commit_target(self, token: CheckoutToken, branch: str) -> str:
        if not token.commit:
            return f"the branch {branch} goes, as nobody else has its commit"
        if token.commit in (self._last.head, self._applied.commit):
            short = token.commit[:12]
            if self._side is ApplySide.AFTER:
                return f"the branch {branch} moves to {short} again"
            return f"the branch {branch} moves back to {short}, as nobody else has the commit"
        why = ", ".join(map(_shown, self._holders(self._last.commit, token.ref)[:3]))
        reason = f"{why} has it" if why else "the branch has gone on"
        return f"one more commit on branch {branch}, as {reason}"

    def _refuse(self, paths: Collection[bytes], why: str) -> None:
        if paths:
            raise self._blocked([text_of(path) for path in sorted(paths)], why)

    def _blocked(self, names: list[str], why: str) -> ApplyConflictError:
        return ApplyConflictError(self._resource.plan_id, self._resource.name, names, why)


def _held_elsewhere(git: Git, commit: str, ref: str) -> bool:
    args = ("for-each-ref", f"--contains={commit}", "--format=%(refname)", *_OTHERS)
    return any(name and name != ref for name in git.text(*args).split("\n"))


def _entries(changes: Collection[TreeChange]) -> bytes:
    """As `update-index` reads them: what goes first, as a file may come in a folder's place."""
    gone = [c for c in changes if not c.new_mode.strip(b"0")]
    comes = [c for c in changes if c.new_mode.strip(b"0")]
    return b"".join(c.new_mode + b" " + c.new_oid + b"\t" + c.path + b"\0" for c in (*gone, *comes))


def _overlapping(changes: Collection[TreeChange], since: Collection[bytes]) -> set[bytes]:
    """Paths of these that are among the changes, above one, or below one."""
    ours = {change.path for change in changes}
    above = {os.fsencode(p) for path in ours for p in PurePosixPath(os.fsdecode(path)).parents}
    found = {path for path in since if path in ours or path in above}
    for path in since:
        parents = {os.fsencode(p) for p in PurePosixPath(os.fsdecode(path)).parents}
        if parents & ours:
            found.add(path)
    return found


def _branch(ref: str) -> str:
    return text_of(os.fsencode(ref.removeprefix("refs/heads/")))


def _shown(ref: str) -> str:
    for start in ("refs/heads/", "refs/remotes/", "refs/tags/"):
        ref = ref.removeprefix(start)
    return ref
