"""What a coding agent's hooks tell its plan, what they answer, and when they keep a call back."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cleveragents.cli.app import App
from cleveragents.cli.commands.hook import HOOKS_VARIABLE, hook
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder, HookKind


class Listening:
    """A plan that hears its agent, and gives each call the same answer."""

    def __init__(self, place: Path) -> None:
        self.folder = HookFolder(str(place))
        self.refusal = ""
        self.heard: list[HookEvent] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while not self._over.wait(0.01):
            for event in self.folder.messages():
                self.heard.append(event)
                self.folder.answer(event, self.refusal)

    def end(self) -> None:
        self._over.set()
        self._thread.join(30)
        self.folder.close()


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    made = Listening(tmp_path)
    yield made
    made.end()


@pytest.fixture(autouse=True)
def new_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


CALL = '{"tool_name": "Write", "tool_input": {"path": "a"}}'


def told(word: str, folder: str = "", data: str = CALL) -> tuple[int, str]:
    """The exit code, and what the agent reads."""
    app = App()
    environ = {HOOKS_VARIABLE: folder or None}
    answer = CliRunner().invoke(hook, [word], obj=app, input=data, env=environ)
    assert answer.exception is None, answer.exception
    return app.exit_code, answer.stderr


@pytest.mark.parametrize("word", ["pre-tool", "post-tool", "pause"])
def test_without_a_plan_a_hook_does_nothing_and_says_so(word: str) -> None:
    assert told(word) == (
        0,
        "agents hook: not started by a plan, so there is nothing to tell\n",
    )


@pytest.mark.parametrize(("word", "code"), [("pre-tool", 2), ("post-tool", 2), ("pause", 1)])
def test_when_the_plan_is_gone_the_agent_learns_it(word: str, code: int, tmp_path: Path) -> None:
    found, said = told(word, str(tmp_path / "gone"))
    assert found == code
    assert "is not running any more" in said


@pytest.mark.parametrize("word", ["pre-tool", "post-tool", "pause"])
def test_a_plan_that_agrees_lets_the_agent_go_on(word: str, listening: Listening) -> None:
    assert told(word, listening.folder.path) == (0, "")
    assert [event.kind for event in listening.heard] == [HookKind(word)]


def test_a_pause_that_is_refused_is_noted_and_stops_nothing(listening: Listening) -> None:
    listening.refusal = "not now"
    assert told("pause", listening.folder.path) == (1, "agents hook: not now\n")


def test_what_cannot_be_read_before_a_call_keeps_it_back(listening: Listening) -> None:
    code, said = told("pre-tool", listening.folder.path, "[]")
    assert (code, listening.heard) == (2, [])
    assert "it is not an object" in said


def test_what_cannot_be_read_after_a_call_is_told_to_the_plan_all_the_same(
    listening: Listening,
) -> None:
    code, said = told("post-tool", listening.folder.path, "[]")
    assert code == 1
    assert "cannot be read" in said
    assert [event.kind for event in listening.heard] == [HookKind.POST_TOOL]
