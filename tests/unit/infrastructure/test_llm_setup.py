"""Where a model is, and what is missing to ask it."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from cleveragents.domain.action import Action, ActorSpec
from cleveragents.domain.errors import ActorUnavailableError, ModelKeyMissingError
from cleveragents.infrastructure.actors.llm.factory import LlmKind, ModelAddress
from cleveragents.infrastructure.actors.llm.models import make_model
from cleveragents.infrastructure.actors.registry import ActorRegistry, ReadyKind
from cleveragents.infrastructure.actors.scripted import ScriptedActor

NOWHERE: Any = (None, None, None)


@dataclass(frozen=True, kw_only=True)
class Values:
    llm_base_url: str = ""
    llm_api_key: str = ""
    llm_timeout: float = 1.0
    llm_max_retries: int = 0
    actor_max_tokens: int = 0
    actor_max_cost: float = 0.0


def action(type_: str = "llm", **options: Any) -> Action:
    spec = ActorSpec(type=type_, options=options)
    return Action(name="a", description="b", resources=(), steps=(), actor=spec)


@pytest.mark.parametrize(
    ("model", "library"),
    [
        ("openai:x", "pydantic_ai"),
        ("openai:x", "openai"),
        ("anthropic:x", "anthropic"),
        ("google:x", "google.genai"),
    ],
)
def test_a_library_that_is_missing_is_told_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch, model: str, library: str
) -> None:
    kind = LlmKind(Values(), {}, NOWHERE)
    kind.check(action(model=model))
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(ActorUnavailableError) as refused:
        kind.check(action(model=model))

    assert library in refused.value.message
    assert refused.value.hint == "pip install 'cleveragents[llm]'"


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:x", "OPENAI_API_KEY"),
        ("anthropic:x", "ANTHROPIC_API_KEY"),
        ("google:x", "GOOGLE_API_KEY"),
    ],
)
def test_a_key_that_is_missing_is_told_with_its_variable(model: str, variable: str) -> None:
    with pytest.raises(ModelKeyMissingError) as refused:
        LlmKind(Values(), {variable: ""}, NOWHERE).make(action(model=model))

    assert variable in refused.value.hint


@pytest.mark.parametrize(
    ("provider", "system"), [("openai", "openai"), ("anthropic", "anthropic"), ("google", "google")]
)
def test_each_provider_has_a_model(provider: str, system: str) -> None:
    address = ModelAddress(
        provider=provider, model="some-model", base_url="http://127.0.0.1:9", api_key="k"
    )

    model = make_model(address)

    assert model.model_name == "some-model"
    assert model.system.startswith(system)


def test_an_unknown_actor_is_told_with_those_there_are() -> None:
    registry = ActorRegistry({"llm": ReadyKind(lambda _: ScriptedActor())})

    with pytest.raises(ActorUnavailableError) as refused:
        registry.check(action("lln"))

    assert "did you mean `llm`?" in refused.value.message
    assert refused.value.hint == "use one of scripted, llm"


def test_plans_with_the_same_actor_share_it() -> None:
    registry = ActorRegistry({"llm": ReadyKind(lambda _: ScriptedActor())})

    assert registry.of(action(model="a")) is registry.of(action(model="a"))
    assert registry.of(action(model="a")) is not registry.of(action(model="b"))
