"""An agent that was not let write somewhere: the place is named, and the line that allows it."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.coding_agent import use_command
from tests.support.refusals import refused
from tests.support.world import PlanHandle, World, action, shell

# As programs of these kinds end when they cannot keep what they want to keep.
PYTHON = """
import pathlib
folder = pathlib.Path.home() / "{folder}"
folder.mkdir(parents=True, exist_ok=True)
(folder / "state.json").write_text("{{}}")
pathlib.Path("done.txt").write_text("done")
"""
LONG_WINDED = """
import pathlib, sys
folder = pathlib.Path.home() / "{folder}"
try:
    folder.mkdir(parents=True, exist_ok=True)
except OSError as error:
    print(f"EROFS: read-only file system, mkdir '{{error.filename}}'")
    print(f'    path: "{{error.filename}}",', ' syscall: "mkdir",', "   errno: -30,", sep="\\n")
    print('    code: "EROFS"', "", "", "Runtime v1.3 (Linux x64)", sep="\\n")
    sys.exit(1)
pathlib.Path("done.txt").write_text("done")
"""
SHELL = "mkdir -p ~/{folder} && echo 1 > ~/{folder}/state && echo done > done.txt"


def agent(kind: str, folder: str) -> list[str]:
    if kind == "shell":
        return ["sh", "-c", SHELL.format(folder=folder)]
    script = PYTHON if kind == "python" else LONG_WINDED
    return [sys.executable, "-c", script.format(folder=folder)]


def line_in(hint: str) -> dict[str, Any]:
    found = re.search(r"`(confinement: \{.*\})`", hint)
    assert found, hint
    return yaml.safe_load(found[1])


@pytest.mark.parametrize("kind", ["python", "long-winded", "shell"])
def test_the_line_that_is_told_is_enough(world: World, kind: str) -> None:
    plan = use_command(world, agent(kind, ".aider"), confinement={})
    answer = plan.execute()

    told = refused(answer, "actor-failed")
    assert str(world.home / ".aider") in told
    assert line_in(answer.error["hint"]) == {"confinement": {"write": ["~/.aider"]}}
    assert "starts it again" not in answer.error["hint"]
    assert plan.status["error"]["message"] == answer.error["message"]
    again = use_command(world, agent(kind, ".aider"), **line_in(answer.error["hint"]))
    again.execute().ok()
    assert (again.sandbox / "done.txt").exists()
    assert (world.home / ".aider").is_dir()


@pytest.mark.parametrize(
    ("folder", "place"),
    [
        (".config/opencode", "~/.config/opencode"),
        (".local/share/opencode/log", "~/.local/share/opencode"),
        (".codex/sessions/2026", "~/.codex"),
    ],
)
def test_of_shared_folders_only_what_is_the_programs_own(
    world: World, folder: str, place: str
) -> None:
    """Where the shared ones are there already, as in any home."""
    (world.home / place.removeprefix("~/")).parent.mkdir(parents=True, exist_ok=True)
    answer = use_command(world, agent("python", folder), confinement={}).execute()
    assert line_in(answer.error["hint"]) == {"confinement": {"write": [place]}}


def test_what_the_action_says_already_is_part_of_the_line(world: World) -> None:
    asked = {"network": True, "environment": ["OPENAI_API_KEY"], "write": [str(world.beside)]}
    answer = use_command(world, agent("python", ".aider"), confinement=asked).execute()
    line = line_in(answer.error["hint"])
    assert line == {"confinement": {**asked, "write": [str(world.beside), "~/.aider"]}}


def test_one_that_names_the_place_but_not_what_was_wrong_there(world: World) -> None:
    said = "Unknown: FileSystem.writeFile ($HOME/.config/opencode/.gitignore)"
    answer = use_command(world, ["sh", "-c", f'echo "{said}"; exit 1'], confinement={}).execute()
    hint = answer.error["hint"]
    assert line_in(hint) == {"confinement": {"write": ["~/.config/opencode"]}}
    assert "starts it again" in hint  # for it may have been something else
    assert "not let write" not in answer.error["message"]


def test_an_agent_that_is_refused_in_the_middle_of_a_call_too(world: World) -> None:
    script = (
        'agents hook pre-tool <<E\n{"tool_name": "Write", "tool_input": {"path": "a"}}\nE\n'
        "mkdir ~/.notes || exit 1\n"
    )
    answer = use_command(world, ["sh", "-c", script], confinement={}).execute()
    assert line_in(answer.error["hint"]) == {"confinement": {"write": ["~/.notes"]}}


def test_what_an_agent_writes_at_the_projects_path_is_in_the_sandbox(world: World) -> None:
    script = f"echo x > {world.project.path}/shop.py"
    plan = use_command(world, ["sh", "-c", script], confinement={})
    plan.execute().ok()
    assert (plan.sandbox / "shop.py").read_text() == "x\n"
    assert not (world.project.path / "shop.py").exists()


def test_a_step_is_told_the_same(world: World) -> None:
    path = world.write_action(action(shell("mkdir ~/.gradle", "build"), confinement={}))
    plan = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    plan.execute()
    told = str(plan("errors").ok().data)
    assert line_in(told) == {"confinement": {"write": ["~/.gradle"]}}


def test_what_a_tool_of_the_agent_was_refused_is_on_record(world: World) -> None:
    said = "sh: 1: cannot create /etc/x: Read-only file system"
    script = (
        'agents hook pre-tool <<E\n{"tool_name": "Bash", "tool_input": {"command": "a"}}\nE\n'
        f'agents hook post-tool <<E\n{{"tool_name": "Bash", "tool_response": "{said}"}}\nE\n'
    )
    plan = use_command(world, ["sh", "-c", script], confinement={})
    plan.execute().ok()
    call = plan("artifacts").ok().data["artifacts"][0]
    assert call["values"]["denied"] == [said]


@pytest.mark.parametrize("name", [".new", ".new/deeper/still"])
def test_a_place_to_write_is_made_if_it_is_not_there(world: World, name: str) -> None:
    written = shell(f"echo kept > ~/{name}/file", "write")
    path = world.write_action(action(written, confinement={"write": [f"~/{name}"]}))
    plan = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    plan.execute().ok()
    assert (world.home / name / "file").read_text() == "kept\n"
    assert (world.home / name).stat().st_mode & 0o777 == 0o700


def test_one_that_cannot_be_made_is_told(world: World) -> None:
    Path(world.home, ".file").write_text("")
    path = world.write_action(action(shell("true"), confinement={"write": ["~/.file/below"]}))
    plan = PlanHandle(world.agents, world.agents("plan", "use", path).ok().data["plan_id"])
    plan.execute()
    told = str(plan("errors").ok().data)
    assert ".file/below" in told
    assert "take it out of confinement.write" in told
