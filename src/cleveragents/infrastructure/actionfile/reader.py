"""The reading of action files: YAML to Action, or every mistake with its line."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from cleveragents.application.ports.actors import ActionSurvey
from cleveragents.domain.action import Action, Step
from cleveragents.domain.errors import ActionFileError, ActionNotFoundError, StepFileError
from cleveragents.domain.tool_schema import CallProblem
from cleveragents.infrastructure.actionfile.model import Mistake, Mistakes, SourcePlace, list_of
from cleveragents.infrastructure.actionfile.rules import (
    ActionRules,
    PlacedCall,
    Surroundings,
    resource_not_given,
)
from cleveragents.infrastructure.actionfile.sections import STEP, ActionKeys
from cleveragents.infrastructure.actionfile.yaml_nodes import (
    Document,
    YamlProblem,
    YamlProblemError,
    line_of,
    parse_yaml,
    path_text,
)

MAX_BYTES = 1024 * 1024
# One broken line can make thousands of mistakes; nobody reads more than these.
MOST_PROBLEMS = 50

StepCheck = Callable[[Action, Step], Sequence[CallProblem]]
T = TypeVar("T")


class FileReading(NamedTuple):
    """One file on its way to a value, or to the listing of what is wrong with it."""

    path: str
    refusal: type[ActionFileError] | type[StepFileError]
    document: Document
    top: SourcePlace
    rules: ActionRules

    def result(self, value: T | None) -> T:
        """The value, if there was no mistake."""
        mistakes = self.top.mistakes.found
        problems = [*self.document.problems, *(_located(self.document, one) for one in mistakes)]
        if problems or value is None:
            raise self.refusal(self.path, _listing(problems))
        return value


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

    def read(
        self, path: str, overrides: Mapping[str, str], survey: ActionSurvey | None = None
    ) -> Action:
        reading = self._begin(path, ActionFileError, overrides)
        top = ActionKeys.rule().read(reading.document.value, reading.top)
        action = reading.rules.action(top) if top else None
        if action:
            self._check_calls(action, reading)
        if action and survey:
            _survey(action, survey, reading.top)
        return reading.result(action)

    def read_step(self, path: str, action: Action, index: int) -> Step:
        """As it would be in the action file, in the place of step `index`, whose name it keeps."""
        reading = self._begin(path, StepFileError)
        old, raw = action.steps[index].name, reading.document.value
        if isinstance(raw, dict):
            raw = {"name": old, **cast("dict[str, Any]", raw)}
        around = Surroundings([spec.name for spec in action.resources])
        keys = STEP.read(raw, reading.top)
        steps = reading.rules.steps([keys] if keys else [], around, action.steps[:index])
        for step in steps:
            self._check_calls(action.with_step(index, step), reading)
            if step.name != old and any(old in other.uses for other in action.steps[index + 1 :]):
                text = f"a later step uses `{old}` by that name, so it must keep it"
                reading.top.at("name").wrong(text)
        return reading.result(steps[0] if steps else None)

    def read_steps(self, path: str, action: Action) -> Sequence[Step]:
        reading = self._begin(path, StepFileError)
        raw = reading.document.value
        if isinstance(raw, list):
            sections = list_of(STEP).read(cast("object", raw), reading.top) or ()
        else:
            sections = [keys for keys in [STEP.read(raw, reading.top)] if keys]
        around = Surroundings([spec.name for spec in action.resources], level=1)
        steps = reading.rules.steps(sections, around)
        self._check_calls(action, reading)
        if not steps and not reading.top.mistakes.found:
            raise StepFileError(path, ["line 1: there is no step in it"])
        return reading.result(steps)

    def _begin(
        self,
        path: str,
        refusal: type[ActionFileError] | type[StepFileError],
        overrides: Mapping[str, str] | None = None,
    ) -> FileReading:
        content = self._content(path)
        try:
            document = parse_yaml(_decoded(content))
        except YamlProblemError as error:
            raise refusal(path, _listing(error.problems)) from error
        top = SourcePlace((), Mistakes())
        rules = ActionRules(
            base_dir=self._base_dir,
            builtin_names=self._builtin_names,
            overrides=overrides or {},
            mistakes=top.mistakes,
        )
        return FileReading(path, refusal, document, top, rules)

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

    def _check_calls(self, action: Action, reading: FileReading) -> None:
        """Every call against its tool. What rests on a part of the file that has mistakes in it is
        left out: a right step would look wrong."""
        mistakes = reading.top.mistakes.found
        uncertain = {mistake.loc[0] for mistake in mistakes if mistake.loc}
        for call in reading.rules.calls:
            if call.step.tool in reading.rules.unread_tools:
                continue
            shaky = uncertain if call.around.certain else uncertain | {"resources"}
            for problem in self._call_problems(action, call):
                if shaky.isdisjoint(problem.rests_on):
                    within = () if problem.argument is None else ("with", problem.argument)
                    call.keys.find(problem.text, *within)

    def _call_problems(self, action: Action, call: PlacedCall) -> Sequence[CallProblem]:
        if call.around.level == 0:
            return self._check_step(action, call.step)
        given = [spec for spec in action.resources if spec.name in call.around.resources]
        child = replace(action, resources=tuple(given))
        if text := resource_not_given(action, child, call.step):
            return [CallProblem(text=text, rests_on=("resources",))]
        return self._check_step(child, call.step)


def _survey(action: Action, survey: ActionSurvey, top: SourcePlace) -> None:
    for name, text in survey.resource_problems(action.resources):
        top.at("resources", name).wrong(text)
    # What is made of a file with mistakes may lack what tells one actor from another.
    if not top.mistakes.found and (text := survey.actor_problem(action)):
        top.at("actor").wrong(text)


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise YamlProblemError([YamlProblem(line=line, text="this is not UTF-8 text")]) from error


def _located(document: Document, mistake: Mistake) -> YamlProblem:
    if str(mistake.loc[0] if mistake.loc else "").startswith("--"):
        return YamlProblem(line=0, text=f"{mistake.loc[0]}: {mistake.text}")
    where = path_text(mistake.loc) or "the top level"
    return YamlProblem(line=line_of(document.lines, mistake.loc), text=f"{where}: {mistake.text}")


def _listing(problems: Sequence[YamlProblem]) -> Sequence[str]:
    # In the order they were found where a file has only one line, as JSON may.
    by_place = sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column))
    ordered = [str(problem) for problem in by_place]
    if len(ordered) <= MOST_PROBLEMS:
        return ordered
    return [*ordered[:MOST_PROBLEMS], "... and more"]
