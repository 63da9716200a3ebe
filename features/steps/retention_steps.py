"""The steps of the checkpoint feature about pruning: limits, the passing of time, and reasons."""

import sqlite3
from contextlib import closing

from behave import given, then, when
from behave.runner import Context
from checkpoint_rollback_steps import container, files, groups


@given("groups may be {days:d} days old")
def at_most_days(context: Context, days: int) -> None:
    context.settings["CLEVERAGENTS_CHECKPOINT_MAX_AGE"] = f"{days}d"


@given("at most {count:d} groups per plan")
def at_most(context: Context, count: int) -> None:
    context.settings["CLEVERAGENTS_CHECKPOINT_MAX_PER_PLAN"] = str(count)


@when("somebody asks what pruning would do")
def explain_retention(context: Context) -> None:
    context.before = (files(context), context.world.records())
    service = container(context).manual_checkpoints
    context.explained = service.explain_retention(context.plan_id)


@when("{days:d} days have passed")
def days_pass(context: Context, days: int) -> None:
    _move_groups(context, f"-{days} days")


@when("the clock is put back by {days:d} days")
def clock_back(context: Context, days: int) -> None:
    _move_groups(context, f"+{days} days")


def _move_groups(context: Context, by: str) -> None:
    with closing(sqlite3.connect(context.world.agents.data_dir / "cleveragents.db")) as database:
        moved = "strftime('%Y-%m-%dT%H:%M:%S+00:00', created_at, ?)"
        database.execute(f"UPDATE checkpoint_groups SET created_at = {moved}", (by,))
        database.commit()


@when("the plan is pruned")
def prune(context: Context) -> None:
    container(context).manual_checkpoints.prune(context.plan_id)


@when('the group "{label}" is deleted')
def delete_group(context: Context, label: str) -> None:
    container(context).manual_checkpoints.delete(context.plan_id, label)


@then("there are at most {count:d} states beside the newest")
def states_in_all(context: Context, count: int) -> None:
    states = [group.state_hash for group in groups(context)]
    assert 0 < len({*states} - {states[-1]}) <= count, states


@then('"{label}" would stay because it is "{reason}"')
def would_stay(context: Context, label: str, reason: str) -> None:
    group = next(item for item in context.explained.groups if item.label == label)
    assert context.explained.decision.kept[group.group_id] == reason


@then('"{label}" would go because of "{reason}"')
def would_go(context: Context, label: str, reason: str) -> None:
    group = next(item for item in context.explained.groups if item.label == label)
    assert context.explained.decision.removed[group.group_id] == reason
