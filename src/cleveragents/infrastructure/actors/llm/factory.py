"""Where a model is and what is needed to ask it, without loading anything that asks."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from cleveragents.application.ports.actors import Actor
from cleveragents.application.ports.runtime import Clock, EventSink, Tools
from cleveragents.domain.action import Action
from cleveragents.domain.errors import ActorUnavailableError, ModelKeyMissingError

INSTALL = "pip install 'cleveragents[llm]'"
_NO_KEY = "none"
"""What a server of one's own is told that asks for no key."""


class Provider(Struct, frozen=True, kw_only=True):
    """`library` must be there; the variables are those that its own tools use."""

    library: str
    keys: tuple[str, ...]
    address: str


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(library="openai", keys=("OPENAI_API_KEY",), address="OPENAI_BASE_URL"),
    "anthropic": Provider(
        library="anthropic", keys=("ANTHROPIC_API_KEY",), address="ANTHROPIC_BASE_URL"
    ),
    "google": Provider(
        library="google.genai",
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        address="GOOGLE_GEMINI_BASE_URL",
    ),
}


class LlmSettings(Protocol):
    """What the settings say. An empty text, and a limit of 0, mean that they say nothing."""

    @property
    def llm_base_url(self) -> str: ...
    @property
    def llm_api_key(self) -> str: ...
    @property
    def llm_timeout(self) -> float: ...
    @property
    def llm_max_retries(self) -> int: ...
    @property
    def actor_max_tokens(self) -> int: ...
    @property
    def actor_max_cost(self) -> float: ...


Surroundings = tuple[Tools, Clock, EventSink]


class ModelAddress(Struct, frozen=True, kw_only=True):
    provider: str
    model: str
    base_url: str | None
    api_key: str


class LlmKind(Struct, frozen=True):
    """Implements ActorKind."""

    _settings: LlmSettings
    _environ: Mapping[str, str]
    _surroundings: Surroundings

    def check(self, action: Action) -> None:
        provider, _ = _named(action)
        for library in ("pydantic_ai", PROVIDERS[provider].library):
            if not _is_installed(library):
                raise ActorUnavailableError(
                    f"the actor `llm` needs {library} for the model of {provider}", INSTALL
                )

    def make(self, action: Action) -> Actor:
        self.check(action)
        address = self._address(action)
        # Only a plan that runs pays for what this loads.
        from cleveragents.infrastructure.actors.llm.models import make_llm_actor  # noqa: PLC0415

        return make_llm_actor(address, action.actor, self._settings, self._surroundings)

    def _address(self, action: Action) -> ModelAddress:
        name, model = _named(action)
        provider = PROVIDERS[name]
        base_url = self._settings.llm_base_url or self._from_variable(provider.address) or None
        key = self._settings.llm_api_key or self._from_environment(provider)
        if not key and base_url is None:
            raise ModelKeyMissingError(name, provider.keys[0])
        return ModelAddress(provider=name, model=model, base_url=base_url, api_key=key or _NO_KEY)

    def _from_variable(self, name: str) -> str:
        """An address of the provider's own variable, which no setting has checked."""
        address = self._environ.get(name, "")
        if address and not _leads_somewhere(address):
            # It is not repeated: it may hold a password.
            raise ActorUnavailableError(
                f"{name} in the environment is no address that can be asked",
                f"set {name} to one such as https://models.example/v1, or unset it",
            )
        return address

    def _from_environment(self, provider: Provider) -> str:
        return next((self._environ[n] for n in provider.keys if self._environ.get(n)), "")


def _named(action: Action) -> tuple[str, str]:
    wanted = str(action.actor.options["model"])
    provider, found, model = wanted.partition(":")
    if provider not in PROVIDERS or not found or not model:
        raise ActorUnavailableError(
            f"`{wanted}` does not say whose model it is",
            f"write it as provider:model, the provider being one of {', '.join(PROVIDERS)}",
        )
    return provider, model


def _leads_somewhere(address: str) -> bool:
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return known and address.isprintable()


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # of `a.b`, already `a` is missing
        return False
