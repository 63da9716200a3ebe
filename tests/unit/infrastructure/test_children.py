"""What runs in processes of its own, run here: a function as a tool, and a request."""

import http.server
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from cleveragents.infrastructure.tools.builtin import http_child, python_child

Called = Callable[..., tuple[int, str, str]]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Called:
    """The exit code, what was printed, and what was given back."""

    def call(target: str, **arguments: Any) -> tuple[int, str, str]:
        printed = io.StringIO()
        text = json.dumps({"target": target, "arguments": arguments})
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))
        monkeypatch.setattr(sys, "stdout", printed)
        with tempfile.TemporaryFile() as answer:
            code = python_child.main(os.dup(answer.fileno()))
            monkeypatch.undo()
            answer.seek(0)
            return code, printed.getvalue(), answer.read().decode()

    return call


def test_a_result_goes_a_way_of_its_own(called: Called) -> None:
    code, text, answer = called("os.path:exists", nonsense=1)
    assert (code, answer) == (python_child.FAILED, "")
    assert "TypeError" in text
    assert called("json:dumps", obj=[1]) == (0, "", '"[1]"')
    assert called("builtins:print") == (0, "\n", "null")


def test_a_function_that_is_not_there_is_told(called: Called) -> None:
    code, text, answer = called("os:nothing.of.this")
    assert (code, answer) == (python_child.FAILED, "")
    assert "has no attribute 'nothing'" in text


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if self.path in {"/on", "/out", "/away"} else 200)
        if self.path == "/on":
            self.send_header("Location", "/end")
        if self.path == "/away":
            port = self.headers["Host"].partition(":")[2]
            self.send_header("Location", f"http://localhost:{port}/end")
        if self.path == "/out":
            self.send_header("Location", "ftp://example.com/")
        self.end_headers()
        self.wfile.write(self.headers.get("Authorization", "nobody").encode())

    def do_POST(self) -> None:
        self.send_response(500)
        self.end_headers()
        self.wfile.write(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def site() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_answer_is_told_whatever_its_status(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "k")
    found = http_child.request(f"{site}/on", headers={"Authorization": "by ${KEY}"})
    assert (found["status"], found["body"], found["truncated"]) == (200, "by k", False)
    posted = http_child.request(site, method="post", json={"a": 1}, most_bytes=4)
    assert (posted["status"], posted["body"], posted["truncated"]) == (500, '{"a"', True)
    assert http_child.request(site, method="post", body="hi")["body"] == "hi"


def test_credentials_are_not_shown_to_another_host(site: str) -> None:
    found = http_child.request(f"{site}/away", headers={"Authorization": "secret"})
    assert found["body"] == "nobody"


@pytest.mark.parametrize("url", ["ftp://x/", "http:///x", "nonsense", "file:///etc/passwd"])
def test_only_the_web_is_asked(url: str) -> None:
    with pytest.raises(http_child.RequestError, match="not an address"):
        http_child.request(url)


def test_what_goes_wrong_is_said_in_a_line(site: str) -> None:
    with pytest.raises(http_child.RequestError, match="not an address"):
        http_child.request(f"{site}/out")
    with pytest.raises(http_child.RequestError, match="cannot be reached"):
        http_child.request("http://127.0.0.1:9/")
    with pytest.raises(http_child.RequestError, match="NOT_THERE is not passed on"):
        http_child.request(site, headers={"X": "${NOT_THERE}"})
