"""The folder between an agent's hooks and its plan: nothing that lies there can do harm."""

import json
import os
import threading
from pathlib import Path

import pytest

from cleveragents.infrastructure.actors.command.hook_client import NobodyListensError, tell
from cleveragents.infrastructure.actors.command.hooks import HookEvent, HookFolder, HookKind


def test_a_hook_waits_for_its_answer(tmp_path: Path) -> None:
    folder, answers = HookFolder(str(tmp_path)), list[str]()
    message = {"kind": "pre-tool", "tool": "Write", "arguments": {"a": 1}, "call_id": "7"}
    hook = threading.Thread(target=lambda: answers.append(tell(folder.path, message)))
    hook.start()
    while not (found := folder.messages()):
        pass
    assert answers == []
    folder.answer(found[0], "not now")
    hook.join(30)

    assert answers == ["not now"]
    assert found[0].is_call("Write", {"a": 1})
    assert [path.name for path in Path(folder.path).iterdir()] == ["bell"]
    folder.close()


def test_strange_things_in_the_folder_are_passed_over(tmp_path: Path) -> None:
    folder = HookFolder(str(tmp_path))
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"kind": "pre-tool", "tool": "Read"}))
    place = Path(folder.path)
    (place / "1.json").symlink_to(secret)
    (place / "2.json").write_text("{")
    (place / "3.json").write_text('{"kind": "other"}')
    (place / "4.json").write_text("[]")
    os.mkfifo(place / "6.json")
    (place / "7.json").mkdir()
    (place / "8.json").write_text("[" * 100_000)
    (place / "5.json").write_text('{"kind": "pre-tool", "tool": 3, "arguments": [1]}')

    assert [(e.tool, dict(e.arguments)) for e in folder.messages()] == [("", {})]
    assert secret.exists()
    folder.answer(HookEvent(kind=HookKind.PRE_TOOL, tool="x", reply="../secret"))
    assert json.loads(secret.read_text())["tool"] == "Read"
    folder.close()


def test_without_a_plan_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(NobodyListensError):
        tell(str(tmp_path / "gone"), {})
    with pytest.raises(NobodyListensError):
        tell(str(tmp_path), {})


@pytest.mark.parametrize(
    ("one", "two", "same"), [("1", "1", True), ("1", "2", False), ("", "2", True)]
)
def test_calls_are_told_apart_by_their_names_if_they_have_any(
    one: str, two: str, *, same: bool
) -> None:
    begun = HookEvent(kind=HookKind.PRE_TOOL, tool="Write", call_id=one)
    ended = HookEvent(kind=HookKind.POST_TOOL, tool="Write", call_id=two)
    assert ended.ends(begun) is same
