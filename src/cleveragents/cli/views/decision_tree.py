"""How the decisions of a plan look as a tree, those of its child plans below their spawn."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from cleveragents.application.services.plans.plan_queries import DecisionHistory
from cleveragents.cli.render.blocks import Branch, Cell, CommandResult, Tree
from cleveragents.cli.views.children import standing
from cleveragents.cli.views.words import count, state_word, toned
from cleveragents.domain.decision import Decision, children_of
from cleveragents.domain.ids import DecisionId
from cleveragents.domain.subplan import ChildPlan


def tree(history: DecisionHistory, *, show_superseded: bool) -> CommandResult:
    shown = _Shown.of(history, show_superseded=show_superseded)
    superseded = sum(1 for d in history.decisions if d.superseded)
    summary = {
        "nodes": shown.nodes(),
        "depth": shown.depth(shown.root),
        "child_plans": sum(1 for _ in _counting(history)),
        "superseded": superseded,
    }
    hidden = superseded and not show_superseded
    return CommandResult(
        data={
            "plan_id": history.plan.plan_id,
            "name": history.plan.name,
            "tree": shown.node(shown.root),
            "summary": summary,
        },
        blocks=[
            Tree(
                history.plan.name,
                shown.branch(shown.root),
                facts=[toned(state_word(history.plan)), count(summary["nodes"], "decision")],
            )
        ],
        messages=[f"{count(superseded, 'superseded decision')} not shown: add --show-superseded"]
        if hidden
        else [],
    )


class _Shown(Struct, frozen=True, kw_only=True):
    """One plan's decisions as far as they are shown, and its children's."""

    history: DecisionHistory
    below: Mapping[DecisionId | None, list[Decision]]
    children: Mapping[DecisionId, "list[tuple[ChildPlan, _Shown]]"]

    @classmethod
    def of(cls, history: DecisionHistory, *, show_superseded: bool) -> "_Shown":
        decisions = [d for d in history.decisions if show_superseded or not d.superseded]
        children: dict[DecisionId, list[tuple[ChildPlan, _Shown]]] = {}
        for child, inner in history.children:
            if show_superseded or child.counts:
                shown = cls.of(inner, show_superseded=show_superseded)
                children.setdefault(child.decision_id, []).append((child, shown))
        return cls(history=history, below=children_of(decisions), children=children)

    @property
    def root(self) -> Decision:
        return self.below[None][0]

    def nodes(self) -> int:
        own = sum(len(found) for found in self.below.values())
        return own + sum(s.nodes() for found in self.children.values() for _, s in found)

    def depth(self, decision: Decision) -> int:
        deep = [self.depth(child) for child in self._below(decision)]
        deep += [shown.depth(shown.root) for _, shown in self._children(decision)]
        return 1 + max(deep, default=0)

    def node(self, decision: Decision) -> Mapping[str, Any]:
        group = self.history.groups.get(decision.decision_id)
        children: list[Mapping[str, Any]] = [self.node(child) for child in self._below(decision)]
        for child, shown in self._children(decision):
            told = {"plan_id": child.plan_id, "child": child.name, "outcome": standing(child)}
            children.append({**shown.node(shown.root), **told})
        node: dict[str, Any] = {
            "id": decision.decision_id,
            "decision_id": decision.decision_id,
            "type": decision.type,
            "description": decision.chosen,
            "checkpoint": group.head if group else None,
            "children": children,
        }
        if decision.superseded:
            node["superseded"] = True
        if decision.decision_id in self.history.unchecked:
            node["unchecked"] = True
        return node

    def branch(self, decision: Decision, child: ChildPlan | None = None) -> Branch:
        """One line: the number of its step, what was decided, and how to name it if no number
        does."""
        gone = decision.superseded or (child is not None and not child.counts)
        text = decision.chosen
        if decision.step_index is not None:
            text = f"{decision.step_index + 1}  {text}"
        if child is not None:
            text = f"{child.name}, {standing(child)}: {text}"
        below = [self.branch(inner) for inner in self._below(decision)]
        below += [shown.branch(shown.root, inner) for inner, shown in self._children(decision)]
        return Branch(
            text=Cell(text, "dim" if gone else "plain"),
            children=below,
            dim=gone,
            note=", ".join(self._marks(decision)),
        )

    def _marks(self, decision: Decision) -> Iterator[str]:
        if decision.superseded:
            yield "superseded"
        if decision.decision_id in self.history.unchecked:
            yield "unchecked"
        if decision.step_index is None or decision.superseded:
            yield decision.decision_id

    def _below(self, decision: Decision) -> list[Decision]:
        return self.below.get(decision.decision_id, [])

    def _children(self, decision: Decision) -> "list[tuple[ChildPlan, _Shown]]":
        return self.children.get(decision.decision_id, [])


def _counting(history: DecisionHistory) -> Iterator[ChildPlan]:
    for child, inner in history.children:
        if child.counts:
            yield child
            yield from _counting(inner)
