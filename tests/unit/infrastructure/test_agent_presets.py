"""Known agents as they are started again: with the conversation they had, unless a person says."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from cleveragents.infrastructure.actors.command.agents import aider, claude, gemini, opencode
from cleveragents.infrastructure.actors.command.agents.agent_run import AgentRun, Injection


def run(
    top: Path, *argv: str, session: str = "", settings: str | None = None, trusted: str = ""
) -> AgentRun:
    for name in ("run", "memory", "sandbox", "home/.gemini"):
        (top / name).mkdir(parents=True)
    if trusted:
        told = {trusted: "TRUST_FOLDER"}
        (top / "home/.gemini/trustedFolders.json").write_text(json.dumps(told))
    environ = {"HOME": str(top / "home")}
    if settings is not None:
        environ["OPENCODE_CONFIG_CONTENT"] = settings
    return AgentRun(
        argv=argv,
        folder=str(top / "run"),
        memory=str(top / "memory"),
        top=str(top / "sandbox"),
        project="/work/shop",
        session=session,
        fresh="fresh-1",
        hook=["agents", "hook"],
        environ=environ,
        talk=_nobody,
    )


def _nobody(_argv: Sequence[str]) -> NoReturn:
    raise AssertionError("nobody is asked")


@pytest.mark.parametrize(
    ("typed", "started"),
    [
        ((), ["--session", "s1"]),
        (("run", "do it"), ["run", "--session", "s1", "do it"]),
        (("serve",), ["serve"]),
        (("run", "--continue"), ["run", "--continue"]),
    ],
)
def test_opencode_goes_on_with_its_session_where_it_has_any(
    tmp_path: Path, typed: tuple[str, ...], started: list[str]
) -> None:
    made = opencode.prepared(run(tmp_path, "opencode", *typed, session="s1"))
    assert list(made.argv) == ["opencode", *started]


def test_plugins_of_the_persons_own_stay(tmp_path: Path) -> None:
    made = opencode.prepared(run(tmp_path, "opencode", settings='{"plugin": ["theirs"]}'))
    plugins = json.loads(made.variables["OPENCODE_CONFIG_CONTENT"])["plugin"]
    assert plugins[0] == "theirs"
    assert plugins[1].endswith("cleveragents.js")


def _settings(made: Injection) -> dict[str, object]:
    words = list(made.argv)
    return json.loads(Path(words[words.index("--settings") + 1]).read_text())


def test_claude_goes_on_with_its_session_or_gets_a_name_for_a_new_one(tmp_path: Path) -> None:
    again = claude.prepared(run(tmp_path / "a", "claude", "-p", "x", session="s1"))
    new = claude.prepared(run(tmp_path / "b", "claude", "-p", "x"))
    said = claude.prepared(run(tmp_path / "c", "claude", "--continue", session="s1"))

    assert "--resume s1" in " ".join(again.argv)
    assert "--session-id fresh-1" in " ".join(new.argv)
    assert "s1" not in said.argv


def test_settings_of_the_persons_own_and_ours_become_one(tmp_path: Path) -> None:
    inline = claude.prepared(run(tmp_path / "a", "claude", '--settings={"model": "x"}'))
    file = tmp_path / "theirs.json"
    file.write_text('{"model": "y"}')
    named = claude.prepared(run(tmp_path / "b", "claude", "--settings", str(file)))
    gone = claude.prepared(run(tmp_path / "c", "claude", "--settings", str(tmp_path / "none")))

    assert (_settings(inline)["model"], _settings(named)["model"]) == ("x", "y")
    assert all("hooks" in _settings(made) for made in (inline, named, gone))


@pytest.mark.parametrize("trusted", ["/work", "/elsewhere", ""])
def test_gemini_goes_on_and_trusts_a_sandbox_as_its_project_is_trusted(
    tmp_path: Path, trusted: str
) -> None:
    made = gemini.prepared(run(tmp_path, "gemini", session="s1", trusted=trusted))
    assert "--resume s1" in " ".join(made.argv)


def test_what_is_said_to_aider_is_kept_beside_the_project_unless_a_person_says_where(
    tmp_path: Path,
) -> None:
    made = aider.prepared(run(tmp_path / "a", "aider"))
    said = aider.prepared(run(tmp_path / "b", "aider", "--chat-history-file", "mine.md"))

    memory = str(tmp_path / "a/memory")
    assert made.variables["AIDER_CHAT_HISTORY_FILE"] == f"{memory}/aider.chat.history.md"
    assert made.variables["AIDER_INPUT_HISTORY_FILE"] == f"{memory}/aider.input.history"
    assert "AIDER_CHAT_HISTORY_FILE" not in said.variables
