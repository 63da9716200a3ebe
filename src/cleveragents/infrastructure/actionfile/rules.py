"""The rules of an action file beyond its shape, and makes the domain's values from it."""

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from cleveragents.domain.action import (
    SUBPLANS,
    Parameter,
    ResourceSpec,
    ResourceType,
    RollbackPolicy,
    ServerSpec,
    Step,
    ToolSpec,
    Validation,
)
from cleveragents.domain.confinement import Confinement, ConfinementMeans, ConfinementMode
from cleveragents.domain.effects import RESULT_NAMES
from cleveragents.infrastructure.actionfile.shapes import (
    MOST_FINDINGS,
    NO_VALUE,
    TILDE,
    ConfinementShape,
    Mistake,
    PolicyShape,
    ResourceShape,
    ServerShape,
    StepShape,
    ToolShape,
    meant,
    quoted,
    shaped,
)
from cleveragents.infrastructure.actionfile.subplans import Loc, SubplanRules, Surroundings
from cleveragents.infrastructure.tools.toolbox import PLACEHOLDER

RESOURCE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
POSTGRES_URL = re.compile(r"postgres(ql)?(\+\w+)?://.+", re.DOTALL)
_FOLDERS = (ResourceType.GIT_CHECKOUT, ResourceType.FS_DIRECTORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """What the rules need to know from outside the file, and where they put what they find."""

    base_dir: str
    builtin_names: Collection[str]
    overrides: Mapping[str, str]
    findings: list[Mistake] = field(default_factory=list[Mistake])

    def policy(self, raw: object) -> RollbackPolicy:
        shape = shaped(PolicyShape, raw, ("rollback_policy",), self.findings) or PolicyShape()
        return RollbackPolicy(
            enabled=shape.enabled,
            require_checkpoints=shape.require_checkpoints,
            max_checkpoints=shape.max_checkpoints,
        )

    def confinement(self, raw: object) -> Confinement:
        """A mode alone, which YAML may have read as `false` when it is `off`, or several keys."""
        if not isinstance(raw, dict):
            raw = {"mode": "off" if raw is False else raw}
        raw = cast("dict[str, object]", raw)
        # Where the whole value is of another kind, `shaped` of the top has said so.
        asked = shaped(ConfinementShape, raw, ("confinement",), self.findings)
        shape = asked or ConfinementShape()
        return Confinement(
            mode=ConfinementMode(shape.mode) if shape.mode else None,
            by=ConfinementMeans(shape.by),
            network=shape.network,
            environment=tuple(shape.environment),
            write=tuple(shape.write),
        )

    # --- resources ------------------------------------------------------------------------------

    def resources(self, raw: Mapping[str, Any]) -> tuple[ResourceSpec, ...]:
        self._check_overrides(raw)
        self._check_resource_names(raw)
        specs: list[ResourceSpec] = []
        for name, item in raw.items():
            shape = shaped(ResourceShape, item, ("resources", name), self.findings)
            if shape is not None:
                specs.append(self._resource(name, shape))
        return tuple(specs)

    def _check_overrides(self, raw: Mapping[str, Any]) -> None:
        for name, location in self.overrides.items():
            if name not in raw:
                self._find(f"unknown resource{meant(name, raw)}", f"--resource {name}")
            elif not location or "\0" in location:
                self._find("needs a path after the `=`", f"--resource {name}")

    def _check_resource_names(self, raw: Mapping[str, Any]) -> None:
        variables: dict[str, str] = {}
        for name in raw:
            if not RESOURCE_NAME.fullmatch(name):
                text = "a resource's name is a letter, then up to 63 letters, digits, `_` or `-`"
                self._find(text, "resources", name)
            variable = name.upper().replace("-", "_")
            first = variables.setdefault(variable, name)
            if first != name:
                # Commands find their sandboxes by this variable.
                text = f"would share CLEVERAGENTS_SANDBOX_{variable} with {quoted(first)}"
                self._find(text, "resources", name)

    def _resource(self, name: str, shape: ResourceShape) -> ResourceSpec:
        type_ = ResourceType(shape.type)
        needed, other = ("url", "path") if type_ is ResourceType.POSTGRES else ("path", "url")
        if getattr(shape, needed) is None:
            missing = f"this key is required for {type_}"
            given = needed in shape.model_fields_set
            self._find(NO_VALUE + TILDE if given else missing, "resources", name, needed)
        if getattr(shape, other) is not None:
            self._find(f"is not for {type_}; use `{needed}`", "resources", name, other)
        for key in ("include", "exclude"):
            if getattr(shape, key) and type_ not in _FOLDERS:
                self._find(f"is only for folders, not for {type_}", "resources", name, key)
        return ResourceSpec(
            name=name,
            type=type_,
            location=self._location(name, type_, shape),
            include=tuple(shape.include),
            exclude=tuple(shape.exclude),
            checkpointable=shape.checkpointable,
        )

    def _location(self, name: str, type_: ResourceType, shape: ResourceShape) -> str:
        given = shape.url if type_ is ResourceType.POSTGRES else shape.path
        location = self.overrides.get(name, given) or ""
        if type_ is not ResourceType.POSTGRES:
            return self._absolute(location)
        if location and not POSTGRES_URL.fullmatch(location):
            self._find("must begin with postgresql://", "resources", name, "url")
        return location

    def _absolute(self, path: str) -> str:
        try:
            expanded = Path(path).expanduser()
        except RuntimeError:
            # `~name` of nobody is an ordinary name, as it is in a shell.
            expanded = Path(path)
        return os.path.normpath(Path(self.base_dir, expanded))

    # --- tools ----------------------------------------------------------------------------------

    def servers(
        self, raw: Mapping[str, Any], resource_names: Collection[str]
    ) -> tuple[ServerSpec, ...]:
        specs: list[ServerSpec] = []
        for name, item in raw.items():
            loc = ("mcp_servers", name)
            shape = shaped(ServerShape, item, loc, self.findings)
            if shape is None:
                continue
            place = self._place(shape.resource, resource_names, (*loc, "resource"))
            specs.append(ServerSpec(name=name, command=tuple(shape.command), resource=place or ""))
        return tuple(specs)

    def tools(
        self,
        raw: Mapping[str, Any],
        resource_names: Collection[str],
        servers: Sequence[ServerSpec] = (),
    ) -> tuple[ToolSpec, ...]:
        specs: list[ToolSpec] = []
        for name, item in raw.items():
            self._check_tool_name(name)
            shape = shaped(ToolShape, item, ("tools", name), self.findings)
            if shape is None:
                continue
            self._check_kind(name, shape, [server.name for server in servers])
            self._check_writes(name, shape)
            self._check_reads(name, shape)
            self._check_compensation(name, shape, [other for other in raw if other != name])
            place = self._place(shape.resource, resource_names, ("tools", name, "resource"))
            specs.append(_tool_spec(name, shape, place))
        self._check_compensation_names(specs)
        return tuple(specs)

    def _check_tool_name(self, name: str) -> None:
        if name in self.builtin_names:
            self._find("is the name of a built-in tool; choose another", "tools", name)
        if not TOOL_NAME.fullmatch(name):
            text = "a tool's name is a letter, then up to 63 letters, digits, `_`, `-` or `.`"
            self._find(text, "tools", name)

    def _check_kind(self, name: str, shape: ToolShape, servers: Collection[str]) -> None:
        kinds = [kind for kind in ("command", "python", "server") if getattr(shape, kind)]
        for kind in shape.model_fields_set & {"command", "python", "server", "tool"}:
            if getattr(shape, kind) is None:
                self._find(NO_VALUE, "tools", name, kind)
        if len(kinds) != 1:
            text = "a tool has either `command`, or `python`, or `server` with `tool`"
            self._find(text, "tools", name)
        elif (shape.server is None) != (shape.tool is None):
            self._find("`server` and `tool` belong together", "tools", name)
        if shape.server is not None and shape.server not in servers:
            text = f"unknown server {quoted(shape.server)}{meant(shape.server, servers)}"
            self._find(text, "tools", name, "server")
        for parameter in shape.parameters or () if shape.command else ():
            if parameter not in _placeholders(shape):
                text = f"is not in `command`; write {{{parameter}}} there"
                self._find(text, "tools", name, "parameters", parameter)

    def _check_writes(self, name: str, shape: ToolShape) -> None:
        if shape.writes is not None and shape.writes == shape.read_only:
            self._find("`writes` and `read_only` contradict each other", "tools", name, "read_only")
        elif shape.validation is not None and shape.writes:
            text = "a validation only looks; what it writes in a sandbox is taken back"
            self._find(text, "tools", name, "writes")
        elif shape.write_scope and not _writes(shape):
            text = "a tool that does not write has no write_scope"
            self._find(text, "tools", name, "write_scope")

    def _check_reads(self, name: str, shape: ToolShape) -> None:
        if shape.reads is not None and shape.validation is not None:
            text = "a validation judges everything, and is run again after every correction"
            self._find(text, "tools", name, "reads")
        known = [parameter.name for parameter in _parameters(shape)]
        for position, entry in enumerate(shape.reads or ()):
            for placeholder in PLACEHOLDER.findall(entry):
                if placeholder not in known:
                    text = f"{quoted(placeholder)} is no parameter{meant(placeholder, known)}"
                    self._find(text, "tools", name, "reads", position)

    def _check_compensation(self, name: str, shape: ToolShape, others: Collection[str]) -> None:
        if shape.compensate is None:
            return
        loc = ("tools", name, "compensate")
        if shape.compensate == name:
            self._find("a tool cannot undo itself; name another", *loc)
        elif shape.compensate in self.builtin_names:
            # They work in the sandboxes only, where a rollback restores everything anyway.
            self._find("a built-in tool undoes nothing outside; name one of the action's own", *loc)
        elif shape.compensate not in others:
            text = f"unknown tool {quoted(shape.compensate)}{meant(shape.compensate, others)}"
            self._find(text, *loc)

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
                    self._find(text, "tools", spec.name, "compensate")

    def _place(self, given: str | None, resource_names: Collection[str], loc: Loc) -> str | None:
        if given is None and len(resource_names) == 1:
            return next(iter(resource_names))
        if given is None:
            self._find("say in which resource the command runs", *loc)
        elif given not in resource_names:
            suggestion = meant(given, resource_names)
            self._find(f"unknown resource {quoted(given)}{suggestion}", *loc)
        return given

    # --- steps ----------------------------------------------------------------------------------

    def steps(
        self, raw: object, loc: Loc, around: Surroundings, earlier: Sequence[Step] = ()
    ) -> Mapping[int, Step]:
        """The usable ones by their position; `earlier` ones come before them."""
        steps: dict[int, Step] = {}
        items = cast("list[object]", raw) if isinstance(raw, list) else []
        children = SubplanRules(findings=self.findings, read_steps=self.steps)
        for index, item in enumerate(items):
            here = (*loc, index)
            spawns = SUBPLANS in _keys(item)
            step = children.spawn(item, here, around) if spawns else self._step(item, here)
            if step is not None:
                steps[index] = step
        self._check_uses(steps, loc, [step.name for step in earlier])
        return steps

    def validations(self, raw: object, tools: Sequence[ToolSpec]) -> Mapping[int, Step]:
        """Those that the file lists, by their position, and after them every other tool that is
        one: marking it is enough to have it run."""
        items = cast("list[object]", raw) if isinstance(raw, list) else []
        found = {i: self._step(item, ("validations", i)) for i, item in enumerate(items)}
        listed = {index: step for index, step in found.items() if step is not None}
        marked = [spec.name for spec in tools if spec.validation is not None]
        for index, step in listed.items():
            if step.tool not in marked:
                text = (
                    f"{quoted(step.tool)} is no tool with `validation:`{meant(step.tool, marked)}"
                )
                self._find(text, "validations", index, "tool")
        known = {step.tool for step in listed.values()}
        rest = [Step(name=name, tool=name) for name in marked if name not in known]
        return {**listed, **dict(enumerate(rest, len(items)))}

    def _step(self, raw: object, loc: Loc) -> Step | None:
        shape = shaped(StepShape, raw, loc, self.findings)
        if shape is None:
            return None
        return Step(
            name=shape.name or shape.tool,
            tool=shape.tool,
            arguments=shape.arguments,
            uses=tuple(shape.uses),
        )

    def _check_uses(self, steps: Mapping[int, Step], loc: Loc, earlier: Sequence[str]) -> None:
        """Only earlier steps can be used, so that there is no way to go in circles."""
        names = {step.name for step in steps.values()}
        before = Counter(earlier)
        wrong = 0
        for index, step in steps.items():
            for position, name in enumerate(step.uses):
                # What was meant is looked for among all names: for those that people are shown.
                text = _use_problem(name, before, names, suggest=wrong < MOST_FINDINGS)
                if text:
                    self._find(text, *loc, index, "uses", position)
                    wrong += 1
            before[step.name] += 1

    def _find(self, text: str, *loc: str | int) -> None:
        self.findings.append(Mistake(loc=loc, text=text))


def _use_problem(
    name: str, earlier: Mapping[str, int], names: Set[str], *, suggest: bool
) -> str | None:
    """`earlier` says how many steps before it have which name, `names` what any is called."""
    if name in earlier:
        if earlier[name] == 1:
            return None
        return f"several earlier steps are called {quoted(name)}; give each its own name"
    if name in names:
        return f"{quoted(name)} is no earlier step; a step can only use what ran before it"
    return f"there is no step {quoted(name)}{meant(name, earlier) if suggest else ''}"


def _tool_spec(name: str, shape: ToolShape, resource: str | None) -> ToolSpec:
    writes = _writes(shape)
    return ToolSpec(
        name=name,
        description=shape.description,
        parameters=_parameters(shape),
        writes=writes,
        checkpointable=writes if shape.checkpointable is None else shape.checkpointable,
        write_scope=tuple(shape.write_scope),
        reads=None if shape.reads is None else tuple(shape.reads),
        side_effects=tuple(shape.side_effects),
        idempotent=shape.idempotent,
        compensate=shape.compensate,
        timeout=shape.timeout,
        command=tuple(shape.command or ()),
        resource=resource,
        validation=Validation(shape.validation) if shape.validation else None,
        python=shape.python,
        server=shape.server,
        remote=shape.tool,
        open_ended=shape.command is None and shape.parameters is None,
    )


def _placeholders(shape: ToolShape) -> Sequence[str]:
    found = [match for part in shape.command or () for match in PLACEHOLDER.findall(part)]
    return list(dict.fromkeys(found))


def _parameters(shape: ToolShape) -> tuple[Parameter, ...]:
    """Those that the file describes, and every placeholder of the command."""
    told = shape.parameters or {}
    names = dict.fromkeys((*_placeholders(shape), *told))
    return tuple(
        Parameter(
            name=name,
            type=told[name].type,
            required=told[name].required,
            description=told[name].description,
        )
        if name in told
        else Parameter(name=name)
        for name in names
    )


def _keys(raw: object) -> Collection[object]:
    return cast("dict[object, object]", raw) if isinstance(raw, dict) else ()


def _writes(shape: ToolShape) -> bool:
    # A tool that does not say is assumed to write: a needless checkpoint costs little.
    if shape.validation is not None:
        return bool(shape.writes)
    return shape.writes if shape.writes is not None else not shape.read_only
