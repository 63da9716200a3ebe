"""Stands in for the model of somebody else's agent: it does a small task, whoever asks it.

It goes by what the agent shows it of the past, as a real one would: what is done is not done again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.chat_server import ChatServer, Reply, calls, say

# What agents put in front of what they want of a model beside the task.
_TITLE, _COMMIT = "title generator", "commit message"
_INTERRUPTED = "interrupted"
_PLACE = re.compile(r"Working directory: (\S+)")
Call = tuple[str, Mapping[str, Any]]


class AgentModel(ChatServer):
    """`calls` are made one after the other by an agent with tools; in what they say, `{folder}` is
    where it works. `edits` are whole files, for one that takes its changes from the text."""

    def __init__(self, calls: Sequence[Call] = (), edits: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.calls = calls
        self.edits = edits or {}
        self.conversations: list[list[tuple[str, str]]] = []

    def next_reply(self, request: dict[str, Any], key: str) -> Reply:
        self.asked.append(request)
        rules = self.heard()[0][1]
        if _TITLE in rules or _COMMIT in rules:
            return say("Do the task")
        self.conversations.append(self.heard())
        if request.get("tools"):
            return self._next_call(request["messages"], rules)
        return say("".join(f"\n{name}\n```\n{text}```\n" for name, text in self.edits.items()))

    def _next_call(self, messages: Sequence[Mapping[str, Any]], rules: str) -> Reply:
        done = _done(messages)
        place = _PLACE.search(rules)
        for index, (tool, arguments) in enumerate(self.calls):
            filled = {
                name: value.replace("{folder}", place[1] if place else ".")
                for name, value in arguments.items()
            }
            if done.count(tool) <= sum(tool == other for other, _ in self.calls[:index]):
                return calls((tool, filled), text="I go on.")
        return say("All of it is done.")


def _done(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tools of the calls that have a result, by name; one call may be there several times."""
    named = {
        made["id"]: made["function"]["name"]
        for message in messages
        for made in message.get("tool_calls") or ()
    }
    ended = [message for message in messages if message["role"] == "tool"]
    return [
        named[message["tool_call_id"]]
        for message in ended
        if _INTERRUPTED not in str(message["content"])
    ]
