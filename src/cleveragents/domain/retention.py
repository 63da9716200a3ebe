"""Owns the rule which checkpoint groups go when there are too many, with a reason for each."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Protocol

from cleveragents.domain.ids import GroupId


class Prunable(Protocol):
    """What the rule has to know of a group."""

    @property
    def group_id(self) -> GroupId: ...
    @property
    def labelled_by_hand(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutline:
    """A group as far as the rule goes; there may be many, and one more is made at every step."""

    group_id: GroupId
    labelled_by_hand: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """What stays and why, and what goes, oldest first."""

    kept: dict[GroupId, str]
    removed: tuple[GroupId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRetentionPolicy:
    max_groups: int

    def decide(self, groups: Sequence[Prunable], *, pinned: Set[GroupId]) -> RetentionDecision:
        """`groups` oldest first. Where everything left is needed, more than `max_groups` stay."""
        needed = self._needed(groups, pinned)
        surplus = max(0, len(groups) - self.max_groups)
        removable = [group.group_id for group in groups if group.group_id not in needed]
        removed = tuple(removable[:surplus])
        kept = {group.group_id: "within the limit" for group in groups} | needed
        return RetentionDecision(
            kept={key: reason for key, reason in kept.items() if key not in removed},
            removed=removed,
        )

    def _needed(self, groups: Sequence[Prunable], pinned: Set[GroupId]) -> dict[GroupId, str]:
        needed = {g.group_id: "labelled by hand" for g in groups if g.labelled_by_hand}
        needed |= {group_id: "the plan stands on it" for group_id in pinned}
        if groups:
            needed[groups[0].group_id] = "the first"
            needed[groups[-1].group_id] = "the most recent"
        return needed
