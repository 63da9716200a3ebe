"""Owns the rule which checkpoint groups go and which stay, with a reason for each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cleveragents.domain.ids import GroupId

WITHIN = "within the limits"


class Prunable(Protocol):
    """What the rule has to know of a group."""

    @property
    def group_id(self) -> GroupId: ...
    @property
    def labelled_by_hand(self) -> bool: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def size_bytes(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutline:
    """A group as far as the rule goes; there may be many, and one more is made at every step."""

    group_id: GroupId
    label: str
    labelled_by_hand: bool
    created_at: datetime
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """What stays and what goes, oldest first, each with the reason."""

    kept: Mapping[GroupId, str]
    removed: Mapping[GroupId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRetentionPolicy:
    """`max_age` None and `max_total_bytes` 0 set no limit."""

    max_groups: int
    max_age: timedelta | None = None
    max_total_bytes: int = 0

    @property
    def counts_only(self) -> bool:
        return self.max_age is None and not self.max_total_bytes

    def decide(
        self, groups: Sequence[Prunable], *, pinned: Mapping[GroupId, str], now: datetime
    ) -> RetentionDecision:
        """`groups` oldest first; `pinned` must stay, each for its reason.

        Where everything left is needed, more stays than the limits allow.
        """
        needed = _needed(groups, pinned)
        removable = [group for group in groups if group.group_id not in needed]
        removed = dict(self._too_old(removable, now))
        removed |= self._too_many(groups, removable, removed)
        removed |= self._too_large(groups, removable, removed)
        kept = {**{group.group_id: WITHIN for group in groups}, **needed}
        return RetentionDecision(
            kept={key: reason for key, reason in kept.items() if key not in removed},
            removed={g.group_id: removed[g.group_id] for g in groups if g.group_id in removed},
        )

    def _too_old(self, removable: Iterable[Prunable], now: datetime) -> Mapping[GroupId, str]:
        limit = self.max_age
        if limit is None:
            return {}
        # A group from the future, after the clock went back, has no negative age: it is young.
        return {
            group.group_id: f"older than {in_words(limit)}"
            for group in removable
            if now - group.created_at > limit
        }

    def _too_many(
        self,
        groups: Sequence[Prunable],
        removable: Iterable[Prunable],
        removed: Mapping[GroupId, str],
    ) -> Mapping[GroupId, str]:
        surplus = len(groups) - len(removed) - self.max_groups
        left = [group for group in removable if group.group_id not in removed]
        reason = f"more than {self.max_groups}, and among the oldest"
        return {group.group_id: reason for group in left[: max(0, surplus)]}

    def _too_large(
        self,
        groups: Iterable[Prunable],
        removable: Iterable[Prunable],
        removed: Mapping[GroupId, str],
    ) -> Mapping[GroupId, str]:
        if not self.max_total_bytes:
            return {}
        total = sum(group.size_bytes for group in groups if group.group_id not in removed)
        if total <= self.max_total_bytes:
            return {}
        gone: dict[GroupId, str] = {}
        for group in removable:
            # One that added no bytes shares those of the group before it, and would keep them.
            if total <= self.max_total_bytes and group.size_bytes:
                break
            if group.group_id not in removed:
                gone[group.group_id] = (
                    f"more than {self.max_total_bytes} bytes, and among the oldest"
                )
                total -= group.size_bytes
        return gone


def in_words(age: timedelta) -> str:
    """In the largest unit that comes out even."""
    seconds = int(age.total_seconds())
    units = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
    unit, length = next(each for each in units if seconds % each[1] == 0)
    amount = seconds // length
    return f"1 {unit}" if amount == 1 else f"{amount} {unit}s"


def _needed(groups: Sequence[Prunable], pinned: Mapping[GroupId, str]) -> Mapping[GroupId, str]:
    needed = {g.group_id: "labelled by hand" for g in groups if g.labelled_by_hand}
    if groups:
        needed[groups[0].group_id] = "the first"
        needed[groups[-1].group_id] = "the most recent"
    return {**needed, **pinned}
