"""HEAD, index, references and operations of the user's repository, as far as a timeline moved them.

What may change: what is still as the snapshot `held` has it and, where that is known, was moved by
nobody after the last group. Everything else is left and named. HEAD, the branch it is on, the index
and an operation in progress belong together: if somebody has moved HEAD, all of these stay.
In which order: `index.lock`, as git takes it; references in one transaction of git's own, each with
the value that it must have; HEAD, and then the branch that it has left, if that goes; the stash's
log; files of an operation; the index.
Why: no git of anybody works on the index meanwhile, and a reference that moved at the last moment
refuses all of them. A kill leaves the lock: what is in it says that it is ours, by which the
repetition, that comes with the next command, knows it (ADR 0102).
What is not guaranteed: one instant for all of it. Logs of references, settings, hooks, packs and
remote branches are never touched.
"""

import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from cleveragents.domain.errors import RestoreFailedError
from cleveragents.domain.resource import PlanResource
from cleveragents.infrastructure.files.durable_files import put_below, read_file, remove
from cleveragents.infrastructure.files.entry import shown
from cleveragents.infrastructure.sandbox.git.command import Git, GitError
from cleveragents.infrastructure.sandbox.git.repository.ref_locks import clear_old_locks
from cleveragents.infrastructure.sandbox.in_place.git_keeping import TAG, missing_objects
from cleveragents.infrastructure.sandbox.in_place.git_locking import (
    clear_ours,
    index_locked,
    mode_of,
    refuse_locked,
    write_head,
)
from cleveragents.infrastructure.sandbox.in_place.git_reading import (
    INDEX,
    OPERATION_FOLDERS,
    STASH,
    STASH_LOG,
    RepositoryState,
    is_unread,
    notable,
    read_repository,
)
from cleveragents.infrastructure.sandbox.in_place.git_state import NOTABLE
from cleveragents.infrastructure.sandbox.in_place.git_there import HEAD, git_folder, is_there
from cleveragents.infrastructure.snapshots.tree.extra_state import StoredSide

_MENDED_BY_GIT = "the index: git cannot read it (rm .git/index && git reset makes it anew)"
_REASON = ("-m", "agents: to a checkpoint")


class Sides(Struct, frozen=True, kw_only=True):
    """The repository as it is to become, as a group holds it now, and as the last group had it."""

    target: StoredSide
    held: StoredSide
    last: StoredSide | None


class GitMoves(Struct, frozen=True, kw_only=True):
    """What is to change, each with the value that it has now; `left` names what is not."""

    refs: Mapping[str, tuple[str, str]]
    head: str | None = None
    index: bool = False
    operation: bool = False
    stash_log: bool = False
    left: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.refs or self.head is not None or self.index or self.operation)


def planned_moves(now: RepositoryState, sides: Sides) -> GitMoves:
    """The rule; nothing is read or written."""
    target = RepositoryState.of(sides.target.identity)
    held = RepositoryState.of(sides.held.identity)
    last = RepositoryState.of(sides.last.identity) if sides.last else held
    if target.is_gone or now.is_gone:
        return GitMoves(refs={}, left=() if now == target else (_without(now, target),))
    left: list[str] = []
    refs = _moved_refs(now, target, held, last, left)
    if not _is_known(now, held, target) or not _same_place(held, last):
        if not _is_at(now, target):
            where = _shown(now.branch) or "the commit"
            left.append(f"HEAD, the index and {where}: moved by others")
        refs.pop(now.branch, None)
        return GitMoves(refs=refs, stash_log=STASH in refs, left=tuple(left))
    moves_head = now.head != target.head or held.commit != target.commit
    index = now.index != target.index and (moves_head or target.index != last.index)
    index = index and now.index == held.index
    if now.index != target.index and not index:
        left.append(_MENDED_BY_GIT if is_unread(now) else "the index: changed by others")
    operation = now.operation != target.operation and target.operation != last.operation
    if now.operation != target.operation and not operation:
        left.append("an operation of git in progress: begun or ended by others")
    return GitMoves(
        refs=refs,
        head=target.head if now.head != target.head else None,
        index=index,
        operation=operation,
        stash_log=STASH in refs,
        left=tuple(left),
    )


def _without(now: RepositoryState, target: RepositoryState) -> str:
    if now.is_gone:
        return f"the repository: {now.why or 'there is none now'}"
    return f"the repository: {f'then {target.why}' if target.why else 'it is new'}"


def _moved_refs(
    now: RepositoryState,
    target: RepositoryState,
    held: RepositoryState,
    last: RepositoryState,
    left: list[str],
) -> dict[str, tuple[str, str]]:
    """By name the present value and the new one; "" is none."""
    moves: dict[str, tuple[str, str]] = {}
    for name in sorted({*now.refs, *target.refs}):
        present, wanted = now.refs.get(name, ""), target.refs.get(name, "")
        before, then = held.refs.get(name, ""), last.refs.get(name, "")
        if present == wanted and (name != STASH or now.stash_log == target.stash_log):
            continue
        if present != before or before != then or "ref: " in f"{present} {wanted}":
            left.append(f"{_shown(name)}: moved by others")
        else:
            moves[name] = (present, wanted)
    return moves


def _shown(name: str) -> str:
    """Bytes that are no text are for nobody to read."""
    return shown(os.fsencode(name))


def _same_place(one: RepositoryState, other: RepositoryState) -> bool:
    return one.head == other.head and one.commit == other.commit


def _is_known(now: RepositoryState, held: RepositoryState, target: RepositoryState) -> bool:
    """Whether HEAD and its branch are as they were, or already as they are to become: a way back
    that was cut off leaves a mixture of these."""
    values = (held.refs.get(now.branch, ""), target.refs.get(now.branch, ""))
    on_branch = not now.branch or now.refs.get(now.branch, "") in values
    return now.head in (held.head, target.head) and on_branch


def _is_at(now: RepositoryState, target: RepositoryState) -> bool:
    return _same_place(now, target) and now.index == target.index


class RepositoryRestore:
    """Of one resource; `prepare` may raise, and nothing has changed then."""

    def __init__(self, resource: PlanResource, git: Git, sides: Sides) -> None:
        self._resource = resource
        self._gitdir = git_folder(resource.location)
        self._git = git
        self._sides = sides
        self.moves = GitMoves(refs={})

    def prepare(self) -> None:
        clear_ours(self._gitdir)
        now = read_repository(self._resource.location, self._git).state
        self.moves = planned_moves(now, self._sides)
        if not self.moves.any:
            return
        refuse_locked(self._resource, self.moves.refs)
        for name in self._sides.target.hashes:
            if name.startswith(TAG):
                self._git.run(
                    "hash-object", "-t", "tag", "-w", "--stdin", "--literally",
                    input=self._sides.target.content(name),
                )  # fmt: skip
        needed = {new for _, new in self.moves.refs.values() if new}
        if self.moves.head and not self.moves.head.startswith("ref: "):
            needed.add(self.moves.head)
        if missing_objects(self._git, sorted(needed)):
            gone = "the state of the repository: objects of that time are gone"
            self.moves = GitMoves(refs={}, left=(*self.moves.left, gone))

    @contextmanager
    def locked(self) -> Generator[None]:
        """The index is ours until the end, if it has to be. Raises RepositoryBusyError."""
        if not self.moves.any:
            yield
            return
        with index_locked(self._resource, self.moves.refs):
            clear_old_locks(self._gitdir, self.moves.refs)
            yield

    def write(self) -> None:
        """Inside of `locked`. All of it is durable at the end."""
        if not self.moves.any:
            return
        try:
            last = self._branch_that_goes()
            self._write_refs({n: move for n, move in self.moves.refs.items() if n not in last})
            if self.moves.head is not None:
                self._write_head(self.moves.head)
            self._write_refs(last)
            self._write_stash_log()
            if self.moves.operation:
                self._write_operation()
            if self.moves.index:
                self._write_index()
        except (OSError, GitError) as error:
            raise RestoreFailedError(self._resource.name, str(error)) from error

    def notes(self) -> Iterator[str]:
        side = self._sides.target
        if NOTABLE not in side.hashes or not is_there(self._gitdir):
            return
        if side.content(NOTABLE).decode() != notable(self._gitdir):
            yield "settings or hooks of the repository are others than then, and stay as they are"

    def _branch_that_goes(self) -> Mapping[str, tuple[str, str]]:
        """The one that HEAD stands for now, if it is to go: not before HEAD has left it, or git
        could not read HEAD after a power cut in between."""
        head = read_file(self._gitdir, HEAD) or b""
        name = os.fsdecode(head.removeprefix(b"ref: ").rstrip(b"\n"))
        move = self.moves.refs.get(name)
        if move is None or move[1] or self.moves.head is None:
            return {}
        return {name: move}

    def _write_refs(self, moves: Mapping[str, tuple[str, str]]) -> None:
        lines = [b"start"]
        for name, (old, new) in moves.items():
            if old == new:
                continue
            ref = os.fsencode(name)
            if not new:
                lines.append(b"delete %s %s" % (ref, old.encode()))
            elif not old:
                lines.append(b"create %s %s" % (ref, new.encode()))
            else:
                lines.append(b"update %s %s %s" % (ref, new.encode(), old.encode()))
        if len(lines) > 1:
            told = b"\n".join([*lines, b"prepare", b"commit", b""])
            self._git.run("update-ref", *_REASON, "--no-deref", "--stdin", input=told)

    def _write_head(self, head: str) -> None:
        if head.startswith("ref: "):
            write_head(self._resource, head)
        else:
            self._git.run("update-ref", *_REASON, "--no-deref", HEAD, head)

    def _write_stash_log(self) -> None:
        if not self.moves.stash_log:
            return
        side = self._sides.target
        if STASH_LOG in side.hashes:
            put_below(self._gitdir, STASH_LOG, side.content(STASH_LOG))
        else:
            remove(self._gitdir, STASH_LOG)

    def _write_operation(self) -> None:
        target = RepositoryState.of(self._sides.target.identity)
        now = read_repository(self._resource.location, self._git).state
        for name in now.operation.keys() - target.operation.keys():
            remove(self._gitdir, name)
        for folder in OPERATION_FOLDERS:
            if not any(name.startswith(f"{folder}/") for name in target.operation):
                remove(self._gitdir, folder)
        for name in target.operation:
            put_below(self._gitdir, name, self._sides.target.content(name))

    def _write_index(self) -> None:
        if INDEX in self._sides.target.hashes:
            mode = mode_of(self._gitdir, INDEX)
            put_below(self._gitdir, INDEX, self._sides.target.content(INDEX), mode)
        else:
            remove(self._gitdir, INDEX)
