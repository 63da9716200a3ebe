"""Putting the actor together that asks a language model."""

from cleveragents.domain.action import ActorSpec
from cleveragents.infrastructure.actors.llm.actor import Budget, LlmActor
from cleveragents.infrastructure.actors.llm.client import ModelClient, Patience
from cleveragents.infrastructure.actors.llm.factory import LlmSettings, ModelAddress, Surroundings
from cleveragents.infrastructure.actors.llm.models import make_model


def make_llm_actor(
    address: ModelAddress, spec: ActorSpec, settings: LlmSettings, surroundings: Surroundings
) -> LlmActor:
    tools, clock, events = surroundings
    patience = Patience(
        timeout=settings.llm_timeout,
        retries=settings.llm_max_retries,
        temperature=spec.options.get("temperature"),
    )
    client = ModelClient(make_model(address), patience, clock, events)
    budget = Budget(
        max_tokens=settings.actor_max_tokens or None, max_cost=settings.actor_max_cost or None
    )
    return LlmActor(client, tools, events, budget)
