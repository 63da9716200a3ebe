"""The actor that asks a language model: one request for each decision, its tools run by us."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic_ai.messages import (
    ModelMessage,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

from cleveragents.application.ports.runtime import EventSink, Tools
from cleveragents.domain.action import Action, Step
from cleveragents.domain.actor_protocol import (
    HEAD,
    Finished,
    Memory,
    Proposal,
    Situation,
    StepOutcome,
    Strategy,
)
from cleveragents.domain.errors import (
    ActorError,
    BudgetExhaustedError,
    ModelAnswerError,
    ModelDeclinedError,
)
from cleveragents.domain.events import ActorThinking
from cleveragents.infrastructure.actors.llm.client import ModelClient, Question
from cleveragents.infrastructure.actors.llm.conversation import (
    Conversation,
    Doing,
    from_text,
    sound_text,
)
from cleveragents.infrastructure.actors.llm.prompts import (
    ABANDONED,
    CUT_OFF,
    EMPTY,
    OUTLINE,
    OVERRULED,
    WITHHELD,
    news_of,
    result_of,
    rules_for,
)
from cleveragents.infrastructure.actors.llm.tool_offer import Offer, UnusableCallError

_MOST_UNUSABLE = 3
# As many as plans run at the same time, and a few more.
_MOST_RECALLED = 128
_UNUSABLE = {"length": CUT_OFF, "content_filter": WITHHELD, "error": WITHHELD}
_UNSAID = "the model gave no reason"


class Budget(Struct, frozen=True, kw_only=True):
    """What the settings allow; None leaves it to the action."""

    max_tokens: int | None = None
    max_cost: float | None = None


class LlmActor:
    def __init__(
        self, client: ModelClient, tools: Tools, events: EventSink, budget: Budget
    ) -> None:
        self._client = client
        self._tools = tools
        self._events = events
        self._budget = budget
        # The conversations of running plans by their heads, so that they are not read and parsed
        # again for each step.
        self._recalled: dict[str, tuple[ModelMessage, ...]] = {}

    def strategize(self, situation: Situation) -> Strategy:
        known = tuple(step.name for step in situation.action.steps)
        if HEAD in situation.state or not situation.action.actor.options.get("strategize"):
            return Strategy(steps=known)
        talk = self._up_to_now(situation).told(OUTLINE)
        talk = self._ask(situation, talk, with_tools=False)
        answer = talk.last_answer
        return Strategy(
            steps=known,
            chosen=answer.text or _UNSAID,
            memory=replace(talk, calls=()).memory,
        )

    def decide(self, situation: Situation) -> Proposal | Finished:
        talk = self._up_to_now(situation)
        if talk.calls:
            # The model asked for several things at once: one step each, without asking again.
            try:
                return self._proposal(situation, talk)
            except UnusableCallError as error:
                talk = talk.without_calls(str(error))
        problem = ""
        for _ in range(_MOST_UNUSABLE):
            talk = self._ask(situation, talk, with_tools=True)
            try:
                return self._meaning(situation, talk)
            except UnusableCallError as error:
                problem = str(error)
            talk = talk.without_calls(problem) if talk.calls else talk.told(problem)
        raise ModelAnswerError(situation.plan_id, problem)

    def observe(self, action: Action, state: Mapping[str, Any], outcome: StepOutcome) -> Memory:  # noqa: ARG002
        # What was said before is not needed to add to it; if it is known, it is so afterwards.
        known = self._recalled.get(state.get(HEAD, ""))
        talk = _heard(Conversation.of(state, known or ()), outcome)
        if known:
            self._remember(talk)
        return talk.memory

    # --- the conversation -----------------------------------------------------------------------

    def _up_to_now(self, situation: Situation) -> Conversation:
        """What was said so far, with everything that the model has not heard yet."""
        talk = Conversation.of(situation.state, self._recall(situation))
        if talk.head is None:
            talk = talk.saying(
                SystemPromptPart(content=rules_for(situation.action)),
                UserPromptPart(content=situation.action.description),
            )
        news = [item for item in situation.guidance if item.seq > talk.heard]
        if talk.calls and (news or situation.failed):
            talk = talk.without_calls(OVERRULED if news else ABANDONED)
        for item in news:
            talk = replace(talk.told(item.text), heard=item.seq)
        return talk

    def _recall(self, situation: Situation) -> Sequence[ModelMessage]:
        head = situation.state.get(HEAD)
        if head is None:
            return ()
        known = self._recalled.get(head)
        if known is not None:
            return known
        return [from_text(item.body) for item in situation.recall(head)]

    def _remember(self, talk: Conversation) -> None:
        if talk.head is not None:
            self._recalled[talk.head] = talk.messages
        while len(self._recalled) > _MOST_RECALLED:
            self._recalled.pop(next(iter(self._recalled)), None)  # the oldest

    def _ask(self, situation: Situation, talk: Conversation, *, with_tools: bool) -> Conversation:
        self._refuse_without_budget(situation, talk)
        said: list[str] = []

        def observe(word: str) -> None:
            said.append(word)
            so_far = sound_text("".join(said))
            self._events.emit(ActorThinking(step_index=situation.step_index, said=so_far))

        self._events.emit(ActorThinking(step_index=situation.step_index))
        offer = self._offer(situation.action)
        question = Question(
            plan_id=situation.plan_id,
            messages=talk.messages,
            tools=offer.definitions if with_tools else (),
            observe=observe,
            refuse_if_stopped=lambda: self._tools.refuse_if_stopped(situation.plan_id),
        )
        answer = self._client.ask(question)
        if refusal := (answer.provider_details or {}).get("refusal"):
            # Asked the same again, it would say the same; what helps is to say it differently.
            raise ModelDeclinedError(situation.plan_id, sound_text(refusal).strip())
        return talk.answered(answer)

    # --- what it means --------------------------------------------------------------------------

    def _meaning(self, situation: Situation, talk: Conversation) -> Proposal | Finished:
        answer = talk.last_answer
        if answer.finish_reason in _UNUSABLE:
            raise UnusableCallError(_UNUSABLE[answer.finish_reason])
        if talk.calls:
            return self._proposal(situation, talk)
        if not (answer.text or "").strip():
            raise UnusableCallError(EMPTY)
        self._remember(talk)
        return Finished(memory=talk.ended(answer.text or ""), summary=answer.text or "")

    def _proposal(self, situation: Situation, talk: Conversation) -> Proposal:
        call, answer = talk.open_calls[0], talk.last_answer
        step: Step = self._offer(situation.action).step(call)
        doing = Doing(tool_name=call.tool_name, call_id=call.tool_call_id)
        talk = replace(talk, calls=talk.calls[1:], doing=doing)
        self._remember(talk)
        return Proposal(
            step=step,
            question="Which step is next?",
            rationale=(answer.text or answer.thinking or _UNSAID).strip() or _UNSAID,
            memory=talk.memory,
            notes={"model": answer.model_name, "usage": talk.usage.as_map()},
        )

    def _offer(self, action: Action) -> Offer:
        return Offer(action, self._tools.specs(action))

    def _refuse_without_budget(self, situation: Situation, talk: Conversation) -> None:
        spec, used = situation.action.actor, talk.usage
        tokens = self._budget.max_tokens or spec.max_tokens
        if tokens is not None and used.tokens >= tokens:
            raise BudgetExhaustedError(
                situation.plan_id, "tokens", str(used.tokens), str(tokens), "actor.max-tokens"
            )
        cost = self._budget.max_cost or spec.max_cost
        if cost is None:
            return
        if used.cost is None:
            raise ActorError(
                "the cost is limited, but no price is known for this model",
                "limit its tokens instead: max_tokens in the action, or actor.max-tokens",
            )
        if used.cost >= cost:
            raise BudgetExhaustedError(
                situation.plan_id, "dollars", f"{used.cost:g}", f"{cost:g}", "actor.max-cost"
            )


def _heard(talk: Conversation, outcome: StepOutcome) -> Conversation:
    if talk.doing is None:
        return talk.told(news_of(outcome))
    part = ToolReturnPart(
        tool_name=talk.doing.tool_name,
        content=result_of(outcome),
        tool_call_id=talk.doing.call_id,
        outcome="success" if outcome.error is None else "failed",
    )
    return replace(talk.saying(part), doing=None)
