"""The reading of action files: YAML to Action, or every problem with its line."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cleveragents.domain.action import SCRIPTED, Action, ActorSpec, Step
from cleveragents.domain.errors import ActionFileError, ActionNotFoundError, StepFileError
from cleveragents.infrastructure.actionfile.actors import actor_spec
from cleveragents.infrastructure.actionfile.rules import RuleContext
from cleveragents.infrastructure.actionfile.shapes import (
    MOST_FINDINGS,
    NO_VALUE,
    ActionShape,
    Mistake,
    quoted,
    shaped,
)
from cleveragents.infrastructure.actionfile.subplans import (
    Loc,
    Surroundings,
    child_steps,
    not_given,
)
from cleveragents.infrastructure.actionfile.yaml_nodes import (
    Document,
    YamlProblem,
    YamlProblemError,
    line_of,
    parse_yaml,
    path_text,
    plain,
)

MAX_BYTES = 1024 * 1024

# Sections on which steps stand.
_STANDING_ON = {("resources",), ("tools",), ("mcp_servers",)}

StepCheck = Callable[[Action, Step], Sequence[str]]


class YamlActionReader:
    """Implements the port ActionReader.

    `base_dir` is where the command runs; `check_step` says what is wrong with a step's tool and
    arguments, which only those who run the tools know.
    """

    def __init__(
        self, *, base_dir: str, builtin_names: Collection[str], check_step: StepCheck
    ) -> None:
        self._base_dir = base_dir
        self._builtin_names = builtin_names
        self._check_step = check_step

    def read(self, path: str, overrides: Mapping[str, str]) -> Action:
        content = self._content(path)
        try:
            document = parse_yaml(_decoded(content))
        except YamlProblemError as error:
            raise ActionFileError(path, _listing(error.problems)) from error
        rules = RuleContext(
            base_dir=self._base_dir, builtin_names=self._builtin_names, overrides=overrides
        )
        action = self._action(plain(document.root), rules)
        problems = [*document.problems, *_located(document, rules.findings)]
        if problems:
            raise ActionFileError(path, _listing(problems))
        return action

    def read_step(self, path: str, action: Action, index: int) -> Step:
        try:
            document = parse_yaml(_decoded(self._content(path)))
        except YamlProblemError as error:
            raise StepFileError(path, _listing(error.problems)) from error
        raw = plain(document.root)
        rules = RuleContext(
            base_dir=self._base_dir, builtin_names=self._builtin_names, overrides={}
        )
        step = self._replacement(raw, rules, action, index)
        found = [Mistake(loc=item.loc[2:], text=item.text) for item in rules.findings]
        problems = [*document.problems, *_located(document, found)]
        if problems or step is None:
            raise StepFileError(path, _listing(problems))
        return step

    def read_steps(self, path: str, action: Action) -> Sequence[Step]:
        try:
            document = parse_yaml(_decoded(self._content(path)))
        except YamlProblemError as error:
            raise StepFileError(path, _listing(error.problems)) from error
        raw = plain(document.root)
        items = cast("list[object]", raw) if isinstance(raw, list) else [raw]
        rules = RuleContext(
            base_dir=self._base_dir, builtin_names=self._builtin_names, overrides={}
        )
        around = Surroundings(resources=[spec.name for spec in action.resources], level=1)
        steps = rules.steps(items, ("steps",), around)
        rules.findings.extend(self._step_findings(action, steps, rules.findings))
        skipped = 1 if items is raw else 2  # how much of the place is not in the file
        found = [Mistake(loc=item.loc[skipped:], text=item.text) for item in rules.findings]
        problems = [*document.problems, *_located(document, found)]
        if problems or not steps:
            none = [YamlProblem(line=1, text="there is no step in it")]
            raise StepFileError(path, _listing(problems or none))
        return tuple(steps.values())

    def _replacement(
        self, raw: object, rules: RuleContext, action: Action, index: int
    ) -> Step | None:
        """As it would be in the action file, in the place of step `index`, whose name it keeps."""
        around = Surroundings(resources=[spec.name for spec in action.resources])
        if isinstance(raw, dict):
            raw = {"name": action.steps[index].name, **cast("dict[str, Any]", raw)}
        found = rules.steps([raw], ("steps",), around, earlier=action.steps[:index])
        step = found.get(0)
        if step is None:
            return None
        changed = action.with_step(index, step)
        rules.findings.extend(self._step_findings(changed, {0: step}, rules.findings))
        old = action.steps[index].name
        if step.name != old and any(old in other.uses for other in action.steps[index + 1 :]):
            text = f"a later step uses `{old}` by that name, so it must keep it"
            rules.findings.append(Mistake(loc=("steps", 0, "name"), text=text))
        return step

    def _content(self, path: str) -> bytes:
        try:
            with Path(self._base_dir, path).open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
        except IsADirectoryError as error:
            raise ActionNotFoundError(path, "it is a folder") from error
        except FileNotFoundError as error:
            raise ActionNotFoundError(path, "there is no such file") from error
        except OSError as error:
            raise ActionNotFoundError(path, error.strerror or str(error)) from error
        except ValueError as error:
            raise ActionNotFoundError(path, "this cannot be a file's name") from error
        if len(content) > MAX_BYTES:
            raise ActionFileError(path, ["the file is larger than 1 MiB"])
        return content

    def _action(self, raw: object, rules: RuleContext) -> Action:
        """What can be made of the file; complete only if nothing was found."""
        top = shaped(ActionShape, raw, (), rules.findings)
        sections = _mapping(raw)
        resources, tools = _mapping(sections.get("resources")), _mapping(sections.get("tools"))
        resource_specs = rules.resources(resources)
        servers = rules.servers(_mapping(sections.get("mcp_servers")), resources)
        tool_specs = rules.tools(tools, resources, servers)
        # Against sections with mistakes in them, right steps would look wrong.
        trusted = not any(item.loc[:1] in _STANDING_ON for item in rules.findings)
        actor = actor_spec(sections.get("actor"), rules.findings)
        around = Surroundings(resources=list(resources))
        steps = rules.steps(sections.get("steps"), ("steps",), around)
        rules.findings.extend(_who_decides(sections, actor))
        validations = rules.validations(sections.get("validations"), tool_specs)
        action = Action(
            name=top.name if top else "",
            description=top.description if top else "",
            resources=resource_specs,
            steps=tuple(steps.values()),
            tools=tool_specs,
            rollback_policy=rules.policy(_mapping(sections.get("rollback_policy"))),
            max_retries_per_step=top.max_retries_per_step if top else None,
            confinement=rules.confinement(sections.get("confinement", {})),
            servers=servers,
            validations=tuple(validations.values()),
            actor=actor,
            invariants=tuple(top.invariants) if top else (),
        )
        if trusted:
            rules.findings.extend(self._step_findings(action, steps, rules.findings))
            rules.findings.extend(self._validation_findings(action, validations))
        return action

    def _step_findings(
        self, action: Action, steps: Mapping[int, Step], found: Sequence[Mistake]
    ) -> Iterator[Mistake]:
        # Of a step with mistakes in it the positions are not known: what is unusable was left out.
        broken = {item.loc[1] for item in found if item.loc[:1] == ("steps",) and item.loc[1:]}
        for index, step in steps.items():
            loc = ("steps", index)
            if step.subplans is None:
                yield from self._call_findings(action, step, loc)
            elif index not in broken:
                for child, one, here in child_steps(action, step, loc):
                    yield from self._child_findings(action, child, one, here)

    def _validation_findings(
        self, action: Action, validations: Mapping[int, Step]
    ) -> Iterator[Mistake]:
        for index, step in validations.items():
            # One that is not listed is run as it is marked, so that is where its mistake is.
            listed = step.name != step.tool or step.arguments
            loc: Loc = ("validations", index) if listed else ("tools", step.tool)
            yield from self._call_findings(action, step, loc)

    def _child_findings(
        self, everything: Action, child: Action, step: Step, loc: Loc
    ) -> Iterator[Mistake]:
        if step.subplans is not None:
            return
        text = not_given(everything, child, step)
        if text is not None:
            yield Mistake(loc=loc, text=text)
            return
        yield from self._call_findings(child, step, loc)

    def _call_findings(self, action: Action, step: Step, loc: Loc) -> Iterator[Mistake]:
        for sentence in self._check_step(action, step):
            yield Mistake(loc=loc, text=sentence)


def _who_decides(sections: Mapping[str, Any], actor: ActorSpec) -> Iterator[Mistake]:
    """Steps are written down, or somebody decides them; never both, never neither."""
    if not sections:
        return
    if actor.type != SCRIPTED and "steps" in sections:
        text = f"the actor {quoted(actor.type)} decides its own steps; leave one of the two out"
        yield Mistake(loc=("steps",), text=text)
    elif actor.type == SCRIPTED and sections.get("steps") is None and not _named(sections):
        text = "this key is required" if "steps" not in sections else NO_VALUE
        yield Mistake(loc=("steps",), text=f"{text}, or an `actor` that decides the steps")


def _named(sections: Mapping[str, Any]) -> bool:
    """There is an actor, though its section may have mistakes; those are told already."""
    return sections.get("actor") not in (None, SCRIPTED, {"type": SCRIPTED})


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise YamlProblemError([YamlProblem(line=line, text="this is not UTF-8 text")]) from error


def _mapping(raw: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", raw) if isinstance(raw, dict) else {}


def _located(document: Document, findings: Sequence[Mistake]) -> Iterator[YamlProblem]:
    for finding in findings:
        if str(finding.loc[0] if finding.loc else "").startswith("--"):
            yield YamlProblem(line=0, text=f"{finding.loc[0]}: {finding.text}")
            continue
        where = path_text(finding.loc) or "the top level"
        yield YamlProblem(line=line_of(document.root, finding.loc), text=f"{where}: {finding.text}")


def _listing(problems: Sequence[YamlProblem]) -> Sequence[str]:
    # In the order they were found where a file has only one line, as JSON may.
    by_place = sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column))
    ordered = [str(problem) for problem in by_place]
    if len(ordered) <= MOST_FINDINGS:
        return ordered
    return [*ordered[:MOST_FINDINGS], "... and more"]
