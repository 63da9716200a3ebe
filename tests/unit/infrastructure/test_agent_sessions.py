"""An agent's run seen from outside: when it rests, and that nothing of it is missed."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

# `tests` is no installed package; with this, `tests.support` is found however pytest is called.
sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.support.runners import in_folder, runner_with

from cleveragents.domain.confinement import Confinement
from cleveragents.domain.errors import ActorError
from cleveragents.infrastructure.actors.command.hook_client import FOLDER_VARIABLE
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder
from cleveragents.infrastructure.actors.command.process import (
    AgentCommand,
    AgentEnd,
    AgentProcess,
)
from cleveragents.infrastructure.actors.command.quiet_detection import Pauses, Stillness
from cleveragents.infrastructure.actors.command.sessions import AgentSession, Rest

Start = Callable[..., AgentSession]
CALL = """printf '{"tool_name": "T"}' | """ + f"{sys.executable} -m cleveragents hook "


def unwatchable() -> Stillness:
    raise ActorError("the agent's work cannot be watched: no room", "make room")


@pytest.fixture
def start(tmp_path: Path) -> Generator[Start]:
    """Starts a shell script as an agent; `hooked` is one that might call hooks."""
    folder, scratch = tmp_path / "code", tmp_path / "scratch"
    folder.mkdir()
    with ExitStack() as stack:

        def started(
            script: str,
            *,
            hooked: bool = False,
            watch: Callable[[], Stillness] = lambda: Stillness([str(folder)]),
        ) -> AgentSession:
            pauses = Pauses(watch, 0.3)
            hooks = HookFolder(str(scratch)) if hooked else None
            if not hooked:
                pauses.begin()
            command = AgentCommand(
                plan_id="P",
                argv=["sh", "-c", script],
                folder=str(folder),
                sandboxes={"code": in_folder(folder)},
                timeout=60,
                confinement=Confinement(write=(hooks.path,) if hooks else ()),
                variables={FOLDER_VARIABLE: hooks.path} if hooks else {},
            )
            process = AgentProcess(runner_with(os.environ, 10_000), command)
            session = AgentSession(process, hooks, pauses)
            stack.callback(session.close)
            return session

        yield started


def ends(session: AgentSession) -> bool:
    found = session.next_call()
    return isinstance(found, AgentEnd) and found.code == 0


@pytest.mark.parametrize("hooked", [False, True])
def test_a_pause_is_a_rest_and_so_is_the_end(start: Start, *, hooked: bool) -> None:
    session = start("echo one > one; echo 1; sleep 2; echo two > two; echo 2", hooked=hooked)
    first = session.next_call()
    assert isinstance(first, Rest)
    assert first.said == "1"
    assert not session.is_over
    session.noted()

    second = session.next_call()
    assert isinstance(second, Rest)
    assert second.said == "2"
    assert ends(session)
    assert ends(session)


def test_what_moved_before_anybody_asked_counts(start: Start, tmp_path: Path) -> None:
    session = start("echo one > one; sleep 20; echo two > two")
    while not (tmp_path / "code" / "one").exists():
        time.sleep(0.01)
    time.sleep(0.1)

    assert isinstance(session.next_call(), Rest)
    assert not session.is_over


def test_while_it_rests_it_does_nothing(start: Start, tmp_path: Path) -> None:
    session = start("echo one > one; sleep 1; while true; do echo x >> one; sleep 0.05; done")
    assert isinstance(session.next_call(), Rest)
    before = (tmp_path / "code" / "one").read_bytes()
    time.sleep(1.5)
    assert (tmp_path / "code" / "one").read_bytes() == before


def test_while_it_waits_at_a_hook_what_it_started_beside_does_nothing(
    start: Start, tmp_path: Path
) -> None:
    beside = "(while true; do echo x >> one; sleep 0.02; done) & "
    session = start(f"{beside} {CALL} pre-tool; echo did; {CALL} post-tool", hooked=True)
    file = tmp_path / "code" / "one"

    def moves() -> bool:
        before = file.read_bytes()
        time.sleep(0.5)
        return file.read_bytes() != before

    assert isinstance(session.next_call(), Rest)
    assert not moves()
    call = session.next_call()
    assert isinstance(call, HookEvent)
    assert not moves()
    assert session.carry_out("T", {}).output == "did"
    assert not moves()
    assert isinstance(session.next_call(), Rest)
    assert ends(session)


def test_one_that_changes_nothing_rests_at_its_end_only(start: Start) -> None:
    session = start("sleep 1")
    assert isinstance(session.next_call(), Rest)
    assert session.is_over
    assert ends(session)


def test_one_that_breaks_off_does_not_rest(start: Start) -> None:
    found = start("echo one > one; exit 3").next_call()
    assert isinstance(found, AgentEnd)
    assert found.code == 3


def test_why_its_pauses_cannot_be_seen_is_told_when_it_ends(start: Start) -> None:
    session = start("echo one > one; sleep 1", hooked=True, watch=unwatchable)
    found = session.next_call()
    assert isinstance(found, Rest)
    assert session.is_over
    assert "cannot be watched" in found.problem


def test_one_that_cannot_call_hooks_is_not_started_unwatched(start: Start) -> None:
    with pytest.raises(ActorError):
        start("true", watch=unwatchable)
