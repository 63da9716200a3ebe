"""Tools that want out of their sandbox, never end, or are not there."""

import time

import pytest
from tests.support.trees import tree_of
from tests.support.world import PlanHandle, World, action, shell, write

# --- tools that want out ------------------------------------------------------------------------

ESCAPES = {
    "dots": {"path": "../escaped.txt"},
    "many dots": {"path": "src/../../../../escaped.txt"},
    "absolute": {"path": "{top}/escaped.txt"},
    "a link to a folder": {"path": "out/escaped.txt"},
    "a link to a file": {"path": "out.txt"},
    "the git folder": {"path": ".git"},
    "below the git folder": {"path": ".git/config"},
}


@pytest.mark.parametrize("way", ESCAPES)
def test_a_tool_cannot_write_outside_its_sandbox(world: World, way: str) -> None:
    outside = world.top / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("as it was")
    path = ESCAPES[way]["path"].format(top=world.top)
    plan = world.use(
        shell(f"ln -s {outside} out; ln -s {outside}/file.txt out.txt", "links"),
        write(path, "gotcha", "escape"),
    )
    plan_before, user = tree_of(outside), world.project.fingerprint()
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed")
    assert tree_of(outside) == plan_before
    assert not list(world.top.rglob("escaped.txt"))
    assert world.project.fingerprint() == user
    assert plan.status["error"]["step"] == 1
    plan.rollback("start").ok()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("file.read", {"path": "../../../../../etc/passwd"}),
        ("file.read", {"path": "secret"}),
        ("file.list", {"path": ".."}),
        pytest.param("file.list", {"path": "out", "recursive": True}),
        ("file.search", {"pattern": "root", "path": "/etc"}),
        pytest.param("file.search", {"pattern": "key", "path": "out"}),
        ("file.delete", {"path": "out/file.txt"}),
        ("file.move", {"path": "README.md", "to": "out/README.md"}),
        ("file.move", {"path": "README.md", "to": "../README.md"}),
        ("file.edit", {"path": "secret", "old": "key", "new": "door"}),
    ],
)
def test_no_file_tool_reaches_outside(
    world: World, tool: str, arguments: dict[str, object]
) -> None:
    outside = world.top / "outside"
    outside.mkdir()
    (outside / "file.txt").write_text("the key")
    before = tree_of(outside)
    plan = world.use(
        shell(f"ln -s {outside} out; ln -s {outside}/file.txt secret", "links"),
        {"name": "out", "tool": tool, "with": {"resource": "code", **arguments}},
    )
    answer = plan.execute()
    outputs = [call["output"] for call in plan("artifacts").data["artifacts"]]
    assert tree_of(outside) == before
    assert not any("the key" in output or "root:" in output for output in outputs)
    assert answer.code == 1


# --- tools that misbehave -----------------------------------------------------------------------


def test_a_tool_that_takes_too_long_is_stopped_with_all_it_started(world: World) -> None:
    marker = world.beside / "survivor"
    slow = f"(sleep 1; touch {marker}) & echo half > half.txt; sleep 30"
    plan = world.use(shell(slow, "slow", timeout=0.3))
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed")
    assert "0.3 seconds" in answer.error["message"]
    time.sleep(1.2)
    assert not marker.exists()


def test_a_tool_that_cannot_be_started_is_told(world: World) -> None:
    tools = {"ghost": {"command": ["no-such-program-anywhere"], "writes": True}}
    plan = world.use({"name": "x", "tool": "ghost"}, tools=tools)
    answer = plan.execute()
    assert (answer.code, answer.error["code"]) == (1, "step-failed")
    assert "no-such-program-anywhere" in answer.error["message"]


def test_values_of_an_own_tool_never_become_shell_words(world: World) -> None:
    tools = {"say": {"command": ["printf", "%s", "{text}"], "resource": "code", "writes": False}}
    evil = "$(touch pwned); `touch pwned` {text} \"'"
    plan = world.use({"name": "x", "tool": "say", "with": {"text": evil}}, tools=tools)
    plan.execute().ok()
    assert plan("artifacts").data["artifacts"][0]["output"] == evil
    assert not (plan.sandbox / "pwned").exists()


def test_commands_find_their_sandbox_in_the_environment_and_no_git_variables(world: World) -> None:
    agents = world.agents.having(GIT_DIR="/nowhere", GIT_WORK_TREE="/nowhere")
    path = world.write_action(
        action(shell('test "$CLEVERAGENTS_SANDBOX_CODE" = "$PWD"; git status --short', "env"))
    )
    plan = PlanHandle(agents, agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert plan.status["state"] == "complete"
