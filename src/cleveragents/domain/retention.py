"""The rule which checkpoint groups go and which stay, with a reason for each.

In which order: what is too old goes; then the states that are too many, those left longest ago
first; then older groups of one name in a state that has too many; then what is too large.
Why: each rule counts what the one before it has left, so that nothing goes for a limit which is
kept already. States go whole: as long as one group of a state is there, its bytes are.
What is not guaranteed: the limits, where what is left is needed: the first and the newest group,
labels by hand, and what is pinned.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from cleveragents.domain.ids import GroupId

WITHIN = "within the limits"


class GroupOutline(NamedTuple):
    """A group as far as the rule goes. There may be many, and all are looked at for one more, so it
    is of the kind that is made fastest."""

    group_id: GroupId
    label: str
    state_hash: str
    labelled_by_hand: bool
    created_at: datetime
    size_bytes: int


class StateCounts(Struct, frozen=True, kw_only=True):
    """How many states the groups of a plan hold, and how many groups the one that has most."""

    states: int
    alike: int


class RetentionDecision(Struct, frozen=True, kw_only=True):
    """What stays and what goes, oldest first, each with the reason."""

    kept: Mapping[GroupId, str]
    removed: Mapping[GroupId, str]


class CheckpointRetentionPolicy(Struct, frozen=True, kw_only=True):
    """`max_states` is how many states of a plan can be gone back to, however many groups hold each
    of them; the one that the newest group holds is where the plan is, and does not count. `max_age`
    None and `max_total_bytes` 0 set no limit."""

    max_states: int
    max_age: timedelta | None = None
    max_total_bytes: int = 0

    @property
    def counts_only(self) -> bool:
        return self.max_age is None and not self.max_total_bytes

    def decide(
        self, groups: Sequence[GroupOutline], *, pinned: Mapping[GroupId, str], now: datetime
    ) -> RetentionDecision:
        """`groups` oldest first; `pinned` must stay, each for its reason.

        Where everything left is needed, more stays than the limits allow.
        """
        needed = _needed(groups, pinned)
        removed = dict(self._too_old(groups, needed, now))
        states = _states(groups, removed)
        for rule in (self._too_many, self._alike, self._too_large):
            if gone := rule(states, needed):
                removed |= gone
                states = _states(groups, removed)
        kept = {**{group.group_id: WITHIN for group in groups}, **needed}
        return RetentionDecision(
            kept={key: reason for key, reason in kept.items() if key not in removed},
            removed={g.group_id: removed[g.group_id] for g in groups if g.group_id in removed},
        )

    def _too_old(
        self, groups: Iterable[GroupOutline], needed: Container[GroupId], now: datetime
    ) -> Mapping[GroupId, str]:
        limit = self.max_age
        if limit is None:
            return {}
        # A group from the future, after the clock went back, has no negative age: it is young.
        return {
            group.group_id: f"older than {in_words(limit)}"
            for group in groups
            if now - group.created_at > limit and group.group_id not in needed
        }

    def allows(self, counts: StateCounts) -> bool:
        """Whether nothing goes for its number, which can be told without looking at each."""
        return self.room(counts) >= 0

    def room(self, counts: StateCounts) -> int:
        """How many more groups can be added before one might go; negative if one might now."""
        return min(self.max_states + 1 - counts.states, self.max_states - counts.alike)

    def _too_many(
        self, states: Sequence[Sequence[GroupOutline]], needed: Container[GroupId]
    ) -> Mapping[GroupId, str]:
        """The states that were left longest ago, each with all its groups."""
        surplus = len(states) - 1 - self.max_states
        if surplus <= 0:
            return {}
        free = [state for state in states if not any(g.group_id in needed for g in state)]
        reason = f"more than {self.max_states} states, and among the oldest"
        return {g.group_id: reason for state in free[:surplus] for g in state}

    def _alike(
        self, states: Sequence[Sequence[GroupOutline]], needed: Container[GroupId]
    ) -> Mapping[GroupId, str]:
        """Of a state that has been recorded over and over, what is there under the same name."""
        gone: dict[GroupId, str] = {}
        for state in states:
            if len(state) <= self.max_states:
                continue
            newest = {group.label: group.group_id for group in state}
            older = [g for g in state if newest[g.label] != g.group_id and g.group_id not in needed]
            for group in older[: len(state) - self.max_states]:
                gone[group.group_id] = "a newer one of the same name holds the same state"
        return gone

    def _too_large(
        self, states: Sequence[Sequence[GroupOutline]], needed: Container[GroupId]
    ) -> Mapping[GroupId, str]:
        if not self.max_total_bytes:
            return {}
        total = sum(group.size_bytes for state in states for group in state)
        reason = f"more than {self.max_total_bytes} bytes, and among the oldest"
        gone: dict[GroupId, str] = {}
        goes = False
        for state in states:
            size = sum(group.size_bytes for group in state)
            is_needed = any(group.group_id in needed for group in state)
            # One that added no bytes shares those of the state before it, and would keep them.
            goes = total > self.max_total_bytes and not is_needed if size else goes
            if goes and not is_needed:
                gone |= {group.group_id: reason for group in state}
                total -= size
        return gone


def in_words(age: timedelta) -> str:
    """In the largest unit that comes out even."""
    seconds = int(age.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    unit, length = next(each for each in units if seconds % each[1] == 0)
    amount = seconds // length
    return f"1 {unit}" if amount == 1 else f"{amount} {unit}s"


def _states(
    groups: Iterable[GroupOutline], removed: Container[GroupId]
) -> Sequence[Sequence[GroupOutline]]:
    """The groups that hold the same state together, by when that was left: the present last."""
    found: dict[str, list[GroupOutline]] = {}
    for group in groups:
        if group.group_id in removed:
            continue
        same = found.pop(group.state_hash, None) or []
        same.append(group)
        found[group.state_hash] = same
    return list(found.values())


def _needed(groups: Sequence[GroupOutline], pinned: Mapping[GroupId, str]) -> Mapping[GroupId, str]:
    needed = {g.group_id: "labelled by hand" for g in groups if g.labelled_by_hand}
    if groups:
        needed[groups[0].group_id] = "the first"
        needed[groups[-1].group_id] = "the most recent"
    return {**needed, **pinned}
