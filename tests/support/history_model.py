"""What people do with one plan, and what happens to them, beside a model of what must be true."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from tests.support.histories import GATED, Facts, KnownPlan
from tests.support.kill_points import cut_short
from tests.support.world import Group, World

PICKS = st.integers(0, 10_000)
LIMIT = 12


class Histories(RuleBasedStateMachine):
    """`held` is what each group must bring back; `present` is None after a kill, until a command
    has put things in order."""

    template: World | None = None
    with_code = False

    def __init__(self) -> None:
        super().__init__()
        self.top = Path(tempfile.mkdtemp(prefix="history-"))
        self.held: dict[str, Facts] = {}
        self.noted: set[str] = set()
        self.labels = 0

    @initialize()
    def begin(self) -> None:
        self.known = KnownPlan(self.top / "w", self.template, with_code=self.with_code)
        self.plan = self.known.plan
        self.present: Facts | None = None
        self.done = -1
        self.execute(shut=False)

    def teardown(self) -> None:
        try:
            if self.held:
                self.plan("resume")  # whatever was killed last
                self.plan.agents("store", "verify").ok()
                self.plan("checkpoint", "verify").ok()
        finally:
            shutil.rmtree(self.top)

    # --- what people do -------------------------------------------------------------------------

    @rule(shut=st.booleans())
    def execute(self, *, shut: bool) -> None:
        self.known.shut(shut=shut)
        before, done = self.present, self.done
        answer = self.plan.execute()
        if before is None:
            done = self.plan.status["last_completed_step"]
        fails = shut and done < GATED
        assert answer.code == int(fails), answer
        self.present = self.known.half_done if fails else self.known.states[-1]
        self.done = GATED - 1 if fails else self.known.steps - 1
        self.note_new_groups(before)

    @rule(pick=PICKS)
    @precondition(lambda self: self.present is not None)
    def rollback(self, pick: int) -> None:
        group = self.some_group(pick)
        before = self.present
        self.plan.rollback(group.group_id).ok()
        self.now_at(group)
        self.note_new_groups(before)

    @rule()
    @precondition(lambda self: self.present is not None)
    def undo(self) -> None:
        safe = [group for group in self.plan.groups if group.reason == "before_rollback"]
        if safe:
            before = self.present
            self.plan.rollback(safe[-1].group_id).ok()
            self.now_at(safe[-1])
            self.note_new_groups(before)

    @rule(stays=st.booleans())
    @precondition(lambda self: self.present is not None)
    def back_and_forth(self, *, stays: bool) -> None:
        """`agents undo` changes something or says that there is nothing; `redo` brings it back."""
        before, of = self.present, ("--plan", self.plan.id)
        answer = self.plan.agents("undo", *of)
        if answer.code:
            assert answer.error["code"] == "nothing-to-undo", answer
            assert before == self.known.states[0], answer
            return
        undone = self.known.facts()
        assert undone != before
        self.note_new_groups(before)
        self.present, self.done = undone, self.plan.status["last_completed_step"]
        if not stays:
            self.plan.agents("redo", *of).ok()
            assert self.known.facts() == before
            self.note_new_groups(undone)
            self.present, self.done = before, self.plan.status["last_completed_step"]

    @rule()
    @precondition(lambda self: self.present is not None)
    def create(self) -> None:
        self.labels += 1
        self.plan("checkpoint", "create", "--label", f"by hand {self.labels}").ok()
        self.note_new_groups(self.present)

    @rule(pick=PICKS)
    def delete(self, pick: int) -> None:
        group = self.some_group(pick)
        answer = self.plan.agents(
            "plan", "checkpoint", "delete", "--yes", self.plan.id, group.group_id
        )
        stands = self.plan.status["last_checkpoint_id"] in {
            row["checkpoint_id"] for row in group.rows
        }
        assert answer.code == int(stands), answer
        assert (group.group_id in {g.group_id for g in self.plan.groups}) == stands

    @rule()
    def prune(self) -> None:
        before = {group.group_id for group in self.plan.groups}
        told = self.plan("checkpoint", "prune", "--yes").ok().data
        left = {group.group_id for group in self.plan.groups}
        assert left <= before, told
        assert len(left) >= min(len(before), LIMIT)

    # --- what happens to them -------------------------------------------------------------------

    @rule(shut=st.booleans(), at=st.integers(1, 60))
    def die_in_execute(self, *, shut: bool, at: int) -> None:
        self.known.shut(shut=shut)
        cut_short(self.plan.execute, at)
        self.present = None

    @rule(pick=PICKS, at=st.integers(1, 40))
    def die_in_rollback(self, pick: int, at: int) -> None:
        group = self.some_group(pick)
        before = self.present
        cut_short(lambda: self.plan.rollback(group.group_id), at)
        # Any command that writes puts the plan in order first.
        self.labels += 1
        label = f"after a kill {self.labels}"
        self.plan("checkpoint", "create", "--label", label).ok()
        found = self.known.facts()
        if before is not None and group.group_id in self.held:
            wanted = {"before": before, "target": self.held[group.group_id]}
            assert found in wanted.values(), (wanted, found, self.plan.status, group)
        self.present, self.done = found, self.plan.status["last_completed_step"]
        self.note_new_groups(None)
        self.held[self.plan.group(label).group_id] = found

    # --- what must hold -------------------------------------------------------------------------

    @invariant()
    def files_are_as_expected(self) -> None:
        if getattr(self, "present", None) is None:
            return
        assert self.known.facts() == self.present
        assert self.plan.status["last_completed_step"] == self.done

    @invariant()
    def a_complete_plan_stands_on_its_own_state(self) -> None:
        if getattr(self, "present", None) is None:
            return
        status = self.plan.status
        if status["state"] == "complete":
            told = self.plan("rollback", "--dry-run", "{}", status["last_checkpoint_id"]).ok().data
            assert told["changes_reverted"] == []
            assert told["impact"]["tool_calls_after_cp"] == "0 undone"
            assert told["impact"]["decisions_after_cp"] == "0 discarded"

    def now_at(self, group: Group) -> None:
        self.present = self.held.get(group.group_id) or self.known.facts()
        self.done = self.plan.status["last_completed_step"]
        assert self.plan.status["last_checkpoint_id"] in {
            row["checkpoint_id"] for row in group.rows
        }

    def some_group(self, pick: int) -> Group:
        groups = self.plan.groups
        # How many there are may depend on when a kill came, and what is drawn must not.
        return groups[pick % len(groups)]

    def note_new_groups(self, before: Facts | None) -> None:
        for group in self.plan.groups:
            if group.group_id in self.noted:
                continue
            # Whatever is not known of it now is not what will be `before` some later command.
            self.noted.add(group.group_id)
            facts = self.known.expected(group)
            if facts is None and group.reason in ("before_rollback", "manual"):
                facts = before
            if facts is not None:
                self.held[group.group_id] = facts
