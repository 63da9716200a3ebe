"""Judges a cut in a user's own tree: nothing of the user's is lost, and every group can be gone to.

What an agent has written, and nobody has synced, may be gone from the tree: its group has it.
"""

import contextlib
from typing import Any

from tests.support.in_place_shots import Shot, difference, repository_is
from tests.support.power.course import Course, changed, flat, is_way
from tests.support.power.judge import Judge, StuckError, Verdict
from tests.support.power.promises import Promises
from tests.support.power.recorder import Command, Event
from tests.support.power.scenarios import Scenario

_FRUITLESS = ("nothing-to-undo", "nothing-to-redo")
_OF_OURS = ("*.lock", "cleveragents-index", "*.cleveragents-tmp", ".cleveragents-stage")
IN_PLACE_RUN = ("run", "--in-place", "--", "/bin/sh", "-c", "echo on >> on.txt")
_VISITS = 2


class InPlaceJudge(Judge):
    def __init__(
        self,
        scenario: Scenario,
        commands: list[Command],
        promises: Promises,
        seed: str,
        events: list[Event],
    ) -> None:
        super().__init__(scenario, commands, promises, seed)
        self.course = Course(events, promises)
        self.held = self.course.held()
        self.seen: set[tuple[bytes, Any]] = set()
        self.owed: set[tuple[bytes, Any]] = set()

    def judge(self) -> Verdict:
        with contextlib.suppress(StuckError):
            self._judge()
        return self.verdict

    def _judge(self) -> None:
        self._clear_gits_own()
        self._readable("found")
        found = self.scenario.look()
        self.seen = {*found.tree.items()}
        self.owed = self.course.by_user() - self.seen
        if not self.promises.again:
            self._allowed(found)
        if self.chance.random() < 0.5 and (self.scenario.home / ".cleveragents").exists():
            self.doctor("first")
        plan = self._promised_plan()
        if self.promises.applied or self.promises.applying:
            self._done(plan)
            return
        plan = self._next(plan, found)
        self.owed |= self.seen - {*self.scenario.look().tree.items()}
        self._visit(plan)
        self._to_and_fro(plan)
        self._pay(plan)
        self._done(plan)

    # --- what is found --------------------------------------------------------------------------

    def _readable(self, moment: str) -> None:
        """Git can read all of it."""
        self.repository(moment)
        for words in (("status", "--porcelain"), ("rev-parse", "--verify", "-q", "HEAD")):
            code, text = self.git(*words)
            if code:
                self.verdict.find("git", f"{words[0]} {moment}: {code} {text[:400]}")

    def _clear_gits_own(self) -> None:
        """Git of the user's or an agent's was cut off: its locks stay, which it says itself are to
        go, and where it does not sync HEAD or the index, they are empty; as without us."""
        event, gitdir = self.course.under_way, self.scenario.places["code"] / ".git"
        if not self.promises.again and (event is None or is_way(event)):
            return
        for name in ("index.lock", "HEAD.lock", "packed-refs.lock", "refs/heads/*.lock"):
            for lock in gitdir.glob(name):
                if name != "index.lock" or lock.read_bytes() not in (b"", b"cleveragents\n"):
                    lock.unlink()
        if event is None or is_way(event):
            return
        if not (gitdir / "HEAD").read_bytes().strip(b"\0"):
            (gitdir / "HEAD").write_bytes(event.before.head)
        if self.git("ls-files")[0]:
            (gitdir / "index").unlink()
            self.git("reset", "-q")

    def _allowed(self, found: Shot) -> None:
        """What was on the disk is what it was, or what the command under way makes of it."""
        now, event = flat(found), self.course.under_way
        for key, value in self.course.durable().items():
            allowed = [value]
            if event is not None and key in changed(flat(event.before), flat(event.after)):
                if not is_way(event):
                    continue
                allowed.append(flat(event.after).get(key))
            if now.get(key) not in allowed:
                self.verdict.find("wrong", f"found {key!r}: {now.get(key)!r}, not {allowed!r}")

    def _promised_plan(self) -> str | None:
        plans = [row["plan_id"] for row in self.type("plan", "list").data.get("plans", ())]
        promised = self.promises.plan
        if promised is None:
            return plans[0] if plans else None
        if promised not in plans:
            self.verdict.find("lost", f"plan {promised}")
            raise StuckError
        if not self.promises.applied and not self.promises.applying:
            self._groups_promised(promised)
        return promised

    # --- what is typed next ---------------------------------------------------------------------

    def _next(self, plan: str | None, found: Shot) -> str:
        """One of the things people type; it finishes or undoes what was cut off."""
        known = sorted(self.held.keys() & self.promises.groups)
        ways = ["run"] if plan is None else ["run", "undo", "redo"] + ["back"] * bool(known)
        way = self.chance.choice(ways)
        if way == "run":
            self.must("stuck", *IN_PLACE_RUN)
            self._whole(found)
        elif way == "back":
            assert plan
            self._go(plan, self.chance.choice(known))
        else:
            self._fruitless(self.type(way, "--yes"))
        self._nothing_left(f"after {way}")
        return plan or self.type("plan", "list").data["plans"][0]["plan_id"]

    def _fruitless(self, answer: Any) -> bool:
        if answer.code and answer.data.get("error", {}).get("code") not in _FRUITLESS:
            self.verdict.find("stuck", self.verdict.typed[-1])
            raise StuckError
        return bool(answer.code)

    def _whole(self, found: Shot) -> None:
        """A way back is all there or not at all: what was on the disk is of one moment."""
        event = self.course.under_way
        now = flat(self.scenario.look())
        if self.promises.again:
            return
        sure = self.course.durable().keys()
        old, new = (flat(event.before), flat(event.after)) if event else (flat(found), {})
        if event is None or not is_way(event):
            differs = {key for key in sure if now.get(key) != flat(found).get(key)}
        else:
            moving = changed(old, new) & sure
            differs = min(
                ({key for key in moving if now.get(key) != side.get(key)} for side in (old, new)),
                key=len,
            )
        if differs:
            self.verdict.find("wrong", f"after the next command: {sorted(map(str, differs))[:5]}")

    def _nothing_left(self, moment: str) -> None:
        """No lock, stage or half file of ours."""
        top = self.scenario.places["code"]
        left = [str(path) for name in _OF_OURS for path in top.rglob(name)]
        if left:
            self.verdict.find("left", f"{moment}: {left}")

    # --- groups ---------------------------------------------------------------------------------

    def _visit(self, plan: str) -> None:
        known = sorted(self.held.keys() & self.promises.groups)
        for group in self.chance.sample(known, min(_VISITS, len(known))):
            self._go(plan, group)

    def _go(self, plan: str, group: str) -> None:
        before = self.scenario.look()
        answer = self.type("plan", "rollback", "--yes", plan, group)
        if answer.code:
            self.verdict.find("stuck", self.verdict.typed[-1])
            raise StuckError
        after = self.scenario.look()
        self.seen |= after.tree.items()
        if group in self.held:
            self._is(self.held[group], before, after, answer.data["left"], f"at {group}")

    def _is(self, target: Shot, before: Shot, after: Shot, left: list[str], what: str) -> None:
        if after.tree != target.tree:
            self.verdict.find("wrong", f"{what}: {difference(after.tree, target.tree)}")
        try:
            repository_is(target, before, after, left, pending=True)
        except AssertionError as error:
            self.verdict.find("wrong", f"{what}: {error}")

    def _to_and_fro(self, plan: str) -> None:
        """What nobody of ours has seen yet would go with the step before it: so it is seen."""
        self.must("stuck", *IN_PLACE_RUN)
        before = self.scenario.look()
        if self._fruitless(self.type("undo", "--yes", "--plan", plan)):
            return
        undone = self.scenario.look()
        self.must("stuck", "redo", "--yes", "--plan", plan)
        self._is(before, undone, self.scenario.look(), _all_of(before), "undone and redone")

    def _pay(self, plan: str) -> None:
        """What the user had, and is in the tree no more, is in a group."""
        groups = [*self.groups(plan)]
        for group in reversed(groups):
            if self.owed <= self.seen:
                return
            self._go(plan, group)
        for path, facts in self.owed - self.seen:
            self.verdict.find("lost", f"no group has {path!r} {facts!r}")

    # --- the end --------------------------------------------------------------------------------

    def _done(self, plan: str | None) -> None:
        """The timeline is closed; the tree stays as it is, and nothing of ours is left in it."""
        before = self.scenario.look()
        if plan is not None:
            answer = self.type("plan", "apply", "--yes", plan)
            if answer.code and answer.data.get("error", {}).get("code") != "plan-applied":
                self.verdict.find("stuck", self.verdict.typed[-1])
                raise StuckError
        after = self.scenario.look()
        if flat(before) != flat(after):
            self.verdict.find("wrong", f"apply: {difference(after.tree, before.tree)}")
        self._nothing_left("in the end")
        self._readable("in the end")
        self.doctor("last")
        self._references()
        left = [str(p) for p in self.scenario.places["code"].rglob("*cleveragents-in-place")]
        if left:
            self.verdict.find("left", str(left))


def _all_of(shot: Shot) -> list[str]:
    """References are those of the group that redo leads to, which others may have moved since."""
    return [*shot.refs, "HEAD, the index", "the index"]
