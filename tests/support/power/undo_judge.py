"""Judges a cut in undo or redo of an apply: the project is on one side of it or the other, with
whatever the user has changed elsewhere."""

import contextlib

from tests.support.power import model
from tests.support.power.course import Course
from tests.support.power.judge import Judge, StuckError, Verdict
from tests.support.power.model import State
from tests.support.power.promises import Promises
from tests.support.power.recorder import Command, Event
from tests.support.power.user_scenarios import UndoApply

_OVER = {"undo": "apply-undone", "redo": "nothing-to-redo"}
_OTHER = {"undo": "redo", "redo": "undo"}


class UndoJudge(Judge):
    scenario: UndoApply

    def __init__(
        self,
        scenario: UndoApply,
        commands: list[Command],
        promises: Promises,
        seed: str,
        events: list[Event],
    ) -> None:
        super().__init__(scenario, commands, promises, seed)
        self.course = Course(events, promises)
        said = [event.words[0] for event in self.course.over if event.is_ours]
        self.is_after = said[-1:] != ["undo"]
        self.edits = sum(not event.is_ours for event in self.course.over)
        event = self.course.under_way
        self.word = event.words[0] if event and event.is_ours else None
        self.is_edited = event is not None and not event.is_ours

    def judge(self) -> Verdict:
        """Up to the apply as ever."""
        if not self.promises.applied or self.promises.under_way == "apply":
            return super().judge()
        with contextlib.suppress(StuckError):
            self._judge()
        return self.verdict

    def _judge(self) -> None:
        plan = self.promises.plan
        assert plan
        self.repository("found")
        self._found()
        if self.chance.random() < 0.5:
            self.doctor("first")
        if plan not in [row["plan_id"] for row in self.type("plan", "list").data.get("plans", ())]:
            self.verdict.find("lost", f"plan {plan}")
            return
        if self.word in _OVER and not self.promises.again:
            self._finished(self.word)
        elif self.promises.again:
            self._some_side()
        self._to_and_fro()
        self.must("stuck", "plan", "discard", "--yes", plan)
        self.doctor("last")
        self._references()
        left = [str(p) for p in (self.scenario.places["code"] / ".git").glob("cleveragents-*")]
        if left:
            self.verdict.find("left", str(left))

    def _found(self) -> None:
        """Either side, path by path, while it is moved; one of them before and after. A database
        that was being written has a journal, which only its next user rolls back."""
        if self.is_edited:
            return
        now = self.scenario.look()
        if self.word or self.promises.again:  # what is ready to take its place lies beside it
            ours = ".cleveragents-apply-"
            now["assets"] = {p: c for p, c in now["assets"].items() if not p.startswith(ours)}
        sides = [self._side(after=after) for after in (False, True)]
        if not self.word and not self.promises.again:
            self.compare("found", now, [self._side(after=self.is_after)])
            return
        either = [*(model.differences(now, side) for side in sides)]
        both = {line.split(" is ")[0] for line in either[0]}
        both &= {line.split(" is ")[0] for line in either[1]}
        if both:
            self.verdict.find("wrong", f"found on neither side: {sorted(both)[:5]}")

    def _side(self, *, after: bool) -> State:
        return self.scenario.side(after=after, edits=self.edits)

    def _finished(self, word: str) -> None:
        """Said again it is finished; by the other word it is taken back."""
        said = self.chance.choice([word, _OTHER[word]])
        self._said(said)
        self.is_after = said != "undo"
        self._is(f"after {said}")

    def _said(self, word: str) -> None:
        answer = self.type(word, "--yes")
        code = answer.data.get("error", {}).get("code") if answer.code else None
        if code not in (None, _OVER[word]):
            self.verdict.find("stuck", self.verdict.typed[-1])
            raise StuckError

    def _some_side(self) -> None:
        word = self.chance.choice([*_OVER])
        self._said(word)
        self.is_after = word != "undo"
        self._is(f"after {word}")

    def _to_and_fro(self) -> None:
        words = ("undo", "redo") if self.is_after else ("redo", "undo")
        for word in words:
            self.must("stuck", word, "--yes")
            self.is_after = word == "redo"
            self._is(f"{word} afterwards")

    def _is(self, moment: str) -> None:
        """To the byte; git says the same of it, but for what the user has not committed."""
        if self.is_edited:
            self.repository(moment)
            return
        self.compare(moment, self.scenario.look(), [self._side(after=self.is_after)])
        self.repository(moment)
        code, text = self.git("status", "--porcelain")
        names = {line.split()[-1] for line in text.splitlines()}
        if code or not names <= {*self.scenario.edited(self.edits)}:
            self.verdict.find("git", f"status {moment}: {code} {text[:400]}")
