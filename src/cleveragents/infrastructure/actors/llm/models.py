"""The model that an address names, made by the library that speaks its protocol; and its actor."""

from pydantic_ai.models import Model

from cleveragents.domain.action import ActorSpec
from cleveragents.infrastructure.actors.llm.actor import Budget, LlmActor
from cleveragents.infrastructure.actors.llm.client import ModelClient, Patience
from cleveragents.infrastructure.actors.llm.endings import listen
from cleveragents.infrastructure.actors.llm.factory import LlmSettings, ModelAddress, Surroundings

# Each library is loaded only by those whose model needs it.
# ruff: noqa: PLC0415


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


def make_model(address: ModelAddress) -> Model:
    if address.provider == "anthropic":
        return _anthropic(address)
    if address.provider == "google":
        return _google(address)
    return _openai(address)


def _openai(address: ModelAddress) -> Model:
    """Chat completions, which is what everybody speaks who says that he speaks OpenAI's."""
    from openai import DefaultAsyncHttpxClient
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = DefaultAsyncHttpxClient(event_hooks={"response": [listen]})
    provider = OpenAIProvider(
        base_url=address.base_url, api_key=address.api_key, http_client=client
    )
    return OpenAIChatModel(address.model, provider=provider)


def _anthropic(address: ModelAddress) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    provider = AnthropicProvider(base_url=address.base_url, api_key=address.api_key)
    return AnthropicModel(address.model, provider=provider)


def _google(address: ModelAddress) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(base_url=address.base_url, api_key=address.api_key)
    return GoogleModel(address.model, provider=provider)
