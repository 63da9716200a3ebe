"""Owns putting the actor together that asks a language model."""

from cleveragents.domain.action import ActorSpec
from cleveragents.infrastructure.actors.llm_actor import Budget, LlmActor
from cleveragents.infrastructure.actors.llm_client import ModelClient, Patience
from cleveragents.infrastructure.actors.llm_models import make_model
from cleveragents.infrastructure.actors.llm_setup import LlmSettings, ModelAddress, Surroundings


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
