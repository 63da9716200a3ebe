"""The steps of the feature about outside effects: mails are lines in a file outside."""

from typing import Any

from behave import given, then, when
from behave.runner import Context
from checkpoint_rollback_steps import container, use
from tests.support.world import shell

from cleveragents.domain.effects import EffectChoice
from cleveragents.domain.errors import PlanError


@given("a plan that sends a mail")
def plan_with_mail(context: Context) -> None:
    _use_mail(context)


@given("a plan that sends a mail and then fails")
def plan_with_bad_mail(context: Context) -> None:
    _use_mail(context, after="; false")


@given("a plan with {count:d} new tries that sends a mail and then fails")
def plan_with_bad_mail_and_tries(context: Context, count: int) -> None:
    _use_mail(context, after="; false", max_retries_per_step=count)


@given("a plan that sends a mail with an idempotent tool")
def plan_with_idempotent_mail(context: Context) -> None:
    _use_mail(context, {"idempotent": True})


@given("a plan that sends a mail which can be recalled")
def plan_with_recall(context: Context) -> None:
    _use_mail(context, {"compensate": "recall"}, recall=f"echo recalled >> {_outbox(context)}")


@given("a plan that sends a mail whose recall fails")
def plan_with_bad_recall(context: Context) -> None:
    _use_mail(context, {"compensate": "recall"}, recall="false")


@given("a plan with {count:d} new tries whose step works the third time")
@given("a plan with {count:d} new try whose step works the third time")
def plan_with_tries(context: Context, count: int) -> None:
    tally = context.world.beside / "tally"
    command = f"echo x >> {tally}; test $(wc -l < {tally}) -ge 3"
    use(context, [shell(command, "flaky")], max_retries_per_step=count)


@when("the plan is asked to go on")
def ask_to_go_on(context: Context) -> None:
    try:
        container(context).plan_resume_service.run(context.plan_id)
    except PlanError as error:
        context.refusal = error


@when('the plan goes on with the answer "{answer}"')
def go_on_with(context: Context, answer: str) -> None:
    container(context).plan_resume_service.run(context.plan_id, EffectChoice(answer))


@then('it stops with "{code}"')
def stops_with(context: Context, code: str) -> None:
    assert context.refusal is not None, "it did not stop"
    assert context.refusal.code == code
    for choice in ("repeat", "skip"):
        assert f"--effects {choice} {context.plan_id}" in context.refusal.hint


@then('it tells "{text}"')
def tells(context: Context, text: str) -> None:
    told = context.result.effects.sentences()
    assert any(sentence.startswith(text) for sentence in told), told


@then("{count:d} mail was sent")
@then("{count:d} mails were sent")
def mails_sent(context: Context, count: int) -> None:
    assert _lines(context, "sent") == count


@then("{count:d} mail was recalled")
def mails_recalled(context: Context, count: int) -> None:
    assert _lines(context, "recalled") == count


@then('the ledger says "{states}"')
def ledger_says(context: Context, states: str) -> None:
    found = container(context).plan_queries.effects(context.plan_id)
    assert ", ".join(effect.state for effect in found.effects) == states


def _use_mail(
    context: Context,
    keys: dict[str, Any] | None = None,
    after: str = "",
    recall: str = "true",
    **action_keys: Any,
) -> None:
    send = ["sh", "-c", f"echo sent >> {_outbox(context)}{after}"]
    tools = {
        "mail": {"command": send, "side_effects": ["a mail"], **(keys or {})},
        "recall": {"command": ["sh", "-c", recall]},
    }
    use(context, [{"name": "mail", "tool": "mail"}], tools=tools, **action_keys)


def _outbox(context: Context) -> Any:
    return context.world.beside / "outbox"


def _lines(context: Context, word: str) -> int:
    return _outbox(context).read_text().splitlines().count(word)
