"""One random history in the user's own tree, and after each operation what must be true of it.

Nothing is known in advance: what was on the disk when a group was made is what that group has to
bring back, and what an operation of ours took off the disk is owed until a group has shown it.
"""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.agents import Answer
from tests.support.in_place import Place
from tests.support.in_place_shots import (
    Shot,
    difference,
    others_files_stay,
    others_refs_stay,
    processes_in,
    repository_is,
    shot_of,
)
from tests.support.in_place_work import BRANCHES, Work
from tests.support.kill_points import cut_short
from tests.support.world import Group, PlanHandle, World

_FRUITLESS = ("nothing-to-undo", "nothing-to-redo")
_MANY = {"CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN": "1000"}
_OF_OURS = ("*.lock", "cleveragents-index", "*.cleveragents-tmp", ".cleveragents-stage")
_REST_SECONDS = 30
_TRIES = 3
# Where a way back changes the tree: kinds of lasting actions, and how many of them there may be.
# A link is how the index is locked.
_CHANGES = (
    *(("link", 1), ("link", 1), ("rename", 6), ("rename", 2), ("unlink", 4)),
    *(("mkdir", 2), ("rmdir", 2), ("run", 9)),
)


class History:
    """`last` is what the last group has, None where only the command can know it: after a kill.
    `ever` is all that was there at the end of a command: what is not in it was made by others."""

    def __init__(self, top: Path, template: World, seed: int) -> None:
        self.chance = random.Random(seed)
        self.place = Place(World(top, template))
        self.place.world.agents = self.place.world.agents.having(**_MANY)
        self.work = Work(self.chance)
        self.said: list[str] = []
        self.count: Counter[str] = Counter()
        self.held: dict[str, Shot] = {}
        self.owed: set[tuple[bytes, tuple[str, int, bytes]]] = set()
        self.ever: set[tuple[bytes, tuple[str, int, bytes]]] = set()
        self.last: Shot | None = None
        self.pending = False
        self._plan: PlanHandle | None = None
        self._listed: set[str] | None = None
        self._upstream = str(top / "upstream.git")
        git = self.place.project.git
        git("clone", "-q", "--bare", str(self.place.path), self._upstream)
        git("remote", "add", "origin", self._upstream)
        git("fetch", "-q", "origin")
        for name in BRANCHES[1:]:
            git("branch", name)

    def live(self, operations: int) -> None:
        self._by_user()
        self._run()
        for _ in range(operations):
            kinds, weights = zip(*self._choices(), strict=True)
            self.chance.choices(kinds, weights)[0]()
        self._end()

    def _choices(self) -> list[tuple[Callable[[], None], int]]:
        return [
            (self._run, 5),
            (self._by_user, 2),
            (self._by_user_and_back, 12),
            (self._by_editor, 2),
            (self._back, 3),
            (self._to_a_group, 3),
            (self._die_in_run, 2),
            (self._die_and_back, 4),
            (self._save_meanwhile, 2),
        ]

    @property
    def plan(self) -> PlanHandle:
        """The one timeline that there is, once a run has begun."""
        if self._plan is None:
            agents = self.place.world.agents
            self._plan = PlanHandle(agents, agents("plan", "list").ok().data["plans"][0]["plan_id"])
        return self._plan

    def groups(self) -> list[Group]:
        found = self.plan.groups
        self._listed = {group.group_id for group in found}
        return found

    # --- others ---------------------------------------------------------------------------------

    def _by_user(self) -> None:
        self._typed(self.work.by_user(self._upstream))

    def _by_user_and_back(self) -> None:
        """What goes wrong goes wrong here: nothing of ours has seen yet what they did."""
        before = self.shot()
        for _ in range(_TRIES):
            self._by_user()
            if self.shot() != before:
                break
        self.chance.choice([self._back, self._to_a_group, self._die_and_back])()

    def _die_and_back(self) -> None:
        """Whoever comes next, a user with git or a command of ours, meets what was cut off."""
        self._die_on_the_way()
        self.chance.choice([self._back, self._to_a_group, self._run])()

    def _by_editor(self) -> None:
        self._typed(self.work.by_editor())

    def _typed(self, script: str) -> None:
        """Git may refuse it, as the history wants: then nothing has happened."""
        self._note("others", script)
        subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=self.place.path,
            env=self.place.world.agents.environ,
            check=False,
            capture_output=True,
        )

    # --- of ours --------------------------------------------------------------------------------

    def _run(self) -> None:
        self._work(f"{self.work.by_agent()}; true")

    def _work(self, script: str) -> None:
        self._note("run", script)
        before, known, pending = self.shot(), self._known(), self.pending
        self.place.run(script).ok()
        after = self._settled(before)
        self._hold(known, None if pending else before, after)
        self.last = after

    def _back(self) -> None:
        words = [self.chance.choice(["undo", "undo", "undo", "redo"])]
        if self.chance.random() < 0.2:
            words += ["-n", "2"]
        self._way(*words, self._how())

    def _to_a_group(self) -> None:
        group = self.chance.choice(self.groups())
        self._way("plan", "rollback", *self._sure(), self.plan.id, group.group_id)

    def _sure(self) -> list[str]:
        """A rollback asks in any case; `undo` only where others have changed something."""
        return sorted({self._how(), "--yes"})

    def _how(self) -> str:
        return self.chance.choice(["--yes", "--keep"])

    def _way(self, *words: str) -> None:
        self._note("way", *words)
        before, known, pending = self.shot(), self._known(), self.pending
        fresh = before.tree.items() - self.ever
        answer = self.place(*words)
        after = self._settled(before)
        if "--keep" in words:
            assert fresh <= after.tree.items(), f"{answer} took {fresh - after.tree.items()} back"
        if answer.code:
            assert answer.error["code"] in _FRUITLESS, answer
            self._listed = None
            if not pending:
                assert after == before, answer
            return
        self._hold_safety(known, None if pending else before)
        self._went(answer, before, after, keep="--keep" in words, pending=pending)

    def _went(
        self, answer: Answer, before: Shot, after: Shot, *, keep: bool, pending: bool
    ) -> None:
        """The end of a way that was reported as gone."""
        left = answer.data["left"]
        target = self.held.get(answer.data["rollback_summary"]["checkpoint"])
        assert after.never_ours == before.never_ours, answer
        if not pending and self.last is not None:
            others_refs_stay(self.last, before, after)
            if keep:
                others_files_stay(self.last.tree, before.tree, after.tree)
        if target is not None:
            if not keep:
                assert after.tree == target.tree, difference(after.tree, target.tree)
            repository_is(target, before, after, left, pending=pending)
        elif not left:
            self.held[answer.data["rollback_summary"]["checkpoint"]] = after
        self.last = target or (None if left else after)

    def _save_meanwhile(self) -> None:
        """An editor saves while we are on the way: what it saved is there, or in a group."""
        words = (self.chance.choice(["undo", "redo"]), self._how())
        name, text = self.work.save()
        self._note("save", name, text, "while", *words)
        before = self.shot()
        running = self.place.world.agents.fork(*words)
        time.sleep(self.chance.uniform(0, 0.2))
        saved = self._save(name, text)
        answer = running.answer()
        assert not answer.code or answer.error["code"] in _FRUITLESS, answer
        path = name.encode()
        # What the editor has replaced need not be in a group.
        after = self._settled(before, theirs=path if saved else b"")
        if saved and after.tree.get(path) != saved:
            self.owed.add((path, saved))
        self.last = self._listed = None

    def _save(self, name: str, text: str) -> tuple[str, int, bytes] | None:
        beside = self.place.path / f".{text}.swp"
        beside.write_text(text)
        try:
            facts = ("file", beside.stat().st_mode & 0o777, text.encode())
            beside.replace(self.place.path / name)
        except OSError:
            beside.unlink(missing_ok=True)
            return None
        return facts

    # --- kills ----------------------------------------------------------------------------------

    def _die_in_run(self) -> None:
        script = f"{self.work.by_agent()}; true"
        self._note("killed run", script)
        before, known = self.shot(), self._known()
        self._killed("run", "--in-place", "--", "sh", "-c", script)
        self._after_kill(known, before)

    def _die_on_the_way(self) -> None:
        words = [self.chance.choice(["undo", "undo", "redo"]), self._how()]
        if self.chance.random() < 0.4:
            group = self.chance.choice(self.groups())
            words = ["plan", "rollback", *self._sure(), self.plan.id, group.group_id]
        self._note("killed way", *words)
        before, known, pending = self.shot(), self._known(), self.pending
        self._killed(*words)
        after = self._after_kill(known, before)
        assert after.never_ours == before.never_ours
        if not pending:
            self._hold_safety(known, before)

    def _killed(self, *words: str) -> None:
        """By a durable action, which a seed repeats; by the clock, which it does not."""
        drawn = self.chance.random()
        if drawn < 0.5:
            kind, most = self.chance.choice(_CHANGES)
            cut_short(lambda: self.place(*words), self.chance.randint(1, most), kind)
            return
        if drawn < 0.8:
            cut_short(lambda: self.place(*words), self.chance.randint(1, 95))
            return
        delay = self.chance.uniform(0, 0.25)
        running = self.place.world.agents.fork(*words)
        time.sleep(delay)
        os.kill(running.pid, signal.SIGKILL)
        os.close(running.pipe)
        os.waitpid(running.pid, 0)

    def _after_kill(self, known: set[str], before: Shot) -> Shot:
        self._wait_for_rest()
        lock = self.place.path / ".git/index.lock"
        if lock.exists() and lock.read_bytes() != b"cleveragents\n":
            lock.unlink()  # git of an agent that has died with us: what every user does then
        for name in self.place.path.glob(".git/refs/**/*.lock"):
            name.unlink()
        for name in self.place.path.glob(".git/*.lock"):
            if name != lock:
                name.unlink()
        after = self.shot()
        self.ever |= after.tree.items()
        self._owe(before, after)
        self.last, self.pending, self._listed = None, True, None
        return after

    def _wait_for_rest(self) -> None:
        """What a run has started ends with it."""
        deadline = time.monotonic() + _REST_SECONDS
        while at_work := processes_in(self.place.path):
            assert time.monotonic() < deadline, f"{at_work} outlived the run"
            time.sleep(0.02)

    # --- what is known --------------------------------------------------------------------------

    def shot(self) -> Shot:
        return shot_of(self.place.project)

    def _known(self) -> set[str]:
        """All groups; asked again only where a command may have made some since."""
        if self._listed is None:
            if not self.place("plan", "list").ok().data["plans"]:
                return set()
            self.groups()
        return set(self._listed or ())

    def _settled(self, before: Shot, theirs: bytes = b"") -> Shot:
        """After a command that came to its end: nothing of ours is in the way."""
        self.pending = False
        after = self.shot()
        self.ever |= after.tree.items()
        self._owe(before, after, theirs)
        found = [p for name in _OF_OURS for p in self.place.path.rglob(name)]
        assert not found, found
        return after

    def _owe(self, before: Shot, after: Shot, theirs: bytes = b"") -> None:
        gone = before.tree.items() - after.tree.items()
        self.owed |= {item for item in gone if item[0] != theirs}

    def _hold(self, known: set[str], before: Shot | None, after: Shot) -> None:
        """What a run has made: first what others had changed, at the end what is there. What was
        cut off is finished before all of it, and `before` is None then."""
        new = [group for group in self.groups() if group.group_id not in known]
        for group in new:
            if before and group.reason == "after_step" and "changed by others" in group.label:
                self.held[group.group_id] = before
        if new:
            self.held[new[-1].group_id] = after

    def _hold_safety(self, known: set[str], before: Shot | None) -> None:
        new = [group for group in self.groups() if group.group_id not in known]
        safety = [group for group in new if group.reason == "before_rollback"]
        assert before is None or len(safety) <= 1, safety
        for group in safety:
            if before is not None:
                self.held[group.group_id] = before

    def _note(self, kind: str, *words: str) -> None:
        self.count[kind] += 1
        self.said.append(f"{kind}: {' '.join(words)}")

    # --- the end --------------------------------------------------------------------------------

    def _end(self) -> None:
        """Every group brings back what it held, and all that is owed is in one of them."""
        seen: set[tuple[bytes, tuple[str, int, bytes]]] = set()
        self._work("true")  # what others did last has a group of its own by this
        for group in self._apart(self.groups()):
            self._way("plan", "rollback", "--yes", self.plan.id, group.group_id)
            seen |= self.shot().tree.items()
        lost = self.owed - seen
        assert not lost, f"no group has {sorted(lost)}"
        # Git commits the empty tree without writing it, and then misses it.
        self.place.project.git("hash-object", "-t", "tree", "-w", "/dev/null")
        broken = self.place.project.git("fsck", "--strict", "--no-dangling", "--no-progress")
        assert not broken, broken
        self.place("store", "verify").ok()

    def _apart(self, groups: list[Group]) -> list[Group]:
        """Any one of those that hold the same."""
        same: dict[object, list[Group]] = {}
        for group in groups:
            rows = [row for row in group.rows if row["checkpoint_type"] != "plan-state"]
            shot = self.held.get(group.group_id)
            if shot is not None:
                same.setdefault(repr((sorted(shot.tree.items()), shot.head)), []).append(group)
            elif rows:
                same.setdefault(rows[0]["state_hash"], []).append(group)
        return [self.chance.choice(equal) for equal in same.values()]


def lived(top: Path, template: World, seed: int, operations: int) -> Counter[str]:
    """One history; what was done is told with the seed if something is wrong."""
    history = History(top, template, seed)
    try:
        history.live(operations)
    except BaseException as error:
        error.add_note("\n".join([f"IN_PLACE_SEED={seed}, after:", *history.said]))
        raise
    return history.count
