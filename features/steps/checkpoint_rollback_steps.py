"""The steps of the checkpoint feature: each calls a service or a builder, or compares."""

import hashlib
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from behave import given, step, then, when
from behave.runner import Context
from tests.support.containers import make_container
from tests.support.trees import tree_of
from tests.support.world import Step, action, shell, write

from cleveragents.container import Container
from cleveragents.domain.apply import ApplyOptions
from cleveragents.domain.checkpoint import CheckpointGroup
from cleveragents.domain.errors import PlanError
from cleveragents.domain.plan import Plan
from cleveragents.infrastructure.clock import SystemClock
from cleveragents.infrastructure.database.fence import HeldLeases
from cleveragents.infrastructure.locks.plan_locks import FilePlanLocks

# --- given --------------------------------------------------------------------------------------


@given('the triggers "{names}"')
def some_triggers(context: Context, names: str) -> None:
    context.settings["CLEVERAGENTS_CHECKPOINT_AUTO_CREATE_ON"] = names


@given('the triggers ""')
def no_triggers(context: Context) -> None:
    some_triggers(context, "")


@given('a plan that writes "{one}" and then "{two}"')
def plan_that_writes(context: Context, one: str, two: str) -> None:
    use(context, [write(one, one, f"write {one}"), write(two, two, f"write {two}")])


@given('a plan that reads "{name}"')
def plan_that_reads(context: Context, name: str) -> None:
    use(context, [{"name": "read", "tool": "file.read", "with": {"path": name}}])


@given('a plan that writes "{one}" and then fails halfway through "{two}"')
def plan_that_fails(context: Context, one: str, two: str) -> None:
    use(context, [write(one, one), shell(f"echo half > {two}; false")])


@given("a plan that writes {count:d} files and waits after the first")
def plan_that_waits(context: Context, count: int) -> None:
    context.over = context.world.top / "over"
    files = [write(f"file{index}", "x") for index in range(count)]
    use(context, [files[0], shell(f"test -e {context.over}"), *files[1:]])


@given('a plan without checkpoints that writes "{name}"')
def plan_without_checkpoints(context: Context, name: str) -> None:
    use(context, [write(name, name)], rollback_policy={"enabled": False})


@given('a plan without checkpoints that fails halfway through "{name}" until it may go on')
def plan_without_checkpoints_that_fails(context: Context, name: str) -> None:
    context.over = context.world.top / "over"
    steps = [shell(f"echo half >> {name}; test -e {context.over}")]
    use(context, steps, rollback_policy={"enabled": False})


# --- when ---------------------------------------------------------------------------------------


@step("the plan is executed")
def execute(context: Context) -> None:
    container(context).plan_resume_service.run(context.plan_id)


@step('the plan is rolled back to "{name}"')
def roll_back(context: Context, name: str) -> None:
    service = container(context).rollback_service
    context.result = service.rollback(context.plan_id, name, lambda _: True)


@when('the plan is rolled back to the group with the reason "{reason}"')
def roll_back_to_reason(context: Context, reason: str) -> None:
    roll_back(context, _with_reason(context, reason)[0].group_id)


@when("the rollback is undone")
def undo(context: Context) -> None:
    roll_back(context, context.result.undo_group.group_id)


@step("the plan is applied")
def apply(context: Context) -> None:
    options = ApplyOptions(message="done", branch=None, commit=True)
    container(context).apply_service.apply(context.plan_id, options, lambda _: True)


@step('a checkpoint is made by hand with the label "{label}"')
def checkpoint_by_hand(context: Context, label: str) -> None:
    container(context).manual_checkpoints.create(context.plan_id, label)


@when("the wait is over and the plan is executed")
def wait_is_over(context: Context) -> None:
    context.over.touch()
    execute(context)


@when('somebody asks what going back to "{name}" would do')
def look_ahead(context: Context, name: str) -> None:
    context.before = (files(context), context.world.records())
    context.preview = container(context).rollback_service.preview(context.plan_id, name)


@when('"{path}" alone is brought back from "{name}"')
def bring_back(context: Context, path: str, name: str) -> None:
    service = container(context).rollback_service
    context.result = service.rollback(context.plan_id, name, lambda _: True, [path])


@when('another checkpoint is to be made with the label "{label}"')
def checkpoint_again(context: Context, label: str) -> None:
    context.before = (files(context), context.world.records())
    try:
        checkpoint_by_hand(context, label)
    except PlanError as error:
        context.refusal = error


@when("nothing happens")
def nothing(context: Context) -> None:
    """For the rows of an outline that need no accident."""


@when("the sandbox is deleted")
def delete_sandbox(context: Context) -> None:
    shutil.rmtree(_sandbox(context))


@when("the sandbox becomes a link")
def link_sandbox(context: Context) -> None:
    elsewhere = context.world.top / "elsewhere"
    sandbox = _sandbox(context)
    sandbox.rename(elsewhere)
    sandbox.symlink_to(elsewhere)


@when("the plan is cancelled")
def cancel(context: Context) -> None:
    container(context).plan_service.cancel(context.plan_id)


@when("another plan has a checkpoint")
def another_plan(context: Context) -> None:
    mine = context.plan_id
    use(context, [write("other.txt", "x")])
    execute(context)
    context.named = {"its head": _plan(context).head}
    context.plan_id = mine


@when('the plan is at its start, and the stored "{name}" is damaged')
def damage(context: Context, name: str) -> None:
    context.world.agents("plan", "rollback", "--yes", context.plan_id, "start").ok()
    key = hashlib.sha256(name.encode()).digest()
    file = context.world.agents.data_dir / "snapshots" / f"{context.plan_id}.db"
    with closing(sqlite3.connect(file)) as database:
        changed = database.execute("UPDATE contents SET data=x'00' WHERE hash=?", (key,)).rowcount
        database.commit()
    assert changed == 1


@when("somebody else holds the lock")
def hold_lock(context: Context) -> None:
    # To the kernel, another open file is as good as another process.
    locks = FilePlanLocks(str(context.world.agents.data_dir / "locks"), SystemClock(), HeldLeases())
    holder = ExitStack()
    holder.enter_context(locks.hold(context.plan_id, "execute"))
    context.add_cleanup(holder.close)


@when('the plan is asked to go back to "{name}"')
def ask_back(context: Context, name: str) -> None:
    wanted = getattr(context, "named", {}).get(name, name)
    context.before = (files(context), context.world.records())
    try:
        roll_back(context, wanted)
    except PlanError as error:
        context.refusal = error


# --- then ---------------------------------------------------------------------------------------


@then('there are {count:d} groups with the reason "{reason}"')
@then('there is {count:d} group with the reason "{reason}"')
def groups_with_reason(context: Context, count: int, reason: str) -> None:
    assert len(_with_reason(context, reason)) == count, groups(context)


@then("there are {count:d} groups in all")
def groups_in_all(context: Context, count: int) -> None:
    assert len(groups(context)) == count, groups(context)


@then("each decision of the plan has a group of its own")
def decisions_have_groups(context: Context) -> None:
    history = container(context).plan_queries.history(context.plan_id)
    made = [group.decision_id for group in _with_reason(context, "decision")]
    assert made == [decision.decision_id for decision in history.decisions]


@then("the plan stands on the newest group")
def stands_on_newest(context: Context) -> None:
    assert _plan(context).head == groups(context)[-1].head


@then('the plan stands on the group "{label}"')
def stands_on(context: Context, label: str) -> None:
    group = container(context).checkpoint_service.get_checkpoint(context.plan_id, label)
    assert _plan(context).head == group.head


@then('"{one}" and "{two}" would be removed')
def would_be_removed(context: Context, one: str, two: str) -> None:
    found = {item.file: item.action for item in context.preview.reverted}
    assert found == {one: "removed", two: "removed"}, found


@then("nothing has changed")
def nothing_changed(context: Context) -> None:
    assert (files(context), context.world.records()) == context.before


@then('there is a group labelled "{label}"')
def group_labelled(context: Context, label: str) -> None:
    assert label in [group.label for group in groups(context)]


@then('the plan is "{state}"')
def plan_is(context: Context, state: str) -> None:
    assert _plan(context).state == state, _plan(context)


@then('the sandbox has "{name}"')
def sandbox_has(context: Context, name: str) -> None:
    assert name.encode() in tree_of(_sandbox(context))


@then('the sandbox does not have "{name}"')
def sandbox_has_not(context: Context, name: str) -> None:
    assert name.encode() not in tree_of(_sandbox(context))


@then("the sandbox is as it was at the start")
def sandbox_as_at_start(context: Context) -> None:
    assert tree_of(_sandbox(context)) == context.world.replay([])[0]


@then("{decisions:d} decisions and {calls:d} tool calls were discarded")
def discarded(context: Context, decisions: int, calls: int) -> None:
    assert context.result.decisions_discarded == decisions
    assert context.result.tool_calls_undone == calls


@then("no decision is superseded")
def none_superseded(context: Context) -> None:
    history = container(context).plan_queries.history(context.plan_id)
    assert not any(decision.superseded for decision in history.decisions)


@then("the user's project is as it was")
def project_untouched(context: Context) -> None:
    assert context.world.project.fingerprint() == context.project_before


@then('the project has one more commit with "{one}" and "{two}"')
def project_has_commit(context: Context, one: str, two: str) -> None:
    project = context.world.project
    assert project.git("rev-parse", "HEAD^") == context.head_before
    assert project.git("diff", "--name-only", "HEAD^", "HEAD").splitlines() == [one, two]


@then('it is refused as "{code}"')
def refused_as(context: Context, code: str) -> None:
    assert context.refusal is not None, "it was not refused"
    assert context.refusal.code == code, context.refusal
    assert (files(context), context.world.records()) == context.before


@then("the message says what to do")
def says_what_to_do(context: Context) -> None:
    assert context.refusal.message
    assert context.refusal.hint


# --- what the steps are made of -----------------------------------------------------------------


def use(context: Context, steps: Sequence[Step], **keys: object) -> None:
    world = context.world
    context.project_before = world.project.fingerprint()
    context.head_before = world.project.head
    path = world.write_action(action(*steps, **keys))
    used = container(context).plan_service.use(path, {}, include_uncommitted=False)
    context.plan_id = used.plan.plan_id


def container(context: Context) -> Container:
    """A new one each time, as each command of the program has."""
    return make_container(context.world, **context.settings)


def _plan(context: Context) -> Plan:
    return container(context).plan_queries.get(context.plan_id)


def groups(context: Context) -> Sequence[CheckpointGroup]:
    return container(context).checkpoint_service.list_checkpoints(context.plan_id)


def _with_reason(context: Context, reason: str) -> list[CheckpointGroup]:
    return [group for group in groups(context) if group.reason == reason]


def _sandbox(context: Context) -> Path:
    resources = container(context).plan_queries.status(context.plan_id).resources
    return Path(resources[0].sandbox_path)


def files(context: Context) -> object:
    if not hasattr(context, "plan_id"):
        return None
    with suppress(FileNotFoundError):
        return tree_of(_sandbox(context))
    return None
