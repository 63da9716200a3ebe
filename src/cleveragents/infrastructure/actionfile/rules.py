"""The rules between the sections of an action file, and the domain's values made from them."""

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cleveragents.domain.action import (
    SUBPLANS,
    Action,
    ActorSpec,
    ResourceSpec,
    ServerSpec,
    Step,
    Subplan,
    Subplans,
    ToolSpec,
)
from cleveragents.domain.effects import RESULT_NAMES
from cleveragents.domain.subplan import MOST_LEVELS, in_a_circle
from cleveragents.domain.timeline_use import IN_PLACE, problems
from cleveragents.infrastructure.actionfile.model import Mistakes
from cleveragents.infrastructure.actionfile.sections import (
    ActionKeys,
    ResourceKeys,
    ServerKeys,
    SpawnKeys,
    StepKeys,
    SubplanKeys,
    SubplansKeys,
    ToolKeys,
)
from cleveragents.infrastructure.actionfile.values import quoted

_WHERE = ("path", "url")


class Surroundings(NamedTuple):
    """The resources of the plan whose steps are read, and how deep below the top it is.

    `certain`: there was no mistake in how it came by its resources.
    """

    resources: Sequence[str]
    level: int = 0
    certain: bool = True


class PlacedCall(NamedTuple):
    """A step that calls a tool, and where it is written: for a validation that is not listed, where
    its tool is declared."""

    step: Step
    keys: StepKeys | ToolKeys
    around: Surroundings


class ActionRules:
    """What the rules need to know from outside the file, and what they collect.

    `calls` are all that could be understood; `unread_tools` are declared with mistakes.
    """

    def __init__(
        self,
        *,
        base_dir: str,
        builtin_names: Collection[str],
        overrides: Mapping[str, str],
        mistakes: Mistakes,
    ) -> None:
        self._base_dir = base_dir
        self._builtin_names = builtin_names
        self._overrides = overrides
        self._mistakes = mistakes
        self._works_in_place = False
        self.calls: list[PlacedCall] = []
        self.unread_tools: Collection[str] = ()

    def action(self, top: ActionKeys) -> Action:
        """What can be made of the file; complete only if there is no mistake."""
        resources = top.names_in("resources")
        specs = self._resources(top)
        servers = self._servers(top.mcp_servers, resources)
        tools = self._tools(top, resources)
        self.unread_tools = set(top.names_in("tools")) - {spec.name for spec in tools}
        self._works_in_place = any(spec.in_place for spec in specs)
        action = Action(
            name=top.name if top.are_right("name") else "",
            description=top.description if top.are_right("description") else "",
            resources=specs,
            steps=self.steps(top.steps or (), Surroundings(resources)),
            tools=tools,
            rollback_policy=top.rollback_policy,
            max_retries_per_step=top.max_retries_per_step,
            confinement=top.confinement,
            servers=servers,
            validations=self._validations(top, tools, Surroundings(resources)),
            actor=top.actor or ActorSpec(),
            invariants=top.invariants,
        )
        if top.are_right("resources"):
            for place, text in problems(action):
                self._mistakes.add(text, *place)
        return action

    # --- resources ------------------------------------------------------------------------------

    def _resources(self, top: ActionKeys) -> tuple[ResourceSpec, ...]:
        names = top.names_in("resources")
        self._check_overrides(names)
        variables: dict[str, str] = {}
        for name in names:
            variable = name.upper().replace("-", "_")
            first = variables.setdefault(variable, name)
            if first != name:
                # Commands find their sandboxes by this variable.
                text = f"would share CLEVERAGENTS_SANDBOX_{variable} with {quoted(first)}"
                self._mistakes.add(text, "resources", name)
        sections = top.values.get("resources", {})
        return tuple(
            self._resource(name, keys) for name, keys in sections.items() if not keys.wrong
        )

    def _check_overrides(self, names: Collection[str]) -> None:
        for name, location in self._overrides.items():
            if name not in names:
                meant = self._mistakes.meant(name, names)
                self._mistakes.add(f"unknown resource{meant}", f"--resource {name}")
            elif not location or "\0" in location:
                self._mistakes.add("needs a path after the `=`", f"--resource {name}")

    def _resource(self, name: str, keys: ResourceKeys) -> ResourceSpec:
        location = self._overrides.get(name, keys.values.get(keys.kind.key, ""))
        if keys.kind.key == "path":
            location = self._absolute(location)
        elif location and not re.match(keys.kind.url_pattern, location, re.DOTALL):
            keys.find(f"must begin with {keys.kind.url_start}", "url")
        values = {key: value for key, value in keys.everything().items() if key not in _WHERE}
        in_place = values.pop("strategy") == IN_PLACE
        return ResourceSpec(name=name, location=location, in_place=in_place, **values)

    def _absolute(self, path: str) -> str:
        try:
            expanded = Path(path).expanduser()
        except RuntimeError:
            # `~name` of nobody is an ordinary name, as it is in a shell.
            expanded = Path(path)
        return os.path.normpath(Path(self._base_dir, expanded))

    # --- tools ----------------------------------------------------------------------------------

    def _servers(
        self, sections: Mapping[str, ServerKeys], resources: Collection[str]
    ) -> tuple[ServerSpec, ...]:
        return tuple(
            ServerSpec(name=name, command=keys.command, resource=self._place(keys, resources) or "")
            for name, keys in sections.items()
            if not keys.wrong
        )

    def _tools(self, top: ActionKeys, resources: Collection[str]) -> tuple[ToolSpec, ...]:
        specs: list[ToolSpec] = []
        servers = top.names_in("mcp_servers")
        for name, keys in top.tools.items():
            if name in self._builtin_names:
                keys.find("is the name of a built-in tool; choose another")
            if keys.server is not None and keys.server not in servers:
                meant = self._mistakes.meant(keys.server, servers)
                keys.find(f"unknown server {quoted(keys.server)}{meant}", "server")
            others = [other for other in top.names_in("tools") if other != name]
            self._check_compensation(name, keys, others)
            place = self._place(keys, resources)
            if not keys.wrong:
                specs.append(_tool_spec(name, keys, place))
        self._check_compensation_names(specs)
        return tuple(specs)

    def _check_compensation(self, name: str, keys: ToolKeys, others: Collection[str]) -> None:
        wanted = keys.compensate
        if wanted is None or wanted in others:
            return
        if wanted == name:
            text = "a tool cannot undo itself; name another"
        elif wanted in self._builtin_names:
            # They work in the sandboxes only, where a rollback restores everything anyway.
            text = "a built-in tool undoes nothing outside; name one of the action's own"
        else:
            text = f"unknown tool {quoted(wanted)}{self._mistakes.meant(wanted, others)}"
        keys.find(text, "compensate")

    def _check_compensation_names(self, specs: Sequence[ToolSpec]) -> None:
        """What the undoing tool asks for must be there once the other one has run."""
        parameters = {spec.name: [p.name for p in spec.parameters] for spec in specs}
        for spec in specs:
            given = (*parameters[spec.name], *RESULT_NAMES)
            for name in parameters.get(spec.compensate or "", []):
                if name not in given:
                    text = (
                        f"{quoted(spec.compensate or '')} needs {quoted(name)}, which {spec.name} "
                        f"does not have; there are {', '.join(given)}"
                    )
                    self._mistakes.add(text, "tools", spec.name, "compensate")

    def _place(self, keys: ServerKeys | ToolKeys, resources: Collection[str]) -> str | None:
        given = keys.resource
        if not keys.are_right("resource"):
            return None
        if given is None and len(resources) == 1:
            return next(iter(resources))
        if given is None:
            keys.find("say in which resource the command runs", "resource")
        elif given not in resources:
            meant = self._mistakes.meant(given, resources)
            keys.find(f"unknown resource {quoted(given)}{meant}", "resource")
        return given

    # --- steps ----------------------------------------------------------------------------------

    def steps(
        self,
        sections: Sequence[StepKeys | SpawnKeys],
        around: Surroundings,
        earlier: Sequence[Step] = (),
    ) -> tuple[Step, ...]:
        """`earlier` ones come before them."""
        steps = tuple(
            self._spawn(keys, around) if isinstance(keys, SpawnKeys) else self._call(keys, around)
            for keys in sections
        )
        names = {step.name for step in steps}
        before = Counter(step.name for step in earlier)
        for keys, step in zip(sections, steps, strict=True):
            for position, name in enumerate(step.uses if keys.are_right("uses") else ()):
                if text := self._use_problem(name, before, names):
                    keys.find(text, "uses", position)
            before[step.name] += 1
        return steps

    def _use_problem(
        self, name: str, earlier: Mapping[str, int], names: Collection[str]
    ) -> str | None:
        """Only earlier steps can be used, so that there is no way to go in circles. `earlier` says
        how many steps before it have which name, `names` what any is called."""
        if name in earlier:
            if earlier[name] == 1:
                return None
            return f"several earlier steps are called {quoted(name)}; give each its own name"
        if name in names:
            return f"{quoted(name)} is no earlier step; a step can only use what ran before it"
        return f"there is no step {quoted(name)}{self._mistakes.meant(name, earlier)}"

    def _call(self, keys: StepKeys, around: Surroundings) -> Step:
        tool = keys.tool if keys.are_right("tool") else ""
        step = Step(name=keys.name or tool, tool=tool, arguments=keys.arguments, uses=keys.uses)
        if keys.are_right("tool", "with"):
            self.calls.append(PlacedCall(step, keys, around))
        return step

    def _validations(
        self, top: ActionKeys, tools: Sequence[ToolSpec], around: Surroundings
    ) -> tuple[Step, ...]:
        """Those that the file lists, and after them every other tool that is one: marking it is
        enough to have it run."""
        listed = tuple(self._call(keys, around) for keys in top.validations)
        marked = [spec.name for spec in tools if spec.validation is not None]
        for keys, step in zip(top.validations, listed, strict=True):
            if step.tool and step.tool not in (*marked, *self.unread_tools):
                meant = self._mistakes.meant(step.tool, marked)
                keys.find(f"{quoted(step.tool)} is no tool with `validation:`{meant}", "tool")
        names = {step.tool for step in listed}
        rest = tuple(Step(name=name, tool=name) for name in marked if name not in names)
        # One that is not listed is run as it is marked, so that is where its mistake is.
        self.calls += [PlacedCall(step, top.tools[step.tool], around) for step in rest]
        return (*listed, *rest)

    # --- child plans ----------------------------------------------------------------------------

    def _spawn(self, keys: SpawnKeys, around: Surroundings) -> Step:
        if self._works_in_place and around.level == 0:
            keys.find(
                f"child plans need copies, and with `strategy: {IN_PLACE}` there are none; let"
                " the steps be steps of this plan, or work in sandboxes",
                SUBPLANS,
            )
        inner: SubplansKeys | None = keys.values.get(SUBPLANS)
        if inner is None or "plans" not in inner.values:
            return Step(name=keys.name or SUBPLANS, tool=SUBPLANS)
        sections = inner.plans
        if around.level >= MOST_LEVELS:
            inner.find(f"child plans may be nested {MOST_LEVELS} levels deep, not more")
            sections = ()
        plans = tuple(self._subplan(child, around) for child in sections)
        self._check_order(sections, plans)
        settings = inner.everything()
        del settings["plans"]
        return Step(
            name=keys.name or ", ".join(child.name for child in plans)[:200] or SUBPLANS,
            tool=SUBPLANS,
            subplans=Subplans(plans=plans, **settings),
        )

    def _subplan(self, keys: SubplanKeys, around: Surroundings) -> Subplan:
        name = keys.name if keys.are_right("name") else ""
        given, certain = around.resources, around.certain and keys.are_right("resources")
        for index, wanted in enumerate(keys.resources or ()):
            if certain and wanted not in around.resources:
                meant = self._mistakes.meant(wanted, around.resources)
                text = f"the parent has no resource {quoted(wanted)}{meant}"
                keys.find(text, "resources", index)
        if keys.resources is not None:
            given = [one for one in around.resources if one in keys.resources]
            certain = certain and len(given) == len(set(keys.resources))
        return Subplan(
            name=name,
            description=keys.description or f"The part {name}",
            resources=tuple(given),
            depends_on=tuple(dict.fromkeys(keys.depends_on)),
            steps=self.steps(
                keys.values.get("steps", ()), Surroundings(given, around.level + 1, certain)
            ),
        )

    def _check_order(self, sections: Sequence[SubplanKeys], plans: Sequence[Subplan]) -> None:
        names = [child.name for child in plans]
        for index, (keys, child) in enumerate(zip(sections, plans, strict=True)):
            if child.name and child.name in names[:index]:
                keys.find(f"there is a child {quoted(child.name)} already", "name")
            for position, name in enumerate(child.depends_on):
                if name not in names:
                    meant = self._mistakes.meant(name, names)
                    text = f"there is no child {quoted(name)} in this step{meant}"
                    keys.find(text, "depends_on", position)
        for name in in_a_circle(plans):
            text = "waits for itself: the `depends_on` of these children form a circle"
            sections[names.index(name)].find(text, "depends_on")


def resource_not_given(everything: Action, child: Action, step: Step) -> str | None:
    """What is wrong if a child's step uses a resource that only its ancestors have."""
    spec = next((tool for tool in child.tools if tool.name == step.tool), None)
    wanted = [step.arguments.get("resource"), *(step.arguments.get("write_scope") or ())]
    if spec is not None:
        wanted += [spec.resource, *spec.write_scope, *(spec.reads or ())]
    for name in wanted:
        if isinstance(name, str) and everything.resource(name) and not child.resource(name):
            return f"this child was not given `{name}`; name it in its `resources`"
    return None


def _tool_spec(name: str, keys: ToolKeys, resource: str | None) -> ToolSpec:
    values, writes = keys.everything(), keys.does_write()
    del values["read_only"]
    values.update(
        command=keys.command or (),
        parameters=keys.all_parameters(),
        writes=writes,
        checkpointable=writes if keys.checkpointable is None else keys.checkpointable,
        resource=resource,
        remote=values.pop("tool"),
        open_ended=keys.command is None and keys.parameters is None,
    )
    return ToolSpec(name=name, **values)
