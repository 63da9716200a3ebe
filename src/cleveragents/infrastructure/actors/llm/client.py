"""Asking a model once: the answer as it streams in, new tries, and errors in our words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from msgspec import Struct
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRequestRejectedError,
    UserError,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from cleveragents.application.ports.runtime import Clock, EventSink
from cleveragents.domain.errors import (
    ActorError,
    ContextOverflowError,
    ModelRefusedError,
    ModelUnreachableError,
)
from cleveragents.domain.events import ActorWaiting
from cleveragents.infrastructure.actors.llm.endings import Ending
from cleveragents.infrastructure.actors.llm.request_thread import RequestLoop, Say
from cleveragents.infrastructure.actors.llm.tool_offer import name_to_send

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
# A provider that wants more than this wants us to come back another day.
_LONGEST_ASKED_FOR = 120.0
# Asked again, they would say the same; everything else may be better at the next try.
_FINAL = (ModelRequestRejectedError, ModelQuotaExceededError)


class Question(Struct, frozen=True, kw_only=True):
    """What a model is asked; `refuse_if_stopped` ends the waiting with a KeyboardInterrupt."""

    plan_id: str
    messages: Sequence[ModelMessage]
    tools: Sequence[ToolDefinition]
    observe: Say
    refuse_if_stopped: Callable[[], None]


class Patience(Struct, frozen=True, kw_only=True):
    """How long one answer may take, and how often it is tried again."""

    timeout: float
    retries: int
    temperature: float | None = None


class ModelClient:
    def __init__(self, model: Model, patience: Patience, clock: Clock, events: EventSink) -> None:
        self._model = model
        self._patience = patience
        self._clock = clock
        self._events = events
        self._loop = RequestLoop()
        self._ask_for_it = self._stream

    def ask(self, question: Question) -> ModelResponse:
        """Raises ActorError; a passing trouble is waited for first."""
        tries = 0
        while True:
            try:
                return self._once(question)
            except _PassingError as error:
                tries += 1
                pause = _pause(error, tries)
                if tries > self._patience.retries or pause > _LONGEST_ASKED_FOR:
                    raise _given_up(question.plan_id, error, tries) from error
                self._events.emit(ActorWaiting(reason=error.reason, seconds=pause))
                self._clock.pause(pause)
                question.refuse_if_stopped()

    def _once(self, question: Question) -> ModelResponse:
        try:
            return self._loop.wait_for(
                lambda say: self._ask_for_it(question, say),
                question.observe,
                question.refuse_if_stopped,
            )
        except _PassingError:
            raise
        except _FINAL as error:
            if self._ask_for_it != self._whole and _is_about_streams(error):
                self._ask_for_it = self._whole
                return self._once(question)
            raise _refusal(question.plan_id, error) from error
        except ModelAPIError as error:
            raise _PassingError(_said(error), error.retry_after) from error
        except (AgentRunError, UserError) as error:
            raise _PassingError(_said(error)) from error
        except Exception as error:
            # A server may send anything at all; its nonsense must not end our process.
            raise _PassingError(f"an answer that is none ({type(error).__name__})") from error

    async def _stream(self, question: Question, say: Say) -> ModelResponse:
        ending = Ending()
        async with model_request_stream(self._model, **self._asked(question)) as answer:
            async for event in answer:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    say(event.part.content)
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    say(event.delta.content_delta)
        heard = answer.get()
        if heard.state != "complete" or not ending.is_complete(heard):
            raise _PassingError("the answer broke off before it was complete")
        return heard

    async def _whole(self, question: Question, say: Say) -> ModelResponse:
        heard = await model_request(self._model, **self._asked(question))
        say(heard.text or "")
        return heard

    def _asked(self, question: Question) -> dict[str, Any]:
        return {
            "messages": _in_turns(question.messages),
            "model_settings": self._settings(),
            "model_request_parameters": ModelRequestParameters(function_tools=list(question.tools)),
        }

    def _settings(self) -> ModelSettings:
        settings = ModelSettings(
            timeout=self._patience.timeout, request_timeout=self._patience.timeout, max_retries=0
        )
        if self._patience.temperature is not None:
            settings["temperature"] = self._patience.temperature
        return settings


def _in_turns(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """What was said to the model between two of its answers as one message: some providers want
    the results of all calls of one answer together."""
    turns: list[ModelMessage] = []
    for said in messages:
        message = _with_names_to_send(said)
        last = turns[-1] if turns else None
        if isinstance(message, ModelRequest) and isinstance(last, ModelRequest):
            turns[-1] = ModelRequest(parts=[*last.parts, *message.parts])
        else:
            turns.append(message)
    return turns


def _with_names_to_send(message: ModelMessage) -> ModelMessage:
    parts = [
        replace(part, tool_name=name_to_send(part.tool_name))
        if isinstance(part, ToolCallPart | ToolReturnPart)
        else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


class _PassingError(Exception):
    """Something that may be better at the next try."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after


def _pause(error: _PassingError, tries: int) -> float:
    """What the provider asks for, or else longer each time."""
    if error.retry_after is not None:
        return error.retry_after
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1))


def _given_up(plan_id: str, error: _PassingError, tries: int) -> ActorError:
    wait = f" (it wants {error.retry_after:g} seconds)" if error.retry_after else ""
    times = "once" if tries == 1 else f"{tries} times"
    return ModelUnreachableError(
        f"the model gave no answer, asked {times}: {error.reason}{wait}",
        f"try again later: agents plan resume {plan_id}",
    )


def _refusal(plan_id: str, error: ModelAPIError) -> ActorError:
    if isinstance(error, ModelContextWindowExceededError):
        return ContextOverflowError(plan_id, _said(error))
    resume = f"then go on: agents plan resume {plan_id}"
    if isinstance(error, ModelAuthenticationError):
        what = f"the key for {error.model_name} is not accepted: {_said(error)}"
        return ModelRefusedError(
            what, f"correct it (agents config set actor.llm.api-key), {resume}"
        )
    if isinstance(error, ModelNotFoundError):
        what = f"there is no model {error.model_name} there: {_said(error)}"
        hint = "name another in the action file, or correct actor.llm.base-url, and make a new plan"
        return ModelRefusedError(what, hint)
    if isinstance(error, ModelQuotaExceededError):
        what = f"the account of this key is used up: {_said(error)}"
        return ModelRefusedError(what, f"fill it up, {resume}")
    return ModelRefusedError(
        f"the request was refused: {_said(error)}", f"look at the message, {resume}"
    )


def _is_about_streams(error: ModelAPIError) -> bool:
    """Whether it is only streaming that is refused: to some accounts, or by some servers."""
    told = error.body if isinstance(error, ModelHTTPError) else None
    about = cast("dict[str, object]", told).get("param") if isinstance(told, dict) else None
    return about in ("stream", "stream_options")


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else text[:297] + "..."
