"""The steps of the trigger feature: choosing triggers, and plans that cannot have checkpoints."""

from typing import Any

from behave import given, then, when
from behave.runner import Context
from checkpoint_rollback_steps import container, files, groups, roll_back, some_triggers, use
from tests.support.world import shell, write

from cleveragents.config import ConfigProblem, load_settings
from cleveragents.domain.checkpoint import Trigger
from cleveragents.domain.errors import PlanError

KEY = "sandbox.checkpoint.auto-create-on"
WITHOUT: dict[str, dict[str, Any]] = {
    "a tool that cannot be checkpointed": {
        "steps": [{"name": "d", "tool": "deploy"}],
        "tools": {"deploy": {"command": ["touch", "deployed"], "checkpointable": False}},
    },
    "a resource that cannot be checkpointed": {
        "steps": [write("one.txt", "1")],
        "resources": {"code": {"type": "git-checkout", "path": ".", "checkpointable": False}},
    },
}


@given('the project\'s config chooses the triggers "{names}"')
def project_triggers(context: Context, names: str) -> None:
    context.world.agents("config", "set", "--project", KEY, names).ok()


@given('the project\'s config chooses the triggers ""')
def project_without_triggers(context: Context) -> None:
    project_triggers(context, "")


@given('a plan that writes "{one}", reads it, and fails halfway through "{two}"')
def plan_of_all_kinds(context: Context, one: str, two: str) -> None:
    read = {"name": "read", "tool": "file.read", "with": {"path": one}}
    use(context, [write(one, one, "write"), read, shell(f"echo half > {two}; false", "fail")])


@given('a plan whose children write "{one}" and then "{two}"')
def plan_with_children(context: Context, one: str, two: str) -> None:
    plans = [{"name": name.partition(".")[0], "steps": [write(name, name)]} for name in (one, two)]
    use(context, [{"name": "spawn", "subplans": {"plans": plans}}])


@given("a plan with {what} that does not require checkpoints")
def plan_without_requirement(context: Context, what: str) -> None:
    use(context, **WITHOUT[what], rollback_policy={"require_checkpoints": False})


@when("a plan with {what} is asked for")
def ask_for_plan(context: Context, what: str) -> None:
    context.before = (None, context.world.records())
    try:
        use(context, **WITHOUT[what])
    except PlanError as error:
        context.refusal = error


@when('the plan is rolled back to the last group with the reason "{reason}"')
def roll_back_to_last(context: Context, reason: str) -> None:
    last = [group for group in groups(context) if group.reason == reason][-1]
    roll_back(context, last.group_id)


@when('the triggers "{names}" are chosen')
def choose(context: Context, names: str) -> None:
    some_triggers(context, names)
    try:
        container(context)
    except ConfigProblem as problem:
        context.refusal = problem


@then('the triggers in force are "{names}"')
def in_force(context: Context, names: str) -> None:
    world = context.world
    loaded = load_settings(
        {**world.agents.environ, **context.settings},
        home=str(world.home),
        cwd=str(world.project.path),
        flags={},
        config_path=None,
    )
    assert ",".join(loaded.settings.auto_create_on) == names


@then("beside those of the decisions there are exactly the groups")
def exactly(context: Context) -> None:
    expected = [name.strip() for name in context.text.replace("\n", " ").split(",")]
    made = [group.label for group in groups(context) if group.reason != "decision"]
    assert made == [name for name in expected if name != "-"], made


@then("the groups after the first hold no resource")
def no_resource(context: Context) -> None:
    assert all(len(group.checkpoints) == 1 for group in groups(context)[1:])
    assert sum(group.size_bytes for group in groups(context)[1:]) == 0


@then('it is refused because "{name}" is no trigger')
def no_trigger(context: Context, name: str) -> None:
    assert f"'{name}' is not a trigger" in context.refusal.problem


@then("the message lists every trigger")
def lists_all(context: Context) -> None:
    assert all(trigger.value in context.refusal.problem for trigger in Trigger)


@then('the message contains "{text}"')
def message_contains(context: Context, text: str) -> None:
    assert text in context.refusal.message, context.refusal.message


@then("there is no plan")
def no_plan(context: Context) -> None:
    assert not container(context).plan_queries.list().plans
    assert context.world.project.traces() == []
    assert not files(context)
