"""What a user's own things were when the power went, and what of them was on the disk for sure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.support.in_place_shots import Shot
from tests.support.power.promises import Promises
from tests.support.power.recorder import Event

Facts = Mapping[Any, Any]
HEAD, INDEX = "HEAD", "index"


def flat(shot: Shot) -> dict[Any, Any]:
    """Paths, references, HEAD and index, each with what it is."""
    return {**shot.tree, **shot.refs, HEAD: shot.head, INDEX: shot.index}


def changed(one: Facts, other: Facts) -> set[Any]:
    return {key for key in {*one, *other} if one.get(key) != other.get(key)}


class Course:
    """The events of a recording up to a cut. `under_way` is the one that was cut off."""

    def __init__(self, events: Sequence[Event], promises: Promises) -> None:
        self.over = events[: promises.events]
        self.under_way = events[promises.events] if promises.midst else None
        self._first = events[0].before

    def durable(self) -> dict[Any, Any]:
        """What was on the disk when the last event was over: what we have brought back, and what
        the user has synced. What an agent writes may be lost, and so may what git does for it."""
        sure = flat(self._first)
        for event in self.over:
            new, differs = flat(event.after), changed(flat(event.before), flat(event.after))
            if is_way(event):
                kept = {key: new.get(key) for key in differs}
            else:
                named = {name.encode() for name in event.synced}
                kept = {key: new.get(key) for key in differs if _is_synced(key, named, event)}
            sure = {key: value for key, value in sure.items() if key not in differs} | kept
        return sure

    def by_user(self) -> set[tuple[bytes, Any]]:
        """All that the user has ever written and synced."""
        return {
            (name.encode(), event.after.tree[name.encode()])
            for event in self.over
            for name in event.synced
            if name.encode() in event.after.tree
        }

    def held(self) -> dict[str, Shot]:
        """What each group was made of, as far as somebody has looked at that moment."""
        found: dict[str, Shot] = {}
        for event in self.over:
            found |= dict(_held(event))
        return found


def is_way(event: Event) -> bool:
    """Undo, redo or rollback."""
    return event.is_ours and ("undo" in event.words or not {"run", "apply"} & {*event.words})


def _is_synced(key: Any, named: set[bytes], event: Event) -> bool:
    if event.is_ours:
        return False
    git = any(name.startswith(b".git/") for name in named)
    return key in named if isinstance(key, bytes) else git


def _held(event: Event) -> Iterator[tuple[str, Shot]]:
    for group, row in event.groups.items():
        label, reason = row["label"], row["reason"]
        by_others = reason == "after_step" and "changed by others" in label
        if reason == "before_rollback" or label == "start" or by_others:
            yield group, event.before
        elif reason in ("complete", "on_tool_write_complete"):
            yield group, event.after
