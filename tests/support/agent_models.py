"""Stands in for the models of Codex, Gemini, opencode and aider, each asked in its own protocol.

Whoever asks, the task is the same: write a file, then run a command, then say that it is done. How
far it is goes by the results that the agent shows, so that no conversation is remembered here.
"""

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

FILE, TEXT, COMMAND, DONE = "NOTES.md", "A price.\n", "wc -l NOTES.md > size.txt", "All is done."
Json = dict[str, Any]


def codex_answer(asked: Json) -> list[Json]:
    """The events of a response; its tools come as tools, or as one that runs JavaScript."""
    items = [item for item in asked.get("input", []) if isinstance(item, dict)]
    ended = ("function_call_output", "custom_tool_call_output")
    done = sum(item.get("type") in ended for item in items)
    tools = {tool.get("name"): tool for tool in asked.get("tools") or []}
    for item in items:
        for space in item.get("tools") or () if item.get("type") == "additional_tools" else ():
            tools |= {tool.get("name"): tool for tool in space.get("tools") or [space]}
    item = _codex_item(done, tools) if tools else _codex_text("ok")
    whole = {"id": f"resp_{done}", "object": "response", "output": [item]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {**whole, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**whole, "status": "completed", "usage": usage},
        },
    ]


def _codex_text(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "id": "msg", "content": content}


def _codex_item(done: int, tools: Mapping[str, Json]) -> Json:
    patch = f"*** Begin Patch\n*** Add File: {FILE}\n+{TEXT}*** End Patch\n"
    call_id = f"call_{done}"
    if done > 1:
        return _codex_text(DONE)
    if "exec" in tools:
        wanted = json.dumps(patch) if done == 0 else json.dumps({"cmd": COMMAND})
        name = "apply_patch" if done == 0 else "exec_command"
        code = f"text(await tools.{name}({wanted}));\n"
        return {
            **{"type": "custom_tool_call", "id": f"c{done}", "call_id": call_id},
            **{"namespace": "functions", "name": "exec", "input": code},
        }
    if done == 0 and tools.get("apply_patch", {}).get("type") == "custom":
        call = {"type": "custom_tool_call", "name": "apply_patch", "input": patch}
        return {**call, "id": "c0", "call_id": call_id}
    name = next(name for name in ("exec_command", "shell_command") if name in tools)
    key = {"exec_command": "cmd", "shell_command": "command"}[name]
    line = COMMAND if done else f"apply_patch <<'E'\n{patch}E\n"
    arguments = json.dumps({key: line})
    call = {"type": "function_call", "name": name, "arguments": arguments}
    return {**call, "id": f"f{done}", "call_id": call_id}


def gemini_answer(asked: Json) -> Json:
    parts = [part for item in asked.get("contents", []) for part in item.get("parts", [])]
    done = sum("functionResponse" in part for part in parts)
    calls = [
        {"name": "write_file", "args": {"file_path": FILE, "content": TEXT}},
        {"name": "run_shell_command", "args": {"command": COMMAND, "description": "count"}},
    ]
    said: Json = {"text": DONE if asked.get("tools") else "{}"}
    if asked.get("tools") and done < len(calls):
        said = {"functionCall": {"id": f"g{done}", **calls[done]}}
    content = {"role": "model", "parts": [said]}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }


def chat_answer(asked: Json) -> list[Json]:
    """The pieces of a stream."""
    done = sum(message["role"] == "tool" for message in asked["messages"])
    calls = [
        ("write", {"filePath": FILE, "content": TEXT}),
        ("bash", {"command": COMMAND, "description": "count"}),
    ]
    delta: Json = {"role": "assistant", "content": _edits(asked["messages"])}
    reason = "stop"
    if asked.get("tools"):
        delta["content"] = DONE
    if asked.get("tools") and done < len(calls):
        name, arguments = calls[done]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{done}", "type": "function", "function": function}
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [
        {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
    ]


def _edits(messages: Sequence[Json]) -> str:
    """For aider, which has no tools and takes whole files from the text. It runs the tests after
    each edit, and tells how they failed."""
    if "commit message" in str(messages[0]["content"]):
        return "feat: a note"
    answered = [message for message in messages if message["role"] == "assistant"]
    wrote = any(TEXT.strip() in str(message["content"]) for message in answered)
    name, text = ("size.txt", "1\n") if wrote else (FILE, TEXT)
    return f"\n{name}\n```\n{text}```\n"


class AgentModels:
    """On this machine; `url` is where. What was asked is kept by protocol."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Json]] = []
        handler = type("Handler", (_Handler,), {"models": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    models: AgentModels

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked: Json = json.loads(data or b"{}")
        path = self.path.partition("?")[0]
        self.models.asked.append((path, asked))
        if path.endswith("/responses"):
            self._stream(codex_answer(asked), named=True)
        elif path.endswith("/chat/completions"):
            self._stream(chat_answer(asked))
        elif path.endswith(":streamGenerateContent"):
            self._stream([gemini_answer(asked)])
        else:
            self._send(gemini_answer(asked) if "generateContent" in path else {"totalTokens": 1})

    def _stream(self, events: Sequence[Json], *, named: bool = False) -> None:
        names = [f"event: {event['type']}\n" if named else "" for event in events]
        pairs = zip(names, events, strict=True)
        text = "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in pairs)
        end = "data: [DONE]\n\n" if "choices" in events[0] else ""
        self._reply((text + end).encode(), "text/event-stream")

    def _send(self, answer: Json) -> None:
        self._reply(json.dumps(answer).encode(), "application/json")

    def _reply(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
