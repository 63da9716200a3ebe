"""What had been told to people when the power went: it must be true when the machine is back."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.power.log import Log
from tests.support.power.recorder import Command

_ENDING = ("cancel", "discard")
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """`under_way` is the kind of command that was cut off; facts that it changes are not exact."""

    where: str
    variants: frozenset[str]
    under_way: str | None = None
    plan: str | None = None
    state: str | None = None
    step: int = -1
    groups: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    over: frozenset[str] = frozenset()
    """Of apply, cancel and discard those that have returned."""
    events: int = 0
    """How many commands and acts of the user were over."""
    midst: bool = False
    """The one after these had begun."""
    again: bool = False
    """Cut a second time."""

    @property
    def exact(self) -> bool:
        return self.under_way is None

    @property
    def applied(self) -> bool:
        return "apply" in self.over

    @property
    def applying(self) -> bool:
        return self.under_way == "apply"

    @property
    def ending(self) -> bool:
        """Cancelled or discarded, or about to be."""
        return bool(self.over & {*_ENDING}) or self.under_way in _ENDING

    def mended_by(self, kind: str, *, returned: bool) -> "Promises":
        """After another command, on the way to mending it, was cut off or had returned."""
        where = f"{self.where}, then {'after' if returned else 'in'} {kind}"
        here = dataclasses.replace(self, where=where, again=True)
        if kind == "doctor":
            return here
        if not returned:
            return dataclasses.replace(here, under_way=kind, state=None, groups=_NONE)
        over = self.over | ({kind} & {"apply", *_ENDING})
        return dataclasses.replace(here, under_way=None, state=None, groups=_NONE, over=over)


def told_until(log: Log, ready: int, point: int, commands: Sequence[Command]) -> Promises:
    """What the marks before `point` say."""
    under_way: int | None = None
    returned, step, named = -1, -1, set[str]()
    events, midst = 0, False
    for _, text in log.marks(ready, point):
        words = text.split()
        midst = words[0] in ("start", "act") or (midst and words[0] == "line")
        events += words[0] in ("end", "acted")
        if words[0] == "start":
            under_way = int(words[1])
        elif words[0] == "end":
            returned, under_way, step = int(words[1]), None, -1
        elif words[0] == "line" and words[2] == "checkpoint":
            named.add(words[3].rstrip(":"))
        elif words[0] == "line" and words[2] == "step" and words[4] == "done,":
            step = max(step, int(words[3].rstrip(":")) - 1)  # people count from 1
    told = _promises(commands, returned, under_way, step, named)
    return dataclasses.replace(told, events=events, midst=midst)


def _promises(
    commands: Sequence[Command], returned: int, under_way: int | None, step: int, named: set[str]
) -> Promises:
    last = commands[returned] if returned >= 0 else None
    flying = commands[under_way] if under_way is not None else None
    # What the one under way takes away, by pruning for instance, may be gone or not.
    groups = named | set(last.groups if last else ())
    newest = flying or last
    lasting = newest.groups if newest else ()
    variants = flying.variants if flying else (last or commands[0]).variants[1:]
    return Promises(
        where=_where(commands, returned, under_way),
        variants=frozenset(variants),
        under_way=flying.kind if flying else None,
        plan=last.plan if last else None,
        state=last.state if last and not flying else None,
        step=max(step, -1 if last is None or _goes_back(flying) else last.step),
        groups=frozenset(groups & set(lasting)),
        labels=frozenset(c.label for c in commands[: returned + 1] if c.label),
        over=frozenset(c.kind for c in commands[: returned + 1]) & {"apply", *_ENDING},
    )


def _goes_back(command: Command | None) -> bool:
    return command is not None and command.kind in ("rollback", "correct", "undo")


def _where(commands: Sequence[Command], returned: int, under_way: int | None) -> str:
    if under_way is not None:
        return f"in {under_way} {commands[under_way].kind}"
    return f"after {returned} {commands[returned].kind}" if returned >= 0 else "before all"
